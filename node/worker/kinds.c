/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the code of each kind: bundled, from a shared object, or given by the
 * embedding program.
 */
#include "node/worker/kinds.h"

#include "base/beside.h"
#include "base/given.h"
#include "base/mem.h"
#include "node/actors/actors.h"
#include "wire/session.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    IDLE_DEFAULT_MS = 600000,
    DAEMONS_MAX = 1000,
    OPS_SIZE_FIRST = offsetof(struct rh_actor_ops, session), /* of the first tables of this ABI */
};

_Static_assert((int)RH_SESSIONS_MAX == (int)BONDS_MAX, "one limit");

static const struct rh_actor_ops *const bundled[] = {&actor_kv, &actor_echo};

static enum err complain(const char *name, const char *what, enum err error)
{
    (void)fprintf(stderr, "ringhold node: actor %s: %s\n", name, what);
    return error;
}

/* What an older table lacks is NULL in the copy. One from a newer header may set callbacks that
 * nobody here would call. */
static enum err take(const char *name, const struct rh_actor_ops *ops, struct rh_actor_ops *copy)
{
    const struct given given = {.data = ops, .size = ops->size, .least = OPS_SIZE_FIRST};
    char what[GIVEN_TEXT];
    char text[GIVEN_TEXT + 64];

    if (ops->abi != RH_ABI) {
        (void)snprintf(text,
                       sizeof text,
                       "it was built for ABI %u of libringhold, but this is ABI %d",
                       ops->abi,
                       RH_ABI);
        return complain(name, text, ERR_FOREIGN);
    }
    if (!given_take(&given, copy, sizeof *copy, what)) {
        (void)snprintf(text, sizeof text, "its table of callbacks: %s", what);
        return complain(name, text, ERR_FOREIGN);
    }
    if (ops->name == NULL || ops->activate == NULL || ops->message == NULL ||
        ops->deactivate == NULL) {
        return complain(name, "it lacks one of name, activate, message, deactivate", ERR_INVALID);
    }
    return ERR_OK;
}

/* Without `upgrade` it reads what it writes. NULL: its versions make sense; else what is wrong. */
static const char *set_versions(struct rh_actor_ops *ops)
{
    if (ops->upgrade == NULL && (ops->state_version_least != 0 || ops->state_version_most != 0)) {
        return "state_version_least and state_version_most need an `upgrade`";
    }
    if (ops->upgrade == NULL) {
        ops->state_version_least = ops->state_version;
    }
    if (ops->state_version_most == 0) {
        ops->state_version_most = ops->state_version;
    }
    return ops->state_version_least > ops->state_version ||
                   ops->state_version_most < ops->state_version
               ? "its state_version must be between state_version_least and state_version_most"
               : NULL;
}

static uint16_t withheld(uint32_t part)
{
    return (uint16_t)(part == 0              ? 0
                      : part == RH_PART_NONE ? RING_PART_WHOLE
                                             : RING_PART_WHOLE - part);
}

/* Its ids have their places by hash, and anybody may ask one: the others live anyway. */
static bool is_hashed(const struct rh_kind *kind)
{
    return kind->placement != RH_PLACE_SINGLETON && kind->placement != RH_PLACE_DAEMONS;
}

static enum err add(struct kinds *k, const struct rh_kind *kind, const char *name)
{
    struct rh_actor_ops ops;
    const enum err error = take(name, kind->ops, &ops);

    if (error != ERR_OK) {
        return error;
    }
    const char *wrong = set_versions(&ops);
    if (wrong != NULL) {
        return complain(name, wrong, ERR_INVALID);
    }
    if (ops.durable > 1 || (ops.durable != 0 && ops.flush != NULL)) {
        return complain(name,
                        "its `durable` must be 0 or 1, and a durable kind has no `flush`: what it "
                        "puts is saved "
                        "when its callback is through",
                        ERR_INVALID);
    }
    if (ops.alarm != NULL && ops.durable == 0) {
        return complain(
            name, "its `alarm` needs `durable`, for alarms are in the store", ERR_INVALID);
    }
    if (ops.sessions > RH_SESSIONS_ALLOW || ops.sessions_max > RH_SESSIONS_MAX) {
        return complain(
            name, "its `sessions` value is unknown, or sessions_max is over 16", ERR_INVALID);
    }
    if (kinds_find(k, kind->number) != NULL) {
        return complain(name, "another kind already uses its number", ERR_CONFLICT);
    }
    if (kind->placement > RH_PLACE_HOSTS ||
        (kind->placement == RH_PLACE_HOSTS && kind->part > RH_PART_NONE) ||
        (kind->placement == RH_PLACE_DAEMONS &&
         (kind->daemons < 1 || kind->daemons > DAEMONS_MAX))) {
        return complain(name,
                        "its placement is unknown, or its daemons or its part are not 1 to 1000",
                        ERR_INVALID);
    }
    if (k->count == KINDS_MAX) {
        return complain(name, "too many kinds", ERR_TOO_BIG);
    }
    k->hosted[k->count] = (struct host_kind){
        .number = kind->number,
        .idle_ms = kind->ops->idle_ms == 0 ? IDLE_DEFAULT_MS : kind->ops->idle_ms,
        .mailbox = kind->ops->mailbox,
        .memory = ops.memory,
        .remembered = kind->ops->list != NULL,
        .remember = ops.remember != 0 && is_hashed(kind),
        .always = kind->placement == RH_PLACE_SINGLETON || kind->placement == RH_PLACE_DAEMONS,
        .brief = ops.brief != 0,
        .durable = ops.durable != 0,
        .alarms = ops.alarm != NULL,
        .ahead = ops.ahead != 0 && ops.flush == NULL,
        .state_version = ops.state_version,
        .state_least = ops.state_version_least,
        .state_most = ops.state_version_most,
        .name = kind->ops->name,
        .placement = (uint8_t)kind->placement,
        .withheld = kind->placement == RH_PLACE_HOSTS ? withheld(kind->part) : 0,
        .daemons = kind->placement == RH_PLACE_DAEMONS ? kind->daemons : 0,
    };
    k->kind[k->count++] = (struct kind){
        .number = kind->number,
        .argument = mem_string(kind->argument == NULL ? "" : kind->argument),
    };
    k->kind[k->count - 1].ops = ops;
    return ERR_OK;
}

enum err kinds_add(struct kinds *k, const struct rh_kind *kind)
{
    if (kind->ops == NULL) {
        return complain("(no name)", "its kind has no `ops`", ERR_INVALID);
    }
    return add(k, kind, kind->ops->name == NULL ? "(no name)" : kind->ops->name);
}

/* The kinds of an object that were looked at, for people. */
struct offered {
    char names[512];
    size_t size;
};

/* True: it is the table of that name, or of another ABI, whose name nobody can read: take() says
 * so.
 */
static bool is_named(const struct rh_actor_ops *ops, const char *name, struct offered *offered)
{
    const size_t room = sizeof offered->names - offered->size;

    if (ops->abi != RH_ABI) {
        return true;
    }
    if (name != NULL && ops->name != NULL && strcmp(ops->name, name) == 0) {
        return true;
    }
    const int size = snprintf(offered->names + offered->size,
                              room,
                              "%s%s",
                              offered->size == 0 ? "" : ", ",
                              ops->name == NULL ? "(no name)" : ops->name);
    offered->size += (size_t)size < room ? (size_t)size : room - 1;
    return false;
}

/* `name`: NULL = the only one. NULL after printing why not. */
static const struct rh_actor_ops *pick(void *object, const char *path, const char *name)
{
    const struct rh_actor_ops *only = dlsym(object, "ringhold_actor");
    const struct rh_actor_ops *const *each = dlsym(object, "ringhold_actors");
    struct offered offered = {.names = ""};
    char text[sizeof offered.names + 512];

    if (only == NULL && each == NULL) {
        (void)complain(path,
                       "it has neither of the symbols `ringhold_actor` and `ringhold_actors`",
                       ERR_NOT_FOUND);
        return NULL;
    }
    if (only != NULL && (name == NULL || is_named(only, name, &offered))) {
        return only;
    }
    for (; each != NULL && *each != NULL; each++) {
        if (is_named(*each, name, &offered)) {
            return *each;
        }
    }
    if (name == NULL) {
        (void)snprintf(text,
                       sizeof text,
                       "it has several kinds: name one, as in %s:NAME. It has %s",
                       path,
                       offered.names);
    } else {
        (void)snprintf(text, sizeof text, "it has no kind '%s'. It has %s", name, offered.names);
    }
    (void)complain(path, text, ERR_NOT_FOUND);
    return NULL;
}

/* `name`: of a kind in it; NULL = there is one alone. */
static enum err load(struct kinds *k, const struct rh_kind *kind, const char *path,
                     const char *name)
{
    struct rh_kind loaded = *kind;
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);

    if (object == NULL) {
        return complain(path, dlerror(), ERR_NOT_FOUND);
    }
    loaded.ops = pick(object, path, name);
    const enum err error = loaded.ops == NULL ? ERR_NOT_FOUND : add(k, &loaded, path);
    if (error != ERR_OK) {
        (void)dlclose(object);
        return error;
    }
    k->kind[k->count - 1].object = object;
    return ERR_OK;
}

/* "./game.so:orc" is the kind `orc` in "./game.so", unless there is a file of that name. */
static enum err add_object(struct kinds *k, const struct rh_kind *kind, const char *words)
{
    char *path = mem_string(words);
    char *colon = strrchr(path, ':');
    const bool names = colon != NULL && strchr(colon, '/') == NULL && access(path, F_OK) != 0;

    if (names) {
        *colon = '\0';
    }
    const enum err error = load(k, kind, path, names ? colon + 1 : NULL);
    mem_free(path);
    return error;
}

static enum err add_split(struct kinds *k, const struct rh_kind *kind, const char *name)
{
    struct rh_kind found = *kind;
    char file[64];
    char path[4096];

    if (strchr(name, '/') != NULL) {
        return add_object(k, kind, name);
    }
    for (size_t i = 0; i < sizeof bundled / sizeof bundled[0]; i++) {
        if (strcmp(bundled[i]->name, name) == 0) {
            found.ops = bundled[i];
            return add(k, &found, name);
        }
    }
    if (strcmp(name, "host") == 0 && k->host_kind != NULL) {
        found.ops = k->host_kind(kind->argument == NULL ? "" : kind->argument);
        return found.ops == NULL ? ERR_INVALID : add(k, &found, name);
    }
    // Actors that are installed with this program: the demo's `ledger`, the stores.
    (void)snprintf(file, sizeof file, "%s.so", name);
    if (beside_find(file, path, sizeof path)) {
        return add_object(k, kind, path);
    }
    return complain(
        name,
        "there is no such bundled actor: kv and echo exist, ledger if the package "
        "ringhold-tools is installed, store_redis and store_postgres if ringhold-stores "
        "is; a file's name needs a slash: ./game.so, or ./game.so:KIND",
        ERR_NOT_FOUND);
}

/* `name` may have "=ARGUMENT" behind it. */
static enum err add_named(struct kinds *k, const struct rh_kind *how, const char *name)
{
    char *copy = mem_string(name);
    char *equals = strchr(copy, '=');
    struct rh_kind kind = *how;

    if (equals != NULL) {
        *equals = '\0';
        kind.argument = equals + 1;
    }
    const enum err error = add_split(k, &kind, copy);
    mem_free(copy);
    return error;
}

enum err kinds_add_named(struct kinds *k, uint16_t number, const char *name)
{
    return add_named(k, &(struct rh_kind){.number = number}, name);
}

/* "7@remember" becomes "7". True: it said so. */
static bool cut_remember(char *text)
{
    static const char word[] = "@remember";
    const size_t size = strlen(text);

    if (size < sizeof word - 1 || strcmp(text + size - (sizeof word - 1), word) != 0) {
        return false;
    }
    text[size - (sizeof word - 1)] = '\0';
    return true;
}

/* The part of the node's weight in "0.1" or "1", of at most three decimals. */
static bool read_part(const char *text, uint32_t *part)
{
    uint32_t permille = text[0] == '1' ? RING_PART_WHOLE : 0;
    uint32_t unit = RING_PART_WHOLE;

    if (text[0] != '0' && text[0] != '1') {
        return false;
    }
    if (text[1] == '.') {
        for (text += 2; *text >= '0' && *text <= '9' && unit > 1; text++) {
            unit /= 10;
            permille += (uint32_t)(*text - '0') * unit;
        }
    } else {
        text++;
    }
    *part = permille == 0 ? RH_PART_NONE : permille;
    return *text == '\0' && permille <= RING_PART_WHOLE;
}

/* "7", "7@together", "7@hosts", "7@0.1", "7@singleton" or "7@daemons=3", up to a colon. */
static bool read_place(const char *text, struct rh_kind *kind)
{
    char *end = NULL;
    const unsigned long number = strtoul(text, &end, 10);

    kind->number = (uint16_t)number;
    if (text[0] < '0' || text[0] > '9' || number > UINT16_MAX) {
        return false;
    }
    if (strcmp(end, "@together") == 0) {
        kind->placement = RH_PLACE_TOGETHER;
        return true;
    }
    if (strcmp(end, "@hosts") == 0) {
        kind->placement = RH_PLACE_HOSTS;
        return true;
    }
    if (end[0] == '@' && end[1] >= '0' && end[1] <= '9') {
        kind->placement = RH_PLACE_HOSTS;
        return read_part(end + 1, &kind->part);
    }
    if (strcmp(end, "@singleton") == 0) {
        kind->placement = RH_PLACE_SINGLETON;
        return true;
    }
    if (strncmp(end, "@daemons=", 9) == 0 && end[9] >= '0' && end[9] <= '9') {
        const unsigned long count = strtoul(end + 9, &end, 10);

        kind->placement = RH_PLACE_DAEMONS;
        kind->daemons = count > DAEMONS_MAX ? DAEMONS_MAX + 1u : (uint32_t)count;
    }
    return *end == '\0';
}

static bool add_line(struct kinds *k, char *line)
{
    char *colon = strchr(line, ':');
    struct rh_kind kind = {0};

    if (colon != NULL) {
        *colon = '\0';
    }
    const bool remember = cut_remember(line);
    if (colon == NULL || colon[1] == '\0' || !read_place(line, &kind) ||
        (remember && !is_hashed(&kind))) {
        (void)fprintf(stderr,
                      "ringhold node: --kind: '%s' is not NUMBER:NAME, NUMBER@together:NAME, "
                      "NUMBER@hosts:NAME, NUMBER@PART:NAME with a PART of 0 to 1 (0.1: a canary), "
                      "any of them with @remember before the colon, NUMBER@singleton:NAME or "
                      "NUMBER@daemons=COUNT:NAME\n",
                      line);
        return false;
    }
    if (add_named(k, &kind, colon + 1) != ERR_OK) {
        return false;
    }
    k->hosted[k->count - 1].remember = k->hosted[k->count - 1].remember || remember;
    return true;
}

bool kinds_add_lines(struct kinds *k, const char *lines)
{
    char *copy = mem_string(lines == NULL ? "" : lines);
    bool good = true;
    char *rest = NULL;

    for (char *line = strtok_r(copy, "\n", &rest); good && line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        good = add_line(k, line);
    }
    mem_free(copy);
    return good;
}

enum err kinds_start(struct kinds *k, const char *node)
{
    for (size_t i = 0; i < k->count; i++) {
        struct kind *kind = &k->kind[i];
        const struct rh_kind_info info = {
            .size = sizeof info, .kind = kind->number, .node = node, .argument = kind->argument};

        if (kind->ops.start != NULL && kind->ops.start(&info, &kind->shared) != RH_OK) {
            return complain(kind->ops.name, "the actor kind did not start", ERR_REFUSED);
        }
        kind->started = true;
    }
    return ERR_OK;
}

const struct kind *kinds_find(const struct kinds *k, uint16_t number)
{
    for (size_t i = 0; i < k->count; i++) {
        if (k->hosted[i].number == number) {
            return &k->kind[i];
        }
    }
    return NULL;
}

const char *kinds_durable(const struct kinds *k)
{
    for (size_t i = 0; i < k->count; i++) {
        if (k->kind[i].ops.durable != 0) {
            return k->kind[i].ops.name;
        }
    }
    return NULL;
}

void kinds_fini(struct kinds *k)
{
    for (size_t i = 0; i < k->count; i++) {
        struct kind *kind = &k->kind[i];

        if (kind->started && kind->ops.stop != NULL) {
            kind->ops.stop(kind->shared);
        }
        mem_free(kind->argument);
        if (kind->object != NULL) {
            (void)dlclose(kind->object);
        }
    }
    k->count = 0;
}

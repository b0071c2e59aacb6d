/* SPDX-License-Identifier: Apache-2.0
 *
 * The operator's questions of ringhold.h: pins ids, and lists who lives.
 */
#include "daemon/admin.h"

#include "base/given.h"
#include "base/mem.h"
#include "base/plain.h"
#include "wire/control.h"
#include "wire/record.h"

#include <ringhold.h>

#include <stdio.h>
#include <string.h>

enum { BY_MAX = 63, PINS_MAX = 1000, SAID_SIZE = 4096, TIMEOUT_MS = 5000 };

struct rh_admin {
    struct admin *admin;
    const char *by;
    uint32_t timeout_ms;
    char said[SAID_SIZE];
};

/* ---- the handle ---- */

/* The options of the caller as this library knows them. NULL: they are fine; else what is wrong. */
static const char *take(const struct rh_admin_options *from, struct rh_admin_options *o,
                        char text[GIVEN_TEXT])
{
    const struct given given = {.data = from,
                                .size = from == NULL ? 0 : from->size,
                                .least = offsetof(struct rh_admin_options, link_key) +
                                         sizeof o->link_key};

    if (from == NULL || from->abi != RH_ABI) {
        return "the options were not built for this ABI of libringhold";
    }
    if (!given_take(&given, o, sizeof *o, text)) {
        return text;
    }
    if (o->join == NULL || o->by == NULL) {
        return "join and by are required";
    }
    if (o->by[0] == '\0' || strlen(o->by) > BY_MAX || !plain_is(o->by)) {
        return "by must be 1 to 63 bytes of UTF-8 without control characters";
    }
    const int files = (o->link_ca != NULL) + (o->link_certificate != NULL) + (o->link_key != NULL);
    return files == 0 || files == 3 ? NULL : "link_ca, link_certificate and link_key go together";
}

struct rh_admin *rh_admin_open(const struct rh_admin_options *options)
{
    struct rh_admin_options o;
    char text[GIVEN_TEXT];
    const char *fault = take(options, &o, text);

    if (fault != NULL) {
        (void)fprintf(stderr, "ringhold: rh_admin_open: %s\n", fault);
        return NULL;
    }
    const struct admin_where where = {
        .cluster = o.cluster == NULL ? "ringhold" : o.cluster,
        .coordinators = o.join,
        .tls = {.ca = o.link_ca, .certificate = o.link_certificate, .key = o.link_key},
    };
    struct admin *admin = admin_open(&where);
    if (admin == NULL) {
        return NULL;
    }
    struct rh_admin *a = mem_new(1, sizeof *a);
    a->admin = admin;
    a->by = o.by;
    a->timeout_ms = o.timeout_ms == 0 ? TIMEOUT_MS : o.timeout_ms;
    return a;
}

void rh_admin_close(struct rh_admin *admin)
{
    if (admin != NULL) {
        admin_close(admin->admin);
        mem_free(admin);
    }
}

const char *rh_admin_said(const struct rh_admin *admin)
{
    return admin == NULL ? "" : admin->said;
}

static int say(struct rh_admin *a, enum rh_result result, const char *text)
{
    (void)snprintf(a->said, sizeof a->said, "%s", text);
    return result;
}

/* RH_OK: `reply` is the caller's. Else it is NULL, and what went wrong is said. */
static int ask(struct rh_admin *a, ProtobufCMessage *what, Rh__AdminReply **reply)
{
    int result = RH_OK;

    *reply = admin_try(a->admin, what, a->timeout_ms);
    if (*reply == NULL) {
        admin_why_none(a->admin, a->said, sizeof a->said);
        return RH_TIMEOUT;
    }
    // A leader that is not ready yet says so until the time is over: nothing is done then.
    if ((*reply)->error[0] != '\0') {
        result = say(a, (*reply)->again ? RH_TIMEOUT : RH_REJECTED, (*reply)->error);
        admin_free(*reply);
        *reply = NULL;
    }
    return result;
}

/* ---- pins ---- */

static bool is_pin(const struct rh_pin *pin, bool remove)
{
    return pin->id.data != NULL && pin->id.size > 0 && pin->id.size <= RECORD_ID_MAX &&
           (remove || (pin->node != NULL && pin->node[0] != '\0' && plain_is(pin->node)));
}

static int change(struct rh_admin *a, const struct rh_pin *pins, size_t count, Rh__AdminPin *what)
{
    Rh__AdminReply *reply = NULL;
    int result = RH_OK;

    for (size_t i = 0; i < count; i++) {
        if (!is_pin(&pins[i], what->remove)) {
            return say(a, RH_INVALID, "a kind, an id or a node is out of range");
        }
    }
    Rh__Actor *actors = mem_new(count, sizeof *actors);
    Rh__PinWish *wishes = mem_new(count, sizeof *wishes);
    what->pins = mem_new(count, sizeof(Rh__PinWish *));
    for (size_t i = 0; i < count; i++) {
        actors[i] = (Rh__Actor)RH__ACTOR__INIT;
        actors[i].kind = pins[i].kind;
        actors[i].id = proto_bytes(bytes_of(pins[i].id.data, pins[i].id.size));
        wishes[i] = (Rh__PinWish)RH__PIN_WISH__INIT;
        wishes[i].actor = &actors[i];
        wishes[i].node = proto_text(what->remove ? "" : pins[i].node);
        what->pins[what->n_pins++] = &wishes[i];
    }
    result = ask(a, &what->base, &reply);
    if (result == RH_OK) {
        (void)say(a, RH_OK, reply->text);
    }
    admin_free(reply);
    mem_free(what->pins);
    mem_free(wishes);
    mem_free(actors);
    return result;
}

static int change_for(struct rh_admin *a, const struct rh_pin *pins, size_t count,
                      const char *reason, Rh__AdminPin *what)
{
    const char *why = reason == NULL ? "" : reason;

    if (a == NULL || pins == NULL) {
        return RH_INVALID;
    }
    if (count == 0 || count > PINS_MAX) {
        return say(a, RH_INVALID, "a list has 1 to 1000 pins");
    }
    if (strlen(why) > ADMIN_REASON_MAX || !plain_is(why)) {
        return say(
            a, RH_INVALID, "a reason is at most 200 bytes of UTF-8 without control characters");
    }
    what->by = proto_text(a->by);
    what->reason = proto_text(why);
    return change(a, pins, count, what);
}

int rh_pin(struct rh_admin *admin, const struct rh_pin *pins, size_t count, enum rh_if_dead if_dead,
           const char *reason)
{
    Rh__AdminPin what = RH__ADMIN_PIN__INIT;

    if (if_dead != RH_IF_DEAD_HASH && if_dead != RH_IF_DEAD_WAIT) {
        return RH_INVALID;
    }
    what.waits = if_dead == RH_IF_DEAD_WAIT;
    return change_for(admin, pins, count, reason, &what);
}

int rh_unpin(struct rh_admin *admin, const struct rh_pin *pins, size_t count, const char *reason)
{
    Rh__AdminPin what = RH__ADMIN_PIN__INIT;

    what.remove = true;
    return change_for(admin, pins, count, reason, &what);
}

/* ---- who lives ---- */

/* A list under way. */
struct roll {
    struct rh_admin *a;
    int (*each)(void *context, const struct rh_live *live);
    void *context;
    uint32_t left; /* rows; UINT32_MAX = no limit */
    bool ended;
    int result;
};

/* What of it isn't there is told, and the list goes on with the next node. */
static void miss(struct roll *l, int result, const char *text)
{
    const size_t size = strlen(l->a->said);

    (void)snprintf(&l->a->said[size], sizeof l->a->said - size, "%s%s", size > 0 ? "; " : "", text);
    l->result = result;
}

static void list_row(struct roll *l, const char *node, const Rh__ActorRow *row)
{
    const struct rh_live live = {.node = node,
                                 .id = {row->id.data, row->id.len},
                                 .state = row->state,
                                 .unused_ms = row->unused_ms,
                                 .came = (uint16_t)row->came,
                                 .here_ms = row->here_ms,
                                 .kind = (uint16_t)row->kind};

    l->left -= l->left != UINT32_MAX;
    l->ended = l->each(l->context, &live) != 0 || l->left == 0;
}

/* NULL, after telling what is missing: there is no page in it. A cursor only grows, so that a list
 * has an end. */
static const Rh__ActorsAnswer *page_of(struct roll *l, const Rh__AdminReply *reply,
                                       const Rh__AdminActors *what)
{
    const Rh__ActorsAnswer *page = reply == NULL ? NULL : reply->actors;
    char text[160];

    if (reply != NULL && reply->error[0] != '\0') {
        miss(l, RH_REJECTED, reply->error);
        return NULL;
    }
    if (page != NULL && (page->next == 0 || page->next > what->cursor)) {
        return page;
    }
    if (reply == NULL) {
        (void)snprintf(
            text, sizeof text, "no answer of node %.63s in %u ms", what->node, l->a->timeout_ms);
        miss(l, RH_TIMEOUT, text);
    } else {
        (void)snprintf(text, sizeof text, "the answer of node %.63s can't be decoded", what->node);
        miss(l, RH_FAILED, text);
    }
    return NULL;
}

static void list_node(struct roll *l, Rh__AdminActors *what)
{
    what->cursor = 0;
    do {
        what->limit = l->left;
        Rh__AdminReply *reply = admin_try(l->a->admin, &what->base, l->a->timeout_ms);
        const Rh__ActorsAnswer *page = page_of(l, reply, what);

        for (size_t i = 0; page != NULL && i < page->n_rows && !l->ended; i++) {
            list_row(l, what->node, page->rows[i]);
        }
        what->cursor = page == NULL ? 0 : page->next;
        admin_free(reply);
    } while (what->cursor != 0 && !l->ended);
}

/* All that may have actors: one that is away and has lost its vnodes has none. */
static void list_nodes(struct roll *l, Rh__AdminActors *what)
{
    Rh__AdminNodes nodes = RH__ADMIN_NODES__INIT;
    Rh__AdminReply *reply = NULL;

    l->result = ask(l->a, &nodes.base, &reply);
    for (size_t i = 0; reply != NULL && i < reply->n_nodes && !l->ended; i++) {
        const Rh__NodeRow *node = reply->nodes[i];

        if (node->member != NULL && (node->live || node->vnodes > 0)) {
            what->node = node->member->name;
            list_node(l, what);
        }
    }
    admin_free(reply);
}

int rh_actors(struct rh_admin *admin, const struct rh_live_filter *filter,
              int (*each)(void *context, const struct rh_live *live), void *context)
{
    const struct given given = {
        .data = filter, .size = filter == NULL ? 0 : filter->size, .least = sizeof *filter};
    struct rh_live_filter all = {0};
    const struct rh_live_filter *of = &all;
    char text[GIVEN_TEXT];
    Rh__AdminActors what = RH__ADMIN_ACTORS__INIT;

    if (admin == NULL || each == NULL) {
        return RH_INVALID;
    }
    if (filter != NULL && !given_take(&given, &all, sizeof all, text)) {
        return say(admin, RH_INVALID, text);
    }
    if (of->prefix.size > RECORD_ID_MAX || (of->prefix.data == NULL && of->prefix.size > 0) ||
        (of->node != NULL && !plain_is(of->node))) {
        return say(admin, RH_INVALID, "the filter is out of range");
    }
    struct roll l = {.a = admin,
                     .each = each,
                     .context = context,
                     .left = of->limit == 0 ? UINT32_MAX : of->limit};
    admin->said[0] = '\0';
    what.any_kind = of->one_kind == 0;
    what.kind = of->kind;
    what.prefix = proto_bytes(bytes_of(of->prefix.data, of->prefix.size));
    if (of->node != NULL) {
        what.node = proto_text(of->node);
        list_node(&l, &what);
    } else {
        list_nodes(&l, &what);
    }
    return l.result;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads KIND/ID of a command line, and asks the fleet which kind has a name.
 */
#include "cli/actor_word.h"

#include "base/history.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static struct bytes text_bytes(const char *text)
{
    return bytes_of(text, strlen(text));
}

bool actor_parse_id(const char *text, Rh__Actor *actor, uint8_t id[ACTOR_ID_MAX])
{
    size_t size = 0;

    if (!actor_name_parse_id(text_bytes(text), id, &size)) {
        return false;
    }
    actor->id = (ProtobufCBinaryData){.len = size, .data = id};
    return true;
}

static void hint(const char *command, const char *word, const Rh__Actor *actor)
{
    char name[ACTOR_NAME_SIZE];

    (void)proto_actor(actor, name);
    (void)fprintf(
        stderr,
        "ringhold %s: '%s' is read as %s: write %s, the next version takes KIND/ID only\n",
        command,
        word,
        name,
        name);
}

static bool is_named(const Rh__Kind *kind, struct bytes name)
{
    return strlen(kind->name) == name.size && memcmp(kind->name, name.data, name.size) == 0;
}

/* How many kinds have that name; `number` is that of the first one, `other` of the last. */
static size_t count_named(const Rh__AdminReply *reply, struct bytes name, uint32_t *number,
                          uint32_t *other)
{
    size_t count = 0;

    for (size_t i = 0; i < reply->n_roles; i++) {
        for (size_t k = 0; k < reply->roles[i]->n_kinds; k++) {
            const Rh__Kind *kind = reply->roles[i]->kinds[k];

            if (is_named(kind, name)) {
                *number = count == 0 ? kind->number : *number;
                *other = kind->number;
                count++;
            }
        }
    }
    return count;
}

/* The number of the kind that has a name alone, or in the name of an actor, else NULL. False after
 * printing why there is none. */
static bool find_kind(const struct query *q, const char *command, struct bytes kind,
                      const struct actor_name *name, uint32_t *number)
{
    const int size = (int)kind.size;
    const char *text = (const char *)kind.data;
    Rh__AdminStatus what = RH__ADMIN_STATUS__INIT;
    char id[ACTOR_NAME_ID_SIZE];
    uint32_t other = 0;

    Rh__AdminReply *reply = query_ask(q, &what.base);
    if (reply == NULL) {
        return false;
    }
    const size_t count = count_named(reply, kind, number, &other);
    admin_free(reply);
    if (count > 1) {
        (void)fprintf(stderr,
                      "ringhold %s: kinds %" PRIu32 " and %" PRIu32
                      " are both named '%.*s': write the number of one\n",
                      command,
                      *number,
                      other,
                      size,
                      text);
    } else if (count == 0 && name == NULL) {
        (void)fprintf(stderr,
                      "ringhold %s: no kind is named '%.*s' (`ringhold status` lists them)\n",
                      command,
                      size,
                      text);
    } else if (count == 0) {
        (void)fprintf(stderr,
                      "ringhold %s: no kind is named '%.*s' (`ringhold status` lists them); the "
                      "id with that slash in it, of kind 0, is 0/%.*s/%s\n",
                      command,
                      size,
                      text,
                      size,
                      text,
                      actor_name_print_id(bytes_of(name->id, name->id_size), id));
    }
    return count == 1;
}

static bool read_word(const struct query *q, const char *command, const char *word, bool bare,
                      Rh__Actor *actor, uint8_t id[ACTOR_ID_MAX])
{
    struct actor_name name;
    const enum actor_spelling spelling = actor_name_parse(text_bytes(word), &name);

    actor->kind = name.kind;
    if (spelling == ACTOR_SPELLING_NONE || (spelling == ACTOR_SPELLING_BARE && !bare)) {
        (void)fprintf(stderr,
                      "ringhold %s: '%s' is not KIND/ID, such as 3/boss-7: a kind's number or "
                      "name, a slash, and an id of 1 to %d bytes, any of them as %%XX\n",
                      command,
                      word,
                      ACTOR_ID_MAX);
        return false;
    }
    if (spelling == ACTOR_SPELLING_NAME &&
        !find_kind(q, command, name.kind_name, &name, &actor->kind)) {
        return false;
    }
    memcpy(id, name.id, name.id_size);
    actor->id = (ProtobufCBinaryData){.len = name.id_size, .data = id};
    if (spelling == ACTOR_SPELLING_BARE || name.at) {
        hint(command, word, actor);
    }
    return true;
}

bool actor_read(const struct query *q, const char *command, const char *word, Rh__Actor *actor,
                uint8_t id[ACTOR_ID_MAX])
{
    return read_word(q, command, word, false, actor, id);
}

bool actor_read_short(const struct query *q, const char *command, const char *word,
                      Rh__Actor *actor, uint8_t id[ACTOR_ID_MAX])
{
    return read_word(q, command, word, true, actor, id);
}

static bool read_kind(const struct query *q, const char *command, const char *word, uint32_t *kind)
{
    const struct option_range range = {0, ACTOR_KIND_MAX};

    return word[strspn(word, "0123456789")] == '\0'
               ? query_number(command, "--kind", word, range, kind)
               : find_kind(q, command, text_bytes(word), NULL, kind);
}

struct option actor_kind_option(struct actor_filter *f)
{
    return option_text("kind",
                       "KIND",
                       f->kind_word,
                       sizeof f->kind_word,
                       "only those of this kind, a number or a name (any)");
}

struct option actor_prefix_option(struct actor_filter *f)
{
    return option_text(
        "prefix", "TEXT", f->prefix_word, sizeof f->prefix_word, "only ids that begin with it");
}

bool actor_filter_read(const struct query *q, const char *command, struct actor_filter *f)
{
    Rh__Actor begin = RH__ACTOR__INIT;

    f->one_kind = f->kind_word[0] != '\0';
    if (f->one_kind && !read_kind(q, command, f->kind_word, &f->kind)) {
        return false;
    }
    if (f->prefix_word[0] != '\0' && !actor_parse_id(f->prefix_word, &begin, f->id)) {
        (void)fprintf(stderr,
                      "ringhold %s: --prefix: '%s' is not the beginning of an id: bytes as %%XX, "
                      "at most %d\n",
                      command,
                      f->prefix_word,
                      ACTOR_ID_MAX);
        return false;
    }
    f->prefix = begin.id;
    return true;
}

bool actor_read_of_kind(const char *command, uint32_t kind, const char *word, Rh__Actor *actor,
                        uint8_t id[ACTOR_ID_MAX])
{
    const struct bytes text = text_bytes(word);

    if (text.size == 0 || text.size > ACTOR_ID_MAX) {
        (void)fprintf(stderr, "ringhold %s: an id has 1 to %d bytes\n", command, ACTOR_ID_MAX);
        return false;
    }
    memcpy(id, text.data, text.size);
    actor->kind = kind;
    actor->id = (ProtobufCBinaryData){.len = text.size, .data = id};
    hint(command, word, actor);
    return true;
}

void actor_cells(struct rows *r, bool json, uint32_t kind, struct bytes id)
{
    char name[ACTOR_NAME_SIZE];
    char word[HISTORY_WORD_SIZE];

    rows_text(r, "%s", actor_name_print(kind, id, name));
    if (json) {
        rows_number(r, kind);
        rows_text(r, "%s", history_word(id, word));
    }
}

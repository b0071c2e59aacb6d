/* SPDX-License-Identifier: Apache-2.0
 *
 * An actor's name on a command line: KIND/ID (base/actor_name.h), whose kind is a number or a name
 * that the fleet knows. Other spellings, those of earlier versions, are read once more, with a hint
 * on stderr that says which actor they name.
 */
#ifndef CLI_ACTOR_WORD_H
#define CLI_ACTOR_WORD_H

#include "base/actor_name.h"
#include "cli/query.h"
#include "wire/control.pb-c.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    ACTOR_ID_MAX = ACTOR_NAME_ID_MAX,
    ACTOR_KIND_MAX = ACTOR_NAME_KIND_MAX,
};

/* Read `word` into `actor`, which borrows `id`. The coordinators are asked if the kind is a name.
 * False after printing what is wrong: "ringhold COMMAND: …". */
bool actor_read(const struct query *q, const char *command, const char *word, Rh__Actor *actor,
                uint8_t id[ACTOR_ID_MAX]);

/* Like actor_read(), for commands that took an id alone in earlier versions: it has kind 0. */
bool actor_read_short(const struct query *q, const char *command, const char *word,
                      Rh__Actor *actor, uint8_t id[ACTOR_ID_MAX]);

/* Read an id of that kind, byte for byte, as --kind N ID of earlier versions; likewise. */
bool actor_read_of_kind(const char *command, uint32_t kind, const char *word, Rh__Actor *actor,
                        uint8_t id[ACTOR_ID_MAX]);

/* Which actors a list shows, by its options --kind and --prefix; zeroed, all. */
struct actor_filter {
    char kind_word[128];
    char prefix_word[ACTOR_NAME_ID_SIZE];
    /* What actor_filter_read() makes of them: */
    bool one_kind;
    uint32_t kind;              /* 0 = of any, unless `one_kind` */
    ProtobufCBinaryData prefix; /* in `id` */
    uint8_t id[ACTOR_ID_MAX];
};
struct option actor_kind_option(struct actor_filter *f);
struct option actor_prefix_option(struct actor_filter *f);

/* Read the words. The coordinators are asked if the kind is a name. False after printing what is
 * wrong: "ringhold COMMAND: …". */
bool actor_filter_read(const struct query *q, const char *command, struct actor_filter *f);

/* Add the cell of a column ACTOR; for JSON those of ACTOR, KIND and ID, where the id alone has %XX
 * for what is not printable. */
void actor_cells(struct rows *r, bool json, uint32_t kind, struct bytes id);

/* A bare ID, or the beginning of one, into `actor->id` alone; prints nothing. */
bool actor_parse_id(const char *text, Rh__Actor *actor, uint8_t id[ACTOR_ID_MAX]);

#endif

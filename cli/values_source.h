/* SPDX-License-Identifier: Apache-2.0
 *
 * Where `ringhold actor` finds the values of an actor: at its owner, by way of the leader; or in a
 * store whose nodes are stopped (--store).
 *
 * Each function that fails has printed one line that says why.
 */
#ifndef CLI_VALUES_SOURCE_H
#define CLI_VALUES_SOURCE_H

#include "cli/actor_word.h"
#include "cli/query.h"
#include "wire/values_ask.h"

struct values_offline;

struct values_source {
    const struct query *q; /* borrowed; its first argument names the actor */
    const char *command;   /* "actor get" */
    Rh__Actor actor;
    uint8_t id[ACTOR_ID_MAX];
    Rh__AdminReply *reply;          /* owned; the last */
    struct values_offline *offline; /* owned; NULL = live */
};

/* `store`: of --store, "" = live. Close it in any case. */
bool values_source_open(struct values_source *s, const struct query *q, const char *command,
                        const char *store);
void values_source_close(struct values_source *s);

/* Append a row for each value to `rows`; of `key` alone, unless it is empty. They are those of one
 * moment, and `number` is that of the actor's last commit then. */
bool values_source_read(struct values_source *s, struct bytes key, struct buffer *rows,
                        uint64_t *number);
/* Do all rows, as one commit; `replace`: delete values that they do not name. `count` of them
 * changed something. */
bool values_source_change(struct values_source *s, struct bytes rows, bool replace,
                          uint32_t *count);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * The journal: what did the actors of one process do, and when? Fixed-size
 * records in a file that is written through a shared mapping: a record is in
 * the kernel's hands when journal_put() returns, so kill -9 loses none (a power
 * cut may). The ledger actor writes it, the demo's judge reads it.
 *
 *     0        8                          80
 *     +--------+--------------------------+----------+----------+-- … zeros
 *     | magic  | node's name, then zeros  | record 0 | record 1 |
 *     +--------+--------------------------+----------+----------+-- …
 *
 * In this machine's byte order. Times are CLOCK_BOOTTIME, so journals of one
 * machine and one boot can be compared.
 */
#ifndef DEMO_JOURNAL_H
#define DEMO_JOURNAL_H

#include "base/bytes.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

enum { JOURNAL_NAME_MAX = 71 };

enum journal_event {
    JOURNAL_ACTIVATE = 1, /* live from here */
    JOURNAL_RUN_BEGIN,
    JOURNAL_RUN_END,
    JOURNAL_EXPORT,  /* frozen: not live from here */
    JOURNAL_RESUME,  /* the move was called off: live again */
    JOURNAL_DISCARD, /* gone, if it was not frozen before; seq = enum rh_why */
};

struct journal_record {
    uint64_t time_ns; /* CLOCK_BOOTTIME */
    uint64_t id_hash; /* journal_id_hash() */
    uint64_t seq;     /* RUN_*: the client's number of the request */
    uint64_t fence;   /* the actor's token */
    uint32_t client;  /* RUN_* */
    uint32_t event;   /* enum journal_event; 0 = no record yet */
};

/* Hash an entity's id. The hash has nothing to do with the id's place on the ring. */
uint64_t journal_id_hash(struct bytes id);

struct journal;

/* Make a new file. ERR_CONFLICT: it is there already; ERR_IO: it can't be made; ERR_INVALID: the
 * name is too long. */
MUST_CHECK enum err journal_open(struct journal **out, const char *path, const char *node);
/* Append a record; its time is filled in. Ends the process (exit 74) when the disk is full: a
 * journal with holes would accuse the innocent. */
void journal_put(struct journal *j, const struct journal_record *record);
/* Takes NULL. */
void journal_close(struct journal *j);

/* A journal as it was when it was opened, also while another process writes it. */
struct journal_view {
    const struct journal_record *record; /* in the order they were written */
    size_t count;
    char node[JOURNAL_NAME_MAX + 1];
    void *map; /* owned */
    size_t map_size;
};

/* ERR_NOT_FOUND: no such file; ERR_CORRUPT: not a journal; ERR_IO: anything else. */
MUST_CHECK enum err journal_view_open(struct journal_view *v, const char *path);
void journal_view_close(struct journal_view *v);

#endif

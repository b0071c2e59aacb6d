/* SPDX-License-Identifier: Apache-2.0
 *
 * The log: requests and notifies without an answer, in the order they were asked. It is a noun of
 * its own, which knows nothing of the client.
 */
#ifndef CLIENT_LOG_H
#define CLIENT_LOG_H

#include <ringhold_client.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum entry_state {
    ENTRY_ASKED, /* waits for its answer, sent or not */
    ENTRY_OVER,  /* needs nothing more; goes when it is the oldest */
    ENTRY_DOOMED /* ends as `status`, which is to be told */
};

struct asked_entry {
    uint64_t at; /* of its packet, in bytes since the log began */
    size_t size;
    uint64_t due_ms;
    rhc_done *done;
    void *context;
    uint32_t name;
    bool told;     /* a notify: nobody answers it */
    uint8_t state; /* enum entry_state */
    uint8_t status;
    bool sent;       /* wholly, in this or an earlier connection */
    bool former;     /* … in an earlier one */
    bool idempotent; /* may run again */
    bool kept;       /* sent within the session that is kept */
};

struct log {
    struct asked_entry *entry; /* a ring of `max` */
    uint32_t max;
    uint32_t first;
    uint32_t count;
    uint8_t *bytes;
    size_t bytes_max;
    uint64_t begin; /* bytes[0] is this byte of the log */
    uint64_t end;
    uint32_t next;  /* entry, from `first`, whose packet goes out next */
    size_t partial; /* bytes of it that are out */
    uint32_t doomed;
    bool in_session; /* what goes out now is of the session that is kept */
    size_t told_max; /* bytes of the largest notify that went out in this connection */
};

/* Entry number `i`, from the oldest. */
static inline struct asked_entry *log_entry(const struct log *l, uint32_t i)
{
    return &l->entry[(l->first + i) % l->max];
}

/* Room for a packet of `size` behind the last; NULL: none. Entry and bytes are the caller's to
 * fill. */
uint8_t *log_put(struct log *l, size_t size, struct asked_entry **entry);

/* The packet of entry `e`. */
uint8_t *log_packet(struct log *l, const struct asked_entry *e);

/* Make an empty log in the owner's memory, for `max` entries and `bytes_max` bytes. */
void log_init(struct log *l, struct asked_entry *entry, uint32_t max, uint8_t *bytes,
              size_t bytes_max);

/* The entry needs nothing more. */
void log_over(struct log *l, struct asked_entry *e);

/* The entry ends with `status`; log_next_doomed() tells. */
void log_doom(struct log *l, struct asked_entry *e, enum rhc_status status);

/* The oldest that is doomed, which then is over. NULL: none. */
struct asked_entry *log_next_doomed(struct log *l);

/* The entry that waits for an answer under this name, or NULL. */
struct asked_entry *log_find(struct log *l, uint32_t name);

/* The bytes to send next: packets that lie one behind the other. */
struct rhc_bytes log_output(struct log *l);

/* Note that `size` bytes of log_output() were sent. */
void log_sent(struct log *l, size_t size);

/* The connection is gone: begin at the oldest again. `keeps`: what the session keeps is to be sent
 * again. */
void log_rewind(struct log *l, bool keeps);

/* Packets of more than this don't go out: what would need one ends. */
void log_limit(struct log *l, size_t size_max);

/* Mark the largest request that went out in this connection as too large: it is not sent again.
 * False: nothing went out. */
bool log_blame(struct log *l);

/* Mark as sent before (or not) what will be sent again. */
void log_mark_again(struct log *l, bool again);

/* True if the entry is marked as sent again. */
bool log_is_again(struct log *l, const struct asked_entry *e);

/* The entry never ran: it is sent again, in its place, by the next connection. */
void log_never_ran(struct asked_entry *e);

/* Say whether what goes out from now on belongs to the kept session. */
void log_in_session(struct log *l, bool in_session);

/* The session is over: what was sent in it may not be sent again. */
void log_forget_session(struct log *l);

/* End all requests that wait: those that were sent may have run, the others never will. */
void log_end(struct log *l);

/* Return the least name of all requests that wait; `none` if none waits. */
uint32_t log_least(const struct log *l, uint32_t none);

/* True if an answer is owed to something that was sent. */
bool log_owes(const struct log *l);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * The node's lease: may it run actors, and may what they do leave? Specification
 * §4.1, holes 26..28 and 30.
 *
 *     NONE ----counted grant----> ACTIVE     start, barred, other era: no actor exists
 *     ACTIVE --until - T_soft---> SOFT       no new task, no activation
 *     SOFT ----until - gate-----> GATED      nothing leaves; actors stay in memory
 *     SOFT, GATED --grant-------> ACTIVE     nobody else can have had the arcs
 *
 * Past `until - kill` a task that still runs has to be stopped (the shell's
 * watchdog). Margins scale with the lease: of D = 3 s, T_soft is 600 ms, gate
 * 300 ms, kill 80 ms.
 *
 * Pure. Time is CLOCK_BOOTTIME: it goes on in suspend (hole 28).
 */
#ifndef NODE_BOOKS_LEASE_H
#define NODE_BOOKS_LEASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    LEASE_SENT_MAX = 64,         /* renewals whose sending is remembered */
    LEASE_JUMP_US = 250 * 1000,  /* by so much the two clocks may disagree (hole 28) */
    LEASE_HURRY_US = 100 * 1000, /* between renewals when the lease is not ACTIVE */
};

enum lease_state { LEASE_NONE, LEASE_ACTIVE, LEASE_SOFT, LEASE_GATED };
const char *lease_state_name(enum lease_state state);

/* One renewal, as it left. */
struct lease_sent {
    uint64_t seq; /* 0 = none */
    uint64_t at_us;
    uint64_t wall_us; /* 0 = not known */
};

struct lease {
    bool in_force;          /* the leader grants leases; else all is allowed */
    bool serve;             /* the operator's choice: go on without one */
    enum lease_state state; /* as judged last */
    uint64_t usual_us;      /* D as registered: what an extended lease is long against */
    uint64_t term_us;       /* D of the grant that counts, or as registered */
    uint64_t until_us;      /* 0 = none */
    uint64_t over_us;       /* none: until then may run what ran under the one before */
    struct lease_sent base; /* the renewal that `until_us` counts from */
    struct lease_sent sent[LEASE_SENT_MAX];
    /* Sums. */
    bool held;              /* some grant counted: `margin_min_us` says something */
    uint64_t margin_min_us; /* smallest `until - now` ever seen */
    uint64_t gated;         /* times it got GATED after it had been granted */
    uint64_t jumps;         /* times it was dropped because the clocks disagreed */
};

/* Result of judging a lease. */
struct lease_verdict {
    enum lease_state before;
    enum lease_state state;
    bool jumped; /* the clocks disagreed: ask for a new one at once */
};

void lease_init(struct lease *l, bool serve);
/* Begin a new incarnation: it has no lease, and no renewal of an earlier one counts. `term_us` 0 =
 * leases are not in force, as the leader says. */
void lease_start(struct lease *l, uint64_t term_us);
/* Barred: NONE until lease_start(), and nothing may run on. */
void lease_forget(struct lease *l);
/* Other era: NONE until lease_start(). The new era begins when all leases of the one before are
 * over, so what runs has the time that it had: as a rule it is just being dropped. */
void lease_void(struct lease *l);
/* Renewal `seq` (from 1, growing) is about to be sent. */
void lease_sent(struct lease *l, uint64_t seq, uint64_t now_us, uint64_t wall_us);
/* Renewal `seq` was granted. It counts from when it was sent (hole 26); one that was sent before
 * the clocks jumped, or too long ago, or before another one that counts, does not count, nor one by
 * which the lease would be ACTIVE no longer than it is. `term_us` 0: leases are not in force. True:
 * it counts. */
bool lease_grant(struct lease *l, uint64_t seq, uint64_t term_us, uint64_t now_us);
/* Likewise, in place of a longer lease too, unless it would be SOFT by now. */
bool lease_replace(struct lease *l, uint64_t seq, uint64_t term_us, uint64_t now_us);
/* Judge what holds now, before anything else in a step and after a grant, so that a loop that
 * stalled gives up its lease by itself. `wall_us` 0 = not known. */
struct lease_verdict lease_judge(struct lease *l, uint64_t now_us, uint64_t wall_us);

/* Return until when a task may start, an output may leave, a task may still run. UINT64_MAX = at
 * any time (not in force, or `serve`); 0 = never (NONE). */
uint64_t lease_soft_us(const struct lease *l);
uint64_t lease_gate_us(const struct lease *l);
uint64_t lease_kill_us(const struct lease *l);
/* From one renewal to the next; `most_us` when nothing is urgent. */
uint64_t lease_renew_every_us(const struct lease *l, uint64_t most_us);
/* Microseconds until the lease ends; 0 = it is over, or there is none. */
uint64_t lease_margin_us(const struct lease *l, uint64_t now_us);

#endif

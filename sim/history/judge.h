/* SPDX-License-Identifier: Apache-2.0
 *
 * What the parts of the judge of histories share: private to sim/history/.
 *
 *     judge.c      the walk over the events; agreement: K5, K6
 *     lives.c      actors and where they live: K1
 *     requests.c   requests, their runs and answers: K3, K4, K7, K9
 */
#ifndef SIM_HISTORY_JUDGE_H
#define SIM_HISTORY_JUDGE_H

#include "sim/history/history.h"

/* A request: (session, entity, seq). */
struct judged_request {
    struct table_link link;
    const struct history_event *send;
    bool answered;
    uint8_t code;
    uint32_t begun;
    uint32_t runs;
};

/* The last request that ran of one (session, entity). */
struct judged_lane {
    struct table_link link;
    uint32_t session;
    uint32_t entity;
    uint64_t last;
};

enum life { LIFE_GONE, LIFE_LIVE, LIFE_FROZEN, LIFE_OUT };

/* An actor in a process. */
struct judged_instance {
    struct table_link link;
    uint32_t process;
    uint32_t entity;
    enum life life;
    struct judged_request *runs; /* NULL = nothing */
};

/* An actor, wherever it is. */
struct judged_actor {
    bool known;
    struct judged_instance *live; /* NULL = nowhere */
    uint32_t last;                /* process where it was activated last */
    uint64_t token;               /* highest fence it was activated with */
    uint64_t stored;              /* highest fence that a store took */
    uint64_t effects;
    uint64_t losses; /* of the fleet when the effects were counted */
    bool broke;      /* it stopped broken since: it may know less, and never more */
};

struct judged_process {
    bool dead;
    bool paused;
    bool leased; /* it writes its leases down */
    uint64_t until_us;
    uint64_t inc;
    uint64_t version;
};

struct judged_session {
    bool known;
    bool closed;
};

/* A number with a fact: the outcome of a transaction, the digest of a version, a dead incarnation.
 */
struct fact {
    struct table_link link;
    uint64_t number;
    uint64_t value;
    uint64_t more;
};

struct judge {
    struct history_book *book;
    const struct history_bounds *bounds;
    struct history_verdict *v;
    const struct history_event *now;
    struct judged_actor *actor;     /* owned; by word */
    struct judged_process *process; /* owned; by word */
    struct judged_session *session; /* owned; by word */
    struct table request;
    struct table lane;
    struct table instance;
    struct table outcome; /* txn: 1 committed, 2 aborted; its version */
    struct table digest;  /* version: word */
    struct table over;    /* incarnation */
    uint64_t losses; /* crashes, new incarnations, instances that were out: effects may be gone */
};

/* A rule was broken by the event at hand, or by `e`. */
void judge_accuse(struct judge *c, const struct history_event *e, enum history_rule rule,
                  const char *format, ...) __attribute__((format(printf, 4, 5)));
#define ACCUSE(c, rule, ...) judge_accuse(c, (c)->now, rule, __VA_ARGS__)

/* As it was written. */
static inline const char *word(const struct judge *c, uint32_t number)
{
    return history_book_word(c->book, number);
}

static inline uint64_t judge_mix(uint32_t a, uint32_t b, uint64_t salt)
{
    return table_mix(((uint64_t)a << 32 | b) ^ table_mix(salt));
}

/* NULL = none. */
struct fact *fact_of(const struct table *t, uint64_t number);

/* ACTIVATE, FREEZE, UNFREEZE, STOP, EXEC_BEGIN, EXEC_END. */
void judge_actor_event(struct judge *c);
void judge_crash(struct judge *c);
/* The process of the event at hand may act: it lives, has a lease, was not reassigned. */
void judge_check_actor(struct judge *c);
void judge_free_lives(struct judge *c);

/* SEND, ANSWER, CLOSE. */
void judge_client_event(struct judge *c);
void judge_exec_begin(struct judge *c, struct judged_instance *i);
void judge_exec_end(struct judge *c, struct judged_instance *i);
/* The history is over. Frees the requests and lanes. */
void judge_close_requests(struct judge *c);

#endif

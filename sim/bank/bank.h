/* SPDX-License-Identifier: Apache-2.0
 *
 * Accounts: durable actors that do all that such actors can, and customers who ask them.
 *
 *     customer --request--> gateway's router --> host --> runtime: account.c --commit--> vault
 *     account --rh_send_once--> the node's calls --> host --> runtime of another account
 *     vault: alarms that are due --> host --> an account that sleeps
 *
 * All of that is shipped: router, streams, host, calls, runtime with saved answers, outbox, inbox
 * and alarms. Simulated are what an account's code does, the customers, and the store (vault.h,
 * sim/store.h). What the store takes is judged as it takes it, and what customers hear by that:
 * sim/check/bank.c.
 *
 * Each account begins with the same sum. A commit of one is an entry in its journal, a value of its
 * own: which request, send or alarm it was, and what the account had after it.
 */
#ifndef SIM_BANK_H
#define SIM_BANK_H

#include "node/runtime/runtime.h"
#include "sim/bank/vault.h"
#include "sim/fleet.h"
#include "sim/worker.h"

enum {
    ACCOUNTS = 6,
    CUSTOMERS_MAX = 6,
    ACCOUNT_ALARMS = 3, /* names of alarms of one account */
    ACCOUNT_SUM = 1000,
    BANK_WORKER = 1, /* whose calls they are: those of sim/calls.c are 0's */
};

/* Values of an account: what it has, and its journal, a key each. */
#define ACCOUNT_STATE "state"
enum { ENTRY_KEY_SIZE = 9, ENTRY_SIZE = 8 * 8 };

enum entry_what {
    ENTRY_BORN,
    ENTRY_GIVE,   /* by a request: a part of the sum is sent to `other` */
    ENTRY_SET,    /* … alarm `slot` is set … */
    ENTRY_CANCEL, /* … or cancelled, if it was there */
    ENTRY_TAKE,   /* what `other` has sent */
    ENTRY_ALARM,  /* alarm `slot` went off */
    ENTRY_BEGIN,  /* by a request, which calls `other` and waits for it */
    ENTRY_CALLED, /* by such a call */
    ENTRY_END,    /* … and the end of that request, `amount` */
};

/* A commit of an account, as it stands in its journal. */
struct entry {
    enum entry_what what;
    uint64_t id;     /* of the request, call, send or firing: all numbered by one count */
    uint64_t sum;    /* behind it … */
    uint64_t count;  /* … and which entry it is, from 1 */
    uint64_t other;  /* an account's number */
    uint64_t amount; /* GIVE, TAKE, ALARM: what was sent */
    uint64_t slot;   /* SET, CANCEL, ALARM */
    uint64_t due_ms; /* SET: for when; ALARM: for when it was set */
    uint64_t at_ms;  /* ALARM: by the wall clock of its node. CANCEL: 1 = it was there */
};

/* What a request asks for. */
enum bank_verb {
    BANK_READ,
    BANK_GIVE,
    BANK_SET,
    BANK_CANCEL,
    BANK_CALL,  /* call another one, and wait for its answer */
    BANK_CALLED /* what is called then */
};

struct bank_ask {
    enum bank_verb verb;
    size_t customer;
    uint64_t life; /* of its customer's session */
    size_t account;
    size_t other;
    uint64_t amount;
    uint64_t slot;
    uint64_t delay_ms;
    uint64_t every_ms;
    uint8_t flags;
    bool answered;  /* or nobody waits for it any more */
    bool replied;   /* it was answered */
    bool ran;       /* the store has it */
    bool never;     /* it was said that nothing of it was saved */
    uint64_t ended; /* CALL: the entry of its end; 0 = there is none, … */
    bool cut;       /* … and never will be, it was said */
    uint64_t call;  /* CALL: the number of its call */
    bool in_doubt;  /* the store did not say whether it has it */
    bool resumed;   /* it was given to another gateway, too */
    uint64_t number;
    uint64_t first;
    uint64_t known;  /* entries of that account that anybody had heard of when it was asked */
    uint64_t doubts; /* the account's, till then */
    size_t view;     /* index in ledger.view of the version by which it was asked */
    uint64_t asked_us;
};

/* An incarnation of a node that ended. */
struct bank_death {
    uint64_t incarnation;
    uint64_t known_us; /* the last of its crash, its fence, its vnodes' new owners, its return … */
    size_t view;       /* … and how many versions there were then */
};

struct account {
    char id[8];
    size_t id_size;
    struct vault vault;
    uint64_t *sum; /* owned; by entry - 1 */
    size_t sum_cap;
    uint64_t heard;  /* entries that somebody was told of */
    uint64_t doubts; /* so often an owner heard that nobody knows of a commit */
};

/* Asks through one gateway at a time, and may number what it asks itself. */
struct customer {
    struct sim_gateway *gateway; /* NULL: it looks for another */
    uint64_t life;               /* of the gateway */
    uint64_t session;            /* the router's; 0 = none yet */
    uint64_t lives;              /* of its session */
    bool owned;
    uint32_t epoch;
    uint64_t known;  /* newest version of its gateways */
    uint64_t *asked; /* owned: uids, by number - 1 */
    size_t asked_count;
    size_t asked_cap;
    size_t low; /* of them, answered from the beginning */
};

struct sim_bank {
    struct prng prng;
    struct account account[ACCOUNTS];
    struct customer customer[CUSTOMERS_MAX];
    size_t customers;
    struct bank_ask *ask; /* owned; by uid - 1; one that is no request is empty */
    size_t ask_count;
    size_t ask_cap;
    struct bank_death *death; /* owned */
    size_t death_count;
    size_t death_cap;
    uint32_t idle_ms;
    uint64_t lag_us;   /* from what is saved to its answer, at most */
    bool ahead;        /* their images go ahead of holds */
    uint64_t clock_us; /* so often a node's wall clock is set; 0 = never */
    uint64_t gap_us;
    uint64_t refuse_pm; /* so many of a thousand sends are refused, … */
    uint64_t fail_pm;   /* … so many callbacks fail, … */
    uint64_t busy_pm;   /* … and so many hand-overs are not now */
    struct bank_counts total;
};

static inline uint64_t bank_between(struct fleet *f, uint64_t low, uint64_t high)
{
    return prng_between(&f->bank->prng, low, high);
}
/* Never when all is healed. */
static inline bool bank_fails(struct fleet *f, uint64_t per_mille)
{
    return bank_between(f, 1, 1000) <= per_mille && !f->healed;
}

/* The node's wall clock is set, by so much wrong at most. */
void bank_set_clock(struct fleet *f, struct sim_node *n, uint64_t away_us);
/* The account of that id. */
struct account *bank_account(struct fleet *f, struct bytes id);
/* A number for a request, a send or a firing. */
uint64_t bank_number(struct fleet *f);
/* The request of that number; NULL = there is none. */
struct bank_ask *bank_find(struct fleet *f, uint64_t uid);

/* ---- account.c */

extern const struct rh_actor_ops account_ops;
void entry_key(uint8_t key[ENTRY_KEY_SIZE], uint64_t id);
bool entry_get(struct bytes key, struct bytes value, struct entry *out);
/* The name of an alarm. */
struct bytes account_alarm(uint64_t slot);

/* ---- teller.c: for accounts' code */

/* The index of its node's version in ledger.view. */
size_t teller_view(const struct sim_worker *w);
/* The wall clock of its node. */
uint64_t teller_wall_ms(const struct sim_worker *w);

/* ---- sim/check/bank.c */

/* The store takes a commit of the account, and has not yet. */
void check_bank_commit(struct fleet *f, struct account *a, const struct store_task *t);
/* … and now has. */
void check_bank_sums(struct fleet *f);
/* Nobody knows whether it does. */
void check_bank_doubt(struct fleet *f, const struct store_task *t);
/* The code of an account begins with a request, or a send, that its journal has, or has not. */
void check_bank_runs(struct fleet *f, const struct account *a, uint64_t id, bool has);
/* An account hears what became of its call, enum rh_result. */
void check_bank_called(struct fleet *f, uint64_t id, int status);
/* A customer hears an answer. */
void check_bank_reply(struct fleet *f, struct bank_ask *a, enum reply_code code, struct bytes body);

#endif

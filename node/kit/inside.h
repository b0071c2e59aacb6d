/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the kit share: a world of ringhold_test.h, its actors and messages.
 */
#ifndef NODE_KIT_INSIDE_H
#define NODE_KIT_INSIDE_H

#include "node/runtime/runtime.h"
#include "node/worker/kinds.h"
#include "storage/actors/store.h"

#include <ringhold_test.h>
#include <string.h>

enum {
    KIT_DEADLINE_US = 60000000, /* of a call of the test */
    KIT_SEND_US = 10000000,     /* of what nobody waits for */
    KIT_RETRY_US = 100000,      /* until one that failed starts again */
};

/* A message on its way to an actor, or in it. */
struct letter {
    struct list_link link;
    uint64_t ticket; /* also its name, if it is asked again */
    uint64_t until_us;
    uint64_t call; /* of an actor that waits for the answer; 0 = none does … */
    bool asked;    /* … but the test */
    bool again;
    uint8_t flags;
    int status;         /* of one that is over … */
    struct buffer body; /* … whose answer is here */
};

struct puppet {
    struct list_link link;
    uint16_t kind;
    struct buffer id;
    struct rh_actor *actor; /* on the runtime; NULL = it does not live */
    enum verb task;
    bool awake; /* it is to live, whoever asks */
    bool failed;
    bool poked;
    bool ends;
    bool moved; /* it comes to life with these */
    bool has_state;
    enum err error; /* of the last task */
    struct buffer state;
    struct buffer bond;
    uint64_t not_before_us;
    uint64_t connection; /* of its client; 0 = it has none */
    struct letter *running;
    struct list mailbox;  /* struct letter */
    struct buffer pushes; /* each: u64 size, bytes */
    size_t pushes_read;
};

struct rh_test {
    struct kinds kinds;
    bool started;
    bool durable;
    struct actor_store *store;
    struct runtime *runtime;
    struct broadcasting broadcasting;
    struct numbering numbering;
    struct list puppets;
    struct list asked; /* struct store_task */
    struct list over;  /* struct letter: to be answered */
    uint64_t now_us;
    uint64_t scan_us;
    uint64_t fence;
    uint64_t ticket;
    uint64_t connections;
    enum rh_test_commits how;
    uint32_t how_many;
    bool killed; /* by a commit: the node is to be started anew */
    bool answered;
    int status; /* of that answer */
    struct buffer answer;
    struct buffer text;
    void (*on_time)(void *context, uint64_t clock_ms); /* NULL = nobody asks */
    void *on_time_context;
};

/* ---- kit.c ---- */

/* The test asks for what makes no sense: end with a line. */
_Noreturn void kit_wrong(const char *what);
void kit_check(const struct rh_test *t);
/* Of NULL: none. */
struct bytes kit_bytes(const char *text);

/* ---- letter.c ---- */

extern const char letter_unknown[]; /* what is answered when it may have run */
struct letter *letter_put(struct rh_test *t, struct puppet *s, uint8_t flags, struct bytes body,
                          uint64_t for_us);
/* The next that the actor runs. */
void letter_put_first(struct puppet *s, struct letter *l);
void letter_free(struct letter *l);
/* Whoever waits will hear it: not now, for the runtime is told nothing while it tells. */
void letter_end(struct rh_test *t, struct letter *l, int status, struct bytes body);
void letter_end_by_text(struct rh_test *t, struct letter *l, int status, const char *text);
/* The actor has run it. */
void letter_ran(struct rh_test *t, struct puppet *s, const struct completion *c);
/* Tell one that is over. False: there is none. */
bool letter_answer_one(struct rh_test *t);

/* ---- puppet.c ---- */

/* NULL: nobody was asked by that name. */
struct puppet *puppet_find(const struct rh_test *t, uint16_t kind, struct bytes id);
struct puppet *puppet_of(struct rh_test *t, uint16_t kind, struct bytes id);
void puppet_free(struct puppet *s);
/* Note that the actor lives no more. */
void puppet_gone(struct puppet *s);
void puppet_discard(struct puppet *s, enum rh_why why);
/* Do the next thing of it. False: there is none. */
bool puppet_go_on(struct rh_test *t, struct puppet *s);
/* Answer one that waited for too long. False: there is none. */
bool puppet_expire(struct rh_test *t, struct puppet *s);
/* Answer one of a kind that nobody hosts. False: there is none. */
bool puppet_unhosted(struct rh_test *t, struct puppet *s);

/* ---- said.c ---- */

void kit_on_completion(void *context, const struct completion *c);

/* ---- node.c ---- */

/* The first actor is to live: kinds are hosted no more. */
void kit_start(struct rh_test *t);
void kit_crash(struct rh_test *t);
void kit_drop_tasks(struct rh_test *t);
/* The clock shows another time. */
void kit_tell_time(struct rh_test *t);
/* Do one of the store's tasks. False: there is none. */
bool kit_store_one(struct rh_test *t);
/* Awake those whose alarms are due, if it is time to look. */
void kit_scan(struct rh_test *t);

/* ---- time.c ---- */

/* Do all that is to be done at this moment. */
void kit_settle(struct rh_test *t);
/* Let time pass until then, or until the test's call is answered. */
void kit_pass(struct rh_test *t, uint64_t until_us, bool until_answered);

#endif

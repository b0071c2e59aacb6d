/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of actors, without a fleet: link with `pkg-config --libs ringhold-test` in place of
 * libringhold. The actors' code runs on the runtime that runs it in a node, durable ones on the
 * SQLite store, in memory. Nothing runs by itself, and time passes only when it is told to, so each
 * run of a test is the same.
 *
 *     struct rh_test *t = rh_test_new();
 *     rh_test_host(t, 0, &ringhold_actor, NULL);
 *     assert(strcmp(rh_test_call(t, 0, "ann", "ADD sword 1"), "1") == 0);
 *     rh_test_crash(t);
 *     assert(strcmp(rh_test_call(t, 0, "ann", "GET sword"), "1") == 0);
 *     rh_test_free(t);
 *
 * Everything is called on one thread. Kinds and ids that make no sense, and a test that is NULL,
 * end the process with a line on stderr: a test that asks for them is wrong. What is given is
 * copied, unless it says otherwise.
 */
#ifndef RINGHOLD_TEST_H
#define RINGHOLD_TEST_H

#include <ringhold.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rh_test;

/* Make an empty world. Its clock shows 2026-01-01, 00:00 UTC. Free it by rh_test_free(). */
RH_API struct rh_test *rh_test_new(void);
/* End all actors by deactivate(RH_STOP), then all kinds, and free it; or do nothing with NULL. */
RH_API void rh_test_free(struct rh_test *test);

/* Host a kind, before the first actor lives. `ops` is borrowed until rh_test_free(); `argument` may
 * be NULL. RH_INVALID: the kind is there already, `ops` lacks what it needs, or its start said no;
 * a line on stderr says which. */
RH_API int rh_test_host(struct rh_test *test, uint16_t kind, const struct rh_actor_ops *ops,
                        const char *argument);

/* Send a payload to an actor as a client does, and let time pass until it is answered, up to 60 s.
 * Returns the answer as text: what it replied (an integer in decimal, nil as ""), its error, or
 * "UNKNOWN", "TIMEOUT", "NOKIND", each with a sentence. Borrowed until the next call with `test`.
 */
RH_API const char *rh_test_call(struct rh_test *test, uint16_t kind, const char *id,
                                const char *payload);
/* Return how that ended: RH_OK by a reply, RH_FAILED by an error of the actor, else RH_UNKNOWN,
 * RH_TIMEOUT or RH_NO_KIND. */
RH_API int rh_test_status(const struct rh_test *test);
/* Return the text that rh_test_call() or rh_test_pushed() has returned last with its size, as it
 * may have zeros. Borrowed likewise. */
RH_API struct rh_bytes rh_test_bytes(const struct rh_test *test);
/* Send a payload for which nobody waits, and do all that is to be done at once. */
RH_API void rh_test_send(struct rh_test *test, uint16_t kind, const char *id, const char *payload);
/* Let so many milliseconds pass: timers, alarms and time-outs come in their order. */
RH_API void rh_test_advance(struct rh_test *test, uint32_t ms);
/* Return the clock's milliseconds since 1970, as alarms count them. */
RH_API uint64_t rh_test_clock(const struct rh_test *test);
/* Have `moved` called with what rh_test_clock() shows, now and whenever that is another time,
 * before anything runs then: for actors that read a clock of their own. It must not use `test`. */
RH_API void rh_test_on_time(struct rh_test *test, void (*moved)(void *context, uint64_t clock_ms),
                            void *context);

/* Move an actor to another node: handoff, deactivate(RH_MOVED), and activate with its state. RH_OK;
 * RH_GONE: it does not live; RH_BUSY: it runs, or its handoff says so. It stays then. */
RH_API int rh_test_move(struct rh_test *test, uint16_t kind, const char *id);
/* Return 1 if the actor lives, else 0. */
RH_API int rh_test_lives(const struct rh_test *test, uint16_t kind, const char *id);

/* Kill the node and start another one: all memory of actors is lost, and what they have saved is
 * there. A message that ran is asked again of a durable actor; else it is answered UNKNOWN. What
 * waited runs at the new node. So that instances can be freed, their deactivate is called with
 * RH_FENCED, as by a node that has lost its lease. */
RH_API void rh_test_crash(struct rh_test *test);

/* What becomes of commits of durable actors. */
enum rh_test_commits {
    RH_TEST_COMMITS_GOOD = 0,    /* they are done */
    RH_TEST_COMMITS_REFUSED = 1, /* the store can't do them: STORE_UNAVAILABLE */
    RH_TEST_COMMITS_UNKNOWN = 2, /* not done, and the store can't say so: UNKNOWN */
    RH_TEST_COMMITS_BEFORE = 3,  /* the node is killed right before */
    RH_TEST_COMMITS_BEHIND = 4,  /* the node is killed right behind, before anybody hears of it */
};
/* Do so with the next `count` commits; those after them are good. */
RH_API void rh_test_commits(struct rh_test *test, enum rh_test_commits how, uint32_t count);

/* Bind a client to the actor, which gets RH_SESSION_BOUND. RH_OK, or RH_FAILED: it was refused. The
 * client of an actor that is killed is gone. */
RH_API int rh_test_bind(struct rh_test *test, uint16_t kind, const char *id);
/* The client closes its connection: RH_SESSION_LOST. */
RH_API void rh_test_leave(struct rh_test *test, uint16_t kind, const char *id);
/* Take the next push to the clients of that actor, as text; NULL: there is none. Borrowed until the
 * next call with `test`. */
RH_API const char *rh_test_pushed(struct rh_test *test, uint16_t kind, const char *id);

#ifdef __cplusplus
}
#endif

#endif

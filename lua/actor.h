/* SPDX-License-Identifier: Apache-2.0
 *
 * An actor whose strings a script pulls: the callbacks of ringhold.h for every
 * kind that a game declares.
 *
 * A callback begins a turn with one task, its main one. When that has to wait,
 * the callback is deferred; when it ends, so does the turn, with its result.
 * Tasks that it forked run beside it, and go on between turns when it is over.
 * Until then no other code of the actor runs: messages of one actor are one at
 * a time, also while a script sleeps.
 *
 *     message --> begin --> main task --> returns -----------------> reply
 *                               |  ^
 *                         waits |  | rh_after(), rh_call()
 *                               v  |
 *                             deferred ------- over its limit -----> error
 */
#ifndef LUA_ACTOR_H
#define LUA_ACTOR_H

#include "lua/task.h"
#include "lua/vm.h"

#include <ringhold.h>

enum turn_type {
    TURN_NONE,
    TURN_ACTIVATE,
    TURN_MESSAGE,
    TURN_FLUSH,
    TURN_HANDOFF,
    TURN_SESSION,
    TURN_ALARM,
    TURN_DEACTIVATE, /* can't wait */
};

struct lua_actor {
    struct rh_actor *actor;       /* borrowed */
    struct lua_vm *lua_vm;        /* borrowed */
    const struct game_kind *kind; /* borrowed */
    int self;                     /* its table, in the registry; LUA_NOREF = none yet */
    uint32_t task_count;
    struct list tasks;
    struct list clocks; /* of ringhold.timer() */

    enum turn_type type;
    uint64_t turn; /* number of the turn that goes on; 0 = none */
    uint64_t limit_ms;
    struct rh_token token; /* while deferred */
    bool deferred;
    bool over;   /* the turn has ended, and `result` waits to be told */
    bool packed; /* the message came from a script: so goes the answer */
    bool answered;
    struct rh_value answer; /* to the message, told when the turn settles; its bytes are in … */
    struct buffer answer_bytes;
    uint16_t from_kind; /* of the message; `from` is empty if a client sent it */
    struct buffer from;
    int result;         /* enum rh_result */
    struct rh_out *out; /* of a hand-over; borrowed */

    uint64_t after_ms; /* the earliest rh_after() that is set; 0 = none */
    uint64_t timer;    /* that wakes tasks between turns; 0 = none */
    uint64_t timer_ms; /* when */
};

/* ---- actor.c, message.c, upgrade.c, list.c: the callbacks of rh_actor_ops ---- */

int lua_actor_activate(struct rh_actor *actor, const struct rh_bytes *state, uint64_t fence,
                       void **instance);
void lua_actor_message(struct rh_actor *actor, void *instance, const struct rh_message *message);
int lua_actor_handoff(struct rh_actor *actor, void *instance, struct rh_out *out);
void lua_actor_resume(struct rh_actor *actor, void *instance);
void lua_actor_deactivate(struct rh_actor *actor, void *instance, enum rh_why why);
void lua_actor_timer(struct rh_actor *actor, void *instance, uint64_t timer, void *argument);
int lua_actor_flush(struct rh_actor *actor, void *instance, enum rh_why why, uint64_t fence);
int lua_actor_session(struct rh_actor *actor, void *instance, const struct rh_session *event);
int lua_actor_alarm(struct rh_actor *actor, void *instance, const struct rh_alarm *alarm);
int lua_actor_upgrade(struct rh_actor *actor, uint32_t version, const struct rh_bytes *state,
                      struct rh_out *out);
int lua_actor_list(void *shared, struct rh_ids *out);

/* Push a function of the kind's table, or nothing if there is none. May raise a Lua error. */
bool lua_actor_push_function(lua_State *L, const struct lua_actor *p, const char *name);
/* Push its table. */
void lua_actor_push_self(lua_State *L, const struct lua_actor *p);

/* End what it still runs, and forget what it has in Lua. */
void lua_actor_free(struct lua_actor *p);

/* ---- turn.c ---- */

void turn_begin(struct lua_actor *p, enum turn_type type);
/* End the running turn with `result`. */
void turn_end(struct lua_actor *p, int result);
/* End the running turn with an error: it is logged, and told to the caller that waits. `where` is a
 * method or callback. */
void turn_fail(struct lua_actor *p, const char *where, const char *error);

/* Run what can run, defer the turn if it goes on, set the alarm for what sleeps. The last thing
 * that every callback does; `p` may be gone after it. Returns the result of the callback:
 * RH_PENDING if it is deferred. */
int turn_settle(struct lua_actor *p);

/* The time of tasks that sleep may have come. */
void turn_wake(struct lua_actor *p);

/* Take an answer of rh_call() for the task with this number. */
void turn_on_answer(struct rh_actor *actor, void *instance, const struct rh_answer *answer,
                    void *argument);

/* "OVERLOADED …": why a call or a send was not made, as scripts are told. */
const char *turn_refusal(int result);

/* NULL = it is over. */
struct task *lua_actor_task(const struct lua_actor *p, uint64_t number);

/* Log one line about an error. */
void lua_actor_log(struct lua_actor *p, const char *where, const char *error);

/* ---- answer.c ---- */

/* Values of ringhold.BUSY and ringhold.COLD, which on_handoff may return: light userdata with these
 * addresses. */
extern const char lua_actor_busy[1];
extern const char lua_actor_cold[1];

/* The message is answered: by text of this type, copied. The first answer counts. */
void answer_text(struct lua_actor *p, enum rh_value_type type, const char *text, size_t size);

/* Answer the message by the `count` values at `first` on L's stack. False: they can't be told, and
 * `error` says why; then nothing was answered. */
bool answer_values(struct lua_actor *p, lua_State *L, int first, int count,
                   char error[LUA_VM_ERROR_SIZE]);

/* Append values as scripts tell them each other. False: as above. */
bool answer_pack(lua_State *L, int first, int count, struct buffer *out,
                 char error[LUA_VM_ERROR_SIZE]);

/* True if a payload was made by answer_pack(); moves it behind the mark. */
bool answer_is_packed(struct bytes *payload);

/* Push what answer_pack() packed; returns how many. Raises a Lua error. */
int answer_unpack(lua_State *L, struct bytes payload);

/* ---- clock.c: timers that call on_timer ---- */

/* Set one that has this name, instead of the one that had it. False: too many, or not now. */
bool clock_set(struct lua_actor *p, const char *name, uint32_t ms, uint32_t every_ms);
/* False: there is none of that name. */
bool clock_stop(struct lua_actor *p, const char *name);
/* A timer of the actor rang: copy its name, and forget the timer if it rings once. */
void clock_rang(struct lua_actor *p, void *argument, char name[TASK_NAME_SIZE]);
void clock_drop_all(struct lua_actor *p);

#endif

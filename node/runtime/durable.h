/* SPDX-License-Identifier: Apache-2.0
 *
 * A durable actor on the runtime: its named values, its commits, and what waits for them.
 *
 * What a durable actor says (struct completion) goes into one of three queues, or out at once:
 *
 *     a callback runs           -> `said`
 *     it is through, and        -> out, if it changed nothing and no commit is on its way
 *       changed values          -> `next`, its changes to `sealed`
 *       changed nothing         -> behind the last that waits
 *     a commit is acknowledged  -> `waiting` goes out; the next commit takes `sealed`, `next`
 *                                  becomes `waiting`
 *
 * So the answer of a request, its sends, calls and pushes leave in their order, and none before
 * what they tell of is durable. The host sees a task that takes a while, so the actor gets no
 * other. A commit of a callback that was deferred may be on its way while another callback of the
 * same task runs; what comes together meanwhile is one commit.
 *
 *     LOADING -claimed-> (activate) REST <-> a callback, perhaps with a commit on its way
 *     LOADING -refused-> gone          any commit that is refused -> broken: nothing of it is left
 */
#ifndef NODE_RUNTIME_DURABLE_H
#define NODE_RUNTIME_DURABLE_H

#include "node/durable/answers.h"
#include "node/durable/inbox.h"
#include "node/durable/operate.h"
#include "node/durable/outbox.h"
#include "node/durable/values.h"
#include "node/runtime/inside.h"
#include "storage/actors/store.h"

/* Alarms whose names begin so are the runtime's own. */
#define SENDS_ALARM "\0send"

struct durable {
    struct named_values values;
    struct answers answers;
    struct request_name name; /* of the request that runs; number 0 = its answer is not saved */
    bool begun;               /* a part of what runs is saved, or will be by `sealed` */
    struct durable_alarms *alarms; /* owned; NULL = it has had none */
    struct actor_outbox outbox;
    struct inbox inbox;
    struct timer again;        /* of the outbox: the next try */
    struct values_batch batch; /* of an operator */
    struct buffer taking;      /* of what runs, a send: kind, number, sender; not noted yet */
    struct buffer sealed;      /* changes of callbacks that are through, for the next commit */
    struct store_task *task;   /* at the store, which owns it; NULL = none is on its way */
    uint64_t number;           /* of the last commit that is known to be done */
    struct list said;          /* struct withheld, as those below */
    struct list waiting;       /* for `task` */
    struct list next;          /* for the commit after that */
    struct buffer state;       /* LOADING: what activate gets … */
    uint32_t state_version;
    bool has_state;
    bool loading;
    bool traced;    /* what it changes is of a message that is traced */
    bool runs;      /* a callback does, … */
    bool knows;     /* … or none: the request is answered from what was saved before */
    bool has_alarm; /* SENDS_ALARM is in the store */
    bool refuses;   /* what runs is a send that is not taken: nothing of it stays */
    bool ended;     /* a commit was refused: what is said now goes out at once */
    uint64_t told[DURABLE_FIGURES]; /* its part of the node's figures */
};

/* ---- durable.c */

/* Return what the request that ran is answered, and the answer's code, when its changes could not
 * be saved. Valid until the runtime makes another answer. */
struct bytes durable_failed_answer(struct rh_actor *a, enum store_result why,
                                   enum answer_code *code);

/* Have what changed while no callback ran saved, now or with the commit that comes next. */
void durable_save(struct rh_actor *a);
/* Bring its part of the node's figures up to date. */
void durable_count(struct rh_actor *a);
/* Milliseconds since 1970; 0 = nobody has told. */
uint64_t durable_wall_ms(const struct runtime *s);
static inline bool durable_is_inner_alarm(struct bytes name)
{
    return name.size > 0 && name.data[0] == 0;
}

/* ---- sends.c: as those of named values (node/durable/values.h) */

bool durable_sends_are_changed(const struct durable *d);
void durable_sends_seal(struct rh_actor *a, struct buffer *out);
void durable_sends_undo(struct durable *d);
/* Note that the send that runs is taken, if it has come to something: then it goes with that, and
 * if it has not, but goes on, it comes again as long as it has not. Return true if it is noted now.
 */
bool durable_sends_take(struct durable *d, bool changed);
bool durable_sends_load(struct rh_actor *a, struct bytes all);
void durable_sends_free(struct rh_actor *a);
/* ---- durable_alarms.c: as those of named values (node/durable/values.h) */

bool durable_alarms_are_changed(const struct durable *d);
void durable_alarms_seal(struct rh_actor *a, struct buffer *out);
void durable_alarms_undo(struct durable *d);
/* Take those among what the store gave. False: there are too many. */
bool durable_alarms_load(struct rh_actor *a, struct bytes all);
void durable_alarms_free(struct rh_actor *a);
/* Return how many are set. `due`: one of them is due, and has not ended. */
size_t durable_alarms_count(const struct durable *d, bool *due);
/* ---- durable_answers.c */

/* What the callback that is through said is in `said`: if it changed something, or told others, the
 * answer of its request goes into the commit, or that it has begun. */
void durable_note_answer(struct rh_actor *a, bool changed);
/* The request that runs is answered beside a callback: likewise. */
void durable_note_late_answer(struct rh_actor *a, const struct completion *c);

/* ---- withheld.c: what an actor said, kept until it may leave */

/* Append a copy. */
void withheld_put(struct list *to, const struct completion *c);
/* Say all of it, in order. */
void withheld_say(struct rh_actor *a, struct list *from);
/* Say only how the actor's task ended: a request that its changes could not be saved. The rest is
 * forgotten. */
void withheld_fail(struct rh_actor *a, struct list *from, enum store_result why);
/* What was answered before the actor failed was dropped: its answer says so now. */
void withheld_deny(struct rh_actor *a, struct list *in);
/* Forget the calls and pushes. */
void withheld_mute(const struct rh_actor *a, struct list *from);
/* Forget all of it. */
void withheld_drop(const struct rh_actor *a, struct list *from);
/* Return the first completion of that verb, borrowed; NULL = there is none. */
const struct completion *withheld_find(const struct list *in, enum verb verb);

#endif

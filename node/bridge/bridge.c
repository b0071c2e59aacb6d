/* SPDX-License-Identifier: Apache-2.0
 *
 * Binds actors of the host to activations of the runtime, on the way of what one submits and the
 * other completes.
 */
#include "node/bridge/bridge.h"

#include "base/assert.h"

bool bridge_submit(struct runtime *runtime, const struct rh_actor_ops *ops, void *shared,
                   const struct host_effect *e, struct submission *out)
{
    const enum verb verb = e->submission.verb;
    struct rh_actor *r = actor_instance(e->actor);

    ASSERT(e->type == HOST_SUBMIT);
    *out = e->submission;
    if (verb == VERB_ACTIVATE) {
        r = activation_new(runtime, actor_kind(e->actor), actor_id(e->actor), e->actor);
        actor_set_instance(e->actor, r);
        out->ops = ops;
        out->shared = shared;
    } else if (verb == VERB_DISCARD && r != NULL) {
        // What it has told and is on its way names an actor that is no more.
        actor_set_instance(e->actor, NULL);
        activation_set_owner(r, NULL);
    }
    out->activation = r;
    // The end and the move of one that has nothing to save are as brief as its beginning.
    out->brief = ops->brief != 0 &&
                 (verb == VERB_ACTIVATE || verb == VERB_RUN || verb == VERB_TURN || !ops->flush);
    return r != NULL;
}

bool bridge_complete(const struct completion *c, struct host_event *out)
{
    struct actor *actor = activation_owner(c->actor);

    if (actor == NULL || c->verb == VERB_SPENT) {
        return false;
    }
    if (completion_ends(c)) {
        actor_set_instance(actor, NULL);
    }
    *out = (struct host_event){.type = HOST_COMPLETED, .actor = actor, .completion = *c};
    return true;
}

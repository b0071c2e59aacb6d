/* SPDX-License-Identifier: Apache-2.0
 *
 * What a node's runtime completes, on its way to the host. Calls of its actors are the node's own;
 * their session is an incarnation's number, as that of the node's other actors.
 */
#include "sim/worker.h"

#include "base/mem.h"
#include "node/runtime/late_answers.h"

uint64_t sim_worker_clock(const struct sim_worker *w)
{
    return sim_clock_read(&w->node->process.clock, w->fleet->world.now_us);
}

static struct sim_life **life_of(struct sim_worker *w, const struct rh_actor *r)
{
    struct sim_life **at = &w->life;

    while ((*at)->activation != r) {
        at = &(*at)->next;
    }
    return at;
}

static void life_begin(struct sim_worker *w, struct rh_actor *r)
{
    struct sim_life *l = mem_new(1, sizeof *l);

    *l = (struct sim_life){.next = w->life, .id = ++w->fleet->instance_count, .activation = r};
    w->life = l;
}

/* Nothing of it is left; what it completed and is on its way is dropped. */
static void life_end(struct sim_worker *w, struct rh_actor *r)
{
    struct sim_life **at = life_of(w, r);
    struct sim_life *l = *at;

    for (struct sim_completed *t = w->first; t != NULL; t = t->next) {
        t->completion.actor = t->completion.actor == r ? NULL : t->completion.actor;
    }
    *at = l->next;
    activation_free(r);
    mem_free(l);
}

static void hand_out(struct sim_worker *w, const struct call_answer *answer)
{
    runtime_set_now(w->runtime, sim_worker_clock(w));
    runtime_answer(w->runtime, answer);
}

static void hand_out_late(struct sim_worker *w)
{
    struct buffer late = w->late_answers;
    struct bytes left = buffer_bytes(&late);
    struct call_answer answer;

    w->late_answers = (struct buffer){0};
    while (late_answers_next(&left, &answer)) {
        hand_out(w, &answer);
    }
    buffer_fini(&late);
}

void sim_worker_answer(struct sim_worker *w, const struct call_answer *answer)
{
    if (w->rests) {
        sim_worker_tick(w); // what was due meanwhile comes first
    }
    if (node_is_past_the_end(w->fleet, w->node)) {
        w->rests = true;
        late_answers_put(&w->late_answers, answer);
    } else {
        hand_out(w, answer);
    }
}

void sim_worker_tick(struct sim_worker *w)
{
    w->rests = node_is_past_the_end(w->fleet, w->node);
    if (!w->rests) {
        hand_out_late(w);
        runtime_tick(w->runtime, sim_worker_clock(w));
    }
}

void sim_worker_perform(struct sim_worker *w, const struct submission *what, struct bytes bytes)
{
    if (w->rests && what->verb != VERB_DISCARD) {
        sim_worker_tick(w); // as worker_begins_in_time(): what was due meanwhile comes first
    }
    if (what->verb == VERB_ACTIVATE) {
        life_begin(w, what->activation);
    }
    runtime_perform(w->runtime, what, bytes);
    if (what->verb == VERB_DISCARD) {
        life_end(w, what->activation);
    }
}

/* ---- what the runtime completes ---- */

static void tell_host(struct sim_worker *w, const struct sim_completed *t)
{
    const struct completion *c = &t->completion;
    const struct calls *calls = w->node->calls;
    struct host_event event;

    if (c->actor == NULL || !bridge_complete(c, &event)) {
        return; // it was discarded meanwhile
    }
    if (c->verb == VERB_EXPORT || c->verb == VERB_COPY) {
        event.completion.number = calls == NULL ? 0 : calls_under_way(calls, t->life);
    }
    if (completion_ends(c)) {
        life_end(w, c->actor);
    }
    node_step(w->fleet, w->node, event);
}

static void tell_calls(const struct sim_worker *w, const struct sim_completed *t)
{
    struct call call = *t->completion.call;

    call.session = t->life;
    node_calls_ask(w->fleet, w->node, &call);
}

static void on_arrived(void *context, const struct world_event *event)
{
    const struct sim_node *n = context;

    if (!n->process.up || n->process.life != event->b) {
        return;
    }
    struct sim_worker *w = *(void **)event->data;
    struct sim_completed *t = w->first;
    w->first = t->next;
    w->last = w->first == NULL ? NULL : w->last;
    if (w->arrived != NULL && w->arrived(w, t)) {
        mem_free(t);
        return;
    }
    switch ((int)t->completion.verb) {
    case VERB_CALL:
        tell_calls(w, t);
        break;
    case VERB_END_CALLS:
        node_calls_close(w->fleet, w->node, t->life);
        break;
    default:
        tell_host(w, t);
        break;
    }
    mem_free(t);
}

struct sim_completed *sim_completed_new(const struct completion *c, uint64_t life)
{
    struct sim_completed *t = mem_new(1, sizeof *t + completion_size(c));

    *t = (struct sim_completed){.life = life};
    completion_copy(c, &t->completion, (uint8_t *)t->data);
    return t;
}

void sim_worker_tell(struct sim_worker *w, const struct completion *c)
{
    const uint64_t at_us = w->fleet->world.now_us + w->takes_us;
    void *worker = w;

    if (w->closing || c->verb == VERB_DISCARD) {
        return;
    }
    struct sim_completed *t = sim_completed_new(c, (*life_of(w, c->actor))->id);
    if (w->last == NULL) {
        w->first = t;
    } else {
        w->last->next = t;
    }
    w->last = t;
    w->told_us = at_us > w->told_us ? at_us : w->told_us;
    world_at(&w->fleet->world,
             w->told_us,
             (struct world_event){.run = on_arrived,
                                  .context = w->node,
                                  .a = (uint64_t)(w->node - w->fleet->node),
                                  .b = w->node->process.life,
                                  .data = mem_copy(&worker, sizeof worker),
                                  .gate = &w->node->process.gate});
}

/* ---- its life ---- */

void sim_worker_open(struct sim_worker *w, struct fleet *f, struct sim_node *n,
                     const struct runtime_config *config)
{
    w->fleet = f;
    w->node = n;
    w->runtime = runtime_new(config);
}

void sim_completed_free_all(struct sim_completed **first)
{
    while (*first != NULL) {
        struct sim_completed *t = *first;

        *first = t->next;
        mem_free(t);
    }
}

void sim_worker_close(struct sim_worker *w)
{
    w->closing = true;
    runtime_close(w->runtime, RH_STOP);
    sim_completed_free_all(&w->first);
    buffer_fini(&w->late_answers);
    while (w->life != NULL) {
        struct sim_life *next = w->life->next;

        mem_free(w->life);
        w->life = next;
    }
}

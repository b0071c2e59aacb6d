/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests that a node serves at once: host_serve(), as the shipped shell calls it.
 *
 * In a quarter of the seeds the actors in memory are of a brief kind. What is steady then runs
 * where it is admitted, three times of four; else its actor takes its time, or it goes by an
 * effect, as if the actor's worker had something else to do. What actors ask is served likewise, of
 * other nodes and of their own. A node may die between the run and the answer.
 */
#include "base/table.h"
#include "sim/fleet.h"
#include "wire/cursor.h"

/* One call of host_serve(). */
struct sim_serving {
    struct fleet *fleet;
    struct sim_node *node;
    uint64_t peer;
    uint8_t answer[12];
    bool dies;
};

bool serve_drawn(uint64_t seed)
{
    enum { ONE_OF = 4 };

    return table_mix(seed ^ 0x6272696566u) % ONE_OF == 0;
}

static void run_at_once(struct sim_serving *v, struct instance *i, uint64_t uid,
                        struct at_once *run)
{
    struct fleet *f = v->fleet;
    struct writer w = {.at = v->answer, .left = sizeof v->answer};

    check_run_begin(f, i, uid);
    if (!lives_did(f, i, uid) && f->world.checker == NULL) {
        check_run_end(f, i, uid);
    }
    TRACE(&f->world,
          v->node->process.name,
          "%s runs request %llu at once",
          i->entity->id,
          (unsigned long long)uid);
    lives_after_run(f, i);
    put_u64(&w, uid);
    put_u32(&w, (uint32_t)i->list.count);
    run->code = uid % 50 == 0 ? ANSWER_APP_ERROR : ANSWER_OK; // as those that take their time
    run->answer = bytes_of(v->answer, sizeof v->answer);
}

/* As its submission has it, whose chain goes before its body. */
static void run_later(struct fleet *f, struct instance *i, const struct runtime_message *m)
{
    const struct host_effect e = {
        .type = HOST_SUBMIT,
        .actor = i->actor,
        .submission = {.verb = VERB_RUN,
                       .flags = m->flags,
                       .head_size = (uint32_t)(m->chain_count * sizeof *m->chain),
                       .ticket = m->ticket}};
    struct buffer all = {0};

    buffer_put(&all, m->chain, e.submission.head_size);
    buffer_put(&all, m->body.data, m->body.size);
    actors_run(f, &e, buffer_bytes(&all));
    buffer_fini(&all);
}

static enum host_ran run_one(void *context, const struct actor *a, struct at_once *run)
{
    enum { TENTHS = 10, BUSY = 1, LATER = 3 };
    struct sim_serving *v = context;
    struct fleet *f = v->fleet;
    struct instance *i = actor_instance(a);
    const struct submission named = {.flags = run->message.flags};
    const struct bytes asked = node_called(f, &named, run->message.body);
    struct reader in = {.at = asked.data, .left = asked.size};
    const uint64_t uid = get_u64(&in);
    const uint64_t how = prng_between(&f->serving, 0, TENTHS - 1);

    if (how < BUSY || f->world.checker != NULL) {
        return HOST_RAN_NOT;
    }
    check_in_time(f, v->node, uid);
    check_begins(f, v->node);
    if (how < LATER) {
        run_later(f, i, &run->message);
        return HOST_RAN_LATER;
    }
    run_at_once(v, i, uid, run);
    return HOST_RAN_NOW;
}

static bool answer(void *context, const struct answer_record *answer)
{
    enum { THOUSAND = 1000 };
    struct sim_serving *v = context;
    struct fleet *f = v->fleet;
    struct net_end *end = network_end(&f->network, v->peer);
    struct buffer record = {0};

    v->dies = prng_between(&f->serving, 1, THOUSAND) <= f->faults.node_torn_pm;
    if (v->dies) {
        return false;
    }
    if (v->peer == CALLS_LINK) {
        (void)node_calls_answer(f, v->node, v->peer, answer);
        return true;
    }
    answer_put(&record, answer);
    check_output(f, v->node);
    check_frame(f, v->node, FRAME_ANSWER, buffer_bytes(&record));
    if (end != NULL) {
        network_send(&f->network, end, FRAME_ANSWER, buffer_bytes(&record));
    }
    buffer_fini(&record);
    return true;
}

static uint64_t time_by_now(void *context)
{
    const struct sim_serving *v = context;

    return sim_clock_read(&v->node->process.clock, v->fleet->world.now_us);
}

void serve_frame(struct fleet *f, struct sim_node *n, uint64_t peer, const struct frame *frame)
{
    struct sim_serving v = {.fleet = f, .node = n, .peer = peer};
    const struct host_server server = {.context = &v, .run = run_one, .now_us = time_by_now};
    struct host_event event = {.type = HOST_FRAME, .peer = peer, .frame = frame};

    event.server = serve_drawn(f->world.seed) ? &server : NULL;
    node_step(f, n, event);
}

bool serve_request(struct fleet *f, struct sim_node *n, uint64_t peer, uint64_t made_us,
                   const struct request_record *r)
{
    struct sim_serving v = {.fleet = f, .node = n, .peer = peer};
    const struct host_server server = {&v, run_one, answer, &n->out, NULL, NULL};
    struct host_event event = {.type = HOST_REQUEST, .peer = peer, .made_us = made_us};
    uint64_t position = 0;

    if (!serve_drawn(f->world.seed) || n->core == NULL) {
        return false;
    }
    host_prefetch(n->core, r, 1, &position);
    node_begin_step(f, n, &event);
    const size_t served = host_serve(n->core, &event, r, &position, 1, &server);
    node_end_step(f, n, served > 0);
    if (v.dies && n->core != NULL && f->world.checker == NULL) {
        node_crash(f, n);
    }
    return served > 0;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a leader with a thousand nodes and counts its work.
 */
#include "sim/scale.h"

#include "base/assert.h"
#include "base/mem.h"
#include "link/link.h"
#include "ring/plan.h"
#include "route/router.h"
#include "sim/world.h"
#include "sim/zipf.h"
#include "txn/leader/coordinator.h"
#include "wire/control.h"
#include "wire/frame.h"

#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum {
    SECOND_US = 1000 * 1000,
    MESSAGE_US = 100,
    LOG_US = 500,
    VOTE_US = 1000,
    TICK_US = 20 * 1000,
    RENEW_US = SECOND_US,
    COSTS_US = 5 * SECOND_US,
    RATE = 1000,             /* requests a second for each node, on the average */
    WARM_US = 2 * SECOND_US, /* until all nodes renewed and all gateways know the ring */
    LEASE_MS = 3000,
    VNODES = 64,
    TIME_MAX_S = 600,
    GATEWAY_LINKS = 1 << 20, /* the gateways' link ids at the leader begin here */
};

/* What a node has to say. */
struct scale_node {
    uint64_t incarnation; /* 0 = not registered yet */
    uint64_t costs_us;    /* it told then what its vnodes cost */
    char name[16];
};

struct scale {
    struct scale_options options;
    struct scale_result *result;
    struct world world;
    struct state state;
    struct coordinator *leader;
    struct coordinator_effects out;
    uint64_t last_at; /* of the effect that was read last: a broadcast has one text for all */
    Rh__Control *last;
    struct scale_node *node; /* owned; by link - 1 */
    unsigned nodes;          /* that are linked */
    struct router **gateway; /* owned */
    struct router_effects effects;
    struct zipf zipf;
};

static double cpu_now(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void count(struct scale_flow *flow, size_t size)
{
    flow->messages++;
    flow->bytes += size + FRAME_HEADER_SIZE;
}

static void later(struct scale *s, uint64_t delay_us, world_run run, uint64_t a, uint64_t b)
{
    world_at(&s->world,
             s->world.now_us + delay_us,
             (struct world_event){.run = run, .context = s, .a = a, .b = b});
}

/* ---- the leader ---- */

static void on_entry(void *context, const struct world_event *event);
static void on_vote(void *context, const struct world_event *event);
static void on_told(void *context, const struct world_event *event);

static void note_change(struct scale *s, size_t size)
{
    const Rh__Delta *delta = s->last->commit->delta;

    count(&s->result->changes_to_gateways, size);
    if (delta->n_ops == 1 && delta->ops[0]->kind == RING_MOVE) {
        count(&s->result->moves_to_gateways, size);
    }
}

/* The bytes go with the event. */
static void mail(struct scale *s, uint64_t delay_us, world_run run, const struct world_event *with,
                 struct bytes bytes)
{
    struct world_event event = *with;

    event.run = run;
    event.context = s;
    event.c = bytes.size;
    event.data = mem_copy(bytes.data, bytes.size);
    world_at(&s->world, s->world.now_us + delay_us, event);
}

static void on_send(struct scale *s, const struct coordinator_effect *e, struct bytes bytes)
{
    if (s->last == NULL || s->last_at != e->at) {
        control_free(s->last);
        s->last = control_get(bytes);
        s->last_at = e->at;
        ASSERT(s->last != NULL);
    }
    if (e->peer >= GATEWAY_LINKS) {
        count(&s->result->to_gateways, e->size);
        if (s->last->body_case == RH__CONTROL__BODY_COMMIT) {
            note_change(s, e->size);
        }
        mail(s, MESSAGE_US, on_told, &(struct world_event){.a = e->peer - GATEWAY_LINKS}, bytes);
        return;
    }
    count(&s->result->to_nodes, e->size);
    if (s->last->body_case == RH__CONTROL__BODY_REG_OK) {
        s->node[e->peer - 1].incarnation = s->last->reg_ok->incarnation;
    } else if (s->last->body_case == RH__CONTROL__BODY_PREPARE) {
        later(s, MESSAGE_US + VOTE_US, on_vote, e->peer, s->last->prepare->txn);
    }
}

static void step(struct scale *s, struct coordinator_event event)
{
    const double begin = cpu_now();

    event.now_us = event.wall_us = s->world.now_us;
    coordinator_effects_clear(&s->out);
    coordinator_step(s->leader, &event, &s->out);
    s->result->leader_cpu_s += cpu_now() - begin;
    control_free(s->last);
    s->last = NULL;
    for (size_t i = 0; i < s->out.count; i++) {
        const struct coordinator_effect *e = &s->out.item[i];
        const struct bytes bytes = {s->out.bytes.data + e->at, e->size};

        if (e->type == COORDINATOR_SEND) {
            on_send(s, e, bytes);
            continue;
        }
        if (e->type == COORDINATOR_PROPOSE) {
            s->result->entries.messages++;
            s->result->entries.bytes += e->size;
        }
        mail(s,
             LOG_US,
             on_entry,
             &(struct world_event){.a = e->tag, .b = e->type == COORDINATOR_PROPOSE},
             bytes);
    }
}

static void apply(struct scale *s, uint64_t tag, const Rh__Command *command)
{
    struct state_result result;
    const double begin = cpu_now();

    state_apply(&s->state, command, &result);
    s->result->leader_cpu_s += cpu_now() - begin;
    s->result->apply_us += (cpu_now() - begin) * 1e6;
    if (result.delta != NULL) {
        s->result->changes++;
        for (size_t i = 0; i < result.delta->n_ops; i++) {
            s->result->moves += result.delta->ops[i]->kind == RING_MOVE;
            if (s->options.zipf != 0 && result.delta->ops[i]->kind == RING_MOVE) {
                zipf_moved(&s->zipf, result.delta->ops[i]);
            }
        }
    }
    step(s,
         (struct coordinator_event){
             .type = COORDINATOR_APPLIED, .tag = tag, .command = command, .result = &result});
    state_result_fini(&result);
}

/* An entry, or a barrier, came out of the log. */
static void on_entry(void *context, const struct world_event *event)
{
    struct scale *s = context;

    if (event->b != 0) {
        Rh__Command *command = command_get(bytes_of(event->data, event->c));

        ASSERT(command != NULL);
        apply(s, event->a, command);
        command_free(command);
    }
    step(s, (struct coordinator_event){.type = COORDINATOR_DONE, .tag = event->a});
}

static void on_tick(void *context, const struct world_event *event)
{
    struct scale *s = context;

    (void)event;
    later(s, TICK_US, on_tick, 0, 0);
    step(s, (struct coordinator_event){.type = COORDINATOR_TICK});
}

static void hear(struct scale *s, uint64_t link, const Rh__Control *message)
{
    struct buffer bytes = {0};

    control_put(&bytes, message);
    count(&s->result->to_leader, bytes.size);
    buffer_fini(&bytes);
    step(s,
         (struct coordinator_event){.type = COORDINATOR_MESSAGE, .peer = link, .message = message});
}

/* ---- nodes ---- */

static void say(struct scale *s, uint64_t link, Rh__Control *message)
{
    message->source_incarnation = s->node[link - 1].incarnation;
    message->version = s->state.view.ring.version;
    message->era = s->state.view.era;
    hear(s, link, message);
}

static void on_vote(void *context, const struct world_event *event)
{
    Rh__Control message = RH__CONTROL__INIT;
    Rh__Prepared prepared = RH__PREPARED__INIT;

    prepared.txn = event->b;
    message.body_case = RH__CONTROL__BODY_PREPARED;
    message.prepared = &prepared;
    say(context, event->a, &message);
}

/* What it is asked, if it is time to tell that; or NULL. */
static Rh__Costs *costs(struct scale *s, struct scale_node *n)
{
    const uint64_t period_us = s->world.now_us - n->costs_us;
    const struct state_node *node = state_node_named(&s->state, n->name);

    if (node == NULL || period_us < COSTS_US) {
        return NULL;
    }
    n->costs_us = s->world.now_us;
    return zipf_costs(&s->zipf, &s->state.view.ring, node->slot, period_us);
}

static void on_renew(void *context, const struct world_event *event)
{
    struct scale *s = context;
    Rh__Control message = RH__CONTROL__INIT;
    Rh__Renew renew = RH__RENEW__INIT;

    later(s, RENEW_US, on_renew, event->a, 0);
    renew.seq = s->world.now_us;
    renew.version = s->state.view.ring.version;
    renew.digest0 = s->state.view.ring.digest[0];
    renew.digest1 = s->state.view.ring.digest[1];
    renew.actors = renew.executed = 100000;
    message.body_case = RH__CONTROL__BODY_RENEW;
    message.renew = &renew;
    if (s->options.zipf != 0) {
        renew.costs = costs(s, &s->node[event->a - 1]);
    }
    if (s->node[event->a - 1].incarnation != 0) {
        say(s, event->a, &message);
    }
    proto_free(renew.costs == NULL ? NULL : &renew.costs->base);
}

static void link_node(struct scale *s, uint64_t link)
{
    struct scale_node *n = &s->node[link - 1];

    (void)snprintf(n->name, sizeof n->name, "node-%04u", (unsigned)link);
    step(s,
         (struct coordinator_event){.type = COORDINATOR_PEER_UP,
                                    .peer = link,
                                    .role = ROLE_NODE,
                                    .name = n->name,
                                    .incarnation = n->incarnation});
    later(s, link * RENEW_US / (s->options.nodes + s->options.joiners), on_renew, link, 0);
}

static void on_join(void *context, const struct world_event *event)
{
    struct scale *s = context;
    uint8_t uuid[STATE_UUID_SIZE] = {0};
    Rh__Control message = RH__CONTROL__INIT;
    Rh__Register in = RH__REGISTER__INIT;

    link_node(s, event->a);
    in.name = s->node[event->a - 1].name;
    in.address = proto_text("10.0.100.100:7500");
    in.boot_id = in.data_uuid = proto_bytes(bytes_of(uuid, sizeof uuid));
    in.nonce = event->a;
    in.weight = 1;
    message.body_case = RH__CONTROL__BODY_REGISTER_;
    message.register_ = &in;
    say(s, event->a, &message);
}

/* ---- gateways ---- */

static void gateway_step(struct scale *s, unsigned number, struct router_event event)
{
    const double begin = cpu_now();

    event.now_us = s->world.now_us;
    router_effects_clear(&s->effects);
    router_step(s->gateway[number], &event, &s->effects);
    s->result->gateway_cpu_s += (cpu_now() - begin) / s->options.gateways;
    // What it does is done after what it was told: its effects may be of several steps.
    for (size_t i = 0; i < s->effects.count; i++) {
        const struct router_effect *e = &s->effects.item[i];

        if (e->type == ROUTER_TELL_NODE) {
            count(&s->result->gateway_to_nodes, e->size);
        } else if (e->type == ROUTER_SEND_COORDINATOR) {
            Rh__Control *message = control_get(bytes_of(s->effects.bytes.data + e->at, e->size));

            ASSERT(message != NULL);
            hear(s, GATEWAY_LINKS + number, message);
            control_free(message);
        }
    }
}

/* Links to all nodes of its ring are up. */
static void link_gateway(struct scale *s, unsigned number)
{
    for (unsigned i = 0; i < s->nodes; i++) {
        gateway_step(s,
                     number,
                     (struct router_event){.type = ROUTER_NODE_UP,
                                           .slot = (uint16_t)(i + 1),
                                           .name = s->node[i].name,
                                           .incarnation = s->node[i].incarnation});
    }
}

static void on_told(void *context, const struct world_event *event)
{
    struct scale *s = context;
    const double begin = cpu_now();
    Rh__Control *message = control_get(bytes_of(event->data, event->c));

    ASSERT(message != NULL);
    s->result->gateway_cpu_s += (cpu_now() - begin) / s->options.gateways;
    gateway_step(
        s,
        (unsigned)event->a,
        (struct router_event){.type = ROUTER_CONTROL, .coordinator = 0, .message = message});
    control_free(message);
}

static void on_gateway_tick(void *context, const struct world_event *event)
{
    struct scale *s = context;

    later(s, TICK_US, on_gateway_tick, event->a, 0);
    gateway_step(s, (unsigned)event->a, (struct router_event){.type = ROUTER_TICK});
}

static void start_gateways(struct scale *s)
{
    s->gateway = mem_new(s->options.gateways, sizeof(struct router *));
    for (unsigned i = 0; i < s->options.gateways; i++) {
        struct router_config config = router_config_default();
        char name[24];

        config.gateway = i + 1;
        (void)snprintf(name, sizeof name, "gateway-%u", i);
        s->gateway[i] = router_new(&config);
        step(s,
             (struct coordinator_event){.type = COORDINATOR_PEER_UP,
                                        .peer = GATEWAY_LINKS + i,
                                        .role = ROLE_GATEWAY,
                                        .name = name,
                                        .incarnation = i + 1});
        gateway_step(s, i, (struct router_event){.type = ROUTER_COORDINATOR_UP});
        later(s, (uint64_t)i * TICK_US / s->options.gateways, on_gateway_tick, i, 0);
    }
}

/* ---- a fleet that has its shares ---- */

static void found(struct scale *s)
{
    Rh__Command command = RH__COMMAND__INIT;
    Rh__CommandInit init = RH__COMMAND_INIT__INIT;
    struct state_result result;

    init.cluster = proto_text("scale");
    init.fleet_low = init.key0 = init.key1 = 1;
    init.grid = s->options.grid;
    init.vnodes_per_weight = VNODES;
    init.era = 1;
    init.lease_us = (uint64_t)LEASE_MS * 1000;
    command.body_case = RH__COMMAND__BODY_INIT;
    command.init = &init;
    state_apply(&s->state, &command, &result);
    ASSERT(result.accepted);
    state_result_fini(&result);
}

static void enrol(struct scale *s, unsigned index)
{
    Rh__Command command = RH__COMMAND__INIT;
    Rh__CommandRegister in = RH__COMMAND_REGISTER__INIT;
    uint8_t uuid[STATE_UUID_SIZE] = {0};
    struct state_result result;
    char name[16];

    (void)snprintf(name, sizeof name, "node-%04u", index + 1);
    in.name = name;
    in.address = proto_text("10.0.100.100:7500");
    in.boot_id = in.data_uuid = proto_bytes(bytes_of(uuid, sizeof uuid));
    in.nonce = index + 1;
    in.weight = 1;
    command.body_case = RH__COMMAND__BODY_REGISTER_;
    command.register_ = &in;
    state_apply(&s->state, &command, &result);
    ASSERT(result.accepted);
    s->node[index].incarnation = result.stamp;
    state_result_fini(&result);
}

/* As the planner wants it, at once: in a long life it came so by many transactions. */
static void share(struct scale *s)
{
    const struct plan_limits limits = {
        .vnodes_per_weight = VNODES, .moves_per_txn = 8, .wave_cap = 4, .owned_only = true};
    struct plan_node *nodes = mem_new(s->options.nodes, sizeof *nodes);
    struct ring *ring = &s->state.view.ring;
    struct plan plan;

    for (unsigned i = 0; i < s->options.nodes; i++) {
        nodes[i] = (struct plan_node){
            .slot = (uint16_t)(i + 1), .weight = 1, .incarnation = s->node[i].incarnation};
    }
    ASSERT(plan_make(&plan,
                     plan_by_weight,
                     &(struct plan_view){ring, nodes, s->options.nodes},
                     NULL,
                     NULL,
                     &limits) == ERR_OK);
    for (size_t i = 0; i < plan.txn_count; i++) {
        ring_apply(ring, plan.txn[i].ops, plan.txn[i].op_count, ++s->state.number, 1);
    }
    plan_fini(&plan);
    mem_free(nodes);
}

static void begin(struct scale *s)
{
    struct coordinator_config config = coordinator_config_default();
    unsigned i;

    state_init(&s->state);
    found(s);
    s->node = mem_new(s->options.nodes + s->options.joiners, sizeof *s->node);
    for (i = 0; i < s->options.nodes; i++) {
        enrol(s, i);
    }
    share(s);
    config.id = 1;
    config.grid = s->options.grid;
    coordinator_config_lease(&config, LEASE_MS);
    config.balance_by = s->options.zipf != 0 ? BALANCE_BY_LOAD : BALANCE_BY_HASH;
    if (s->options.zipf != 0) {
        zipf_init(&s->zipf,
                  &s->state.view.ring,
                  s->options.zipf / 100.0,
                  (double)RATE * s->options.nodes);
        for (i = 0; i < s->options.nodes; i++) {
            s->node[i].costs_us = s->world.now_us;
        }
    }
    s->leader = coordinator_new(&config, &s->state);
    step(s, (struct coordinator_event){.type = COORDINATOR_LEAD, .term = 1});
    for (i = 0; i < s->options.nodes; i++) {
        link_node(s, i + 1);
    }
    s->nodes = s->options.nodes;
    start_gateways(s);
    later(s, 0, on_tick, 0, 0);
    world_run_until(&s->world, s->world.now_us + WARM_US);
    for (i = 0; i < s->options.gateways; i++) {
        link_gateway(s, i);
    }
}

double scale_allocated(void)
{
    const struct mallinfo2 info = mallinfo2();

    return (double)info.uordblks + (double)info.hblkhd;
}

static void end(struct scale *s)
{
    double before = scale_allocated();

    for (unsigned i = 0; i < s->options.gateways; i++) {
        router_free(s->gateway[i]);
    }
    s->result->gateway_bytes = (before - scale_allocated()) / s->options.gateways;
    control_free(s->last);
    mem_free(s->gateway);
    mem_free(s->node);
    zipf_fini(&s->zipf);
    router_effects_fini(&s->effects);
    coordinator_effects_fini(&s->out);
    before = scale_allocated();
    coordinator_free(s->leader);
    state_fini(&s->state);
    s->result->leader_bytes = before - scale_allocated();
    world_fini(&s->world);
}

/* ---- what happens ---- */

static void drain(struct scale *s, unsigned slot)
{
    Rh__Command command = RH__COMMAND__INIT;
    Rh__CommandDesire body = RH__COMMAND_DESIRE__INIT;

    body.name = s->node[slot - 1].name;
    body.leaving = DESIRE_DRAIN;
    command.body_case = RH__COMMAND__BODY_DESIRE;
    command.desire = &body;
    apply(s, 0, &command);
}

/* Everyone who is to have a share has vnodes, who leaves has none, and nothing is under way. */
static bool is_settled(const struct scale *s)
{
    const struct ring *ring = &s->state.view.ring;

    if (s->state.node_count < s->options.nodes + s->options.joiners ||
        state_pending_count(&s->state) > 0 || coordinator_plans_made(s->leader) == 0) {
        return false;
    }
    for (size_t i = 0; i < s->state.node_count; i++) {
        const struct state_node *n = &s->state.node[i];

        if ((ring_owned_count(ring, n->slot) == 0) != n->leaving) {
            return false;
        }
    }
    for (unsigned i = 0; i < s->options.gateways; i++) {
        if (router_view(s->gateway[i])->ring.version != ring->version) {
            return false;
        }
    }
    return true;
}

/* The last change was so long ago that no other plan came. */
static bool run_until_settled(struct scale *s, uint64_t begun_us)
{
    const uint64_t end_us = begun_us + (uint64_t)TIME_MAX_S * SECOND_US;
    uint64_t version = 0;
    uint64_t since_us = 0;

    while (s->world.now_us < end_us) {
        world_run_until(&s->world, s->world.now_us + TICK_US);
        if (version != s->state.view.ring.version) {
            version = s->state.view.ring.version;
            since_us = s->world.now_us;
        }
        if (s->world.now_us - since_us >= SECOND_US && is_settled(s)) {
            s->result->virtual_us = since_us - begun_us;
            return true;
        }
    }
    return false;
}

/* Idle but for what ids are asked. */
static void run_zipf(struct scale *s)
{
    struct scale_result *r = s->result;

    r->begin_permille = zipf_permille(&s->zipf, &s->state.view.ring, s->options.nodes);
    for (uint64_t second = 1; second * SECOND_US <= s->options.idle_us; second++) {
        world_run_until(&s->world, s->world.now_us + SECOND_US);
        const uint64_t now = zipf_permille(&s->zipf, &s->state.view.ring, s->options.nodes);

        if (second == 60) {
            r->minute_permille = now;
            r->minute_moves = s->zipf.moves;
        }
        r->most_permille = second >= 60 && now > r->most_permille ? now : r->most_permille;
    }
    r->moves_back = s->zipf.back;
}

bool scale_run(const struct scale_options *options, struct scale_result *result)
{
    struct scale *s = mem_new(1, sizeof *s);
    bool settled = true;
    uint64_t begun_us;

    ASSERT(options->nodes >= 2 && options->gateways >= 1);
    s->options = *options;
    s->result = result;
    world_init(&s->world, 1);
    s->world.now_us = SECOND_US;
    begin(s);
    *result = (struct scale_result){0};
    begun_us = s->world.now_us;
    for (unsigned i = 0; i < options->joiners; i++) {
        later(s, (uint64_t)i * SECOND_US / options->joiners, on_join, options->nodes + i + 1, 0);
    }
    for (unsigned i = 0; i < options->leavers; i++) {
        drain(s, i + 1);
    }
    if (options->joiners + options->leavers > 0) {
        settled = run_until_settled(s, begun_us);
    } else {
        if (options->zipf != 0) {
            run_zipf(s);
        }
        world_run_until(&s->world, begun_us + options->idle_us);
        result->virtual_us = options->idle_us;
    }
    result->plans = coordinator_plans_made(s->leader);
    result->apply_us =
        result->entries.messages == 0 ? 0 : result->apply_us / (double)result->entries.messages;
    end(s);
    mem_free(s);
    return settled;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The calls of a node's actors: node/calls/calls.h in a simulated shell. What the
 * actors of one node ask goes by its own links, or straight into its host.
 */
#include "node/calls/calls.h"
#include "base/assert.h"
#include "sim/bank/bank.h"
#include "sim/fleet.h"

#include <string.h>

/* Beside the links that the host dials: the two may cross. */
enum { CALLS_KEY = RING_NODES_MAX + 1 };

static uint64_t now_of(const struct fleet *f, struct sim_node *n)
{
    n->process.step_us = f->world.now_us;
    return sim_clock_read(&n->process.clock, f->world.now_us);
}

void node_calls_start(struct fleet *f, struct sim_node *n)
{
    struct router_config config = router_config_default();

    if (!f->faults.node_calls) {
        return;
    }
    config.seed = world_between(&f->world, 1, UINT64_MAX - 1);
    config.deadline_ms = f->deadline_ms;
    config.retry_ms = f->retry_ms;
    if (f->faults.tight) {
        config.in_flight_max = 200;
        config.waiting_size_max = 30000;
        config.peer_size_max = 20000;
    }
    n->calls = calls_new(&config);
}

void node_calls_stop(struct sim_node *n)
{
    calls_free(n->calls);
    n->calls = NULL;
}

void node_calls_look(struct fleet *f, struct sim_node *n)
{
    if (n->calls != NULL) {
        calls_look(n->calls, host_view(n->core), host_incarnation(n->core), now_of(f, n));
    }
}

void node_calls_tick(struct fleet *f, struct sim_node *n)
{
    if (n->calls != NULL) {
        calls_tick(n->calls, now_of(f, n));
        calls_check(n->calls);
    }
}

void node_calls_link(struct fleet *f, struct sim_node *n, const struct net_end *end, bool up)
{
    if (n->calls == NULL) {
        return;
    }
    if (up) {
        calls_up(n->calls,
                 end->id,
                 process_says(end->other),
                 end->other_incarnation,
                 network_has_streams(end),
                 now_of(f, n));
    } else {
        calls_down(n->calls, end->id, now_of(f, n));
    }
}

bool node_calls_answer(struct fleet *f, struct sim_node *n, uint64_t peer,
                       const struct answer_record *a)
{
    return n->calls != NULL && calls_answer(n->calls, peer, a, now_of(f, n));
}

void node_calls_output(struct fleet *f, struct sim_node *n, struct bytes record)
{
    struct reader in = {.at = record.data, .left = record.size};
    struct answer_record a;

    if (answer_get(&in, &a) != ERR_OK || in.left != 0) {
        world_violate(&f->world, "codec", "%s answers what does not decode", n->process.name);
        return;
    }
    (void)node_calls_answer(f, n, CALLS_LINK, &a);
}

void node_calls_probe(struct fleet *f, struct sim_node *n, uint64_t peer, const Rh__Probe *message)
{
    struct probe p;

    if (probe_get(message, &p) != ERR_OK) {
        world_violate(&f->world, "codec", "%s got a probe of nothing", n->process.name);
        return;
    }
    if (f->faults.deaf_us > 0 && !f->healed && f->world.now_us / f->faults.deaf_us % 2 == 1) {
        TRACE(&f->world, n->process.name, "MISSES a probe");
        return;
    }
    if (n->calls != NULL) {
        calls_chase(n->calls, &p, host_blocked(n->core, peer, &p));
        node_calls_settle(f, n);
    }
}

/* ---- effects ---- */

static void send(struct fleet *f, struct sim_node *n, const struct calls_effect *e)
{
    struct net_end *end = network_end(&f->network, e->peer);
    const bool leaves =
        end != NULL && !node_is_gated(f, n) && !world_chance(&f->world, f->faults.refuse_pm);

    if (leaves) {
        struct request_record r;

        check_output(f, n);
        if (e->frame_type == FRAME_REQUEST && calls_request(e, &r) == ERR_OK) {
            check_copy(f, fleet_node(end->other), &r);
        }
        if (e->common.data != NULL) {
            struct buffer whole = {0};

            request_put_whole(&whole, e->bytes, e->common);
            network_send(&f->network, end, e->frame_type, buffer_bytes(&whole));
            buffer_fini(&whole);
        } else {
            network_send(&f->network, end, e->frame_type, e->bytes);
        }
    } else if (e->frame_type == FRAME_REQUEST) {
        calls_give_back(n->calls, e, now_of(f, n));
    }
}

static void ask_here(struct fleet *f, struct sim_node *n, const struct calls_effect *e)
{
    struct request_record r;

    if (calls_request(e, &r) != ERR_OK) {
        world_violate(&f->world, "codec", "%s asks what does not decode", n->process.name);
        return;
    }
    check_copy(f, n, &r);
    check_stood(f, n, &r);
    if (serve_request(f, n, CALLS_LINK, e->made_us, &r)) {
        return;
    }
    node_step(f,
              n,
              (struct host_event){
                  .type = HOST_REQUEST, .peer = CALLS_LINK, .made_us = e->made_us, .request = &r});
}

static void tell(struct fleet *f, struct sim_node *n, const struct calls_effect *e)
{
    Rh__Adopted adopted = RH__ADOPTED__INIT;
    Rh__Control control = RH__CONTROL__INIT;

    adopted.version = e->version;
    adopted.awaits = e->awaits;
    control.body_case = RH__CONTROL__BODY_ADOPTED;
    control.adopted = &adopted;
    node_step(
        f,
        n,
        (struct host_event){.type = HOST_PEER_CONTROL, .peer = CALLS_LINK, .message = &control});
}

static void dial(struct fleet *f, struct sim_node *n, const struct calls_effect *e)
{
    for (unsigned i = 0; i < f->nodes; i++) {
        if (strcmp(f->node[i].process.name, e->address) == 0) {
            network_forget(&f->network, &n->process, ROLE_NODE, CALLS_KEY + e->slot);
            network_dial(
                &f->network, &n->process, &f->node[i].process, (unsigned)CALLS_KEY + e->slot);
        }
    }
}

static enum reply_code code_of(int status)
{
    switch (status) {
    case RH_OK:
        return REPLY_OK;
    case RH_FAILED:
        return REPLY_APP_ERROR;
    case RH_TIMEOUT:
        return REPLY_TIMEOUT;
    case RH_REJECTED:
        return REPLY_REJECTED;
    case RH_NO_KIND:
        return REPLY_NO_KIND;
    case RH_OVERLOADED:
        return REPLY_OVERLOADED;
    case RH_QUARANTINED:
        return REPLY_QUARANTINED;
    case RH_DEADLOCK:
        return REPLY_DEADLOCK;
    default:
        return REPLY_UNKNOWN;
    }
}

static void effect(struct fleet *f, struct sim_node *n, const struct calls_effect *e)
{
    switch (e->type) {
    case CALLS_UP:
        node_step(f,
                  n,
                  (struct host_event){.type = HOST_PEER_UP,
                                      .peer = CALLS_LINK,
                                      .role = ROLE_GATEWAY,
                                      .name = process_says(&n->process),
                                      .incarnation = e->incarnation});
        return;
    case CALLS_SEND:
        send(f, n, e);
        return;
    case CALLS_HERE:
        ask_here(f, n, e);
        return;
    case CALLS_TELL:
        tell(f, n, e);
        return;
    case CALLS_ANSWER:
        if (e->answer.worker == BANK_WORKER) {
            sim_teller_answer(n, &e->answer);
            return;
        }
        check_call_reply(f, n, e->answer.number, code_of(e->answer.status), e->answer.payload);
        return;
    case CALLS_PROBE:
        calls_chase(n->calls, &e->probe, host_blocked(n->core, CALLS_LINK, &e->probe));
        return;
    case CALLS_REFUSE:
        TRACE(&f->world, n->process.name, "refuses a call: it is part of a circle");
        check_circle(f, &e->probe);
        node_step(
            f, n, (struct host_event){.type = HOST_DEADLOCK, .probe = &e->probe, .ticket = e->run});
        return;
    case CALLS_CONNECT:
        dial(f, n, e);
        return;
    case CALLS_REPORT: // no operator asks for values here
        return;
    case CALLS_DISCONNECT:
        network_forget(&f->network, &n->process, ROLE_NODE, CALLS_KEY + e->slot);
        return;
    }
}

/* Stopped or dead in the midst of it, it goes on later, or never. */
static bool goes_on(const struct fleet *f, const struct sim_node *n, uint64_t life)
{
    return f->world.checker == NULL && n->process.up && n->process.life == life &&
           !n->process.gate.shut && n->out_at == n->out.count && !n->exits;
}

void node_calls_settle(struct fleet *f, struct sim_node *n)
{
    const uint64_t life = n->process.life;
    struct calls_effect e;
    bool has_effects = false;

    if (n->calls == NULL || n->settles) {
        return;
    }
    n->settles = true;
    while (goes_on(f, n, life) && calls_take(n->calls, &e)) {
        effect(f, n, &e);
        has_effects = true;
    }
    if (n->process.life == life) {
        n->settles = false;
    }
    // Not after every step of the node's: most have nothing to do with it, and it looks at all.
    if (has_effects && n->calls != NULL) {
        calls_check(n->calls);
    }
}

/* ---- session actors ---- */

void node_calls_former(struct fleet *f, struct sim_node *n, const struct host_effect *e)
{
    if (n->calls != NULL) {
        calls_former(n->calls,
                     &(struct call_former){.kind = actor_kind(e->actor),
                                           .id = actor_id(e->actor),
                                           .incarnation = e->incarnation,
                                           .session = e->ticket},
                     now_of(f, n));
    }
}

void node_calls_control(struct fleet *f, struct sim_node *n, uint64_t peer,
                        const Rh__Control *message)
{
    if (n->calls != NULL) {
        calls_control(n->calls, peer, message, now_of(f, n));
        node_calls_settle(f, n);
    }
}

void node_calls_ask(struct fleet *f, struct sim_node *n, const struct call *call)
{
    calls_ask(n->calls, call, now_of(f, n));
    node_calls_settle(f, n);
}

void node_calls_close(struct fleet *f, struct sim_node *n, uint64_t session)
{
    calls_close(n->calls, session, now_of(f, n));
    node_calls_settle(f, n);
}

/* ---- actors ---- */

uint64_t node_call(struct fleet *f, struct instance *i, size_t entity)
{
    const struct entity *me = i->entity;
    const struct entity *other = &f->ledger.entity[entity];
    struct sim_node *n = i->node;
    const bool in_full = f->profile == PROFILE_CALM || world_chance(&f->world, 700);
    uint8_t body[8 + 64] = {0};

    if (i->session == NULL) {
        i->session = ledger_session(f, NULL, i->id);
        i->session->node = n;
    }
    const uint64_t uid = ledger_ask(f, i->session, entity, false);
    struct sim_ask *a = ledger_find(f, uid);
    struct call call = {
        .number = uid,
        .session = i->id,
        .from_kind = entity_kind(me),
        .from = bytes_of(me->id, me->id_size),
        .kind = entity_kind(other),
        .id = bytes_of(other->id, other->id_size),
        .payload = bytes_of(body, 8 + world_between(&f->world, 0, 64)),
        .timeout_ms =
            in_full ? f->deadline_ms : (uint32_t)world_between(&f->world, 50, f->deadline_ms),
        .chain_count = i->chain_count,
        .run = i->ticket,
    };

    a->parent = i->uid;
    a->ttl_us = (uint64_t)call.timeout_ms * 1000;
    a->idempotent = world_chance(&f->world, poison_idempotent_pm(f, a));
    a->flags = a->idempotent ? REQUEST_IDEMPOTENT : 0;
    call.flags = a->idempotent ? RH_IDEMPOTENT : 0;
    memcpy(call.chain, i->chain, sizeof call.chain);
    for (unsigned k = 0; k < 8; k++) {
        body[k] = (uint8_t)(uid >> (8 * k));
    }
    record_send(f, uid);
    f->ledger.nested++;
    TRACE(&f->world,
          n->process.name,
          "%s calls %s: request %llu, %u calls deep",
          me->id,
          other->id,
          (unsigned long long)uid,
          call.chain_count + 1u);
    calls_ask(n->calls, &call, now_of(f, n));
    return uid;
}

void node_call_close(struct fleet *f, struct instance *i)
{
    if (i->session != NULL) {
        calls_close(i->node->calls, i->id, now_of(f, i->node));
        ledger_close(f, i->session);
        i->session = NULL;
    }
}

/* Take the caller off the body: it must be who asked. */
struct bytes node_called(struct fleet *f, const struct submission *s, struct bytes all)
{
    struct bytes body = submission_rest(s, all);
    struct caller from;

    if ((s->flags & REQUEST_CALL) == 0) {
        return body;
    }
    if (caller_get(&body, &from) != ERR_OK) {
        world_violate(&f->world, "codec", "a call does not say who asks");
        return body;
    }
    struct reader in = {.at = body.data, .left = body.size};
    const struct sim_ask *a = ledger_find(f, get_u64(&in));
    const struct sim_ask *parent = a == NULL ? NULL : ledger_find(f, a->parent);
    const struct entity *e_from = parent == NULL ? NULL : &f->ledger.entity[parent->entity];

    if (e_from == NULL || from.kind != entity_kind(e_from) ||
        !bytes_equal(from.id, bytes_of(e_from->id, e_from->id_size))) {
        world_violate(&f->world, "answer", "a call names another caller than asked");
    }
    return body;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The calls of this node's actors: one router for all, a session for each
 * caller, and the answers back.
 */
#include "node/calls/inside.h"

#include "base/assert.h"
#include "base/mem.h"
#include "base/mutant.h"
#include "base/table.h"

#include <string.h>

enum {
    WORKER_SHIFT = 56, /* a ticket is the worker, then the number of the call */
    GIVEN_BACK_MS = 20,
    SEND_MS = 30000, /* so long a send looks for its target: longer than a take-over takes */
};

struct calls *calls_new(const struct router_config *limits)
{
    struct calls *c = mem_new(1, sizeof *c);

    c->limits = *limits;
    c->limits.on_demand = true;
    c->limits.of_node = true;
    c->limits.silent_ms = 0; // a call may wait for calls behind it
    c->in_use = mem_new(RING_NODES_MAX + 1, sizeof *c->in_use);
    broadcasts_init(&c->broadcasts);
    waits_init(&c->waits);
    list_init(&c->formers);
    return c;
}

void calls_count_down(struct calls *c, _Atomic size_t *waiting)
{
    c->waiting = waiting;
}

void calls_free(struct calls *c)
{
    if (c == NULL) {
        return;
    }
    formers_drop(c);
    broadcasts_fini(&c->broadcasts, c->waiting);
    waits_clear(&c->waits);
    mem_free(c->probing);
    buffer_fini(&c->packed);
    mem_free(c->asker);
    buffer_fini(&c->said);
    router_free(c->router);
    router_effects_fini(&c->out);
    router_effects_fini(&c->doing);
    mem_free(c->road);
    mem_free(c->in_use);
    mem_free(c);
}

static void keep_time(struct calls *c, uint64_t now_us)
{
    c->now_us = now_us > c->now_us ? now_us : c->now_us;
}

/* What is done behind `before` was made now. */
static void note_time(struct calls *c, size_t before)
{
    for (size_t i = before; i < c->out.count; i++) {
        c->out.item[i].made_us = c->now_us;
    }
}

void calls_step(struct calls *c, struct router_event event, uint64_t now_us)
{
    const size_t before = c->out.count;

    keep_time(c, now_us);
    event.now_us = c->now_us;
    router_step(c->router, &event, &c->out);
    note_time(c, before);
}

/* ---- the host ---- */

size_t calls_answers(struct calls *c, uint64_t peer, const struct answer_record *a, size_t count,
                     uint64_t now_us)
{
    const struct road *road = peer == CALLS_LINK ? NULL : calls_road(c, peer);
    struct router_answers mine = {.answer = a,
                                  .slot = peer == CALLS_LINK ? c->slot
                                          : road == NULL     ? RING_NODE_NONE
                                                             : road->slot};
    const size_t before = c->out.count;

    if (c->router == NULL || (mine.slot == RING_NODE_NONE && peer != CALLS_LINK)) {
        return 0;
    }
    while (mine.count < count && a[mine.count].gateway == c->incarnation) {
        mine.count++;
    }
    if (mine.count > 0) {
        keep_time(c, now_us);
        mine.now_us = c->now_us;
        router_answer(c->router, &mine, &c->out);
        router_effects_keep(&c->out, before);
        note_time(c, before);
    }
    return mine.count;
}

bool calls_answer(struct calls *c, uint64_t peer, const struct answer_record *a, uint64_t now_us)
{
    return calls_answers(c, peer, a, 1, now_us) == 1;
}

bool calls_rest(const struct calls *c)
{
    return c->router == NULL || (router_rests(c->router) && list_empty(&c->broadcasts.boxes) &&
                                 list_empty(&c->broadcasts.barred));
}

/* A leaving node waits for what its actors asked for, as long as it waits for gateways. */
static void look_for_open(struct calls *c, bool quiet)
{
    const bool open = !calls_rest(c);

    if (open ? !c->awaits : c->awaits && quiet) {
        c->awaits = !c->awaits;
        c->tells = true;
    }
}

void calls_tick(struct calls *c, uint64_t now_us)
{
    if (c->router != NULL) {
        c->refuses = c->refuses || broadcasts_expired(&c->broadcasts, now_us, &c->refused);
        calls_step(c, (struct router_event){.type = ROUTER_TICK}, now_us);
        waits_tick(&c->waits, c->now_us);
        look_for_open(c, true);
    }
}

void calls_chase(struct calls *c, const struct probe *probe, struct blocked blocked)
{
    waits_chase(&c->waits, probe, blocked);
}

/* ---- the runtime ---- */

static int status_of(enum reply_code code)
{
    switch (code) {
    case REPLY_OK:
        return RH_OK;
    case REPLY_APP_ERROR:
        return RH_FAILED;
    case REPLY_UNKNOWN:
        return RH_UNKNOWN;
    case REPLY_TIMEOUT:
        return RH_TIMEOUT;
    case REPLY_REJECTED:
        return RH_REJECTED;
    case REPLY_NO_KIND:
        return RH_NO_KIND;
    case REPLY_OVERLOADED:
        return RH_OVERLOADED;
    case REPLY_QUARANTINED:
        return RH_QUARANTINED;
    case REPLY_DEADLOCK:
        return RH_DEADLOCK;
    }
    UNREACHABLE();
}

/* The caller itself is the last of the chain that leads to whom it asks. */
static size_t chain_of(struct calls *c, const struct call *call,
                       uint64_t chain[RECORD_CHAIN_MAX + 1])
{
    if (call->chain_count > RECORD_CHAIN_MAX || c->view == NULL) {
        return 0;
    }
    const size_t before = mutant(M_DIRECTONLY) ? 0 : call->chain_count;

    memcpy(chain, call->chain, before * sizeof chain[0]);
    if (call->session != c->caller) { // most often one asks for several things
        c->caller = call->session;
        c->caller_point = router_point(c->router, call->from_kind, call->from);
    }
    chain[before] = c->caller_point;
    return before + 1u;
}

/* What an actor asks of another runs there in one order, whatever it is. */
static uint64_t lane_of(const struct call *call)
{
    enum { APART = 1 << 20 };

    return call->session + (call->push && mutant(M_CASTLANE) ? APART : 0);
}

static uint64_t ticket_of(const struct call *call)
{
    return (uint64_t)call->worker << WORKER_SHIFT | call->number;
}

/* Its caller takes no message until it is answered. `session`: the router's. */
static void note_wait(struct calls *c, const struct call *call, uint64_t session, uint32_t ms)
{
    if (call->run == 0 || call->number == 0) {
        return;
    }
    const struct wait_of wait = {
        .number = ticket_of(call),
        .run = call->run,
        .name = {c->incarnation, session, router_seq(c->router, session)},
        .kind = call->kind,
        .id = call->id,
        .deadline_us = c->now_us + (uint64_t)ms * 1000,
    };

    waits_add(&c->waits, &wait, c->now_us);
}

/* Give the router one request. */
static void ask(struct calls *c, const struct call *call, struct shared *common, uint32_t ms)
{
    const bool sends = call->number == 0;
    const bool idempotent = (call->flags & RH_IDEMPOTENT) != 0;
    const bool of_actor = call->from.size > 0; // else of the program around the node
    const bool traced = (call->flags & CALL_TRACED) != 0;
    struct bytes payload = call->payload;
    struct trace_context trace;
    const struct caller from = {.kind = call->from_kind, .id = call->from};
    uint64_t chain[RECORD_CHAIN_MAX + 1];

    if (traced) {
        trace_context_take(&payload, &trace);
    }
    const uint64_t session = router_session_of(c->router, lane_of(call));
    const size_t before = c->out.count;
    const struct router_event event = {
        .type = ROUTER_REQUEST,
        .now_us = c->now_us,
        .session = session,
        .ticket = ticket_of(call),
        .kind = call->kind,
        .id = call->id,
        .body = payload,
        .common = common,
        .from = of_actor ? &from : NULL,
        .trace = traced ? &trace : NULL,
        .chain = chain,
        .chain_count = of_actor ? chain_of(c, call, chain) : 0,
        .timeout_ms = ms,
        .flags = (uint8_t)((sends ? REQUEST_NO_REPLY : 0) | (idempotent ? REQUEST_IDEMPOTENT : 0) |
                           (call->push ? REQUEST_SESSION | REQUEST_AWAKE : 0) |
                           (call->outgoing ? REQUEST_SESSION : 0)),
    };
    router_ask(c->router, &event, &c->out);
    note_time(c, before);
    note_wait(c, call, session, ms);
}

void calls_ask(struct calls *c, const struct call *call, uint64_t now_us)
{
    const uint32_t ms = call->number == 0 ? SEND_MS : call->timeout_ms;

    ASSERT(call->number >> WORKER_SHIFT == 0 && call->worker >> (64 - WORKER_SHIFT) == 0);
    if (c->router == NULL) {
        calls_drop_call(c, call);
        return;
    }
    keep_time(c, now_us);
    former_begins(c, call);
    const bool passes = broadcasts_may_pass(&c->broadcasts, call);

    if (call->number != 0 && !passes) {
        former_lift(c, call->session); // It waits for no other node: that could wait for it.
    }
    if (!passes && (call->count > 0 || broadcasts_holds(&c->broadcasts, call->session))) {
        broadcasts_put(&c->broadcasts, call, c->now_us + (uint64_t)ms * 1000);
    } else {
        ask(c, call, NULL, ms);
    }
    look_for_open(c, false);
}

void calls_drop_call(struct calls *c, const struct call *call)
{
    if (call->count > 0 && c->waiting != NULL) {
        (void)atomic_fetch_sub(c->waiting, broadcast_size(call));
    }
}

static void close_session(struct calls *c, uint64_t session)
{
    calls_step(c,
               (struct router_event){.type = ROUTER_SESSION_CLOSED,
                                     .session = router_session_of(c->router, session)},
               c->now_us);
}

void calls_close(struct calls *c, uint64_t session, uint64_t now_us)
{
    if (c->router == NULL) {
        return;
    }
    keep_time(c, now_us);
    if (!broadcasts_close(&c->broadcasts, session)) {
        close_session(c, session);
    }
}

void calls_operate(struct calls *c, int index, const Rh__Control *message, uint64_t now_us)
{
    if (c->router != NULL && message->body_case == RH__CONTROL__BODY_OPERATOR_REQUEST) {
        calls_step(
            c,
            (struct router_event){.type = ROUTER_CONTROL, .coordinator = index, .message = message},
            now_us);
        look_for_open(c, false);
    }
}

/* ---- broadcasts ---- */

/* What is left of its time; in the end a moment, for the router to refuse it by. */
static uint32_t left_ms(const struct calls *c, uint64_t until_us)
{
    return until_us > c->now_us ? (uint32_t)((until_us - c->now_us + 999) / 1000) : 1;
}

/* Hand on a slice of what waits. False: nothing, or the router has no room. The other half of it is
 * for who asks one by one. */
static bool feed(struct calls *c)
{
    struct broadcast_next next;
    size_t fed = 0;

    while (fed < BROADCASTS_SLICE && !router_has(c->router, 2) &&
           broadcasts_next(&c->broadcasts, c->now_us, c->waiting, &next)) {
        if (next.type == BROADCAST_CLOSED) {
            close_session(c, next.session);
        } else {
            ask(c, &next.call, next.common, left_ms(c, next.until_us));
        }
        fed++;
    }
    return fed > 0;
}

/* ---- effects ---- */

/* False: it was for nobody. */
static bool translate(struct calls *c, const struct router_effect *e, struct calls_effect *out)
{
    out->bytes =
        bytes_of(c->doing.bytes.data == NULL ? NULL : c->doing.bytes.data + e->at, e->size);
    out->slot = e->slot;
    out->peer = c->in_use[e->slot];
    if (e->common != NULL) {
        out->common = shared_bytes(e->common);
        out->common_number = e->common->number;
    }
    switch (e->type) {
    case ROUTER_SEND_NODE:
        out->type = out->peer == CALLS_LINK ? CALLS_HERE : CALLS_SEND;
        out->frame_type = FRAME_REQUEST;
        out->made_us = e->made_us;
        return true;
    case ROUTER_SEND_STREAM:
        return false; // calls are records
    case ROUTER_TELL_NODE:
        out->type = CALLS_SEND;
        out->frame_type = FRAME_CONTROL;
        return out->peer != 0 && out->peer != CALLS_LINK; // the host is told by CALLS_TELL
    case ROUTER_SEND_COORDINATOR: // of an operator; the host asks for the configuration
        out->type = CALLS_REPORT;
        out->coordinator = e->coordinator;
        return true;
    case ROUTER_REPLY:
        waits_end(&c->waits, e->ticket);
        out->type = CALLS_ANSWER;
        out->answer = (struct call_answer){
            .worker = (uint32_t)(e->ticket >> WORKER_SHIFT),
            .number = e->ticket & ((UINT64_C(1) << WORKER_SHIFT) - 1),
            .status = status_of(e->code),
            .payload = out->bytes,
        };
        return out->answer.number != 0;
    case ROUTER_VOUCH:
        return false; // actors' sessions are numbered here
    case ROUTER_CONNECT:
        out->type = CALLS_CONNECT;
        out->address = (const char *)out->bytes.data;
        return true;
    case ROUTER_DISCONNECT:
        out->type = CALLS_DISCONNECT;
        return true;
    }
    UNREACHABLE();
}

static bool refill(struct calls *c)
{
    const struct router_effects done = c->doing;

    c->doing = c->out;
    c->out = done;
    router_effects_clear(&c->out);
    c->at = 0;
    return c->doing.count > 0;
}

/* What was fed may have no effect yet: its node is away. */
static bool feed_more(struct calls *c)
{
    while (c->router != NULL && feed(c)) {
        if (refill(c)) {
            return true;
        }
    }
    return false;
}

/* To the node of the actor that it names; false: it can't leave now. */
static bool translate_probe(struct calls *c, struct calls_effect *out)
{
    const struct probe *p = &out->probe;
    if (c->version == 0) {
        return false;
    }
    const uint16_t slot = ring_hit_node(view_lookup(c->view, p->kind, p->id));

    out->peer = c->in_use[slot];
    if (out->peer != CALLS_LINK) {
        buffer_clear(&c->packed);
        probe_put(&c->packed, p);
        out->type = CALLS_SEND;
        out->frame_type = FRAME_CONTROL;
        out->bytes = buffer_bytes(&c->packed);
    }
    return out->peer != 0;
}

static bool take_wait(struct calls *c, struct calls_effect *out)
{
    for (;;) {
        mem_free(c->probing);
        c->probing = waits_take(&c->waits);
        if (c->probing == NULL) {
            return false;
        }
        const bool refuses = c->probing->type == WAIT_REFUSE;

        *out = (struct calls_effect){.type = refuses ? CALLS_REFUSE : CALLS_PROBE,
                                     .probe = c->probing->probe,
                                     .run = c->probing->run};
        if (refuses || translate_probe(c, out)) {
            return true;
        }
    }
}

bool calls_quiet(const struct calls *c)
{
    const bool waits = list_empty(&c->formers) && list_empty(&c->broadcasts.boxes);

    return c->at == c->doing.count && c->out.count == 0 && waits && list_empty(&c->waits.out) &&
           c->asker_count == 0 && !c->begins && !c->refuses && !c->tells;
}

bool calls_take(struct calls *c, struct calls_effect *out)
{
    if (c->begins) {
        c->begins = false;
        *out = (struct calls_effect){
            .type = CALLS_UP, .peer = CALLS_LINK, .incarnation = c->incarnation};
        return true;
    }
    if (c->refuses) {
        *out = (struct calls_effect){.type = CALLS_ANSWER, .answer = c->refused};
        c->refuses = broadcasts_expired(&c->broadcasts, c->now_us, &c->refused);
        return true;
    }
    do {
        if (c->at == c->doing.count) {
            formers_look(c);
        }
        while (c->at < c->doing.count || refill(c) || feed_more(c)) {
            const struct router_effect *e = &c->doing.item[c->at++];

            *out = (struct calls_effect){.type = CALLS_SEND};
            if (translate(c, e, out)) {
                return true;
            }
        }
        if (take_wait(c, out) || former_take(c, out)) {
            return true;
        }
    } while (c->out.count > 0); // a former's node is to be dialled
    if (!c->tells) {
        return false;
    }
    c->tells = false;
    *out = (struct calls_effect){
        .type = CALLS_TELL, .peer = CALLS_LINK, .version = c->version, .awaits = c->awaits};
    return true;
}

enum err calls_request(const struct calls_effect *e, struct request_record *out)
{
    struct reader in = {.at = e->bytes.data, .left = e->bytes.size};
    const enum err error = request_get_behind(&in, e->common, out);

    return error == ERR_OK && in.left != 0 ? ERR_CORRUPT : error;
}

/* True: the next is one, of that time. */
static bool here_follows(const struct calls *c, uint64_t made_us)
{
    const struct router_effect *next = &c->doing.item[c->at];

    return c->at < c->doing.count && next->type == ROUTER_SEND_NODE &&
           c->in_use[next->slot] == CALLS_LINK && next->made_us == made_us;
}

size_t calls_take_here(struct calls *c, const struct calls_effect *e, struct request_record *r,
                       size_t max)
{
    struct calls_effect next = *e;
    size_t count = 0;

    for (;;) {
        if (calls_request(&next, &r[count++]) != ERR_OK) {
            UNREACHABLE();
        }
        if (count == max || !here_follows(c, e->made_us)) {
            return count;
        }
        next = (struct calls_effect){.type = CALLS_HERE};
        (void)translate(c, &c->doing.item[c->at++], &next);
    }
}

void calls_give_back(struct calls *c, const struct calls_effect *e, uint64_t now_us)
{
    struct request_record r;

    if (c->router == NULL) {
        return;
    }
    if (calls_request(e, &r) != ERR_OK) {
        UNREACHABLE();
    }
    const struct answer_record busy = {
        .gateway = r.gateway,
        .session = r.session,
        .seq = r.seq,
        .copy = r.copy,
        .code = ANSWER_BUSY,
        .aux = GIVEN_BACK_MS,
    };
    calls_step(c, (struct router_event){.type = ROUTER_ANSWER, .answer = &busy}, now_us);
}

/* ---- check and figures ---- */

void calls_check(const struct calls *c)
{
    if (c->router == NULL) {
        return;
    }
    router_check(c->router);
    for (size_t slot = 1; slot <= RING_NODES_MAX; slot++) {
        const uint64_t peer = c->in_use[slot];

        ASSERT(peer == 0 || (peer == CALLS_LINK) == (slot == c->slot));
        ASSERT(peer == 0 || peer == CALLS_LINK || calls_road(c, peer) != NULL);
    }
}

void calls_stats(const struct calls *c, struct router_stats *out)
{
    *out = (struct router_stats){0};
    if (c->router != NULL) {
        router_stats(c->router, out);
    }
}

const struct latencies *calls_latencies(const struct calls *c)
{
    return c->router == NULL ? NULL : router_latencies(c->router);
}

void calls_broadcasts(const struct calls *c, struct broadcast_stats *out)
{
    *out = (struct broadcast_stats){
        .made = c->broadcasts.made, .handed = c->broadcasts.handed, .late = c->broadcasts.late};
}

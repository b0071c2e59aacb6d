/* SPDX-License-Identifier: Apache-2.0
 *
 * The host's step: an event to the part that handles it, then checks and
 * figures.
 */
#include "node/host/host.h"

#include "base/assert.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/mutant.h"
#include "node/host/inside.h"

#include <stdio.h>
#include <string.h>

/* ---- effects ---- */

struct host_effect *host_emit(struct host *h, enum host_effect_type type)
{
    struct host_effects *out = h->out;

    if (out->count == out->cap) {
        out->cap = out->cap == 0 ? 64 : out->cap * 2;
        out->item = mem_resize(out->item, out->cap * sizeof *out->item);
    }
    struct host_effect *e = &out->item[out->count++];
    *e = (struct host_effect){.type = type};
    return e;
}

void host_emit_bytes(struct host *h, struct host_effect *e, struct bytes bytes)
{
    e->at = h->out->bytes.size - e->size;
    e->size += bytes.size;
    buffer_put(&h->out->bytes, bytes.data, bytes.size);
}

struct host_effect *host_submit(struct host *h, struct actor *a, enum verb verb)
{
    struct host_effect *e = host_emit(h, HOST_SUBMIT);

    e->actor = a;
    e->submission.verb = (uint8_t)verb;
    return e;
}

struct buffer *host_record(struct host *h)
{
    h->record_at = h->out->bytes.size;
    return &h->out->bytes;
}

void host_send_record(struct host *h, uint64_t peer, int frame_type)
{
    struct host_effect *e = host_emit(h, HOST_SEND_PEER);

    e->peer = peer;
    e->frame_type = frame_type;
    e->at = h->record_at;
    e->size = h->out->bytes.size - h->record_at;
}

void host_effects_clear(struct host_effects *e)
{
    e->count = 0;
    buffer_clear(&e->bytes);
}

void host_effects_fini(struct host_effects *e)
{
    mem_free(e->item);
    buffer_fini(&e->bytes);
    *e = (struct host_effects){0};
}

/* ---- life ---- */

struct host_config host_config_default(void)
{
    return (struct host_config){
        .weight = 1,
        .held_size_max = (size_t)256 * 1024 * 1024,
        .held_vnode_max = (size_t)64 * 1024 * 1024,
        .queue_count_max = 1024,
        .activations_max = 1024,
        .cold_count_max = 65536,
        .wake_rate = 1000,
        .alarm_rate = 1000,
        .wake_count_max = 1000000,
        .state_window = (size_t)1024 * 1024,
        .staged_size_max = (size_t)64 * 1024 * 1024,
        .move_rate = (size_t)64 * 1024 * 1024,
        .ahead_ms = 60,
        .renew_ms = 500,
        .resend_ms = 300,
        .drain_turn_ms = 20,
        .call_hold_ms = 100,
        .exports_at_once = 128,
        .poll_ms = 1000,
        .linger_ms = 30000,
        .answers_size_max = (size_t)64 * 1024 * 1024,
        .session_keep_ms = 120000,
        .gate_size_max = (size_t)64 * 1024 * 1024,
        .stream_log_max = (size_t)64 * 1024 * 1024,
        .streams_size_max = (size_t)256 * 1024 * 1024,
    };
}

struct host *host_new(const struct host_config *config)
{
    struct host *h = mem_new(1, sizeof *h);

    ASSERT(config->disk.active_count <= HOST_ACTIVE_MAX);
    ASSERT(config->session_keep_ms >= HOST_KEEP_MIN_MS);
    h->config = *config;
    membership_init(&h->membership, config->nonce);
    topology_init(&h->topology, config->fleet);
    links_init(&h->links);
    txns_init(&h->txns, &config->disk);
    cells_init(&h->cells, config);
    actors_init(&h->actors);
    orders_init(&h->orders, &h->actors.pool);
    work_init(&h->work);
    requests_init(&h->requests);
    spans_init(&h->spans, config->tracing, config->span_seed);
    backpressure_init(&h->backpressure);
    streams_init(h);
    forwards_init(h);
    wake_init(h);
    remember_init(&h->remember);
    alarm_scan_init(h);
    lease_policy_init(&h->lease_policy, config);
    times_init(h);
    return h;
}

void host_configure(struct host *h, const struct host_config *config)
{
    h->config.activations_max = config->activations_max;
    h->config.cold_count_max = config->cold_count_max;
    h->config.held_size_max = config->held_size_max;
    h->config.held_vnode_max = config->held_vnode_max;
    h->config.linger_ms = config->linger_ms;
    h->config.move_rate = config->move_rate;
    h->config.wake_rate = config->wake_rate;
    h->config.alarm_rate = config->alarm_rate;
}

/* All actors are gone without a word to the shell when `why` is NULL. */
static void drop_actors(struct host *h, const enum discard_why *why)
{
    for (uint32_t c = 0; c < h->actors.cell_count; c++) {
        struct actor *a = NULL;

        while ((a = cell_first(&h->actors, c)) != NULL) {
            if (why == NULL) {
                a->live = false;
                a->state = ACTOR_ABSENT; // STATE: it ends without a step of its own
            }
            actor_remove(h, a, why == NULL ? DISCARD_STOP : *why);
        }
    }
}

static void drop_requests(struct host *h)
{
    requests_drop_all(&h->requests, work_drop_running(&h->work), h->now_us);
    spans_fini(&h->spans);
}

void host_drop_all(struct host *h, enum discard_why why)
{
    drop_requests(h);
    drop_actors(h, &why);
    forwards_begin(h, 0);
    streams_drop_all(h);
    txns_drop_all(&h->txns);
    wake_forget(&h->autostart);
    remember_forget(&h->remember);
    alarm_scan_forget(&h->alarms);
    cells_forget(h);
    adopt_forget(&h->topology);
}

void host_stop(struct host *h, enum host_exit_why why)
{
    // Of <sysexits.h>: EX_UNAVAILABLE, EX_TEMPFAIL.
    enum { FAILED = 1, ALONE = 69, JOIN_ANEW = 75 };
    static const struct {
        int code;
        const char *text;
    } exits[] = {
        [HOST_EXIT_LEFT] = {0, "left"},
        [HOST_EXIT_ALONE] = {ALONE, "the node is leaving, and nobody renews its lease"},
        [HOST_EXIT_OTHER_ERA] = {ALONE, "another era began while the node was leaving"},
        [HOST_EXIT_UNREGISTERED] = {0, "the node left before it was registered"},
        [HOST_EXIT_REFUSED] = {FAILED, "registration refused"},
        [HOST_EXIT_ERA] = {FAILED, "the coordinators' state went back to an older era"},
        [HOST_EXIT_NO_MEMBER] = {JOIN_ANEW, "the node is no longer a member"},
        [HOST_EXIT_BARRED] = {JOIN_ANEW, "barred"},
        [HOST_EXIT_GRID] = {JOIN_ANEW, "the ring has another grid"},
        [HOST_EXIT_REBOUND] = {JOIN_ANEW, "a kind that the node hosts was bound to another role"},
        [HOST_EXIT_OVERLAP] = {JOIN_ANEW, "a configuration took away cells with live actors"},
        [HOST_EXIT_OPERATOR] = {JOIN_ANEW,
                                "an operator declared that this process is not a member"},
    };
    const int code = exits[why].code;
    struct host_effect *e = NULL;

    log_info("node", "stop", "code=%d why=\"%s\"", code, exits[why].text);
    h->to_flush = code == ALONE;
    if (!h->to_flush) {
        host_drop_all(h, code == 0 ? DISCARD_STOP : DISCARD_FENCED);
    }
    membership_enter(&h->membership, LIFE_OVER);
    e = host_emit(h, HOST_EXIT);
    e->exit_why = why;
    e->code = code;
    e->why = exits[why].text;
}

void host_free(struct host *h)
{
    if (h == NULL) {
        return;
    }
    drop_requests(h);
    drop_actors(h, NULL);
    txns_fini(&h->txns);
    forwards_fini(h);
    streams_fini(h);
    wake_fini(&h->autostart);
    remember_forget(&h->remember);
    alarm_scan_fini(&h->alarms);
    gate_fini(&h->lease_policy.gate);
    orders_fini(&h->orders);
    actors_fini(&h->actors);
    links_fini(&h->links);
    view_fini(&h->topology.view);
    costs_fini(&h->costs);
    cells_fini(&h->cells);
    buffer_fini(&h->inspection.trace);
    mem_free(h);
}

/* ---- events ---- */

static void on_peer_up(struct host *h, const struct host_event *event)
{
    struct neighbour peer = {
        .link = event->peer,
        .role = (enum link_role)event->role,
        .incarnation = event->incarnation,
        .dialled = event->dialled,
        .streams = event->streams,
    };

    (void)snprintf(peer.name, sizeof peer.name, "%s", event->name);
    backpressure_on_link(h, event->peer, false);
    neighbour_up(&h->links.neighbours, &peer);
    identity_judge(h, neighbour_by_link(&h->links.neighbours, event->peer));
    if (peer.role == ROLE_NODE && h->membership.life == LIFE_SERVING) {
        hold_on_peer_up(h, peer.incarnation);
        forwards_join(h);
        admit_all(h, &h->links.lonely);
    }
}

static void on_peer_control(struct host *h, const struct host_event *event)
{
    struct neighbour *peer = neighbour_by_link(&h->links.neighbours, event->peer);
    const Rh__Control *c = event->message;

    if (peer != NULL && c->body_case == RH__CONTROL__BODY_ADOPTED) {
        peer->awaits = c->adopted->awaits;
        peer->adopted = c->adopted->version > peer->adopted ? c->adopted->version : peer->adopted;
    }
}

/* An order record is forgotten: nothing may be left to know of its actor. */
static void on_forgotten(void *context, struct actor *a)
{
    if (a->state == ACTOR_ABSENT) {
        actor_rest(context, a);
    }
}

static void on_tick(struct host *h)
{
    admit_tick(h);
    member_tick(h);
    if (h->membership.life == LIFE_SERVING || h->membership.life == LIFE_PARTING) {
        txn_tick(h);
        ahead_tick(h);
        host_dials_tick(h);
        orders_evict(&h->orders,
                     h->now_us,
                     (uint64_t)h->config.session_keep_ms * 1000,
                     (struct orders_watch){on_forgotten, h});
        streams_tick(h);
        forwards_tick(h);
        retire_tick(h);
        fail_tick(h);
        quarantine_tick(h);
        always_tick(h);
        wake_tick(h);
        remember_tick(h);
        alarm_scan_tick(h);
        costs_tick(h);
        times_tick(h);
    }
}

static void on_transaction(struct host *h, const struct host_event *event)
{
    if (event->type == HOST_STATE) {
        hold_on_state(h, event->peer, event->state, event->state_count);
    } else if (event->type == HOST_STATE_ACK) {
        hold_on_state_ack(h, event->peer, event->state_ack);
    } else {
        txn_on_persisted(h, event->ticket);
    }
}

static void on_completed(struct host *h, struct actor *a, const struct completion *c)
{
    if (c->returned) {
        lease_policy_on_returned(h, a, c);
        return;
    }
    switch ((int)c->verb) {
    case VERB_ACTIVATE:
        run_on_activated(h, a, c->error);
        return;
    case VERB_RUN:
    case VERB_TURN:
        run_on_ran(h, a, c);
        return;
    case VERB_EXPORT:
        run_on_exported(h, a, c);
        return;
    case VERB_COPY:
        run_on_copied(h, a, c);
        return;
    case VERB_RETIRE:
        retire_on_retired(h, a, c);
        return;
    case VERB_POKE:
        run_on_poke(h, a);
        return;
    case VERB_PASSIVATE:
        retire_on_passivate(h, a);
        return;
    case VERB_FAIL:
        fail_on_failed(h, a, c);
        return;
    default: // of the others the bridge tells the host nothing
        UNREACHABLE();
    }
}

/* The lease, and what waits for it, is after that as it was before. */
static bool leaves_lease(const struct host_event *event)
{
    const enum verb verb = event->completion.verb;

    return event->type == HOST_REQUEST || event->type == HOST_FRAME || event->type == HOST_STATE ||
           (event->type == HOST_COMPLETED && !event->completion.returned &&
            (verb == VERB_RUN || verb == VERB_TURN || verb == VERB_EXPORT || verb == VERB_COPY));
}

static void dispatch(struct host *h, const struct host_event *event)
{
    switch (event->type) {
    case HOST_TICK:
        on_tick(h);
        break;
    case HOST_COORDINATOR_UP:
    case HOST_COORDINATOR_DOWN:
        member_on_coordinator(h, event->coordinator, event->type == HOST_COORDINATOR_UP);
        break;
    case HOST_CONTROL:
        member_on_control(h, event->coordinator, event->message);
        break;
    case HOST_PEER_UP:
        on_peer_up(h, event);
        break;
    case HOST_PEER_DOWN:
        streams_on_down(h, event->peer);
        backpressure_on_link(h, event->peer, false);
        neighbour_down(&h->links.neighbours, event->peer);
        forwards_on_down(h, event->peer);
        break;
    case HOST_PEER_FULL:
    case HOST_PEER_ROOM:
        backpressure_on_link(h, event->peer, event->type == HOST_PEER_FULL);
        if (event->type == HOST_PEER_ROOM) {
            host_feed(h, event->peer); // what its log has may go now
        }
        break;
    case HOST_GO_ON:
        break; // it goes on below
    case HOST_PEER_CONTROL:
        on_peer_control(h, event);
        break;
    case HOST_REQUEST:
        if (identity_takes_request(h, event->peer, event->request)) {
            admit_new(h, event);
        }
        break;
    case HOST_FRAME:
        streams_on_frame(h, event);
        break;
    case HOST_ANSWER:
        if (identity_takes_answer(h, event->peer)) {
            admit_relay_answer(h, event->answer);
        }
        break;
    case HOST_STATE:
    case HOST_STATE_ACK:
    case HOST_PERSISTED:
        if (h->membership.life != LIFE_JOINING) {
            on_transaction(h, event);
        }
        break;
    case HOST_COMPLETED:
        on_completed(h, event->actor, &event->completion);
        break;
    case HOST_DEADLOCK:
        deadlock_refuse(h, event->probe, event->ticket);
        break;
    case HOST_WAKE:
        wake_on_wake(h, event->kind, event->id);
        break;
    case HOST_DUE_PAGE:
        alarm_scan_on_page(h, event);
        break;
    case HOST_LEAVE:
        member_leave(h);
        break;
    }
}

/* I12 and I5, in a few loads. */
static void check_quick(const struct host *h)
{
    ASSERT(h->requests.accepted == h->requests.finished + h->requests.room.count + h->work.running);
    for (size_t i = 0; i < h->txns.participant.part_count; i++) {
        const struct part *part = h->txns.participant.part[i];

        ASSERT(
            IMPLIES(part->state == PART_PREPARED, hold_of(part)->busy == 0 || mutant(M_NODRAIN)));
    }
}

static void begin_step(struct host *h, const struct host_event *event, struct host_effects *out)
{
    // Of the same lease at the same instant it would say the same: many steps go by one look at the
    // clocks.
    const bool judged = h->judged && event->now_us == h->now_us && event->wall_us == h->wall_us &&
                        list_empty(&h->lease_policy.leaseless_actors);

    actors_bury(&h->actors);
    h->out = out;
    if (event->now_us > h->now_us) {
        h->now_us = event->now_us;
        h->now_ms = (uint32_t)(h->now_us / 1000);
    }
    h->wall_us = event->wall_us;
    if (!judged) {
        lease_policy_judge(h);
    }
    backpressure_begin(&h->backpressure);
}

void host_step(struct host *h, const struct host_event *event, struct host_effects *out)
{
    if (h->membership.life == LIFE_OVER) {
        return;
    }
    prefetch_stale(&h->prefetch);
    begin_step(h, event, out);
    dispatch(h, event);
    h->judged = leaves_lease(event);
    if (h->backpressure.later.count + h->backpressure.cold_count > 0 &&
        (event->type == HOST_GO_ON || event->type == HOST_TICK)) {
        backpressure_go_on(h);
    }
    if (wake_has_more(h) && (event->type == HOST_GO_ON || event->type == HOST_TICK)) {
        wake_go_on(h);
    }
    remember_go_on(h);
    ahead_go_on(h);
    hold_next_turn(h);
    export_go_on(h, event->type == HOST_TICK);
    h->out = NULL;
    check_quick(h);
}

size_t host_serve(struct host *h, const struct host_event *event, const struct request_record *r,
                  const uint64_t *position, size_t count, const struct host_server *server)
{
    const bool put_off = h->lease_policy.leaseless.count > 0 ||
                         !list_empty(&h->lease_policy.leaseless_actors) ||
                         h->lease_policy.gate.count > 0;
    size_t served = 0;

    if (h->membership.life == LIFE_OVER) {
        return 0;
    }
    if (put_off) { // what goes on with the lease may end any actor
        prefetch_stale(&h->prefetch);
    }
    begin_step(h, event, server->effects);
    if (server->effects->count == 0) { // what was kept for the lease goes first
        served = serve_steady(h, event, r, position, count, server);
    }
    h->judged = true; // requests leave the lease as it is
    h->out = NULL;
    check_quick(h);
    return served;
}

uint64_t host_rests_until_us(const struct host *h)
{
    const struct lease *lease = &h->lease_policy.lease;
    const uint64_t soft_us = lease_soft_us(lease);
    const bool leased = !lease->in_force || lease->state == LEASE_ACTIVE;

    if (h->membership.life != LIFE_SERVING || h->membership.stopping || !leased ||
        leader_of(&h->membership) < 0 || config_is_wanted(h) || h->work.tasks > 0 ||
        h->work.running > 0 || h->requests.room.count > 0 || h->txns.disk_dirty ||
        h->txns.participant.part_count > 0 || h->backpressure.later.count > 0 ||
        h->backpressure.cold_count > 0 || h->autostart.count > 0 ||
        h->lease_policy.gate.count > 0 || h->remember.count > 0 || h->remember.recalling) {
        return 0;
    }
    const uint64_t leased_us = h->membership.renew_us < soft_us ? h->membership.renew_us : soft_us;
    const uint64_t alarms_us = alarm_scan_rests_until_us(h);
    const uint64_t delays_us = delays_next_us(&h->work.delays);
    const uint64_t own_us = alarms_us < delays_us ? alarms_us : delays_us;
    return leased_us < own_us ? leased_us : own_us;
}

/* ---- check and figures ---- */

/* What is counted on the way must be what is there. */
struct tally {
    size_t live;
    size_t tasks;
    size_t retiring;
    size_t activating;
    size_t requests; /* running */
    uint32_t memory; /* of one cell */
};

static void check_actor(const struct host *h, const struct actor *a, struct tally *tally)
{
    const struct hold *hold = actor_held(a);
    const bool none = a->state == ACTOR_ABSENT || a->state == ACTOR_FAILING;

    ASSERT(a->work == NULL || a->work->actor == a);
    ASSERT(IMPLIES(a->packed, a->state == ACTOR_ABSENT && a->work == NULL && a->image != NULL));
    ASSERT(IMPLIES(a->state == ACTOR_FROZEN || a->state == ACTOR_BUSY, hold != NULL));
    ASSERT(IMPLIES(a->state == ACTOR_IDLE, a->live && actor_waiting(a) == 0 && hold == NULL));
    ASSERT(IMPLIES(a->state == ACTOR_RUNNING || a->state == ACTOR_EXPORTING, a->live));
    ASSERT(IMPLIES(a->state == ACTOR_RETIRING || a->state == ACTOR_BUSY, a->live));
    ASSERT(IMPLIES(none, !a->live && hold == NULL));
    ASSERT(IMPLIES(a->state == ACTOR_ABSENT && actor_waiting(a) > 0,
                   list_linked(&a->work->to_export) || a->memory == MEMORY_ASKED ||
                       a->memory == MEMORY_LEAVING));
    ASSERT(IMPLIES(a->work != NULL && list_linked(&a->work->to_export),
                   a->state == ACTOR_ABSENT || a->state == ACTOR_EXPORTING));
    ASSERT(IMPLIES(a->state == ACTOR_FAILING || a->state == ACTOR_BUSY,
                   delay_runs(&a->work->delay))); // it will go on
    ASSERT(IMPLIES(a->poked, a->state != ACTOR_IDLE || list_linked(&a->work->leaseless)));
    ASSERT(IMPLIES(a->wanted && a->state == ACTOR_ABSENT, actor_listed(a)));
    if (a->live || a->state == ACTOR_ACTIVATING) {
        tally->live++;
        tally->memory += cells_memory_of(h, a->kind);
    }
    tally->tasks += actor_has_task(a) ? 1 : 0;
    tally->activating += a->state == ACTOR_ACTIVATING ? 1 : 0;
    tally->retiring += a->state == ACTOR_RETIRING ? 1 : 0;
    tally->requests += a->state == ACTOR_RUNNING && a->work->running.request ? 1 : 0;
}

static size_t check_cell(const struct host *h, uint32_t cell, struct tally *tally)
{
    const struct cell_state *state = &h->cells.state[cell];
    size_t count = 0;

    tally->memory = 0;
    for (const struct actor *a = cell_first(&h->actors, cell); a != NULL;
         a = cell_next(&h->actors, cell, a)) {
        const bool prepared = state->hold != NULL && state->hold->part->state == PART_PREPARED;

        ASSERT(state->mine || mutant(M_LOCAL));                                   // I1, I4
        ASSERT(actor_held(a) == NULL || actor_held(a) == state->hold);            // hole 48
        ASSERT(IMPLIES(prepared, a->state == ACTOR_FROZEN || mutant(M_NODRAIN))); // I5
        ASSERT(IMPLIES(a->copied, a->sent || mutant(M_STALEIMAGE)));
        ASSERT(IMPLIES(a->sent, ahead_gives(h, cell)));
        check_actor(h, a, tally);
        count++;
    }
    ASSERT(tally->memory == h->cells.cost[cell].memory);
    return count;
}

void host_check(const struct host *h)
{
    struct tally tally = {0};
    size_t count = 0;
    uint32_t mine = 0;

    check_quick(h);
    participant_check(&h->txns.participant);
    ASSERT(h->topology.view.ring.version >= h->topology.checked_version ||
           h->membership.life == LIFE_OVER); // I2
    if (h->membership.life != LIFE_SERVING && h->membership.life != LIFE_PARTING) {
        ASSERT(h->to_flush || (h->actors.table.count == 0 && h->txns.participant.part_count == 0));
        return;
    }
    for (uint32_t c = 0; c < h->actors.cell_count; c++) {
        ASSERT(h->cells.state[c].mine == host_owns(h, c));
        mine += h->cells.state[c].mine ? 1 : 0;
        count += check_cell(h, c, &tally);
    }
    ASSERT(mine == h->cells.mine_count);
    ASSERT(count == h->actors.table.count);
    ASSERT(tally.live == h->work.live && tally.retiring == h->work.retiring);
    ASSERT(tally.activating == h->work.activating);
    ASSERT(tally.tasks == h->work.tasks && tally.requests == h->work.running);
    forwards_check(h);
}

void host_stats(const struct host *h, struct host_stats *out)
{
    enum { PERMILLE = 1000 };
    const struct view_member *me = view_member(&h->topology.view, h->membership.slot);

    *out = (struct host_stats){
        .version = h->topology.view.ring.version,
        .digest = {h->topology.view.ring.digest[0], h->topology.view.ring.digest[1]},
        .incarnation = h->membership.incarnation,
        .actors = h->actors.table.count,
        .held_total = h->txns.held_total,
        .hold_us_max = h->txns.hold_us_max,
        .images_ahead = h->txns.ahead.sent,
        .images_stood = h->txns.ahead.stood,
        .executed = h->work.executed,
        .forwarded = h->requests.forwarded,
        .attached = h->requests.attached,
        .answered_again = h->requests.answered_again,
        .answers_lost = h->requests.answers_lost,
        .refused_cold = h->requests.refused_cold,
        .refused_quarantine = h->quarantine.refused,
        .refused_deadlock = h->requests.refused_deadlock,
        .live = h->work.live,
        .turns = h->work.turns,
        .retired_total = h->work.retired_total,
        .failed_total = h->work.failed_total,
        .deposed_total = h->work.deposed_total,
        .doubles_total = h->cells.doubles_total,
        .failing = fail_waiting(h),
        .woken = h->autostart.woken,
        .wake_waiting = h->autostart.count,
        .wake_dropped = h->autostart.wake_dropped,
        .alarms_started = h->alarms.started,
        .alarms_lag_us = h->alarms.lag_us,
        .remember_waiting = h->remember.count,
        .remember_refused = h->remember.refused,
        .remember_unsure = h->remember.unsure_total,
        .remember_dropped = h->remember.dropped,
        .waiting = h->requests.room.count,
        .waiting_size = h->requests.room.size,
        .late_answers = h->forwards.asker.late,
        .put_off_total = h->backpressure.put_off_total,
        .streams = h->streams.servers.count,
        .streams_size = servers_size(&h->streams.servers),
        .full_total = h->backpressure.full_total,
        .activating = h->work.activating,
        .cold = h->backpressure.cold_count,
        .mailbox_waiting = h->actors.waiting,
        .mailbox_deepest = times_deepest(&h->times),
        .share_permille = h->actors.cell_count == 0
                              ? 0
                              : (uint64_t)h->cells.mine_count * PERMILLE / h->actors.cell_count,
        .answers = h->orders.saved_count,
        .answers_size = h->orders.large_size,
        .serving = h->membership.life == LIFE_SERVING || h->membership.life == LIFE_PARTING,
        .draining = me != NULL && me->leaving,
    };
    memcpy(out->dropped, h->requests.dropped, sizeof out->dropped);
    memcpy(out->streams_dropped, h->streams.dropped, sizeof out->streams_dropped);
    memcpy(out->holds, h->txns.holds, sizeof out->holds);
    out->takeovers = h->topology.takeovers;
    memcpy(out->misuses, h->links.misuses, sizeof out->misuses);
    memcpy(out->images_dropped, h->txns.images_dropped, sizeof out->images_dropped);
    lease_policy_stats(h, out);
    for (size_t i = 0; i < h->txns.participant.part_count; i++) {
        out->held += hold_of(h->txns.participant.part[i])->held.count;
    }
}

const struct latencies *host_latencies(const struct host *h)
{
    return &h->times.all;
}

void host_served(struct host *h, uint64_t now_us)
{
    times_end_batch(&h->times, now_us > h->now_us ? now_us - h->now_us : 0);
}

const struct view *host_view(const struct host *h)
{
    return &h->topology.view;
}

const char *host_owner(const struct host *h, uint16_t kind, struct bytes id, bool *hosts)
{
    const struct view *view = &h->topology.view;
    const struct view_member *owner =
        host_incarnation(h) == 0 ? NULL
                                 : view_member(view, ring_hit_node(view_lookup(view, kind, id)));

    *hosts = owner != NULL && (owner->kinds.count == 0 || ring_kinds_have(&owner->kinds, kind));
    return owner == NULL ? NULL : owner->name;
}

uint64_t host_incarnation(const struct host *h)
{
    return h->membership.incarnation;
}

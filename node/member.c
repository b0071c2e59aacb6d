/* SPDX-License-Identifier: Apache-2.0
 *
 * Membership: registration, renewal, leaving; the configuration and its
 * adoption; links to other nodes. PROTOCOL §4.1, holes 1, 2, 6, 53, 54, 59.
 */
#include "node/always.h"
#include "node/inside.h"
#include "node/isolate.h"

#include "base/assert.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/mutant.h"
#include "wire/control.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MS = 1000, EX_TEMPFAIL_CODE = 75, FETCH_AGAIN_MS = 50 };

void host_tell(struct host *h, int coordinator, Rh__Control *c)
{
    struct buffer *bytes = &h->out->bytes;
    const size_t at = bytes->size;

    if (coordinator < 0) {
        return;
    }
    c->era = h->era;
    c->source_incarnation = h->incarnation;
    c->version = h->view.ring.version;
    control_put(bytes, c);
    struct host_effect *e = host_emit(h, HOST_SEND_COORDINATOR);
    e->coordinator = coordinator;
    e->at = at;
    e->size = bytes->size - at;
}

bool host_owns(const struct host *h, uint32_t cell)
{
    return ring_hit_node(h->view.ring.cell[cell]) == h->slot;
}

size_t host_vnodes(const struct host *h)
{
    return h->slot == 0 ? 0 : ring_owned_count(&h->view.ring, h->slot);
}

/* ---- fetching the configuration ---- */

/* The leader, or when it does not answer, the next coordinator in turn. */
static int whom_to_ask(const struct host *h)
{
    const int leader = leader_of(h);

    if (leader >= 0 && h->fetch_turn % 2 == 0) {
        return leader;
    }
    for (uint32_t i = 0; i < FINDER_MAX; i++) {
        const uint32_t at = (h->fetch_turn / 2 + i) % FINDER_MAX;

        if (h->coordinator_up[at]) {
            return (int)at;
        }
    }
    return -1;
}

static bool needs_config(const struct host *h)
{
    return (h->life != LIFE_JOINING || mutant(M_RESTART)) && h->life != LIFE_OVER &&
           (h->fetch_all || h->want_version > h->view.ring.version);
}

static void fetch(struct host *h)
{
    Rh__Control c = RH__CONTROL__INIT;
    Rh__GetConfig get = RH__GET_CONFIG__INIT;

    if (!needs_config(h) || h->now_us < h->fetch_us) {
        return;
    }
    h->fetch_us = h->now_us + (uint64_t)h->config.resend_ms * MS;
    get.have_version = h->fetch_all ? 0 : h->view.ring.version;
    get.digest0 = h->view.ring.digest[0];
    get.digest1 = h->view.ring.digest[1];
    c.body_case = RH__CONTROL__BODY_GET_CONFIG;
    c.get_config = &get;
    host_tell(h, whom_to_ask(h), &c);
    h->fetch_turn++;
}

void host_fetch_all(struct host *h)
{
    h->fetch_all = true;
    fetch(h);
}

void host_want_version(struct host *h, uint64_t version)
{
    if (version > h->want_version) {
        h->want_version = version;
    }
    fetch(h);
}

/* A role, a singleton or a set of daemons is new: the ring has more cells. */
static void fit_cells(struct host *h)
{
    const uint32_t before = h->actors.cell_count;
    const uint32_t now = h->view.ring.cell_count;

    if (h->place != NULL && now > before) {
        actors_grow(&h->actors, now);
        h->place = mem_resize(h->place, now * sizeof *h->place);
        memset(h->place + before, 0, (now - before) * sizeof *h->place);
    }
}

enum view_result host_take_delta(struct host *h, const Rh__Delta *delta)
{
    const enum view_result result = view_apply(&h->view, delta);

    switch (result) {
    case VIEW_APPLIED:
        fit_cells(h);
        txn_note_committed(h, delta);
        if (delta->n_released > 0) {
            isolate_released(h);
        }
        break;
    case VIEW_OLD:
        break;
    case VIEW_DIFFERS:
        log_error("node", "delta_differs", "version=%" PRIu64, delta->version);
        h->fetch_all = true;
        break;
    case VIEW_GAP:
        break;
    }
    return result;
}

/* Somebody may wait for a version that was heard of only from a peer. */
static bool is_waited_for(const struct host *h)
{
    bool waited = h->waitver.count > 0 || h->parked_count > 0;

    for (size_t i = 0; i < h->participant.part_count; i++) {
        waited = waited || h->participant.part[i]->over;
    }
    return waited;
}

static bool load(struct host *h, const Rh__Config *config)
{
    const bool same = config->version == h->view.ring.version;
    const enum view_result result = view_load(&h->view, config, h->fetch_all && same);

    if (result == VIEW_APPLIED) {
        fit_cells(h);
        isolate_released(h); // perhaps
        h->fetch_all = false;
    } else if (result == VIEW_DIFFERS) {
        log_error("node", "config_broken", "version=%" PRIu64, config->version);
    }
    return result == VIEW_APPLIED;
}

static void on_config(struct host *h, const Rh__ConfigAnswer *answer)
{
    bool changed = false;

    if (answer->config != NULL && answer->config->ring.len > 0) {
        changed = load(h, answer->config);
    }
    for (size_t i = 0; i < answer->n_deltas; i++) {
        changed = host_take_delta(h, answer->deltas[i]) == VIEW_APPLIED || changed;
    }
    h->fetch_turn = 0;
    h->fetch_us = h->now_us + (changed ? 0 : (uint64_t)FETCH_AGAIN_MS * MS);
    if (!changed && answer->version >= h->view.ring.version) {
        h->fetch_all = false; // what I have is what they have
    }
    if (changed) {
        host_adopt(h);
    } else if (!is_waited_for(h)) {
        h->want_version = 0;
    }
}

/* ---- adoption ---- */

/* Of the segment that the kind is bound to. */
static uint32_t first_cell(const struct ring *r, uint16_t kind)
{
    const struct ring_segment *s = ring_segment_of_kind(r, kind);

    return s == NULL ? 0 : s->from;
}

/* Cells that a change may have given to another, or to me. */
struct span {
    uint32_t from;
    uint32_t to; /* not of it */
};

/* Who gained and lost which cells? True: I lost some. */
static bool mark_places(struct host *h, struct span at)
{
    bool lost = false;

    for (uint32_t c = at.from; c < at.to; c++) {
        const bool mine = host_owns(h, c);

        if (h->place[c].mine && !mine) {
            h->place[c].gave_us = h->now_us;
            lost = true;
        }
        h->place[c].mine = mine;
    }
    return lost;
}

static void look_if_nothing_is_left(struct host *h)
{
    uint32_t c = 0;

    while (c < h->actors.cell_count && !h->place[c].mine) {
        c++;
    }
    if (c == h->actors.cell_count) {
        h->lost_version = h->view.ring.version;
        h->lost_us = h->now_us;
    }
}

/* I4: nothing lives in cells that are not mine. */
static bool lives_elsewhere(const struct host *h, struct span at)
{
    for (uint32_t c = at.from; c < at.to; c++) {
        if (!h->place[c].mine && cell_first(&h->actors, c) != NULL) {
            return true;
        }
    }
    return false;
}

/* The changed cells, in at most `delta->n_ops` spans, which are owned; or in one, of all cells.
 * `delta` is the change from the version that the places are marked by, or NULL. */
static struct span *changed_cells(const struct host *h, const Rh__Delta *delta, size_t *count)
{
    const size_t ops = delta == NULL ? 0 : delta->n_ops;
    struct span *span = mem_new(ops + 1, sizeof *span);

    *count = 0;
    for (size_t i = 0; i < ops; i++) {
        const struct ring_vnode *v = ring_find(&h->view.ring, delta->ops[i]->vnode);

        if (delta->ops[i]->kind != RING_MOVE || v == NULL) {
            *count = 0;
            break;
        }
        span[(*count)++] = (struct span){v->from, ring_end(&h->view.ring, v)};
    }
    if (*count == 0) {
        span[(*count)++] = (struct span){0, h->actors.cell_count};
    }
    return span;
}

static void sync_dials(struct host *h)
{
    size_t kept = 0;

    for (size_t i = 0; i < h->dial_count; i++) {
        const struct view_member *m = view_member(&h->view, h->dial[i].slot);

        if (m != NULL && strcmp(m->address, h->dial[i].address) == 0) {
            h->dial[kept++] = h->dial[i];
        } else {
            host_emit(h, HOST_DISCONNECT)->slot = h->dial[i].slot;
        }
    }
    h->dial_count = kept;
}

/* What lives here lives where the ring says. An actor's cell is for life: were its kind bound to
 * other cells now, the fleet would look for it elsewhere. */
static const char *misfit(const struct host *h)
{
    if (h->view.ring.grid != h->actors.grid || h->view.ring.cell_count < h->actors.cell_count) {
        return "the ring has another grid";
    }
    for (size_t i = 0; i < h->config.kind_count; i++) {
        if (first_cell(&h->view.ring, h->kind[i].kind) != h->kind[i].first_cell) {
            return "a kind that it hosts was bound to another role";
        }
    }
    return NULL;
}

/* It said goodbye, and was given vnodes before anybody heard: they are not let go of like that. */
static void stay_if_it_owns(struct host *h)
{
    if (h->life == LIFE_PARTING && ring_owned_count(&h->view.ring, h->slot) > 0) {
        log_info("node", "stays", "why=\"it was given vnodes as it left\"");
        h->life = LIFE_SERVING;
        h->may_leave = false;
    }
}

/* `delta`: what changed since the configuration that was adopted last; NULL = anything. */
static void adopt(struct host *h, const Rh__Delta *delta)
{
    const struct view_member *me = view_member(&h->view, h->slot);
    struct span *span = NULL;
    size_t count = 0;
    bool lost = false;
    bool strays = false;

    ASSERT(h->view.ring.version >= h->checked_version); // I2
    h->checked_version = h->view.ring.version;
    h->ahead_version = 0;
    if (me == NULL || me->incarnation != h->incarnation) {
        const bool parting = h->life == LIFE_PARTING;

        host_stop(h, parting ? 0 : EX_TEMPFAIL_CODE, parting ? "left" : "not a member any more");
        return;
    }
    if (misfit(h) != NULL) {
        host_stop(h, EX_TEMPFAIL_CODE, misfit(h));
        return;
    }
    span = changed_cells(h, delta, &count);
    for (size_t i = 0; i < count; i++) {
        lost = mark_places(h, span[i]) || lost;
    }
    h->marked_version = h->view.ring.version;
    stay_if_it_owns(h);
    if (lost) {
        look_if_nothing_is_left(h);
    }
    sync_dials(h);
    isolate_adopt(h);
    txn_adopt(h);
    isolate_adopt(h); // those that a hold kept
    wake_adopt(h);
    always_adopt(h);
    for (size_t i = 0; i < count; i++) {
        strays = strays || lives_elsewhere(h, span[i]);
    }
    mem_free(span);
    if (strays) {
        log_error("node", "live_actor_in_lost_cells", "version=%" PRIu64, h->view.ring.version);
        host_stop(h, EX_TEMPFAIL_CODE, "a configuration took cells with live actors");
        return;
    }
    admit_all(h, &h->waitver);
    admit_all(h, &h->lonely);
}

void host_adopt(struct host *h)
{
    adopt(h, NULL);
}

void host_adopt_delta(struct host *h, const Rh__Delta *delta, uint64_t before)
{
    adopt(h, h->marked_version == before ? delta : NULL);
}

/* ---- registration ---- */

/* What it hosts, to be told; false: nothing is told. Takes kinds that have names. */
static bool fill_kinds(const struct host_config *config, Rh__Kind *kind, Rh__Kind **list)
{
    for (size_t i = 0; i < config->kind_count; i++) {
        const struct host_kind *k = &config->kinds[i];

        if (k->name == NULL) {
            return false;
        }
        kind[i] = (Rh__Kind)RH__KIND__INIT;
        kind[i].number = k->number;
        kind[i].name = proto_text(k->name);
        kind[i].placement = k->placement;
        kind[i].daemons = k->daemons;
        list[i] = &kind[i];
    }
    return true;
}

static void send_register(struct host *h)
{
    const struct host_config *config = &h->config;
    Rh__Control c = RH__CONTROL__INIT;
    Rh__Register r = RH__REGISTER__INIT;
    Rh__Kind *kind = mem_new(config->kind_count, sizeof *kind);
    Rh__Kind **list = mem_new(config->kind_count, sizeof(Rh__Kind *));
    Rh__Actor *actor = mem_new(config->suspect_count, sizeof *actor);
    Rh__Actor **suspects = mem_new(config->suspect_count, sizeof(Rh__Actor *));

    r.name = proto_text(config->name);
    r.address = proto_text(config->address);
    r.boot_id = proto_bytes(bytes_of(config->boot_id, sizeof config->boot_id));
    r.data_uuid = proto_bytes(bytes_of(config->data_uuid, sizeof config->data_uuid));
    r.nonce = h->nonce;
    r.lock_held = true;
    r.weight = config->weight;
    r.zone = proto_text(config->zone);
    r.role = proto_text(config->role);
    if (fill_kinds(config, kind, list)) {
        r.kinds = list;
        r.n_kinds = config->kind_count;
    }
    isolate_tell(h, &r, actor, suspects);
    r.disk_era = h->disk.era;
    r.disk_floor = h->disk.floor;
    r.disk_seen = h->disk.seen;
    r.disk_active = h->disk.active;
    r.n_disk_active = h->disk.active_count;
    c.body_case = RH__CONTROL__BODY_REGISTER_;
    c.register_ = &r;
    host_tell(h, leader_of(h), &c);
    mem_free(kind);
    mem_free(list);
    mem_free(actor);
    mem_free(suspects);
    h->register_us = h->now_us + (uint64_t)h->register_ms * MS;
    h->register_ms = h->register_ms * 2 < REGISTER_LAST_MS ? h->register_ms * 2 : REGISTER_LAST_MS;
}

static void register_now(struct host *h)
{
    h->register_ms = REGISTER_FIRST_MS;
    h->register_us = h->now_us;
}

/* Everything that depends on the key and the grid of the cluster. */
static void lay_out(struct host *h)
{
    for (size_t i = 0; i < h->config.kind_count; i++) {
        h->kind[i].kind = h->config.kinds[i].number;
        h->kind[i].key = ring_key_of_kind(h->view.key, h->kind[i].kind);
        h->kind[i].first_cell = first_cell(&h->view.ring, h->kind[i].kind);
        idle_init(&h->kind[i].idle, &h->actors, h->config.kinds[i].idle_ms, h->now_us);
    }
    actors_set_grid(&h->actors, h->view.ring.grid, h->view.ring.cell_count);
    mem_free(h->place);
    h->place = mem_new(h->actors.cell_count, sizeof *h->place);
}

static void serve(struct host *h)
{
    struct host_effect *e = NULL;

    h->life = LIFE_SERVING;
    h->checked_version = h->view.ring.version;
    h->lost_version = 0;
    h->lost_us = h->now_us;
    h->renew_us = h->now_us;
    h->want_version = 0;
    h->may_leave = false;
    lay_out(h);
    (void)mark_places(h, (struct span){0, h->actors.cell_count});
    h->marked_version = h->view.ring.version;
    e = host_emit(h, HOST_REGISTERED);
    e->incarnation = h->incarnation;
    log_info("node",
             "registered",
             "incarnation=%" PRIu64 " slot=%u version=%" PRIu64,
             h->incarnation,
             h->slot,
             h->view.ring.version);
    wake_adopt(h);
    always_adopt(h);
}

static void say_went_back(uint64_t era, uint64_t seen)
{
    log_error("node",
              "database_went_back",
              "era=%" PRIu64 " seen=%" PRIu64
              " remedy=\"stop the coordinators and restore again: ringhold recover restore ... "
              "--era-above %" PRIu64 " (docs/recovery.md#went-back)\"",
              era,
              seen,
              seen);
}

static void on_reg_ok(struct host *h, const Rh__RegOk *ok)
{
    if (h->life != LIFE_JOINING || ok->nonce != h->nonce || ok->config == NULL) {
        return;
    }
    if (ok->config->era < h->disk.era) {
        say_went_back(ok->config->era, h->disk.era);
        host_stop(h, 1, "the database went back to an older era");
        return;
    }
    if (view_load(&h->view, ok->config, true) != VIEW_APPLIED) {
        log_error("node", "config_broken", "version=%" PRIu64, ok->config->version);
        return;
    }
    const struct view_member *me = view_member(&h->view, (uint16_t)ok->slot);
    if (me == NULL || me->incarnation != ok->incarnation) {
        log_error("node", "registration_does_not_fit", "slot=%u", ok->slot);
        return;
    }
    h->slot = (uint16_t)ok->slot;
    h->incarnation = ok->incarnation;
    h->era = ok->config->era;
    participant_reset(&h->participant, ok->floor);
    tenure_begin(h, ok->lease_us);
    h->disk.era = h->era;
    h->disk.floor = ok->floor > h->disk.floor ? ok->floor : h->disk.floor;
    h->disk.active_count = 0;
    (void)host_persist(h);
    serve(h);
}

static void on_reg_refused(struct host *h, const Rh__RegRefused *refused)
{
    if (h->life != LIFE_JOINING) {
        return;
    }
    if (refused->fatal) {
        log_error("node", "registration_refused", "reason=\"%s\"", refused->reason);
        host_stop(h, 1, "registration refused");
        return;
    }
    log_warn("node", "registration_put_off", "reason=\"%s\"", refused->reason);
    h->register_us = h->now_us + (uint64_t)refused->retry_ms * MS;
}

/* The planted bug of hole 1: it finds itself in the ring and serves. */
static void serve_unregistered(struct host *h, const Rh__ConfigAnswer *answer)
{
    const struct view_member *me = NULL;

    if (answer->config == NULL || view_load(&h->view, answer->config, true) != VIEW_APPLIED) {
        return;
    }
    me = view_member_named(&h->view, h->config.name);
    if (me != NULL) {
        h->slot = me->slot;
        h->incarnation = me->incarnation;
        h->era = h->view.era;
        participant_reset(&h->participant, h->disk.floor);
        serve(h);
    }
}

/* Other era: all I know is void (hole 53). */
static void start_over(struct host *h)
{
    log_warn("node", "other_era", "era=%" PRIu64, h->era);
    tenure_end(h, HOST_DROP_ERA);
    host_drop_all(h, DISCARD_FENCED);
    h->life = LIFE_JOINING;
    h->incarnation = 0;
    h->nonce = table_mix(h->nonce + 1);
    register_now(h);
}

/* ---- renewal and leaving ---- */

static void tell_lease(Rh__Renew *r, const struct host_figures *f)
{
    r->lease_us = f->lease_margin_us;
    r->lease_least_us = f->lease_margin_min_us;
    r->lease_gated = f->lease_gated;
    r->leaseless_total = f->leaseless_total;
    for (size_t i = 0; i < HOST_DROP_COUNT; i++) {
        r->gate_dropped += f->gate_dropped[i];
    }
}

static void send_renew(struct host *h)
{
    Rh__Control c = RH__CONTROL__INIT;
    Rh__Renew r = RH__RENEW__INIT;
    struct host_figures f;

    host_figures(h, &f);
    r.seq = ++h->renew_seq;
    r.actors = f.live;
    r.held = f.held;
    r.version = f.version;
    r.digest0 = f.digest[0];
    r.digest1 = f.digest[1];
    r.held_total = f.held_total;
    r.hold_us_max = f.hold_us_max;
    r.executed = f.executed;
    r.forwarded = f.forwarded;
    r.refused_quarantine = f.refused_quarantine;
    r.stopping = h->stopping;
    tell_lease(&r, &f);
    c.body_case = RH__CONTROL__BODY_RENEW;
    c.renew = &r;
    lease_sent(&h->lease, r.seq, h->now_us, h->wall_us);
    host_tell(h, leader_of(h), &c);
    h->renew_us = h->now_us + tenure_renew_every_us(h);
}

void member_leave(struct host *h)
{
    h->stopping = true;
    if (h->life == LIFE_SERVING) {
        send_renew(h);
    } else if (h->life == LIFE_JOINING && h->incarnation == 0) {
        host_stop(h, 0, "left before it was registered");
    }
}

static bool gateways_know(const struct host *h)
{
    const uint64_t linger_us = (uint64_t)h->config.linger_ms * MS;

    if (h->lost_version == 0 || h->now_us - h->lost_us >= linger_us) {
        return true;
    }
    for (struct list_link *l = list_front(&h->neighbours.all); l;
         l = list_next(&h->neighbours.all, l)) {
        const struct neighbour *p = CONTAINER_OF(l, struct neighbour, all);

        // What I passed on may be answered by way of me. A node that tells what it adopted asks
        // for its actors, as a gateway for its clients.
        if ((p->role == ROLE_GATEWAY || p->adopted > 0) &&
            (p->adopted < h->lost_version || p->awaits)) {
            return false;
        }
    }
    return true;
}

static void leave_when_ready(struct host *h)
{
    Rh__Control c = RH__CONTROL__INIT;
    Rh__Bye bye = RH__BYE__INIT;

    if (h->life == LIFE_SERVING && h->may_leave && h->participant.part_count == 0 &&
        h->parked_count == 0 && h->room.count == 0 && h->running == 0 &&
        ring_owned_count(&h->view.ring, h->slot) == 0 && gateways_know(h)) {
        log_info("node", "leaving", "version=%" PRIu64, h->view.ring.version);
        h->life = LIFE_PARTING;
        h->bye_us = h->now_us;
        h->bye_end_us = h->now_us + (uint64_t)BYE_WAIT_MS * MS;
    }
    if (h->life == LIFE_PARTING && h->now_us >= h->bye_end_us) {
        host_stop(h, 0, "left");
    } else if (h->life == LIFE_PARTING && h->now_us >= h->bye_us) {
        c.body_case = RH__CONTROL__BODY_BYE;
        c.bye = &bye;
        host_tell(h, leader_of(h), &c);
        h->bye_us = h->now_us + (uint64_t)h->config.resend_ms * MS;
    }
}

static void on_grant(struct host *h, const Rh__Grant *grant)
{
    if (h->life == LIFE_SERVING) {
        tenure_granted(h, grant);
        if (grant->last && !h->told_last) {
            // It serves on until another node comes, or until it is killed with its actors.
            log_warn("node", "last_node", "nobody takes its actors: they end with the process");
        }
        h->told_last = grant->last != 0;
        h->may_leave = grant->leave;
        host_want_version(h, grant->version);
        leave_when_ready(h);
    }
}

static void on_barred(struct host *h, const Rh__Barred *barred)
{
    if (h->life == LIFE_PARTING) {
        host_stop(h, 0, "left");
    } else if (h->life == LIFE_SERVING) {
        log_error("node", "barred", "why=\"%s\"", barred->why);
        tenure_end(h, HOST_DROP_BARRED);
        host_stop(h, EX_TEMPFAIL_CODE, "barred");
    }
}

/* ---- messages ---- */

static void on_leader(struct host *h, int coordinator, const Rh__Leader *leader)
{
    const int before = leader_of(h);

    finder_on_leader(&h->finder, (size_t)coordinator, leader->leading != 0, leader->term);
    if (leader_of(h) == before || leader_of(h) < 0) {
        return;
    }
    if (h->life == LIFE_JOINING) {
        register_now(h);
    } else {
        h->renew_us = h->now_us;
        h->poll_us = h->now_us;
    }
}

/* False: it is not for me. */
static bool is_for_me(struct host *h, const Rh__Control *c)
{
    if (c->target_incarnation != 0 && c->target_incarnation != h->incarnation) {
        return false; // hole 34
    }
    if (c->era != 0 && h->life != LIFE_JOINING && c->era > h->era) {
        if (mutant(M_ERAMSG)) {
            h->era = c->era; // follow it in place
            return true;
        }
        start_over(h);
    }
    const uint64_t era = h->era > h->disk.era ? h->era : h->disk.era;
    if (c->era != 0 && c->era < era && c->body_case == RH__CONTROL__BODY_LEADER &&
        c->leader->leading != 0) {
        say_went_back(c->era, era); // hole 54: rather no leader than one of the past
    }
    return c->era == 0 || c->era >= era || c->body_case == RH__CONTROL__BODY_REG_REFUSED ||
           c->body_case == RH__CONTROL__BODY_REG_OK;
}

static void on_joining(struct host *h, int coordinator, const Rh__Control *c)
{
    if (c->body_case == RH__CONTROL__BODY_LEADER) {
        on_leader(h, coordinator, c->leader);
    } else if (c->body_case == RH__CONTROL__BODY_NOT_LEADER) {
        finder_on_not_leader(&h->finder, (size_t)coordinator);
    } else if (c->body_case == RH__CONTROL__BODY_REG_OK) {
        on_reg_ok(h, c->reg_ok);
    } else if (c->body_case == RH__CONTROL__BODY_REG_REFUSED) {
        on_reg_refused(h, c->reg_refused);
    } else if (c->body_case == RH__CONTROL__BODY_CONFIG && mutant(M_RESTART)) {
        serve_unregistered(h, c->config);
    }
}

void member_on_control(struct host *h, int coordinator, const Rh__Control *c)
{
    if (coordinator < 0 || coordinator >= FINDER_MAX) {
        return;
    }
    if (c->body_case == RH__CONTROL__BODY_INSPECT) {
        host_inspect(h, coordinator, c->inspect); // whatever the era: it changes nothing
        return;
    }
    if (!is_for_me(h, c)) {
        return;
    }
    if (h->life == LIFE_JOINING) {
        on_joining(h, coordinator, c);
        return;
    }
    // A message of any other kind is not for a node: an old or a foreign peer.
    if (c->body_case == RH__CONTROL__BODY_LEADER) {
        on_leader(h, coordinator, c->leader);
    } else if (c->body_case == RH__CONTROL__BODY_NOT_LEADER) {
        finder_on_not_leader(&h->finder, (size_t)coordinator);
    } else if (c->body_case == RH__CONTROL__BODY_GRANT) {
        on_grant(h, c->grant);
    } else if (c->body_case == RH__CONTROL__BODY_BARRED) {
        on_barred(h, c->barred);
    } else if (c->body_case == RH__CONTROL__BODY_CONFIG) {
        on_config(h, c->config);
    } else if (c->body_case == RH__CONTROL__BODY_PREPARE) {
        txn_on_prepare(h, coordinator, c->prepare);
    } else if (c->body_case == RH__CONTROL__BODY_COMMIT) {
        txn_on_commit(h, c->commit);
    } else if (c->body_case == RH__CONTROL__BODY_CANCEL) {
        txn_on_cancel(h, c->cancel, c->version);
    } else if (c->body_case == RH__CONTROL__BODY_POLL_ANSWER) {
        txn_on_poll_answer(h, c->poll_answer);
    } else if (c->body_case == RH__CONTROL__BODY_MEND) {
        host_mend(h, c->mend);
    }
}

void member_tick(struct host *h)
{
    if (h->life == LIFE_JOINING) {
        if (h->now_us >= h->register_us && leader_of(h) >= 0) {
            send_register(h);
        }
        if (mutant(M_RESTART)) {
            host_want_version(h, 1);
        }
        return;
    }
    if (h->life == LIFE_SERVING && h->now_us >= h->renew_us && leader_of(h) >= 0) {
        send_renew(h);
    }
    fetch(h);
    leave_when_ready(h);
}

/* ---- links to other nodes ---- */

static void dial(struct host *h, const struct view_member *m)
{
    struct host_effect *e = host_emit(h, HOST_CONNECT);

    h->dial = mem_resize(h->dial, (h->dial_count + 1) * sizeof *h->dial);
    struct dial *d = &h->dial[h->dial_count++];
    *d = (struct dial){.slot = m->slot, .used_us = h->now_us};
    (void)snprintf(d->address, sizeof d->address, "%s", m->address);
    e->slot = m->slot;
    host_emit_bytes(h, e, bytes_of(m->address, strlen(m->address) + 1));
}

uint64_t host_link_to(struct host *h, uint16_t slot, uint64_t incarnation)
{
    const struct neighbour *peer = neighbour_by_process(&h->neighbours, ROLE_NODE, incarnation);
    const struct view_member *m = view_member(&h->view, slot);

    for (size_t i = 0; i < h->dial_count; i++) {
        if (h->dial[i].slot == slot) {
            h->dial[i].used_us = h->now_us;
            m = NULL; // dialled already
        }
    }
    if (peer == NULL && m != NULL) {
        dial(h, m);
    }
    return peer == NULL ? 0 : peer->link;
}

void host_dials_tick(struct host *h)
{
    const uint64_t linger_us = (uint64_t)h->config.linger_ms * MS;
    size_t kept = 0;

    if (h->participant.part_count > 0 || h->lonely.count > 0) {
        return;
    }
    for (size_t i = 0; i < h->dial_count; i++) {
        if (h->now_us - h->dial[i].used_us < linger_us) {
            h->dial[kept++] = h->dial[i];
        } else {
            host_emit(h, HOST_DISCONNECT)->slot = h->dial[i].slot;
        }
    }
    h->dial_count = kept;
}

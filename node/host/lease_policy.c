/* SPDX-License-Identifier: Apache-2.0
 *
 * The host under its lease: what it may do now, what is put off, what ends.
 * Specification §4.1, §5.3 step 4; I1, I8; holes 26, 28, 30, 53.
 */
#include "node/host/inside.h"

#include "base/assert.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/mutant.h"
#include "wire/frame.h"

#include <inttypes.h>
#include <string.h>

enum { MS = 1000 };

void lease_policy_init(struct lease_policy *t, const struct host_config *config)
{
    lease_init(&t->lease, config->serve);
    gate_init(&t->gate, config->gate_size_max);
    queue_init(&t->leaseless);
    list_init(&t->leaseless_actors);
}

/* ---- limits ---- */

bool host_effect_is_output(const struct host_effect *e)
{
    // Coordinators may hear everything: what they are told changes nothing that a fence has not
    // settled (hole 31), and without a renewal no lease would ever come back.
    return e->type == HOST_SEND_PEER;
}

bool host_effect_is_task(const struct host_effect *e)
{
    return e->type == HOST_SUBMIT && verb_is_task(e->submission.verb);
}

uint64_t host_gate_us(const struct host *h)
{
    return mutant(M_ENDCHK) ? UINT64_MAX : lease_gate_us(&h->lease_policy.lease);
}

uint64_t host_hard_end_us(const struct host *h)
{
    return mutant(M_RUNOVER) ? UINT64_MAX : lease_kill_us(&h->lease_policy.lease);
}

uint64_t host_verb_limit_us(const struct host *h, enum verb verb)
{
    switch ((int)verb) {
    case VERB_ACTIVATE:
    case VERB_RUN:
    case VERB_TURN:
        return lease_soft_us(&h->lease_policy.lease);
    case VERB_EXPORT: // it calls the actor, too, and so do these
    case VERB_COPY:
    case VERB_UNFREEZE:
    case VERB_RETIRE:
        return host_gate_us(h);
    case VERB_DISCARD:
        return UINT64_MAX;
    default: // the host submits no other
        UNREACHABLE();
    }
}

uint64_t host_limit_us(const struct host *h, const struct host_effect *e)
{
    switch (e->type) {
    case HOST_SUBMIT:
        return host_verb_limit_us(h, e->submission.verb);
    case HOST_SEND_PEER:
        return host_gate_us(h);
    case HOST_SEND_COORDINATOR:
    case HOST_CONNECT:
    case HOST_DISCONNECT:
    case HOST_DROP_PEER:
    case HOST_PERSIST:
    case HOST_REGISTERED:
    case HOST_FORMER:
    case HOST_LIST:
    case HOST_DUE:
    case HOST_MAILBOX_FULL:
    case HOST_EXIT:
        return UINT64_MAX;
    }
    UNREACHABLE();
}

void host_keep(struct host *h, const struct host_effects *effects, size_t at)
{
    const struct host_effect *e = &effects->item[at];

    ASSERT(host_limit_us(h, e) != UINT64_MAX);
    if (!gate_keep(
            &h->lease_policy.gate, e, bytes_of(effects->bytes.data + e->at, e->size), h->now_us)) {
        streams_unsaid(h, e);
    }
}

size_t host_running(const struct host *h)
{
    ASSERT(h->work.tasks >= h->lease_policy.gate.tasks);
    return h->work.tasks - h->lease_policy.gate.tasks;
}

bool lease_policy_may_start(const struct host *h)
{
    return h->lease_policy.lease.state == LEASE_ACTIVE || !h->lease_policy.lease.in_force ||
           h->lease_policy.lease.serve;
}

/* ---- judging ---- */

/* Its client was told long ago that nobody ran it. */
static bool is_overdue(const struct host *h, const struct kept_effect *k)
{
    const struct actor *a = k->effect.actor;

    return k->effect.submission.verb == VERB_RUN && a->work->running.request &&
           h->now_us >= a->work->running.deadline_us && !mutant(M_KEPTLATE);
}

/* It would begin an actor that came into quarantine meanwhile. */
static bool is_poison(const struct host *h, const struct kept_effect *k)
{
    const uint8_t verb = k->effect.submission.verb;

    return k->effect.type == HOST_SUBMIT &&
           (verb == VERB_ACTIVATE || verb == VERB_RUN || verb == VERB_TURN) &&
           quarantine_holds(h, k->effect.actor);
}

/* What is passed on takes the rest of its time along, if there is any. */
static void pass_on(struct host *h, const struct kept_effect *k)
{
    struct reader in = {.at = k->data, .left = k->size};
    const uint64_t waited_ms = mutant(M_PASSEDLATE) ? 0 : (h->now_us - k->since_us) / MS;
    struct request_record r;
    const enum err error = request_get(&in, &r);

    ASSERT(error == ERR_OK && in.left == 0);
    if (waited_ms >= r.ttl_ms) {
        requests_drop(&h->requests, DROPPED_EXPIRED);
        return;
    }
    r.ttl_ms -= (uint32_t)waited_ms;
    request_put(host_record(h), &r);
    host_send_record(h, k->effect.peer, FRAME_REQUEST);
}

/* What was kept and may be done now goes before anything new. */
static void reopen(struct host *h)
{
    struct list_link *next = NULL;
    struct list overdue;
    struct list poison;

    list_init(&overdue);
    list_init(&poison);
    for (struct list_link *l = list_front(&h->lease_policy.gate.kept); l != NULL; l = next) {
        struct kept_effect *k = CONTAINER_OF(l, struct kept_effect, link);

        next = list_next(&h->lease_policy.gate.kept, l);
        if (h->now_us < host_limit_us(h, &k->effect)) {
            gate_take(&h->lease_policy.gate, k);
            if (is_overdue(h, k) || is_poison(h, k)) {
                list_push_back(is_overdue(h, k) ? &overdue : &poison, &k->link);
                continue;
            }
            if (k->effect.type == HOST_SEND_PEER && k->effect.frame_type == FRAME_REQUEST) {
                pass_on(h, k);
                mem_free(k);
                continue;
            }
            struct host_effect *e = host_emit(h, k->effect.type);

            *e = k->effect;
            e->size = 0;
            host_emit_bytes(h, e, bytes_of(k->data, k->size));
            mem_free(k);
        }
    }
    for (struct list_link *l = NULL; (l = list_pop_front(&overdue)) != NULL;) {
        struct kept_effect *k = CONTAINER_OF(l, struct kept_effect, link);

        run_expire(h, k->effect.actor);
        mem_free(k);
    }
    for (struct list_link *l = NULL; (l = list_pop_front(&poison)) != NULL;) {
        struct kept_effect *k = CONTAINER_OF(l, struct kept_effect, link);

        run_refuse(h, k->effect.actor);
        mem_free(k);
    }
}

static void note_change(struct host *h, const struct lease_verdict *v)
{
    const uint64_t margin_us = lease_margin_us(&h->lease_policy.lease, h->now_us);

    if (v->jumped) {
        log_warn("node",
                 "clock_jumped",
                 "boot time and wall time drifted apart: the node asks for its lease anew");
    }
    if (v->state == LEASE_SOFT && v->before == LEASE_ACTIVE) {
        log_warn("node", "lease_soft", "left_us=%" PRIu64 ", no new work is started", margin_us);
    } else if (v->state == LEASE_GATED && v->before != LEASE_GATED) {
        log_error("node", "lease_gated", "left_us=%" PRIu64 ", output is held back", margin_us);
    } else if (v->state == LEASE_ACTIVE && v->before == LEASE_GATED) {
        log_info("node",
                 "lease_back",
                 "kept=%zu parked=%zu",
                 h->lease_policy.gate.count,
                 h->lease_policy.leaseless.count);
    }
    if (v->jumped || (v->state != v->before && v->state != LEASE_ACTIVE)) {
        member_renew_soon(h);
    }
}

/* `serve`: what is done without a lease is the operator's choice; he is told. */
static void note_lapse(struct host *h)
{
    const bool lapsed = h->lease_policy.lease.serve && h->lease_policy.lease.in_force &&
                        h->lease_policy.lease.until_us != 0 &&
                        h->now_us >= h->lease_policy.lease.until_us;

    if (lapsed && !h->lease_policy.lapsed) {
        h->lease_policy.lapses++;
        log_error("node", "serving_without_lease", "another node may run the same actors now");
    }
    h->lease_policy.lapsed = lapsed;
}

/* Actors that want a turn, or to retire. */
static void go_on_leaseless(struct host *h)
{
    enum { AT_ONCE = 256 };
    struct list_link *link = NULL;

    for (size_t i = 0; i < AT_ONCE && lease_policy_may_start(h); i++) {
        link = list_pop_front(&h->lease_policy.leaseless_actors);
        if (link == NULL) {
            return;
        }
        actor_proceed(h, CONTAINER_OF(link, struct actor_work, leaseless)->actor);
    }
}

void lease_policy_judge(struct host *h)
{
    const struct lease_verdict v = lease_judge(&h->lease_policy.lease, h->now_us, h->wall_us);

    if (h->lease_policy.wanted && lease_policy_may_start(h)) {
        metrics_time(&h->lease_policy.leaseless_times, h->now_us - h->lease_policy.leased_us);
        h->lease_policy.wanted = false;
    }
    if (lease_policy_may_start(h)) {
        h->lease_policy.leased_us = h->now_us;
    } else if (h->lease_policy.lease.until_us > h->lease_policy.leased_us) {
        h->lease_policy.leased_us =
            h->lease_policy.lease.until_us < h->now_us ? h->lease_policy.lease.until_us : h->now_us;
    }
    note_change(h, &v);
    note_lapse(h);
    if (h->lease_policy.gate.count > 0) {
        reopen(h);
    }
    if (h->lease_policy.leaseless.count > 0 && lease_policy_may_start(h)) {
        admit_all(h, &h->lease_policy.leaseless);
    }
    go_on_leaseless(h);
}

static bool was_given(const struct actor *a, const struct completion *c)
{
    static const enum actor_state states[] = {
        [VERB_ACTIVATE] = ACTOR_ACTIVATING,
        [VERB_RUN] = ACTOR_RUNNING,
        [VERB_TURN] = ACTOR_RUNNING,
        [VERB_EXPORT] = ACTOR_EXPORTING,
        [VERB_COPY] = ACTOR_EXPORTING,
        [VERB_RETIRE] = ACTOR_RETIRING,
    };

    if (c->verb == VERB_UNFREEZE) {
        return a->live;
    }
    return verb_is_task(c->verb) && a->state == states[c->verb] &&
           a->work->running.ticket == c->ticket;
}

void lease_policy_on_returned(struct host *h, struct actor *a, const struct completion *c)
{
    struct host_effect e = {.type = HOST_SUBMIT, .actor = a};
    struct submission *s = &e.submission;
    struct bytes bytes = c->bytes;

    if (!was_given(a, c) || mutant(M_RETURNLOST)) {
        return;
    }
    s->verb = c->verb;
    s->flags = c->flags;
    s->head_size = c->head_size;
    s->ticket = a->work == NULL ? 0 : a->work->running.ticket;
    if (s->verb == VERB_RUN) {
        s->name = running_name(&a->work->running);
        s->asked = a->work->running.asked;
    }
    if (s->verb == VERB_ACTIVATE) {
        const struct image *image = actor_image(a);

        s->fence = a->fence;
        s->has_state = image != NULL && image->has_state;
        s->state_version = image != NULL ? image->state_version : 0;
        s->head_size = (uint32_t)(image != NULL ? image->bond.size : 0);
        bytes = image != NULL ? image_carried(image) : bytes_of("", 0);
    } else if (s->verb == VERB_RETIRE) {
        s->why = a->wish == WISH_ASKED  ? RETIRE_ASKED
                 : a->wish == WISH_ROOM ? RETIRE_ROOM
                                        : RETIRE_IDLE;
    }
    (void)gate_keep(&h->lease_policy.gate, &e, bytes, h->now_us);
    reopen(h); // the lease may be back by now
}

/* ---- events of the membership ---- */

void lease_policy_granted(struct host *h, const Rh__Grant *grant)
{
    if ((grant->clock_parts != 0) != (h->lease_policy.clock_parts != 0)) {
        log_warn("node",
                 grant->clock_parts != 0 ? "clock_runs_away" : "clock_back",
                 "parts_of_1000=%" PRIi32 " faster than the leader's, which says so",
                 grant->clock_parts);
    }
    h->lease_policy.clock_parts = grant->clock_parts;
    if ((grant->instead ? lease_replace : lease_grant)(
            &h->lease_policy.lease, grant->seq, grant->lease_us, h->now_us)) {
        h->lease_policy.lease_term = grant->term;
    }
    lease_policy_judge(h);
}

void lease_policy_begin(struct host *h, uint64_t lease_us)
{
    // What an older incarnation said stays unsaid.
    if (!mutant(M_ERAKEPT)) {
        gate_drop_outputs(&h->lease_policy.gate, HOST_DROP_ERA);
    }
    lease_start(&h->lease_policy.lease, lease_us);
    h->lease_policy.lease_term = 0;
    h->lease_policy.leased_us = h->now_us;
    h->lease_policy.lapsed = false;
}

void lease_policy_end(struct host *h, enum host_drop why)
{
    if (!mutant(M_ERAKEPT) || why != HOST_DROP_ERA) {
        gate_drop_outputs(&h->lease_policy.gate, why);
    }
    if (why == HOST_DROP_ERA) {
        lease_void(&h->lease_policy.lease);
    } else {
        lease_forget(&h->lease_policy.lease);
    }
}

bool lease_policy_is_alone(const struct host *h)
{
    enum { TERMS = 2 };

    return !lease_policy_may_start(h) &&
           h->now_us - h->lease_policy.leased_us >= TERMS * h->lease_policy.lease.usual_us;
}

void lease_policy_put_off(struct host *h, struct admission *in)
{
    h->lease_policy.wanted = true;
    if (in->mark.by != NULL) {
        admit_refuse(h, in, ANSWER_BUSY, BUSY_RETRY_MS);
    } else if (admit_park(h, &h->lease_policy.leaseless, in)) {
        h->lease_policy.leaseless_total++;
    }
}

void lease_policy_put_off_actor(struct host *h, struct actor *a)
{
    struct actor_work *work = actor_work(&h->actors, a);

    if (!list_linked(&work->leaseless)) {
        list_push_back(&h->lease_policy.leaseless_actors, &work->leaseless);
    }
}

void lease_policy_put_off_all(struct host *h, struct queue *q)
{
    struct waiting *w = NULL;

    while ((w = queue_pop(q)) != NULL) {
        struct admission in = admission_of(w);

        lease_policy_put_off(h, &in);
    }
}

uint64_t lease_policy_renew_every_us(const struct host *h)
{
    return lease_renew_every_us(&h->lease_policy.lease, (uint64_t)h->config.renew_ms * MS);
}

void lease_policy_stats(const struct host *h, struct host_stats *out)
{
    const struct lease *l = &h->lease_policy.lease;

    out->lease = l->state;
    out->lease_in_force = l->in_force;
    out->lease_us = l->term_us;
    out->lease_until_us = l->until_us;
    out->lease_margin_us = lease_margin_us(l, h->now_us);
    out->lease_margin_min_us = l->held ? l->margin_min_us : 0;
    out->lease_gated = l->gated;
    out->lease_jumps = l->jumps;
    out->clock_parts = h->lease_policy.clock_parts < 0 ? 0 - (uint64_t)h->lease_policy.clock_parts
                                                       : (uint64_t)h->lease_policy.clock_parts;
    out->lease_lapses = h->lease_policy.lapses;
    out->leaseless = h->lease_policy.leaseless.count;
    out->leaseless_times = h->lease_policy.leaseless_times;
    out->leaseless_total = h->lease_policy.leaseless_total;
    out->gate_kept = h->lease_policy.gate.count;
    out->gate_kept_total = h->lease_policy.gate.kept_total;
    for (size_t i = 0; i < HOST_DROP_COUNT; i++) {
        out->gate_dropped[i] = h->lease_policy.gate.dropped[i];
    }
}

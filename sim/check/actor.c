/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks lives of actors: at most one alive, no run after its end, no effect
 * lost.
 */
#include "sim/fleet.h"

/* Is `n` the owner of `e` in the newest ring? Its incarnation may be behind: a late REGISTER of its
 * former life can draw one that nobody has, which bars it but gives its vnodes to no one else. */
bool check_owns(const struct fleet *f, const struct sim_node *n, const struct entity *e)
{
    const struct view *view = &f->raft.truth.view;
    const ring_hit hit = view_lookup(view, entity_kind(e), bytes_of(e->id, e->id_size));
    const struct view_member *m = view_member(view, ring_hit_node(hit));

    const struct sim_node *twin = twin_of(f, n);

    if (twin != NULL && twin->incarnation > n->incarnation) {
        return false;
    }
    return m != NULL && m == view_member_named(view, process_says(&n->process));
}

/* After a restore the nodes of the old era go on as long as their leases last, and so do those who
 * know more than coordinators on old files: who owned what then is forgotten. */
static bool is_elder(const struct fleet *f, const struct sim_node *n)
{
    return n->incarnation != 0 &&
           (n->incarnation >> 40 < f->raft.truth.view.era || past_doubts(f, n->incarnation));
}

/* Coordinators ran on old files in its era, and it is of no era before theirs. */
static bool is_doubted(const struct fleet *f, const struct sim_node *n)
{
    return n->incarnation >> 40 >= f->raft.truth.view.era && past_doubts(f, n->incarnation);
}

/* Its process stood still when the watchdog should have looked, and goes on in this very moment: so
 * do all of them at the heal, and what the first one was about to do comes before the last one's
 * watchdog. That is seldom only here, where no time passes between them. */
static bool is_about_to_be_watched(const struct fleet *f, const struct sim_node *n)
{
    return n->watch_us != 0 && n->watch_us <= f->world.now_us;
}

/* The lease of its node is over, so it can't do anything any more: others may have it. Not if its
 * code still runs: the watchdog should have ended that. */
static void depose(struct fleet *f, struct entity *e)
{
    struct instance *i = e->live;

    if (i != NULL && f->lease_us > 0 && node_is_gated(f, i->node) &&
        (!i->running || i->node->process.gate.shut || is_about_to_be_watched(f, i->node))) {
        i->deposed = true;
        e->live = NULL;
        e->lost = true;
    }
    // Clocks beyond their bound: two may live, and only the store tells them apart.
    if (f->profile == PROFILE_CLOCKS && e->live != NULL) {
        e->live->deposed = true;
        e->live = NULL;
    }
}

/* Is what an actor without a store does judged? */
static bool judged(const struct fleet *f, const struct entity *e)
{
    return f->profile != PROFILE_CLOCKS || e->durable;
}

/* Less than it did: after a crash all that was not saved may be lost. */
static bool may_know(const struct entity *e, const struct instance *i, bool has_state)
{
    return e->lost && !e->durable &&
           (has_state ? i->list.count == 0 : ledger_list_equal(&i->list, &e->saved));
}

/* Nobody of its tag lives elsewhere. */
static void check_together(struct fleet *f, const struct instance *i)
{
    for (size_t k = 0; i->entity->tag != 0 && k < LEDGER_ENTITIES; k++) {
        struct entity *e = &f->ledger.entity[k];

        if (e->tag != i->entity->tag || e->live == NULL || e->live->node == i->node) {
            continue;
        }
        depose(f, e);
        if (e->live != NULL) {
            world_violate(&f->world,
                          "together",
                          "%s is activated on %s while %s lives on %s",
                          i->entity->id,
                          i->node->process.name,
                          e->id,
                          e->live->node->process.name);
        }
    }
}

void check_activate(struct fleet *f, struct instance *i, bool has_state)
{
    struct entity *e = i->entity;

    if (is_doubted(f, i->node)) {
        depose(f, e);
    }
    // It was given away while its process stood still: it must do nothing. So must one of the era
    // before, though a restored ring says again that its vnode is that node's. Where coordinators
    // ran on old files that node may get a lease again, and goes on unless another has it, or had
    // it since.
    if (f->lease_us > 0 && node_is_gated(f, i->node) &&
        (!check_owns(f, i->node, e) || (is_elder(f, i->node) && !is_doubted(f, i->node)) ||
         (is_doubted(f, i->node) && (e->live != NULL || e->last != i->node)))) {
        i->deposed = true;
        return;
    }
    record_life(f, HISTORY_ACTIVATE, i);
    check_together(f, i);
    depose(f, e);
    if (e->live != NULL) {
        world_violate(&f->world,
                      "overlap",
                      "%s is activated on %s while it lives on %s",
                      e->id,
                      i->node->process.name,
                      e->live->node->process.name);
    }
    if (!ledger_list_equal(&i->list, &e->history)) {
        if (f->profile != PROFILE_CLOCKS && !may_know(e, i, has_state)) {
            world_violate(&f->world,
                          "state",
                          "%s is activated on %s with %zu effects (%s), it had %zu on %s",
                          e->id,
                          i->node->process.name,
                          i->list.count,
                          has_state ? "handed over" : "afresh",
                          e->history.count,
                          e->last == NULL ? "no node" : e->last->process.name);
        }
        ledger_list_copy(&e->history, &i->list);
    }
    e->lost = false;
    e->live = i;
    e->last = i->node;
}

void check_unfreeze(struct fleet *f, struct instance *i)
{
    struct entity *e = i->entity;

    record_life(f, HISTORY_UNFREEZE, i);
    depose(f, e);
    if (e->live != NULL) {
        world_violate(&f->world,
                      "overlap",
                      "%s is unfrozen on %s while it lives on %s",
                      e->id,
                      i->node->process.name,
                      e->live->node->process.name);
    }
    // By old files the move that it was frozen for may be decided a second time (hole 54).
    const bool doubted = past_doubts(f, i->node->incarnation);
    if (doubted && !e->durable) {
        ledger_list_copy(&e->history, &i->list);
    }
    if (f->profile != PROFILE_CLOCKS && !doubted && !ledger_list_equal(&i->list, &e->history)) {
        world_violate(&f->world,
                      "state",
                      "%s is unfrozen on %s with %zu effects, it had %zu",
                      e->id,
                      i->node->process.name,
                      i->list.count,
                      e->history.count);
    }
    e->lost = false;
    e->live = i;
    e->last = i->node;
    i->frozen = false;
    histogram_add(&f->ledger.hold, f->world.now_us - i->frozen_us);
}

/* It does not live here now. What a node of the era before knows of it, the new one's have not: as
 * check_restored() has it of all that did not live then. */
static void rest(const struct fleet *f, const struct instance *i)
{
    struct entity *e = i->entity;

    e->live = e->live == i ? NULL : e->live;
    e->lost = e->lost || (is_elder(f, i->node) && e->live == NULL);
}

void check_freeze(struct fleet *f, struct instance *i)
{
    record_life(f, HISTORY_FREEZE, i);
    if (i->running || i->turns) {
        world_violate(&f->world,
                      "overlap",
                      "%s is handed over by %s while it runs request %llu",
                      i->entity->id,
                      i->node->process.name,
                      (unsigned long long)i->uid);
    }
    rest(f, i);
    i->frozen = true;
    i->frozen_us = f->world.now_us;
}

void check_discard(struct fleet *f, struct instance *i)
{
    record_life(f, HISTORY_STOP, i);
    if (i->frozen) {
        histogram_add(&f->ledger.hold, f->world.now_us - i->frozen_us);
    }
    rest(f, i);
}

/* A former life did it: it does nothing, and its run has no end. Only an idempotent one may come
 * twice; who keeps what he did would answer any other as if nothing were wrong. */
static bool ran_before(struct fleet *f, const struct instance *i, uint64_t uid)
{
    bool known = !i->entity->durable && lives_did(f, i, uid);

    for (size_t k = 0; k < i->list.count && i->entity->durable; k++) {
        known = known || i->list.uid[k] == uid;
    }
    return known;
}

void check_run_begin(struct fleet *f, struct instance *i, uint64_t uid)
{
    const struct entity *e = i->entity;
    const struct sim_ask *a = ledger_find(f, uid);

    const bool before = ran_before(f, i, uid);

    if (!before) {
        record_run(f, HISTORY_EXEC_BEGIN, i, uid);
    }
    if (a == NULL || &f->ledger.entity[a->entity] != e || a->foreign) {
        world_violate(&f->world,
                      "answer",
                      "%s runs request %llu, which was not for it",
                      e->id,
                      (unsigned long long)uid);
        return;
    }
    if (f->profile == PROFILE_CLOCKS) {
        return;
    }
    remember_check_run(f, i);
    if (before && !a->idempotent && !past_hides(f, a)) {
        world_violate(&f->world,
                      "twice",
                      "request %llu to %s, which did it, runs on %s once more",
                      (unsigned long long)uid,
                      e->id,
                      i->node->process.name);
    }
    if (i->running || e->live != i) {
        world_violate(&f->world,
                      "overlap",
                      "%s runs request %llu on %s while %s",
                      e->id,
                      (unsigned long long)uid,
                      i->node->process.name,
                      i->running ? "it runs another" : "it is frozen");
    }
    if (i->node->incarnation == 0 || !(is_elder(f, i->node) || check_owns(f, i->node, e))) {
        world_violate(&f->world,
                      "owner",
                      "%s runs on %s, which does not own it",
                      e->id,
                      i->node->process.name);
    }
}

static bool stands(const struct entity *e, uint64_t uid)
{
    for (size_t i = 0; i < e->history.count; i++) {
        if (e->history.uid[i] == uid) {
            return true;
        }
    }
    return false;
}

/* One run more. An idempotent one may run again where the first left no trace; or end at a deposed
 * owner, where it leaves none, after it ran at the next (its process stood still meanwhile). By a
 * stream it may run again wherever nobody can tell: no node remembers it (R14). */
static void run_once(struct fleet *f, const struct entity *e, uint64_t uid, bool is_void)
{
    struct sim_ask *a = ledger_find(f, uid);

    a->ran_us = f->world.now_us;
    a->ran_late = is_void ? a->ran_late : a->answered && a->code == REPLY_OK;
    // A gateway that its client left knows nothing of the answer that another one gave. What it
    // asks again after a cold take-over nobody fences there (hole 44): only what may run again
    // does.
    if (a->ran_late && !is_void && !(a->idempotent && a->resumed && !e->durable)) {
        world_violate(&f->world,
                      "twice",
                      "request %llu to %s ran after it was answered OK",
                      (unsigned long long)uid,
                      e->id);
    }
    if (++a->runs > 1 && (!a->idempotent || (!is_void && a->streamed == 0 && stands(e, uid))) &&
        !past_hides(f, a)) {
        world_violate(&f->world,
                      "twice",
                      "request %llu of session %llu to %s ran again",
                      (unsigned long long)uid,
                      (unsigned long long)a->session->number,
                      e->id);
    }
    if (a->answered && (a->code == REPLY_REJECTED || a->code == REPLY_OVERLOADED ||
                        a->code == REPLY_QUARANTINED || a->code == REPLY_DEADLOCK)) {
        world_violate(&f->world,
                      "answer",
                      "request %llu was answered REJECTED and ran",
                      (unsigned long long)uid);
    }
}

/* Its effect stands from now on. */
static void take_effect(struct fleet *f, struct entity *e, uint64_t uid)
{
    struct sim_ask *a = ledger_find(f, uid);
    uint32_t *ran = &a->session->ran[a->entity];

    // An idempotent one may have been answered before, by an owner that then was lost.
    if (a->seq <= *ran && !a->idempotent && !(a->runs > 1 && past_hides(f, a))) {
        world_violate(&f->world,
                      "order",
                      "session %llu, %s: number %u ran after %u",
                      (unsigned long long)a->session->number,
                      e->id,
                      a->seq,
                      *ran);
    }
    *ran = a->seq > *ran ? a->seq : *ran;
    ledger_list_add(&e->history, uid);
}

void check_run_end(struct fleet *f, struct instance *i, uint64_t uid)
{
    struct entity *e = i->entity;

    record_run(f, HISTORY_EXEC_END, i, uid);
    if (!judged(f, e)) {
        ledger_find(f, uid)->runs++;
        ledger_find(f, uid)->ran_us = f->world.now_us;
        ledger_find(f, uid)->ran_void = !check_owns(f, i->node, e);
        ledger_list_add(&i->list, uid);
        return;
    }
    if (e->live == i && !check_owns(f, i->node, e)) {
        depose(f, e);
    }
    if (!i->deposed && (e->live != i || !(is_elder(f, i->node) || check_owns(f, i->node, e)))) {
        world_violate(&f->world,
                      "overlap",
                      "%s still ran request %llu on %s after it was given away",
                      e->id,
                      (unsigned long long)uid,
                      i->node->process.name);
    }
    run_once(f, e, uid, i->deposed);
    if (!i->deposed) { // else what it did is void: nobody will ever hear of it
        take_effect(f, e, uid);
        ledger_list_add(&i->list, uid);
        e->lost = false; // here it is
    }
}

void check_stored(struct fleet *f, struct entity *e, uint64_t uid, struct stored by)
{
    if (by.place != e->row.count || by.fence != e->token) {
        world_violate(
            &f->world,
            "store",
            "the write of request %llu to %s, by fence %llu, knows %zu effects, there are "
            "%zu of fence %llu",
            (unsigned long long)uid,
            e->id,
            (unsigned long long)by.fence,
            by.place,
            e->row.count,
            (unsigned long long)e->token);
    }
    run_once(f, e, uid, false);
    take_effect(f, e, uid);
}

/* Does a pending transaction move `e` to `n`? Then it may have voted, and hold the only copy as
 * soon as the commit is applied: the source drops its own. */
static bool awaits(const struct fleet *f, const struct sim_node *n, const struct entity *e)
{
    const struct state *truth = &f->raft.truth;
    const ring_hit hit = view_lookup(&truth->view, entity_kind(e), bytes_of(e->id, e->id_size));
    const struct view_member *m = view_member_named(&truth->view, process_says(&n->process));

    for (size_t i = 0; m != NULL && i < truth->txn_count; i++) {
        const struct state_txn *t = &truth->txn[i];

        for (size_t k = 0; t->state == TXN_PENDING && k < t->op_count; k++) {
            if (t->ops[k].kind == RING_MOVE && t->ops[k].vnode == ring_hit_vnode(hit) &&
                t->ops[k].to == m->slot) {
                return true;
            }
        }
    }
    return false;
}

void check_node_crash(struct fleet *f, struct sim_node *n)
{
    record_process(f, HISTORY_CRASH, &n->process);
    check_down(f, n);
    check_trouble(f, n);
    check_bank_death(f, n);
    for (size_t i = 0; i < LEDGER_ENTITIES; i++) {
        struct entity *e = &f->ledger.entity[i];

        if (e->live != NULL && e->live->node == n) {
            e->live = NULL;
        }
        // The owner may hold the only copy: alive, frozen, or handed over and not yet used.
        if (e->last == n || check_owns(f, n, e) || awaits(f, n, e) ||
            past_doubts(f, n->incarnation)) {
            e->lost = true;
        }
    }
}

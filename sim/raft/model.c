/* SPDX-License-Identifier: Apache-2.0
 *
 * The abstract Raft group: an agreed log without messages.
 */
#include "sim/raft/model.h"

#include "base/assert.h"
#include "base/mem.h"
#include "base/mutant.h"
#include "base/table.h"
#include "sim/same.h"
#include "wire/control.h"

#include <string.h>

enum { MIRROR_EVERY = 4 }; /* seeds: SQLite takes time */

/* One entry: a packed command, or a barrier (size 0). */
struct raft_entry {
    uint8_t *bytes; /* owned */
    size_t size;
    uint64_t era;    /* not 0: no command, but the restore that raised it */
    unsigned origin; /* replica */
    uint64_t life;   /* of its process then */
    uint64_t term;
    uint64_t tag;    /* 0: nobody asks */
    uint64_t result; /* hash of the state after it, 0 = nobody applied it yet */
};

void raft_model_init(struct raft_model *r, struct world *world,
                     const struct raft_model_events *events)
{
    memset(r, 0, sizeof *r);
    r->world = world;
    r->events = *events;
    r->leader = -1;
    state_init(&r->truth);
    r->mirrored = world->seed % MIRROR_EVERY == 0;
    if (r->mirrored) {
        mirror_open(&r->mirror);
    }
}

static void entries_free(struct raft_entry *entry, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        mem_free(entry[i].bytes);
    }
    mem_free(entry);
}

void raft_model_fini(struct raft_model *r)
{
    for (unsigned i = 0; i < r->count; i++) {
        if (r->member[i].process->up) {
            state_fini(&r->member[i].state);
        }
    }
    entries_free(r->log, r->log_count);
    entries_free(r->waiting, r->waiting_count);
    state_fini(&r->truth);
    mirror_close(&r->mirror);
}

void raft_model_add(struct raft_model *r, struct process *process)
{
    ASSERT(r->count < RAFT_MODEL_MAX);
    r->member[r->count++].process = process;
}

static struct raft_entry *push(struct raft_entry **list, size_t *count, size_t *cap)
{
    if (*count == *cap) {
        *cap = *cap == 0 ? 64 : 2 * *cap;
        *list = mem_resize(*list, *cap * sizeof **list);
    }
    (*list)[*count] = (struct raft_entry){0};
    return &(*list)[(*count)++];
}

/* ---- how a proposal ended ---- */

struct raft_end {
    unsigned replica;
    uint64_t life;
    uint64_t tag;
    enum err error;
};

static void on_end(void *context, const struct world_event *event)
{
    struct raft_model *r = context;
    const struct raft_end *end = event->data;
    const struct raft_member *m = &r->member[end->replica];

    if (m->process->up && m->process->life == end->life) {
        r->events.done(r->events.context, end->replica, end->tag, end->error);
    }
}

/* It may stand still by now: then it hears of it when it goes on. */
static void tell_end(struct raft_model *r, unsigned replica, uint64_t tag, enum err error,
                     uint64_t in_us)
{
    const struct raft_end end = {replica, r->member[replica].process->life, tag, error};

    if (in_us == 0 && !r->member[replica].process->gate.shut) {
        r->events.done(r->events.context, replica, tag, error);
        return;
    }
    world_at(r->world,
             r->world->now_us + in_us,
             (struct world_event){.run = on_end,
                                  .context = r,
                                  .data = mem_copy(&end, sizeof end),
                                  .gate = &r->member[replica].process->gate});
}

/* ---- apply ---- */

uint64_t raft_model_hash(const struct state *s)
{
    uint64_t h = table_mix(s->number + 1);

    h = table_mix(h ^ s->view.ring.version);
    h = table_mix(h ^ s->view.ring.digest[0]);
    h = table_mix(h ^ s->node_count ^ (uint64_t)s->txn_count << 20);
    for (size_t i = 0; i < s->txn_count; i++) {
        h = table_mix(h ^ s->txn[i].number ^ (uint64_t)s->txn[i].state << 62);
    }
    return h | 1;
}

static void came_back(struct raft_model *r, const char *differs)
{
    if (differs != NULL) {
        world_violate(r->world,
                      "raft-state",
                      "%s did not come back from a snapshot at index %zu",
                      differs,
                      r->log_count);
    }
}

/* Apply the next entry; `tell`: with an event for the coordinator. */
static void apply_next(struct raft_model *r, unsigned replica, bool tell)
{
    struct raft_member *m = &r->member[replica];
    struct raft_entry *e = &r->log[m->applied++];
    const bool mine =
        m->believes && e->origin == replica && e->life == m->process->life && e->term == m->term;
    const uint64_t tag = mine ? e->tag : 0;

    if (e->era > 0) {
        state_raise(&m->state, e->era, r->lease_us);
    }
    if (e->size > 0) {
        Rh__Command *command = command_get(bytes_of(e->bytes, e->size));
        struct state_result result;
        uint64_t hash;

        ASSERT(command != NULL);
        state_apply(&m->state, command, &result);
        state_check(&m->state);
        hash = raft_model_hash(&m->state);
        if (e->result != 0 && e->result != hash) {
            world_violate(r->world,
                          "raft-state",
                          "%s has another state than others at index %zu",
                          m->process->name,
                          (size_t)m->applied);
        }
        e->result = hash;
        if (tell) {
            r->events.applied(r->events.context, replica, tag, command, &result);
        }
        state_result_fini(&result);
        command_free(command);
    }
    if (tell && tag != 0 && m->process->up) {
        tell_end(r, replica, tag, ERR_OK, 0);
    }
}

static void on_apply(void *context, const struct world_event *event);

static void apply_later(struct raft_model *r, unsigned replica)
{
    struct raft_member *m = &r->member[replica];
    const uint64_t limit = m->fallen ? m->apply_limit : r->log_count;
    // A new leader may be far behind with applying what it has.
    const uint64_t lag_us =
        r->leader == (int)replica && m->applied >= r->lead_from ? 500 : r->faults.lag_max_us;

    if (m->applying || !m->process->up || m->applied >= limit) {
        return;
    }
    m->applying = true;
    world_at(r->world,
             r->world->now_us + world_between(r->world, 0, lag_us),
             (struct world_event){.run = on_apply,
                                  .context = r,
                                  .a = replica,
                                  .b = m->process->life,
                                  .gate = &m->process->gate});
}

static void become_leader(struct raft_model *r, unsigned replica)
{
    struct raft_member *m = &r->member[replica];

    m->believes = true;
    m->term = r->term;
    r->elected_us = r->world->now_us;
    TRACE(r->world, m->process->name, "LEADS term %llu", (unsigned long long)r->term);
    r->events.role(r->events.context, replica, true, r->term, replica + 1u);
}

static void on_lead(void *context, const struct world_event *event)
{
    struct raft_model *r = context;

    if (r->leader == (int)event->a && r->term == event->b && !r->member[event->a].believes) {
        become_leader(r, (unsigned)event->a);
    }
}

static void lead_now(struct raft_model *r, unsigned replica)
{
    world_at(r->world,
             r->world->now_us,
             (struct world_event){.run = on_lead,
                                  .context = r,
                                  .a = replica,
                                  .b = r->term,
                                  .gate = &r->member[replica].process->gate});
}

static void on_apply(void *context, const struct world_event *event)
{
    struct raft_model *r = context;
    const unsigned replica = (unsigned)event->a;
    struct raft_member *m = &r->member[replica];
    const struct raft_entry *e;

    if (!m->process->up || m->process->life != event->b) {
        return;
    }
    m->applying = false;
    if (m->applied >= (m->fallen ? m->apply_limit : r->log_count)) {
        return;
    }
    apply_next(r, replica, true);
    e = &r->log[m->applied - 1];
    // The barrier of its own term: now it knows all that was committed before.
    if (m->process->up && r->leader == (int)replica && !m->believes && e->size == 0 &&
        e->term == r->term && e->origin == replica) {
        lead_now(r, replica);
    }
    apply_later(r, replica);
}

/* ---- commit ---- */

static bool awake(const struct raft_model *r, unsigned replica)
{
    return r->member[replica].process->up && !r->member[replica].process->gate.shut;
}

static bool majority(const struct raft_model *r)
{
    unsigned up = 0;

    for (unsigned i = 0; i < r->count; i++) {
        up += awake(r, i);
    }
    return up > r->count / 2;
}

/* M_BARRIER: a quorum answered, and nobody waits until the entry is applied. */
static void end_barrier(struct raft_model *r, struct raft_entry *e)
{
    const struct raft_member *m = &r->member[e->origin];

    if (m->process->up && m->process->life == e->life && m->believes && m->term == e->term) {
        tell_end(r, e->origin, e->tag, ERR_OK, 0);
        e->tag = 0;
    }
}

/* Move one proposal to the committed log. */
static void commit(struct raft_model *r, const struct raft_entry *e)
{
    *push(&r->log, &r->log_count, &r->log_cap) = *e;
    if (e->size > 0) {
        Rh__Command *command = command_get(bytes_of(e->bytes, e->size));
        struct state_result result;

        if (command == NULL) {
            world_violate(r->world, "raft-state", "a proposed command does not decode");
            return;
        }
        state_apply(&r->truth, command, &result);
        if (r->mirrored) {
            came_back(r, mirror_apply(&r->mirror, &r->truth, command, &result, r->log_count));
        }
        r->events.committed(r->events.context, command, &result);
        state_result_fini(&result);
        command_free(command);
    }
    if (mutant(M_BARRIER) && e->size == 0 && e->tag != 0) {
        end_barrier(r, &r->log[r->log_count - 1]);
    }
    for (unsigned i = 0; i < r->count; i++) {
        apply_later(r, i);
    }
}

static void on_commit(void *context, const struct world_event *event)
{
    struct raft_model *r = context;
    struct raft_entry e;

    if (event->a != r->term || r->leader < 0 || r->waiting_count == 0) {
        return;
    }
    if (!majority(r)) {
        world_at(r->world, r->world->now_us + 100000, *event);
        return;
    }
    e = r->waiting[0];
    r->waiting_count--;
    memmove(r->waiting, r->waiting + 1, r->waiting_count * sizeof *r->waiting);
    commit(r, &e);
}

/* ---- election ---- */

static void end_later(struct raft_model *r, unsigned replica, uint64_t tag, enum err error)
{
    tell_end(r, replica, tag, error, world_between(r->world, 10, 300000));
}

static void give_up(struct raft_model *r, struct raft_entry *e, unsigned replica)
{
    if (e->tag != 0 && e->origin == replica && e->life == r->member[replica].process->life) {
        end_later(r, replica, e->tag, ERR_TIMEOUT);
        e->tag = 0;
    }
}

/* The replica learns that it does not lead: what it proposed ends unknown. */
static void step_down(struct raft_model *r, unsigned replica)
{
    struct raft_member *m = &r->member[replica];

    for (size_t i = m->applied; m->believes && i < r->log_count; i++) {
        give_up(r, &r->log[i], replica);
    }
    for (size_t i = 0; m->believes && i < r->waiting_count; i++) {
        give_up(r, &r->waiting[i], replica);
    }
    m->believes = m->fallen = false;
    r->events.role(
        r->events.context, replica, false, 0, r->leader < 0 ? 0 : (uint64_t)r->leader + 1);
}

static void on_follow(void *context, const struct world_event *event)
{
    struct raft_model *r = context;
    struct raft_member *m = &r->member[event->a];

    if (!m->process->up || m->process->life != event->b || r->leader == (int)event->a) {
        return;
    }
    step_down(r, (unsigned)event->a);
    apply_later(r, (unsigned)event->a);
}

static void elect(struct raft_model *r, unsigned replica)
{
    // What the fallen leader had in its log may have reached the new one, or not.
    size_t kept = r->waiting_count == 0 ? 0 : world_between(r->world, 0, r->waiting_count);
    struct raft_entry *list = r->waiting;
    const size_t count = r->waiting_count;
    struct raft_member *m = &r->member[replica];
    struct raft_entry barrier;

    r->term++;
    r->changes++;
    r->elected_us = UINT64_MAX; // not before it leads
    r->leader = (int)replica;
    r->electing = false;
    TRACE(r->world,
          m->process->name,
          "elected, term %llu, keeps %zu of %zu",
          (unsigned long long)r->term,
          kept,
          count);
    if (m->believes) {
        step_down(r, replica);
    }
    r->waiting = NULL;
    r->waiting_count = r->waiting_cap = 0;
    for (size_t i = 0; i < count; i++) {
        if (i < kept) {
            commit(r, &list[i]);
        } else {
            give_up(r, &list[i], list[i].origin);
            mem_free(list[i].bytes);
        }
    }
    mem_free(list);
    barrier = (struct raft_entry){.origin = replica, .life = m->process->life, .term = r->term};
    commit(r, &barrier);
    r->lead_from = r->log_count;
    if (mutant(M_BARRIER)) {
        lead_now(r, replica);
    }
    for (unsigned i = 0; i < r->count; i++) {
        // A leader that fell learns in its own time.
        if (i != replica && r->member[i].process->up && !r->member[i].fallen) {
            world_at(r->world,
                     r->world->now_us + world_between(r->world, 0, 50000),
                     (struct world_event){.run = on_follow,
                                          .context = r,
                                          .a = i,
                                          .b = r->member[i].process->life,
                                          .gate = &r->member[i].process->gate});
        }
    }
}

static void on_election(void *context, const struct world_event *event)
{
    struct raft_model *r = context;
    unsigned replica = (unsigned)world_between(r->world, 0, r->count - 1);

    (void)event;
    if (!majority(r) || !awake(r, replica)) {
        world_at(r->world,
                 r->world->now_us + world_between(r->world, 50000, 300000),
                 (struct world_event){.run = on_election, .context = r});
        return;
    }
    elect(r, replica);
}

static void election_later(struct raft_model *r)
{
    if (!r->electing) {
        r->electing = true;
        world_at(r->world,
                 r->world->now_us + world_between(r->world, 1000, 1500000),
                 (struct world_event){.run = on_election, .context = r});
    }
}

void raft_model_fall(struct raft_model *r)
{
    raft_model_fall_late(
        r, world_chance(r->world, 500) ? 0 : world_between(r->world, 0, r->faults.stale_max_us));
}

void raft_model_fall_late(struct raft_model *r, uint64_t stale_us)
{
    if (r->leader >= 0) {
        const unsigned old = (unsigned)r->leader;
        struct raft_member *m = &r->member[old];

        TRACE(r->world,
              m->process->name,
              "falls as leader of term %llu",
              (unsigned long long)r->term);
        r->leader = -1;
        m->fallen = m->believes;
        m->apply_limit = r->log_count;
        world_at(r->world,
                 r->world->now_us + stale_us,
                 (struct world_event){.run = on_follow,
                                      .context = r,
                                      .a = old,
                                      .b = m->process->life,
                                      .gate = &m->process->gate});
    }
    election_later(r);
}

static void on_stalled(void *context, const struct world_event *event)
{
    struct raft_model *r = context;
    const struct process *p = r->member[event->a].process;

    if (r->leader == (int)event->a && p->life == event->b && p->gate.shut) {
        raft_model_fall(r);
    }
}

void raft_model_stall(struct raft_model *r, unsigned replica)
{
    world_at(
        r->world,
        r->world->now_us + world_between(r->world, 100000, 900000),
        (struct world_event){
            .run = on_stalled, .context = r, .a = replica, .b = r->member[replica].process->life});
}

/* ---- life ---- */

void raft_model_start(struct raft_model *r, unsigned replica)
{
    struct raft_member *m = &r->member[replica];
    const uint64_t snapshot = world_between(r->world, r->restored, r->log_count);

    m->applied = 0;
    if (r->mirror.index > r->restored && r->mirror.index <= snapshot) {
        mirror_load(&r->mirror, &m->state);
        m->applied = r->mirror.index;
    } else {
        state_init(&m->state);
    }
    m->believes = m->fallen = m->applying = false;
    while (m->applied < snapshot) {
        apply_next(r, replica, false);
    }
    apply_later(r, replica);
    if (r->leader < 0) {
        election_later(r);
    }
}

void raft_model_stop(struct raft_model *r, unsigned replica)
{
    struct raft_member *m = &r->member[replica];

    m->believes = m->fallen = false;
    state_fini(&m->state);
    if (r->leader == (int)replica) {
        r->leader = -1;
        election_later(r);
    }
}

/* ---- restore ---- */

/* The first `keep` entries and no more, as one state. */
static void replay_entries(const struct raft_model *r, size_t keep, struct state *out)
{
    state_init(out);
    for (size_t i = 0; i < keep; i++) {
        const struct raft_entry *e = &r->log[i];

        if (e->era > 0) {
            state_raise(out, e->era, r->lease_us);
        } else if (e->size > 0) {
            Rh__Command *command = command_get(bytes_of(e->bytes, e->size));
            struct state_result result;

            state_apply(out, command, &result);
            state_result_fini(&result);
            command_free(command);
        }
    }
}

/* The same by the code that recovers; `era` 0: it is not raised. */
static void restore_mirror(struct raft_model *r, size_t keep, uint64_t era,
                           const struct state *expected)
{
    struct replay replay;
    struct state state;

    mirror_replay_open(&r->mirror, keep, &replay);
    while (replay.index < keep) {
        const struct raft_entry *e = &r->log[replay.index];

        if (e->era > 0) {
            replay_raise(&replay, e->era, r->lease_us, r->world->now_us);
        }
        mirror_replay_entry(&replay, bytes_of(e->bytes, e->size));
    }
    if (era != 0) {
        replay_raise(&replay, era, r->lease_us, r->world->now_us);
    }
    came_back(r, mirror_replay_end(&r->mirror, &replay, keep + (era != 0), &state));
    came_back(r, same_state(expected, &state));
    state_fini(&state);
}

/* Only the first `keep` entries were ever written; they make `state`. */
static void forget_entries(struct raft_model *r, size_t keep, const struct state *state)
{
    for (size_t i = keep; i < r->log_count; i++) {
        mem_free(r->log[i].bytes);
    }
    r->log_count = keep;
    entries_free(r->waiting, r->waiting_count);
    r->waiting = NULL;
    r->waiting_count = r->waiting_cap = 0;
    state_fini(&r->truth);
    r->truth = *state;
}

bool raft_model_restore(struct raft_model *r, size_t keep)
{
    struct state state;
    const uint64_t era = (r->truth.view.era > r->era ? r->truth.view.era : r->era) + 1;

    replay_entries(r, keep, &state);
    if (!state.begun) {
        state_fini(&state);
        return false;
    }
    state_raise(&state, era, r->lease_us);
    if (r->mirrored) {
        restore_mirror(r, keep, era, &state);
    }
    forget_entries(r, keep, &state);
    push(&r->log, &r->log_count, &r->log_cap)->era = era;
    r->restored = r->log_count;
    r->term++;
    return true;
}

bool raft_model_put_back(struct raft_model *r, size_t keep)
{
    struct state state;

    replay_entries(r, keep, &state);
    // Of longer leases than the backup has a restore is told by who restores. Files of before it
    // don't know of them, so no coordinator could.
    const bool forgets = state.view.era < r->truth.view.era && state.lease_us < r->truth.lease_us;
    if (!state.begun || forgets) {
        state_fini(&state);
        return false;
    }
    r->era = r->truth.view.era > r->era ? r->truth.view.era : r->era;
    if (r->mirrored) {
        restore_mirror(r, keep, 0, &state);
    }
    forget_entries(r, keep, &state);
    r->restored = r->restored < keep ? r->restored : keep;
    for (size_t i = keep; i-- > 0;) {
        if (r->log[i].term != 0) {
            r->term = r->log[i].term;
            break;
        }
    }
    return true;
}

/* ---- propose ---- */

static void submit(struct raft_model *r, unsigned replica, uint64_t tag, struct bytes command)
{
    struct raft_member *m = &r->member[replica];
    struct raft_entry *e;

    ASSERT(m->process->up);
    if (!m->believes) {
        end_later(r, replica, tag, ERR_NOT_LEADER);
        return;
    }
    if (r->leader != (int)replica || m->fallen) {
        end_later(r, replica, tag, ERR_TIMEOUT);
        return;
    }
    e = push(&r->waiting, &r->waiting_count, &r->waiting_cap);
    *e = (struct raft_entry){
        .bytes = mem_copy(command.data, command.size),
        .size = command.size,
        .origin = replica,
        .life = m->process->life,
        .term = r->term,
        .tag = tag,
    };
    r->commit_us = r->commit_us > r->world->now_us ? r->commit_us : r->world->now_us;
    r->commit_us += world_between(r->world, 50, r->faults.commit_max_us);
    world_at(
        r->world, r->commit_us, (struct world_event){.run = on_commit, .context = r, .a = r->term});
}

void raft_model_propose(struct raft_model *r, unsigned replica, uint64_t tag, struct bytes command)
{
    submit(r, replica, tag, command);
}

void raft_model_barrier(struct raft_model *r, unsigned replica, uint64_t tag)
{
    submit(r, replica, tag, (struct bytes){NULL, 0});
}

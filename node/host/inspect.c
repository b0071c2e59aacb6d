/* SPDX-License-Identifier: Apache-2.0
 *
 * What a node tells `ringhold check`, and what `ringhold fix` may have it do.
 *
 * It tells what it sees, not what it believes: the ring's digest is added up
 * anew, and actors are counted where they are.
 */
#include "node/host/inside.h"

#include "base/assert.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/mutant.h"
#include "base/stamp.h"
#include "ring/inspect.h"
#include "route/router.h"
#include "wire/control.h"
#include "wire/repair.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { IDS_MAX = 10000, LONGEST_MAX = 10 };

/* It may run, or does: a frozen one has given its state away. */
static bool is_live(const struct actor *a)
{
    return a->state != ACTOR_ABSENT && a->state != ACTOR_FAILING && a->state != ACTOR_FROZEN;
}

/* ---- the answer: on the heap, for the fields grow ---- */

static void add_live(const struct host *h, Rh__InspectAnswer *out, uint32_t cell)
{
    const struct ring *ring = &h->topology.view.ring;
    const struct ring_vnode *v = ring_find(ring, ring_hit_vnode(ring->cell[cell]));
    Rh__LiveRow *row = out->n_live == 0 ? NULL : out->live[out->n_live - 1];

    if (row == NULL || row->vnode != v->id) { // cells come in order, so vnodes do
        row = mem_new(1, sizeof *row);
        *row = (Rh__LiveRow)RH__LIVE_ROW__INIT;
        row->vnode = v->id;
        row->from = v->from;
        row->to = ring_end(ring, v);
        row->stray = !host_owns(h, cell);
        out->live = mem_resize(out->live, (out->n_live + 1) * sizeof(Rh__LiveRow *));
        out->live[out->n_live++] = row;
    }
    row->count++;
}

static bool is_wanted(const Rh__Inspect *question, uint32_t cell)
{
    for (size_t i = 0; i < question->n_ids_of; i++) {
        if (cell >= question->ids_of[i]->from && cell < question->ids_of[i]->to) {
            return true;
        }
    }
    return false;
}

static void add_id(Rh__InspectAnswer *out, const struct actor *a, uint32_t cell)
{
    Rh__LiveId *id = mem_new(1, sizeof *id);

    *id = (Rh__LiveId)RH__LIVE_ID__INIT;
    id->cell = cell;
    id->kind = a->kind;
    id->id.len = a->id_size;
    id->id.data = mem_new(a->id_size, 1);
    memcpy(id->id.data, a->id, a->id_size);
    out->ids = mem_resize(out->ids, (out->n_ids + 1) * sizeof(Rh__LiveId *));
    out->ids[out->n_ids++] = id;
}

static void add_actors(const struct host *h, Rh__InspectAnswer *out, const Rh__Inspect *question)
{
    for (uint32_t c = 0; c < h->actors.cell_count && h->cells.state != NULL; c++) {
        const bool wanted = cell_first(&h->actors, c) != NULL && is_wanted(question, c);
        const bool known = h->topology.view.ring.vnode_count > 0;

        for (struct actor *a = cell_first(&h->actors, c); a != NULL && known;
             a = cell_next(&h->actors, c, a)) {
            out->strays += host_owns(h, c) ? 0 : 1;
            if (is_live(a)) {
                add_live(h, out, c);
            }
            if (wanted && is_live(a) && out->n_ids < IDS_MAX) {
                add_id(out, a, c);
            }
        }
    }
}

static void add_hold(const struct host *h, Rh__InspectAnswer *out, const struct part *part)
{
    const struct hold *hold = hold_of(part);
    Rh__HoldRow *row = mem_new(1, sizeof *row);

    *row = (Rh__HoldRow)RH__HOLD_ROW__INIT;
    row->txn = part->prepare.txn;
    row->state = mem_string(machine_name(&part_machine, part->state));
    row->held_us = hold->since_us == 0 ? 0 : h->now_us - hold->since_us;
    row->requests = hold->held.count;
    row->over = part->over;
    row->vnodes = mem_new(part->prepare.arc_count, sizeof *row->vnodes);
    for (size_t i = 0; i < part->prepare.arc_count; i++) {
        if (part->prepare.arc[i].out) {
            row->vnodes[row->n_vnodes++] = part->prepare.arc[i].vnode;
        }
    }
    out->holds[out->n_holds++] = row;
}

static Rh__InspectAnswer *answer_new(const struct host *h, const Rh__Inspect *question)
{
    Rh__InspectAnswer *out = mem_new(1, sizeof *out);
    struct host_stats stats;
    char fault[RING_FAULT_SIZE];
    uint64_t sum[2];

    host_stats(h, &stats);
    *out = (Rh__InspectAnswer)RH__INSPECT_ANSWER__INIT;
    ring_inspect(&h->topology.view.ring, sum, fault);
    out->tag = question->tag;
    out->route = question->route;
    out->role = ROLE_NODE;
    out->name = mem_string(h->config.name);
    out->incarnation = h->membership.incarnation;
    out->life = mem_string(machine_name(&life_machine, h->membership.life));
    out->era = h->membership.era;
    out->version = h->topology.view.ring.version;
    out->digest0 = h->topology.view.ring.digest[0];
    out->digest1 = h->topology.view.ring.digest[1];
    out->ring0 = sum[0];
    out->ring1 = sum[1];
    out->members = view_digest(&h->topology.view);
    out->ring_fault = mem_string(fault);
    out->slot = h->membership.slot;
    out->disk_era = h->txns.disk.era;
    out->disk_floor = h->txns.disk.floor;
    out->disk_seen = h->txns.disk.seen;
    out->leases = stats.lease_in_force;
    out->lease_us = stats.lease_margin_us;
    out->lease_state = mem_string(lease_state_name(stats.lease));
    return out;
}

/* ---- the profile ---- */

static void add_profile_row(Rh__InspectAnswer *out, const struct host_profile_row *from)
{
    Rh__HotRow *row = mem_new(1, sizeof *row);

    *row = (Rh__HotRow)RH__HOT_ROW__INIT;
    row->what = mem_string(from->what);
    row->worker = from->worker;
    row->kind = from->kind;
    row->id.len = from->id.size;
    row->id.data = mem_new(from->id.size, 1);
    memcpy(row->id.data, from->id.data, from->id.size);
    row->us = from->us;
    row->count = from->count;
    out->hot[out->n_hot++] = row;
}

static size_t actor_mailbox(const struct actor *a)
{
    return actor_waiting(a) + actor_early(a);
}

/* The longest mailboxes, longest first. */
static size_t longest(const struct host *h, const struct actor *out[LONGEST_MAX])
{
    size_t count = 0;

    for (uint32_t c = 0; c < h->actors.cell_count && h->cells.state != NULL; c++) {
        for (struct actor *a = cell_first(&h->actors, c); a != NULL;
             a = cell_next(&h->actors, c, a)) {
            const size_t size = actor_mailbox(a);
            size_t at = count;

            while (size > 0 && at > 0 && actor_mailbox(out[at - 1]) < size) {
                at--;
            }
            if (size > 0 && at < LONGEST_MAX) {
                const size_t kept = count == LONGEST_MAX ? count - 1 : count;

                memmove(&out[at + 1], &out[at], (kept - at) * sizeof(struct actor *));
                out[at] = a;
                count = kept + 1;
            }
        }
    }
    return count;
}

static void add_profile(const struct host *h, Rh__InspectAnswer *out)
{
    const struct actor *actors[LONGEST_MAX];
    const size_t count = longest(h, actors);

    out->hot = mem_new(h->inspection.profile_count + count, sizeof(Rh__HotRow *));
    for (size_t i = 0; i < h->inspection.profile_count; i++) {
        add_profile_row(out, &h->inspection.profile[i]);
    }
    for (size_t i = 0; i < count; i++) {
        const struct host_profile_row row = {.what = "waiting",
                                             .kind = actors[i]->kind,
                                             .id = actor_id(actors[i]),
                                             .count = actor_mailbox(actors[i])};

        add_profile_row(out, &row);
    }
}

void host_set_profile(struct host *h, const struct host_profile_row *profile, size_t count)
{
    h->inspection.profile = profile;
    h->inspection.profile_count = count;
}

static Rh__CallsRow *calls_row(const struct router_stats *f)
{
    Rh__CallsRow *row = mem_new(1, sizeof *row);

    *row = (Rh__CallsRow)RH__CALLS_ROW__INIT;
    row->requests = f->requests;
    row->in_flight = f->in_flight;
    row->waiting = f->waiting;
    row->resent = f->resent;
    row->replied = f->replied;
    row->unknown = f->unknown;
    row->timeout = f->timeout;
    row->rejected = f->rejected;
    row->overloaded = f->overloaded;
    return row;
}

/* How long their requests took, of each kind. */
static void add_kinds(const struct host *h, Rh__InspectAnswer *out)
{
    const struct latencies *all = &h->times.all;

    out->kinds = mem_new(all->count + 1, sizeof(Rh__KindRow *));
    for (uint32_t row = 0; row <= all->count; row++) {
        uint64_t took[LATENCY_BUCKETS] = {0};

        if (times_add_took(&h->times, row, took) > 0) {
            Rh__KindRow *k = mem_new(1, sizeof *k);

            *k = (Rh__KindRow)RH__KIND_ROW__INIT;
            k->kind = row == 0 ? UINT16_MAX + 1 : all->row[row].kind;
            k->n_took = LATENCY_BUCKETS;
            k->took = mem_new(LATENCY_BUCKETS, sizeof *k->took);
            memcpy(k->took, took, sizeof took);
            out->kinds[out->n_kinds++] = k;
        }
    }
}

void host_set_calls(struct host *h, const struct router_stats *calls)
{
    h->inspection.calls = calls;
}

void host_inspect(struct host *h, int coordinator, const Rh__Inspect *question)
{
    Rh__Control c = RH__CONTROL__INIT;
    Rh__InspectAnswer *out = answer_new(h, question);

    add_actors(h, out, question);
    add_profile(h, out);
    out->calls = h->inspection.calls == NULL ? NULL : calls_row(h->inspection.calls);
    add_kinds(h, out);
    out->holds = mem_new(h->txns.participant.part_count, sizeof(Rh__HoldRow *));
    for (size_t i = 0; i < h->txns.participant.part_count; i++) {
        add_hold(h, out, h->txns.participant.part[i]);
    }
    c.body_case = RH__CONTROL__BODY_INSPECT_ANSWER;
    c.inspect_answer = out;
    host_tell(h, coordinator, &c);
    proto_free(&out->base);
}

/* ---- repairs ---- */

/* It has no right to live here: by the ring another node's may. What waited for it goes there. */
static void stop_stray(struct host *h, struct actor *a)
{
    struct queue waiting;

    log_warn("node",
             "stray_stopped",
             "kind=%u version=%s",
             a->kind,
             STAMP(h->topology.view.ring.version));
    if (is_live(a)) {
        cells_count_double(&h->cells);
    }
    queue_init(&waiting);
    actor_empty(h, a, &waiting);
    run_abandon(h, a);
    actor_remove(h, a, DISCARD_FENCED);
    admit_all(h, &waiting);
}

static void stop_strays(struct host *h)
{
    for (uint32_t c = 0; c < h->actors.cell_count; c++) {
        struct actor *next = NULL;

        const bool strays = !host_owns(h, c) || mutant(M_STRAYOWN);

        for (struct actor *a = cell_first(&h->actors, c); a != NULL && strays; a = next) {
            next = cell_next(&h->actors, c, a);
            if (actor_held(a) == NULL) { // else its transaction decides
                stop_stray(h, a);
            }
        }
    }
}

void host_repair(struct host *h, const Rh__Repair *repair)
{
    log_warn("node", "repair", "what=%" PRIu32, repair->what);
    switch ((enum repair_task)repair->what) {
    case REPAIR_TASK_FETCH:
        host_fetch_all(h);
        break;
    case REPAIR_TASK_STRAYS:
        stop_strays(h);
        break;
    case REPAIR_TASK_EXIT:
        host_stop(h, HOST_EXIT_OPERATOR);
        break;
    case REPAIR_TASK_OUTCOME: // comes as a PollAnswer
        break;
    }
}

#ifdef RINGHOLD_INJECT
void host_plant_stray(struct host *h)
{
    for (unsigned i = 0; h->cells.state != NULL && i < 1000; i++) {
        char id[8];
        const int size = snprintf(id, sizeof id, "k%u", i);
        const struct bytes bytes = bytes_of(id, (size_t)size);
        const uint64_t position = host_position(h, 0, bytes);

        if (!host_owns(h, ring_point_cell(position))) {
            const struct image_name name = {.position = position, .kind = 0, .id = bytes};

            actor_new(&h->actors, name)->state = ACTOR_IDLE; // STATE: an injected fault
            return;
        }
    }
}
#endif

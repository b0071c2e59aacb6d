/* SPDX-License-Identifier: Apache-2.0
 *
 * The participant's book: what a PREPARE means, and which numbers are taken.
 */
#include "txn/participant.h"

#include "base/assert.h"
#include "base/mem.h"
#include "base/mutant.h"

#include <string.h>

static const struct machine_state states[] = {
    [PART_PERSIST] = {"persist", TO(PART_DRAINING)},
    [PART_DRAINING] = {"draining", TO(PART_PREPARED)},
    [PART_PREPARED] = {"prepared", 0},
};
const struct machine part_machine = {"a participant's transaction", states};

bool prepare_decode(struct prepare *p, const Rh__Prepare *message, uint32_t cells)
{
    *p = (struct prepare){
        .txn = message->txn,
        .base = message->base_version,
        .supersedes = message->supersedes,
        .arc_count = message->n_arcs,
        .deadline_ms = message->deadline_ms,
    };
    if (p->arc_count == 0 || p->arc_count > PARTICIPANT_ARCS_MAX) {
        return false;
    }
    p->arc = mem_new(p->arc_count, sizeof *p->arc);
    for (size_t i = 0; i < p->arc_count; i++) {
        const Rh__Arc *a = message->arcs[i];

        if (a->from >= a->to || a->to > cells || a->peer > UINT16_MAX) {
            prepare_fini(p);
            return false;
        }
        p->arc[i] = (struct part_arc){
            .from = a->from,
            .to = a->to,
            .vnode = a->vnode,
            .out = a->out != 0,
            .peer = (uint16_t)a->peer,
            .peer_incarnation = a->peer_incarnation,
        };
    }
    return true;
}

void prepare_fini(struct prepare *p)
{
    mem_free(p->arc);
    p->arc = NULL;
    p->arc_count = 0;
}

void participant_init(struct participant *p)
{
    *p = (struct participant){0};
}

void participant_fini(struct participant *p)
{
    while (p->part_count > 0) {
        participant_end(p, p->part[p->part_count - 1]);
    }
    mem_free(p->seen);
    *p = (struct participant){0};
}

void participant_reset(struct participant *p, uint64_t floor)
{
    ASSERT(p->part_count == 0);
    p->floor = floor;
    p->top = floor;
    p->seen_count = 0;
}

struct part *participant_find(const struct participant *p, uint64_t txn)
{
    for (size_t i = 0; i < p->part_count; i++) {
        if (p->part[i]->prepare.txn == txn) {
            return p->part[i];
        }
    }
    return NULL;
}

/* Index of the first number taken that is not below `txn`. */
static size_t seen_place(const struct participant *p, uint64_t txn)
{
    size_t low = 0;
    size_t high = p->seen_count;

    while (low < high) {
        const size_t middle = (low + high) / 2;

        if (p->seen[middle] < txn) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static bool is_taken(const struct participant *p, uint64_t txn)
{
    const size_t at = seen_place(p, txn);

    return txn <= p->floor || (at < p->seen_count && p->seen[at] == txn);
}

static bool arcs_overlap(const struct prepare *a, const struct prepare *b)
{
    for (size_t i = 0; i < a->arc_count; i++) {
        for (size_t j = 0; j < b->arc_count; j++) {
            if (a->arc[i].from < b->arc[j].to && b->arc[j].from < a->arc[i].to) {
                return true;
            }
        }
    }
    return false;
}

struct part *participant_overlapping(const struct participant *p, const struct prepare *prepare,
                                     const struct part *except)
{
    for (size_t i = 0; i < p->part_count; i++) {
        if (p->part[i] != except && arcs_overlap(&p->part[i]->prepare, prepare)) {
            return p->part[i];
        }
    }
    return NULL;
}

static bool is_older_than_an_overlapping(const struct participant *p, const struct prepare *prepare)
{
    for (size_t i = 0; i < p->part_count; i++) {
        if (p->part[i]->prepare.txn > prepare->txn && arcs_overlap(&p->part[i]->prepare, prepare)) {
            return true;
        }
    }
    return false;
}

/* Its own arcs share no cell; a hold has one owner. */
static bool arcs_are_sound(const struct prepare *prepare)
{
    for (size_t i = 0; i < prepare->arc_count; i++) {
        for (size_t j = i + 1; j < prepare->arc_count; j++) {
            if (prepare->arc[i].from < prepare->arc[j].to &&
                prepare->arc[j].from < prepare->arc[i].to) {
                return false;
            }
        }
    }
    return true;
}

/* Else coordinators whose files went back have drawn its number a second time (hole 54). */
static bool moves_the_same(const struct prepare *a, const struct prepare *b)
{
    bool equal = a->base == b->base && a->arc_count == b->arc_count;

    for (size_t i = 0; equal && i < a->arc_count; i++) {
        const struct part_arc *x = &a->arc[i];
        const struct part_arc *y = &b->arc[i];

        equal = x->from == y->from && x->to == y->to && x->out == y->out && x->peer == y->peer;
    }
    return equal;
}

enum part_verdict participant_examine(const struct participant *p, const struct prepare *prepare,
                                      uint64_t version)
{
    const struct part *superseded = participant_find(p, prepare->supersedes);
    const struct part *same = participant_find(p, prepare->txn);

    if (same != NULL) {
        return moves_the_same(&same->prepare, prepare) || mutant(M_DRAWNTWICE) ? VERDICT_AGAIN
                                                                               : VERDICT_OTHER;
    }
    if (!mutant(M_REPLAY) &&
        (is_taken(p, prepare->txn) ||
         (is_older_than_an_overlapping(p, prepare) && !mutant(M_OLDPREPARE)))) {
        return VERDICT_STALE;
    }
    if (prepare->base > version && !mutant(M_BASE)) {
        return VERDICT_FETCH;
    }
    if (!arcs_are_sound(prepare) ||
        (p->part_count == PARTICIPANT_PARTS_MAX && superseded == NULL)) {
        return VERDICT_REFUSE;
    }
    return VERDICT_BEGIN;
}

static void take_number(struct participant *p, uint64_t txn)
{
    const size_t at = seen_place(p, txn);

    if (is_taken(p, txn)) {
        ASSERT(mutant(M_REPLAY));
        return;
    }
    if (p->seen == NULL) {
        p->seen = mem_new(PARTICIPANT_SEEN_MAX + 1, sizeof *p->seen);
    }
    memmove(p->seen + at + 1, p->seen + at, (p->seen_count - at) * sizeof *p->seen);
    p->seen[at] = txn;
    p->seen_count++;
    p->top = txn > p->top ? txn : p->top;
    if (p->seen_count > PARTICIPANT_SEEN_MAX) {
        // So far below the newest, a number that was never taken here is over as well; if it is
        // not, its coordinator gives up by its timer and draws a greater one.
        p->floor = p->seen[0];
        p->seen_count--;
        memmove(p->seen, p->seen + 1, p->seen_count * sizeof *p->seen);
    }
}

struct part *participant_begin(struct participant *p, struct prepare *prepare)
{
    struct part *part = mem_new(1, sizeof *part);

    ASSERT(p->part_count <= PARTICIPANT_PARTS_MAX);
    take_number(p, prepare->txn);
    part->prepare = *prepare;
    part->state = PART_PERSIST; // STATE: new
    prepare->arc = NULL;
    prepare->arc_count = 0;
    p->part[p->part_count++] = part;
    return part;
}

void participant_end(struct participant *p, struct part *part)
{
    size_t i = 0;

    while (i < p->part_count && p->part[i] != part) {
        i++;
    }
    ASSERT(i < p->part_count);
    p->part_count--;
    for (; i < p->part_count; i++) {
        p->part[i] = p->part[i + 1];
    }
    prepare_fini(&part->prepare);
    mem_free(part);
}

void participant_check(const struct participant *p)
{
    for (size_t i = 0; i < p->seen_count; i++) {
        ASSERT(p->seen[i] > (i == 0 ? p->floor : p->seen[i - 1]));
        ASSERT(p->seen[i] <= p->top);
    }
    ASSERT(p->part_count <= PARTICIPANT_PARTS_MAX);
    for (size_t i = 0; i < p->part_count; i++) {
        ASSERT(is_taken(p, p->part[i]->prepare.txn));
        for (size_t j = i + 1; j < p->part_count; j++) {
            ASSERT(!arcs_overlap(&p->part[i]->prepare, &p->part[j]->prepare));
        }
    }
}

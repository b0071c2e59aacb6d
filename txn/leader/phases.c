/* SPDX-License-Identifier: Apache-2.0
 *
 * Notes when each step of a transaction came, for `ringhold txn show`.
 */
#include "txn/leader/phases.h"

#include "base/mem.h"
#include "txn/leader/inside.h"

/* So long after its outcome nobody counts as the one who still has to hear of it. */
enum { ADOPT_MS_MAX = 10000 };

static struct phases_txn *find(const struct coordinator *c, uint64_t txn)
{
    for (size_t i = 0; i < c->phases.count; i++) {
        if (c->phases.item[i].txn == txn) {
            return &c->phases.item[i];
        }
    }
    return NULL;
}

static struct phases_part *find_part(const struct coordinator *c, uint64_t txn, size_t part)
{
    const struct phases_txn *t = find(c, txn);

    return t != NULL && part < t->part_count ? &t->part[part] : NULL;
}

static void set_open(struct phases *p, struct phases_txn *t, bool open)
{
    p->open += open && !t->open ? 1 : 0;
    p->open -= !open && t->open ? 1 : 0;
    t->open = open;
}

/* The place of the next: a new one, or the oldest's. */
static struct phases_txn *place(struct phases *p)
{
    struct phases_txn *t;

    if (p->count < PHASES_KEPT) {
        p->item = mem_resize(p->item, (p->count + 1) * sizeof *p->item);
        p->item[p->count++] = (struct phases_txn){0};
    }
    t = &p->item[p->at];
    p->at = (p->at + 1) % PHASES_KEPT;
    set_open(p, t, false);
    mem_free(t->part);
    *t = (struct phases_txn){0};
    return t;
}

void phases_begun(struct coordinator *c, const struct state_txn *t)
{
    struct phases_txn *own = place(&c->phases);

    own->txn = t->number;
    own->wall_us = c->wall_us;
    own->begun_us = c->now_us;
    own->part_count = t->part_count < PHASES_PARTS_MAX ? t->part_count : PHASES_PARTS_MAX;
    own->part = mem_new(own->part_count, sizeof *own->part);
    for (size_t i = 0; i < own->part_count; i++) {
        own->part[i] =
            (struct phases_part){.slot = t->parts[i].slot, .incarnation = t->parts[i].incarnation};
    }
}

void phases_asked(struct coordinator *c, uint64_t txn, size_t part)
{
    struct phases_part *p = find_part(c, txn, part);

    if (p != NULL && p->asked_us == 0) {
        p->asked_us = c->now_us;
    }
}

void phases_voted(struct coordinator *c, uint64_t txn, size_t part, const Rh__Prepared *vote)
{
    struct phases_part *p = find_part(c, txn, part);

    if (p != NULL) {
        p->voted_us = c->now_us;
        p->actors = vote->actors;
        p->bytes = vote->bytes;
    }
}

void phases_proposed(struct coordinator *c, uint64_t txn)
{
    struct phases_txn *t = find(c, txn);

    if (t != NULL) {
        t->proposed_us = c->now_us;
    }
}

void phases_outcome(struct coordinator *c, const struct state_txn *t)
{
    struct phases_txn *own = find(c, t->number);

    if (own != NULL) {
        own->outcome_us = c->now_us;
        own->version = t->version;
        set_open(&c->phases, own, t->version != 0 && own->part_count > 0);
    }
}

/* True: this node was the last of whom it was awaited, or it is too late to matter. */
static bool adopt(struct phases_txn *t, const struct state_node *node, uint64_t now_us)
{
    size_t left = 0;

    for (size_t i = 0; i < t->part_count; i++) {
        struct phases_part *p = &t->part[i];

        if (p->adopted_us == 0 && p->slot == node->slot && p->incarnation == node->incarnation) {
            p->adopted_us = now_us;
        }
        left += p->adopted_us == 0 ? 1 : 0;
    }
    return left == 0;
}

void phases_heard(struct coordinator *c, const struct state_node *node, uint64_t version)
{
    struct phases *p = &c->phases;

    for (size_t i = 0; p->open > 0 && i < p->count; i++) {
        struct phases_txn *t = &p->item[i];

        if (!t->open) {
            continue;
        }
        if (c->now_us - t->outcome_us > (uint64_t)ADOPT_MS_MAX * 1000 ||
            (version >= t->version && adopt(t, node, c->now_us))) {
            set_open(p, t, false);
        }
    }
}

/* By the wall clock, which is read once: what lies between two times is not its doing. */
static uint64_t wall_us(const struct phases_txn *t, uint64_t at_us)
{
    return at_us == 0 ? 0 : t->wall_us + (at_us - t->begun_us);
}

void phases_tell(const struct coordinator *c, Rh__TxnRow *row)
{
    const struct phases_txn *t = find(c, row->txn);

    if (t == NULL) {
        return;
    }
    row->begun_us = t->wall_us;
    row->proposed_us = wall_us(t, t->proposed_us);
    row->outcome_us = wall_us(t, t->outcome_us);
    for (size_t i = 0; i < t->part_count && i < row->n_votes; i++) {
        const struct phases_part *p = &t->part[i];
        Rh__TxnVote *vote = row->votes[i];

        vote->asked_us = wall_us(t, p->asked_us);
        vote->voted_us = wall_us(t, p->voted_us);
        vote->adopted_us = wall_us(t, p->adopted_us);
        vote->actors = p->actors;
        vote->bytes = p->bytes;
    }
}

void phases_fini(struct coordinator *c)
{
    for (size_t i = 0; i < c->phases.count; i++) {
        mem_free(c->phases.item[i].part);
    }
    mem_free(c->phases.item);
    c->phases = (struct phases){0};
}

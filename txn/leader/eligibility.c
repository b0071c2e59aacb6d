/* SPDX-License-Identifier: Apache-2.0
 *
 * Who may take part in something new: pairs that failed back off, restarted
 * nodes prove themselves first (hole 57), and a slow node must not take the
 * places of the others (specification §3.6).
 *
 * A node is slow when its vote takes longer than slow_ms and SLOW_TIMES the
 * running median of all votes, now or the last time. Nothing here is replicated,
 * and nothing here is needed for safety: a new leader learns it again.
 */
#include "txn/leader/inside.h"

#include "base/mem.h"

enum { SLOW_TIMES = 8, MEDIAN_STEP = 8, BACKOFF_MS_MAX = 60000 };

/* ---- back-off ---- */

static struct backoff *find_backoff(const struct coordinator *c, uint16_t source, uint16_t target)
{
    const struct eligibility *own = &c->eligibility;

    for (size_t i = 0; i < own->backoff_count; i++) {
        if (own->backoff[i].source == source && own->backoff[i].target == target) {
            return &own->backoff[i];
        }
    }
    return NULL;
}

static void drop_backoff(struct coordinator *c, struct backoff *b)
{
    *b = c->eligibility.backoff[--c->eligibility.backoff_count];
}

static const struct ring_op *first_move(const struct state_txn *t)
{
    for (size_t i = 0; i < t->op_count; i++) {
        if (t->ops[i].kind == RING_MOVE) {
            return &t->ops[i];
        }
    }
    return NULL;
}

static void back_off(struct coordinator *c, const struct ring_op *move)
{
    struct eligibility *own = &c->eligibility;
    struct backoff *b = find_backoff(c, move->from, move->to);
    uint64_t wait_ms = c->config.retry_ms;

    if (b == NULL) {
        own->backoff = mem_resize(own->backoff, (own->backoff_count + 1) * sizeof *own->backoff);
        b = &own->backoff[own->backoff_count++];
        *b = (struct backoff){.source = move->from, .target = move->to};
    }
    for (uint32_t i = 0; i < b->failures && wait_ms < BACKOFF_MS_MAX; i++) {
        wait_ms *= 2;
    }
    wait_ms = wait_ms < BACKOFF_MS_MAX ? wait_ms : BACKOFF_MS_MAX;
    b->failures++;
    b->until_us = c->now_us + wait_ms * 1000;
}

struct obstacle eligibility_pair_obstacle(const struct coordinator *c, uint16_t source,
                                          uint16_t target)
{
    const struct backoff *b = find_backoff(c, source, target);
    struct obstacle o = {.reason = OBSTACLE_NONE};

    if (b != NULL && c->now_us < b->until_us) {
        o = (struct obstacle){OBSTACLE_BACKOFF, source, target, b->until_us - c->now_us};
    }
    return o;
}

/* The pair did nothing wrong if one of it is another process now. */
static bool parts_are_current(const struct coordinator *c, const struct state_txn *t)
{
    for (size_t i = 0; i < t->part_count; i++) {
        const struct state_node *node = state_node(c->state, t->parts[i].slot);

        if (node == NULL || node->barred || node->incarnation != t->parts[i].incarnation) {
            return false;
        }
    }
    return true;
}

void eligibility_outcome(struct coordinator *c, const struct state_txn *t, bool committed)
{
    const struct ring_op *move = first_move(t);
    struct backoff *b = move == NULL ? NULL : find_backoff(c, move->from, move->to);

    if (committed && b != NULL) {
        drop_backoff(c, b);
    } else if (!committed && move != NULL && t->superseded_by == 0 && parts_are_current(c, t)) {
        back_off(c, move);
    }
}

/* ---- restarts ---- */

static struct conduct *find_conduct(const struct coordinator *c, uint16_t slot)
{
    return c->eligibility.node_at[slot] == 0
               ? NULL
               : &c->eligibility.node[c->eligibility.node_at[slot] - 1];
}

static struct conduct *conduct_of(struct coordinator *c, const struct state_node *node)
{
    struct eligibility *own = &c->eligibility;
    struct conduct *p = find_conduct(c, node->slot);

    if (p == NULL) {
        own->node = mem_resize(own->node, (own->node_count + 1) * sizeof *own->node);
        p = &own->node[own->node_count++];
        own->node_at[node->slot] = (uint16_t)own->node_count;
        *p = (struct conduct){.slot = node->slot, .incarnation = node->incarnation};
    }
    if (p->incarnation != node->incarnation) {
        *p = (struct conduct){.slot = node->slot, .incarnation = node->incarnation};
    }
    return p;
}

void eligibility_registered(struct coordinator *c, const Rh__Command *command,
                            const struct state_result *result)
{
    struct eligibility *own = &c->eligibility;
    const struct state_node *node;

    if (command->body_case != RH__COMMAND__BODY_REGISTER_ || !result->accepted ||
        result->delta == NULL) {
        return;
    }
    node = state_node_named(c->state, command->register_->name);
    if (node == NULL) {
        return;
    }
    conduct_of(c, node)->unbroken_us = command->register_->replaces == 0 ? 0 : c->now_us;
    for (size_t i = own->backoff_count; i-- > 0;) {
        if (own->backoff[i].source == node->slot || own->backoff[i].target == node->slot) {
            drop_backoff(c, &own->backoff[i]);
        }
    }
}

void eligibility_update(struct coordinator *c)
{
    struct eligibility *own = &c->eligibility;
    size_t kept = 0;

    for (size_t i = 0; i < own->node_count; i++) {
        struct conduct *p = &own->node[i];
        const struct state_node *node = state_node(c->state, p->slot);

        own->node_at[p->slot] = 0;
        if (node == NULL) {
            continue; // the slot may be another node's one day
        }
        if (p->unbroken_us != 0 && !peers_live(c, node)) {
            p->unbroken_us = c->now_us;
        }
        own->node[kept++] = *p;
        own->node_at[p->slot] = (uint16_t)kept;
    }
    own->node_count = kept;
}

uint64_t eligibility_in_us(const struct coordinator *c, const struct state_node *node)
{
    const struct conduct *p = find_conduct(c, node->slot);

    if (node->barred || p == NULL || p->incarnation != node->incarnation || p->unbroken_us == 0) {
        return 0;
    }
    const uint64_t from_us = p->unbroken_us + (uint64_t)c->config.eligible_ms * 1000;
    return from_us > c->now_us ? from_us - c->now_us : 0;
}

struct obstacle eligibility_obstacle(struct coordinator *c, const struct state_node *node)
{
    const uint64_t in_us = eligibility_in_us(c, node);
    struct obstacle o = {.reason = OBSTACLE_NONE};

    if (!peers_live(c, node)) {
        o = (struct obstacle){OBSTACLE_SILENT, node->slot, 0, fence_lease_left_us(c, node)};
    } else if (in_us > 0) {
        o = (struct obstacle){OBSTACLE_RETURNED, node->slot, 0, in_us};
    }
    return o;
}

/* ---- slow nodes ---- */

static uint64_t slow_us(const struct coordinator *c)
{
    const uint64_t least_us = (uint64_t)c->config.slow_ms * 1000;
    const uint64_t usual_us = SLOW_TIMES * c->eligibility.typical_us;

    return usual_us > least_us ? usual_us : least_us;
}

/* Whose fault is it that this vote is missing? The target's, when all actors have stopped and only
 * their state is still to be taken. */
static uint16_t blamed(const struct ballot *b, uint16_t slot)
{
    return b->report_us != 0 && b->busy == 0 && b->peer != 0 ? b->peer : slot;
}

void eligibility_voted(struct coordinator *c, const struct drive *d, const struct state_txn *t,
                       size_t part)
{
    struct eligibility *own = &c->eligibility;
    const struct ballot *b = &d->ballot[part];
    const struct state_node *node = state_node(c->state, blamed(b, t->parts[part].slot));
    const uint64_t took_us = c->now_us - b->asked_us;
    const uint64_t step_us = own->typical_us / MEDIAN_STEP + 1;

    if (node != NULL) {
        conduct_of(c, node)->answer_us = took_us;
    }
    if (own->typical_us == 0) {
        own->typical_us = took_us + 1;
    } else if (took_us > own->typical_us) {
        own->typical_us += step_us;
    } else if (own->typical_us > step_us) {
        own->typical_us -= step_us;
    }
}

void eligibility_mark_slow(const struct coordinator *c, uint8_t slow[RING_NODES_MAX + 1])
{
    const struct eligibility *own = &c->eligibility;
    const uint64_t bound_us = slow_us(c);

    for (size_t i = 0; i < own->node_count; i++) {
        const struct state_node *node = state_node(c->state, own->node[i].slot);

        if (own->node[i].answer_us > bound_us && node != NULL &&
            node->incarnation == own->node[i].incarnation) {
            slow[own->node[i].slot] = 1;
        }
    }
    for (size_t i = 0; i < c->drives.count; i++) {
        const struct drive *d = &c->drives.item[i];
        const struct state_txn *t = state_txn(c->state, d->txn);

        for (size_t k = 0; t != NULL && k < t->part_count; k++) {
            if (drive_waits_for(d, t, k) && c->now_us - d->ballot[k].asked_us > bound_us) {
                slow[blamed(&d->ballot[k], t->parts[k].slot)] = 1;
            }
        }
    }
}

uint16_t eligibility_culprit(const struct coordinator *c, const struct drive *d)
{
    const struct state_txn *t = state_txn(c->state, d->txn);
    const uint64_t yield_us = (uint64_t)c->config.yield_ms * 1000;
    const uint64_t bound_us = yield_us > slow_us(c) ? yield_us : slow_us(c);

    for (size_t i = 0; t != NULL && i < t->part_count; i++) {
        if (drive_waits_for(d, t, i) && c->now_us - d->ballot[i].asked_us > bound_us) {
            return blamed(&d->ballot[i], t->parts[i].slot);
        }
    }
    return 0;
}

/* ---- life ---- */

void eligibility_reset(struct coordinator *c)
{
    struct eligibility *own = &c->eligibility;

    own->backoff_count = 0;
    own->typical_us = 0;
    for (size_t i = 0; i < own->node_count; i++) {
        own->node[i].answer_us = 0;
    }
}

void eligibility_fini(struct coordinator *c)
{
    mem_free(c->eligibility.backoff);
    mem_free(c->eligibility.node);
}

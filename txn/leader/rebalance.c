/* SPDX-License-Identifier: Apache-2.0
 *
 * Which transactions to begin: specification §3.6. A plan is made from the ring as
 * it will be once all that is pending is committed; of a plan everything is
 * begun, in its order, that no pending transaction, cap, back-off or dead node
 * forbids. When it is done, or no longer fits, the next is made; a balanced
 * ring gives an empty one.
 */
#include "txn/leader/inside.h"

#include "base/assert.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/mutant.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    LIVES_PERIOD_MS = 10,
    SETTLES = 5,
    BESIDE_MAX = 2, /* with slow nodes a node does so much more: 4 in all (specification §3.6) */
};

static const char for_load[] = "load";

bool rebalance_is_for_load(const struct state_txn *t)
{
    return strcmp(t->why, for_load) == 0;
}

void rebalance_touch(struct coordinator *c)
{
    if (!c->rebalance.dirty) {
        c->rebalance.dirty = true;
        c->rebalance.dirty_us = c->now_us;
    }
    c->rebalance.touched_us = c->now_us;
}

static void drop_plan(struct coordinator *c)
{
    if (c->rebalance.has_plan) {
        plan_fini(&c->rebalance.plan);
        mem_free(c->rebalance.planned);
        c->rebalance.planned = NULL;
        c->rebalance.has_plan = false;
    }
}

void rebalance_reset(struct coordinator *c)
{
    drop_plan(c);
    c->rebalance.dirty = false;
    c->rebalance.lives = 0;
    eligibility_reset(c);
    wishes_reset(c);
}

static size_t unbegun(const struct coordinator *c)
{
    size_t count = 0;

    for (size_t i = 0; c->rebalance.has_plan && i < c->rebalance.plan.txn_count; i++) {
        count += !c->rebalance.planned[i].begun;
    }
    return count;
}

/* BEGINs on their way through the log. */
static size_t beginning(const struct coordinator *c)
{
    size_t count = 0;

    for (size_t i = 0; i < c->proposals.count; i++) {
        count += c->proposals.item[i].kind == PROPOSAL_BEGIN && c->proposals.item[i].txn == 0;
    }
    return count;
}

size_t rebalance_planned(const struct coordinator *c)
{
    return unbegun(c) + beginning(c);
}

bool rebalance_planning(const struct coordinator *c)
{
    return c->rebalance.dirty;
}

bool rebalance_moves(const struct coordinator *c, uint16_t slot)
{
    for (size_t i = 0; i < c->proposals.count; i++) {
        const struct proposal *p = &c->proposals.item[i];

        if (p->kind == PROPOSAL_BEGIN && (p->source == slot || p->target == slot)) {
            return true;
        }
    }
    return state_takes_part(c->state, slot);
}

/* ---- outcomes ---- */

/* Its place in the plan is open again; false: the plan is another one by now. */
static bool plan_again(struct coordinator *c, uint64_t plan_id, size_t at)
{
    if (!c->rebalance.has_plan || plan_id != c->rebalance.plan_id) {
        return false;
    }
    c->rebalance.planned[at].begun = false;
    return true;
}

/* An abort changes nothing that the plan was made from, so the others go on at once. */
void rebalance_outcome(struct coordinator *c, const struct state_txn *t, bool committed)
{
    const struct drive *d = drive_find(c, t->number);

    eligibility_outcome(c, t, committed);
    if (!committed && t->superseded_by == 0 &&
        (d == NULL || !plan_again(c, d->plan_id, d->planned_at))) {
        rebalance_touch(c);
    }
}

void rebalance_failed(struct coordinator *c, const struct proposal *p)
{
    if (p->txn == 0) {
        (void)plan_again(c, p->plan_id, p->planned_at);
    }
    if (p->txn == 0 && p->base == c->state->view.ring.version) {
        rebalance_touch(c); // it wasn't late but wrong, or lost
    }
}

/* ---- the plan ---- */

/* The ring once everything pending is committed. */
static void future_ring(const struct coordinator *c, struct ring *ring)
{
    ring_copy(ring, &c->state->view.ring);
    for (size_t i = 0; i < c->state->txn_count; i++) {
        const struct state_txn *t = &c->state->txn[i];

        if (t->state == TXN_PENDING && !mutant(M_OVERLAP) &&
            ring_check(ring, t->ops, t->op_count) == ERR_OK) {
            ring_apply(ring, t->ops, t->op_count, ring->version, t->number);
        }
    }
}

static enum planned_reason reason_of(const struct coordinator *c, const struct ring *ring,
                                     const struct plan_txn *t)
{
    const struct state_node *source = state_node(c->state, t->source);

    if (t->target == 0) {
        return t->ops[0].kind == RING_SPLIT ? REASON_SPLIT : REASON_MERGE;
    }
    if (source != NULL && source->leaving) {
        return REASON_DRAIN;
    }
    if (ring_owned_count(ring, t->target) == 0) {
        return REASON_JOIN;
    }
    return c->config.balance_by != BALANCE_BY_HASH ? REASON_LOAD : REASON_REBALANCE;
}

static size_t greater_id(size_t greatest, const struct ring_op *op)
{
    greatest = op->vnode > greatest ? op->vnode : greatest;
    return op->other > greatest ? op->other : greatest;
}

/* The vnodes of what pends, by id. Returns owned. */
static uint8_t *pending_vnodes(const struct coordinator *c, size_t *count)
{
    uint8_t *busy = mem_new(1, 1);

    *count = 1;
    for (size_t i = 0; i < c->state->txn_count; i++) {
        const struct state_txn *t = &c->state->txn[i];

        for (size_t j = 0; t->state == TXN_PENDING && j < t->op_count; j++) {
            const size_t greatest = greater_id(0, &t->ops[j]);

            if (greatest >= *count) {
                busy = mem_resize(busy, greatest + 1);
                memset(busy + *count, 0, greatest + 1 - *count);
                *count = greatest + 1;
            }
            busy[t->ops[j].vnode] = 1;
            if (t->ops[j].kind != RING_MOVE) {
                busy[t->ops[j].other] = 1;
            }
        }
    }
    return busy;
}

/* How many cells a transaction may take from each source: their actors are held until all of them
 * have moved, so the more live in a cell, the fewer go together. Only what is hashed counts: of
 * others an actor has a cell, and most cells none. */
static void look_at_loads(struct coordinator *c, uint32_t cells_of[RING_NODES_MAX + 1])
{
    const struct ring *ring = &c->state->view.ring;
    uint32_t *owns = mem_new(RING_NODES_MAX + 1, sizeof *owns);

    for (const struct ring_vnode *v = ring->vnode; v < ring->vnode + ring->vnode_count; v++) {
        const struct ring_segment *s = ring_segment_at(ring, v->from);

        owns[v->owner] += ring_is_hashed(s) ? ring_end(ring, v) - v->from : 0;
    }
    for (size_t i = 0; i < c->state->node_count; i++) {
        const struct state_node *n = &c->state->node[i];
        const struct seen *seen = peers_seen(c, n);
        const uint64_t owned = owns[n->slot];
        const uint64_t actors = seen == NULL ? 0 : seen->renew.actors;

        if (actors > c->config.actors_per_txn) {
            const uint64_t fit = owned * c->config.actors_per_txn / actors;

            cells_of[n->slot] = fit == 0 ? 1 : (uint32_t)fit;
        }
    }
    mem_free(owns);
}

/* Most fleets have no states with versions, and plan as if there were none. */
static bool some_told(const struct coordinator *c)
{
    for (size_t i = 0; i < c->state->node_count; i++) {
        const struct seen *seen = peers_seen(c, &c->state->node[i]);

        if (seen != NULL && seen->states.count > 0) {
            return true;
        }
    }
    return false;
}

/* There are kinds that are placed by their hosts. */
static bool has_hosts_segment(const struct coordinator *c)
{
    const struct ring *ring = &c->state->view.ring;
    bool any = false;

    for (size_t i = 0; i < ring->segment_count; i++) {
        any = any || ring->segment[i].policy == RING_HOSTS;
    }
    return any;
}

/* What a node takes of a kind that is placed by its hosts is not known before it has told. */
static bool may_give(const void *coordinator, uint16_t source, uint16_t target,
                     const struct ring_segment *segment)
{
    const bool by_hosts = segment != NULL && segment->policy == RING_HOSTS;

    return !state_versions_unread(coordinator, source, target, segment, NULL) &&
           !(by_hosts && (parts_untold(coordinator, source) || parts_untold(coordinator, target)));
}

struct plan_node *rebalance_nodes(struct coordinator *c, size_t room)
{
    struct plan_node *nodes = mem_new(c->state->node_count + room, sizeof *nodes);

    for (size_t i = 0; i < c->state->node_count; i++) {
        const struct state_node *n = &c->state->node[i];

        nodes[i] = (struct plan_node){
            .slot = n->slot,
            .weight = n->weight,
            // Who is gone gets nothing; what he has can't be taken from him without leases.
            .leaving = n->leaving || peers_gone(c, n),
            .role = n->role,
            .kinds = &n->kinds,
            .incarnation = n->incarnation,
            .zone = n->zone,
        };
        parts_set(c, n, &nodes[i]);
    }
    return nodes;
}

enum err rebalance_plan(struct coordinator *c, const struct rebalance_question *q,
                        struct plan *plan, struct ring *ring)
{
    size_t busy_count;
    uint8_t *busy = pending_vnodes(c, &busy_count);
    uint32_t *cells_of = mem_new(RING_NODES_MAX + 1, sizeof *cells_of);
    const struct plan_limits limits = {
        .busy = busy,
        .busy_count = busy_count,
        .vnodes_per_weight = c->state->vnodes_per_weight,
        .moves_per_txn = c->config.moves_per_txn,
        .wave_cap = c->config.txns_per_node,
        .owned_only = true,
        .may = some_told(c) || has_hosts_segment(c) ? may_give : NULL,
        .context = c,
    };
    struct plan_loads loads = q->by_load ? loads_of(c, q->moves) : (struct plan_loads){0};
    struct plan_wishes wishes;

    zones_keep(&c->config, q->nodes, q->count);
    look_at_loads(c, cells_of);
    loads.cells_of = cells_of;
    wishes_make(c, q->more, &wishes);
    future_ring(c, ring);
    const enum err e = plan_make(plan,
                                 q->by_load ? plan_by_load : plan_by_weight,
                                 &(struct plan_view){ring, q->nodes, q->count},
                                 &loads,
                                 &wishes,
                                 &limits);
    wishes_end(&wishes);
    mem_free(busy);
    mem_free(cells_of);
    return e;
}

static size_t greatest_vnode(const struct coordinator *c)
{
    size_t greatest = 0;

    for (size_t i = 0; i < c->rebalance.plan.txn_count; i++) {
        const struct plan_txn *t = &c->rebalance.plan.txn[i];

        for (size_t j = 0; j < t->op_count; j++) {
            greatest = greater_id(greatest, &t->ops[j]);
        }
    }
    return greatest;
}

/* The first MOVE of a transaction is one that is wished. `cut`: by vnode id, the first cell of what
 * the plan cuts off. */
static bool is_wished(const struct ring *ring, const struct plan_wishes *wishes,
                      const uint32_t *cut, const struct plan_txn *t)
{
    const struct ring_vnode *v = ring_find(ring, t->ops[0].vnode);
    const uint32_t cell = v == NULL ? cut[t->ops[0].vnode] : v->from;
    const struct plan_wish *w = t->target == 0 ? NULL : plan_wish_in(wishes, cell, cell + 1);

    return w != NULL && w->kind == PLAN_AT && w->slot == t->target;
}

/* `ring` is the one that the plan was made from. */
static void find_reasons(struct coordinator *c, const struct ring *ring)
{
    const struct plan *plan = &c->rebalance.plan;
    uint32_t *cut = mem_new(greatest_vnode(c) + 1, sizeof *cut);
    struct plan_wishes wishes;

    wishes_make(c, NULL, &wishes);
    for (size_t i = 0; i < plan->txn_count; i++) {
        const struct plan_txn *t = &plan->txn[i];

        for (size_t k = 0; k < t->op_count && t->ops[k].kind == RING_SPLIT; k++) {
            cut[t->ops[k].other] = t->ops[k].at;
        }
        c->rebalance.planned[i].reason =
            is_wished(ring, &wishes, cut, t) ? REASON_WISH : reason_of(c, ring, t);
    }
    wishes_end(&wishes);
    mem_free(cut);
}

static void make_plan(struct coordinator *c)
{
    struct plan_node *nodes = rebalance_nodes(c, 0);
    const struct rebalance_question question = {.nodes = nodes,
                                                .count = c->state->node_count,
                                                .by_load = c->config.balance_by != BALANCE_BY_HASH,
                                                .moves = loads_moves(c)};
    struct ring ring;

    wishes_tidy(c);
    const enum err e = rebalance_plan(c, &question, &c->rebalance.plan, &ring);

    loads_planned(c, question.moves, c->rebalance.plan.txn_count);
    c->rebalance.has_plan = true;
    c->rebalance.plan_id++;
    c->rebalance.planned = mem_new(c->rebalance.plan.txn_count, sizeof *c->rebalance.planned);
    find_reasons(c, &ring);
    if (c->rebalance.plan.txn_count > 0) {
        c->rebalance.plans_made++;
        log_info("txn",
                 "planned",
                 "transactions=%zu moved_cells=%" PRIu64 " error=%s",
                 c->rebalance.plan.txn_count,
                 c->rebalance.plan.moved_cells,
                 err_name(e));
    }
    ring_fini(&ring);
    mem_free(nodes);
}

/* ---- begin ---- */

static void why_text(const struct coordinator *c, size_t at, char *text, size_t size)
{
    const struct state_node *source = state_node(c->state, c->rebalance.plan.txn[at].source);
    const struct state_node *target = state_node(c->state, c->rebalance.plan.txn[at].target);

    switch (c->rebalance.planned[at].reason) {
    case REASON_REBALANCE:
        (void)snprintf(text, size, "rebalance");
        return;
    case REASON_JOIN:
        (void)snprintf(text, size, "join %s", target == NULL ? "?" : target->name);
        return;
    case REASON_DRAIN:
        (void)snprintf(text, size, "drain %s", source == NULL ? "?" : source->name);
        return;
    case REASON_SPLIT:
        (void)snprintf(text, size, "split");
        return;
    case REASON_MERGE:
        (void)snprintf(text, size, "merge");
        return;
    case REASON_LOAD:
        (void)snprintf(text, size, "%s", for_load);
        return;
    case REASON_WISH:
        (void)snprintf(text, size, "wished at %s", target == NULL ? "?" : target->name);
        return;
    }
    UNREACHABLE();
}

static bool begin(struct coordinator *c, size_t at)
{
    const struct plan_txn *t = &c->rebalance.plan.txn[at];
    Rh__Command command = RH__COMMAND__INIT;
    Rh__CommandBegin body = RH__COMMAND_BEGIN__INIT;
    char why[STATE_WHY_MAX + 1];
    struct proposal *p;

    why_text(c, at, why, sizeof why);
    body.ops = view_wire_ops(t->ops, t->op_count);
    body.n_ops = t->op_count;
    body.base_version = c->state->view.ring.version;
    body.why = why;
    command.body_case = RH__COMMAND__BODY_BEGIN;
    command.begin = &body;
    p = coordinator_propose(c, PROPOSAL_BEGIN, &command);
    if (p != NULL) {
        p->ops = mem_copy(t->ops, t->op_count * sizeof *t->ops);
        p->op_count = t->op_count;
        p->base = body.base_version;
        p->plan_id = c->rebalance.plan_id;
        p->planned_at = at;
        p->source = t->source;
        p->target = t->target;
    }
    for (size_t i = 0; i < body.n_ops; i++) {
        mem_free(body.ops[i]);
    }
    mem_free(body.ops);
    return p != NULL;
}

/* Two nodes that do something together. */
struct move_pair {
    uint16_t a;
    uint16_t b;
};

/* Who is busy, and which vnodes are spoken for, while the plan is walked. A transaction with a slow
 * node fills a place of that node alone, and has one beside at the other: what waits for it keeps
 * nobody else waiting there. */
struct walk {
    uint8_t *touched; /* owned; by vnode id */
    size_t touched_count;
    uint32_t busy[RING_NODES_MAX + 1];  /* transactions of each node … */
    uint8_t beside[RING_NODES_MAX + 1]; /* … and those with slow ones that are not counted there */
    uint8_t slow[RING_NODES_MAX + 1];
    uint32_t flying;        /* BEGINs and pending transactions */
    struct move_pair *pair; /* owned; of each of them */
    size_t pair_count;
    /* Only pairs that do nothing together yet: one that is found to be slow has taken a single
     * place then … */
    bool spread;
    bool left_out; /* … and there is more */
    bool misfit;   /* one doesn't fit the ring */
    bool waits;    /* something in flight waits for a slow node; then these matter: */
    bool starved;  /* one could begin if fewer were in flight at all */
    uint8_t starved_node[RING_NODES_MAX + 1]; /* or at this node */
};

static void touch(struct walk *w, const struct ring_op *ops, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (ops[i].vnode < w->touched_count) {
            w->touched[ops[i].vnode] = 1;
        }
        if (ops[i].kind != RING_MOVE && ops[i].other < w->touched_count) {
            w->touched[ops[i].other] = 1;
        }
    }
}

static bool is_touched(const struct walk *w, const struct ring_op *ops, size_t count)
{
    if (mutant(M_OVERLAP)) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        if (w->touched[ops[i].vnode] != 0 ||
            (ops[i].kind != RING_MOVE && w->touched[ops[i].other] != 0)) {
            return true;
        }
    }
    return false;
}

/* It takes part in one thing more. */
static void take_place(struct walk *w, uint16_t slot, uint16_t with)
{
    if (w->slow[slot] == 0 && w->slow[with] != 0 && w->beside[slot] < BESIDE_MAX) {
        w->beside[slot]++;
    } else {
        w->busy[slot]++;
    }
}

static bool is_slow(const struct walk *w, uint16_t a, uint16_t b)
{
    return w->slow[a] != 0 || w->slow[b] != 0;
}

static void take_places(struct walk *w, struct move_pair p)
{
    w->flying++;
    take_place(w, p.a, p.b);
    take_place(w, p.b, p.a);
    w->pair[w->pair_count++] = p;
}

static bool is_together(const struct walk *w, uint16_t source, uint16_t target)
{
    for (size_t i = 0; i < w->pair_count; i++) {
        if (w->pair[i].a == source && w->pair[i].b == target) {
            return true;
        }
    }
    return false;
}

/* Of a transaction. With one or no part the other is none; that is nobody. */
static struct move_pair pair_of(const struct state_txn *t)
{
    struct move_pair p = {RING_NODE_NONE, RING_NODE_NONE};

    for (size_t i = 0; i < t->op_count; i++) {
        if (t->ops[i].kind == RING_MOVE) {
            p = (struct move_pair){t->ops[i].from, t->ops[i].to};
        }
    }
    return p;
}

static void walk_init(const struct coordinator *c, struct walk *w, bool spread)
{
    *w = (struct walk){.touched_count = greatest_vnode(c) + 1, .spread = spread};
    w->touched = mem_new(w->touched_count, 1);
    w->pair =
        mem_new(c->state->txn_count + c->proposals.count + c->config.txns_max, sizeof *w->pair);
    eligibility_mark_slow(c, w->slow);
    for (size_t i = 0; i < c->state->txn_count; i++) {
        const struct state_txn *t = &c->state->txn[i];

        if (t->state != TXN_PENDING) {
            continue;
        }
        touch(w, t->ops, t->op_count);
        take_places(w, pair_of(t));
    }
    for (size_t i = 0; i < c->proposals.count; i++) {
        const struct proposal *p = &c->proposals.item[i];

        if (p->kind == PROPOSAL_BEGIN && p->txn == 0) {
            touch(w, p->ops, p->op_count);
            take_places(w, (struct move_pair){p->source, p->target});
        }
    }
}

static void walk_free(struct walk *w)
{
    mem_free(w->pair);
    mem_free(w->touched);
    mem_free(w);
}

/* A slow node takes part in one thing at a time: its caps are everyone's. Who does something with
 * it does that beside, and else only when all others have had their turn. */
static bool has_room(const struct coordinator *c, const struct walk *w, uint16_t slot,
                     uint16_t with)
{
    if (w->slow[slot] != 0) {
        return w->busy[slot] < 1;
    }
    if (w->slow[with] != 0 && w->beside[slot] < BESIDE_MAX) {
        return true;
    }
    return w->busy[slot] < c->config.txns_per_node && (w->slow[with] == 0 || !w->spread);
}

static struct obstacle node_obstacle(struct coordinator *c, uint16_t slot)
{
    const struct state_node *node = state_node(c->state, slot);
    const struct obstacle gone = {OBSTACLE_SILENT, slot, 0, 0};

    return node == NULL ? gone : eligibility_obstacle(c, node);
}

/* What is wished is planned, whoever reads what. */
static struct obstacle unread_obstacle(const struct coordinator *c, const struct plan_txn *t)
{
    struct obstacle o = {.reason = OBSTACLE_NONE};

    for (size_t i = 0; i < t->op_count; i++) {
        const struct ring_vnode *v = ring_find(&c->state->view.ring, t->ops[i].vnode);

        // What is cut in the same transaction is of the segment of what it is cut from.
        if (v != NULL &&
            state_versions_unread(
                c, t->source, t->target, ring_segment_at(&c->state->view.ring, v->from), NULL)) {
            o = (struct obstacle){OBSTACLE_UNREAD, t->target, t->source, 0};
        }
    }
    return o;
}

/* Why may these two do nothing together now, but for the caps? Of several what lasts longest. */
static struct obstacle pair_obstacle(struct coordinator *c, const struct plan_txn *t)
{
    struct obstacle o = {.reason = OBSTACLE_NONE};

    if (t->target != 0) {
        o = obstacle_longer(node_obstacle(c, t->source), node_obstacle(c, t->target));
        o = obstacle_longer(o, eligibility_pair_obstacle(c, t->source, t->target));
        o = obstacle_longer(unread_obstacle(c, t), o);
    }
    return o;
}

/* True: it may begin. Else note which cap forbids it, if it is one that a slow node fills. */
static bool caps_allow(const struct coordinator *c, struct walk *w, const struct plan_txn *t)
{
    const bool room = w->flying < c->config.txns_max;
    const bool source = t->target == 0 || has_room(c, w, t->source, t->target);
    const bool target = t->target == 0 || has_room(c, w, t->target, t->source);

    if (room && source && target) {
        return true;
    }
    if (!is_slow(w, t->source, t->target)) {
        w->starved = w->starved || !room;
        w->starved_node[t->source] |= !source;
        w->starved_node[t->target] |= !target;
    }
    return false;
}

static void visit(struct coordinator *c, struct walk *w, size_t at)
{
    const struct plan_txn *t = &c->rebalance.plan.txn[at];

    if (is_touched(w, t->ops, t->op_count)) {
        touch(w, t->ops, t->op_count); // in the plan's order, vnode by vnode
        return;
    }
    touch(w, t->ops, t->op_count);
    if (w->spread && t->target != 0 &&
        (is_together(w, t->source, t->target) ||
         (is_slow(w, t->source, t->target) && !caps_allow(c, w, t)))) {
        w->left_out = true;
        return;
    }
    // Of most of a long plan the caps are all that has to be looked at; which of them they are
    // matters only where someone waits.
    if (!w->waits && !caps_allow(c, w, t)) {
        return;
    }
    if (pair_obstacle(c, t).reason != OBSTACLE_NONE || !caps_allow(c, w, t)) {
        return;
    }
    if (ring_check(&c->state->view.ring, t->ops, t->op_count) != ERR_OK) {
        w->misfit = true;
        return;
    }
    if (!begin(c, at)) {
        return;
    }
    c->rebalance.planned[at].begun = true;
    take_places(w, (struct move_pair){t->source, t->target});
}

/* Does it fill a cap that lets something else wait? */
static bool is_in_the_way(const struct walk *w, const struct state_txn *t)
{
    bool filled = w->starved;

    for (size_t i = 0; i < t->part_count; i++) {
        filled = filled || w->starved_node[t->parts[i].slot] != 0;
    }
    return filled;
}

/* What waits for a slow node makes room for what would not: one at a time, oldest first. It is
 * planned still, and begins again after its back-off. */
static void make_room(struct coordinator *c, const struct walk *w)
{
    for (size_t i = 0; i < c->drives.count; i++) {
        if (c->drives.item[i].yields) {
            return; // on its way out
        }
    }
    for (size_t i = 0; i < c->drives.count; i++) {
        const struct drive *d = &c->drives.item[i];
        const uint16_t slot = eligibility_culprit(c, d);
        const struct state_node *node = state_node(c->state, slot);
        const struct state_txn *t = state_txn(c->state, d->txn);

        if (node != NULL && t != NULL && is_in_the_way(w, t) && !mutant(M_NOTIMER)) {
            drive_yield(&c->drives.item[i], node);
            return;
        }
    }
}

static bool someone_waits(const struct coordinator *c)
{
    for (size_t i = 0; i < c->drives.count; i++) {
        if (eligibility_culprit(c, &c->drives.item[i]) != 0) {
            return true;
        }
    }
    return false;
}

/* Walking the plan would begin nothing: as many as may be are in flight, or all are begun. */
static bool is_full(const struct coordinator *c)
{
    const size_t flying = c->drives.count + beginning(c);

    return flying >= c->config.txns_max || (flying > 0 && unbegun(c) == 0);
}

/* A COMMIT on its way through the log makes the version greater: what begins behind it would be
 * refused, for its base is this one (specification §3.1). */
static bool version_changes(const struct coordinator *c)
{
    for (size_t i = 0; i < c->proposals.count; i++) {
        if (c->proposals.item[i].kind == PROPOSAL_DECIDE) {
            return true;
        }
    }
    return false;
}

/* Of a walk that spreads, true: there is more, and room for it. */
static bool walk(struct coordinator *c, bool spread)
{
    struct walk *w = mem_new(1, sizeof *w);
    size_t left = 0;

    walk_init(c, w, spread);
    w->waits = !spread && someone_waits(c);
    for (size_t i = 0;
         i < c->rebalance.plan.txn_count && (w->flying < c->config.txns_max || w->waits);
         i++) {
        if (!c->rebalance.planned[i].begun) {
            visit(c, w, i);
            left += !c->rebalance.planned[i].begun;
        }
    }
    if (w->waits) {
        make_room(c, w);
    }
    const bool more = w->left_out && w->flying < c->config.txns_max;

    // Done, or stuck for good: look again, from what is now.
    if (w->flying == 0 && (left == 0 || w->misfit)) {
        rebalance_touch(c);
    }
    walk_free(w);
    return more || someone_waits(c);
}

static void start_what_can(struct coordinator *c)
{
    if (!version_changes(c) && (!is_full(c) || someone_waits(c)) && walk(c, true)) {
        (void)walk(c, false);
    }
}

/* Changes with what the node told: of the states that it reads, and of the parts that it takes. */
static uint64_t told(const struct coordinator *c, const struct state_node *n, bool by_hosts)
{
    const struct seen *seen = peers_seen(c, n);

    if (seen == NULL) {
        return 0;
    }
    return (seen->states.count == 0 ? 0 : state_versions_mix(&seen->states)) ^
           parts_mix(&seen->parts) ^ (seen->states.told && by_hosts ? 1 : 0);
}

/* Changes when someone comes to life or is gone, or tells anew what it reads or takes. */
static uint64_t lives(struct coordinator *c)
{
    const bool by_hosts = has_hosts_segment(c);
    uint64_t sum = 1;

    for (size_t i = 0; i < c->state->node_count; i++) {
        const struct state_node *n = &c->state->node[i];

        sum = (sum ^ n->incarnation) * UINT64_C(0x9e3779b97f4a7c15);
        sum += (peers_live(c, n) ? 2u : 0u) + (peers_gone(c, n) ? 1u : 0u);
        sum += told(c, n, by_hosts);
    }
    return sum;
}

static void look_who_lives(struct coordinator *c)
{
    uint64_t alive;

    if (c->rebalance.lives != 0 &&
        c->now_us - c->rebalance.lives_us < (uint64_t)LIVES_PERIOD_MS * 1000) {
        return;
    }
    c->rebalance.lives_us = c->now_us;
    eligibility_update(c);
    alive = lives(c);
    if (alive != c->rebalance.lives) {
        c->rebalance.lives = alive;
        rebalance_touch(c);
    }
}

/* Changes come together, joins above all: wait until there was none for settle_ms, but not for
 * ever.
 */
static bool has_settled(const struct coordinator *c)
{
    const uint64_t settle_us = (uint64_t)c->config.settle_ms * 1000;

    return c->now_us - c->rebalance.touched_us >= settle_us ||
           c->now_us - c->rebalance.dirty_us >= SETTLES * settle_us;
}

/* ---- why nothing begins ---- */

static uint64_t left_us(const struct coordinator *c, uint64_t until_us)
{
    return until_us > c->now_us ? until_us - c->now_us : 0;
}

/* Until has_settled(). */
static uint64_t settles_us(const struct coordinator *c)
{
    const uint64_t settle_us = (uint64_t)c->config.settle_ms * 1000;
    const uint64_t quiet_us = left_us(c, c->rebalance.touched_us + settle_us);
    const uint64_t all_us = left_us(c, c->rebalance.dirty_us + SETTLES * settle_us);

    return quiet_us < all_us ? quiet_us : all_us;
}

/* The node is full, or slow and at something. */
static struct obstacle room_obstacle(const struct coordinator *c, const struct walk *w,
                                     uint16_t slot, uint16_t with)
{
    struct obstacle o = {.reason = OBSTACLE_NONE};

    if (!has_room(c, w, slot, with)) {
        o = (struct obstacle){w->slow[slot] != 0 ? OBSTACLE_SLOW : OBSTACLE_NODE_CAP, slot, 0, 0};
    }
    return o;
}

static struct obstacle cap_obstacle(const struct coordinator *c, const struct walk *w,
                                    const struct plan_txn *t)
{
    struct obstacle o = {.reason = OBSTACLE_NONE};

    if (w->flying >= c->config.txns_max) {
        o.reason = OBSTACLE_FLEET_CAP;
    } else if (t->target != 0) {
        o = room_obstacle(c, w, t->source, t->target);
        o = o.reason == OBSTACLE_NONE ? room_obstacle(c, w, t->target, t->source) : o;
    }
    return o;
}

/* As visit() judges, but a wait that has an end is told first: a cap says nothing of who waits ten
 * seconds anyway. */
static struct obstacle txn_obstacle(struct coordinator *c, struct walk *w, const struct plan_txn *t)
{
    const bool touched = is_touched(w, t->ops, t->op_count);
    struct obstacle o = pair_obstacle(c, t);

    touch(w, t->ops, t->op_count);
    if (o.reason == OBSTACLE_NONE && touched) {
        o.reason = OBSTACLE_ORDER;
    } else if (o.reason == OBSTACLE_NONE) {
        o = cap_obstacle(c, w, t);
    }
    return o;
}

static void add_planned(struct coordinator *c, struct walk *w, struct obstacles *out)
{
    for (size_t i = 0; i < c->rebalance.plan.txn_count; i++) {
        const struct plan_txn *t = &c->rebalance.plan.txn[i];
        const struct state_node *source = state_node(c->state, t->source);
        struct obstructed o = {.txns = 1, .vnodes = t->target == 0 ? 0 : (uint32_t)t->op_count};

        if (c->rebalance.planned[i].begun) {
            continue;
        }
        o.by = txn_obstacle(c, w, t);
        o.drains = source != NULL && source->leaving ? source->slot : 0;
        if (o.by.reason != OBSTACLE_NONE) {
            obstacles_add(out, &o);
        } else if (w->flying < c->config.txns_max) {
            take_places(w, (struct move_pair){t->source, t->target}); // it begins at the next step
        }
    }
}

/* Of the segment; NULL = the default one. */
static bool others_take(struct coordinator *c, const struct state_node *node,
                        const struct ring_segment *segment)
{
    for (size_t i = 0; i < c->state->node_count; i++) {
        const struct state_node *n = &c->state->node[i];

        if (n != node && !n->leaving && !n->barred && !peers_gone(c, n) &&
            strcmp(n->role, node->role) == 0 && ring_kinds_fit(&n->kinds, segment)) {
            return true;
        }
    }
    return false;
}

/* Its vnodes that nobody else could take. */
static size_t count_alone(struct coordinator *c, const struct state_node *node)
{
    const struct ring *r = &c->state->view.ring;
    size_t count = 0;

    for (size_t s = 0; s <= r->segment_count; s++) {
        const struct ring_segment *segment = s == 0 ? NULL : &r->segment[s - 1];

        if (!others_take(c, node, segment)) {
            for (size_t i = 0; i < r->vnode_count; i++) {
                count += r->vnode[i].owner == node->slot &&
                         ring_segment_at(r, r->vnode[i].from) == segment;
            }
        }
    }
    return count;
}

/* Somebody would take what this one has, and can't read it: that one. All of them: it is the
 * drain's end that waits for it. NULL = none, or somebody can. */
static const struct state_node *unread_by(struct coordinator *c, const struct state_node *source)
{
    const struct state_node *unable = NULL;

    for (size_t i = 0; i < c->state->node_count; i++) {
        const struct state_node *n = &c->state->node[i];

        if (n == source || n->leaving || peers_gone(c, n) || strcmp(n->role, source->role) != 0) {
            continue;
        }
        if (!state_versions_unread_any(c, source->slot, n->slot, NULL)) {
            return NULL;
        }
        unable = unable == NULL ? n : unable;
    }
    return unable;
}

/* Somebody who stays has vnodes that this one, which has none, can't read; NULL = none, or there is
 * one of whom it could take some. */
static const struct state_node *unread_of(struct coordinator *c, const struct state_node *target)
{
    const struct state_node *giver = NULL;

    for (size_t i = 0; i < c->state->node_count; i++) {
        const struct state_node *n = &c->state->node[i];

        if (n == target || peers_gone(c, n) || strcmp(n->role, target->role) != 0 ||
            ring_owned_count(&c->state->view.ring, n->slot) == 0) {
            continue;
        }
        if (!state_versions_unread_any(c, n->slot, target->slot, NULL)) {
            return NULL;
        }
        giver = giver == NULL ? n : giver;
    }
    return giver;
}

/* What is not planned, since nobody could read it (plan_limits.may). */
static void add_unread(struct coordinator *c, struct obstacles *out)
{
    for (size_t i = 0; i < c->state->node_count; i++) {
        const struct state_node *n = &c->state->node[i];
        const size_t owned = ring_owned_count(&c->state->view.ring, n->slot);
        const bool drains = n->leaving && owned > 0;
        const struct state_node *by = drains ? unread_by(c, n) : NULL;
        const struct state_node *of =
            n->leaving || owned > 0 || peers_gone(c, n) ? NULL : unread_of(c, n);

        if (by != NULL) {
            const struct obstructed o = {.by = {OBSTACLE_UNREAD, by->slot, n->slot, 0},
                                         .drains = n->slot,
                                         .vnodes = (uint32_t)owned};

            obstacles_add(out, &o);
        } else if (of != NULL) {
            const struct obstructed o = {.by = {OBSTACLE_UNREAD, n->slot, of->slot, 0}};

            obstacles_add(out, &o);
        }
    }
}

/* Drains of which there is no plan, or none for all. */
static void add_alone(struct coordinator *c, struct obstacles *out)
{
    for (size_t i = 0; i < c->state->node_count; i++) {
        const struct state_node *n = &c->state->node[i];
        const size_t alone = n->leaving ? count_alone(c, n) : 0;

        if (alone > 0) {
            const struct obstructed o = {.by = {OBSTACLE_ALONE, n->slot, 0, 0},
                                         .drains = n->slot,
                                         .vnodes = (uint32_t)alone};

            obstacles_add(out, &o);
        }
    }
}

void rebalance_obstacles(struct coordinator *c, struct obstacles *out)
{
    const struct obstructed planning = {.by = {OBSTACLE_PLANNING, 0, 0, settles_us(c)}};
    const struct obstructed restored = {
        .by = {OBSTACLE_RESTORED, 0, 0, left_us(c, lease_elders_over_us(c))}};
    const struct obstructed log = {.by = {OBSTACLE_LOG, 0, 0, left_us(c, c->proposals.quiet_us)}};

    *out = (struct obstacles){.count = 0};
    if (!c->leading) {
        return;
    }
    if (fence_settling(c)) {
        obstacles_add(out, &restored);
        return;
    }
    if (c->rebalance.dirty) {
        obstacles_add(out, &planning);
    }
    if (log.by.left_us > 0) {
        obstacles_add(out, &log);
    }
    if (c->rebalance.has_plan && !c->rebalance.dirty) {
        struct walk *w = mem_new(1, sizeof *w);

        walk_init(c, w, false);
        add_planned(c, w, out);
        walk_free(w);
    }
    add_alone(c, out);
    if (some_told(c)) {
        add_unread(c, out);
    }
}

void rebalance_run(struct coordinator *c)
{
    look_who_lives(c);
    if (c->rebalance.dirty && has_settled(c)) {
        c->rebalance.dirty = false;
        drop_plan(c);
        if (c->state->view.ring.vnode_count > 0) {
            make_plan(c);
        }
    }
    // A plan that is about to be replaced begins nothing more.
    if (c->rebalance.has_plan && c->rebalance.plan.txn_count > 0 && !c->rebalance.dirty &&
        c->now_us >= c->proposals.quiet_us) {
        start_what_can(c);
    }
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * A router under test and the leader that feeds it: a view of which every
 * change is told to the router as a whole or as a delta.
 */
#ifndef TESTS_GATEWAY_ROUTER_RIG_H
#define TESTS_GATEWAY_ROUTER_RIG_H

#include "base/mem.h"
#include "route/router.h"
#include "wire/control.h"

#include <stdio.h>
#include <string.h>

enum { RIG_VNODES = 16 };

struct rig {
    struct router *router;
    struct router_effects effects;
    struct view leader; /* what the fleet agreed on */
    uint64_t now_us;
};

static inline void rig_init(struct rig *rig, const struct router_config *config)
{
    *rig = (struct rig){.router = router_new(config), .now_us = 1000000};
    view_init(&rig->leader, RING_GRID_MIN);
    rig->leader.key = (struct ring_key){1, 2};
}

static inline void rig_fini(struct rig *rig)
{
    router_check(rig->router);
    router_free(rig->router);
    router_effects_fini(&rig->effects);
    view_fini(&rig->leader);
}

/* The effects of the event are in rig->effects until the next call. */
static inline void rig_step(struct rig *rig, struct router_event event)
{
    char name[16];

    event.now_us = rig->now_us;
    if (event.type == ROUTER_NODE_UP && event.name == NULL) { // as rig_add_member() calls it
        (void)snprintf(name, sizeof name, "n%u", event.slot);
        event.name = name;
    }
    router_effects_clear(&rig->effects);
    router_step(rig->router, &event, &rig->effects);
    router_check(rig->router);
}

/* The directory gets node `slot`, called "n1", at "host1:1". */
static inline void rig_add_member(struct rig *rig, uint16_t slot, uint64_t incarnation)
{
    struct view *v = &rig->leader;
    size_t at = 0;

    while (at < v->member_count && v->member[at].slot < slot) {
        at++;
    }
    if (at == v->member_count || v->member[at].slot != slot) {
        v->member = mem_resize(v->member, (v->member_count + 1) * sizeof *v->member);
        memmove(v->member + at + 1, v->member + at, (v->member_count - at) * sizeof *v->member);
        v->member_count++;
    }
    v->member[at] = (struct view_member){.slot = slot, .incarnation = incarnation, .weight = 1};
    (void)snprintf(v->member[at].name, sizeof v->member[at].name, "n%u", slot);
    (void)snprintf(v->member[at].address, sizeof v->member[at].address, "host%u:1", slot);
}

/* Tell the router the whole configuration. */
static inline void rig_config(struct rig *rig)
{
    Rh__Config config;
    Rh__ConfigAnswer answer = RH__CONFIG_ANSWER__INIT;
    Rh__Control control = RH__CONTROL__INIT;

    view_config(&rig->leader, &config);
    answer.config = &config;
    answer.version = rig->leader.ring.version;
    control.body_case = RH__CONTROL__BODY_CONFIG;
    control.config = &answer;
    rig_step(rig, (struct router_event){.type = ROUTER_CONTROL, .message = &control});
    view_config_fini(&config);
}

/* Give vnodes to other nodes at the leader: moves, or a take-over (`cold`). The delta goes to the
 * router if `told`. */
struct rig_moves {
    struct ring_op item[RIG_VNODES];
    size_t count;
};
static inline void rig_give(struct rig *rig, const struct rig_moves *moves, uint64_t version,
                            bool cold, bool told)
{
    Rh__RingOp op[RIG_VNODES];
    Rh__RingOp *ops[RIG_VNODES];
    Rh__Delta delta = RH__DELTA__INIT;
    Rh__Commit commit = RH__COMMIT__INIT;
    Rh__Control control = RH__CONTROL__INIT;

    router_effects_clear(&rig->effects);
    for (size_t i = 0; i < moves->count; i++) {
        rh__ring_op__init(&op[i]);
        op[i].kind = RING_MOVE;
        op[i].vnode = moves->item[i].vnode;
        op[i].from = moves->item[i].from;
        op[i].to = moves->item[i].to;
        ops[i] = &op[i];
    }
    delta.prev_version = rig->leader.ring.version;
    delta.version = version;
    delta.txn = cold ? 0 : version;
    delta.cold = cold;
    delta.n_ops = moves->count;
    delta.ops = ops;
    if (cold) {
        ring_reassign(&rig->leader.ring, moves->item, moves->count, version);
    } else {
        ring_apply(&rig->leader.ring, moves->item, moves->count, version, version);
    }
    delta.digest0 = rig->leader.ring.digest[0];
    delta.digest1 = rig->leader.ring.digest[1];
    commit.txn = delta.txn;
    commit.delta = &delta;
    control.body_case = RH__CONTROL__BODY_COMMIT;
    control.commit = &commit;
    if (told) {
        rig_step(rig, (struct router_event){.type = ROUTER_CONTROL, .message = &control});
    }
}

static inline struct ring_op rig_op(const struct rig *rig, struct bytes id, uint16_t to)
{
    const ring_hit hit = view_lookup(&rig->leader, 0, id);

    return (struct ring_op){
        .kind = RING_MOVE, .vnode = ring_hit_vnode(hit), .from = ring_hit_node(hit), .to = to};
}

static inline void rig_move(struct rig *rig, struct bytes id, uint16_t to, uint64_t version,
                            bool told)
{
    const struct rig_moves moves = {.item = {rig_op(rig, id, to)}, .count = 1};

    rig_give(rig, &moves, version, false, told);
}

static inline void rig_take(struct rig *rig, struct bytes id, uint16_t to, uint64_t version)
{
    const struct rig_moves moves = {.item = {rig_op(rig, id, to)}, .count = 1};

    rig_give(rig, &moves, version, true, true);
}

static inline void rig_leader(struct rig *rig, int coordinator, bool leading, uint64_t term)
{
    Rh__Leader leader = RH__LEADER__INIT;
    Rh__Control control = RH__CONTROL__INIT;

    leader.leading = leading;
    leader.term = term;
    control.body_case = RH__CONTROL__BODY_LEADER;
    control.leader = &leader;
    rig_step(rig,
             (struct router_event){
                 .type = ROUTER_CONTROL, .coordinator = coordinator, .message = &control});
}

static inline struct bytes rig_effect_bytes(const struct rig *rig, const struct router_effect *e)
{
    return bytes_of(rig->effects.bytes.data + e->at, e->size);
}

#endif

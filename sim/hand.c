/* SPDX-License-Identifier: Apache-2.0
 *
 * The operator's hand: `ringhold txn resolve`, each repair of `ringhold fix`, `node remove` and
 * `node weight`, while vnodes move and processes die. He goes by what he saw some time before, asks
 * any coordinator, and now and then says the same twice.
 */
#include "base/mem.h"
#include "sim/fleet.h"
#include "wire/control.h"
#include "wire/repair.h"

enum {
    THINKS_US = 400000, /* from what he saw to what he asks, at most */
    AT_ONCE_US = 5000,
    LOOK_US = 20000,
    NUMBERS_BACK = 6, /* so old may be what he takes for a transaction under way */
};

#define HAND_TAG (UINT64_C(1) << 63) /* no wish of sim/operator.c has it */

static void on_ask(void *context, const struct world_event *event)
{
    struct fleet *f = context;
    const bool finds_leader = f->raft.leader >= 0 && world_chance(&f->world, 800);
    const uint64_t any = world_between(&f->world, 0, f->coordinators - 1);
    struct net_end *end = f->operator_end[finds_leader ? (uint64_t)f->raft.leader : any];

    if (end != NULL && (!f->healed || event->b != 0)) {
        network_send(&f->network, end, FRAME_CONTROL, bytes_of(event->data, event->a));
    }
}

void hand_ask(struct fleet *f, Rh__Admin *admin)
{
    Rh__Control control = RH__CONTROL__INIT;
    struct buffer out = {0};

    admin->tag = HAND_TAG | ++f->hands_asked;
    control.body_case = RH__CONTROL__BODY_ADMIN;
    control.admin = admin;
    control_put(&out, &control);
    for (unsigned times = world_chance(&f->world, 300) ? 2 : 1; times > 0; times--) {
        const uint64_t max_us = world_chance(&f->world, 500) ? AT_ONCE_US : THINKS_US;

        world_at(&f->world,
                 f->world.now_us + world_between(&f->world, 0, max_us),
                 (struct world_event){
                     .run = on_ask,
                     .context = f,
                     .a = out.size,
                     .b = f->healed, // what he asks now is of use then, too
                     .data = mem_copy(out.data, out.size),
                 });
    }
    buffer_fini(&out);
}

/* One that pends, mostly; or any number of late, or none that was drawn yet. */
static uint64_t any_txn(struct fleet *f)
{
    const struct state *truth = &f->raft.truth;
    const uint64_t back = world_between(&f->world, 0, NUMBERS_BACK);
    const bool pends = world_chance(&f->world, 850);

    for (size_t i = truth->txn_count; pends && i-- > 0;) {
        if (truth->txn[i].state == TXN_PENDING && (i == 0 || world_chance(&f->world, 700))) {
            return truth->txn[i].number;
        }
    }
    return truth->number > back ? truth->number + 2 - back : truth->number;
}

static void resolve(struct fleet *f)
{
    Rh__Admin admin = RH__ADMIN__INIT;
    Rh__AdminResolve body = RH__ADMIN_RESOLVE__INIT;

    body.txn = any_txn(f);
    body.choice = (Rh__ResolveChoice)world_between(
        &f->world, RH__RESOLVE_CHOICE__RESOLVE_EXPLAIN, RH__RESOLVE_CHOICE__RESOLVE_RETRY);
    body.by = proto_text("op");
    admin.what_case = RH__ADMIN__WHAT_RESOLVE;
    admin.resolve = &body;
    TRACE(&f->world, "op", "resolves %llu: choice %d", (unsigned long long)body.txn, body.choice);
    hand_ask(f, &admin);
}

static void repair(struct fleet *f)
{
    struct process *p = fleet_process(
        f, f->coordinators + (unsigned)world_between(&f->world, 0, f->nodes + f->gateways - 1));
    const bool node = p->role == ROLE_NODE;
    Rh__Admin admin = RH__ADMIN__INIT;
    Rh__AdminRepair body = RH__ADMIN_REPAIR__INIT;

    body.role = (uint32_t)p->role;
    body.name = proto_text(process_says(p));
    body.incarnation = node ? fleet_node(p)->incarnation : fleet_gateway(p)->id;
    body.what = (uint32_t)world_between(&f->world, REPAIR_TASK_FETCH, REPAIR_TASK_EXIT);
    body.txn = any_txn(f);
    body.by = proto_text("op");
    admin.what_case = RH__ADMIN__WHAT_REPAIR;
    admin.repair = &body;
    TRACE(&f->world, "op", "mends %s: %u", p->name, body.what);
    hand_ask(f, &admin);
}

/* One that is down: by the time that he says so it may be back, as another one. */
static void remove_node(struct fleet *f, struct sim_node *n)
{
    Rh__Admin admin = RH__ADMIN__INIT;
    Rh__AdminRemove body = RH__ADMIN_REMOVE__INIT;

    if (n->core == NULL) {
        body.name = proto_text(n->process.name);
        body.by = proto_text("op");
        body.wish = world_between(&f->world, 1, UINT64_MAX - 1);
        body.seen = f->raft.truth.number;
        admin.what_case = RH__ADMIN__WHAT_REMOVE;
        admin.remove = &body;
        TRACE(&f->world, "op", "removes %s", n->process.name);
        hand_ask(f, &admin);
    }
}

static void weigh(struct fleet *f, struct sim_node *n)
{
    Rh__Admin admin = RH__ADMIN__INIT;
    Rh__AdminWeight body = RH__ADMIN_WEIGHT__INIT;

    body.name = proto_text(n->process.name);
    body.weight = (uint32_t)world_between(&f->world, 1, 3);
    body.wish = world_between(&f->world, 1, UINT64_MAX - 1);
    body.seen = f->raft.truth.number;
    admin.what_case = RH__ADMIN__WHAT_WEIGHT;
    admin.weight = &body;
    TRACE(&f->world, "op", "gives %s weight %u", n->process.name, body.weight);
    hand_ask(f, &admin);
}

static void on_resolve(void *context, const struct world_event *event)
{
    struct fleet *f = context;

    if (!f->healed && state_pending_count(&f->raft.truth) == 0 && world_chance(&f->world, 980)) {
        world_at(&f->world, f->world.now_us + LOOK_US, *event);
    } else if (!f->healed) {
        resolve(f);
    }
}

static void on_hand(void *context, const struct world_event *event)
{
    struct fleet *f = context;
    struct sim_node *n = &f->node[world_between(&f->world, 0, f->nodes - 1)];
    const uint64_t what = world_between(&f->world, 0, 14);

    (void)event;
    if (f->healed) {
        return;
    }
    if (what < 5) {
        on_resolve(f, &(struct world_event){.run = on_resolve, .context = f});
    } else if (what < 8) {
        repair(f);
    } else if (what < 9) {
        remove_node(f, n);
    } else if (what < 10) {
        weigh(f, n);
    } else {
        placement_wish(f);
    }
    hand_start(f);
}

void hand_start(struct fleet *f)
{
    if (f->faults.hand_us > 0) {
        world_at(&f->world,
                 f->world.now_us + world_gap(&f->world, f->faults.hand_us),
                 (struct world_event){.run = on_hand, .context = f});
    }
}

void hand_told(struct fleet *f, const Rh__AdminReply *reply)
{
    if ((reply->tag & HAND_TAG) != 0) {
        f->hands_done += reply->error[0] == '\0' && reply->text[0] != '\0';
        TRACE(&f->world, "op", "is told: %s%s", reply->error, reply->text);
    }
}

void hand_ended(struct fleet *f, const struct sim_node *n)
{
    const struct state_node *member = state_node_named(&f->raft.truth, n->process.name);

    if (member != NULL && member->incarnation == n->incarnation && !member->barred) {
        world_violate(
            &f->world, "operator", "a repair ends %s, which is a member", n->process.name);
    }
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The simulated operator, who repeats a wish to one coordinator after another
 * until the leader took it. Where his hand is judged (sim/hand.c), what he said
 * comes once more, long after, and he drains the last node of a role.
 */
#include "base/mem.h"
#include "sim/fleet.h"
#include "wire/control.h"

#include <stdio.h>
#include <string.h>

enum { RETRY_US = 700000, LONG_AFTER_US = 3000000 };

/* A wish is said again to one coordinator after another until the leader took it. */
static void on_try(void *context, const struct world_event *event);

static void try_later(struct fleet *f, const struct world_event *event, uint64_t in_us)
{
    world_at(&f->world,
             f->world.now_us + in_us,
             (struct world_event){.run = on_try, .context = f, .a = event->a, .b = event->b});
}

/* Behind its answer a question is passed over, and here one answer may be lost: each time that he
 * says a wish is a question of its own. */
enum { WISH_BITS = 32, TELL_BITS = 24 };

uint64_t operator_tag(struct fleet *f, uint64_t wish)
{
    return wish | (++f->tells & ((UINT64_C(1) << TELL_BITS) - 1)) << WISH_BITS;
}

uint64_t operator_wish(uint64_t tag)
{
    return tag & ~(((UINT64_C(1) << TELL_BITS) - 1) << WISH_BITS);
}

static void tell(struct fleet *f, struct net_end *end, const struct sim_wish *wish)
{
    Rh__Control control = RH__CONTROL__INIT;
    Rh__Admin admin = RH__ADMIN__INIT;
    Rh__AdminDrain drain = RH__ADMIN_DRAIN__INIT;
    struct buffer out = {0};

    drain.name = proto_text(f->node[wish->node].process.name);
    drain.cancel = !wish->drains;
    if (f->faults_of_hand) {
        drain.wish = wish->number;
        drain.seen = wish->seen;
    }
    admin.tag = operator_tag(f, wish->number);
    admin.what_case = RH__ADMIN__WHAT_DRAIN;
    admin.drain = &drain;
    control.body_case = RH__CONTROL__BODY_ADMIN;
    control.admin = &admin;
    control_put(&out, &control);
    network_send(&f->network, end, FRAME_CONTROL, buffer_bytes(&out));
    buffer_fini(&out);
}

static void on_try(void *context, const struct world_event *event)
{
    struct fleet *f = context;
    struct sim_node *n = &f->node[event->a];
    struct net_end *end = f->operator_end[world_between(&f->world, 0, f->coordinators - 1)];

    if (n->wish != event->b) {
        return; // done, or another wish came after it
    }
    if (end != NULL) {
        tell(f, end, &n->wished);
    }
    try_later(f, event, RETRY_US);
}

/* The leader was told long before, and he may have wished something else since. */
static void on_again(void *context, const struct world_event *event)
{
    struct fleet *f = context;
    struct net_end *end = f->operator_end[world_between(&f->world, 0, f->coordinators - 1)];
    const struct sim_wish *wish = event->data;
    const struct state_node *known =
        state_node_named(&f->raft.truth, f->node[wish->node].process.name);

    // A name that is registered anew has forgotten what was wished of it.
    if (end != NULL && !f->healed && known != NULL && known->wished != 0) {
        TRACE(&f->world, "op", "says wish %llu again", (unsigned long long)wish->number);
        tell(f, end, wish);
    }
}

static void say_again(struct fleet *f, const struct sim_wish *wish)
{
    const uint64_t in_us = world_between(&f->world, 0, LONG_AFTER_US);

    world_at(
        &f->world,
        f->world.now_us + in_us,
        (struct world_event){.run = on_again, .context = f, .data = mem_copy(wish, sizeof *wish)});
}

void operator_start(struct fleet *f)
{
    struct process *p = &f->operator_process;

    f->faults_of_hand = f->faults.hand_us > 0;
    p->role = ROLE_CLI;
    p->number = NETWORK_PROCESSES_MAX - 1;
    (void)snprintf(p->name, sizeof p->name, "op");
    p->up = true;
    p->life = 1;
    for (unsigned i = 0; i < f->coordinators; i++) {
        network_dial(&f->network, p, &f->coordinator[i].process, i);
    }
}

void operator_drain(struct fleet *f, struct sim_node *n, bool cancel)
{
    TRACE(&f->world, "op", "%s %s", cancel ? "takes back the drain of" : "drains", n->process.name);
    n->leaving = n->drains = !cancel;
    n->wish = ++f->wishes;
    n->wished = (struct sim_wish){.node = (unsigned)(n - f->node),
                                  .number = n->wish,
                                  .seen = f->raft.truth.number,
                                  .drains = n->drains};
    try_later(f, &(struct world_event){.a = (uint64_t)(n - f->node), .b = n->wish}, 0);
}

void operator_looks(struct fleet *f, struct sim_node *n)
{
    const struct state_node *known = state_node_named(&f->raft.truth, n->process.name);

    // Who was told to stop is not drained: the REGISTER of its next life takes that back.
    if (known != NULL && (known->leaving && !known->stopping) != n->leaving && !n->stopping &&
        n->wish == 0) {
        operator_drain(f, n, !n->leaving);
    }
}

/* Is it the only one of its role that stays, as the coordinators know them? */
static bool stays_alone(const struct fleet *f, const struct state_node *node)
{
    for (size_t i = 0; i < f->raft.truth.node_count; i++) {
        const struct state_node *other = &f->raft.truth.node[i];

        if (other != node && !other->leaving && !other->barred &&
            strcmp(other->role, node->role) == 0) {
            return false;
        }
    }
    return true;
}

bool operator_drains_last(struct fleet *f, const struct sim_node *n)
{
    const struct state_node *known = state_node_named(&f->raft.truth, n->process.name);

    return f->faults_of_hand && known != NULL && stays_alone(f, known);
}

/* What came between was not seen: he looks, and wishes it anew. */
static void take_reply(struct fleet *f, struct sim_node *n, const Rh__AdminReply *reply)
{
    if (strstr(reply->error, "superseded") != NULL) {
        operator_drain(f, n, !n->drains);
    } else if (f->faults_of_hand && reply->error[0] == '\0') {
        say_again(f, &n->wished);
    }
}

void operator_registered(struct fleet *f, const Rh__CommandRegister *in)
{
    for (unsigned i = 0; in->replaces == 0 && i < f->nodes; i++) {
        struct sim_node *n = &f->node[i];

        if (strcmp(n->process.name, in->name) == 0) {
            n->done = n->done_stamp = 0;
        }
    }
    for (unsigned i = 0; in->replaces != 0 && i < f->nodes; i++) {
        const struct sim_node *n = &f->node[i];
        const struct state_node *node = state_node_named(&f->raft.truth, in->name);

        if (node != NULL && n->row_incarnation == in->replaces && n->row_drains != node->leaving) {
            world_violate(&f->world,
                          "operator",
                          "%s %s when its process began anew",
                          in->name,
                          node->leaving ? "is drained" : "is drained no more");
        }
    }
}

void operator_sees(struct fleet *f)
{
    for (unsigned i = 0; i < f->nodes; i++) {
        struct sim_node *n = &f->node[i];
        const struct state_node *node = state_node_named(&f->raft.truth, n->process.name);

        n->row_incarnation = node == NULL ? 0 : node->incarnation;
        n->row_drains = node != NULL && node->leaving && !node->stopping;
    }
}

void operator_committed(struct fleet *f, const Rh__CommandDesire *in,
                        const struct state_result *result)
{
    const struct state_node *node = state_node_named(&f->raft.truth, in->name);

    for (unsigned i = 0; node != NULL && in->wish != 0 && i < f->nodes; i++) {
        struct sim_node *n = &f->node[i];

        if (strcmp(n->process.name, in->name) != 0 || result->stamp == 0) {
            continue;
        }
        if (in->wish == n->done || in->seen < n->done_stamp) {
            world_violate(&f->world,
                          "operator",
                          "wish %llu for %s is done again, or after a later one",
                          (unsigned long long)in->wish,
                          in->name);
        }
        n->done = in->wish;
        n->done_stamp = result->stamp;
    }
    if (node != NULL && result->delta != NULL && node->leaving && in->weight == 0 &&
        stays_alone(f, node)) {
        world_violate(
            &f->world, "operator", "%s drains, and was the last of its role that stays", in->name);
    }
}

void operator_message(struct fleet *f, const Rh__Control *message)
{
    const Rh__AdminReply *reply = message->admin_reply;

    past_told(f, message);
    if (message->body_case != RH__CONTROL__BODY_ADMIN_REPLY) {
        return; // NotLeader, Leader: the next try goes elsewhere
    }
    roles_told(f, reply);
    hand_told(f, reply);
    maintenance_told(f, reply);
    for (unsigned i = 0; i < f->nodes; i++) {
        struct sim_node *n = &f->node[i];

        // "… try again": he does.
        if (n->wish != 0 && n->wish == operator_wish(reply->tag) &&
            strstr(reply->error, "not ready") == NULL) {
            TRACE(&f->world, "op", "is told about %s: %s", n->process.name, reply->error);
            n->wish = 0;
            n->leaving = n->stopping || (n->drains && reply->error[0] == '\0');
            take_reply(f, n, reply);
        }
    }
}

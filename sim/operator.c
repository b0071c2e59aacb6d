/* SPDX-License-Identifier: Apache-2.0
 *
 * The simulated operator, who repeats a wish to one coordinator after another
 * until the leader took it.
 */
#include "sim/fleet.h"
#include "wire/control.h"

#include <stdio.h>
#include <string.h>

enum { RETRY_US = 700000 };

/* A wish is said again to one coordinator after another until the leader took it. */
static void on_try(void *context, const struct world_event *event);

static void try_later(struct fleet *f, const struct world_event *event, uint64_t in_us)
{
    world_at(&f->world,
             f->world.now_us + in_us,
             (struct world_event){.run = on_try, .context = f, .a = event->a, .b = event->b});
}

static void tell(struct fleet *f, struct net_end *end, const struct sim_node *n, uint64_t tag)
{
    Rh__Control control = RH__CONTROL__INIT;
    Rh__Admin admin = RH__ADMIN__INIT;
    Rh__AdminDrain drain = RH__ADMIN_DRAIN__INIT;
    struct buffer out = {0};

    drain.name = proto_text(n->process.name);
    drain.cancel = !n->drains;
    admin.tag = tag;
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
        tell(f, end, n, n->wish);
    }
    try_later(f, event, RETRY_US);
}

void operator_start(struct fleet *f)
{
    struct process *p = &f->operator_process;

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

void operator_message(struct fleet *f, const Rh__Control *message)
{
    const Rh__AdminReply *reply = message->admin_reply;

    past_told(f, message);
    if (message->body_case != RH__CONTROL__BODY_ADMIN_REPLY) {
        return; // NotLeader, Leader: the next try goes elsewhere
    }
    roles_told(f, reply);
    hand_told(f, reply);
    for (unsigned i = 0; i < f->nodes; i++) {
        struct sim_node *n = &f->node[i];

        // "… try again": he does.
        if (n->wish != 0 && n->wish == reply->tag && strstr(reply->error, "not ready") == NULL) {
            TRACE(&f->world, "op", "is told about %s: %s", n->process.name, reply->error);
            n->wish = 0;
            n->leaving = n->stopping || (n->drains && reply->error[0] == '\0');
        }
    }
}

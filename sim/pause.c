/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mutant.h"
#include "sim/fleet.h"

static void go_on(struct fleet *f, struct process *p)
{
    switch (p->role) {
    case ROLE_COORDINATOR:
        coordinator_go_on(f, fleet_coordinator(p));
        break;
    case ROLE_NODE:
        node_go_on(f, fleet_node(p));
        break;
    case ROLE_GATEWAY:
        gateway_go_on(f, fleet_gateway(p));
        break;
    case ROLE_CLI:
        break;
    }
}

static void over(struct fleet *f, struct process *p)
{
    TRACE(&f->world, p->name, "GOES ON");
    record_process(f, HISTORY_RESUME, p);
    // M_MONO: a shell that reads a clock which sleeps with its machine.
    if (p->stood_kind == PAUSE_FREEZE || (p->stood_kind == PAUSE_SUSPEND && mutant(M_MONO))) {
        sim_clock_stood(&p->clock, f->world.now_us, f->world.now_us - p->stood_us);
    }
    if (p->role == ROLE_NODE && fleet_node(p)->core != NULL) {
        f->lease_told_us[fleet_node(p) - f->node] = 0; // its clock may have stood still
        record_lease(f, fleet_node(p));
    }
    // What it was about to do comes before what arrived meanwhile.
    world_open(&f->world, &p->gate);
    go_on(f, p);
}

static void on_over(void *context, const struct world_event *event)
{
    struct fleet *f = context;
    struct process *p = fleet_process(f, (unsigned)event->c);

    // Unless it was killed meanwhile.
    if (p->gate.shut && p->life == event->a && p->stood_us == event->b) {
        over(f, p);
    }
}

void pause_begin(struct fleet *f, struct process *p, uint64_t time_us, enum pause_kind kind)
{
    static const char *const name[] = {"STOPPED", "SUSPENDED", "FROZEN"};

    if (p->gate.shut || !p->up) {
        return;
    }
    TRACE(&f->world, p->name, "is %s for %llu ms", name[kind], (unsigned long long)time_us / 1000);
    f->pauses++;
    record_process(f, HISTORY_PAUSE, p);
    p->stood_us = f->world.now_us;
    p->stood_kind = (int)kind;
    world_shut(&p->gate);
    network_stall(&f->network, p);
    if (p->role == ROLE_COORDINATOR && f->group == NULL) {
        raft_model_stall(&f->raft, p->number);
    }
    world_at(&f->world,
             f->world.now_us + time_us,
             (struct world_event){.run = on_over,
                                  .context = f,
                                  .a = p->life,
                                  .b = p->stood_us,
                                  .c = fleet_process_index(f, p)});
}

void pause_end(struct fleet *f, struct process *p)
{
    if (p->gate.shut) {
        record_process(f, HISTORY_RESUME, p);
        world_open(&f->world, &p->gate);
    }
}

void pause_end_all(struct fleet *f)
{
    for (unsigned i = 0; i < fleet_size(f); i++) {
        struct process *p = fleet_process(f, i);

        if (p->gate.shut) {
            over(f, p);
        }
    }
}

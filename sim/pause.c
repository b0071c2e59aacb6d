/* SPDX-License-Identifier: Apache-2.0
 *
 * Stops and continues simulated processes, and counts which time limits a stop
 * outlasted.
 */
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

/* What is kept for so long, by what is shipped or by this seed; a longer stop goes beyond it. */
static void count(struct fleet *f, uint64_t time_us)
{
    const struct host_config host = host_config_default();
    const uint64_t keep_us[PAUSE_KEEPS] = {
        [PAUSE_LEASE] = f->lease_us,
        [PAUSE_CONN] = (uint64_t)HOST_CONN_MS * 1000,
        [PAUSE_LINGER] = (uint64_t)host.linger_ms * 1000,
        [PAUSE_SESSION] = (uint64_t)host.session_keep_ms * 1000,
    };

    for (size_t i = 0; i < PAUSE_KEEPS; i++) {
        f->pauses_beyond[i] += keep_us[i] > 0 && time_us > keep_us[i];
    }
}

static void over(struct fleet *f, struct process *p)
{
    const uint64_t stood_us = f->world.now_us - p->stood_us;
    const bool saw = p->stood_kind != PAUSE_FREEZE;

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
    count(f, stood_us);
    // What it was about to do comes before what arrived meanwhile.
    network_resume(&f->network, p, saw ? stood_us : 0);
    world_open(&f->world, &p->gate);
    go_on(f, p);
}

static void on_over(void *context, const struct world_event *event)
{
    struct fleet *f = context;
    struct process *p = fleet_process(f, (unsigned)event->c);

    // Unless it was killed meanwhile.
    if (p->gate.shut && p->life == event->a && p->stood_until_us <= f->world.now_us) {
        over(f, p);
    }
}

void pause_begin(struct fleet *f, struct process *p, uint64_t time_us, enum pause_kind kind)
{
    static const char *const name[] = {"STOPPED", "SUSPENDED", "FROZEN"};

    if (!p->up) {
        return;
    }
    if (f->world.now_us + time_us > p->stood_until_us) {
        p->stood_until_us = f->world.now_us + time_us;
        world_at(&f->world,
                 p->stood_until_us,
                 (struct world_event){
                     .run = on_over, .context = f, .a = p->life, .c = fleet_process_index(f, p)});
    }
    if (p->gate.shut) {
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
}

void pause_end(struct fleet *f, struct process *p)
{
    if (p->gate.shut) {
        record_process(f, HISTORY_RESUME, p);
        world_open(&f->world, &p->gate);
    }
    p->stood_until_us = 0;
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

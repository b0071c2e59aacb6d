/* SPDX-License-Identifier: Apache-2.0
 *
 * Feeds the leader's machine with events and does its effects in order.
 */
#include "coordinator/daemon.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/random.h"
#include "link/inject.h"
#include "wire/control.h"

#include <stdio.h>
#include <string.h>

struct daemon_peer *daemon_peer(const struct daemon *d, uint64_t id)
{
    struct table_link *found = table_first(&d->peers, table_mix(id));

    return found == NULL ? NULL : CONTAINER_OF(found, struct daemon_peer, by_id);
}

static void refuse_later(struct daemon *d, uint64_t tag, enum err error)
{
    if (d->refused_count == d->refused_cap) {
        d->refused_cap = d->refused_cap == 0 ? 16 : d->refused_cap * 2;
        d->refused = mem_resize(d->refused, d->refused_cap * sizeof *d->refused);
    }
    d->refused[d->refused_count++] = (struct refused){tag, error};
}

/* A place of the proposal of a COMMIT that moves vnodes; in a build without INJECT nothing looks.
 */
static void inject_commit(const char *place, struct bytes packed)
{
#ifdef RINGHOLD_INJECT
    Rh__Command *command = command_get(packed);

    if (command != NULL && command->body_case == RH__COMMAND__BODY_COMMIT &&
        command->commit->n_voted > 0) {
        inject_point(place);
    }
    command_free(command);
#else
    (void)place;
    (void)packed;
#endif
}

static void propose(struct daemon *d, uint64_t tag, struct bytes command)
{
    inject_commit("commit-proposing", command);
    const enum err error = replica_propose(d->replica, tag, command);
    if (error != ERR_OK) {
        refuse_later(d, tag, error);
    } else {
        inject_commit("commit-proposed", command);
    }
}

static void send_to(struct daemon *d, uint64_t peer, struct bytes message)
{
    const struct daemon_peer *p = daemon_peer(d, peer);

    if (p == NULL) {
        return; // It has just gone; whoever it was asks again.
    }
    const enum err error = link_send(p->link, FRAME_CONTROL, message);
    if (error != ERR_OK) {
        log_warn("coordinator",
                 "send_failed",
                 "peer=%s why=%s",
                 link_peer(p->link)->name,
                 err_name(error));
        return;
    }
}

void daemon_step(struct daemon *d, struct coordinator_event *event)
{
    struct coordinator_effects effects = {0};

    event->now_us = clock_boottime_us();
    event->wall_us = clock_wall_us();
    coordinator_step(d->machine, event, &effects);
    for (size_t i = 0; i < effects.count; i++) {
        const struct coordinator_effect *e = &effects.item[i];
        const struct bytes bytes = {effects.bytes.data + e->at, e->size};

        switch (e->type) {
        case COORDINATOR_PROPOSE:
            propose(d, e->tag, bytes);
            break;
        case COORDINATOR_BARRIER: {
            const enum err error = replica_barrier(d->replica, e->tag);

            if (error != ERR_OK) {
                refuse_later(d, e->tag, error);
            }
            break;
        }
        case COORDINATOR_SEND:
            send_to(d, e->peer, bytes);
            break;
        }
    }
    coordinator_effects_fini(&effects);
}

/* Each refusal may cause another request; the machine backs off, so this ends. */
void daemon_tell_refusals(struct daemon *d)
{
    const size_t count = d->refused_count;

    if (count == 0) {
        return; // there may be no array yet
    }
    for (size_t i = 0; i < count; i++) {
        struct coordinator_event event = {
            .type = COORDINATOR_DONE, .tag = d->refused[i].tag, .error = d->refused[i].error};

        daemon_step(d, &event);
    }
    memmove(d->refused, d->refused + count, (d->refused_count - count) * sizeof *d->refused);
    d->refused_count -= count;
}

void daemon_make_machine(struct daemon *d)
{
    struct coordinator_config config = d->options->machine;

    config.id = d->options->id;
    config.identity = replica_identity(d->replica);
    (void)snprintf(config.cluster, sizeof config.cluster, "%s", d->options->cluster);
    config.fleet = (struct fleet_id){random_u64(), random_u64()};
    random_fill(&config.key, sizeof config.key);
    d->machine = coordinator_new(&config, &d->state);
    daemon_tell_voters(d);
}

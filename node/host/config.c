/* SPDX-License-Identifier: Apache-2.0
 *
 * The configuration: asked for when a newer version is known of, and taken into the view.
 * Specification §4.1.
 */
#include "node/host/inside.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/mutant.h"
#include "base/stamp.h"

enum { MS = 1000, FETCH_AGAIN_MS = 50 };

void topology_init(struct topology *t, struct fleet_id fleet)
{
    view_init(&t->view, RING_GRID_MIN);
    t->view.fleet = fleet;
}

void config_distrust(struct topology *t)
{
    t->fetch_all = true;
}

/* The leader, or when it does not answer, the next coordinator in turn. */
static int whom_to_ask(const struct host *h)
{
    const int leader = leader_of(&h->membership);

    if (leader >= 0 && h->topology.fetch_turn % 2 == 0) {
        return leader;
    }
    for (uint32_t i = 0; i < FINDER_MAX; i++) {
        const uint32_t at = (h->topology.fetch_turn / 2 + i) % FINDER_MAX;

        if (h->membership.coordinator_up[at]) {
            return (int)at;
        }
    }
    return -1;
}

bool config_is_wanted(const struct host *h)
{
    return (h->membership.life != LIFE_JOINING || mutant(M_RESTART)) &&
           h->membership.life != LIFE_OVER &&
           (h->topology.fetch_all || h->topology.want_version > h->topology.view.ring.version);
}

void config_fetch(struct host *h)
{
    Rh__Control c = RH__CONTROL__INIT;
    Rh__GetConfig get = RH__GET_CONFIG__INIT;

    if (!config_is_wanted(h) || h->now_us < h->topology.fetch_us) {
        return;
    }
    h->topology.fetch_us = h->now_us + (uint64_t)h->config.resend_ms * MS;
    get.have_version = h->topology.fetch_all ? 0 : h->topology.view.ring.version;
    get.digest0 = h->topology.view.ring.digest[0];
    get.digest1 = h->topology.view.ring.digest[1];
    c.body_case = RH__CONTROL__BODY_GET_CONFIG;
    c.get_config = &get;
    host_tell(h, whom_to_ask(h), &c);
    h->topology.fetch_turn++;
}

void host_fetch_all(struct host *h)
{
    h->topology.fetch_all = true;
    config_fetch(h);
}

void host_want_version(struct host *h, uint64_t version)
{
    if (version > h->topology.want_version) {
        h->topology.want_version = version;
    }
    config_fetch(h);
}

/* What a dead node had came to me: nobody has served it since that one was heard last, and the new
 * ring is here. An older leader doesn't tell. */
static void note_takeover(struct host *h, const Rh__Delta *delta)
{
    for (size_t i = 0; delta->silent_us > 0 && i < delta->n_ops; i++) {
        if (delta->ops[i]->to == h->membership.slot) {
            metrics_time(&h->topology.takeovers, delta->silent_us);
            return;
        }
    }
}

enum view_result host_take_delta(struct host *h, const Rh__Delta *delta)
{
    const enum view_result result = view_apply(&h->topology.view, delta);

    switch (result) {
    case VIEW_APPLIED:
        cells_grow(h);
        streams_note_taken_over(h, delta);
        note_takeover(h, delta);
        txn_note_committed(h, delta);
        if (delta->n_released > 0) {
            quarantine_released(h);
        }
        break;
    case VIEW_OLD:
        break;
    case VIEW_DIFFERS:
        log_error("node", "delta_differs", "version=%s", STAMP(delta->version));
        h->topology.fetch_all = true;
        break;
    case VIEW_GAP:
        break;
    }
    return result;
}

/* Somebody may wait for a version that was heard of only from a peer. */
static bool is_waited_for(const struct host *h)
{
    bool waited = h->requests.waitver.count > 0 || h->txns.parked_count > 0 ||
                  servers_wait(&h->streams.servers);

    for (size_t i = 0; i < h->txns.participant.part_count; i++) {
        waited = waited || h->txns.participant.part[i]->over;
    }
    return waited;
}

static bool load(struct host *h, const Rh__Config *config)
{
    const bool same = config->version == h->topology.view.ring.version;
    struct view before;

    view_copy(&before, &h->topology.view);
    const enum view_result result =
        view_load(&h->topology.view, config, h->topology.fetch_all && same);
    if (result == VIEW_APPLIED) {
        cells_grow(h);
        streams_note_robbed(h, &before);
        quarantine_released(h); // perhaps
        h->topology.fetch_all = false;
    } else if (result == VIEW_DIFFERS) {
        log_error("node", "config_broken", "version=%s", STAMP(config->version));
    }
    view_fini(&before);
    return result == VIEW_APPLIED;
}

void config_on_answer(struct host *h, const Rh__ConfigAnswer *answer)
{
    bool changed = false;

    if (answer->config != NULL && answer->config->ring.len > 0) {
        changed = load(h, answer->config);
    }
    for (size_t i = 0; i < answer->n_deltas; i++) {
        changed = host_take_delta(h, answer->deltas[i]) == VIEW_APPLIED || changed;
    }
    h->topology.fetch_turn = 0;
    h->topology.fetch_us = h->now_us + (changed ? 0 : (uint64_t)FETCH_AGAIN_MS * MS);
    if (!changed && answer->version >= h->topology.view.ring.version) {
        h->topology.fetch_all = false; // what I have is what they have
    }
    if (changed) {
        host_adopt(h);
    } else if (!is_waited_for(h)) {
        h->topology.want_version = 0;
    }
}

void config_regress(struct host *h, const Rh__Delta *delta)
{
    struct ring_op *ops = view_ops(delta->ops, delta->n_ops);
    struct ring *ring = &h->topology.view.ring;

    for (size_t i = 0; ops != NULL && i < delta->n_ops; i++) {
        const struct ring_vnode *vnode = ring_find(ring, ops[i].vnode);

        ops[i].from = vnode == NULL ? ops[i].from : vnode->owner;
        if (ops[i].kind == RING_MOVE && ring_check(ring, &ops[i], 1) == ERR_OK) {
            ring_apply(ring, &ops[i], 1, ring->version, delta->txn);
        }
    }
    mem_free(ops);
    host_adopt(h);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The configuration: asked for when a newer version is known of, and taken into the view.
 * Specification §4.1.
 */
#include "node/host/inside.h"
#include "node/host/isolate.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/mutant.h"

#include <inttypes.h>
#include <string.h>

enum { MS = 1000, FETCH_AGAIN_MS = 50 };

/* The leader, or when it does not answer, the next coordinator in turn. */
static int whom_to_ask(const struct host *h)
{
    const int leader = leader_of(h);

    if (leader >= 0 && h->fetch_turn % 2 == 0) {
        return leader;
    }
    for (uint32_t i = 0; i < FINDER_MAX; i++) {
        const uint32_t at = (h->fetch_turn / 2 + i) % FINDER_MAX;

        if (h->coordinator_up[at]) {
            return (int)at;
        }
    }
    return -1;
}

static bool needs_config(const struct host *h)
{
    return (h->life != LIFE_JOINING || mutant(M_RESTART)) && h->life != LIFE_OVER &&
           (h->fetch_all || h->want_version > h->view.ring.version);
}

void config_fetch(struct host *h)
{
    Rh__Control c = RH__CONTROL__INIT;
    Rh__GetConfig get = RH__GET_CONFIG__INIT;

    if (!needs_config(h) || h->now_us < h->fetch_us) {
        return;
    }
    h->fetch_us = h->now_us + (uint64_t)h->config.resend_ms * MS;
    get.have_version = h->fetch_all ? 0 : h->view.ring.version;
    get.digest0 = h->view.ring.digest[0];
    get.digest1 = h->view.ring.digest[1];
    c.body_case = RH__CONTROL__BODY_GET_CONFIG;
    c.get_config = &get;
    host_tell(h, whom_to_ask(h), &c);
    h->fetch_turn++;
}

void host_fetch_all(struct host *h)
{
    h->fetch_all = true;
    config_fetch(h);
}

void host_want_version(struct host *h, uint64_t version)
{
    if (version > h->want_version) {
        h->want_version = version;
    }
    config_fetch(h);
}

/* A role, a singleton or a set of daemons is new: the ring has more cells. */
static void fit_cells(struct host *h)
{
    const uint32_t before = h->actors.cell_count;
    const uint32_t now = h->view.ring.cell_count;

    if (h->place != NULL && now > before) {
        actors_grow(&h->actors, now);
        h->place = mem_resize(h->place, now * sizeof *h->place);
        memset(h->place + before, 0, (now - before) * sizeof *h->place);
    }
}

enum view_result host_take_delta(struct host *h, const Rh__Delta *delta)
{
    const enum view_result result = view_apply(&h->view, delta);

    switch (result) {
    case VIEW_APPLIED:
        fit_cells(h);
        txn_note_committed(h, delta);
        if (delta->n_released > 0) {
            isolate_released(h);
        }
        break;
    case VIEW_OLD:
        break;
    case VIEW_DIFFERS:
        log_error("node", "delta_differs", "version=%" PRIu64, delta->version);
        h->fetch_all = true;
        break;
    case VIEW_GAP:
        break;
    }
    return result;
}

/* Somebody may wait for a version that was heard of only from a peer. */
static bool is_waited_for(const struct host *h)
{
    bool waited = h->waitver.count > 0 || h->parked_count > 0;

    for (size_t i = 0; i < h->participant.part_count; i++) {
        waited = waited || h->participant.part[i]->over;
    }
    return waited;
}

static bool load(struct host *h, const Rh__Config *config)
{
    const bool same = config->version == h->view.ring.version;
    const enum view_result result = view_load(&h->view, config, h->fetch_all && same);

    if (result == VIEW_APPLIED) {
        fit_cells(h);
        isolate_released(h); // perhaps
        h->fetch_all = false;
    } else if (result == VIEW_DIFFERS) {
        log_error("node", "config_broken", "version=%" PRIu64, config->version);
    }
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
    h->fetch_turn = 0;
    h->fetch_us = h->now_us + (changed ? 0 : (uint64_t)FETCH_AGAIN_MS * MS);
    if (!changed && answer->version >= h->view.ring.version) {
        h->fetch_all = false; // what I have is what they have
    }
    if (changed) {
        host_adopt(h);
    } else if (!is_waited_for(h)) {
        h->want_version = 0;
    }
}

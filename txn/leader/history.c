/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps the last changes of the ring, so that who is behind gets them instead of
 * everything.
 */
#include "txn/leader/inside.h"

#include "txn/state/delta.h"

enum {
    CHAIN_MAX = 64,    /* deltas in one answer */
    AGAIN_US = 360000, /* gateways ask twice a second or so */
};

void history_put(struct coordinator *c, const Rh__Delta *delta)
{
    delta_free(c->history.delta[c->history.at]);
    c->history.delta[c->history.at] = delta_copy(delta);
    c->history.at = (c->history.at + 1) % HISTORY_MAX;
    c->history.count += c->history.count < HISTORY_MAX;
}

void history_fini(struct coordinator *c)
{
    for (size_t i = 0; i < HISTORY_MAX; i++) {
        delta_free(c->history.delta[i]);
        c->history.delta[i] = NULL;
    }
    c->history.count = 0;
}

/* The `back`th newest, from 0. */
static Rh__Delta *history_back(const struct coordinator *c, size_t back)
{
    return c->history.delta[(c->history.at + HISTORY_MAX - 1 - back) % HISTORY_MAX];
}

/* Fill `chain` with the deltas that lead from `version` to mine, in order. 0: there is no short
 * way, for a snapshot came between, or it is long ago. */
static size_t history_chain(const struct coordinator *c, uint64_t version,
                            Rh__Delta *chain[CHAIN_MAX])
{
    uint64_t want = c->state->view.ring.version;
    size_t count = 0;

    while (count < c->history.count && count < CHAIN_MAX && want != version) {
        Rh__Delta *delta = history_back(c, count);

        if (delta->version != want) {
            return 0;
        }
        want = delta->prev_version;
        chain[count++] = delta;
    }
    if (want != version) {
        return 0;
    }
    for (size_t i = 0; i < count / 2; i++) {
        Rh__Delta *swap = chain[i];

        chain[i] = chain[count - 1 - i];
        chain[count - 1 - i] = swap;
    }
    return count;
}

bool history_lacks(const struct coordinator *c, uint64_t version, const uint64_t digest[2])
{
    uint64_t want = c->state->view.ring.version;

    for (size_t i = 0; i < c->history.count && version < want; i++) {
        const Rh__Delta *delta = history_back(c, i);
        const Rh__Delta *before = i + 1 < c->history.count ? history_back(c, i + 1) : NULL;

        if (delta->version != want) {
            return false; // a snapshot came between
        }
        want = delta->prev_version;
        if (version == want && before != NULL && before->version == want) {
            return before->digest0 != digest[0] || before->digest1 != digest[1];
        }
    }
    return version > want && version < c->state->view.ring.version;
}

void history_answer(struct coordinator *c, uint64_t peer, const Rh__GetConfig *asked)
{
    const struct view *view = &c->state->view;
    Rh__Control out = RH__CONTROL__INIT;
    Rh__ConfigAnswer body = RH__CONFIG_ANSWER__INIT;
    Rh__Config config = RH__CONFIG__INIT;
    Rh__Delta *chain[CHAIN_MAX];
    const bool same_ring = asked->have_version == view->ring.version &&
                           asked->digest0 == view->ring.digest[0] &&
                           asked->digest1 == view->ring.digest[1];

    body.version = view->ring.version;
    body.again_us = c->leading ? register_next_us(c, peer, AGAIN_US) : 0;
    if (asked->have_version < view->ring.version && asked->have_version != 0) {
        body.n_deltas = history_chain(c, asked->have_version, chain);
        body.deltas = body.n_deltas > 0 ? chain : NULL;
    }
    // A follower that lags behind the asker has nothing to tell.
    if (body.n_deltas == 0 && !same_ring && asked->have_version <= view->ring.version) {
        view_config(view, &config);
        body.config = &config;
    }
    out.body_case = RH__CONTROL__BODY_CONFIG;
    out.config = &body;
    peers_send(c, peer, &out);
    if (body.config != NULL) {
        view_config_fini(&config);
    }
}

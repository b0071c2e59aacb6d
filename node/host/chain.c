/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls that pass a hold, or its drain waits for what waits for the drain
 * (hole 18):
 *
 *   A held, runs, asked B held              the chain names A: it passes at once,
 *                                           also if it was queued at B already
 *   A held, runs, asked C, who is busy      C's call does not name A, and no node
 *   with a call to B held                   sees more than its part of the circle:
 *   A held here asked D held there, who     a drain that takes long lets all calls
 *   ... C held there asked B held here      pass that it holds by then
 *
 * What comes after such a time waits for the next one, when the drain has taken
 * twice as long: between them an actor that is called without end falls idle.
 */
#include "node/host/inside.h"

#include "base/mutant.h"
#include "node/host/traced.h"

/* Not once the arc's images are complete: then it waits for the outcome like any other. */
static bool may_pass(const struct request_record *r, const struct hold *hold)
{
    return r->chain_count > 0 && hold->part->state == PART_DRAINING &&
           (hold->busy > 0 || mutant(M_LATECALL)) && !mutant(M_NOCHAIN);
}

bool chain_passes(const struct host *h, const struct request_record *r, const struct hold *hold)
{
    for (size_t i = 0; may_pass(r, hold) && i < r->chain_count; i++) {
        const struct actor *a = actor_running_at(&h->actors, r->chain[i]);

        if (a != NULL && actor_held(a) != NULL) {
            return true;
        }
    }
    return false;
}

static void let_pass(struct host *h, struct hold *hold, bool all)
{
    struct queue passing;
    struct waiting *next = NULL;
    struct waiting *w = NULL;

    queue_init(&passing);
    for (w = queue_front(&hold->held); w != NULL; w = next) {
        next = queue_next(&hold->held, w);
        if (all ? may_pass(&w->record, hold) : chain_passes(h, &w->record, hold)) {
            queue_remove(w);
            queue_push(&passing, w);
        }
    }
    while ((w = queue_pop(&passing)) != NULL) {
        struct admission in = admission_of(w);

        traced_held(h, w, hold->part->prepare.txn);
        in.passes = may_pass(&w->record, hold);
        admit_again(h, &in);
    }
}

void chain_begin(struct host *h, struct hold *hold)
{
    let_pass(h, hold, false);
}

void chain_tick(struct host *h, struct hold *hold)
{
    const uint64_t taken_us = h->now_us - hold->since_us;

    if (hold->part->state != PART_DRAINING || taken_us < (uint64_t)h->config.call_hold_ms * 1000 ||
        h->now_us < hold->pass_us || mutant(M_CONVOY)) {
        return;
    }
    hold->pass_us = h->now_us + taken_us;
    let_pass(h, hold, true);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Decides when to ask which coordinator for a newer configuration.
 */
#include "route/fetch.h"

#include "base/assert.h"

void fetch_init(struct fetch *f, uint32_t refresh_ms)
{
    *f = (struct fetch){.refresh_ms = refresh_ms, .gap_us = FETCH_GAP_US, .cursor = -1};
    finder_init(&f->finder, FINDER_MAX);
}

void fetch_on_up(struct fetch *f, int coordinator)
{
    ASSERT(coordinator >= 0 && coordinator < FINDER_MAX);
    f->up_count += !f->up[coordinator];
    f->up[coordinator] = true;
}

void fetch_on_down(struct fetch *f, int coordinator)
{
    ASSERT(coordinator >= 0 && coordinator < FINDER_MAX);
    f->up_count -= f->up[coordinator];
    f->up[coordinator] = false;
    finder_on_down(&f->finder, (size_t)coordinator);
}

void fetch_on_leader(struct fetch *f, int coordinator, bool leading, uint64_t term)
{
    const int before = finder_leader(&f->finder);

    finder_on_leader(&f->finder, (size_t)coordinator, leading, term);
    if (finder_leader(&f->finder) != before) {
        f->silent = 0;
        f->last_us = 0; // a new leader wants to know its gateways
    }
}

void fetch_on_not_leader(struct fetch *f, int coordinator, uint64_t term)
{
    finder_on_not_leader(&f->finder, (size_t)coordinator, term);
}

void fetch_on_answer(struct fetch *f, uint64_t now_us, uint32_t again_us)
{
    const uint64_t refresh_us = (uint64_t)f->refresh_ms * 1000;
    const uint64_t least_us = f->last_us + refresh_us / 2;
    const uint64_t most_us = f->last_us + refresh_us + refresh_us / 8;
    const uint64_t wished_us = now_us + again_us;

    f->silent = 0;
    if (again_us != 0 && f->last_us != 0) {
        f->next_us = wished_us < least_us ? least_us : wished_us < most_us ? wished_us : most_us;
    }
}

void fetch_want(struct fetch *f, uint64_t version)
{
    if (version > f->want) {
        f->want = version;
        f->gap_us = FETCH_GAP_US;
    }
}

void fetch_whole(struct fetch *f)
{
    f->whole = true;
    f->gap_us = FETCH_GAP_US;
}

void fetch_on_version(struct fetch *f, uint64_t version)
{
    if (version >= f->want) {
        f->gap_us = FETCH_GAP_US;
    }
}

static int next_up(struct fetch *f)
{
    for (int i = 1; i <= FINDER_MAX; i++) {
        const int at = (f->cursor + i) % FINDER_MAX;

        if (f->up[at]) {
            f->cursor = at;
            return at;
        }
    }
    return -1;
}

uint64_t fetch_due_us(const struct fetch *f, uint64_t version)
{
    if (f->up_count == 0) {
        return UINT64_MAX;
    }
    return f->last_us == 0 ? 0 : fetch_is_urgent(f, version) ? f->last_us + f->gap_us : f->next_us;
}

int fetch_next(struct fetch *f, uint64_t now_us, uint64_t version)
{
    const uint64_t refresh_us = (uint64_t)f->refresh_ms * 1000;
    const bool urgent = fetch_is_urgent(f, version);

    if (!fetch_is_due(f, now_us, version)) {
        return -1;
    }
    const int leader = finder_leader(&f->finder);
    const bool leader_answers = leader >= 0 && f->up[leader] && f->silent <= FETCH_SILENT_MAX;
    const int target = leader_answers ? leader : next_up(f);

    if (target < 0) {
        return -1;
    }
    if (urgent) {
        f->gap_us = f->gap_us * 2 < refresh_us ? f->gap_us * 2 : refresh_us;
    }
    f->last_us = now_us;
    f->next_us = now_us + refresh_us;
    f->silent++;
    return target;
}

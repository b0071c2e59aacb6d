/* SPDX-License-Identifier: Apache-2.0
 *
 * Measures a node's clock against the leader's, from the times in its renewals.
 */
#include "txn/leader/drift.h"

#include "base/mutant.h"

/* Both count from some time of their own: only differences of this mean something. */
static uint64_t on_its_way_us(const struct drift_mark *m)
{
    return m->here_us - m->there_us;
}

static bool is_sooner(const struct drift_mark *m, const struct drift_mark *than)
{
    return (int64_t)(on_its_way_us(m) - on_its_way_us(than)) < 0 && !mutant(M_LATECLOCK);
}

/* 0 for what may be. */
static int32_t parts_between(const struct drift_mark *from, const struct drift_mark *to)
{
    const uint64_t here_us = to->here_us - from->here_us;
    const uint64_t most_us = here_us * (1 + DRIFT_PARTS_MAX / 1000);
    const uint64_t told_us = to->there_us < from->there_us ? 0 : to->there_us - from->there_us;
    const int64_t apart_us = (int64_t)(told_us < most_us ? told_us : most_us) - (int64_t)here_us;
    const int64_t parts =
        apart_us * 1000 / (int64_t)(here_us > DRIFT_WINDOW_US ? here_us : DRIFT_WINDOW_US);

    if (parts <= DRIFT_PARTS && parts >= -DRIFT_PARTS) {
        return 0;
    }
    return (int32_t)(parts < DRIFT_PARTS_MAX ? parts : DRIFT_PARTS_MAX);
}

static bool end_window(struct drift *d)
{
    const int32_t was = d->parts;

    // Two that came close together would turn a short delay into much.
    if (d->before.here_us != 0 && d->least.here_us - d->before.here_us >= DRIFT_WINDOW_US / 2) {
        d->parts = parts_between(&d->before, &d->least);
    }
    d->before = d->least;
    return (was != 0) != (d->parts != 0);
}

bool drift_take(struct drift *d, uint64_t here_us, uint64_t there_us)
{
    const struct drift_mark mark = {here_us, there_us};
    bool changed = false;

    if (there_us == 0) {
        return false;
    }
    if (d->begun_us == 0 || here_us - d->begun_us >= DRIFT_WINDOW_US) {
        changed = d->begun_us != 0 && end_window(d);
        d->begun_us = here_us;
        d->least = mark;
    } else if (is_sooner(&mark, &d->least)) {
        d->least = mark;
    }
    return changed;
}

uint64_t drift_lease_us(const struct drift *d, uint64_t lease_us)
{
    const uint64_t least_us = lease_us / DRIFT_LEASE_PART;

    if (d->parts >= 0 || mutant(M_SLOWCLOCK)) {
        return lease_us;
    }
    // Parts first: the length itself times 1000 may not fit.
    const uint64_t cut_us = lease_us / 1000 * (uint64_t)(1000 + d->parts);
    return cut_us > least_us ? cut_us : least_us;
}

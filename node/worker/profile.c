/* SPDX-License-Identifier: Apache-2.0
 *
 * Counts which actors take a worker's time, in 64 counters.
 */
#include "node/worker/profile.h"

#include <string.h>

static void turn_over(struct profile *h, uint64_t now_us)
{
    if (now_us < h->since_us + PROFILE_WINDOW_US) { // who asks may have looked at the clock before
        return;
    }
    // Nothing came for a whole window: what stands there is older than that.
    if (now_us - h->since_us >= 2 * (uint64_t)PROFILE_WINDOW_US) {
        h->window[h->now].count = 0;
    }
    h->now = 1 - h->now;
    h->window[h->now].count = 0;
    h->since_us = now_us;
}

static struct profile_counter *find(struct profile_window *w, const struct profile_counter *wanted)
{
    for (size_t i = 0; i < w->count; i++) {
        if (w->counter[i].hash == wanted->hash) {
            return &w->counter[i];
        }
    }
    return NULL;
}

static struct profile_counter *least(struct profile_window *w)
{
    struct profile_counter *found = &w->counter[0];

    for (size_t i = 1; i < w->count; i++) {
        if (w->counter[i].busy_us < found->busy_us) {
            found = &w->counter[i];
        }
    }
    return found;
}

static void copy(struct profile_counter *to, const struct profile_counter *from)
{
    to->hash = from->hash;
    to->kind = from->kind;
    to->id_size = from->id_size;
    memcpy(to->id, from->id, from->id_size);
}

void profile_add(struct profile *h, uint64_t now_us, const struct profile_counter *counter)
{
    turn_over(h, now_us);
    struct profile_window *w = &h->window[h->now];
    struct profile_counter *mine = find(w, counter);
    if (mine == NULL && w->count < HOT_COUNTERS) {
        mine = &w->counter[w->count++];
        mine->busy_us = mine->tasks = 0;
        copy(mine, counter);
    } else if (mine == NULL) {
        mine = least(w); // It starts from what the least had: never too low.
        copy(mine, counter);
    }
    mine->busy_us += counter->busy_us;
    mine->tasks += counter->tasks;
}

/* Into its place by time; what falls off the end is forgotten. */
static size_t insert(struct profile_counter *out, size_t count, size_t max,
                     const struct profile_counter *c)
{
    size_t at = count;

    while (at > 0 && out[at - 1].busy_us < c->busy_us) {
        at--;
    }
    if (at == max) {
        return count;
    }
    const size_t kept = count == max ? max - 1 : count;
    memmove(&out[at + 1], &out[at], (kept - at) * sizeof *out);
    out[at] = *c;
    return kept + 1;
}

size_t profile_top(struct profile *h, uint64_t now_us, struct profile_counter *out, size_t max)
{
    size_t count = 0;

    turn_over(h, now_us);
    struct profile_window *new = &h->window[h->now];
    struct profile_window *old = &h->window[1 - h->now];
    for (size_t i = 0; i < new->count; i++) {
        struct profile_counter sum = new->counter[i];
        const struct profile_counter *before = find(old, &sum);

        sum.busy_us += before == NULL ? 0 : before->busy_us;
        sum.tasks += before == NULL ? 0 : before->tasks;
        count = insert(out, count, max, &sum);
    }
    for (size_t i = 0; i < old->count; i++) {
        if (find(new, &old->counter[i]) == NULL) {
            count = insert(out, count, max, &old->counter[i]);
        }
    }
    return count;
}

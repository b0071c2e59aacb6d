/* SPDX-License-Identifier: Apache-2.0
 *
 * What the workers do now, for `ringhold top`: who runs, who is deferred, who was
 * busy, and what they asked of others. The ids are copied while the watchdog holds them still.
 */
#include "node/shell_uv.h"

#include "base/mem.h"

#include <string.h>

enum { PROFILE_MAX = 10 /* of one worker */ };

struct worker_stats {
    struct host_profile_row *row; /* owned */
    size_t count;
    size_t cap;
    struct buffer ids;
};

static void add(struct worker_stats *g, const struct host_profile_row *row)
{
    if (g->count == g->cap) {
        g->cap = g->cap == 0 ? 16 : g->cap * 2;
        g->row = mem_resize(g->row, g->cap * sizeof *g->row);
    }
    g->row[g->count++] = *row;
    buffer_put(&g->ids, row->id.data, row->id.size);
}

static void add_running(struct shell *s, struct worker_stats *g, size_t worker)
{
    const struct watched_at at = watchdog_at(s->watchdog, worker);
    struct host_profile_row row = {.what = "runs", .worker = (uint32_t)worker};

    if (at.actor != NULL && s->now_us > at.since_us) {
        const struct named name = activation_name(at.actor);

        row.kind = name.kind;
        row.id = name.id;
        row.us = s->now_us - at.since_us;
        add(g, &row);
    }
}

static void add_deferred(struct shell *s, struct worker_stats *g)
{
    const struct watched *oldest = watchdog_deferred(s->watchdog);
    struct host_profile_row row = {.what = "deferred"};

    if (oldest != NULL && s->now_us > oldest->deferred_us) {
        const struct named name = activation_name(oldest->actor);

        row.kind = name.kind;
        row.id = name.id;
        row.us = s->now_us - oldest->deferred_us;
        row.count = watchdog_deferred_count(s->watchdog);
        add(g, &row);
    }
}

static void add_busy(struct shell *s, struct worker_stats *g, size_t worker)
{
    struct profile_counter top[PROFILE_MAX];
    const size_t count = worker_profile(s->dispatcher.worker[worker], s->now_us, top, PROFILE_MAX);

    for (size_t i = 0; i < count; i++) {
        const struct host_profile_row row = {.what = "busy",
                                             .worker = (uint32_t)worker,
                                             .kind = top[i].kind,
                                             .id = bytes_of(top[i].id, top[i].id_size),
                                             .us = top[i].busy_us,
                                             .count = top[i].tasks};

        add(g, &row);
    }
}

/* The ids moved while there were more to come. */
static void settle(struct worker_stats *g)
{
    size_t at = 0;

    for (size_t i = 0; i < g->count; i++) {
        g->row[i].id.data = g->ids.data + at;
        at += g->row[i].id.size;
    }
}

uint64_t worker_stats_busy_us(const struct shell *s)
{
    uint64_t sum_us = 0;

    for (size_t i = 0; i < s->dispatcher.worker_count; i++) {
        sum_us += worker_busy_us(s->dispatcher.worker[i]);
    }
    return sum_us;
}

void worker_stats_feed(struct shell *s, struct host_event *event)
{
    struct router_stats calls;
    struct worker_stats g = {0};

    for (size_t i = 0; i < s->dispatcher.worker_count; i++) {
        add_busy(s, &g, i);
    }
    watchdog_hold(s->watchdog);
    for (size_t i = 0; i < s->dispatcher.worker_count; i++) {
        add_running(s, &g, i);
    }
    add_deferred(s, &g);
    watchdog_release(s->watchdog);
    settle(&g);
    calls_stats(s->calls, &calls);
    host_set_profile(s->host, g.row, g.count);
    host_set_calls(s->host, &calls);
    shell_feed(s, event);
    host_set_profile(s->host, NULL, 0);
    host_set_calls(s->host, NULL);
    mem_free(g.row);
    buffer_fini(&g.ids);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Which requests of clients are traced: those that say so, and a few of the rest, by chance; so
 * many a second, for clients are strangers.
 */
#include "gateway/client/inside.h"

enum { MILLION = 1000000 };

static bool is_chosen(struct clients *all)
{
    return all->config.trace_ppm > 0 &&
           prng_between(&all->spans.ids, 1, MILLION) <= all->config.trace_ppm;
}

/* It says so, or it is chosen. */
static bool wants_trace(struct clients *all, const struct ask *ask)
{
    if (ask->trace == NULL) {
        return is_chosen(all);
    }
    trace_context_load(ask->trace, &all->trace);
    return trace_context_is_sampled(&all->trace);
}

const struct trace_context *client_trace(const struct client *c, const struct ask *ask)
{
    struct clients *all = c->all;
    uint32_t refused = 0;

    if (!spans_wanted(&all->spans) || ask->must || (ask->flags & REQUEST_SESSION) != 0 ||
        !wants_trace(all, ask)) {
        return NULL;
    }
    if (!ration_take(&all->traces, c->now_us, all->config.trace_rate, &refused)) {
        spans_drop(&all->spans, SPAN_DROP_RATE);
        return NULL;
    }
    if (ask->trace == NULL) {
        all->trace = spans_new_trace(&all->spans);
    }
    return &all->trace;
}

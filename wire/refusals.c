/* SPDX-License-Identifier: Apache-2.0
 *
 * Counts refused links by reason.
 */
#include "wire/refusals.h"

#include <stdatomic.h>

static const char *const words[] = {"none",
#define X(name, word) word,
                                    REFUSALS(X)
#undef X
};
enum { COUNT = sizeof words / sizeof words[0] };

static _Atomic uint64_t counts[COUNT];

const char *refusal_word(enum refusal reason)
{
    return words[reason];
}

void refusals_count(enum refusal reason)
{
    atomic_fetch_add_explicit(&counts[reason], 1, memory_order_relaxed);
}

uint64_t refusals_of(enum refusal reason)
{
    return atomic_load_explicit(&counts[reason], memory_order_relaxed);
}

void refusals_put_metrics(struct metrics *m)
{
    static const struct metric refused = {"ringhold_link_refusals_total",
                                          "Links to other processes that were refused, by reason.",
                                          METRIC_COUNTER};

    for (unsigned i = REFUSAL_NONE + 1; i < COUNT; i++) {
        metrics_put_labelled(m, &refused, "reason", words[i], refusals_of((enum refusal)i));
    }
}

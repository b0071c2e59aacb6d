/* SPDX-License-Identifier: Apache-2.0
 *
 * Computes how much of a common budget one holder may use.
 */
#include "route/share.h"

static uint64_t lesser(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

struct share_held share_of(const struct share *s, uint64_t who)
{
    const uint64_t low = s->low[who % SHARE_CELLS];
    const uint64_t high = s->high[who / SHARE_CELLS % SHARE_CELLS];

    return (struct share_held){
        .count = (uint32_t)lesser(low >> 32, high >> 32),
        .size = lesser(low & UINT32_MAX, high & UINT32_MAX) * SHARE_GRAIN,
    };
}

uint64_t share_allowed(const struct share_rule *rule, uint64_t max, uint64_t used)
{
    const uint64_t free = used < max ? max - used : 0;
    const uint64_t part = free / rule->parts * rule->times;
    const uint64_t allowed = part > rule->least ? part : rule->least;

    return rule->most != 0 && allowed > rule->most ? rule->most : allowed;
}

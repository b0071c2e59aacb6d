/* SPDX-License-Identifier: Apache-2.0
 *
 * Each figure of a gateway, once: what it is called in INFO, and for Prometheus. A
 * field of struct tally that is in no row is neither told nor added up over threads.
 */
#ifndef GATEWAY_CLIENT_FIGURE_H
#define GATEWAY_CLIENT_FIGURE_H

#include "base/metrics.h"
#include "gateway/client/tally.h"

#include <string.h>

struct figure {
    size_t offset;       /* of a uint64_t in struct tally */
    const char *section; /* of INFO, in capitals; NULL = it is not there */
    const char *name;    /* in INFO */
    const struct metric *metric;
    const char *label; /* NULL = its name has but one value; */
    const char *word;  /* of the label; rows of one name follow each other */
};

extern const struct figure figures[];
extern const size_t figure_count;

static inline uint64_t figure_of(const struct figure *f, const struct tally *t)
{
    uint64_t value = 0;

    memcpy(&value, (const char *)t + f->offset, sizeof value);
    return value;
}

#endif

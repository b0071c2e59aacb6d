/* SPDX-License-Identifier: Apache-2.0
 *
 * Each figure of a gateway, once: what it is called in INFO, and for Prometheus. A
 * field of struct gateway_stats that is in no row is neither told nor added up over threads.
 */
#ifndef GATEWAY_CLIENT_STAT_ROWS_H
#define GATEWAY_CLIENT_STAT_ROWS_H

#include "base/metrics.h"
#include "gateway/client/stats.h"

#include <string.h>

struct stat_row {
    size_t offset;       /* of a uint64_t in struct gateway_stats */
    const char *section; /* of INFO, in capitals; NULL = it is not there */
    const char *name;    /* in INFO */
    const struct metric *metric;
    const char *label; /* NULL = its name has but one value; */
    const char *word;  /* of the label; rows of one name follow each other */
};

extern const struct stat_row stat_rows[];
extern const size_t stat_row_count;

static inline uint64_t stat_row_value(const struct stat_row *f, const struct gateway_stats *t)
{
    uint64_t value = 0;

    memcpy(&value, (const char *)t + f->offset, sizeof value);
    return value;
}

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * Looking at a fleet for so long that what is found is no passing thing: shared
 * by `ringhold check` and `ringhold fix`.
 */
#ifndef CLI_SAMPLING_H
#define CLI_SAMPLING_H

#include "cli/check/collector.h"
#include "cli/check/findings.h"
#include "cli/query.h"

struct sampling {
    struct collection collection; /* the last */
    struct findings findings;     /* that stand */
    size_t passing;               /* others, that came and went until the end */
    uint64_t end_us;              /* CLOCK_BOOTTIME */
};

/* False after printing why: no coordinator answers. Ends at once when all is fine, else when every
 * finding stood for `settle_ms`. sampling_fini() in both cases. */
bool sampling_run(struct sampling *l, const struct query *q, uint32_t settle_ms);
void sampling_fini(struct sampling *l);

/* A row per check that is fine, one per finding of the others; for people, or tab-separated. */
void sampling_print(const struct sampling *l, const struct query *q);
/* Print the samples as one JSON object. */
void sampling_print_json(const struct sampling *l);

#endif

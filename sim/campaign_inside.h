/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by sim/campaign.c and sim/mutants.c.
 */
#ifndef SIM_CAMPAIGN_INSIDE_H
#define SIM_CAMPAIGN_INSIDE_H

#include "sim/campaign.h"

enum { CAMPAIGN_JOBS_MAX = 64 };

/* How much a run prints: nothing; all of it; the last lines when it failed. */
enum show { SHOW_NOTHING, SHOW_ALL, SHOW_END };

/* One history, added to `t`. Returns the checker that spoke, or NULL. */
const char *campaign_seed(const struct campaign *c, uint64_t seed, enum show show,
                          struct totals *t);

/* Memory that children share with their parent, zeroed; NULL = there is none. */
void *campaign_shared(size_t size);

#endif

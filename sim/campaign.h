/* SPDX-License-Identifier: Apache-2.0
 *
 * Many histories at once: workers, one a core, each taking the next seed until
 * none is left or one broke a rule.
 */
#ifndef SIM_CAMPAIGN_H
#define SIM_CAMPAIGN_H

#include "base/mutant.h"
#include "sim/check/totals.h"

struct campaign {
    struct fleet_options fleet;
    uint64_t from;
    uint64_t seeds;
    unsigned jobs;       /* workers; 1 = in this process */
    bool trace;          /* every event to stdout; one worker then */
    bool quiet;          /* no totals */
    bool keep_going;     /* past a violation: all that the seeds have, not the first alone */
    const char *history; /* file to record the history to; NULL = none */
};

/* Run them; says what it found on stdout. Returns an exit code: 0 = no rule was broken. */
int campaign_run(const struct campaign *c);

/* Each planted bug, or `only` (M_NONE = all), must be found within `seeds`. 0 = all were. */
int campaign_mutants(const struct campaign *c, enum mutant only);
/* One history with a bug planted, as campaign_run(). */
int campaign_mutant_seed(const struct campaign *c, enum mutant m);

#endif

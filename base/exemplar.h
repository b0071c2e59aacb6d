/* SPDX-License-Identifier: Apache-2.0
 *
 * Exemplars: of each bucket of a histogram by kind and outcome, which traced request was the last
 * in it? They are noted as spans end, and there is nothing to note of what is not traced. The
 * memory is fixed.
 */
#ifndef BASE_EXEMPLAR_H
#define BASE_EXEMPLAR_H

#include "base/latency.h"
#include "base/span.h"

struct exemplar {
    struct trace_context context;
    uint64_t took_us;
    uint64_t at_us; /* when it ended, on the clock of the process's steps */
    bool is_there;
};

/* Of one histogram. All zero is a valid empty one. */
struct exemplars {
    struct exemplar of[LATENCY_KINDS + 1][LATENCY_SERIES][LATENCY_BUCKETS];
    uint16_t kind[LATENCY_KINDS + 1]; /* of each row behind row 0, which is of all other kinds */
    uint32_t kinds;
    const char *outcome[LATENCY_SERIES]; /* static */
    uint32_t outcomes;
    uint64_t wall_us; /* what is to be added to at_us, modulo 2^64, to have Unix time */
};

enum { EXEMPLAR_OTHER = -1 }; /* a kind that has no row */

/* The span has ended. One that is in no histogram is passed over, as is what there is no row for.
 */
void exemplars_note(struct exemplars *e, const struct trace_span *span);
/* Return the last in that bucket, or NULL. `kind`: of a row, or EXEMPLAR_OTHER. `outcome` NULL: ok.
 */
const struct exemplar *exemplars_find(const struct exemplars *e, int32_t kind, const char *outcome,
                                      unsigned bucket);
/* Return a copy of what was noted of a process's requests, or of its actors' calls, to be freed by
 * mem_free(). NULL: it traces nothing (`tracing` NULL), or the format of `m` has no exemplars. */
struct exemplars *exemplars_copy(const struct tracing *tracing, const struct metrics *m,
                                 bool of_calls);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * Are two replicated states the same, field by field? What a snapshot brings
 * back must be what was applied.
 */
#ifndef SIM_SAME_H
#define SIM_SAME_H

#include "txn/state/state.h"

/* The name of a field in which they differ; NULL: there is none. */
const char *same_state(const struct state *a, const struct state *b);

/* A field that was zero in all that same_state() looked at, so that nobody would have missed it;
 * NULL: there is none. */
const char *same_never_valued(void);

#endif

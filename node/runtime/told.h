/* SPDX-License-Identifier: Apache-2.0
 *
 * What a runtime tells, as the host hears it: for whoever carries it from one to
 * the other, between threads or in the simulator.
 *
 * Pure; any thread.
 */
#ifndef NODE_RUNTIME_TOLD_H
#define NODE_RUNTIME_TOLD_H

#include "base/err.h"
#include "node/host/host.h"
#include "node/runtime/runtime.h"

/* The host's event of that. Not for what is no affair of the host: calls, pushes, what is known of
 * clients, deferred ones. */
enum host_event_type runtime_told_type(enum runtime_event_type type);
/* The actor is off the runtime with it: it did not come to life, or has retired. */
bool runtime_told_ends(enum runtime_event_type type, enum err error);

#endif

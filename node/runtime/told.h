/* SPDX-License-Identifier: Apache-2.0
 *
 * What a scene tells, as the host hears it: for whoever carries it from one to
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
enum host_event_type scene_told_type(enum scene_event_type type);
/* The actor is off the scene with it: it did not come to life, or has retired. */
bool scene_told_ends(enum scene_event_type type, enum err error);

#endif

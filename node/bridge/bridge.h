/* SPDX-License-Identifier: Apache-2.0
 *
 * The bridge between a node's host and the runtime of its actors: the one place that knows both.
 * Whoever drives the two (the node's dispatcher, the simulator, benches and tests) hands each
 * HOST_SUBMIT to bridge_submit() and carries what comes out of it to the runtime, in any way that
 * keeps the order of an actor's submissions; and hands each completion to bridge_complete(), and
 * what comes out of that to host_step().
 *
 *     host_step -> HOST_SUBMIT -> bridge_submit ->   (a queue, or none)   -> runtime_perform
 *     host_step <- HOST_COMPLETED <- bridge_complete <- (a queue, or none) <- on_completion
 *
 * Or host_serve() has a brief actor run at once, and takes what comes of it without an event:
 *
 *     host_serve -> struct at_once -> runtime_run
 *
 * An activation and its actor know each other from the submission of ACTIVATE until that of
 * DISCARD, or the completion with which it ends by itself. What an activation tells after that is
 * dropped: the host names that actor no more, and may have freed it.
 *
 * What is neither a submission of the host's nor a completion for it goes past the bridge: answers
 * of calls and gateways that are gone in the one direction; calls, pushes and bindings in the
 * other.
 *
 * Pure: no I/O, no clock, no memory of its own. On the host's thread.
 */
#ifndef NODE_BRIDGE_BRIDGE_H
#define NODE_BRIDGE_BRIDGE_H

#include "node/host/host.h"
#include "node/runtime/runtime.h"

/* Translate a HOST_SUBMIT effect into an operation for `runtime`. An ACTIVATE gets its activation
 * there, which the driver frees when a completion ends it (completion_ends()). `ops` and `shared`
 * belong to the actor's kind. False: there is nothing to carry, for the activation had ended
 * already. */
bool bridge_submit(struct runtime *runtime, const struct rh_actor_ops *ops, void *shared,
                   const struct host_effect *e, struct submission *out);

/* The event by which the host hears of it. False: the actor was discarded, nobody hears of it. */
bool bridge_complete(const struct completion *c, struct host_event *out);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * Kinds of actor whose code is in another process, a host (docs/host-protocol.md): what the
 * command line opens for `ringhold node --host unix:/run/ringhold/host.sock --kind 3:host=player`.
 *
 * To the library they are kinds like any other, tables of callbacks (struct rh_actor_ops). A
 * callback becomes a turn that is said to the host, and is deferred; the host's steps are posted to
 * the actor (rh_post()) and done on its worker.
 */
#ifndef HOSTED_HOSTED_H
#define HOSTED_HOSTED_H

#include "base/metrics.h"

#include <ringhold.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    HOSTED_NAME_MAX = 63, /* characters of a kind's or a host's name */
    HOSTED_TOKEN_MAX = 256,
};

struct hosted_options {
    int listener;        /* a listening socket, taken */
    const char *node;    /* its name; borrowed, as the next */
    const char *token;   /* that a host must show; "" = none */
    uint32_t silence_ms; /* a host that lets a ping wait for so long is hung */
};

struct hosted;

/* Open it: kinds can be declared. It listens, on a thread of its own, since the last of them was
 * started. One at a time in a process. */
struct hosted *hosted_open(const struct hosted_options *options);

/* Make the kind that `--kind N:host=WORDS` declares: "player,durable,alarms". NULL: one line on
 * stderr says what is wrong. Borrowed until hosted_close(). */
const struct rh_actor_ops *hosted_kind(struct hosted *h, const char *words);

/* Put its figures. Any thread, while it is open. */
void hosted_metrics(struct hosted *h, struct metrics *m);

/* Say goodbye to all hosts, end the thread, and free it. No actor of its kinds may be left. Takes
 * NULL. */
void hosted_close(struct hosted *h);

#endif

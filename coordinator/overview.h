/* SPDX-License-Identifier: Apache-2.0
 *
 * The whole fleet as one JSON text, for the web page: asked of the leader, as
 * `ringhold status`, `ring` and `txn list` ask it; and a page of who lives at a
 * node, as `ringhold actors` asks for it.
 */
#ifndef COORDINATOR_OVERVIEW_H
#define COORDINATOR_OVERVIEW_H

#include "base/bytes.h"
#include "daemon/http_mhd.h"
#include "link/link.h"

#include <pthread.h>

enum { OVERVIEW_COORDINATORS_SIZE = 1024 };

/* Where the coordinators are. */
struct overview {
    char cluster[64];
    pthread_mutex_t lock;                          /* the next: they may change */
    char coordinators[OVERVIEW_COORDINATORS_SIZE]; /* "host:port,host:port" */
    struct link_files tls;
};

/* Set the list of coordinators that the overview shows from now on. Any thread. */
void overview_set_coordinators(struct overview *o, const char *coordinators);

/* Callback of struct http_fleet for a struct overview. Append {"schema":1,"cluster":…};
 * docs/metrics.md has the fields. The vnodes are left out when the ring's version is still `known`
 * and nothing moves: they are the largest part. False: no leader answered within a second; the text
 * says so. Blocks; call it in any thread but a daemon's loop. */
bool overview_put(void *overview, const char *known, struct buffer *out);

/* Likewise: append {"schema":1,"node":…}, of which docs/metrics.md has the fields, too. */
enum http_told overview_put_actors(void *overview, const struct http_actors *asked,
                                   struct buffer *out);

#endif

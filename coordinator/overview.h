/* SPDX-License-Identifier: Apache-2.0
 *
 * The whole fleet as one JSON text, for the web page: asked of the leader, as
 * `ringhold status`, `ring` and `txn list` ask it; and a page of who lives at a
 * node, as `ringhold actors` asks for it.
 */
#ifndef COORDINATOR_OVERVIEW_H
#define COORDINATOR_OVERVIEW_H

#include "base/bytes.h"
#include "daemon/admin.h"
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

/* A way to ask, to be admin_close()d; NULL: there is none. Any thread. */
struct admin *overview_ask(struct overview *o);

/* Callback of struct http_fleet for a struct overview, as all that follow: they block; call them in
 * any thread but a daemon's loop. docs/metrics.md has the fields.
 *
 * Append {"schema":1,"cluster":…}. The vnodes are left out when the ring's version is still
 * `look->known` and nothing moves: they are the largest part. False: no leader answered within a
 * second; the text says so. */
bool overview_put(void *overview, const struct http_look *look, struct buffer *out);

/* Likewise: append {"schema":1,"node":…}. */
enum http_told overview_put_actors(void *overview, const struct http_actors *asked,
                                   struct buffer *out);

/* ---- where.c ---- */

enum http_told overview_put_where(void *overview, const char *id, struct buffer *out);

/* ---- hot.c ---- */

enum http_told overview_put_hot(void *overview, struct buffer *out);

/* ---- operate.c ---- */

enum http_told overview_operate(void *overview, enum http_deed deed,
                                const struct http_fields *fields, const char *from,
                                struct buffer *out);

#endif

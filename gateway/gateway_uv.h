/* SPDX-License-Identifier: Apache-2.0
 *
 * The gateway process: clients on libuv, links to coordinators and nodes.
 */
#ifndef GATEWAY_GATEWAY_UV_H
#define GATEWAY_GATEWAY_UV_H

#include "daemon/reload_uv.h"
#include "gateway/access/ranges.h"
#include "gateway/client/client.h"
#include "gateway/protocol/entry.h"
#include "gateway/protocol/transport.h"
#include "link/link.h"
#include "route/router.h"

#include <stddef.h>
#include <stdint.h>

struct pages; /* daemon/page_uv.h */

struct gateway_options {
    const char *name; /* of this gateway; hello_name_is_valid() */
    const char *cluster;
    const char *const *coordinators; /* "host:port" each */
    size_t coordinator_count;        /* 1..FINDER_MAX */
    const char *at[ENTRY_COUNT];     /* "host:port", or NULL; port 0 = any free one */
    const char *auth_keys;           /* file of keys of tokens (keyring.h), or NULL */
    const char *tls_cert;            /* file, with its chain; NULL = nobody comes by TLS */
    const char *tls_key;             /* file of its key */
    struct link_files links;         /* TLS of links to nodes and coordinators; borrowed */
    uint32_t threads;                /* 1..GATEWAY_THREADS_MAX (wire/gateway_id.h); 1 */
    struct pages *pages;             /* who asks for metrics; NULL = nobody; borrowed */
    struct reload_source source;     /* SIGHUP: what changes limits, times and rates below; none */
    uint32_t drain_ms;               /* at SIGTERM, for requests under way; 3000 */
    struct router_config router;     /* gateway, seed, threads, name are filled in */
    struct ranges proxies;           /* who says whose connection it is that it hands on */
    struct transport_rules transports; /* packet_size_max, keys, stats are filled in */
    /* The gateway itself sets version, name, cluster, port, deadline_ms, threads, shared_stats,
     * unauthenticated, shared_admission and the seed of admission in this struct, too. */
    struct clients_config clients;
};
/* Default options. name, cluster and coordinators are empty; RESP is at "127.0.0.1:6380". */
struct gateway_options gateway_options_default(void);

/* Limits of the process are divided among its threads: each must come to one at least. Run until
 * SIGTERM or SIGINT, then finish what is under way. Prints "ready resp=HOST:PORT frames=HOST:PORT
 * …" on stdout once it listens and each of its threads knows a ring. Returns the exit code: 0, or 1
 * after one line on stderr that says why it could not start. Borrows the options until it returns.
 */
int gateway_run(const struct gateway_options *options);

#endif

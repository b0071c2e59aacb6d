/* SPDX-License-Identifier: Apache-2.0
 *
 * The coordinator daemon: wires the Raft replica, the replicated state with its
 * database, the leader's machine and the links to one libuv loop.
 */
#ifndef COORDINATOR_COORDINATOR_UV_H
#define COORDINATOR_COORDINATOR_UV_H

#include "coordinator/overview.h"
#include "daemon/page_uv.h"
#include "daemon/reload_uv.h"
#include "link/link.h"
#include "raft/replica.h"
#include "txn/leader/coordinator.h"

struct coordinator_options {
    uint32_t id;
    char cluster[VIEW_NAME_MAX + 1];
    char listen[VIEW_ADDRESS_MAX + 1];
    char data[4096];
    uint64_t voter[REPLICA_VOTERS_MAX];
    char address[REPLICA_VOTERS_MAX][VIEW_ADDRESS_MAX + 1];
    size_t voter_count;
    uint32_t election_ms;
    uint32_t heartbeat_ms;
    uint32_t snapshot_entries;
    uint32_t readmit;
    bool adopt;
    bool joining; /* an empty folder waits to be taken into a group */
    bool insecure;
    struct link_files tls;             /* of links; borrowed */
    struct reload_source source;       /* SIGHUP: what changes `machine`; none */
    struct coordinator_config machine; /* limits and timers; names are filled in */
    struct overview *overview;         /* what the web page shows is asked of them; borrowed */
    struct pages *pages;               /* who asks for metrics; NULL = nobody; borrowed */
};

/* Run until SIGTERM or SIGINT. Prints "ready coordinator=…" when it takes links. Returns the exit
 * code, after printing one line on error. */
int coordinator_run(const struct coordinator_options *options);

#endif

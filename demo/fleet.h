/* SPDX-License-Identifier: Apache-2.0
 *
 * The demo's processes: starts `ringhold` on loopback, waits for
 * their "ready" lines, kills or stops them, and cleans up their folder.
 */
#ifndef DEMO_FLEET_H
#define DEMO_FLEET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { FLEET_COORDINATORS = 3, FLEET_CHILDREN_MAX = 16 };

struct child {
    char name[32];
    pid_t pid;       /* 0 = not running */
    int output;      /* its stdout */
    int exit_code;   /* once reaped: exit code, or 128 + signal */
    char ready[256]; /* its ready line */
};

struct fleet {
    char ringhold[4096]; /* the program */
    char folder[256];
    char ledger[300];       /* where the nodes' journals go */
    char coordinators[256]; /* host:port,host:port,host:port */
    char peers[256];        /* 1=host:port,… */
    char gateway[64];       /* host:port of its RESP listener */
    uint16_t port[FLEET_COORDINATORS];
    int ports_held; /* no other demo has them while this is open */
    struct child child[FLEET_CHILDREN_MAX];
    size_t child_count;
    const char *history; /* RINGHOLD_HISTORY of all; NULL = none */
};

/* Choose ports, make the folder. False after printing why. */
bool fleet_init(struct fleet *f);
/* Start one; waits until it is ready. False after printing why. `id` is 1..3. */
bool fleet_start_coordinator(struct fleet *f, unsigned id);
bool fleet_start_node(struct fleet *f, const char *name);
bool fleet_start_gateway(struct fleet *f, const char *name);

struct child *fleet_child(struct fleet *f, const char *name); /* NULL = never started */
/* Kill the child with SIGKILL and reap it. */
void fleet_kill(struct fleet *f, struct child *c);
/* True if every child that should run does; names the first that does not. */
bool fleet_alive(struct fleet *f, const char **dead);
/* End all: gateways, nodes (killed: they would drain to each other), coordinators; then remove
 * the folder unless `keep`. */
void fleet_stop(struct fleet *f, bool keep);

#endif

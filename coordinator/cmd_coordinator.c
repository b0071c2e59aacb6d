/* SPDX-License-Identifier: Apache-2.0
 *
 * `ringhold coordinator`: its options, what must hold among them, and the start
 * of the daemon.
 */
#include "cli/commands.h"

#include "base/list.h"
#include "base/log.h"
#include "coordinator/coordinator_uv.h"
#include "daemon/admin.h"
#include "daemon/fault.h"
#include "daemon/link_args.h"
#include "daemon/listen.h"
#include "daemon/options.h"
#include "daemon/reload_options.h"
#include "daemon/services.h"
#include "txn/state/remembered.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEASE_MS = 3000, LEASE_MS_MIN = 1000, LEASE_MS_MAX = 300000 };

/* "1=127.0.0.1:7401,2=..." into the voters. False after printing what is wrong. */
static bool parse_peers(const char *text, struct coordinator_options *o)
{
    while (*text != '\0') {
        char item[160];
        char *end = NULL;
        const size_t size = strcspn(text, ",");

        if (size == 0 || size >= sizeof item || o->voter_count == REPLICA_VOTERS_MAX) {
            break;
        }
        (void)snprintf(item, sizeof item, "%.*s", (int)size, text);
        const unsigned long id = strtoul(item, &end, 10);
        if (end == item || *end != '=' || id == 0 || id > 255 || strchr(end, ':') == NULL) {
            break;
        }
        for (size_t i = 0; i < o->voter_count; i++) {
            if (o->voter[i] == id) {
                fault_print("coordinator", "--peers: id %lu is given twice", id);
                return false;
            }
            if (strcmp(o->address[i], end + 1) == 0) {
                fault_print("coordinator",
                            "--peers: %s is given for both %lu and %lu",
                            end + 1,
                            o->voter[i],
                            id);
                return false;
            }
        }
        o->voter[o->voter_count] = id;
        (void)snprintf(o->address[o->voter_count++], sizeof o->address[0], "%s", end + 1);
        text += size;
        text += *text == ',' ? 1 : 0;
    }
    if (*text != '\0') {
        fault_print(
            "coordinator", "--peers: '%s' is not ID=HOST:PORT[,…] with 1, 3 or 5 entries", text);
        return false;
    }
    return true;
}

static bool check(struct coordinator_options *o, const char *peers, const struct link_args *tls)
{
    bool mine = false;

    if (!parse_peers(peers, o)) {
        return false;
    }
    if (o->joining) {
        o->voter_count = 0; // the group that takes me in tells me of the others
        mine = o->listen[0] != '\0';
    } else if (o->voter_count == 0) {
        if (o->listen[0] == '\0') {
            (void)snprintf(o->listen, sizeof o->listen, "127.0.0.1:%d", ADMIN_DEFAULT_PORT);
        }
        o->voter[0] = o->id;
        (void)snprintf(o->address[0], sizeof o->address[0], "%s", o->listen);
        o->voter_count = 1;
    }
    for (size_t i = 0; i < o->voter_count; i++) {
        if (o->voter[i] == o->id) {
            mine = true;
            if (o->listen[0] == '\0') {
                (void)snprintf(o->listen, sizeof o->listen, "%s", o->address[i]);
            }
        }
    }
    if (!mine && o->joining) {
        fault_print("coordinator", "--join-group needs --listen");
        return false;
    }
    if (!mine) {
        fault_print("coordinator", "--id %u is not among --peers", o->id);
        return false;
    }
    if (!o->joining && o->voter_count != 1 && o->voter_count != 3 && o->voter_count != 5) {
        fault_print(
            "coordinator", "--peers: %zu coordinators; a group has 1, 3 or 5", o->voter_count);
        return false;
    }
    if (o->heartbeat_ms * 2 > o->election_ms) {
        fault_print("coordinator", "--election-ms must be at least twice --heartbeat-ms");
        return false;
    }
    struct hello self = {.role = ROLE_COORDINATOR};
    (void)snprintf(self.cluster, sizeof self.cluster, "%s", o->cluster);
    (void)snprintf(self.name, sizeof self.name, "%u", o->id);
    o->tls = link_args_files(tls);
    return link_args_check(tls, "coordinator", &self) &&
           listen_allowed("coordinator", "listen", o->listen, o->insecure || o->tls.ca != NULL);
}

/* 0 = as the lease's length makes it. */
struct lease_times {
    uint32_t lease_ms;
    uint32_t margin_ms;
    uint32_t suspect_ms;
};

static struct option lease_option(struct lease_times *t)
{
    return option_time("lease",
                       &t->lease_ms,
                       (struct option_range){LEASE_MS_MIN, LEASE_MS_MAX},
                       "a node that has lost contact serves no longer than this (%)");
}

static struct option margin_option(struct lease_times *t)
{
    return option_time("lease-margin",
                       &t->margin_ms,
                       (struct option_range){10, LEASE_MS_MAX},
                       "added to the lease before other nodes take over, against clocks that run "
                       "slow (lease / 10)");
}

static struct option suspect_option(struct lease_times *t)
{
    return option_time("suspect",
                       &t->suspect_ms,
                       (struct option_range){10, LEASE_MS_MAX},
                       "a node silent for this long takes part in nothing new, until it is heard "
                       "again or its lease is over (lease / 2)");
}

static bool take_times(struct coordinator_options *o, const struct lease_times *t)
{
    const char *fault;

    coordinator_config_lease(&o->machine, t->lease_ms);
    if (t->margin_ms != 0) {
        o->machine.lease_margin_us = (uint64_t)t->margin_ms * 1000;
    }
    if (t->suspect_ms != 0) {
        o->machine.suspect_ms = t->suspect_ms;
    }
    fault = coordinator_config_fault(&o->machine, o->election_ms);
    if (fault != NULL) {
        fault_print("coordinator",
                    "--lease %ums, --lease-margin %ums, --suspect %ums, "
                    "--election-ms %u: %s",
                    t->lease_ms,
                    (unsigned)(o->machine.lease_margin_us / 1000),
                    o->machine.suspect_ms,
                    o->election_ms,
                    fault);
    }
    return fault == NULL;
}

static struct coordinator_options defaults(void)
{
    return (struct coordinator_options){
        .id = 1,
        .cluster = "ringhold",
        .election_ms = 500,
        .snapshot_entries = 1024,
        .heartbeat_ms = 50,
        .machine = coordinator_config_default(),
    };
}

static void name_folder(struct coordinator_options *o)
{
    if (o->data[0] == '\0') {
        (void)snprintf(o->data, sizeof o->data, "ringhold-data/coordinator-%u", o->id);
    }
}

static struct option adopt_option(bool *adopt)
{
    return option_switch(
        "adopt", adopt, "adopt a copy of another coordinator's folder as this one's, then exit");
}

static struct option join_option(bool *joining)
{
    return option_switch("join-group",
                         joining,
                         "the folder is new: wait for `ringhold coordinators` to take this "
                         "coordinator into a running group");
}

static struct option least_option(char *text, size_t size)
{
    return option_list("min-members",
                       "[ROLE=]N",
                       text,
                       size,
                       "nodes of a role that must be registered before any of them gets ids for "
                       "the first time; may be repeated (1)");
}

/* Lines of "ROLE=N", or "N" for the default role. Prints what is wrong. */
static bool take_least(struct coordinator_config *config, const char *text)
{
    config->least_count = 0;
    while (text[0] != '\0') {
        const size_t size = strcspn(text, "\n");
        const char *equals = memchr(text, '=', size);
        const size_t role_size = equals == NULL ? 0 : (size_t)(equals - text);
        char *end = NULL;
        const unsigned long members = strtoul(equals == NULL ? text : equals + 1, &end, 10);
        struct coordinator_least *least = &config->least[config->least_count];

        if (role_size > RING_ROLE_MAX || members < 1 || members > RING_NODES_MAX ||
            end != text + size || config->least_count == COORDINATOR_LEAST_MAX) {
            fault_print("coordinator",
                        "--min-members: '%.*s' is not ROLE=N with N from 1 "
                        "to %d, or there are more than %d of them",
                        (int)size,
                        text,
                        RING_NODES_MAX,
                        COORDINATOR_LEAST_MAX);
            return false;
        }
        memcpy(least->role, text, role_size);
        least->role[role_size] = '\0';
        if (strcmp(least->role, "default") == 0) {
            least->role[0] = '\0';
        }
        for (size_t i = 0; i < config->least_count; i++) {
            if (strcmp(config->least[i].role, least->role) == 0) {
                fault_print("coordinator",
                            "--min-members: role %s is given twice",
                            least->role[0] == '\0' ? "default" : least->role);
                return false;
            }
        }
        least->members = (uint32_t)members;
        config->least_count++;
        text += size + (text[size] == '\n');
    }
    return true;
}

static struct option zone_option(char *text, size_t size)
{
    return option_list("role-zone",
                       "[ROLE=]ZONE",
                       text,
                       size,
                       "keep a role's ids on its nodes of that zone, if there is one; may be "
                       "repeated, also for one role (any)");
}

/* Lines of "ROLE=ZONE", or "ZONE" for the default role. Prints what is wrong. */
static bool take_zones(struct coordinator_config *config, const char *text)
{
    config->zone_count = 0;
    while (text[0] != '\0') {
        const size_t size = strcspn(text, "\n");
        const char *equals = memchr(text, '=', size);
        const size_t role_size = equals == NULL ? 0 : (size_t)(equals - text);
        const char *name = equals == NULL ? text : equals + 1;
        const size_t name_size = size - (size_t)(name - text);
        struct coordinator_zone *zone = &config->zone[config->zone_count];

        if (role_size > RING_ROLE_MAX || name_size < 1 || name_size > VIEW_NAME_MAX ||
            config->zone_count == COORDINATOR_ZONES_MAX) {
            fault_print("coordinator",
                        "--role-zone: '%.*s' is not ROLE=ZONE with a zone of 1 to %d bytes, or "
                        "there are more than %d of them",
                        (int)size,
                        text,
                        VIEW_NAME_MAX,
                        COORDINATOR_ZONES_MAX);
            return false;
        }
        *zone = (struct coordinator_zone){.role = ""};
        memcpy(zone->role, text, role_size);
        memcpy(zone->zone, name, name_size);
        if (strcmp(zone->role, "default") == 0) {
            zone->role[0] = '\0';
        }
        config->zone_count++;
        text += size + (text[size] == '\n');
    }
    return true;
}

static struct option snapshot_option(uint32_t *entries)
{
    return option_number("snapshot-entries",
                         entries,
                         (struct option_range){16, 1000000},
                         "log entries between snapshots (%)");
}

static struct option readmit_option(uint32_t *readmit)
{
    return option_number("readmit",
                         readmit,
                         (struct option_range){1, 255},
                         "forget the recorded identity of that coordinator (docs/raft.md)");
}

static struct option peers_option(char *peers, size_t size)
{
    return option_text("peers",
                       "ID=HOST:PORT,...",
                       peers,
                       size,
                       "all coordinators, this one included; none: it is the only one");
}

static struct option balance_option(char *text, size_t size)
{
    return option_text("balance",
                       "hash|load|memory",
                       text,
                       size,
                       "hash: each node has its share of the ids; load: of what their vnodes cost; "
                       "memory: of what their actors take (%)");
}

static struct option balance_moves_option(uint32_t *moves)
{
    return option_number("balance-moves",
                         moves,
                         (struct option_range){1, 1000},
                         "vnodes that a node gives away for the load's sake in a minute, on the "
                         "average of all nodes (%)");
}

/* Prints what is wrong. */
static bool take_balance(struct coordinator_config *config, const char *text)
{
    for (enum balance_by by = BALANCE_BY_HASH; by <= BALANCE_BY_MEMORY; by++) {
        if (strcmp(text, balance_by_name(by)) == 0) {
            config->balance_by = by;
            return true;
        }
    }
    fault_print("coordinator", "--balance must be hash, load or memory, not '%s'", text);
    return false;
}

struct coordinator_settings {
    struct settings settings;
    struct coordinator_options o;
    struct lease_times times;
    uint32_t grid;
    char peers[1024];
    char level[8];
    char least[1024];
    char zones[4096];
    char balance[8];
    struct link_args tls;
    struct http_options http;
};

static void add_self(struct options *t, struct coordinator_settings *c)
{
    struct coordinator_options *o = &c->o;

    (void)options_add(
        t, option_number("id", &o->id, (struct option_range){1, 255}, "this coordinator's id (%)"));
    (void)options_add(
        t, option_text("cluster", "NAME", o->cluster, sizeof o->cluster, "the cluster's name (%)"));
    (void)options_add(t, peers_option(c->peers, sizeof c->peers));
    (void)options_add(
        t,
        option_text("listen",
                    "HOST:PORT",
                    o->listen,
                    sizeof o->listen,
                    "address for links (this coordinator's entry of --peers, or 127.0.0.1:7400)"));
    (void)options_add(
        t,
        option_text(
            "data", "DIR", o->data, sizeof o->data, "data folder (ringhold-data/coordinator-N)"));
}

/* What a transaction carries is bounded by the nodes' --move-rate. */
static void add_caps(struct options *t, struct coordinator_config *machine)
{
    (void)options_add(t,
                      option_reloads(option_number(
                          "moves-at-once",
                          &machine->txns_max,
                          (struct option_range){1, STATE_PENDING_MAX},
                          "transactions that move vnodes at a time, in the whole fleet (%)")));
    (void)options_add(
        t,
        option_reloads(option_number("moves-per-node",
                                     &machine->txns_per_node,
                                     (struct option_range){1, 64},
                                     "of them, in how many a node takes part at a time (%)")));
}

static void add_ring(struct options *t, struct coordinator_settings *c)
{
    struct coordinator_config *machine = &c->o.machine;

    (void)options_add(
        t,
        option_number("vnodes",
                      &machine->vnodes_per_weight,
                      (struct option_range){1, 1024},
                      "vnodes per unit of weight; takes effect when the ring is made (%)"));
    (void)options_add(
        t,
        option_number("grid",
                      &c->grid,
                      (struct option_range){RING_GRID_MIN, RING_GRID_MAX},
                      "2^N cells, fixed when the ring is made: at least 4 per vnode (%)"));
    (void)options_add(t,
                      option_reloads(option_number(
                          "prepare-ms",
                          &machine->prepare_ms,
                          (struct option_range){100, 3600000},
                          "abort a transaction that is not prepared after this time (%)")));
    add_caps(t, machine);
    (void)options_add(
        t,
        option_reloads(option_number("remember-max",
                                     &machine->remember_max,
                                     (struct option_range){0, REMEMBERED_MAX},
                                     "ids that the fleet remembers for kinds that say so (%)")));
    (void)options_add(t, option_reloads(least_option(c->least, sizeof c->least)));
    (void)options_add(t, option_reloads(zone_option(c->zones, sizeof c->zones)));
    (void)options_add(t, option_reloads(balance_option(c->balance, sizeof c->balance)));
    (void)options_add(t, option_reloads(balance_moves_option(&machine->balance_moves)));
    (void)options_add(t, lease_option(&c->times));
    (void)options_add(t, margin_option(&c->times));
    (void)options_add(t, option_reloads(suspect_option(&c->times)));
}

static void add_raft(struct options *t, struct coordinator_options *o)
{
    (void)options_add(t,
                      option_number("election-ms",
                                    &o->election_ms,
                                    (struct option_range){50, 60000},
                                    "election time-out (%)"));
    (void)options_add(t,
                      option_number("heartbeat-ms",
                                    &o->heartbeat_ms,
                                    (struct option_range){5, 10000},
                                    "the leader's heartbeat interval (%)"));
    (void)options_add(t, snapshot_option(&o->snapshot_entries));
    (void)options_add(t, readmit_option(&o->readmit));
    (void)options_add(t, adopt_option(&o->adopt));
    (void)options_add(t, join_option(&o->joining));
}

static void init(struct settings *s)
{
    struct coordinator_settings *c = CONTAINER_OF(s, struct coordinator_settings, settings);
    struct options *t = &s->table;

    c->o = defaults();
    c->times.lease_ms = LEASE_MS;
    c->grid = 16; // 256 KiB of cells: room for 256 nodes of 64 vnodes
    (void)snprintf(c->level, sizeof c->level, "info");
    (void)snprintf(c->balance, sizeof c->balance, "hash");
    s->command = (struct command){
        .name = "coordinator",
        .summary = "Run a coordinator: with its peers it elects a leader that changes the ring.",
        .arguments = "",
        .daemon = true,
    };
    add_self(t, c);
    add_ring(t, c);
    add_raft(t, &c->o);
    (void)options_add(t, http_address_option(&c->http));
    (void)options_add(t, http_token_option(&c->http));
    (void)options_add(t, http_operator_option(&c->http));
    (void)options_add(t, link_ca_option(&c->tls));
    (void)options_add(t, link_certificate_option(&c->tls));
    (void)options_add(t, link_key_option(&c->tls));
    (void)options_add(t, link_insecure_option(&c->o.insecure));
    (void)options_add(t, log_level_option(c->level, sizeof c->level));
}

static bool derive(struct settings *s)
{
    struct coordinator_settings *c = CONTAINER_OF(s, struct coordinator_settings, settings);

    c->o.machine.grid = (uint8_t)c->grid;
    return log_level_check("coordinator", c->level) && take_times(&c->o, &c->times) &&
           take_least(&c->o.machine, c->least) && take_zones(&c->o.machine, c->zones) &&
           take_balance(&c->o.machine, c->balance);
}

static int check_settings(struct settings *s)
{
    struct coordinator_settings *c = CONTAINER_OF(s, struct coordinator_settings, settings);

    if (!check(&c->o, c->peers, &c->tls) || !derive(s) || !http_check(&c->http, "coordinator")) {
        return 1;
    }
    name_folder(&c->o);
    return OPTIONS_RUN;
}

static int run(struct settings *s, int argc, char **argv)
{
    struct coordinator_settings *c = CONTAINER_OF(s, struct coordinator_settings, settings);
    struct overview overview = {.tls = c->o.tls, .lock = PTHREAD_MUTEX_INITIALIZER};
    const struct http_fleet fleet = {.context = &overview,
                                     .put = overview_put,
                                     .put_actors = overview_put_actors,
                                     .put_where = overview_put_where,
                                     .put_hot = overview_put_hot,
                                     .operate = overview_operate};
    struct daemon_services services;
    struct reload_options reload_options = {
        .running = s, .argc = argc, .argv = argv, .services = &services, .http = &c->http};
    int code = 1;

    (void)snprintf(overview.cluster, sizeof overview.cluster, "%s", c->o.cluster);
    c->o.overview = &overview;
    c->o.source = reload_begin(&reload_options);
    if (daemon_services_open(&services, &c->http, "coordinator", &fleet)) {
        c->o.pages = services.pages;
        code = coordinator_run(&c->o);
    }
    daemon_services_close(&services);
    return code;
}

int cmd_coordinator(int argc, char **argv)
{
    static const struct settings_kind kind = {.size = sizeof(struct coordinator_settings),
                                              .init = init,
                                              .derive = derive,
                                              .check = check_settings,
                                              .run = run};

    return settings_run(&kind, argc, argv);
}

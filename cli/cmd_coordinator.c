/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"

#include "base/log.h"
#include "cli/admin.h"
#include "cli/coordinator_uv.h"
#include "cli/listen.h"
#include "cli/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "1=127.0.0.1:7401,2=…" into the voters. False after printing what is wrong. */
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
                (void)fprintf(stderr, "ringhold coordinator: --peers: id %lu twice\n", id);
                return false;
            }
        }
        o->voter[o->voter_count] = id;
        (void)snprintf(o->address[o->voter_count++], sizeof o->address[0], "%s", end + 1);
        text += size;
        text += *text == ',' ? 1 : 0;
    }
    if (*text != '\0') {
        (void)fprintf(stderr,
                      "ringhold coordinator: --peers: '%s' is not ID=HOST:PORT[,…], 1, 3 or 5\n",
                      text);
        return false;
    }
    return true;
}

static bool check(struct coordinator_options *o, const char *peers)
{
    bool mine = false;

    if (!parse_peers(peers, o)) {
        return false;
    }
    if (o->voter_count == 0) {
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
    if (!mine) {
        (void)fprintf(stderr, "ringhold coordinator: --id %u is not among --peers\n", o->id);
        return false;
    }
    if (o->voter_count != 1 && o->voter_count != 3 && o->voter_count != 5) {
        (void)fprintf(stderr,
                      "ringhold coordinator: %zu coordinators; 1, 3 or 5 make sense\n",
                      o->voter_count);
        return false;
    }
    if (o->heartbeat_ms * 2 > o->election_ms) {
        (void)fprintf(
            stderr, "ringhold coordinator: --election-ms must be at least twice --heartbeat-ms\n");
        return false;
    }
    return listen_allowed("coordinator", o->listen, o->insecure);
}

int cmd_coordinator(int argc, char **argv)
{
    struct coordinator_options o = {
        .id = 1,
        .cluster = "ringhold",
        .election_ms = 500,
        .snapshot_entries = 1024,
        .heartbeat_ms = 50,
        .machine = coordinator_config_default(),
    };
    char peers[1024] = "";
    char level[8] = "info";
    const char *arguments[8];
    int count = 0;
    const struct option options[] = {
        {"id", "N", "which of the coordinators I am (1)", OPTION_NUMBER, &o.id, 0, 1, 255, NULL},
        {"cluster",
         "NAME",
         "the cluster's name (ringhold)",
         OPTION_TEXT,
         o.cluster,
         sizeof o.cluster,
         0,
         0,
         NULL},
        {"peers",
         "ID=HOST:PORT,…",
         "all coordinators, me included; none: I am alone",
         OPTION_TEXT,
         peers,
         sizeof peers,
         0,
         0,
         NULL},
        {"listen",
         "HOST:PORT",
         "where I take links (my entry of --peers, or 127.0.0.1:7400)",
         OPTION_TEXT,
         o.listen,
         sizeof o.listen,
         0,
         0,
         NULL},
        {"data",
         "DIR",
         "my folder (ringhold-data/coordinator-N)",
         OPTION_TEXT,
         o.data,
         sizeof o.data,
         0,
         0,
         NULL},
        {"vnodes",
         "N",
         "vnodes per unit of weight, when the ring is made (64)",
         OPTION_NUMBER,
         &o.machine.vnodes_per_weight,
         0,
         1,
         1024,
         NULL},
        {"prepare-ms",
         "N",
         "a transaction not prepared by then is aborted (10000)",
         OPTION_NUMBER,
         &o.machine.prepare_ms,
         0,
         100,
         3600000,
         NULL},
        {"election-ms",
         "N",
         "election time-out (500)",
         OPTION_NUMBER,
         &o.election_ms,
         0,
         50,
         60000,
         NULL},
        {"heartbeat-ms",
         "N",
         "of the leader (50)",
         OPTION_NUMBER,
         &o.heartbeat_ms,
         0,
         5,
         10000,
         NULL},
        {"snapshot-entries",
         "N",
         "log entries between snapshots (1024)",
         OPTION_NUMBER,
         &o.snapshot_entries,
         0,
         16,
         1000000,
         NULL},
        {"readmit",
         "ID",
         "forget the recorded identity of that coordinator (docs/raft.md)",
         OPTION_NUMBER,
         &o.readmit,
         0,
         1,
         255,
         NULL},
        {"adopt",
         NULL,
         "my folder is a copy of another coordinator's: make it mine, then exit",
         OPTION_SWITCH,
         &o.adopt,
         0,
         0,
         0,
         NULL},
        {"insecure",
         NULL,
         "listen beyond loopback although links are not encrypted yet",
         OPTION_SWITCH,
         &o.insecure,
         0,
         0,
         0,
         NULL},
        {"log-level",
         "LEVEL",
         "error, warn, info or debug (info)",
         OPTION_TEXT,
         level,
         sizeof level,
         0,
         0,
         NULL},
        {0},
    };
    const struct command command = {
        .name = "coordinator",
        .summary = "Run a coordinator: with its peers it elects a leader that changes the ring.",
        .arguments = "",
        .options = options,
    };
    const int code = options_parse(&command, argc, argv, arguments, &count);

    if (code >= 0) {
        return code;
    }
    if (!log_level_set("coordinator", level) || !check(&o, peers)) {
        return 1;
    }
    if (o.data[0] == '\0') {
        (void)snprintf(o.data, sizeof o.data, "ringhold-data/coordinator-%u", o.id);
    }
    return coordinator_run(&o);
}

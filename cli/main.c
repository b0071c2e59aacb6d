/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

static int cmd_version(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    (void)printf("ringhold %s\n", RINGHOLD_VERSION);
    return 0;
}

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *summary;
} commands[] = {
    {"demo", cmd_demo, "start a whole fleet on loopback, load it, change it, check it"},
    {"coordinator", cmd_coordinator, "run a coordinator: keeps the ring (1, 3 or 5 of them)"},
    {"node",
     cmd_node,
     "run a node: hosts actors; or: node list | wait | add | drain | remove | replace | weight"},
    {"gateway", cmd_gateway, "run a gateway: takes clients' requests (Redis protocol, packets)"},
    {"status", cmd_status, "show the fleet at a glance"},
    {"ring",
     cmd_ring,
     "list every vnode and its owner; --diff: what would move if a node came or left"},
    {"top",
     cmd_top,
     "show the actors that are slow, busy or have most requests waiting; --calls: their calls"},
    {"where", cmd_where, "show which node owns an id"},
    {"trace", cmd_trace, "show the way of one request to an actor, with each process's times"},
    {"kick", cmd_kick, "end the session of the player who is bound to an actor"},
    {"daemons", cmd_daemons, "daemons NAME COUNT: change how many actors a set has"},
    {"upgrade", cmd_upgrade, "show which versions run; --finish ends an upgrade"},
    {"coordinators",
     cmd_coordinators,
     "coordinators list | set | add | replace | remove: change who votes"},
    {"quarantine", cmd_quarantine, "quarantine list | clear | add: actors that kill their process"},
    {"txn", cmd_txn, "txn list | show N | resolve N: changes of the ring"},
    {"events", cmd_events, "show what was decided, when, and who asked for it"},
    {"rolling-restart",
     cmd_rolling_restart,
     "restart the nodes one after the other: drain, restart, wait"},
    {"backup", cmd_backup, "write the fleet's configuration into one file"},
    {"restore", cmd_restore, "make a new group of coordinators from a backup"},
    {"recover",
     cmd_recover,
     "recover inspect | verify | backup | restore | new-cluster | undo: offline"},
    {"config", cmd_config, "config check | print FILE: check that the daemons would start with it"},
    {"tls",
     cmd_tls,
     "tls init | coordinator | node | gateway | operator | check: certificates for links"},
    {"token", cmd_token, "token make | check: the tokens that players' clients show a gateway"},
    {"conform", cmd_conform, "check that a live gateway keeps the client protocol"},
    {"check", cmd_check, "ask every process for its state; say what is wrong"},
    {"fix", cmd_fix, "repair what check finds; only prints the repairs, unless --yes"},
    {"bench", cmd_bench, "load a gateway with requests; report how fast it answers"},
    {"bot", cmd_bot, "play thousands of players; report what was lost, doubled, reordered"},
    {"version", cmd_version, "print the version"},
};

static int usage(FILE *out)
{
    (void)fprintf(out,
                  "usage: ringhold COMMAND [options]\n\n"
                  "Exactly one live actor per id across a fleet of game servers.\n\n");
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        (void)fprintf(out, "  %-15s %s\n", commands[i].name, commands[i].summary);
    }
    (void)fprintf(out,
                  "\n"
                  "`ringhold COMMAND --help` describes a command.\n");
    return out == stdout ? 0 : 1;
}

int main(int argc, char **argv)
{
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGXFSZ, SIG_IGN); // a file that may not grow is a full disk: the write says so
    if (argc < 2) {
        return usage(stderr);
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0) {
        return usage(stdout);
    }
    if (strcmp(argv[1], "--version") == 0) {
        return cmd_version(0, NULL);
    }
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        if (strcmp(argv[1], commands[i].name) == 0) {
            return commands[i].run(argc - 2, argv + 2);
        }
    }
    (void)fprintf(stderr, "ringhold: unknown command '%s' (see ringhold --help)\n", argv[1]);
    return 1;
}

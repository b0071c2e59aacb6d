/* SPDX-License-Identifier: Apache-2.0
 *
 * `ringhold`: the table of its commands.
 */
#include "cli/commands.h"

#include "base/mutant.h"
#include "daemon/program.h"

#include <stddef.h>
#include <string.h>

static const struct verb commands[] = {
    {"demo",
     NULL,
     "ringhold-demo",
     "start a whole fleet on loopback, load it, change it, check it"},
    {"coordinator", cmd_coordinator, NULL, "run a coordinator: keeps the ring (1, 3 or 5 of them)"},
    {"node",
     cmd_node,
     NULL,
     "run a node: hosts actors; or: node list | wait | add | drain | remove | replace | weight"},
    {"gateway",
     cmd_gateway,
     NULL,
     "run a gateway: takes clients' requests (Redis protocol, packets)"},
    {"status", cmd_status, NULL, "show the fleet at a glance"},
    {"ring",
     cmd_ring,
     NULL,
     "list every vnode and its owner; --diff: what would move if a node came or left"},
    {"top",
     cmd_top,
     NULL,
     "show the actors that are slow, busy or have most requests waiting; --calls: their calls"},
    {"actors", cmd_actors, NULL, "list who lives, on which node"},
    {"where",
     cmd_where,
     NULL,
     "show which node owns an actor, whether it lives, and its last move"},
    {"trace",
     cmd_trace,
     NULL,
     "show the way of one request to an actor, with each process's times"},
    {"call", cmd_call, NULL, "ask one actor by way of a gateway, and print its answer"},
    {"cli",
     NULL,
     "ringhold-console",
     "ask actors by hand: a line is a request to a gateway, its pushes are shown"},
    {"kick", cmd_kick, NULL, "end the session of the player who is bound to an actor"},
    {"daemons", cmd_daemons, NULL, "daemons NAME COUNT: change how many actors a set has"},
    {"upgrade", cmd_upgrade, NULL, "show which versions run; --finish ends an upgrade"},
    {"coordinators",
     cmd_coordinators,
     NULL,
     "coordinators list | set | add | replace | remove | maintenance: change who votes, stop all"},
    {"quarantine",
     cmd_quarantine,
     NULL,
     "quarantine list | clear | add: actors that kill their process"},
    {"remembered",
     cmd_remembered,
     NULL,
     "remembered list | forget: ids whose actors live again by themselves"},
    {"actor",
     cmd_actor,
     NULL,
     "actor get | set | delete | export | import KIND/ID: the values of a durable actor"},
    {"store",
     cmd_store,
     NULL,
     "store check | stats | vacuum | backup | migrate: the store of durable actors"},
    {"move", cmd_move, NULL, "move VNODE NODE: move vnodes to the nodes that you name"},
    {"pin", cmd_pin, NULL, "pin VNODE|KIND/ID NODE: keep it at that node; or: pin list"},
    {"unpin", cmd_unpin, NULL, "end pins"},
    {"txn", cmd_txn, NULL, "txn list | show N | resolve N: changes of the ring"},
    {"events", cmd_events, NULL, "show what was decided, when, and who asked for it"},
    {"rolling-restart",
     cmd_rolling_restart,
     NULL,
     "restart the nodes one after the other: drain, restart, wait"},
    {"backup", cmd_backup, NULL, "write the fleet's configuration into one file"},
    {"restore", cmd_restore, NULL, "make a new group of coordinators from a backup"},
    {"recover",
     cmd_recover,
     NULL,
     "recover inspect | verify | backup | restore | new-cluster | undo: offline"},
    {"context", cmd_context, NULL, "context add | use | list | show | remove: fleets by name"},
    {"config",
     cmd_config,
     NULL,
     "config check | print FILE: check that the daemons would start with it"},
    {"tls",
     cmd_tls,
     NULL,
     "tls init | coordinator | node | gateway | operator | check: certificates for links"},
    {"token",
     cmd_token,
     NULL,
     "token make | check: the tokens that players' clients show a gateway"},
    {"test",
     NULL,
     "ringhold-trial",
     "run tests of actors that are written in Lua, without a fleet"},
    {"conform", NULL, "ringhold-conform", "check that a live gateway keeps the client protocol"},
    {"check", cmd_check, NULL, "ask every process for its state; say what is wrong"},
    {"fix", cmd_fix, NULL, "repair what check finds; only prints the repairs, unless --yes"},
    {"bench", NULL, "ringhold-load", "load a gateway with requests; report how fast it answers"},
    {"bot",
     NULL,
     "ringhold-load",
     "play thousands of players; report what was lost, doubled, reordered"},
    {"version", NULL, NULL, "print the version"},
};

/* How many words the flag takes that stands before the command; 0: it is none that may. */
static int flag_words(const char *word)
{
    static const char *const keys[] = {"--coordinators",
                                       "--cluster",
                                       "--context",
                                       "--link-ca",
                                       "--link-certificate",
                                       "--link-key",
                                       "--output",
                                       "--timeout-ms",
                                       "-o"};

    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const size_t size = strlen(keys[i]);

        if (strncmp(word, keys[i], size) == 0 && (word[size] == '\0' || word[size] == '=')) {
            return word[size] == '=' ? 1 : 2;
        }
    }
    return 0;
}

/* "ringhold --coordinators X status" as "ringhold status --coordinators X": flags that many
 * commands have may stand before the command, too. The words stay the same, only their order
 * changes. */
static void flags_last(int argc, char **argv)
{
    int first = 1; // of the command

    while (first < argc && flag_words(argv[first]) > 0) {
        first += flag_words(argv[first]);
    }
    for (int moved = 1; moved < first && first < argc; moved++) {
        char *flag = argv[1];

        memmove(argv + 1, argv + 2, (size_t)(argc - 2) * sizeof *argv);
        argv[argc - 1] = flag;
    }
}

int main(int argc, char **argv)
{
    mutant_from_environment();
    flags_last(argc, argv);
    return program_main(commands, sizeof commands / sizeof commands[0], argc, argv);
}

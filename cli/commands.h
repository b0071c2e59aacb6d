/* SPDX-License-Identifier: Apache-2.0
 *
 * The subcommands. Each takes the words after its name and returns the exit
 * code: 0 done, 1 error, 2 a check found problems, 3 timed out with work
 * still going.
 */
#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

int cmd_coordinator(int argc, char **argv);
int cmd_node(int argc, char **argv); /* the daemon, or list | wait | add | drain … */
int cmd_gateway(int argc, char **argv);
int cmd_status(int argc, char **argv);
int cmd_ring(int argc, char **argv);
int cmd_top(int argc, char **argv);
int cmd_actors(int argc, char **argv);
int cmd_where(int argc, char **argv);
int cmd_trace(int argc, char **argv);
int cmd_kick(int argc, char **argv);
int cmd_call(int argc, char **argv);
int cmd_txn(int argc, char **argv); /* list | show N | resolve N */
int cmd_events(int argc, char **argv);
int cmd_recover(int argc, char **argv);
int cmd_rolling_restart(int argc, char **argv);
int cmd_backup(int argc, char **argv);
int cmd_restore(int argc, char **argv);
int cmd_daemons(int argc, char **argv);
int cmd_coordinators(int argc, char **argv); /* list | set | add | replace | remove | maintenance */
int cmd_upgrade(int argc, char **argv);
int cmd_quarantine(int argc, char **argv); /* list | clear KIND/ID | add KIND/ID */
int cmd_move(int argc, char **argv);
int cmd_pin(int argc, char **argv); /* list | VNODE|KIND/ID NODE */
int cmd_unpin(int argc, char **argv);
int cmd_remembered(int argc, char **argv); /* list | forget KIND/ID… */
int cmd_actor(int argc, char **argv);      /* get | set | delete | export | import KIND/ID */
int cmd_store(int argc, char **argv);      /* check | stats | vacuum | backup FILE */
int cmd_config(int argc, char **argv);     /* check | print FILE */
int cmd_context(int argc, char **argv);    /* add | use | list | show | remove */
int cmd_token(int argc, char **argv);      /* make | check TOKEN */
int cmd_tls(int argc, char **argv);        /* init | ROLE NAME | check */
int cmd_check(int argc, char **argv);
int cmd_fix(int argc, char **argv);

#endif

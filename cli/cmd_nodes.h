/* SPDX-License-Identifier: Apache-2.0
 *
 * `ringhold node list|wait|add|drain|remove|replace|weight`: asking about nodes. `ringhold node`
 * alone is the daemon (cli/cmd_node.c).
 */
#ifndef CLI_CMD_NODES_H
#define CLI_CMD_NODES_H

#include "cli/query.h"

/* Wait until the node serves its share, under an incarnation above that one, and nothing moves. A
 * name that the fleet does not know must be known after `register_s`, if that is less.
 * Returns 0; 3 after saying what is still missing; 1 on another error. */
int node_wait(const struct query *q, const char *name, uint64_t above, uint32_t wait_s,
              uint32_t register_s);

/* Ask for the removal of a node, "" or the node `successor` takes its share; tells what comes of
 * it. False after printing why not. */
bool node_remove_wish(const struct query *q, const char *node, const char *successor);

int cmd_node_list(int argc, char **argv);
int cmd_node_wait(int argc, char **argv);
int cmd_node_drain(int argc, char **argv);
int cmd_node_remove(int argc, char **argv);
int cmd_node_add(int argc, char **argv);
int cmd_node_replace(int argc, char **argv);
int cmd_node_weight(int argc, char **argv);

#endif

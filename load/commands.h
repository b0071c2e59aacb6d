/* SPDX-License-Identifier: Apache-2.0
 *
 * The commands of ringhold-load. Each takes the words after its name and returns the exit code.
 */
#ifndef LOAD_COMMANDS_H
#define LOAD_COMMANDS_H

int cmd_bench(int argc, char **argv);
int cmd_bot(int argc, char **argv);

#endif

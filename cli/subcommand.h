/* SPDX-License-Identifier: Apache-2.0
 *
 * The second word of a command, as in `ringhold store check`.
 */
#ifndef CLI_SUBCOMMAND_H
#define CLI_SUBCOMMAND_H

/* A row of a command's table. The last row has no name: it runs, if it can, with all words when
 * none of the names is the first of them. */
struct subcommand {
    const char *name;
    int (*run)(int argc, char **argv); /* gets the words after the name, returns the exit code */
    const char *arguments;             /* what the usage says behind the name */
};

/* Run the row that argv[0] names, and return its exit code. Without one print the usage of
 * `command`, a line for each row: to stdout if --help asks for it, and return 0; else to stderr,
 * and return 1. */
int subcommand_run(const char *command, const struct subcommand *table, int argc, char **argv);

#endif

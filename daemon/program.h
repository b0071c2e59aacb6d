/* SPDX-License-Identifier: Apache-2.0
 *
 * A program of commands: `ringhold`, and those that it finds beside itself and starts
 * (ringhold-conform, ringhold-load, ringhold-demo).
 */
#ifndef DAEMON_PROGRAM_H
#define DAEMON_PROGRAM_H

#include <stddef.h>

struct verb {
    const char *name;
    int (*run)(int argc, char **argv); /* gets the words after the name, returns the exit code */
    const char *program; /* if `run` is NULL: the file that has this command (base/beside.h) */
    const char *summary;
};

/* Run the command that argv[1] names, print the usage or the version, and return the exit code. A
 * command of another program replaces this process; if that file is missing, a line on stderr names
 * it and the package that has it. */
int program_main(const struct verb *verb, size_t count, int argc, char **argv);

#endif

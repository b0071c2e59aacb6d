/* SPDX-License-Identifier: Apache-2.0
 *
 * A command that an operator gave as a template, run for one node.
 */
#ifndef CLI_SHELL_COMMAND_H
#define CLI_SHELL_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SHELL_COMMAND_MAX = 4096 };

/* Values for the words in braces of a command template. */
struct shell_words {
    const char *node;    /* {node} */
    const char *address; /* {address}: HOST:PORT; {host} is its first part, without brackets */
};

/* `template` with each word in braces replaced, quoted for a shell. False: it is too long, or a
 * word in braces is none of these; `why` (SHELL_COMMAND_MAX) says so. */
bool shell_command_fill(const char *template, const struct shell_words *words,
                        char out[SHELL_COMMAND_MAX], char *why, size_t why_size);

/* Run it by /bin/sh, its input closed, for at most `wait_s` seconds; then it is ended. The exit
 * code; -1 after saying on stderr how it ended without one. */
int shell_command_run(const char *command, uint32_t wait_s);

#endif

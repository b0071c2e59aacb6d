/* SPDX-License-Identifier: Apache-2.0
 *
 * A line that is typed, edited and completed, while others print above it: libedit, whose state is
 * the process's. There is one terminal; all functions are for one thread.
 */
#ifndef CONSOLE_TERMINAL_EDIT_H
#define CONSOLE_TERMINAL_EDIT_H

#include <stdbool.h>

/* Take a whole line; NULL: the input has ended (^D). Borrowed until it returns. */
typedef void terminal_on_line(void *context, const char *line);

/* Name the `at`th word that may stand where `before` ends, NULL behind the last. Only those that
 * begin as what is typed are offered. Borrowed until the next call. */
typedef const char *terminal_word(void *context, const char *before, unsigned at);

/* Begin. `history`: a file that keeps the lines, or NULL; it gets mode 0600. */
void terminal_start(const char *prompt, const char *history, terminal_on_line *on_line,
                    terminal_word *word, void *context);

/* Read what was typed; standard input is readable. */
void terminal_read(void);

/* Print a whole line of text above the line that is being edited. Without a terminal_start() it is
 * printed alone. */
void terminal_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Leave the terminal as it was found, and save the history. */
void terminal_stop(void);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * Edits a line by libedit, called back a key at a time.
 */
#include "console/terminal_edit.h"

#include "base/mem.h"

#include <editline/readline.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { HISTORY_LINES = 1000 };

static struct {
    bool on;
    bool taken;          /* a line was, and the next is empty yet */
    const char *prompt;  /* borrowed */
    const char *history; /* borrowed; NULL = none */
    terminal_on_line *on_line;
    terminal_word *word;
    void *context;
    char before[256]; /* what stands before the word that is completed */
    unsigned at;
} terminal;

static void take(char *line)
{
    if (line != NULL && line[0] != '\0') {
        (void)add_history(line);
    }
    terminal.taken = true;
    terminal.on_line(terminal.context, line);
    free(line);
}

/* The next word that begins as what is typed. libedit frees it. */
static char *next_word(const char *typed, int again)
{
    const size_t size = strlen(typed);
    const char *word;

    terminal.at = again == 0 ? 0 : terminal.at;
    while ((word = terminal.word(terminal.context, terminal.before, terminal.at)) != NULL) {
        terminal.at++;
        if (strncmp(word, typed, size) == 0) {
            return strdup(word);
        }
    }
    return NULL;
}

static char **complete(const char *typed, int from, int to)
{
    (void)to;
    (void)snprintf(terminal.before, sizeof terminal.before, "%.*s", from, rl_line_buffer);
    rl_attempted_completion_over = 1; // no names of files
    return rl_completion_matches(typed, next_word);
}

void terminal_start(const char *prompt, const char *history, terminal_on_line *on_line,
                    terminal_word *word, void *context)
{
    static char breaks[] = " ";

    terminal.prompt = prompt;
    terminal.history = history;
    terminal.on_line = on_line;
    terminal.word = word;
    terminal.context = context;
    rl_attempted_completion_function = complete;
    rl_completer_word_break_characters = breaks;
    rl_completion_append_character = '\0';
    using_history();
    stifle_history(HISTORY_LINES);
    if (history != NULL) {
        (void)read_history(history);
    }
    rl_callback_handler_install(prompt, take);
    terminal.on = true;
}

void terminal_read(void)
{
    terminal.taken = false;
    rl_callback_read_char();
    if (terminal.taken && terminal.on) { // libedit would show the line that was taken once more
        rl_callback_handler_remove();
        rl_callback_handler_install(terminal.prompt, take);
    }
}

void terminal_say(const char *format, ...)
{
    va_list list;

    va_start(list, format);
    if (terminal.on) {
        (void)printf("\r\033[K");
    }
    (void)vprintf(format, list);
    (void)printf("\n");
    va_end(list);
    (void)fflush(stdout);
    if (terminal.on) {
        rl_forced_update_display();
    }
}

void terminal_stop(void)
{
    if (!terminal.on) {
        return;
    }
    terminal.on = false;
    rl_callback_handler_remove();
    if (terminal.history != NULL) {
        const mode_t mask = umask(0077);

        (void)write_history(terminal.history);
        (void)umask(mask);
    }
}

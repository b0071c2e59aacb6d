/* SPDX-License-Identifier: Apache-2.0
 *
 * `ringhold cli`: reads lines, hands them to a gateway, and prints what comes back.
 */
#include "base/log.h"
#include "base/mem.h"
#include "console/console.h"
#include "console/terminal_edit.h"

#include <locale.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_SIZE = 4096, KINDS_WAIT_MS = 1000, LINE_SIZE = 1024 * 1024 };

struct console {
    struct query q;
    struct gateway_where gateway;
    char resp[256];
    struct console_way *way;
    bool ends;
    char kind[CONSOLE_KINDS_MAX][CONSOLE_KIND_SIZE]; /* "player/" */
    size_t kind_count;
};

void console_say(const char *head, const void *data, size_t size)
{
    const uint8_t *bytes = data;
    char *text = mem_new(4 * size + 1, 1);
    size_t used = 0;

    for (size_t i = 0; i < size; i++) {
        if (bytes[i] >= ' ' && bytes[i] != 0x7f) { // what is beyond ASCII is the terminal's to show
            text[used++] = (char)bytes[i];
        } else {
            used += (size_t)snprintf(text + used, 5, "\\x%02x", bytes[i]);
        }
    }
    text[used] = '\0';
    terminal_say("%s%s", head, text);
    mem_free(text);
}

/* ---- completion ---- */

/* Once: the names of kinds, by number and name. Nothing if no coordinator answers soon. */
static void learn_kinds(struct console *c)
{
    Rh__AdminStatus what = RH__ADMIN_STATUS__INIT;

    log_set_level(LOG_ERROR);
    Rh__AdminReply *reply = query_try(&c->q, &what.base, KINDS_WAIT_MS);
    for (size_t i = 0; reply != NULL && i < reply->n_roles; i++) {
        for (size_t k = 0; k < reply->roles[i]->n_kinds; k++) {
            const Rh__Kind *kind = reply->roles[i]->kinds[k];

            if (c->kind_count + 2 <= CONSOLE_KINDS_MAX) {
                (void)snprintf(
                    c->kind[c->kind_count++], CONSOLE_KIND_SIZE, "%u/", (unsigned)kind->number);
                (void)snprintf(c->kind[c->kind_count++], CONSOLE_KIND_SIZE, "%.64s/", kind->name);
            }
        }
    }
    admin_free(reply);
}

/* At the beginning of a line a command; behind it an actor's kind. */
static const char *word(void *context, const char *before, unsigned at)
{
    const struct console *c = context;

    if (before[0] == '\0') {
        return c->way->do_->commands[at];
    }
    return strchr(before, ' ') == strrchr(before, ' ') && c->resp[0] == '\0' && at < c->kind_count
               ? c->kind[at]
               : NULL;
}

/* ---- the loop ---- */

static void take(void *context, const char *line)
{
    struct console *c = context;

    c->ends = c->ends || line == NULL || !c->way->do_->line(c->way, line);
}

/* Wait for the gateway, and for what is typed unless `deaf`. */
static void turn(struct console *c, bool deaf)
{
    struct console_way *w = c->way;
    struct pollfd fds[] = {
        {.fd = deaf ? -1 : STDIN_FILENO, .events = POLLIN},
        {.fd = w->do_->fd(w), .events = (short)(POLLIN | (w->do_->wants_write(w) ? POLLOUT : 0))}};

    (void)poll(fds, 2, w->do_->wait_ms(w));
    if (fds[0].revents != 0) {
        terminal_read();
    }
    w->do_->turn(w);
}

static void finish(struct console *c)
{
    while (c->way->do_->is_busy(c->way) && !c->way->do_->failed(c->way)) {
        turn(c, true);
    }
}

/* Of a program that writes lines: one after the other, each with its answer. */
static void run_lines(struct console *c)
{
    char *line = mem_new(LINE_SIZE, 1);

    while (!c->ends && !c->way->do_->failed(c->way) && fgets(line, LINE_SIZE, stdin) != NULL) {
        line[strcspn(line, "\r\n")] = '\0';
        take(c, line);
        finish(c);
    }
    mem_free(line);
}

/* The file of the lines; its folder is made. NULL: there is no home. */
static const char *history(char path[PATH_SIZE])
{
    const char *state = getenv("XDG_STATE_HOME");
    const char *home = getenv("HOME");
    const bool own = state != NULL && state[0] == '/';

    if (!own && (home == NULL || home[0] != '/')) {
        return NULL;
    }
    (void)snprintf(
        path, PATH_SIZE, "%s%s/ringhold/history", own ? state : home, own ? "" : "/.local/state");
    for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(path, 0700);
        *slash = '/';
    }
    return path;
}

static void run_terminal(struct console *c)
{
    char path[PATH_SIZE];

    if (c->resp[0] == '\0') { // with --resp no kind is completed
        learn_kinds(c);
    }
    terminal_start("ringhold> ", history(path), take, word, c);
    while (!c->ends && !c->way->do_->failed(c->way)) {
        turn(c, false);
    }
    terminal_stop();
}

static int run(struct console *c)
{
    c->way = c->resp[0] != '\0' ? way_by_resp(c->resp) : way_by_packets(&c->q, &c->gateway);
    if (c->way == NULL) {
        return 1;
    }
    (void)setlocale(LC_CTYPE, ""); // an edited line may have characters of several bytes
    if (isatty(STDIN_FILENO) != 0) {
        run_terminal(c);
    } else {
        run_lines(c);
    }
    const int code = c->way->do_->failed(c->way) ? 1 : 0;
    c->way->do_->close(c->way);
    return code;
}

int cmd_cli(int argc, char **argv)
{
    struct console *c = mem_new(1, sizeof *c);
    struct option more[GATEWAY_OPTIONS + 1];

    gateway_where_options(&c->gateway, more);
    more[GATEWAY_OPTIONS] = option_text("resp",
                                        "HOST:PORT",
                                        c->resp,
                                        sizeof c->resp,
                                        "speak the Redis protocol to this gateway instead");
    const struct command command = {
        .name = "cli",
        .summary = "Ask actors by hand: a line is a request to a gateway, its pushes are shown.",
        .arguments = "",
        .details =
            "Commands: call KIND/ID TEXT, tell KIND/ID TEXT, bind KIND/ID, unbind, help, quit. "
            "With "
            "--resp each line\nis a command of the Redis protocol. The tabulator key completes "
            "commands and kinds; lines are kept in\n$XDG_STATE_HOME/ringhold/history "
            "(~/.local/state without the variable). Without a terminal each\nline of standard "
            "input is done and answered before the next.\n"
            "Exit code: 0 the input ended, 1 no gateway, or it ended the connection.",
        .options = query_options_more(&c->q, more, sizeof more / sizeof more[0]),
    };
    const int code = query_parse(&c->q, &command, argc, argv);
    int result = code >= 0 ? code : 1;

    if (code < 0 && c->q.json) {
        (void)fprintf(stderr, "ringhold cli: --output: what an actor says is bytes, not JSON\n");
    } else if (code < 0) {
        result = run(c);
    }
    mem_free(c);
    return result;
}

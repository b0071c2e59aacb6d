/* SPDX-License-Identifier: Apache-2.0
 *
 * `ringhold cli`: lines that are typed become requests of one connection, by packets or by the
 * Redis protocol. This is what the command and its two ways share.
 */
#ifndef CONSOLE_CONSOLE_H
#define CONSOLE_CONSOLE_H

#include "cli/actor_word.h"
#include "cli/gateway_client.h"

#include <stdbool.h>

enum { CONSOLE_KINDS_MAX = 64, CONSOLE_KIND_SIZE = 80 };

/* A way to a gateway. */
struct console_way;
struct console_way_methods {
    const char *const *commands; /* the first words; NULL behind the last */
    /* Do what a line says. False: the console shall end. */
    bool (*line)(struct console_way *w, const char *line);
    int (*fd)(const struct console_way *w); /* -1 = none now */
    bool (*wants_write)(struct console_way *w);
    int (*wait_ms)(struct console_way *w);        /* -1 = for ever */
    void (*turn)(struct console_way *w);          /* do what is due */
    bool (*is_busy)(const struct console_way *w); /* an answer is to come still */
    bool (*failed)(const struct console_way *w);  /* it is over, and why was told */
    void (*close)(struct console_way *w);
};
struct console_way {
    const struct console_way_methods *do_;
};

/* Open one of them; NULL after printing why not. `q` and `o` are borrowed until it is closed. */
struct console_way *way_by_packets(const struct query *q, const struct gateway_where *o);
struct console_way *way_by_resp(const char *address);

/* Print bytes for people as one line, behind `head`: what is no text as "\xXX". */
void console_say(const char *head, const void *data, size_t size);

int cmd_cli(int argc, char **argv);

#endif

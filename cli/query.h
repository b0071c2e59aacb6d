/* SPDX-License-Identifier: Apache-2.0
 *
 * What every asking subcommand shares: where the coordinators are, the output
 * format, and the one question with its answer.
 */
#ifndef CLI_QUERY_H
#define CLI_QUERY_H

#include "cli/context.h"
#include "cli/rows.h"
#include "daemon/admin.h"
#include "daemon/link_args.h"
#include "daemon/options.h"
#include "wire/control.h"

struct query {
    char context[CONTEXT_NAME_SIZE];
    char gateway[CONTEXT_VALUE_SIZE]; /* of the context; "" = it names none */
    char token[CONTEXT_VALUE_SIZE];   /* likewise: a file */
    char coordinators[ADMIN_ADDRESSES_SIZE];
    char cluster[64];
    struct link_args tls;
    char output[8]; /* "table", "wide", "tsv" or "json" */
    uint32_t timeout_ms;
    char reason[ADMIN_REASON_MAX + 1]; /* query_reason() */
    enum rows_format format;
    bool json;  /* that is ROWS_JSON */
    bool prose; /* set before query_parse(): the command has no table, so -o tsv is refused */
    const char *arguments[8];
    int argument_count;
};

/* The options of `q`, for a command's table; `extra` is NULL or one more option. The table is
 * static: one at a time. */
const struct option *query_options(struct query *q, const struct option *extra);

/* Like query_options(), with `count` more options. */
const struct option *query_options_more(struct query *q, const struct option *more, size_t count);

/* The option --reason of `q`, for commands that change the fleet. What the history would not keep
 * is refused by query_parse(). */
struct option query_reason(struct query *q);

/* Parse flags; for what they don't say, the environment; then the context: cli/README.md. Returns
 * -1 to go on, else the exit code. */
int query_parse(struct query *q, const struct command *command, int argc, char **argv);

/* The argument `word` as a number of that range, {least, greatest}; false if it is none, after
 * printing what "ringhold COMMAND" wants in place of `name`. */
bool query_number(const char *command, const char *name, const char *word,
                  struct option_range range, uint32_t *out);

/* Return whom to ask by these options. The result borrows them. */
struct admin_where query_where(const struct query *q);

/* Ask once, as admin_ask(). NULL after printing why: also when the reply carries an error. */
Rh__AdminReply *query_ask(const struct query *q, ProtobufCMessage *what);

/* Like query_ask(), but for `timeout_ms` at most, and prints nothing. */
Rh__AdminReply *query_try(const struct query *q, ProtobufCMessage *what, uint32_t timeout_ms);

/* Number a wish before it is sent, for it may arrive more than once and late: random, and what is
 * known now. False after printing why. */
bool query_number_wish(const struct query *q, uint64_t *wish, uint64_t *seen);

/* True if only tables are to be printed, a header and a line for each row: no text around them. */
bool query_bare(const struct query *q);

/* The argument `word` as a stamp, "1.76" or an integer; false if it is none, after printing what
 * "ringhold COMMAND" wants. */
bool query_stamp(const char *command, const char *word, uint64_t *out);

/* Print the rows as --output wants them, and free them. */
void query_print(const struct query *q, struct rows *r);

/* Ask, and print what became of it: a line, or {"done":"…"}. It says `text`, or if that is NULL
 * what the reply says. False after printing why not. */
bool query_do(const struct query *q, ProtobufCMessage *what, const char *text);

/* Print what was done: a line, or {"done":"…"}. */
void query_say(const struct query *q, const char *text);

/* Tell people, on a line of its own, what comes next, or how to watch it; nothing with JSON. */
void query_next(const struct query *q, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* "9f3c…" of a 128-bit digest; `out` holds 33. */
const char *digest_text(uint64_t digest0, uint64_t digest1, char out[33]);

/* Return "alice@build-7", static: who sits here, also behind sudo, for the audit history. Thread:
 * one. */
char *query_who(void);

#endif

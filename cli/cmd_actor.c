/* SPDX-License-Identifier: Apache-2.0
 *
 * `ringhold actor get | set | delete | export | import`: the values of one durable actor.
 */
#include "base/history.h"
#include "cli/commands.h"
#include "cli/subcommand.h"
#include "cli/values_json.h"
#include "cli/values_source.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    PATH_SIZE = 4096,
    INPUT_MAX = 512 * 1024 * 1024,
    BLOCK = 65536,
    VALUE_MAX = 1024 * 1024,
};

#define DETAILS                                                                                \
    "KIND/ID as `ringhold actors` shows it: 0/boss-7; in KEY, bytes that can't be shown are\n" \
    "written as %XX, too. The actor is asked where it lives, and started if it sleeps.\n"      \
    "With --store, and all nodes of that store stopped, it is read and changed itself: it is " \
    "named\n"                                                                                  \
    "as for `ringhold node`, or by the path of its file."

/* What all five have. */
struct verb_options {
    struct query q;
    char store[PATH_SIZE];
    char file[PATH_SIZE];
    bool replace;
};

static struct option store_option(struct verb_options *o)
{
    return option_text("store",
                       "STORE",
                       o->store,
                       sizeof o->store,
                       "the store of nodes that are stopped (ask the actor itself)");
}

static struct option file_option(struct verb_options *o, const char *help)
{
    return option_text("file", "FILE", o->file, sizeof o->file, help);
}

static bool complain(const char *command, const char *what, const char *why)
{
    (void)fprintf(stderr, "ringhold %s: %s: %s\n", command, what, why);
    return false;
}

/* The argument as a key; it borrows `key`. */
static bool parse_key(const char *command, const char *word, uint8_t key[ACTOR_ID_MAX],
                      struct bytes *out)
{
    Rh__Actor actor = RH__ACTOR__INIT;

    if (!actor_parse_id(word, &actor, key)) {
        return complain(command, word, "a key has 1 to 255 bytes, %XX for any");
    }
    *out = bytes_of(actor.id.data, actor.id.len);
    return true;
}

/* ---- files ---- */

static bool is_standard(const char *path)
{
    return path[0] == '\0' || strcmp(path, "-") == 0;
}

/* All of a file, or of standard input. */
static bool read_file(const char *command, const char *path, struct buffer *out)
{
    FILE *file = is_standard(path) ? stdin : fopen(path, "re");
    size_t size = 1;

    while (file != NULL && size > 0 && out->size <= INPUT_MAX) {
        size = fread(buffer_reserve(out, BLOCK), 1, BLOCK, file);
        out->size += size;
    }
    const bool good = file != NULL && ferror(file) == 0;
    const int failure = errno;
    if (file != NULL && file != stdin) {
        (void)fclose(file);
    }
    if (good && out->size > INPUT_MAX) {
        return complain(command, path, "it is too large");
    }
    return good || complain(command, is_standard(path) ? "-" : path, strerror(failure));
}

static bool write_file(const char *command, const char *path, struct bytes bytes)
{
    FILE *file = is_standard(path) ? stdout : fopen(path, "we");
    const bool put = file != NULL && fwrite(bytes.data, 1, bytes.size, file) == bytes.size;
    const bool kept = file != NULL && (file == stdout ? fflush(file) : fclose(file)) == 0;

    return (put && kept) ||
           complain(command, is_standard(path) ? "standard output" : path, strerror(errno));
}

/* ---- get ---- */

static int show_one(const struct verb_options *o, const char *command, struct bytes rows)
{
    struct reader in = {.at = rows.data, .left = rows.size};
    struct values_row row;
    struct buffer json = {0};
    bool good;

    if (!values_row_next(&in, &row)) {
        (void)complain(command, o->q.arguments[1], "there is no such value");
        return 1;
    }
    if (o->q.json) {
        buffer_put(&json, "{", 1);
        values_json_row(&json, row.key, row.value);
        buffer_put(&json, "}\n", 2);
        row.value = buffer_bytes(&json);
    } else if (is_standard(o->file) && isatty(STDOUT_FILENO) != 0) {
        buffer_put(&json, row.value.data, row.value.size);
        buffer_put(&json, "\n", 1);
        row.value = buffer_bytes(&json);
    }
    good = write_file(command, o->file, row.value);
    buffer_fini(&json);
    return good ? 0 : 1;
}

static int show_keys(const struct query *q, struct bytes rows)
{
    static const char *const columns[] = {"KEY", "BYTES", NULL};
    struct reader in = {.at = rows.data, .left = rows.size};
    struct values_row row;
    struct rows r;
    char word[HISTORY_WORD_SIZE];

    rows_init(&r, columns);
    while (values_row_next(&in, &row)) {
        rows_text(&r, "%s", history_word(row.key, word));
        rows_number(&r, row.value.size);
    }
    query_print(q, &r);
    return 0;
}

static int get(int argc, char **argv)
{
    struct verb_options o = {.store = ""};
    const struct option more[] = {store_option(&o),
                                  file_option(&o, "write the value there (standard output)")};
    const struct command command = {
        .name = "actor get",
        .summary = "Show a value of a durable actor, or the keys of all its values.",
        .arguments = "KIND/ID [KEY]",
        .details = DETAILS,
        .options = query_options_more(&o.q, more, sizeof more / sizeof more[0]),
        .arguments_min = 1,
        .arguments_max = 2,
    };
    int code = query_parse(&o.q, &command, argc, argv);
    struct values_source source;
    struct buffer rows = {0};
    struct bytes key = {0};
    uint8_t room[ACTOR_ID_MAX];
    uint64_t number;

    if (code >= 0) {
        return code;
    }
    const bool one = o.q.argument_count == 2;
    if (one && !parse_key(command.name, o.q.arguments[1], room, &key)) {
        return 1;
    }
    code = 1;
    if (values_source_open(&source, &o.q, command.name, o.store) &&
        values_source_read(&source, key, &rows, &number)) {
        code = one ? show_one(&o, command.name, buffer_bytes(&rows))
                   : show_keys(&o.q, buffer_bytes(&rows));
    }
    values_source_close(&source);
    buffer_fini(&rows);
    return code;
}

/* ---- set, delete, import ---- */

static int tell_done(const struct query *q, const char *done, uint32_t count)
{
    if (q->json) {
        (void)printf("{\"done\":\"%s: %" PRIu32 "\"}\n", done, count);
    } else {
        (void)printf("%s: %" PRIu32 "\n", done, count);
    }
    return 0;
}

/* Do the rows, and tell how many. */
static int change(const struct verb_options *o, const char *command, struct bytes rows,
                  const char *done)
{
    struct values_source source;
    uint32_t count = 0;
    const bool good = values_source_open(&source, &o->q, command, o->store) &&
                      values_source_change(&source, rows, o->replace, &count);

    values_source_close(&source);
    if (good && count == 0 && !o->replace && rows.size > 0) {
        (void)complain(command, o->q.arguments[0], "there is no such value");
        return 1;
    }
    return good ? tell_done(&o->q, done, count) : 1;
}

/* The value is an argument, or bytes of a file. */
static bool take_value(const struct verb_options *o, const char *command, struct buffer *value)
{
    const bool given = o->q.argument_count == 3;

    if (given == (o->file[0] != '\0')) {
        return complain(command, o->q.arguments[1], "give a value, or --file FILE, and not both");
    }
    if (given && strcmp(o->q.arguments[2], "-") != 0) {
        buffer_put(value, o->q.arguments[2], strlen(o->q.arguments[2]));
    } else if (!read_file(command, given ? "-" : o->file, value)) {
        return false;
    }
    return value->size <= VALUE_MAX ||
           complain(command, o->q.arguments[1], "a value has at most 1 MiB");
}

static int set(int argc, char **argv)
{
    struct verb_options o = {.store = ""};
    const struct option more[] = {store_option(&o),
                                  file_option(&o, "the value is in that file; -: standard input"),
                                  query_reason(&o.q)};
    const struct command command = {
        .name = "actor set",
        .summary = "Set a value of a durable actor.",
        .arguments = "KIND/ID KEY [VALUE|-]",
        .details = DETAILS "\nThe actor has it when the command ends, and it is saved. The history "
                           "tells who did it.",
        .options = query_options_more(&o.q, more, sizeof more / sizeof more[0]),
        .arguments_min = 2,
        .arguments_max = 3,
    };
    int code = query_parse(&o.q, &command, argc, argv);
    struct values_row row = {0};
    struct buffer value = {0};
    struct buffer rows = {0};
    uint8_t room[ACTOR_ID_MAX];

    if (code >= 0) {
        return code;
    }
    code = 1;
    if (parse_key(command.name, o.q.arguments[1], room, &row.key) &&
        take_value(&o, command.name, &value)) {
        row.value = buffer_bytes(&value);
        values_row_put(&rows, &row);
        code = change(&o, command.name, buffer_bytes(&rows), "set");
    }
    buffer_fini(&value);
    buffer_fini(&rows);
    return code;
}

static int delete (int argc, char **argv)
{
    struct verb_options o = {.store = ""};
    const struct option more[] = {store_option(&o), query_reason(&o.q)};
    const struct command command = {
        .name = "actor delete",
        .summary = "Delete a value of a durable actor.",
        .arguments = "KIND/ID KEY",
        .details = DETAILS "\nExit code: 0 deleted, 1 there is no such value, or an error.",
        .options = query_options_more(&o.q, more, sizeof more / sizeof more[0]),
        .arguments_min = 2,
        .arguments_max = 2,
    };
    int code = query_parse(&o.q, &command, argc, argv);
    struct values_row row = {.gone = true};
    struct buffer rows = {0};
    uint8_t room[ACTOR_ID_MAX];

    if (code >= 0) {
        return code;
    }
    if (!parse_key(command.name, o.q.arguments[1], room, &row.key)) {
        return 1;
    }
    values_row_put(&rows, &row);
    code = change(&o, command.name, buffer_bytes(&rows), "deleted");
    buffer_fini(&rows);
    return code;
}

static int import(int argc, char **argv)
{
    struct verb_options o = {.store = ""};
    const struct option more[] = {
        store_option(&o),
        file_option(&o, "read it from there (standard input)"),
        option_switch("replace", &o.replace, "delete values that the file does not name"),
        query_reason(&o.q),
    };
    const struct command command = {
        .name = "actor import",
        .summary = "Set values of a durable actor as a file of `ringhold actor export` has them.",
        .arguments = "KIND/ID",
        .details = DETAILS "\nAll values are one commit: the actor has all of them, or nothing "
                           "was changed. The file may be\nof another actor.",
        .options = query_options_more(&o.q, more, sizeof more / sizeof more[0]),
        .arguments_min = 1,
        .arguments_max = 1,
    };
    int code = query_parse(&o.q, &command, argc, argv);
    struct buffer text = {0};
    struct buffer rows = {0};
    char why[VALUES_JSON_WHY_SIZE];

    if (code >= 0) {
        return code;
    }
    code = 1;
    if (!read_file(command.name, o.file, &text)) {
        code = 1;
    } else if (!values_json_read(buffer_bytes(&text), &rows, why)) {
        (void)complain(command.name, is_standard(o.file) ? "-" : o.file, why);
    } else {
        code = change(&o, command.name, buffer_bytes(&rows), "imported");
    }
    buffer_fini(&text);
    buffer_fini(&rows);
    return code;
}

/* ---- export ---- */

static int export(int argc, char **argv)
{
    struct verb_options o = {.store = ""};
    const struct option more[] = {store_option(&o),
                                  file_option(&o, "write it there (standard output)")};
    const struct command command = {
        .name = "actor export",
        .summary = "Write all values of a durable actor as JSON.",
        .arguments = "KIND/ID",
        .details = DETAILS "\nKeys and values that are UTF-8 are text, others base64, as key64 and "
                           "value64. The values are\nthose of one moment.",
        .options = query_options_more(&o.q, more, sizeof more / sizeof more[0]),
        .arguments_min = 1,
        .arguments_max = 1,
    };
    int code = query_parse(&o.q, &command, argc, argv);
    struct values_source source;
    struct buffer rows = {0};
    struct buffer json = {0};
    uint64_t number = 0;

    if (code >= 0) {
        return code;
    }
    code = 1;
    if (values_source_open(&source, &o.q, command.name, o.store) &&
        values_source_read(&source, (struct bytes){0}, &rows, &number)) {
        values_json_write(&json, o.q.arguments[0], number, buffer_bytes(&rows));
        code = write_file(command.name, o.file, buffer_bytes(&json)) ? 0 : 1;
    }
    values_source_close(&source);
    buffer_fini(&rows);
    buffer_fini(&json);
    return code;
}

int cmd_actor(int argc, char **argv)
{
    static const struct subcommand table[] = {
        {"get", get, "[options] KIND/ID [KEY]"},
        {"set", set, "[options] KIND/ID KEY [VALUE|-]"},
        {"delete", delete, "[options] KIND/ID KEY"},
        {"export", export, "[options] KIND/ID"},
        {"import", import, "[options] KIND/ID"},
        {0},
    };

    return subcommand_run("actor", table, argc, argv);
}

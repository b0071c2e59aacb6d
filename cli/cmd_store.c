/* SPDX-License-Identifier: Apache-2.0
 *
 * `ringhold store check | stats | vacuum | backup`: the file of a store of durable actors.
 */
#include "cli/commands.h"
#include "cli/rows.h"
#include "cli/values_source.h"
#include "daemon/json.h"
#include "daemon/options.h"
#include "storage/actors/tools.h"

#include "base/log.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define FILE_ARGUMENT "FILE|sqlite:PATH"

/* Parse; then `path` is the file that the first argument names. Returns -1 to go on. */
static int parse(const struct command *command, int argc, char **argv, const char *arguments[8],
                 const char **path)
{
    int count = 0;
    const int code = options_parse(command, argc, argv, arguments, &count);

    if (code >= 0) {
        return code;
    }
    log_set_level(LOG_ERROR);
    *path = values_source_path(command->name, arguments[0]);
    return *path == NULL ? 1 : -1;
}

static int fail(const char *command, const char *path, const char *why)
{
    (void)fprintf(stderr, "ringhold %s: %s: %s\n", command, path, why);
    return 1;
}

/* ---- check ---- */

static void on_finding(void *context, const char *line)
{
    size_t *count = context;

    (void)printf("%s\n", line);
    ++*count;
}

static int check(int argc, char **argv)
{
    static const struct option none[] = {{0}};
    const struct command command = {
        .name = "store check",
        .summary = "Look through the store of durable actors; a line for each thing that is wrong.",
        .arguments = FILE_ARGUMENT,
        .details = "What SQLite finds damaged, rows over the limits, and rows of no actor. Nodes "
                   "may run.\nExit code: 0 it is sound, 1 it is not, or an error.",
        .options = none,
        .arguments_min = 1,
        .arguments_max = 1,
    };
    const char *arguments[8];
    const char *path = NULL;
    char why[STORE_TOOLS_WHY_SIZE];
    size_t count = 0;
    const int code = parse(&command, argc, argv, arguments, &path);

    if (code >= 0) {
        return code;
    }
    if (store_tools_check(path, on_finding, &count, why) != ERR_OK) {
        return fail(command.name, path, why);
    }
    if (count == 0) {
        (void)printf("%s is sound\n", path);
    }
    return count == 0 ? 0 : 1;
}

/* ---- stats ---- */

static void print_figures(const struct store_figures *f, bool json)
{
    const struct {
        const char *name;
        uint64_t value;
    } all[] = {
        {"actors", f->actors},
        {"values", f->values},
        {"value_bytes", f->value_bytes},
        {"answers", f->answers},
        {"answer_bytes", f->answer_bytes},
        {"alarms", f->alarms},
        {"alarm_bytes", f->alarm_bytes},
        {"next_due_ms", f->next_due_ms},
        {"sends", f->sends},
        {"send_bytes", f->send_bytes},
        {"taken", f->taken},
        {"file_bytes", f->file_bytes},
        {"free_bytes", f->free_bytes},
        {"read_back", f->read_back},
    };
    struct buffer out = {0};

    json_begin(&out, NULL, '{');
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        json_number(&out, all[i].name, all[i].value);
        if (!json) {
            (void)printf("%-12s %" PRIu64 "\n", all[i].name, all[i].value);
        }
    }
    json_end(&out, '}');
    if (json) {
        (void)printf("%.*s\n", (int)out.size, (const char *)out.data);
    }
    buffer_fini(&out);
}

static int stats(int argc, char **argv)
{
    bool json = false;
    const struct option options[] = {option_switch("json", &json, "print a JSON object"), {0}};
    const struct command command = {
        .name = "store stats",
        .summary = "Show how much is in the store of durable actors.",
        .arguments = FILE_ARGUMENT,
        .details = "next_due_ms: when the first alarm is due, in ms since 1970; 0 = there is none. "
                   "free_bytes: what\n`ringhold store vacuum` would give back, about. read_back: "
                   "commits in doubt that were read back.\nNodes may run.",
        .options = options,
        .arguments_min = 1,
        .arguments_max = 1,
    };
    const char *arguments[8];
    const char *path = NULL;
    char why[STORE_TOOLS_WHY_SIZE];
    struct store_figures figures;
    const int code = parse(&command, argc, argv, arguments, &path);

    if (code >= 0) {
        return code;
    }
    if (store_tools_stats(path, &figures, why) != ERR_OK) {
        return fail(command.name, path, why);
    }
    print_figures(&figures, json);
    return 0;
}

/* ---- vacuum, backup ---- */

static int vacuum(int argc, char **argv)
{
    static const struct option none[] = {{0}};
    const struct command command = {
        .name = "store vacuum",
        .summary = "Write the store of durable actors anew, without what is free in it.",
        .arguments = FILE_ARGUMENT,
        .details = "All nodes of the store must be stopped, for they would wait. The folder needs "
                   "room for a copy.",
        .options = none,
        .arguments_min = 1,
        .arguments_max = 1,
    };
    const char *arguments[8];
    const char *path = NULL;
    char why[STORE_TOOLS_WHY_SIZE];
    const int code = parse(&command, argc, argv, arguments, &path);

    if (code >= 0) {
        return code;
    }
    return store_tools_vacuum(path, why) == ERR_OK ? 0 : fail(command.name, path, why);
}

static int backup(int argc, char **argv)
{
    bool force = false;
    const struct option options[] = {
        option_switch(
            "force", &force, "replace the target if it exists, and is a store that nobody uses"),
        {0}};
    const struct command command = {
        .name = "store backup",
        .summary = "Copy the store of durable actors, as it is at one moment, into a new file.",
        .arguments = FILE_ARGUMENT " TARGET",
        .details = "Nodes may run, and go on. TARGET is written completely (fsync) before it gets "
                   "its name.",
        .options = options,
        .arguments_min = 2,
        .arguments_max = 2,
    };
    const char *arguments[8];
    const char *path = NULL;
    char why[STORE_TOOLS_WHY_SIZE];
    const int code = parse(&command, argc, argv, arguments, &path);

    if (code >= 0) {
        return code;
    }
    return store_tools_backup(path, arguments[1], force, why) == ERR_OK
               ? 0
               : fail(command.name, path, why);
}

int cmd_store(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(int argc, char **argv);
    } verbs[] = {{"check", check}, {"stats", stats}, {"vacuum", vacuum}, {"backup", backup}};

    for (size_t i = 0; argc > 0 && i < sizeof verbs / sizeof verbs[0]; i++) {
        if (strcmp(argv[0], verbs[i].name) == 0) {
            return verbs[i].run(argc - 1, argv + 1);
        }
    }
    const int asked = argc > 0 && strcmp(argv[0], "--help") == 0;
    (void)fprintf(asked ? stdout : stderr,
                  "usage: ringhold store check " FILE_ARGUMENT "\n"
                  "       ringhold store stats [options] " FILE_ARGUMENT "\n"
                  "       ringhold store vacuum " FILE_ARGUMENT "\n"
                  "       ringhold store backup [options] " FILE_ARGUMENT " TARGET\n");
    return asked ? 0 : 1;
}

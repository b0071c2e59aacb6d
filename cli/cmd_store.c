/* SPDX-License-Identifier: Apache-2.0
 *
 * `ringhold store check | stats | vacuum | backup | migrate`: a whole store of durable actors.
 */
#include "cli/commands.h"
#include "cli/rows.h"
#include "cli/subcommand.h"
#include "daemon/json.h"
#include "daemon/options.h"
#include "storage/actors/migrate.h"
#include "storage/actors/tools.h"

#include "base/clock.h"
#include "base/log.h"

#include <inttypes.h>
#include <stdio.h>

#define STORE_ARGUMENT "FILE|STORE"
#define STORES                                                                                 \
    "STORE is named as `ringhold node --store` names it: sqlite:PATH, postgres:CONNECTION or " \
    "redis:HOST:PORT\n(its password in the environment: REDIS_PASSWORD).\n"

/* Parse; then `path` is the store that the first argument names. Returns -1 to go on. */
static int parse(const struct command *command, int argc, char **argv, const char *arguments[8],
                 const char **path)
{
    int count = 0;
    const int code = options_parse(command, argc, argv, arguments, &count);

    if (code >= 0) {
        return code;
    }
    log_set_level(LOG_ERROR);
    *path = arguments[0];
    return -1;
}

static int fail(const char *command, const char *path, const char *why)
{
    (void)fprintf(stderr, "ringhold %s: %s: %s\n", command, store_tools_shown(path), why);
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
        .arguments = STORE_ARGUMENT,
        .details =
            STORES "What SQLite finds damaged, rows over the limits, rows of no actor, and sends "
                   "newer than their actor. Nodes\nmay run; Redis has no view of one "
                   "moment, so what changes meanwhile may be passed over.\nExit code: 0 it "
                   "is sound, 1 it is not, or an error.",
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
        (void)printf("%s is sound\n", store_tools_shown(path));
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
        {"alarms_due", f->alarms_due},
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
        .arguments = STORE_ARGUMENT,
        .details = STORES
        "sends: that their receivers have not taken yet. taken: senders of which something was "
        "taken. alarms_due: whose\ntime has come. next_due_ms: when the first is due, in ms since "
        "1970; 0 = there is none. file_bytes: of Redis the\nappend-only file of the whole server. "
        "free_bytes: what `ringhold store vacuum` would give back, about (Redis:\nBGREWRITEAOF). "
        "read_back: commits in doubt that were read back. Nodes may run.",
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
        .summary = "Give back what is free in the store of durable actors.",
        .arguments = STORE_ARGUMENT,
        .details = STORES "A file is written anew: all its nodes must be stopped, for they would "
                          "wait, and the folder "
                          "needs room for a copy.\nPostgreSQL: VACUUM (ANALYZE) of the store's "
                          "tables; nodes may run. "
                          "Redis has nothing of the kind: BGREWRITEAOF.",
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
        .arguments = "FILE|sqlite:PATH TARGET",
        .details = "Of PostgreSQL and Redis it says how their own tools do it. Nodes may run, and "
                   "go on. TARGET is written completely (fsync) before it gets "
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

/* ---- migrate ---- */

enum { NAME_SIZE = 4096, SECOND_US = 1000000 };

/* A line a second on standard error. */
struct ticker {
    uint64_t said_us;
    bool reads_back;
};

static void on_progress(void *context, const struct store_progress *p)
{
    struct ticker *t = context;
    const uint64_t now_us = clock_boottime_us();

    if (now_us - t->said_us >= SECOND_US || p->reads_back != t->reads_back) {
        t->said_us = now_us;
        t->reads_back = p->reads_back;
        (void)fprintf(stderr,
                      "%s %" PRIu64 " of %" PRIu64 " actors\n",
                      p->reads_back ? "compared" : "copied",
                      p->actors,
                      p->of);
    }
}

/* There is one version of the schema. */
static int upgrade(const char *command, const char *store)
{
    char why[STORE_TOOLS_WHY_SIZE];
    uint64_t version = 0;

    if (store_schema_version(store, &version, why) != ERR_OK) {
        return fail(command, store, why);
    }
    (void)printf("%s has schema version %" PRIu64 ", which is the newest: there is nothing to do\n",
                 store_tools_shown(store),
                 version);
    return 0;
}

static int migrate(int argc, char **argv)
{
    char from[NAME_SIZE] = "";
    char to[NAME_SIZE] = "";
    bool again = false;
    const struct option options[] = {
        option_text("from", "STORE", from, sizeof from, "the store that is read"),
        option_text("to", "STORE", to, sizeof to, "the empty store it is copied into"),
        option_switch("again",
                      &again,
                      "delete what a copy that was cut off left in the target, and begin anew"),
        {0}};
    const struct command command = {
        .name = "store migrate",
        .summary = "Copy all of a store of durable actors into another database.",
        .arguments = "",
        .details = STORES
        "All nodes of both must be stopped. The target must be empty; no node opens it before all "
        "of it is there and was\ncompared with the source. The source is left as it is. Without "
        "--to: bring the schema of --from to the newest\nversion; there is one so far.",
        .options = options,
    };
    const char *arguments[8];
    int count = 0;
    const int code = options_parse(&command, argc, argv, arguments, &count);

    if (code >= 0) {
        return code;
    }
    log_set_level(LOG_ERROR);
    if (from[0] == '\0') {
        return fail(command.name, "--from", "which store?");
    }
    if (to[0] == '\0') {
        return upgrade(command.name, from);
    }
    struct ticker ticker = {.said_us = clock_boottime_us()};
    const struct store_migration m = {
        .from = from, .to = to, .again = again, .on_progress = on_progress, .context = &ticker};
    struct store_figures figures;
    char why[STORE_TOOLS_WHY_SIZE];
    if (store_migrate(&m, &figures, why) != ERR_OK) {
        (void)fprintf(stderr, "ringhold %s: %s\n", command.name, why);
        return 1;
    }
    (void)printf("copied and compared: %" PRIu64 " actors, %" PRIu64 " values, %" PRIu64
                 " alarms, %" PRIu64 " sends, %" PRIu64 " answers\n",
                 figures.actors,
                 figures.values,
                 figures.alarms,
                 figures.sends,
                 figures.answers);
    return 0;
}

int cmd_store(int argc, char **argv)
{
    static const struct subcommand table[] = {
        {"check", check, STORE_ARGUMENT},
        {"stats", stats, "[options] " STORE_ARGUMENT},
        {"vacuum", vacuum, STORE_ARGUMENT},
        {"backup", backup, "[options] FILE|sqlite:PATH TARGET"},
        {"migrate", migrate, "[options]"},
        {0},
    };

    return subcommand_run("store", table, argc, argv);
}

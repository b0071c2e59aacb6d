/* SPDX-License-Identifier: Apache-2.0
 *
 * `ringhold recover`, `backup` and `restore`: which part was asked for, and the
 * parts that only look.
 */
#include "cli/commands.h"
#include "cli/recover/recover.h"
#include "daemon/options.h"
#include "storage/state/bootstrap.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/stamp.h"
#include "cli/rows.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define DATA_DEFAULT "/var/lib/ringhold/coordinator"

enum { EXIT_DAMAGE = 2, BAR_WIDTH = 40, BAR_AFTER_US = 500000 };

/* ---- a bar on the terminal, for work of more than half a second ---- */

struct bar {
    uint64_t start_us;
    bool shown;
};

static void on_progress(void *context, uint64_t done, uint64_t total)
{
    struct bar *bar = context;
    const uint64_t whole = total == 0 ? 1 : total;
    const unsigned filled = (unsigned)((done > whole ? whole : done) * BAR_WIDTH / whole);

    if (isatty(STDERR_FILENO) == 0 || clock_boottime_us() - bar->start_us < BAR_AFTER_US) {
        return;
    }
    bar->shown = true;
    (void)fprintf(stderr,
                  "\r[%.*s%*s] %" PRIu64 "/%" PRIu64 " ",
                  (int)filled,
                  "########################################",
                  (int)(BAR_WIDTH - filled),
                  "",
                  done,
                  total);
}

/* Look, and say what can't be looked at. */
static bool look(struct recover_folder *f, const char *command, const char *path, bool deep)
{
    char why[RECOVER_TEXT_MAX] = "";
    struct bar bar = {.start_us = clock_boottime_us()};
    const struct replay_watch watch = {.context = &bar, .progress = on_progress};
    const bool seen = recover_look(f, path, deep, watch, why);

    if (bar.shown) {
        (void)fprintf(stderr, "\n");
    }
    if (!seen) {
        (void)fprintf(stderr, "ringhold %s: %s: %s\n", command, path, why);
    }
    return seen;
}

/* ---- inspect, verify ---- */

static int parse_look(const struct command *command, int argc, char **argv, char output[8],
                      const char **path)
{
    const char *arguments[8];
    int count = 0;
    const int code = options_parse(command, argc, argv, arguments, &count);

    if (code >= 0) {
        return code;
    }
    if (strcmp(output, "table") != 0 && strcmp(output, "json") != 0) {
        (void)fprintf(stderr, "ringhold %s: --output: must be table or json\n", command->name);
        return 1;
    }
    *path = arguments[0];
    return -1;
}

static int look_and_show(bool deep, int argc, char **argv)
{
    char output[8] = "table";
    const char *path = NULL;
    struct recover_folder f;
    const struct option options[] = {
        option_text("output", "table|json", output, sizeof output, "table or json; also -o"), {0}};
    const struct command command = {
        .name = deep ? "recover verify" : "recover inspect",
        .summary = deep ? "Check every row, replay the log in memory, compare all copies."
                        : "Show what a data folder is, what it holds, and which files are sound.",
        .arguments = "DIR",
        .details = "DIR is a coordinator's or a node's data folder. Nothing in it is changed. Exit "
                   "code: 0 sound,\n2 damage found, 1 not a data folder of Ringhold.",
        .options = options,
        .arguments_min = 1,
        .arguments_max = 1,
    };
    const int code = parse_look(&command, argc, argv, output, &path);

    if (code >= 0) {
        return code;
    }
    int result = 1;
    if (look(&f, command.name, path, deep)) {
        const size_t damaged = recover_damage(&f);

        if (strcmp(output, "json") == 0) {
            recover_show_json(&f, clock_wall_us());
        } else {
            recover_show_text(&f, clock_wall_us());
            (void)printf("\n%s: %s\n", path, damaged == 0 ? "sound" : "DAMAGED");
        }
        result = damaged == 0 ? 0 : EXIT_DAMAGE;
    }
    recover_fini(&f);
    return result;
}

/* ---- backup ---- */

static int write_backup(struct recover_folder *f, const char *file, bool replace)
{
    struct backup b;
    char why[BOOTSTRAP_WHY_MAX] = "";
    char size[32];
    enum err error = bootstrap_backup(&b, f, clock_wall_us(), why);

    if (error != ERR_OK) {
        (void)fprintf(stderr, "ringhold recover backup: %s: %s\n", f->path, why);
        recover_show_files(f);
        backup_fini(&b);
        return EXIT_DAMAGE;
    }
    error = backup_write(&b, file, replace, why);
    if (error == ERR_CONFLICT) {
        (void)fprintf(
            stderr, "ringhold recover backup: %s exists already; --yes replaces it\n", file);
    } else if (error != ERR_OK) {
        (void)fprintf(stderr, "ringhold recover backup: can't write %s: %s\n", file, why);
    } else {
        (void)printf("%s: cluster %s, number %s, index %" PRIu64 ", %s\n",
                     file,
                     b.cluster,
                     STAMP(b.number),
                     b.index,
                     size_text(b.state.size, size, sizeof size));
    }
    backup_fini(&b);
    return error == ERR_OK ? 0 : 1;
}

static int backup(int argc, char **argv)
{
    bool yes = false;
    const char *arguments[8];
    int count = 0;
    struct recover_folder f;
    const struct option options[] = {option_switch("yes", &yes, "replace FILE if it exists"), {0}};
    const struct command command = {
        .name = "recover backup",
        .summary = "Write the state of a coordinator's folder into one file.",
        .arguments = "DIR FILE",
        .details = "The coordinator may run or be stopped: the backup shows raft.db at one moment. "
                   "FILE is written\ncompletely (fsync) before it gets its name. It holds the "
                   "ring's secret key: protect it like the folder.",
        .options = options,
        .arguments_min = 2,
        .arguments_max = 2,
    };
    const int code = options_parse(&command, argc, argv, arguments, &count);

    if (code >= 0) {
        return code;
    }
    const int result =
        look(&f, command.name, arguments[0], false) ? write_backup(&f, arguments[1], yes) : 1;
    recover_fini(&f);
    return result;
}

/* ---- `ringhold backup`: the same, of the folder and to a name that units and cron use ---- */

/* TO, or a new file in the folder TO. */
static const char *file_of(const char *to, const struct recover_folder *f, char *out, size_t size)
{
    const time_t now = (time_t)(clock_wall_us() / 1000000);
    struct stat st;
    struct tm utc = {0};
    char time[32];

    if (stat(to, &st) != 0 || !S_ISDIR(st.st_mode)) {
        return to;
    }
    (void)gmtime_r(&now, &utc);
    (void)strftime(time, sizeof time, "%Y%m%d-%H%M%S", &utc);
    (void)snprintf(out, size, "%s/%s-%s.backup", to, f->cluster, time);
    return out;
}

int cmd_backup(int argc, char **argv)
{
    char data[4096] = DATA_DEFAULT;
    char file[4400];
    bool yes = false;
    const char *arguments[8];
    int count = 0;
    struct recover_folder f;
    const struct option options[] = {
        option_text("data", "DIR", data, sizeof data, "a coordinator's folder (" DATA_DEFAULT ")"),
        option_switch("yes", &yes, "replace FILE if it exists"),
        {0}};
    const struct command command = {
        .name = "backup",
        .summary = "Write the fleet's configuration, as a coordinator has it, into one file.",
        .arguments = "FILE|FOLDER",
        .details = "The same as `ringhold recover backup`, while the coordinator runs. In a FOLDER "
                   "the file is named\nCLUSTER-YYYYMMDD-HHMMSS.backup (UTC). It holds the ring's "
                   "secret key. `ringhold restore` reads it.",
        .options = options,
        .arguments_min = 1,
        .arguments_max = 1,
    };
    const int code = options_parse(&command, argc, argv, arguments, &count);

    if (code >= 0) {
        return code;
    }
    log_set_level(LOG_ERROR);
    const bool seen = look(&f, command.name, data, false);
    if (!seen && strcmp(data, DATA_DEFAULT) == 0) {
        (void)fprintf(stderr, "ringhold backup: --data DIR names the folder of a coordinator\n");
    }
    const int result =
        seen ? write_backup(&f, file_of(arguments[0], &f, file, sizeof file), yes) : 1;
    recover_fini(&f);
    return result;
}

int cmd_restore(int argc, char **argv)
{
    log_set_level(LOG_ERROR);
    return cmd_recover_restore(argc, argv);
}

/* ---- all ---- */

static int usage(FILE *out)
{
    (void)fprintf(
        out,
        "usage: ringhold recover inspect DIR               show what a folder holds and whether it "
        "is sound\n"
        "       ringhold recover verify DIR                the same, checking every row and copy\n"
        "       ringhold recover backup DIR FILE           write a coordinator's state into one "
        "file\n"
        "       ringhold recover restore FILE [ID=]DIR... --yes   make a new group from a backup\n"
        "       ringhold recover new-cluster DIR --yes     make a new group from one survivor\n"
        "       ringhold recover undo DIR/replaced-TIME --yes     put back what was replaced\n"
        "\n"
        "All of them work on files alone, with the daemons stopped (inspect, verify and backup "
        "also\n"
        "while the daemons run). Without --yes the last three only print what they would do.\n"
        "docs/recovery.md says which one to use when.\n");
    return out == stdout ? 0 : 1;
}

int cmd_recover(int argc, char **argv)
{
    log_set_level(LOG_ERROR);
    if (argc == 0) {
        return usage(stderr);
    }
    if (strcmp(argv[0], "inspect") == 0 || strcmp(argv[0], "verify") == 0) {
        return look_and_show(argv[0][0] == 'v', argc - 1, argv + 1);
    }
    if (strcmp(argv[0], "backup") == 0) {
        return backup(argc - 1, argv + 1);
    }
    if (strcmp(argv[0], "restore") == 0) {
        return cmd_recover_restore(argc - 1, argv + 1);
    }
    if (strcmp(argv[0], "new-cluster") == 0) {
        return cmd_recover_new_cluster(argc - 1, argv + 1);
    }
    if (strcmp(argv[0], "undo") == 0) {
        return cmd_recover_undo(argc - 1, argv + 1);
    }
    return usage(strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "-h") == 0 ? stdout : stderr);
}

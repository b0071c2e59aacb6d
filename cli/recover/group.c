/* SPDX-License-Identifier: Apache-2.0
 *
 * `ringhold recover restore` and `new-cluster`: found a group of coordinators in
 * folders, all or none of them.
 */
#include "cli/recover/recover.h"

#include "daemon/options.h"
#include "raft/voters.h"
#include "storage/state/bootstrap.h"

#include "base/clock.h"
#include "base/stamp.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_SIZE = 4096, TARGETS_MAX = BOOTSTRAP_VOTERS_MAX };

struct recover_target {
    uint64_t voter;
    char folder[PATH_SIZE];
};

enum { LEASE_MS_MIN = 1000, LEASE_MS_MAX = 300000 }; /* as coordinators take them */

struct group_plan {
    const char *command;
    bool yes;
    uint32_t era_above;
    uint32_t lease_ms; /* the longest that a node may hold */
    char voters_text[64];
    char out[PATH_SIZE]; /* where the founding goes that other machines install */
    struct backup backup;
    struct voters voters;
    struct recover_target target[TARGETS_MAX];
    size_t target_count;
    uint64_t seen_era; /* highest one met in the folders */
};

static bool complain(const struct group_plan *p, const char *what, const char *why)
{
    (void)fprintf(stderr, "ringhold %s: %s: %s\n", p->command, what, why);
    return false;
}

/* ---- what is asked ---- */

/* "1,2,3" */
static bool parse_voters(struct group_plan *p, const char *text)
{
    uint64_t id[BOOTSTRAP_VOTERS_MAX];
    size_t count = 0;
    const char *at = text;

    while (*at != '\0' && count < BOOTSTRAP_VOTERS_MAX) {
        char *end = NULL;
        const unsigned long long value = strtoull(at, &end, 10);

        if (end == at || value == 0 || value > 255 || (*end != ',' && *end != '\0')) {
            break;
        }
        id[count++] = value;
        at = *end == ',' ? end + 1 : end;
    }
    if (*at != '\0' || voters_init(&p->voters, id, count) != ERR_OK) {
        return complain(p, text, "a group is the ids of 1, 3 or 5 voters, such as 1,2,3");
    }
    return true;
}

/* "ID=DIR" or "DIR": the id then is that of the coordinator whose folder it is. */
static bool parse_target(struct group_plan *p, const char *text)
{
    struct recover_target *t = &p->target[p->target_count];
    char *end = NULL;
    const unsigned long long id = strtoull(text, &end, 10);
    const bool named = end != text && *end == '=' && id > 0 && id <= 255;
    const char *folder = named ? end + 1 : text;

    if (p->target_count == TARGETS_MAX || strlen(folder) >= sizeof t->folder || *folder == '\0') {
        return complain(p, text, "one too many, or not a folder");
    }
    t->voter = named ? id : 0;
    (void)snprintf(t->folder, sizeof t->folder, "%s", folder);
    p->target_count++;
    return true;
}

/* See whose folder it is and which era it has reached; damage does not matter, it goes. */
static bool look_at_target(struct group_plan *p, struct recover_target *t)
{
    struct recover_folder f;
    char why[RECOVER_TEXT_MAX] = "";
    const struct replay_watch nobody = {0};
    const bool seen = recover_look(&f, t->folder, false, nobody, why);
    bool good = true;

    if (seen && f.kind != RECOVER_COORDINATOR) {
        good = complain(p, t->folder, "it is a node's folder, not a coordinator's");
    } else if (seen && f.in_use) {
        good = complain(
            p, t->folder, "a running process uses the folder: stop that coordinator first");
    } else if (seen) {
        const uint64_t era = f.has_state        ? f.replay.state.view.era
                             : f.cache.readable ? f.cache.era
                                                : 0;
        p->seen_era = era > p->seen_era ? era : p->seen_era;
        t->voter = t->voter == 0 ? f.voter : t->voter;
    }
    recover_fini(&f);
    if (good && t->voter == 0) {
        good = complain(p, t->folder, "the folder does not name its owner: give it as ID=DIR");
    }
    return good;
}

static bool check_targets(struct group_plan *p)
{
    for (size_t i = 0; i < p->target_count; i++) {
        if (!look_at_target(p, &p->target[i])) {
            return false;
        }
        for (size_t k = 0; k < i; k++) {
            if (p->target[k].voter == p->target[i].voter) {
                return complain(p, p->target[i].folder, "two folders belong to one voter");
            }
        }
        if (voters_address(&p->voters, p->target[i].voter) == NULL) {
            return complain(p, p->target[i].folder, "its voter is not in the group (--voters)");
        }
    }
    return true;
}

/* ---- what is done ---- */

static struct backup_member *member(struct group_plan *p, uint64_t voter)
{
    for (size_t i = 0; i < BACKUP_VOTERS_MAX; i++) {
        if (p->backup.member[i].voter == voter) {
            return &p->backup.member[i];
        }
    }
    return NULL;
}

static bool is_target(const struct group_plan *p, uint64_t voter)
{
    for (size_t i = 0; i < p->target_count; i++) {
        if (p->target[i].voter == voter) {
            return true;
        }
    }
    return false;
}

static bool all_here(const struct group_plan *p)
{
    for (size_t i = 0; i < p->voters.count; i++) {
        if (!is_target(p, p->voters.id[i])) {
            return false;
        }
    }
    return true;
}

static void describe(const struct group_plan *p, uint64_t era)
{
    (void)printf("cluster %s: index %" PRIu64 ", number %s\n",
                 p->backup.cluster,
                 p->backup.index,
                 STAMP(p->backup.number));
    (void)printf("%s a group of voters", p->yes ? "founding" : "would found");
    for (size_t i = 0; i < p->voters.count; i++) {
        (void)printf("%s%" PRIu64, i == 0 ? " " : ",", p->voters.id[i]);
    }
    (void)printf(" in era %" PRIu64 "\n", era);
    if (p->backup.kind == BACKUP_COPY && !all_here(p)) {
        (void)printf("%s %s, for the machines of the other voters\n",
                     p->yes ? "writing" : "would write",
                     p->out);
    }
    for (size_t i = 0; i < p->target_count && !p->yes; i++) {
        (void)printf("would move the files of %s into %s/replaced-TIME and put voter %" PRIu64
                     "'s new ones in their place\n",
                     p->target[i].folder,
                     p->target[i].folder,
                     p->target[i].voter);
    }
    if (p->backup.kind == BACKUP_COPY) {
        (void)printf("it %s for leases of up to %" PRIu32 " s to end, or longer ones that the copy "
                     "knows of\n",
                     p->yes ? "will wait" : "would wait",
                     p->lease_ms / 1000);
    }
    if (!p->yes) {
        (void)printf("nothing was changed: --yes does it\n");
    }
}

/* The founding as a file: before anything is installed, so that no identity is lost half-way. */
static bool save_founding(struct group_plan *p, bool replace)
{
    char why[BACKUP_WHY_MAX] = "";

    if (backup_write(&p->backup, p->out, replace, why) != ERR_OK) {
        return complain(p, p->out, why);
    }
    return true;
}

static bool install_one(struct group_plan *p, const struct recover_target *t, bool keep)
{
    char replaced[ATOMIC_REPLACE_NAME_MAX] = "";
    char why[BOOTSTRAP_WHY_MAX] = "";
    struct backup_member *m = member(p, t->voter);

    if (m->used) {
        return complain(p,
                        t->folder,
                        "this voter was restored from this file before; a second time it would "
                        "forget its votes and could vote twice. Make a new restore from the backup "
                        "for all voters, or adopt another voter's folder (docs/recovery.md)");
    }
    if (keep && !save_founding(p, true)) {
        return false; // Now, when nothing has happened yet: it must be marked below.
    }
    const enum err error = bootstrap_install(
        &p->backup, t->folder, t->voter, voters_configuration(&p->voters), replaced, why);
    if (error != ERR_OK) {
        return complain(p, t->folder, why);
    }
    m->used = true;
    if (keep && !save_founding(p, true)) {
        return false;
    }
    (void)printf("%s: voter %" PRIu64
                 " of the new group; to undo it: ringhold recover undo %s/%s --yes\n",
                 t->folder,
                 t->voter,
                 t->folder,
                 replaced);
    return true;
}

static bool install_all(struct group_plan *p, bool keep)
{
    for (size_t i = 0; i < p->target_count; i++) {
        if (!install_one(p, &p->target[i], keep)) {
            return false;
        }
    }
    return true;
}

static void say_what_next(const struct group_plan *p)
{
    for (size_t i = 0; i < p->voters.count; i++) {
        const uint64_t id = p->voters.id[i];

        if (!is_target(p, id)) {
            (void)printf("voter %" PRIu64 ": take %s to its machine and run there: ringhold "
                         "recover restore %s %" PRIu64 "=DIR --yes\n",
                         id,
                         p->out,
                         p->out,
                         id);
        }
    }
    (void)printf("start the coordinators with --peers naming exactly these voters; nodes and "
                 "gateways may keep running: they join the new era by themselves, and actors "
                 "start cold\n");
}

/* With a copy in p->backup: make the founding and install it. */
static int bootstrap_group(struct group_plan *p)
{
    char why[BOOTSTRAP_WHY_MAX] = "";
    const uint64_t wall_us = clock_wall_us();
    const uint64_t seen = p->era_above > p->seen_era ? p->era_above : p->seen_era;
    struct bootstrap_plan plan = {.voter_count = p->voters.count,
                                  .era = bootstrap_era(p->backup.era, seen, wall_us),
                                  .lease_us = (uint64_t)p->lease_ms * 1000,
                                  .time_us = wall_us};

    memcpy(plan.voter, p->voters.id, sizeof plan.voter);
    if (p->out[strlen(p->out) - 1] == '-') {
        const size_t used = strlen(p->out);

        (void)snprintf(p->out + used, sizeof p->out - used, "%" PRIu64, plan.era);
    }
    describe(p, plan.era);
    if (!p->yes) {
        return 1;
    }
    const bool keep = !all_here(p);
    if (bootstrap_seal(&p->backup, &plan, why) != ERR_OK) {
        (void)complain(p, "the backup", why);
        return 1;
    }
    if ((keep && !save_founding(p, false)) || !install_all(p, keep)) {
        return 1;
    }
    say_what_next(p);
    return 0;
}

/* With a founding in p->backup: install it on the machine at hand. */
static int join_group(struct group_plan *p)
{
    describe(p, p->backup.era);
    if (!p->yes) {
        return 1;
    }
    return install_all(p, true) ? 0 : 1;
}

/* ---- restore ---- */

static int restore(struct group_plan *p, const char *file)
{
    char why[BACKUP_WHY_MAX] = "";
    const enum err error = backup_read(&p->backup, file, why);

    if (error != ERR_OK) {
        (void)complain(p, file, why);
        return error == ERR_CORRUPT ? 2 : 1;
    }
    const bool founding = p->backup.kind == BACKUP_FOUNDING;
    if (founding && (p->voters_text[0] != '\0' || p->era_above != 0)) {
        (void)complain(p, file, "the file founds one group: its voters and era can't be changed");
        return 1;
    }
    if (!parse_voters(p, p->voters_text[0] == '\0' ? p->backup.voters : p->voters_text) ||
        !check_targets(p)) {
        return 1;
    }
    if (founding || p->out[0] == '\0') {
        (void)snprintf(p->out, sizeof p->out, founding ? "%s" : "%s.era-", file);
    }
    return founding ? join_group(p) : bootstrap_group(p);
}

static struct option era_above_option(struct group_plan *p)
{
    return option_number("era-above",
                         &p->era_above,
                         (struct option_range){0, 16777214},
                         "the highest era that nodes have seen: the new one will be higher");
}

static struct option lease_option(struct group_plan *p)
{
    return option_time("lease",
                       &p->lease_ms,
                       (struct option_range){LEASE_MS_MIN, LEASE_MS_MAX},
                       "the longest --lease that a coordinator had since the copy, or that "
                       "`coordinators maintenance` printed: no node serves before such leases have "
                       "ended (%)");
}

int cmd_recover_restore(int argc, char **argv)
{
    struct group_plan p = {.command = "recover restore", .lease_ms = LEASE_MS_MAX};
    const char *arguments[8];
    int count = 0;
    const struct option options[] = {
        option_switch("yes", &p.yes, "do it; without --yes: only print what would be done"),
        option_text("voters",
                    "ID,ID,ID",
                    p.voters_text,
                    sizeof p.voters_text,
                    "the new group, if it differs from the backup's"),
        era_above_option(&p),
        lease_option(&p),
        option_text("out",
                    "FILE",
                    p.out,
                    sizeof p.out,
                    "name of the files for voters on other machines (FILE.era-N)"),
        {0},
    };
    const struct command command = {
        .name = p.command,
        .summary = "Found the coordinators' group anew from a backup, in a new era.",
        .arguments = "FILE [ID=]DIR...",
        .details = "Stop all coordinators first. Give the folders of all coordinators; for those "
                   "on other machines, copy the\n"
                   "FILE.era-N that this writes to the machine and restore it there. Replaced "
                   "files are kept in\n"
                   "DIR/replaced-TIME.",
        .options = options,
        .arguments_min = 2,
        .arguments_max = 1 + TARGETS_MAX,
    };
    int code = options_parse(&command, argc, argv, arguments, &count);

    for (int i = 1; code < 0 && i < count; i++) {
        code = parse_target(&p, arguments[i]) ? -1 : 1;
    }
    if (code < 0) {
        code = restore(&p, arguments[0]);
        backup_fini(&p.backup);
    }
    return code;
}

/* ---- new-cluster ---- */

static bool take_survivor(struct group_plan *p, const char *folder, uint32_t id)
{
    struct recover_folder f;
    char why[BOOTSTRAP_WHY_MAX] = "";
    char reason[RECOVER_TEXT_MAX] = "";
    const struct replay_watch nobody = {0};
    bool good = recover_look(&f, folder, false, nobody, reason);

    if (!good) {
        (void)complain(p, folder, reason);
    } else if (f.in_use) {
        good =
            complain(p, folder, "a running process uses the folder: stop that coordinator first");
    } else if (bootstrap_remains(&p->backup, &f, clock_wall_us(), why) != ERR_OK) {
        good = complain(p, folder, why);
    } else if (p->voters_text[0] == '\0') {
        (void)snprintf(
            p->voters_text, sizeof p->voters_text, "%" PRIu64, id == 0 ? f.voter : (uint64_t)id);
    }
    for (size_t i = 0; good && i < f.file_count; i++) {
        if (f.file[i].health >= RECOVER_MISSING) {
            (void)printf("%s: %s; used as it is, like a backup of that age\n",
                         f.file[i].name,
                         f.file[i].what);
        }
    }
    recover_fini(&f);
    return good;
}

static int new_cluster(struct group_plan *p, const char *folder, uint32_t id)
{
    if (!take_survivor(p, folder, id) || !parse_target(p, folder)) {
        return 1;
    }
    p->target[0].voter = id;
    if (!parse_voters(p, p->voters_text) || !check_targets(p)) {
        return 1;
    }
    if (p->out[0] == '\0') {
        (void)snprintf(p->out, sizeof p->out, "%.*s/new-cluster.era-", PATH_SIZE - 40, folder);
    }
    return bootstrap_group(p);
}

int cmd_recover_new_cluster(int argc, char **argv)
{
    struct group_plan p = {.command = "recover new-cluster", .lease_ms = LEASE_MS_MAX};
    uint32_t id = 0;
    const char *arguments[8];
    int count = 0;
    const struct option options[] = {
        option_switch("yes", &p.yes, "do it; without --yes: only print what would be done"),
        option_number("id",
                      &id,
                      (struct option_range){1, 255},
                      "the coordinator that DIR belongs to afterwards (the present one)"),
        option_text("voters",
                    "ID,ID,ID",
                    p.voters_text,
                    sizeof p.voters_text,
                    "the new group; it must contain that id (only that id)"),
        era_above_option(&p),
        lease_option(&p),
        option_text("out",
                    "FILE",
                    p.out,
                    sizeof p.out,
                    "name of the files for the other voters (DIR/new-cluster.era-N)"),
        {0},
    };
    const struct command command = {
        .name = p.command,
        .summary =
            "When the majority is lost for good: make a new group from one coordinator's folder.",
        .arguments = "DIR",
        .details = "The survivor may lack the last commits, so the era is raised. Never start an "
                   "old coordinator again.",
        .options = options,
        .arguments_min = 1,
        .arguments_max = 1,
    };
    const int code = options_parse(&command, argc, argv, arguments, &count);

    if (code >= 0) {
        return code;
    }
    const int result = new_cluster(&p, arguments[0], id);
    backup_fini(&p.backup);
    return result;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads a daemon's options again, and names every change that needs a restart.
 */
#include "daemon/reload_options.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "daemon/fault.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { VALUE_SIZE = 16384 };

static struct {
    atomic_bool failed; /* the last one */
    atomic_uint_fast64_t failures;
    atomic_uint_fast64_t good_us; /* wall clock */
} stats;

/* ---- levels */

static enum log_level level_of(const struct settings *s)
{
    enum log_level level = LOG_INFO;
    const bool known = log_level_parse(settings_level(s), &level);

    ASSERT(known);
    return level;
}

/* ---- keys */

/* On one line, and within quotes. */
static void text_of(const struct option *o, char out[VALUE_SIZE])
{
    option_format(o, out, VALUE_SIZE);
    for (char *c = out; *c != '\0'; c++) {
        if (*c == '\n') {
            *c = ' ';
        } else if (*c == '"') {
            *c = '\'';
        }
    }
}

static bool is_same(const struct option *a, const struct option *b)
{
    char one[VALUE_SIZE];
    char other[VALUE_SIZE];

    option_format(a, one, sizeof one);
    option_format(b, other, sizeof other);
    return strcmp(one, other) == 0;
}

static void say(const struct option *from, const struct option *to)
{
    char before[VALUE_SIZE] = "(not shown)";
    char after[VALUE_SIZE] = "(not shown)";

    if (!from->veiled) {
        text_of(from, before);
        text_of(to, after);
    }
    log_write(from->reloads ? LOG_INFO : LOG_WARN,
              "config",
              from->reloads ? "changed" : "needs_restart",
              "key=%s old=\"%s\" new=\"%s\"",
              from->key,
              before,
              after);
}

/* Would what runs, with what `next` says of keys that reload, go together? */
static bool fits(const struct settings *running, const struct settings *next)
{
    struct settings *s = mem_new(1, running->kind->size);

    s->kind = running->kind;
    s->kind->init(s);
    for (size_t i = 0; i < s->table.count; i++) {
        const struct option *row = &s->table.row[i];

        option_copy(row, row->reloads ? &next->table.row[i] : &running->table.row[i]);
    }
    fault_places(&next->places);
    const bool good = s->kind->derive(s);
    fault_places(NULL);
    mem_free(s);
    return good;
}

struct changes {
    size_t applied;
    size_t need_restart;
};

static struct changes take(struct settings *running, const struct settings *next)
{
    struct changes out = {0};

    for (size_t i = 0; i < running->table.count; i++) {
        const struct option *row = &running->table.row[i];
        const struct option *new = &next->table.row[i];

        if (is_same(row, new)) {
            continue;
        }
        say(row, new);
        if (row->reloads) {
            option_copy(row, new);
            out.applied++;
        } else {
            out.need_restart++;
        }
    }
    return out;
}

/* ---- SIGHUP */

static bool fail(struct settings *next)
{
    mem_free(next);
    atomic_store(&stats.failed, true);
    atomic_fetch_add(&stats.failures, 1);
    log_error("config", "reload_failed", "goes_on=\"with what it had\"");
    return false;
}

static bool read_again(void *context)
{
    struct reload_options *r = context;
    struct settings *running = r->running;
    const enum log_level before = level_of(running);
    struct settings *next = mem_new(1, running->kind->size);

    if (settings_read(next, running->kind, r->argc, r->argv) != OPTIONS_RUN ||
        !fits(running, next) || !daemon_services_reload(r->services, r->http)) {
        return fail(next);
    }
    const enum log_level after = level_of(next);
    log_set_level(before > after ? before : after); // who lowers it sees that it was done
    const struct changes changes = take(running, next);
    const bool good = running->kind->derive(running);
    ASSERT(good);
    atomic_store(&stats.failed, false);
    atomic_store(&stats.good_us, clock_wall_us());
    log_info("config",
             "reloaded",
             "applied=%zu need_restart=%zu",
             changes.applied,
             changes.need_restart);
    log_set_level(after);
    mem_free(next);
    return true;
}

struct reload_source reload_begin(struct reload_options *r)
{
    log_set_level(level_of(r->running));
    atomic_store(&stats.good_us, clock_wall_us());
    return (struct reload_source){.read = read_again, .context = r};
}

void reload_metrics(struct metrics *m)
{
    static const struct metric successful = {"ringhold_config_last_reload_successful",
                                             "1: the options were valid when they were read last.",
                                             METRIC_GAUGE};
    static const struct metric when = {
        "ringhold_config_last_reload_success_timestamp_seconds",
        "Unix time of the last valid reading: at the start, or at a later SIGHUP.",
        METRIC_GAUGE};
    static const struct metric failures = {"ringhold_config_reload_failures_total",
                                           "SIGHUPs that changed nothing because of a fault.",
                                           METRIC_COUNTER};

    metrics_put(m, &successful, atomic_load(&stats.failed) ? 0 : 1);
    metrics_put(m, &when, atomic_load(&stats.good_us) / 1000000);
    metrics_put(m, &failures, atomic_load(&stats.failures));
}

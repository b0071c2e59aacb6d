/* SPDX-License-Identifier: Apache-2.0
 *
 * What operators do with a whole store, by the tools of its database.
 */
#include "storage/actors/tools.h"

#include "base/actor_name.h"
#include "base/history.h"
#include "storage/actors/remote/tools_hiredis.h"
#include "storage/actors/remote/tools_pq.h"
#include "storage/actors/tools_sqlite.h"
#include "storage/actors/whole.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static enum err fail(char why[STORE_TOOLS_WHY_SIZE], enum err error, const char *text)
{
    (void)snprintf(why, STORE_TOOLS_WHY_SIZE, "%s", text);
    return error;
}

/* A path alone is SQLite's; one that looks like another database is none. */
static enum store_place place_of(const char *name, const char **where)
{
    const enum store_place place = store_place_of(name, where);

    if (place != STORE_NOWHERE || name[0] == '\0' || strstr(name, "://") != NULL ||
        strncmp(name, "sqlite:", 7) == 0) {
        return place;
    }
    *where = name;
    return STORE_SQLITE;
}

const char *store_tools_shown(const char *name)
{
    const char *where = NULL;

    return place_of(name, &where) == STORE_POSTGRES ? "PostgreSQL" : name;
}

enum err whole_open(const char *name, enum whole_use use, struct whole_store **out,
                    char why[STORE_TOOLS_WHY_SIZE])
{
    const char *where = NULL;

    *out = NULL;
    switch (place_of(name, &where)) {
    case STORE_SQLITE:
        return tools_sqlite_open(where, use, out, why);
    case STORE_POSTGRES:
        return tools_postgres_open(where, use, out, why);
    case STORE_REDIS:
        return tools_redis_open(where, use, out, why);
    case STORE_NOWHERE:
        break;
    }
    return fail(why, ERR_INVALID, "it is not sqlite:PATH, postgres:CONNECTION or redis:HOST:PORT");
}

struct store_task *whole_claim(uint64_t kind, struct bytes id, uint64_t fence,
                               char why[STORE_TOOLS_WHY_SIZE])
{
    if (kind > UINT16_MAX || id.size == 0 || id.size > STORE_ID_MAX || fence > INT64_MAX) {
        (void)fail(why, ERR_CORRUPT, "an actor is over the limits: ringhold store check names it");
        return NULL;
    }
    struct store_task *t = store_task_new(STORE_CLAIM);

    t->kind = (uint16_t)kind;
    t->id_size = (uint8_t)id.size;
    bytes_copy(t->id, id.data, id.size);
    t->fence = fence;
    return t;
}

/* What was asked of an open store has been done, or not. Closes it. */
static enum err close_after(struct whole_store *w, bool done, char why[STORE_TOOLS_WHY_SIZE])
{
    const enum err error = done ? ERR_OK : fail(why, ERR_IO, w->why);

    w->close(w);
    return error;
}

enum err store_tools_check(const char *name, store_on_finding *on_finding, void *context,
                           char why[STORE_TOOLS_WHY_SIZE])
{
    struct whole_store *w;
    const enum err error = whole_open(name, WHOLE_BESIDE, &w, why);

    return error == ERR_OK ? close_after(w, w->check(w, on_finding, context), why) : error;
}

enum err store_tools_stats(const char *name, struct store_figures *out,
                           char why[STORE_TOOLS_WHY_SIZE])
{
    struct whole_store *w;
    const enum err error = whole_open(name, WHOLE_BESIDE, &w, why);

    *out = (struct store_figures){0};
    return error == ERR_OK ? close_after(w, w->figures(w, out), why) : error;
}

enum err store_tools_vacuum(const char *name, char why[STORE_TOOLS_WHY_SIZE])
{
    const char *where = NULL;
    const bool file = place_of(name, &where) == STORE_SQLITE;
    struct whole_store *w;
    const enum err error = whole_open(name, file ? WHOLE_ALONE : WHOLE_BESIDE, &w, why);

    return error == ERR_OK ? close_after(w, w->vacuum(w), why) : error;
}

enum err store_tools_backup(const char *name, const char *target, bool replace,
                            char why[STORE_TOOLS_WHY_SIZE])
{
    const char *where = NULL;

    switch (place_of(name, &where)) {
    case STORE_SQLITE:
        return tools_sqlite_backup(where, target, replace, why);
    case STORE_POSTGRES:
        return fail(
            why,
            ERR_REFUSED,
            "PostgreSQL makes its copies itself, while nodes run: pg_dump -Fc DATABASE >FILE, "
            "and pg_restore; or pg_basebackup");
    case STORE_REDIS:
        return fail(
            why,
            ERR_REFUSED,
            "Redis makes its copies itself, while nodes run: redis-cli BGSAVE, and copy dump.rdb "
            "when LASTSAVE has changed; or copy its appendonlydir after CONFIG SET "
            "auto-aof-rewrite-percentage 0");
    case STORE_NOWHERE:
        break;
    }
    return fail(why, ERR_INVALID, "it is not sqlite:PATH, postgres:CONNECTION or redis:HOST:PORT");
}

void store_tools_tell(const struct store_finding *f, store_on_finding *on_finding, void *context)
{
    char line[STORE_TOOLS_LINE_SIZE];
    char id[ACTOR_NAME_ID_SIZE];
    char key[HISTORY_WORD_SIZE];
    char number[32] = "";

    if (f->has_number) {
        (void)snprintf(number, sizeof number, " (%" PRId64 ")", f->number);
    }
    (void)snprintf(line,
                   sizeof line,
                   "actor %" PRId64 "/%s%s%s: %s%s",
                   f->kind,
                   actor_name_print_id(f->id, id),
                   f->has_key ? ", key " : "",
                   f->has_key ? history_word(f->key, key) : "",
                   f->what,
                   number);
    on_finding(context, line);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the store that a text names; makes and frees its tasks.
 */
#include "storage/actors/store.h"

#include "base/mem.h"
#include "storage/actors/remote/postgres_pq.h"
#include "storage/actors/remote/redis_hiredis.h"
#include "storage/actors/remote/store_remote_uv.h"
#include "storage/actors/store_sqlite.h"

#include <stdio.h>
#include <string.h>

struct store_task *store_task_new(enum store_verb verb)
{
    struct store_task *t = mem_new(1, sizeof *t);

    t->verb = (uint8_t)verb;
    return t;
}

void store_task_free(struct store_task *t)
{
    if (t != NULL) {
        buffer_fini(&t->bytes);
        mem_free(t);
    }
}

/* What follows `begin` in the name, unless that is nothing. NULL: it does not begin so. */
static const char *behind(const char *name, const char *begin)
{
    const size_t size = strlen(begin);

    return strncmp(name, begin, size) == 0 && name[size] != '\0' ? name + size : NULL;
}

enum store_place store_place_of(const char *name, const char **where)
{
    static const struct {
        const char *begin;
        enum store_place place;
    } all[] = {{"sqlite:", STORE_SQLITE}, {"postgres:", STORE_POSTGRES}, {"redis:", STORE_REDIS}};

    // URIs of libpq begin so themselves.
    if (behind(name, "postgres://") != NULL || behind(name, "postgresql://") != NULL) {
        *where = name;
        return STORE_POSTGRES;
    }
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if ((*where = behind(name, all[i].begin)) != NULL) {
            return all[i].place;
        }
    }
    return STORE_NOWHERE;
}

const char *store_version_fault(uint64_t version)
{
    switch (version) {
    case STORE_VERSION:
        return NULL;
    case STORE_UNFINISHED:
        return "a copy into it was not finished: ringhold store migrate --again";
    default:
        return "it is no store of this version of Ringhold";
    }
}

static struct actor_store *open_remote(enum store_place place, const char *where, const char *name)
{
    char why[LINE_WHY_SIZE];
    struct store_line *line =
        place == STORE_POSTGRES ? postgres_line(where, why) : redis_line(where, why);
    struct actor_store *store = line == NULL ? NULL : store_remote_open(line, why);

    if (store == NULL) {
        (void)fprintf(stderr,
                      "ringhold node: --store: can't use %s: %s\n",
                      place == STORE_POSTGRES ? "PostgreSQL" : name,
                      why);
    }
    return store;
}

struct actor_store *actor_store_open(const char *name)
{
    const char *where = NULL;

    switch (store_place_of(name, &where)) {
    case STORE_SQLITE:
        return store_sqlite_open(where);
    case STORE_POSTGRES:
        return open_remote(STORE_POSTGRES, where, name);
    case STORE_REDIS:
        return open_remote(STORE_REDIS, where, name);
    case STORE_NOWHERE:
        break;
    }
    (void)fprintf(stderr,
                  "ringhold node: --store: '%s' is not sqlite:PATH, postgres:CONNECTION or "
                  "redis:HOST:PORT\n",
                  name);
    return NULL;
}

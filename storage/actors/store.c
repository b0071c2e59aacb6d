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

static struct actor_store *open_remote(struct store_line *line, const char *name)
{
    return line == NULL ? NULL : store_remote_open(line, name);
}

struct actor_store *actor_store_open(const char *name)
{
    const char *where;

    if ((where = behind(name, "sqlite:")) != NULL) {
        return store_sqlite_open(where);
    }
    // URIs of libpq begin so themselves.
    if (behind(name, "postgres://") != NULL || behind(name, "postgresql://") != NULL) {
        return open_remote(postgres_line(name), "PostgreSQL");
    }
    if ((where = behind(name, "postgres:")) != NULL) {
        return open_remote(postgres_line(where), "PostgreSQL");
    }
    if ((where = behind(name, "redis:")) != NULL) {
        return open_remote(redis_line(where), name);
    }
    (void)fprintf(stderr,
                  "ringhold node: --store: '%s' is not sqlite:PATH, postgres:CONNECTION or "
                  "redis:HOST:PORT\n",
                  name);
    return NULL;
}

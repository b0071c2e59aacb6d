/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the store that a text names; makes and frees its tasks.
 */
#include "storage/actors/store.h"

#include "base/mem.h"
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

struct actor_store *actor_store_open(const char *name)
{
    static const char sqlite[] = "sqlite:";

    if (strncmp(name, sqlite, sizeof sqlite - 1) == 0 && name[sizeof sqlite - 1] != '\0') {
        return store_sqlite_open(name + sizeof sqlite - 1);
    }
    (void)fprintf(
        stderr, "ringhold node: --store: '%s' is not sqlite:PATH, the only store so far\n", name);
    return NULL;
}

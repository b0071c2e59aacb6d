/* SPDX-License-Identifier: Apache-2.0
 *
 * Counts the connections that have not logged in, in all and by address.
 */
#include "gateway/access/strangers.h"

#include "base/assert.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/table.h"
#include "gateway/access/origin.h"

#include <pthread.h>

struct stranger {
    struct table_link link; /* by `from` */
    struct origin from;
    uint32_t count; /* of its connections */
};

struct strangers {
    uint64_t seed;
    pthread_mutex_t lock; /* all below */
    struct table table;   /* struct stranger, owned */
    uint32_t count;       /* of all connections */
};

static struct stranger *find(const struct strangers *s, const struct origin *from)
{
    for (struct table_link *l = table_first(&s->table, origin_hash(from, s->seed)); l != NULL;
         l = table_same(l)) {
        struct stranger *one = CONTAINER_OF(l, struct stranger, link);

        if (origin_is(&one->from, from)) {
            return one;
        }
    }
    return NULL;
}

struct strangers *strangers_new(uint64_t seed)
{
    struct strangers *s = mem_new(1, sizeof *s);

    s->seed = seed;
    (void)pthread_mutex_init(&s->lock, NULL);
    return s;
}

void strangers_free(struct strangers *s)
{
    if (s != NULL) {
        ASSERT(s->count == 0);
        table_fini(&s->table);
        (void)pthread_mutex_destroy(&s->lock);
        mem_free(s);
    }
}

uint32_t strangers_count(struct strangers *s)
{
    (void)pthread_mutex_lock(&s->lock);
    const uint32_t count = s->count;
    (void)pthread_mutex_unlock(&s->lock);
    return count;
}

uint32_t strangers_from(struct strangers *s, const char *address)
{
    const struct origin from = origin_of(address);

    (void)pthread_mutex_lock(&s->lock);
    const struct stranger *one = find(s, &from);
    const uint32_t count = one == NULL ? 0 : one->count;
    (void)pthread_mutex_unlock(&s->lock);
    return count;
}

struct stranger *strangers_add(struct strangers *s, const char *address)
{
    const struct origin from = origin_of(address);

    (void)pthread_mutex_lock(&s->lock);
    struct stranger *one = find(s, &from);
    if (one == NULL) {
        one = mem_new(1, sizeof *one);
        one->from = from;
        table_put(&s->table, &one->link, origin_hash(&from, s->seed));
    }
    one->count++;
    s->count++;
    (void)pthread_mutex_unlock(&s->lock);
    return one;
}

void strangers_remove(struct strangers *s, struct stranger *one)
{
    (void)pthread_mutex_lock(&s->lock);
    ASSERT(one->count > 0 && s->count > 0);
    s->count--;
    if (--one->count == 0) {
        table_remove(&s->table, &one->link);
        mem_free(one);
    }
    (void)pthread_mutex_unlock(&s->lock);
}

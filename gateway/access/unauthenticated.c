/* SPDX-License-Identifier: Apache-2.0
 *
 * Counts the connections that have not logged in, in all and by address.
 */
#include "gateway/access/unauthenticated.h"

#include "base/assert.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/table.h"
#include "gateway/access/origin.h"

#include <pthread.h>

struct unauthenticated_address {
    struct table_link link; /* by `from` */
    struct origin from;
    uint32_t count; /* of its connections */
};

struct unauthenticated {
    uint64_t seed;
    pthread_mutex_t lock; /* all below */
    struct table table;   /* struct unauthenticated_address, owned */
    uint32_t count;       /* of all connections */
};

static struct unauthenticated_address *find(const struct unauthenticated *s,
                                            const struct origin *from)
{
    for (struct table_link *l = table_first(&s->table, origin_hash(from, s->seed)); l != NULL;
         l = table_same(l)) {
        struct unauthenticated_address *one = CONTAINER_OF(l, struct unauthenticated_address, link);

        if (origin_is(&one->from, from)) {
            return one;
        }
    }
    return NULL;
}

struct unauthenticated *unauthenticated_new(uint64_t seed)
{
    struct unauthenticated *s = mem_new(1, sizeof *s);

    s->seed = seed;
    (void)pthread_mutex_init(&s->lock, NULL);
    return s;
}

void unauthenticated_free(struct unauthenticated *s)
{
    if (s != NULL) {
        ASSERT(s->count == 0);
        table_fini(&s->table);
        (void)pthread_mutex_destroy(&s->lock);
        mem_free(s);
    }
}

uint32_t unauthenticated_count(struct unauthenticated *s)
{
    (void)pthread_mutex_lock(&s->lock);
    const uint32_t count = s->count;
    (void)pthread_mutex_unlock(&s->lock);
    return count;
}

uint32_t unauthenticated_from(struct unauthenticated *s, const char *address)
{
    const struct origin from = origin_of(address);

    (void)pthread_mutex_lock(&s->lock);
    const struct unauthenticated_address *one = find(s, &from);
    const uint32_t count = one == NULL ? 0 : one->count;
    (void)pthread_mutex_unlock(&s->lock);
    return count;
}

struct unauthenticated_address *unauthenticated_add(struct unauthenticated *s, const char *address)
{
    const struct origin from = origin_of(address);

    (void)pthread_mutex_lock(&s->lock);
    struct unauthenticated_address *one = find(s, &from);
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

void unauthenticated_remove(struct unauthenticated *s, struct unauthenticated_address *one)
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

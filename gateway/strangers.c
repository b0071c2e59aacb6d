/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/strangers.h"

#include "base/assert.h"
#include "base/bytes.h"
#include "base/crc.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/table.h"

#include <pthread.h>
#include <string.h>

enum { HOST_MAX = 63 };

struct stranger {
    struct table_link link; /* by host */
    uint32_t count;         /* of its connections */
    char host[HOST_MAX + 1];
};

struct strangers {
    pthread_mutex_t lock; /* all below */
    struct table table;   /* struct stranger, owned */
    uint32_t count;       /* of all connections */
};

/* What stands before the port. */
static struct bytes host_of(const char *address)
{
    const char *colon = strrchr(address, ':');
    const size_t size = colon == NULL ? strlen(address) : (size_t)(colon - address);

    return bytes_of(address, size < HOST_MAX ? size : HOST_MAX);
}

static uint64_t hash_of(struct bytes host)
{
    return table_mix(crc32c(host.data, host.size));
}

static struct stranger *find(const struct strangers *s, struct bytes host)
{
    for (struct table_link *l = table_first(&s->table, hash_of(host)); l != NULL;
         l = table_same(l)) {
        struct stranger *one = CONTAINER_OF(l, struct stranger, link);

        if (bytes_equal(bytes_of(one->host, strlen(one->host)), host)) {
            return one;
        }
    }
    return NULL;
}

struct strangers *strangers_new(void)
{
    struct strangers *s = mem_new(1, sizeof *s);

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
    (void)pthread_mutex_lock(&s->lock);
    const struct stranger *one = find(s, host_of(address));
    const uint32_t count = one == NULL ? 0 : one->count;
    (void)pthread_mutex_unlock(&s->lock);
    return count;
}

struct stranger *strangers_add(struct strangers *s, const char *address)
{
    const struct bytes host = host_of(address);

    (void)pthread_mutex_lock(&s->lock);
    struct stranger *one = find(s, host);
    if (one == NULL) {
        one = mem_new(1, sizeof *one);
        memcpy(one->host, host.data, host.size);
        table_put(&s->table, &one->link, hash_of(host));
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

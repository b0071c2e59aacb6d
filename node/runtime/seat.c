/* SPDX-License-Identifier: Apache-2.0 */
#include "node/runtime/inside.h"

#include "base/table.h"

#include <string.h>

void seats_init(struct runtime *s)
{
    (void)pthread_mutex_init(&s->seats, NULL);
}

void seats_fini(struct runtime *s)
{
    pool_fini(&s->actors);
    (void)pthread_mutex_destroy(&s->seats);
}

struct rh_actor *seat_next(struct runtime *s, uint32_t *at)
{
    struct rh_actor *a = NULL;

    (void)pthread_mutex_lock(&s->seats);
    do {
        *at = pool_next(&s->actors, *at);
        a = *at == 0 ? NULL : pool_at(&s->actors, *at);
    } while (a != NULL && a->extra == NULL);
    (void)pthread_mutex_unlock(&s->seats);
    return a;
}

/* ---- runtime.h */

struct rh_actor *runtime_seat(struct runtime *s, uint16_t kind, struct bytes id, void *outer)
{
    uint32_t handle = 0;

    (void)pthread_mutex_lock(&s->seats);
    struct rh_actor *a = pool_take(&s->actors, offsetof(struct rh_actor, id) + id.size, &handle);
    (void)pthread_mutex_unlock(&s->seats);
    a->handle = handle;
    a->runtime = s;
    a->outer = outer;
    a->seated = true;
    a->kind = kind;
    a->id_size = (uint8_t)id.size;
    if (id.size > 0) {
        memcpy(a->id, id.data, id.size);
    }
    return a;
}

void runtime_vacate(struct rh_actor *a)
{
    struct runtime *s = a->runtime;

    (void)pthread_mutex_lock(&s->seats);
    pool_give(&s->actors, a->handle);
    (void)pthread_mutex_unlock(&s->seats);
}

void *runtime_outer(const struct rh_actor *a)
{
    return a->outer;
}

void runtime_set_outer(struct rh_actor *a, void *outer)
{
    a->outer = outer;
}

bool runtime_has(const struct rh_actor *a)
{
    return a->extra != NULL;
}

struct named runtime_name(const struct rh_actor *a)
{
    return (struct named){.kind = a->kind, .id = bytes_of(a->id, a->id_size)};
}

void runtime_fetch(const struct rh_actor *a)
{
    __builtin_prefetch(a->instance);
}

uint64_t runtime_hash(const struct rh_actor *a)
{
    uint64_t hash = table_mix(a->kind);

    for (size_t i = 0; i < a->id_size; i += sizeof hash) {
        const size_t left = a->id_size - i;
        uint64_t part = left;

        memcpy(&part, a->id + i, left < sizeof part ? left : sizeof part);
        hash = table_mix(hash ^ part);
    }
    return hash;
}

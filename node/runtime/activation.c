/* SPDX-License-Identifier: Apache-2.0
 *
 * The activations of one runtime: found by name, listed, freed.
 */
#include "node/runtime/inside.h"

#include "base/table.h"

#include <string.h>

void activations_init(struct runtime *s)
{
    (void)pthread_mutex_init(&s->activations, NULL);
}

void activations_fini(struct runtime *s)
{
    pool_fini(&s->actors);
    (void)pthread_mutex_destroy(&s->activations);
}

struct rh_actor *activation_next(struct runtime *s, uint32_t *at)
{
    struct rh_actor *a = NULL;

    (void)pthread_mutex_lock(&s->activations);
    do {
        *at = pool_next(&s->actors, *at);
        a = *at == 0 ? NULL : pool_at(&s->actors, *at);
    } while (a != NULL && a->extra == NULL);
    (void)pthread_mutex_unlock(&s->activations);
    return a;
}

/* ---- runtime.h */

struct rh_actor *activation_new(struct runtime *s, uint16_t kind, struct bytes id, void *owner)
{
    uint32_t handle = 0;

    (void)pthread_mutex_lock(&s->activations);
    struct rh_actor *a = pool_take(&s->actors, offsetof(struct rh_actor, id) + id.size, &handle);
    (void)pthread_mutex_unlock(&s->activations);
    a->handle = handle;
    a->runtime = s;
    a->owner = owner;
    a->recorded = true;
    a->kind = kind;
    a->id_size = (uint8_t)id.size;
    if (id.size > 0) {
        memcpy(a->id, id.data, id.size);
    }
    return a;
}

void activation_free(struct rh_actor *a)
{
    struct runtime *s = a->runtime;

    (void)pthread_mutex_lock(&s->activations);
    pool_give(&s->actors, a->handle);
    (void)pthread_mutex_unlock(&s->activations);
}

void *activation_owner(const struct rh_actor *a)
{
    return a->owner;
}

void activation_set_owner(struct rh_actor *a, void *owner)
{
    a->owner = owner;
}

bool activation_is_live(const struct rh_actor *a)
{
    return a->extra != NULL;
}

struct named activation_name(const struct rh_actor *a)
{
    return (struct named){.kind = a->kind, .id = bytes_of(a->id, a->id_size)};
}

void activation_fetch(const struct rh_actor *a)
{
    const uint8_t *instance = a->instance;

    if (instance != NULL) { // of some kinds there is none
        __builtin_prefetch(instance);
        __builtin_prefetch(instance + 64);
    }
}

uint64_t activation_hash(const struct rh_actor *a)
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

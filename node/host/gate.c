/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps effects that came too late for the lease, in order, until they may leave
 * or are dropped.
 */
#include "node/host/gate.h"

#include "base/assert.h"
#include "base/mem.h"

#include <string.h>

void gate_init(struct gate *g, size_t size_max)
{
    *g = (struct gate){.size_max = size_max};
    list_init(&g->kept);
}

void gate_fini(struct gate *g)
{
    struct list_link *link = NULL;

    while ((link = list_pop_front(&g->kept)) != NULL) {
        mem_free(CONTAINER_OF(link, struct kept_effect, link));
    }
}

bool gate_keep(struct gate *g, const struct host_effect *e, struct bytes bytes, uint64_t now_us)
{
    const bool output = host_effect_is_output(e);

    if (output && g->size + bytes.size > g->size_max) {
        g->dropped[HOST_DROP_FULL]++;
        return false;
    }
    struct kept_effect *k = mem_new(1, sizeof *k + bytes.size);
    k->effect = *e;
    k->size = bytes.size;
    k->since_us = now_us;
    if (bytes.size > 0) {
        memcpy(k->data, bytes.data, bytes.size);
    }
    list_push_back(&g->kept, &k->link);
    g->count++;
    g->kept_total++;
    g->size += output ? bytes.size : 0;
    g->tasks += host_effect_is_task(e) ? 1 : 0;
    g->actors += e->actor != NULL ? 1 : 0;
    return true;
}

void gate_take(struct gate *g, struct kept_effect *k)
{
    list_remove(&k->link);
    g->count--;
    g->size -= host_effect_is_output(&k->effect) ? k->size : 0;
    g->tasks -= host_effect_is_task(&k->effect) ? 1 : 0;
    g->actors -= k->effect.actor != NULL ? 1 : 0;
}

void gate_drop_outputs(struct gate *g, enum host_drop why)
{
    struct list_link *next = NULL;

    for (struct list_link *l = list_front(&g->kept); l != NULL; l = next) {
        struct kept_effect *k = CONTAINER_OF(l, struct kept_effect, link);

        next = list_next(&g->kept, l);
        if (host_effect_is_output(&k->effect)) {
            gate_take(g, k);
            mem_free(k);
            g->dropped[why]++;
        }
    }
}

void gate_forget(struct gate *g, const struct actor *a)
{
    struct list_link *next = NULL;

    for (struct list_link *l = g->actors > 0 ? list_front(&g->kept) : NULL; l != NULL; l = next) {
        struct kept_effect *k = CONTAINER_OF(l, struct kept_effect, link);

        next = list_next(&g->kept, l);
        if (k->effect.actor == a) {
            gate_take(g, k);
            mem_free(k);
        }
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "node/actor.h"

#include "base/assert.h"
#include "base/mem.h"
#include "node/host.h"

#include <string.h>

enum { SPARE_MAX = 4096 };

const char *actor_state_name(enum actor_state state)
{
    static const char *const names[] = {
        [ACTOR_ABSENT] = "absent",
        [ACTOR_FAILING] = "failing",
        [ACTOR_ACTIVATING] = "activating",
        [ACTOR_IDLE] = "idle",
        [ACTOR_RUNNING] = "running",
        [ACTOR_EXPORTING] = "exporting",
        [ACTOR_BUSY] = "busy",
        [ACTOR_FROZEN] = "frozen",
        [ACTOR_RETIRING] = "retiring",
    };

    return names[state];
}

void actors_init(struct actors *a)
{
    *a = (struct actors){0};
    list_init(&a->dead);
}

void actors_set_grid(struct actors *a, uint8_t grid, uint32_t cell_count)
{
    ASSERT(a->table.count == 0 && grid >= 1 && grid <= RING_GRID_MAX);
    mem_free(a->cell);
    a->cell = NULL;
    a->cell_count = 0;
    a->grid = grid;
    actors_grow(a, cell_count);
}

void actors_grow(struct actors *a, uint32_t cell_count)
{
    struct list *cell;

    if (cell_count <= a->cell_count) {
        return;
    }
    cell = mem_new(cell_count, sizeof *cell); // an empty list points to itself: none may be copied
    for (uint32_t i = 0; i < cell_count; i++) {
        list_init(&cell[i]);
        if (i < a->cell_count) {
            list_splice_back(&cell[i], &a->cell[i]);
        }
    }
    mem_free(a->cell);
    a->cell = cell;
    a->cell_count = cell_count;
}

void actors_fini(struct actors *a)
{
    actors_bury(a);
    ASSERT(a->table.count == 0);
    table_fini(&a->table);
    mem_free(a->cell);
    while (a->spare != NULL) {
        struct busy *next = a->spare->spare;

        mem_free(a->spare);
        a->spare = next;
    }
    *a = (struct actors){0};
}

static bool actor_is(const struct actor *a, const struct image_name *name)
{
    return a->kind == name->kind && a->id_size == name->id.size &&
           memcmp(a->id, name->id.data, name->id.size) == 0;
}

struct actor *actor_find(const struct actors *a, struct image_name name)
{
    for (struct table_link *l = table_first(&a->table, name.position); l; l = table_same(l)) {
        struct actor *actor = CONTAINER_OF(l, struct actor, link);

        if (actor_is(actor, &name)) {
            return actor;
        }
    }
    return NULL;
}

struct actor *actor_running_at(const struct actors *a, uint64_t position)
{
    for (struct table_link *l = table_first(&a->table, position); l; l = table_same(l)) {
        struct actor *actor = CONTAINER_OF(l, struct actor, link);

        if (actor->state == ACTOR_RUNNING) {
            return actor;
        }
    }
    return NULL;
}

/* ---- the busy part ---- */

struct busy *actor_busy(struct actors *a, struct actor *actor)
{
    struct busy *busy = actor->busy;

    if (busy != NULL) {
        return busy;
    }
    busy = a->spare;
    if (busy != NULL) {
        a->spare = busy->spare;
        a->spare_count--;
    } else {
        busy = mem_new(1, sizeof *busy);
        queue_init(&busy->queue);
    }
    busy->actor = actor;
    actor->busy = busy;
    return busy;
}

/* Clean, so that who gets it next finds nothing in it. */
static void lay_down(struct actors *a, struct actor *actor)
{
    struct busy *busy = actor->busy;

    ASSERT(busy->queue.count == 0);
    image_free(busy->image);
    delay_stop(&busy->delay);
    if (list_linked(&busy->leaseless)) {
        list_remove(&busy->leaseless);
    }
    actor->busy = NULL;
    if (a->spare_count >= SPARE_MAX) {
        mem_free(busy);
        return;
    }
    busy->image = NULL;
    busy->hold = NULL;
    busy->failures = 0;
    busy->unready = busy->saving_later = false;
    busy->spare = a->spare;
    a->spare = busy;
    a->spare_count++;
}

void actor_calm(struct actors *a, struct actor *actor)
{
    const struct busy *busy = actor->busy;

    if (busy != NULL && busy->queue.count == 0 && busy->image == NULL && busy->hold == NULL &&
        busy->failures == 0 && !list_linked(&busy->leaseless) && !delay_runs(&busy->delay) &&
        !actor_has_task(actor)) {
        lay_down(a, actor);
    }
}

struct actor *actor_new(struct actors *a, struct image_name name)
{
    struct actor *actor = mem_new(1, sizeof *actor + name.id.size);

    ASSERT(name.id.size >= 1 && name.id.size <= RECORD_ID_MAX);
    actor->kind = name.kind;
    actor->id_size = (uint8_t)name.id.size;
    memcpy(actor->id, name.id.data, name.id.size);
    list_init(&actor->orders);
    table_put(&a->table, &actor->link, name.position);
    list_push_back(&a->cell[ring_point_cell(name.position)], &actor->cell);
    return actor;
}

void actor_discard(struct actors *a, struct actor *actor)
{
    ASSERT(actor_waiting(actor) == 0 && list_empty(&actor->orders));
    table_remove(&a->table, &actor->link);
    list_remove(&actor->cell);
    list_push_back(&a->dead, &actor->cell);
    if (list_linked(&actor->idle)) {
        list_remove(&actor->idle);
    }
    if (actor->busy != NULL) {
        lay_down(a, actor);
    }
}

void actors_bury(struct actors *a)
{
    struct list_link *link = NULL;

    while ((link = list_pop_front(&a->dead)) != NULL) {
        mem_free(CONTAINER_OF(link, struct actor, cell));
    }
}

struct actor *cell_first(const struct actors *a, uint32_t cell)
{
    struct list_link *link = list_front(&a->cell[cell]);

    return link == NULL ? NULL : CONTAINER_OF(link, struct actor, cell);
}

struct actor *cell_next(const struct actors *a, uint32_t cell, const struct actor *actor)
{
    struct list_link *link = list_next(&a->cell[cell], &actor->cell);

    return link == NULL ? NULL : CONTAINER_OF(link, struct actor, cell);
}

struct bytes actor_id(const struct actor *a)
{
    return (struct bytes){a->id, a->id_size};
}

uint16_t actor_kind(const struct actor *a)
{
    return a->kind;
}

void *actor_instance(const struct actor *a)
{
    return a->instance;
}

void actor_set_instance(struct actor *a, void *instance)
{
    a->instance = instance;
}

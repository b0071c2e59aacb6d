/* SPDX-License-Identifier: Apache-2.0
 *
 * Records of actors: found by id, listed by cell, created and buried.
 */
#include "node/books/actor.h"

#include "base/assert.h"
#include "base/mem.h"
#include "node/books/image.h"
#include "node/books/instance.h"
#include "ring/ring.h"

#include <string.h>

enum { SPARE_MAX = 4096, BEGAN_START = 1024, BEGAN_UNIT_US = 100000 };

static const struct machine_state states[] = {
    [ACTOR_ABSENT] = {"absent", TO(ACTOR_ACTIVATING) | TO(ACTOR_FAILING) | TO(ACTOR_FROZEN)},
    [ACTOR_FAILING] = {"failing", TO(ACTOR_ABSENT) | TO(ACTOR_FROZEN)},
    [ACTOR_ACTIVATING] = {"activating", TO(ACTOR_IDLE) | TO(ACTOR_ABSENT)},
    [ACTOR_IDLE] = {"idle",
                    TO(ACTOR_RUNNING) | TO(ACTOR_EXPORTING) | TO(ACTOR_RETIRING) |
                        TO(ACTOR_FROZEN) | TO(ACTOR_ABSENT)},
    [ACTOR_RUNNING] = {"running", TO(ACTOR_IDLE) | TO(ACTOR_ABSENT)},
    [ACTOR_EXPORTING] = {"exporting",
                         TO(ACTOR_FROZEN) | TO(ACTOR_BUSY) | TO(ACTOR_IDLE) | TO(ACTOR_ABSENT)},
    [ACTOR_BUSY] = {"busy", TO(ACTOR_IDLE) | TO(ACTOR_EXPORTING)},
    [ACTOR_FROZEN] = {"frozen", TO(ACTOR_IDLE) | TO(ACTOR_ABSENT)},
    [ACTOR_RETIRING] = {"retiring", TO(ACTOR_IDLE) | TO(ACTOR_ABSENT)},
};
const struct machine actor_machine = {"an actor", states};

/* A record ends with its id. */
static const size_t head_size = offsetof(struct actor, id);

static uint64_t position_of(const void *record)
{
    return ((const struct actor *)record)->position;
}

static struct strand cells_of(const struct actors *a)
{
    return (struct strand){&a->pool, offsetof(struct actor, cell)};
}

static struct strand idle_of(const struct actors *a)
{
    return (struct strand){&a->pool, offsetof(struct actor, idle)};
}

void actors_init(struct actors *a)
{
    *a = (struct actors){0};
    a->table = (struct lookup){
        .pool = &a->pool, .same = offsetof(struct actor, same), .hash = position_of};
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
    if (cell_count <= a->cell_count) {
        return;
    }
    a->cell = mem_resize(a->cell, cell_count * sizeof *a->cell);
    memset(&a->cell[a->cell_count], 0, (cell_count - a->cell_count) * sizeof *a->cell);
    a->cell_count = cell_count;
}

void actors_fini(struct actors *a)
{
    actors_bury(a);
    lookup_fini(&a->table);
    mem_free(a->cell);
    mem_free(a->began);
    pool_fini(&a->pool);
    while (a->spare != NULL) {
        struct actor_work *next = a->spare->spare;

        mem_free(a->spare);
        a->spare = next;
    }
    *a = (struct actors){0};
}

struct actor *actor_running_at(const struct actors *a, uint64_t position)
{
    struct actor *actor = actor_at(a, lookup_first(&a->table, position));

    for (; actor != NULL; actor = actor_at(a, actor->same)) {
        if (actor->position == position && actor->state == ACTOR_RUNNING) {
            return actor;
        }
    }
    return NULL;
}

/* ---- its work ---- */

void actor_pack(struct actor *a, struct image *image)
{
    ASSERT(a->work == NULL && a->instance == NULL && !a->packed && a->state == ACTOR_ABSENT);
    a->packed = true;
    a->image = image;
}

/* Take its image from a packed actor; NULL = it is not. */
static struct image *unpack(struct actor *a)
{
    struct image *image = a->packed ? a->image : NULL;

    if (a->packed) {
        a->packed = false;
        a->instance = NULL;
    }
    return image;
}

struct actor_work *actor_work(struct actors *a, struct actor *actor)
{
    struct actor_work *work = actor->work;

    if (work != NULL) {
        return work;
    }
    work = a->spare;
    if (work != NULL) {
        a->spare = work->spare;
        a->spare_count--;
    } else {
        work = mem_new(1, sizeof *work);
        queue_init(&work->queue);
        work->queue.total = &a->waiting;
    }
    work->actor = actor;
    work->image = unpack(actor);
    actor->work = work;
    return work;
}

/* Clean, so that who gets it next finds nothing in it. */
static void lay_down(struct actors *a, struct actor *actor)
{
    struct actor_work *work = actor->work;

    ASSERT(work->queue.count == 0 && work->early_count == 0);
    ASSERT(work->image == NULL);
    delay_stop(&work->delay);
    if (list_linked(&work->leaseless)) {
        list_remove(&work->leaseless);
    }
    if (list_linked(&work->to_export)) {
        list_remove(&work->to_export);
    }
    actor->work = NULL;
    if (a->spare_count >= SPARE_MAX) {
        mem_free(work);
        return;
    }
    work->hold = NULL;
    work->failures = 0;
    work->refused = 0;
    work->unready = work->saving_later = false;
    work->spare = a->spare;
    a->spare = work;
    a->spare_count++;
}

void actor_calm(struct actors *a, struct actor *actor)
{
    const struct actor_work *work = actor->work;
    const bool complained = work != NULL && work->refused > 0 && actor->live;

    if (work != NULL && work->queue.count == 0 && work->image == NULL && work->hold == NULL &&
        work->failures == 0 && work->early_count == 0 && !complained &&
        !list_linked(&work->leaseless) && !delay_runs(&work->delay) && !actor_has_task(actor)) {
        lay_down(a, actor);
    }
}

struct actor *actor_new(struct actors *a, struct image_name name)
{
    uint32_t handle = 0;

    ASSERT(name.id.size >= 1 && name.id.size <= RECORD_ID_MAX);
    struct actor *actor = pool_take(&a->pool, head_size + name.id.size, &handle);
    ASSERT(handle <= ACTOR_HANDLE_MAX);
    actor->handle = handle & ACTOR_HANDLE_MAX;
    actor->position = name.position;
    actor->kind = name.kind;
    actor->id_size = (uint8_t)name.id.size;
    memcpy(actor->id, name.id.data, name.id.size);
    lookup_put(&a->table, handle);
    strand_push(cells_of(a), &a->cell[ring_point_cell(name.position)], handle);
    return actor;
}

void actor_note_began(struct actors *a, const struct actor *actor, uint64_t now_us)
{
    const size_t before = a->began_cap;

    while (actor->handle >= a->began_cap) {
        a->began_cap = a->began_cap == 0 ? BEGAN_START : a->began_cap * 2;
    }
    if (a->began_cap > before) {
        a->began = mem_resize(a->began, a->began_cap * sizeof *a->began);
        memset(&a->began[before], 0, (a->began_cap - before) * sizeof *a->began);
    }
    a->began[actor->handle] = (uint32_t)(now_us / BEGAN_UNIT_US);
}

uint64_t actor_began_us(const struct actors *a, const struct actor *actor)
{
    return actor->handle < a->began_cap ? (uint64_t)a->began[actor->handle] * BEGAN_UNIT_US : 0;
}

void actor_discard(struct actors *a, struct actor *actor)
{
    ASSERT(actor_waiting(actor) == 0 && actor->orders == 0);
    lookup_remove(&a->table, actor->handle);
    strand_remove(cells_of(a), &a->cell[ring_point_cell(actor->position)], actor->handle);
    strand_push(cells_of(a), &a->dead, actor->handle);
    if (actor_listed(actor)) {
        actor_unlist(a, actor);
    }
    if (actor->work != NULL) {
        lay_down(a, actor);
    }
    image_free(unpack(actor));
}

void actors_bury(struct actors *a)
{
    while (a->dead != 0) {
        const uint32_t handle = a->dead;

        strand_remove(cells_of(a), &a->dead, handle);
        pool_give(&a->pool, handle);
    }
}

void actor_list_begin(struct actors *a, struct actor_list *list)
{
    if (list->head == 0) {
        (void)pool_take(&a->pool, head_size, &list->head);
        strand_begin(idle_of(a), list->head);
    }
    ASSERT(actor_list_front(a, list) == NULL);
}

void actor_list_add(struct actors *a, struct actor_list *list, struct actor *actor)
{
    strand_put_before(idle_of(a), list->head, actor->handle);
}

struct actor *actor_list_front(const struct actors *a, const struct actor_list *list)
{
    return actor_at(a, strand_next(idle_of(a), list->head, list->head));
}

void actor_unlist(struct actors *a, struct actor *actor)
{
    strand_cut(idle_of(a), actor->handle);
}

struct actor *cell_first(const struct actors *a, uint32_t cell)
{
    return actor_at(a, a->cell[cell]);
}

struct actor *cell_next(const struct actors *a, uint32_t cell, const struct actor *actor)
{
    return actor_at(a, strand_next(cells_of(a), a->cell[cell], actor->handle));
}

struct bytes actor_id(const struct actor *a)
{
    return (struct bytes){a->id, a->id_size};
}

uint16_t actor_kind(const struct actor *a)
{
    return a->kind;
}

bool actor_is_frozen(const struct actor *a)
{
    return a->state == ACTOR_FROZEN;
}

void *actor_instance(const struct actor *a)
{
    return a->packed ? NULL : a->instance;
}

void actor_set_instance(struct actor *a, void *instance)
{
    a->instance = instance;
}

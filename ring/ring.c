/* SPDX-License-Identifier: Apache-2.0
 *
 * The ring: made, copied, looked up, checked.
 */
#include "ring/ring.h"

#include "base/assert.h"
#include "base/mem.h"
#include "ring/digest.h"
#include "ring/inside.h"

#include <string.h>

void ring_init(struct ring *r, uint8_t grid)
{
    ASSERT(grid >= 1 && grid <= RING_GRID_MAX);
    *r = (struct ring){.grid = grid, .cell_count = (uint32_t)1 << grid};
    r->cell = mem_new(r->cell_count, sizeof *r->cell);
}

void ring_fini(struct ring *r)
{
    mem_free(r->vnode);
    mem_free(r->cell);
    mem_free(r->slot);
    mem_free(r->segment);
    *r = (struct ring){0};
}

void ring_copy(struct ring *to, const struct ring *from)
{
    *to = *from;
    to->vnode = mem_copy(from->vnode, from->vnode_count * sizeof *from->vnode);
    to->cell = mem_copy(from->cell, from->cell_count * sizeof *from->cell);
    to->slot = mem_copy(from->slot, from->slot_count * sizeof *from->slot);
    to->segment = mem_copy(from->segment, from->segment_count * sizeof *from->segment);
}

void ring_create(struct ring *r, uint32_t vnodes, uint16_t owner, uint64_t stamp)
{
    uint64_t cells = r->cell_count;
    struct ring_vnode *list;

    ASSERT(r->segment_count == 0); // they are put behind what is created here
    ASSERT(vnodes >= 1 && vnodes <= cells && owner <= RING_NODES_MAX);
    list = mem_new(vnodes, sizeof *list);
    for (uint32_t i = 0; i < vnodes; i++) {
        list[i] = (struct ring_vnode){
            .id = i,
            .from = (uint32_t)(i * cells / vnodes),
            .owner = owner,
            .generation = stamp,
            .cold = stamp,
        };
    }
    ring_take_vnodes(r, list, vnodes);
    for (size_t i = 0; i < vnodes; i++) {
        ring_fill_cells(r, &r->vnode[i]);
    }
    ring_digest(r, r->digest);
    r->version = stamp;
}

void ring_take_vnodes(struct ring *r, struct ring_vnode *list, size_t count)
{
    uint32_t greatest = 0;

    for (size_t i = 0; i < count; i++) {
        greatest = list[i].id > greatest ? list[i].id : greatest;
    }
    mem_free(r->vnode);
    mem_free(r->slot);
    r->vnode = list;
    r->vnode_count = count;
    r->slot_count = count == 0 ? 0 : (size_t)greatest + 1;
    r->slot = mem_new(r->slot_count, sizeof *r->slot);
    for (size_t i = 0; i < count; i++) {
        r->slot[list[i].id] = (uint32_t)i + 1;
    }
}

void ring_fill_cells(struct ring *r, const struct ring_vnode *v)
{
    uint32_t end = ring_end(r, v);
    ring_hit hit = ring_hit_of(v);

    for (uint32_t c = v->from; c < end; c++) {
        r->cell[c] = hit;
    }
}

void ring_set_version(struct ring *r, uint64_t version)
{
    ASSERT(version >= r->version);
    r->version = version;
}

const struct ring_vnode *ring_find(const struct ring *r, uint32_t id)
{
    if (id >= r->slot_count || r->slot[id] == 0) {
        return NULL;
    }
    return &r->vnode[r->slot[id] - 1];
}

uint32_t ring_end(const struct ring *r, const struct ring_vnode *v)
{
    const struct ring_vnode *next = v + 1;

    return next == r->vnode + r->vnode_count ? r->cell_count : next->from;
}

size_t ring_owned_count(const struct ring *r, uint16_t owner)
{
    size_t count = 0;

    for (size_t i = 0; i < r->vnode_count; i++) {
        count += r->vnode[i].owner == owner;
    }
    return count;
}

uint64_t ring_owned_cells(const struct ring *r, uint16_t owner)
{
    uint64_t cells = 0;

    for (const struct ring_vnode *v = r->vnode; v < r->vnode + r->vnode_count; v++) {
        cells += v->owner == owner ? ring_end(r, v) - v->from : 0;
    }
    return cells;
}

void ring_digest(const struct ring *r, uint64_t digest[2])
{
    digest[0] = 0;
    digest[1] = 0;
    for (const struct ring_vnode *v = r->vnode; v < r->vnode + r->vnode_count; v++) {
        digest_add(digest, v, ring_end(r, v));
    }
    for (size_t i = 0; i < r->segment_count; i++) {
        digest_add_segment(digest, &r->segment[i]);
    }
}

static void check_vnode(const struct ring *r, size_t index)
{
    const struct ring_vnode *v = &r->vnode[index];
    uint32_t end = ring_end(r, v);

    ASSERT(v->id <= RING_VNODES_MAX && v->id < r->slot_count);
    ASSERT(r->slot[v->id] == index + 1); // so no two vnodes have one id
    ASSERT(v->owner <= RING_NODES_MAX);
    ASSERT(v->from < end && end <= r->cell_count);
    ASSERT(IMPLIES(index == 0, v->from == 0));
    ASSERT(v->cold <= v->generation && v->generation <= r->version);
    for (uint32_t c = v->from; c < end; c++) {
        ASSERT(r->cell[c] == ring_hit_of(v));
    }
}

/* Each begins where the one before it ends, and there a vnode begins. */
static void check_segments(const struct ring *r)
{
    uint32_t from = (uint32_t)1 << r->grid;

    for (size_t i = 0; i < r->segment_count; i++) {
        ASSERT(r->segment[i].from == from);
        ASSERT(
            IMPLIES(r->vnode_count > 0, ring_find(r, ring_hit_vnode(r->cell[from]))->from == from));
        from = ring_segment_end(&r->segment[i]);
    }
    ASSERT(r->cell_count == from);
}

void ring_check_invariants(const struct ring *r)
{
    uint64_t digest[2];
    size_t slots = 0;

    check_segments(r);

    for (size_t i = 0; i < r->vnode_count; i++) {
        check_vnode(r, i);
    }
    for (size_t i = 0; i < r->slot_count; i++) {
        slots += r->slot[i] != 0;
    }
    ASSERT(slots == r->vnode_count);
    for (uint32_t c = 0; r->vnode_count == 0 && c < r->cell_count; c++) {
        ASSERT(r->cell[c] == RING_NODE_NONE);
    }
    ring_digest(r, digest);
    ASSERT(memcmp(digest, r->digest, sizeof digest) == 0);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The ring's segments: which kinds they are for, and how they come to be.
 */
#include "base/assert.h"
#include "base/mem.h"
#include "base/mutant.h"
#include "ring/digest.h"
#include "ring/inside.h"

#include <string.h>

/* ---- questions ---- */

static bool has_kind(const struct ring_segment *s, uint16_t kind)
{
    for (size_t i = 0; i < s->kind_count; i++) {
        if (s->kind[i] == kind) {
            return true;
        }
    }
    return false;
}

const struct ring_segment *ring_segment_of_kind(const struct ring *r, uint16_t kind)
{
    for (size_t i = 0; i < r->segment_count; i++) {
        if (has_kind(&r->segment[i], kind)) {
            return &r->segment[i];
        }
    }
    return NULL;
}

const struct ring_segment *ring_segment_at(const struct ring *r, uint32_t cell)
{
    for (size_t i = 0; i < r->segment_count; i++) {
        if (cell >= r->segment[i].from && cell < ring_segment_end(&r->segment[i])) {
            return &r->segment[i];
        }
    }
    return NULL;
}

bool ring_is_border(const struct ring *r, uint32_t cell)
{
    for (size_t i = 0; i < r->segment_count; i++) {
        if (r->segment[i].from == cell) {
            return true;
        }
    }
    return false;
}

bool ring_daemon_number(struct bytes id, uint32_t *number)
{
    size_t at = id.size;
    size_t digits;

    while (at > 0 && id.data[at - 1] >= '0' && id.data[at - 1] <= '9') {
        at--;
    }
    digits = id.size - at;
    // One number has one text: no 07.
    if (at < 2 || id.data[at - 1] != '/' || digits < 1 || digits > 4 ||
        (digits > 1 && id.data[at] == '0')) {
        return false;
    }
    *number = 0;
    for (; at < id.size; at++) {
        *number = *number * 10 + (uint32_t)(id.data[at] - '0');
    }
    return *number >> RING_DAEMON_BITS == 0;
}

static uint32_t cell_in(const struct ring_segment *s, struct ring_key tags, uint64_t hash,
                        struct bytes id)
{
    uint32_t number;

    switch (s->policy) {
    case RING_HASH:
    case RING_HOSTS:
        break;
    case RING_OLDEST:
        return s->from;
    case RING_SPREAD:
        if (ring_daemon_number(id, &number)) {
            return s->from + number;
        }
        break; // no daemon has that id: whoever owns the cell says so
    case RING_TOGETHER:
        hash = siphash_bytes(tags, ring_tag(id)); // not inlined: the others need no room for it
        break;
    }
    return s->from + (uint32_t)(hash >> (64 - s->bits));
}

uint32_t ring_cell_in(const struct ring *r, uint16_t kind, uint64_t hash, struct bytes id)
{
    const struct ring_segment *s = ring_segment_of_kind(r, kind);

    return s == NULL ? ring_cell_of(r, hash) : cell_in(s, r->tags, hash, id);
}

uint64_t ring_point(const struct ring *r, uint16_t kind, struct ring_key key, struct bytes id)
{
    return ring_point_at(r, kind, ring_position(key, id), id);
}

/* ---- changes ---- */

static bool shape_fits(const struct ring_segment *s)
{
    switch (s->policy) {
    case RING_HASH:
        return s->bits >= 1 && s->bits <= RING_SEGMENT_BITS_MAX && s->open == 0 && s->role[0] != 0;
    case RING_TOGETHER:
        return s->bits >= 1 && s->bits <= RING_SEGMENT_BITS_MAX && s->open == 0;
    case RING_HOSTS:
        return s->bits >= 1 && s->bits <= RING_SEGMENT_BITS_MAX && s->open == 0 &&
               s->kind_count <= 1;
    case RING_OLDEST:
        return s->bits == 0 && s->open == 0 && s->kind_count <= 1;
    case RING_SPREAD:
        return s->bits == RING_DAEMON_BITS && s->open >> RING_DAEMON_BITS == 0 &&
               s->kind_count <= 1;
    }
    return false;
}

static bool same_segment(const struct ring_segment *a, const struct ring_segment *b)
{
    return a->policy == b->policy && a->bits == b->bits && strcmp(a->role, b->role) == 0;
}

const char *ring_segment_fault(const struct ring *r, size_t index, const struct ring_segment *s)
{
    if (index >= RING_SEGMENTS_MAX || index > r->segment_count ||
        s->kind_count > RING_SEGMENT_KINDS_MAX) {
        return "there are too many roles, singletons and daemon sets, or kinds of a role";
    }
    if (!shape_fits(s) || memchr(s->role, '\0', sizeof s->role) == NULL ||
        (index < r->segment_count && !same_segment(s, &r->segment[index]))) {
        return "a segment of the ring is not valid";
    }
    if (index == r->segment_count && r->cell_count + ((uint32_t)1 << s->bits) > RING_CELLS_MAX) {
        return "the ring has no room for another role";
    }
    for (size_t i = 0; i < s->kind_count; i++) {
        const struct ring_segment *other = ring_segment_of_kind(r, s->kind[i]);

        if (i > 0 && s->kind[i] <= s->kind[i - 1]) {
            return "a segment's kinds are not in order";
        }
        if (other != NULL && other != &r->segment[index]) {
            return "a kind is bound to another segment";
        }
    }
    return NULL;
}

void ring_take_segments(struct ring *r, struct ring_segment *list, size_t count)
{
    const uint32_t before = r->cell_count;
    uint32_t from = (uint32_t)1 << r->grid;

    for (size_t i = 0; i < count; i++) {
        list[i].from = from;
        from = ring_segment_end(&list[i]);
    }
    mem_free(r->segment);
    r->segment = list;
    r->segment_count = count;
    if (from > before) {
        r->cell = mem_resize(r->cell, from * sizeof *r->cell);
        memset(r->cell + before, 0, (from - before) * sizeof *r->cell);
    }
    r->cell_count = from;
}

/* How many vnodes a new segment has. */
static uint32_t count_runs(const struct ring_segment *s, uint32_t vnodes)
{
    const uint32_t cells = (uint32_t)1 << s->bits;

    switch (s->policy) {
    case RING_HASH:
    case RING_TOGETHER:
    case RING_HOSTS:
        return vnodes < 1 ? 1 : vnodes < cells ? vnodes : cells;
    case RING_OLDEST:
        return 1;
    case RING_SPREAD:
        return s->open + 1; // open < cells
    }
    UNREACHABLE();
}

static void add_vnodes(struct ring *r, const struct ring_segment *s, uint32_t vnodes,
                       uint64_t version)
{
    const uint64_t cells = (uint64_t)1 << s->bits;
    const uint32_t runs = count_runs(s, vnodes);
    const size_t before = r->vnode_count;
    struct ring_vnode *list = mem_new(before + runs, sizeof *list);
    uint32_t id = 0;

    memcpy(list, r->vnode, before * sizeof *list);
    for (uint32_t i = 0; i < runs; i++, id++) {
        const uint64_t at = s->policy == RING_SPREAD ? i : i * cells / runs;

        while (ring_find(r, id) != NULL) {
            id++; // lower than the number of cells: each vnode has one
        }
        list[before + i] = (struct ring_vnode){.id = id,
                                               .from = s->from + (uint32_t)at,
                                               .owner = RING_NODE_NONE,
                                               .generation = version,
                                               .cold = version};
    }
    ASSERT(id <= RING_VNODES_MAX + 1u);
    ring_take_vnodes(r, list, before + runs);
    for (size_t i = before; i < r->vnode_count; i++) {
        ring_fill_cells(r, &r->vnode[i]);
        digest_add(r->digest, &r->vnode[i], ring_end(r, &r->vnode[i]));
    }
}

void ring_put_segment(struct ring *r, size_t index, const struct ring_segment *s, uint32_t vnodes,
                      uint64_t version)
{
    const bool is_new = index == r->segment_count;
    const size_t count = r->segment_count + is_new;
    struct ring_segment *list = mem_new(count, sizeof *list);

    ASSERT(r->vnode_count > 0 && ring_segment_fault(r, index, s) == NULL);
    ring_set_version(r, version);
    if (r->segment_count > 0) {
        memcpy(list, r->segment, r->segment_count * sizeof *list);
    }
    if (!is_new) {
        digest_remove_segment(r->digest, &r->segment[index]);
    }
    list[index] = *s;
    ring_take_segments(r, list, count);
    digest_add_segment(r->digest, &r->segment[index]);
    if (is_new) {
        add_vnodes(r, &r->segment[index], vnodes, version);
    }
}

/* ---- who hosts what ---- */

static size_t place_of(const struct ring_kinds *k, uint16_t kind)
{
    size_t at = 0;

    while (at < k->count && k->kind[at] < kind) {
        at++;
    }
    return at;
}

bool ring_kinds_have(const struct ring_kinds *k, uint16_t kind)
{
    const size_t at = place_of(k, kind);

    return k->count == 0 || (at < k->count && k->kind[at] == kind);
}

bool ring_kinds_add(struct ring_kinds *k, uint16_t kind)
{
    const size_t at = place_of(k, kind);

    if (at < k->count && k->kind[at] == kind) {
        return true;
    }
    if (k->count == RING_SEGMENT_KINDS_MAX) {
        return false;
    }
    memmove(&k->kind[at + 1], &k->kind[at], (k->count - at) * sizeof *k->kind);
    k->kind[at] = kind;
    k->count++;
    return true;
}

bool ring_kinds_fit(const struct ring_kinds *k, const struct ring_segment *s)
{
    return ring_is_shared(s) || s->kind_count == 0 || mutant(M_NOTHOST) ||
           ring_kinds_have(k, s->kind[0]);
}

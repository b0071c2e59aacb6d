/* SPDX-License-Identifier: Apache-2.0
 *
 * A ring as bytes. Little endian, vnodes sorted by `from`; one ring has one
 * encoding. Fixed by RING_SPEC:
 *
 *     0  "RING"
 *     4  spec u8, grid u8, segment count u16
 *     8  version u64
 *    16  vnode count u32
 *    20  then for each vnode, 34 bytes:
 *        id u32, from u32, owner u16, generation u64, cold u64, txn u64
 *     then for each segment, in order:
 *        policy u8, bits u8, role size u8, kind count u8, open u32, role, kinds u16 each
 *     then the CRC-32C u32 of all before it
 */
#include "base/crc.h"
#include "base/mem.h"
#include "ring/inside.h"

#include <string.h>

enum { HEADER_SIZE = 20, VNODE_SIZE = 34, CRC_SIZE = 4 };

static const uint8_t magic[4] = {'R', 'I', 'N', 'G'};

static uint8_t *put(uint8_t *at, uint64_t value, unsigned size)
{
    for (unsigned i = 0; i < size; i++) {
        at[i] = (uint8_t)(value >> (8 * i));
    }
    return at + size;
}

static uint64_t get(const uint8_t **at, unsigned size)
{
    uint64_t value = 0;

    for (unsigned i = 0; i < size; i++) {
        value |= (uint64_t)(*at)[i] << (8 * i);
    }
    *at += size;
    return value;
}

size_t segment_encode(const struct ring_segment *s, uint8_t out[SEGMENT_SIZE_MAX])
{
    const size_t role_size = strlen(s->role);
    uint8_t *at = out;

    at = put(at, (uint64_t)s->policy, 1);
    at = put(at, s->bits, 1);
    at = put(at, role_size, 1);
    at = put(at, s->kind_count, 1);
    at = put(at, s->open, 4);
    memcpy(at, s->role, role_size);
    at += role_size;
    for (size_t i = 0; i < s->kind_count; i++) {
        at = put(at, s->kind[i], 2);
    }
    return (size_t)(at - out);
}

void ring_encode(const struct ring *r, struct buffer *out)
{
    size_t most =
        HEADER_SIZE + r->vnode_count * VNODE_SIZE + CRC_SIZE + r->segment_count * SEGMENT_SIZE_MAX;
    uint8_t *start = buffer_reserve(out, most);
    uint8_t *at = start;

    memcpy(at, magic, sizeof magic);
    at = put(at + sizeof magic, RING_SPEC, 1);
    at = put(at, r->grid, 1);
    at = put(at, r->segment_count, 2);
    at = put(at, r->version, 8);
    at = put(at, r->vnode_count, 4);
    for (const struct ring_vnode *v = r->vnode; v < r->vnode + r->vnode_count; v++) {
        at = put(at, v->id, 4);
        at = put(at, v->from, 4);
        at = put(at, v->owner, 2);
        at = put(at, v->generation, 8);
        at = put(at, v->cold, 8);
        at = put(at, v->txn, 8);
    }
    for (size_t i = 0; i < r->segment_count; i++) {
        at += segment_encode(&r->segment[i], at);
    }
    at = put(at, crc32c(start, (size_t)(at - start)), 4);
    out->size += (size_t)(at - start);
}

/* False if `v` cannot follow `before` (NULL: be the first) in a ring of this grid and version. */
static bool vnode_valid(const struct ring *r, const struct ring_vnode *v,
                        const struct ring_vnode *before)
{
    if (v->id > RING_VNODES_MAX || v->owner > RING_NODES_MAX || v->from >= r->cell_count) {
        return false;
    }
    if (v->cold > v->generation || v->generation > r->version) {
        return false;
    }
    return before == NULL ? v->from == 0 : v->from > before->from;
}

static bool decode_vnodes(const struct ring *r, const uint8_t *at, struct ring_vnode *list,
                          size_t n)
{
    for (size_t i = 0; i < n; i++) {
        list[i].id = (uint32_t)get(&at, 4);
        list[i].from = (uint32_t)get(&at, 4);
        list[i].owner = (uint16_t)get(&at, 2);
        list[i].generation = get(&at, 8);
        list[i].cold = get(&at, 8);
        list[i].txn = get(&at, 8);
        if (!vnode_valid(r, &list[i], i == 0 ? NULL : &list[i - 1])) {
            return false;
        }
    }
    return true;
}

static bool ids_unique(const struct ring *r)
{
    for (size_t i = 0; i < r->vnode_count; i++) {
        if (r->slot[r->vnode[i].id] != i + 1) {
            return false;
        }
    }
    return true;
}

/* One segment's bytes, behind those of others. False: they are none, or not of this ring. */
static bool decode_segment(struct ring *r, struct ring_segment *list, size_t index,
                           struct bytes *rest)
{
    struct ring_segment *s = &list[index];
    const uint8_t *at = rest->data;
    size_t role_size;
    size_t size;

    if (rest->size < 8) {
        return false;
    }
    *s = (struct ring_segment){.policy = (enum ring_policy)get(&at, 1)};
    s->bits = (uint8_t)get(&at, 1);
    role_size = (size_t)get(&at, 1);
    s->kind_count = (uint16_t)get(&at, 1);
    s->open = (uint32_t)get(&at, 4);
    size = 8 + role_size + 2 * (size_t)s->kind_count;
    if (role_size > RING_ROLE_MAX || s->kind_count > RING_SEGMENT_KINDS_MAX || size > rest->size ||
        memchr(at, '\0', role_size) != NULL) {
        return false;
    }
    memcpy(s->role, at, role_size);
    at += role_size;
    for (size_t i = 0; i < s->kind_count; i++) {
        s->kind[i] = (uint16_t)get(&at, 2);
    }
    *rest = bytes_of(rest->data + size, rest->size - size);
    return ring_segment_fault(r, index, s) == NULL;
}

/* `rest` is all there is between the vnodes and the CRC. */
static bool decode_segments(struct ring *r, size_t count, struct bytes rest)
{
    for (size_t i = 0; i < count; i++) {
        struct ring_segment *list = mem_new(i + 1, sizeof *list);
        bool good;

        if (i > 0) {
            memcpy(list, r->segment, i * sizeof *list);
        }
        good = decode_segment(r, list, i, &rest);
        if (!good) {
            mem_free(list);
            return false;
        }
        ring_take_segments(r, list, i + 1); // each is judged by those before it
    }
    return rest.size == 0;
}

/* No vnode reaches over the border of a segment. */
static bool borders_kept(const struct ring *r)
{
    for (size_t i = 0; i < r->segment_count && r->vnode_count > 0; i++) {
        const uint32_t from = r->segment[i].from;
        const struct ring_vnode *v = ring_find(r, ring_hit_vnode(r->cell[from]));

        if (v == NULL || v->from != from) {
            return false;
        }
    }
    return true;
}

static enum err decode_body(struct ring *r, const uint8_t *at, size_t count)
{
    struct ring_vnode *list = mem_new(count, sizeof *list);

    if (!decode_vnodes(r, at, list, count)) {
        mem_free(list);
        return ERR_CORRUPT;
    }
    ring_take_vnodes(r, list, count);
    if (!ids_unique(r)) {
        return ERR_CORRUPT;
    }
    for (size_t i = 0; i < count; i++) {
        ring_fill_cells(r, &r->vnode[i]);
    }
    ring_digest(r, r->digest);
    return borders_kept(r) ? ERR_OK : ERR_CORRUPT;
}

struct header {
    uint8_t grid;
    uint64_t version;
    size_t count;
    size_t segments;
};

/* Reads and checks all that comes before the vnodes. */
static enum err decode_header(struct bytes in, struct header *h)
{
    const uint8_t *at;
    uint64_t spec;
    size_t size;

    if (in.size < HEADER_SIZE + CRC_SIZE || memcmp(in.data, magic, sizeof magic) != 0) {
        return ERR_CORRUPT;
    }
    at = in.data + sizeof magic;
    spec = get(&at, 1);
    h->grid = (uint8_t)get(&at, 1);
    h->segments = (size_t)get(&at, 2);
    h->version = get(&at, 8);
    h->count = (size_t)get(&at, 4);
    if (spec != RING_SPEC) {
        return ERR_FOREIGN;
    }
    if (h->segments > RING_SEGMENTS_MAX || h->grid < RING_GRID_MIN || h->grid > RING_GRID_MAX) {
        return ERR_CORRUPT;
    }
    // The size of what is there bounds what is allocated below.
    size = HEADER_SIZE + h->count * VNODE_SIZE + CRC_SIZE;
    if (h->count > RING_CELLS_MAX || in.size < size || (h->segments == 0 && in.size > size)) {
        return ERR_CORRUPT;
    }
    at = in.data + in.size - CRC_SIZE;
    return get(&at, 4) == crc32c(in.data, in.size - CRC_SIZE) ? ERR_OK : ERR_CORRUPT;
}

enum err ring_decode(struct ring *r, struct bytes in)
{
    struct header h = {.grid = RING_GRID_MIN};
    enum err e = decode_header(in, &h);

    if (e == ERR_OK) {
        const uint8_t *vnodes = in.data + HEADER_SIZE;
        const uint8_t *segments = vnodes + h.count * VNODE_SIZE;
        const struct bytes rest =
            bytes_of(segments, (size_t)(in.data + in.size - CRC_SIZE - segments));

        ring_init(r, h.grid);
        r->version = h.version;
        e = decode_segments(r, h.segments, rest) ? decode_body(r, vnodes, h.count) : ERR_CORRUPT;
        if (e == ERR_OK) {
            return ERR_OK;
        }
        ring_fini(r);
    }
    ring_init(r, RING_GRID_MIN);
    return e;
}

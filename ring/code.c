/* SPDX-License-Identifier: Apache-2.0
 *
 * A ring as bytes. Little endian, vnodes sorted by `from`; one ring has one
 * encoding. Fixed by RING_SPEC:
 *
 *     0  "RING"
 *     4  spec u8, grid u8, zero u16
 *     8  version u64
 *    16  vnode count u32
 *    20  then for each vnode, 34 bytes:
 *        id u32, from u32, owner u16, generation u64, cold u64, txn u64
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

void ring_encode(const struct ring *r, struct buffer *out)
{
    size_t size = HEADER_SIZE + r->vnode_count * VNODE_SIZE + CRC_SIZE;
    uint8_t *start = buffer_reserve(out, size);
    uint8_t *at = start;

    memcpy(at, magic, sizeof magic);
    at = put(at + sizeof magic, RING_SPEC, 1);
    at = put(at, r->grid, 1);
    at = put(at, 0, 2);
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
    put(at, crc32c(start, size - CRC_SIZE), 4);
    out->size += size;
}

/* False if `v` cannot follow `before` (NULL: be the first) in a ring of this grid and version. */
static bool vnode_valid(const struct ring *r, const struct ring_vnode *v,
                        const struct ring_vnode *before)
{
    if (v->id > RING_VNODES_MAX || v->owner > RING_NODES_MAX || v->from >> r->grid != 0) {
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
    return ERR_OK;
}

/* Reads and checks all that comes before the vnodes. */
static enum err decode_header(struct bytes in, uint8_t *grid, uint64_t *version, size_t *count)
{
    const uint8_t *at;
    uint64_t spec;
    uint64_t zero;

    if (in.size < HEADER_SIZE + CRC_SIZE || memcmp(in.data, magic, sizeof magic) != 0) {
        return ERR_CORRUPT;
    }
    at = in.data + sizeof magic;
    spec = get(&at, 1);
    *grid = (uint8_t)get(&at, 1);
    zero = get(&at, 2);
    *version = get(&at, 8);
    *count = get(&at, 4);
    if (spec != RING_SPEC) {
        return ERR_FOREIGN;
    }
    if (zero != 0 || *grid < RING_GRID_MIN || *grid > RING_GRID_MAX) {
        return ERR_CORRUPT;
    }
    // A vnode has at least one cell: this bounds what is allocated below.
    if (*count > (size_t)1 << *grid || in.size != HEADER_SIZE + *count * VNODE_SIZE + CRC_SIZE) {
        return ERR_CORRUPT;
    }
    at = in.data + in.size - CRC_SIZE;
    return get(&at, 4) == crc32c(in.data, in.size - CRC_SIZE) ? ERR_OK : ERR_CORRUPT;
}

enum err ring_decode(struct ring *r, struct bytes in)
{
    uint8_t grid = RING_GRID_MIN;
    uint64_t version = 0;
    size_t count = 0;
    enum err e = decode_header(in, &grid, &version, &count);

    if (e == ERR_OK) {
        ring_init(r, grid);
        r->version = version;
        e = decode_body(r, in.data + HEADER_SIZE, count);
        if (e == ERR_OK) {
            return ERR_OK;
        }
        ring_fini(r);
    }
    ring_init(r, RING_GRID_MIN);
    return e;
}

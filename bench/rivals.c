/* SPDX-License-Identifier: Apache-2.0
 *
 * Other programs' ways from an id to a node, written from their descriptions, so
 * that ring_bench measures the same work.
 */
#include "bench/rivals.h"

#include "base/mem.h"

#include <libhashkit-1.0/hashkit.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- hashes, a byte a step ---- */

uint16_t rival_crc16_table[256];
static uint32_t crc32_table[256];

/* CRC16/XMODEM: polynomial 0x1021, start 0. CRC32: 0x04c11db7 reflected, start and end inverted. */
static void make_tables(void)
{
    for (unsigned i = 0; i < 256; i++) {
        unsigned crc16 = i << 8;
        uint32_t crc32 = i;

        for (unsigned bit = 0; bit < 8; bit++) {
            crc16 = (crc16 & 0x8000) != 0 ? crc16 << 1 ^ 0x1021 : crc16 << 1;
            crc32 = (crc32 & 1) != 0 ? crc32 >> 1 ^ 0xedb88320u : crc32 >> 1;
        }
        rival_crc16_table[i] = (uint16_t)crc16;
        crc32_table[i] = crc32;
    }
}

static uint32_t crc32_of(struct bytes in)
{
    uint32_t crc = 0xffffffff;

    for (size_t i = 0; i < in.size; i++) {
        crc = crc32_table[(crc ^ in.data[i]) & 0xff] ^ crc >> 8;
    }
    return crc ^ 0xffffffff;
}

static uint32_t sdbm_of(struct bytes in)
{
    uint32_t hash = 0;

    for (size_t i = 0; i < in.size; i++) {
        hash = in.data[i] + (hash << 6) + (hash << 16) - hash;
    }
    return hash;
}

static uint32_t md5_of(struct bytes in)
{
    return libhashkit_md5((const char *)in.data, in.size);
}

/* ---- sorted points ---- */

static int by_point(const void *a, const void *b)
{
    const struct rival_point *x = a;
    const struct rival_point *y = b;

    return (x->at > y->at) - (x->at < y->at);
}

/* Returns owned points: the hash of "node-n-k" is where the k-th of node n lies. */
static struct rival_point *make_points(unsigned nodes, uint32_t (*hash)(struct bytes))
{
    struct rival_point *point = mem_new((size_t)nodes * RIVAL_POINTS, sizeof *point);
    size_t count = 0;

    for (unsigned n = 0; n < nodes; n++) {
        for (unsigned k = 0; k < RIVAL_POINTS; k++) {
            char name[64];
            int size = snprintf(name, sizeof name, "node-%u-%u", n, k);

            point[count++] = (struct rival_point){hash(bytes_of(name, (size_t)size)), n};
        }
    }
    qsort(point, count, sizeof *point, by_point);
    return point;
}

static uint32_t search(const struct rival_point *point, size_t count, uint32_t hash)
{
    const struct rival_point *low = point;
    const struct rival_point *high = point + count;

    while (low < high) {
        const struct rival_point *middle = low + (high - low) / 2;

        if (middle->at < hash) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low == point + count ? point->node : low->node;
}

/* ---- the tree ---- */

static int highest_bit(uint32_t x)
{
    return 31 - __builtin_clz(x);
}

/* Hang the leaf into the tree: where the first bit in which it differs has its place. */
static void insert(struct rivals *r, struct rival_tree *leaf, struct rival_tree *inner)
{
    struct rival_tree **at = &r->root;
    struct rival_tree *t = r->root;
    unsigned side;

    while (t->bit >= 0) {
        t = t->side[leaf->point.at >> t->bit & 1];
    }
    if (t->point.at == leaf->point.at) {
        return; // two nodes at one point: the first has it
    }
    inner->bit = highest_bit(t->point.at ^ leaf->point.at);
    while ((*at)->bit > inner->bit) {
        at = &(*at)->side[leaf->point.at >> (*at)->bit & 1];
    }
    side = leaf->point.at >> inner->bit & 1;
    inner->side[side] = leaf;
    inner->side[1 - side] = *at;
    *at = inner;
}

static void make_tree(struct rivals *r, unsigned nodes)
{
    struct rival_point *point = make_points(nodes, sdbm_of);

    r->tree = mem_new(2 * r->point_count, sizeof *r->tree);
    for (size_t i = 0; i < r->point_count; i++) {
        struct rival_tree *leaf = &r->tree[2 * i];

        // Points of sdbm lie close: spread, as avalanche does.
        *leaf = (struct rival_tree){.bit = -1, .point = point[i]};
        leaf->point.at *= 2654435769u;
        if (i == 0) {
            r->root = leaf;
        } else {
            insert(r, leaf, leaf + 1);
        }
    }
    mem_free(point);
}

static const struct rival_tree *leftmost(const struct rival_tree *t)
{
    while (t->bit >= 0) {
        t = t->side[0];
    }
    return t;
}

/* The leaf of the least point not below `hash`; the first one beyond the last. */
static const struct rival_tree *at_least(const struct rival_tree *root, uint32_t hash)
{
    const struct rival_tree *greater = root; // whose leftmost leaf is the next one
    const struct rival_tree *t = root;
    int differs;

    while (t->bit >= 0) {
        t = t->side[hash >> t->bit & 1];
    }
    if (t->point.at == hash) {
        return t;
    }
    differs = highest_bit(t->point.at ^ hash);
    for (t = root; t->bit > differs; t = t->side[hash >> t->bit & 1]) {
        greater = (hash >> t->bit & 1) == 0 ? t->side[1] : greater;
    }
    return leftmost((hash >> differs & 1) == 0 ? t : greater);
}

/* ---- all ---- */

static memcached_st *make_memcached(unsigned nodes)
{
    memcached_st *m = memcached_create(NULL);

    (void)memcached_behavior_set(m, MEMCACHED_BEHAVIOR_KETAMA_WEIGHTED, 1);
    for (unsigned n = 0; n < nodes; n++) {
        char name[32];

        (void)snprintf(name, sizeof name, "node-%u", n);
        (void)memcached_server_add(m, name, 11211);
    }
    return m;
}

void rivals_init(struct rivals *r, unsigned nodes)
{
    *r = (struct rivals){.point_count = (size_t)nodes * RIVAL_POINTS};
    make_tables();
    for (unsigned i = 0; i < RIVAL_SLOTS; i++) {
        r->slot[i] = (uint16_t)(i % nodes);
    }
    r->crc32 = make_points(nodes, crc32_of);
    r->md5 = make_points(nodes, md5_of);
    make_tree(r, nodes);
    if (nodes <= RIVAL_SERVERS_MAX) {
        r->memcached = make_memcached(nodes);
    }
}

void rivals_fini(struct rivals *r)
{
    mem_free(r->crc32);
    mem_free(r->md5);
    mem_free(r->tree);
    if (r->memcached != NULL) {
        memcached_free(r->memcached);
    }
}

uint32_t rival_crc32(const struct rivals *r, struct bytes id)
{
    return search(r->crc32, r->point_count, crc32_of(id));
}

uint32_t rival_sdbm(const struct rivals *r, struct bytes id)
{
    return at_least(r->root, sdbm_of(id) * 2654435769u)->point.node;
}

uint32_t rival_md5(const struct rivals *r, struct bytes id)
{
    return search(r->md5, r->point_count, md5_of(id));
}

uint32_t rival_libmemcached(const struct rivals *r, struct bytes id)
{
    return memcached_generate_hash(r->memcached, (const char *)id.data, id.size);
}

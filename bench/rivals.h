/* SPDX-License-Identifier: Apache-2.0
 *
 * How others find the node of an id, for bench/ring_bench.c: written here from
 * what is published of them, hash included.
 *
 *     crc16 slots     CRC16 (XMODEM) modulo 16384 and a table of slots, as Redis Cluster does
 *     crc32 points    CRC32 and 160 points a node in one sorted array, searched by halves, as
 *                     nginx's `hash ... consistent` does
 *     sdbm tree       sdbm and 160 points a node in a binary radix tree, the first point not
 *                     below the hash, as HAProxy's `hash-type consistent` does
 *     md5 points      libhashkit's MD5 and 160 points a node in one sorted array: ketama
 *     libmemcached    memcached_generate_hash(), weighted ketama: the real library, which
 *                     takes no more than 100 servers
 *
 * None of their hashes has a key; ours has.
 */
#ifndef BENCH_RIVALS_H
#define BENCH_RIVALS_H

#include "base/bytes.h"

#include <libmemcached/memcached.h>
#include <stdint.h>

enum { RIVAL_SLOTS = 16384, RIVAL_POINTS = 160, RIVAL_SERVERS_MAX = 100 };

struct rival_point {
    uint32_t at;
    uint32_t node;
};

/* A leaf has bit -1; another one the highest bit in which its two sides differ. */
struct rival_tree {
    int bit;
    struct rival_point point;
    struct rival_tree *side[2];
};

struct rivals {
    uint16_t slot[RIVAL_SLOTS];
    struct rival_point *crc32; /* owned; sorted */
    struct rival_point *md5;   /* owned; sorted */
    size_t point_count;        /* of each */
    struct rival_tree *tree;   /* owned: one array */
    struct rival_tree *root;
    memcached_st *memcached; /* owned; NULL above RIVAL_SERVERS_MAX nodes */
};

/* Make the tables of `nodes` nodes, 0..nodes-1. */
void rivals_init(struct rivals *r, unsigned nodes);
void rivals_fini(struct rivals *r);

/* Each: the node of an id. CRC16's is here, so that no call is between it and who measures. */

extern uint16_t rival_crc16_table[256];

static inline uint32_t rival_crc16(const struct rivals *r, struct bytes id)
{
    uint16_t crc = 0;

    for (size_t i = 0; i < id.size; i++) {
        crc = (uint16_t)(crc << 8 ^ rival_crc16_table[crc >> 8 ^ id.data[i]]);
    }
    return r->slot[crc % RIVAL_SLOTS];
}

uint32_t rival_crc32(const struct rivals *r, struct bytes id);
uint32_t rival_sdbm(const struct rivals *r, struct bytes id);
uint32_t rival_md5(const struct rivals *r, struct bytes id);
uint32_t rival_libmemcached(const struct rivals *r, struct bytes id);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * What routing an id costs here and elsewhere, from the id to the node, hash included:
 *
 *     ring, one       ring_position() and ring_at() for one id after the other
 *     ring, batch     ring_route_*(), 64 ids a call
 *     crc16 slots     CRC16 (XMODEM) modulo 16384 slots and a table, as Redis Cluster does
 *     ketama md5      libhashkit's MD5 and a continuum of 160 points a node, searched by halves
 *     libmemcached    memcached_generate_hash(), weighted ketama: the real library, which
 *                     takes no more than 100 servers
 *
 * All in one run on the same ids. Rounds go over all variants in turn, each is warmed before
 * it is timed, and the median counts: what a noisy machine does, it does to all of them.
 * The others' hashes have no key; ours has. Figures are nanoseconds an id and, in brackets,
 * how many times ours (one) it is.
 */
#include "base/mem.h"
#include "base/prng.h"
#include "ring/plan.h"
#include "ring/route.h"
#include "ring/snapshot.h"

#include <libhashkit-1.0/hashkit.h>
#include <libmemcached/memcached.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    IDS = 1 << 12, /* they stay in the second cache */
    WARM = 1 << 12,
    ROUNDS = 41,
    BATCH = 64,
    SLOTS = 16384,
    POINTS = 160,
    ID_SIZE = 36,
};

static double now_ns(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *sample, size_t count)
{
    qsort(sample, count, sizeof *sample, by_value);
    return sample[count / 2];
}

/* ---- the ids, the same for all ---- */

static uint64_t numbers[IDS];
static char text[IDS][ID_SIZE + 1];
static struct bytes texts[IDS];

static void make_ids(void)
{
    struct prng p = {1};

    for (size_t i = 0; i < IDS; i++) {
        uint64_t a = prng_u64(&p);
        uint64_t b = prng_u64(&p);

        numbers[i] = prng_u64(&p);
        (void)snprintf(text[i],
                       sizeof text[i],
                       "%08x-%04x-%04x-%04x-%012llx",
                       (unsigned)(a >> 32),
                       (unsigned)(a >> 16 & 0xffff),
                       (unsigned)(a & 0xffff),
                       (unsigned)(b >> 48),
                       (unsigned long long)(b & 0xffffffffffff));
        texts[i] = bytes_of(text[i], ID_SIZE);
    }
}

/* The id as the others take it: bytes. */
static struct bytes id_bytes(size_t i, bool is_text)
{
    return is_text ? texts[i] : bytes_of(&numbers[i], sizeof numbers[i]);
}

/* ---- CRC16 slots ---- */

/* CRC16/XMODEM: polynomial 0x1021, start 0, no reflection; a byte a step. */
static uint16_t crc16_table[256];

static void make_crc16(void)
{
    for (unsigned i = 0; i < 256; i++) {
        unsigned crc = i << 8;

        for (unsigned bit = 0; bit < 8; bit++) {
            crc = (crc & 0x8000) != 0 ? crc << 1 ^ 0x1021 : crc << 1;
        }
        crc16_table[i] = (uint16_t)crc;
    }
}

static uint16_t crc16(struct bytes in)
{
    uint16_t crc = 0;

    for (size_t i = 0; i < in.size; i++) {
        crc = (uint16_t)(crc << 8 ^ crc16_table[crc >> 8 ^ in.data[i]]);
    }
    return crc;
}

/* ---- ketama ---- */

struct point {
    uint32_t at;
    uint32_t node;
};

static int by_point(const void *a, const void *b)
{
    const struct point *x = a;
    const struct point *y = b;

    return (x->at > y->at) - (x->at < y->at);
}

/* Returns an owned continuum: each MD5 of "node-n-k" gives four points. */
static struct point *make_continuum(unsigned nodes)
{
    struct point *point = mem_new((size_t)nodes * POINTS, sizeof *point);
    size_t count = 0;

    for (unsigned n = 0; n < nodes; n++) {
        for (unsigned k = 0; k < POINTS; k++) {
            char name[64];
            int size = snprintf(name, sizeof name, "node-%u-%u", n, k);

            point[count].at = libhashkit_md5(name, (size_t)size);
            point[count].node = n;
            count++;
        }
    }
    qsort(point, count, sizeof *point, by_point);
    return point;
}

static uint32_t search_continuum(const struct point *point, size_t count, uint32_t hash)
{
    const struct point *low = point;
    const struct point *high = point + count;

    while (low < high) {
        const struct point *middle = low + (high - low) / 2;

        if (middle->at < hash) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low == point + count ? point->node : low->node;
}

/* ---- the variants ---- */

struct world {
    unsigned nodes;
    struct ring ring;
    struct ring_key key;
    uint16_t slot[SLOTS];
    struct point *continuum; /* owned */
    memcached_st *memcached; /* owned; NULL above 100 nodes */
};

/* Routes the first `count` ids; returns a sum of the nodes. */
typedef uint64_t (*variant)(const struct world *w, size_t count, bool is_text);

static uint64_t ring_one(const struct world *w, size_t count, bool is_text)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < count; i++) {
        uint64_t position =
            is_text ? ring_position(w->key, texts[i]) : ring_position_u64(w->key, numbers[i]);

        sum += ring_hit_node(ring_at(&w->ring, position));
    }
    return sum;
}

static uint64_t ring_batch(const struct world *w, size_t count, bool is_text)
{
    ring_hit hits[BATCH];
    uint64_t sum = 0;

    for (size_t i = 0; i < count; i += BATCH) {
        if (is_text) {
            ring_route_bytes(ring_table_of(&w->ring), w->key, texts + i, BATCH, hits);
        } else {
            ring_route_u64(ring_table_of(&w->ring), w->key, numbers + i, BATCH, hits);
        }
        for (size_t k = 0; k < BATCH; k++) {
            sum += ring_hit_node(hits[k]);
        }
    }
    return sum;
}

static uint64_t crc16_slots(const struct world *w, size_t count, bool is_text)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < count; i++) {
        sum += w->slot[crc16(id_bytes(i, is_text)) % SLOTS];
    }
    return sum;
}

static uint64_t ketama_md5(const struct world *w, size_t count, bool is_text)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < count; i++) {
        struct bytes id = id_bytes(i, is_text);
        uint32_t hash = libhashkit_md5((const char *)id.data, id.size);

        sum += search_continuum(w->continuum, (size_t)w->nodes * POINTS, hash);
    }
    return sum;
}

static uint64_t libmemcached(const struct world *w, size_t count, bool is_text)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < count; i++) {
        struct bytes id = id_bytes(i, is_text);

        sum += memcached_generate_hash(w->memcached, (const char *)id.data, id.size);
    }
    return sum;
}

static const struct {
    const char *name;
    variant run;
} variants[] = {
    {"ring, one", ring_one},
    {"ring, batch", ring_batch},
    {"crc16 slots", crc16_slots},
    {"ketama md5", ketama_md5},
    {"libmemcached", libmemcached},
};

enum { VARIANTS = sizeof variants / sizeof variants[0] };

/* ---- the rings ---- */

static const struct plan_limits limits = {
    .vnodes_per_weight = 64, .moves_per_txn = 8, .wave_cap = 4};

static struct plan_node *make_nodes(unsigned count)
{
    struct plan_node *node = mem_new(count, sizeof *node);

    for (unsigned i = 0; i < count; i++) {
        node[i] = (struct plan_node){.slot = (uint16_t)(i + 1), .weight = 1};
    }
    return node;
}

/* Plan for nodes 1..nodes and carry it out; returns the nanoseconds that planning took. */
static double settle(struct ring *r, unsigned nodes, bool carry_out)
{
    struct plan_node *node = make_nodes(nodes);
    struct plan plan;
    double start = now_ns();
    enum err e = plan_make(&plan, r, node, nodes, &limits);
    double took = now_ns() - start;

    for (size_t i = 0; e == ERR_OK && carry_out && i < plan.txn_count; i++) {
        ring_apply(r, plan.txn[i].ops, plan.txn[i].op_count, r->version + 1, i + 1);
    }
    plan_fini(&plan);
    mem_free(node);
    return took;
}

static void world_init(struct world *w, unsigned nodes, uint8_t grid)
{
    *w = (struct world){.nodes = nodes, .key = {0x0123456789abcdef, 0xfedcba9876543210}};
    ring_init(&w->ring, grid);
    ring_create(&w->ring, 64, 1, 1);
    (void)settle(&w->ring, nodes, true);
    for (unsigned i = 0; i < SLOTS; i++) {
        w->slot[i] = (uint16_t)(i % nodes);
    }
    w->continuum = make_continuum(nodes);
    if (nodes > 100) {
        return;
    }
    w->memcached = memcached_create(NULL);
    (void)memcached_behavior_set(w->memcached, MEMCACHED_BEHAVIOR_KETAMA_WEIGHTED, 1);
    for (unsigned n = 0; n < nodes; n++) {
        char name[32];

        (void)snprintf(name, sizeof name, "node-%u", n);
        (void)memcached_server_add(w->memcached, name, 11211);
    }
}

static void world_fini(struct world *w)
{
    ring_fini(&w->ring);
    mem_free(w->continuum);
    if (w->memcached != NULL) {
        memcached_free(w->memcached);
    }
}

/* ---- measuring ---- */

static void print_row(const struct world *w, bool is_text, const double *ns)
{
    (void)printf("%-8s %4u x 64 ", is_text ? "36 bytes" : "u64", w->nodes);
    for (size_t v = 0; v < VARIANTS; v++) {
        if (ns[v] > 0) {
            (void)printf("%8.1f (%5.1fx)", ns[v], ns[v] / ns[0]);
        } else {
            (void)printf("%17s", "-");
        }
    }
    (void)printf("\n");
}

/* Of all that was routed, printed at the end: nothing may be left out. */
static uint64_t checksum;

static void measure_routes(const struct world *w, bool is_text)
{
    static double sample[VARIANTS][ROUNDS];
    double ns[VARIANTS] = {0};

    for (size_t round = 0; round < ROUNDS; round++) {
        for (size_t v = 0; v < VARIANTS; v++) {
            double start;

            if (variants[v].run == libmemcached && w->memcached == NULL) {
                continue;
            }
            checksum += variants[v].run(w, WARM, is_text);
            start = now_ns();
            checksum += variants[v].run(w, IDS, is_text);
            sample[v][round] = (now_ns() - start) / IDS;
        }
    }
    for (size_t v = 0; v < VARIANTS; v++) {
        bool ran = variants[v].run != libmemcached || w->memcached != NULL;

        ns[v] = ran ? median(sample[v], ROUNDS) : 0;
    }
    print_row(w, is_text, ns);
}

/* One MOVE: applied to the ring, and published to readers. */
static void measure_change(struct world *w)
{
    enum { MOVES = 1000 };
    static double apply[ROUNDS];
    static double both[ROUNDS];
    static double plan[ROUNDS];
    struct publisher *p = publisher_new(&w->ring, 1);
    struct prng random = {2};

    for (size_t round = 0; round < ROUNDS; round++) {
        for (unsigned publish = 0; publish < 2; publish++) {
            double start = now_ns();

            for (unsigned i = 0; i < MOVES; i++) {
                const struct ring_vnode *v =
                    &w->ring.vnode[prng_u64(&random) % w->ring.vnode_count];
                struct ring_op op = {.kind = RING_MOVE,
                                     .vnode = v->id,
                                     .from = v->owner,
                                     .to = v->owner % RING_NODES_MAX + 1};

                ring_apply(&w->ring, &op, 1, w->ring.version + 1, 1);
                publisher_note(p, &op, 1);
                if (publish == 1 && publisher_publish(p, &w->ring) != ERR_OK) {
                    abort(); // no reader is started
                }
            }
            (publish == 1 ? both : apply)[round] = (now_ns() - start) / MOVES;
        }
    }
    publisher_free(p);
    ring_create(&w->ring, 64, 1, w->ring.version);
    (void)settle(&w->ring, w->nodes, true);
    for (size_t round = 0; round < ROUNDS; round++) {
        plan[round] = settle(&w->ring, w->nodes + 1, false);
    }
    (void)printf("%4u x 64   apply %5.2f us   apply + publish %5.2f us   plan a join %6.2f ms\n",
                 w->nodes,
                 median(apply, ROUNDS) / 1e3,
                 median(both, ROUNDS) / 1e3,
                 median(plan, ROUNDS) / 1e6);
}

int main(void)
{
    static const struct {
        unsigned nodes;
        uint8_t grid;
    } rings[] = {{3, 14}, {100, 16}, {1000, 18}};
    static struct world w[3];

    make_ids();
    make_crc16();
    (void)printf("id to node, ns an id (times ring, one)\nid       nodes x V ");
    for (size_t v = 0; v < VARIANTS; v++) {
        (void)printf("%17s", variants[v].name);
    }
    (void)printf("\n");
    for (size_t i = 0; i < 3; i++) {
        world_init(&w[i], rings[i].nodes, rings[i].grid);
        measure_routes(&w[i], false);
        measure_routes(&w[i], true);
    }
    (void)printf("\none MOVE, and a plan for one node more\n");
    for (size_t i = 0; i < 3; i++) {
        measure_change(&w[i]);
        world_fini(&w[i]);
    }
    (void)printf("checksum %llu\n", (unsigned long long)checksum);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * What routing an id costs here and elsewhere, from the id to the node, hash included.
 *
 *     ring_bench                          all: a line a figure, for bench/lookup
 *     ring_bench NAME u64|text NODES N    N lookups by variant NAME, for who counts instructions
 *
 *     ring, one       ring_position() and ring_at() for one id after the other
 *     and the others: bench/rivals.h
 *
 * All in one run on the same ids. Rounds go over all variants in turn, each is warmed before
 * it is timed, and the median counts: what a noisy machine does, it does to all of them.
 */
#include "base/mem.h"
#include "base/prng.h"
#include "bench/rivals.h"
#include "ring/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    IDS = 1 << 12, /* they stay in the second cache */
    WARM = 1 << 12,
    ROUNDS = 41,
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

/* ---- the variants ---- */

struct world {
    unsigned nodes;
    struct ring ring;
    struct ring_key key;
    struct rivals rivals;
};

/* Routes the first `count` ids; returns a sum of the nodes. */
typedef uint64_t (*variant)(const struct world *w, size_t count, bool is_text);

static uint64_t ring_one(const struct world *w, size_t count, bool is_text)
{
    uint64_t sum = 0;

    // Two loops: who asks knows what his ids are.
    for (size_t i = 0; !is_text && i < count; i++) {
        sum += ring_hit_node(ring_at(&w->ring, ring_position_u64(w->key, numbers[i])));
    }
    for (size_t i = 0; is_text && i < count; i++) {
        sum += ring_hit_node(ring_at(&w->ring, ring_position(w->key, texts[i])));
    }
    return sum;
}

/* The loop of each rival, so that its lookup is called directly. */
#define LOOP(name)                                                          \
    static uint64_t name(const struct world *w, size_t count, bool is_text) \
    {                                                                       \
        uint64_t sum = 0;                                                   \
                                                                            \
        for (size_t i = 0; i < count; i++) {                                \
            sum += rival_##name(&w->rivals, id_bytes(i, is_text));          \
        }                                                                   \
        return sum;                                                         \
    }
LOOP(crc16)
LOOP(crc32)
LOOP(sdbm)
LOOP(md5)
LOOP(libmemcached)

static const struct {
    const char *name;
    variant run;
} variants[] = {
    {"ring", ring_one},
    {"crc16", crc16},
    {"crc32", crc32},
    {"sdbm", sdbm},
    {"md5", md5},
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
    enum err e =
        plan_make(&plan, plan_by_weight, &(struct plan_view){r, node, nodes}, NULL, NULL, &limits);
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
    rivals_init(&w->rivals, nodes);
}

static void world_fini(struct world *w)
{
    ring_fini(&w->ring);
    rivals_fini(&w->rivals);
}

/* ---- measuring ---- */

static bool can_run(const struct world *w, size_t v)
{
    return variants[v].run != libmemcached || w->rivals.memcached != NULL;
}

/* Of all that was routed, printed at the end: nothing may be left out. */
static uint64_t checksum;

static void measure_routes(const struct world *w, bool is_text)
{
    static double sample[VARIANTS][ROUNDS];

    for (size_t round = 0; round < ROUNDS; round++) {
        for (size_t v = 0; v < VARIANTS; v++) {
            double start;

            if (!can_run(w, v)) {
                continue;
            }
            checksum += variants[v].run(w, WARM, is_text);
            start = now_ns();
            checksum += variants[v].run(w, IDS, is_text);
            sample[v][round] = (now_ns() - start) / IDS;
        }
    }
    for (size_t v = 0; v < VARIANTS; v++) {
        if (can_run(w, v)) {
            const char *id = is_text ? "text" : "u64";

            (void)printf(
                "route %s %s %u %.2f\n", variants[v].name, id, w->nodes, median(sample[v], ROUNDS));
        }
    }
}

/* One MOVE, applied to the ring; and the plan for one node more. */
static void measure_change(struct world *w)
{
    enum { MOVES = 1000 };
    static double apply[ROUNDS];
    static double plan[ROUNDS];
    struct prng random = {2};

    for (size_t round = 0; round < ROUNDS; round++) {
        double start = now_ns();

        for (unsigned i = 0; i < MOVES; i++) {
            const struct ring_vnode *v = &w->ring.vnode[prng_u64(&random) % w->ring.vnode_count];
            struct ring_op op = {.kind = RING_MOVE,
                                 .vnode = v->id,
                                 .from = v->owner,
                                 .to = v->owner % RING_NODES_MAX + 1};

            ring_apply(&w->ring, &op, 1, w->ring.version + 1, 1);
        }
        apply[round] = (now_ns() - start) / MOVES;
    }
    ring_create(&w->ring, 64, 1, w->ring.version);
    (void)settle(&w->ring, w->nodes, true);
    for (size_t round = 0; round < ROUNDS; round++) {
        plan[round] = settle(&w->ring, w->nodes + 1, false);
    }
    (void)printf("apply %u %.1f\nplan %u %.0f\n",
                 w->nodes,
                 median(apply, ROUNDS),
                 w->nodes,
                 median(plan, ROUNDS));
}

/* The grid that a fleet of so many nodes takes: four cells a vnode. */
static uint8_t grid_of(unsigned nodes)
{
    return nodes <= 3 ? 14 : nodes <= 100 ? 16 : 18;
}

static void measure_all(void)
{
    static const unsigned fleets[] = {3, 100, 1000};
    static struct world w;

    for (size_t i = 0; i < sizeof fleets / sizeof fleets[0]; i++) {
        world_init(&w, fleets[i], grid_of(fleets[i]));
        measure_routes(&w, false);
        measure_routes(&w, true);
        measure_change(&w);
        world_fini(&w);
    }
}

static int count_one(const char *const *word)
{
    static struct world w;
    unsigned nodes = (unsigned)strtoul(word[2], NULL, 10);
    size_t count = strtoul(word[3], NULL, 10);

    for (size_t v = 0; v < VARIANTS; v++) {
        if (strcmp(variants[v].name, word[0]) == 0 && count <= IDS && nodes > 0) {
            world_init(&w, nodes, grid_of(nodes));
            checksum += variants[v].run(&w, count, strcmp(word[1], "text") == 0);
            world_fini(&w);
            return 0;
        }
    }
    (void)fprintf(stderr, "ring_bench [NAME u64|text NODES N]\n");
    return 2;
}

int main(int argc, char **argv)
{
    int code = 0;

    make_ids();
    if (argc == 5) {
        code = count_one((const char *const *)argv + 1);
    } else {
        measure_all();
    }
    (void)printf("checksum %llu\n", (unsigned long long)checksum);
    return code;
}

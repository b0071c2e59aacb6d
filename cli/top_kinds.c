/* SPDX-License-Identifier: Apache-2.0
 *
 * Adds up the nodes' buckets of each kind, of the time between two answers.
 */
#include "cli/top_kinds.h"

#include "base/latency.h"

#include <stdlib.h>
#include <string.h>

enum {
    KINDS_MAX = 4096,
    P50 = 500, /* thousandths */
    P99 = 990,
};
/* Of one bucket of one node: what all may tell, a quantile can be reckoned of. */
#define COUNT_MAX (UINT64_C(1) << 32)

struct kind_took {
    uint32_t kind;
    uint64_t count;
    uint64_t took[LATENCY_BUCKETS];
};

static const Rh__KindRow *find_row(const Rh__InspectAnswer *p, uint32_t kind)
{
    for (size_t i = 0; i < p->n_kinds; i++) {
        if (p->kinds[i]->kind == kind) {
            return p->kinds[i];
        }
    }
    return NULL;
}

static const Rh__InspectAnswer *find_same(const struct collection *s, const Rh__InspectAnswer *p)
{
    for (size_t i = 0; i < s->process_count; i++) {
        const Rh__InspectAnswer *one = s->process[i];

        if (one->role == p->role && one->incarnation == p->incarnation &&
            strcmp(one->name, p->name) == 0) {
            return one;
        }
    }
    return NULL;
}

/* NULL: there are too many kinds for a fleet. */
static struct kind_took *find_kind(struct kind_took *all, size_t *count, uint32_t kind)
{
    size_t at = 0;

    while (at < *count && all[at].kind != kind) {
        at++;
    }
    if (at == KINDS_MAX) {
        return NULL;
    }
    if (at == *count) {
        all[(*count)++] = (struct kind_took){.kind = kind};
    }
    return &all[at];
}

static void add(struct kind_took *to, const Rh__KindRow *row, const Rh__KindRow *before)
{
    for (size_t i = 0; i < row->n_took && i < LATENCY_BUCKETS; i++) {
        const uint64_t had = before != NULL && i < before->n_took ? before->took[i] : 0;
        const uint64_t more = row->took[i] > had ? row->took[i] - had : 0;

        to->took[i] += more < COUNT_MAX ? more : COUNT_MAX;
        to->count += more < COUNT_MAX ? more : COUNT_MAX;
    }
}

static int compare(const void *left, const void *right)
{
    const struct kind_took *a = left;
    const struct kind_took *b = right;

    return a->kind < b->kind ? -1 : a->kind > b->kind;
}

void top_kinds_print(const struct query *q, const struct collection *before,
                     const struct collection *after, uint64_t us)
{
    static const char *const columns[] = {
        "KIND", "REQUESTS=requests_s", "P50=p50_us", "P99=p99_us", NULL};
    static struct kind_took all[KINDS_MAX];
    size_t count = 0;
    struct rows r;

    for (size_t i = 0; i < after->process_count; i++) {
        const Rh__InspectAnswer *p = after->process[i];
        const Rh__InspectAnswer *was = find_same(before, p);

        for (size_t k = 0; was != NULL && k < p->n_kinds; k++) {
            struct kind_took *kind = find_kind(all, &count, p->kinds[k]->kind);

            if (kind != NULL) {
                add(kind, p->kinds[k], find_row(was, p->kinds[k]->kind));
            }
        }
    }
    qsort(all, count, sizeof *all, compare);
    rows_init(&r, columns);
    for (size_t i = 0; i < count; i++) {
        if (all[i].kind > UINT16_MAX) {
            rows_text(&r, "other");
        } else {
            rows_text(&r, "%u", all[i].kind);
        }
        rows_rate(&r, true, (uint64_t)((double)all[i].count * 1e6 / (double)(us == 0 ? 1 : us)));
        rows_us_known(&r, latency_quantile_us(all[i].took, P50));
        rows_us_known(&r, latency_quantile_us(all[i].took, P99));
    }
    query_print(q, &r);
}

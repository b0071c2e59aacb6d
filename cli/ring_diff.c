/* SPDX-License-Identifier: Apache-2.0
 *
 * `ringhold ring --diff`: has the leader plan a change, adds up what it would
 * move, and estimates the time.
 */
#include "cli/ring_diff.h"

#include "base/mem.h"
#include "base/stamp.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TXNS_MAX = 256, WEIGHT_MAX = 1000, PPM = 1000000 };

/* What moves took, by the last transactions that the leader remembers. */
struct measured {
    size_t count; /* committed moves; 0 = the rest is not known */
    uint64_t actors;
    uint64_t bytes;
    uint64_t typical_us; /* one transaction of moves, the median */
    uint64_t laden_us;   /* all those that carried actors, added up */
};

/* Between two nodes, in all waves. */
struct diff_pair {
    const char *from; /* borrowed from the reply, as `to` */
    const char *to;
    uint64_t vnodes;
    uint64_t cells;
    uint64_t actors;
};

struct diff {
    const Rh__AdminReply *reply; /* borrowed */
    struct diff_pair *pair;      /* owned */
    size_t pair_count;
    size_t splits; /* vnodes that are parted, and put together again */
    size_t merges;
    size_t transactions; /* of moves */
    uint32_t waves;
    uint64_t all_cells;
    struct diff_pair sum;
};

/* ---- asking ---- */

static bool read_words(const struct query *q, const char *what, Rh__AdminPreview *out)
{
    static const struct {
        const char *word;
        Rh__PreviewWhat what;
    } words[] = {
        {"add", RH__PREVIEW_WHAT__PREVIEW_ADD},
        {"drain", RH__PREVIEW_WHAT__PREVIEW_DRAIN},
        {"remove", RH__PREVIEW_WHAT__PREVIEW_DRAIN},
        {"weight", RH__PREVIEW_WHAT__PREVIEW_WEIGHT},
        {"balance", RH__PREVIEW_WHAT__PREVIEW_BALANCE},
    };
    const bool weighs = strcmp(what, "add") == 0 || strcmp(what, "weight") == 0;
    const bool names = strcmp(what, "balance") != 0;
    size_t i = 0;

    while (i < sizeof words / sizeof words[0] && strcmp(words[i].word, what) != 0) {
        i++;
    }
    if (i == sizeof words / sizeof words[0]) {
        (void)fprintf(stderr,
                      "ringhold ring: --diff must be add, drain, remove, weight or balance\n");
        return false;
    }
    if (q->argument_count < (names ? 1 : 0) ||
        q->argument_count > (weighs  ? 2
                             : names ? 1
                                     : 0) ||
        (q->argument_count == 1 && strcmp(what, "weight") == 0)) {
        (void)fprintf(stderr,
                      "ringhold ring: use --diff add NODE [WEIGHT], --diff drain NODE, --diff "
                      "remove NODE, --diff weight NODE WEIGHT or --diff balance\n");
        return false;
    }
    out->what = words[i].what;
    out->weight = 1;
    return q->argument_count < 2 || query_number("ring",
                                                 "WEIGHT",
                                                 q->arguments[1],
                                                 (struct option_range){1, WEIGHT_MAX},
                                                 &out->weight);
}

static int compare_us(const void *left, const void *right)
{
    const uint64_t a = *(const uint64_t *)left;
    const uint64_t b = *(const uint64_t *)right;

    return a < b ? -1 : a > b;
}

static void measure(const struct query *q, struct measured *out)
{
    Rh__AdminTxns what = RH__ADMIN_TXNS__INIT;
    uint64_t took_us[TXNS_MAX];

    *out = (struct measured){0};
    what.limit = TXNS_MAX;
    Rh__AdminReply *reply = query_ask(q, &what.base);
    for (size_t i = 0; reply != NULL && i < reply->n_txns && out->count < TXNS_MAX; i++) {
        const Rh__TxnRow *t = reply->txns[i];

        if (strcmp(t->state, "committed") != 0 || t->n_moves == 0 || t->begun_us == 0 ||
            t->outcome_us < t->begun_us) {
            continue;
        }
        uint64_t actors = 0;
        took_us[out->count++] = t->outcome_us - t->begun_us;
        for (size_t v = 0; v < t->n_votes; v++) {
            actors += t->votes[v]->actors;
            out->bytes += t->votes[v]->bytes;
        }
        out->actors += actors;
        out->laden_us += actors == 0 ? 0 : t->outcome_us - t->begun_us;
    }
    admin_free(reply);
    if (out->count > 0) {
        qsort(took_us, out->count, sizeof took_us[0], compare_us);
        out->typical_us = took_us[out->count / 2];
    }
}

/* ---- adding up ---- */

static struct diff_pair *pair_of(struct diff *d, const Rh__PlanRow *row)
{
    for (size_t i = 0; i < d->pair_count; i++) {
        if (strcmp(d->pair[i].from, row->from) == 0 && strcmp(d->pair[i].to, row->to) == 0) {
            return &d->pair[i];
        }
    }
    d->pair = mem_resize(d->pair, (d->pair_count + 1) * sizeof *d->pair);
    d->pair[d->pair_count] = (struct diff_pair){.from = row->from, .to = row->to};
    return &d->pair[d->pair_count++];
}

/* As many as its cells hold on the average. */
static uint64_t actors_in(const Rh__AdminReply *reply, const struct diff_pair *p)
{
    for (size_t i = 0; i < reply->n_nodes; i++) {
        const Rh__NodeRow *n = reply->nodes[i];

        if (strcmp(n->member->name, p->from) == 0 && n->cells > 0) {
            return n->actors * p->cells / n->cells;
        }
    }
    return 0;
}

static void add_up(struct diff *d, const Rh__AdminReply *reply)
{
    *d = (struct diff){.reply = reply};
    for (size_t i = 0; i < reply->n_plan; i++) {
        const Rh__PlanRow *row = reply->plan[i];

        d->waves = row->wave + 1 > d->waves ? row->wave + 1 : d->waves;
        if (strcmp(row->kind, "split") == 0) {
            d->splits += row->n_vnodes;
        } else if (strcmp(row->kind, "merge") == 0) {
            d->merges += row->n_vnodes;
        } else {
            struct diff_pair *p = pair_of(d, row);

            p->vnodes += row->n_vnodes;
            p->cells += row->cells;
            d->transactions++;
        }
    }
    for (size_t i = 0; i < reply->n_nodes; i++) {
        d->all_cells += reply->nodes[i]->cells;
    }
    for (size_t i = 0; i < d->pair_count; i++) {
        d->pair[i].actors = actors_in(reply, &d->pair[i]);
        d->sum.vnodes += d->pair[i].vnodes;
        d->sum.cells += d->pair[i].cells;
        d->sum.actors += d->pair[i].actors;
    }
}

static uint64_t bytes_of_actors(const struct measured *m, uint64_t actors)
{
    return m->actors == 0 ? 0 : (uint64_t)((double)m->bytes / (double)m->actors * (double)actors);
}

static bool knows_bytes(const struct measured *m, const struct diff *d)
{
    return m->actors > 0 || d->sum.actors == 0;
}

static uint64_t share_ppm(const struct diff *d, uint64_t cells)
{
    return d->all_cells == 0 ? 0 : cells * PPM / d->all_cells;
}

/* The transactions of a wave run side by side; one takes longer the more actors it carries. */
static uint64_t time_us(const struct measured *m, const struct diff *d)
{
    const uint64_t carried = d->transactions == 0 ? 0 : d->sum.actors / d->transactions;
    const uint64_t laden_us = m->actors == 0 ? 0 : carried * m->laden_us / m->actors;

    return d->waves * (laden_us > m->typical_us ? laden_us : m->typical_us);
}

/* ---- telling ---- */

static void put_pairs(const struct diff *d, const struct measured *m, struct rows *r)
{
    static const char *const columns[] = {
        "FROM", "TO", "VNODES", "SHARE=share_ppm", "ACTORS", "SIZE=bytes", NULL};

    rows_init(r, columns);
    for (size_t i = 0; i < d->pair_count; i++) {
        const struct diff_pair *p = &d->pair[i];

        rows_text(r, "%s", p->from[0] == '\0' ? "nobody" : p->from);
        rows_text(r, "%s", p->to);
        rows_number(r, p->vnodes);
        rows_share(r, share_ppm(d, p->cells));
        rows_number(r, p->actors);
        rows_size(r, bytes_of_actors(m, p->actors));
    }
}

/* How long, and how much, by the moves that were driven last. */
static void print_cost(const struct diff *d, const struct measured *m)
{
    char time[32];
    char typical[32];
    char bytes[48] = "";
    char each[48] = "";
    char text[32];

    if (m->count == 0) {
        (void)printf("duration unknown: this leader has not seen a move yet\n");
        return;
    }
    if (knows_bytes(m, d)) {
        (void)snprintf(bytes,
                       sizeof bytes,
                       " and %s",
                       size_text(bytes_of_actors(m, d->sum.actors), text, sizeof text));
    }
    if (m->actors > 0) {
        (void)snprintf(each,
                       sizeof each,
                       " and %s an actor",
                       size_text(m->bytes / m->actors, text, sizeof text));
    }
    text_printf(2,
                "about %s%s, as the last %zu moves took %s each%s; %s",
                duration_text(time_us(m, d), time, sizeof time),
                bytes,
                m->count,
                duration_text(m->typical_us, typical, sizeof typical),
                each,
                m->actors == 0 && d->sum.actors > 0
                    ? "longer if actors must move: the last moves carried none"
                    : "longer if an actor is busy");
}

static void print_text(const struct diff *d, const struct measured *m, const struct rows *pairs,
                       enum rows_format format)
{
    if (d->pair_count == 0) {
        (void)printf("nothing would move\n");
    } else {
        rows_print(pairs, format);
    }
    (void)printf("\n");
    text_printf(2,
                "%" PRIu64 " vnodes, %.1f %% of all ids, about %" PRIu64
                " actors; %zu transactions in %u waves, %zu splits, %zu merges",
                d->sum.vnodes,
                (double)share_ppm(d, d->sum.cells) / (PPM / 100.0),
                d->sum.actors,
                d->transactions,
                d->waves,
                d->splits,
                d->merges);
    print_cost(d, m);
    if (d->reply->pending > 0) {
        (void)printf("%u transactions are in progress; the above comes after them\n",
                     d->reply->pending);
    }
}

static void print_number(const char *key, uint64_t value, bool known)
{
    (void)printf(known ? ",\"%s\":%" PRIu64 : ",\"%s\":null", key, value);
}

static void print_json(const struct diff *d, const struct measured *m, const struct rows *pairs)
{
    (void)printf("{\"version\":\"%s\",\"moves\":", STAMP(d->reply->version));
    rows_print(pairs, ROWS_JSON);
    print_number("vnodes", d->sum.vnodes, true);
    print_number("share_ppm", share_ppm(d, d->sum.cells), true);
    print_number("actors", d->sum.actors, true);
    print_number("bytes", bytes_of_actors(m, d->sum.actors), knows_bytes(m, d));
    print_number("time_us", time_us(m, d), m->count > 0);
    print_number("transactions", d->transactions, true);
    print_number("waves", d->waves, true);
    print_number("splits", d->splits, true);
    print_number("merges", d->merges, true);
    print_number("measured", m->count, true);
    print_number("pending", d->reply->pending, true);
    (void)printf("}\n");
}

void ring_diff_print(const struct query *q, const Rh__AdminReply *reply)
{
    struct measured measured;
    struct diff diff;
    struct rows pairs;

    measure(q, &measured);
    add_up(&diff, reply);
    put_pairs(&diff, &measured, &pairs);
    if (query_bare(q)) {
        rows_print(&pairs, ROWS_TSV);
    } else if (q->json) {
        print_json(&diff, &measured, &pairs);
    } else {
        print_text(&diff, &measured, &pairs, q->format);
    }
    rows_fini(&pairs);
    mem_free(diff.pair);
}

int ring_diff(const struct query *q, const char *what, const char *role)
{
    Rh__AdminPreview preview = RH__ADMIN_PREVIEW__INIT;
    char name[64];
    char of_role[64];

    if (!read_words(q, what, &preview)) {
        return 1;
    }
    (void)snprintf(name, sizeof name, "%s", q->argument_count == 0 ? "" : q->arguments[0]);
    (void)snprintf(of_role, sizeof of_role, "%s", strcmp(role, "default") == 0 ? "" : role);
    preview.name = name;
    preview.role = of_role;
    Rh__AdminReply *reply = query_ask(q, &preview.base);
    if (reply == NULL) {
        return 1;
    }
    ring_diff_print(q, reply);
    admin_free(reply);
    return 0;
}

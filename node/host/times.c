/* SPDX-License-Identifier: Apache-2.0
 *
 * Counts how long requests, activations and waits took.
 */
#include "node/host/inside.h"

enum { WINDOW_US = 5000000 };

const char *const times_answer_words[ANSWER_CODE_LAST + 1] = {
    [ANSWER_OK] = "ok",
    [ANSWER_APP_ERROR] = "error",
    [ANSWER_MOVED] = "moved",
    [ANSWER_BUSY] = "busy",
    [ANSWER_COLD] = "cold",
    [ANSWER_EXPIRED] = "expired",
    [ANSWER_NO_KIND] = "no_kind",
    [ANSWER_LOST] = "lost",
    [ANSWER_OVERLOAD] = "overload",
};

void times_init(struct host *h)
{
    h->times.kind = UINT32_MAX;
    for (size_t i = 0; i < h->config.kind_count; i++) {
        (void)latencies_row(&h->times.all, h->config.kinds[i].number);
    }
}

/* Most of a turn are of one kind. */
static inline struct latency_row *row_of(struct host *h, uint16_t kind)
{
    struct times *t = &h->times;

    if (t->kind != kind) {
        t->kind = kind;
        t->row = latencies_find(&t->all, kind); // rows are of hosted kinds alone
    }
    return &t->all.row[t->row];
}

void times_end_batch(struct times *t, uint64_t us)
{
    const uint32_t rows = t->all.count;

    for (uint32_t row = 0; row <= rows; row++) {
        struct latency *of = t->all.row[row].of;
        const uint32_t errors = t->errors[row];
        const uint32_t count = t->at_once[row];

        if (count > 0) {
            t->at_once[row] = t->errors[row] = 0;
            latency_add(&of[TIMES_REQUEST + ANSWER_OK], us, count - errors);
            latency_add(&of[TIMES_REQUEST + ANSWER_APP_ERROR], us, errors);
            latency_raise(&of[TIMES_MAILBOX].bucket[0], count);
        }
    }
}

void times_answered(struct host *h, uint16_t kind, uint64_t came_us, enum answer_code code)
{
    latency_add(&row_of(h, kind)->of[TIMES_REQUEST + code], h->now_us - came_us, 1);
}

void times_ran(struct host *h, uint16_t kind, const struct running *r, enum answer_code code)
{
    struct latency_row *row = row_of(h, kind);

    latency_add(&row->of[TIMES_REQUEST + code], h->now_us - r->came_us, 1);
    if (r->waited_us == 0) { // as most often
        latency_raise(&row->of[TIMES_MAILBOX].bucket[0], 1);
    } else {
        latency_add(&row->of[TIMES_MAILBOX], r->waited_us, 1);
    }
}

void times_activated(struct host *h, uint16_t kind, uint64_t began_us, bool lives)
{
    latency_add(&row_of(h, kind)->of[lives ? TIMES_ACTIVATED : TIMES_NOT_ACTIVATED],
                h->now_us - began_us,
                1);
}

uint64_t times_add_took(const struct times *t, uint32_t row, uint64_t out[LATENCY_BUCKETS])
{
    const struct latency *of = &t->all.row[row].of[TIMES_REQUEST];
    uint64_t count = 0;

    for (unsigned b = 0; b < LATENCY_BUCKETS; b++) {
        const uint64_t took =
            latency_read(&of[ANSWER_OK].bucket[b]) + latency_read(&of[ANSWER_APP_ERROR].bucket[b]);

        out[b] += took;
        count += took;
    }
    return count;
}

void times_took(const struct times *t, uint64_t out[LATENCY_BUCKETS])
{
    memset(out, 0, LATENCY_BUCKETS * sizeof *out);
    for (uint32_t row = 0; row <= t->all.count; row++) {
        (void)times_add_took(t, row, out);
    }
}

uint64_t times_deepest(const struct times *t)
{
    return t->deepest[0] > t->deepest[1] ? t->deepest[0] : t->deepest[1];
}

void times_tick(struct host *h)
{
    struct times *t = &h->times;

    if (h->now_us - t->window_us >= WINDOW_US) {
        t->window_us = h->now_us;
        t->deepest[1] = t->deepest[0];
        t->deepest[0] = 0;
    }
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Puts the pushes of one bound connection in order: what comes early waits, a
 * gap is given up in time.
 */
#include "gateway/client/pushes.h"

#include "base/mem.h"
#include "base/mutant.h"

#include <string.h>

void pushes_init(struct pushes *p, struct push_stats *stats)
{
    *p = (struct pushes){.stats = stats, .next = 1};
    list_init(&p->kept);
}

void pushes_free(struct kept_push *kept)
{
    mem_free(kept);
}

static size_t cost(const struct push_record *r)
{
    return sizeof(struct kept_push) + r->payload.size;
}

static struct kept_push *front(const struct pushes *p)
{
    struct list_link *l = list_front(&p->kept);

    return l == NULL ? NULL : CONTAINER_OF(l, struct kept_push, link);
}

static void take_out(struct pushes *p, struct kept_push *k)
{
    list_remove(&k->link);
    p->size -= cost(&k->record);
    if (list_empty(&p->kept)) {
        p->gap_us = 0;
    }
}

void pushes_fini(struct pushes *p)
{
    struct kept_push *k = NULL;

    while ((k = front(p)) != NULL) {
        take_out(p, k);
        pushes_free(k);
    }
}

static bool is_before(const struct push_record *a, const struct push_record *b)
{
    return a->round < b->round || (a->round == b->round && a->number < b->number);
}

/* What is kept of before `next`, or an older round, is of no use. */
static void drop_before(struct pushes *p)
{
    const struct push_record at = {.round = p->round, .number = p->next};
    struct kept_push *k = NULL;

    while ((k = front(p)) != NULL && is_before(&k->record, &at)) {
        if (k->record.round < p->round) {
            p->stats->dropped_stale++;
        } else {
            p->stats->dropped_copy++;
        }
        take_out(p, k);
        pushes_free(k);
        // What was waited for until now is not what is missing in front of the next.
        k = front(p);
        p->gap_us = k != NULL && k->kept_us > p->gap_us ? k->kept_us : p->gap_us;
    }
}

void pushes_begin(struct pushes *p, uint32_t round, uint64_t next)
{
    p->round = round;
    p->next = next;
    drop_before(p);
}

void pushes_skip(struct pushes *p, uint64_t next)
{
    if (next > p->next) {
        p->stats->lost += next - p->next;
        p->next = next;
        drop_before(p);
    }
}

/* The last kept one that is not behind `r`; NULL = all are. Most come at the end. */
static struct kept_push *place_of(const struct pushes *p, const struct push_record *r)
{
    for (struct list_link *l = p->kept.head.prev; l != &p->kept.head; l = l->prev) {
        struct kept_push *k = CONTAINER_OF(l, struct kept_push, link);

        if (!is_before(r, &k->record)) {
            return k;
        }
    }
    return NULL;
}

static struct kept_push *copy_of(const struct push_record *r, uint64_t now_us)
{
    struct kept_push *k = mem_new(1, sizeof *k + r->payload.size);
    uint8_t *data = (uint8_t *)(k + 1);

    k->record = *r;
    k->kept_us = now_us == 0 ? 1 : now_us;
    if (r->payload.size > 0) {
        memcpy(data, r->payload.data, r->payload.size);
    }
    k->record.payload = bytes_of(data, r->payload.size);
    return k;
}

static void keep(struct pushes *p, const struct push_record *r, bool open, uint64_t now_us)
{
    struct kept_push *before = place_of(p, r);

    if (before != NULL && !is_before(&before->record, r)) {
        p->stats->dropped_copy++;
        return;
    }
    // While they flow, who is in front leaves when it gets too much: pushes_next().
    if ((!open || r->round != p->round) && p->size + cost(r) > PUSHES_KEPT_MAX) {
        p->stats->dropped_room++;
        return;
    }
    struct kept_push *k = copy_of(r, now_us);

    list_insert_after(before == NULL ? &p->kept.head : &before->link, &k->link);
    p->size += cost(r);
    if (p->gap_us == 0) {
        p->gap_us = k->kept_us;
    }
}

bool pushes_take(struct pushes *p, const struct push_record *r, bool open, uint64_t now_us)
{
    if (r->round < p->round) {
        p->stats->dropped_stale++;
        return false;
    }
    if (r->round == p->round && r->number < p->next) {
        p->stats->dropped_copy++;
        return false;
    }
    if (!open || r->round != p->round || r->number != p->next) {
        keep(p, r, open, now_us);
        return false;
    }
    // A kept one with this number would have been delivered when `next` came to it.
    p->next++;
    return true;
}

struct kept_push *pushes_next(struct pushes *p, uint64_t now_us)
{
    struct kept_push *k = front(p);

    if (k == NULL || k->record.round != p->round) {
        return NULL;
    }
    if (k->record.number != p->next && now_us - p->gap_us < PUSHES_GAP_US &&
        p->size <= PUSHES_KEPT_MAX && !mutant(M_GAPLOST)) {
        return NULL;
    }
    p->stats->lost += k->record.number - p->next;
    p->next = k->record.number + 1;
    p->gap_us = now_us; // the next gap, if there is one, is another
    take_out(p, k);
    return k;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory of pending requests.
 */
#include "route/pending.h"

#include "base/assert.h"
#include "base/mem.h"

#include <string.h>

static const struct machine_state states[] = {
    [PENDING_WAITING] = {"waiting", TO(PENDING_SENT)},
    [PENDING_SENT] = {"sent", TO(PENDING_WAITING)},
};
const struct machine pending_machine = {"a request", states};

enum { PENDING_FETCHED = 5 * PENDING_LINE };

static void put_content(struct pending *p, const struct question *q)
{
    const size_t chain_size = q->chain_count * sizeof q->chain[0];
    uint8_t *at = p->data;

    bytes_copy(at, q->id.data, q->id.size);
    at += q->id.size;
    if (chain_size > 0) {
        memcpy(at, q->chain, chain_size);
        at += chain_size;
    }
    if (q->common != NULL) {
        return;
    }
    if (q->from != NULL) {
        struct writer w = {.at = at, .left = caller_size(q->from)};

        caller_put(&w, q->from);
        at = w.at;
    }
    bytes_copy(at, q->body.data, q->body.size);
}

/* ---- memory ---- */

/* The next that is taken: by then it is there. */
static void fetch_spare(const struct table_link *spare)
{
    const uint8_t *at = (const uint8_t *)spare;

    for (size_t i = 0; spare != NULL && i < PENDING_FETCHED; i += PENDING_LINE) {
        __builtin_prefetch(at + i, 1);
    }
}

static struct pending *take_memory(struct pending_spares *s, size_t size)
{
    const size_t class = pending_class(size);
    struct table_link *spare = class < PENDING_CLASSES ? s->of[class] : NULL;
    struct pending *p = NULL;

    if (spare != NULL) {
        p = CONTAINER_OF(spare, struct pending, link);
        s->of[class] = spare->next;
        s->size -= class * PENDING_GRAIN;
        fetch_spare(spare->next);
    } else {
        // Only the head needs to be zero, and a body may be a megabyte.
        p = mem_lines(class * PENDING_GRAIN);
    }
    pending_clear(p);
    p->size = (uint32_t)size;
    return p;
}

void pending_spares_fini(struct pending_spares *s)
{
    for (size_t i = 0; i < PENDING_CLASSES; i++) {
        while (s->of[i] != NULL) {
            struct pending *p = CONTAINER_OF(s->of[i], struct pending, link);

            s->of[i] = p->link.next;
            mem_free(p);
        }
    }
    s->size = 0;
}

/* ---- a request ---- */

struct pending *pending_new(struct pending_spares *s, const struct question *q)
{
    const size_t chain_size = q->chain_count * sizeof q->chain[0];
    const size_t own_size = (q->from == NULL ? 0 : caller_size(q->from)) + q->body.size;
    const size_t body_size = q->common == NULL ? own_size : 0;

    struct pending *p = take_memory(s, sizeof *p + q->id.size + chain_size + body_size);

    p->kind = q->kind;
    p->id_size = (uint8_t)q->id.size;
    p->chain_count = (uint8_t)q->chain_count;
    p->state = PENDING_WAITING; // STATE: new
    if (q->common != NULL) {
        p->common = shared_hold(q->common);
    }
    put_content(p, q);
    return p;
}

struct bytes pending_body(const struct pending *p)
{
    const size_t at = p->id_size + p->chain_count * sizeof(uint64_t);

    if (p->common != NULL) {
        return shared_bytes(p->common);
    }
    return (struct bytes){p->data + at, pending_body_size(p)};
}

void pending_chain(const struct pending *p, uint64_t chain[RECORD_CHAIN_MAX])
{
    if (p->chain_count > 0) {
        memcpy(chain, p->data + p->id_size, p->chain_count * sizeof chain[0]);
    }
}

bool pending_close(struct pending *p, uint8_t copy)
{
    if (!pending_is_open(p, copy)) {
        return false;
    }
    p->open &= ~pending_bit(copy);
    return true;
}

bool pending_never_ran(const struct pending *p)
{
    return p->open == 0 && !p->doubtful;
}

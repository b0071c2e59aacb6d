/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory of pending requests, and the numbers of their attempts.
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

enum { COPY_MAX = 255 };

static void put_content(struct pending *p, const struct question *q)
{
    struct writer w = {.at = p->data, .left = pending_size(p) - sizeof *p};

    put_bytes(&w, q->id.data, q->id.size);
    put_bytes(&w, q->chain, q->chain_count * sizeof q->chain[0]);
    if (q->common == NULL && q->from != NULL) {
        caller_put(&w, q->from);
    }
    put_bytes(&w, q->body.data, q->common == NULL ? q->body.size : 0);
    ASSERT(!w.bad && w.left == 0);
}

/* ---- memory ---- */

/* It is the next that is taken: by then it is there. */
static void fetch_spare(const struct table_link *spare, size_t room)
{
    const uint8_t *at = (const uint8_t *)spare;

    for (size_t i = 0; spare != NULL && i < room; i += PENDING_LINE) {
        __builtin_prefetch(at + i, 1);
    }
}

static struct pending *take_memory(struct pending_spares *s, size_t size)
{
    const size_t class = (size + PENDING_GRAIN - 1) / PENDING_GRAIN;
    const size_t room = class < PENDING_CLASSES ? class * PENDING_GRAIN : size;
    struct table_link *spare = class < PENDING_CLASSES ? s->of[class] : NULL;
    struct pending *p = NULL;

    if (spare != NULL) {
        p = CONTAINER_OF(spare, struct pending, link);
        s->of[class] = spare->next;
        s->size -= room;
        fetch_spare(s->of[class], room);
    } else {
        // Only the head needs to be zero, and a body may be a megabyte.
        p = mem_lines(room);
    }
    memset(p, 0, sizeof *p);
    p->room = (uint32_t)room;
    return p;
}

void pending_free(struct pending_spares *s, struct pending *p)
{
    const size_t class = p->room / PENDING_GRAIN;

    shared_drop(p->common);
#ifdef MEM_IS_CHECKED
    mem_free(p);
    (void)s;
    (void)class;
#else
    if (p->room % PENDING_GRAIN != 0 || class >= PENDING_CLASSES ||
        s->size + p->room > PENDING_SPARE_MAX) {
        mem_free(p);
        return;
    }
    s->size += p->room;
    p->link.next = s->of[class];
    s->of[class] = &p->link;
#endif
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

    ASSERT(q->id.size >= 1 && q->id.size <= UINT8_MAX);
    ASSERT(q->chain_count <= RECORD_CHAIN_MAX);
    ASSERT(body_size <= UINT32_MAX);
    struct pending *p = take_memory(s, sizeof *p + q->id.size + chain_size + body_size);

    p->kind = q->kind;
    p->id_size = (uint8_t)q->id.size;
    p->chain_count = (uint8_t)q->chain_count;
    p->body_size = (uint32_t)body_size;
    p->state = PENDING_WAITING; // STATE: new
    p->common = q->common == NULL ? NULL : shared_hold(q->common);
    put_content(p, q);
    return p;
}

struct bytes pending_body(const struct pending *p)
{
    const size_t at = p->id_size + p->chain_count * sizeof(uint64_t);

    if (p->common != NULL) {
        return shared_bytes(p->common);
    }
    return (struct bytes){p->data + at, p->body_size};
}

void pending_chain(const struct pending *p, uint64_t chain[RECORD_CHAIN_MAX])
{
    if (p->chain_count > 0) {
        memcpy(chain, p->data + p->id_size, p->chain_count * sizeof chain[0]);
    }
}

static uint64_t bit_of(uint8_t copy)
{
    return (uint64_t)1 << (copy & 63u);
}

uint8_t pending_last(const struct pending *p)
{
    return p->attempts == 0 ? 0 : (uint8_t)(1 + (p->attempts - 1) % COPY_MAX);
}

uint8_t pending_attempt(struct pending *p)
{
    p->attempts++;
    const uint8_t copy = pending_last(p);

    if ((p->open & bit_of(copy)) != 0) {
        p->doubtful = true;
    }
    p->open |= bit_of(copy);
    return copy;
}

bool pending_is_open(const struct pending *p, uint8_t copy)
{
    return copy != 0 && (p->open & bit_of(copy)) != 0;
}

bool pending_close(struct pending *p, uint8_t copy)
{
    if (!pending_is_open(p, copy)) {
        return false;
    }
    p->open &= ~bit_of(copy);
    return true;
}

bool pending_never_ran(const struct pending *p)
{
    return p->open == 0 && !p->doubtful;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Broadcasts that wait for the router: one payload, and the actors that it is
 * still to go to.
 */
#include "node/calls/broadcasts.h"

#include "base/assert.h"
#include "base/mem.h"
#include "base/mutant.h"
#include "wire/cursor.h"
#include "wire/record.h"

#include <string.h>

/* One thing that an actor asked for. */
struct wish {
    struct list_link in_box;
    struct call call;      /* borrows from `data`; of a broadcast, id is what is left of all */
    struct shared *common; /* owned; of a broadcast */
    uint64_t until_us;
    size_t size; /* of a broadcast: what it counts with */
    uint8_t data[];
};

/* What one actor asked for, in order. */
struct outbox {
    struct table_link by_session;
    struct list_link in_broadcasts;
    uint64_t session;
    struct list wishes;
    uint32_t bars;
    bool closed;
};

void broadcasts_init(struct broadcasts *c)
{
    *c = (struct broadcasts){.slice = BROADCASTS_SLICE};
    list_init(&c->boxes);
    list_init(&c->barred);
}

static void wish_free(struct wish *wish, _Atomic size_t *waiting)
{
    if (waiting != NULL && wish->size > 0) {
        (void)atomic_fetch_sub(waiting, wish->size);
    }
    list_remove(&wish->in_box);
    shared_drop(wish->common);
    mem_free(wish);
}

static void box_free(struct broadcasts *c, struct outbox *box)
{
    ASSERT(list_empty(&box->wishes));
    table_remove(&c->by_session, &box->by_session);
    list_remove(&box->in_broadcasts);
    mem_free(box);
}

static struct wish *first_of(const struct outbox *box)
{
    struct list_link *l = list_front(&box->wishes);

    return l == NULL ? NULL : CONTAINER_OF(l, struct wish, in_box);
}

void broadcasts_fini(struct broadcasts *c, _Atomic size_t *waiting)
{
    struct list_link *l = NULL;

    list_splice_back(&c->boxes, &c->barred);
    while ((l = list_front(&c->boxes)) != NULL) {
        struct outbox *box = CONTAINER_OF(l, struct outbox, in_broadcasts);

        while (!list_empty(&box->wishes)) {
            wish_free(first_of(box), waiting);
        }
        box_free(c, box);
    }
    table_fini(&c->by_session);
}

void broadcasts_restart(struct broadcasts *c, _Atomic size_t *waiting)
{
    broadcasts_fini(c, waiting);
    c->by_session = (struct table){0};
    c->slice = BROADCASTS_SLICE;
}

/* ---- putting in */

static struct outbox *box_find(const struct broadcasts *c, uint64_t session)
{
    // The mix is one to one: equal hashes are equal sessions.
    struct table_link *found = table_first(&c->by_session, table_mix(session));

    return found == NULL ? NULL : CONTAINER_OF(found, struct outbox, by_session);
}

static struct outbox *box_of(struct broadcasts *c, uint64_t session)
{
    struct outbox *box = box_find(c, session);

    if (box == NULL) {
        box = mem_new(1, sizeof *box);
        box->session = session;
        list_init(&box->wishes);
        table_put(&c->by_session, &box->by_session, table_mix(session));
        list_push_back(&c->boxes, &box->in_broadcasts);
    }
    return box;
}

bool broadcasts_holds(const struct broadcasts *c, uint64_t session)
{
    return !mutant(M_CASTPASS) && box_find(c, session) != NULL;
}

void broadcasts_bar(struct broadcasts *c, uint64_t session)
{
    struct outbox *box = box_of(c, session);

    box->bars++;
    list_remove(&box->in_broadcasts);
    list_push_back(&c->barred, &box->in_broadcasts);
}

void broadcasts_lift(struct broadcasts *c, uint64_t session)
{
    struct outbox *box = box_find(c, session);

    if (box == NULL || box->bars == 0 || --box->bars > 0) {
        return;
    }
    list_remove(&box->in_broadcasts);
    list_push_back(&c->boxes, &box->in_broadcasts);
}

static bool names(const struct wish *wish, const struct call *call)
{
    struct reader in = {.at = wish->call.id.data, .left = wish->call.id.size};
    bool found = false;

    if (wish->call.kind != call->kind) {
        return false;
    }
    if (wish->common == NULL) {
        return bytes_equal(wish->call.id, call->id);
    }
    while (in.left > 0 && !found) {
        const size_t size = get_u8(&in);

        found = bytes_equal(bytes_of(get_bytes(&in, size), size), call->id);
    }
    return found;
}

bool broadcasts_may_pass(const struct broadcasts *c, const struct call *call)
{
    const struct outbox *box = box_find(c, call->session);

    if (box == NULL || box->bars == 0 || call->number == 0) {
        return false;
    }
    for (struct list_link *l = list_front(&box->wishes); l != NULL;
         l = list_next(&box->wishes, l)) {
        if (names(CONTAINER_OF(l, struct wish, in_box), call)) {
            return false;
        }
    }
    return true;
}

/* As pending requests carry it: who asks, then the payload. */
static struct shared *common_of(struct broadcasts *c, const struct call *call)
{
    const struct caller from = {.kind = call->from_kind, .id = call->from};
    struct shared *s = shared_new(caller_size(&from) + call->payload.size);
    struct writer w = {.at = s->data, .left = s->size};

    caller_put(&w, &from);
    put_bytes(&w, call->payload.data, call->payload.size);
    ASSERT(!w.bad && w.left == 0);
    s->number = ++c->last_number;
    return s;
}

static struct bytes keep(uint8_t **at, struct bytes bytes)
{
    uint8_t *here = *at;

    if (bytes.size > 0) {
        memcpy(here, bytes.data, bytes.size);
    }
    *at += bytes.size;
    return bytes_of(here, bytes.size);
}

void broadcasts_put(struct broadcasts *c, const struct call *call, uint64_t until_us)
{
    const bool is_broadcast = call->count > 0;
    const size_t payload = is_broadcast ? 0 : call->payload.size;
    struct wish *wish = mem_resize(NULL, sizeof *wish + call->from.size + call->id.size + payload);
    uint8_t *at = wish->data;

    *wish = (struct wish){.call = *call, .until_us = until_us};
    wish->call.from = keep(&at, call->from);
    wish->call.id = keep(&at, call->id);
    wish->call.payload = (struct bytes){0};
    if (!is_broadcast) {
        wish->call.payload = keep(&at, call->payload);
    } else {
        wish->common = common_of(c, call);
        wish->size = broadcast_size(call);
        c->made++;
    }
    list_push_back(&box_of(c, call->session)->wishes, &wish->in_box);
}

bool broadcasts_close(struct broadcasts *c, uint64_t session)
{
    struct outbox *box = box_find(c, session);

    if (box != NULL) {
        box->closed = true;
    }
    return box != NULL;
}

/* ---- taking out */

/* The next id of a broadcast. */
static struct bytes take_id(struct wish *wish)
{
    struct bytes *ids = &wish->call.id;
    const size_t size = ids->data[0];
    const struct bytes id = {ids->data + 1, size};

    ASSERT(ids->size >= 1 + size && wish->call.count > 0);
    *ids = bytes_of(id.data + size, ids->size - 1 - size);
    wish->call.count--;
    return id;
}

/* Nothing is left of it. */
static bool is_through(const struct wish *wish)
{
    return wish->common != NULL ? wish->call.count == 0 : wish->call.timeout_ms == UINT32_MAX;
}

/* What was taken last is still borrowed then, so it goes only now. */
static void tidy(struct broadcasts *c, struct outbox *box, _Atomic size_t *waiting)
{
    struct wish *wish = first_of(box);

    if (wish != NULL && is_through(wish)) {
        wish_free(wish, waiting);
    }
    if (c->slice == 0) {
        c->slice = BROADCASTS_SLICE;
        list_remove(&box->in_broadcasts);
        list_push_back(&c->boxes, &box->in_broadcasts);
    }
}

static void next_of(struct broadcasts *c, struct wish *wish, uint64_t now_us,
                    struct broadcast_next *out)
{
    *out = (struct broadcast_next){.type = wish->common != NULL ? BROADCAST_ONE : BROADCAST_CALL,
                                   .call = wish->call,
                                   .common = wish->common,
                                   .until_us = wish->until_us,
                                   .session = wish->call.session};
    c->slice--;
    if (wish->common == NULL) {
        wish->call.timeout_ms = UINT32_MAX; // It was taken.
        return;
    }
    out->call.id = take_id(wish);
    out->call.count = 0;
    c->handed++;
    if (now_us >= wish->until_us) {
        c->late += wish->call.count;
        wish->call.count = 0;
    }
    if (mutant(M_CASTEDGE) && c->slice == 0 && wish->call.count > 0) {
        (void)take_id(wish);
    }
}

bool broadcasts_next(struct broadcasts *c, uint64_t now_us, _Atomic size_t *waiting,
                     struct broadcast_next *out)
{
    struct list_link *l = NULL;

    while ((l = list_front(&c->boxes)) != NULL) {
        struct outbox *box = CONTAINER_OF(l, struct outbox, in_broadcasts);

        tidy(c, box, waiting);
        if (list_front(&c->boxes) != l) {
            continue; // Another one's turn.
        }
        struct wish *wish = first_of(box);
        if (wish != NULL) {
            next_of(c, wish, now_us, out);
            return true;
        }
        const struct broadcast_next closed = {.type = BROADCAST_CLOSED, .session = box->session};
        const bool tells = box->closed;

        box_free(c, box);
        if (tells) {
            *out = closed;
            return true;
        }
    }
    return false;
}

static bool expired_in(struct outbox *box, uint64_t now_us, struct call_answer *out)
{
    for (struct list_link *l = list_front(&box->wishes); l != NULL;
         l = list_next(&box->wishes, l)) {
        struct wish *wish = CONTAINER_OF(l, struct wish, in_box);

        if (wish->call.number != 0 && !is_through(wish) && now_us >= wish->until_us) {
            *out = (struct call_answer){
                .worker = wish->call.worker, .number = wish->call.number, .status = RH_REJECTED};
            wish_free(wish, NULL);
            return true;
        }
    }
    return false;
}

bool broadcasts_expired(struct broadcasts *c, uint64_t now_us, struct call_answer *out)
{
    for (struct list_link *l = list_front(&c->boxes); l != NULL; l = list_next(&c->boxes, l)) {
        if (expired_in(CONTAINER_OF(l, struct outbox, in_broadcasts), now_us, out)) {
            return true;
        }
    }
    return false;
}

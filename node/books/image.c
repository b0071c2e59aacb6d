/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds and reads an actor's image: its order records, its saved answers, its
 * state.
 */
#include "node/books/image.h"

#include "base/assert.h"
#include "base/mem.h"
#include "base/mutant.h"
#include "node/books/actor.h"
#include "wire/cursor.h"
#include "wire/session.h"

enum {
    HAS_STATE = 1,
    HAS_BOND = 2,
    HAS_LONG_BOND = 4,
    HAS_VERSION = 8, /* never without a state, nor of version 0 */
    MEMORY_SHIFT = 4,
    MEMORY = 3 << MEMORY_SHIFT,
    KNOWN = HAS_STATE | HAS_BOND | HAS_LONG_BOND | HAS_VERSION | MEMORY
};

/* ---- memory ---- */

enum { BLOCK_SHARE = 4 /* of it for one image at the most */, BLOCK_GRAIN = 16 };

struct image_block {
    size_t images; /* that are in it */
    size_t used;   /* bytes */
    bool open;     /* a store puts more into it */
    _Alignas(BLOCK_GRAIN) uint8_t memory[];
};

static void block_close(struct image_block *b)
{
    b->open = false;
    if (b->images == 0) {
        mem_free(b);
    }
}

static struct image_block *block_with_room(struct image_store *store, size_t size)
{
    struct image_block *b = store->open;

    if (b != NULL && size <= store->block_size - b->used) {
        return b;
    }
    if (b != NULL) {
        block_close(b);
    }
    b = mem_resize(NULL, sizeof *b + store->block_size);
    b->images = b->used = 0;
    b->open = true;
    store->open = b;
    return b;
}

static struct image *block_take(struct image_store *store, size_t size)
{
    const size_t whole = (size + BLOCK_GRAIN - 1) / BLOCK_GRAIN * BLOCK_GRAIN;
    struct image_block *b = block_with_room(store, whole);
    struct image *image = (void *)(b->memory + b->used);

    b->used += whole;
    b->images++;
    image->block = b;
    return image;
}

static void block_give(struct image_block *b)
{
    b->images--;
    if (b->images == 0 && b->open) {
        b->used = 0;
    } else if (b->images == 0) {
        mem_free(b);
    }
}

void image_store_fini(struct image_store *store)
{
    if (store->open != NULL) {
        block_close(store->open);
    }
    store->open = NULL;
}

static bool is_stored(const struct image_store *store, size_t size)
{
#ifdef MEM_IS_CHECKED
    (void)size;
    (void)store;
    return false;
#else
    return store != NULL && size <= store->block_size / BLOCK_SHARE;
#endif
}

static struct image *image_new(struct image_name name, size_t data_size, struct image_store *store)
{
    // All of its memory is written to: to clear it first is one more walk over what moves.
    const size_t size = sizeof(struct image) + name.id.size + data_size;
    const bool stored = is_stored(store, size);
    struct image *image = stored ? block_take(store, size) : mem_resize(NULL, size);

    *image = (struct image){.refs = 1, .block = stored ? image->block : NULL};
    image->position = name.position;
    image->kind = name.kind;
    memcpy(image->memory, name.id.data, name.id.size);
    image->id = bytes_of(image->memory, name.id.size);
    image->data = bytes_of(image->memory + name.id.size, data_size);
    return image;
}

struct image *image_share(struct image *image)
{
    image->refs++;
    return image;
}

void image_free(struct image *image)
{
    if (image == NULL || --image->refs > 0) {
        return;
    }
    if (image->block != NULL) {
        block_give(image->block);
    } else {
        mem_free(image);
    }
}

/* ---- what is in it ---- */

static struct image_order get_order(struct reader *in)
{
    struct image_order order = {0};

    order.session = get_u64(in);
    order.epoch = get_u32(in);
    order.last = get_u64(in);
    order.base = get_u64(in);
    order.answer_count = get_u8(in);
    return order;
}

static struct order_answer get_answer(struct reader *in)
{
    struct order_answer a = {0};

    a.seq = get_u64(in);
    a.fence = get_u64(in);
    a.code = get_u8(in);
    const size_t size = get_u32(in);
    const uint8_t *at = get_bytes(in, size);
    a.body = bytes_of(at, at == NULL ? 0 : size);
    return a;
}

/* One order record is sound: its answers grow, and none is of a request that has not run. */
static bool look_order(struct reader *in)
{
    const struct image_order order = get_order(in);
    uint64_t before = 0;

    for (unsigned i = 0; i < order.answer_count && !in->bad; i++) {
        const struct order_answer a = get_answer(in);

        if (a.seq <= before || a.seq > order.last || a.code > ANSWER_APP_ERROR ||
            a.body.size > ORDER_ANSWER_MAX) {
            return false;
        }
        before = a.seq;
    }
    return !in->bad && order.answer_count <= ORDER_ANSWERS_MAX;
}

static size_t get_bond_size(struct reader *in, uint8_t flags)
{
    if ((flags & HAS_LONG_BOND) != 0) {
        return get_u32(in);
    }
    return (flags & HAS_BOND) != 0 ? BOND_SIZE : 0;
}

static uint8_t bond_flag(struct bytes bond)
{
    if (bond.size == 0) {
        return 0;
    }
    return bond.size == BOND_SIZE ? HAS_BOND : HAS_LONG_BOND;
}

/* Find state and orders in the data. False if it is no image. */
static bool look(struct image *image)
{
    struct reader in = {.at = image->data.data, .left = image->data.size};
    const uint8_t format = get_u8(&in);
    const uint8_t flags = get_u8(&in);
    const uint16_t zero = get_u16(&in);

    image->order_count = get_u32(&in);
    image->actor_memory = (flags & MEMORY) >> MEMORY_SHIFT;
    if (in.bad || format != IMAGE_FORMAT || (flags & ~KNOWN) != 0 || zero != 0 ||
        image->order_count > in.left / IMAGE_ORDER_SIZE) {
        return false;
    }
    for (uint32_t i = 0; i < image->order_count; i++) {
        if (!look_order(&in)) {
            return false;
        }
    }
    const bool versioned = (flags & HAS_VERSION) != 0;
    image->state_version = versioned ? get_u32(&in) : 0;
    const size_t bond_size = get_bond_size(&in, flags);
    image->bond = bytes_of(in.at, bond_size);
    (void)get_bytes(&in, bond_size);
    image->has_state = (flags & HAS_STATE) != 0;
    image->state = bytes_of(in.at, in.left);
    return !in.bad && (image->has_state || (image->state.size == 0 && !versioned)) &&
           versioned == (image->state_version != 0);
}

/* How many of the record's answers stay behind, its oldest, by what is left of the budget. */
struct sending {
    size_t skip;
    uint8_t count;
    size_t size;
};

static struct sending answers_to_send(const struct orders *o, const struct order *order,
                                      size_t left)
{
    struct sending s = {.count = (uint8_t)order_saved_count(o, order)};
    struct order_answer a;

    for (struct order_walk at = {0}; order_walk(o, order, &at, &a);) {
        s.size += IMAGE_ANSWER_SIZE + a.body.size;
    }
    for (struct order_walk at = {0}; s.size > left && order_walk(o, order, &at, &a);) {
        s.size -= IMAGE_ANSWER_SIZE + a.body.size;
        s.skip++;
        s.count--;
    }
    return s;
}

static void put_order(struct writer *w, const struct orders *o, const struct order *order,
                      struct sending s)
{
    struct order_answer a;

    put_u64(w, order->session);
    put_u32(w, order->epoch);
    put_u64(w, order->last);
    put_u64(w, order->base);
    put_u8(w, s.count);
    for (struct order_walk at = {0}; order_walk(o, order, &at, &a);) {
        if (s.skip > 0) {
            s.skip--;
            continue;
        }
        put_u64(w, a.seq);
        put_u64(w, a.fence);
        put_u8(w, a.code);
        put_u32(w, (uint32_t)a.body.size);
        put_bytes(w, a.body.data, a.body.size);
    }
}

struct image *image_make(struct image_name name, const struct orders *o, const struct actor *a,
                         const struct bytes *state)
{
    return image_make_bound(name, &(struct image_cargo){.orders = o, .actor = a, .state = state});
}

/* Of the first few order records; what more there are is reckoned twice. */
enum { SENDING_KEPT = 8 };

struct sendings {
    struct sending kept[SENDING_KEPT];
    uint32_t count;
    size_t size; /* of all, with their heads */
};

static struct sendings all_to_send(const struct orders *o, const struct actor *a)
{
    const struct order *order = a == NULL || mutant(M_NOXFER) ? NULL : order_first(o, a);
    struct sendings all;

    all.count = 0;
    all.size = 0;
    for (size_t left = IMAGE_ANSWERS_SIZE_MAX; order != NULL; order = order_next(o, a, order)) {
        const struct sending s = answers_to_send(o, order, left);

        if (all.count < SENDING_KEPT) {
            all.kept[all.count] = s;
        }
        left -= s.size;
        all.size += IMAGE_ORDER_SIZE + s.size;
        all.count++;
    }
    return all;
}

static void put_orders(struct writer *w, const struct orders *o, const struct actor *a,
                       const struct sendings *all)
{
    const struct order *order = all->count == 0 ? NULL : order_first(o, a);
    size_t left = IMAGE_ANSWERS_SIZE_MAX;

    for (uint32_t i = 0; i < all->count; i++, order = order_next(o, a, order)) {
        const struct sending s = i < SENDING_KEPT ? all->kept[i] : answers_to_send(o, order, left);

        left -= s.size;
        put_order(w, o, order, s);
    }
}

struct image *image_make_bound(struct image_name name, const struct image_cargo *cargo)
{
    const struct bytes *state = cargo->state;
    const struct bytes bond = cargo->bond;
    const size_t state_size = state == NULL ? 0 : state->size;
    const struct sendings all = all_to_send(cargo->orders, cargo->actor);
    const uint8_t bond_is = bond_flag(bond);
    const uint32_t version = state == NULL ? 0 : cargo->state_version;
    const uint8_t memory = cargo->actor == NULL ? MEMORY_NONE : cargo->actor->memory;
    const size_t prefix = (bond_is == HAS_LONG_BOND ? 4u : 0u) + (version != 0 ? 4u : 0u);
    const size_t size = IMAGE_HEADER_SIZE + prefix + bond.size + state_size + all.size;
    struct image *image = image_new(name, size, cargo->store);
    struct writer w = {.at = image->memory + name.id.size, .left = size};

    put_u8(&w, IMAGE_FORMAT);
    put_u8(&w,
           (uint8_t)((state == NULL ? 0 : HAS_STATE) | bond_is | (version == 0 ? 0 : HAS_VERSION) |
                     memory << MEMORY_SHIFT));
    put_u16(&w, 0);
    put_u32(&w, all.count);
    put_orders(&w, cargo->orders, cargo->actor, &all);
    if (version != 0) {
        put_u32(&w, version);
    }
    if (bond_is == HAS_LONG_BOND) {
        put_u32(&w, (uint32_t)bond.size);
    }
    image->state_version = version;
    image->order_count = all.count;
    image->bond = bytes_of(w.at, bond.size);
    put_bytes(&w, bond.data, bond.size);
    image->actor_memory = memory;
    image->has_state = state != NULL;
    image->state = bytes_of(w.at, state_size);
    put_bytes(&w, state == NULL ? NULL : state->data, state_size);
    ASSERT(!w.bad && w.left == 0);
    return image;
}

struct image *image_parse(struct image_name name, struct bytes data, struct image_store *store)
{
    struct image *image = image_new(name, data.size, store);

    if (data.size > 0) {
        memcpy(image->memory + name.id.size, data.data, data.size);
    }
    if (!look(image)) {
        image_free(image);
        return NULL;
    }
    return image;
}

struct image_walk image_walk(const struct image *image)
{
    return (struct image_walk){
        .in = {.at = image->data.data + IMAGE_HEADER_SIZE,
               .left = image->data.size - image_carried(image).size - IMAGE_HEADER_SIZE},
        .orders_left = image->order_count,
    };
}

bool image_next_answer(struct image_walk *w, struct order_answer *out)
{
    if (w->answers_left == 0) {
        return false;
    }
    w->answers_left--;
    *out = get_answer(&w->in);
    ASSERT(!w->in.bad);
    return true;
}

bool image_next_order(struct image_walk *w, struct image_order *out)
{
    struct order_answer skipped;

    while (image_next_answer(w, &skipped)) {
    }
    if (w->orders_left == 0) {
        return false;
    }
    w->orders_left--;
    *out = get_order(&w->in);
    ASSERT(!w->in.bad);
    w->answers_left = out->answer_count;
    return true;
}

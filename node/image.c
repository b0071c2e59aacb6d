/* SPDX-License-Identifier: Apache-2.0 */
#include "node/image.h"

#include "base/assert.h"
#include "base/mem.h"
#include "base/mutant.h"
#include "wire/cursor.h"

enum { HAS_STATE = 1 };

static struct image *image_new(struct image_name name, size_t data_size)
{
    struct image *image = mem_new(1, sizeof *image + name.id.size + data_size);

    image->refs = 1;
    image->position = name.position;
    image->kind = name.kind;
    memcpy(image->memory, name.id.data, name.id.size);
    image->id = bytes_of(image->memory, name.id.size);
    image->data = bytes_of(image->memory + name.id.size, data_size);
    return image;
}

/* Find state and orders in the data. False if it is no image. */
static bool look(struct image *image)
{
    struct reader in = {.at = image->data.data, .left = image->data.size};
    const uint8_t format = get_u8(&in);
    const uint8_t flags = get_u8(&in);
    const uint16_t zero = get_u16(&in);

    image->order_count = get_u32(&in);
    if (in.bad || format != IMAGE_FORMAT || (flags & ~HAS_STATE) != 0 || zero != 0 ||
        image->order_count > in.left / IMAGE_ORDER_SIZE) {
        return false;
    }
    (void)get_bytes(&in, (size_t)image->order_count * IMAGE_ORDER_SIZE);
    image->has_state = (flags & HAS_STATE) != 0;
    image->state = bytes_of(in.at, in.left);
    return image->has_state || image->state.size == 0;
}

struct image *image_make(struct image_name name, const struct list *orders,
                         const struct bytes *state)
{
    const size_t state_size = state == NULL ? 0 : state->size;
    uint32_t count = 0;

    for (struct list_link *l = list_front(orders); l != NULL; l = list_next(orders, l)) {
        count++;
    }
    if (mutant(M_NOXFER)) {
        count = 0;
    }
    const size_t size = IMAGE_HEADER_SIZE + (size_t)count * IMAGE_ORDER_SIZE + state_size;
    struct image *image = image_new(name, size);
    struct writer w = {.at = image->memory + name.id.size, .left = size};
    put_u8(&w, IMAGE_FORMAT);
    put_u8(&w, state == NULL ? 0 : HAS_STATE);
    put_u16(&w, 0);
    put_u32(&w, count);
    for (struct list_link *l = list_front(orders); count > 0; l = list_next(orders, l), count--) {
        const struct order *order = CONTAINER_OF(l, struct order, of_actor);

        put_u64(&w, order->session);
        put_u32(&w, order->epoch);
        put_u64(&w, order->last);
        put_u64(&w, order->base);
    }
    put_bytes(&w, state == NULL ? NULL : state->data, state_size);
    ASSERT(!w.bad && w.left == 0);
    const bool sound = look(image);
    ASSERT(sound);
    return image;
}

struct image *image_parse(struct image_name name, struct bytes data)
{
    struct image *image = image_new(name, data.size);

    if (data.size > 0) {
        memcpy(image->memory + name.id.size, data.data, data.size);
    }
    if (!look(image)) {
        image_free(image);
        return NULL;
    }
    return image;
}

struct image *image_share(struct image *image)
{
    image->refs++;
    return image;
}

void image_free(struct image *image)
{
    if (image != NULL && --image->refs == 0) {
        mem_free(image);
    }
}

struct image_order image_order_at(const struct image *image, uint32_t index)
{
    const size_t at = IMAGE_HEADER_SIZE + (size_t)index * IMAGE_ORDER_SIZE;
    struct reader in = {.at = image->data.data + at, .left = IMAGE_ORDER_SIZE};
    struct image_order order = {0};

    ASSERT(index < image->order_count);
    order.session = get_u64(&in);
    order.epoch = get_u32(&in);
    order.last = get_u64(&in);
    order.base = get_u64(&in);
    return order;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Encodes and decodes commands and their values.
 */
#include "wire/args.h"

#include "base/assert.h"
#include "wire/cursor.h"

void args_put(struct buffer *out, const struct args *args)
{
    size_t size = 1;

    ASSERT(args->count >= 1 && args->count <= ARGS_MAX);
    for (size_t i = 0; i < args->count; i++) {
        ASSERT(args->arg[i].size <= UINT32_MAX);
        size += sizeof(uint32_t) + args->arg[i].size;
    }
    struct writer w = {.at = buffer_reserve(out, size), .left = size};
    put_u8(&w, args->count);
    for (size_t i = 0; i < args->count; i++) {
        put_u32(&w, (uint32_t)args->arg[i].size);
        put_bytes(&w, args->arg[i].data, args->arg[i].size);
    }
    ASSERT(!w.bad && w.left == 0);
    out->size += size;
}

void args_command_store(uint8_t *at, const struct args_command *c)
{
    args_command_put(at, c);
}

enum err args_get(struct bytes in, struct args *args)
{
    struct args_rest rest = {0};
    const size_t count = args_begin(&rest, in);
    size_t i = 0;

    while (i < count && args_next(&rest, &args->arg[i])) {
        i++;
    }
    args->count = i == count && rest.left == 0 ? (uint8_t)count : 0;
    return args->count > 0 ? ERR_OK : ERR_CORRUPT;
}

static bool is_line_break(uint8_t c)
{
    return c == '\r' || c == '\n';
}

static bool has_line_break(struct bytes text)
{
    for (size_t i = 0; i < text.size; i++) {
        if (is_line_break(text.data[i])) {
            return true;
        }
    }
    return false;
}

void value_put(struct buffer *out, const struct value *value)
{
    const uint8_t type = (uint8_t)value->type;

    buffer_put(out, &type, sizeof type);
    switch (value->type) {
    case VALUE_INTEGER: {
        struct writer w = {.at = buffer_reserve(out, sizeof(uint64_t)), .left = sizeof(uint64_t)};

        put_u64(&w, (uint64_t)value->integer);
        out->size += sizeof(uint64_t);
        break;
    }
    case VALUE_BULK:
        buffer_put(out, value->text.data, value->text.size);
        break;
    case VALUE_SIMPLE:
    case VALUE_ERROR: {
        const size_t at = out->size;

        buffer_put(out, value->text.data, value->text.size);
        for (size_t i = at; i < out->size; i++) {
            if (is_line_break(out->data[i])) {
                out->data[i] = ' ';
            }
        }
        break;
    }
    case VALUE_NIL:
        break;
    }
}

enum err value_get(struct bytes in, struct value *value)
{
    struct reader r = {.at = in.data, .left = in.size};
    const uint8_t type = get_u8(&r);

    value->type = VALUE_NIL;
    value->integer = 0;
    value->text = (struct bytes){0};
    if (r.bad) {
        return ERR_CORRUPT;
    }
    switch (type) {
    case VALUE_INTEGER:
        value->integer = (int64_t)get_u64(&r);
        break;
    case VALUE_SIMPLE:
    case VALUE_ERROR:
        if (has_line_break((struct bytes){r.at, r.left})) {
            return ERR_CORRUPT;
        }
        value->text = bytes_of(r.at, r.left);
        r.left = 0;
        break;
    case VALUE_BULK:
        value->text = bytes_of(r.at, r.left);
        r.left = 0;
        break;
    case VALUE_NIL:
        break;
    default:
        return ERR_CORRUPT;
    }
    value->type = (enum value_type)type;
    return r.bad || r.left != 0 ? ERR_CORRUPT : ERR_OK;
}

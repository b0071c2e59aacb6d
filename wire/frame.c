/* SPDX-License-Identifier: Apache-2.0
 *
 * Puts and reads the header of a frame.
 */
#include "wire/frame.h"

#include "base/assert.h"
#include "wire/cursor.h"

enum { TYPE_AT = 4, COUNT_AT = 6 };

static bool type_is_known(uint8_t type)
{
    return (type >= FRAME_HELLO && type <= FRAME_PONG) ||
           (type >= FRAME_CONTROL && type <= FRAME_RAFT) || frame_type_has_records(type) ||
           frame_type_is_stream(type);
}

static bool type_is_counted(uint8_t type)
{
    return frame_type_has_records(type) || type == FRAME_STREAM_REQUEST ||
           type == FRAME_STREAM_ANSWER;
}

bool frame_type_has_records(uint8_t type)
{
    return type >= FRAME_REQUEST && type <= FRAME_PUSH;
}

enum err frame_decode(struct bytes in, size_t size_max, struct frame *frame, size_t *size)
{
    struct reader r = {.at = in.data, .left = in.size};

    // Each part is judged as soon as it is there: a stranger's "GET /" is
    // refused at once and not waited on for the 500 MB that it spells.
    *size = 0;
    if (in.size < TYPE_AT) {
        return ERR_BUSY;
    }
    const uint32_t whole = get_u32(&r);
    if (whole < FRAME_HEADER_SIZE || whole > size_max) {
        return ERR_CORRUPT;
    }
    *size = whole;
    if (in.size > TYPE_AT && !type_is_known(in.data[TYPE_AT])) {
        return ERR_CORRUPT;
    }
    if (in.size < FRAME_HEADER_SIZE) {
        return ERR_BUSY;
    }
    const uint8_t type = get_u8(&r);
    const uint8_t flags = get_u8(&r);
    const uint16_t count = get_u16(&r);
    if (count == 0 || (count != 1 && !type_is_counted(type)) ||
        (flags != 0 && (flags != FRAME_MARK || !frame_type_has_records(type)))) {
        return ERR_CORRUPT;
    }
    if (in.size < whole) {
        return ERR_BUSY;
    }
    *frame = (struct frame){
        .type = (enum frame_type)type,
        .flags = flags,
        .count = count,
        .body = {r.at, whole - FRAME_HEADER_SIZE},
    };
    return ERR_OK;
}

size_t frame_begin(struct buffer *out, enum frame_type type, uint8_t flags)
{
    const size_t at = out->size;
    struct writer w = {.at = buffer_reserve(out, FRAME_HEADER_SIZE), .left = FRAME_HEADER_SIZE};

    put_u32(&w, FRAME_HEADER_SIZE);
    put_u8(&w, (uint8_t)type);
    put_u8(&w, flags);
    put_u16(&w, 1);
    out->size += FRAME_HEADER_SIZE;
    return at;
}

void frame_end(struct buffer *out, size_t at, uint16_t count)
{
    const size_t size = out->size - at;
    struct writer w = {.at = out->data + at, .left = TYPE_AT};

    ASSERT(at + FRAME_HEADER_SIZE <= out->size);
    ASSERT(size <= FRAME_SIZE_MAX);
    ASSERT(count > 0);
    put_u32(&w, (uint32_t)size);
    w = (struct writer){.at = out->data + at + COUNT_AT, .left = FRAME_HEADER_SIZE - COUNT_AT};
    put_u16(&w, count);
}

void frame_put(struct buffer *out, enum frame_type type, uint16_t count, struct bytes body)
{
    const size_t at = frame_begin(out, type, 0);

    buffer_put(out, body.data, body.size);
    frame_end(out, at, count);
}

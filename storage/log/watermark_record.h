/* SPDX-License-Identifier: Apache-2.0
 *
 * What a coordinator's witness file holds (storage/log/number.h keeps it): the
 * highest number and log index that the folder has applied. Pure.
 */
#ifndef STORAGE_LOG_WATERMARK_RECORD_H
#define STORAGE_LOG_WATERMARK_RECORD_H

#include "base/bytes.h"
#include "wire/cursor.h"

enum { WATERMARK_RECORD_SIZE = 16 };

struct watermark_record {
    uint64_t number;
    uint64_t index;
};

// NOLINTNEXTLINE(readability-non-const-parameter): it is written through the cursor
static inline void watermark_record_encode(uint8_t out[WATERMARK_RECORD_SIZE],
                                           const struct watermark_record *note)
{
    struct writer w = {.at = out, .left = WATERMARK_RECORD_SIZE};

    put_u64(&w, note->number);
    put_u64(&w, note->index);
}

/* Decode a record. No bytes are those of a new folder: all zero. False: these bytes are no
 * record. */
static inline bool watermark_record_decode(struct bytes in, struct watermark_record *note)
{
    struct reader r = {.at = in.data, .left = in.size};

    *note = (struct watermark_record){0};
    if (in.size == 0) {
        return true;
    }
    note->number = get_u64(&r);
    note->index = get_u64(&r);
    return !r.bad && r.left == 0;
}

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * What a coordinator's witness file holds (storage/log/number.h keeps it): the
 * highest number and log index that the folder has applied. Pure.
 */
#ifndef STORAGE_LOG_NOTE_H
#define STORAGE_LOG_NOTE_H

#include "base/bytes.h"
#include "wire/cursor.h"

enum { NOTE_SIZE = 16 };

struct witness_note {
    uint64_t number;
    uint64_t index;
};

// NOLINTNEXTLINE(readability-non-const-parameter): it is written through the cursor
static inline void note_encode(uint8_t out[NOTE_SIZE], const struct witness_note *note)
{
    struct writer w = {.at = out, .left = NOTE_SIZE};

    put_u64(&w, note->number);
    put_u64(&w, note->index);
}

/* No bytes are a new folder's: all zero. False: it is none. */
static inline bool note_decode(struct bytes in, struct witness_note *note)
{
    struct reader r = {.at = in.data, .left = in.size};

    *note = (struct witness_note){0};
    if (in.size == 0) {
        return true;
    }
    note->number = get_u64(&r);
    note->index = get_u64(&r);
    return !r.bad && r.left == 0;
}

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps the pushes that a client has not acknowledged, within a limit of bytes.
 */
#include "node/runtime/unacked_pushes.h"

#include "base/assert.h"
#include "base/mutant.h"

enum { SIZE_SIZE = 4 };

void unacked_pushes_fini(struct unacked_pushes *u)
{
    buffer_fini(&u->bytes);
    *u = (struct unacked_pushes){0};
}

struct bytes unacked_pushes_bytes(const struct unacked_pushes *u)
{
    struct bytes all = buffer_bytes(&u->bytes);

    if (u->count > 0) {
        all = bytes_of(all.data + u->at, all.size - u->at);
    }
    return all;
}

static void drop_oldest(struct unacked_pushes *u)
{
    struct reader r = {.at = u->bytes.data + u->at, .left = u->bytes.size - u->at};
    struct bytes payload;
    const bool has = unacked_pushes_next(&r, &payload);

    ASSERT(has);
    u->at = u->bytes.size - r.left;
    u->count--;
}

/* Moved down only when that is at most what was dropped; given back when nothing is left. */
static void tidy(struct unacked_pushes *u)
{
    if (u->count == 0) {
        unacked_pushes_fini(u);
    } else if (u->at > u->bytes.size / 2) {
        buffer_consume(&u->bytes, u->at);
        u->at = 0;
    }
}

void unacked_pushes_put(struct unacked_pushes *u, struct bytes payload)
{
    const size_t size = SIZE_SIZE + payload.size;

    while (u->count > 0 && u->bytes.size - u->at + size > BOND_UNACKED_MAX) {
        if (mutant(M_NEWESTGONE)) {
            return;
        }
        drop_oldest(u);
    }
    tidy(u);
    if (size > BOND_UNACKED_MAX) {
        return;
    }
    struct writer w = {.at = buffer_reserve(&u->bytes, size), .left = size};

    put_u32(&w, (uint32_t)payload.size);
    put_bytes(&w, payload.data, payload.size);
    ASSERT(!w.bad && w.left == 0);
    u->bytes.size += size;
    u->count++;
}

void unacked_pushes_drop(struct unacked_pushes *u, uint64_t last, uint64_t got)
{
    while (u->count > 0 && last - u->count + 1 <= got) {
        drop_oldest(u);
    }
    tidy(u);
}

void unacked_pushes_load(struct unacked_pushes *u, struct bytes bytes)
{
    struct reader r = {.at = bytes.data, .left = bytes.size};
    struct bytes payload;

    ASSERT(u->count == 0);
    while (unacked_pushes_next(&r, &payload)) {
        unacked_pushes_put(u, payload);
    }
}

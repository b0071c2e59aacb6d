/* SPDX-License-Identifier: Apache-2.0
 *
 * A request's packet that is made once: of each request only its name and the number in its id
 * differ, so to ask costs a copy and not an encoder. Ids are of one length ("b0001" to "b1000"),
 * hence so are the packets.
 */
#ifndef LOAD_MOULD_H
#define LOAD_MOULD_H

#include "base/bytes.h"

struct mould {
    struct buffer packet; /* owned */
    size_t digits_at;     /* of the id, in the packet */
    size_t digits;
};

struct mould_config {
    uint32_t ids;  /* 1.. */
    uint32_t size; /* bytes of the payload */
    uint16_t kind;
};

void mould_init(struct mould *m, const struct mould_config *config);
void mould_fini(struct mould *m);

/* Append a request of that name to entity number `id`, which is 1 to `ids`. */
void mould_put(const struct mould *m, struct buffer *out, uint32_t request, uint32_t id);

#endif

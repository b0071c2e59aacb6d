/* SPDX-License-Identifier: Apache-2.0
 *
 * The memory of an actor that has something to lose: bytes that every request
 * changes, and that must arrive as they left when the actor moves. For the
 * ledger actor: a rolling restart of 100,000 of them proves that no byte of
 * their memory is lost (tests/e2e/fault/fault_rolling_restart.py).
 */
#ifndef DEMO_BALLAST_H
#define DEMO_BALLAST_H

#include "wire/cursor.h"

#include <ringhold.h>
#include <stdint.h>

enum { BALLAST_MAX = 1024 * 1024 };

struct ballast {
    uint8_t *byte; /* owned; NULL = none */
    uint32_t size;
};

/* Make a ballast of `size` bytes, up to BALLAST_MAX, that depend on `id_hash`; 0 = none. */
void ballast_init(struct ballast *b, uint32_t size, uint64_t id_hash);
void ballast_fini(struct ballast *b);
/* Change the ballast, as a request does. */
void ballast_touch(struct ballast *b, uint64_t seq);
/* Write it and its checksum into the state that is handed over; nothing when there is none. */
void ballast_put(const struct ballast *b, struct rh_out *out);
/* Read what ballast_put() wrote over it. False: it is not of this size, or not as it left. */
bool ballast_get(struct ballast *b, struct reader *in);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * ring_decode() of anything: what it accepts is a ring and encodes to the same
 * bytes. Most inputs end at the checksum, so each is tried again with it set right.
 */
#include "base/assert.h"
#include "base/crc.h"
#include "ring/ring.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void decode(struct bytes in)
{
    struct buffer out = {0};
    struct ring r;

    if (ring_decode(&r, in) == ERR_OK) {
        ring_check_invariants(&r);
        ring_encode(&r, &out);
        ASSERT(bytes_equal(buffer_bytes(&out), in));
        buffer_fini(&out);
    } else {
        ASSERT(r.vnode_count == 0);
    }
    ring_fini(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buffer sealed = {0};

    decode(bytes_of(data, size));
    if (size >= 4) {
        uint32_t crc = crc32c(data, size - 4);

        buffer_put(&sealed, data, size - 4);
        for (unsigned i = 0; i < 4; i++) {
            uint8_t byte = (uint8_t)(crc >> (8 * i));

            buffer_put(&sealed, &byte, 1);
        }
        decode(buffer_bytes(&sealed));
        buffer_fini(&sealed);
    }
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as a stream of frames: no crash, and what decodes encodes to the
 * same bytes.
 */
#include "base/assert.h"
#include "wire/frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes rest = bytes_of(data, size);
    struct frame frame;
    size_t taken;

    while (frame_decode(rest, FRAME_SIZE_MAX, &frame, &taken) == ERR_OK) {
        struct buffer again = {0};

        const size_t at = frame_begin(&again, frame.type, frame.flags);
        buffer_put(&again, frame.body.data, frame.body.size);
        frame_end(&again, at, frame.count);
        ASSERT(bytes_equal(buffer_bytes(&again), bytes_of(rest.data, taken)));
        buffer_fini(&again);
        rest = bytes_of(rest.data + taken, rest.size - taken);
    }
    return 0;
}

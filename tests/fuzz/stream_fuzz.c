/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as a frame of a stream. What decodes encodes to the same bytes.
 */
#include "base/mem.h"
#include "wire/stream.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The next record off `in`, encoded again; size 0: it does not decode. */
static size_t again(uint8_t type, struct reader *in, uint8_t *out)
{
    if (type == STREAM_REQUEST) {
        struct stream_request request;

        if (stream_request_get(in, &request) == ERR_OK) {
            stream_request_store(out, &request);
            return stream_request_size(&request);
        }
    } else {
        struct stream_answer answer;

        if (stream_answer_get(in, &answer) == ERR_OK) {
            stream_answer_store(out, &answer);
            return stream_answer_size(&answer);
        }
    }
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct stream_head head;
    struct reader in;

    if (size < FRAME_HEADER_SIZE) {
        return 0;
    }
    const struct frame f = {.type = (enum frame_type)data[4],
                            .count = load_u16(data + 6),
                            .body = bytes_of(data + FRAME_HEADER_SIZE, size - FRAME_HEADER_SIZE)};
    if (stream_head_get(&f, &head, &in) != ERR_OK) {
        return 0;
    }
    uint8_t *out = mem_new(1, size + STREAM_HEADER_SIZE);
    stream_head_store(out, (enum stream_frame)data[4], &head);
    ASSERT(memcmp(out + FRAME_HEADER_SIZE, data + FRAME_HEADER_SIZE, 40) == 0);
    for (unsigned i = 0; data[4] <= STREAM_ANSWER && i < f.count; i++) {
        const uint8_t *from = in.at;
        const size_t back = again(data[4], &in, out);

        if (back == 0) {
            break;
        }
        ASSERT(back == (size_t)(in.at - from) && memcmp(out, from, back) == 0);
    }
    mem_free(out);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as records; the first byte says of which kind. What decodes
 * encodes to the same bytes.
 */
#include "base/assert.h"
#include "wire/record.h"
#include "wire/session.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static enum err again(uint8_t kind, struct reader *r, struct buffer *out)
{
    enum err e = ERR_CORRUPT;

    if (kind == 0) {
        struct request_record request;

        if ((e = request_get(r, &request)) == ERR_OK) {
            request_put(out, &request);
        }
    } else if (kind == 1) {
        struct answer_record answer;

        if ((e = answer_get(r, &answer)) == ERR_OK) {
            answer_put(out, &answer);
        }
    } else if (kind == 2) {
        struct state_record state;

        if ((e = state_get(r, &state)) == ERR_OK) {
            state_put(out, &state);
        }
    } else if (kind == 4) {
        struct push_record push;

        if ((e = push_get(r, &push)) == ERR_OK) {
            push_put(out, &push);
        }
    } else {
        struct state_ack_record ack;

        if ((e = state_ack_get(r, &ack)) == ERR_OK) {
            state_ack_put(out, &ack);
        }
    }
    return e;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buffer out = {0};

    if (size == 0) {
        return 0;
    }
    struct reader r = {.at = data + 1, .left = size - 1};
    while (again(data[0] % 5, &r, &out) == ERR_OK) {
    }
    ASSERT(bytes_equal(buffer_bytes(&out), bytes_of(data + 1, out.size)));
    buffer_fini(&out);
    return 0;
}

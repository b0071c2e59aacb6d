/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as RESP. However they are cut, the same commands come out.
 */
#include "base/assert.h"
#include "gateway/protocol/resp.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Parse all of `in`, shown to the parser in steps of `step` bytes; append the commands to `log`. */
static void run(struct bytes in, size_t step, struct buffer *log)
{
    struct resp_parser p = {0};
    struct buffer scratch = {0};
    struct resp_output out;
    size_t at = 0;
    size_t have = 0;

    while (at < in.size) {
        const enum resp_result result =
            resp_parse(&p, bytes_of(in.data + at, have - at), &scratch, &out);

        if (result == RESP_ERROR) {
            buffer_put(log, "!", 1);
            break;
        }
        if (result == RESP_MORE) {
            at += out.taken;
            if (have == in.size) {
                break;
            }
            have = in.size - have < step ? in.size : have + step;
            continue;
        }
        ASSERT(out.taken > 0 && out.taken <= have - at);
        if (result == RESP_REFUSED) {
            buffer_put(log, out.error, strlen(out.error));
        }
        for (size_t i = 0; i < out.command.count; i++) {
            buffer_put(log, &out.command.arg[i].size, sizeof(size_t));
            buffer_put(log, out.command.arg[i].data, out.command.arg[i].size);
        }
        at += out.taken;
    }
    buffer_fini(&scratch);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buffer whole = {0};
    struct buffer cut = {0};

    run(bytes_of(data, size), size, &whole);
    run(bytes_of(data, size), size == 0 ? 1 : 1 + data[0] % 7u, &cut);
    ASSERT(bytes_equal(buffer_bytes(&whole), buffer_bytes(&cut)));
    buffer_fini(&whole);
    buffer_fini(&cut);
    return 0;
}

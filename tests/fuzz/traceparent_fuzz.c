/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as a traceparent. What is read as version 00 prints as it was, but for its flags.
 */
#include "base/assert.h"
#include "base/traceparent.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct trace_context c;
    struct trace_context again;
    char text[TRACEPARENT_SIZE + 1];

    if (!traceparent_parse(bytes_of(data, size), &c)) {
        return 0;
    }
    (void)traceparent_print(&c, text);
    ASSERT(strlen(text) == TRACEPARENT_SIZE);
    ASSERT(memcmp(text + 2, data + 2, TRACEPARENT_SIZE - 4) == 0);
    ASSERT(traceparent_parse(bytes_of(text, TRACEPARENT_SIZE), &again));
    again.flags = c.flags;
    ASSERT(memcmp(&c, &again, sizeof c) == 0);
    return 0;
}

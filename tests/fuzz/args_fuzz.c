/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as an argument list, a value and an address. What decodes encodes
 * to the same bytes.
 */
#include "base/assert.h"
#include "wire/address.h"
#include "wire/args.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct bytes in = bytes_of(data, size);
    struct buffer out = {0};
    struct address address;
    struct value value;
    struct args args;

    if (args_get(in, &args) == ERR_OK) {
        args_put(&out, &args);
        ASSERT(bytes_equal(buffer_bytes(&out), in));
    }
    buffer_clear(&out);
    if (value_get(in, &value) == ERR_OK) {
        value_put(&out, &value);
        ASSERT(bytes_equal(buffer_bytes(&out), in));
    }
    buffer_clear(&out);
    buffer_put(&out, data, size);
    buffer_put(&out, "", 1);
    if (address_parse((const char *)out.data, &address) == ERR_OK) {
        ASSERT(strlen(address.host) < ADDRESS_SIZE_MAX);
    }
    buffer_fini(&out);
    return 0;
}

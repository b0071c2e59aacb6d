/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes of a handshake: it doesn't matter in which pieces they come. The first byte says it.
 */
#include "base/assert.h"
#include "link/tls_hello.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tls_hello whole = {0};
    struct tls_hello piece = {0};
    const size_t step = size == 0 || data[0] == 0 ? 1 : data[0];
    bool fits = true;

    for (size_t i = 1; i < size && fits; i += step) {
        fits = tls_hello_fits(&piece, bytes_of(data + i, size - i < step ? size - i : step), false);
    }
    ASSERT(fits == (size < 2 || tls_hello_fits(&whole, bytes_of(data + 1, size - 1), false)));
    ASSERT(whole.got < TLS_HELLO_HEAD || !fits);
    return 0;
}

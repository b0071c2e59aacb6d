/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as a proxy's header: it doesn't matter in which pieces they come, and it is bounded.
 */
#include "base/assert.h"
#include "gateway/access/proxy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct proxy_header whole;
    struct proxy_header piece;
    const enum proxy_result at_once = proxy_parse(bytes_of(data, size), &whole);
    enum proxy_result now = PROXY_MORE;

    ASSERT(size < PROXY_SIZE_MAX || at_once != PROXY_MORE);
    for (size_t i = 0; i <= size && now == PROXY_MORE; i++) {
        now = proxy_parse(bytes_of(data, i), &piece);
    }
    ASSERT(now == at_once);
    if (now == PROXY_NAMED || now == PROXY_UNNAMED) {
        ASSERT(whole.size > 0 && whole.size <= size && whole.size <= PROXY_SIZE_MAX);
        ASSERT(piece.size == whole.size && piece.port == whole.port);
        ASSERT(memcmp(piece.address, whole.address, sizeof piece.address) == 0);
    }
    return 0;
}

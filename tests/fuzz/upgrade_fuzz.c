/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as the request that begins a WebSocket: it doesn't matter in which pieces they come.
 */
#include "base/assert.h"
#include "gateway/protocol/upgrade.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct upgrade_rules rules = {.path = "/", .origins = "https://a.example"};
    enum upgrade_result now = UPGRADE_MORE;
    struct upgrade whole = {0};
    struct upgrade piece = {0};
    size_t scanned = 0;
    const enum upgrade_result at_once =
        upgrade_parse(bytes_of(data, size), &scanned, &rules, &whole);

    ASSERT(at_once != UPGRADE_GOOD || (whole.size <= size && whole.size <= UPGRADE_SIZE_MAX &&
                                       whole.key.size == UPGRADE_KEY_SIZE));
    scanned = 0;
    for (size_t i = 0; i <= size && now == UPGRADE_MORE; i += 1 + i / 3) {
        now = upgrade_parse(bytes_of(data, i), &scanned, &rules, &piece);
    }
    if (now == UPGRADE_MORE) {
        now = upgrade_parse(bytes_of(data, size), &scanned, &rules, &piece);
    }
    ASSERT((now == UPGRADE_GOOD) == (at_once == UPGRADE_GOOD));
    ASSERT(now != UPGRADE_GOOD || piece.size == whole.size);
    if (now == UPGRADE_GOOD) {
        struct buffer out = {0};

        upgrade_put_answer(&out, &whole);
        buffer_fini(&out);
    }
    return 0;
}

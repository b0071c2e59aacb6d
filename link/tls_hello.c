/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the length that a TLS hello announces, so that a large one is refused
 * before OpenSSL allocates for it.
 */
#include "link/tls_hello.h"

#include "base/big.h"

enum { RECORD_HEADER = 5, CHANGE = 20, HANDSHAKE = 22, CLIENT_HELLO = 1 };

/* Of the head that is to be seen of this record. */
static size_t wanted(const struct tls_hello *h)
{
    const size_t size = h->got < RECORD_HEADER ? 0 : big_get16(h->head + 3);
    const size_t most = TLS_HELLO_HEAD - RECORD_HEADER;

    return RECORD_HEADER + (size < most ? size : most);
}

static bool judge(struct tls_hello *h, bool old)
{
    const bool plain = h->head[0] == HANDSHAKE && !(old && h->changed);

    h->changed |= h->head[0] == CHANGE;
    if (!plain) {
        return true;
    }
    return h->got == TLS_HELLO_HEAD && (h->head[RECORD_HEADER] != CLIENT_HELLO ||
                                        big_get24(h->head + RECORD_HEADER + 1) <= TLS_HELLO_MAX);
}

bool tls_hello_fits(struct tls_hello *h, struct bytes in, bool old)
{
    while (in.size > 0) {
        if (h->rest > 0) {
            const size_t count = h->rest < in.size ? h->rest : in.size;

            h->rest -= count;
            in = bytes_of(in.data + count, in.size - count);
            continue;
        }
        h->head[h->got++] = in.data[0];
        in = bytes_of(in.data + 1, in.size - 1);
        if (h->got >= RECORD_HEADER && h->got == wanted(h)) {
            if (!judge(h, old)) {
                return false;
            }
            h->rest = RECORD_HEADER + big_get16(h->head + 3) - h->got;
            h->got = 0;
        }
    }
    return true;
}

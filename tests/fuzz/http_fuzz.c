/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as a back end's requests: it doesn't matter in which pieces they come, and what a
 * gateway's client makes of them is whole answers, one for each request.
 */
#include "base/assert.h"
#include "gateway/client/client.h"
#include "gateway/protocol/http.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The first request, and what came of it. */
static enum http_step read_in_pieces(const uint8_t *data, size_t size, size_t piece,
                                     struct api_request *out, struct buffer *chunked)
{
    struct http_reader r = {0};
    enum http_step step = HTTP_MORE;
    enum http_refusal why = HTTP_REFUSAL_COUNT;
    bool headed = false;

    for (size_t at = 0; at < size && step != HTTP_WHOLE && step != HTTP_REFUSED;) {
        at = size - at > piece ? at + piece : size;
        step = http_read(&r, bytes_of(data, at), chunked, out, &why);
        ASSERT(step != HTTP_HEADED || !headed);
        headed = headed || step == HTTP_HEADED;
    }
    ASSERT(step != HTTP_REFUSED || why < HTTP_REFUSAL_COUNT);
    return step == HTTP_HEADED ? HTTP_MORE : step;
}

static void read_it(const uint8_t *data, size_t size)
{
    struct buffer a = {0};
    struct buffer b = {0};
    struct api_request whole = {0};
    struct api_request parts = {0};
    const enum http_step at_once = read_in_pieces(data, size, size, &whole, &a);

    for (size_t piece = 1; piece < size; piece = piece * 2 + 1) {
        const enum http_step now = read_in_pieces(data, size, piece, &parts, &b);

        ASSERT(now == at_once);
        if (now == HTTP_WHOLE) {
            ASSERT(whole.size <= size && whole.size >= whole.head_size);
            ASSERT(parts.size == whole.size && bytes_equal(parts.body, whole.body));
            ASSERT(whole.body.size <= HTTP_CONTENT_MAX);
        }
    }
    buffer_fini(&a);
    buffer_fini(&b);
}

/* A client without a ring: what it asks of actors waits, and all else is answered. */
static void serve_it(const uint8_t *data, size_t size)
{
    const struct router_config router_config = router_config_default();
    const struct clients_config config = clients_config_default();
    struct router *router = router_new(&router_config);
    struct clients *all = clients_new(&config, router, 1);
    struct client *c = client_new(all, CLIENT_HTTP, "10.0.0.1:1", 1);
    struct router_effects effects = {0};
    uint64_t now_us = 1;

    for (size_t at = 0; at < size && client_wants_input(c); now_us += 100000) {
        const size_t most = 1 + (at * 7) % 61;
        const size_t count = size - at < most ? size - at : most;

        client_on_bytes(c, bytes_of(data + at, count), now_us, &effects);
        at += count;
        client_tick(c, now_us);
        const struct bytes out = client_output(c);
        ASSERT(out.size < 9 || memcmp(out.data, "HTTP/1.1 ", 9) == 0);
        client_sent(c, out.size, now_us);
        router_effects_clear(&effects);
    }
    client_drain(c, now_us);
    client_free(c, now_us, &effects);
    clients_free(all);
    router_effects_fini(&effects);
    router_free(router);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    read_it(data, size);
    serve_it(data, size);
    return 0;
}

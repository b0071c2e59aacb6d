/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as a gateway's, to the client that games link. It tells what it hears, hangs up when
 * that makes no sense, and goes on with the rest as with the next gateway's.
 */
#include "base/assert.h"

#include <ringhold_client.h>

#include <stdlib.h>
#include <string.h>

enum { ROOM = 1024, TURNS = 4096, STEP_MS = 100 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct rhc_bytes word(const char *s)
{
    return (struct rhc_bytes){s, strlen(s)};
}

static void take_all(struct rhc *c, uint64_t now_ms)
{
    struct rhc_event e;

    while (rhc_next(c, &e) != 0) {
        ASSERT(e.payload.size == 0 || e.payload.data != NULL);
    }
    for (struct rhc_bytes out = rhc_output(c); out.size > 0; out = rhc_output(c)) {
        rhc_sent(c, out.size, now_ms);
    }
}

/* Dial and hang up as it wishes. */
static void obey(struct rhc *c, uint64_t now_ms)
{
    switch (rhc_wishes(c)) {
    case RHC_DIAL:
        rhc_connected(c, now_ms);
        break;
    case RHC_HANG_UP:
        rhc_disconnected(c, NULL, now_ms);
        break;
    case RHC_NOTHING:
        break;
    }
    if (rhc_state(c) == RHC_ENDED) {
        ASSERT(rhc_start(c, now_ms) == RHC_DONE);
    }
}

/* As much as it has room for; how much. */
static size_t hear(struct rhc *c, const uint8_t *data, size_t size, uint64_t now_ms)
{
    size_t room = 0;
    void *to = rhc_room(c, &room);
    const size_t count = size < room ? size : room;

    if (count > 0) {
        memcpy(to, data, count);
        rhc_received(c, count, now_ms);
    }
    return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct rhc_options o = {
        .abi = RHC_ABI, .size = sizeof o, .in_max = ROOM, .out_max = ROOM, .requests_max = 4};
    const struct rhc_request request = {.id = word("x"), .payload = word("hi")};
    void *memory = malloc(rhc_size(&o));
    struct rhc *c = rhc_init(memory, &o);
    uint64_t now_ms = 1;

    ASSERT(c != NULL);
    ASSERT(rhc_bind(c, 7, word("boss")) == RHC_DONE);
    ASSERT(rhc_start(c, now_ms) == RHC_DONE);
    for (size_t turns = 0; size > 0 && turns < TURNS; turns++, now_ms += STEP_MS) {
        size_t count = 0;

        rhc_tick(c, now_ms);
        obey(c, now_ms);
        (void)rhc_ask(c, &request, now_ms, NULL);
        take_all(c, now_ms);
        if (rhc_state(c) == RHC_GREETING || rhc_state(c) == RHC_READY) {
            count = hear(c, data, size, now_ms);
        }
        data += count;
        size -= count;
        take_all(c, now_ms);
    }
    rhc_stop(c);
    take_all(c, now_ms);
    free(memory);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The client of include/ringhold_client.h against a gateway's bytes, written out
 * by hand from docs/protocol-client.md.
 */
#ifndef TESTS_CLIENT_GAME_CLIENT_RIG_H
#define TESTS_CLIENT_GAME_CLIENT_RIG_H

#include "tests/hex.h"

#include <ringhold_client.h>
#include <stdlib.h>

static const char hello[] = "01 000006 5248 01 01 0000";
static const char hello_ack[] = "02 000018 01 00 0000 00007530 00010000 00000400 1122334455667788";
static const char hello_ack_auth[] =
    "02 000018 01 00 0001 00007530 00010000 00000400 1122334455667788";
#define SESSION "a1a2a3a4a5a6a7a8a9aaabacadaeafb0b1b2b3b4b5b6b7b8"
static const char bind_kept[] = "0b 00000c 7fffffff 04 04 0007 626f7373";
static const char bound_kept[] =
    "07 00002d 7fffffff 00 00000000 " SESSION " 0000000000000001 00007530";

struct rig {
    struct rhc *c;
    void *memory;
    uint64_t now_ms;
};

static inline void make(struct rig *r, const struct rhc_options *more)
{
    struct rhc_options o = {0};

    if (more != NULL) {
        o = *more;
    }
    o.abi = RHC_ABI;
    o.size = sizeof o;
    o.seed = o.seed == 0 ? 7 : o.seed;
    r->memory = malloc(rhc_size(&o));
    r->now_ms = 1000;
    r->c = rhc_init(r->memory, &o);
    assert_non_null(r->c);
}

static inline void end(struct rig *r)
{
    free(r->memory);
}

static inline struct rhc_bytes word(const char *s)
{
    return (struct rhc_bytes){s, strlen(s)};
}

static inline uint8_t digit(char c)
{
    return (uint8_t)(c <= '9' ? c - '0' : c - 'a' + 10);
}

static inline void hear_bytes(struct rig *r, const uint8_t *data, size_t size)
{
    size_t room = 0;
    void *to = rhc_room(r->c, &room);

    assert_true(room >= size);
    memcpy(to, data, size);
    rhc_received(r->c, size, r->now_ms);
}

static inline void hears(struct rig *r, const char *hex)
{
    uint8_t bytes[512];
    size_t size = 0;

    for (; *hex != '\0'; hex++) {
        if (*hex != ' ') {
            bytes[size++] = (uint8_t)(digit(hex[0]) << 4 | digit(hex[1]));
            hex++;
        }
    }
    hear_bytes(r, bytes, size);
}

/* All that it sends now is this. */
static inline void says(struct rig *r, const char *hex)
{
    struct buffer all = {0};

    for (;;) {
        const struct rhc_bytes out = rhc_output(r->c);

        if (out.size == 0) {
            break;
        }
        buffer_put(&all, out.data, out.size);
        rhc_sent(r->c, out.size, r->now_ms);
    }
    assert_hex(buffer_bytes(&all), hex);
    buffer_fini(&all);
}

static inline struct rhc_event next(struct rig *r, enum rhc_event_type type)
{
    struct rhc_event e = {0};

    assert_int_equal(rhc_next(r->c, &e), 1);
    assert_int_equal(e.type, type);
    return e;
}

static inline void nothing_more(struct rig *r)
{
    struct rhc_event e;

    assert_int_equal(rhc_next(r->c, &e), 0);
}

static inline void ended(struct rig *r, uint32_t request, unsigned status)
{
    const struct rhc_event e = next(r, RHC_EVENT_RESPONSE);

    assert_int_equal(e.request, request);
    assert_int_equal(e.status, status);
}

/* Time goes on until it has something to do. */
static inline void wait_for_dial(struct rig *r)
{
    while (rhc_wishes(r->c) != RHC_DIAL) {
        const uint64_t wake_ms = rhc_wake_ms(r->c);

        assert_true(wake_ms != UINT64_MAX);
        r->now_ms = wake_ms > r->now_ms ? wake_ms : r->now_ms + 1;
        rhc_tick(r->c, r->now_ms);
    }
}

static inline void dial(struct rig *r)
{
    wait_for_dial(r);
    rhc_connected(r->c, r->now_ms);
    says(r, hello);
}

static inline void drop(struct rig *r)
{
    rhc_disconnected(r->c, "it rains", r->now_ms);
    (void)next(r, RHC_EVENT_LOST);
}

static inline void start(struct rig *r, const struct rhc_options *o)
{
    make(r, o);
    assert_int_equal(rhc_start(r->c, r->now_ms), RHC_DONE);
    dial(r);
    hears(r, hello_ack);
    (void)next(r, RHC_EVENT_READY);
    assert_int_equal(rhc_state(r->c), RHC_READY);
}

static inline void start_bound(struct rig *r)
{
    make(r, NULL);
    assert_int_equal(rhc_bind(r->c, 7, word("boss")), RHC_DONE);
    assert_int_equal(rhc_start(r->c, r->now_ms), RHC_DONE);
    dial(r);
    hears(r, hello_ack);
    nothing_more(r);
    says(r, bind_kept);
    hears(r, bound_kept);
    assert_int_equal(next(r, RHC_EVENT_BOUND).fresh, 1);
    (void)next(r, RHC_EVENT_READY);
}

static inline uint32_t ask_flags(struct rig *r, const char *payload, uint16_t flags)
{
    uint32_t name = 0;
    const struct rhc_request q = {
        .kind = 7, .flags = flags, .id = word("boss"), .payload = word(payload)};

    assert_int_equal(rhc_ask(r->c, &q, r->now_ms, &name), RHC_DONE);
    return name;
}

static inline uint32_t ask(struct rig *r, const char *payload)
{
    return ask_flags(r, payload, 0);
}

static inline void tell(struct rig *r, const char *payload)
{
    const struct rhc_request q = {.kind = 7, .id = word("boss"), .payload = word(payload)};

    assert_int_equal(rhc_tell(r->c, &q, r->now_ms), RHC_DONE);
}

/* The client comes back, and has had no push. */
static inline void resumes(struct rig *r)
{
    dial(r);
    hears(r, hello_ack);
    nothing_more(r);
    says(r, "0e 000032 7fffffff 00 04 0007 626f7373" SESSION "0000000000000000 00000001 0001");
}

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * A packet from the mould is the one that the encoder makes.
 */
#include "tests/test.h"

#include "gateway/protocol/packet.h"
#include "load/mould.h"

#include <stdio.h>
#include <string.h>

static void expect_as_encoded(const struct mould_config *config, uint32_t request, uint32_t id)
{
    struct mould m;
    struct buffer out = {0};
    struct packet p;
    struct request_packet r;
    char text[32];
    char last[32];

    mould_init(&m, config);
    mould_put(&m, &out, UINT32_MAX, config->ids); // what was put before leaves no trace
    buffer_clear(&out);
    mould_put(&m, &out, request, id);
    assert_int_equal(packet_next(buffer_bytes(&out), PACKET_BODY_MAX, &p), PACKET_WHOLE);
    assert_int_equal(out.size, PACKET_HEADER + p.body.size);
    assert_int_equal(p.type, PACKET_REQUEST);
    assert_int_equal(packet_get_request(p.body, &r), ERR_OK);
    assert_int_equal(r.request, request);
    assert_int_equal(r.kind, config->kind);
    assert_int_equal(r.flags, 0);
    assert_int_equal(r.payload.size, config->size);
    assert_true(config->size == 0 || r.payload.data[config->size - 1] == 'x');
    // As wide as the last id, with zeroes in front.
    const int wide = snprintf(last, sizeof last, "%u", (unsigned)config->ids);
    const int size = snprintf(text, sizeof text, "b%0*u", wide, (unsigned)id);
    assert_int_equal(r.id.size, size);
    assert_memory_equal(r.id.data, text, r.id.size);
    buffer_fini(&out);
    mould_fini(&m);
}

static void each_packet_is_as_the_encoder_makes_it(void **state)
{
    static const uint32_t ids[] = {1, 9, 10, 99, 100, 1000, 65536, 99999999, 100000000};
    static const uint32_t sizes[] = {0, 1, 64, 4096};

    (void)state;
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
        for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
            const struct mould_config config = {.ids = ids[i], .size = sizes[s], .kind = 513};

            expect_as_encoded(&config, 0, 1);
            expect_as_encoded(&config, 0x01020304, ids[i] / 2 + 1);
            expect_as_encoded(&config, UINT32_MAX, ids[i]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_packet_is_as_the_encoder_makes_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

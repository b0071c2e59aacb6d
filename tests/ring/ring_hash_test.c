/* SPDX-License-Identifier: Apache-2.0
 *
 * The numbers here are for ever: another value moves every entity of every
 * cluster. The SipHash-1-3 vectors are the reference implementation's, the
 * others were computed by a second, independent program.
 */
#include "base/prng.h"
#include "ring/hash.h"

#include "tests/test.h"

#include <string.h>

/* The reference vectors' key: bytes 00 01 … 0f. */
static const struct ring_key reference = {0x0706050403020100u, 0x0f0e0d0c0b0a0908u};

static void siphash_gives_the_reference_vectors(void **state)
{
    static const struct {
        size_t size;
        uint64_t hash;
    } want[] = {
        {0, 0xabac0158050fc4dcu},
        {8, 0x369095118d299a8eu},
        {15, 0xd320d86d2a519956u},
        {63, 0x9d199062b7bbb3a8u},
    };
    uint8_t message[64];

    (void)state;
    for (size_t i = 0; i < sizeof message; i++) {
        message[i] = (uint8_t)i;
    }
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        assert_int_equal(siphash_bytes(reference, bytes_of(message, want[i].size)), want[i].hash);
    }
}

static void a_kind_has_its_own_key(void **state)
{
    static const struct {
        uint16_t kind;
        struct ring_key key;
    } want[] = {
        {0, {0x8d99ca0228a810ebu, 0x6f1ff8ec1e73edf3u}},
        {1, {0x75462241ccb58da1u, 0xc1cc1b9d286cd583u}},
        {0x1234, {0x4d835db5a9a35644u, 0xabddd43aa2e27c6fu}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        struct ring_key key = ring_key_of_kind(reference, want[i].kind);

        assert_int_equal(key.k0, want[i].key.k0);
        assert_int_equal(key.k1, want[i].key.k1);
    }
}

static void positions_are_golden(void **state)
{
    static const struct {
        const char *id;
        uint64_t position;
    } want[] = {
        {"player-1", 0xbfa2a7a8f4d7d600u},
        {"a", 0x49352e9bac2b3db3u},
        {"123e4567-e89b-12d3-a456-426614174000", 0x1488b9b1b04812a3u},
    };
    struct ring_key key = ring_key_of_kind(reference, 1);
    uint8_t longest[255];

    (void)state;
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        struct bytes id = bytes_of(want[i].id, strlen(want[i].id));

        assert_int_equal(ring_position(key, id), want[i].position);
    }
    memset(longest, 'x', sizeof longest);
    assert_int_equal(ring_position(key, bytes_of(longest, sizeof longest)), 0x1c315f2c1f5872a0u);
    assert_int_equal(ring_position_u64(key, 42), 0x7d67053b84df115u);
}

static void tags_have_a_key_of_their_own(void **state)
{
    const struct ring_key key = ring_key_of_tags(reference);

    (void)state;
    assert_int_equal(key.k0, 0x8dbb5394548d3a15u);
    assert_int_equal(key.k1, 0xa2555c21eccee816u);
    assert_int_equal(ring_position(key, bytes_of("match-42", 8)), 0xbe2f57c9cd309666u);
}

static void a_tag_is_what_stands_between_the_first_brace_and_the_next_that_closes(void **state)
{
    static const struct {
        const char *id;
        const char *tag;
    } want[] = {
        {"room-7{match-42}", "match-42"},
        {"{a}", "a"},
        {"x{a}y{b}", "a"},
        {"x{{a}}", "{a"},
        {"}{a}", "a"},
        {"x{}y{b}", "x{}y{b}"},
        {"match-42", "match-42"},
        {"x{a", "x{a"},
        {"x}a{", "x}a{"},
        {"{", "{"},
        {"{}", "{}"},
    };
    static const uint8_t zeros[] = {0, '{', 0, '}', '}'};
    struct bytes tag;

    (void)state;
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        tag = ring_tag(bytes_of(want[i].id, strlen(want[i].id)));
        assert_int_equal(tag.size, strlen(want[i].tag));
        assert_memory_equal(tag.data, want[i].tag, tag.size);
    }
    tag = ring_tag(bytes_of(zeros, sizeof zeros));
    assert_int_equal(tag.size, 1);
    assert_ptr_equal(tag.data, zeros + 2);
}

static void an_integer_hashes_as_its_eight_bytes(void **state)
{
    struct prng p = {7};

    (void)state;
    for (unsigned i = 0; i < 10000; i++) {
        struct ring_key key = {prng_u64(&p), prng_u64(&p)};
        uint64_t id = prng_u64(&p) >> (i % 64);
        uint8_t bytes[8];

        for (unsigned b = 0; b < 8; b++) {
            bytes[b] = (uint8_t)(id >> (8 * b));
        }
        assert_int_equal(ring_position_u64(key, id), ring_position(key, bytes_of(bytes, 8)));
    }
}

/* Word by word from the specification, for every size and alignment. */
static uint64_t naive(struct ring_key key, const uint8_t *data, size_t size)
{
    struct siphash s = siphash_start(key);
    uint64_t word = 0;

    for (size_t i = 0; i < size; i++) {
        word |= (uint64_t)data[i] << (8 * (i % 8));
        if (i % 8 == 7) {
            siphash_word(&s, word);
            word = 0;
        }
    }
    return siphash_end(&s, word | (uint64_t)(size & 255) << 56);
}

static void every_size_and_alignment_is_read_right(void **state)
{
    uint8_t data[300];
    struct prng p = {8};

    (void)state;
    for (size_t i = 0; i < sizeof data; i++) {
        data[i] = (uint8_t)prng_u64(&p);
    }
    for (size_t shift = 0; shift < 8; shift++) {
        for (size_t size = 0; size <= 255; size++) {
            assert_int_equal(siphash_bytes(reference, bytes_of(data + shift, size)),
                             naive(reference, data + shift, size));
        }
    }
}

int main(void)
{
    const struct CMUnitTest cases[] = {
        cmocka_unit_test(siphash_gives_the_reference_vectors),
        cmocka_unit_test(a_kind_has_its_own_key),
        cmocka_unit_test(positions_are_golden),
        cmocka_unit_test(tags_have_a_key_of_their_own),
        cmocka_unit_test(a_tag_is_what_stands_between_the_first_brace_and_the_next_that_closes),
        cmocka_unit_test(an_integer_hashes_as_its_eight_bytes),
        cmocka_unit_test(every_size_and_alignment_is_read_right),
    };
    return cmocka_run_group_tests(cases, NULL, NULL);
}

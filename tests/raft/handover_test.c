/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of node/host/handover.h: images over a link that loses and repeats.
 */
#include "node/host/handover.h"

#include "base/crc.h"
#include "base/mem.h"
#include "base/prng.h"
#include "tests/test.h"

#include <stdio.h>
#include <string.h>

enum { BIG = 200000, WINDOW = 150000 };

static struct handover_stream *stream;
static struct staging *staging;

static int start(void **state)
{
    (void)state;
    stream = stream_new(40, 101);
    staging = staging_new(40, 101);
    return 0;
}

static int end(void **state)
{
    (void)state;
    stream_free(stream);
    staging_free(staging);
    return 0;
}

static struct image *image_of(const char *id, size_t size, uint8_t fill)
{
    const struct image_name name = {.position = 5, .id = bytes_of(id, strlen(id))};
    uint8_t *memory = mem_new(1, size);
    const struct bytes content = bytes_of(memory, size);

    memset(memory, fill, size);
    struct image *image = image_make(name, NULL, NULL, &content);
    mem_free(memory);
    return image;
}

static void add(const char *id, size_t size, uint8_t fill)
{
    struct image *image = image_of(id, size, fill);

    stream_add(stream, image);
    image_free(image); // the stream has references of its own
}

static void ack(void)
{
    const struct state_ack_record a = {.txn = 40, .source = 101, .next = staging->next};

    assert_true(stream_on_ack(stream, &a, 0));
}

static void all_arrives_over_a_link_that_loses_repeats_and_breaks(void **state)
{
    struct prng prng = {.state = 4711};
    unsigned rounds = 0;

    (void)state;
    for (uint8_t i = 0; i < 20; i++) {
        char id[8];

        (void)snprintf(id, sizeof id, "e%u", i);
        add(id, i % 5 == 0 ? BIG : i, i);
    }
    stream_end(stream);
    while (!stream_is_done(stream)) {
        struct state_record r;

        assert_true(rounds++ < 100000);
        while (stream_next(stream, WINDOW, &r)) {
            const unsigned copies = prng_chance(&prng, 20) ? 0 : prng_chance(&prng, 20) ? 2 : 1;

            assert_true(stream->in_flight <= WINDOW + RECORD_CHUNK_MAX);
            for (unsigned c = 0; c < copies; c++) {
                assert_int_not_equal(staging_take(staging, &r, 5, NULL, SIZE_MAX), STAGING_FULL);
            }
        }
        if (prng_chance(&prng, 70)) {
            ack();
        } else {
            stream_rewind(stream);
        }
    }
    assert_true(staging->ended);
    assert_int_equal(staging->image_count, 20);
    for (uint8_t i = 0; i < 20; i++) {
        const struct image *image = staging->image[i];

        assert_int_equal(image->state.size, i % 5 == 0 ? BIG : i);
        for (size_t at = 0; at < image->state.size; at++) {
            assert_int_equal(image->state.data[at], i);
        }
    }
}

static void an_ack_after_a_rewind_still_counts(void **state)
{
    struct state_record r;
    const struct state_ack_record both = {.txn = 40, .source = 101, .next = 2};
    const struct state_ack_record beyond = {.txn = 40, .source = 101, .next = 3};

    (void)state;
    add("a", 10, 1);
    add("b", 10, 1);
    while (stream_next(stream, WINDOW, &r)) {
        assert_int_equal(staging_take(staging, &r, 5, NULL, SIZE_MAX), STAGING_TAKEN);
    }
    stream_rewind(stream);
    assert_false(stream_on_ack(stream, &beyond, 0));
    assert_true(stream_on_ack(stream, &both, 0));
    assert_int_equal(stream->in_flight, 0);
    stream_end(stream);
    assert_true(stream_next(stream, WINDOW, &r));
    assert_int_equal(r.flags, STATE_END);
    assert_int_equal(r.index, 2);
}

static void the_window_bounds_what_is_on_its_way(void **state)
{
    struct state_record r;
    size_t count = 0;

    (void)state;
    add("a", BIG, 1);
    while (stream_next(stream, RECORD_CHUNK_MAX, &r)) {
        count++;
    }
    assert_int_equal(count, 1);
}

/* What a stream of one small actor sends first, changed by `spoil`. */
static enum staging_verdict taken_after(void (*spoil)(struct state_record *))
{
    struct state_record r;

    add("a", 10, 1);
    assert_true(stream_next(stream, WINDOW, &r));
    spoil(&r);
    return staging_take(staging, &r, 5, NULL, 100);
}

static void damaged(struct state_record *r)
{
    r->crc++;
}

static void too_early(struct state_record *r)
{
    r->index = 1;
}

static void too_big(struct state_record *r)
{
    static uint8_t big[200];

    r->chunk = bytes_of(big, sizeof big);
    r->crc = crc32c(big, sizeof big);
}

static void in_the_middle(struct state_record *r)
{
    r->offset = 3;
}

static void no_image(struct state_record *r)
{
    static const uint8_t zeros[18];

    r->chunk = bytes_of(zeros, sizeof zeros);
    r->total = sizeof zeros;
    r->crc = crc32c(zeros, sizeof zeros);
}

static void what_does_not_fit_is_refused_what_is_damaged_comes_again(void **state)
{
    static const struct {
        void (*spoil)(struct state_record *);
        enum staging_verdict want;
    } cases[] = {
        {damaged, STAGING_GAP},
        {too_early, STAGING_GAP},
        {too_big, STAGING_FULL},
        {in_the_middle, STAGING_FULL},
        {no_image, STAGING_FULL},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(taken_after(cases[i].spoil), cases[i].want);
        assert_int_equal(staging->next, 0);
        assert_int_equal(staging->refused, cases[i].want == STAGING_FULL);
        (void)end(state);
        (void)start(state);
    }
}

static void a_state_is_taken_only_in_a_version_that_is_read(void **state)
{
    static const struct {
        uint32_t version;
        bool has_state;
        bool taken;
    } cases[] = {{0, true, false},
                 {1, true, false},
                 {2, true, true},
                 {4, true, true},
                 {5, true, false},
                 {0, false, true}};
    const struct state_range reads = {.least = 2, .most = 4};
    const struct image_name name = {.position = 5, .id = bytes_of("a", 1)};
    const struct bytes content = bytes_of("x", 1);

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct image *image =
            image_make_bound(name,
                             &(struct image_cargo){.state = cases[i].has_state ? &content : NULL,
                                                   .state_version = cases[i].version});
        struct state_record r;

        stream_add(stream, image);
        image_free(image);
        assert_true(stream_next(stream, WINDOW, &r));
        assert_int_equal(staging_take(staging, &r, 5, &reads, SIZE_MAX),
                         cases[i].taken ? STAGING_TAKEN : STAGING_FULL);
        assert_int_equal(staging->unreadable, !cases[i].taken);
        assert_int_equal(staging->image_count, cases[i].taken);
        if (cases[i].taken) {
            assert_int_equal(staging->image[0]->state_version, cases[i].version);
            assert_int_equal(staging->image[0]->has_state, cases[i].has_state);
        } else {
            assert_int_equal(staging->unread_version, cases[i].version);
        }
        (void)end(state);
        (void)start(state);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            all_arrives_over_a_link_that_loses_repeats_and_breaks, start, end),
        cmocka_unit_test_setup_teardown(an_ack_after_a_rewind_still_counts, start, end),
        cmocka_unit_test_setup_teardown(the_window_bounds_what_is_on_its_way, start, end),
        cmocka_unit_test_setup_teardown(
            what_does_not_fit_is_refused_what_is_damaged_comes_again, start, end),
        cmocka_unit_test_setup_teardown(
            a_state_is_taken_only_in_a_version_that_is_read, start, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

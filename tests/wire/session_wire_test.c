/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of wire/session.h: these bytes, and every damaged note refused.
 */
#include "wire/session.h"
#include "wire/values_ask.h"

#include "base/mem.h"

#include "tests/hex.h"
#include "tests/test.h"

static const struct bond bond = {.gateway = 0x1112131415161718u,
                                 .connection = 2,
                                 .round = 3,
                                 .kicked = true,
                                 .number = 4,
                                 .stamp = {.fence = 5, .count = 6}};

static const struct push_record push = {.gateway = 1,
                                        .connection = 2,
                                        .number = 3,
                                        .round = 4,
                                        .code = 1000,
                                        .type = PUSH_KICK,
                                        .payload = {(const uint8_t *)"bye", 3}};

static void a_bond_has_these_bytes(void **state)
{
    struct buffer out = {0};
    struct bond back;

    (void)state;
    bond_put(&out, &bond);
    assert_int_equal(out.size, BOND_SIZE);
    buffer_put(&out, "", 1);
    uint8_t *bytes = out.data;
    assert_hex(bytes_of(bytes, BOND_SIZE),
               "1817161514131211 0200000000000000 03000000 01000000 0400000000000000"
               "0500000000000000 0600000000000000");
    assert_int_equal(bond_get(bytes_of(bytes, BOND_SIZE), &back), ERR_OK);
    assert_memory_equal(&back.stamp, &bond.stamp, sizeof back.stamp);
    assert_true(back.kicked && back.gateway == bond.gateway && back.connection == 2 &&
                back.round == 3 && back.number == 4);
    assert_int_equal(bond_get(bytes_of(bytes, BOND_SIZE - 1), &back), ERR_CORRUPT);
    assert_int_equal(bond_get(bytes_of(bytes, BOND_SIZE + 1), &back), ERR_CORRUPT);
    bytes[20] = 2; // kept, but nothing of that is there
    assert_int_equal(bond_get(bytes_of(bytes, BOND_SIZE), &back), ERR_CORRUPT);
    bytes[20] = 16; // an unknown flag
    assert_int_equal(bond_get(bytes_of(bytes, BOND_SIZE), &back), ERR_CORRUPT);
    buffer_fini(&out);
}

static void a_bond_that_is_kept_takes_its_pushes_along(void **state)
{
    struct bond kept = bond;
    struct buffer out = {0};
    struct bond back;

    (void)state;
    kept.kicked = false;
    kept.key = 7;
    kept.session = 8;
    kept.epoch = 9;
    kept.left_ms = 10;
    kept.unacked_pushes = bytes_of("\x02\x00\x00\x00hi\x00\x00\x00\x00", 10);
    bond_put(&out, &kept);
    assert_hex(
        buffer_bytes(&out),
        "1817161514131211 0200000000000000 03000000 02000000 0400000000000000"
        "0500000000000000 0600000000000000 0700000000000000 0800000000000000 09000000 0a000000"
        "02000000 6869 00000000");
    assert_int_equal(bond_get(buffer_bytes(&out), &back), ERR_OK);
    assert_true(back.key == 7 && back.session == 8 && back.epoch == 9 && back.left_ms == 10);
    assert_true(bytes_equal(back.unacked_pushes, kept.unacked_pushes));
    for (size_t cut = 0; cut < out.size; cut++) {
        const bool whole = cut == BOND_KEPT_SIZE || cut == BOND_KEPT_SIZE + 6;
        uint8_t *exact = mem_copy(out.data, cut);

        assert_int_equal(bond_get(bytes_of(exact, cut), &back), whole ? ERR_OK : ERR_CORRUPT);
        mem_free(exact);
    }
    out.data[24] = 1; // more pushes than numbers
    assert_int_equal(bond_get(buffer_bytes(&out), &back), ERR_CORRUPT);
    buffer_fini(&out);
}

/* Those of one actor, one behind the other. */
static void several_bonds_follow_one_another(void **state)
{
    struct bond kept = bond;
    struct buffer out = {0};
    struct bond back;

    (void)state;
    kept.session = 8;
    kept.unacked_pushes = bytes_of("\x02\x00\x00\x00hi", 6);
    kept.followed = true;
    bond_put(&out, &kept);
    assert_hex(bytes_of(out.data + BOND_KEPT_SIZE, 10), "06000000 02000000 6869");
    assert_int_equal(out.data[20], 1 + 2 + 8);
    kept.followed = false;
    bond_put(&out, &kept);
    struct reader in = {.at = out.data, .left = out.size};
    assert_int_equal(bond_take(&in, &back), ERR_OK);
    assert_true(back.followed && bytes_equal(back.unacked_pushes, kept.unacked_pushes));
    assert_int_equal(bond_take(&in, &back), ERR_OK);
    assert_true(!back.followed && bytes_equal(back.unacked_pushes, kept.unacked_pushes) &&
                in.left == 0);
    assert_int_equal(bond_get(buffer_bytes(&out), &back), ERR_CORRUPT); // not exactly one
    for (size_t cut = 0; cut < BOND_KEPT_SIZE + 10; cut++) {
        uint8_t *exact = mem_copy(out.data, cut);
        struct reader short_in = {.at = exact, .left = cut};

        assert_int_equal(bond_take(&short_in, &back), ERR_CORRUPT);
        mem_free(exact);
    }
    buffer_fini(&out);
}

static void a_bond_that_is_rebound_says_to_whom(void **state)
{
    struct bond both[] = {bond, bond};

    (void)state;
    both[1].session = 8;
    both[1].key = 7;
    both[1].number = 4;
    both[1].unacked_pushes = bytes_of("\x02\x00\x00\x00hi", 6);
    for (size_t i = 0; i < 2; i++) {
        struct buffer out = {0};
        struct bond back;

        both[i].kicked = false;
        both[i].rebind = (struct rebind){.kind = 0x0102, .id_size = 2, .id = {'m', 'e'}};
        bond_put(&out, &both[i]);
        const size_t at = i == 0 ? BOND_SIZE : BOND_KEPT_SIZE;
        assert_hex(bytes_of(out.data + at, 5), "02 0201 6d65");
        assert_int_equal(out.data[20], i == 0 ? 4 : 6);
        assert_int_equal(bond_get(buffer_bytes(&out), &back), ERR_OK);
        assert_true(back.rebind.kind == 0x0102 && back.rebind.id_size == 2 &&
                    memcmp(back.rebind.id, "me", 2) == 0);
        assert_true(bytes_equal(back.unacked_pushes, both[i].unacked_pushes));
        for (size_t cut = 0; cut < at + 5; cut++) {
            uint8_t *exact = mem_copy(out.data, cut);

            assert_int_equal(bond_get(bytes_of(exact, cut), &back), ERR_CORRUPT);
            mem_free(exact);
        }
        out.data[at] = 0; // nobody
        assert_int_equal(bond_get(buffer_bytes(&out), &back), ERR_CORRUPT);
        buffer_fini(&out);
    }
}

static void a_rebind_has_these_bytes(void **state)
{
    const struct rebind to = {.kind = 0x0102, .id_size = 2, .id = {'m', 'e'}};
    uint8_t long_id[2 + REBIND_ID_MAX + 1] = {0};
    struct buffer out = {0};
    struct rebind back;

    (void)state;
    rebind_put(&out, &to);
    assert_hex(buffer_bytes(&out), "0201 6d65");
    assert_int_equal(rebind_get(buffer_bytes(&out), &back), ERR_OK);
    assert_true(back.kind == 0x0102 && back.id_size == 2 && memcmp(back.id, "me", 2) == 0);
    for (size_t cut = 0; cut < 3; cut++) {
        assert_int_equal(rebind_get(bytes_of(out.data, cut), &back), ERR_CORRUPT);
    }
    assert_int_equal(rebind_get(bytes_of(long_id, sizeof long_id - 1), &back), ERR_OK);
    assert_int_equal(rebind_get(bytes_of(long_id, sizeof long_id), &back), ERR_CORRUPT);
    buffer_fini(&out);
}

static void stamps_are_ordered_by_fence_then_count(void **state)
{
    (void)state;
    assert_true(bond_stamp_before((struct bond_stamp){1, 9}, (struct bond_stamp){2, 1}));
    assert_true(bond_stamp_before((struct bond_stamp){2, 1}, (struct bond_stamp){2, 2}));
    assert_false(bond_stamp_before((struct bond_stamp){2, 2}, (struct bond_stamp){2, 2}));
    assert_false(bond_stamp_before((struct bond_stamp){3, 0}, (struct bond_stamp){2, 2}));
}

/* It is taken whole and refused in every other length. */
static void has_note(const struct note *note, const char *hex)
{
    struct buffer out = {0};
    struct note back;

    note_put(&out, note);
    assert_hex(buffer_bytes(&out), hex);
    assert_int_equal(note_get(buffer_bytes(&out), &back), ERR_OK);
    assert_int_equal(back.type, note->type);
    assert_true(back.gateway == note->gateway && back.connection == note->connection &&
                back.round == note->round && back.why == note->why && back.key == note->key &&
                back.session == note->session && back.epoch == note->epoch &&
                back.got_round == note->got_round && back.got == note->got &&
                back.code == note->code);
    assert_memory_equal(&back.stamp, &note->stamp, sizeof back.stamp);
    assert_true(bytes_equal(back.payload, note->payload));
    if (note->type != NOTE_PUSH && note->type != NOTE_KICK && note->type != NOTE_TRACE &&
        note->type != NOTE_SEND && note->type != NOTE_VALUES) {
        for (size_t cut = 0; cut < out.size; cut++) {
            uint8_t *exact = mem_copy(out.data, cut);

            assert_int_equal(note_get(bytes_of(exact, cut), &back), ERR_CORRUPT);
            mem_free(exact);
        }
        buffer_put(&out, "x", 1);
        assert_int_equal(note_get(buffer_bytes(&out), &back), ERR_CORRUPT);
    }
    buffer_fini(&out);
}

static void notes_have_these_bytes(void **state)
{
    struct note back;

    (void)state;
    has_note(&(struct note){.type = NOTE_BIND, .gateway = 7, .connection = 8, .round = 9},
             "01 0700000000000000 0800000000000000 09000000");
    has_note(
        &(struct note){
            .type = NOTE_RESUME, .gateway = 7, .connection = 8, .round = 9, .stamp = {10, 11}},
        "02 0700000000000000 0800000000000000 09000000 0a00000000000000 0b00000000000000");
    has_note(
        &(struct note){.type = NOTE_LOST, .gateway = 7, .connection = 8, .why = NOTE_LOST_KICKED},
        "03 0700000000000000 0800000000000000 02");
    has_note(&(struct note){.type = NOTE_PUSH, .payload = bytes_of("hi", 2)}, "04 6869");
    has_note(
        &(struct note){
            .type = NOTE_KEEP, .gateway = 7, .connection = 8, .round = 9, .key = 10, .session = 11},
        "05 0700000000000000 0800000000000000 09000000 0a00000000000000 0b00000000000000");
    has_note(&(struct note){.type = NOTE_RETURN,
                            .gateway = 7,
                            .connection = 8,
                            .round = 9,
                            .key = 10,
                            .session = 11,
                            .got = 12},
             "06 0700000000000000 0800000000000000 09000000 0a00000000000000 0b00000000000000"
             "0c00000000000000");
    has_note(&(struct note){.type = NOTE_RENEW,
                            .gateway = 7,
                            .connection = 8,
                            .round = 9,
                            .stamp = {1, 2},
                            .key = 10,
                            .session = 11,
                            .epoch = 3,
                            .got_round = 4,
                            .got = 12},
             "07 0700000000000000 0800000000000000 09000000 0100000000000000 0200000000000000"
             "0a00000000000000 0b00000000000000 03000000 04000000 0c00000000000000");
    has_note(&(struct note){.type = NOTE_ACK, .gateway = 7, .connection = 8, .round = 9, .got = 12},
             "08 0700000000000000 0800000000000000 09000000 0c00000000000000");
    has_note(&(struct note){.type = NOTE_KICK, .code = 1000, .payload = bytes_of("bye", 3)},
             "09 e8030000 627965");
    assert_int_equal(note_get(bytes_of("\x09\0\0\0", 4), &back), ERR_CORRUPT);
    has_note(&(struct note){.type = NOTE_TRACE, .payload = bytes_of("hops", 4)}, "0a 686f7073");
    has_note(&(struct note){.type = NOTE_VALUES, .payload = bytes_of("ask", 3)}, "0b 61736b");
    has_note(&(struct note){.type = NOTE_SEND, .number = 7, .payload = bytes_of("hi", 2)},
             "0c 0700000000000000 6869");
    assert_int_equal(note_get(bytes_of("\x0d"
                                       "0123456789abcdef0123",
                                       21),
                              &back),
                     ERR_CORRUPT); // a type that is none
    assert_int_equal(note_get(bytes_of("\0"
                                       "0123456789abcdef0123",
                                       21),
                              &back),
                     ERR_CORRUPT);
    assert_int_equal(note_get(bytes_of("\x03"
                                       "0123456789abcdef\x06",
                                       18),
                              &back),
                     ERR_CORRUPT); // a reason that is none
    uint8_t *big = mem_new(1, PUSH_SIZE_MAX + 2);
    big[0] = NOTE_PUSH;
    assert_int_equal(note_get(bytes_of(big, PUSH_SIZE_MAX + 1), &back), ERR_OK);
    assert_int_equal(note_get(bytes_of(big, PUSH_SIZE_MAX + 2), &back), ERR_CORRUPT);
    mem_free(big);
    big = mem_new(1, VALUES_ASK_MAX + 2);
    big[0] = NOTE_VALUES;
    assert_int_equal(note_get(bytes_of(big, VALUES_ASK_MAX + 1), &back), ERR_OK);
    assert_int_equal(note_get(bytes_of(big, VALUES_ASK_MAX + 2), &back), ERR_CORRUPT);
    mem_free(big);
}

static void the_answer_has_these_bytes(void **state)
{
    const struct bound bound = {.result = BOUND_KEPT, .round = 2, .stamp = {3, 4}};
    struct buffer out = {0};
    struct bound back;

    (void)state;
    bound_put(&out, &bound);
    assert_hex(buffer_bytes(&out), "01 02000000 0300000000000000 0400000000000000");
    assert_int_equal(bound_get(buffer_bytes(&out), &back), ERR_OK);
    assert_true(back.result == BOUND_KEPT && back.round == 2 && back.stamp.count == 4);
    assert_true(back.key == 0);
    assert_int_equal(bound_get((struct bytes){0}, &back), ERR_CORRUPT);

    const struct bound kept = {.result = BOUND_NEW, .key = 5, .next = 6, .epoch = 7, .keep_ms = 8};
    buffer_clear(&out);
    bound_put(&out, &kept);
    assert_hex(buffer_bytes(&out),
               "00 00000000 0000000000000000 0000000000000000 0500000000000000 0600000000000000"
               "07000000 08000000");
    assert_int_equal(bound_get(buffer_bytes(&out), &back), ERR_OK);
    assert_true(back.key == 5 && back.next == 6 && back.epoch == 7 && back.keep_ms == 8);
    assert_int_equal(bound_get(bytes_of(out.data, out.size - 1), &back), ERR_CORRUPT);
    out.data[0] = BOUND_RESULT_LAST + 1;
    assert_int_equal(bound_get(buffer_bytes(&out), &back), ERR_CORRUPT);
    buffer_fini(&out);
}

static enum err take(struct bytes in)
{
    struct reader r = {.at = in.data, .left = in.size};
    struct push_record back;

    return push_get(&r, &back);
}

static void a_push_has_these_bytes(void **state)
{
    struct buffer out = {0};

    (void)state;
    push_put(&out, &push);
    assert_hex(buffer_bytes(&out),
               "0100000000000000 0200000000000000 0300000000000000 04000000 e8030000 01 03000000"
               "627965");
    assert_int_equal(take(buffer_bytes(&out)), ERR_OK);
    for (size_t cut = 0; cut < out.size; cut++) {
        uint8_t *exact = mem_copy(out.data, cut);

        assert_int_equal(take(bytes_of(exact, cut)), ERR_CORRUPT);
        mem_free(exact);
    }
    buffer_fini(&out);
}

static void forged_pushes_are_refused(void **state)
{
    static const struct {
        size_t at;
        uint8_t value;
    } bad[] = {{32, 4}, {32, 255}, {36, 1}, {35, 4}, {16, 0}, {32, PUSH_AGAIN}};

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct buffer out = {0};

        push_put(&out, &push);
        out.data[bad[i].at] = bad[i].value;
        assert_int_equal(take(buffer_bytes(&out)), ERR_CORRUPT);
        buffer_fini(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bond_has_these_bytes),
        cmocka_unit_test(a_bond_that_is_kept_takes_its_pushes_along),
        cmocka_unit_test(several_bonds_follow_one_another),
        cmocka_unit_test(a_bond_that_is_rebound_says_to_whom),
        cmocka_unit_test(a_rebind_has_these_bytes),
        cmocka_unit_test(stamps_are_ordered_by_fence_then_count),
        cmocka_unit_test(notes_have_these_bytes),
        cmocka_unit_test(the_answer_has_these_bytes),
        cmocka_unit_test(a_push_has_these_bytes),
        cmocka_unit_test(forged_pushes_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

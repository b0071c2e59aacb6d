/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of raft/message.h.
 */
#include "raft/heap.h"
#include "raft/message.h"
#include "raft/voters.h"

#include "base/bytes.h"
#include "base/mem.h"
#include "wire/cursor.h"

#include <string.h>

#include "tests/test.h"

enum { FROM = 2, ENTRIES = 3 };

static struct voters voters;
static uint8_t command[] = "sixteen bytes...";
static struct raft_entry entries[ENTRIES];
static uint64_t heard; /* round of what was decoded last */

static int prepare(void **state)
{
    static struct heap heap;
    const uint64_t ids[] = {1, 2, 3};

    (void)state;
    heap_init(&heap);
    assert_int_equal(voters_init(&voters, ids, 3), ERR_OK);
    entries[0] =
        (struct raft_entry){.term = 3, .type = RAFT_COMMAND, .buf = {.base = command, .len = 16}};
    entries[1] =
        (struct raft_entry){.term = 3, .type = RAFT_BARRIER, .buf = {.base = command, .len = 8}};
    entries[2] = (struct raft_entry){
        .term = 4,
        .type = RAFT_CHANGE,
        .buf = {.base = voters.configuration, .len = voters.configuration_size}};
    return 0;
}

/* One message of each type, all fields set. */
static struct raft_message sample(unsigned short type)
{
    struct raft_message m = {.type = type, .server_id = FROM};

    switch (type) {
    case RAFT_IO_APPEND_ENTRIES:
        m.append_entries = (struct raft_append_entries){.term = 5,
                                                        .prev_log_index = 10,
                                                        .prev_log_term = 3,
                                                        .leader_commit = 9,
                                                        .entries = entries,
                                                        .n_entries = ENTRIES};
        break;
    case RAFT_IO_APPEND_ENTRIES_RESULT:
        m.append_entries_result =
            (struct raft_append_entries_result){.term = 5, .rejected = 1, .last_log_index = 7};
        break;
    case RAFT_IO_REQUEST_VOTE:
        m.request_vote = (struct raft_request_vote){.term = 5,
                                                    .candidate_id = FROM,
                                                    .last_log_index = 7,
                                                    .last_log_term = 4,
                                                    .disrupt_leader = true,
                                                    .pre_vote = true};
        break;
    case RAFT_IO_REQUEST_VOTE_RESULT:
        m.request_vote_result = (struct raft_request_vote_result){
            .term = 5, .vote_granted = true, .pre_vote = raft_tribool_false};
        break;
    case RAFT_IO_INSTALL_SNAPSHOT:
        m.install_snapshot =
            (struct raft_install_snapshot){.term = 5,
                                           .last_index = 7,
                                           .last_term = 4,
                                           .conf_index = 1,
                                           .data = {.base = command, .len = sizeof command}};
        break;
    case RAFT_IO_TIMEOUT_NOW:
        m.timeout_now =
            (struct raft_timeout_now){.term = 5, .last_log_index = 7, .last_log_term = 4};
        break;
    default:
        fail();
    }
    return m;
}

static struct buffer encode(const struct raft_message *m, size_t entries_size_max)
{
    struct buffer out = {0};

    assert_int_equal(message_encode(&out, m, 0, &voters, entries_size_max), ERR_OK);
    return out;
}

static void every_type_comes_back_the_same(void **state)
{
    (void)state;
    for (int type = RAFT_IO_APPEND_ENTRIES; type <= RAFT_IO_TIMEOUT_NOW; type++) {
        const struct raft_message m = sample((unsigned short)type);
        struct raft_message back;
        struct buffer first = encode(&m, MESSAGE_ENTRIES_SIZE_MAX);
        assert_int_equal(message_decode(&back, &heard, FROM, buffer_bytes(&first), &voters),
                         ERR_OK);
        assert_int_equal(back.type, type);
        assert_int_equal(back.server_id, FROM);
        assert_string_equal(back.server_address, "2");
        struct buffer second = encode(&back, MESSAGE_ENTRIES_SIZE_MAX);
        assert_true(bytes_equal(buffer_bytes(&first), buffer_bytes(&second)));
        message_fini(&back);
        buffer_fini(&first);
        buffer_fini(&second);
    }
}

static void a_round_comes_back(void **state)
{
    enum { AT_ROUND = 4 };
    const struct raft_message m = sample(RAFT_IO_APPEND_ENTRIES);
    struct raft_message back;
    struct buffer out = {0};

    (void)state;
    assert_int_equal(message_encode(&out, &m, 77, &voters, MESSAGE_ENTRIES_SIZE_MAX), ERR_OK);
    assert_int_equal(message_decode(&back, &heard, FROM, buffer_bytes(&out), &voters), ERR_OK);
    assert_int_equal(heard, 77);
    assert_int_equal(back.append_entries.prev_log_index, 10);
    message_fini(&back);
    out.data[AT_ROUND] = 0; // then it would have none
    assert_int_equal(message_decode(&back, &heard, FROM, buffer_bytes(&out), &voters), ERR_CORRUPT);
    memset(out.data + AT_ROUND, 0xff, sizeof heard);
    assert_int_equal(message_decode(&back, &heard, FROM, buffer_bytes(&out), &voters), ERR_CORRUPT);
    buffer_fini(&out);
}

static void fields_keep_their_values(void **state)
{
    struct raft_message m = sample(RAFT_IO_APPEND_ENTRIES);
    struct buffer bytes = encode(&m, MESSAGE_ENTRIES_SIZE_MAX);

    (void)state;
    assert_int_equal(message_decode(&m, &heard, FROM, buffer_bytes(&bytes), &voters), ERR_OK);
    const struct raft_append_entries *a = &m.append_entries;
    assert_int_equal(a->term, 5);
    assert_int_equal(a->prev_log_index, 10);
    assert_int_equal(a->prev_log_term, 3);
    assert_int_equal(a->leader_commit, 9);
    assert_int_equal(a->n_entries, ENTRIES);
    for (unsigned i = 0; i < ENTRIES; i++) {
        assert_int_equal(a->entries[i].term, entries[i].term);
        assert_int_equal(a->entries[i].type, entries[i].type);
        assert_int_equal(a->entries[i].buf.len, entries[i].buf.len);
        assert_memory_equal(a->entries[i].buf.base, entries[i].buf.base, entries[i].buf.len);
        assert_ptr_equal(a->entries[i].batch, a->entries[0].batch);
    }
    message_fini(&m);
    buffer_fini(&bytes);
}

static void every_prefix_and_every_longer_one_is_refused(void **state)
{
    (void)state;
    for (int type = RAFT_IO_APPEND_ENTRIES; type <= RAFT_IO_TIMEOUT_NOW; type++) {
        const struct raft_message m = sample((unsigned short)type);
        struct raft_message back;
        struct buffer whole = encode(&m, MESSAGE_ENTRIES_SIZE_MAX);
        for (size_t size = 0; size < whole.size; size++) {
            // A copy of its own size, so that a sanitizer sees a read past its end.
            uint8_t *prefix = mem_copy(whole.data, size);
            assert_int_equal(message_decode(&back, &heard, FROM, bytes_of(prefix, size), &voters),
                             ERR_CORRUPT);
            mem_free(prefix);
        }
        buffer_put(&whole, "", 1);
        assert_int_equal(message_decode(&back, &heard, FROM, buffer_bytes(&whole), &voters),
                         ERR_CORRUPT);
        buffer_fini(&whole);
    }
}

static void a_long_suffix_is_cut_with_its_commit_index(void **state)
{
    struct raft_message m = sample(RAFT_IO_APPEND_ENTRIES);

    (void)state;
    m.append_entries.leader_commit = 13;
    struct buffer bytes = encode(&m, 1); // one entry at least, whatever its size
    assert_int_equal(message_decode(&m, &heard, FROM, buffer_bytes(&bytes), &voters), ERR_OK);
    assert_int_equal(m.append_entries.n_entries, 1);
    assert_int_equal(m.append_entries.leader_commit, 11);
    message_fini(&m);
    buffer_fini(&bytes);
    m = sample(RAFT_IO_APPEND_ENTRIES);
    bytes = encode(&m, 24);
    assert_int_equal(message_decode(&m, &heard, FROM, buffer_bytes(&bytes), &voters), ERR_OK);
    assert_int_equal(m.append_entries.n_entries, 2);
    message_fini(&m);
    buffer_fini(&bytes);
}

static void a_snapshot_over_the_limit_is_not_sent(void **state)
{
    struct raft_message m = sample(RAFT_IO_INSTALL_SNAPSHOT);
    struct buffer out = {0};

    (void)state;
    m.install_snapshot.data.len = (size_t)MESSAGE_SNAPSHOT_SIZE_MAX + 1;
    assert_int_equal(message_encode(&out, &m, 0, &voters, MESSAGE_ENTRIES_SIZE_MAX), ERR_TOO_BIG);
    assert_int_equal(out.size, 0);
    buffer_fini(&out);
}

/* Where the fields of an AppendEntries lie. */
enum {
    AT_FORMAT = 0,
    AT_TYPE = 1,
    AT_TERM = 4,
    AT_PREV = 12,
    AT_COUNT = 36,
    AT_ENTRY_TERM = 40,
    AT_ENTRY_TYPE = 48,
    AT_ENTRY_SIZE = 50
};

static void hostile_fields_are_refused(void **state)
{
    static const struct {
        size_t at;
        size_t size;
        uint64_t value;
    } cases[] = {
        {AT_FORMAT, 1, 0},
        {AT_FORMAT, 1, 2},
        {AT_TYPE, 1, 0},
        {AT_TYPE, 1, 7},
        {AT_TYPE, 1, 255},
        {AT_TERM, 8, UINT64_MAX},
        {AT_TERM, 8, 2}, // below its entries' terms
        {AT_PREV, 8, UINT64_MAX - 1},
        {AT_COUNT, 4, 1},
        {AT_COUNT, 4, 4},
        {AT_COUNT, 4, 1000},
        {AT_COUNT, 4, UINT32_MAX},
        {AT_COUNT, 4, UINT32_MAX / 14 + 1},
        {AT_ENTRY_TERM, 8, 0},
        {AT_ENTRY_TERM, 8, 2}, // below the term of the entry before
        {AT_ENTRY_TERM, 8, 5}, // above the term of the entry after
        {AT_ENTRY_TYPE, 2, 0},
        {AT_ENTRY_TYPE, 2, 4},
        {AT_ENTRY_TYPE, 2, 0x8001},
        {AT_ENTRY_TYPE, 2, RAFT_CHANGE}, // not the voters
        {AT_ENTRY_SIZE, 4, 0},
        {AT_ENTRY_SIZE, 4, 15},
        {AT_ENTRY_SIZE, 4, 24},
        {AT_ENTRY_SIZE, 4, UINT32_MAX - 7},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct raft_message m = sample(RAFT_IO_APPEND_ENTRIES);
        struct buffer bytes = encode(&m, MESSAGE_ENTRIES_SIZE_MAX);
        for (size_t k = 0; k < cases[i].size; k++) {
            bytes.data[cases[i].at + k] = (uint8_t)(cases[i].value >> 8 * k);
        }
        if (message_decode(&m, &heard, FROM, buffer_bytes(&bytes), &voters) != ERR_CORRUPT) {
            fail_msg("case %zu was taken", i);
        }
        buffer_fini(&bytes);
    }
}

static void another_configuration_is_refused(void **state)
{
    struct raft_message m = sample(RAFT_IO_APPEND_ENTRIES);
    struct buffer bytes = encode(&m, MESSAGE_ENTRIES_SIZE_MAX);

    (void)state;
    bytes.data[bytes.size - 1] ^= 1; // the last byte of the entry that names the voters
    assert_int_equal(message_decode(&m, &heard, FROM, buffer_bytes(&bytes), &voters), ERR_CORRUPT);
    buffer_fini(&bytes);
    m = sample(RAFT_IO_INSTALL_SNAPSHOT);
    bytes = encode(&m, MESSAGE_ENTRIES_SIZE_MAX);
    bytes.data[4 + 4 * 8 + 8 + 1] ^= 1;
    assert_int_equal(message_decode(&m, &heard, FROM, buffer_bytes(&bytes), &voters), ERR_CORRUPT);
    buffer_fini(&bytes);
}

static void nobody_asks_for_a_vote_for_another(void **state)
{
    struct raft_message m = sample(RAFT_IO_REQUEST_VOTE);
    struct buffer bytes = encode(&m, MESSAGE_ENTRIES_SIZE_MAX);

    (void)state;
    assert_int_equal(message_decode(&m, &heard, 3, buffer_bytes(&bytes), &voters), ERR_CORRUPT);
    buffer_fini(&bytes);
}

static void a_set_of_voters_has_no_doubles(void **state)
{
    struct voters v;

    (void)state;
    assert_int_equal(voters_init(&v, (const uint64_t[]){1, 2, 1}, 3), ERR_INVALID);
    assert_int_equal(voters_init(&v, (const uint64_t[]){0, 2, 1}, 3), ERR_INVALID);
    assert_int_equal(voters_init(&v, (const uint64_t[]){1, 2}, 2), ERR_INVALID);
    assert_int_equal(voters_init(&v, (const uint64_t[]){3, 2, 1}, 3), ERR_OK);
    assert_true(bytes_equal(voters_configuration(&v), voters_configuration(&voters)));
    assert_null(voters_address(&v, 4));
}

int main(void)
{
    const struct CMUnitTest cases[] = {
        cmocka_unit_test(every_type_comes_back_the_same),
        cmocka_unit_test(a_round_comes_back),
        cmocka_unit_test(fields_keep_their_values),
        cmocka_unit_test(every_prefix_and_every_longer_one_is_refused),
        cmocka_unit_test(a_long_suffix_is_cut_with_its_commit_index),
        cmocka_unit_test(a_snapshot_over_the_limit_is_not_sent),
        cmocka_unit_test(hostile_fields_are_refused),
        cmocka_unit_test(another_configuration_is_refused),
        cmocka_unit_test(nobody_asks_for_a_vote_for_another),
        cmocka_unit_test(a_set_of_voters_has_no_doubles),
    };
    return cmocka_run_group_tests(cases, prepare, NULL);
}

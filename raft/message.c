/* SPDX-License-Identifier: Apache-2.0
 *
 * Encodes and decodes libraft's messages.
 */
#include "raft/message.h"

#include "base/assert.h"
#include "base/mutant.h"
#include "wire/cursor.h"

#include <string.h>

enum {
    HEAD_SIZE = 4,
    ROUND_SIZE = 8,
    APPEND_SIZE = 4 * 8 + 4,
    ENTRY_HEAD_SIZE = 8 + 2 + 4,
    ENTRY_SIZE_MIN = 8,
    INSTALL_SIZE = 4 * 8 + 4 + 4
};

/* Terms and indexes stay far below what overflows in sums or in SQLite. */
static const uint64_t number_max = (uint64_t)1 << 60;

static uint64_t get_number(struct reader *r)
{
    const uint64_t number = get_u64(r);

    r->bad = r->bad || number > number_max;
    return number;
}

static uint8_t get_up_to(struct reader *r, uint8_t most)
{
    const uint8_t value = get_u8(r);

    r->bad = r->bad || value > most;
    return value;
}

/* How many entries go into one message, at least one; `*size` gets their bytes. */
static unsigned entries_that_fit(const struct raft_append_entries *append, size_t size_max,
                                 size_t *size)
{
    unsigned count = 0;

    *size = 0;
    while (count < append->n_entries) {
        const size_t more = append->entries[count].buf.len;
        if (count > 0 && *size + more > size_max) {
            break;
        }
        *size += more;
        count++;
    }
    return count;
}

static void encode_append(struct writer *w, const struct raft_append_entries *append,
                          unsigned count)
{
    const uint64_t shown = append->prev_log_index + count;

    put_u64(w, append->term);
    put_u64(w, append->prev_log_index);
    put_u64(w, append->prev_log_term);
    put_u64(w, append->leader_commit < shown ? append->leader_commit : shown);
    put_u32(w, count);
    for (unsigned i = 0; i < count; i++) {
        put_u64(w, append->entries[i].term);
        put_u16(w, append->entries[i].type);
        put_u32(w, (uint32_t)append->entries[i].buf.len);
    }
    for (unsigned i = 0; i < count; i++) {
        put_bytes(w, append->entries[i].buf.base, append->entries[i].buf.len);
    }
}

static void encode_install(struct writer *w, const struct raft_install_snapshot *install,
                           const struct voters *voters)
{
    const struct bytes configuration = voters_configuration(voters);

    put_u64(w, install->term);
    put_u64(w, install->last_index);
    put_u64(w, install->last_term);
    put_u64(w, install->conf_index);
    put_u32(w, (uint32_t)configuration.size);
    put_u32(w, (uint32_t)install->data.len);
    put_bytes(w, configuration.data, configuration.size);
    put_bytes(w, install->data.base, install->data.len);
}

static void encode_small(struct writer *w, const struct raft_message *m)
{
    switch (m->type) {
    case RAFT_IO_APPEND_ENTRIES_RESULT:
        put_u64(w, m->append_entries_result.term);
        put_u64(w, m->append_entries_result.rejected);
        put_u64(w, m->append_entries_result.last_log_index);
        break;
    case RAFT_IO_REQUEST_VOTE:
        put_u64(w, m->request_vote.term);
        put_u64(w, m->request_vote.candidate_id);
        put_u64(w, m->request_vote.last_log_index);
        put_u64(w, m->request_vote.last_log_term);
        put_u8(w, m->request_vote.disrupt_leader);
        put_u8(w, m->request_vote.pre_vote);
        break;
    case RAFT_IO_REQUEST_VOTE_RESULT:
        put_u64(w, m->request_vote_result.term);
        put_u8(w, m->request_vote_result.vote_granted);
        put_u8(w, (uint8_t)m->request_vote_result.pre_vote);
        break;
    case RAFT_IO_TIMEOUT_NOW:
        put_u64(w, m->timeout_now.term);
        put_u64(w, m->timeout_now.last_log_index);
        put_u64(w, m->timeout_now.last_log_term);
        break;
    default:
        UNREACHABLE();
    }
}

enum err message_encode(struct buffer *out, const struct raft_message *message, uint64_t round,
                        const struct voters *voters, size_t entries_size_max)
{
    enum { SMALL_SIZE_MAX = 64 };
    size_t room = SMALL_SIZE_MAX;
    size_t entries_size = 0;
    unsigned count = 0;

    if (message->type == RAFT_IO_APPEND_ENTRIES) {
        count = entries_that_fit(&message->append_entries, entries_size_max, &entries_size);
        room = APPEND_SIZE + count * (size_t)ENTRY_HEAD_SIZE + entries_size;
    } else if (message->type == RAFT_IO_INSTALL_SNAPSHOT) {
        if (message->install_snapshot.data.len > MESSAGE_SNAPSHOT_SIZE_MAX) {
            return ERR_TOO_BIG;
        }
        room = INSTALL_SIZE + voters->configuration_size + message->install_snapshot.data.len;
    }
    room += HEAD_SIZE + ROUND_SIZE;
    struct writer w = {.at = buffer_reserve(out, room), .left = room};
    put_u8(&w, round == 0 ? MESSAGE_FORMAT : MESSAGE_FORMAT_ROUND);
    put_u8(&w, (uint8_t)message->type);
    put_u16(&w, voters->generation);
    if (round != 0) {
        put_u64(&w, round);
    }
    if (message->type == RAFT_IO_APPEND_ENTRIES) {
        encode_append(&w, &message->append_entries, count);
    } else if (message->type == RAFT_IO_INSTALL_SNAPSHOT) {
        encode_install(&w, &message->install_snapshot, voters);
    } else {
        encode_small(&w, message);
    }
    ASSERT(!w.bad);
    out->size += room - w.left;
    return ERR_OK;
}

/* Check the table of entries and that exactly their bytes follow it. Returns those bytes' size, 0
 * if anything is wrong. */
static size_t check_entries(struct reader r, const struct raft_append_entries *append,
                            struct bytes configuration)
{
    struct reader heads = r;
    size_t total = 0;
    uint64_t before = append->prev_log_term;

    (void)get_bytes(&r, append->n_entries * (size_t)ENTRY_HEAD_SIZE);
    for (unsigned i = 0; i < append->n_entries; i++) {
        const uint64_t term = get_number(&heads);
        const uint16_t type = get_u16(&heads);
        const uint32_t size = get_u32(&heads);
        const uint8_t *data = get_bytes(&r, size);
        if (heads.bad || data == NULL || size == 0 || size % 8 != 0 || term < before || term == 0 ||
            term > append->term || type < RAFT_COMMAND || type > RAFT_CHANGE) {
            return 0;
        }
        if (type == RAFT_CHANGE && !bytes_equal(bytes_of(data, size), configuration)) {
            return 0;
        }
        before = term;
        total += size;
    }
    return r.left == 0 ? total : 0;
}

static void decode_entries(struct reader *r, struct raft_append_entries *append, size_t total)
{
    uint8_t *batch = raft_malloc(total);
    size_t at = 0;

    append->entries = raft_malloc(append->n_entries * sizeof *append->entries);
    for (unsigned i = 0; i < append->n_entries; i++) {
        struct raft_entry *entry = &append->entries[i];
        entry->term = get_u64(r);
        entry->type = get_u16(r);
        entry->buf.len = get_u32(r);
        entry->buf.base = batch + at;
        entry->batch = batch;
        at += entry->buf.len;
    }
    memcpy(batch, get_bytes(r, total), total);
}

static void decode_append(struct reader *r, struct raft_append_entries *append,
                          struct bytes configuration)
{
    append->term = get_number(r);
    append->prev_log_index = get_number(r);
    append->prev_log_term = get_number(r);
    append->leader_commit = get_number(r);
    append->n_entries = get_u32(r);
    append->entries = NULL;
    if (r->bad || append->n_entries == 0) {
        return;
    }
    // Bounds the table before anything is multiplied or allocated.
    if (append->n_entries > r->left / (ENTRY_HEAD_SIZE + ENTRY_SIZE_MIN)) {
        r->bad = true;
        return;
    }
    const size_t total = check_entries(*r, append, configuration);
    if (total == 0) {
        r->bad = true;
        return;
    }
    decode_entries(r, append, total);
}

static void decode_install(struct reader *r, struct raft_install_snapshot *install,
                           const struct voters *voters)
{
    install->term = get_number(r);
    install->last_index = get_number(r);
    install->last_term = get_number(r);
    install->conf_index = get_number(r);
    const uint32_t configuration_size = get_u32(r);
    const uint32_t data_size = get_u32(r);
    const uint8_t *configuration = get_bytes(r, configuration_size);
    const uint8_t *data = get_bytes(r, data_size);
    r->bad =
        r->bad || r->left != 0 || install->last_index == 0 || data_size == 0 ||
        !bytes_equal(bytes_of(configuration, configuration_size), voters_configuration(voters));
    if (r->bad) {
        return;
    }
    voters_configure(voters, &install->conf);
    install->data.len = data_size;
    install->data.base = raft_malloc(data_size);
    memcpy(install->data.base, data, data_size);
}

static void decode_vote(struct reader *r, struct raft_message *m)
{
    m->request_vote.term = get_number(r);
    m->request_vote.candidate_id = get_u64(r);
    m->request_vote.last_log_index = get_number(r);
    m->request_vote.last_log_term = get_number(r);
    m->request_vote.disrupt_leader = get_up_to(r, 1) != 0;
    m->request_vote.pre_vote = get_up_to(r, 1) != 0;
    // A voter asks for itself only.
    r->bad = r->bad || m->request_vote.candidate_id != m->server_id;
}

static void decode_body(struct reader *r, struct raft_message *m, const struct voters *voters)
{
    switch (m->type) {
    case RAFT_IO_APPEND_ENTRIES:
        decode_append(r, &m->append_entries, voters_configuration(voters));
        break;
    case RAFT_IO_APPEND_ENTRIES_RESULT:
        m->append_entries_result.term = get_number(r);
        m->append_entries_result.rejected = get_number(r);
        m->append_entries_result.last_log_index = get_number(r);
        break;
    case RAFT_IO_REQUEST_VOTE:
        decode_vote(r, m);
        break;
    case RAFT_IO_REQUEST_VOTE_RESULT:
        m->request_vote_result.term = get_number(r);
        m->request_vote_result.vote_granted = get_up_to(r, 1) != 0;
        m->request_vote_result.pre_vote = (raft_tribool)get_up_to(r, raft_tribool_false);
        break;
    case RAFT_IO_INSTALL_SNAPSHOT:
        decode_install(r, &m->install_snapshot, voters);
        break;
    case RAFT_IO_TIMEOUT_NOW:
        m->timeout_now.term = get_number(r);
        m->timeout_now.last_log_index = get_number(r);
        m->timeout_now.last_log_term = get_number(r);
        break;
    default:
        r->bad = true;
    }
}

enum err message_decode(struct raft_message *out, uint64_t *round, uint64_t from, struct bytes in,
                        const struct voters *voters)
{
    struct reader r = {.at = in.data, .left = in.size};

    memset(out, 0, sizeof *out);
    out->server_id = from;
    out->server_address = voters_address(voters, from);
    ASSERT(out->server_address != NULL);
    const uint8_t format = get_u8(&r);
    out->type = get_u8(&r);
    const uint16_t generation = get_u16(&r);
    const bool other = mutant(M_ANYGENERATION) ? generation < voters->generation
                                               : generation != voters->generation;
    if (other || !message_is_format(format) || r.bad) {
        return ERR_CORRUPT;
    }
    *round = format == MESSAGE_FORMAT_ROUND ? get_number(&r) : 0;
    r.bad = r.bad || (format == MESSAGE_FORMAT_ROUND && *round == 0);
    decode_body(&r, out, voters);
    if (!r.bad && r.left == 0) {
        return ERR_OK;
    }
    if (!r.bad) {
        message_fini(out); // trailing bytes after a whole message
    }
    return ERR_CORRUPT;
}

void message_fini(struct raft_message *message)
{
    if (message->type == RAFT_IO_APPEND_ENTRIES && message->append_entries.n_entries > 0) {
        raft_free(message->append_entries.entries[0].batch);
        raft_free(message->append_entries.entries);
    } else if (message->type == RAFT_IO_INSTALL_SNAPSHOT) {
        raft_configuration_close(&message->install_snapshot.conf);
        raft_free(message->install_snapshot.data.base);
    }
}

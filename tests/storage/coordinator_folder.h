/* SPDX-License-Identifier: Apache-2.0
 *
 * A stopped coordinator's data folder, made by the shipped storage code: a log
 * of real commands behind a snapshot, state.db, the witness.
 */
#ifndef TESTS_STORAGE_COORDINATOR_FOLDER_H
#define TESTS_STORAGE_COORDINATOR_FOLDER_H

#include "tests/command.h"
#include "tests/folder.h"

#include "raft/voters.h"
#include "storage/log/entry.h"
#include "storage/log/log_sqlite.h"
#include "storage/log/number.h"
#include "storage/log/watermark_record.h"
#include "storage/state/state_sqlite.h"

struct writer_of_folder {
    char path[256];
    struct voters voters;
    struct log_store *store;
    struct log_image image;
    struct state state;
    struct state_db *db;
    uint64_t index;
};

static void never_wake(void *context)
{
    (void)context;
}

static void folder_drain(struct writer_of_folder *w)
{
    struct log_request *r;

    log_sqlite_wait(w->store);
    while ((r = log_store_completed(w->store)) != NULL) {
        log_request_free(r);
    }
}

static void folder_open_writer(struct writer_of_folder *w, const char *path, uint64_t voter,
                               size_t voter_count)
{
    static const uint64_t ids[] = {1, 2, 3};
    char name[320];

    (void)snprintf(w->path, sizeof w->path, "%s", path);
    assert_int_equal(voters_init(&w->voters, ids, voter_count), ERR_OK);
    const struct log_sqlite_config config = {.directory = path,
                                             .cluster = "test",
                                             .voter = voter,
                                             .voters = w->voters.id,
                                             .voter_count = voter_count,
                                             .configuration = voters_configuration(&w->voters),
                                             .identity = 100 + voter,
                                             .wake = never_wake};
    log_image_init(&w->image);
    assert_int_equal(log_sqlite_open(&w->store, &w->image, &config), ERR_OK);
    w->index = w->image.first + w->image.entry_count - 1;
    (void)snprintf(name, sizeof name, "%s/state.db", path);
    assert_int_equal(state_db_open(&w->db, name), ERR_OK);
    state_init(&w->state);
}

/* One command as an entry of its own; returns what was drawn, 0 = refused. */
static uint64_t folder_give(struct writer_of_folder *w, Rh__Command__BodyCase body, void *message)
{
    Rh__Command command = RH__COMMAND__INIT;
    struct state_result result;
    struct buffer packed = {0};
    uint8_t entry[4096] = {0};

    command.time_us = 1000;
    command.proposer = 1;
    command.body_case = body;
    command.init = message; // any member of the union
    command_put(&packed, &command);
    struct writer out = {.at = entry, .left = sizeof entry};
    put_u32(&out, 1);
    put_u32(&out, (uint32_t)packed.size);
    put_bytes(&out, packed.data, packed.size);
    assert_false(out.bad);
    const size_t size = (sizeof entry - out.left + 7) / 8 * 8;
    struct log_request *r = log_append_new(1, size);
    const struct log_entry e = {.term = 1, .type = ENTRY_COMMANDS, .data = bytes_of(entry, size)};
    r->index = ++w->index;
    log_append_add(r, &e);
    log_store_submit(w->store, r);
    folder_drain(w);
    buffer_fini(&packed);
    state_apply(&w->state, &command, &result);
    state_db_apply(w->db, &w->state, &command, &result);
    state_db_commit(w->db, w->index);
    return stamp_of(result);
}

static uint64_t folder_register(struct writer_of_folder *w, const char *name, uint64_t nonce)
{
    Rh__CommandRegister in = registration(name, nonce, 0);

    return folder_give(w, RH__COMMAND__BODY_REGISTER_, &in);
}

/* Begin the move of a vnode to the slot, and commit it unless it is to stay pending. */
static uint64_t folder_move(struct writer_of_folder *w, uint32_t vnode, uint16_t to, bool commit_it)
{
    Rh__CommandBegin in = RH__COMMAND_BEGIN__INIT;
    Rh__CommandCommit done = RH__COMMAND_COMMIT__INIT;
    Rh__RingOp op = RH__RING_OP__INIT;
    Rh__RingOp *ops[] = {&op};
    uint64_t voted[4];

    op.kind = RING_MOVE;
    op.vnode = vnode;
    op.from = ring_find(&w->state.view.ring, vnode)->owner;
    op.to = to;
    in.ops = ops;
    in.n_ops = 1;
    in.base_version = w->state.view.ring.version;
    in.why = proto_text("test");
    const uint64_t number = folder_give(w, RH__COMMAND__BODY_BEGIN, &in);
    assert_int_not_equal(number, 0);
    if (commit_it) {
        const struct state_txn *t = state_txn(&w->state, number);

        done.txn = number;
        for (size_t i = 0; i < t->part_count; i++) {
            voted[done.n_voted++] = t->parts[i].incarnation;
        }
        done.voted = voted;
        assert_int_not_equal(folder_give(w, RH__COMMAND__BODY_COMMIT, &done), 0);
    }
    return number;
}

static void folder_snapshot(struct writer_of_folder *w, uint64_t keep_from)
{
    struct buffer state = {0};
    struct buffer sealed = {0};

    state_db_snapshot(w->db, &w->state, &state);
    entry_seal_snapshot(&sealed, w->index, buffer_bytes(&state));
    const struct log_snapshot snapshot = {.index = w->index,
                                          .term = 1,
                                          .configuration_index = 1,
                                          .configuration = voters_configuration(&w->voters),
                                          .data = buffer_bytes(&sealed)};
    log_store_submit(w->store, log_snapshot_new(&snapshot, keep_from));
    folder_drain(w);
    buffer_fini(&state);
    buffer_fini(&sealed);
}

static void folder_close_writer(struct writer_of_folder *w)
{
    char name[320];
    uint8_t payload[WATERMARK_RECORD_SIZE];
    struct number *watermark = NULL;
    struct buffer found = {0};
    const struct watermark_record note = {.number = w->state.number, .index = w->index};

    (void)snprintf(name, sizeof name, "%s/witness", w->path);
    watermark_record_encode(payload, &note);
    assert_int_equal(number_open(&watermark, name, &found), ERR_OK);
    assert_int_equal(number_store(watermark, bytes_of(payload, sizeof payload)), ERR_OK);
    number_close(watermark);
    buffer_fini(&found);
    log_store_close(w->store);
    log_image_fini(&w->image);
    state_db_close(w->db);
    state_fini(&w->state);
}

/* Two nodes, some moves, a snapshot in the middle, one move that stays pending; era 1. Returns the
 * number drawn last. */
static uint64_t folder_write(struct writer_of_folder *w, const char *path, uint64_t voter,
                             size_t voter_count)
{
    Rh__CommandInit in = RH__COMMAND_INIT__INIT;

    folder_open_writer(w, path, voter, voter_count);
    in.cluster = proto_text("test");
    in.fleet_high = 98;
    in.fleet_low = 99;
    in.key0 = 1;
    in.key1 = 2;
    in.grid = RING_GRID_MIN;
    in.vnodes_per_weight = TEST_VNODES;
    in.era = 1;
    (void)folder_give(w, RH__COMMAND__BODY_INIT, &in);
    assert_int_not_equal(folder_register(w, "n1", 11), 0);
    assert_int_not_equal(folder_register(w, "n2", 12), 0);
    (void)log_store_set_vote(w->store, 3, 2);
    log_store_set_admitted(w->store);
    (void)folder_move(w, 0, 2, true);
    (void)folder_move(w, 1, 2, true);
    folder_snapshot(w, w->index - 1);
    (void)folder_move(w, 2, 2, true);
    return folder_move(w, 3, 2, false);
}

/* Write a whole folder as folder_write() does, stopped cleanly. Returns its number. */
__attribute__((unused)) static uint64_t folder_fill(const char *path, uint64_t voter)
{
    struct writer_of_folder w = {0};
    const uint64_t number = folder_write(&w, path, voter, 3);

    folder_close_writer(&w);
    return number;
}

#endif

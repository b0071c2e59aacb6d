/* SPDX-License-Identifier: Apache-2.0
 *
 * Drives the shipped state.db beside the simulated state and compares them.
 */
#include "sim/mirror.h"

#include "base/assert.h"
#include "sim/same.h"
#include "storage/log/entry.h"

#include <string.h>

enum { COMMIT_EVERY = 8, SNAPSHOT_EVERY = 64 };

void mirror_open(struct mirror *m)
{
    const enum err e = state_db_open(&m->db, NULL);

    ASSERT(e == ERR_OK);
}

void mirror_close(struct mirror *m)
{
    state_db_close(m->db);
    buffer_fini(&m->snapshot);
    *m = (struct mirror){0};
}

void mirror_load(const struct mirror *m, struct state *out)
{
    struct state_db *db = NULL;
    const enum err e = state_db_open(&db, NULL);

    ASSERT(e == ERR_OK);
    state_init(out);
    const bool loaded = state_db_restore(db, buffer_bytes(&m->snapshot), out);
    ASSERT(loaded);
    state_db_close(db);
}

/* All is committed. */
static const char *take_snapshot(struct mirror *m, const struct state *s, uint64_t index)
{
    struct state back;

    buffer_clear(&m->snapshot);
    state_db_snapshot(m->db, s, &m->snapshot);
    m->index = index;
    mirror_load(m, &back);
    const char *what = same_state(s, &back);
    state_fini(&back);
    return what;
}

const char *mirror_apply(struct mirror *m, const struct state *s, const Rh__Command *command,
                         const struct state_result *result, uint64_t index)
{
    state_db_apply(m->db, s, command, result);
    if (index % COMMIT_EVERY == 0) {
        state_db_commit(m->db, index);
    }
    if (index % SNAPSHOT_EVERY != 0 || !s->begun) {
        return NULL;
    }
    return take_snapshot(m, s, index);
}

void mirror_replay_open(const struct mirror *m, uint64_t keep, struct replay *r)
{
    static const struct log_snapshot none;
    const bool usable = m->snapshot.size > 0 && m->index <= keep;
    const enum err e =
        usable ? replay_open_state(r, buffer_bytes(&m->snapshot), m->index) : replay_open(r, &none);

    ASSERT(e == ERR_OK);
}

/* An entry with this command alone, as raft/ writes it. */
static void put_entry(struct buffer *out, struct bytes command)
{
    const size_t size = ENTRY_HEAD_SIZE + ENTRY_LENGTH_SIZE + command.size;
    struct writer w = {.at = buffer_reserve(out, size), .left = size};

    put_u32(&w, 1);
    put_u32(&w, (uint32_t)command.size);
    put_bytes(&w, command.data, command.size);
    out->size += size;
}

void mirror_replay_entry(struct replay *r, struct bytes command)
{
    struct buffer bytes = {0};
    struct log_entry entry = {.type = command.size > 0 ? ENTRY_COMMANDS : ENTRY_BARRIER};
    struct log_image image = {.first = r->index + 1, .entry = &entry, .entry_count = 1};

    if (command.size > 0) {
        put_entry(&bytes, command);
    }
    entry.data = buffer_bytes(&bytes);
    const enum err e = replay_run(r, &image, r->index + 1, (struct replay_watch){0});
    ASSERT(e == ERR_OK);
    buffer_fini(&bytes);
}

const char *mirror_replay_end(struct mirror *m, struct replay *r, uint64_t index, struct state *out)
{
    state_db_close(m->db);
    m->db = r->db;
    *out = r->state;
    *r = (struct replay){0};
    return take_snapshot(m, out, index);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Snapshots of state.db: an image of the database behind a header that tells if it is whole.
 */
#include "storage/state/db_sqlite.h"

#include "base/assert.h"
#include "base/crc.h"
#include "base/log.h"
#include "storage/state/event_sqlite.h"
#include "storage/state/load_sqlite.h"
#include "wire/cursor.h"

#include <stdlib.h>
#include <string.h>

enum {
    SNAPSHOT_HEADER = 64,
    // Where a database image says how it was journalled; 1 = not WAL, which deserialize refuses.
    IMAGE_WRITE_FORMAT = 18,
    IMAGE_READ_FORMAT = 19,
};

static const char snapshot_magic[8] = {'R', 'H', 'S', 'T', 'A', 'T', 'E', '1'};

void state_db_snapshot(struct state_db *db, const struct state *s, struct buffer *out)
{
    struct buffer ring = {0};
    sqlite3_int64 size = 0;
    const size_t start = out->size;

    ASSERT(!db->open); // the index in its header is of the last commit
    // The ring once more in its own canonical bytes: what restore() checks and loads.
    ring_encode(&s->view.ring, &ring);
    struct statement q = statement_open(db->db, "UPDATE cluster SET ring=?");
    statement_blob(&q, buffer_bytes(&ring));
    statement_run(&q);
    statement_close(&q);
    buffer_fini(&ring);
    unsigned char *image = sqlite3_serialize(db->db, "main", &size, 0);
    if (image == NULL || size < 512) {
        log_error("storage",
                  "serialize_failed",
                  "file=%s reason=\"%s\" remedy=\"repair the disk, then start again\"",
                  sqlite3_db_filename(db->db, "main"),
                  sqlite3_errmsg(db->db));
        exit(74);
    }
    image[IMAGE_WRITE_FORMAT] = image[IMAGE_READ_FORMAT] = 1;
    uint8_t *header = buffer_reserve(out, SNAPSHOT_HEADER + (size_t)size);
    struct writer w = {.at = header, .left = SNAPSHOT_HEADER};
    memset(header, 0, SNAPSHOT_HEADER);
    put_bytes(&w, snapshot_magic, sizeof snapshot_magic);
    put_u64(&w, db->index);
    put_u64(&w, (uint64_t)size);
    put_u32(&w, crc32c(image, (size_t)size));
    out->size = start + SNAPSHOT_HEADER;
    buffer_put(out, image, (size_t)size);
    sqlite3_free(image);
}

/* The image inside a snapshot; false if it is not one of ours, or damaged. */
static bool open_snapshot(struct bytes snapshot, uint64_t *index, struct bytes *image)
{
    struct reader r = {.at = snapshot.data, .left = snapshot.size};
    const uint8_t *magic = get_bytes(&r, sizeof snapshot_magic);

    *index = get_u64(&r);
    const uint64_t size = get_u64(&r);
    const uint32_t crc = get_u32(&r);
    if (r.bad || memcmp(magic, snapshot_magic, sizeof snapshot_magic) != 0 ||
        snapshot.size < SNAPSHOT_HEADER || size != snapshot.size - SNAPSHOT_HEADER) {
        return false;
    }
    *image = bytes_of(snapshot.data + SNAPSHOT_HEADER, (size_t)size);
    return crc == crc32c(image->data, image->size);
}

/* A connection to a copy of the image; NULL if it is no database. The copy may be written: loading
 * adds the columns that an older version did not know. */
static sqlite3 *open_image(struct bytes image)
{
    sqlite3 *db = NULL;
    unsigned char *copy = sqlite3_malloc64(image.size);

    if (copy == NULL || sqlite3_open(":memory:", &db) != SQLITE_OK) {
        sqlite3_free(copy);
        (void)sqlite3_close(db);
        return NULL;
    }
    memcpy(copy, image.data, image.size);
    if (sqlite3_deserialize(db,
                            "main",
                            copy,
                            (sqlite3_int64)image.size,
                            (sqlite3_int64)image.size,
                            SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_RESIZEABLE) !=
        SQLITE_OK) {
        (void)sqlite3_close(db);
        return NULL;
    }
    return db;
}

static bool copy_database(sqlite3 *to, sqlite3 *from)
{
    sqlite3_backup *backup = sqlite3_backup_init(to, "main", from, "main");

    if (backup == NULL) {
        return false;
    }
    (void)sqlite3_backup_step(backup, -1);
    return sqlite3_backup_finish(backup) == SQLITE_OK;
}

bool state_db_restore(struct state_db *db, struct bytes snapshot, struct state *s)
{
    struct bytes image = {0};
    struct state loaded;
    uint64_t index = 0;

    if (!open_snapshot(snapshot, &index, &image)) {
        return false;
    }
    sqlite3 *from = open_image(image);
    if (from == NULL) {
        return false;
    }
    if (db->open) {
        statement_script(db->db, "ROLLBACK"); // Of entries that the snapshot has.
        db->open = false;
        db->due = 0;
    }
    if (!state_load(from, &loaded)) {
        (void)sqlite3_close(from);
        return false;
    }
    if (!copy_database(db->db, from)) {
        log_error(
            "storage",
            "restore_failed",
            "file=%s reason=\"%s\" remedy=\"free space or repair the disk, then start again\"",
            sqlite3_db_filename(db->db, "main"),
            sqlite3_errmsg(db->db));
        exit(74);
    }
    (void)sqlite3_close(from);
    // The image was taken from another journal mode; readers beside us need this one.
    statement_script(db->db, "PRAGMA journal_mode=WAL");
    event_upgrade(db->db);
    state_fini(s);
    *s = loaded;
    db->index = index;
    return true;
}

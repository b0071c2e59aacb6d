/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/state_sqlite.h"

#include "base/assert.h"
#include "base/crc.h"
#include "base/log.h"
#include "base/mem.h"
#include "storage/event_sqlite.h"
#include "storage/state_load_sqlite.h"
#include "storage/statement_sqlite.h"
#include "wire/cursor.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    SNAPSHOT_HEADER = 64,
    // Where a database image says how it was journalled; 1 = not WAL, which deserialize refuses.
    IMAGE_WRITE_FORMAT = 18,
    IMAGE_READ_FORMAT = 19,
};

static const char snapshot_magic[8] = {'R', 'H', 'S', 'T', 'A', 'T', 'E', '1'};

/* Tables that are written anew as a whole: once a transaction, however many commands it has. */
enum whole {
    WHOLE_CLUSTER = 1,
    WHOLE_NODES = 2,
    WHOLE_VNODES = 4,
    WHOLE_ROLES = 8,
    WHOLE_SUSPECTS = 16,
    WHOLE_VOTERS = 32,
};

struct state_db {
    sqlite3 *db;
    struct statements statements;
    const struct state *state; /* of the last apply: what `due` is to be written from */
    unsigned due;              /* enum whole, of the open transaction */
    uint64_t index;
    bool open; /* a transaction is */
};

static const char schema[] =
    "PRAGMA user_version=1;" // the fleet's format; put_format()
    "CREATE TABLE cluster(name TEXT, cluster_id INTEGER, key0 INTEGER, key1 INTEGER,"
    " vnodes_per_weight INTEGER, number INTEGER, era INTEGER, grid INTEGER, version INTEGER,"
    " digest TEXT, applied INTEGER, ring BLOB, settling INTEGER DEFAULT 0,"
    " lease_us INTEGER DEFAULT 0);"
    "CREATE TABLE node(slot INTEGER PRIMARY KEY, name TEXT, address TEXT, zone TEXT,"
    " incarnation INTEGER, nonce INTEGER, boot_id BLOB, data_uuid BLOB, weight INTEGER,"
    " leaving INTEGER, stopping INTEGER, barred INTEGER, clean INTEGER, role TEXT DEFAULT '',"
    " wish INTEGER DEFAULT 0, wished INTEGER DEFAULT 0);"
    "CREATE TABLE vnode(id INTEGER PRIMARY KEY, from_cell INTEGER, to_cell INTEGER, owner INTEGER,"
    " generation INTEGER, cold INTEGER, txn INTEGER);"
    "CREATE TABLE txn(number INTEGER PRIMARY KEY, state TEXT, base INTEGER, version INTEGER,"
    " superseded_by INTEGER, created_us INTEGER, decided_us INTEGER, why TEXT, outcome_why TEXT);"
    "CREATE TABLE txn_move(txn INTEGER, seq INTEGER, kind INTEGER, vnode INTEGER, other INTEGER,"
    " at INTEGER, from_node INTEGER, to_node INTEGER, PRIMARY KEY(txn, seq)) WITHOUT ROWID;"
    "CREATE TABLE txn_vote(txn INTEGER, node INTEGER, incarnation INTEGER, gives INTEGER,"
    " takes INTEGER, voted INTEGER, PRIMARY KEY(txn, node)) WITHOUT ROWID;" STATE_ROLE_TABLES
        STATE_SUSPECT_TABLE
    "CREATE TABLE voter(id INTEGER PRIMARY KEY, identity INTEGER, address TEXT);" EVENT_TABLE
    "INSERT INTO cluster(applied) VALUES(0);";

enum err state_db_open(struct state_db **out, const char *path)
{
    struct state_db *db = mem_new(1, sizeof *db);
    char side[4300];

    *out = NULL;
    if (path != NULL) {
        (void)unlink(path);
        (void)snprintf(side, sizeof side, "%s-wal", path);
        (void)unlink(side);
        (void)snprintf(side, sizeof side, "%s-shm", path);
        (void)unlink(side);
    }
    path = path == NULL ? ":memory:" : path;
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    if (sqlite3_open_v2(path, &db->db, flags, NULL) != SQLITE_OK ||
        sqlite3_exec(db->db,
                     "PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF; PRAGMA busy_timeout=1000",
                     NULL,
                     NULL,
                     NULL) != SQLITE_OK ||
        sqlite3_exec(db->db, schema, NULL, NULL, NULL) != SQLITE_OK) {
        log_error(
            "storage",
            "cannot_open",
            "file=%s reason=\"%s\" remedy=\"move what is at that place away: it is a copy that "
            "every start makes anew; give this user the folder, and space on the disk\"",
            path,
            sqlite3_errmsg(db->db));
        state_db_close(db);
        return ERR_IO;
    }
    *out = db;
    return ERR_OK;
}

void state_db_close(struct state_db *db)
{
    if (db != NULL) {
        statements_fini(&db->statements);
        (void)sqlite3_close(db->db);
        mem_free(db);
    }
}

/* ---- rows ---- */

static void run(struct state_db *db, const char *sql)
{
    struct statement q = statement_kept(&db->statements, db->db, sql);

    statement_run(&q);
    statement_close(&q);
}

static void begin(struct state_db *db)
{
    if (!db->open) {
        run(db, "BEGIN");
        db->open = true;
    }
}

static void put_cluster(struct state_db *db, const struct state *s)
{
    struct statement q = statement_kept(
        &db->statements,
        db->db,
        "UPDATE cluster SET name=?, cluster_id=?, key0=?, key1=?, vnodes_per_weight=?, number=?,"
        " era=?, grid=?, version=?, digest=?, settling=?, lease_us=?");
    char digest[33];

    (void)snprintf(digest,
                   sizeof digest,
                   "%016" PRIx64 "%016" PRIx64,
                   s->view.ring.digest[1],
                   s->view.ring.digest[0]);
    statement_text(&q, s->cluster);
    statement_number(&q, s->cluster_id);
    statement_number(&q, s->view.key.k0);
    statement_number(&q, s->view.key.k1);
    statement_number(&q, s->vnodes_per_weight);
    statement_number(&q, s->number);
    statement_number(&q, s->view.era);
    statement_number(&q, s->view.ring.grid);
    statement_number(&q, s->view.ring.version);
    statement_text(&q, digest);
    statement_number(&q, s->settling);
    statement_number(&q, s->lease_us);
    statement_run(&q);
    statement_close(&q);
}

static void put_nodes(struct state_db *db, const struct state *s)
{
    run(db, "DELETE FROM node");
    struct statement q = statement_kept(
        &db->statements, db->db, "INSERT INTO node VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)");

    for (size_t i = 0; i < s->node_count; i++) {
        const struct state_node *n = &s->node[i];

        statement_number(&q, n->slot);
        statement_text(&q, n->name);
        statement_text(&q, n->address);
        statement_text(&q, n->zone);
        statement_number(&q, n->incarnation);
        statement_number(&q, n->nonce);
        statement_blob(&q, bytes_of(n->boot_id, sizeof n->boot_id));
        statement_blob(&q, bytes_of(n->data_uuid, sizeof n->data_uuid));
        statement_number(&q, n->weight);
        statement_number(&q, n->leaving);
        statement_number(&q, n->stopping);
        statement_number(&q, n->barred);
        statement_number(&q, n->clean);
        statement_text(&q, n->role);
        statement_number(&q, n->wish);
        statement_number(&q, n->wished);
        statement_run(&q);
    }
    statement_close(&q);
}

/* Which kinds there are, and where their cells: for people, and `kind` to be loaded again. */
static void put_roles(struct state_db *db, const struct state *s)
{
    run(db, "DELETE FROM kind");
    run(db, "DELETE FROM segment");
    struct statement q =
        statement_kept(&db->statements, db->db, "INSERT INTO kind VALUES(?,?,?,?)");

    for (size_t i = 0; i < s->kind_count; i++) {
        statement_number(&q, s->kind[i].number);
        statement_text(&q, s->kind[i].name);
        statement_text(&q, s->kind[i].role);
        statement_number(&q, s->kind[i].placement);
        statement_run(&q);
    }
    statement_close(&q);
    q = statement_kept(&db->statements, db->db, "INSERT INTO segment VALUES(?,?,?,?,?,?)");
    for (size_t i = 0; i < s->view.ring.segment_count; i++) {
        const struct ring_segment *segment = &s->view.ring.segment[i];

        statement_number(&q, i);
        statement_text(&q, segment->role);
        statement_number(&q, (uint64_t)segment->policy);
        statement_number(&q, segment->from);
        statement_number(&q, ring_segment_end(segment));
        statement_number(&q, segment->open);
        statement_run(&q);
    }
    statement_close(&q);
}

static void put_suspects(struct state_db *db, const struct state *s)
{
    run(db, "DELETE FROM suspect");
    struct statement q =
        statement_kept(&db->statements, db->db, "INSERT INTO suspect VALUES(?,?,?,?,?,?,?)");

    for (size_t i = 0; i < s->suspect_count; i++) {
        const struct state_suspect *e = &s->suspect[i];

        statement_number(&q, e->actor.kind);
        statement_blob(&q, quarantined_id(&e->actor));
        statement_number(&q, e->quarantined);
        statement_number(&q, e->strikes);
        statement_number(&q, e->struck_us);
        statement_number(&q, e->since_us);
        statement_text(&q, e->node);
        statement_run(&q);
    }
    statement_close(&q);
}

static void put_vnode(struct statement *q, const struct ring *r, const struct ring_vnode *v)
{
    statement_number(q, v->id);
    statement_number(q, v->from);
    statement_number(q, ring_end(r, v));
    statement_number(q, v->owner);
    statement_number(q, v->generation);
    statement_number(q, v->cold);
    statement_number(q, v->txn);
    statement_run(q);
}

static void put_all_vnodes(struct state_db *db, const struct state *s)
{
    const struct ring *r = &s->view.ring;

    run(db, "DELETE FROM vnode");
    struct statement q =
        statement_kept(&db->statements, db->db, "INSERT INTO vnode VALUES(?,?,?,?,?,?,?)");

    for (size_t i = 0; i < r->vnode_count; i++) {
        put_vnode(&q, r, &r->vnode[i]);
    }
    statement_close(&q);
}

/* The vnodes that a delta's ops name: as they are now, or gone (the right side of a MERGE). */
static void put_changed_vnodes(struct state_db *db, const struct ring *r, const Rh__Delta *delta)
{
    struct statement put =
        statement_kept(&db->statements, db->db, "REPLACE INTO vnode VALUES(?,?,?,?,?,?,?)");
    struct statement drop = statement_kept(&db->statements, db->db, "DELETE FROM vnode WHERE id=?");

    for (size_t i = 0; i < delta->n_ops; i++) {
        const uint32_t named[] = {delta->ops[i]->vnode, delta->ops[i]->other};
        const size_t count = delta->ops[i]->kind == RING_MOVE ? 1 : 2;

        for (size_t k = 0; k < count; k++) {
            const struct ring_vnode *v = ring_find(r, named[k]);

            if (v != NULL) {
                put_vnode(&put, r, v);
            } else {
                statement_number(&drop, named[k]);
                statement_run(&drop);
            }
        }
    }
    statement_close(&put);
    statement_close(&drop);
}

static void put_moves(struct state_db *db, const struct state_txn *t)
{
    struct statement q =
        statement_kept(&db->statements, db->db, "REPLACE INTO txn_move VALUES(?,?,?,?,?,?,?,?)");

    for (size_t i = 0; i < t->op_count; i++) {
        statement_number(&q, t->number);
        statement_number(&q, i);
        statement_number(&q, t->ops[i].kind);
        statement_number(&q, t->ops[i].vnode);
        statement_number(&q, t->ops[i].other);
        statement_number(&q, t->ops[i].at);
        statement_number(&q, t->ops[i].from);
        statement_number(&q, t->ops[i].to);
        statement_run(&q);
    }
    statement_close(&q);
}

static void put_votes(struct state_db *db, const struct state_txn *t)
{
    struct statement q =
        statement_kept(&db->statements, db->db, "REPLACE INTO txn_vote VALUES(?,?,?,?,?,?)");

    for (size_t i = 0; i < t->part_count; i++) {
        statement_number(&q, t->number);
        statement_number(&q, t->parts[i].slot);
        statement_number(&q, t->parts[i].incarnation);
        statement_number(&q, t->parts[i].gives);
        statement_number(&q, t->parts[i].takes);
        statement_number(&q, t->parts[i].voted);
        statement_run(&q);
    }
    statement_close(&q);
}

static void put_txn(struct state_db *db, const struct state *s, uint64_t number)
{
    const struct state_txn *t = state_txn(s, number);

    if (t == NULL) {
        return; // Decided and pushed out by newer ones in the same entry.
    }
    struct statement q =
        statement_kept(&db->statements, db->db, "REPLACE INTO txn VALUES(?,?,?,?,?,?,?,?,?)");
    statement_number(&q, t->number);
    statement_text(&q, txn_state_name(t->state));
    statement_number(&q, t->base);
    statement_number(&q, t->version);
    statement_number(&q, t->superseded_by);
    statement_number(&q, t->created_us);
    statement_number(&q, t->decided_us);
    statement_text(&q, t->why);
    statement_text(&q, t->outcome_why);
    statement_run(&q);
    statement_close(&q);
    put_moves(db, t);
    put_votes(db, t);
}

/* Forget the decided ones that the state has forgotten. */
static void prune_txns(struct state_db *db, const struct state *s)
{
    static const char *const scripts[] = {
        "DELETE FROM txn WHERE number<? AND state<>'pending'",
        "DELETE FROM txn_move WHERE txn<? AND txn NOT IN (SELECT number FROM txn)",
        "DELETE FROM txn_vote WHERE txn<? AND txn NOT IN (SELECT number FROM txn)",
    };
    uint64_t lowest = 0;

    for (size_t i = 0; i < s->txn_count && lowest == 0; i++) {
        lowest = s->txn[i].state == TXN_PENDING ? 0 : s->txn[i].number;
    }
    for (size_t i = 0; lowest != 0 && i < sizeof scripts / sizeof scripts[0]; i++) {
        struct statement q = statement_kept(&db->statements, db->db, scripts[i]);

        statement_number(&q, lowest);
        statement_run(&q);
        statement_close(&q);
    }
}

static void put_voters(struct state_db *db, const struct state *s)
{
    struct statement q = statement_kept(&db->statements, db->db, "DELETE FROM voter");

    statement_run(&q);
    statement_close(&q);
    q = statement_kept(&db->statements, db->db, "REPLACE INTO voter VALUES(?,?,?)");

    for (size_t i = 0; i < s->voter_count; i++) {
        statement_number(&q, s->voter[i].id);
        statement_number(&q, s->voter[i].identity);
        statement_text(&q, s->voter[i].address);
        statement_run(&q);
    }
    statement_close(&q);
}

/* ---- commands ---- */

/* Older versions look there first, and do not load it then. */
static void put_format(struct state_db *db, uint32_t format)
{
    char sql[64];

    (void)snprintf(sql, sizeof sql, "PRAGMA user_version=%" PRIu32, format);
    statement_script(db->db, sql);
}

static unsigned whole_of(const Rh__Command *command, const struct state_result *result)
{
    const Rh__Delta *delta = result->delta;
    const bool registers = command->body_case == RH__COMMAND__BODY_REGISTER_;
    unsigned due = WHOLE_CLUSTER | WHOLE_NODES;

    if (delta != NULL &&
        (delta->created_vnodes > 0 || delta->renewed != 0 || delta->n_segments > 0)) {
        due |= WHOLE_VNODES;
    }
    if (registers || command->body_case == RH__COMMAND__BODY_DAEMONS) {
        due |= WHOLE_ROLES;
    }
    // A death without suspects, too: old strikes are forgotten then.
    if (command->body_case == RH__COMMAND__BODY_QUARANTINE ||
        (registers && command->register_->died != 0)) {
        due |= WHOLE_SUSPECTS;
    }
    if (command->body_case == RH__COMMAND__BODY_VOTER) {
        due |= WHOLE_VOTERS;
    }
    return due;
}

static void put_whole(struct state_db *db)
{
    static const struct {
        enum whole table;
        void (*put)(struct state_db *db, const struct state *s);
    } tables[] = {
        {WHOLE_CLUSTER, put_cluster},
        {WHOLE_NODES, put_nodes},
        {WHOLE_VNODES, put_all_vnodes},
        {WHOLE_ROLES, put_roles},
        {WHOLE_SUSPECTS, put_suspects},
        {WHOLE_VOTERS, put_voters},
    };

    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        if ((db->due & (unsigned)tables[i].table) != 0) {
            tables[i].put(db, db->state);
        }
    }
    db->due = 0;
}

void state_db_apply(struct state_db *db, const struct state *s, const Rh__Command *command,
                    const struct state_result *result)
{
    begin(db);
    event_put(&db->statements, db->db, command, result);
    if (!result->accepted) {
        return;
    }
    if (command->body_case == RH__COMMAND__BODY_FORMAT) {
        put_format(db, s->format);
    }
    db->state = s;
    db->due |= whole_of(command, result);
    if (result->delta != NULL && (db->due & WHOLE_VNODES) == 0) {
        put_changed_vnodes(db, &s->view.ring, result->delta);
    }
    if (result->txn != 0) {
        put_txn(db, s, result->txn);
    }
    for (size_t i = 0; i < result->aborted_count; i++) {
        put_txn(db, s, result->aborted[i]);
    }
    if (result->txn != 0 || result->aborted_count > 0) {
        prune_txns(db, s);
    }
}

void state_db_commit(struct state_db *db, uint64_t index)
{
    if (!db->open && index <= db->index) {
        return;
    }
    begin(db);
    put_whole(db);
    struct statement q = statement_kept(&db->statements, db->db, "UPDATE cluster SET applied=?");
    statement_number(&q, index);
    statement_run(&q);
    statement_close(&q);
    run(db, "COMMIT");
    db->open = false;
    db->index = index;
}

uint64_t state_db_index(const struct state_db *db)
{
    return db->index;
}

struct sqlite3 *state_db_handle(const struct state_db *db)
{
    return db->db;
}

/* ---- snapshots ---- */

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
                  "file=%s reason=\"%s\" remedy=\"mend the disk, then start again\"",
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
        log_error("storage",
                  "restore_failed",
                  "file=%s reason=\"%s\" remedy=\"free space or mend the disk, then start again\"",
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

void state_db_events(struct state_db *db, uint32_t limit, Rh__AdminReply *reply)
{
    event_list(db->db, limit, reply);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Loads the replicated state from a database image and checks every row.
 */
#include "storage/state/load_sqlite.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/mutant.h"
#include "storage/log/statement_sqlite.h"
#include "txn/state/pins.h"
#include "txn/state/remembered.h"
#include "txn/state/suspect.h"
#include "wire/versions.h"

#include <stdlib.h>
#include <string.h>

/* The fleet's format, if this version reads it. */
static bool take_format(sqlite3 *db, uint32_t *format)
{
    sqlite3_stmt *stmt = NULL;
    int found = 0;

    if (sqlite3_prepare_v2(db, "PRAGMA user_version", -1, &stmt, NULL) == SQLITE_OK &&
        sqlite3_step(stmt) == SQLITE_ROW) {
        found = sqlite3_column_int(stmt, 0);
    }
    (void)sqlite3_finalize(stmt);
    if (found > FLEET_FORMAT) {
        log_error("storage",
                  "state_newer",
                  "format=%d reads=%d..%d reason=\"a newer version wrote this state\" "
                  "remedy=\"start that version, or a later one\"",
                  found,
                  FLEET_FORMAT_OLDEST,
                  FLEET_FORMAT);
    }
    *format = (uint32_t)found;
    return found >= FLEET_FORMAT_OLDEST && found <= FLEET_FORMAT;
}

/* Tables first, statements after: a missing one must be a refusal, not the end of the process. */
static bool is_state(sqlite3 *db, uint32_t *format)
{
    static const char count[] =
        "SELECT count(*) FROM sqlite_schema WHERE type='table' AND name IN "
        "('cluster','node','vnode','txn','txn_move','txn_vote','voter','event')";
    sqlite3_stmt *stmt = NULL;
    bool all = false;

    if (sqlite3_prepare_v2(db, count, -1, &stmt, NULL) == SQLITE_OK &&
        sqlite3_step(stmt) == SQLITE_ROW) {
        all = sqlite3_column_int(stmt, 0) == 8;
    }
    (void)sqlite3_finalize(stmt);
    if (!all || !take_format(db, format)) {
        return false;
    }
    // An image from before restores, or leases, were known lacks the column; else this fails.
    (void)sqlite3_exec(
        db, "ALTER TABLE cluster ADD COLUMN settling INTEGER DEFAULT 0", NULL, NULL, NULL);
    (void)sqlite3_exec(
        db, "ALTER TABLE cluster ADD COLUMN lease_us INTEGER DEFAULT 0", NULL, NULL, NULL);
    (void)sqlite3_exec(
        db, "ALTER TABLE cluster ADD COLUMN fleet_high INTEGER DEFAULT 0", NULL, NULL, NULL);
    // From before there were roles, numbered wishes, suspects, pins, or remembered ids.
    (void)sqlite3_exec(db, "ALTER TABLE node ADD COLUMN role TEXT DEFAULT ''", NULL, NULL, NULL);
    (void)sqlite3_exec(db, "ALTER TABLE node ADD COLUMN wish INTEGER DEFAULT 0", NULL, NULL, NULL);
    (void)sqlite3_exec(
        db, "ALTER TABLE node ADD COLUMN wished INTEGER DEFAULT 0", NULL, NULL, NULL);
    (void)sqlite3_exec(db,
                       STATE_ROLE_TABLES STATE_SUSPECT_TABLE STATE_PIN_TABLE STATE_REMEMBERED_TABLE,
                       NULL,
                       NULL,
                       NULL);
    return all;
}

static bool is_whole(sqlite3 *db)
{
    char verdict[16] = "";
    struct statement q = statement_open(db, "PRAGMA integrity_check(1)");
    const bool whole = statement_row(&q) && statement_get_text(&q, verdict, sizeof verdict) &&
                       strcmp(verdict, "ok") == 0;

    statement_close(&q);
    return whole;
}

static bool load_cluster(sqlite3 *db, struct state *s)
{
    struct statement q = statement_open(
        db,
        "SELECT name, cluster_id, key0, key1, vnodes_per_weight, number, era, ring, settling,"
        " lease_us, fleet_high"
        " FROM cluster");
    struct ring ring;
    bool good = statement_row(&q);

    if (good) {
        good = statement_get_text(&q, s->cluster, sizeof s->cluster);
        s->begun = s->cluster[0] != '\0';
        s->view.fleet.low = statement_get_number(&q);
        s->view.key.k0 = statement_get_number(&q);
        s->view.key.k1 = statement_get_number(&q);
        s->vnodes_per_weight = (uint32_t)statement_get_number(&q);
        s->number = statement_get_number(&q);
        s->view.era = statement_get_number(&q);
        good = good && ring_decode(&ring, statement_get_blob(&q)) == ERR_OK;
        s->settling = statement_get_number(&q) != 0;
        s->lease_us = statement_get_number(&q);
        s->lease_us = mutant(M_LEASELOST) ? 0 : s->lease_us;
        s->view.fleet.high = statement_get_number(&q);
    }
    if (good) {
        ring_fini(&s->view.ring);
        s->view.ring = ring;
        view_set_key(&s->view, s->view.key);
        good = s->view.ring.version <= s->number;
    }
    statement_close(&q);
    return good;
}

static bool get_uuid(struct statement *q, uint8_t uuid[STATE_UUID_SIZE])
{
    const struct bytes blob = statement_get_blob(q);

    if (blob.size != STATE_UUID_SIZE) {
        return false;
    }
    memcpy(uuid, blob.data, STATE_UUID_SIZE);
    return true;
}

/* The directory's row of a node: what a delta would have told. */
static void add_member(struct state *s, const struct state_node *n)
{
    s->view.member =
        mem_resize(s->view.member, (s->view.member_count + 1) * sizeof *s->view.member);
    struct view_member *m = &s->view.member[s->view.member_count++];
    *m = (struct view_member){
        .slot = n->slot,
        .incarnation = n->incarnation,
        .weight = n->weight,
        .leaving = n->leaving,
    };
    memcpy(m->name, n->name, sizeof m->name);
    memcpy(m->address, n->address, sizeof m->address);
    memcpy(m->role, n->role, sizeof m->role);
    m->kinds = n->kinds;
}

/* An older image has no such column, and statement_get_text() nothing then. */
static bool get_kinds(struct statement *q, struct ring_kinds *k)
{
    char text[STATE_KINDS_TEXT_SIZE];
    bool good = statement_get_text(q, text, sizeof text);

    for (const char *at = text; good && *at != '\0';) {
        char *end = NULL;
        const unsigned long kind = strtoul(at, &end, 10);

        good = end != at && kind <= UINT16_MAX && (*end == ',' || *end == '\0') &&
               ring_kinds_add(k, (uint16_t)kind);
        at = *end == ',' ? end + 1 : end;
    }
    return good;
}

static bool load_nodes(sqlite3 *db, struct state *s)
{
    struct statement q = statement_open(db, "SELECT * FROM node ORDER BY slot");
    bool good = true;

    while (good && statement_row(&q)) {
        s->node = mem_resize(s->node, (s->node_count + 1) * sizeof *s->node);
        struct state_node *n = &s->node[s->node_count++];
        *n = (struct state_node){0};
        const uint64_t slot = statement_get_number(&q);
        n->slot = (uint16_t)slot;
        good = slot >= 1 && slot <= RING_NODES_MAX &&
               statement_get_text(&q, n->name, sizeof n->name) &&
               statement_get_text(&q, n->address, sizeof n->address) &&
               statement_get_text(&q, n->zone, sizeof n->zone);
        if (!good) {
            break;
        }
        n->incarnation = statement_get_number(&q);
        n->nonce = statement_get_number(&q);
        good = get_uuid(&q, n->boot_id) && get_uuid(&q, n->data_uuid);
        n->weight = (uint32_t)statement_get_number(&q);
        n->leaving = statement_get_number(&q) != 0;
        n->stopping = statement_get_number(&q) != 0;
        n->barred = statement_get_number(&q) != 0;
        n->clean = statement_get_number(&q) != 0;
        good = good && statement_get_text(&q, n->role, sizeof n->role);
        n->wish = statement_get_number(&q);
        n->wished = statement_get_number(&q);
        good = good && get_kinds(&q, &n->kinds);
        n->removed = statement_get_number(&q) != 0;
        add_member(s, n);
    }
    statement_close(&q);
    return good;
}

static bool parse_state(const char *text, enum txn_state *state)
{
    for (int i = TXN_PENDING; i <= TXN_ABORTED; i++) {
        if (strcmp(text, txn_state_name((enum txn_state)i)) == 0) {
            *state = (enum txn_state)i;
            return true;
        }
    }
    return false;
}

static bool load_moves(sqlite3 *db, struct state_txn *t)
{
    struct statement q = statement_open(
        db,
        "SELECT kind, vnode, other, at, from_node, to_node FROM txn_move WHERE txn=? ORDER BY seq");
    bool good = true;

    statement_number(&q, t->number);
    while (good && statement_row(&q)) {
        t->ops = mem_resize(t->ops, (t->op_count + 1) * sizeof *t->ops);
        struct ring_op *op = &t->ops[t->op_count++];
        const uint64_t kind = statement_get_number(&q);

        op->kind = (enum ring_op_kind)kind;
        op->vnode = (uint32_t)statement_get_number(&q);
        op->other = (uint32_t)statement_get_number(&q);
        op->at = (uint32_t)statement_get_number(&q);
        op->from = (uint16_t)statement_get_number(&q);
        op->to = (uint16_t)statement_get_number(&q);
        good = kind >= RING_SPLIT && kind <= RING_MOVE;
    }
    statement_close(&q);
    return good;
}

static void load_votes(sqlite3 *db, struct state_txn *t)
{
    struct statement q = statement_open(
        db,
        "SELECT node, incarnation, gives, takes, voted FROM txn_vote WHERE txn=? ORDER BY node");

    statement_number(&q, t->number);
    while (statement_row(&q)) {
        t->parts = mem_resize(t->parts, (t->part_count + 1) * sizeof *t->parts);
        struct state_part *p = &t->parts[t->part_count++];

        p->slot = (uint16_t)statement_get_number(&q);
        p->incarnation = statement_get_number(&q);
        p->gives = statement_get_number(&q) != 0;
        p->takes = statement_get_number(&q) != 0;
        p->voted = statement_get_number(&q) != 0;
    }
    statement_close(&q);
}

static bool load_txns(sqlite3 *db, struct state *s)
{
    struct statement q = statement_open(
        db,
        "SELECT number, state, base, version, superseded_by, created_us, decided_us, why,"
        " outcome_why FROM txn ORDER BY number");
    char state[16];
    bool good = true;

    while (good && statement_row(&q)) {
        s->txn = mem_resize(s->txn, (s->txn_count + 1) * sizeof *s->txn);
        struct state_txn *t = &s->txn[s->txn_count++];
        *t = (struct state_txn){.number = statement_get_number(&q)};
        good = statement_get_text(&q, state, sizeof state) && parse_state(state, &t->state);
        t->base = statement_get_number(&q);
        t->version = statement_get_number(&q);
        t->superseded_by = statement_get_number(&q);
        t->created_us = statement_get_number(&q);
        t->decided_us = statement_get_number(&q);
        good = good && statement_get_text(&q, t->why, sizeof t->why) &&
               statement_get_text(&q, t->outcome_why, sizeof t->outcome_why) &&
               t->number <= s->number && load_moves(db, t);
        if (good) {
            load_votes(db, t);
        }
    }
    statement_close(&q);
    return good;
}

static bool load_voters(sqlite3 *db, struct state *s)
{
    struct statement q = statement_open(db, "SELECT id, identity, address FROM voter ORDER BY id");
    bool good = true;

    while (good && statement_row(&q)) {
        good = s->voter_count < STATE_VOTERS_MAX;
        if (good) {
            struct state_voter *v = &s->voter[s->voter_count++];

            v->id = statement_get_number(&q);
            v->identity = statement_get_number(&q);
            good = statement_get_text(&q, v->address, sizeof v->address);
        }
    }
    statement_close(&q);
    return good;
}

static bool load_kinds(sqlite3 *db, struct state *s)
{
    struct statement q =
        statement_open(db, "SELECT number, name, role, placement FROM kind ORDER BY number");
    bool good = true;

    while (good && statement_row(&q)) {
        s->kind = mem_resize(s->kind, (s->kind_count + 1) * sizeof *s->kind);
        struct state_kind *k = &s->kind[s->kind_count++];
        *k = (struct state_kind){.number = (uint16_t)statement_get_number(&q)};
        good = statement_get_text(&q, k->name, sizeof k->name) &&
               statement_get_text(&q, k->role, sizeof k->role);
        k->placement = (uint8_t)statement_get_number(&q);
        good = good && k->placement <= PLACE_HOSTS;
    }
    statement_close(&q);
    return good;
}

static bool load_suspects(sqlite3 *db, struct state *s)
{
    struct statement q = statement_open(
        db,
        "SELECT kind, id, quarantined, strikes, struck_us, since_us, node FROM suspect"
        " ORDER BY kind, id");
    bool good = true;

    while (good && statement_row(&q)) {
        const uint64_t kind = statement_get_number(&q);
        const struct bytes id = statement_get_blob(&q);
        struct state_suspect e = {0};

        good = kind <= UINT16_MAX && quarantined_of(&e.actor, (uint32_t)kind, id);
        e.quarantined = statement_get_number(&q) != 0;
        e.strikes = (uint32_t)statement_get_number(&q);
        e.struck_us = statement_get_number(&q);
        e.since_us = statement_get_number(&q);
        good = good && statement_get_text(&q, e.node, sizeof e.node) &&
               (!e.quarantined || quarantine_put(&s->view.quarantine, &e.actor));
        s->suspect = mem_resize(s->suspect, (s->suspect_count + 1) * sizeof *s->suspect);
        s->suspect[s->suspect_count++] = e;
    }
    statement_close(&q);
    return good;
}

static bool load_lost(sqlite3 *db, struct state *s)
{
    struct statement q =
        statement_open(db, "SELECT incarnation, from_cell, to_cell FROM lost ORDER BY seq");
    bool good = true;

    while (good && statement_row(&q)) {
        s->lost = mem_resize(s->lost, (s->lost_count + 1) * sizeof *s->lost);
        struct state_lost *l = &s->lost[s->lost_count++];

        l->incarnation = statement_get_number(&q);
        const uint64_t from = statement_get_number(&q);
        const uint64_t to = statement_get_number(&q);
        *l = (struct state_lost){l->incarnation, (uint32_t)from, (uint32_t)to};
        good = from < to && to <= s->view.ring.cell_count;
    }
    statement_close(&q);
    return good;
}

static bool load_struck(sqlite3 *db, struct state *s)
{
    struct statement q =
        statement_open(db, "SELECT incarnation, position FROM struck ORDER BY seq");

    while (statement_row(&q)) {
        s->struck = mem_resize(s->struck, (s->struck_count + 1) * sizeof *s->struck);
        struct state_struck *e = &s->struck[s->struck_count++];

        e->incarnation = statement_get_number(&q);
        e->position = statement_get_number(&q);
    }
    statement_close(&q);
    return s->struck_count <= SUSPECT_STRUCK_MAX;
}

static bool load_pins(sqlite3 *db, struct state *s)
{
    struct statement q = statement_open(db,
                                        "SELECT from_cell, to_cell, kind, id, node, waits FROM pin"
                                        " ORDER BY from_cell, to_cell, kind, id");
    bool good = true;

    while (good && statement_row(&q)) {
        struct state_pin pin = {0};

        pin.from = (uint32_t)statement_get_number(&q);
        pin.to = (uint32_t)statement_get_number(&q);
        pin.kind = (uint16_t)statement_get_number(&q);
        const struct bytes id = statement_get_blob(&q);
        good = id.size <= 255 && statement_get_text(&q, pin.node, sizeof pin.node);
        pin.waits = statement_get_number(&q) != 0;
        if (good) {
            pins_append(s, &pin, id);
        }
    }
    statement_close(&q);
    return good && pins_are_good(s);
}

static bool load_remembered(sqlite3 *db, struct state *s)
{
    struct statement q = statement_open(db, "SELECT kind, id FROM remembered ORDER BY kind, id");
    bool good = true;

    while (good && statement_row(&q)) {
        const uint64_t kind = statement_get_number(&q);
        const struct bytes id = statement_get_blob(&q);

        good = kind <= UINT16_MAX && id.size >= 1 && id.size <= 255;
        if (good) {
            remembered_append(s, (uint16_t)kind, id);
        }
    }
    statement_close(&q);
    return good && remembered_are_good(s);
}

/* Every owner is a node: the rest of a ring's sense is checked by ring_decode(). */
static bool owners_known(const struct state *s)
{
    for (size_t i = 0; i < s->view.ring.vnode_count; i++) {
        const uint16_t owner = s->view.ring.vnode[i].owner;

        if (owner != RING_NODE_NONE && state_node(s, owner) == NULL) {
            return false;
        }
    }
    return true;
}

bool state_load(sqlite3 *db, struct state *s)
{
    state_init(s);
    if (is_state(db, &s->format) && is_whole(db) && load_cluster(db, s) && load_nodes(db, s) &&
        load_txns(db, s) && load_voters(db, s) && load_kinds(db, s) && load_suspects(db, s) &&
        load_lost(db, s) && load_struck(db, s) && load_pins(db, s) && load_remembered(db, s) &&
        owners_known(s)) {
        return true;
    }
    state_fini(s);
    return false;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The state's tables, written: as a whole, or the rows that a command changed.
 */
#include "storage/state/db_sqlite.h"
#include "storage/state/load_sqlite.h"
#include "txn/state/pins.h"
#include "txn/state/remembered.h"

#include <inttypes.h>
#include <stdio.h>

void state_rows_run(struct state_db *db, const char *sql)
{
    struct statement q = statement_kept(&db->statements, db->db, sql);

    statement_run(&q);
    statement_close(&q);
}

static void put_cluster(struct state_db *db, const struct state *s)
{
    struct statement q = statement_kept(
        &db->statements,
        db->db,
        "UPDATE cluster SET name=?, cluster_id=?, key0=?, key1=?, vnodes_per_weight=?, number=?,"
        " era=?, grid=?, version=?, digest=?, settling=?, lease_us=?, fleet_high=?");
    char digest[33];

    (void)snprintf(digest,
                   sizeof digest,
                   "%016" PRIx64 "%016" PRIx64,
                   s->view.ring.digest[1],
                   s->view.ring.digest[0]);
    statement_text(&q, s->cluster);
    statement_number(&q, s->view.fleet.low);
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
    statement_number(&q, s->view.fleet.high);
    statement_run(&q);
    statement_close(&q);
}

/* "0,3,7" */
static void kinds_text(const struct ring_kinds *k, char text[STATE_KINDS_TEXT_SIZE])
{
    size_t used = 0;

    text[0] = '\0';
    for (size_t i = 0; i < k->count; i++) {
        used += (size_t)snprintf(
            text + used, STATE_KINDS_TEXT_SIZE - used, i == 0 ? "%u" : ",%u", (unsigned)k->kind[i]);
    }
}

static void put_nodes(struct state_db *db, const struct state *s)
{
    char kinds[STATE_KINDS_TEXT_SIZE];

    state_rows_run(db, "DELETE FROM node");
    struct statement q = statement_kept(
        &db->statements, db->db, "INSERT INTO node VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)");

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
        kinds_text(&n->kinds, kinds);
        statement_text(&q, kinds);
        statement_number(&q, n->removed);
        statement_run(&q);
    }
    statement_close(&q);
}

/* Which kinds there are, and where their cells: for people, and `kind` to be loaded again. */
static void put_roles(struct state_db *db, const struct state *s)
{
    state_rows_run(db, "DELETE FROM kind");
    state_rows_run(db, "DELETE FROM segment");
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
    state_rows_run(db, "DELETE FROM suspect");
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

static void put_lost(struct state_db *db, const struct state *s)
{
    state_rows_run(db, "DELETE FROM lost");
    struct statement q =
        statement_kept(&db->statements, db->db, "INSERT INTO lost VALUES(?,?,?,?)");

    for (size_t i = 0; i < s->lost_count; i++) {
        statement_number(&q, i);
        statement_number(&q, s->lost[i].incarnation);
        statement_number(&q, s->lost[i].from);
        statement_number(&q, s->lost[i].to);
        statement_run(&q);
    }
    statement_close(&q);
}

static void put_struck(struct state_db *db, const struct state *s)
{
    state_rows_run(db, "DELETE FROM struck");
    struct statement q =
        statement_kept(&db->statements, db->db, "INSERT INTO struck VALUES(?,?,?)");

    for (size_t i = 0; i < s->struck_count; i++) {
        statement_number(&q, i);
        statement_number(&q, s->struck[i].incarnation);
        statement_number(&q, s->struck[i].position);
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

    state_rows_run(db, "DELETE FROM vnode");
    struct statement q =
        statement_kept(&db->statements, db->db, "INSERT INTO vnode VALUES(?,?,?,?,?,?,?)");

    for (size_t i = 0; i < r->vnode_count; i++) {
        put_vnode(&q, r, &r->vnode[i]);
    }
    statement_close(&q);
}

void state_rows_put_vnodes(struct state_db *db, const struct ring *r, const Rh__Delta *delta)
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

/* Its place, for REPLACE and DELETE. */
static void put_place(struct statement *q, const struct state_pin *pin)
{
    statement_number(q, pin->from);
    statement_number(q, pin->to);
    statement_number(q, pin->kind);
    statement_blob(q, bytes_of(pin->id_size == 0 ? (const uint8_t *)"" : pin->id, pin->id_size));
}

void state_rows_put_pins(struct state_db *db, const struct state *s, const Rh__CommandPin *in)
{
    struct statement cells = statement_kept(
        &db->statements, db->db, "DELETE FROM pin WHERE id=x'' AND from_cell<? AND to_cell>?");
    struct statement place =
        statement_kept(&db->statements,
                       db->db,
                       "DELETE FROM pin WHERE from_cell=? AND to_cell=? AND kind=? AND id=?");
    struct statement put =
        statement_kept(&db->statements, db->db, "REPLACE INTO pin VALUES(?,?,?,?,?,?)");
    struct state_pin pin;

    for (size_t i = 0; i < in->n_remove; i++) {
        const bool by_id = pins_read(s, in->remove[i], &pin) == NULL && pin.id_size > 0;

        if (by_id) {
            put_place(&place, &pin);
        } else {
            statement_number(&cells, pin.to);
            statement_number(&cells, pin.from);
        }
        statement_run(by_id ? &place : &cells);
    }
    for (size_t i = 0; i < in->n_add; i++) {
        if (pins_read(s, in->add[i], &pin) == NULL) { // it is: the command was accepted
            put_place(&put, &pin);
            statement_text(&put, pin.node);
            statement_number(&put, pin.waits);
            statement_run(&put);
        }
    }
    statement_close(&cells);
    statement_close(&place);
    statement_close(&put);
}

void state_rows_put_remembered(struct state_db *db, const struct state *s,
                               const Rh__CommandRemember *in)
{
    struct statement put =
        statement_kept(&db->statements, db->db, "REPLACE INTO remembered VALUES(?,?)");
    struct statement drop =
        statement_kept(&db->statements, db->db, "DELETE FROM remembered WHERE kind=? AND id=?");

    for (size_t i = 0; i < in->n_rows; i++) {
        const Rh__Actor *actor = in->rows[i]->actor;

        if (remembered_is_name(actor)) {
            const struct bytes id = bytes_of(actor->id.data, actor->id.len);
            struct statement *q = remembered_has(s, (uint16_t)actor->kind, id) ? &put : &drop;

            statement_number(q, actor->kind);
            statement_blob(q, id);
            statement_run(q);
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

void state_rows_put_txn(struct state_db *db, const struct state *s, uint64_t number)
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

void state_rows_prune_txns(struct state_db *db, const struct state *s)
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

void state_rows_put_due(struct state_db *db)
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
        {WHOLE_SUSPECTS, put_lost},
        {WHOLE_SUSPECTS, put_struck},
        {WHOLE_VOTERS, put_voters},
    };

    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        if ((db->due & (unsigned)tables[i].table) != 0) {
            tables[i].put(db, db->state);
        }
    }
    db->due = 0;
}

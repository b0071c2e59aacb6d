/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares two replicated states field by field.
 */
#include "sim/same.h"

#include "txn/state/digest.h"

#include <stddef.h>
#include <string.h>

enum { FIELDS_MAX = 64 };

struct field {
    const char *name;
    size_t at;
    size_t size;
};

#define FIELD(type, name)                                                            \
    {                                                                                \
#type "." #name, offsetof(struct type, name), sizeof((struct type *)0)->name \
    }

/* A struct that grew has a field that these lists lack: add it, and see that it comes back. */
#define STATIC_SIZE(type, size) _Static_assert(sizeof(struct type) == (size), "a field is missing")

static const struct field of_state[] = {
    FIELD(state, begun),
    FIELD(state, settling),
    FIELD(state, cluster),
    FIELD(state, vnodes_per_weight),
    FIELD(state, format),
    FIELD(state, lease_us),
    FIELD(state, number),
    FIELD(state, node_count),
    FIELD(state, txn_count),
    FIELD(state, voter_count),
    FIELD(state, kind_count),
    FIELD(state, suspect_count),
    FIELD(state, lost_count),
    FIELD(state, struck_count),
    FIELD(state, pin_count),
    FIELD(state, remembered_count),
};
static const struct field of_view[] = {
    FIELD(view, key),
    FIELD(view, era),
    FIELD(view, fleet),
    FIELD(view, member_count),
};
static const struct field of_ring[] = {
    FIELD(ring, grid),
    FIELD(ring, version),
    FIELD(ring, digest),
    FIELD(ring, vnode_count),
    FIELD(ring, cell_count),
    FIELD(ring, segment_count),
    FIELD(ring, tags),
};
static const struct field of_vnode[] = {
    FIELD(ring_vnode, id),
    FIELD(ring_vnode, from),
    FIELD(ring_vnode, owner),
    FIELD(ring_vnode, generation),
    FIELD(ring_vnode, cold),
    FIELD(ring_vnode, txn),
};
static const struct field of_member[] = {
    FIELD(view_member, slot),
    FIELD(view_member, name),
    FIELD(view_member, address),
    FIELD(view_member, incarnation),
    FIELD(view_member, weight),
    FIELD(view_member, leaving),
    FIELD(view_member, role),
    FIELD(view_member, kinds),
};
static const struct field of_node[] = {
    FIELD(state_node, slot),
    FIELD(state_node, name),
    FIELD(state_node, address),
    FIELD(state_node, zone),
    FIELD(state_node, role),
    FIELD(state_node, kinds),
    FIELD(state_node, incarnation),
    FIELD(state_node, nonce),
    FIELD(state_node, boot_id),
    FIELD(state_node, data_uuid),
    FIELD(state_node, weight),
    FIELD(state_node, leaving),
    FIELD(state_node, stopping),
    FIELD(state_node, removed),
    FIELD(state_node, barred),
    FIELD(state_node, clean),
    FIELD(state_node, wish),
    FIELD(state_node, wished),
};
static const struct field of_txn[] = {
    FIELD(state_txn, number),
    FIELD(state_txn, state),
    FIELD(state_txn, op_count),
    FIELD(state_txn, part_count),
    FIELD(state_txn, base),
    FIELD(state_txn, version),
    FIELD(state_txn, superseded_by),
    FIELD(state_txn, created_us),
    FIELD(state_txn, decided_us),
    FIELD(state_txn, why),
    FIELD(state_txn, outcome_why),
};
static const struct field of_op[] = {
    FIELD(ring_op, kind),
    FIELD(ring_op, vnode),
    FIELD(ring_op, other),
    FIELD(ring_op, at),
    FIELD(ring_op, from),
    FIELD(ring_op, to),
};
static const struct field of_part[] = {
    FIELD(state_part, slot),
    FIELD(state_part, incarnation),
    FIELD(state_part, gives),
    FIELD(state_part, takes),
    FIELD(state_part, voted),
};
static const struct field of_voter[] = {
    FIELD(state_voter, id),
    FIELD(state_voter, identity),
    FIELD(state_voter, address),
};
static const struct field of_kind[] = {
    FIELD(state_kind, number),
    FIELD(state_kind, placement),
    FIELD(state_kind, role),
    FIELD(state_kind, name),
};
static const struct field of_suspect[] = {
    FIELD(state_suspect, actor),
    FIELD(state_suspect, quarantined),
    FIELD(state_suspect, strikes),
    FIELD(state_suspect, struck_us),
    FIELD(state_suspect, since_us),
    FIELD(state_suspect, node),
};

static const struct field of_lost[] = {
    FIELD(state_lost, incarnation),
    FIELD(state_lost, from),
    FIELD(state_lost, to),
};

static const struct field of_struck[] = {
    FIELD(state_struck, incarnation),
    FIELD(state_struck, position),
};
static const struct field of_pin[] = {
    FIELD(state_pin, from),
    FIELD(state_pin, to),
    FIELD(state_pin, kind),
    FIELD(state_pin, id_size),
    FIELD(state_pin, waits),
    FIELD(state_pin, node),
};
static const struct field of_remembered[] = {
    FIELD(state_remembered, kind),
    FIELD(state_remembered, id_size),
};
STATIC_SIZE(state_remembered, 16);
STATIC_SIZE(state_pin, 88);
STATIC_SIZE(state_lost, 16);
STATIC_SIZE(state_struck, 16);
STATIC_SIZE(state_node, 504);
STATIC_SIZE(state_txn, 344);
STATIC_SIZE(state_part, 24);
STATIC_SIZE(state_voter, 144);
STATIC_SIZE(state_kind, 100);
STATIC_SIZE(state_suspect, 344);
STATIC_SIZE(view_member, 376);
STATIC_SIZE(state, 1136);

struct compared {
    const struct field *field;
    size_t count;
    bool valued[FIELDS_MAX]; /* some history gave it a value other than zero */
};
#define TABLE(fields)                              \
    {                                              \
        fields, sizeof(fields) / sizeof *(fields), \
        {                                          \
            false                                  \
        }                                          \
    }

static struct {
    struct compared state, view, ring, vnode, member, node, txn, op, part, voter, kind, suspect,
        lost, struck, pin, remembered;
} tables = {TABLE(of_state),
            TABLE(of_view),
            TABLE(of_ring),
            TABLE(of_vnode),
            TABLE(of_member),
            TABLE(of_node),
            TABLE(of_txn),
            TABLE(of_op),
            TABLE(of_part),
            TABLE(of_voter),
            TABLE(of_kind),
            TABLE(of_suspect),
            TABLE(of_lost),
            TABLE(of_struck),
            TABLE(of_pin),
            TABLE(of_remembered)};

static const char *differs(struct compared *t, const void *a, const void *b)
{
    for (size_t i = 0; i < t->count; i++) {
        const uint8_t *x = (const uint8_t *)a + t->field[i].at;

        if (memcmp(x, (const uint8_t *)b + t->field[i].at, t->field[i].size) != 0) {
            return t->field[i].name;
        }
        for (size_t j = 0; j < t->field[i].size && !t->valued[i]; j++) {
            t->valued[i] = x[j] != 0;
        }
    }
    return NULL;
}

/* Both have `count` of them, of `size` bytes each. */
static const char *rows_differ(struct compared *t, const void *a, const void *b, size_t count,
                               size_t size)
{
    const char *what = NULL;

    for (size_t i = 0; i < count && what == NULL; i++) {
        what = differs(t, (const uint8_t *)a + i * size, (const uint8_t *)b + i * size);
    }
    return what;
}

static const char *txns_differ(const struct state *a, const struct state *b)
{
    const char *what = rows_differ(&tables.txn, a->txn, b->txn, a->txn_count, sizeof *a->txn);

    for (size_t i = 0; i < a->txn_count && what == NULL; i++) {
        const struct state_txn *x = &a->txn[i];
        const struct state_txn *y = &b->txn[i];

        what = rows_differ(&tables.op, x->ops, y->ops, x->op_count, sizeof *x->ops);
        if (what == NULL) {
            what = rows_differ(&tables.part, x->parts, y->parts, x->part_count, sizeof *x->parts);
        }
    }
    return what;
}

static const char *view_differs(const struct view *a, const struct view *b)
{
    const struct ring *x = &a->ring;
    const struct ring *y = &b->ring;
    const char *what = differs(&tables.view, a, b);

    what = what != NULL ? what : differs(&tables.ring, x, y);
    what = what != NULL
               ? what
               : rows_differ(&tables.vnode, x->vnode, y->vnode, x->vnode_count, sizeof *x->vnode);
    if (what == NULL && x->segment_count > 0 &&
        memcmp(x->segment, y->segment, x->segment_count * sizeof *x->segment) != 0) {
        what = "ring.segment";
    }
    if (what == NULL && (a->quarantine.count != b->quarantine.count ||
                         (a->quarantine.count > 0 &&
                          memcmp(a->quarantine.entry,
                                 b->quarantine.entry,
                                 a->quarantine.count * sizeof *a->quarantine.entry) != 0))) {
        what = "view.quarantine";
    }
    return what != NULL
               ? what
               : rows_differ(
                     &tables.member, a->member, b->member, a->member_count, sizeof *a->member);
}

const char *same_state(const struct state *a, const struct state *b)
{
    const struct {
        struct compared *table;
        const void *a;
        const void *b;
        size_t count;
        size_t size;
    } rows[] = {
        {&tables.node, a->node, b->node, a->node_count, sizeof *a->node},
        {&tables.voter, a->voter, b->voter, a->voter_count, sizeof *a->voter},
        {&tables.kind, a->kind, b->kind, a->kind_count, sizeof *a->kind},
        {&tables.suspect, a->suspect, b->suspect, a->suspect_count, sizeof *a->suspect},
        {&tables.lost, a->lost, b->lost, a->lost_count, sizeof *a->lost},
        {&tables.struck, a->struck, b->struck, a->struck_count, sizeof *a->struck},
        {&tables.pin, a->pin, b->pin, a->pin_count, sizeof *a->pin},
        {&tables.remembered,
         a->remembered,
         b->remembered,
         a->remembered_count,
         sizeof *a->remembered},
    };
    const char *what = differs(&tables.state, a, b);

    what = what != NULL ? what : view_differs(&a->view, &b->view);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0] && what == NULL; i++) {
        what = rows_differ(rows[i].table, rows[i].a, rows[i].b, rows[i].count, rows[i].size);
    }
    what = what != NULL ? what : txns_differ(a, b);
    return what != NULL || state_digest(a) == state_digest(b) ? what : "its digest";
}

const char *same_never_valued(void)
{
    for (size_t k = 0; k < sizeof tables / sizeof(struct compared); k++) {
        const struct compared *t = (const struct compared *)&tables + k;

        for (size_t i = 0; i < t->count; i++) {
            if (!t->valued[i]) {
                return t->field[i].name;
            }
        }
    }
    return NULL;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The sorted list of remembered ids. A command's rows are sorted and merged into it in one pass
 * each way, so a command of a thousand costs little more than one of one.
 */
#include "txn/state/remembered.h"

#include "base/mem.h"
#include "wire/versions.h"

#include <stdlib.h>
#include <string.h>

/* A row of a command. */
struct remembered_row {
    struct state_remembered row; /* its id is borrowed */
    size_t at; /* its place in the command: of two about one id the later counts */
    bool forget;
};

/* < 0: the row stands before that place, 0: there, > 0: behind it. */
static int compare_to(const struct state_remembered *r, uint16_t kind, struct bytes id)
{
    const size_t shorter = r->id_size < id.size ? r->id_size : id.size;
    const int by_id = shorter == 0 ? 0 : memcmp(r->id, id.data, shorter);

    if (r->kind != kind) {
        return r->kind < kind ? -1 : 1;
    }
    return by_id != 0 ? by_id : (int)r->id_size - (int)id.size;
}

static int compare(const struct state_remembered *a, const struct state_remembered *b)
{
    return compare_to(a, b->kind, remembered_id(b));
}

static int by_place(const void *a, const void *b)
{
    const struct remembered_row *x = a;
    const struct remembered_row *y = b;
    const int order = compare(&x->row, &y->row);

    return order != 0 ? order : x->at < y->at ? -1 : 1;
}

bool remembered_is_name(const Rh__Actor *actor)
{
    return actor != NULL && actor->kind <= UINT16_MAX && actor->id.len >= 1 &&
           actor->id.len <= UINT8_MAX;
}

bool remembered_owns(const struct state *s, const struct state_node *node, const Rh__Actor *actor)
{
    const uint16_t kind = (uint16_t)actor->kind;
    const struct bytes id = bytes_of(actor->id.data, actor->id.len);
    const struct ring *r = &s->view.ring;

    return r->vnode_count > 0 && ring_hit_node(view_lookup(&s->view, kind, id)) == node->slot;
}

/* Ids of that kind may be remembered: the node hosts it, and they have their cells by hash. */
static bool is_kind(const struct state *s, const struct state_node *node, uint16_t kind)
{
    return (node->kinds.count == 0 || ring_kinds_have(&node->kinds, kind)) &&
           ring_is_hashed(ring_segment_of_kind(&s->view.ring, kind));
}

size_t remembered_from(const struct state *s, uint16_t kind, struct bytes id)
{
    size_t low = 0;
    size_t high = s->remembered_count;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;

        if (compare_to(&s->remembered[middle], kind, id) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

bool remembered_has(const struct state *s, uint16_t kind, struct bytes id)
{
    const size_t i = remembered_from(s, kind, id);

    return i < s->remembered_count && s->remembered[i].kind == kind &&
           bytes_equal(remembered_id(&s->remembered[i]), id);
}

/* ---- the command ---- */

/* Of the command's rows those that change something, sorted: at most one of an id. */
static size_t read_rows(const struct state *s, const struct state_node *node,
                        const Rh__CommandRemember *in, struct remembered_row *told)
{
    size_t count = 0;
    size_t kept = 0;

    for (size_t i = 0; i < in->n_rows; i++) {
        const Rh__Actor *actor = in->rows[i]->actor;

        if (remembered_is_name(actor) &&
            (node == NULL
                 ? in->rows[i]->forget != 0
                 : remembered_owns(s, node, actor) && is_kind(s, node, (uint16_t)actor->kind))) {
            told[count++] = (struct remembered_row){.row = {.kind = (uint16_t)actor->kind,
                                                            .id_size = (uint8_t)actor->id.len,
                                                            .id = actor->id.data},
                                                    .at = i,
                                                    .forget = in->rows[i]->forget != 0};
        }
    }
    qsort(told, count, sizeof *told, by_place);
    for (size_t i = 0; i < count; i++) {
        const struct state_remembered *row = &told[i].row;

        if ((i + 1 == count || compare(row, &told[i + 1].row) != 0) &&
            remembered_has(s, row->kind, remembered_id(row)) == told[i].forget) {
            told[kept++] = told[i];
        }
    }
    return kept;
}

/* Take out those that are forgotten; all of them are there. */
static void take_out(struct state *s, const struct remembered_row *told, size_t count)
{
    size_t to = 0;
    size_t next = 0;

    for (size_t i = 0; i < s->remembered_count; i++) {
        while (next < count &&
               (!told[next].forget || compare(&told[next].row, &s->remembered[i]) < 0)) {
            next++;
        }
        if (next < count && compare(&told[next].row, &s->remembered[i]) == 0) {
            mem_free(s->remembered[i].id);
        } else {
            s->remembered[to++] = s->remembered[i];
        }
    }
    s->remembered_count = to;
}

/* Put `added` of them in, from behind: each row moves once. None is there yet. */
static void put_in(struct state *s, const struct remembered_row *told, size_t count, size_t added)
{
    size_t from = s->remembered_count;
    size_t to = from + added;
    size_t skip = 0; // of those to be added, so many found no room: the last ones

    for (size_t i = 0; i < count; i++) {
        skip += told[i].forget ? 0 : 1;
    }
    skip -= added;
    s->remembered = mem_resize(s->remembered, (to + 1) * sizeof *s->remembered);
    s->remembered_count = to;
    for (size_t i = count; i-- > 0;) {
        if (told[i].forget) {
            continue;
        }
        if (skip > 0) {
            skip--;
            continue;
        }
        while (from > 0 && compare(&s->remembered[from - 1], &told[i].row) > 0) {
            s->remembered[--to] = s->remembered[--from];
        }
        s->remembered[--to] = told[i].row;
        s->remembered[to].id = mem_copy(told[i].row.id, told[i].row.id_size);
    }
}

static void change_rows(struct state *s, const struct remembered_row *told, size_t count)
{
    size_t added = 0;
    size_t room;

    for (size_t i = 0; i < count; i++) {
        added += told[i].forget ? 0 : 1;
    }
    if (added < count) {
        take_out(s, told, count);
    }
    room = REMEMBERED_MAX - s->remembered_count;
    if (added > 0) {
        put_in(s, told, count, added < room ? added : room);
    }
}

void apply_remember(struct change *c, const Rh__CommandRemember *in)
{
    const struct state_node *node = state_node(c->s, (uint16_t)in->slot);
    struct remembered_row *told;

    if (c->s->format < FLEET_FORMAT_PLACEMENT) {
        change_refuse(
            c, "remembered ids belong to a later format than the fleet's: end the upgrade first");
        return;
    }
    if (in->n_rows > REMEMBERED_OF_COMMAND_MAX) {
        change_refuse(c, "the command has too many rows");
        return;
    }
    if (in->slot != 0 && (node == NULL || node->incarnation != in->incarnation || node->barred)) {
        change_refuse(c, "it is the word of a node that owns nothing any more");
        return;
    }
    told = mem_new(in->n_rows + 1, sizeof *told);
    change_rows(c->s, told, read_rows(c->s, in->slot == 0 ? NULL : node, in, told));
    mem_free(told);
}

/* ---- life ---- */

void remembered_append(struct state *s, uint16_t kind, struct bytes id)
{
    if ((s->remembered_count & (s->remembered_count + 1)) == 0) { // it was full: 0, 1, 3, 7 …
        s->remembered =
            mem_resize(s->remembered, (2 * s->remembered_count + 1) * sizeof *s->remembered);
    }
    s->remembered[s->remembered_count++] = (struct state_remembered){
        .kind = kind, .id_size = (uint8_t)id.size, .id = mem_copy(id.data, id.size)};
}

bool remembered_are_good(const struct state *s)
{
    for (size_t i = 0; i < s->remembered_count; i++) {
        if (s->remembered[i].id_size == 0 ||
            (i > 0 && compare(&s->remembered[i - 1], &s->remembered[i]) >= 0)) {
            return false;
        }
    }
    return s->remembered_count <= REMEMBERED_MAX;
}

void remembered_fini(struct state *s)
{
    for (size_t i = 0; i < s->remembered_count; i++) {
        mem_free(s->remembered[i].id);
    }
    mem_free(s->remembered);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Who lives here, for `ringhold actors`: page by page, in the order of the table
 * of actors, which no growth of it changes.
 */
#include "node/host/inside.h"

#include "base/mem.h"
#include "base/mutant.h"
#include "wire/control.h"

#include <string.h>

/* It has an instance, or is about to; or what it remembers came with a move, and its next message
 * starts it. */
static bool lives(const struct actor *a)
{
    return a->live || a->state == ACTOR_ACTIVATING || actor_image(a) != NULL;
}

static const char *state_of(const struct actor *a)
{
    return a->state == ACTOR_ABSENT ? "arrived" : machine_name(&actor_machine, a->state);
}

static bool is_wanted(const Rh__AdminActors *what, const struct actor *a)
{
    return (what->any_kind || what->kind == a->kind) && lives(a) &&
           (what->whole ? a->id_size == what->prefix.len : a->id_size >= what->prefix.len) &&
           bytes_match(a->id, what->prefix.data, what->prefix.len);
}

/* What moves comes when its cell does, and has lived on since, whenever it was woken. */
static void tell_coming(const struct host *h, const struct actor *a, Rh__ActorRow *row)
{
    const struct cell_state *state = &h->cells.state[ring_point_cell(actor_position(a))];
    const bool started = (a->live || a->state == ACTOR_ACTIVATING) && !a->came;
    const uint64_t moved_us = state->mine ? state->since_us : 0;
    const uint64_t since_us = started ? actor_began_us(&h->actors, a) : moved_us;

    row->came = started ? RESIDENT_STARTED : RESIDENT_MOVED;
    row->here_ms = since_us == 0 ? 0 : (h->now_us - since_us) / 1000;
}

static void add_row(const struct host *h, Rh__ActorsAnswer *out, const struct actor *a)
{
    Rh__ActorRow *row = mem_new(1, sizeof *row);

    *row = (Rh__ActorRow)RH__ACTOR_ROW__INIT;
    row->kind = a->kind;
    row->id.len = a->id_size;
    row->id.data = mem_copy(a->id, a->id_size);
    row->state = mem_string(state_of(a));
    row->unused_ms = a->live ? idle_age_ms(a, h->now_us) : 0;
    tell_coming(h, a, row);
    out->rows = mem_resize(out->rows, (out->n_rows + 1) * sizeof(Rh__ActorRow *));
    out->rows[out->n_rows++] = row;
}

/* A bucket is in one page with all that are in it, so that the next page begins behind it. */
static void add_bucket(const struct host *h, Rh__ActorsAnswer *out, const Rh__AdminActors *what,
                       size_t limit)
{
    const struct actor *a = actor_at(&h->actors, lookup_walk(&h->actors.table, &out->next));

    for (; a != NULL; a = actor_at(&h->actors, a->same)) {
        if (is_wanted(what, a) && (out->n_rows < limit || !mutant(M_LISTOMITS))) {
            add_row(h, out, a);
        }
    }
}

static void add_page(const struct host *h, Rh__ActorsAnswer *out, const Rh__AdminActors *what)
{
    const size_t limit =
        what->limit == 0 || what->limit > RESIDENTS_ROWS_MAX ? RESIDENTS_ROWS_MAX : what->limit;

    out->next = what->cursor;
    for (size_t i = 0; i < RESIDENTS_BUCKETS_MAX; i++) {
        add_bucket(h, out, what, limit);
        if (out->next == 0 || out->n_rows >= limit) {
            return;
        }
    }
}

/* Whoever has a name is found without going through a table. */
static void add_named(const struct host *h, Rh__ActorsAnswer *out, const Rh__AdminActors *what)
{
    const uint16_t kind = (uint16_t)what->kind;
    const struct bytes id = bytes_of(what->prefix.data, what->prefix.len);

    if (what->kind > UINT16_MAX || !host_has_kind(h, kind) || id.size > RECORD_ID_MAX) {
        return;
    }
    const struct image_name name = {.position = host_position(h, kind, id), .kind = kind, .id = id};
    const struct actor *a = actor_find(&h->actors, name);
    if (a != NULL && lives(a)) {
        add_row(h, out, a);
    }
}

void host_list_residents(struct host *h, int coordinator, const Rh__Actors *question)
{
    Rh__Control c = RH__CONTROL__INIT;
    Rh__ActorsAnswer *out = mem_new(1, sizeof *out);

    *out = (Rh__ActorsAnswer)RH__ACTORS_ANSWER__INIT;
    out->tag = question->tag;
    out->route = question->route;
    out->name = mem_string(h->config.name);
    if (question->what != NULL && question->what->whole && !question->what->any_kind) {
        add_named(h, out, question->what);
    } else if (question->what != NULL) {
        add_page(h, out, question->what);
    }
    c.body_case = RH__CONTROL__BODY_ACTORS_ANSWER;
    c.actors_answer = out;
    host_tell(h, coordinator, &c);
    proto_free(&out->base);
}

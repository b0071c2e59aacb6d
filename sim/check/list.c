/* SPDX-License-Identifier: Apache-2.0
 *
 * Who lives at a node is in its list, as `ringhold actors` reads it.
 */
#include "node/books/instance.h"
#include "sim/fleet.h"
#include "wire/control.h"

enum { LIMIT = 3 /* rows, so that pages end anywhere */ };

/* How often each entity was listed. */
struct roll {
    unsigned times[LEDGER_ENTITIES];
};

static void count_page(const struct fleet *f, const Rh__ActorsAnswer *page, struct roll *roll)
{
    for (size_t i = 0; i < page->n_rows; i++) {
        const struct bytes id = {page->rows[i]->id.data, page->rows[i]->id.len};

        for (size_t k = 0; k < LEDGER_ENTITIES; k++) {
            const struct entity *e = &f->ledger.entity[k];

            roll->times[k] += bytes_equal(id, bytes_of(e->id, e->id_size)) &&
                              page->rows[i]->kind == entity_kind(e);
        }
    }
}

/* Count the page that the node has just said; the cursor of the next, 0 = that was the last. */
static uint64_t take_page(const struct fleet *f, const struct sim_node *n, struct roll *roll)
{
    uint64_t next = 0;

    for (size_t i = 0; i < n->out.count; i++) {
        const struct host_effect *e = &n->out.item[i];
        Rh__Control *said = e->type == HOST_SEND_COORDINATOR
                                ? control_get(bytes_of(n->out.bytes.data + e->at, e->size))
                                : NULL;

        if (said != NULL && said->body_case == RH__CONTROL__BODY_ACTORS_ANSWER) {
            count_page(f, said->actors_answer, roll);
            next = said->actors_answer->next;
        }
        control_free(said);
    }
    return next;
}

/* No time passes from one page to the next. */
static void read_list(struct fleet *f, struct sim_node *n, struct roll *roll)
{
    Rh__AdminActors what = RH__ADMIN_ACTORS__INIT;
    Rh__Actors actors = RH__ACTORS__INIT;
    Rh__Control question = RH__CONTROL__INIT;

    what.any_kind = true;
    what.limit = LIMIT;
    actors.what = &what;
    question.body_case = RH__CONTROL__BODY_ACTORS;
    question.actors = &actors;
    do {
        struct host_event event = {.type = HOST_CONTROL, .message = &question};

        node_begin_step(f, n, &event);
        host_step(n->core, &event, &n->out);
        what.cursor = take_page(f, n, roll);
        node_end_step(f, n, false);
    } while (what.cursor != 0 && n->core != NULL && f->world.checker == NULL);
}

void check_lists(struct fleet *f)
{
    for (unsigned k = 0; k < f->nodes; k++) {
        struct sim_node *n = &f->node[k];
        struct roll roll = {{0}};

        if (n->core == NULL) {
            continue;
        }
        read_list(f, n, &roll);
        for (const struct instance *i = n->instance; i != NULL; i = i->next) {
            const unsigned times = roll.times[i->entity - f->ledger.entity];

            if (times != 1) {
                world_violate(&f->world,
                              "list",
                              "%s lives on %s, whose list has it %u times",
                              i->entity->id,
                              n->process.name,
                              times);
            }
        }
    }
}

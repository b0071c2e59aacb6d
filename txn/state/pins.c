/* SPDX-License-Identifier: Apache-2.0
 *
 * The sorted list of pins. A command makes a new list out of it and its own, in one pass, and
 * looks at that before it takes it: nothing is changed by half.
 */
#include "txn/state/pins.h"

#include "base/mem.h"
#include "wire/versions.h"

#include <stdlib.h>
#include <string.h>

int pins_compare(const struct state_pin *a, const struct state_pin *b)
{
    const size_t shorter = a->id_size < b->id_size ? a->id_size : b->id_size;
    const int by_id = shorter == 0 ? 0 : memcmp(a->id, b->id, shorter);

    if (a->from != b->from) {
        return a->from < b->from ? -1 : 1;
    }
    if (a->to != b->to) {
        return a->to < b->to ? -1 : 1;
    }
    if (a->kind != b->kind) {
        return a->kind < b->kind ? -1 : 1;
    }
    return by_id != 0 ? by_id : (int)a->id_size - (int)b->id_size;
}

static int by_place(const void *a, const void *b)
{
    return pins_compare(a, b);
}

const struct state_pin *pins_find(const struct state *s, const struct state_pin *pin)
{
    return s->pin_count == 0 ? NULL : bsearch(pin, s->pin, s->pin_count, sizeof *s->pin, by_place);
}

static bool says_the_same(const struct state_pin *a, const struct state_pin *b)
{
    return a->waits == b->waits && strcmp(a->node, b->node) == 0;
}

const struct state_pin *pins_rival(const struct state *s, const struct state_pin *pin)
{
    for (size_t i = 0; i < s->pin_count && s->pin[i].from < pin->to; i++) {
        if (s->pin[i].to > pin->from && !says_the_same(&s->pin[i], pin) &&
            pins_compare(&s->pin[i], pin) != 0) {
            return &s->pin[i];
        }
    }
    return NULL;
}

/* Of a sorted list: no two with a cell in common say different things. */
static bool agree(const struct state_pin *pin, size_t count)
{
    size_t far = 0; // the one that reaches farthest: whoever has a cell in common with any, has it
                    // with that one

    for (size_t i = 1; i < count; i++) {
        if (pin[i].from < pin[far].to && !says_the_same(&pin[i], &pin[far])) {
            return false;
        }
        far = pin[i].to > pin[far].to ? i : far;
    }
    return true;
}

struct placed {
    const struct state_pin *pin;
};

static int by_place_of(const void *a, const void *b)
{
    return pins_compare(((const struct placed *)a)->pin, ((const struct placed *)b)->pin);
}

size_t pins_clashes(const struct state_pin *pin, size_t count, struct pins_clash *out, size_t max)
{
    struct placed *order = mem_new(count + 1, sizeof *order);
    size_t far = 0; // as in agree()
    size_t found = 0;

    for (size_t i = 0; i < count; i++) {
        order[i].pin = &pin[i];
    }
    qsort(order, count, sizeof *order, by_place_of);
    for (size_t i = 1; i < count; i++) {
        const struct state_pin *p = order[i].pin;
        const struct state_pin *reaches = order[far].pin;
        const bool twice = pins_compare(order[i - 1].pin, p) == 0;
        const size_t a = (size_t)((twice ? order[i - 1].pin : reaches) - pin);
        const size_t b = (size_t)(p - pin);

        if (twice || (p->from < reaches->to && !says_the_same(p, reaches))) {
            if (found < max) {
                out[found] = (struct pins_clash){a < b ? a : b, a < b ? b : a, twice};
            }
            found++;
        }
        far = p->to > reaches->to ? i : far;
    }
    mem_free(order);
    return found;
}

/* ---- reading ---- */

static const char *read_cells(const struct state *s, const Rh__Pin *in, struct state_pin *pin)
{
    const struct ring *r = &s->view.ring;

    if (r->vnode_count == 0) {
        return "the ring is empty: no node has registered yet";
    }
    if (in->actor != NULL) {
        if (in->actor->kind > UINT16_MAX || in->actor->id.len < 1 || in->actor->id.len > 255) {
            return "an id has 1 to 255 bytes, a kind is at most 65535";
        }
        const struct bytes id = bytes_of(in->actor->id.data, in->actor->id.len);

        pin->kind = (uint16_t)in->actor->kind;
        pin->id_size = (uint8_t)id.size;
        pin->id = in->actor->id.data;
        pin->from =
            ring_point_cell(ring_point(r, pin->kind, ring_key_of_kind(s->view.key, pin->kind), id));
        pin->to = pin->from + 1;
        return NULL;
    }
    pin->from = in->from;
    pin->to = in->to;
    if (in->from >= in->to || in->to > r->cell_count ||
        ring_segment_at(r, in->from) != ring_segment_at(r, in->to - 1)) {
        return "its cells are not of one role";
    }
    return NULL;
}

const char *pins_read(const struct state *s, const Rh__Pin *in, struct state_pin *pin)
{
    *pin = (struct state_pin){.waits = in->waits};
    if (strlen(in->node) > VIEW_NAME_MAX) {
        return "the node's name is too long";
    }
    change_text(pin->node, in->node, sizeof pin->node);
    return read_cells(s, in, pin);
}

/* Only at a node that is known, and that may own them. */
static const char *node_fault(const struct state *s, const struct state_pin *pin)
{
    const struct state_node *n = state_node_named(s, pin->node);
    const struct ring_segment *segment = ring_segment_at(&s->view.ring, pin->from);

    if (n == NULL) {
        return "no such node";
    }
    if (strcmp(segment == NULL ? "" : segment->role, n->role) != 0 ||
        !ring_kinds_fit(&n->kinds, segment)) {
        return "the node has not the role of these cells, or does not host their kind";
    }
    return NULL;
}

/* Owned, sorted; NULL and a fault: one is no pin. */
static struct state_pin *read_all(const struct state *s, Rh__Pin *const *in, size_t count,
                                  bool adds, const char **fault)
{
    struct state_pin *list = mem_new(count + 1, sizeof *list);

    for (size_t i = 0; i < count && *fault == NULL; i++) {
        *fault = pins_read(s, in[i], &list[i]);
        if (*fault == NULL && adds) {
            *fault = node_fault(s, &list[i]);
        }
    }
    if (*fault == NULL) {
        qsort(list, count, sizeof *list, by_place);
    }
    for (size_t i = 1; i < count && *fault == NULL; i++) {
        if (pins_compare(&list[i - 1], &list[i]) == 0) {
            *fault = "it is named twice";
        }
    }
    return list;
}

/* ---- the command ---- */

/* What a command brings, sorted; ids are borrowed of it. */
struct brought {
    struct state_pin *add;
    size_t add_count;
    struct state_pin *remove;
    size_t remove_count;
};

static bool is_removed(const struct brought *b, const struct state_pin *pin)
{
    if (pin->id_size > 0) {
        return b->remove_count > 0 &&
               bsearch(pin, b->remove, b->remove_count, sizeof *pin, by_place) != NULL;
    }
    for (size_t i = 0; i < b->remove_count; i++) {
        if (b->remove[i].id_size == 0 && b->remove[i].from < pin->to &&
            b->remove[i].to > pin->from) {
            return true;
        }
    }
    return false;
}

/* The list as it would be; owned, its ids are not. `kept[i]`: the old one stays. */
static struct state_pin *merge(const struct state *s, const struct brought *b, bool *kept,
                               size_t *count)
{
    struct state_pin *list = mem_new(s->pin_count + b->add_count + 1, sizeof *list);
    size_t at = 0;

    *count = 0;
    for (size_t i = 0; i < s->pin_count; i++) {
        const struct state_pin *old = &s->pin[i];

        while (at < b->add_count && pins_compare(&b->add[at], old) < 0) {
            list[(*count)++] = b->add[at++];
        }
        kept[i] =
            (at == b->add_count || pins_compare(&b->add[at], old) != 0) && !is_removed(b, old);
        if (kept[i]) {
            list[(*count)++] = *old;
        }
    }
    while (at < b->add_count) {
        list[(*count)++] = b->add[at++];
    }
    return list;
}

static void own_ids(const struct brought *b)
{
    for (size_t i = 0; i < b->add_count; i++) {
        struct state_pin *pin = &b->add[i];

        pin->id = pin->id_size == 0 ? NULL : mem_copy(pin->id, pin->id_size);
    }
}

static const char *change_pins(struct state *s, const struct brought *b)
{
    bool *kept = mem_new(s->pin_count + 1, sizeof *kept);
    size_t count;
    struct state_pin *list = merge(s, b, kept, &count);
    const char *fault = count > PINS_MAX ? "there are 100000 pins already: remove some first"
                        : !agree(list, count)
                            ? "it has a cell in common with a pin that says something else"
                            : NULL;

    mem_free(list);
    if (fault == NULL) {
        own_ids(b);
        list = merge(s, b, kept, &count);
        for (size_t i = 0; i < s->pin_count; i++) {
            if (!kept[i]) {
                mem_free(s->pin[i].id);
            }
        }
        mem_free(s->pin);
        s->pin = list;
        s->pin_count = count;
    }
    mem_free(kept);
    return fault;
}

void apply_pin(struct change *c, const Rh__CommandPin *in)
{
    struct brought b = {.add_count = in->n_add, .remove_count = in->n_remove};
    const char *fault = NULL;

    if (c->s->format < FLEET_FORMAT_PLACEMENT) {
        change_refuse(c, "pins belong to a later format than the fleet's: end the upgrade first");
        return;
    }
    if (in->n_add > PINS_OF_COMMAND_MAX || in->n_remove > PINS_OF_COMMAND_MAX) {
        change_refuse(c, "the command has too many pins");
        return;
    }
    b.add = read_all(c->s, in->add, in->n_add, true, &fault);
    b.remove = read_all(c->s, in->remove, in->n_remove, false, &fault);
    if (fault == NULL) {
        fault = change_pins(c->s, &b);
    }
    mem_free(b.add);
    mem_free(b.remove);
    if (fault != NULL) {
        change_refuse(c, fault);
    }
}

/* ---- life ---- */

void pins_append(struct state *s, const struct state_pin *pin, struct bytes id)
{
    if ((s->pin_count & (s->pin_count + 1)) == 0) { // it was full: 0, 1, 3, 7 …
        s->pin = mem_resize(s->pin, (2 * s->pin_count + 1) * sizeof *s->pin);
    }
    s->pin[s->pin_count] = *pin;
    s->pin[s->pin_count].id_size = (uint8_t)id.size;
    s->pin[s->pin_count++].id = id.size == 0 ? NULL : mem_copy(id.data, id.size);
}

bool pins_are_good(const struct state *s)
{
    for (size_t i = 0; i < s->pin_count; i++) {
        const struct state_pin *pin = &s->pin[i];

        if (pin->from >= pin->to || pin->to > s->view.ring.cell_count ||
            (i > 0 && pins_compare(&pin[-1], pin) >= 0)) {
            return false;
        }
    }
    return s->pin_count <= PINS_MAX && agree(s->pin, s->pin_count);
}

void pins_fini(struct state *s)
{
    for (size_t i = 0; i < s->pin_count; i++) {
        mem_free(s->pin[i].id);
    }
    mem_free(s->pin);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists of actors that a lost node had not answered, and their form on the wire.
 */
#include "ring/unanswered.h"

#include "base/mem.h"
#include "wire/control.h"

#include <string.h>

static void erase(struct unanswered *u, size_t at)
{
    mem_free(u->node[at].actor);
    u->count--;
    memmove(&u->node[at], &u->node[at + 1], (u->count - at) * sizeof *u->node);
}

void unanswered_fini(struct unanswered *u)
{
    while (u->count > 0) {
        erase(u, u->count - 1);
    }
}

void unanswered_drop(struct unanswered *u, uint64_t incarnation)
{
    for (size_t i = u->count; i-- > 0;) {
        if (u->node[i].incarnation == incarnation) {
            erase(u, i);
        }
    }
}

struct unanswered_node *unanswered_begin(struct unanswered *u, uint64_t incarnation)
{
    unanswered_drop(u, incarnation);
    if (u->count == UNANSWERED_NODES_MAX) {
        erase(u, 0);
    }
    struct unanswered_node *n = &u->node[u->count++];

    *n = (struct unanswered_node){.incarnation = incarnation,
                                  .actor = mem_new(UNANSWERED_ACTORS_MAX, sizeof *n->actor)};
    return n;
}

bool unanswered_put(struct unanswered_node *n, uint16_t kind, struct bytes id, uint64_t before)
{
    struct unanswered_actor e = {.before = before};

    if (!quarantined_of(&e.actor, kind, id)) {
        return true;
    }
    for (size_t i = 0; i < n->count; i++) {
        if (quarantine_compare(&n->actor[i].actor, &e.actor) == 0) {
            n->actor[i].before = n->actor[i].before != 0 ? n->actor[i].before : before;
            return true;
        }
    }
    if (n->count == UNANSWERED_ACTORS_MAX) {
        return false;
    }
    n->actor[n->count++] = e;
    return true;
}

Rh__Suspect *unanswered_suspect(const struct unanswered_actor *a)
{
    Rh__Suspect *out = mem_new(1, sizeof *out);

    *out = (Rh__Suspect)RH__SUSPECT__INIT;
    out->actor = quarantined_wire(&a->actor);
    out->before = a->before;
    return out;
}

bool unanswered_read_suspect(struct unanswered_actor *a, const Rh__Suspect *in)
{
    *a = (struct unanswered_actor){.before = in->before};
    return in->actor != NULL && quarantined_read(&a->actor, in->actor);
}

void unanswered_follow(struct unanswered *u, const struct view *view)
{
    for (size_t i = u->count; i-- > 0;) {
        bool owns = false;

        for (size_t k = 0; !owns && k < view->member_count; k++) {
            owns = view->member[k].incarnation == u->node[i].incarnation &&
                   ring_owned_count(&view->ring, view->member[k].slot) > 0;
        }
        if (!owns) {
            erase(u, i);
        }
    }
}

Rh__Unanswered **unanswered_wire(const struct unanswered *u)
{
    Rh__Unanswered **wire = u->count == 0 ? NULL : mem_new(u->count, sizeof(Rh__Unanswered *));

    for (size_t i = 0; i < u->count; i++) {
        const struct unanswered_node *n = &u->node[i];

        wire[i] = mem_new(1, sizeof *wire[i]);
        *wire[i] = (Rh__Unanswered)RH__UNANSWERED__INIT;
        wire[i]->incarnation = n->incarnation;
        wire[i]->actors = mem_new(UNANSWERED_ACTORS_MAX, sizeof(Rh__Suspect *));
        for (size_t k = 0; k < n->count; k++) {
            wire[i]->actors[wire[i]->n_actors++] = unanswered_suspect(&n->actor[k]);
        }
    }
    return wire;
}

void unanswered_wire_free(Rh__Unanswered **wire, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        proto_free(&wire[i]->base);
    }
    mem_free(wire);
}

void unanswered_read(struct unanswered *u, Rh__Unanswered *const *wire, size_t count)
{
    unanswered_fini(u);
    for (size_t i = 0; i < count && i < UNANSWERED_NODES_MAX; i++) {
        struct unanswered_node *n = unanswered_begin(u, wire[i]->incarnation);
        struct unanswered_actor e;

        for (size_t k = 0; k < wire[i]->n_actors && k < UNANSWERED_ACTORS_MAX; k++) {
            if (unanswered_read_suspect(&e, wire[i]->actors[k])) {
                (void)unanswered_put(n, e.actor.kind, quarantined_id(&e.actor), e.before);
            }
        }
    }
}

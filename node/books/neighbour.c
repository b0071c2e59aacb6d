/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of links that are up, by link and by process.
 */
#include "node/books/neighbour.h"

#include "base/mem.h"

void neighbours_init(struct neighbours *p)
{
    *p = (struct neighbours){0};
    list_init(&p->all);
}

void neighbours_fini(struct neighbours *p)
{
    struct list_link *link = NULL;

    while ((link = list_front(&p->all)) != NULL) {
        neighbour_down(p, CONTAINER_OF(link, struct neighbour, all)->link);
    }
    table_fini(&p->by_link);
    table_fini(&p->by_process);
}

void neighbour_up(struct neighbours *p, const struct neighbour *peer)
{
    neighbour_down(p, peer->link);

    struct neighbour *new = mem_copy(peer, sizeof *peer);
    table_put(&p->by_link, &new->by_link, table_mix(peer->link));
    table_put(&p->by_process, &new->by_process, table_mix(peer->incarnation));
    list_push_back(&p->all, &new->all);
}

void neighbour_down(struct neighbours *p, uint64_t link)
{
    struct neighbour *peer = neighbour_by_link(p, link);

    if (peer != NULL) {
        table_remove(&p->by_link, &peer->by_link);
        table_remove(&p->by_process, &peer->by_process);
        list_remove(&peer->all);
        mem_free(peer);
    }
}

struct neighbour *neighbour_by_link(const struct neighbours *p, uint64_t link)
{
    for (struct table_link *l = table_first(&p->by_link, table_mix(link)); l; l = table_same(l)) {
        struct neighbour *peer = CONTAINER_OF(l, struct neighbour, by_link);

        if (peer->link == link) {
            return peer;
        }
    }
    return NULL;
}

/* From `l` on, the first one of that incarnation. */
static struct neighbour *of_incarnation(struct table_link *l, uint64_t incarnation)
{
    for (; l != NULL; l = table_same(l)) {
        struct neighbour *peer = CONTAINER_OF(l, struct neighbour, by_process);

        if (peer->incarnation == incarnation) {
            return peer;
        }
    }
    return NULL;
}

struct neighbour *neighbour_first(const struct neighbours *p, uint64_t incarnation)
{
    return of_incarnation(table_first(&p->by_process, table_mix(incarnation)), incarnation);
}

struct neighbour *neighbour_next(const struct neighbour *peer)
{
    return of_incarnation(table_same(&peer->by_process), peer->incarnation);
}

struct neighbour *neighbour_by_process(const struct neighbours *p, enum link_role role,
                                       uint64_t incarnation)
{
    struct neighbour *peer = neighbour_first(p, incarnation);

    while (peer != NULL && (peer->role != role || peer->standing != STANDING_KNOWN)) {
        peer = neighbour_next(peer);
    }
    return peer;
}

struct neighbour *neighbour_asking(const struct neighbours *p, uint64_t id)
{
    struct neighbour *peer = neighbour_by_process(p, ROLE_GATEWAY, id);

    return peer != NULL ? peer : neighbour_by_process(p, ROLE_NODE, id);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "node/peer.h"

#include "base/mem.h"

void peers_init(struct peers *p)
{
    *p = (struct peers){0};
    list_init(&p->all);
}

void peers_fini(struct peers *p)
{
    struct list_link *link = NULL;

    while ((link = list_front(&p->all)) != NULL) {
        peer_down(p, CONTAINER_OF(link, struct peer, all)->link);
    }
    table_fini(&p->by_link);
    table_fini(&p->by_process);
}

void peer_up(struct peers *p, const struct peer *peer)
{
    peer_down(p, peer->link);

    struct peer *new = mem_copy(peer, sizeof *peer);
    table_put(&p->by_link, &new->by_link, table_mix(peer->link));
    table_put(&p->by_process, &new->by_process, table_mix(peer->incarnation));
    list_push_back(&p->all, &new->all);
}

void peer_down(struct peers *p, uint64_t link)
{
    struct peer *peer = peer_by_link(p, link);

    if (peer != NULL) {
        table_remove(&p->by_link, &peer->by_link);
        table_remove(&p->by_process, &peer->by_process);
        list_remove(&peer->all);
        mem_free(peer);
    }
}

struct peer *peer_by_link(const struct peers *p, uint64_t link)
{
    for (struct table_link *l = table_first(&p->by_link, table_mix(link)); l; l = table_same(l)) {
        struct peer *peer = CONTAINER_OF(l, struct peer, by_link);

        if (peer->link == link) {
            return peer;
        }
    }
    return NULL;
}

struct peer *peer_by_process(const struct peers *p, enum link_role role, uint64_t incarnation)
{
    for (struct table_link *l = table_first(&p->by_process, table_mix(incarnation)); l;
         l = table_same(l)) {
        struct peer *peer = CONTAINER_OF(l, struct peer, by_process);

        if (peer->incarnation == incarnation && peer->role == role) {
            return peer;
        }
    }
    return NULL;
}

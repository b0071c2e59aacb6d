/* SPDX-License-Identifier: Apache-2.0
 *
 * Links to other nodes: asked for when something is to go there, let go of when it is not.
 */
#include "node/host/inside.h"

#include "base/mem.h"

#include <stdio.h>
#include <string.h>

enum { MS = 1000 };

void links_init(struct host_links *l)
{
    neighbours_init(&l->neighbours);
    queue_init(&l->lonely);
}

void links_fini(struct host_links *l)
{
    neighbours_fini(&l->neighbours);
    mem_free(l->dial);
}

void host_dials_sync(struct host *h)
{
    size_t kept = 0;

    for (size_t i = 0; i < h->links.dial_count; i++) {
        const struct view_member *m = view_member(&h->topology.view, h->links.dial[i].slot);

        if (m != NULL && strcmp(m->address, h->links.dial[i].address) == 0) {
            h->links.dial[kept++] = h->links.dial[i];
        } else {
            host_emit(h, HOST_DISCONNECT)->slot = h->links.dial[i].slot;
        }
    }
    h->links.dial_count = kept;
}

static void dial(struct host *h, const struct view_member *m)
{
    struct host_effect *e = host_emit(h, HOST_CONNECT);

    h->links.dial = mem_resize(h->links.dial, (h->links.dial_count + 1) * sizeof *h->links.dial);
    struct dial *d = &h->links.dial[h->links.dial_count++];
    *d = (struct dial){.slot = m->slot, .used_us = h->now_us};
    (void)snprintf(d->address, sizeof d->address, "%s", m->address);
    e->slot = m->slot;
    host_emit_bytes(h, e, bytes_of(m->address, strlen(m->address) + 1));
}

/* True: the node has been dialled, and the link is used. */
static bool use_dial(struct host *h, uint16_t slot)
{
    bool dialled = false;

    for (size_t i = 0; i < h->links.dial_count; i++) {
        if (h->links.dial[i].slot == slot) {
            h->links.dial[i].used_us = h->now_us;
            dialled = true;
        }
    }
    return dialled;
}

uint64_t host_link_to(struct host *h, uint16_t slot, uint64_t incarnation)
{
    const struct neighbour *peer =
        neighbour_by_process(&h->links.neighbours, ROLE_NODE, incarnation);
    const struct view_member *m = view_member(&h->topology.view, slot);

    if (!use_dial(h, slot) && peer == NULL && m != NULL) {
        dial(h, m);
    }
    return peer == NULL ? 0 : peer->link;
}

void host_dial_own(struct host *h, uint16_t slot)
{
    const struct view_member *m = view_member(&h->topology.view, slot);

    if (!use_dial(h, slot) && m != NULL) {
        dial(h, m);
    }
}

void host_dials_tick(struct host *h)
{
    const uint64_t linger_us = (uint64_t)h->config.linger_ms * MS;
    size_t kept = 0;

    if (h->txns.participant.part_count > 0 || h->links.lonely.count > 0) {
        return;
    }
    for (size_t i = 0; i < h->links.dial_count; i++) {
        if (h->now_us - h->links.dial[i].used_us < linger_us) {
            h->links.dial[kept++] = h->links.dial[i];
        } else {
            host_emit(h, HOST_DISCONNECT)->slot = h->links.dial[i].slot;
        }
    }
    h->links.dial_count = kept;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Links that this node keeps to others: the host wants them, or its calls do.
 */
#include "node/shell_uv.h"

#include "base/log.h"
#include "base/mem.h"

#include <string.h>

static struct wanted *find(const struct shell *s, uint16_t slot)
{
    for (size_t i = 0; i < s->wanted_count; i++) {
        if (s->wanted[i].slot == slot) {
            return &s->wanted[i];
        }
    }
    return NULL;
}

/* The link's peer, if it is up, hears that it is down: links_forget() does not say so. */
static void forget(struct shell *s, struct link *link)
{
    struct shell_peer *p = link_user(link);

    if (p != NULL) {
        const struct host_event event = {.type = HOST_PEER_DOWN, .peer = p->id};

        table_remove(&s->peers, &p->by_id);
        link_set_user(link, NULL);
        calls_down(s->calls, p->id, s->now_us);
        shell_queue(s, &event);
        shell_free_peer(s, p);
    }
    links_forget(s->links, link);
}

static void drop(struct shell *s, struct wanted *w)
{
    forget(s, w->link);
    *w = s->wanted[--s->wanted_count];
}

void shell_hang_up(struct shell *s, uint16_t slot, enum wants who)
{
    struct wanted *w = find(s, slot);

    if (w != NULL) {
        w->by &= ~(unsigned)who;
        if (w->by == 0) {
            drop(s, w);
        }
    }
}

void shell_dial(struct shell *s, uint16_t slot, const char *address, enum wants who)
{
    struct wanted *known = find(s, slot);
    unsigned by = (unsigned)who;

    if (known != NULL && strcmp(known->address, address) == 0) {
        known->by |= by;
        return;
    }
    if (known != NULL) {
        by |= known->by;
        drop(s, known);
    }
    struct link *link = links_dial(s->links, address);
    if (link == NULL) {
        log_error("node", "bad_address", "slot=%u address=%s", slot, address);
        return;
    }
    if (s->wanted_count == s->wanted_cap) {
        s->wanted_cap = s->wanted_cap == 0 ? 16 : s->wanted_cap * 2;
        s->wanted = mem_resize(s->wanted, s->wanted_cap * sizeof *s->wanted);
    }
    struct wanted *w = &s->wanted[s->wanted_count++];
    w->slot = slot;
    w->link = link;
    w->by = by;
    (void)snprintf(w->address, sizeof w->address, "%s", address);
}

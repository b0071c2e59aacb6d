/* SPDX-License-Identifier: Apache-2.0
 *
 * Notes which gateways are linked, and which have been away for so long that
 * their clients are lost.
 */
#include "node/books/presence.h"

#include "base/mem.h"

#include <string.h>

void presence_fini(struct presence *p)
{
    mem_free(p->link);
    mem_free(p->absent);
    *p = (struct presence){0};
}

uint64_t presence_link(const struct presence *p, uint64_t gateway)
{
    for (size_t i = p->link_count; i > 0; i--) {
        if (p->link[i - 1].gateway == gateway) {
            return p->link[i - 1].link;
        }
    }
    return 0;
}

static struct presence_absent *absent(const struct presence *p, uint64_t gateway)
{
    for (size_t i = 0; i < p->absent_count; i++) {
        if (p->absent[i].gateway == gateway) {
            return &p->absent[i];
        }
    }
    return NULL;
}

static void forget(struct presence *p, struct presence_absent *a)
{
    *a = p->absent[--p->absent_count];
}

void presence_bound(struct presence *p, uint64_t gateway, uint64_t now_us)
{
    if (presence_link(p, gateway) != 0 || absent(p, gateway) != NULL) {
        return;
    }
    if (p->absent_count == p->absent_cap) {
        p->absent_cap = p->absent_cap == 0 ? 8 : p->absent_cap * 2;
        p->absent = mem_resize(p->absent, p->absent_cap * sizeof *p->absent);
    }
    p->absent[p->absent_count++] = (struct presence_absent){gateway, now_us};
}

void presence_up(struct presence *p, uint64_t gateway, uint64_t link)
{
    struct presence_absent *a = absent(p, gateway);

    if (a != NULL) {
        forget(p, a);
    }
    if (p->link_count == p->link_cap) {
        p->link_cap = p->link_cap == 0 ? 8 : p->link_cap * 2;
        p->link = mem_resize(p->link, p->link_cap * sizeof *p->link);
    }
    p->link[p->link_count++] = (struct presence_link){gateway, link};
}

void presence_down(struct presence *p, uint64_t link, uint64_t now_us)
{
    for (size_t i = 0; i < p->link_count; i++) {
        const uint64_t gateway = p->link[i].gateway;

        if (p->link[i].link == link) {
            p->link_count--;
            memmove(&p->link[i], &p->link[i + 1], (p->link_count - i) * sizeof *p->link);
            presence_bound(p, gateway, now_us);
            return;
        }
    }
}

bool presence_gone(struct presence *p, uint64_t now_us, uint64_t *gateway)
{
    for (size_t i = 0; i < p->absent_count; i++) {
        if (now_us - p->absent[i].since_us >= PRESENCE_US) {
            *gateway = p->absent[i].gateway;
            forget(p, &p->absent[i]);
            return true;
        }
    }
    return false;
}

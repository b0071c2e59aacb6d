/* SPDX-License-Identifier: Apache-2.0
 *
 * What actors push to their clients, on its way to the gateways; and gateways
 * that are gone.
 */
#include "node/shell_uv.h"

#include "base/log.h"

#include <inttypes.h>

enum {
    UNSENT_MAX = 16 * 1024 * 1024, /* waiting for one link: then pushes are dropped */
    TELL_US = 60 * 1000 * 1000,    /* of drops the log hears no more often */
};

/* The link's gate holds it back past the lease's end, like every record (I8, hole 30). */
void shell_push(struct shell *s, uint64_t gateway, struct bytes record)
{
    struct pushes_sent *f = &s->pushes;
    const struct shell_peer *p = shell_peer(s, presence_link(&s->presence, gateway));

    if (p == NULL) {
        f->dropped_absent++;
    } else if (p->backlog.size <= UNSENT_MAX &&
               shell_send_peer(s, p->id, FRAME_PUSH, record) == ERR_OK) {
        f->sent++;
    } else {
        f->dropped_full++;
    }
}

void shell_pushes_tick(struct shell *s)
{
    const struct pushes_sent *f = &s->pushes;
    const uint64_t dropped = f->dropped_absent + f->dropped_full;
    uint64_t gateway = 0;

    while (presence_gone(&s->presence, s->now_us, &gateway)) {
        log_info("node", "gateway_gone", "gateway=%016" PRIx64, gateway);
        dispatcher_gateway_gone(s, gateway);
    }
    if (dropped != s->pushes.told && s->now_us - s->pushes.told_us >= TELL_US) {
        s->pushes.told = dropped;
        s->pushes.told_us = s->now_us;
        log_warn("node",
                 "pushes_dropped",
                 "sent=%" PRIu64 " no_gateway=%" PRIu64 " link_full=%" PRIu64,
                 f->sent,
                 f->dropped_absent,
                 f->dropped_full);
    }
}

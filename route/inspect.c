/* SPDX-License-Identifier: Apache-2.0
 *
 * What a gateway tells `ringhold check`: the ring by which it routes, added up
 * anew, and the owners that it can't reach.
 */
#include "route/router_inside.h"

#include "base/log.h"
#include "base/mem.h"
#include "ring/inspect.h"
#include "wire/control.h"
#include "wire/hello.h"
#include "wire/repair.h"

#include <inttypes.h>

static void add_unlinked(const struct router *r, Rh__InspectAnswer *out)
{
    out->unlinked = mem_new(r->view->member_count, sizeof *out->unlinked);
    for (size_t i = 0; i < r->view->member_count; i++) {
        const struct view_member *m = &r->view->member[i];
        const struct peer *peer = peer_find(&r->peers, m->slot);
        const bool linked = peer != NULL && peer->up && peer_takes_requests(peer);

        if (!linked && ring_owned_count(&r->view->ring, m->slot) > 0) {
            out->unlinked[out->n_unlinked++] = m->slot;
        }
    }
}

void inspect_on_question(struct router *r, int coordinator, const Rh__Inspect *question)
{
    Rh__Control control = RH__CONTROL__INIT;
    Rh__InspectAnswer out = RH__INSPECT_ANSWER__INIT;
    struct router_effect *e = effects_add(r->out, ROUTER_SEND_COORDINATOR);
    char fault[RING_FAULT_SIZE];
    uint64_t sum[2];

    ring_inspect(&r->view->ring, sum, fault);
    out.tag = question->tag;
    out.route = question->route;
    out.role = ROLE_GATEWAY;
    out.name = proto_text(r->config.name);
    out.incarnation = r->config.gateway;
    out.life = proto_text(r->configured ? "serving" : "joining");
    out.era = r->view->era;
    out.version = r->view->ring.version;
    out.digest0 = r->view->ring.digest[0];
    out.digest1 = r->view->ring.digest[1];
    out.ring0 = sum[0];
    out.ring1 = sum[1];
    out.members = view_digest(r->view);
    out.ring_fault = proto_text(fault);
    out.waiting = r->stats.waiting + by_stream_waiting(r);
    out.threads = r->config.threads > 1 ? r->config.threads : 0;
    add_unlinked(r, &out);
    control.body_case = RH__CONTROL__BODY_INSPECT_ANSWER;
    control.inspect_answer = &out;
    e->coordinator = coordinator;
    fleet_send(r, e, &control);
    mem_free(out.unlinked);
}

void inspect_on_repair(struct router *r, const Rh__Repair *repair)
{
    log_warn("gateway", "repair", "what=%" PRIu32, repair->what);
    if (repair->what == REPAIR_TASK_FETCH) {
        fetch_whole(&r->fetch);
        fleet_ask_config(r);
    }
}

#ifdef RINGHOLD_INJECT
void router_spoil(struct router *r)
{
    ring_spoil(&r->own.ring);
}
#endif

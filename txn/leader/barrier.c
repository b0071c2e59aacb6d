/* SPDX-License-Identifier: Apache-2.0
 *
 * Barriers: what only a leader may decide waits until it is proved that it still leads.
 */
#include "txn/leader/inside.h"

#include "base/mem.h"

#include <string.h>

enum { WAITING_MAX = 4096 }; /* messages that wait for a barrier */

/* Forget the first of those that wait. */
static void drop(struct coordinator *c, size_t count)
{
    struct barrier *own = &c->barrier;

    if (count == 0) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        control_free(own->waiting[i].message);
    }
    own->count -= count;
    memmove(own->waiting, own->waiting + count, own->count * sizeof *own->waiting);
    own->riding = own->riding > count ? own->riding - count : 0;
}

void barrier_forget(struct coordinator *c)
{
    drop(c, c->barrier.count);
    c->barrier.tag = 0;
    c->barrier.urgent = false;
}

void barrier_fini(struct coordinator *c)
{
    mem_free(c->barrier.waiting);
}

/* As many wait as there are nodes: no other renewal comes soon. */
static bool all_wait(const struct coordinator *c)
{
    size_t nodes = 0;

    for (size_t i = 0; i < c->peers.count && nodes <= c->barrier.count; i++) {
        nodes += c->peers.item[i]->role == ROLE_NODE;
    }
    return nodes <= c->barrier.count;
}

void barrier_start(struct coordinator *c, bool tick)
{
    if (!c->leading || c->barrier.tag != 0 || c->barrier.count == 0 ||
        c->now_us < c->proposals.quiet_us || !(c->barrier.urgent || tick || all_wait(c))) {
        return;
    }
    c->barrier.urgent = false;
    c->barrier.tag = proposals_next_tag(c);
    c->barrier.riding = c->barrier.count;
    coordinator_put(c, COORDINATOR_BARRIER, c->barrier.tag, c->out->bytes.size);
}

void barrier_wait(struct coordinator *c, uint64_t peer, const Rh__Control *message, bool urgent)
{
    struct barrier *own = &c->barrier;
    struct buffer bytes = {0};

    if (own->count >= WAITING_MAX) {
        return; // whoever asked asks again
    }
    own->waiting = mem_resize(own->waiting, (own->count + 1) * sizeof *own->waiting);
    control_put(&bytes, message);
    own->waiting[own->count].peer = peer;
    own->waiting[own->count].drawn = past_drawn(c);
    own->waiting[own->count].message = control_get(buffer_bytes(&bytes));
    buffer_fini(&bytes);
    if (own->waiting[own->count].message != NULL) {
        own->count++;
        own->urgent = own->urgent || urgent;
    }
}

bool barrier_has(const struct coordinator *c, Rh__Control__BodyCase body)
{
    for (size_t i = 0; i < c->barrier.count; i++) {
        if (c->barrier.waiting[i].message->body_case == body) {
            return true;
        }
    }
    return false;
}

/* A message that came before the barrier which is now done. */
static void decide(struct coordinator *c, struct leader_peer *peer,
                   const struct waiting_message *waiting)
{
    const Rh__Control *message = waiting->message;

    if (past_shows(c, peer, message, &waiting->drawn)) {
        return;
    }
    if (message->body_case == RH__CONTROL__BODY_REGISTER_) {
        register_on_register(c, peer, message->register_);
    } else if (message->body_case == RH__CONTROL__BODY_RENEW) {
        register_on_renew(c, peer, message);
    } else if (message->body_case == RH__CONTROL__BODY_POLL) {
        register_on_poll(c, peer, message->poll);
    } else if (message->body_case == RH__CONTROL__BODY_RECALL) {
        recall_on_recall(c, peer, message);
    } else if (message->body_case == RH__CONTROL__BODY_ADMIN) {
        admin_on_question(c, peer, message->admin);
    }
}

void barrier_done(struct coordinator *c, enum err error)
{
    const size_t count = c->barrier.riding;

    c->barrier.tag = 0;
    c->barrier.riding = 0;
    if (error != ERR_OK) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        struct leader_peer *peer = peers_find(c, c->barrier.waiting[i].peer);

        if (peer != NULL) {
            decide(c, peer, &c->barrier.waiting[i]);
        }
    }
    drop(c, count);
}

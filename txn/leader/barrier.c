/* SPDX-License-Identifier: Apache-2.0
 *
 * Barriers: what only a leader may decide waits until the log proves that it still leads.
 */
#include "txn/leader/inside.h"

#include "base/mem.h"

#include <string.h>

void barrier_drop(struct coordinator *c, size_t count)
{
    if (count == 0) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        control_free(c->waiting[i].message);
    }
    c->waiting_count -= count;
    memmove(c->waiting, c->waiting + count, c->waiting_count * sizeof *c->waiting);
    c->riding = c->riding > count ? c->riding - count : 0;
}

void barrier_start(struct coordinator *c)
{
    if (!c->leading || c->barrier != 0 || c->waiting_count == 0 || c->now_us < c->quiet_us) {
        return;
    }
    c->barrier = ++c->last_tag;
    c->riding = c->waiting_count;
    coordinator_put(c, COORDINATOR_BARRIER, c->barrier, c->out->bytes.size);
}

void barrier_wait(struct coordinator *c, uint64_t peer, const Rh__Control *message)
{
    struct buffer bytes = {0};

    if (c->waiting_count >= WAITING_MAX) {
        return; // whoever asked asks again
    }
    c->waiting = mem_resize(c->waiting, (c->waiting_count + 1) * sizeof *c->waiting);
    control_put(&bytes, message);
    c->waiting[c->waiting_count].peer = peer;
    c->waiting[c->waiting_count].message = control_get(buffer_bytes(&bytes));
    buffer_fini(&bytes);
    if (c->waiting[c->waiting_count].message != NULL) {
        c->waiting_count++;
    }
}

/* A message that came before the barrier which is now done. */
static void decide(struct coordinator *c, struct leader_peer *peer, const Rh__Control *message)
{
    if (past_shows(c, peer, message)) {
        return;
    }
    if (message->body_case == RH__CONTROL__BODY_REGISTER_) {
        register_on_register(c, peer, message->register_);
    } else if (message->body_case == RH__CONTROL__BODY_RENEW) {
        register_on_renew(c, peer, message);
    } else if (message->body_case == RH__CONTROL__BODY_POLL) {
        register_on_poll(c, peer, message->poll);
    } else if (message->body_case == RH__CONTROL__BODY_ADMIN) {
        admin_on_question(c, peer, message->admin);
    }
}

void barrier_done(struct coordinator *c, enum err error)
{
    const size_t count = c->riding;

    c->barrier = 0;
    c->riding = 0;
    if (error != ERR_OK) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        struct leader_peer *peer = peers_find(c, c->waiting[i].peer);

        if (peer != NULL) {
            decide(c, peer, c->waiting[i].message);
        }
    }
    barrier_drop(c, count);
}

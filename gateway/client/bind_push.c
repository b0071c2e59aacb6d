/* SPDX-License-Identifier: Apache-2.0
 *
 * What an actor pushes, on its way to the client that is bound to it.
 */
#include "gateway/client/binding.h"

#include "base/log.h"

void binding_kick(struct client *c, uint32_t code, struct bytes text)
{
    c->dialect->kick(c, code, text);
    client_close(c);
    c->lost_why = NOTE_LOST_KICKED;
    c->all->pushes.kicked++;
}

/* It is told nothing: what it does not read would come behind all that it has not read. */
static void cut(struct client *c)
{
    log_info("gateway",
             "client_cut",
             "address=%s why=\"the client does not read what its actor pushes\" unread=%zu",
             c->address,
             client_unsent(c));
    client_drop(c);
    c->lost_why = NOTE_LOST_SLOW;
    c->all->pushes.cut++;
}

/* It leaves the actor, which is told in the next turn. */
static void rebind(struct client *c, struct bytes payload)
{
    struct binding *b = c->binding;
    struct rebind to;

    if (rebind_get(payload, &to) != ERR_OK) {
        log_warn("gateway", "bad_rebind", "address=%s bytes=%zu", c->address, payload.size);
        return;
    }
    c->all->pushes.rebound++;
    c->dialect->rebound(c, &to);
    b->rebound = true;
    // The effects of this step are not to be added to.
    binding_enter(b, BINDING_ENDING);
    binding_set_due(b);
}

static void deliver(struct client *c, const struct push_record *r, uint64_t now_us)
{
    const struct binding *b = c->binding;

    client_owes(c, now_us);
    if (c->closing || c->dropped || b->state == BINDING_ENDING) {
        c->all->pushes.dropped_stale++;
    } else if (client_unsent(c) + r->payload.size > c->all->config.push_unread_max &&
               client_unsent(c) > 0) {
        cut(c);
    } else if (r->type == PUSH_KICK) {
        c->all->pushes.delivered++;
        binding_kick(c, r->code, r->payload);
    } else if (r->type == PUSH_REBIND) {
        rebind(c, r->payload);
    } else {
        c->all->pushes.delivered++;
        c->dialect->push(c, bytes_of(b->key, b->key_size), r);
    }
}

/* Its reply is out, and nothing comes before it. */
static bool is_open(const struct client *c)
{
    const struct binding *b = c->binding;

    return (b->state == BINDING_BOUND || b->state == BINDING_RESUMING) &&
           c->dialect->is_answered(c, b->ticket);
}

void binding_pump(struct client *c, uint64_t now_us)
{
    struct kept_push *k = NULL;

    if (c->binding == NULL || !is_open(c)) {
        return;
    }
    while ((k = pushes_next(&c->binding->pushes, now_us)) != NULL) {
        deliver(c, &k->record, now_us);
        pushes_free(k);
    }
    if (pushes_wait(&c->binding->pushes)) {
        binding_set_due(c->binding);
    }
}

struct client *clients_on_push(struct clients *all, const struct push_record *push, uint64_t now_us)
{
    struct client *c =
        push->gateway == router_id(all->router) ? clients_find(all, push->connection) : NULL;

    if (c == NULL || c->binding == NULL || push->round > c->binding->round) {
        all->pushes.dropped_unknown++;
        return NULL;
    }
    struct binding *b = c->binding;
    if (push->type == PUSH_AGAIN) {
        if (push->round >= b->pushes.round) {
            binding_want_resume(b, now_us);
        }
        return c;
    }
    if (pushes_take(&b->pushes, push, is_open(c), now_us)) {
        deliver(c, push, now_us);
    }
    binding_pump(c, now_us);
    client_account(c);
    return c;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Bonds that are asked for again (docs/decisions/025-what-a-link-may-have-lost.md), and what else
 * of them waits for a time.
 */
#include "gateway/client/binding.h"

#include "base/mutant.h"

#include <string.h>

enum { AGAIN_US = 1000 * 1000, ACK_US = 1000 * 1000, ACK_COUNT = 32, MEND_US = 500 * 1000 };

void binding_want_resume(struct binding *b, uint64_t at_us)
{
    b->again_us = at_us == 0 ? 1 : at_us;
    binding_set_due(b);
}

void binding_resumed(struct client *c, const struct router_effect *reply, struct bytes body,
                     uint64_t now_us)
{
    struct binding *b = c->binding;
    struct bound bound;

    if (b == NULL || b->state != BINDING_RESUMING) {
        return; // of one that was ended meanwhile
    }
    binding_enter(b, BINDING_BOUND);
    if (reply->code == REPLY_NO_KIND && body.size == 0) {
        bound = (struct bound){.result = BOUND_NEVER};
    } else if (reply->code != REPLY_OK || bound_get(body, &bound) != ERR_OK) {
        binding_want_resume(b, now_us + AGAIN_US);
        return;
    }
    const char *why = binding_refusal((enum bound_result)bound.result);
    if (why != NULL) {
        const bool old = bound.result == BOUND_OLD;

        client_owes(c, now_us);
        // It goes as who is kicked does: an actor that had kicked it before is still to hear of
        // that.
        binding_kick(c, old ? KICK_REPLACED : KICK_REFUSED, bytes_of(why, strlen(why)));
        return;
    }
    binding_confirm(c, &bound);
    binding_pump(c, now_us);
}

static void resume(struct client *c, uint64_t now_us, struct router_effects *effects)
{
    struct binding *b = c->binding;

    b->again_us = 0;
    binding_enter(b, BINDING_RESUMING);
    binding_begin_round(b);
    c->all->pushes.resumed++;
    if (b->name.session != 0) {
        b->next_key =
            mutant(M_OLDKEY) ? b->name.key : binding_key(c->all, router_session(c->all->router));
    }
    binding_tell(c, b->name.session != 0 ? NOTE_RENEW : NOTE_RESUME, now_us, effects);
}

/* The first note had no answer. */
static void bind_again(struct client *c, uint64_t now_us, struct router_effects *effects)
{
    struct binding *b = c->binding;

    b->asks_again = false;
    binding_begin_round(b);
    client_enter(c, now_us, effects);
    binding_ask_note(c, b->type, b->ticket);
    client_exit(c);
}

/* Its actor's place has changed. True: a link to the one or the other was away meanwhile. */
static bool moves(struct binding *b)
{
    const uint64_t *broke = b->client->all->broke;
    const uint16_t owner = binding_owner(b);

    if (owner == b->owner) {
        return false;
    }
    b->before = b->owner;
    b->owner = owner;
    return broke[b->owner] > b->breaks || broke[b->before] > b->breaks;
}

/* An arc that was taken over cold has lost its actors, and they their bonds. */
static bool is_taken_over(const struct binding *b)
{
    const struct view *view = router_view(b->client->all->router);
    const ring_hit hit = view_lookup(view, b->kind, binding_id(b));
    const struct ring_vnode *vnode = ring_find(&view->ring, ring_hit_vnode(hit));

    return vnode != NULL && vnode->cold > b->version;
}

static void follow_ring(struct clients *all, uint64_t now_us)
{
    const struct view *view = router_view(all->router);

    if (view->ring.version == all->ring_version) {
        return;
    }
    all->ring_version = view->ring.version;
    for (struct list_link *l = list_front(&all->bound); l != NULL; l = list_next(&all->bound, l)) {
        struct binding *b = CONTAINER_OF(l, struct binding, in_bound);
        const bool has_missed = moves(b);

        if (has_missed || is_taken_over(b)) {
            binding_want_resume(b, now_us);
        }
    }
}

/* Pushes on the link to that node may be lost. Those of an actor that lives there are asked for as
 * soon as it can be. */
static void on_node_link(struct clients *all, uint16_t slot, bool up, uint64_t now_us)
{
    all->broke[slot] = ++all->breaks;
    for (struct list_link *l = list_front(&all->bound); l != NULL; l = list_next(&all->bound, l)) {
        struct binding *b = CONTAINER_OF(l, struct binding, in_bound);

        if (b->before == slot || (up && binding_owner(b) == slot)) {
            binding_want_resume(b, now_us);
        }
    }
}

void clients_on_node_up(struct clients *all, uint16_t slot, uint64_t now_us)
{
    on_node_link(all, slot, true, now_us);
}

void clients_on_node_down(struct clients *all, uint16_t slot, uint64_t now_us)
{
    on_node_link(all, slot, false, now_us);
}

/* What its actor keeps, it may let go. True: it is not told yet. */
static bool tell_ack(struct client *c, uint64_t now_us, struct router_effects *effects)
{
    struct binding *b = c->binding;

    if (b->acked > b->told && b->state == BINDING_BOUND &&
        (now_us - b->told_us >= ACK_US || b->acked - b->told >= ACK_COUNT)) {
        b->told = b->acked;
        b->told_us = now_us;
        binding_tell(c, NOTE_ACK, now_us, effects);
    }
    return b->acked > b->told;
}

/* A push did not come, but a later one: its actor still has it. */
static void mend_gap(struct binding *b, uint64_t now_us)
{
    if (b->name.session != 0 && b->state == BINDING_BOUND && b->again_us == 0 &&
        pushes_wait(&b->pushes) && now_us - b->pushes.gap_us >= MEND_US &&
        now_us - b->renewed_us >= AGAIN_US) {
        b->renewed_us = now_us;
        b->again_us = now_us;
    }
}

/* True: it still waits for something. */
static bool go_on(struct client *c, uint64_t now_us, struct router_effects *effects)
{
    struct binding *b = c->binding;

    if (b->state == BINDING_ENDING) {
        binding_end(c, now_us, effects);
        return false;
    }
    if (b->asks_again) {
        bind_again(c, now_us, effects);
    }
    mend_gap(b, now_us);
    if (b->state == BINDING_BOUND && b->again_us != 0 && now_us >= b->again_us && !c->closing) {
        resume(c, now_us, effects);
    }
    binding_pump(c, now_us);
    client_account(c);
    const bool owes_ack = tell_ack(c, now_us, effects);
    return b->again_us != 0 || pushes_wait(&b->pushes) || owes_ack;
}

bool clients_rest(const struct clients *all)
{
    return list_empty(&all->due) && list_empty(&all->keyed_over) &&
           router_view(all->router)->ring.version == all->ring_version;
}

struct client *clients_go_on(struct clients *all, uint64_t now_us, struct router_effects *effects)
{
    if (!all->in_turn) {
        all->in_turn = true;
        logins_tick(all, now_us);
        keyed_go_on(all, now_us, effects);
        follow_ring(all, now_us);
        list_splice_back(&all->turn, &all->due);
    }
    struct list_link *l = list_pop_front(&all->turn);
    if (l == NULL) {
        all->in_turn = false;
        return NULL;
    }
    struct client *c = CONTAINER_OF(l, struct binding, in_due)->client;
    if (go_on(c, now_us, effects)) {
        binding_set_due(c->binding);
    }
    return c;
}

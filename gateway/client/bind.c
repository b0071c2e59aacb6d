/* SPDX-License-Identifier: Apache-2.0
 *
 * Connections that are bound to an actor, which pushes to them
 * (docs/decisions/012-sessions.md).
 *
 *     ASKED     -BIND: new-> BOUND    -BIND: else-> gone, with an error
 *     BOUND     -its actor may be lost-> RESUMING
 *     RESUMING  -kept, new-> BOUND    -old, refused-> kicked    -no answer-> BOUND, again later
 *
 * The actor may be lost when its arc was taken over cold, when the link to its
 * node was away, and when it says so itself. What it pushed last may be lost when
 * a link was away to where it lives, or lived just before: the ring that this
 * gateway knows may be older than the actor's place
 * (docs/decisions/025-what-a-link-may-have-lost.md).
 */
#include "gateway/client/binding.h"

#include "base/mem.h"

#include <string.h>

static const struct machine_state states[] = {
    [BINDING_ASKED] = {"asked", TO(BINDING_BOUND) | TO(BINDING_ENDING)},
    [BINDING_BOUND] = {"bound", TO(BINDING_RESUMING) | TO(BINDING_ENDING)},
    [BINDING_RESUMING] = {"resuming", TO(BINDING_BOUND) | TO(BINDING_ENDING)},
    [BINDING_ENDING] = {"ending", 0},
};
const struct machine binding_machine = {"a binding", states};

/* ---- life ---- */

static void binding_free(struct client *c)
{
    struct binding *b = c->binding;

    c->binding = NULL;
    c->all->pushes.bound--;
    list_remove(&b->in_bound);
    if (list_linked(&b->in_due)) {
        list_remove(&b->in_due);
    }
    pushes_fini(&b->pushes);
    mem_free(b);
}

static struct binding *binding_new(struct client *c, struct bytes key, const struct target *to)
{
    struct binding *b = mem_new(1, sizeof *b);

    b->client = c;
    b->kind = to->kind;
    b->id_size = (uint8_t)to->id.size;
    b->key_size = (uint16_t)key.size;
    memcpy(b->key, key.data, key.size);
    pushes_init(&b->pushes, &c->all->pushes);
    list_push_back(&c->all->bound, &b->in_bound);
    c->all->pushes.bound++;
    c->binding = b;
    return b;
}

void binding_set_due(struct binding *b)
{
    if (!list_linked(&b->in_due)) {
        list_push_back(&b->client->all->due, &b->in_due);
    }
}

void binding_end(struct client *c, uint64_t now_us, struct router_effects *effects)
{
    if (c->binding != NULL) {
        binding_tell(c, NOTE_LOST, now_us, effects);
        binding_free(c);
    }
}

/* ---- commands ---- */

uint64_t binding_key(const struct clients *all, uint64_t number)
{
    const uint64_t key = siphash_u64(all->config.secret, number);

    return key == 0 ? 1 : key;
}

/* What it is kept by. */
static void name_binding(struct client *c, struct binding *b, const struct bind_wish *wish)
{
    b->type = wish->type;
    if (wish->type == NOTE_RETURN) {
        b->name = wish->back.name;
        b->acked = b->said = wish->back.has.pushes;
        b->told = b->acked;
        b->has_answers = wish->back.has.answers;
    } else if (wish->type == NOTE_KEEP) {
        b->name.session = router_session(c->all->router);
        b->name.key = binding_key(c->all, b->name.session);
    }
    client_wait(c, wish->type != NOTE_BIND);
}

uint16_t binding_owner(const struct binding *b)
{
    return ring_hit_node(view_lookup(router_view(b->client->all->router), b->kind, binding_id(b)));
}

void binding_begin_round(struct binding *b)
{
    struct client *c = b->client;

    b->version = router_view(c->all->router)->ring.version;
    b->round = ++c->rounds;
    b->breaks = c->all->breaks;
    b->owner = binding_owner(b);
    b->before = RING_NODE_NONE;
}

bool binding_ask(struct client *c, struct bytes key, const struct target *to,
                 const struct bind_wish *wish, uint64_t ticket)
{
    if (c->binding != NULL && c->binding->state == BINDING_ENDING) {
        binding_end(c, c->now_us, c->effects);
    }
    if (c->binding != NULL) {
        return false;
    }
    if (wish->type != NOTE_BIND) {
        client_session_close(c, c->now_us, c->effects); // of a session before that
    }
    struct binding *b = binding_new(c, key, to);
    const uint32_t attempted = (uint32_t)wish->back.attempt << ROUND_ATTEMPT_AT;

    c->rounds = attempted > c->rounds ? attempted : c->rounds;
    b->ticket = ticket;
    binding_begin_round(b);
    name_binding(c, b, wish);
    binding_ask_note(c, wish->type, ticket);
    return true;
}

bool binding_leave(struct client *c, uint64_t ticket)
{
    if (c->binding == NULL) {
        return false;
    }
    const uint8_t why = c->lost_why;

    c->lost_why = c->binding->name.session != 0 ? NOTE_LOST_LEFT : why;
    binding_ask_note(c, NOTE_LOST, ticket);
    c->lost_why = why;
    binding_free(c);
    return true;
}

/* ---- answers ---- */

const char *binding_refusal(enum bound_result result)
{
    switch (result) {
    case BOUND_NEW:
    case BOUND_KEPT:
        return NULL;
    case BOUND_OLD:
        return "REPLACED another connection was bound since";
    case BOUND_REFUSED:
        return "REFUSED the actor does not take this session";
    case BOUND_NEVER:
        return "NOSESSION actors of this kind take no sessions";
    case BOUND_GONE:
        return "GONE nothing of this session is there any more";
    case BOUND_TAKEN:
        return "TAKEN another client is bound";
    }
    return "ERR the node's answer can't be decoded";
}

/* It is kept, as the actor says, or it is not. True: its actor was begun afresh. */
static bool confirm_kept(struct client *c, const struct bound *bound)
{
    struct binding *b = c->binding;
    const bool begun = bound->key != b->name.key;

    b->keep_ms = bound->keep_ms;
    b->epoch = bound->epoch;
    if (bound->key == 0) {
        b->name = (struct session_name){0};
        return false;
    }
    if (begun) {
        b->unheard++;
        b->old_last = b->pushes.next > b->old_last ? b->pushes.next : b->old_last;
        b->name.key = bound->key;
        b->name.version = b->version;
        b->acked = 0;
        b->told = 0;
    }
    return begun;
}

void binding_confirm(struct client *c, const struct bound *bound)
{
    struct binding *b = c->binding;
    const bool kept = b->name.session != 0;
    const bool begun = kept && confirm_kept(c, bound);

    b->stamp = bound->stamp;
    if (bound->round != b->pushes.round) {
        pushes_begin(&b->pushes, bound->round, bound->key == 0 ? 1 : bound->next);
    } else if (bound->key != 0) {
        pushes_skip(&b->pushes, bound->next);
    }
    if (begun) {
        c->dialect->begun(c);
    }
}

/* The first note was taken: from here on its requests are its own. None was sent before, so none
 * can have run before a take-over that is known by now; when it asked, there may have been no ring.
 */
static void take_seat(struct client *c)
{
    struct binding *b = c->binding;

    if (b->type == NOTE_KEEP) {
        b->name.version = router_view(c->all->router)->ring.version;
    }
    if (b->name.session != 0) {
        client_session_open(c, &b->name, b->epoch);
        client_session_ack(c, b->has_answers);
        c->all->pushes.returned += b->type == NOTE_RETURN;
    }
}

bool binding_name(const struct client *c, struct session_packet *out)
{
    const struct binding *b = c->binding;

    if (b == NULL || b->type == NOTE_BIND) {
        return false;
    }
    *out = (struct session_packet){.name = b->name, .next = b->pushes.next, .keep_ms = b->keep_ms};
    return true;
}

/* Its pushes are numbered anew since its actor was begun afresh, and what it says may come from
 * before it heard of that. An ack does not go down, but then; and beyond all old numbers is none.
 */
static bool is_of_old(struct binding *b, uint64_t pushes)
{
    if (b->unheard > 0 && pushes >= b->old_last) {
        b->unheard = 0;
    } else if (b->unheard > 0 && pushes < b->said) {
        b->unheard--;
    }
    b->said = pushes;
    return b->unheard > 0;
}

void binding_ack(struct client *c, uint64_t pushes)
{
    struct binding *b = c->binding;

    if (b != NULL && !is_of_old(b, pushes) && b->name.session != 0 && b->state != BINDING_ASKED &&
        pushes > b->acked && pushes < b->pushes.next) {
        b->acked = pushes;
        binding_set_due(b);
    }
}

static bool is_asked(const struct client *c, uint64_t ticket)
{
    const struct binding *b = c->binding;

    return b != NULL && b->state == BINDING_ASKED && b->ticket == ticket;
}

static bool never_ran(enum reply_code code)
{
    return code == REPLY_NO_KIND || code == REPLY_REJECTED || code == REPLY_OVERLOADED ||
           code == REPLY_QUARANTINED || code == REPLY_DEADLOCK;
}

/* It was not bound, or nobody knows. */
static void not_bound(struct client *c, const struct router_effect *reply, struct bytes body)
{
    c->dialect->bind_failed(c, reply, body);
    if (never_ran(reply->code)) {
        binding_free(c);
    } else {
        // The effects of this step are not to be added to.
        binding_enter(c->binding, BINDING_ENDING);
        binding_set_due(c->binding);
    }
}

static void asked_and_answered(struct client *c, const struct router_effect *reply,
                               struct bytes body)
{
    struct bound bound = {.result = BOUND_GONE};
    const bool gone = reply->code == REPLY_NO_KIND; // RETURN: nobody there is awake
    const char *why = gone || bound_get(body, &bound) == ERR_OK
                          ? binding_refusal((enum bound_result)bound.result)
                          : "ERR the node's answer is not a valid answer";

    if (why != NULL) {
        c->all->stats.errors++;
        c->all->pushes.gone += c->binding->type == NOTE_RETURN;
        c->dialect->bind_over(c, reply->ticket, (enum bound_result)bound.result, why);
        binding_free(c);
        return;
    }
    binding_enter(c->binding, BINDING_BOUND);
    binding_confirm(c, &bound);
    take_seat(c);
    c->dialect->bind_over(c, reply->ticket, (enum bound_result)bound.result, NULL);
}

/* Its actor was lost with the note: once more, in a round of its own. False: it was asked again
 * before, or nothing may be woken. */
static bool ask_again(struct client *c)
{
    struct binding *b = c->binding;

    if (b->asked_again || b->type == NOTE_RETURN || c->closing) {
        return false;
    }
    b->asked_again = true;
    b->asks_again = true; // The effects of this step are not to be added to.
    binding_set_due(b);
    return true;
}

void binding_answered(struct client *c, const struct router_effect *reply, struct bytes body)
{
    const bool asked = is_asked(c, reply->ticket);
    const bool returns = asked && c->binding->type == NOTE_RETURN;
    // It is not woken; with a text it is nobody's yet, and who returns is to try again.
    const bool asleep = reply->code == REPLY_NO_KIND && body.size == 0 && (!asked || returns);

    if (asked && reply->code == REPLY_UNKNOWN && ask_again(c)) {
        return;
    }
    client_wait(c, c->waiting && !asked);
    if (!asked && (reply->code == REPLY_OK || asleep)) {
        c->dialect->bind_over(c, reply->ticket, BOUND_NEW, NULL);
    } else if (!asked) {
        c->dialect->bind_failed(c, reply, body);
    } else if (reply->code == REPLY_OK || asleep) {
        asked_and_answered(c, reply, body);
    } else {
        not_bound(c, reply, body);
    }
}

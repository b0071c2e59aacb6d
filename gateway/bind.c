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
#include "gateway/client_inside.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/mutant.h"

#include <string.h>

enum { AGAIN_US = 1000 * 1000, ACK_US = 1000 * 1000, ACK_COUNT = 32, MEND_US = 500 * 1000 };
enum { KEY_MAX = RECORD_ID_MAX + 7 };

enum binding_state {
    BINDING_ASKED,
    BINDING_BOUND,
    BINDING_RESUMING,
    BINDING_ENDING, /* BIND had no answer: the actor may think that it is bound; or rebound */
};

struct binding {
    struct list_link in_bound;
    struct list_link in_due;
    struct client *client;
    struct pushes pushes;
    struct bond_stamp stamp;
    uint64_t ticket;   /* of BIND: pushes follow its answer */
    uint64_t version;  /* of the ring when it was asked for last: of take-overs since it knows
                          nothing */
    uint64_t again_us; /* RESUME then; 0 = need not */
    uint64_t breaks;   /* of all links, when it was asked for last … */
    uint16_t owner;    /* … where its actor lives, as the ring has it … */
    uint16_t before;  /* … and where it lived before, since then; RING_NODE_NONE = nowhere else */
    uint32_t round;   /* of the last note */
    bool asks_again;  /* the first one had no answer … */
    bool asked_again; /* … once */
    /* Of one that is kept without its connection. */
    struct session_name name; /* session 0 = it is not */
    uint64_t next_key;        /* that a RENEW would give it */
    uint64_t acked;           /* its client has all pushes to this one */
    uint64_t told;            /* the same, as its actor knows */
    uint64_t told_us;
    uint64_t renewed_us; /* RENEW was asked then, for a gap */
    uint32_t keep_ms;
    uint32_t epoch;
    bool rebound;         /* its client goes on as another entity */
    uint32_t has_answers; /* RETURN: of all requests below */
    enum note_type type;  /* BIND, KEEP, RETURN */
    enum binding_state state;
    uint16_t kind;
    uint8_t id_size;
    uint16_t key_size;
    uint8_t key[KEY_MAX]; /* as the client names it; ends with the id */
};

static struct bytes id_of(const struct binding *b)
{
    return bytes_of(b->key + b->key_size - b->id_size, b->id_size);
}

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

static void set_due(struct binding *b)
{
    if (!list_linked(&b->in_due)) {
        list_push_back(&b->client->all->due, &b->in_due);
    }
}

/* ---- notes ---- */

static uint64_t gateway_id(const struct client *c)
{
    return router_id(c->all->router);
}

/* Nobody will return to what its client never heard of. */
static uint8_t lost_why(const struct client *c)
{
    const struct binding *b = c->binding;
    const bool unheard = b->state == BINDING_ASKED || b->state == BINDING_ENDING;

    if (b->rebound) {
        return NOTE_LOST_REBOUND;
    }
    return unheard && b->type == NOTE_KEEP ? NOTE_LOST_LEFT : c->lost_why;
}

static struct buffer *note_of(struct client *c, enum note_type type)
{
    const struct binding *b = c->binding;
    const struct note note = {.type = (uint8_t)type,
                              .why = lost_why(c),
                              .gateway = gateway_id(c),
                              .connection = c->session,
                              .round = type == NOTE_ACK ? b->pushes.round : b->round,
                              .stamp = b->stamp,
                              .key = type == NOTE_RENEW ? b->next_key : b->name.key,
                              .session = b->name.session,
                              .epoch = b->epoch,
                              .got_round = b->pushes.round,
                              .got = type == NOTE_RENEW ? b->pushes.next - 1 : b->acked};

    buffer_clear(&c->all->body);
    note_put(&c->all->body, &note);
    return &c->all->body;
}

/* Those that bind a client begin a round, whose pushes are numbered from 1. None may run at a
 * second incarnation of its actor: the pushes of both would be taken for those of one. */
static uint8_t note_flags(enum note_type type)
{
    switch (type) {
    case NOTE_LOST:
    case NOTE_ACK:
    case NOTE_RETURN:
        return REQUEST_SESSION | REQUEST_IDEMPOTENT | REQUEST_AWAKE;
    case NOTE_BIND:
    case NOTE_KEEP:
    case NOTE_RESUME:
    case NOTE_RENEW:
    case NOTE_PUSH:
    case NOTE_KICK:
    case NOTE_TRACE:
        break;
    }
    return mutant(M_NOTETWICE) ? REQUEST_SESSION | REQUEST_IDEMPOTENT : REQUEST_SESSION;
}

/* What tells that a client has gone is told however long that takes: it goes behind all that the
 * client asked of the actor, nobody says it again, and an actor that isn't told refuses the next
 * client if its kind does. One for each client that goes. */
static bool must_be_told(enum note_type type)
{
    return type == NOTE_LOST;
}

static uint32_t note_timeout_ms(enum note_type type)
{
    return must_be_told(type) ? REQUEST_TTL_MAX_MS : 0;
}

/* A note for which no command waits. */
static void send_note(struct client *c, enum note_type type, uint64_t now_us,
                      struct router_effects *effects)
{
    const struct binding *b = c->binding;
    const bool told = type == NOTE_LOST || type == NOTE_ACK;
    const struct router_event event = {
        .type = ROUTER_REQUEST,
        .now_us = now_us,
        .session = c->session,
        .ticket = told ? TICKET_NONE : TICKET_RESUME,
        .flags = (uint8_t)(note_flags(type) | (told ? REQUEST_NO_REPLY : 0)),
        .kind = b->kind,
        .id = id_of(b),
        .body = buffer_bytes(note_of(c, type)),
        .timeout_ms = note_timeout_ms(type),
        .must = must_be_told(type),
    };

    router_step(c->all->router, &event, effects);
}

void binding_end(struct client *c, uint64_t now_us, struct router_effects *effects)
{
    if (c->binding != NULL) {
        send_note(c, NOTE_LOST, now_us, effects);
        binding_free(c);
    }
}

/* ---- commands ---- */

static void ask_note(struct client *c, enum note_type type, uint64_t ticket)
{
    const struct binding *b = c->binding;

    client_ask(c,
               &(struct ask){.ticket = ticket,
                             .timeout_ms = note_timeout_ms(type),
                             .must = must_be_told(type),
                             .flags = note_flags(type),
                             .kind = b->kind,
                             .id = id_of(b),
                             .body = buffer_bytes(note_of(c, type))});
}

/* What it is kept by. */
static void name_binding(struct client *c, struct binding *b, const struct wish *wish)
{
    b->type = wish->type;
    if (wish->type == NOTE_RETURN) {
        b->name = wish->back.name;
        b->acked = wish->back.has.pushes;
        b->told = b->acked;
        b->has_answers = wish->back.has.answers;
    } else if (wish->type == NOTE_KEEP) {
        b->name.session = router_session(c->all->router);
        b->name.key = b->name.session;
        b->name.version = b->version;
    }
    c->waiting = wish->type != NOTE_BIND;
}

static uint16_t owner_of(const struct binding *b)
{
    return ring_hit_node(view_lookup(router_view(b->client->all->router), b->kind, id_of(b)));
}

/* It is asked for in a round of its own. */
static void begin_round(struct binding *b)
{
    struct client *c = b->client;

    b->version = router_view(c->all->router)->ring.version;
    b->round = ++c->rounds;
    b->breaks = c->all->breaks;
    b->owner = owner_of(b);
    b->before = RING_NODE_NONE;
}

bool binding_ask(struct client *c, struct bytes key, const struct target *to,
                 const struct wish *wish, uint64_t ticket)
{
    if (c->binding != NULL && c->binding->state == BINDING_ENDING) {
        binding_end(c, c->now_us, c->effects);
    }
    if (c->binding != NULL) {
        return false;
    }
    struct binding *b = binding_new(c, key, to);

    b->ticket = ticket;
    begin_round(b);
    name_binding(c, b, wish);
    ask_note(c, wish->type, ticket);
    return true;
}

bool binding_leave(struct client *c, uint64_t ticket)
{
    if (c->binding == NULL) {
        return false;
    }
    const uint8_t why = c->lost_why;

    c->lost_why = c->binding->name.session != 0 ? NOTE_LOST_LEFT : why;
    ask_note(c, NOTE_LOST, ticket);
    c->lost_why = why;
    binding_free(c);
    return true;
}

/* ---- answers ---- */

static const char *refusal(enum bound_result result)
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
    return "ERR the node's answer does not decode";
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
        b->name.key = bound->key;
        b->name.version = b->version;
        b->acked = 0;
        b->told = 0;
    }
    return begun;
}

static void confirm(struct client *c, const struct bound *bound)
{
    struct binding *b = c->binding;
    const bool kept = b->name.session != 0;
    const bool begun = kept && confirm_kept(c, bound);

    b->state = BINDING_BOUND;
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

/* The first note was taken: from here on its requests are its own. */
static void take_seat(struct client *c)
{
    const struct binding *b = c->binding;

    if (b->name.session != 0) {
        sitting_open(c, &b->name, b->epoch);
        sitting_ack(c, b->has_answers);
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

void binding_ack(struct client *c, uint64_t pushes)
{
    struct binding *b = c->binding;

    if (b != NULL && b->name.session != 0 && b->state != BINDING_ASKED && pushes > b->acked &&
        pushes < b->pushes.next) {
        b->acked = pushes;
        set_due(b);
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
           code == REPLY_QUARANTINED;
}

/* It was not bound, or nobody knows. */
static void not_bound(struct client *c, const struct router_effect *reply, struct bytes body)
{
    c->dialect->bind_failed(c, reply, body);
    if (never_ran(reply->code)) {
        binding_free(c);
    } else {
        c->binding->state = BINDING_ENDING; // The effects of this step are not to be added to.
        set_due(c->binding);
    }
}

static void asked_and_answered(struct client *c, const struct router_effect *reply,
                               struct bytes body)
{
    struct bound bound = {.result = BOUND_GONE};
    const bool gone = reply->code == REPLY_NO_KIND; // RETURN: nobody there is awake
    const char *why = gone || bound_get(body, &bound) == ERR_OK
                          ? refusal((enum bound_result)bound.result)
                          : "ERR the node's answer is no answer";

    if (why != NULL) {
        c->all->figures.errors++;
        c->all->pushes.gone += c->binding->type == NOTE_RETURN;
        c->dialect->bind_over(c, reply->ticket, (enum bound_result)bound.result, why);
        binding_free(c);
        return;
    }
    confirm(c, &bound);
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
    set_due(b);
    return true;
}

void binding_answered(struct client *c, const struct router_effect *reply, struct bytes body)
{
    const bool asked = is_asked(c, reply->ticket);
    const bool returns = asked && c->binding->type == NOTE_RETURN;
    const bool asleep = reply->code == REPLY_NO_KIND && (!asked || returns); // it is not woken

    if (asked && reply->code == REPLY_UNKNOWN && ask_again(c)) {
        return;
    }
    c->waiting = c->waiting && !asked;
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

/* ---- output ---- */

static void kick(struct client *c, uint32_t code, struct bytes text)
{
    c->dialect->kick(c, code, text);
    c->closing = true;
    c->lost_why = NOTE_LOST_KICKED;
    c->all->pushes.kicked++;
}

/* It is told nothing: what it does not read would come behind all that it has not read. */
static void cut(struct client *c)
{
    log_info("gateway",
             "client_cut",
             "address=%s why=\"it does not read what its actor pushes\" unread=%zu",
             c->address,
             client_unsent(c));
    c->dropped = true;
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
    b->state = BINDING_ENDING; // The effects of this step are not to be added to.
    set_due(b);
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
        kick(c, r->code, r->payload);
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
        set_due(c->binding);
    }
}

static void want_resume(struct binding *b, uint64_t at_us)
{
    b->again_us = at_us == 0 ? 1 : at_us;
    set_due(b);
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
            want_resume(b, now_us);
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

/* ---- again ---- */

void binding_resumed(struct client *c, const struct router_effect *reply, struct bytes body,
                     uint64_t now_us)
{
    struct binding *b = c->binding;
    struct bound bound;

    if (b == NULL || b->state != BINDING_RESUMING) {
        return; // of one that was ended meanwhile
    }
    b->state = BINDING_BOUND;
    if (reply->code == REPLY_NO_KIND) {
        bound = (struct bound){.result = BOUND_NEVER};
    } else if (reply->code != REPLY_OK || bound_get(body, &bound) != ERR_OK) {
        want_resume(b, now_us + AGAIN_US);
        return;
    }
    const char *why = refusal((enum bound_result)bound.result);
    if (why != NULL) {
        const bool old = bound.result == BOUND_OLD;

        client_owes(c, now_us);
        // It goes as who is kicked does: an actor that had kicked it before is still to hear of
        // that.
        kick(c, old ? KICK_REPLACED : KICK_REFUSED, bytes_of(why, strlen(why)));
        return;
    }
    confirm(c, &bound);
    binding_pump(c, now_us);
}

static void resume(struct client *c, uint64_t now_us, struct router_effects *effects)
{
    struct binding *b = c->binding;

    b->again_us = 0;
    b->state = BINDING_RESUMING;
    begin_round(b);
    c->all->pushes.resumed++;
    if (b->name.session != 0) {
        b->next_key = mutant(M_OLDKEY) ? b->name.key : router_session(c->all->router);
    }
    send_note(c, b->name.session != 0 ? NOTE_RENEW : NOTE_RESUME, now_us, effects);
}

/* The first note had no answer. */
static void bind_again(struct client *c, uint64_t now_us, struct router_effects *effects)
{
    struct binding *b = c->binding;

    b->asks_again = false;
    begin_round(b);
    b->name.version = b->type == NOTE_KEEP ? b->version : 0;
    c->now_us = now_us;
    c->effects = effects;
    ask_note(c, b->type, b->ticket);
    c->effects = NULL;
}

/* Its actor's place has changed. True: a link to the one or the other was away meanwhile. */
static bool moves(struct binding *b)
{
    const uint64_t *broke = b->client->all->broke;
    const uint16_t owner = owner_of(b);

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
    const ring_hit hit = view_lookup(view, b->kind, id_of(b));
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
            want_resume(b, now_us);
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

        if (b->before == slot || (up && owner_of(b) == slot)) {
            want_resume(b, now_us);
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
        send_note(c, NOTE_ACK, now_us, effects);
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

struct client *clients_go_on(struct clients *all, uint64_t now_us, struct router_effects *effects)
{
    if (!all->in_turn) {
        all->in_turn = true;
        logins_tick(all, now_us);
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
        set_due(c->binding);
    }
    return c;
}

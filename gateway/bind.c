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
 * node was away, and when it says so itself.
 */
#include "gateway/client_inside.h"

#include "base/log.h"
#include "base/mem.h"

#include <string.h>

enum { AGAIN_US = 1000 * 1000, KEY_MAX = RECORD_ID_MAX + 7 };

enum binding_state {
    BINDING_ASKED,
    BINDING_BOUND,
    BINDING_RESUMING,
    BINDING_ENDING, /* BIND had no answer: the actor may think that it is bound */
};

struct binding {
    struct list_link in_bound;
    struct list_link in_due;
    struct client *client;
    struct pushes pushes;
    struct bond_stamp stamp;
    uint64_t slot;     /* of BIND: pushes follow its reply */
    uint64_t version;  /* of the ring when it was asked for last: of take-overs since it knows
                          nothing */
    uint64_t again_us; /* RESUME then; 0 = need not */
    uint32_t round;    /* of the last note */
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

static struct buffer *note_of(struct client *c, enum note_type type)
{
    const struct binding *b = c->binding;
    const struct note note = {.type = (uint8_t)type,
                              .why = c->lost_why,
                              .gateway = gateway_id(c),
                              .connection = c->session,
                              .round = b->round,
                              .stamp = b->stamp};

    buffer_clear(&c->all->body);
    note_put(&c->all->body, &note);
    return &c->all->body;
}

/* A note for which no command waits. */
static void send_note(struct client *c, enum note_type type, uint64_t now_us,
                      struct router_effects *effects)
{
    const struct binding *b = c->binding;
    const bool lost = type == NOTE_LOST;
    const struct router_event event = {
        .type = ROUTER_REQUEST,
        .now_us = now_us,
        .session = c->session,
        .ticket = lost ? TICKET_NONE : TICKET_RESUME,
        .flags = (uint8_t)(REQUEST_SESSION | REQUEST_IDEMPOTENT |
                           (lost ? REQUEST_NO_REPLY | REQUEST_AWAKE : 0)),
        .kind = b->kind,
        .id = id_of(b),
        .body = buffer_bytes(note_of(c, type)),
        // It goes behind all that the client asked of the actor, and nobody says it again.
        .timeout_ms = lost ? REQUEST_TTL_MAX_MS : 0,
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

static void ask_note(struct client *c, enum note_type type, uint64_t number)
{
    const struct binding *b = c->binding;

    client_ask(c,
               &(struct ask){.number = number,
                             .flags = (uint8_t)(REQUEST_SESSION | REQUEST_IDEMPOTENT |
                                                (type == NOTE_LOST ? REQUEST_AWAKE : 0)),
                             .kind = b->kind,
                             .id = id_of(b),
                             .body = buffer_bytes(note_of(c, type))});
}

void run_bind(struct client *c, const struct command *command, const struct resp_command *line)
{
    const struct bytes key = line->arg[1];
    struct target to;

    (void)command;
    if (c->binding != NULL && c->binding->state == BINDING_ENDING) {
        binding_end(c, c->now_us, c->effects);
    }
    if (c->binding != NULL) {
        client_reply_error(c, "ERR this connection is bound already: UNBIND first");
        return;
    }
    if (!client_finds(c, key, &to)) {
        return;
    }
    struct binding *b = binding_new(c, key, &to);

    client_add_slot(c, SLOT_BIND, 1, &b->slot);
    b->version = router_view(c->all->router)->ring.version;
    b->round = ++c->rounds;
    ask_note(c, NOTE_BIND, b->slot);
}

void run_unbind(struct client *c, const struct command *command, const struct resp_command *line)
{
    uint64_t number = 0;

    (void)command;
    (void)line;
    if (c->binding == NULL) {
        client_reply_error(c, "ERR this connection is not bound: BIND first");
        return;
    }
    client_add_slot(c, SLOT_BIND, 1, &number);
    ask_note(c, NOTE_LOST, number);
    binding_free(c);
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
    }
    return "ERR the node's answer does not decode";
}

static void fail(struct client *c, struct slot *slot, const char *why)
{
    slot->failed = true;
    c->all->figures.errors++;
    resp_put_error(&slot->text, bytes_of(why, strlen(why)));
}

static void confirm(struct binding *b, const struct bound *bound)
{
    b->state = BINDING_BOUND;
    b->stamp = bound->stamp;
    if (bound->round != b->pushes.round) {
        pushes_begin(&b->pushes, bound->round);
    }
}

static bool is_asked(const struct client *c, uint64_t number)
{
    const struct binding *b = c->binding;

    return b != NULL && b->state == BINDING_ASKED && b->slot == number;
}

static bool never_ran(enum reply_code code)
{
    return code == REPLY_NO_KIND || code == REPLY_REJECTED || code == REPLY_OVERLOADED ||
           code == REPLY_QUARANTINED;
}

void binding_answered(struct client *c, struct slot *slot, const struct router_effect *reply,
                      struct bytes body)
{
    struct bound bound = {.result = BOUND_NEW};
    const bool asked = is_asked(c, client_ticket_slot(reply));
    const bool gone = reply->code == REPLY_NO_KIND && !asked; // UNBIND: nobody there is awake

    if (reply->code != REPLY_OK && !gone) {
        client_fail_slot(c, slot, reply, body);
        if (asked && never_ran(reply->code)) {
            binding_free(c);
        } else if (asked) {
            c->binding->state = BINDING_ENDING; // The effects of this step are not to be added to.
            set_due(c->binding);
        }
        return;
    }
    if (!asked) {
        resp_put_simple(&slot->text, "OK");
        return;
    }
    const bool sound = bound_get(body, &bound) == ERR_OK;
    const char *why =
        sound ? refusal((enum bound_result)bound.result) : "ERR the node's answer is no answer";
    if (why != NULL) {
        fail(c, slot, why);
        binding_free(c);
        return;
    }
    resp_put_simple(&slot->text, "OK");
    confirm(c->binding, &bound);
}

/* ---- output ---- */

static void put_head(struct client *c, const char *what)
{
    resp_put_push(&c->out, c->protocol, 3);
    resp_put_text(&c->out, what);
}

static void kick(struct client *c, uint32_t code, struct bytes text)
{
    put_head(c, "kick");
    resp_put_integer(&c->out, code);
    resp_put_bulk(&c->out, text);
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

static void deliver(struct client *c, const struct push_record *r, uint64_t now_us)
{
    const struct binding *b = c->binding;

    client_owes(c, now_us);
    if (c->closing || c->dropped) {
        c->all->pushes.dropped_stale++;
    } else if (client_unsent(c) + r->payload.size > c->all->config.push_unread_max &&
               client_unsent(c) > 0) {
        cut(c);
    } else if (r->type == PUSH_KICK) {
        c->all->pushes.delivered++;
        kick(c, r->code, r->payload);
    } else {
        c->all->pushes.delivered++;
        put_head(c, "message");
        resp_put_bulk(&c->out, bytes_of(b->key, b->key_size));
        resp_put_bulk(&c->out, r->payload);
    }
}

/* Its reply is out, and nothing comes before it. */
static bool is_open(const struct client *c)
{
    const struct binding *b = c->binding;

    return (b->state == BINDING_BOUND || b->state == BINDING_RESUMING) && c->slots.head > b->slot;
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
        kick(c, old ? KICK_REPLACED : KICK_REFUSED, bytes_of(why, strlen(why)));
        binding_free(c);
        return;
    }
    confirm(b, &bound);
    binding_pump(c, now_us);
}

static void resume(struct client *c, uint64_t now_us, struct router_effects *effects)
{
    struct binding *b = c->binding;

    b->again_us = 0;
    b->state = BINDING_RESUMING;
    b->version = router_view(c->all->router)->ring.version;
    b->round = ++c->rounds;
    c->all->pushes.resumed++;
    send_note(c, NOTE_RESUME, now_us, effects);
}

/* An arc that was taken over cold has lost its actors, and they their bonds. */
static void follow_ring(struct clients *all, uint64_t now_us)
{
    const struct view *view = router_view(all->router);

    if (view->ring.version == all->ring_version) {
        return;
    }
    all->ring_version = view->ring.version;
    for (struct list_link *l = list_front(&all->bound); l != NULL; l = list_next(&all->bound, l)) {
        struct binding *b = CONTAINER_OF(l, struct binding, in_bound);
        const ring_hit hit = view_lookup(view, b->kind, id_of(b));
        const struct ring_vnode *vnode = ring_find(&view->ring, ring_hit_vnode(hit));

        if (vnode != NULL && vnode->cold > b->version) {
            want_resume(b, now_us);
        }
    }
}

void clients_on_node_up(struct clients *all, uint16_t slot, uint64_t now_us)
{
    const struct view *view = router_view(all->router);

    for (struct list_link *l = list_front(&all->bound); l != NULL; l = list_next(&all->bound, l)) {
        struct binding *b = CONTAINER_OF(l, struct binding, in_bound);

        if (ring_hit_node(view_lookup(view, b->kind, id_of(b))) == slot) {
            want_resume(b, now_us);
        }
    }
}

/* True: it still waits for something. */
static bool go_on(struct client *c, uint64_t now_us, struct router_effects *effects)
{
    const struct binding *b = c->binding;

    if (b->state == BINDING_ENDING) {
        binding_end(c, now_us, effects);
        return false;
    }
    if (b->state == BINDING_BOUND && b->again_us != 0 && now_us >= b->again_us && !c->closing) {
        resume(c, now_us, effects);
    }
    binding_pump(c, now_us);
    client_account(c);
    return b->again_us != 0 || pushes_wait(&b->pushes);
}

struct client *clients_go_on(struct clients *all, uint64_t now_us, struct router_effects *effects)
{
    if (!all->in_turn) {
        all->in_turn = true;
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

/* SPDX-License-Identifier: Apache-2.0
 *
 * Notes: what a gateway tells an actor of its clients.
 */
#include "gateway/client/binding.h"

#include "base/mutant.h"

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
    case NOTE_SEND:
    case NOTE_VALUES:
        break;
    }
    return mutant(M_NOTETWICE) ? REQUEST_SESSION | REQUEST_IDEMPOTENT : REQUEST_SESSION;
}

/* What tells that a client has gone is told however long that takes, a fleet without leases
 * included: it goes behind all that the client asked of the actor, nobody says it again, and an
 * actor that isn't told keeps the client for ever, and refuses the next one if its kind does. One
 * for each client that goes. */
static bool must_be_told(enum note_type type)
{
    return type == NOTE_LOST;
}

static uint32_t note_timeout_ms(enum note_type type)
{
    return must_be_told(type) ? REQUEST_TTL_MAX_MS : 0;
}

void binding_tell(struct client *c, enum note_type type, uint64_t now_us,
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
        .id = binding_id(b),
        .body = buffer_bytes(note_of(c, type)),
        .timeout_ms = note_timeout_ms(type),
        .must = must_be_told(type),
    };

    router_step(c->all->router, &event, effects);
}

void binding_ask_note(struct client *c, enum note_type type, uint64_t ticket)
{
    const struct binding *b = c->binding;

    client_ask(c,
               &(struct ask){.ticket = ticket,
                             .timeout_ms = note_timeout_ms(type),
                             .must = must_be_told(type),
                             .flags = note_flags(type),
                             .kind = b->kind,
                             .id = binding_id(b),
                             .body = buffer_bytes(note_of(c, type))});
}

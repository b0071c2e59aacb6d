/* SPDX-License-Identifier: Apache-2.0
 *
 * What an actor pushes to its clients, and the kick that ends one.
 */
#include "node/runtime/inside.h"

#include "base/mutant.h"
#include "node/runtime/bond.h"

#include <string.h>

_Static_assert((int)RH_PUSH_MAX == (int)PUSH_SIZE_MAX, "one limit");
_Static_assert((int)RH_KICK_REPLACED == (int)KICK_REPLACED &&
                   (int)RH_KICK_REFUSED == (int)KICK_REFUSED &&
                   (int)RH_KICK_ENDED == (int)KICK_ENDED,
               "the same codes");

static void tell(const struct client_bond *c, const struct push_record *push)
{
    const struct completion event = {.verb = VERB_PUSH, .actor = name_of(c->actor), .push = push};

    actor_say(c->actor, &event);
}

static struct push_record record_of(const struct bond *b, enum push_type type)
{
    return (struct push_record){.gateway = b->gateway,
                                .connection = b->connection,
                                .round = b->round,
                                .type = (uint8_t)type};
}

void push_tell(struct client_bond *c, enum push_type type, uint32_t code, struct bytes payload)
{
    struct push_record push = record_of(&c->bond, type);

    push.number = type == PUSH_AGAIN ? 0 : ++c->bond.number;
    push.code = code;
    push.payload = payload;
    if (type == PUSH_DATA && c->bond.session != 0 && !(c->away && mutant(M_AWAYPUSH))) {
        unacked_pushes_put(&c->unacked_pushes, payload);
    }
    if (!c->away) {
        tell(c, &push);
    }
}

void push_unacked(const struct client_bond *c, uint64_t from)
{
    const struct bytes all = unacked_pushes_bytes(&c->unacked_pushes);
    struct reader in = {.at = all.data, .left = all.size};
    struct push_record push = record_of(&c->bond, PUSH_DATA);

    push.number = c->bond.number - c->unacked_pushes.count;
    while (unacked_pushes_next(&in, &push.payload)) {
        push.number++;
        if (push.number >= from) {
            tell(c, &push);
        }
    }
}

void push_rebind(const struct client_bond *c)
{
    struct push_record push = record_of(&c->bond, PUSH_REBIND);
    struct buffer bytes = {0};

    if (c->bond.rebind.id_size == 0 || c->bond.kicked) {
        return;
    }
    rebind_put(&bytes, &c->bond.rebind);
    push.number = c->bond.number + 1;
    push.payload = buffer_bytes(&bytes);
    tell(c, &push);
    buffer_fini(&bytes);
}

static void kick_one(struct client_bond *c, uint32_t code, struct bytes text)
{
    if (!c->bond.kicked) {
        c->bond.kicked = true;
        push_tell(c, PUSH_KICK, code, text);
    }
}

void push_kick(struct client_bond *c, uint32_t code, const char *text)
{
    kick_one(c, code, bytes_of(text, strlen(text)));
}

/* Of all that are meant, and can be pushed to: the next from `c` on. */
static struct client_bond *next_meant(struct client_bond *c, const uint64_t *session)
{
    while (c != NULL && (bond_is_over(&c->bond) || (!c->away && c->due == RH_SESSION_LOST) ||
                         (session != NULL && bond_session(&c->bond) != *session))) {
        c = c->next;
    }
    return c;
}

/* `session`: to that one; NULL = to all. */
static bool push(struct rh_actor *a, const uint64_t *session, struct bytes payload)
{
    struct client_bond *c = next_meant(a->extra->client, session);
    const bool any = c != NULL;

    while (c != NULL) {
        push_tell(c, PUSH_DATA, 0, payload);
        c = mutant(M_FIRSTPUSHED) ? NULL : next_meant(c->next, session);
    }
    return any;
}

bool push_to_all(struct rh_actor *a, struct bytes payload)
{
    return push(a, NULL, payload);
}

/* As next_meant() says. */
static bool kick(struct rh_actor *a, const uint64_t *session, uint32_t code, struct bytes text)
{
    struct client_bond *c = next_meant(a->extra->client, session);
    const bool any = c != NULL;

    while (c != NULL) {
        struct client_bond *next = next_meant(c->next, session);

        if (c->away) {
            bonds_drop(c); // It won't resume.
        } else {
            kick_one(c, code, text);
        }
        c = next;
    }
    return any;
}

bool push_kick_all(struct rh_actor *a, uint32_t code, struct bytes text)
{
    return kick(a, NULL, code, text);
}

/* ---- ringhold.h ---- */

static int push_asked(struct rh_actor *actor, const uint64_t *session, struct rh_bytes payload)
{
    if (actor == NULL || !actor_may_ask(actor) || (payload.data == NULL && payload.size > 0)) {
        return RH_INVALID;
    }
    if (payload.size > PUSH_SIZE_MAX) {
        return RH_TOO_BIG;
    }
    return push(actor, session, bytes_of(payload.data, payload.size)) ? RH_OK : RH_NO_SESSION;
}

int rh_push(struct rh_actor *actor, struct rh_bytes payload)
{
    return push_asked(actor, NULL, payload);
}

int rh_push_one(struct rh_actor *actor, uint64_t session, struct rh_bytes payload)
{
    return push_asked(actor, &session, payload);
}

static int kick_asked(struct rh_actor *actor, const uint64_t *session, uint32_t code,
                      const char *text)
{
    const char *said = text == NULL ? "" : text;

    if (actor == NULL || !actor_may_ask(actor) || code < RH_KICK_GAME) {
        return RH_INVALID;
    }
    if (strlen(said) > PUSH_TEXT_MAX) {
        return RH_TOO_BIG;
    }
    return kick(actor, session, code, bytes_of(said, strlen(said))) ? RH_OK : RH_NO_SESSION;
}

int rh_kick(struct rh_actor *actor, uint32_t code, const char *text)
{
    return kick_asked(actor, NULL, code, text);
}

int rh_kick_one(struct rh_actor *actor, uint64_t session, uint32_t code, const char *text)
{
    return kick_asked(actor, &session, code, text);
}

static bool is_itself(const struct rh_actor *a, uint16_t kind, struct rh_bytes id)
{
    const struct rh_bytes own = rh_id(a);

    return a->kind == kind && own.size == id.size && memcmp(own.data, id.data, id.size) == 0;
}

static int rebind_asked(struct rh_actor *actor, const uint64_t *session, uint16_t kind,
                        struct rh_bytes id)
{
    if (actor == NULL || !actor_may_ask(actor) || id.data == NULL || id.size < 1 ||
        id.size > REBIND_ID_MAX || is_itself(actor, kind, id)) {
        return RH_INVALID;
    }
    struct client_bond *c = next_meant(actor->extra->client, session);
    const int result = c == NULL ? RH_NO_SESSION : RH_OK;

    for (; c != NULL; c = next_meant(c->next, session)) {
        c->bond.rebind = (struct rebind){.kind = kind, .id_size = (uint8_t)id.size};
        memcpy(c->bond.rebind.id, id.data, id.size);
        if (!c->away) {
            push_rebind(c); // else when it is back
        }
    }
    return result;
}

int rh_rebind(struct rh_actor *actor, uint16_t kind, struct rh_bytes id)
{
    return rebind_asked(actor, NULL, kind, id);
}

int rh_rebind_one(struct rh_actor *actor, uint64_t session, uint16_t kind, struct rh_bytes id)
{
    return rebind_asked(actor, &session, kind, id);
}

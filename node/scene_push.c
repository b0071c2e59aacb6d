/* SPDX-License-Identifier: Apache-2.0
 *
 * What an actor pushes to its client, and the kick that ends it.
 */
#include "node/scene_inside.h"

#include "base/mutant.h"
#include "node/bond.h"

#include <string.h>

_Static_assert((int)RH_PUSH_MAX == (int)PUSH_SIZE_MAX, "one limit");
_Static_assert((int)RH_KICK_REPLACED == (int)KICK_REPLACED &&
                   (int)RH_KICK_REFUSED == (int)KICK_REFUSED &&
                   (int)RH_KICK_ENDED == (int)KICK_ENDED,
               "the same codes");

static void tell(struct rh_actor *a, const struct push_record *push)
{
    const struct scene_event event = {.type = SCENE_PUSH, .actor = outer_of(a), .push = push};

    a->scene->config.on_event(a->scene->config.context, &event);
}

static struct push_record record_of(const struct bond *b, enum push_type type)
{
    return (struct push_record){.gateway = b->gateway,
                                .connection = b->connection,
                                .round = b->round,
                                .type = (uint8_t)type};
}

void push_tell(struct rh_actor *a, enum push_type type, uint32_t code, struct bytes payload)
{
    struct client_bond *c = a->extra->client;
    struct push_record push = record_of(&c->bond, type);

    push.number = type == PUSH_AGAIN ? 0 : ++c->bond.number;
    push.code = code;
    push.payload = payload;
    if (type == PUSH_DATA && c->bond.session != 0 && !(c->away && mutant(M_AWAYPUSH))) {
        unseen_put(&c->unseen, payload);
    }
    if (!c->away) {
        tell(a, &push);
    }
}

void push_unseen(struct rh_actor *a, uint64_t from)
{
    const struct client_bond *c = a->extra->client;
    const struct bytes all = unseen_bytes(&c->unseen);
    struct reader in = {.at = all.data, .left = all.size};
    struct push_record push = record_of(&c->bond, PUSH_DATA);

    push.number = c->bond.number - c->unseen.count;
    while (unseen_next(&in, &push.payload)) {
        push.number++;
        if (push.number >= from) {
            tell(a, &push);
        }
    }
}

void push_rebind(struct rh_actor *a)
{
    const struct client_bond *c = a->extra->client;
    struct push_record push = record_of(&c->bond, PUSH_REBIND);
    struct buffer bytes = {0};

    if (c->bond.rebind.id_size == 0 || c->bond.kicked) {
        return;
    }
    rebind_put(&bytes, &c->bond.rebind);
    push.number = c->bond.number + 1;
    push.payload = buffer_bytes(&bytes);
    tell(a, &push);
    buffer_fini(&bytes);
}

void push_kick(struct rh_actor *a, uint32_t code, const char *text)
{
    if (!a->extra->client->bond.kicked) {
        a->extra->client->bond.kicked = true;
        push_tell(a, PUSH_KICK, code, bytes_of(text, strlen(text)));
    }
}

/* ---- ringhold.h ---- */

static bool has_client(const struct rh_actor *a)
{
    const struct client_bond *c = a->extra->client;

    return c != NULL && !bond_is_over(&c->bond) && (c->away || c->due != RH_SESSION_LOST);
}

int rh_push(struct rh_actor *actor, struct rh_bytes payload)
{
    if (!actor_may_ask(actor) || (payload.data == NULL && payload.size > 0)) {
        return RH_INVALID;
    }
    if (payload.size > PUSH_SIZE_MAX) {
        return RH_TOO_BIG;
    }
    if (!has_client(actor)) {
        return RH_NO_SESSION;
    }
    push_tell(actor, PUSH_DATA, 0, bytes_of(payload.data, payload.size));
    return RH_OK;
}

int rh_kick(struct rh_actor *actor, uint32_t code, const char *text)
{
    const char *said = text == NULL ? "" : text;

    if (!actor_may_ask(actor) || code < RH_KICK_GAME) {
        return RH_INVALID;
    }
    if (strlen(said) > PUSH_TEXT_MAX) {
        return RH_TOO_BIG;
    }
    if (!has_client(actor)) {
        return RH_NO_SESSION;
    }
    if (actor->extra->client->away) {
        session_drop(actor); // It won't resume.
    } else {
        push_kick(actor, code, said);
    }
    return RH_OK;
}

static bool is_itself(const struct rh_actor *a, uint16_t kind, struct rh_bytes id)
{
    const struct rh_bytes own = rh_id(a);

    return a->kind == kind && own.size == id.size && memcmp(own.data, id.data, id.size) == 0;
}

int rh_rebind(struct rh_actor *actor, uint16_t kind, struct rh_bytes id)
{
    if (!actor_may_ask(actor) || id.data == NULL || id.size < 1 || id.size > REBIND_ID_MAX ||
        is_itself(actor, kind, id)) {
        return RH_INVALID;
    }
    if (!has_client(actor)) {
        return RH_NO_SESSION;
    }
    struct client_bond *c = actor->extra->client;

    c->bond.rebind = (struct rebind){.kind = kind, .id_size = (uint8_t)id.size};
    memcpy(c->bond.rebind.id, id.data, id.size);
    if (!c->away) {
        push_rebind(actor); // else when it is back
    }
    return RH_OK;
}

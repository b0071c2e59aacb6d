/* SPDX-License-Identifier: Apache-2.0
 *
 * Who a client that speaks packets or HTTP is: what its token says, or, by packets, a login actor
 * (login.c). Where the gateway has keys, or such an actor,
 *
 *     STRANGER -auth, the token is good-> KNOWN, auth-ok
 *              -auth, it is not, or a second-> kicked, by reason
 *              -auth, no token, and there is a login actor-> it is asked
 *              -anything but ping, pong; nothing for auth_ms-> kicked
 *     KNOWN    asks, tells and is bound to the entity that it is, and no other
 *
 * With both, what begins with "rh1." is a token, and all else is for the actor; who
 * came by the actor is given a token, and needs it only once.
 *
 * Strangers are counted, in all and by address; what they may hold is little.
 */
#include "gateway/client/inside.h"

#include "base/mem.h"
#include "gateway/access/token.h"

#include <string.h>

struct identity {
    uint64_t entity; /* hash of kind and id: what it counts with */
    uint64_t expires_s;
    uint16_t kind;
    uint8_t id_size;
    uint8_t id[TOKEN_ID_MAX];
};

static const char token_begins[] = "rh1.";

void clients_set_keys(struct clients *all, const struct keyring *keys)
{
    all->keys = *keys;
}

void clients_set_unix(struct clients *all, uint64_t unix_s)
{
    all->unix_s = unix_s;
}

bool auth_asks(const struct clients *all)
{
    return all->keys.count > 0 || all->config.login.asked;
}

void auth_begin(struct client *c)
{
    if (c->dialect != &dialect_resp && auth_asks(c->all)) {
        c->unauthenticated_address =
            unauthenticated_add(c->all->config.unauthenticated, c->address);
        c->all->stats.unauthenticated++;
    }
}

static void be_known(struct client *c)
{
    if (c->unauthenticated_address != NULL) {
        unauthenticated_remove(c->all->config.unauthenticated, c->unauthenticated_address);
        c->all->stats.unauthenticated--;
        c->unauthenticated_address = NULL;
    }
}

static uint64_t entity_hash(const struct clients *all, uint16_t kind, struct bytes id)
{
    return siphash_bytes(ring_key_of_kind(all->config.secret, kind), id);
}

static void be_nobody(struct client *c)
{
    if (c->identity != NULL) {
        share_sub(&c->all->by_entity, c->identity->entity, 0);
        mem_free(c->identity);
    }
}

void auth_end(struct client *c)
{
    be_known(c);
    be_nobody(c);
    c->identity = NULL;
}

/* For who has shown none. Appends it to `out`: nothing, if there is no key to sign it with. */
static void sign(const struct client *c, const struct auth_ok_packet *who, struct buffer *out)
{
    const struct keyring *keys = &c->all->keys;
    struct token token = {
        .expires_s = who->expires_s, .kind = who->kind, .id_size = (uint8_t)who->id.size};

    memcpy(token.id, who->id.data, who->id.size);
    memcpy(token.cluster, c->all->config.cluster, sizeof token.cluster);
    if (keys->count > 0 && token_put(out, &token, &keys->key[0]) != ERR_OK) {
        buffer_clear(out); // of a cluster without a name there are no tokens
    }
}

static void set_identity(struct client *c, const struct auth_ok_packet *who)
{
    struct identity *i = mem_new(1, sizeof *i);

    *i = (struct identity){.entity = entity_hash(c->all, who->kind, who->id),
                           .expires_s = who->expires_s,
                           .kind = who->kind,
                           .id_size = (uint8_t)who->id.size};
    memcpy(i->id, who->id.data, who->id.size);
    be_nobody(c);
    c->identity = i;
    share_add(&c->all->by_entity, i->entity, 0);
}

static void turn_away(struct client *c)
{
    struct clients *all = c->all;

    all->stats.refused++;
    all->stats.refused_entity_share++;
    packet_turn_away(c,
                     admission_turn_away(all->config.shared_admission, c->now_us),
                     "this entity has used its share of connections: the rest is for others");
}

static void come_in(struct client *c, const struct auth_ok_packet *who)
{
    if (clients_entity_is_full(c->all, entity_hash(c->all, who->kind, who->id))) {
        turn_away(c);
        return;
    }
    be_known(c);
    set_identity(c, who);
    c->all->stats.authenticated++;
    packet_put_auth_ok(&c->out, who);
}

void auth_be(struct client *c, const struct auth_ok_packet *who)
{
    struct auth_ok_packet ok = *who;
    struct buffer token = {0};

    sign(c, who, &token);
    ok.token = buffer_bytes(&token);
    come_in(c, &ok);
    buffer_fini(&token);
}

void auth_become(struct client *c, const struct rebind *to, struct auth_ok_packet *out,
                 struct buffer *token)
{
    const struct identity *i = c->identity;

    *out = (struct auth_ok_packet){.expires_s = i == NULL ? 0 : i->expires_s,
                                   .kind = to->kind,
                                   .id = bytes_of(to->id, to->id_size)};
    if (i != NULL) {
        set_identity(c, out);
        sign(c, out, token);
        out->token = buffer_bytes(token);
    }
}

static bool is_token(const struct client *c, struct bytes text)
{
    const size_t size = sizeof token_begins - 1;

    return c->all->keys.count > 0 &&
           (!c->all->config.login.asked ||
            (text.size >= size && memcmp(text.data, token_begins, size) == 0));
}

static void take_token(struct client *c, struct bytes text)
{
    struct token token;

    const enum token_verdict verdict =
        token_check(&c->all->keys, text, c->all->config.cluster, c->all->unix_s, &token);
    if (verdict != TOKEN_GOOD) {
        // The codes of tokens stand in the order of the verdicts.
        packet_kick(c,
                    (enum packet_kick)(PACKET_KICK_TOKEN_MALFORMED + (verdict - TOKEN_MALFORMED)),
                    token_verdict_text(verdict));
        return;
    }
    come_in(c,
            &(struct auth_ok_packet){
                .expires_s = token.expires_s, .kind = token.kind, .id = token_id(&token)});
}

enum token_verdict auth_show(struct client *c, struct bytes text, bool *full)
{
    struct token token;
    const enum token_verdict verdict =
        token_check(&c->all->keys, text, c->all->config.cluster, c->all->unix_s, &token);

    *full = false;
    if (verdict != TOKEN_GOOD) {
        return verdict;
    }
    const struct auth_ok_packet who = {
        .expires_s = token.expires_s, .kind = token.kind, .id = token_id(&token)};
    if (c->identity != NULL && auth_allows(c, who.kind, who.id)) {
        return TOKEN_GOOD; // as before
    }
    *full = clients_entity_is_full(c->all, entity_hash(c->all, who.kind, who.id));
    if (*full) {
        c->all->stats.refused_entity_share++;
        return TOKEN_GOOD;
    }
    be_known(c);
    set_identity(c, &who);
    c->all->stats.authenticated++;
    return TOKEN_GOOD;
}

void auth_take(struct client *c, struct bytes text)
{
    if (c->unauthenticated_address == NULL) {
        packet_kick(c,
                    PACKET_KICK_BAD_PACKET,
                    c->identity != NULL ? "the client has already logged in"
                                        : "this gateway asks for no login");
    } else if (is_token(c, text)) {
        take_token(c, text);
    } else {
        login_ask(c, text);
    }
}

/* Packets of types to come are passed over, from unauthenticated clients too. */
bool auth_admits(uint8_t type)
{
    return type == PACKET_AUTH || type == PACKET_PING || type == PACKET_PONG ||
           (type & PACKET_OPTIONAL) != 0;
}

bool auth_allows(const struct client *c, uint16_t kind, struct bytes id)
{
    const struct identity *i = c->identity;

    return i == NULL || (i->kind == kind && bytes_equal(bytes_of(i->id, i->id_size), id));
}

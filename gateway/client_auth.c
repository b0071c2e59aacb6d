/* SPDX-License-Identifier: Apache-2.0
 *
 * Who a client that speaks packets is: what its token says. Where the gateway has
 * keys,
 *
 *     STRANGER -auth, the token is good-> KNOWN, auth-ok
 *              -auth, it is not, or a second-> kicked, by reason
 *              -anything but ping, pong; nothing for auth_ms-> kicked
 *     KNOWN    asks, tells and is bound to the entity of its token, and no other
 *
 * Strangers are counted, in all and by address; what they may hold is little.
 */
#include "gateway/client_inside.h"

#include "base/mem.h"
#include "gateway/token.h"

#include <string.h>

struct identity {
    struct token token;
};

void clients_set_keys(struct clients *all, const struct keyring *keys)
{
    all->keys = *keys;
}

void clients_set_unix(struct clients *all, uint64_t unix_s)
{
    all->unix_s = unix_s;
}

void auth_begin(struct client *c)
{
    if (c->dialect == &dialect_packets && c->all->keys.count > 0) {
        c->stranger = strangers_add(c->all->config.strangers, c->address);
        c->all->figures.strangers++;
    }
}

static void be_known(struct client *c)
{
    if (c->stranger != NULL) {
        strangers_remove(c->all->config.strangers, c->stranger);
        c->all->figures.strangers--;
        c->stranger = NULL;
    }
}

void auth_end(struct client *c)
{
    be_known(c);
    mem_free(c->identity);
    c->identity = NULL;
}

void auth_take(struct client *c, struct bytes text)
{
    struct token token;

    if (c->stranger == NULL) {
        packet_kick(c,
                    PACKET_KICK_BAD_PACKET,
                    c->identity != NULL ? "it has said who it is" : "this gateway knows no tokens");
        return;
    }
    const enum token_verdict verdict =
        token_check(&c->all->keys, text, c->all->config.cluster, c->all->unix_s, &token);
    if (verdict != TOKEN_GOOD) {
        // The codes of tokens stand in the order of the verdicts.
        packet_kick(c,
                    (enum packet_kick)(PACKET_KICK_TOKEN_MALFORMED + (verdict - TOKEN_MALFORMED)),
                    token_verdict_text(verdict));
        return;
    }
    be_known(c);
    c->identity = mem_copy(&token, sizeof token);
    c->all->figures.authenticated++;
    packet_put_auth_ok(&c->out,
                       &(struct auth_ok_packet){.expires_s = token.expires_s,
                                                .kind = token.kind,
                                                .id = token_id(&token)});
}

/* Packets of types to come are passed over, from strangers too. */
bool auth_admits(uint8_t type)
{
    return type == PACKET_AUTH || type == PACKET_PING || type == PACKET_PONG ||
           (type & PACKET_OPTIONAL) != 0;
}

bool auth_allows(const struct client *c, uint16_t kind, struct bytes id)
{
    return c->identity == NULL ||
           (c->identity->token.kind == kind && bytes_equal(token_id(&c->identity->token), id));
}

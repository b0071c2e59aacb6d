/* SPDX-License-Identifier: Apache-2.0
 *
 * An actor says who a client is (docs/decisions/030-login-actors.md).
 *
 *     STRANGER  -auth, room for a login-> ASKING    -auth, none-> told when to come again
 *     ASKING    -the actor names an entity-> KNOWN, auth-ok
 *               -it answers with an error, or nonsense-> kicked, by reason
 *               -nobody answers, auth_ms-> told when to come again
 *
 * It is unauthenticated all the while. What it has sent behind its auth waits.
 *
 * Who leaves meanwhile makes no room: its login is under way still, and whoever
 * comes and goes all the time would keep the actors busy.
 */
#include "gateway/client/inside.h"

#include "base/log.h"
#include "base/mem.h"
#include "ring/hash.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { RETRY_LOGIN_MS = 1000 };

/* Of a client that has gone. */
struct left_login {
    struct list_link link;
    uint64_t until_us;
    struct unauthenticated_address *unauthenticated_address;
};

static void turn_away(struct client *c, uint32_t retry_ms, const char *why)
{
    log_debug("gateway", "login_put_off", "address=%s why=\"%s\"", c->address, why);
    packet_turn_away(c, retry_ms, why);
}

static void put_off(struct client *c, const char *why)
{
    c->all->stats.logins.unanswered++;
    turn_away(c, admission_jitter(c->all->config.shared_admission, RETRY_LOGIN_MS), why);
}

static bool find_kind(const struct clients *all, uint16_t *kind)
{
    const struct login_config *login = &all->config.login;

    *kind = login->kind;
    return login->role[0] == '\0' ||
           target_kind_of_role(router_view(all->router), login->role, kind);
}

/* One of so many: the same for the same credentials, at each gateway; but nobody who doesn't know
 * the cluster's key can send all logins to one. */
static uint32_t pick(const struct clients *all, struct bytes credentials)
{
    const struct ring_key key = router_view(all->router)->key;

    return (uint32_t)(siphash_bytes(key, credentials) % all->config.login.spread);
}

/* Who gets no answer asks again: so may we. */
static void ask(struct client *c, uint16_t kind, struct bytes credentials)
{
    struct clients *all = c->all;
    const uint32_t most_ms = REQUEST_TTL_MAX_MS;
    const uint32_t wait_ms = all->config.auth_ms < most_ms ? all->config.auth_ms : most_ms;
    char id[32];
    const int size = snprintf(id, sizeof id, "login-%" PRIu32, pick(all, credentials));

    all->stats.logins.under_way++;
    c->login_until_us = c->now_us + (uint64_t)wait_ms * 1000;
    client_wait(c, true);
    client_ask(c,
               &(struct ask){.ticket = TICKET_LOGIN,
                             .timeout_ms = wait_ms,
                             .flags = REQUEST_IDEMPOTENT,
                             .kind = kind,
                             .id = bytes_of(id, (size_t)size),
                             .body = credentials});
}

void login_ask(struct client *c, struct bytes credentials)
{
    struct clients *all = c->all;
    uint16_t kind = 0;

    if (all->stats.logins.under_way >= all->config.login.at_once_max) {
        all->stats.logins.full++;
        turn_away(c,
                  admission_turn_away(all->config.shared_admission, c->now_us),
                  "too many logins are in progress");
        return;
    }
    if (!find_kind(all, &kind)) {
        put_off(c, "no login actor can be reached now");
        return;
    }
    ask(c, kind, credentials);
}

static void over(struct client *c)
{
    c->login_until_us = 0;
    client_wait(c, false);
    c->all->stats.logins.under_way--;
}

/* What an actor answers is the body of an auth-ok. */
static void take_answer(struct client *c, struct bytes body)
{
    struct auth_ok_packet who;

    if (packet_get_auth_ok(body, &who) != ERR_OK || who.expires_s <= c->all->unix_s) {
        c->all->stats.logins.broken++;
        log_warn(
            "gateway",
            "login_broken",
            "address=%s bytes=%zu why=\"the login actor's answer names no entity, or is too long\"",
            c->address,
            body.size);
        packet_kick(c, PACKET_KICK_LOGIN_BROKEN, "the login actor's answer is not valid");
        return;
    }
    who.token = (struct bytes){NULL, 0};
    c->all->stats.logins.ok++;
    auth_be(c, &who);
}

static void refuse(struct client *c, struct bytes text)
{
    static const char later[] = "TRYAGAIN";
    const size_t size = sizeof later - 1;
    char why[PACKET_TEXT_MAX + 1];

    if (text.size >= size && memcmp(text.data, later, size) == 0) {
        put_off(c, "login is not possible now: log in again later");
        return;
    }
    (void)snprintf(why,
                   sizeof why,
                   "%.*s",
                   (int)(text.size < PACKET_TEXT_MAX ? text.size : PACKET_TEXT_MAX),
                   (const char *)text.data);
    c->all->stats.logins.refused++;
    packet_kick(c, PACKET_KICK_LOGIN_REFUSED, why);
}

void login_answered(struct client *c, const struct router_effect *reply, struct bytes body,
                    uint64_t now_us)
{
    client_took_replies(c, 1); // nothing of it goes to the client
    client_learn_size(c, 0);
    over(c);
    client_owes(c, now_us);
    if (c->closing || c->dropped) {
        return; // it was given up
    }
    if (reply->code == REPLY_OK) {
        take_answer(c, body);
    } else if (reply->code == REPLY_APP_ERROR) {
        refuse(c, body);
    } else {
        put_off(c, "no login actor answered: log in again");
    }
}

/* ---- those that nobody waits for ---- */

void login_give_up(struct client *c)
{
    put_off(c, "no login actor answered in time: log in again");
}

void login_leave(struct client *c, uint64_t now_us)
{
    if (c->login_until_us == 0) {
        return;
    }
    c->all->stats.logins.left += c->closing ? 0 : 1; // else that is counted
    struct left_login *left = mem_new(1, sizeof *left);

    *left = (struct left_login){.until_us = c->login_until_us,
                                .unauthenticated_address = c->unauthenticated_address};
    list_push_back(&c->all->left_logins, &left->link);
    c->unauthenticated_address = NULL;
    c->login_until_us = 0;
    logins_tick(c->all, now_us);
}

static void forget(struct clients *all, struct left_login *left)
{
    list_remove(&left->link);
    unauthenticated_remove(all->config.unauthenticated, left->unauthenticated_address);
    all->stats.unauthenticated--;
    all->stats.logins.under_way--;
    mem_free(left);
}

void logins_tick(struct clients *all, uint64_t now_us)
{
    struct list_link *l = NULL;

    while ((l = list_front(&all->left_logins)) != NULL) {
        struct left_login *left = CONTAINER_OF(l, struct left_login, link);

        if (left->until_us > now_us) {
            return; // all have as long, and they left in about the order they came
        }
        forget(all, left);
    }
}

void logins_end(struct clients *all)
{
    logins_tick(all, UINT64_MAX);
}

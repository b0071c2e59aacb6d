/* SPDX-License-Identifier: Apache-2.0
 *
 * Who may come in, and how much a client may ask: the limits that are there for
 * storms. Clients that speak packets or HTTP come from anywhere; RESP is of operators and
 * services, which get in while players are turned away.
 */
#include "gateway/access/origin.h"
#include "gateway/client/inside.h"

#include "base/assert.h"

#include <string.h>

enum {
    RESERVE_MAX = 16,  /* connections that players leave to operators … */
    RESERVE_PART = 64, /* … at most one of so many */
    PLACES_MIN = 16,   /* connections that an address and an entity may have while there is room */
};

/* Room for one more of this speech? */
static bool has_room(const struct clients *all, enum client_speech speech)
{
    const uint32_t most = all->config.connections_max;
    const uint32_t part = most / RESERVE_PART;
    const uint32_t reserve = part < RESERVE_MAX ? part : RESERVE_MAX;

    return all->table.count < (speech == CLIENT_RESP ? most : most - reserve);
}

static bool refuse_resp(struct clients *all, struct admission_result *out)
{
    static const char text[] = "-ERR max number of clients reached\r\n";

    all->stats.refused++;
    out->refusal = bytes_of(text, sizeof text - 1);
    return false;
}

static bool refuse(struct clients *all, uint32_t retry_ms, const char *why,
                   struct admission_result *out)
{
    all->stats.refused++;
    out->retry_ms = retry_ms;
    out->why = why;
    return false;
}

/* Who says nothing is gone within auth_ms, and makes room. */
static bool has_room_for_unauthenticated(struct clients *all, const char *address,
                                         struct admission_result *out)
{
    const struct clients_config *config = &all->config;

    if (!auth_asks(all)) {
        return true;
    }
    if (unauthenticated_from(config->unauthenticated, address) >=
        config->unauthenticated_address_max) {
        all->stats.refused_address++;
        return refuse(all,
                      admission_jitter(config->shared_admission, config->auth_ms),
                      "too many connections from this address have not logged in yet",
                      out);
    }
    if (unauthenticated_count(config->unauthenticated) >= config->unauthenticated_max) {
        all->stats.refused_unauthenticated++;
        return refuse(all,
                      admission_jitter(config->shared_admission, config->auth_ms),
                      "too many connections have not logged in yet",
                      out);
    }
    return true;
}

/* One address may have eight of nine connections, one entity one of nine: who is known needs few.
 */
static bool has_share(const struct clients *all, const struct share *s, uint64_t who,
                      const struct share_rule *rule)
{
    const uint64_t used = all->table.count;

    return share_of(s, who).count < share_allowed(rule, all->config.connections_max, used);
}

static uint64_t origin_in(const struct clients *all, const char *address)
{
    const struct origin origin = origin_of(address);

    return origin_hash(&origin, all->config.secret.k0);
}

void client_take_place(struct client *c)
{
    c->origin = origin_in(c->all, c->address);
    share_add(&c->all->by_origin, c->origin, 0);
}

void client_leave_place(struct client *c)
{
    share_sub(&c->all->by_origin, c->origin, 0);
}

bool clients_entity_is_full(const struct clients *all, uint64_t entity)
{
    static const struct share_rule rule = {.times = 1, .parts = 8, .least = PLACES_MIN};

    return !has_share(all, &all->by_entity, entity, &rule);
}

static bool has_room_for_address(struct clients *all, const char *address, uint64_t now_us,
                                 struct admission_result *out)
{
    static const struct share_rule rule = {.times = 8, .parts = 1, .least = PLACES_MIN};

    if (has_share(all, &all->by_origin, origin_in(all, address), &rule)) {
        return true;
    }
    all->stats.refused_address_share++;
    return refuse(all,
                  admission_turn_away(all->config.shared_admission, now_us),
                  "this address has used its share of connections: the rest is for others",
                  out);
}

static bool pass_admission(struct clients *all, const char *address, uint64_t now_us,
                           struct admission_result *out)
{
    uint32_t retry_ms = 0;

    switch (admission_enter(
        all->config.shared_admission, address, now_us, &out->client_address, &retry_ms)) {
    case ADMISSION_OPEN:
        return true;
    case ADMISSION_ACCEPT_RATE:
        all->stats.refused_accept_rate++;
        return refuse(all, retry_ms, "too many clients connect at once", out);
    case ADMISSION_ADDRESS_RATE:
        all->stats.refused_address_rate++;
        return refuse(all, retry_ms, "too many clients connect at once from this address", out);
    case ADMISSION_ADDRESS_COUNT:
        all->stats.refused_address_count++;
        return refuse(all, retry_ms, "too many connections from this address", out);
    }
    UNREACHABLE();
}

static bool may_come_in(struct clients *all, enum client_speech speech, const char *address,
                        uint64_t now_us, struct admission_result *out)
{
    if (!has_room(all, speech)) {
        all->stats.refused_full++;
        return refuse(all,
                      admission_turn_away(all->config.shared_admission, now_us),
                      "too many connections",
                      out);
    }
    return has_room_for_address(all, address, now_us, out) &&
           has_room_for_unauthenticated(all, address, out) &&
           pass_admission(all, address, now_us, out);
}

bool clients_admit(struct clients *all, enum client_speech speech, const char *address,
                   uint64_t now_us, struct admission_result *out)
{
    *out = (struct admission_result){0};
    if (speech == CLIENT_RESP) {
        return has_room(all, speech) || refuse_resp(all, out);
    }
    if (may_come_in(all, speech, address, now_us, out)) {
        return true;
    }
    out->refusal = speech == CLIENT_HTTP ? http_refusal(all, out->retry_ms, out->why)
                                         : packet_refusal(all, out->retry_ms, out->why);
    return false;
}

bool clients_ready(const struct clients *all, uint64_t now_us)
{
    return has_room(all, CLIENT_PACKETS) &&
           !admission_state(all->config.shared_admission, now_us).shedding;
}

void client_let_in(struct client *c, struct client_address *client_address)
{
    c->client_address = client_address;
}

void client_let_out(struct client *c, uint64_t now_us)
{
    if (c->dialect != &dialect_resp) {
        admission_leave(c->all->config.shared_admission, c->client_address, now_us);
        c->client_address = NULL;
    }
}

uint32_t client_overspeed(struct client *c)
{
    const uint64_t wait_us = bucket_take(&c->requests, c->all->config.requests, c->now_us);

    return (uint32_t)((wait_us + 999) / 1000);
}

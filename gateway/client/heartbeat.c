/* SPDX-License-Identifier: Apache-2.0
 *
 * A client that speaks packets comes, is heard of, and goes: hello, heartbeats, kicks.
 */
#include "gateway/client/inside.h"
#include "gateway/protocol/packet.h"

#include "base/log.h"

#include <stdio.h>
#include <string.h>

/* pomelo, pitaya and nano frame packets as we do, and begin with one of the same type. */
#define JSON_HELLO                                                                        \
    "this is a gateway of ringhold, whose hello is six bytes, not JSON as pomelo's: see " \
    "docs/protocol-client.md"

void packet_put_kick(struct client *c, uint32_t code, struct bytes text)
{
    packet_put_notice(&c->out, PACKET_KICK, &(struct notice_packet){.number = code, .text = text});
}

void packet_kick(struct client *c, enum packet_kick code, const char *text)
{
    log_debug("gateway", "client_kicked", "address=%s code=%d why=\"%s\"", c->address, code, text);
    c->all->stats.kicks[code - PACKET_KICK_BAD_PACKET]++;
    packet_put_kick(c, code, bytes_of(text, strlen(text)));
    client_close(c);
}

void packet_turn_away(struct client *c, uint32_t retry_ms, const char *why)
{
    packet_put_notice(
        &c->out,
        PACKET_GOAWAY,
        &(struct notice_packet){.number = retry_ms, .text = bytes_of(why, strlen(why))});
    client_close(c);
}

/* Both ranges, and who is to be upgraded: a player's client shows it to its developer. */
static void kick_version(struct client *c, const struct hello_packet *hello)
{
    char text[96];

    (void)snprintf(text,
                   sizeof text,
                   "the client speaks versions %u to %u, this gateway %d: upgrade the %s",
                   hello->version_min,
                   hello->version_max,
                   PACKET_VERSION,
                   hello->version_max < PACKET_VERSION ? "client" : "gateway");
    packet_kick(c, PACKET_KICK_VERSION, text);
}

void packet_on_hello(struct client *c, struct bytes body)
{
    const struct clients_config *config = &c->all->config;
    struct hello_packet hello;

    if (body.size > 0 && body.data[0] == '{') {
        packet_kick(c, PACKET_KICK_NO_HELLO, JSON_HELLO);
    } else if (packet_get_hello(body, &hello) != ERR_OK) {
        packet_kick(c, PACKET_KICK_NO_HELLO, "the first packet is not a hello");
    } else if (hello.version_min > PACKET_VERSION || hello.version_max < PACKET_VERSION) {
        kick_version(c, &hello);
    } else {
        c->packets.greeted = true;
        packet_put_hello_ack(
            &c->out,
            &(struct hello_ack_packet){
                .version = PACKET_VERSION,
                .flags = (uint16_t)((c->unauthenticated_address != NULL ? PACKET_ACK_AUTH : 0) |
                                    (config->tracing != NULL ? PACKET_ACK_TRACE : 0)),
                .heartbeat_ms = config->heartbeat_ms,
                .packet_size_max = (uint32_t)config->packet_size_max,
                .requests_max = config->in_flight_max,
                .connection = c->session,
            });
    }
}

void packet_opened(struct client *c, uint64_t now_us)
{
    c->packets.heard_us = c->packets.opened_us = now_us;
}

void packet_tick(struct client *c)
{
    const struct clients_config *config = &c->all->config;
    const uint64_t quiet_us = c->now_us - c->packets.heard_us;
    const uint64_t heartbeat_us = (uint64_t)config->heartbeat_ms * 1000;

    if (c->closing) {
        return;
    }
    if (c->unauthenticated_address != NULL &&
        c->now_us - c->since_us > (uint64_t)config->auth_ms * 1000) {
        // By the time since it came, not since it spoke: a byte a second buys no time.
        if (c->login_until_us != 0) {
            login_give_up(c);
            return;
        }
        packet_kick(c,
                    c->packets.greeted ? PACKET_KICK_NO_AUTH : PACKET_KICK_NO_HELLO,
                    "the client did not log in in time");
        return;
    }
    if (!client_has_room(c)) {
        packet_opened(c, c->now_us); // it is not listened to
    } else if (!c->packets.greeted) {
        // Nor does a byte a second of a hello.
        if (c->now_us - c->packets.opened_us > (uint64_t)config->hello_ms * 1000) {
            packet_kick(c, PACKET_KICK_NO_HELLO, "the client did not say hello in time");
        }
    } else if (heartbeat_us > 0 && quiet_us > 2 * heartbeat_us) {
        packet_kick(c, PACKET_KICK_SILENT, "nothing came from the client for two heartbeats");
    } else if (heartbeat_us > 0 && quiet_us > heartbeat_us && !c->packets.pinged) {
        c->packets.pinged = true;
        packet_put_ping(&c->out, PACKET_PING, (struct bytes){NULL, 0});
    }
}

struct bytes packet_refusal(struct clients *all, uint32_t retry_ms, const char *why)
{
    buffer_clear(&all->body);
    packet_put_notice(
        &all->body,
        PACKET_GOAWAY,
        &(struct notice_packet){.number = retry_ms, .text = bytes_of(why, strlen(why))});
    return buffer_bytes(&all->body);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Listens as a gateway does, and cuts what a client sends into packets.
 */
#include "conform/client_gate.h"

#include "base/big.h"
#include "conform/wsframe.h"
#include "gateway/protocol/packet.h"
#include "gateway/protocol/upgrade.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum {
    READ_SIZE = 65536,
    SEND_S = 30, /* a client that reads nothing for so long has hung */
    MASKED = 0x80,
    LENGTH = 0x7F,
    LENGTH_16 = 126,
    MASK_SIZE = 4,
};

static int listen_here(void)
{
    const struct sockaddr_in here = {.sin_family = AF_INET,
                                     .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd >= 0 &&
        (bind(fd, (const struct sockaddr *)&here, sizeof here) != 0 || listen(fd, 16) != 0)) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

bool client_gate_open(struct client_gate *g, bool websocket)
{
    *g = (struct client_gate){.websocket = websocket, .at = -1, .fd = -1};
    g->listener[0] = listen_here();
    g->listener[1] = listen_here();
    return g->listener[0] >= 0 && g->listener[1] >= 0;
}

static unsigned port_of(int fd)
{
    struct sockaddr_in is = {.sin_port = 0};
    socklen_t size = sizeof is;

    (void)getsockname(fd, (struct sockaddr *)&is, &size);
    return ntohs(is.sin_port);
}

void client_gate_urls(const struct client_gate *g, char *out, size_t size)
{
    const char *scheme = g->websocket ? "ws://" : "";

    (void)snprintf(out,
                   size,
                   "%s127.0.0.1:%u,%s127.0.0.1:%u",
                   scheme,
                   port_of(g->listener[0]),
                   scheme,
                   port_of(g->listener[1]));
}

static void hang_up(struct client_gate *g)
{
    if (g->fd >= 0) {
        (void)close(g->fd);
    }
    g->fd = -1;
}

void client_gate_drop(struct client_gate *g)
{
    hang_up(g);
    for (size_t i = 0; i < g->count; i++) {
        buffer_fini(&g->queue[i].body);
    }
    g->first = g->count = 0;
    g->over = g->upgraded = g->mute = g->drips = g->gathers = g->acked = false;
    g->pongs = 0;
    buffer_clear(&g->in);
    buffer_clear(&g->out);
    buffer_clear(&g->message);
}

size_t client_gate_polls(const struct client_gate *g, struct pollfd polls[CLIENT_GATE_POLLS_MAX])
{
    if (g->over) {
        return 0;
    }
    polls[0] = (struct pollfd){.fd = g->fd >= 0 ? g->fd : g->listener[0], .events = POLLIN};
    polls[1] = (struct pollfd){.fd = g->listener[1], .events = POLLIN};
    return g->fd >= 0 ? 1 : 2;
}

static void take_client(struct client_gate *g, int which)
{
    const struct timeval most = {.tv_sec = SEND_S};
    const int one = 1;

    g->at = which;
    g->fd = accept(g->listener[which], NULL, NULL);
    if (g->fd >= 0) {
        (void)setsockopt(g->fd, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof most);
        (void)setsockopt(g->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    }
}

/* ---- what comes */

static void take_packet(struct client_gate *g, const struct packet *packet)
{
    struct ack_packet ack;

    if (packet->type == PACKET_PING && !g->mute) {
        client_gate_send(g, PACKET_PONG, packet->body);
        return;
    }
    if (packet->type == PACKET_ACK && packet_get_ack(packet->body, &ack) == ERR_OK) {
        g->acked = true;
        g->pushes = ack.pushes;
        return;
    }
    if (packet->type == PACKET_PONG && g->pongs-- == 0) {
        g->pongs = 0;
        return;
    }
    if (g->count == CLIENT_GATE_QUEUE_MAX) {
        g->wrong = "thousands of packets that nobody asked for";
        return;
    }
    struct client_gate_packet *next = &g->queue[g->count++];

    *next = (struct client_gate_packet){.type = packet->type};
    buffer_put(&next->body, packet->body.data, packet->body.size);
}

static bool take_upgrade(struct client_gate *g)
{
    const struct upgrade_rules rules = {.path = "/", .origins = ""};
    struct upgrade upgrade;
    size_t scanned = 0;
    struct buffer answer = {0};
    const enum upgrade_result result =
        upgrade_parse(buffer_bytes(&g->in), &scanned, &rules, &upgrade);

    if (result == UPGRADE_MORE) {
        return false;
    }
    if (result != UPGRADE_GOOD) {
        g->wrong = "a request that begins no WebSocket";
        return false;
    }
    g->upgraded = true;
    upgrade_put_answer(&answer, &upgrade);
    client_gate_send_raw(g, buffer_bytes(&answer));
    buffer_fini(&answer);
    buffer_consume(&g->in, upgrade.size);
    return true;
}

static void take_message(struct client_gate *g)
{
    struct packet packet;

    if (packet_next(buffer_bytes(&g->message), PACKET_BODY_MAX, &packet) != PACKET_WHOLE ||
        packet.body.size + PACKET_HEADER != g->message.size) {
        g->wrong = "a message that is not exactly one packet";
    } else {
        take_packet(g, &packet);
    }
    buffer_clear(&g->message);
}

/* The payload of a frame. */
static void take_payload(struct client_gate *g, uint8_t first, const uint8_t *mask,
                         struct bytes payload)
{
    const uint8_t opcode = first & 0xF;

    if (opcode == WSFRAME_CLOSE) {
        g->over = true;
    } else if (opcode == WSFRAME_BINARY || opcode == WSFRAME_CONTINUED) {
        uint8_t *to = buffer_reserve(&g->message, payload.size);

        for (size_t i = 0; i < payload.size; i++) {
            to[i] = payload.data[i] ^ mask[i % MASK_SIZE];
        }
        g->message.size += payload.size;
        if ((first & WSFRAME_FINAL) != 0) {
            take_message(g);
        }
    } else if (opcode != WSFRAME_PING && opcode != WSFRAME_PONG) {
        g->wrong = "a frame that is neither of bytes nor of control";
    }
}

/* False: it is not whole, or no frame of a client's. */
static bool take_frame(struct client_gate *g)
{
    const uint8_t *at = g->in.data;
    size_t head = 2;

    if (g->in.size < head) {
        return false;
    }
    uint64_t size = at[1] & LENGTH;
    if (size >= LENGTH_16) {
        const size_t more = size == LENGTH_16 ? 2 : 8;

        if (g->in.size < head + more) {
            return false;
        }
        size = more == 2 ? big_get16(at + head) : big_get64(at + head);
        head += more;
    }
    if ((at[1] & MASKED) == 0 || size > PACKET_HEADER + PACKET_BODY_MAX) {
        g->wrong = "a frame that is not masked, or longer than any packet";
        return false;
    }
    head += MASK_SIZE;
    if (g->in.size < head + size) {
        return false;
    }
    take_payload(g, at[0], at + head - MASK_SIZE, bytes_of(at + head, (size_t)size));
    buffer_consume(&g->in, head + (size_t)size);
    return true;
}

static void take_packets(struct client_gate *g)
{
    struct packet packet;
    size_t at = 0;

    while (packet_next(bytes_of(g->in.data + at, g->in.size - at), PACKET_BODY_MAX, &packet) ==
           PACKET_WHOLE) {
        take_packet(g, &packet);
        at += PACKET_HEADER + packet.body.size;
    }
    buffer_consume(&g->in, at);
}

static void take_bytes(struct client_gate *g)
{
    const ssize_t got = recv(g->fd, buffer_reserve(&g->in, READ_SIZE), READ_SIZE, 0);

    if (got <= 0) {
        g->over = got == 0 || errno != EINTR;
    } else {
        g->in.size += (size_t)got;
        if (!g->websocket) {
            take_packets(g);
        } else if (g->upgraded || take_upgrade(g)) {
            while (!g->over && g->wrong == NULL && take_frame(g)) {
            }
        }
    }
    if (g->over) {
        hang_up(g); // what it sent is looked at all the same
    }
}

void client_gate_polled(struct client_gate *g, const struct pollfd *polls, size_t count)
{
    if (count == 1 && polls[0].revents != 0) {
        take_bytes(g);
    } else if (count == 2 && (polls[0].revents != 0 || polls[1].revents != 0)) {
        take_client(g, polls[0].revents != 0 ? 0 : 1);
    }
}

const struct client_gate_packet *client_gate_next(struct client_gate *g)
{
    return g->first < g->count ? &g->queue[g->first++] : NULL;
}

/* ---- what is sent */

static void send_all(struct client_gate *g)
{
    size_t at = 0;

    while (at < g->out.size && g->fd >= 0) {
        const size_t most = g->drips ? 1 : g->out.size - at;
        const ssize_t sent = send(g->fd, g->out.data + at, most, MSG_NOSIGNAL);

        if (sent < 0 && errno != EINTR) {
            break; // it hung up: reading tells
        }
        at += sent > 0 ? (size_t)sent : 0;
    }
    buffer_clear(&g->out);
}

void client_gate_send_message(struct client_gate *g, struct bytes bytes)
{
    if (g->websocket) {
        wsframe_put(&g->out, WSFRAME_BINARY | WSFRAME_FINAL, NULL, bytes);
    } else {
        buffer_put(&g->out, bytes.data, bytes.size);
    }
    if (!g->gathers) {
        send_all(g);
    }
}

void client_gate_send(struct client_gate *g, uint8_t type, struct bytes body)
{
    struct buffer packet = {0};

    (void)big_put32(buffer_reserve(&packet, PACKET_HEADER),
                    (uint32_t)type << 24 | (uint32_t)body.size);
    packet.size += PACKET_HEADER;
    buffer_put(&packet, body.data, body.size);
    client_gate_send_message(g, buffer_bytes(&packet));
    buffer_fini(&packet);
}

void client_gate_send_raw(struct client_gate *g, struct bytes bytes)
{
    buffer_put(&g->out, bytes.data, bytes.size);
    send_all(g);
}

void client_gate_half_close(struct client_gate *g)
{
    if (g->fd >= 0) {
        (void)shutdown(g->fd, SHUT_WR);
    }
}

void client_gate_fini(struct client_gate *g)
{
    client_gate_drop(g);
    for (int i = 0; i < 2; i++) {
        if (g->listener[i] >= 0) {
            (void)close(g->listener[i]);
        }
    }
    buffer_fini(&g->in);
    buffer_fini(&g->out);
    buffer_fini(&g->message);
}

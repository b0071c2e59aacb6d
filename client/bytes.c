/* SPDX-License-Identifier: Apache-2.0
 *
 * The bytes that a client wants sent, and those that came.
 */
#include "client/inside.h"

#include "base/big.h"

#include <string.h>

enum rhc_wish rhc_wishes(const struct rhc *c)
{
    if (c == NULL) {
        return RHC_NOTHING;
    }
    if (c->connection.hang_up) {
        return RHC_HANG_UP;
    }
    return c->connection.state == RHC_DIALLING ? RHC_DIAL : RHC_NOTHING;
}

uint32_t rhc_gateway(const struct rhc *c)
{
    return c == NULL ? 0 : c->connection.gateway;
}

/* Behind a bind that isn't answered yet nothing is sent: it would run even if that is refused. */
static bool may_ask(const struct rhc *c)
{
    const enum bind_state s = c->session.now.state;

    return c->connection.state == RHC_READY &&
           (s == BIND_NONE || s == BIND_HELD || s == BIND_LEAVING);
}

struct rhc_bytes rhc_output(struct rhc *c)
{
    if (c == NULL) {
        return bytes_at(NULL, 0);
    }
    const struct log *l = &c->log;

    c->bytes.sending_control = false;
    if (!is_connected(c) || c->connection.hang_up) {
        return bytes_at(NULL, 0);
    }
    if (l->partial > 0 && (c->bytes.control_size > 0 || !may_ask(c))) {
        const struct asked_entry *half =
            log_entry(l, l->next); // nothing may come between its halves

        return bytes_at(log_packet(&c->log, half) + l->partial, half->size - l->partial);
    }
    if (c->bytes.control_size > 0) {
        c->bytes.sending_control = true;
        return bytes_at(c->bytes.control, c->bytes.control_size);
    }
    return may_ask(c) ? log_output(&c->log) : bytes_at(NULL, 0);
}

void rhc_sent(struct rhc *c, size_t size, uint64_t now_ms)
{
    if (c == NULL) {
        return;
    }
    begin_step(c, now_ms);
    if (c->bytes.sending_control) {
        c->bytes.control_size -= size;
        memmove(c->bytes.control, c->bytes.control + size, c->bytes.control_size);
        c->bytes.sending_control = false;
    } else {
        log_sent(&c->log, size);
    }
}

void *rhc_room(struct rhc *c, size_t *size)
{
    if (size == NULL) {
        return NULL;
    }
    if (c == NULL) {
        *size = 0;
        return NULL;
    }
    if (c->bytes.in_at > 0) {
        memmove(c->bytes.in, c->bytes.in + c->bytes.in_at, c->bytes.in_end - c->bytes.in_at);
        c->bytes.in_end -= c->bytes.in_at;
        c->bytes.in_at = 0;
    }
    *size = is_connected(c) && !c->connection.hang_up ? c->bytes.in_max - c->bytes.in_end : 0;
    return c->bytes.in + c->bytes.in_end;
}

void rhc_received(struct rhc *c, size_t size, uint64_t now_ms)
{
    if (c == NULL) {
        return;
    }
    begin_step(c, now_ms);
    connection_heard(c);
    c->bytes.in_end += size;
}

void incoming_init(struct rhc *c, uint8_t *in, size_t in_max)
{
    c->bytes.in = in;
    c->bytes.in_max = in_max;
}

void bytes_forget(struct rhc *c)
{
    c->bytes.control_size = 0;
    c->bytes.sending_control = false;
    c->bytes.in_at = 0;
    c->bytes.in_end = 0;
}

bool packet_take(struct rhc *c, uint8_t *type, struct rhc_bytes *body)
{
    const size_t have = c->bytes.in_end - c->bytes.in_at;
    const uint8_t *at = c->bytes.in + c->bytes.in_at;

    if (!is_connected(c) || c->connection.hang_up || have < HEAD) {
        return false;
    }
    const size_t size = big_get24(at + 1);

    if (HEAD + size > c->bytes.in_max) {
        give_up(c, "a packet is larger than in_max");
        return false;
    }
    if (have < HEAD + size) {
        return false;
    }
    c->bytes.in_at += HEAD + size;
    *type = at[0];
    *body = bytes_at(at + HEAD, size);
    return true;
}

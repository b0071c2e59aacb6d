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
    if (c->hang_up) {
        return RHC_HANG_UP;
    }
    return c->state == RHC_DIALLING ? RHC_DIAL : RHC_NOTHING;
}

uint32_t rhc_gateway(const struct rhc *c)
{
    return c == NULL ? 0 : c->gateway;
}

/* Behind a bind that isn't answered yet nothing is sent: it would run even if that is refused. */
static bool may_ask(const struct rhc *c)
{
    const enum bind_state s = c->session.state;

    return c->state == RHC_READY && (s == BIND_NONE || s == BIND_HELD || s == BIND_LEAVING);
}

struct rhc_bytes rhc_output(struct rhc *c)
{
    if (c == NULL) {
        return bytes_at(NULL, 0);
    }
    struct log *l = &c->log;

    c->sending_control = false;
    if (!is_connected(c) || c->hang_up) {
        return bytes_at(NULL, 0);
    }
    if (l->partial > 0 && (c->control_size > 0 || !may_ask(c))) {
        const struct asked_entry *half =
            log_entry(l, l->next); // nothing may come between its halves

        return bytes_at(log_packet(l, half) + l->partial, half->size - l->partial);
    }
    if (c->control_size > 0) {
        c->sending_control = true;
        return bytes_at(c->control, c->control_size);
    }
    return may_ask(c) ? log_output(l) : bytes_at(NULL, 0);
}

void rhc_sent(struct rhc *c, size_t size, uint64_t now_ms)
{
    if (c == NULL) {
        return;
    }
    c->now_ms = now_ms;
    if (c->sending_control) {
        c->control_size -= size;
        memmove(c->control, c->control + size, c->control_size);
        c->sending_control = false;
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
    if (c->in_at > 0) {
        memmove(c->in, c->in + c->in_at, c->in_end - c->in_at);
        c->in_end -= c->in_at;
        c->in_at = 0;
    }
    *size = is_connected(c) && !c->hang_up ? c->in_max - c->in_end : 0;
    return c->in + c->in_end;
}

void rhc_received(struct rhc *c, size_t size, uint64_t now_ms)
{
    if (c == NULL) {
        return;
    }
    c->now_ms = now_ms;
    c->heard_ms = now_ms;
    c->pinged = false;
    c->in_end += size;
}

bool packet_take(struct rhc *c, uint8_t *type, struct rhc_bytes *body)
{
    const size_t have = c->in_end - c->in_at;
    const uint8_t *at = c->in + c->in_at;

    if (!is_connected(c) || c->hang_up || have < HEAD) {
        return false;
    }
    const size_t size = big_get24(at + 1);

    if (HEAD + size > c->in_max) {
        give_up(c, "a packet is larger than in_max");
        return false;
    }
    if (have < HEAD + size) {
        return false;
    }
    c->in_at += HEAD + size;
    *type = at[0];
    *body = bytes_at(at + HEAD, size);
    return true;
}

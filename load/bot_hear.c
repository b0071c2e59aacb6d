/* SPDX-License-Identifier: Apache-2.0
 *
 * What a bot hears from a gateway.
 */
#include "load/bot_inside.h"

#include <string.h>

enum { KICK_OF_ACTOR_MAX = 3, KICK_OF_GAME_MIN = 1000 };

static void on_hello_ack(struct bot *b, uint64_t now_us)
{
    if (b->all->config.bind) {
        bot_say_bind(b);
    } else {
        bot_be_live(b, now_us);
    }
}

/* ---- bind, resume ---- */

static void take_session(struct bot *b, struct bytes payload)
{
    struct session_packet s;

    b->bound = true;
    b->kept = packet_get_session(payload, &s) == ERR_OK && s.keep_ms > 0;
    b->numbered = false;
    bot_expect_push(b, 1);
    if (b->kept) {
        b->session = s.name;
        bot_expect_push(b, s.next);
    }
}

/* Later here, if it was told when, or elsewhere. */
static void bind_later(struct bot *b, uint32_t retry_ms, uint64_t now_us)
{
    if (retry_ms > 0) {
        b->next_us = now_us + (uint64_t)retry_ms * BOT_MS;
    } else {
        bot_go_away(b, bot_back_off_ms(b), now_us);
    }
}

static void on_bound(struct bot *b, const struct response_packet *r, uint64_t now_us)
{
    if (r->status == STATUS_OK) {
        take_session(b, r->payload);
        bot_be_live(b, now_us);
    } else if (r->status == STATUS_REJECTED) { // it takes no sessions
        bot_be_live(b, now_us);
    } else {
        bind_later(b, r->retry_ms, now_us);
    }
}

static bool begins_with(struct bytes b, const char *word)
{
    return b.size >= strlen(word) && memcmp(b.data, word, strlen(word)) == 0;
}

/* There is nothing to resume. */
static void on_gone(struct bot *b, struct bytes why, uint64_t now_us)
{
    const bool replaced = begins_with(why, "REPLACED");

    b->all->ledger.replaced += replaced ? 1 : 0;
    b->all->ledger.gone += replaced ? 0 : 1;
    bot_forget_session(b);
    if (replaced) {
        bot_go_away(b, bot_back_off_ms(b), now_us);
    } else {
        bot_say_bind(b);
    }
}

static bool on_resumed(struct bot *b, const struct response_packet *r, uint64_t now_us)
{
    struct session_packet s;

    if (r->status == STATUS_REJECTED) {
        on_gone(b, r->payload, now_us);
        return true;
    }
    if (r->status != STATUS_OK) {
        bind_later(b, r->retry_ms, now_us);
        return r->status != STATUS_BAD_REQUEST;
    }
    if (packet_get_session(r->payload, &s) != ERR_OK) {
        return false;
    }
    b->session = s.name;
    b->bound = true;
    b->resumed = true;
    b->all->ledger.resumed++;
    if (s.next > b->push) { // too many were pushed meanwhile
        b->all->ledger.pushes_lost += s.next - b->push;
        bot_note(b, "let go: pushes before", s.next);
        b->numbered = false;
        bot_expect_push(b, s.next);
    }
    bot_say_again(b);
    bot_be_live(b, now_us);
    return true;
}

static void on_begun(struct bot *b, const struct session_packet *s)
{
    b->all->ledger.begun_afresh++;
    b->session = s->name;
    b->counted = b->numbered = false;
    for (uint32_t i = 0; i < b->asked_count; i++) {
        b->asked[i].orphaned = true;
    }
    bot_expect_push(b, s->next);
}

/* ---- answers ---- */

static bool on_response(struct bot *b, const struct response_packet *r, uint64_t now_us)
{
    if (b->bind_name != 0 && r->request == b->bind_name) {
        b->bind_name = 0;
        if (b->kept) {
            return on_resumed(b, r, now_us);
        }
        on_bound(b, r, now_us);
        return true;
    }
    if (b->unbind_name != 0 && r->request == b->unbind_name) {
        bot_be_over(b, now_us);
        return true;
    }
    bot_judge_answer(b, r, now_us);
    return true;
}

/* ---- the gateway's own words ---- */

static void on_goaway(struct bot *b, const struct notice_packet *n, uint64_t now_us)
{
    struct bot_ledger *l = &b->all->ledger;

    l->hint_max_ms = n->number > l->hint_max_ms ? n->number : l->hint_max_ms;
    if (b->stage == BOT_LIVE) {
        l->told_to_go++;
        b->leaving = true;
        return;
    }
    l->turned_away++;
    if (b->all->config.once) {
        bot_be_over(b, now_us);
        return;
    }
    bot_go_elsewhere(b);
    bot_go_away(b, n->number, now_us);
}

static void on_kick(struct bot *b, const struct notice_packet *n, uint64_t now_us)
{
    struct bot_ledger *l = &b->all->ledger;

    l->kicked++;
    l->kick_code = l->kick_code == 0 ? n->number : l->kick_code;
    if (n->number <= KICK_OF_ACTOR_MAX || n->number >= KICK_OF_GAME_MIN) {
        bot_forget_session(b);
    }
    bot_go_away(b, bot_back_off_ms(b), now_us);
}

bool bot_hear(struct bot *b, const struct packet *p, uint64_t now_us)
{
    struct response_packet response;
    struct session_packet session;
    struct notice_packet notice;
    struct push_packet push;

    switch (p->type) {
    case PACKET_HELLO_ACK:
        on_hello_ack(b, now_us);
        return true;
    case PACKET_PING:
        packet_put_ping(&b->out, PACKET_PONG, p->body);
        return true;
    case PACKET_RESPONSE:
        return packet_get_response(p->body, &response) == ERR_OK &&
               on_response(b, &response, now_us);
    case PACKET_PUSH:
        if (packet_get_push(p->body, &push) != ERR_OK) {
            return false;
        }
        bot_judge_push(b, &push);
        bot_ack_later(b, now_us);
        return true;
    case PACKET_BEGUN:
        if (!b->kept || packet_get_session(p->body, &session) != ERR_OK) {
            return false;
        }
        on_begun(b, &session);
        return true;
    case PACKET_KICK:
    case PACKET_GOAWAY:
        if (packet_get_notice(p->body, &notice) != ERR_OK) {
            return false;
        }
        (p->type == PACKET_KICK ? on_kick : on_goaway)(b, &notice, now_us);
        return true;
    default:
        return p->type == PACKET_AUTH_OK || p->type == PACKET_PONG ||
               (p->type & PACKET_OPTIONAL) != 0;
    }
}

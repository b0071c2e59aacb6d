/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/bot.h"

#include "base/assert.h"
#include "base/mem.h"
#include "gateway/packet.h"
#include "gateway/token.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MS = 1000,
    LOGIN_MS = 20000,    /* from connecting to LIVE; else it tries again */
    RETRY_MIN_MS = 100,  /* after a failure, and twice that after the next … */
    RETRY_MAX_MS = 5000, /* … until this */
    TOKEN_TTL_S = 3600,
    TEXT_MAX = 128,
};

enum stage { AWAY, CONNECTING, GREETING, LIVE, OVER };

struct asked {
    uint64_t since_us;
    uint32_t name;
};

struct bot {
    struct bots *all;
    uint32_t number;
    uint32_t name;      /* of its last packet that wants an answer */
    uint32_t bind_name; /* of the bind under way; 0 = none */
    uint32_t failures;  /* to log in, one after the other */
    uint32_t address;
    uint8_t stage;
    bool closing;  /* it wants its line closed */
    bool ending;   /* it is through when it has its answers */
    bool leaving;  /* it was told to go */
    bool counted;  /* `count` is known */
    bool was_live; /* some time */
    uint8_t asked_count;
    struct asked asked[BOT_DEPTH]; /* the oldest first */
    uint32_t ran_name;             /* of the last answer of this line to a request that ran */
    uint64_t stage_us;             /* since when */
    uint64_t next_us;              /* AWAY: it connects; LIVE: it asks; GREETING: it binds again */
    uint64_t drop_us;              /* it drops the line; UINT64_MAX = never */
    uint64_t over_us;              /* it is through; UINT64_MAX = never */
    uint64_t count;                /* requests that its actor has run, as it said last */
    uint64_t unknown;              /* those that it may have run since */
    uint64_t push;                 /* number of the next */
    struct buffer in;
    struct buffer out;
};

struct bots {
    struct bots_config config;
    struct bot_ledger ledger;
    struct prng chance;
    struct bot *bot; /* owned */
    uint64_t waiting;
    bool stopping;
    char *payload; /* owned: what every request begins with */
};

/* ---- all of them ---- */

bool bot_ledger_is_clean(const struct bot_ledger *l)
{
    return l->lost + l->duplicated + l->disordered + l->wrong + l->pushes_lost +
               l->pushes_duplicated ==
           0;
}

struct bots *bots_new(const struct bots_config *config, uint64_t now_us)
{
    struct bots *all = mem_new(1, sizeof *all);

    ASSERT(config->count >= 1 && config->addresses >= 1);
    all->config = *config;
    all->chance.state = config->seed;
    all->bot = mem_new(config->count, sizeof *all->bot);
    all->payload = mem_new(1, config->size + TEXT_MAX);
    for (uint32_t i = 0; i < config->count; i++) {
        all->bot[i] = (struct bot){.all = all,
                                   .number = i,
                                   .address = i % config->addresses,
                                   .next_us = now_us,
                                   .drop_us = UINT64_MAX,
                                   .over_us = UINT64_MAX};
        if (config->rate > 0) {
            all->bot[i].next_us += (uint64_t)i * 1000000 / config->rate;
        }
    }
    return all;
}

void bots_free(struct bots *all)
{
    if (all == NULL) {
        return;
    }
    for (uint32_t i = 0; i < all->config.count; i++) {
        buffer_fini(&all->bot[i].in);
        buffer_fini(&all->bot[i].out);
    }
    mem_free(all->bot);
    mem_free(all->payload);
    mem_free(all);
}

struct bot *bots_at(struct bots *all, uint32_t number)
{
    ASSERT(number < all->config.count);
    return &all->bot[number];
}

const struct bot_ledger *bots_ledger(const struct bots *all)
{
    return &all->ledger;
}

void bots_stop(struct bots *all)
{
    all->stopping = true;
}

uint64_t bots_waiting(const struct bots *all)
{
    return all->waiting;
}

/* ---- stages ---- */

static void enter(struct bot *b, enum stage stage, uint64_t now_us)
{
    struct bot_ledger *l = &b->all->ledger;

    l->live -= b->stage == LIVE ? 1 : 0;
    l->live += stage == LIVE ? 1 : 0;
    l->live_max = l->live > l->live_max ? l->live : l->live_max;
    l->over += stage == OVER ? 1 : 0;
    b->stage = (uint8_t)stage;
    b->stage_us = now_us;
}

/* Its line goes, or has gone: what was under way may have run. */
static void leave_line(struct bot *b)
{
    b->all->ledger.unknown += b->asked_count;
    b->unknown += b->asked_count;
    b->all->waiting -= b->asked_count;
    b->asked_count = 0;
    b->bind_name = 0;
    b->ran_name = 0;
    b->push = 1;
    b->leaving = false;
    b->drop_us = UINT64_MAX;
    buffer_fini(&b->in);
    buffer_fini(&b->out);
}

static void go_away(struct bot *b, uint64_t for_ms, uint64_t now_us)
{
    leave_line(b);
    b->closing = true;
    enter(b, AWAY, now_us);
    b->next_us = now_us + for_ms * MS;
}

static void be_over(struct bot *b, uint64_t now_us)
{
    leave_line(b);
    b->closing = true;
    enter(b, OVER, now_us);
}

/* After a failure: later each time, at the next gateway. */
static uint64_t back_off_ms(struct bot *b)
{
    const unsigned steps = b->failures < 6 ? b->failures : 6;
    const uint64_t most = (uint64_t)RETRY_MIN_MS << steps;

    b->failures++;
    b->address = (b->address + 1) % b->all->config.addresses;
    return prng_between(
        &b->all->chance, RETRY_MIN_MS / 2, most < RETRY_MAX_MS ? most : RETRY_MAX_MS);
}

/* ---- what it sends ---- */

static struct bytes id_of(const struct bot *b, char text[TEXT_MAX])
{
    const int size = snprintf(text, TEXT_MAX, "%s%u", b->all->config.prefix, b->number);

    return bytes_of(text, (size_t)size);
}

static void put_auth(struct bot *b)
{
    const struct bots_config *c = &b->all->config;
    struct token token = {.expires_s = c->unix_s + TOKEN_TTL_S, .kind = c->kind};
    char text[TEXT_MAX];
    const struct bytes id = id_of(b, text);
    struct buffer shown = {0};

    token.id_size = (uint8_t)id.size;
    memcpy(token.id, id.data, id.size);
    (void)snprintf(token.cluster, sizeof token.cluster, "%s", c->cluster);
    const enum err bad = token_put(&shown, &token, &c->keys->key[0]);
    ASSERT(bad == ERR_OK); // names were checked at the start
    packet_put_auth(&b->out, buffer_bytes(&shown));
    buffer_fini(&shown);
}

static void put_request(struct bot *b, enum packet_type type, struct bytes payload)
{
    char text[TEXT_MAX];

    packet_put_request(&b->out,
                       type,
                       &(struct request_packet){.request = ++b->name,
                                                .kind = b->all->config.kind,
                                                .id = id_of(b, text),
                                                .payload = payload});
}

static void put_bind(struct bot *b)
{
    put_request(b, PACKET_BIND, (struct bytes){NULL, 0});
    b->bind_name = b->name;
    b->next_us = UINT64_MAX;
}

/* The name of a request is its text too: an echo tells which one it was. */
static struct bytes payload_of(const struct bot *b, uint32_t name)
{
    const struct bots_config *c = &b->all->config;
    const int size = snprintf(b->all->payload, TEXT_MAX, "%u", name);

    if ((size_t)size >= c->size) {
        return bytes_of(b->all->payload, (size_t)size);
    }
    memset(b->all->payload + size, '.', c->size - (size_t)size);
    return bytes_of(b->all->payload, c->size);
}

static void ask(struct bot *b, uint64_t now_us)
{
    put_request(b, PACKET_REQUEST, payload_of(b, b->name + 1));
    b->asked[b->asked_count++] = (struct asked){.since_us = now_us, .name = b->name};
    b->all->waiting++;
    b->all->ledger.asked++;
}

/* ---- being in ---- */

static uint64_t next_drop_us(struct bots *all, uint64_t now_us)
{
    const double uniform = ((double)(prng_u64(&all->chance) >> 11) + 0.5) / 9007199254740992.0;

    if (all->config.drop_percent == 0) {
        return UINT64_MAX;
    }
    return now_us + (uint64_t)(-log(uniform) * 60e6 * 100 / all->config.drop_percent);
}

static void be_live(struct bot *b, uint64_t now_us)
{
    const struct bots_config *c = &b->all->config;
    struct bot_ledger *l = &b->all->ledger;

    histogram_add(&l->login, now_us - b->stage_us);
    l->logins++;
    if (!b->was_live) {
        b->was_live = true;
        l->last_login_us = now_us;
        b->over_us = c->stay_ms > 0 ? now_us + (uint64_t)c->stay_ms * MS : UINT64_MAX;
    }
    b->failures = 0;
    enter(b, LIVE, now_us);
    b->next_us = UINT64_MAX;
    if (c->ask_ms > 0) { // not all at once
        b->next_us = now_us + prng_between(&b->all->chance, 0, (uint64_t)c->ask_ms * MS);
    }
    b->drop_us = next_drop_us(b->all, now_us);
}

static void on_hello_ack(struct bot *b, uint64_t now_us)
{
    if (b->all->config.bind) {
        put_bind(b);
    } else {
        be_live(b, now_us);
    }
}

static void on_bound(struct bot *b, const struct response_packet *r, uint64_t now_us)
{
    b->bind_name = 0;
    if (r->status == STATUS_OK || r->status == STATUS_REJECTED) { // or it takes no sessions
        b->push = 1;
        be_live(b, now_us);
    } else if (r->retry_ms > 0) {
        b->next_us = now_us + (uint64_t)r->retry_ms * MS;
    } else {
        go_away(b, back_off_ms(b), now_us);
    }
}

/* ---- answers ---- */

static bool has_run(uint8_t status)
{
    return status == STATUS_OK || status == STATUS_ACTOR_FAILED;
}

static bool may_have_run(uint8_t status)
{
    return status == STATUS_UNKNOWN || status == STATUS_TIMEOUT || status == STATUS_ACTOR_FAILED;
}

static void check_echo(struct bot *b, const struct response_packet *r)
{
    b->all->ledger.wrong += bytes_equal(r->payload, payload_of(b, r->request)) ? 0 : 1;
}

/* One more than it said last, or as many more as may have run since. */
static void check_count(struct bot *b, const struct response_packet *r)
{
    struct bot_ledger *l = &b->all->ledger;
    char text[24] = "";

    if (r->payload.size == 0 || r->payload.size >= sizeof text) {
        l->wrong++;
        return;
    }
    memcpy(text, r->payload.data, r->payload.size);
    const uint64_t count = strtoull(text, NULL, 10);
    const uint64_t least = b->count + 1;
    const uint64_t most = least + b->unknown;
    if (b->counted && count < least) {
        l->lost += least - count;
    } else if (b->counted && count > most) {
        l->duplicated += count - most;
    }
    b->counted = true;
    b->count = count;
    b->unknown = count < most ? most - count : 0; // the others may still come to run
}

static void check(struct bot *b, const struct response_packet *r)
{
    switch (b->all->config.check) {
    case BOT_CHECK_NONE:
        return;
    case BOT_CHECK_ECHO:
        check_echo(b, r);
        return;
    case BOT_CHECK_COUNT:
        check_count(b, r);
        return;
    }
}

static void on_answer(struct bot *b, const struct response_packet *r, uint64_t now_us)
{
    struct bot_ledger *l = &b->all->ledger;
    size_t i = 0;

    while (i < b->asked_count && b->asked[i].name != r->request) {
        i++;
    }
    if (i == b->asked_count) {
        l->duplicated++;
        return;
    }
    const uint64_t since_us = b->asked[i].since_us;
    b->asked_count--;
    b->all->waiting--;
    memmove(&b->asked[i], &b->asked[i + 1], (b->asked_count - i) * sizeof b->asked[0]);
    l->status[r->status]++;
    if (has_run(r->status)) {
        l->disordered += r->request < b->ran_name ? 1 : 0;
        b->ran_name = r->request;
    }
    if (may_have_run(r->status)) {
        l->unknown += r->status != STATUS_ACTOR_FAILED ? 1 : 0;
        b->unknown++;
    }
    if (r->status == STATUS_OK) {
        histogram_add(&l->latency, now_us - since_us);
        check(b, r);
    }
}

static void on_push(struct bot *b, const struct push_packet *p)
{
    struct bot_ledger *l = &b->all->ledger;

    l->pushes++;
    if (p->sequence == 1 && b->push > 1) {
        l->begun_afresh++;
    } else if (p->sequence < b->push) {
        l->pushes_duplicated++;
        return;
    } else {
        l->pushes_lost += p->sequence - b->push;
    }
    b->push = p->sequence + 1;
}

static void on_goaway(struct bot *b, const struct notice_packet *n, uint64_t now_us)
{
    struct bot_ledger *l = &b->all->ledger;

    l->hint_max_ms = n->number > l->hint_max_ms ? n->number : l->hint_max_ms;
    if (b->stage == LIVE) {
        l->told_to_go++;
        b->leaving = true;
        return;
    }
    l->turned_away++;
    if (b->all->config.once) {
        be_over(b, now_us);
        return;
    }
    b->address = (b->address + 1) % b->all->config.addresses;
    go_away(b, n->number, now_us);
}

static void on_kick(struct bot *b, const struct notice_packet *n, uint64_t now_us)
{
    struct bot_ledger *l = &b->all->ledger;

    l->kicked++;
    l->kick_code = l->kick_code == 0 ? n->number : l->kick_code;
    go_away(b, back_off_ms(b), now_us);
}

/* False: it makes no sense here. */
static bool on_packet(struct bot *b, const struct packet *p, uint64_t now_us)
{
    struct response_packet response;
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
        if (packet_get_response(p->body, &response) != ERR_OK) {
            return false;
        }
        if (b->bind_name != 0 && response.request == b->bind_name) {
            on_bound(b, &response, now_us);
        } else {
            on_answer(b, &response, now_us);
        }
        return true;
    case PACKET_PUSH:
        if (packet_get_push(p->body, &push) != ERR_OK) {
            return false;
        }
        on_push(b, &push);
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

/* Nothing is owed to it, and it was told to go: elsewhere. Or it is through. */
static void go_if_told(struct bot *b, uint64_t now_us)
{
    if (b->stage != LIVE || b->asked_count > 0) {
        return;
    }
    if (b->ending) {
        be_over(b, now_us);
    } else if (b->leaving) {
        b->address = (b->address + 1) % b->all->config.addresses;
        go_away(b, prng_between(&b->all->chance, 0, RETRY_MIN_MS), now_us);
    }
}

void bot_on_bytes(struct bot *b, struct bytes in, uint64_t now_us)
{
    size_t at = 0;

    if (b->closing) {
        return;
    }
    buffer_put(&b->in, in.data, in.size);
    while (!b->closing) {
        const struct bytes rest = bytes_of(b->in.data + at, b->in.size - at);
        struct packet p;
        const enum packet_result result = packet_next(rest, PACKET_BODY_MAX, &p);

        if (result == PACKET_MORE) {
            break;
        }
        at += PACKET_HEADER + p.body.size;
        if (!on_packet(b, &p, now_us)) {
            b->all->ledger.wrong++;
            go_away(b, back_off_ms(b), now_us);
        }
    }
    if (!b->closing) { // else its buffers have gone
        buffer_consume(&b->in, at);
        go_if_told(b, now_us);
    }
}

/* ---- the line ---- */

enum bot_wish bot_wish(const struct bot *b)
{
    if (b->closing) {
        return BOT_CLOSE;
    }
    return b->stage == AWAY && b->next_us == 0 && !b->all->stopping ? BOT_CONNECT : BOT_NOTHING;
}

uint32_t bot_address(const struct bot *b)
{
    return b->address;
}

struct buffer *bot_output(struct bot *b)
{
    return &b->out;
}

void bot_on_connecting(struct bot *b, uint64_t now_us)
{
    ASSERT(b->stage == AWAY);
    b->all->ledger.attempts++;
    b->push = 1;
    enter(b, CONNECTING, now_us);
}

void bot_on_connected(struct bot *b, uint64_t now_us)
{
    (void)now_us; // GREETING goes on from CONNECTING: a login takes both
    b->stage = GREETING;
    b->next_us = UINT64_MAX;
    packet_put_hello(
        &b->out,
        &(struct hello_packet){.version_min = PACKET_VERSION, .version_max = PACKET_VERSION});
    if (b->all->config.keys != NULL) {
        put_auth(b);
    }
}

void bot_on_closed(struct bot *b, uint64_t now_us)
{
    struct bot_ledger *l = &b->all->ledger;

    if (!b->closing && b->stage != AWAY && b->stage != OVER) {
        l->cut += b->stage != CONNECTING ? 1 : 0;
        l->unreachable += b->stage == CONNECTING ? 1 : 0;
        go_away(b, back_off_ms(b), now_us);
    }
    b->closing = false;
}

/* ---- time ---- */

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

uint64_t bot_due_us(const struct bot *b)
{
    const uint64_t login_us = b->stage_us + (uint64_t)LOGIN_MS * MS;
    uint64_t live_us = least(b->next_us, least(b->drop_us, b->over_us));

    if (b->asked_count > 0) {
        live_us = least(live_us, b->asked[0].since_us + (uint64_t)b->all->config.answer_ms * MS);
    }
    switch ((enum stage)b->stage) {
    case AWAY:
        return b->next_us == 0 || b->all->stopping ? UINT64_MAX : b->next_us;
    case CONNECTING:
        return login_us;
    case GREETING:
        return least(login_us, b->next_us);
    case LIVE:
        return live_us;
    case OVER:
        return UINT64_MAX;
    }
    UNREACHABLE();
}

static void give_up_late(struct bot *b, uint64_t now_us)
{
    while (b->asked_count > 0 &&
           b->asked[0].since_us + (uint64_t)b->all->config.answer_ms * MS <= now_us) {
        b->all->ledger.lost++;
        b->unknown++;
        b->asked_count--;
        b->all->waiting--;
        memmove(&b->asked[0], &b->asked[1], b->asked_count * sizeof b->asked[0]);
    }
}

static void tick_live(struct bot *b, uint64_t now_us)
{
    const struct bots_config *c = &b->all->config;

    give_up_late(b, now_us);
    if (b->all->stopping) {
        b->next_us = b->drop_us = b->over_us = UINT64_MAX;
        return;
    }
    if (now_us >= b->over_us) {
        b->ending = true;
        b->next_us = b->drop_us = b->over_us = UINT64_MAX;
    }
    if (now_us >= b->drop_us) {
        b->all->ledger.dropped++;
        go_away(b, prng_between(&b->all->chance, 0, c->away_ms), now_us);
        return;
    }
    if (now_us >= b->next_us && c->ask_ms > 0) {
        if (b->asked_count < BOT_DEPTH && !b->leaving) {
            ask(b, now_us);
        }
        b->next_us += (uint64_t)c->ask_ms * MS;
        b->next_us = b->next_us > now_us ? b->next_us : now_us + (uint64_t)c->ask_ms * MS;
    }
    go_if_told(b, now_us);
}

static void tick_login(struct bot *b, uint64_t now_us)
{
    if (now_us >= b->stage_us + (uint64_t)LOGIN_MS * MS) {
        b->all->ledger.cut++;
        go_away(b, back_off_ms(b), now_us);
    } else if (b->stage == GREETING && now_us >= b->next_us) {
        put_bind(b);
    }
}

void bot_tick(struct bot *b, uint64_t now_us)
{
    if (b->closing) {
        return;
    }
    switch ((enum stage)b->stage) {
    case AWAY:
        if (now_us >= b->next_us && !b->all->stopping) {
            b->next_us = 0; // now
        }
        return;
    case CONNECTING:
    case GREETING:
        tick_login(b, now_us);
        return;
    case LIVE:
        tick_live(b, now_us);
        return;
    case OVER:
        return;
    }
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * A connection's life: its input to commands or packets, its replies in order,
 * and the room it may use.
 */
#include "gateway/client/client.h"

#include "base/assert.h"
#include "base/mem.h"
#include "gateway/client/ask.h"

#include <stdio.h>
#include <string.h>

enum {
    IDLE_BUFFER_MAX = 4096,       /* an idle connection keeps no more of each buffer */
    BUSY_BUFFER_MAX = 64 * 1024,  /* nor one that is not, of its output */
    HALF_COMMAND_MAX = 64 * 1024, /* what may grow still while all buffers together are full */
    REPLY_SIZE_GUESS = 4096,      /* of a connection's first replies */
};

struct clients_config clients_config_default(void)
{
    return (struct clients_config){
        .version = "",
        .in_flight_max = 1024,
        .connections_max = 10000,
        .stall_ms = 60000,
        .deadline_ms = 10000,
        .unsent_max = (size_t)1024 * 1024,
        .output_max = (size_t)64 * 1024 * 1024,
        .buffers_max = (size_t)256 * 1024 * 1024,
        .push_unread_max = (size_t)1024 * 1024,
        .packet_size_max = (size_t)64 * 1024,
        .heartbeat_ms = 30000,
        .hello_ms = 5000,
        .head_ms = 5000,
        .auth_ms = 5000,
        .unauthenticated_max = 4096,
        .unauthenticated_address_max = 64,
        .login = {.spread = 16, .at_once_max = 512},
        .threads = 1,
        .trace_rate = 1000,
    };
}

/* ---- all of them ---- */

struct clients *clients_new(const struct clients_config *config, struct router *router,
                            uint64_t now_us)
{
    struct clients *all = mem_new(1, sizeof *all);

    all->config = *config;
    all->router = router;
    all->since_us = now_us;
    if (config->unauthenticated == NULL) {
        all->own_unauthenticated = unauthenticated_new(config->admission.seed);
        all->config.unauthenticated = all->own_unauthenticated;
    }
    if (config->shared_admission == NULL) {
        all->own_admission = admission_new(&config->admission);
        all->config.shared_admission = all->own_admission;
    }
    spans_init(&all->spans, config->tracing, config->trace_seed);
    list_init(&all->order);
    list_init(&all->bound);
    list_init(&all->left_logins);
    list_init(&all->due);
    list_init(&all->turn);
    list_init(&all->keyed_over);
    return all;
}

void clients_configure(struct clients *all, const struct clients_config *config)
{
    all->config.auth_ms = config->auth_ms;
    all->config.head_ms = config->head_ms;
    all->config.deadline_ms = config->deadline_ms;
    all->config.requests = config->requests;
    all->config.connections_max = config->connections_max;
    all->config.unauthenticated_max = config->unauthenticated_max;
    all->config.unauthenticated_address_max = config->unauthenticated_address_max;
    all->config.login.at_once_max = config->login.at_once_max;
}

void clients_free(struct clients *all)
{
    if (all == NULL) {
        return;
    }
    ASSERT(all->table.count == 0);
    ASSERT(all->client_sessions.count == 0);
    logins_end(all);
    keyed_end(all);
    table_fini(&all->table);
    table_fini(&all->client_sessions);
    buffer_fini(&all->words);
    buffer_fini(&all->body);
    unauthenticated_free(all->own_unauthenticated);
    admission_free(all->own_admission);
    mem_free(all);
}

/* By a session that is not the connection's own. */
static struct client *find_by_other(const struct clients *all, uint64_t session)
{
    struct client *c = client_session_find(all, session);

    return c == NULL ? keyed_find(all, session) : c;
}

struct client *clients_find(struct clients *all, uint64_t session)
{
    if (all->last != NULL && all->last->session == session) {
        return all->last;
    }
    struct table_link *l = table_first(&all->table, table_mix(session));

    // table_mix() is a bijection: equal hashes are equal sessions.
    if (l != NULL) {
        all->last = CONTAINER_OF(l, struct client, link);
    }
    return l == NULL ? find_by_other(all, session) : all->last;
}

void clients_stats(const struct clients *all, struct clients_stats *out)
{
    *out = all->stats;
    out->pushes = all->pushes;
}

struct transport_stats *clients_transports(struct clients *all)
{
    return &all->stats.transports;
}

/* ---- life ---- */

void client_account(struct client *c)
{
    const size_t now = c->in.cap + c->out.cap + c->writing + c->slots.size;

    c->all->stats.buffered += now;
    c->all->stats.buffered -= c->held;
    c->held = now;
}

static const struct dialect *const dialects[] = {[CLIENT_RESP] = &dialect_resp,
                                                 [CLIENT_PACKETS] = &dialect_packets,
                                                 [CLIENT_HTTP] = &dialect_http};

struct client *client_new(struct clients *all, enum client_speech speech, const char *address,
                          uint64_t now_us)
{
    struct client *c = mem_new(1, sizeof *c);

    c->all = all;
    c->dialect = dialects[speech];
    c->session = router_session(all->router);
    c->id = all->drawn++ * all->config.threads + all->config.thread + 1;
    c->since_us = now_us;
    c->progress_us = now_us;
    c->protocol = speech == CLIENT_RESP ? 2 : 0;
    c->http = speech == CLIENT_HTTP ? api_client_new(now_us) : NULL;
    packet_opened(c, now_us);
    c->lost_why = NOTE_LOST_CLOSED;
    c->reply_size = REPLY_SIZE_GUESS;
    (void)snprintf(c->address, sizeof c->address, "%s", address);
    client_take_place(c);
    auth_begin(c);
    table_put(&all->table, &c->link, table_mix(c->session));
    list_push_back(&all->order, &c->order);
    all->stats.accepted++;
    all->stats.connected++;
    return c;
}

void client_free(struct client *c, uint64_t now_us, struct router_effects *effects)
{
    struct clients *all = c->all;
    const struct router_event event = {
        .type = ROUTER_SESSION_CLOSED, .now_us = now_us, .session = c->session};

    binding_end(c, now_us, effects);
    client_session_close(c, now_us, effects);
    keyed_leave(c, now_us, effects);
    login_leave(c, now_us);
    auth_end(c);
    client_let_out(c, now_us);
    client_leave_place(c);
    router_step(all->router, &event, effects);
    table_remove(&all->table, &c->link);
    all->last = all->last == c ? NULL : all->last;
    list_remove(&c->order);
    all->stats.connected--;
    all->stats.buffered -= c->held;
    buffer_fini(&c->in);
    buffer_fini(&c->out);
    slots_fini(&c->slots);
    mem_free(c->http);
    mem_free(c);
}

void *client_user(const struct client *c)
{
    return c->user;
}

void client_set_user(struct client *c, void *user)
{
    c->user = user;
}

/* ---- requests ---- */

static enum router_share share_of_router(const struct client *c)
{
    return router_share(c->all->router,
                        &(struct router_asker){
                            .asked = c->asked, .origin = c->origin, .known = c->identity != NULL});
}

/* What is asked beyond a share is taken still, for it was read: one request of a connection. */
void client_rest_if_over(struct client *c)
{
    switch (share_of_router(c)) {
    case ROUTER_SHARE_FAIR:
        return;
    case ROUTER_SHARE_ENTITY:
        c->all->stats.rests_entity += !c->rests;
        break;
    case ROUTER_SHARE_ORIGIN:
        c->all->stats.rests_origin += !c->rests;
        break;
    }
    c->rests = true;
}

void client_ask(struct client *c, const struct ask *ask)
{
    client_ask_now(c, ask);
}

bool client_rests(const struct client *c)
{
    return c->rests;
}

void client_wake(struct client *c, uint64_t now_us)
{
    c->rests = c->rests && (now_us < c->rests_until_us || share_of_router(c) != ROUTER_SHARE_FAIR);
}

__attribute__((noinline)) static void on_own_reply(struct client *c,
                                                   const struct router_effect *reply,
                                                   struct bytes body, uint64_t now_us)
{
    if (reply->ticket == TICKET_RESUME) {
        binding_resumed(c, reply, body, now_us);
        client_account(c);
    } else if (reply->ticket == TICKET_LOGIN) {
        c->now_us = now_us;
        login_answered(c, reply, body, now_us);
        client_account(c);
    }
}

void client_on_reply(struct client *c, const struct router_effect *reply, struct bytes body,
                     uint64_t now_us)
{
    if (reply->ticket >= TICKET_LOGIN) {
        on_own_reply(c, reply, body, now_us);
        return;
    }
    if (reply->session != c->session && !client_session_owns(c, reply) &&
        !keyed_answered(c, reply)) {
        return; // of a former connection, and not asked again
    }
    c->now_us = now_us;
    client_took_replies(c, 1);
    client_learn_size(c, body.size);
    client_owes(c, now_us);
    c->dialect->answer(c, reply, body);
    if (c->binding != NULL) {
        binding_pump(c, now_us);
    }
    client_account(c);
}

size_t client_on_replies(struct client *c, const struct router_effects *effects, size_t from,
                         uint64_t now_us)
{
    const struct router_effect *first = &effects->item[from];

    if (c->binding != NULL || c->dialect->answers == NULL || !client_takes_reply(c, first)) {
        client_on_reply(c, first, router_effect_bytes(effects, first), now_us);
        return 1;
    }
    c->now_us = now_us;
    client_owes(c, now_us);
    const size_t end = c->dialect->answers(c, effects, from);
    client_took_replies(c, end - from);
    client_account(c);
    return end - from;
}

void client_vouch(struct client *c, uint64_t version, uint64_t now_us)
{
    if (c->client_session != NULL && !c->closing) {
        client_owes(c, now_us);
        c->dialect->vouch(c, version);
        client_account(c);
    }
}

/* ---- input ---- */

void client_owes(struct client *c, uint64_t now_us)
{
    if (client_unsent(c) == 0) {
        c->progress_us = now_us;
    }
}

size_t client_unsent(const struct client *c)
{
    return c->out.size + c->writing;
}

size_t client_room(const struct client *c, size_t size)
{
    const struct clients_config *config = &c->all->config;
    const size_t owed = slots_count(&c->slots);
    const size_t asked = owed > c->in_flight ? owed : c->in_flight;
    const size_t unsent = client_unsent(c);
    const size_t expected = unsent + c->in_flight * c->reply_size;
    const bool stops = c->closing || c->dropped || c->waiting || c->rests;
    const bool alone = c->in_flight == 0 && unsent == 0;

    if (stops || asked >= config->in_flight_max || (expected >= config->unsent_max && !alone) ||
        (unsent > 0 && c->all->stats.buffered > config->buffers_max)) {
        return 0;
    }
    // Each that is asked is owed a reply.
    const size_t reply_size = c->reply_size > 0 ? c->reply_size : 1;
    const size_t replies = alone ? 1 : (config->unsent_max - expected - 1) / reply_size + 1;
    const size_t some = config->in_flight_max - asked;
    const size_t room = router_room(c->all->router, size);
    const size_t least = some < replies ? some : replies;

    return room < least ? room : least;
}

bool client_has_room(const struct client *c)
{
    return client_room(c, 0) > 0;
}

bool client_wants_input(const struct client *c)
{
    // Not while whole commands wait: room comes and goes for all at once, and each time every
    // connection would be read from.
    const bool used_up = c->in.size == c->in_at || c->half;

    return used_up && client_has_room(c) && !c->ended;
}

/* The input that is used is dropped, at last in one piece: moving it for each command would cost
 * more than the commands. */
static void drop_used_input(struct client *c, size_t used)
{
    c->in_at += used;
    if (c->in_at == c->in.size) {
        buffer_clear(&c->in);
        c->in_at = 0;
        if (c->in.cap > IDLE_BUFFER_MAX) {
            buffer_fini(&c->in);
        }
    } else if (c->in_at > c->in.size / 2) {
        buffer_consume(&c->in, c->in_at);
        c->in_at = 0;
    }
}

static void run_input(struct client *c)
{
    const struct bytes rest = {c->in.data + c->in_at, c->in.size - c->in_at};

    drop_used_input(c, c->dialect->take(c, rest));
}

/* While all buffers together are full, a command that is still coming may not grow. */
static void limit_half_command(struct client *c)
{
    const bool all_full = c->all->stats.buffered > c->all->config.buffers_max;

    if (all_full && client_has_room(c) && c->in.size - c->in_at > HALF_COMMAND_MAX) {
        c->dialect->refuse_half(c);
        buffer_fini(&c->in);
        c->in_at = 0;
    }
}

static void begin(struct client *c, uint64_t now_us, struct router_effects *effects)
{
    client_enter(c, now_us, effects);
    client_owes(c, now_us);
}

static void end(struct client *c)
{
    client_exit(c);
    client_account(c);
}

void client_on_bytes(struct client *c, struct bytes in, uint64_t now_us,
                     struct router_effects *effects)
{
    begin(c, now_us, effects);
    if (c->closing || c->dropped) {
        end(c);
        return;
    }
    if (c->in.size == 0) {
        // Whole commands run where they were read to; only a rest is copied.
        const size_t used = c->dialect->take(c, in);

        buffer_put(&c->in, in.data + used, in.size - used);
    } else {
        buffer_put(&c->in, in.data, in.size);
        run_input(c);
    }
    limit_half_command(c);
    end(c);
}

void client_on_open(struct client *c, uint64_t now_us)
{
    packet_opened(c, now_us);
    http_opened(c, now_us);
}

bool client_lingers(const struct client *c)
{
    return c->http != NULL && !c->ended;
}

bool client_is_leaving(const struct client *c)
{
    return c->packets.leaving;
}

void client_on_end(struct client *c)
{
    c->ended = true;
}

void client_drain(struct client *c, uint64_t now_us)
{
    if (c->dialect->drain == NULL) {
        client_on_end(c);
        return;
    }
    begin(c, now_us, NULL);
    c->dialect->drain(c);
    end(c);
}

void client_resume(struct client *c, uint64_t now_us, struct router_effects *effects)
{
    begin(c, now_us, effects);
    run_input(c);
    end(c);
}

bool client_has_input(const struct client *c)
{
    return c->in.size > c->in_at && !c->half && client_has_room(c);
}

/* ---- output ---- */

struct bytes client_output(const struct client *c)
{
    return c->writing > 0 ? (struct bytes){NULL, 0} : buffer_bytes(&c->out);
}

/* Who is busy keeps some for its next replies, while there is plenty: it would have to grow step
 * by step again. client_tick() takes it from who is not. */
static void trim_output(struct client *c)
{
    const bool plenty = c->all->stats.buffered < c->all->config.buffers_max / 4;
    const size_t keep = plenty && c->busy ? BUSY_BUFFER_MAX : IDLE_BUFFER_MAX;

    if (c->out.size == 0 && c->out.cap > keep) {
        buffer_fini(&c->out);
    }
}

void client_sent(struct client *c, size_t count, uint64_t now_us)
{
    ASSERT(c->writing == 0);
    if (count > 0) {
        c->progress_us = now_us;
        c->busy = true;
    }
    buffer_consume(&c->out, count);
    trim_output(c);
    client_account(c);
}

void client_tick(struct client *c, uint64_t now_us)
{
    begin(c, now_us, NULL);
    trim_output(c);
    c->busy = false;
    if (c->dialect->tick != NULL) {
        c->dialect->tick(c);
    }
    end(c);
}

void client_take_output(struct client *c, struct buffer *to)
{
    ASSERT(c->writing == 0);
    *to = c->out;
    c->writing = c->out.size;
    c->out = (struct buffer){0};
    client_account(c);
}

void client_wrote(struct client *c, uint64_t now_us)
{
    c->writing = 0;
    c->progress_us = now_us;
    client_account(c);
}

bool client_is_done(const struct client *c)
{
    const bool used_up = c->in.size == c->in_at || c->half;

    return c->dropped ||
           ((c->closing || (c->ended && used_up)) && !c->dialect->owes(c) && client_unsent(c) == 0);
}

bool client_is_stuck(struct client *c, uint64_t now_us)
{
    const struct clients_config *config = &c->all->config;
    const uint64_t stall_us = (uint64_t)config->stall_ms * 1000;
    const size_t owed = client_unsent(c) + c->slots.size;
    const bool all_over = c->all->stats.buffered / 2 > config->buffers_max;

    if (owed > config->output_max || (all_over && owed > config->unsent_max)) {
        c->all->stats.overrun++;
        return true;
    }
    if (client_unsent(c) > 0 && now_us - c->progress_us > stall_us) {
        c->all->stats.stalled++;
        return true;
    }
    return false;
}

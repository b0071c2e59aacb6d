/* SPDX-License-Identifier: Apache-2.0
 *
 * Both ends of one stream, without chance: what the judge does not look at, and what a steady
 * request costs in counts that no machine changes.
 */
#include "tests/test.h"

#include "base/mem.h"
#include "stream/asker.h"
#include "stream/server.h"
#include "tests/allocations.h"
#include "tests/hex.h"
#include "tests/steps.h"

#include <stdio.h>

enum { ASKER = 7, NODE = 9, BATCH = 16, WARM_TURNS = 40, TURNS = 20 };

static const size_t KIB = 1024;

/* Bytes that go from one end to the other at once. */
struct pair {
    struct stream_asker asker;
    struct stream_client *client;
    struct stream_client *owner; /* of all; NULL = `client` is */
    struct stream_chunks chunks;
    struct stream_server server;
    struct buffer there;
    struct buffer back;
    uint64_t kept; /* rid that the node does not answer yet; 0 = none */
    size_t replies;
    uint64_t ticket;   /* of the last reply, … */
    uint8_t code;      /* … and its code */
    uint64_t again;    /* ticket of the one that is asked again, once, … */
    uint32_t again_ms; /* … in so many; 0 = 1 */
    bool elsewhere;    /* its owner takes no streams … */
    uint64_t taken;    /* … so the ticket of the last one that was taken back */
};

static struct stream_client *owner(void *context, const struct stream_entity *entity)
{
    struct pair *p = context;

    (void)entity;
    return p->owner != NULL ? p->owner : p->client->left ? NULL : p->client;
}

static uint32_t on_reply(void *context, const struct stream_reply *reply)
{
    struct pair *p = context;

    if (p->again == reply->ticket) {
        p->again = 0;
        return p->again_ms > 0 ? p->again_ms : 1;
    }
    p->replies++;
    p->ticket = reply->ticket;
    p->code = reply->answer->code;
    return 0;
}

static bool take_back(void *context, const struct stream_reply *reply,
                      const struct stream_request *r)
{
    struct pair *p = context;

    assert_true(bytes_equal(r->id, text("player-7")));
    p->taken = p->elsewhere ? reply->ticket : p->taken;
    return p->elsewhere;
}

static uint32_t left(void *context, uint32_t slot)
{
    const struct pair *p = context;

    return 1000 - (uint32_t)p->asker.slot[slot].ticket;
}

static void hand_over(struct sendlog *l, struct buffer *pipe)
{
    for (struct bytes out = sendlog_unsent(l); out.size > 0; out = sendlog_unsent(l)) {
        buffer_put(pipe, out.data, out.size);
        sendlog_sent(l, out.size);
    }
}

static struct frame frame_of(const struct buffer *b, size_t at)
{
    const uint8_t *data = b->data + at;

    return (struct frame){
        .type = (enum frame_type)data[4],
        .count = load_u16(data + 6),
        .body = bytes_of(data + FRAME_HEADER_SIZE, load_u32(data) - FRAME_HEADER_SIZE)};
}

static void join(struct pair *p, uint64_t connection)
{
    const struct stream_connect hello = asker_connect(&p->asker, p->client, connection);

    assert_int_equal(server_join(&p->server, connection, hello.type, &hello.head), SERVER_JOINED);
    const struct stream_head joined = server_joined(&p->server);
    assert_int_equal(asker_joined(&p->asker, p->client, connection, STREAM_JOINED, &joined),
                     ERR_OK);
}

static void pair_init(struct pair *p, size_t size_max)
{
    struct stream_asker_config config = asker_config_default();

    *p = (struct pair){.chunks = {.spare_max = 64}};
    config.id = ASKER;
    config.size_max = size_max;
    config.context = p;
    config.owner = owner;
    config.reply = on_reply;
    config.elsewhere = take_back;
    config.left = left;
    asker_init(&p->asker, &config);
    server_init(&p->server, &p->chunks, ASKER, NODE);
    p->client = asker_add(&p->asker, NODE);
    join(p, 1);
}

static void pair_fini(struct pair *p)
{
    asker_fini(&p->asker);
    sendlog_drop(&p->server.log);
    stream_chunks_fini(&p->chunks);
    buffer_fini(&p->there);
    buffer_fini(&p->back);
}

static uint64_t ask(struct pair *p, unsigned entity, uint8_t flags, size_t body)
{
    static const uint8_t bytes[32 * 1024];
    struct stream_request r = {.session = 3,
                               .ttl_ms = 1000,
                               .flags = flags,
                               .id = text("player-7"),
                               .body = bytes_of(bytes, body)};

    return asker_ask(&p->asker, owner(p, NULL), &r, entity, entity);
}

/* The node takes what came, and answers each with its body; so many instructions are its. */
static void node_takes(struct pair *p)
{
    for (size_t at = 0; at < p->there.size;) {
        const struct frame f = frame_of(&p->there, at);
        struct stream_head head;
        struct reader in;

        at += FRAME_HEADER_SIZE + f.body.size;
        if (stream_head_get(&f, &head, &in) != ERR_OK ||
            server_open(&p->server, p->server.connection, &head, 0) != SERVER_OPEN) {
            continue;
        }
        for (unsigned i = 0; i < f.count; i++) {
            struct stream_request r;

            if (stream_request_get(&in, &r) != ERR_OK ||
                server_take(&p->server, head.first + i, head.ack, r.rid, 5) != SERVER_RUN ||
                server_judge(&p->server, r.rid, 5, head.ack) != SERVER_RUN || r.rid == p->kept) {
                continue;
            }
            server_answer(&p->server,
                          &(struct stream_answer){.rid = r.rid, .token = 1, .body = r.body});
        }
    }
    hand_over(&p->server.log, &p->back);
    buffer_clear(&p->there);
}

static void asker_reads(struct pair *p)
{
    for (size_t at = 0; at < p->back.size;) {
        const struct frame f = frame_of(&p->back, at);
        struct stream_head head;
        struct reader in;

        at += FRAME_HEADER_SIZE + f.body.size;
        if (stream_head_get(&f, &head, &in) != ERR_OK ||
            asker_open(p->client, p->client->connection, &head) != ERR_OK) {
            continue;
        }
        for (unsigned i = 0; i < f.count; i++) {
            struct stream_answer a;

            if (stream_answer_get(&in, &a) != ERR_OK ||
                asker_answer(&p->asker, p->client, head.first + i, head.version, &a) != ERR_OK) {
                break;
            }
        }
    }
    buffer_clear(&p->back);
}

/* So many requests there and back. */
static void turn(struct pair *p, unsigned count, size_t body)
{
    for (unsigned i = 0; i < count; i++) {
        (void)ask(p, 100 + i, 0, body);
    }
    hand_over(&p->client->log, &p->there);
    node_takes(p);
    asker_reads(p);
}

/* ---- cases ---- */

static void an_idle_stream_keeps_no_chunk(void **state)
{
    struct pair p;

    (void)state;
    pair_init(&p, KIB * KIB);
    turn(&p, BATCH, 100);
    assert_int_equal(p.replies, BATCH);
    assert_int_equal(p.asker.under_way, 0);
    assert_int_equal(p.asker.chunks.count, 0);
    assert_int_equal(p.chunks.count, 1); // until they are acknowledged
    asker_look(&p.asker);
    hand_over(&p.client->log, &p.there);
    node_takes(&p);
    assert_int_equal(p.chunks.count, 0);
    assert_true(server_idle(&p.server));
    pair_fini(&p);
}

static void what_it_owes_is_said_when_there_is_room(void **state)
{
    struct pair p;

    (void)state;
    pair_init(&p, KIB * KIB);
    turn(&p, 1, 10);
    assert_int_equal(sendlog_unsent(&p.client->log).size, 0); // the next request may say it
    asker_look(&p.asker);
    turn(&p, 1, 10); // it does
    assert_int_equal(sendlog_unsent(&p.client->log).size, 0);
    asker_look(&p.asker);
    assert_int_equal(sendlog_unsent(&p.client->log).size, 0); // since the last look, too
    asker_look(&p.asker);
    assert_ptr_equal(asker_unsent(&p.asker), p.client);
    struct bytes out = sendlog_unsent(&p.client->log);
    assert_int_equal(out.size, STREAM_HEADER_SIZE);
    out = sendlog_unsent(&p.client->log); // there was no room
    assert_int_equal(out.size, STREAM_HEADER_SIZE);
    sendlog_sent(&p.client->log, 10); // there was some
    (void)ask(&p, 1, 0, 10);
    out = sendlog_unsent(&p.client->log); // nothing comes in the midst of it
    assert_int_equal(out.size, STREAM_HEADER_SIZE - 10);
    assert_int_equal(load_u64(out.data + out.size - 16), 2);
    // The rest of it went with the connection.
    asker_lost(&p.asker, p.client, 1);
    join(&p, 2);
    assert_int_equal(sendlog_unsent(&p.client->log).size, 0); // JOIN said it
    pair_fini(&p);
}

static void what_is_wanted_again_is_asked_again(void **state)
{
    struct pair p;

    (void)state;
    pair_init(&p, KIB * KIB);
    p.again = 2;
    (void)ask(&p, 1, 0, 10);
    const uint64_t rid = ask(&p, 2, 0, 10);
    hand_over(&p.client->log, &p.there);
    asker_dead(&p.asker, p.client);
    assert_int_equal(p.replies, 1);
    assert_int_equal(p.ticket, 1);
    assert_int_equal(p.code, STREAM_CODE_UNKNOWN);
    // It waits for who owns it by the next ring, and may have run already.
    struct stream_client *old = p.client;
    p.client = asker_add(&p.asker, NODE + 1);
    asker_ring(&p.asker, 2);
    asker_remove(&p.asker, old);
    asker_turn(&p.asker, 1);
    assert_int_equal(p.client->count, 0); // not joined yet
    assert_true(asker_give_up(&p.asker, rid));
    assert_int_equal(p.asker.under_way, 0);
    assert_int_equal(p.asker.lanes.count, 0);
    buffer_clear(&p.there);
    pair_fini(&p);
}

/* fleet_sim --streams always --seed 78002254: it lay in the log for longer than its time. */
static void what_is_given_up_before_it_left_has_no_time(void **state)
{
    struct pair p;

    (void)state;
    pair_init(&p, KIB * KIB);
    const uint64_t rid = ask(&p, 1, 0, 10);
    assert_true(asker_give_up(&p.asker, rid));
    hand_over(&p.client->log, &p.there);
    assert_int_equal(load_u32(p.there.data + STREAM_HEADER_SIZE + 16), 0);
    node_takes(&p);
    asker_reads(&p);
    assert_int_equal(p.replies, 0);
    assert_int_equal(p.asker.under_way, 0);
    pair_fini(&p);
}

static void an_answer_that_is_not_good_enough_is_asked_for_again(void **state)
{
    struct pair p;

    (void)state;
    pair_init(&p, KIB * KIB);
    p.again = 1;
    (void)ask(&p, 1, 0, 10);
    hand_over(&p.client->log, &p.there);
    node_takes(&p);
    asker_reads(&p);
    assert_int_equal(p.replies, 0);
    assert_int_equal(p.asker.under_way, 1);
    asker_turn(&p.asker, 1);
    hand_over(&p.client->log, &p.there);
    // It says what is left of its time.
    assert_int_equal(load_u32(p.there.data + STREAM_HEADER_SIZE + 16), 999);
    node_takes(&p);
    asker_reads(&p);
    assert_int_equal(p.replies, 1);
    assert_int_equal(p.asker.under_way, 0);
    pair_fini(&p);
}

static void what_no_stream_takes_is_given_back_in_its_order(void **state)
{
    struct pair p;

    (void)state;
    pair_init(&p, KIB * KIB);
    asker_limit(&p.asker, p.client, 0);
    (void)ask(&p, 1, 0, 10);
    (void)ask(&p, 1, 0, 10);
    assert_true(asker_has_lane(&p.asker, 3, 1));
    asker_turn(&p.asker, 1);
    assert_int_equal(p.client->count, 0); // there is no room
    p.client->left = true;                // for owner(): no stream is its owner's
    asker_ring(&p.asker, 1);
    asker_turn(&p.asker, 1);
    assert_int_equal(p.taken, 0); // it is not known yet what its owner takes
    p.elsewhere = true;
    asker_ring(&p.asker, 1);
    asker_turn(&p.asker, 1);
    assert_int_equal(p.taken, 1);
    assert_int_equal(p.asker.under_way, 0);
    assert_int_equal(p.asker.lanes.count, 0);
    asker_check(&p.asker);
    pair_fini(&p);
}

/* The node takes what came, and refuses it. */
static void node_refuses(struct pair *p, uint8_t code, uint64_t aux)
{
    const struct frame f = frame_of(&p->there, 0);
    struct stream_head head;
    struct reader in;

    ASSERT(stream_head_get(&f, &head, &in) == ERR_OK);
    ASSERT(server_open(&p->server, 1, &head, UINT64_MAX) == SERVER_OPEN);
    for (unsigned i = 0; i < f.count; i++) {
        struct stream_request r;

        ASSERT(stream_request_get(&in, &r) == ERR_OK);
        ASSERT(server_take(&p->server, head.first + i, head.ack, r.rid, 5) == SERVER_RUN);
        server_refuse(&p->server, r.rid, 5, code, aux);
    }
    buffer_clear(&p->there);
    hand_over(&p->server.log, &p->back);
    asker_reads(p);
}

/* One is asked, and refused. Returns its rid. */
static uint64_t ask_in_vain(struct pair *p, uint8_t code, uint64_t aux)
{
    const uint64_t rid = ask(p, 1, 0, 10);

    hand_over(&p->client->log, &p->there);
    node_refuses(p, code, aux);
    assert_int_equal(p->client->count, 0);
    return rid;
}

/* At that time it is SENT again, and not before. */
static void expect_again_at(struct pair *p, uint64_t ms)
{
    asker_turn(&p->asker, ms - 1);
    assert_int_equal(p->client->count, 0);
    asker_turn(&p->asker, ms);
    assert_int_equal(p->client->count, 1);
    asker_check(&p->asker);
}

static void a_ring_that_never_comes_is_waited_for_a_while(void **state)
{
    struct pair p;

    (void)state;
    pair_init(&p, KIB * KIB);
    const uint64_t rid = ask_in_vain(&p, ANSWER_MOVED, 100);
    expect_again_at(&p, 64);
    hand_over(&p.client->log, &p.there);
    node_refuses(&p, ANSWER_MOVED, UINT64_MAX);
    expect_again_at(&p, 128);
    hand_over(&p.client->log, &p.there);
    node_refuses(&p, ANSWER_MOVED, 100);
    asker_turn(&p.asker, 129);
    assert_true(asker_has_lane(&p.asker, 3, 1));
    // Nothing of it waits: it has no record any more.
    assert_false(asker_give_up(&p.asker, rid));
    assert_int_equal(p.asker.lanes.count, 0);
    pair_fini(&p);
}

/* A lane's first request is refused when it comes to run; may the one behind it run? */
static enum server_verdict judged_behind(uint8_t code)
{
    struct stream_chunks chunks = {.spare_max = 1};
    struct stream_server s;

    server_init(&s, &chunks, 1, 2);
    ASSERT(
        server_join(&s, 1, STREAM_BEGIN, &(struct stream_head){.from = 1, .to = 2, .first = 1}) ==
        SERVER_JOINED);
    ASSERT(server_take(&s, 1, 0, 101, 5) == SERVER_RUN);
    ASSERT(server_take(&s, 2, 0, 102, 5) == SERVER_RUN);
    if (code == (enum answer_code)STREAM_CODE_UNKNOWN) {
        server_unknown(&s, 101, 5);
    } else {
        server_refuse(&s, 101, 5, code, 0);
    }
    const enum server_verdict verdict = server_judge(&s, 102, 5, 0);
    server_dead(&s);
    stream_chunks_fini(&chunks);
    return verdict;
}

static void what_has_expired_keeps_nothing_back(void **state)
{
    (void)state;
    assert_int_equal(judged_behind(ANSWER_BUSY), SERVER_BEHIND);
    assert_int_equal(judged_behind(STREAM_CODE_UNKNOWN), SERVER_BEHIND); // it may be asked again
    assert_int_equal(judged_behind(ANSWER_EXPIRED), SERVER_RUN);
}

/* Their positions share a fence, as one in 64 does. */
static void a_forward_keeps_back_nobody_elses_requests(void **state)
{
    enum { ONE = 5, OTHER = ONE + STREAM_FENCES };
    struct stream_chunks chunks = {.spare_max = 1};
    struct stream_server s;
    struct server_passed one = {.position = ONE, .to = 8};
    struct server_passed other = {.position = OTHER, .to = 9};

    (void)state;
    server_init(&s, &chunks, 1, 2);
    assert_int_equal(
        server_join(&s, 1, STREAM_BEGIN, &(struct stream_head){.from = 1, .to = 2, .first = 1}),
        SERVER_JOINED);
    for (unsigned i = 1; i <= 4; i++) {
        assert_int_equal(server_take(&s, i, 0, 100 + i, i % 2 == 0 ? OTHER : ONE), SERVER_RUN);
    }
    server_passed(&s, &one);
    assert_int_equal(server_judge(&s, 102, OTHER, 0), SERVER_RUN);
    server_passed(&s, &other); // and to another node
    assert_int_equal(server_judge(&s, 103, ONE, 0), SERVER_FOLLOWS);
    assert_int_equal(server_judge(&s, 104, OTHER, 0), SERVER_FOLLOWS);
    server_relay(&s, &one, &(struct stream_answer){.rid = 101});
    assert_int_equal(server_judge(&s, 103, ONE, 0), SERVER_RUN);
    assert_int_equal(server_judge(&s, 104, OTHER, 0), SERVER_FOLLOWS);
    server_relay(&s, &other, &(struct stream_answer){.rid = 102});
    assert_int_equal(s.passed_count, 0);
    server_dead(&s);
    stream_chunks_fini(&chunks);
}

static void a_ring_that_comes_ends_the_wait(void **state)
{
    struct pair p;

    (void)state;
    pair_init(&p, KIB * KIB);
    (void)ask_in_vain(&p, ANSWER_MOVED, 100);
    asker_turn(&p.asker, 1);
    asker_ring(&p.asker, 99);
    asker_turn(&p.asker, 2);
    assert_int_equal(p.client->count, 0);
    asker_ring(&p.asker, 100);
    asker_turn(&p.asker, 2);
    assert_int_equal(p.client->count, 1);
    pair_fini(&p);
}

static void a_node_puts_off_for_a_second_at_most(void **state)
{
    struct pair p;

    (void)state;
    pair_init(&p, KIB * KIB);
    (void)ask_in_vain(&p, ANSWER_BUSY, 50);
    expect_again_at(&p, 50);
    hand_over(&p.client->log, &p.there);
    node_refuses(&p, ANSWER_BUSY, UINT64_MAX);
    expect_again_at(&p, 50 + 1024);
    // So long as what the caller heard, as of OVERLOAD.
    p.again = 1;
    p.again_ms = UINT32_MAX;
    hand_over(&p.client->log, &p.there);
    node_refuses(&p, ANSWER_OVERLOAD, UINT64_MAX);
    expect_again_at(&p, 50 + 2 * 1024);
    pair_fini(&p);
}

/* How often it is asked in a second, and how long it is put off at most. */
static void expect_less_and_less(uint8_t code)
{
    struct pair p;
    size_t asked = 1;
    uint64_t asked_ms = 0;
    uint64_t longest_ms = 0;

    pair_init(&p, KIB * KIB);
    (void)ask_in_vain(&p, code, 0);
    for (uint64_t ms = 1; ms <= 1000; ms++) {
        asker_turn(&p.asker, ms);
        assert_true(ms > 1 || p.client->count == 1); // at once the first time
        if (p.client->count == 1) {
            longest_ms = ms - asked_ms > longest_ms ? ms - asked_ms : longest_ms;
            asked_ms = ms;
            asked++;
            hand_over(&p.client->log, &p.there);
            node_refuses(&p, code, 0);
        }
    }
    assert_in_range(asked, 15, 30);
    assert_int_equal(longest_ms, 64);
    pair_fini(&p);
}

static void who_refuses_for_no_time_is_asked_less_and_less(void **state)
{
    (void)state;
    expect_less_and_less(ANSWER_BUSY);
    expect_less_and_less(ANSWER_MOVED); // by the ring that is here, too
}

static void another_owner_has_not_said_so(void **state)
{
    struct pair p;

    (void)state;
    pair_init(&p, KIB * KIB);
    (void)ask_in_vain(&p, ANSWER_BUSY, 500);
    asker_turn(&p.asker, 1);
    asker_ring(&p.asker, 1);
    asker_turn(&p.asker, 2);
    assert_int_equal(p.client->count, 0); // it has
    p.owner = asker_add(&p.asker, NODE + 1);
    p.owner->joined = true;
    asker_ring(&p.asker, 2);
    asker_turn(&p.asker, 2);
    assert_int_equal(p.owner->count, 1);
    // Nor is anything heeded that the one before says later.
    struct stream_client *next = p.owner;
    p.owner = NULL;
    (void)ask(&p, 2, 0, 10);
    hand_over(&p.client->log, &p.there);
    p.owner = next;
    asker_ring(&p.asker, 3);
    node_refuses(&p, ANSWER_BUSY, 500);
    asker_turn(&p.asker, 3);
    assert_int_equal(p.owner->count, 2);
    asker_check(&p.asker);
    pair_fini(&p);
}

static void a_stream_is_given_no_more_than_it_may_have(void **state)
{
    struct pair p;

    (void)state;
    pair_init(&p, 20 * KIB);
    asker_limit(&p.asker, p.client, 1);
    (void)ask(&p, 1, 0, 10);
    (void)ask(&p, 2, 0, 10);
    (void)ask(&p, 3, 0, 10);
    assert_int_equal(p.client->count, 1);
    size_t count;
    uint32_t *sent = asker_sent(&p.asker, p.client, &count);
    assert_int_equal(count, 1);
    assert_int_equal(p.asker.slot[sent[0]].ticket, 1);
    mem_free(sent);
    asker_turn(&p.asker, 1);
    p.client->reply_size = 15 * KIB; // so there is room for what is answered to one
    asker_limit(&p.asker, p.client, 10);
    asker_turn(&p.asker, 1);
    assert_int_equal(p.client->count, 2);
    // Who has something to be handed out is told once.
    assert_ptr_equal(asker_unsent(&p.asker), p.client);
    assert_null(asker_unsent(&p.asker));
    asker_check(&p.asker);
    pair_fini(&p);
}

static void a_slow_answer_pins_no_chunks(void **state)
{
    struct pair p;

    (void)state;
    pair_init(&p, (size_t)2 * STREAM_CHUNK_SIZE);
    p.kept = ask(&p, 1, 0, 40);
    for (unsigned i = 0; i < 40; i++) {
        turn(&p, 2, 8 * KIB);
        assert_true(p.asker.chunks.count <= 3);
    }
    assert_int_equal(p.replies, 80);
    asker_check(&p.asker);
    // It is answered as if nothing had happened.
    const struct stream_answer late = {.rid = p.kept};
    server_answer(&p.server, &late);
    node_takes(&p);
    asker_reads(&p);
    assert_int_equal(p.ticket, 1);
    assert_int_equal(p.asker.chunks.count, 0);
    pair_fini(&p);
}

static void what_does_not_fit_waits_in_its_order(void **state)
{
    struct pair p;

    (void)state;
    pair_init(&p, 20 * KIB);
    for (unsigned i = 0; i < 4; i++) {
        (void)ask(&p, 5, 0, 8 * KIB);
    }
    assert_int_equal(p.client->count, 2);
    hand_over(&p.client->log, &p.there);
    node_takes(&p);
    asker_turn(&p.asker, 1);
    asker_reads(&p);
    assert_int_equal(p.replies, 2);
    asker_turn(&p.asker, 2);
    assert_int_equal(p.client->count, 1); // as much is answered as is asked
    for (unsigned i = 3; i < 5; i++) {
        hand_over(&p.client->log, &p.there);
        node_takes(&p);
        asker_reads(&p);
        asker_turn(&p.asker, i);
    }
    assert_int_equal(p.replies, 4);
    assert_int_equal(p.asker.lanes.count, 0);
    asker_check(&p.asker);
    pair_fini(&p);
}

static void a_frame_of_another_stream_is_refused(void **state)
{
    struct pair p;

    (void)state;
    pair_init(&p, KIB * KIB);
    (void)ask(&p, 1, 0, 10);
    const struct stream_head next = {.from = NODE, .to = ASKER, .first = 2, .ack = 0};
    const struct stream_head more = {.from = NODE, .to = ASKER, .first = 1, .ack = 2};
    const struct stream_head else_ = {.from = NODE + 1, .to = ASKER, .first = 1};
    assert_int_equal(asker_open(p.client, 1, &next), ERR_CORRUPT);  // the first is left out
    assert_int_equal(asker_open(p.client, 1, &more), ERR_CORRUPT);  // it took what was not sent
    assert_int_equal(asker_open(p.client, 1, &else_), ERR_CORRUPT); // by somebody else
    assert_int_equal(asker_open(p.client, 2, &next), ERR_NOT_FOUND);
    const struct stream_head gap = {.from = ASKER, .to = NODE, .first = 2};
    const struct stream_head told = {.from = ASKER, .to = NODE, .first = 1, .ack = 1};
    assert_int_equal(server_open(&p.server, 1, &gap, 0), SERVER_BAD);
    assert_int_equal(server_open(&p.server, 1, &told, 0), SERVER_BAD);
    assert_int_equal(server_open(&p.server, 2, &gap, 0), SERVER_NOT_MINE);
    pair_fini(&p);
}

static void a_node_leaves_once(void **state)
{
    const struct stream_answer left = {.aux = 2, .code = STREAM_CODE_LEFT};
    const struct stream_answer again = {.aux = 1, .code = STREAM_CODE_LEFT};
    struct pair p;

    (void)state;
    pair_init(&p, KIB * KIB);
    for (unsigned i = 1; i <= 3; i++) {
        (void)ask(&p, i, 0, 10);
    }
    assert_int_equal(asker_answer(&p.asker, p.client, 1, 0, &left), ERR_OK);
    assert_int_equal(p.client->count, 2);
    assert_int_equal(asker_answer(&p.asker, p.client, 2, 0, &again), ERR_OK);
    assert_int_equal(p.client->count, 2);
    asker_check(&p.asker);
    pair_fini(&p);
}

static void an_older_join_does_not_take_the_stream(void **state)
{
    struct pair p;

    (void)state;
    pair_init(&p, KIB * KIB);
    turn(&p, 1, 10);
    const struct stream_connect old = asker_connect(&p.asker, p.client, 2);
    const struct stream_connect new = asker_connect(&p.asker, p.client, 3);
    assert_int_equal(server_join(&p.server, 3, new.type, &new.head), SERVER_JOINED);
    assert_int_equal(server_join(&p.server, 2, old.type, &old.head), SERVER_OLD);
    // Who begins anew though it was known is another stream.
    const struct stream_head begin = {.from = ASKER, .to = NODE, .first = 9};
    assert_int_equal(server_join(&p.server, 4, STREAM_BEGIN, &begin), SERVER_ANEW);
    assert_int_equal(p.server.connection, 3);
    pair_fini(&p);
}

/* Lanes that all rest: a turn in which none is due looks at none of them. */
static void a_turn_of_resting_lanes(void *context)
{
    enum { LANES = 1000, REST_MS = 50 };
    uint64_t rid[LANES];
    struct pair p;

    (void)context;
    pair_init(&p, KIB * KIB);
    for (unsigned i = 0; i < LANES; i++) {
        rid[i] = ask(&p, i, 0, 10);
    }
    for (unsigned i = 0; i < LANES; i++) {
        const struct stream_answer busy = {.rid = rid[i], .aux = REST_MS, .code = ANSWER_BUSY};

        ASSERT(asker_answer(&p.asker, p.client, i + 1, 0, &busy) == ERR_OK);
    }
    asker_turn(&p.asker, 1);
    ASSERT(p.client->count == 0);
    steps_begin();
    asker_turn(&p.asker, 2);
    steps_next();
}

static void who_rests_costs_a_turn_nothing(void **state)
{
    long count = 0;

    (void)state;
    steps_count(a_turn_of_resting_lanes, NULL, &count, 1);
    assert_in_range(count, 1, 140);
}

static void a_steady_request_allocates_nothing(void **state)
{
    struct pair p;

    (void)state;
    pair_init(&p, KIB * KIB);
    for (int i = 0; i < WARM_TURNS + TURNS; i++) {
        allocations_counted = i >= WARM_TURNS;
        turn(&p, BATCH, 100);
    }
    allocations_counted = false;
    assert_int_equal(allocations, 0);
    assert_int_equal(p.replies, (WARM_TURNS + TURNS) * BATCH);
    pair_fini(&p);
}

/* In the child: a batch there and back. */
static void a_batch(void *context)
{
    struct pair p;

    (void)context;
    pair_init(&p, KIB * KIB);
    for (int i = 0; i < WARM_TURNS; i++) {
        turn(&p, BATCH, 32);
    }
    steps_begin();
    for (unsigned i = 0; i < BATCH; i++) {
        (void)ask(&p, 100 + i, 0, 32);
    }
    hand_over(&p.client->log, &p.there);
    steps_next();
    node_takes(&p);
    steps_next();
    asker_reads(&p);
    steps_next();
}

static void a_steady_request_takes_few_instructions(void **state)
{
    enum { ASKED, TAKEN, HEARD, PARTS };
    long part[PARTS] = {0};

    (void)state;
    steps_count(a_batch, NULL, part, PARTS);
    (void)printf(
        "instructions of a request: asking %ld, taking and answering it %ld, its answer %ld\n",
        part[ASKED] / BATCH,
        part[TAKEN] / BATCH,
        part[HEARD] / BATCH);
    assert_in_range((part[ASKED] + part[HEARD]) / BATCH, 50, 505);
    assert_in_range(part[TAKEN] / BATCH, 50, 181);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_idle_stream_keeps_no_chunk),
        cmocka_unit_test(what_it_owes_is_said_when_there_is_room),
        cmocka_unit_test(what_is_wanted_again_is_asked_again),
        cmocka_unit_test(what_is_given_up_before_it_left_has_no_time),
        cmocka_unit_test(an_answer_that_is_not_good_enough_is_asked_for_again),
        cmocka_unit_test(what_no_stream_takes_is_given_back_in_its_order),
        cmocka_unit_test(a_ring_that_never_comes_is_waited_for_a_while),
        cmocka_unit_test(what_has_expired_keeps_nothing_back),
        cmocka_unit_test(a_forward_keeps_back_nobody_elses_requests),
        cmocka_unit_test(a_ring_that_comes_ends_the_wait),
        cmocka_unit_test(a_node_puts_off_for_a_second_at_most),
        cmocka_unit_test(who_refuses_for_no_time_is_asked_less_and_less),
        cmocka_unit_test(another_owner_has_not_said_so),
        cmocka_unit_test(a_stream_is_given_no_more_than_it_may_have),
        cmocka_unit_test(a_slow_answer_pins_no_chunks),
        cmocka_unit_test(what_does_not_fit_waits_in_its_order),
        cmocka_unit_test(a_frame_of_another_stream_is_refused),
        cmocka_unit_test(a_node_leaves_once),
        cmocka_unit_test(an_older_join_does_not_take_the_stream),
        cmocka_unit_test(who_rests_costs_a_turn_nothing),
        cmocka_unit_test(a_steady_request_allocates_nothing),
        cmocka_unit_test(a_steady_request_takes_few_instructions),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Two nodes get the same requests, as random as peers may send them: one is fed with them one by
 * one, and its worker does what it is submitted; the other one serves at once what is steady
 * (host_serve()). Nobody may see a difference: the same answers to each frame, the same figures.
 */
#include "tests/test.h"

#include "base/prng.h"
#include "bench/node_mill.h"
#include "wire/control.h"

#include <stdlib.h>

enum { IDS = 12, SESSIONS = 5, FRAMES = 2500, OTHER_GATEWAY = 901, ANSWERS_MAX = 20000 };

/* ---- an actor with moods: what it does is the first byte of what it is asked */

static int on_activate(struct rh_actor *actor, const struct rh_bytes *state, uint64_t fence,
                       void **instance)
{
    (void)actor;
    (void)state;
    (void)fence;
    *instance = NULL;
    return RH_OK;
}

static void on_message(struct rh_actor *actor, void *instance, const struct rh_message *message)
{
    const struct rh_value value = rh_bytes_value(message->payload.data, message->payload.size);
    const char mood = *(const char *)message->payload.data;

    (void)instance;
    switch (mood) {
    case 'f':
        (void)rh_fail(actor, "it had to");
        break;
    case 'p':
        (void)rh_passivate(actor);
        (void)rh_reply(actor, value);
        break;
    case 'q':
        (void)rh_reply(actor, value);
        (void)rh_passivate(actor);
        break;
    case 'd':
        (void)rh_reply_later(rh_defer(actor), value);
        break;
    case 'n':
        break;
    case '2':
        (void)rh_reply(actor, value);
        (void)rh_reply(actor, rh_nil());
        break;
    default:
        (void)rh_reply(actor, value);
        break;
    }
}

static void on_deactivate(struct rh_actor *actor, void *instance, enum rh_why why)
{
    (void)actor;
    (void)instance;
    (void)why;
}

static const struct rh_actor_ops moody = {.abi = RH_ABI,
                                          .size = sizeof(struct rh_actor_ops),
                                          .name = "moody",
                                          .activate = on_activate,
                                          .message = on_message,
                                          .deactivate = on_deactivate,
                                          .idle_ms = UINT32_MAX,
                                          .brief = 1};

/* ---- the two nodes */

static struct mill plain;  /* fed one by one */
static struct mill served; /* at once */
static struct prng prng;

static void settle_host(struct mill *m)
{
    struct local_node *n = &m->node;

    while (host_running(n->host) > 0 || host_has_more(n->host)) {
        struct host_event go_on = {.type = HOST_GO_ON};

        if (worker_run_inline(n->worker, SIZE_MAX) == 0) {
            worker_send(n->worker);
        }
        if (n->threaded) {
            (void)sched_yield();
        } else {
            (void)worker_poll(n->worker, 0);
        }
        local_node_take(n);
        local_node_step(n, &go_on);
    }
}

/* Until the worker's thread sleeps: what an actor does after its answer is told behind that. */
static void settle(struct mill *m)
{
    struct local_node *n = &m->node;

    settle_host(m);
    while (n->threaded) {
        worker_send(n->worker);
        while (!worker_enter_inline(n->worker)) {
            (void)sched_yield();
        }
        (void)local_node_leave(n);
        local_node_take(n);
        if (host_running(n->host) == 0 && !host_has_more(n->host)) {
            return;
        }
        settle_host(m);
    }
}

static void feed(struct mill *m, const struct request_record *r, uint64_t position)
{
    struct host_event event = {
        .type = HOST_REQUEST, .peer = MILL_GATEWAY, .position = position, .request = r};

    local_node_step(&m->node, &event);
    settle(m);
}

static void tick(struct mill *m, uint64_t us)
{
    struct host_event event = {.type = HOST_TICK};

    m->node.now_us += us;
    local_node_step(&m->node, &event);
    settle(m);
}

static void open_both(void)
{
    mill_open(&plain, IDS, 1);
    mill_open_inline(&served, IDS, 1);
    plain.kind[MILL_ECHO].ops = served.kind[MILL_ECHO].ops = moody;
    plain.kind[MILL_SLOW].ops = served.kind[MILL_SLOW].ops = moody;
    plain.kind[MILL_SLOW].ops.brief = served.kind[MILL_SLOW].ops.brief = 0;
}

static void close_both(void)
{
    mill_close(&plain);
    mill_close(&served);
}

/* ---- requests */

struct lane {
    uint64_t last; /* seq */
    uint32_t epoch;
};
static struct lane lane[SESSIONS][MILL_KINDS][IDS];
static struct buffer bodies;
static bool
    deferred; /* one of the frame will be: what comes behind it would be answered before it */

static uint64_t draw(uint64_t low, uint64_t high)
{
    return prng_between(&prng, low, high);
}

static bool rarely(void)
{
    return draw(1, 40) == 1;
}

/* Of an actor that asks: it comes before all else. */
static size_t put_caller(void)
{
    static const struct caller from = {.kind = 3, .id = {(const uint8_t *)"ann", 3}};
    uint8_t bytes[16];
    struct writer w = {.at = bytes, .left = sizeof bytes};

    caller_put(&w, &from);
    buffer_put(&bodies, bytes, sizeof bytes - w.left);
    return sizeof bytes - w.left;
}

static size_t put_command(size_t size)
{
    static const uint8_t value[200] = "value";
    static const char *const words[] = {"SET", "INCR", "GET", "DEL", "what"};
    const char *word = words[draw(0, 1) == 0 ? draw(0, 1) : draw(0, 4)]; // one of no value ends
    struct args args = {
        .count = word == words[0] ? 3 : 2,
        .arg = {bytes_of(word, strlen(word)), bytes_of("key", 3), bytes_of(value, size)}};
    const size_t at = bodies.size;

    args_put(&bodies, &args);
    return bodies.size - at;
}

static size_t put_mood(size_t size)
{
    static const char moods[] = "aaaaaaaaaaaafpqdn2";
    uint8_t body[200] = {0};

    body[0] = (uint8_t)moods[draw(0, sizeof moods - 2)];
    deferred = deferred || body[0] == 'd';
    buffer_put(&bodies, body, size);
    return size;
}

static struct request_record draw_request(void)
{
    static const char *const names[IDS] = {
        "a", "b", "c", "d", "e", "f", "g", "h", "i", "an id of 20 bytes..", "k", "l"};
    const size_t session = draw(0, SESSIONS - 1);
    const uint16_t kind = (uint16_t)draw(0, MILL_KINDS - 1);
    const size_t id = draw(0, IDS - 1);
    struct lane *l = &lane[session][kind][id];
    const size_t size = draw(0, 3) == 0 ? draw(20, 200) : draw(1, 12);
    const uint64_t before = l->last;
    struct request_record r = {.gateway = MILL_GATEWAY,
                               .session = session + 1,
                               .session_epoch = l->epoch,
                               .version = MILL_VERSION,
                               .first = MILL_VERSION,
                               .ttl_ms = 30000,
                               .kind = kind,
                               .copy = 1,
                               .flags = kind == MILL_KV ? REQUEST_COMMAND : 0,
                               .id = bytes_of(names[id], strlen(names[id]))};

    r.seq = l->last + draw(1, 3);
    r.prev = draw(0, 3) == 0 ? before : 0;
    r.base = draw(0, 2) == 0 ? r.seq : draw(0, 2) == 0 ? before : 0;
    if (rarely() && before > 3) { // what ran, or was given up
        r.seq = before - draw(0, 3);
        r.prev = 0;
        r.copy = 2;
        r.base = draw(0, 1) == 0 ? 0 : r.seq;
    }
    if (rarely()) { // what it waits for never comes, or late
        r.prev = r.seq - 1;
    }
    r.prev = r.prev < r.seq ? r.prev : 0;
    l->epoch += rarely() ? 1 : 0;
    r.session_epoch = rarely() && l->epoch > 0 ? l->epoch - 1 : l->epoch;
    r.ttl_ms = rarely() ? 0 : r.ttl_ms;
    r.hops = rarely() ? 1 : 0;
    r.gateway = rarely() ? OTHER_GATEWAY : r.gateway;
    r.kind = rarely() ? 7 : r.kind;
    r.version = rarely() ? MILL_VERSION + 1 : rarely() ? MILL_VERSION - 1 : r.version;
    r.first = rarely() ? MILL_VERSION - 3 : r.first;
    r.flags |= rarely() ? REQUEST_IDEMPOTENT : 0;
    r.flags |= rarely() ? REQUEST_NO_REPLY : 0;
    r.flags |= rarely() ? REQUEST_AWAKE : 0;
    if (draw(0, 5) == 0) {
        r.flags |= REQUEST_CALL;
        r.chain_count = 1;
        r.chain[0] = draw(0, 9);
        r.body.size = put_caller();
    }
    r.body.size += kind == MILL_KV ? put_command(size) : put_mood(size);
    l->last = r.seq > l->last ? r.seq : l->last;
    return r;
}

/* ---- what is seen of them */

static int by_bytes(const void *a, const void *b)
{
    const struct bytes *x = a;
    const struct bytes *y = b;
    const size_t size = x->size < y->size ? x->size : y->size;
    const int least = memcmp(x->data, y->data, size);

    return least != 0 ? least : (int)x->size - (int)y->size;
}

/* What several actors answer when their back-offs end has no order. */
static void sort_answers(const struct mill *m, struct bytes *list)
{
    struct reader in = {.at = m->answers.data, .left = m->answers.size};
    size_t count = 0;

    while (in.left > 0) {
        const uint8_t *at = in.at;
        struct answer_record answer;

        assert_int_equal(answer_get(&in, &answer), ERR_OK);
        list[count++] = bytes_of(at, (size_t)(in.at - at));
    }
    assert_int_equal(count, m->answer_count);
    qsort(list, count, sizeof *list, by_bytes);
}

static void assert_same(void)
{
    static struct bytes expected[ANSWERS_MAX];
    static struct bytes answers[ANSWERS_MAX];
    struct host_stats a;
    struct host_stats b;

    assert_int_equal(plain.answer_count, served.answer_count);
    assert_true(plain.answer_count < ANSWERS_MAX);
    sort_answers(&plain, expected);
    sort_answers(&served, answers);
    for (size_t i = 0; i < plain.answer_count; i++) {
        assert_true(bytes_equal(expected[i], answers[i]));
    }
    host_stats(plain.node.host, &a);
    host_stats(served.node.host, &b);
    assert_memory_equal(&a, &b, sizeof a);
    host_check(plain.node.host);
    host_check(served.node.host);
}

static void take_frame(size_t count)
{
    struct request_record r[HOST_PREFETCH_MAX];
    uint64_t position[HOST_PREFETCH_MAX];
    size_t at[HOST_PREFETCH_MAX];

    bodies.size = 0;
    deferred = false;
    for (size_t i = 0; i < count; i++) {
        at[i] = bodies.size;
        r[i] = draw_request();
    }
    for (size_t i = 0; i < count; i++) {
        r[i].body.data = bodies.data + at[i]; // the buffer may have moved
    }
    buffer_clear(&plain.answers);
    buffer_clear(&served.answers);
    plain.answer_count = served.answer_count = 0;
    host_prefetch(plain.node.host, r, count, position);
    for (size_t i = 0; i < count; i++) {
        feed(&plain, &r[i], position[i]);
    }
    host_prefetch(served.node.host, r, count, position);
    for (size_t i = 0; i < count;) {
        const size_t some = deferred ? 1 : count - i;
        const size_t at_once =
            local_node_serve(&served.node, MILL_GATEWAY, &r[i], &position[i], some, mill_on_answer);

        settle(&served);
        served.served += at_once;
        i += at_once;
        if (at_once < some) {
            feed(&served, &r[i], position[i]);
            i++;
        }
    }
    served.made += count;
    assert_same();
}

/* ---- cases */

static void nobody_sees_what_was_served_at_once(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 3; seed++) {
        prng.state = seed;
        memset(lane, 0, sizeof lane);
        open_both();
        for (int i = 0; i < FRAMES; i++) {
            take_frame(draw(1, HOST_PREFETCH_MAX));
            if (draw(0, 9) == 0) {
                buffer_clear(&plain.answers);
                buffer_clear(&served.answers);
                plain.answer_count = served.answer_count = 0;
                const uint64_t us = draw(1000, draw(0, 30) == 0 ? 130000000 : 2000000);

                tick(&plain, us);
                tick(&served, us);
                assert_same();
            }
        }
        assert_true(served.served * 6 > served.made); // else this shows little
        close_both();
    }
    buffer_fini(&bodies);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_sees_what_was_served_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

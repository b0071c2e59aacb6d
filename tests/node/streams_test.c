/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests that come to a host by streams: what becomes of them, and of frames that may not be.
 */
#include "tests/test.h"

#include "base/assert.h"
#include "base/mem.h"
#include "node/host/inside.h"
#include "tests/hex.h"
#include "tests/node/host_controls.h"
#include "tests/planted.h"
#include "tests/steps.h"
#include "wire/frame.h"

#include <stdio.h>
#include <string.h>

enum { SELF = 101, OTHER = 102, GATEWAY = 900, VERSION = 10, VNODES = 4, LINK = 7 };
enum { BRIEF = 0, SLOW = 1, SAVED = 2, EFFECTS_MAX = 64, ANSWERS_MAX = 256 };

static const struct host_kind kinds[] = {
    {.number = BRIEF, .idle_ms = UINT32_MAX, .brief = true},
    {.number = SLOW, .idle_ms = UINT32_MAX},
    {.number = SAVED, .idle_ms = UINT32_MAX, .brief = true, .durable = true}};

static const uint64_t MS = 1000;

static struct host *host;
static struct host_effects effects;
static struct view cluster;
static uint64_t now_us;
static uint64_t rids;   /* of requests so far */
static uint64_t number; /* of the next request in its stream */
static uint64_t epoch;
static struct host_effect done[EFFECTS_MAX]; /* what the last step wanted */
static size_t done_count;
static size_t ran; /* at once */

static struct buffer passed_bytes; /* of what was sent on */

/* What the log has said, in order. */
static struct stream_answer answer[ANSWERS_MAX];
static size_t answer_count;

static enum host_ran run_at_once(void *context, const struct actor *a, struct at_once *run)
{
    (void)context;
    (void)a;
    run->answer = run->message.body;
    ran++;
    return HOST_RAN_NOW;
}

static uint64_t late_us; /* what the server's clock has gone on since the step began */

static uint64_t time_by_now(void *context)
{
    (void)context;
    return now_us + late_us;
}

static const struct host_server server = {.run = run_at_once, .now_us = time_by_now};

static void step(struct host_event event)
{
    event.now_us = ++now_us;
    host_effects_clear(&effects);
    host_step(host, &event, &effects);
    assert_true(effects.count <= EFFECTS_MAX);
    done_count = effects.count;
    if (done_count > 0) {
        memcpy(done, effects.item, done_count * sizeof *done);
    }
    host_check(host);
}

static void say(Rh__Control *c)
{
    c->era = 1;
    step((struct host_event){.type = HOST_CONTROL, .message = c});
}

static const struct host_effect *effect_of(enum host_effect_type type, enum verb verb)
{
    for (size_t i = 0; i < done_count; i++) {
        if (done[i].type == type && (type != HOST_SUBMIT || done[i].submission.verb == verb)) {
            return &done[i];
        }
    }
    return NULL;
}

static void complete(struct actor *a, struct completion c)
{
    step((struct host_event){.type = HOST_COMPLETED, .actor = a, .completion = c});
}

/* The ring has two members, and this one has all of it. */
static void open_cluster(void)
{
    struct view_member member[2] = {{.slot = 1, .incarnation = SELF, .weight = 1},
                                    {.slot = 2, .incarnation = OTHER, .weight = 1}};

    view_init(&cluster, RING_GRID_MIN);
    cluster.key = (struct ring_key){3, 4};
    cluster.era = 1;
    ring_create(&cluster.ring, VNODES, 1, VERSION);
    for (size_t i = 0; i < 2; i++) {
        (void)snprintf(member[i].name, sizeof member[i].name, "n%zu", i + 1);
        (void)snprintf(member[i].address, sizeof member[i].address, "h%zu", i + 1);
    }
    cluster.member = mem_copy(member, sizeof member);
    cluster.member_count = 2;
}

static int open(void **state)
{
    struct host_config config = host_config_default();
    Rh__RegOk ok = RH__REG_OK__INIT;

    (void)state;
    (void)snprintf(config.name, sizeof config.name, "n1");
    config.kinds = kinds;
    config.kind_count = 3;
    config.nonce = 7;
    config.queue_count_max = 2;
    now_us = 1000000;
    rids = epoch = 0;
    number = 1;
    ran = answer_count = 0;
    open_cluster();
    host = host_new(&config);
    step((struct host_event){.type = HOST_COORDINATOR_UP});
    say_leader(say);
    ok.nonce = 7;
    ok.floor = VERSION;
    say_reg_ok(&cluster, 1, ok, say);
    step((struct host_event){.type = HOST_PEER_UP,
                             .peer = LINK,
                             .role = ROLE_GATEWAY,
                             .name = "g",
                             .incarnation = GATEWAY});
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    host_free(host);
    host_effects_fini(&effects);
    view_fini(&cluster);
    buffer_fini(&passed_bytes);
    late_us = 0;
    return 0;
}

/* ---- frames */

static void feed(uint64_t peer, struct buffer *whole)
{
    ASSERT(whole->data != NULL && whole->size >= FRAME_HEADER_SIZE);
    const struct frame frame = {
        .type = (enum frame_type)whole->data[4],
        .count = load_u16(whole->data + 6),
        .body = bytes_of(whole->data + FRAME_HEADER_SIZE, whole->size - FRAME_HEADER_SIZE)};

    step((struct host_event){.type = HOST_FRAME, .peer = peer, .frame = &frame, .server = &server});
    buffer_fini(whole);
}

static void put_head(struct buffer *out, enum stream_frame type, const struct stream_head *head)
{
    stream_head_store(buffer_reserve(out, STREAM_HEADER_SIZE), type, head);
    out->size += STREAM_HEADER_SIZE;
}

/* The gateway has all answers up to that. */
static void acknowledge(uint64_t got)
{
    struct buffer out = {0};

    put_head(&out,
             STREAM_ACK,
             &(struct stream_head){.from = GATEWAY, .to = SELF, .ack = got, .version = VERSION});
    feed(LINK, &out);
}

/* What the host says to BEGIN or JOIN. */
static enum frame_type join(enum stream_frame type, uint64_t got)
{
    struct buffer out = {0};

    put_head(&out,
             type,
             &(struct stream_head){
                 .from = GATEWAY, .to = SELF, .first = ++epoch, .ack = got, .version = VERSION});
    feed(LINK, &out);
    const struct host_effect *said = effect_of(HOST_SEND_PEER, VERB_NONE);
    assert_non_null(said);
    assert_int_equal(said->peer, LINK);
    return (enum frame_type)said->frame_type;
}

static void begin(void)
{
    assert_int_equal(join(STREAM_BEGIN, 0), FRAME_STREAM_JOINED);
    number = 1;
}

/* A frame with that request. `ack`: answers that the gateway has. */
static void put_request(const struct stream_request *r, uint64_t ack, uint64_t version)
{
    struct buffer out = {0};
    const size_t size = stream_request_size(r);

    put_head(&out,
             STREAM_REQUEST,
             &(struct stream_head){
                 .from = GATEWAY, .to = SELF, .first = number++, .ack = ack, .version = version});
    stream_request_store(buffer_reserve(&out, size), r);
    out.size += size;
    stream_frame_end(out.data, out.size, 1);
    feed(LINK, &out);
}

/* A frame with one request. Returns its rid. */
static uint64_t ask_at(uint16_t kind, const char *id, uint64_t ack, uint64_t version)
{
    put_request(&(struct stream_request){.rid = ++rids,
                                         .session = 3,
                                         .ttl_ms = 1000,
                                         .kind = kind,
                                         .id = text(id),
                                         .body = text(id)},
                ack,
                version);
    return rids;
}

static uint64_t ask(uint16_t kind, const char *id, uint64_t ack)
{
    return ask_at(kind, id, ack, VERSION);
}

/* Take what the log has for the network. */
static void read_log(void)
{
    uint64_t peer = 0;
    struct sendlog *log = host_unsent(host, &peer);
    struct bytes out;

    while (log != NULL && (out = sendlog_unsent(log)).size > 0) {
        const size_t size = load_u32(out.data);
        const struct frame frame = {
            .type = (enum frame_type)out.data[4],
            .count = load_u16(out.data + 6),
            .body = bytes_of(out.data + FRAME_HEADER_SIZE, size - FRAME_HEADER_SIZE)};
        struct stream_head head;
        struct reader in;

        assert_int_equal(stream_head_get(&frame, &head, &in), ERR_OK);
        assert_true(peer == LINK || head.first == 0);
        for (size_t i = 0; head.first > 0 && i < frame.count; i++) { // no ACK
            assert_true(answer_count < ANSWERS_MAX);
            assert_int_equal(stream_answer_get(&in, &answer[answer_count++]), ERR_OK);
        }
        sendlog_sent(log, size);
    }
}

static const struct stream_answer *last_answer(void)
{
    read_log();
    assert_true(answer_count > 0);
    return &answer[answer_count - 1];
}

/* Bring an actor to life by a request; returns it. */
static struct actor *wake(uint16_t kind, const char *id)
{
    const uint64_t rid = ask(kind, id, answer_count);
    const struct host_effect *e = effect_of(HOST_SUBMIT, VERB_ACTIVATE);

    assert_non_null(e);
    struct actor *a = e->actor;
    complete(a, (struct completion){.verb = VERB_ACTIVATE, .ticket = e->submission.ticket});
    e = effect_of(HOST_SUBMIT, VERB_RUN);
    assert_non_null(e);
    complete(a,
             (struct completion){
                 .verb = VERB_RUN, .ticket = e->submission.ticket, .bytes = text("woken")});
    assert_int_equal(last_answer()->rid, rid);
    return a;
}

/* ---- cases */

static void a_steady_request_runs_at_once_into_the_log(void **state)
{
    (void)state;
    begin();
    (void)wake(BRIEF, "anna");
    const uint64_t rid = ask(BRIEF, "anna", answer_count);
    assert_int_equal(ran, 1);
    assert_null(effect_of(HOST_SUBMIT, VERB_RUN));
    const struct stream_answer *a = last_answer();
    assert_int_equal(a->rid, rid);
    assert_int_equal(a->code, ANSWER_OK);
    assert_true(bytes_equal(a->body, text("anna")));
}

/* A request that says where its id is. */
static uint64_t ask_told(uint16_t kind, const char *id, const char *hashed)
{
    const struct ring_key key = ring_key_of_kind(cluster.key, kind);

    put_request(&(struct stream_request){.rid = ++rids,
                                         .session = 3,
                                         .hash = ring_position(key, text(hashed)),
                                         .ttl_ms = 1000,
                                         .kind = kind,
                                         .id = text(id),
                                         .body = text(id)},
                answer_count,
                VERSION);
    return rids;
}

static void where_an_id_is_said_to_be_is_believed_of_none_but_who_is_there(void **state)
{
    (void)state;
    begin();
    struct actor *anna = wake(BRIEF, "anna");
    (void)wake(BRIEF, "bert");
    uint64_t rid = ask_told(BRIEF, "anna", "anna");
    assert_int_equal(ran, 1); // at once
    assert_int_equal(last_answer()->rid, rid);
    rid = ask_told(BRIEF, "anna", "bert"); // another stands there
    const struct host_effect *e = effect_of(HOST_SUBMIT, VERB_RUN);
    assert_non_null(e); // the longer way, to the same actor
    assert_ptr_equal(e->actor, anna);
    complete(anna, (struct completion){.verb = VERB_RUN, .ticket = e->submission.ticket});
    assert_int_equal(last_answer()->rid, rid);
    rid = ask_told(BRIEF, "anna", "nobody");
    e = effect_of(HOST_SUBMIT, VERB_RUN);
    assert_non_null(e);
    assert_ptr_equal(e->actor, anna);
    complete(anna, (struct completion){.verb = VERB_RUN, .ticket = e->submission.ticket});
    assert_int_equal(last_answer()->rid, rid);
    (void)ask_told(BRIEF, "carl", "anna"); // who does not live yet, lives where its own hash says
    e = effect_of(HOST_SUBMIT, VERB_ACTIVATE);
    assert_non_null(e);
    assert_int_equal(actor_position(e->actor), host_position(host, BRIEF, text("carl")));
}

/* What was refused keeps back what was sent behind it, whatever place that says. */
static void no_place_gets_round_a_refusal(void **state)
{
    (void)state;
    begin();
    (void)wake(BRIEF, "anna");
    const uint64_t heard = answer_count;

    servers_find(&host->streams.servers, GATEWAY)
        ->stream.fence[host_position(host, BRIEF, text("anna")) % STREAM_FENCES] = UINT64_MAX;
    servers_find(&host->streams.servers, GATEWAY)->stream.fence_max = UINT64_MAX;
    const uint64_t rid = ask_told(BRIEF, "anna", "bert");
    assert_int_equal(ran, 0);
    assert_int_equal(answer_count, heard);
    assert_int_equal(last_answer()->rid, rid);
    assert_int_equal(last_answer()->code, STREAM_CODE_BEHIND);
}

static void what_a_link_lost_comes_again_from_the_log(void **state)
{
    (void)state;
    begin();
    (void)wake(BRIEF, "anna");
    const uint64_t rid = ask(BRIEF, "anna", answer_count);
    read_log();
    assert_int_equal(answer_count, 2);
    assert_int_equal(join(STREAM_JOIN, 1), FRAME_STREAM_JOINED); // it read the first one
    number--;
    rids--;
    assert_int_equal(ask(BRIEF, "anna", 1), rid); // and sends again what was taken
    assert_int_equal(ran, 1);
    assert_int_equal(last_answer()->rid, rid);
    assert_int_equal(answer_count, 3);
}

static void one_that_is_refused_keeps_back_what_was_sent_behind(void **state)
{
    (void)state;
    begin();
    struct actor *a = wake(SLOW, "bert");
    const uint64_t heard = answer_count;

    (void)ask(SLOW, "bert", heard);
    const struct host_effect run = *effect_of(HOST_SUBMIT, VERB_RUN);
    (void)ask(SLOW, "bert", heard);
    (void)ask(SLOW, "bert", heard); // its mailbox is full
    const uint64_t refused = ask(SLOW, "bert", heard);
    assert_int_equal(last_answer()->rid, refused);
    assert_int_equal(last_answer()->code, ANSWER_OVERLOAD);
    complete(a, (struct completion){.verb = VERB_RUN, .ticket = run.submission.ticket});
    assert_int_equal(last_answer()->code, STREAM_CODE_BEHIND); // what was in the mailbox, too
    const uint64_t behind = ask(SLOW, "bert", heard);
    assert_int_equal(last_answer()->rid, behind);
    assert_int_equal(last_answer()->code, STREAM_CODE_BEHIND);
    (void)ask(SLOW, "bert", answer_count);
    assert_non_null(effect_of(HOST_SUBMIT, VERB_RUN));
}

static void prepare(uint64_t txn)
{
    Rh__Control c = RH__CONTROL__INIT;
    Rh__Prepare p = RH__PREPARE__INIT;
    Rh__Arc arc = RH__ARC__INIT;
    Rh__Arc *arcs[] = {&arc};
    struct host_event durable = {.type = HOST_PERSISTED};

    p.txn = txn;
    p.base_version = cluster.ring.version;
    p.arcs = arcs;
    p.n_arcs = 1;
    arc.from = 0;
    arc.to = (1u << RING_GRID_MIN) / VNODES;
    arc.out = true;
    arc.peer = 2;
    arc.peer_incarnation = OTHER;
    c.body_case = RH__CONTROL__BODY_PREPARE;
    c.prepare = &p;
    say(&c);
    const struct host_effect *e = effect_of(HOST_PERSIST, VERB_NONE);
    assert_non_null(e);
    durable.ticket = e->ticket;
    step(durable);
}

/* An id in the first vnode. */
static const char *id_that_moves(void)
{
    static char id[16];

    for (unsigned i = 0;; i++) {
        (void)snprintf(id, sizeof id, "k%u", i);
        if (ring_point_cell(host_position(host, SLOW, text(id))) < (1u << RING_GRID_MIN) / VNODES) {
            return id;
        }
    }
}

/* Returns the actor that is being activated. */
static const struct host_effect *expect_activated(const char *id)
{
    const struct host_effect *e = effect_of(HOST_SUBMIT, VERB_ACTIVATE);

    assert_non_null(e);
    assert_true(bytes_equal(actor_id(e->actor), text(id)));
    return e;
}

static void expect_run(const char *id)
{
    const struct host_effect *e = effect_of(HOST_SUBMIT, VERB_RUN);

    assert_non_null(e);
    assert_true(bytes_equal(actor_id(e->actor), text(id)));
}

/* One activation at a time, and room for one more in line. */
static void who_stands_in_line_is_activated_in_turn_and_keeps_its_order(void **state)
{
    struct host_config config = host_config_default();

    (void)state;
    config.activations_max = config.cold_count_max = 1;
    host_configure(host, &config);
    begin();
    (void)ask(SLOW, "anna", 0);
    const struct host_effect anna = *expect_activated("anna");
    (void)ask(SLOW, "bert", 0);
    (void)ask(SLOW, "bert", 0);
    assert_null(effect_of(HOST_SUBMIT, VERB_ACTIVATE));
    assert_int_equal(host->backpressure.cold_count, 1);
    const uint64_t refused = ask(SLOW, "cleo", 0);
    assert_int_equal(last_answer()->rid, refused);
    assert_int_equal(last_answer()->code, ANSWER_OVERLOAD);
    complete(anna.actor,
             (struct completion){.verb = VERB_ACTIVATE, .ticket = anna.submission.ticket});
    expect_run("anna");
    (void)ask(SLOW, "cleo", answer_count); // who stands in line is first
    assert_null(effect_of(HOST_SUBMIT, VERB_ACTIVATE));
    assert_true(host_has_more(host));
    step((struct host_event){.type = HOST_GO_ON});
    const struct host_effect bert = *expect_activated("bert");
    complete(bert.actor,
             (struct completion){.verb = VERB_ACTIVATE, .ticket = bert.submission.ticket});
    expect_run("bert");
    assert_int_equal(actor_waiting(bert.actor), 1);
}

/* What moves takes along who stands in line. */
static void who_stands_in_line_is_held_with_its_vnode(void **state)
{
    struct host_config config = host_config_default();

    (void)state;
    config.activations_max = 0;
    host_configure(host, &config);
    begin();
    step((struct host_event){.type = HOST_PEER_UP,
                             .peer = LINK + 1,
                             .role = ROLE_NODE,
                             .name = "n2",
                             .incarnation = OTHER});
    (void)ask(SLOW, id_that_moves(), 0);
    assert_int_equal(host->backpressure.cold_count, 1);
    prepare(VERSION + 1);
    for (int i = 0; i < 9 && host->txns.held_total == 0; i++) { // its image may go ahead of it
        now_us += 100 * MS;
        step((struct host_event){.type = HOST_TICK});
    }
    assert_int_equal(host->backpressure.cold_count, 0);
    assert_int_equal(host->txns.held_total, 1);
}

/* What waits for an actor may end before its turn comes. */
static void an_actor_whose_requests_expired_leaves_the_line(void **state)
{
    struct host_config config = host_config_default();

    (void)state;
    config.activations_max = 0;
    host_configure(host, &config);
    begin();
    const uint64_t rid = ask(SLOW, "anna", 0);
    now_us += 2000 * MS;
    step((struct host_event){.type = HOST_TICK});
    assert_int_equal(last_answer()->rid, rid);
    assert_int_equal(last_answer()->code, ANSWER_EXPIRED);
    config.activations_max = 1;
    host_configure(host, &config);
    step((struct host_event){.type = HOST_GO_ON});
    assert_null(effect_of(HOST_SUBMIT, VERB_ACTIVATE));
    assert_int_equal(host->actors.table.count, 0);
    assert_int_equal(host->backpressure.cold_count, 0);
}

static void what_is_queued_of_a_dead_stream_does_not_run(void **state)
{
    (void)state;
    begin();
    struct actor *a = wake(SLOW, "bert");
    (void)ask(SLOW, "bert", answer_count);
    const struct host_effect run = *effect_of(HOST_SUBMIT, VERB_RUN);
    (void)ask(SLOW, "bert", answer_count);
    begin(); // its gateway has forgotten the stream
    const size_t before = answer_count = 0;
    complete(a, (struct completion){.verb = VERB_RUN, .ticket = run.submission.ticket});
    assert_null(effect_of(HOST_SUBMIT, VERB_RUN));
    read_log();
    assert_int_equal(answer_count, before);
    assert_int_equal(host->requests.room.count, 0);
    step((struct host_event){.type = HOST_TICK});
    assert_true(list_empty(&host->streams.servers.dead)); // nothing of it is left
}

static void a_stream_that_was_forgotten_is_gone(void **state)
{
    (void)state;
    assert_int_equal(join(STREAM_JOIN, 0), FRAME_STREAM_GONE);
    begin();
    step((struct host_event){.type = HOST_PEER_DOWN, .peer = LINK});
    step((struct host_event){.type = HOST_TICK});
    now_us += 11000 * MS;
    step((struct host_event){.type = HOST_TICK});
    assert_int_equal(host->streams.dropped[STREAM_DROP_FORGOTTEN], 1);
}

static void expect_dropped(uint64_t misused)
{
    const struct host_effect *e = effect_of(HOST_DROP_PEER, VERB_NONE);
    struct host_stats stats;

    assert_non_null(e);
    assert_int_equal(e->peer, LINK);
    host_stats(host, &stats);
    assert_int_equal(stats.misuses[HOST_MISUSE_STREAM], misused);
}

static void a_frame_that_cannot_be_costs_the_link(void **state)
{
    struct buffer out = {0};

    (void)state;
    begin();
    number += 5; // a gap
    (void)ask(BRIEF, "anna", 0);
    expect_dropped(1);
    put_head(&out, STREAM_GONE, &(struct stream_head){.from = GATEWAY, .to = SELF, .first = 1});
    feed(LINK, &out); // which servers say
    expect_dropped(2);
    put_head(
        &out, STREAM_BEGIN, &(struct stream_head){.from = GATEWAY + 1, .to = SELF, .first = 1});
    feed(LINK, &out);
    expect_dropped(3);
    put_head(
        &out, STREAM_BEGIN, &(struct stream_head){.from = GATEWAY, .to = SELF - 1, .first = 1});
    feed(LINK, &out); // it knows an older incarnation only: that is nobody's fault
    expect_dropped(3);
    put_head(&out, STREAM_REQUEST, &(struct stream_head){.from = GATEWAY, .to = SELF, .first = 1});
    out.size -= 3;
    feed(LINK, &out);
    expect_dropped(4);
}

static void expect_counted(enum stream_drop what, uint64_t count)
{
    struct host_stats stats;

    host_stats(host, &stats);
    for (size_t i = 0; i < STREAM_DROP_COUNT; i++) {
        assert_int_equal(stats.streams_dropped[i], i == what ? count : 0);
    }
}

static void each_drop_has_its_reason(void **state)
{
    struct buffer out = {0};

    (void)state;
    (void)ask(BRIEF, "anna", 0); // of a stream that was never begun
    expect_dropped(0);
    expect_counted(STREAM_DROP_UNKNOWN, 1);
    host->streams.dropped[STREAM_DROP_UNKNOWN] = 0;
    begin();
    put_head(&out, STREAM_BEGIN, &(struct stream_head){.from = GATEWAY, .to = SELF, .first = 1});
    feed(LINK, &out); // an epoch that is over
    expect_dropped(0);
    expect_counted(STREAM_DROP_CONNECTION, 1);
    host->streams.dropped[STREAM_DROP_CONNECTION] = 0;
    put_head(
        &out, STREAM_BEGIN, &(struct stream_head){.from = GATEWAY, .to = SELF - 1, .first = 1});
    feed(LINK, &out);
    expect_dropped(0);
    expect_counted(STREAM_DROP_INCARNATION, 1);
}

/* All streams have more than they may: this one is refused, and of its frames none may wait. */
static void without_room_what_comes_and_what_waited_is_refused(void **state)
{
    (void)state;
    begin();
    struct actor *a = wake(SLOW, "bert");
    (void)ask(SLOW, "bert", answer_count);
    const struct host_effect run = *effect_of(HOST_SUBMIT, VERB_RUN);
    const uint64_t waits = ask(SLOW, "bert", answer_count);
    const size_t before = answer_count;
    host->streams.servers.config.size_max = STREAM_CHUNK_SIZE;
    complete(a, (struct completion){.verb = VERB_RUN, .ticket = run.submission.ticket});
    assert_null(effect_of(HOST_SUBMIT, VERB_RUN)); // no other begins
    (void)last_answer();
    assert_int_equal(answer_count, before + 2);
    assert_int_equal(last_answer()->rid, waits);
    assert_int_equal(last_answer()->code, ANSWER_OVERLOAD);
    const uint64_t refused = ask(BRIEF, "anna", before);
    assert_int_equal(last_answer()->rid, refused);
    assert_int_equal(last_answer()->code, ANSWER_OVERLOAD);
    struct host_stats stats;
    host_stats(host, &stats);
    assert_int_equal(stats.dropped[DROPPED_OVERFLOW], 2);
    assert_int_equal(stats.streams, 1);
    assert_int_equal(stats.streams_size, STREAM_CHUNK_SIZE);
    (void)ask_at(BRIEF, "anna", before, VERSION + 1);
    expect_dropped(0);
    expect_counted(STREAM_DROP_FULL, 1);
    number--;                              // it was not taken
    (void)ask(SLOW, "bert", answer_count); // all was read
    assert_non_null(effect_of(HOST_SUBMIT, VERB_RUN));
}

/* What began when there was room is answered when there is none: a log that nobody reads ends. */
static void a_log_does_not_grow_without_end_by_what_was_under_way(void **state)
{
    enum { ACTORS = 8 };
    static const uint8_t body[STREAM_CHUNK_SIZE - 100];
    struct host_effect run[ACTORS];
    struct actor *a[ACTORS];
    struct host_stats stats;

    (void)state;
    begin();
    for (unsigned i = 0; i < ACTORS; i++) {
        const char id[] = {(char)('a' + i), 0};

        a[i] = wake(SLOW, id);
        (void)ask(SLOW, id, answer_count);
        run[i] = *effect_of(HOST_SUBMIT, VERB_RUN);
    }
    host->streams.servers.config.size_max = STREAM_CHUNK_SIZE;
    for (unsigned i = 0; i < ACTORS; i++) {
        complete(a[i],
                 (struct completion){.verb = VERB_RUN,
                                     .ticket = run[i].submission.ticket,
                                     .bytes = bytes_of(body, sizeof body)});
        if (effect_of(HOST_DROP_PEER, VERB_NONE) != NULL) {
            expect_dropped(0);
            assert_true(i > 0 && i < 4);
        }
        host_stats(host, &stats);
        assert_true(stats.streams_size <= (size_t)3 * STREAM_CHUNK_SIZE);
    }
    assert_int_equal(stats.streams_dropped[STREAM_DROP_FULL], 1);
    assert_int_equal(stats.streams_dropped[STREAM_DROP_FORGOTTEN], 1);
    step((struct host_event){.type = HOST_TICK});
    assert_int_equal(join(STREAM_JOIN, answer_count), FRAME_STREAM_GONE);
    begin();
    (void)ask(SLOW, "a", 0);
    assert_non_null(effect_of(HOST_SUBMIT, VERB_RUN));
}

/* A link had no room for an `ack`: when it has, the log is named again. */
static void what_a_full_link_owes_is_said_when_it_has_room(void **state)
{
    uint64_t peer = 0;

    (void)state;
    begin();
    (void)wake(BRIEF, "anna");
    assert_null(host_unsent(host, &peer));
    step((struct host_event){.type = HOST_PEER_FULL, .peer = LINK});
    assert_null(host_unsent(host, &peer));
    step((struct host_event){.type = HOST_PEER_ROOM, .peer = LINK});
    assert_ptr_equal(host_unsent(host, &peer), host_log(host, LINK));
    assert_int_equal(peer, LINK);
}

static void what_is_of_a_newer_ring_waits_for_it(void **state)
{
    (void)state;
    begin();
    (void)wake(BRIEF, "anna");
    const uint64_t early = ask_at(BRIEF, "anna", answer_count, VERSION + 1);
    const uint64_t behind = ask(BRIEF, "anna", answer_count);
    assert_int_equal(ran, 0);
    assert_int_equal(host->topology.want_version, VERSION + 1);
    now_us += 400 * MS; // of its second
    cluster.ring.version = VERSION + 1;
    say_config(&cluster, say);
    const struct host_effect *e = effect_of(HOST_SUBMIT, VERB_RUN); // in a step of many effects
    assert_non_null(e);
    const uint64_t deadline_us = e->actor->work->running.deadline_us;
    assert_in_range(deadline_us, now_us + 599 * MS, now_us + 601 * MS);
    struct actor *a = e->actor;
    complete(a, (struct completion){.verb = VERB_RUN, .ticket = e->submission.ticket});
    assert_int_equal(last_answer()->rid, early);
    e = effect_of(HOST_SUBMIT, VERB_RUN);
    complete(a, (struct completion){.verb = VERB_RUN, .ticket = e->submission.ticket});
    assert_int_equal(last_answer()->rid, behind);
}

static void who_leaves_waits_for_what_is_parked(void **state)
{
    (void)state;
    begin();
    (void)wake(BRIEF, "anna");
    assert_false(streams_rest(host)); // the answer may be lost
    acknowledge(answer_count);
    assert_true(streams_rest(host));
    (void)ask_at(BRIEF, "anna", answer_count, VERSION + 1);
    assert_false(streams_rest(host));
}

/* A vnode is held, with one request that waits. Returns its rid. */
static uint64_t hold_one(void)
{
    begin();
    step((struct host_event){.type = HOST_PEER_UP,
                             .peer = LINK + 1,
                             .role = ROLE_NODE,
                             .name = "n2",
                             .incarnation = OTHER});
    prepare(VERSION + 1);
    const uint64_t rid = ask(SLOW, id_that_moves(), 0);
    assert_null(effect_of(HOST_SUBMIT, VERB_ACTIVATE));
    assert_int_equal(host->txns.held_total, 1);
    read_log();
    assert_int_equal(answer_count, 0);
    return rid;
}

static void a_held_request_runs_when_the_move_is_cancelled(void **state)
{
    Rh__Control c = RH__CONTROL__INIT;
    Rh__Cancel cancel = RH__CANCEL__INIT;

    (void)state;
    (void)hold_one();
    cancel.txn = VERSION + 1;
    c.body_case = RH__CONTROL__BODY_CANCEL;
    c.cancel = &cancel;
    say(&c);
    assert_non_null(effect_of(HOST_SUBMIT, VERB_ACTIVATE));
}

/* The first vnode goes to the other node, by that transaction. */
static void commit(uint64_t version)
{
    Rh__Control c = RH__CONTROL__INIT;
    Rh__Commit commit = RH__COMMIT__INIT;
    Rh__Delta delta = RH__DELTA__INIT;
    Rh__RingOp op = RH__RING_OP__INIT;
    Rh__RingOp *ops[] = {&op};

    op.kind = RING_MOVE;
    op.vnode = 0;
    op.from = 1;
    op.to = 2;
    delta.prev_version = cluster.ring.version;
    delta.version = version;
    delta.txn = version;
    delta.ops = ops;
    delta.n_ops = 1;
    const struct ring_op move = {.kind = RING_MOVE, .vnode = 0, .from = 1, .to = 2};
    ring_apply(&cluster.ring, &move, 1, version, version);
    delta.digest0 = cluster.ring.digest[0];
    delta.digest1 = cluster.ring.digest[1];
    commit.txn = version;
    commit.delta = &delta;
    c.body_case = RH__CONTROL__BODY_COMMIT;
    c.commit = &commit;
    say(&c);
}

static void a_held_request_is_refused_when_its_vnode_went(void **state)
{
    (void)state;
    const uint64_t rid = hold_one();
    commit(VERSION + 1);
    assert_int_equal(last_answer()->rid, rid);
    assert_int_equal(last_answer()->code, ANSWER_MOVED);
    assert_int_equal(last_answer()->aux, VERSION + 1);
    assert_null(effect_of(HOST_SUBMIT, VERB_ACTIVATE));
}

/* ---- forwards */

enum { ROAD = LINK + 2, PASSED_MAX = 16 };

/* What was sent on, in order. */
static struct stream_request passed[PASSED_MAX];
static size_t passed_count;

static void from_next(enum stream_frame type, struct stream_head head,
                      const struct stream_answer *a)
{
    struct buffer out = {0};

    head.from = OTHER;
    head.to = SELF;
    head.version = cluster.ring.version;
    put_head(&out, type, &head);
    if (a != NULL) {
        const size_t size = stream_answer_size(a);

        stream_answer_store(buffer_reserve(&out, size), a);
        out.size += size;
        stream_frame_end(out.data, out.size, 1);
    }
    feed(ROAD, &out);
}

/* The other node is linked, and takes streams. */
static void open_road_unheard(void)
{
    passed_count = 0;
    step((struct host_event){.type = HOST_PEER_UP,
                             .peer = ROAD,
                             .role = ROLE_NODE,
                             .name = "n2",
                             .incarnation = OTHER,
                             .dialled = true,
                             .streams = true});
    const struct host_effect *e = effect_of(HOST_SEND_PEER, VERB_NONE);
    assert_non_null(e);
    assert_int_equal(e->peer, ROAD);
    assert_int_equal(e->frame_type, STREAM_BEGIN);
}

static void open_road(void)
{
    open_road_unheard();
    from_next(STREAM_JOINED, (struct stream_head){.first = 1}, NULL);
}

static void read_road(void)
{
    struct sendlog *log = host_log(host, ROAD);
    struct bytes out;

    assert_non_null(log);
    while ((out = sendlog_unsent(log)).size > 0) {
        buffer_clear(&passed_bytes);
        buffer_put(&passed_bytes, out.data, out.size);
        const struct frame frame = {
            .type = (enum frame_type)out.data[4],
            .count = load_u16(out.data + 6),
            .body = bytes_of(passed_bytes.data + FRAME_HEADER_SIZE, out.size - FRAME_HEADER_SIZE)};
        struct stream_head head;
        struct reader in;

        assert_int_equal(stream_head_get(&frame, &head, &in), ERR_OK);
        assert_int_equal(head.version, cluster.ring.version);
        for (size_t i = 0; i < frame.count; i++) {
            assert_true(passed_count < PASSED_MAX);
            assert_int_equal(stream_request_get(&in, &passed[passed_count++]), ERR_OK);
        }
        sendlog_sent(log, out.size);
    }
}

/* A held request is sent on, and another behind it. Returns the rid of the first. */
static uint64_t pass_two(void)
{
    begin();
    open_road();
    prepare(VERSION + 1);
    const uint64_t rid = ask(SLOW, id_that_moves(), 0);
    assert_int_equal(host->txns.held_total, 1);
    commit(VERSION + 1);
    (void)ask(SLOW, id_that_moves(), 0);
    read_road();
    read_log();
    assert_int_equal(passed_count, 2);
    assert_int_equal(answer_count, 0);
    return rid;
}

static void what_is_held_goes_to_the_new_owner_in_order(void **state)
{
    (void)state;
    const uint64_t rid = pass_two();

    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(passed[i].hops, 1);
        assert_int_equal(passed[i].session, 3);
        assert_in_range(passed[i].ttl_ms, 1, 1000);
        assert_true(bytes_equal(passed[i].id, text(id_that_moves())));
        from_next(STREAM_ANSWER,
                  (struct stream_head){.first = i + 1, .ack = 2},
                  &(struct stream_answer){.rid = passed[i].rid, .body = text("done")});
        assert_int_equal(last_answer()->rid, rid + i);
        assert_int_equal(last_answer()->code, ANSWER_OK);
        assert_true(bytes_equal(last_answer()->body, text("done")));
    }
    assert_int_equal(servers_find(&host->streams.servers, GATEWAY)->stream.open, 0);
    // Once more: nobody waits for it.
    struct host_stats stats;
    from_next(STREAM_ANSWER,
              (struct stream_head){.first = 2, .ack = 2},
              &(struct stream_answer){.rid = passed[1].rid, .body = text("done")});
    host_stats(host, &stats);
    assert_int_equal(stats.late_answers, 1);
}

static void a_refusal_of_the_next_node_keeps_back_what_is_behind(void **state)
{
    (void)state;
    const uint64_t rid = pass_two();

    from_next(STREAM_ANSWER,
              (struct stream_head){.first = 1, .ack = 2},
              &(struct stream_answer){.rid = passed[0].rid, .code = ANSWER_BUSY, .aux = 5});
    assert_int_equal(last_answer()->rid, rid);
    assert_int_equal(last_answer()->code, ANSWER_BUSY);
    const uint64_t behind = ask(SLOW, id_that_moves(), 0);
    assert_int_equal(last_answer()->rid, behind);
    assert_int_equal(last_answer()->code, STREAM_CODE_BEHIND);
    read_road();
    assert_int_equal(passed_count, 2);
}

/* A log may be longer than a request's time. */
static void what_has_not_left_in_its_time_has_none(void **state)
{
    (void)state;
    begin();
    open_road();
    prepare(VERSION + 1);
    (void)ask(SLOW, id_that_moves(), 0);
    commit(VERSION + 1);
    now_us += 1001 * MS;
    step((struct host_event){.type = HOST_TICK});
    read_road();
    assert_int_equal(passed_count, 1);
    assert_int_equal(passed[0].ttl_ms, 0);
}

static void what_was_forwarded_is_not_forwarded_again(void **state)
{
    struct buffer out = {0};
    const struct stream_request r = {
        .rid = 1, .session = 3, .ttl_ms = 1000, .kind = SLOW, .hops = 1, .id = text("x")};
    const size_t size = stream_request_size(&r);

    (void)state;
    (void)pass_two();
    put_head(
        &out,
        STREAM_REQUEST,
        &(struct stream_head){.from = GATEWAY, .to = SELF, .first = number++, .version = VERSION});
    struct stream_request moved = r;
    moved.id = text(id_that_moves());
    stream_request_store(buffer_reserve(&out, size + 16), &moved);
    out.size += stream_request_size(&moved);
    stream_frame_end(out.data, out.size, 1);
    feed(LINK, &out);
    assert_int_equal(last_answer()->code, ANSWER_MOVED);
    read_road();
    assert_int_equal(passed_count, 2);
}

/* It may have run at a node that is dead. */
static struct stream_request asked_again(uint16_t kind, const char *id)
{
    return (struct stream_request){.rid = ++rids,
                                   .session = 3,
                                   .ttl_ms = 1000,
                                   .kind = kind,
                                   .again = true,
                                   .id = text(id),
                                   .body = text(id)};
}

static void of_what_nobody_saved_nobody_knows(void **state)
{
    (void)state;
    begin();
    (void)wake(BRIEF, "anna");
    ran = 0;
    struct stream_request r = asked_again(BRIEF, "anna");
    put_request(&r, answer_count, VERSION);
    assert_null(effect_of(HOST_SUBMIT, VERB_RUN));
    assert_int_equal(last_answer()->code, ANSWER_LOST);
    r = asked_again(BRIEF, "anna");
    r.flags = REQUEST_IDEMPOTENT;
    put_request(&r, answer_count, VERSION);
    const struct host_effect *e = effect_of(HOST_SUBMIT, VERB_RUN);
    assert_non_null(e);
    assert_int_equal(e->submission.asked, ASKED_FIRST);
    assert_int_equal(ran, 0); // not at once
}

static void who_saves_answers_is_told_the_name(void **state)
{
    (void)state;
    begin();
    struct actor *a = wake(SAVED, "anna");
    assert_int_equal(ran, 0);
    const uint64_t first = ask(SAVED, "anna", answer_count);
    const struct host_effect *e = effect_of(HOST_SUBMIT, VERB_RUN);
    assert_non_null(e);
    assert_int_equal(e->submission.asked, ASKED_FIRST);
    assert_int_equal(e->submission.name.asker, GATEWAY);
    assert_int_equal(e->submission.name.number, first);
    complete(a, (struct completion){.verb = VERB_RUN, .ticket = e->submission.ticket});
    const struct stream_request r = asked_again(SAVED, "anna");
    put_request(&r, answer_count, VERSION);
    e = effect_of(HOST_SUBMIT, VERB_RUN);
    assert_non_null(e);
    assert_int_equal(e->submission.asked, ASKED_AGAIN);
    assert_int_equal(e->submission.name.asker, GATEWAY);
    assert_int_equal(e->submission.name.number, r.rid);
    // It was not begun in time, and is given back and begun later: by the same name.
    complete(a,
             (struct completion){.verb = VERB_RUN,
                                 .returned = true,
                                 .ticket = e->submission.ticket,
                                 .bytes = text("anna")});
    e = effect_of(HOST_SUBMIT, VERB_RUN);
    assert_non_null(e);
    assert_int_equal(e->submission.asked, ASKED_AGAIN);
    assert_int_equal(e->submission.name.number, r.rid);
}

static void what_is_sent_on_keeps_its_name(void **state)
{
    struct stream_request r = asked_again(SLOW, id_that_moves());

    (void)state;
    const uint64_t rid = pass_two();
    r.rid = ++rids;
    put_request(&r, 0, VERSION);
    read_road();
    assert_int_equal(passed_count, 3);
    for (size_t i = 0; i < passed_count; i++) {
        assert_int_equal(passed[i].name.asker, GATEWAY);
        assert_int_equal(passed[i].name.number, i < 2 ? rid + i : r.rid);
        assert_true(passed[i].again == (i == 2));
    }
}

/* Only a node asks for others. */
static void a_gateway_asks_under_no_other_name(void **state)
{
    struct host_stats stats;
    struct stream_request r = asked_again(SAVED, "anna");

    (void)state;
    begin();
    r.name = (struct request_name){GATEWAY + 1, 5};
    put_request(&r, answer_count, VERSION);
    assert_int_equal(last_answer()->code, ANSWER_NO_KIND);
    assert_null(effect_of(HOST_SUBMIT, VERB_ACTIVATE));
    host_stats(host, &stats);
    assert_int_equal(stats.misuses[HOST_MISUSE_REQUEST], 1);
}

static void what_a_broken_link_lost_is_refused(void **state)
{
    (void)state;
    (void)pass_two();
    step((struct host_event){.type = HOST_PEER_DOWN, .peer = ROAD});
    read_log();
    assert_int_equal(answer_count, 0);
    step((struct host_event){.type = HOST_PEER_UP,
                             .peer = ROAD,
                             .role = ROLE_NODE,
                             .name = "n2",
                             .incarnation = OTHER,
                             .dialled = true,
                             .streams = true});
    assert_int_equal(effect_of(HOST_SEND_PEER, VERB_NONE)->frame_type, STREAM_JOIN);
    from_next(STREAM_JOINED, (struct stream_head){.first = 2, .ack = 1}, NULL);
    read_log();
    assert_int_equal(answer_count, 1); // the second was not taken
    assert_int_equal(last_answer()->code, ANSWER_MOVED);
}

/* BEGIN, or the answer to it, was lost at a gate. */
static void who_is_not_joined_asks_again(void **state)
{
    (void)state;
    open_road_unheard();
    step((struct host_event){.type = HOST_TICK});
    assert_null(effect_of(HOST_SEND_PEER, VERB_NONE));
    now_us += 1000 * MS;
    step((struct host_event){.type = HOST_TICK});
    const struct host_effect *e = effect_of(HOST_SEND_PEER, VERB_NONE);
    assert_non_null(e);
    assert_int_equal(e->peer, ROAD);
    assert_int_equal(e->frame_type, STREAM_BEGIN);
    from_next(STREAM_ANSWER, (struct stream_head){.first = 1}, &(struct stream_answer){.rid = 1});
    expect_counted(STREAM_DROP_UNKNOWN, 1); // it is not joined yet
    from_next(STREAM_JOINED, (struct stream_head){.first = 2}, NULL);
    now_us += 1000 * MS;
    step((struct host_event){.type = HOST_TICK});
    assert_null(effect_of(HOST_SEND_PEER, VERB_NONE));
}

/* The other node's incarnation is another, or it is taken over and stays. */
static void end_other(bool stays)
{
    const struct ring_op move = {.kind = RING_MOVE, .vnode = 0, .from = 2, .to = 1};
    Rh__Control c = RH__CONTROL__INIT;
    Rh__ConfigAnswer news = RH__CONFIG_ANSWER__INIT;
    Rh__Delta delta = RH__DELTA__INIT;
    Rh__Delta *deltas[] = {&delta};
    Rh__RingOp op = RH__RING_OP__INIT;
    Rh__RingOp *ops[] = {&op};

    if (!stays) {
        cluster.member[1].incarnation = OTHER + 1;
        cluster.ring.version++;
        say_config(&cluster, say);
        return;
    }
    op.kind = RING_MOVE;
    op.vnode = 0;
    op.from = 2;
    op.to = 1;
    delta.prev_version = cluster.ring.version;
    delta.version = cluster.ring.version + 1;
    delta.cold = true;
    delta.ops = ops;
    delta.n_ops = 1;
    ring_reassign(&cluster.ring, &move, 1, delta.version);
    delta.digest0 = cluster.ring.digest[0];
    delta.digest1 = cluster.ring.digest[1];
    news.deltas = deltas;
    news.n_deltas = 1;
    news.version = delta.version;
    c.body_case = RH__CONTROL__BODY_CONFIG;
    c.config = &news;
    say(&c);
    assert_int_equal(host_view(host)->ring.version, delta.version);
}

static void what_was_sent_on_to_a_dead_node_is_unknown(void **state)
{
    for (unsigned stays = 0; stays < 2; stays++) {
        const uint64_t rid = pass_two();

        end_other(stays != 0);
        (void)last_answer();
        assert_int_equal(answer_count, 2);
        assert_int_equal(answer[0].rid, rid);
        assert_int_equal(answer[0].code, STREAM_CODE_UNKNOWN);
        assert_int_equal(answer[1].code, STREAM_CODE_UNKNOWN);
        (void)close_all(state);
        (void)open(state);
    }
}

/* What a node sends on that is over does not run, though it may not know of its end. */
static void what_a_dead_node_sends_on_is_not_heard(void **state)
{
    for (unsigned stays = 0; stays < 2; stays++) {
        struct buffer out = {0};
        struct buffer late = {0};
        const struct stream_request r = {
            .rid = 1, .session = 3, .ttl_ms = 1000, .kind = BRIEF, .hops = 1, .id = text("anna")};
        const size_t size = stream_request_size(&r);
        struct stream_head head = {.from = OTHER, .to = SELF, .first = 1, .version = VERSION};

        begin();
        open_road();
        prepare(VERSION + 1);
        commit(VERSION + 1);
        step((struct host_event){.type = HOST_PEER_UP,
                                 .peer = ROAD + 1,
                                 .role = ROLE_NODE,
                                 .name = "n2",
                                 .incarnation = OTHER,
                                 .streams = true});
        put_head(&out, STREAM_BEGIN, &head);
        feed(ROAD + 1, &out);
        put_head(&out, STREAM_REQUEST, &head);
        stream_request_store(buffer_reserve(&out, size), &r);
        out.size += size;
        stream_frame_end(out.data, out.size, 1);
        buffer_put(&late, out.data, out.size);
        feed(ROAD + 1, &out);
        const struct host_effect *e = effect_of(HOST_SUBMIT, VERB_ACTIVATE);
        assert_non_null(e);
        const struct completion c = {.verb = VERB_ACTIVATE, .ticket = e->submission.ticket};
        struct actor *a = e->actor;
        end_other(stays != 0);
        complete(a, c);
        assert_null(effect_of(HOST_SUBMIT, VERB_RUN));
        head.first = 2;
        put_head(&out, STREAM_BEGIN, &head);
        feed(ROAD + 1, &out);
        feed(ROAD + 1, &late);
        assert_int_equal(done_count, 0);
        assert_int_equal(ran, 0);
        (void)close_all(state);
        (void)open(state);
    }
}

/* A node may say that it was any incarnation that the ring does not name, a gateway's id, too. */
static void a_node_that_the_ring_does_not_name_has_no_stream(void **state)
{
    struct buffer out = {0};
    const struct stream_head head = {
        .from = GATEWAY, .to = SELF, .first = UINT64_MAX - FRAME_RECORDS_MAX, .version = VERSION};

    (void)state;
    step((struct host_event){.type = HOST_PEER_UP,
                             .peer = ROAD,
                             .role = ROLE_NODE,
                             .name = "m",
                             .incarnation = GATEWAY});
    put_head(&out, STREAM_BEGIN, &head);
    feed(ROAD, &out);
    assert_null(effect_of(HOST_SEND_PEER, VERB_NONE));
    begin();
    (void)wake(BRIEF, "anna");
    put_head(&out, STREAM_JOIN, &head);
    feed(ROAD, &out);
    assert_null(effect_of(HOST_SEND_PEER, VERB_NONE));
    expect_counted(STREAM_DROP_OVER, 2);
    const uint64_t rid = ask(BRIEF, "anna", answer_count);
    assert_int_equal(last_answer()->rid, rid);
}

/* ---- costs: of the host alone, its actors do nothing */

static void put_requests(struct buffer *out, uint16_t kind, unsigned count)
{
    static const char *const ids[] = {"anna", "bert", "carl", "dora"};
    const struct ring_key key = ring_key_of_kind(cluster.key, kind);

    put_head(
        out,
        STREAM_REQUEST,
        &(struct stream_head){
            .from = GATEWAY, .to = SELF, .first = number, .ack = answer_count, .version = VERSION});
    for (unsigned i = 0; i < count; i++) {
        const struct stream_request r = {.rid = ++rids,
                                         .session = 3,
                                         .hash = ring_position(key, text(ids[i % 4])),
                                         .ttl_ms = 1000,
                                         .kind = kind,
                                         .id = text(ids[i % 4]),
                                         .body = text("sixteen bytes ..")};
        const size_t size = stream_request_size(&r);

        stream_request_store(buffer_reserve(out, size), &r);
        out->size += size;
    }
    number += count;
    stream_frame_end(out->data, out->size, count);
}

enum { LEASE_US = 3000000 };

/* From now on it has a lease. */
static void grant(void)
{
    Rh__Control c = RH__CONTROL__INIT;
    Rh__Grant grant = RH__GRANT__INIT;

    now_us += LEASE_US;
    step((struct host_event){.type = HOST_TICK}); // it asks
    grant.seq = host->membership.renew_seq;
    grant.lease_us = LEASE_US;
    grant.version = VERSION;
    c.body_case = RH__CONTROL__BODY_GRANT;
    c.grant = &grant;
    say(&c);
}

/* A full gate loses JOINED: nothing of the log goes before another one does. */
static void a_log_waits_for_a_joined_that_was_lost(void **state)
{
    uint64_t peer = 0;

    (void)state;
    begin();
    (void)wake(BRIEF, "anna");
    grant();
    assert_int_equal(join(STREAM_JOIN, 0), FRAME_STREAM_JOINED);
    host->lease_policy.gate.size_max = 0;
    host_keep(host, &effects, 0);
    expect_counted(STREAM_DROP_GATE, 1);
    assert_null(host_unsent(host, &peer));
    assert_null(host_log(host, LINK));
    assert_int_equal(join(STREAM_JOIN, 0), FRAME_STREAM_JOINED);
    assert_non_null(host_unsent(host, &peer));
    assert_int_equal(peer, LINK);
}

/* The lease ends in the midst of a frame: what comes then begins by effects, which the shell looks
 * at the clock for. */
static void a_long_frame_looks_at_the_clock(void **state)
{
    enum { COUNT = 80, A_LOOK = 32 };
    struct buffer out = {0};

    (void)state;
    begin();
    (void)wake(BRIEF, "anna");
    (void)wake(BRIEF, "bert");
    (void)wake(BRIEF, "carl");
    (void)wake(BRIEF, "dora");
    ran = 0;
    put_requests(&out, BRIEF, 2 * A_LOOK); // it has just looked
    feed(LINK, &out);
    assert_int_equal(ran, 2 * A_LOOK);
    read_log();
    grant();
    late_us = UINT64_C(2) * LEASE_US;
    ran = 0;
    put_requests(&out, BRIEF, COUNT);
    feed(LINK, &out);
    assert_in_range(ran, 1, A_LOOK);
    assert_non_null(effect_of(HOST_SUBMIT, VERB_RUN));
}

/* Of a kind, whose row is as its place among the kinds. */
static uint64_t timed(uint16_t kind, unsigned series, unsigned bucket)
{
    return latency_read(&host_latencies(host)->row[kind + 1].of[series].bucket[bucket]);
}

static void what_runs_at_once_took_as_long_as_its_batch(void **state)
{
    (void)state;
    begin();
    (void)wake(BRIEF, "anna");
    assert_int_equal(timed(BRIEF, TIMES_REQUEST + ANSWER_OK, 0), 1);
    (void)ask(BRIEF, "anna", answer_count);
    assert_int_equal(ran, 1);
    assert_int_equal(timed(BRIEF, TIMES_REQUEST + ANSWER_OK, 2), 0);
    host_served(host, now_us + 200);
    host_served(host, now_us + 5000); // each once
    assert_int_equal(timed(BRIEF, TIMES_REQUEST + ANSWER_OK, 2), 1);
    assert_int_equal(timed(BRIEF, TIMES_MAILBOX, 0), 2);
}

static void a_wait_in_the_mailbox_counts_and_what_is_refused(void **state)
{
    enum { OTHERS = 0, BELOW_8_MS = 7 };
    struct host_stats stats;

    (void)state;
    begin();
    struct actor *a = wake(SLOW, "bert");
    assert_int_equal(timed(SLOW, TIMES_ACTIVATED, 0), 1);
    (void)ask(SLOW, "bert", answer_count);
    const struct host_effect first = *effect_of(HOST_SUBMIT, VERB_RUN);
    (void)ask(SLOW, "bert", answer_count);
    (void)ask(SLOW, "bert", answer_count);
    host_stats(host, &stats);
    assert_int_equal(stats.mailbox_waiting, 2);
    assert_int_equal(stats.mailbox_deepest, 2);
    now_us += 5 * MS;
    complete(a, (struct completion){.verb = VERB_RUN, .ticket = first.submission.ticket});
    const struct host_effect second = *effect_of(HOST_SUBMIT, VERB_RUN);
    assert_int_equal(timed(SLOW, TIMES_REQUEST + ANSWER_OK, BELOW_8_MS), 1);
    assert_int_equal(timed(SLOW, TIMES_MAILBOX, BELOW_8_MS), 0);
    complete(a, (struct completion){.verb = VERB_RUN, .ticket = second.submission.ticket});
    assert_int_equal(timed(SLOW, TIMES_REQUEST + ANSWER_OK, BELOW_8_MS), 2);
    assert_int_equal(timed(SLOW, TIMES_MAILBOX, BELOW_8_MS), 1); // when it has run
    host_stats(host, &stats);
    assert_int_equal(stats.mailbox_waiting, 0);
    (void)ask(99, "bert", answer_count);
    assert_int_equal(
        latency_count(&host_latencies(host)->row[OTHERS].of[TIMES_REQUEST + ANSWER_NO_KIND]), 1);
    for (int i = 0; i < 2; i++) { // the deepest is of a window, and the next one
        now_us += 5000 * MS;
        host_stats(host, &stats);
        assert_int_equal(stats.mailbox_deepest, 2);
        step((struct host_event){.type = HOST_TICK});
    }
    host_stats(host, &stats);
    assert_int_equal(stats.mailbox_deepest, 0);
}

static void a_steady_frame(void *context)
{
    const unsigned count = *(const unsigned *)context;
    struct buffer out = {0};

    (void)open(NULL);
    begin();
    (void)wake(BRIEF, "anna");
    (void)wake(BRIEF, "bert");
    (void)wake(BRIEF, "carl");
    (void)wake(BRIEF, "dora");
    for (unsigned i = 0; i < 2; i++) {
        buffer_clear(&out);
        put_requests(&out, BRIEF, count);
        const struct frame frame = {
            .type = (enum frame_type)out.data[4],
            .count = load_u16(out.data + 6),
            .body = bytes_of(out.data + FRAME_HEADER_SIZE, out.size - FRAME_HEADER_SIZE)};
        const struct host_event event = {
            .type = HOST_FRAME, .peer = LINK, .frame = &frame, .server = &server, .now_us = now_us};

        host_effects_clear(&effects);
        if (i == 1) {
            steps_begin();
        }
        host_step(host, &event, &effects);
        if (i == 1) {
            steps_next();
        }
        read_log();
    }
    buffer_fini(&out);
    (void)close_all(NULL);
}

static void a_steady_request_takes_few_instructions(void **state)
{
    enum { COUNT = 16 };
    unsigned count = COUNT;
    long frame = 0;

    (void)state;
    steps_count(a_steady_frame, &count, &frame, 1);
    (void)printf("instructions of a steady request: %ld\n", frame / COUNT);
    assert_in_range(frame / COUNT, 100, 670);
}

static int all_cases(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, open, close_all)
    const struct CMUnitTest tests[] = {
        CASE(a_steady_request_runs_at_once_into_the_log),
        CASE(where_an_id_is_said_to_be_is_believed_of_none_but_who_is_there),
        CASE(no_place_gets_round_a_refusal),
        CASE(what_a_link_lost_comes_again_from_the_log),
        CASE(one_that_is_refused_keeps_back_what_was_sent_behind),
        CASE(what_is_queued_of_a_dead_stream_does_not_run),
        CASE(who_stands_in_line_is_activated_in_turn_and_keeps_its_order),
        CASE(who_stands_in_line_is_held_with_its_vnode),
        CASE(an_actor_whose_requests_expired_leaves_the_line),
        CASE(a_stream_that_was_forgotten_is_gone),
        CASE(a_frame_that_cannot_be_costs_the_link),
        CASE(what_is_of_a_newer_ring_waits_for_it),
        CASE(who_leaves_waits_for_what_is_parked),
        CASE(a_held_request_runs_when_the_move_is_cancelled),
        CASE(a_held_request_is_refused_when_its_vnode_went),
        CASE(what_is_held_goes_to_the_new_owner_in_order),
        CASE(a_refusal_of_the_next_node_keeps_back_what_is_behind),
        CASE(what_has_not_left_in_its_time_has_none),
        CASE(what_was_forwarded_is_not_forwarded_again),
        CASE(of_what_nobody_saved_nobody_knows),
        CASE(who_saves_answers_is_told_the_name),
        CASE(what_is_sent_on_keeps_its_name),
        CASE(a_gateway_asks_under_no_other_name),
        CASE(what_a_broken_link_lost_is_refused),
        CASE(what_was_sent_on_to_a_dead_node_is_unknown),
        CASE(what_a_dead_node_sends_on_is_not_heard),
        CASE(a_node_that_the_ring_does_not_name_has_no_stream),
        CASE(a_long_frame_looks_at_the_clock),
        CASE(what_runs_at_once_took_as_long_as_its_batch),
        CASE(a_wait_in_the_mailbox_counts_and_what_is_refused),
        CASE(each_drop_has_its_reason),
        CASE(without_room_what_comes_and_what_waited_is_refused),
        CASE(a_log_does_not_grow_without_end_by_what_was_under_way),
        CASE(what_a_full_link_owes_is_said_when_it_has_room),
        CASE(a_log_waits_for_a_joined_that_was_lost),
        CASE(who_is_not_joined_asks_again),
        cmocka_unit_test(a_steady_request_takes_few_instructions),
    };
#undef CASE

    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv)
{
    static const enum mutant all[] = {
#define X(name, text) name,
        MUTANT_TOLD_LIST(X)
#undef X
    };

    return planted_main(argc, argv, all_cases, all, sizeof all / sizeof all[0]);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Clients that may come back: what their gateways make of binds, resumes and
 * what is sent again.
 */
#include "tests/gateway/packet_talk.h"

#include "tests/test.h"

#include <string.h>

static const uint64_t second_us = 1000000;
enum { KEEP_MS = 30000, ATTEMPT = 3 };

/* A packet of a request to "a" with these flags. */
static void asks(struct talk *t, enum packet_type type, uint32_t request, uint8_t flags)
{
    packet_put_request(&t->said,
                       type,
                       &(struct request_packet){
                           .request = request, .flags = flags, .id = of("a"), .payload = of("p")});
    send(t);
}

/* To an actor other than the one of asks(). */
static void binds_another(struct talk *t, uint32_t request)
{
    packet_put_request(&t->said,
                       PACKET_BIND,
                       &(struct request_packet){.request = request,
                                                .flags = PACKET_KEEP,
                                                .kind = 7,
                                                .id = of("me"),
                                                .payload = of("")});
    send(t);
}

static void resumes(struct talk *t, const struct session_packet *session, uint64_t pushes)
{
    uint8_t payload[PACKET_RETURN_SIZE];

    packet_put_return(
        payload,
        &(struct return_packet){.name = session->name, .has = {pushes, 4}, .attempt = ATTEMPT});
    packet_put_request(&t->said,
                       PACKET_RESUME,
                       &(struct request_packet){.request = 1,
                                                .id = of("a"),
                                                .payload = bytes_of(payload, sizeof payload)});
    send(t);
}

/* Request `number`, the last one, is a note of that type. */
static struct note note_at(const struct talk *t, size_t number, enum note_type type)
{
    const struct request_record q = client_rig_request(&t->r, number);
    struct note note = {0};

    assert_int_equal(t->r.request_count, number);
    assert_true((q.flags & REQUEST_SESSION) != 0);
    assert_int_equal(note_get(q.body, &note), ERR_OK);
    assert_int_equal(note.type, type);
    return note;
}

static void answers(struct talk *t, size_t number, const struct bound *bound)
{
    struct buffer body = {0};

    bound_put(&body, bound);
    client_rig_answer(&t->r, number, ANSWER_OK, buffer_bytes(&body));
    buffer_fini(&body);
}

/* The actor keeps whom that note bound. */
static void answers_kept(struct talk *t, size_t number, const struct note *note,
                         const struct bound *kept)
{
    struct bound bound = *kept;

    bound.round = note->round;
    bound.key = note->key;
    bound.keep_ms = KEEP_MS;
    answers(t, number, &bound);
}

static struct session_packet hears_session(struct talk *t, uint32_t request)
{
    const struct response_packet r = hears_answer(t, request, STATUS_OK);
    struct session_packet session;

    assert_int_equal(r.payload.size, PACKET_SESSION_SIZE);
    assert_int_equal(packet_get_session(r.payload, &session), ERR_OK);
    return session;
}

/* Bound so that it may return: two requests are out, the note and what was sent behind it. */
static struct session_packet keeps_by(struct talk *t, struct ring_key secret)
{
    struct clients_config clients = clients_config_default();

    clients.secret = secret;
    start(t, &clients);
    greet(t);
    asks(t, PACKET_BIND, 1, PACKET_KEEP);
    const struct note note = note_at(t, 1, NOTE_KEEP);
    asks(t, PACKET_REQUEST, 5, 0); // it waits: nobody knows yet what it is numbered in
    assert_int_equal(t->r.request_count, 1);
    assert_false(client_wants_input(t->c));
    answers_kept(t, 1, &note, &(struct bound){.result = BOUND_NEW, .next = 1, .epoch = 1});
    const struct session_packet session = hears_session(t, 1);
    assert_true(session.next == 1 && session.keep_ms == KEEP_MS);
    assert_true(client_has_input(t->c));
    client_resume(t->c, t->r.rig.now_us, &t->r.effects);
    client_rig_do_effects(&t->r);
    assert_int_equal(t->r.request_count, 2);
    return session;
}

static struct session_packet keeps(struct talk *t)
{
    return keeps_by(t, (struct ring_key){0, 0});
}

static void requests_carry_the_clients_own_names(void **state)
{
    struct talk t;
    const struct session_packet session = keeps(&t);
    struct request_record q = client_rig_request(&t.r, 2);

    (void)state;
    assert_true(q.seq == 5 && q.session == session.name.session && q.session_epoch == 1);
    client_rig_answer(&t.r, 2, ANSWER_OK, of("x"));
    hears_answer(&t, 5, STATUS_OK);
    asks(&t, PACKET_REQUEST, 0, 0);
    hears_answer(&t, 0, STATUS_BAD_REQUEST);
    asks(&t, PACKET_NOTIFY, 0, 0);
    hears_nothing(&t);
    packet_put_ack(&t.said, &(struct ack_packet){.answers = 6});
    asks(&t, PACKET_NOTIFY, 8, 0);
    q = client_rig_request(&t.r, 3);
    assert_true(q.seq == 8 && q.base == 6);
    stop(&t);
}

static void who_knows_names_of_sessions_can_not_guess_another(void **state)
{
    struct session_packet session[3];
    struct talk t;

    (void)state;
    for (size_t i = 0; i < 3; i++) { // each at a gateway with the router's seed of the others
        session[i] = keeps_by(&t, (struct ring_key){i < 2 ? 1 : 2, 3});
        stop(&t);
    }
    assert_true(session[0].name.session == session[1].name.session &&
                session[1].name.session == session[2].name.session); // they count
    assert_true(session[0].name.key == session[1].name.key);
    assert_true(session[1].name.key != session[2].name.key); // they are drawn by the secret alone
    assert_true(session[0].name.key != session[0].name.session && session[0].name.key != 0);
}

/* Another gateway may have had it run before its actor was lost, if its client had left. */
static void what_meets_a_take_over_waits_for_its_clients_word(void **state)
{
    struct talk t;
    (void)keeps(&t);
    const struct request_record q = client_rig_request(&t.r, 2);
    const struct answer_record cold = {.gateway = q.gateway,
                                       .session = q.session,
                                       .seq = q.seq,
                                       .copy = q.copy,
                                       .code = ANSWER_COLD,
                                       .aux = router_view(t.r.rig.router)->ring.version};

    (void)state;
    client_rig_event(&t.r,
                     (struct router_event){.type = ROUTER_ANSWER, .slot = 1, .answer = &cold});
    const struct packet ping = hear(&t);
    assert_true(ping.type == PACKET_PING && ping.body.size == 8);
    hears_nothing(&t);
    packet_put_ping(&t.said, PACKET_PONG, ping.body);
    send(&t);
    t.r.rig.now_us += second_us;
    client_rig_event(&t.r, (struct router_event){.type = ROUTER_TICK});
    client_rig_answer(&t.r, t.r.request_count, ANSWER_OK, of("x"));
    hears_answer(&t, 5, STATUS_OK);
    stop(&t);
}

static void who_comes_back_goes_on(void **state)
{
    struct talk t;
    const struct session_packet session = keeps(&t);

    (void)state;
    // By another line at the same gateway; the one before hangs.
    struct client *former = t.c;
    client_sent(former, client_output(former).size, t.r.rig.now_us);
    t.c = client_new(t.r.all, CLIENT_PACKETS, "y", t.r.rig.now_us);
    greet(&t);
    resumes(&t, &session, 7);
    const struct note note = note_at(&t, 3, NOTE_RETURN);
    assert_true(note.key == session.name.key && note.session == session.name.session &&
                note.got == 7 && round_attempt(note.round) == ATTEMPT);
    answers_kept(&t, 3, &note, &(struct bound){.result = BOUND_KEPT, .next = 8, .epoch = 2});
    assert_int_equal(hears_session(&t, 1).next, 8);

    // What has no answer is asked again: the one that is under way is its copy.
    asks(&t, PACKET_REQUEST, 5, PACKET_AGAIN);
    assert_int_equal(t.r.request_count, 3);
    client_rig_answer(&t.r, 2, ANSWER_OK, of("x"));
    hears_answer(&t, 5, STATUS_OK);
    assert_int_equal(client_output(former).size, 0);
    asks(&t, PACKET_REQUEST, 6, PACKET_AGAIN);
    const struct request_record q = client_rig_request(&t.r, 4);
    assert_true(q.session_epoch == 2 && q.base == 4 && q.first == session.name.version);

    // What the former line asks for now is nobody's, and neither is its answer.
    struct client *now = t.c;
    t.c = former;
    asks(&t, PACKET_REQUEST, 9, 0);
    t.c = now;
    hears_nothing(&t);
    client_rig_free(&t.r, former);
    assert_int_equal(note_at(&t, 5, NOTE_LOST).why, NOTE_LOST_CLOSED);
    client_rig_answer(&t.r, 4, ANSWER_OK, of("y"));
    hears_answer(&t, 6, STATUS_OK);
    stop(&t);
}

/* What the one before had asked, and this one does not, is answered to nobody. */
static void answers_of_the_line_before_are_dropped(void **state)
{
    struct talk t;
    const struct session_packet session = keeps(&t);
    struct client *former = t.c;

    (void)state;
    client_sent(former, client_output(former).size, t.r.rig.now_us);
    t.c = client_new(t.r.all, CLIENT_PACKETS, "y", t.r.rig.now_us);
    greet(&t);
    resumes(&t, &session, 0);
    const struct note note = note_at(&t, 3, NOTE_RETURN);
    answers(&t,
            3,
            &(struct bound){
                .result = BOUND_KEPT, .round = note.round, .key = note.key, .next = 1, .epoch = 2});
    (void)hears_session(&t, 1);
    client_rig_answer(&t.r, 2, ANSWER_OK, of("x"));
    hears_nothing(&t);
    client_rig_free(&t.r, former);
    stop(&t);
}

/* Its gateway still asks what a line of four before asked, and has no more answer for it. */
static void what_an_older_line_asked_is_nobodys(void **state)
{
    struct talk t;
    const struct session_packet session = keeps(&t);

    (void)state;
    client_rig_free(&t.r, t.c);
    t.c = client_new(t.r.all, CLIENT_PACKETS, "y", t.r.rig.now_us);
    packet_put_hello(&t.said, &(struct hello_packet){.version_min = 1, .version_max = 1});
    send(&t);
    (void)hear(&t);
    resumes(&t, &session, 0);
    const struct note note = note_at(&t, 4, NOTE_RETURN);
    answers(&t,
            4,
            &(struct bound){.result = BOUND_KEPT,
                            .round = note.round,
                            .key = note.key,
                            .next = 1,
                            .epoch = 5,
                            .keep_ms = KEEP_MS});
    (void)hears_session(&t, 1);
    asks(&t, PACKET_REQUEST, 6, 0);
    client_rig_answer(&t.r, 2, ANSWER_OK, of("of 5"));
    hears_nothing(&t);
    client_rig_answer(&t.r, 5, ANSWER_OK, of("of 6"));
    hears_answer(&t, 6, STATUS_OK);
    stop(&t);
}

/* It may be bound before there is a ring here, or by one that is long gone. Were it named by that,
 * all that it sends again would seem to be older than the last take-over. */
static void a_session_begins_with_the_ring_that_it_was_bound_by(void **state)
{
    struct talk t = {0};
    const struct clients_config clients = clients_config_default();
    const struct router_config router = router_config_default();

    (void)state;
    client_rig_init(&t.r, &clients, &router);
    t.c = client_new(t.r.all, CLIENT_PACKETS, "x", t.r.rig.now_us);
    packet_put_hello(&t.said, &(struct hello_packet){.version_min = 1, .version_max = 1});
    send(&t);
    (void)hear(&t);
    asks(&t, PACKET_BIND, 1, PACKET_KEEP);
    assert_int_equal(t.r.request_count, 0);
    rig_add_member(&t.r.rig, 1, 10);
    ring_create(&t.r.rig.leader.ring, RIG_VNODES, 1, 5);
    rig_config(&t.r.rig);
    client_rig_event(&t.r,
                     (struct router_event){.type = ROUTER_NODE_UP, .slot = 1, .incarnation = 10});
    const struct note note = note_at(&t, 1, NOTE_KEEP);
    answers(&t,
            1,
            &(struct bound){.result = BOUND_NEW,
                            .round = note.round,
                            .key = note.key,
                            .next = 1,
                            .epoch = 1,
                            .keep_ms = KEEP_MS});
    assert_int_equal(hears_session(&t, 1).name.version, 5);
    stop(&t);
}

static void what_is_over_is_refused(void **state)
{
    static const struct {
        enum bound_result result;
        const char *says;
    } refusals[] = {{BOUND_GONE, "GONE"}, {BOUND_OLD, "REPLACED"}, {BOUND_REFUSED, "REFUSED"}};

    (void)state;
    for (size_t i = 0; i <= 3; i++) {
        const struct session_packet session = {.name = {1, 2, 3}};
        struct talk t;

        start_greeted(&t);
        resumes(&t, &session, 0);
        (void)note_at(&t, 1, NOTE_RETURN);
        assert_int_equal(client_rig_request(&t.r, 1).flags & REQUEST_AWAKE, REQUEST_AWAKE);
        if (i == 3) { // its actor sleeps
            client_rig_answer(&t.r, 1, ANSWER_NO_KIND, of(""));
        } else {
            answers(&t, 1, &(struct bound){.result = (uint8_t)refusals[i].result});
        }
        const struct response_packet r = hears_answer(&t, 1, STATUS_REJECTED);
        const char *says = refusals[i % 3].says;
        assert_memory_equal(r.payload.data, says, strlen(says));
        asks(&t, PACKET_REQUEST, 2, PACKET_AGAIN); // in no session
        hears_answer(&t, 2, STATUS_BAD_REQUEST);
        asks(&t, PACKET_BIND, 3, PACKET_KEEP); // it begins anew
        (void)note_at(&t, 2, NOTE_KEEP);
        stop(&t);
    }
}

static void nonsense_is_refused(void **state)
{
    struct talk t;

    (void)state;
    start_greeted(&t);
    asks(&t, PACKET_RESUME, 1, 0); // "p" is no session
    hears_answer(&t, 1, STATUS_BAD_REQUEST);
    resumes(&t, &(struct session_packet){0}, 0);
    hears_answer(&t, 1, STATUS_BAD_REQUEST);
    asks(&t, PACKET_REQUEST, 2, 0);
    asks(&t, PACKET_BIND, 3, PACKET_KEEP); // behind what is numbered otherwise
    hears_answer(&t, 3, STATUS_BAD_REQUEST);
    packet_put_ack(&t.said, &(struct ack_packet){.pushes = UINT64_MAX, .answers = UINT32_MAX});
    send(&t);
    hears_nothing(&t);
    buffer_put(&t.said, "\x11\0\0\x01x", 5);
    send(&t);
    hears_notice(&t, PACKET_KICK, PACKET_KICK_BAD_PACKET);
    stop(&t);
}

/* The actor took the session and keeps none: all is as of a plain bind. */
static void a_kind_that_keeps_none_says_so(void **state)
{
    struct talk t;

    (void)state;
    start_greeted(&t);
    asks(&t, PACKET_BIND, 1, PACKET_KEEP);
    answers(&t, 1, &(struct bound){.result = BOUND_NEW, .round = 1});
    assert_int_equal(hears_session(&t, 1).keep_ms, 0);
    asks(&t, PACKET_REQUEST, 0, 0);
    assert_int_equal(client_rig_request(&t.r, 2).seq, 2);
    stop(&t);
}

static size_t go_on(struct talk *t, uint64_t us)
{
    size_t count = 0;

    t->r.rig.now_us += us;
    while (clients_go_on(t->r.all, t->r.rig.now_us, &t->r.effects) != NULL) {
        count++;
    }
    client_rig_do_effects(&t->r);
    return count;
}

static void pushed(struct talk *t, uint32_t round, uint64_t number)
{
    const struct request_record q = client_rig_request(&t->r, 1);
    const struct push_record push = {.gateway = q.gateway,
                                     .connection = q.session,
                                     .round = round,
                                     .number = number,
                                     .payload = of("x")};

    assert_non_null(clients_on_push(t->r.all, &push, t->r.rig.now_us));
}

static void hears_push(struct talk *t, uint64_t sequence)
{
    const struct packet p = hear(t);
    struct push_packet push;

    assert_int_equal(p.type, PACKET_PUSH);
    assert_int_equal(packet_get_push(p.body, &push), ERR_OK);
    assert_int_equal(push.sequence, sequence);
}

static void acknowledgements_reach_the_actor_now_and_then(void **state)
{
    struct talk t;

    (void)state;
    (void)keeps(&t);
    client_rig_answer(&t.r, 2, ANSWER_OK, of("x"));
    hears_answer(&t, 5, STATUS_OK);
    for (uint64_t i = 1; i <= 3; i++) {
        pushed(&t, 1, i);
        hears_push(&t, i);
    }
    packet_put_ack(&t.said, &(struct ack_packet){.pushes = 99}); // what never was
    packet_put_ack(&t.said, &(struct ack_packet){.pushes = 1});
    packet_put_ack(&t.said, &(struct ack_packet){.pushes = 2});
    send(&t);
    (void)go_on(&t, second_us);
    assert_int_equal(note_at(&t, 3, NOTE_ACK).got, 2);
    client_rig_answer(&t.r, 3, ANSWER_OK, of(""));
    packet_put_ack(&t.said, &(struct ack_packet){.pushes = 3});
    send(&t);
    (void)go_on(&t, second_us / 2);
    assert_int_equal(t.r.request_count, 3);
    (void)go_on(&t, second_us);
    assert_int_equal(note_at(&t, 4, NOTE_ACK).got, 3);
    assert_int_equal(go_on(&t, second_us), 0);
    stop(&t);
}

static void a_gap_is_asked_for(void **state)
{
    struct talk t;
    const struct session_packet session = keeps(&t);

    (void)state;
    client_rig_answer(&t.r, 2, ANSWER_OK, of("x"));
    hears_answer(&t, 5, STATUS_OK);
    pushed(&t, 1, 1);
    hears_push(&t, 1);
    pushed(&t, 1, 3);
    (void)go_on(&t, second_us);
    const struct note note = note_at(&t, 3, NOTE_RENEW);
    assert_true(note.got == 1 && note.got_round == 1 && note.session == session.name.session);
    pushed(&t, 1, 2);
    pushed(&t, 1, 3); // a copy
    answers(&t,
            3,
            &(struct bound){.result = BOUND_KEPT,
                            .round = 1,
                            .key = session.name.key,
                            .next = 2,
                            .epoch = 1,
                            .keep_ms = KEEP_MS});
    hears_push(&t, 2);
    hears_push(&t, 3);
    hears_nothing(&t);

    // What its actor has not kept either is lost, and not waited for.
    pushed(&t, 1, 9);
    (void)go_on(&t, 2 * second_us);
    (void)note_at(&t, 4, NOTE_RENEW);
    answers(&t,
            4,
            &(struct bound){.result = BOUND_KEPT,
                            .round = 1,
                            .key = session.name.key,
                            .next = 9,
                            .epoch = 1,
                            .keep_ms = KEEP_MS});
    hears_push(&t, 9);
    stop(&t);
}

static void one_that_was_begun_afresh_is_told(void **state)
{
    struct talk t;
    const struct session_packet session = keeps(&t);

    (void)state;
    pushed(&t, 1, 1);
    hears_push(&t, 1);
    clients_on_node_up(t.r.all, 1, t.r.rig.now_us);
    (void)go_on(&t, 10);
    const struct note note = note_at(&t, 3, NOTE_RENEW);
    assert_true(note.key != session.name.key && note.epoch == 1);
    answers_kept(&t, 3, &note, &(struct bound){.result = BOUND_NEW, .next = 1, .epoch = 1});
    const struct packet p = hear(&t);
    struct session_packet begun;
    assert_int_equal(p.type, PACKET_BEGUN);
    assert_int_equal(packet_get_session(p.body, &begun), ERR_OK);
    assert_true(begun.name.key == note.key && begun.name.session == session.name.session &&
                begun.next == 1);
    pushed(&t, note.round, 1);
    hears_push(&t, 1);
    stop(&t);
}

/* fleet_sim --profile sessions --seed 75001784: pushes that its client had not were let go. */
static void an_ack_from_before_it_began_afresh_counts_nothing(void **state)
{
    struct talk t;

    (void)state;
    (void)keeps(&t);
    client_rig_answer(&t.r, 2, ANSWER_OK, of("x"));
    hears_answer(&t, 5, STATUS_OK);
    for (uint64_t i = 1; i <= 3; i++) {
        pushed(&t, 1, i);
        hears_push(&t, i);
    }
    clients_on_node_up(t.r.all, 1, t.r.rig.now_us);
    (void)go_on(&t, 10);
    const struct note note = note_at(&t, 3, NOTE_RENEW);
    answers_kept(&t, 3, &note, &(struct bound){.result = BOUND_NEW, .next = 1, .epoch = 1});
    assert_int_equal(hear(&t).type, PACKET_BEGUN);
    for (uint64_t i = 1; i <= 4; i++) {
        pushed(&t, note.round, i);
        hears_push(&t, i);
    }
    packet_put_ack(&t.said, &(struct ack_packet){.pushes = 3}); // of those before
    send(&t);
    (void)go_on(&t, 2 * second_us);
    assert_int_equal(t.r.request_count, 3);
    packet_put_ack(&t.said, &(struct ack_packet){.pushes = 2});
    send(&t);
    (void)go_on(&t, 2 * second_us);
    assert_int_equal(note_at(&t, 4, NOTE_ACK).got, 2);
    stop(&t);
}

/* The actor that it is bound to lets it go on as "me" of kind 7. */
static void rebound(struct talk *t, uint32_t round, uint64_t number)
{
    const struct request_record q = client_rig_request(&t->r, 1);
    const struct push_record push = {.gateway = q.gateway,
                                     .connection = q.session,
                                     .round = round,
                                     .number = number,
                                     .type = PUSH_REBIND,
                                     .payload = bytes_of("\x07\x00me", 4)};

    assert_non_null(clients_on_push(t->r.all, &push, t->r.rig.now_us));
}

static void one_that_is_rebound_leaves_and_keeps_its_answers(void **state)
{
    struct auth_ok_packet who;
    struct talk t;

    (void)state;
    (void)keeps(&t);
    rebound(&t, 1, 2);
    hears_nothing(&t); // before its turn
    pushed(&t, 1, 1);
    hears_push(&t, 1);
    const struct packet p = hear(&t);
    assert_int_equal(p.type, PACKET_REBOUND);
    assert_int_equal(packet_get_auth_ok(p.body, &who), ERR_OK);
    assert_true(who.kind == 7 && bytes_equal(who.id, of("me")) && who.expires_s == 0);
    rebound(&t, 1, 2); // a copy
    (void)go_on(&t, 20000);
    assert_int_equal(note_at(&t, 3, NOTE_LOST).why, NOTE_LOST_REBOUND);
    client_rig_answer(&t.r, 2, ANSWER_OK, of("x"));
    hears_answer(&t, 5, STATUS_OK);
    binds_another(&t, 9);
    const struct note note = note_at(&t, 4, NOTE_KEEP);
    assert_true(note.round > 1);
    answers_kept(&t, 4, &note, &(struct bound){.result = BOUND_NEW, .next = 1, .epoch = 1});
    (void)hears_session(&t, 9);
    rebound(&t, 1, 2); // of the actor before
    hears_nothing(&t);
    pushed(&t, note.round, 1);
    hears_push(&t, 1);
    stop(&t);
}

/* Its client is faster than the word to its former actor: the session that it had there is closed
 * all the same (fleet_sim --profile sessions --seed 18). */
static void one_that_is_rebound_and_binds_at_once_has_one_session(void **state)
{
    struct talk t;

    (void)state;
    (void)keeps(&t);
    client_rig_answer(&t.r, 2, ANSWER_OK, of("x"));
    hears_answer(&t, 5, STATUS_OK);
    rebound(&t, 1, 1);
    assert_int_equal(hear(&t).type, PACKET_REBOUND);
    binds_another(&t, 9);
    const struct note note = note_at(&t, 4, NOTE_KEEP);
    answers_kept(&t, 4, &note, &(struct bound){.result = BOUND_NEW, .next = 1, .epoch = 1});
    (void)hears_session(&t, 9);
    stop(&t); // the gateway asserts that no session is left when its clients are gone
}

/* It may have run before its actor was lost, of which its client has not heard yet. */
static void what_is_sent_again_keeps_its_version(void **state)
{
    struct talk t;
    const struct session_packet session = {.name = {.key = 1, .session = 2, .version = 3}};

    (void)state;
    start_greeted(&t);
    resumes(&t, &session, 0);
    struct bound bound = {
        .result = BOUND_KEPT, .round = 1, .key = 1, .next = 1, .epoch = 2, .keep_ms = KEEP_MS};
    answers(&t, 1, &bound);
    (void)hears_session(&t, 1);
    clients_on_node_up(t.r.all, 1, t.r.rig.now_us);
    (void)go_on(&t, 10);
    const struct note note = note_at(&t, 2, NOTE_RENEW);
    bound.key = note.key;
    bound.round = note.round;
    bound.result = BOUND_NEW;
    answers(&t, 2, &bound);
    assert_int_equal(hear(&t).type, PACKET_BEGUN);
    asks(&t, PACKET_REQUEST, 6, PACKET_AGAIN);
    assert_int_equal(client_rig_request(&t.r, 3).first, 3);
    stop(&t);
}

static void a_gateway_that_stops_takes_what_is_sent_again(void **state)
{
    struct talk t;

    (void)state;
    (void)keeps(&t);
    client_drain(t.c, t.r.rig.now_us);
    assert_int_equal(hear(&t).type, PACKET_GOAWAY);
    asks(&t, PACKET_REQUEST, 4, PACKET_AGAIN); // it may have run
    assert_int_equal(t.r.request_count, 3);
    asks(&t, PACKET_REQUEST, 6, 0);
    hears_answer(&t, 6, STATUS_MOVING);
    assert_true(client_wants_input(t.c));
    stop(&t);
}

/* The client had MOVING for the first one, and lost its connection before that of the second. */
static void nothing_overtakes_what_a_gateway_that_stops_refused(void **state)
{
    struct talk t;

    (void)state;
    (void)keeps(&t);
    client_drain(t.c, t.r.rig.now_us);
    assert_int_equal(hear(&t).type, PACKET_GOAWAY);
    asks(&t, PACKET_REQUEST, 6, 0);
    hears_answer(&t, 6, STATUS_MOVING);
    asks(&t, PACKET_REQUEST, 7, PACKET_AGAIN);
    assert_int_equal(t.r.request_count, 2);
    hears_nothing(&t);
    assert_false(client_wants_input(t.c)); // the connection ends
    stop(&t);
}

/* Its node crashed with it: once more, in another round, for an actor that is another one. */
static void a_bind_without_an_answer_is_asked_again(void **state)
{
    struct talk t;

    (void)state;
    start_greeted(&t);
    asks(&t, PACKET_BIND, 1, PACKET_KEEP);
    const struct note first = note_at(&t, 1, NOTE_KEEP);
    pushed(&t, first.round, 1); // of the lost one
    client_rig_answer(&t.r, 1, ANSWER_LOST, of(""));
    hears_nothing(&t);
    (void)go_on(&t, 10);
    const struct note second = note_at(&t, 2, NOTE_KEEP);
    assert_true(second.round == first.round + 1 && second.session == first.session);
    answers_kept(&t, 2, &second, &(struct bound){.result = BOUND_NEW, .next = 1, .epoch = 1});
    assert_int_equal(hears_session(&t, 1).next, 1);
    hears_nothing(&t);
    stop(&t);
}

static void who_leaves_says_so(void **state)
{
    struct talk t;

    (void)state;
    (void)keeps(&t);
    packet_put_unbind(&t.said, 9);
    send(&t);
    assert_int_equal(note_at(&t, 3, NOTE_LOST).why, NOTE_LOST_LEFT);
    client_rig_answer(&t.r, 3, ANSWER_OK, of(""));
    assert_int_equal(hears_answer(&t, 9, STATUS_OK).payload.size, 0);
    stop(&t);
}

/* It went before it heard that it is kept: it can't return. */
static void who_never_heard_of_it_has_left(void **state)
{
    struct talk t;

    (void)state;
    start_greeted(&t);
    asks(&t, PACKET_BIND, 1, PACKET_KEEP);
    client_rig_free(&t.r, t.c);
    assert_int_equal(note_at(&t, 2, NOTE_LOST).why, NOTE_LOST_LEFT);
    t.c = client_new(t.r.all, CLIENT_PACKETS, "x", t.r.rig.now_us);
    stop(&t);
}

static void one_that_came_back_and_was_begun_afresh_acknowledges(void **state)
{
    struct talk t;
    const struct session_packet session = keeps(&t);

    (void)state;
    struct client *former = t.c;
    client_sent(former, client_output(former).size, t.r.rig.now_us);
    t.c = client_new(t.r.all, CLIENT_PACKETS, "y", t.r.rig.now_us);
    greet(&t);
    resumes(&t, &session, 1000000); // a long session: it has a million pushes
    const struct note back = note_at(&t, 3, NOTE_RETURN);
    answers_kept(&t, 3, &back, &(struct bound){.result = BOUND_KEPT, .next = 1000001, .epoch = 2});
    (void)hears_session(&t, 1);
    // Its actor is lost, and begun afresh.
    clients_on_node_up(t.r.all, 1, t.r.rig.now_us);
    (void)go_on(&t, 10);
    const size_t before = t.r.request_count;
    const struct note note = note_at(&t, before, NOTE_RENEW);
    answers_kept(&t, before, &note, &(struct bound){.result = BOUND_NEW, .next = 1, .epoch = 2});
    assert_int_equal(hear(&t).type, PACKET_BEGUN);
    packet_put_ack(&t.said, &(struct ack_packet){.pushes = 0}); // as protocol-client.md has it
    send(&t);
    const size_t acks = t.r.request_count;
    for (uint64_t i = 1; i <= 5; i++) {
        const struct push_record push = {.gateway = client_rig_request(&t.r, before).gateway,
                                         .connection = note.connection,
                                         .round = note.round,
                                         .number = i,
                                         .payload = of("x")};
        assert_non_null(clients_on_push(t.r.all, &push, t.r.rig.now_us));
        hears_push(&t, i);
        packet_put_ack(&t.said, &(struct ack_packet){.pushes = i});
        send(&t);
        (void)go_on(&t, 2 * second_us);
    }
    assert_true(t.r.request_count > acks);
    client_rig_free(&t.r, former);
    stop(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_carry_the_clients_own_names),
        cmocka_unit_test(who_knows_names_of_sessions_can_not_guess_another),
        cmocka_unit_test(what_meets_a_take_over_waits_for_its_clients_word),
        cmocka_unit_test(who_comes_back_goes_on),
        cmocka_unit_test(answers_of_the_line_before_are_dropped),
        cmocka_unit_test(what_an_older_line_asked_is_nobodys),
        cmocka_unit_test(a_session_begins_with_the_ring_that_it_was_bound_by),
        cmocka_unit_test(what_is_over_is_refused),
        cmocka_unit_test(nonsense_is_refused),
        cmocka_unit_test(a_kind_that_keeps_none_says_so),
        cmocka_unit_test(acknowledgements_reach_the_actor_now_and_then),
        cmocka_unit_test(a_gap_is_asked_for),
        cmocka_unit_test(one_that_was_begun_afresh_is_told),
        cmocka_unit_test(an_ack_from_before_it_began_afresh_counts_nothing),
        cmocka_unit_test(one_that_came_back_and_was_begun_afresh_acknowledges),
        cmocka_unit_test(one_that_is_rebound_leaves_and_keeps_its_answers),
        cmocka_unit_test(one_that_is_rebound_and_binds_at_once_has_one_session),
        cmocka_unit_test(what_is_sent_again_keeps_its_version),
        cmocka_unit_test(a_gateway_that_stops_takes_what_is_sent_again),
        cmocka_unit_test(nothing_overtakes_what_a_gateway_that_stops_refused),
        cmocka_unit_test(a_bind_without_an_answer_is_asked_again),
        cmocka_unit_test(who_leaves_says_so),
        cmocka_unit_test(who_never_heard_of_it_has_left),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Plays tests/story/router-*.txt: a command, "----", what the router does, an
 * empty line. REWRITE=1 writes what it did do instead; then read the diff.
 *
 *     start WINDOW                 a fresh router, deadline 10 s
 *     members SLOT:INC …           the leader's directory (n1, n2, …; all vnodes are the first's)
 *     config VERSION               tell the router all of it, at that version
 *     move ID SLOT VERSION [lost]  commit a move; "lost": the router is not told
 *     take ID SLOT VERSION         the same without a drain: a take-over
 *     coordinator up|down N        lead N TERM            up SLOT INC            down SLOT
 *     call SESSION ID BODY         tell SESSION ID BODY
 *     try SESSION ID BODY          an idempotent one
 *     must SESSION ID BODY         one that is asked until it is answered
 *     awake SESSION ID BODY        an idempotent one, only for an actor that is awake
 *     own SESSION/SEQ EPOCH BASE FIRST ID BODY      of a client that numbers its requests
 *     resume SESSION/SEQ EPOCH BASE FIRST ID BODY   the same, and it was given to a gateway before
 *     vouched SESSION VERSION      its client is still here
 *     answer SLOT SESSION/SEQ COPY CODE[@VERSION] AUX|BODY   VERSION: its owner knows no more
 *     close SESSION                after MS                figures
 */
#include "tests/gateway/router_rig.h"

#include "route/effects.h"
#include "tests/planted.h"
#include "tests/stories.h"

#include <inttypes.h>
#include <stdlib.h>

static struct rig rig;
static bool running;
static uint64_t ticket;
static FILE *out;

static const char *const code_names[] = {
    "ok", "error", "moved", "busy", "cold", "expired", "nokind", "lost", "overload"};
static const char *const reply_names[] = {"OK",
                                          "APP_ERROR",
                                          "UNKNOWN",
                                          "TIMEOUT",
                                          "REJECTED",
                                          "NO_KIND",
                                          "OVERLOADED",
                                          "QUARANTINED",
                                          "DEADLOCK"};

static void show_request(const struct router_effect *e)
{
    struct reader in = {.at = rig.effects.bytes.data + e->at, .left = e->size};
    struct request_record q;
    char epoch[24] = "";

    assert_int_equal(request_get(&in, &q), ERR_OK);
    assert_int_equal(in.left, 0);
    if (q.session_epoch > 0) {
        (void)snprintf(epoch, sizeof epoch, " epoch=%u", q.session_epoch);
    }
    (void)fprintf(out,
                  "send n%u %.*s %" PRIu64 "/%" PRIu64 "%s prev=%" PRIu64 " base=%" PRIu64
                  " first=%" PRIu64 " version=%" PRIu64 " copy=%u ttl=%u %.*s\n",
                  e->slot,
                  (int)q.id.size,
                  (const char *)q.id.data,
                  q.session,
                  q.seq,
                  epoch,
                  q.prev,
                  q.base,
                  q.first,
                  q.version,
                  q.copy,
                  q.ttl_ms,
                  (int)q.body.size,
                  (const char *)q.body.data);
}

static void show_control(const struct router_effect *e)
{
    Rh__Control *m = control_get(rig_effect_bytes(&rig, e));

    assert_non_null(m);
    if (m->body_case == RH__CONTROL__BODY_ADOPTED) {
        (void)fprintf(out, "tell n%u adopted %" PRIu64, e->slot, m->adopted->version);
        (void)fprintf(out, "%s\n", m->adopted->awaits ? ", awaits answers" : "");
    } else {
        assert_int_equal(m->body_case, RH__CONTROL__BODY_GET_CONFIG);
        (void)fprintf(out,
                      "ask coordinator %d for newer than %" PRIu64 "\n",
                      e->coordinator,
                      m->get_config->have_version);
    }
    control_free(m);
}

static void show_effects(void)
{
    for (size_t i = 0; i < rig.effects.count; i++) {
        const struct router_effect *e = &rig.effects.item[i];

        switch (e->type) {
        case ROUTER_SEND_NODE:
            show_request(e);
            break;
        case ROUTER_SEND_STREAM:
            fail(); // no link of the stories speaks them
            break;
        case ROUTER_TELL_NODE:
        case ROUTER_SEND_COORDINATOR:
            show_control(e);
            break;
        case ROUTER_REPLY:
            (void)fprintf(out,
                          "reply %" PRIu64 " ticket %" PRIu64 " %s %.*s\n",
                          e->session,
                          e->ticket,
                          reply_names[e->code],
                          (int)e->size,
                          (const char *)rig.effects.bytes.data + e->at);
            break;
        case ROUTER_CONNECT:
            (void)fprintf(
                out, "connect n%u %s\n", e->slot, (const char *)rig.effects.bytes.data + e->at);
            break;
        case ROUTER_VOUCH:
            (void)fprintf(out, "vouch %" PRIu64 " version %" PRIu64 "\n", e->session, e->version);
            break;
        case ROUTER_DISCONNECT:
            (void)fprintf(out, "disconnect n%u\n", e->slot);
            break;
        }
    }
}

static struct bytes text_of(const char *text)
{
    return bytes_of(text, strlen(text));
}

static void start(unsigned window)
{
    struct router_config config = router_config_default();

    if (running) {
        rig_fini(&rig);
    }
    config.gateway = 7;
    config.window = window;
    rig_init(&rig, &config);
    running = true;
    ticket = 0;
}

/* What a node out of the directory still owns goes to the first in it. */
static void move_orphans(void)
{
    struct ring *ring = &rig.leader.ring;

    for (size_t i = 0; i < ring->vnode_count; i++) {
        const struct ring_op op = {.kind = RING_MOVE,
                                   .vnode = ring->vnode[i].id,
                                   .from = ring->vnode[i].owner,
                                   .to = rig.leader.member[0].slot};

        if (view_member(&rig.leader, op.from) == NULL) {
            ring_apply(ring, &op, 1, ring->version, ring->version);
        }
    }
}

static void play_members(char *list)
{
    char *timer_wheel = NULL;

    rig.leader.member_count = 0;
    for (char *word = strtok_r(list, " \n", &timer_wheel); word != NULL;
         word = strtok_r(NULL, " \n", &timer_wheel)) {
        unsigned slot = 0;
        unsigned long long incarnation = 0;

        assert_int_equal(sscanf(word, "%u:%llu", &slot, &incarnation), 2); // NOLINT(cert-err34-c)
        rig_add_member(&rig, (uint16_t)slot, incarnation);
    }
    if (rig.leader.ring.version == 0) {
        ring_create(&rig.leader.ring, RIG_VNODES, rig.leader.member[0].slot, 1);
    }
    move_orphans();
}

static void play_request(char verb, uint64_t session, const char *id, const char *body)
{
    const uint8_t flags = verb == 'e'   ? REQUEST_NO_REPLY
                          : verb == 'r' ? REQUEST_IDEMPOTENT
                          : verb == 'w' ? REQUEST_IDEMPOTENT | REQUEST_AWAKE
                                        : 0;

    ticket++;
    rig_step(&rig,
             (struct router_event){.type = ROUTER_REQUEST,
                                   .session = session,
                                   .ticket = ticket,
                                   .flags = flags,
                                   .must = verb == 'u',
                                   .id = text_of(id),
                                   .body = text_of(body)});
}

struct resume_words {
    char verb[8];
    unsigned long long session;
    unsigned long long seq;
    unsigned epoch;
    unsigned long long base;
    unsigned long long first;
    char id[32];
    char body[64];
};

static void play_resume(const struct resume_words *w, bool again)
{
    ticket++;
    rig_step(&rig,
             (struct router_event){.type = ROUTER_REQUEST,
                                   .session = w->session,
                                   .ticket = ticket,
                                   .seq = w->seq,
                                   .epoch = w->epoch,
                                   .base = w->base,
                                   .first = w->first,
                                   .again = again,
                                   .id = text_of(w->id),
                                   .body = text_of(w->body)});
}

struct answer_words {
    unsigned slot;
    unsigned long long session;
    unsigned long long seq;
    unsigned copy;
    char code[16];
    char timer_wheel[64];
};

static void play_answer(const struct answer_words *w)
{
    struct answer_record answer = {
        .gateway = 7, .session = w->session, .seq = w->seq, .copy = (uint8_t)w->copy};
    const char *stale = strchr(w->code, '@');

    // "ok@5": of an owner at version 5; else of one that knows the newest.
    answer.version = stale == NULL ? UINT64_MAX : strtoull(stale + 1, NULL, 10);
    answer.fence = answer.version;

    const size_t name_size = stale == NULL ? strlen(w->code) : (size_t)(stale - w->code);
    while (strlen(code_names[answer.code]) != name_size ||
           memcmp(code_names[answer.code], w->code, name_size) != 0) {
        answer.code++;
        assert_true(answer.code <= ANSWER_CODE_LAST);
    }
    if (answer.code <= ANSWER_APP_ERROR) {
        answer.body = text_of(w->timer_wheel);
    } else {
        answer.aux = strtoull(w->timer_wheel, NULL, 10);
    }
    rig_step(
        &rig,
        (struct router_event){.type = ROUTER_ANSWER, .slot = (uint16_t)w->slot, .answer = &answer});
}

static void show_stats(void)
{
    struct router_stats f;

    router_stats(rig.router, &f);
    (void)fprintf(out,
                  "version=%" PRIu64 " requests=%" PRIu64 " in_flight=%" PRIu64 " waiting=%" PRIu64
                  " resent=%" PRIu64 " moved=%" PRIu64 " unknown=%" PRIu64 " timeout=%" PRIu64
                  " rejected=%" PRIu64 " overloaded=%" PRIu64 " retried=%" PRIu64 " cold=%" PRIu64
                  " stale=%" PRIu64 " late=%" PRIu64 "\n",
                  f.version,
                  f.requests,
                  f.in_flight,
                  f.waiting,
                  f.resent,
                  f.moved,
                  f.unknown,
                  f.timeout,
                  f.rejected,
                  f.overloaded,
                  f.retried,
                  f.cold,
                  f.stale_answers,
                  f.late_answers);
    router_effects_clear(&rig.effects);
}

/* Commands that change what the leader knows; false: it is none of them. */
static bool play_leader(const char *command)
{
    char list[128];
    char id[32];
    char how[8] = "";
    unsigned a = 0;
    unsigned long long version = 0;

    router_effects_clear(&rig.effects);
    if (sscanf(command, "members %127[^\n]", list) == 1) {
        play_members(list);
    } else if (sscanf(command, "config %llu", &version) == 1) { // NOLINT(cert-err34-c)
        ring_set_version(&rig.leader.ring, version);
        rig_config(&rig);
    } else if (sscanf(command, "era %llu", &version) == 1) { // NOLINT(cert-err34-c)
        rig.leader.era = version;
    } else if (sscanf(command, "move %31s %u %llu %7s", id, &a, &version, how) >= 3) { // NOLINT
        rig_move(&rig, text_of(id), (uint16_t)a, version, how[0] == '\0');
    } else if (sscanf(command, "take %31s %u %llu", id, &a, &version) == 3) { // NOLINT
        rig_take(&rig, text_of(id), (uint16_t)a, version);
    } else if (sscanf(command, "lead %u %llu", &a, &version) == 2) { // NOLINT(cert-err34-c)
        rig_leader(&rig, (int)a, true, version);
    } else {
        return false;
    }
    return true;
}

static bool play_links(const char *command)
{
    char how[8];
    unsigned a = 0;
    unsigned long long b = 0;

    // NOLINTBEGIN(cert-err34-c)
    if (sscanf(command, "coordinator %7s %u", how, &a) == 2) {
        rig_step(&rig,
                 (struct router_event){.type = how[0] == 'u' ? ROUTER_COORDINATOR_UP
                                                             : ROUTER_COORDINATOR_DOWN,
                                       .coordinator = (int)a});
    } else if (sscanf(command, "up %u %llu", &a, &b) == 2) {
        rig_step(
            &rig,
            (struct router_event){.type = ROUTER_NODE_UP, .slot = (uint16_t)a, .incarnation = b});
    } else if (sscanf(command, "vouched %u %llu", &a, &b) == 2) {
        rig_step(&rig, (struct router_event){.type = ROUTER_VOUCHED, .session = a, .first = b});
    } else if (sscanf(command, "down %u", &a) == 1) {
        rig_step(&rig, (struct router_event){.type = ROUTER_NODE_DOWN, .slot = (uint16_t)a});
    } else {
        return false;
    }
    // NOLINTEND(cert-err34-c)
    return true;
}

static bool play_requests(const char *command)
{
    char verb[8];
    char id[32];
    char body[64] = "";
    unsigned long long a = 0;
    struct answer_words w = {0};
    struct resume_words resume = {0};

    // NOLINTBEGIN(cert-err34-c)
    if (sscanf(command,
               "%7s %llu/%llu %u %llu %llu %31s %63s",
               resume.verb,
               &resume.session,
               &resume.seq,
               &resume.epoch,
               &resume.base,
               &resume.first,
               resume.id,
               resume.body) == 8) {
        play_resume(&resume, strcmp(resume.verb, "resume") == 0);
    } else if (sscanf(command,
                      "answer %u %llu/%llu %u %15s %63s",
                      &w.slot,
                      &w.session,
                      &w.seq,
                      &w.copy,
                      w.code,
                      w.timer_wheel) >= 5) {
        play_answer(&w);
    } else if (sscanf(command, "close %llu", &a) == 1) {
        rig_step(&rig, (struct router_event){.type = ROUTER_SESSION_CLOSED, .session = a});
    } else if (sscanf(command, "after %llu", &a) == 1) {
        rig.now_us += a * 1000;
        rig_step(&rig, (struct router_event){.type = ROUTER_TICK});
    } else if (sscanf(command, "%7s %llu %31s %63s", verb, &a, id, body) >= 3) {
        play_request(verb[1], a, id, body);
    } else {
        return false;
    }
    // NOLINTEND(cert-err34-c)
    return true;
}

static void play(const char *command)
{
    unsigned window = 0;

    if (sscanf(command, "start %u", &window) == 1) { // NOLINT(cert-err34-c)
        start(window);
    } else if (strcmp(command, "figures\n") == 0) {
        show_stats();
    } else if (play_leader(command) || play_links(command) || play_requests(command)) {
        show_effects();
    } else {
        (void)fprintf(out, "unknown command\n");
    }
}

static void play_line(char *line, FILE *to)
{
    out = to;
    play(line);
}

static void every_story_of_the_router_plays_as_written(void **state)
{
    static const struct stories stories = {.play = play_line};

    (void)state;
    stories_play(&stories, "router");
    rig_fini(&rig);
}

static int all_cases(void)
{
    const struct CMUnitTest cases[] = {
        cmocka_unit_test(every_story_of_the_router_plays_as_written),
    };

    return cmocka_run_group_tests(cases, NULL, NULL);
}

int main(int argc, char **argv)
{
    static const enum mutant all[] = {M_OLDLINE, M_LATE, M_COLDLOST, M_SLEEPERASKED};

    return planted_main(argc, argv, all_cases, all, sizeof all / sizeof all[0]);
}

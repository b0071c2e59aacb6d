/* SPDX-License-Identifier: Apache-2.0
 *
 * Plays tests/story/host-NAME.txt: a command, "----", what the node's machine did, an empty line.
 * REWRITE=1 writes what it did do instead; then read the diff. With --mutants: each bug planted in
 * the rules of who may send what must make a story go another way.
 *
 * The ring has four vnodes 0..3 of 4096 cells; an entity "2x" lies in vnode 2. The node under
 * test is "n1", slot 1, incarnation 101; slot N has incarnation 100 + N.
 */
#include "tests/node/host_story_orders.h"
#include "tests/planted.h"

/* peer LINK node|gateway ID [NAME] */
static void do_peer(void)
{
    const bool node = strcmp(words[2], "node") == 0;
    char name[16];

    (void)snprintf(name, sizeof name, "n%" PRIu64, word_number(3) - 100);
    step((struct host_event){.type = HOST_PEER_UP,
                             .peer = word_number(1),
                             .role = node ? ROLE_NODE : ROLE_GATEWAY,
                             .name = word_count > 4 ? words[4]
                                     : node         ? name
                                                    : "g",
                             .incarnation = word_number(3),
                             .streams = number_of("streams", 0) != 0});
}

static void do_adopted(void)
{
    Rh__Control c = RH__CONTROL__INIT;
    Rh__Adopted adopted = RH__ADOPTED__INIT;

    adopted.version = word_number(2);
    adopted.awaits = word_count > 3;
    c.body_case = RH__CONTROL__BODY_ADOPTED;
    c.adopted = &adopted;
    step((struct host_event){.type = HOST_PEER_CONTROL, .peer = word_number(1), .message = &c});
}

/* request ID BODY seq= [prev= base= ver= first= copy= session= from= ttl= hops= held= awake= call=
 * again= traced= ago= (made so many ms ago) chain=ID] */
static struct bytes body_of(size_t at)
{
    static char big[400000];
    const size_t size = at < word_count ? strlen(words[at]) : 0;

    if (at < word_count && strcmp(words[at], "HOPS") == 0) { // as they came to the actor
        return bytes_of(hops_kept, hops_kept_size);
    }

    if (size > 1 && words[at][0] == '*') { // "*300000": so many bytes
        const size_t count = strtoull(words[at] + 1, NULL, 10);

        memset(big, 'x', sizeof big);
        return bytes_of(big, count < sizeof big ? count : sizeof big);
    }
    return bytes_of(at < word_count ? words[at] : "", size);
}

static void do_request(void)
{
    struct request_record r = {.gateway = number_of("gateway", 900)};
    char id[64];
    const struct bytes found = id_of(words[1]);

    memcpy(id, found.data, found.size);
    r.id = bytes_of(id, found.size);
    r.body = body_of(2);
    r.session = number_of("session", 1);
    r.session_epoch = (uint32_t)number_of("epoch", 0);
    r.seq = number_of("seq", 1);
    r.prev = number_of("prev", 0);
    r.base = number_of("base", 1);
    r.version = number_of("ver", host_view(host)->ring.version);
    r.first = number_of("first", r.version);
    r.copy = (uint8_t)number_of("copy", 1);
    r.ttl_ms = (uint32_t)number_of("ttl", 10000);
    r.hops = (uint8_t)number_of("hops", 0);
    r.kind = (uint16_t)number_of("kind", 0);
    r.again = number_of("again", 0) != 0;
    r.flags = number_of("held", 0) != 0 ? REQUEST_HELD : 0;
    r.flags |= number_of("read", 0) != 0 ? REQUEST_IDEMPOTENT : 0;
    r.flags |= number_of("awake", 0) != 0 ? REQUEST_AWAKE : 0;
    r.flags |= number_of("call", 0) != 0 ? REQUEST_CALL : 0;
    if (number_of("traced", 0) != 0) {
        static const uint8_t traced = NOTE_TRACE;

        r.flags |= REQUEST_SESSION;
        r.body = bytes_of(&traced, 1);
    }
    if (text_of("chain") != NULL) {
        r.chain[r.chain_count++] =
            ring_point(&cluster.ring, 0, ring_key_of_kind(cluster.key, 0), id_of(text_of("chain")));
    }
    step((struct host_event){.type = HOST_REQUEST,
                             .peer = number_of("from", 9),
                             .made_us = now_us - number_of("ago", 0) * 1000,
                             .request = &r});
}

/* circle ID seq= [session= gateway=]: a probe comes along that call of node 102, and it is refused
 * where it is one that waits. */
static void do_circle(void)
{
    const struct probe p = {
        .call = {number_of("gateway", 102), number_of("session", 1), number_of("seq", 1)},
        .id = id_of(words[1]),
    };
    const struct blocked b = host_blocked(host, number_of("from", 2), &p);

    (void)fprintf(out, "%s\n", b.queued ? "waits" : b.run != 0 ? "runs" : "neither");
    step((struct host_event){.type = HOST_DEADLOCK, .probe = &p, .ticket = b.run});
}

/* Of what it was given last. */
static void complete(struct actor *a, struct completion c)
{
    c.ticket = a->work == NULL ? 0 : a->work->running.ticket;
    step((struct host_event){.type = HOST_COMPLETED, .actor = a, .completion = c});
}

static void do_actor(enum verb verb)
{
    struct actor *a = actor_named(words[1]);
    const bool failed = word_count > 2 && strcmp(words[2], "failed") == 0;
    const bool busy = word_count > 2 && strcmp(words[2], "busy") == 0;
    const struct bytes body = body_of(2);
    const bool in_doubt = word_count > 2 && strcmp(words[2], "LOST") == 0;

    complete(a,
             (struct completion){.verb = (uint8_t)verb,
                                 .code = in_doubt ? ANSWER_LOST : ANSWER_OK,
                                 .error = failed ? ERR_IO
                                          : busy ? ERR_BUSY
                                                 : ERR_OK,
                                 .has_state = word_count > 2 && strcmp(words[2], "cold") != 0,
                                 .bytes = bytes_of(body.data, in_doubt ? 0 : body.size)});
}

/* state TXN INDEX ID STATE [from= source= bond= version=] | state TXN INDEX END */
static void do_state(void)
{
    struct state_record s = {.txn = word_number(1), .index = (uint32_t)word_number(2)};
    struct image *image = NULL;
    char bond[BOND_SIZE];

    s.source = number_of("source", 102);
    if (strcmp(words[3], "END") == 0) {
        s.flags = STATE_END;
    } else {
        const struct bytes id = id_of(words[3]);
        const struct bytes state = body_of(4);
        const struct image_name name = {.id = id};

        const size_t bond_size = number_of("bond", 0) != 0 ? sizeof bond : 0;

        memset(bond, 'b', sizeof bond);
        const bool empty = strcmp(words[4], "EMPTY") == 0;
        image = image_make_bound(
            name,
            &(struct image_cargo){.bond = bytes_of(bond, bond_size),
                                  .state_version = (uint32_t)number_of("version", 0),
                                  .state = empty ? NULL : &state});
        s.id = image->id;
        s.total = (uint32_t)image->data.size;
        s.chunk = image->data;
    }
    s.crc = crc32c(s.chunk.data, s.chunk.size) + (uint32_t)number_of("damage", 0);
    step((struct host_event){
        .type = HOST_STATE, .peer = number_of("from", 2), .state = &s, .state_count = 1});
    image_free(image);
}

static void do_ack(void)
{
    const struct state_ack_record ack = {.txn = word_number(1),
                                         .source = number_of("source", 101),
                                         .next = (uint32_t)word_number(2),
                                         .refused = (uint8_t)number_of("refused", 0)};

    step((struct host_event){
        .type = HOST_STATE_ACK, .peer = number_of("from", 2), .state_ack = &ack});
}

static void do_answer(void)
{
    const struct answer_record a = {
        .gateway = number_of("gateway", 900), .session = 1, .seq = word_number(1)};

    step((struct host_event){.type = HOST_ANSWER, .peer = number_of("from", 2), .answer = &a});
}

/* In steps of 50 ms; a line that comes again and again is printed once, with its count. */
static void do_tick(void)
{
    const uint64_t until = now_us + word_number(1) * 1000;
    FILE *whole = out;
    char *text = NULL;
    size_t size = 0;
    char *save = NULL;
    const char *last = NULL;
    unsigned count = 0;

    out = open_memstream(&text, &size);
    while (now_us < until) {
        now_us = now_us + 50000 < until ? now_us + 50000 : until;
        step((struct host_event){.type = HOST_TICK});
    }
    (void)fclose(out);
    out = whole;
    for (const char *line = strtok_r(text, "\n", &save); line != NULL || last != NULL;
         line = strtok_r(NULL, "\n", &save)) {
        if (last != NULL && line != NULL && strcmp(line, last) == 0) {
            count++;
            continue;
        }
        if (last != NULL) {
            (void)fprintf(out, "%s", last);
            if (count > 1) {
                (void)fprintf(out, "  (%u times)", count);
            }
            (void)fputc('\n', out);
        }
        last = line;
        count = 1;
        if (line == NULL) {
            break;
        }
    }
    free(text);
}

static void do_stats(void)
{
    struct host_stats f;

    host_stats(host, &f);
    (void)fprintf(out, "version=%" PRIu64 " actors=%" PRIu64, f.version, f.actors);
    (void)fprintf(out, " held=%" PRIu64 " executed=%" PRIu64, f.held, f.executed);
    (void)fprintf(
        out, " forwarded=%" PRIu64 " expired=%" PRIu64, f.forwarded, f.dropped[DROPPED_EXPIRED]);
    (void)fprintf(out,
                  " duplicate=%" PRIu64 " overflow=%" PRIu64,
                  f.dropped[DROPPED_DUPLICATE],
                  f.dropped[DROPPED_OVERFLOW]);
    (void)fprintf(out, " foreign=%" PRIu64, f.dropped[DROPPED_FOREIGN]);
    for (unsigned i = 0; i < HOST_MISUSE_COUNT; i++) {
        if (f.misuses[i] > 0) {
            (void)fprintf(out, " misused_%s=%" PRIu64, host_misuse_word(i), f.misuses[i]);
        }
    }
    (void)fputc('\n', out);
}

/* What became of copies. */
static void do_copies(void)
{
    struct host_stats f;

    host_stats(host, &f);
    (void)fprintf(out, "attached=%" PRIu64 " again=%" PRIu64, f.attached, f.answered_again);
    (void)fprintf(out, " lost=%" PRIu64 " cold=%" PRIu64, f.answers_lost, f.refused_cold);
    (void)fprintf(out, " merged=%" PRIu64, f.dropped[DROPPED_DUPLICATE]);
    (void)fprintf(out, " abandoned=%" PRIu64, f.dropped[DROPPED_ABANDONED]);
    (void)fprintf(
        out, " fenced=%" PRIu64 " saved=%" PRIu64 "\n", f.dropped[DROPPED_FENCED], f.answers);
}

/* What the lease allows now. */
static void do_lease(void)
{
    struct host_stats f;

    host_stats(host, &f);
    (void)fprintf(
        out, "%s left=%" PRIu64 "ms", lease_state_name(f.lease), f.lease_margin_us / 1000);
    (void)fprintf(
        out, " least=%" PRIu64 "ms gated=%" PRIu64, f.lease_margin_min_us / 1000, f.lease_gated);
    (void)fprintf(out, " jumps=%" PRIu64 " lapses=%" PRIu64, f.lease_jumps, f.lease_lapses);
    (void)fprintf(out, " parked=%" PRIu64 "/%" PRIu64, f.leaseless, f.leaseless_total);
    (void)fprintf(out, " kept=%" PRIu64 "/%" PRIu64, f.gate_kept, f.gate_kept_total);
    (void)fprintf(out,
                  " dropped=%" PRIu64 ",%" PRIu64 ",%" PRIu64,
                  f.gate_dropped[HOST_DROP_BARRED],
                  f.gate_dropped[HOST_DROP_ERA],
                  f.gate_dropped[HOST_DROP_FULL]);
    if (host_running(host) > 0 && now_us >= host_hard_end_us(host)) {
        (void)fprintf(out, " OVERRUN running=%zu", host_running(host));
    }
    (void)fputc('\n', out);
}

/* stall MS: nothing happens for so long, not even a tick */
static void do_stall(void)
{
    now_us += word_number(1) * 1000;
}

/* slow MS: in the next step so long passes before each effect */
static void do_slow(void)
{
    slow_us = word_number(1) * 1000;
}

/* wall MS: the wall clock is set forward */
static void do_wall(void)
{
    wall_ahead_us += strtoll(words[1], NULL, 10) * 1000;
}

static void do_wipe(void)
{
    disk = (struct host_disk){0};
}

static void do_peerdown(void)
{
    step((struct host_event){.type = HOST_PEER_DOWN, .peer = word_number(1)});
}

static void do_persisted(void)
{
    step((struct host_event){.type = HOST_PERSISTED, .ticket = word_number(1)});
}

static void do_leave(void)
{
    step((struct host_event){.type = HOST_LEAVE});
}

static void do_activated(void)
{
    do_actor(VERB_ACTIVATE);
}

static void do_ran(void)
{
    do_actor(VERB_RUN);
}

/* full PEER, room PEER */
static void do_full(void)
{
    step((struct host_event){.type = HOST_PEER_FULL, .peer = word_number(1)});
}

static void do_room(void)
{
    step((struct host_event){.type = HOST_PEER_ROOM, .peer = word_number(1)});
}

static void do_more(void)
{
    (void)fprintf(out, host_has_more(host) ? "" : "no more\n");
    step((struct host_event){.type = HOST_GO_ON});
}

static void do_exported(void)
{
    do_actor(VERB_EXPORT);
}

/* copied ID [STATE | busy] */
static void do_copied(void)
{
    do_actor(VERB_COPY);
}

/* retired ID [failed | busy] */
static void do_retired(void)
{
    do_actor(VERB_RETIRE);
}

static void do_poke(void)
{
    do_actor(VERB_POKE);
}

static void do_passivate(void)
{
    do_actor(VERB_PASSIVATE);
}

/* broken ID: it says so itself */
static void do_broken(void)
{
    do_actor(VERB_FAIL);
}

/* deposed ID: its store has another owner */
static void do_deposed(void)
{
    struct completion c = {.verb = VERB_FAIL, .error = ERR_CONFLICT};

    complete(actor_named(words[1]), c);
}

/* wake ID */
static void do_wake(void)
{
    step((struct host_event){.type = HOST_WAKE, .kind = 0, .id = id_of(words[1])});
}

/* returned ID VERB [BODY]: the worker did not begin it in time */
static void do_returned(void)
{
    static const struct {
        const char *name;
        enum verb verb;
    } verbs[] = {{"ACTIVATE", VERB_ACTIVATE},
                 {"RUN", VERB_RUN},
                 {"TURN", VERB_TURN},
                 {"EXPORT", VERB_EXPORT},
                 {"UNFREEZE", VERB_UNFREEZE},
                 {"RETIRE", VERB_RETIRE}};
    struct completion c = {.returned = true, .bytes = body_of(3)};

    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        if (strcmp(verbs[i].name, words[2]) == 0) {
            c.verb = (uint8_t)verbs[i].verb;
        }
    }
    complete(actor_named(words[1]), c);
}

/* What became of actors. */
static void do_lives(void)
{
    struct host_stats f;

    host_stats(host, &f);
    (void)fprintf(out, "records=%" PRIu64 " live=%" PRIu64, f.actors, f.live);
    (void)fprintf(out, " tasks=%zu turns=%" PRIu64, host_running(host), f.turns);
    (void)fprintf(out, " retired=%" PRIu64 " failed=%" PRIu64, f.retired_total, f.failed_total);
    if (f.deposed_total > 0) {
        (void)fprintf(out, " deposed=%" PRIu64, f.deposed_total);
    }
    (void)fprintf(out, " woken=%" PRIu64 " to wake=%" PRIu64, f.woken, f.wake_waiting);
    (void)fprintf(out, " mailbox=%" PRIu64, f.dropped[DROPPED_MAILBOX]);
    if (f.cold + f.dropped[DROPPED_COLD] > 0) {
        (void)fprintf(out, " cold=%" PRIu64 " dropped=%" PRIu64, f.cold, f.dropped[DROPPED_COLD]);
    }
    if (f.refused_quarantine > 0) {
        (void)fprintf(out, " quarantine=%" PRIu64, f.refused_quarantine);
    }
    (void)fputc('\n', out);
}

static const struct {
    const char *name;
    void (*play)(void);
} commands[] = {
    {"new", do_new},
    {"leader", do_leader},
    {"regok", do_regok},
    {"refused", do_refused},
    {"prepare", do_prepare},
    {"commit", do_commit},
    {"cancel", do_cancel},
    {"polled", do_polled},
    {"config", do_config},
    {"grant", do_grant},
    {"barred", do_barred},
    {"told", do_told},
    {"recalled", do_recalled},
    {"forgotten", do_forgotten},
    {"peer", do_peer},
    {"adopted", do_adopted},
    {"request", do_request},
    {"circle", do_circle},
    {"state", do_state},
    {"ack", do_ack},
    {"answer", do_answer},
    {"tick", do_tick},
    {"figures", do_stats},
    {"wipe", do_wipe},
    {"peerdown", do_peerdown},
    {"leave", do_leave},
    {"persisted", do_persisted},
    {"activated", do_activated},
    {"ran", do_ran},
    {"exported", do_exported},
    {"copied", do_copied},
    {"lease", do_lease},
    {"stall", do_stall},
    {"slow", do_slow},
    {"wall", do_wall},
    {"full", do_full},
    {"room", do_room},
    {"more", do_more},
    {"copies", do_copies},
    {"missed", do_missed},
    {"retired", do_retired},
    {"poke", do_poke},
    {"passivate", do_passivate},
    {"broken", do_broken},
    {"deposed", do_deposed},
    {"quarantine", do_quarantine},
    {"release", do_release},
    {"wake", do_wake},
    {"returned", do_returned},
    {"lives", do_lives},
};

static void play(char *line)
{
    split(line);
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        if (strcmp(commands[i].name, words[0]) == 0) {
            commands[i].play();
            return;
        }
    }
    (void)fprintf(out, "unknown command\n");
}

static void begin(const char *file)
{
    story = file;
    now_us = 1000000;
    disk = (struct host_disk){0};
    asked_renew = 0;
    lost_count = 0;
    wall_ahead_us = 0;
}

static void play_line(char *line, FILE *to)
{
    out = to;
    play(line);
}

static void end(void)
{
    host_free(host);
    host = NULL;
}

static void quiet(void *context, enum log_level level, const char *line)
{
    (void)context;
    (void)level;
    (void)line;
}

static void every_story_plays_as_written(void **state)
{
    static const struct stories stories = {.begin = begin, .play = play_line, .end = end};

    (void)state;
    log_set_sink(quiet, NULL);
    stories_play(&stories, "host");
    host_effects_fini(&effects);
    view_fini(&cluster);
}

static int all_cases(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_story_plays_as_written),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv)
{
    static const enum mutant all[] = {M_NOPOLL,
                                      M_SEENUNTOLD,
                                      M_PUTOFFRUNS,
                                      M_LATELOST,
                                      M_LATEREFUSED,
                                      M_COPYUNSEEN,
#define X(name, text) name,
                                      MUTANT_IDENTITY_LIST(X)
#undef X
    };

    return planted_main(argc, argv, all_cases, all, sizeof all / sizeof all[0]);
}

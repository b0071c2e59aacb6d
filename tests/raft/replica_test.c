/* SPDX-License-Identifier: Apache-2.0
 *
 * Replicas over real SQLite folders, in one process: messages pass through a
 * queue in memory, time is a number, and each step waits for the disks.
 */
#include "raft/inside.h"
#include "raft/replica.h"
#include "storage/log/log_sqlite.h"
#include "storage/log/write_counter.h"

#include "base/bytes.h"
#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"

#include <dirent.h>
#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "wire/versions.h"

#include "tests/planted.h"
#include "tests/test.h"

enum { MEMBERS_MAX = 5, STEP_US = 10 * 1000, LOG_LINES_MAX = 64, WISH_TAG = 1000000 };

struct parcel {
    struct list_link link;
    size_t from;
    size_t to;
    size_t size;
    uint8_t data[];
};

static unsigned syncs;

/* SQLite's too: the program's own is found first. Nothing here outlives a power cut. */
// NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): libc's is __fildes
__attribute__((visibility("default"))) int fdatasync(int file)
{
    (void)file;
    (void)__atomic_fetch_add(&syncs, 1, __ATOMIC_RELAXED);
    return 0;
}

/* One voter; its state machine is the text of all commands. */
struct member {
    struct group *group;
    size_t place;
    struct replica *replica; /* NULL = down */
    struct buffer state;
    uint64_t applied;
    uint64_t restored; /* snapshots */
    bool leading;
    uint64_t term;
    uint64_t done_tag; /* last one */
    enum err done_result;
    size_t done_count;
    unsigned sent; /* messages to others */
    bool cut;      /* off the network */
    bool
        unled; /* of what it says and is told, only questions for a generation, and answers, pass */
};

struct group {
    char directory[64];
    size_t size;
    uint64_t now_us;
    uint64_t readmit;
    struct member member[MEMBERS_MAX];
    struct list parcels;
};

static struct {
    char line[LOG_LINES_MAX][1024];
    size_t count;
} logged;

static void keep_line(void *context, enum log_level level, const char *line)
{
    (void)context;
    (void)level;
    (void)snprintf(logged.line[logged.count++ % LOG_LINES_MAX], 1024, "%s", line);
}

static bool was_logged(const char *text)
{
    for (size_t i = 0; i < LOG_LINES_MAX; i++) {
        if (strstr(logged.line[i], text) != NULL) {
            return true;
        }
    }
    return false;
}

static void on_apply(void *context, uint64_t index, uint64_t tag, struct bytes command)
{
    struct member *m = context;

    (void)index;
    assert_true(tag == 0 || m->leading);
    buffer_put(&m->state, command.data, command.size);
}

static void on_applied(void *context, uint64_t index)
{
    struct member *m = context;

    assert_true(index > m->applied);
    m->applied = index;
}

static void on_snapshot(void *context, struct buffer *out)
{
    const struct member *m = context;

    buffer_put(out, m->state.data, m->state.size);
}

static bool on_restore(void *context, uint64_t index, struct bytes snapshot)
{
    struct member *m = context;

    buffer_clear(&m->state);
    buffer_put(&m->state, snapshot.data, snapshot.size);
    m->applied = index;
    m->restored++;
    return true;
}

static void on_role(void *context, bool leading, uint64_t term)
{
    struct member *m = context;

    m->leading = leading;
    m->term = term;
}

static void on_done(void *context, uint64_t tag, enum err result)
{
    struct member *m = context;

    m->done_tag = tag;
    m->done_result = result;
    m->done_count++;
}

static void on_send(void *context, uint64_t voter, struct bytes message)
{
    struct member *m = context;
    struct parcel *p = mem_new(1, sizeof *p + message.size);

    p->from = m->place;
    p->to = (size_t)voter - 1;
    p->size = message.size;
    memcpy(p->data, message.data, message.size);
    list_push_back(&m->group->parcels, &p->link);
    m->sent++;
}

static void on_wake(void *context)
{
    (void)context;
}

static void folder_of(const struct group *g, size_t place, char *out, size_t size)
{
    (void)snprintf(out, size, "%s/%zu", g->directory, place + 1);
}

static struct replica_config config_of(const struct group *g, size_t place, const char *folder)
{
    struct replica_config c = {
        .id = place + 1,
        .voter_count = g->size,
        .directory = folder,
        .cluster = "test",
        .seed = place + 1,
        .election_ms = 500,
        .heartbeat_ms = 50,
        .snapshot_entries = 16,
        .trailing_entries = 4,
        .readmit = g->readmit,
    };

    for (size_t i = 0; i < g->size; i++) {
        c.voter[i] = i + 1;
    }
    return c;
}

static enum err try_open(struct group *g, size_t place)
{
    struct member *m = &g->member[place];
    char folder[128];
    const struct replica_events events = {
        .context = m,
        .apply = on_apply,
        .applied = on_applied,
        .snapshot = on_snapshot,
        .restore = on_restore,
        .role = on_role,
        .done = on_done,
        .send = on_send,
        .wake = on_wake,
    };

    folder_of(g, place, folder, sizeof folder);
    m->group = g;
    m->place = place;
    m->applied = 0;
    m->leading = false;
    buffer_clear(&m->state);
    const struct replica_config config = config_of(g, place, folder);
    return replica_open(&m->replica, &config, &events, g->now_us);
}

static void stop(struct group *g, size_t place)
{
    replica_close(g->member[place].replica);
    g->member[place].replica = NULL;
    g->member[place].leading = false;
}

/* What the daemons do when a link comes up: each hears the other's hello. False: refused. */
static bool introduce(struct group *g, size_t a, size_t b)
{
    struct replica *ra = g->member[a].replica;
    struct replica *rb = g->member[b].replica;
    const bool pristine_a = replica_pristine(ra);
    const bool pristine_b = replica_pristine(rb);

    return replica_meet(ra, b + 1, replica_identity(rb), pristine_b) == ERR_OK &&
           replica_meet(rb, a + 1, replica_identity(ra), pristine_a) == ERR_OK;
}

static void introduce_all(struct group *g)
{
    for (size_t a = 0; a < g->size; a++) {
        for (size_t b = 0; b < a; b++) {
            if (g->member[a].replica != NULL && g->member[b].replica != NULL) {
                assert_true(introduce(g, a, b));
            }
        }
    }
}

static void start(struct group *g, size_t place)
{
    assert_int_equal(try_open(g, place), ERR_OK);
}

static void group_init(struct group *g, size_t size)
{
    *g = (struct group){.size = size, .now_us = 1000000};
    (void)snprintf(g->directory, sizeof g->directory, "/tmp/replica_test.XXXXXX");
    assert_non_null(mkdtemp(g->directory));
    list_init(&g->parcels);
    memset(&logged, 0, sizeof logged);
    log_set_sink(keep_line, NULL);
    for (size_t i = 0; i < size; i++) {
        start(g, i);
    }
}

/* A folder of files. */
static void remove_folder(const char *path)
{
    char file[512];
    DIR *folder = opendir(path);

    for (struct dirent *e; folder != NULL && (e = readdir(folder)) != NULL;) {
        (void)snprintf(file, sizeof file, "%s/%s", path, e->d_name);
        (void)unlink(file);
    }
    if (folder != NULL) {
        (void)closedir(folder);
        (void)rmdir(path);
    }
}

static void drop_parcels(struct group *g)
{
    struct list_link *link;

    while ((link = list_pop_front(&g->parcels)) != NULL) {
        mem_free(CONTAINER_OF(link, struct parcel, link));
    }
}

static void group_fini(struct group *g)
{
    for (size_t i = 0; i < g->size; i++) {
        stop(g, i);
        buffer_fini(&g->member[i].state);
    }
    drop_parcels(g);
    for (size_t i = 0; i < MEMBERS_MAX; i++) {
        char folder[128];
        folder_of(g, i, folder, sizeof folder);
        remove_folder(folder);
    }
    (void)rmdir(g->directory);
    log_set_sink(NULL, NULL);
}

static bool arrives(const struct group *g, const struct parcel *p)
{
    enum { TYPE_AT = 1, WANT = 8 }; // raft/reconfiguration.h
    const struct member *from = &g->member[p->from];
    const struct member *to = &g->member[p->to];

    return to->replica != NULL && !to->cut && !from->cut &&
           ((!to->unled && !from->unled) || p->data[TYPE_AT] >= WANT);
}

/* What is of another generation tells at most that there is one: libraft does not see it. */
static void receive(const struct group *g, struct replica *r, const struct parcel *p)
{
    enum { GENERATION_AT = 2 }; // raft/reconfiguration.h
    const uint64_t mine = replica_generation(r)->number;
    const uint64_t term = replica_raft(r)->current_term;

    replica_receive(r, g->now_us, p->from + 1, bytes_of(p->data, p->size));
    if (p->data[GENERATION_AT] != mine && replica_generation(r)->number == mine) {
        assert_int_equal(replica_raft(r)->current_term, term);
    }
}

static void deliver(struct group *g)
{
    struct list now = LIST_INIT(now);
    struct list_link *link;

    list_splice_back(&now, &g->parcels);
    while ((link = list_pop_front(&now)) != NULL) {
        struct parcel *p = CONTAINER_OF(link, struct parcel, link);
        const struct member *to = &g->member[p->to];
        if (arrives(g, p)) {
            receive(g, to->replica, p);
        }
        mem_free(p);
    }
}

static void step(struct group *g)
{
    g->now_us += STEP_US;
    for (size_t i = 0; i < g->size; i++) {
        if (g->member[i].replica != NULL) {
            replica_tick(g->member[i].replica, g->now_us);
        }
    }
    for (unsigned round = 0; round < 4; round++) {
        deliver(g);
        for (size_t i = 0; i < g->size; i++) {
            if (g->member[i].replica != NULL) {
                log_sqlite_wait(replica_store(g->member[i].replica));
                replica_poll(g->member[i].replica, g->now_us);
            }
        }
    }
}

static void run(struct group *g, unsigned ms)
{
    for (unsigned t = 0; t < ms; t += STEP_US / 1000) {
        step(g);
    }
}

static struct member *leader(struct group *g)
{
    struct member *found = NULL;

    for (size_t i = 0; i < g->size; i++) {
        if (g->member[i].replica != NULL && g->member[i].leading &&
            (found == NULL || g->member[i].term > found->term)) {
            found = &g->member[i];
        }
    }
    return found;
}

static struct member *elect(struct group *g)
{
    for (unsigned i = 0; i < 1000 && leader(g) == NULL; i++) {
        step(g);
    }
    assert_non_null(leader(g));
    return leader(g);
}

static void propose(struct group *g, const char *text)
{
    static uint64_t tag;
    struct member *m = elect(g);

    assert_int_equal(replica_propose(m->replica, ++tag, bytes_of(text, strlen(text))), ERR_OK);
    for (unsigned i = 0; i < 1000 && m->done_tag != tag; i++) {
        step(g);
    }
    assert_int_equal(m->done_tag, tag);
    assert_int_equal(m->done_result, ERR_OK);
}

static void assert_state(const struct member *m, const char *text)
{
    assert_int_equal(m->state.size, strlen(text));
    assert_memory_equal(m->state.data, text, m->state.size);
}

static void alone_it_leads_at_once_and_keeps_its_log(void **state)
{
    struct group g;
    struct replica_status status;

    (void)state;
    group_init(&g, 1);
    assert_int_equal(replica_propose(g.member[0].replica, 1, bytes_of("x", 1)), ERR_NOT_LEADER);
    propose(&g, "a");
    propose(&g, "b");
    assert_state(&g.member[0], "ab");
    const uint64_t term = g.member[0].term;
    stop(&g, 0);
    start(&g, 0);
    propose(&g, "c");
    assert_state(&g.member[0], "abc");
    assert_true(g.member[0].term > term);
    replica_status(g.member[0].replica, &status);
    assert_true(status.leading);
    assert_int_equal(status.leader, 1);
    assert_int_equal(status.applied_index, status.last_index);
    group_fini(&g);
}

static void commands_that_wait_share_one_entry(void **state)
{
    struct group g;
    struct replica_status before;
    struct replica_status after;

    (void)state;
    group_init(&g, 1);
    struct member *m = elect(&g);
    replica_status(m->replica, &before);
    const size_t done = m->done_count;
    for (uint64_t i = 0; i < 100; i++) {
        assert_int_equal(replica_propose(m->replica, i, bytes_of("xyz", i % 4)), ERR_OK);
    }
    assert_int_equal(replica_barrier(m->replica, 100), ERR_OK);
    run(&g, 20);
    replica_status(m->replica, &after);
    assert_int_equal(after.applied_index, before.applied_index + 1);
    assert_int_equal(m->done_count, done + 101);
    assert_int_equal(m->done_tag, 100);
    assert_int_equal(m->state.size, 25 * (0 + 1 + 2 + 3));
    group_fini(&g);
}

static void a_barrier_alone_is_done(void **state)
{
    struct group g;

    (void)state;
    group_init(&g, 1);
    struct member *m = elect(&g);
    assert_int_equal(replica_barrier(m->replica, 77), ERR_OK);
    run(&g, 20);
    assert_int_equal(m->done_tag, 77);
    assert_int_equal(m->done_result, ERR_OK);
    group_fini(&g);
}

static void a_command_over_the_limit_is_refused(void **state)
{
    struct group g;

    (void)state;
    group_init(&g, 1);
    struct member *m = elect(&g);
    void *big = mem_new(1, REPLICA_COMMAND_SIZE_MAX + 1);
    assert_int_equal(replica_propose(m->replica, 1, bytes_of(big, REPLICA_COMMAND_SIZE_MAX + 1)),
                     ERR_TOO_BIG);
    mem_free(big);
    group_fini(&g);
}

/* Transactions of raft.db so far. */
static uint64_t writes_of(const struct group *g, size_t place)
{
    char path[160];
    uint64_t identity = 0;
    uint64_t writes = 0;

    (void)snprintf(path, sizeof path, "%s/%zu/raft.tail", g->directory, place + 1);
    assert_int_equal(write_counter_read(path, &identity, &writes), ERR_OK);
    return writes;
}

static void a_commit_is_one_write_and_one_sync_on_each_voter(void **state)
{
    enum { COMMITS = 10 };
    struct group g;
    uint64_t before[3];

    (void)state;
    group_init(&g, 3);
    introduce_all(&g);
    propose(&g, "first");
    run(&g, 500);
    for (size_t i = 0; i < 3; i++) {
        before[i] = writes_of(&g, i);
    }
    const unsigned synced = syncs;
    for (unsigned i = 0; i < COMMITS; i++) {
        propose(&g, "another");
    }
    for (uint64_t i = 0; i < 50; i++) { // these wait for each other: one commit
        assert_int_equal(replica_barrier(leader(&g)->replica, 1000 + i), ERR_OK);
        assert_int_equal(replica_propose(leader(&g)->replica, 2000 + i, bytes_of("x", 1)), ERR_OK);
    }
    run(&g, 500);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(g.member[i].applied, leader(&g)->applied);
        assert_int_equal(writes_of(&g, i) - before[i], COMMITS + 1);
    }
    assert_int_equal(syncs - synced, 3 * (COMMITS + 1));
    group_fini(&g);
}

static void know_rounds(struct group *g)
{
    for (size_t i = 0; i < g->size; i++) {
        replica_set_format(g->member[i].replica, FLEET_FORMAT_ROUNDS);
    }
}

/* Before that, it is an entry of the log. */
static void a_barrier_writes_nothing_where_voters_know_rounds(void **state)
{
    struct group g;

    (void)state;
    group_init(&g, 3);
    introduce_all(&g);
    propose(&g, "first");
    struct member *m = leader(&g);
    uint64_t writes = writes_of(&g, 0);
    assert_int_equal(replica_barrier(m->replica, 500), ERR_OK);
    run(&g, 20);
    assert_int_equal(m->done_tag, 500);
    assert_true(writes_of(&g, 0) > writes);
    know_rounds(&g);
    run(&g, 500);
    writes = writes_of(&g, 0);
    assert_int_equal(replica_barrier(m->replica, 501), ERR_OK);
    assert_int_equal(replica_barrier(m->replica, 502), ERR_OK);
    run(&g, 20);
    assert_int_equal(m->done_tag, 502);
    assert_int_equal(m->done_result, ERR_OK);
    assert_int_equal(writes_of(&g, 0), writes);
    propose(&g, "second");
    group_fini(&g);
}

/* Take what is under way to `place`, to deliver it later. */
static void hold(struct group *g, size_t place, struct list *held)
{
    struct list rest = LIST_INIT(rest);
    struct list_link *link;

    while ((link = list_pop_front(&g->parcels)) != NULL) {
        const struct parcel *p = CONTAINER_OF(link, struct parcel, link);

        list_push_back(p->to == place ? held : &rest, link);
    }
    list_splice_back(&g->parcels, &rest);
}

static void an_answer_to_an_earlier_round_confirms_no_later_one(void **state)
{
    struct group g;
    struct list held = LIST_INIT(held);

    (void)state;
    group_init(&g, 3);
    introduce_all(&g);
    propose(&g, "first");
    know_rounds(&g);
    run(&g, 500);
    struct member *m = leader(&g);
    assert_int_equal(replica_barrier(m->replica, 600), ERR_OK);
    replica_poll(m->replica, g.now_us); // the round goes out, ...
    deliver(&g);                        // and is heard
    hold(&g, m->place, &held);
    for (struct list_link *l = list_front(&held); l != NULL; l = list_next(&held, l)) {
        receive(&g, m->replica, CONTAINER_OF(l, struct parcel, link));
    }
    assert_int_equal(m->done_tag, 600);
    m->cut = true; // nobody hears of what comes now
    assert_int_equal(replica_barrier(m->replica, 601), ERR_OK);
    run(&g, 20);
    list_splice_back(&g.parcels, &held); // the same answers, late
    m->cut = false;
    deliver(&g);
    assert_int_equal(m->done_tag, 600);
    run(&g, 500); // the next beat asks again
    assert_int_equal(m->done_tag, 601);
    assert_int_equal(m->done_result, ERR_OK);
    group_fini(&g);
}

/* A later leader's numbers begin anew: what was heard in another term would confirm them. */
static void a_voter_repeats_no_number_of_an_older_term(void **state)
{
    enum { ROUNDS = 5 };
    struct group g;
    struct list held = LIST_INIT(held);

    (void)state;
    group_init(&g, 3);
    introduce_all(&g);
    propose(&g, "first");
    know_rounds(&g);
    struct member *old = leader(&g);
    for (uint64_t i = 0; i < ROUNDS; i++) {
        assert_int_equal(replica_barrier(old->replica, 800 + i), ERR_OK);
        run(&g, 20);
    }
    assert_int_equal(old->done_tag, 800 + ROUNDS - 1);
    old->cut = true;
    run(&g, 2000);
    struct member *m = leader(&g);
    assert_ptr_not_equal(m, old);
    propose(&g, "second");
    run(&g, 500);
    const size_t other = 3 - old->place - m->place;
    m->sent = 0;
    while (m->sent == 0) {
        g.now_us += STEP_US;
        replica_tick(m->replica, g.now_us);
    }
    deliver(&g); // a beat of before its first round is heard,
    hold(&g, m->place, &held);
    g.member[other].cut = true;
    assert_int_equal(replica_barrier(m->replica, 900), ERR_OK);
    replica_poll(m->replica, g.now_us); // the round begins,
    deliver(&g);                        // nobody hears it,
    g.member[other].cut = false;
    assert_false(list_empty(&held));
    list_splice_back(&g.parcels, &held);
    deliver(&g); // and the answers come
    assert_int_not_equal(m->done_tag, 900);
    run(&g, 500);
    assert_int_equal(m->done_tag, 900);
    assert_int_equal(m->done_result, ERR_OK);
    group_fini(&g);
}

/* A round that nobody answers ends with the leadership. */
static void a_round_of_a_deposed_leader_is_not_done(void **state)
{
    struct group g;

    (void)state;
    group_init(&g, 3);
    introduce_all(&g);
    propose(&g, "first");
    know_rounds(&g);
    struct member *m = leader(&g);
    m->cut = true;
    assert_int_equal(replica_barrier(m->replica, 700), ERR_OK);
    run(&g, 400);
    assert_int_not_equal(m->done_tag, 700);
    run(&g, 2000);
    assert_int_equal(m->done_tag, 700);
    assert_int_equal(m->done_result, ERR_TIMEOUT);
    assert_ptr_not_equal(leader(&g), m);
    group_fini(&g);
}

/* Beats of the leader in that time. */
static unsigned beats(struct group *g, unsigned ms)
{
    const struct member *m = leader(g);
    const unsigned before = m->sent;

    run(g, ms);
    return (m->sent - before) / 2; // to two others
}

static void a_calm_leader_beats_seldom_and_tells_soon_what_is_committed(void **state)
{
    enum { ELECTION_MS = 500, HEARTBEAT_MS = 50 };
    struct group g;

    (void)state;
    group_init(&g, 3);
    introduce_all(&g);
    propose(&g, "first");
    run(&g, 500);
    const unsigned calm = beats(&g, 10 * ELECTION_MS);
    assert_in_range(calm, 10 * 3 - 1, 10 * 3 + 1);
    while (beats(&g, STEP_US / 1000) == 0) {
        // the next one would come late
    }
    propose(&g, "second"); // the voters know of the commit by the next beat alone
    run(&g, HEARTBEAT_MS + 2 * STEP_US / 1000);
    for (size_t i = 0; i < 3; i++) {
        assert_state(&g.member[i], "firstsecond");
    }
    // Who missed something refuses the next beat, and is given it with the one after.
    struct member *late = &g.member[leader(&g)->place == 0 ? 1 : 0];
    late->cut = true;
    propose(&g, "third");
    run(&g, HEARTBEAT_MS + 2 * STEP_US / 1000);
    late->cut = false;
    while (beats(&g, STEP_US / 1000) == 0) {
        assert_state(late, "firstsecond");
    }
    run(&g, HEARTBEAT_MS + 2 * STEP_US / 1000);
    assert_state(late, "firstsecondthird");
    group_fini(&g);
}

/* What voters say in the time of twenty election time-outs, per beat, in tenths; `place`: of that
 * one, SIZE_MAX: of all but the leader. */
static unsigned answers_per_ten_beats(struct group *g, size_t place)
{
    const size_t leads = leader(g)->place;
    unsigned before = 0;
    unsigned after = 0;

    for (size_t i = 0; i < g->size; i++) {
        before += i == place || (place == SIZE_MAX && i != leads) ? g->member[i].sent : 0;
    }
    const unsigned sent = g->member[leads].sent;
    run(g, 10000);
    for (size_t i = 0; i < g->size; i++) {
        after += i == place || (place == SIZE_MAX && i != leads) ? g->member[i].sent : 0;
    }
    assert_ptr_equal(leader(g), &g->member[leads]); // nobody else was elected
    const unsigned beats = (g->member[leads].sent - sent) / (unsigned)(g->size - 1);
    assert_in_range(beats, 57, 61);
    return (10 * (after - before) + beats / 2) / beats;
}

static void half_of_the_voters_answer_a_calm_beat_as_long_as_all_answer(void **state)
{
    (void)state;
    for (size_t size = 3; size <= 5; size += 2) {
        struct group g;

        group_init(&g, size);
        introduce_all(&g);
        propose(&g, "first");
        know_rounds(&g);
        const struct member *m = leader(&g);
        assert_int_equal(replica_barrier(m->replica, 700), ERR_OK);
        run(&g, 500);
        assert_int_equal(answers_per_ten_beats(&g, SIZE_MAX), 10 * (size / 2));
        struct member *away = &g.member[m->place == 0 ? 1 : 0];
        const size_t other = m->place == size - 1 ? size - 2 : size - 1;
        away->cut = true;
        run(&g, 500);
        assert_int_equal(answers_per_ten_beats(&g, other), 10);
        away->cut = false;
        run(&g, 500);
        assert_int_equal(answers_per_ten_beats(&g, SIZE_MAX), 10 * (size / 2));
        group_fini(&g);
    }
}

/* Those who are left hear that the leader's links ended. */
static size_t lose_leader(struct group *g)
{
    const size_t gone = leader(g)->place;

    stop(g, gone);
    for (size_t i = 0; i < g->size; i++) {
        if (g->member[i].replica != NULL) {
            replica_lost(g->member[i].replica, g->now_us, gone + 1);
        }
    }
    return gone;
}

static void a_lost_leader_is_not_waited_for(void **state)
{
    struct group g;
    uint64_t before[3];

    (void)state;
    group_init(&g, 3);
    introduce_all(&g);
    propose(&g, "a");
    run(&g, 500);
    for (size_t i = 0; i < 3; i++) {
        before[i] = writes_of(&g, i);
    }
    const size_t gone = lose_leader(&g);
    const uint64_t start_us = g.now_us;
    elect(&g);
    assert_true(g.now_us - start_us <= 100000); // of an election time-out of 500 ms
    assert_int_equal(leader(&g)->place, gone == 0 ? 1 : 0);
    run(&g, 200);
    for (size_t i = 0; i < 3; i++) {
        // Term and vote, and the new leader's first entry.
        assert_int_equal(writes_of(&g, i) - before[i], i == gone ? 0 : 2);
    }
    propose(&g, "b");
    group_fini(&g);
}

static void a_false_alarm_deposes_nobody(void **state)
{
    struct group g;

    (void)state;
    group_init(&g, 3);
    introduce_all(&g);
    propose(&g, "a");
    run(&g, 500);
    const struct member *led = leader(&g);
    const uint64_t term = led->term;
    for (size_t i = 0; i < 3; i++) {
        replica_lost(g.member[i].replica, g.now_us, 1 + (led->place + 1) % 3); // it leads nothing
    }
    replica_lost(g.member[(led->place + 1) % 3].replica, g.now_us, led->place + 1);
    run(&g, 2000);
    propose(&g, "b");
    assert_ptr_equal(leader(&g), led);
    assert_int_equal(led->term, term);
    group_fini(&g);
}

static void three_agree_and_survive_the_leader(void **state)
{
    struct group g;

    (void)state;
    group_init(&g, 3);
    introduce_all(&g);
    propose(&g, "one ");
    const size_t first = leader(&g)->place;
    stop(&g, first);
    propose(&g, "two ");
    assert_true(leader(&g)->place != first);
    start(&g, first);
    propose(&g, "three");
    run(&g, 500);
    for (size_t i = 0; i < 3; i++) {
        assert_state(&g.member[i], "one two three");
    }
    group_fini(&g);
}

static void five_go_on_without_two(void **state)
{
    struct group g;

    (void)state;
    group_init(&g, 5);
    introduce_all(&g);
    propose(&g, "a");
    stop(&g, leader(&g)->place);
    propose(&g, "b");
    stop(&g, leader(&g)->place);
    propose(&g, "c");
    assert_state(leader(&g), "abc");
    group_fini(&g);
}

static void all_restart_from_their_disks(void **state)
{
    struct group g;

    (void)state;
    group_init(&g, 3);
    introduce_all(&g);
    propose(&g, "kept ");
    const uint64_t term = leader(&g)->term;
    for (size_t i = 0; i < 3; i++) {
        stop(&g, i);
    }
    drop_parcels(&g);
    for (size_t i = 0; i < 3; i++) {
        start(&g, i);
    }
    propose(&g, "more");
    assert_true(leader(&g)->term > term);
    run(&g, 500);
    for (size_t i = 0; i < 3; i++) {
        assert_state(&g.member[i], "kept more");
    }
    group_fini(&g);
}

static void a_deposed_leader_answers_and_says_so_once(void **state)
{
    struct group g;

    (void)state;
    group_init(&g, 3);
    introduce_all(&g);
    struct member *old = elect(&g);
    old->cut = true;
    assert_int_equal(replica_propose(old->replica, 4711, bytes_of("lost", 4)), ERR_OK);
    run(&g, 3000);
    assert_int_equal(old->done_tag, 4711);
    assert_int_equal(old->done_result, ERR_TIMEOUT);
    assert_false(old->leading);
    assert_int_equal(replica_propose(old->replica, 1, bytes_of("x", 1)), ERR_NOT_LEADER);
    old->cut = false;
    propose(&g, "good");
    run(&g, 500);
    for (size_t i = 0; i < 3; i++) {
        assert_state(&g.member[i], "good");
    }
    group_fini(&g);
}

static void one_past_the_logs_start_catches_up_by_snapshot(void **state)
{
    struct group g;

    (void)state;
    group_init(&g, 3);
    introduce_all(&g);
    struct member *m = elect(&g);
    const size_t late = (m->place + 1) % 3;
    stop(&g, late);
    char text[41] = "";
    for (unsigned i = 0; i < 40; i++) {
        text[i] = (char)('a' + i % 26);
        propose(&g, (char[2]){text[i], '\0'});
    }
    start(&g, late);
    run(&g, 3000);
    assert_int_equal(g.member[late].restored, 1);
    assert_state(&g.member[late], text);
    // And it can start from that snapshot.
    stop(&g, late);
    start(&g, late);
    propose(&g, "!");
    run(&g, 500);
    assert_int_equal(g.member[late].restored, 2);
    assert_int_equal(g.member[late].state.size, 41);
    group_fini(&g);
}

static void a_long_suffix_travels_in_pieces(void **state)
{
    struct group g;
    enum { BIG = 2 << 20 };

    (void)state;
    group_init(&g, 3);
    introduce_all(&g);
    struct member *m = elect(&g);
    const size_t late = (m->place + 1) % 3;
    g.member[late].cut = true;
    char *text = mem_new(1, BIG + 1);
    memset(text, 'x', BIG);
    for (unsigned i = 0; i < 5; i++) {
        propose(&g, text);
    }
    g.member[late].cut = false;
    run(&g, 2000);
    assert_int_equal(g.member[late].state.size, 5 * (size_t)BIG);
    assert_int_equal(g.member[late].restored, 0);
    mem_free(text);
    group_fini(&g);
}

static void leadership_can_be_handed_over(void **state)
{
    struct group g;

    (void)state;
    group_init(&g, 3);
    introduce_all(&g);
    propose(&g, "a");
    run(&g, 200);
    struct member *old = leader(&g);
    replica_transfer(old->replica);
    run(&g, 200);
    assert_false(old->leading);
    assert_non_null(leader(&g));
    assert_true(leader(&g) != old);
    propose(&g, "b");
    group_fini(&g);
}

static void garbage_is_counted_and_dropped(void **state)
{
    struct group g;
    struct replica_status status;

    (void)state;
    group_init(&g, 3);
    introduce_all(&g);
    elect(&g);
    replica_receive(g.member[0].replica, g.now_us, 2, bytes_of("garbage!", 8));
    replica_receive(g.member[0].replica, g.now_us, 9, bytes_of("stranger", 8));
    replica_status(g.member[0].replica, &status);
    assert_int_equal(status.bad_messages, 2);
    propose(&g, "a");
    group_fini(&g);
}

/* ---- identity ---- */

static void no_vote_before_all_have_met(void **state)
{
    struct group g;

    (void)state;
    group_init(&g, 3);
    assert_true(introduce(&g, 0, 1));
    run(&g, 3000);
    assert_null(leader(&g));
    assert_true(replica_pristine(g.member[0].replica));
    assert_true(introduce(&g, 0, 2));
    assert_true(introduce(&g, 1, 2));
    elect(&g);
    assert_false(replica_pristine(leader(&g)->replica));
    group_fini(&g);
}

static void wipe(struct group *g, size_t place)
{
    char folder[128];

    stop(g, place);
    folder_of(g, place, folder, sizeof folder);
    remove_folder(folder);
    start(g, place);
}

static void a_wiped_voter_is_refused_for_ever(void **state)
{
    struct group g;

    (void)state;
    group_init(&g, 3);
    introduce_all(&g);
    propose(&g, "a");
    run(&g, 200);
    wipe(&g, 1);
    assert_false(introduce(&g, 0, 1) && introduce(&g, 2, 1));
    assert_true(was_logged("voter 2's data folder was wiped or replaced: it could vote twice"));
    // The others remember over a restart.
    stop(&g, 0);
    start(&g, 0);
    assert_int_equal(
        replica_meet(g.member[0].replica, 2, replica_identity(g.member[1].replica), true),
        ERR_REFUSED);
    // Nor would it vote or stand by itself.
    g.member[0].cut = true;
    g.member[2].cut = true;
    run(&g, 3000);
    assert_true(replica_pristine(g.member[1].replica));
    group_fini(&g);
}

/* Voter 1 never met the old voter 2; 2 and 3 formed no group without it, so nothing was lost when
 * 1 and the new 2 meet first. */
static void a_wiped_voter_founds_no_second_group(void **state)
{
    struct group g;

    (void)state;
    group_init(&g, 3);
    assert_true(introduce(&g, 1, 2));
    run(&g, 2000);
    assert_null(leader(&g));
    wipe(&g, 1);
    assert_true(introduce(&g, 0, 1));
    run(&g, 2000);
    assert_null(leader(&g));
    // Voter 3 knows better, and without it there are no founders.
    assert_int_equal(
        replica_meet(g.member[2].replica, 2, replica_identity(g.member[1].replica), true),
        ERR_REFUSED);
    run(&g, 2000);
    assert_null(leader(&g));
    group_fini(&g);
}

static void a_newcomer_votes_once_it_has_caught_up(void **state)
{
    struct group g;
    struct replica_status status;

    (void)state;
    group_init(&g, 3);
    // Voters 1 and 2 heard voter 3's hello, but voter 3 hears theirs only when they lead.
    assert_true(introduce(&g, 0, 1));
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(
            replica_meet(g.member[i].replica, 3, replica_identity(g.member[2].replica), true),
            ERR_OK);
    }
    propose(&g, "a");
    replica_status(g.member[2].replica, &status);
    assert_false(status.admitted);
    introduce_all(&g);
    replica_status(g.member[2].replica, &status);
    assert_false(status.admitted);
    run(&g, 500);
    replica_status(g.member[2].replica, &status);
    assert_true(status.admitted);
    stop(&g, 0);
    propose(&g, "b");
    run(&g, 200);
    assert_state(&g.member[2], "ab");
    group_fini(&g);
}

static void copy_folder(const char *from, const char *to)
{
    char command[512];

    (void)snprintf(command, sizeof command, "rm -rf %s && cp -r %s %s", to, from, to);
    assert_int_equal(system(command), 0); // NOLINT(cert-env33-c): paths are our own
}

static void the_remedy_brings_a_wiped_voter_back(void **state)
{
    struct group g;
    char from[128];
    char to[128];

    (void)state;
    group_init(&g, 3);
    introduce_all(&g);
    propose(&g, "a");
    run(&g, 200);
    const size_t source = leader(&g)->place;
    const size_t lost = (source + 1) % 3;
    const uint64_t old = replica_identity(g.member[lost].replica);
    for (size_t i = 0; i < 3; i++) {
        stop(&g, i);
    }
    drop_parcels(&g);
    folder_of(&g, source, from, sizeof from);
    folder_of(&g, lost, to, sizeof to);
    copy_folder(from, to);
    assert_int_equal(try_open(&g, lost), ERR_FOREIGN); // not without --adopt
    const struct replica_config config = config_of(&g, lost, to);
    assert_int_equal(replica_adopt(&config), ERR_OK);
    assert_int_equal(replica_adopt(&config), ERR_CONFLICT);
    start(&g, lost);
    assert_true(replica_identity(g.member[lost].replica) != old);
    g.readmit = lost + 1;
    for (size_t i = 0; i < 3; i++) {
        if (i != lost) {
            start(&g, i);
        }
    }
    g.readmit = 0;
    introduce_all(&g);
    propose(&g, "b");
    run(&g, 500);
    for (size_t i = 0; i < 3; i++) {
        assert_state(&g.member[i], "ab");
    }
    group_fini(&g);
}

static void a_group_is_one_three_or_five(void **state)
{
    struct group g;

    (void)state;
    group_init(&g, 1);
    stop(&g, 0);
    g.size = 2;
    assert_int_equal(try_open(&g, 0), ERR_INVALID);
    g.size = 3;
    assert_int_equal(try_open(&g, 0), ERR_FOREIGN); // it was a group of one
    g.size = 1;
    group_fini(&g);
}

/* All three vote on, at other addresses: the group's next generation. `away` is not there. */
static void begin_a_generation(struct group *g, size_t away)
{
    struct generation_wish wish[3] = {0};
    struct member *m = elect(g);
    char why[160] = "";

    for (size_t i = 0; i < 3; i++) {
        wish[i].id = i + 1;
        wish[i].linked = i != away;
        (void)snprintf(wish[i].address, sizeof wish[i].address, "h%zu:2", i + 1);
    }
    assert_int_equal(replica_change(m->replica, WISH_TAG, wish, 3, why, sizeof why), ERR_OK);
    for (unsigned i = 0; i < 1000 && m->done_tag != WISH_TAG; i++) {
        step(g);
    }
    assert_int_equal(m->done_tag, WISH_TAG);
    assert_int_equal(m->done_result, ERR_OK);
    assert_false(m->leading);
}

static void a_generation_begins_from_all_that_the_one_before_did(void **state)
{
    struct group g;

    (void)state;
    group_init(&g, 3);
    introduce_all(&g);
    propose(&g, "a");
    propose(&g, "b");
    const uint64_t term = elect(&g)->term;
    const size_t away = (elect(&g)->place + 1) % 3;
    stop(&g, away); // it misses the end of its generation
    begin_a_generation(&g, away);
    propose(&g, "c");
    assert_true(elect(&g)->term > term);
    start(&g, away);
    introduce_all(&g);
    run(&g, 2000);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(replica_generation(g.member[i].replica)->number, 1);
        assert_state(&g.member[i], "abc");
        stop(&g, i);
    }
    for (size_t i = 0; i < 3; i++) {
        start(&g, i);
    }
    introduce_all(&g);
    propose(&g, "d");
    run(&g, 500);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(replica_generation(g.member[i].replica)->number, 1);
        assert_string_equal(replica_generation(g.member[i].replica)->voter[2].address, "h3:2");
        assert_state(&g.member[i], "abcd");
    }
    group_fini(&g);
}

/* It was cut off with its links, and runs in the old generation when it hears of the new one. */
static void who_was_cut_off_follows_no_newer_generation(void **state)
{
    struct group g;

    (void)state;
    group_init(&g, 3);
    introduce_all(&g);
    propose(&g, "a");
    const size_t away = (elect(&g)->place + 1) % 3;
    g.member[away].cut = true;
    begin_a_generation(&g, away);
    propose(&g, "b");
    g.member[away].cut = false;
    introduce_all(&g);
    run(&g, 2000);
    assert_int_equal(replica_generation(g.member[away].replica)->number, 1);
    assert_state(&g.member[away], "ab");
    group_fini(&g);
}

/* Whom it asked when it came back may have been founding, and silent. */
static void a_voter_without_a_leader_asks_who_votes_now(void **state)
{
    struct group g;

    (void)state;
    group_init(&g, 3);
    introduce_all(&g);
    propose(&g, "a");
    const size_t away = (elect(&g)->place + 1) % 3;
    stop(&g, away);
    begin_a_generation(&g, away);
    propose(&g, "b");
    start(&g, away);
    g.member[away].unled = true;
    introduce_all(&g);
    for (unsigned i = 0; i < 1000 && replica_generation(g.member[away].replica)->number != 1; i++) {
        step(&g);
    }
    assert_int_equal(replica_generation(g.member[away].replica)->number, 1);
    g.member[away].unled = false;
    run(&g, 2000);
    assert_state(&g.member[away], "ab");
    group_fini(&g);
}

static void change_row(const struct group *g, size_t place, const char *sql)
{
    char folder[128];
    char path[160];
    sqlite3 *db = NULL;

    folder_of(g, place, folder, sizeof folder);
    (void)snprintf(path, sizeof path, "%s/raft.db", folder);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_changes(db), 1);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void a_damaged_generation_is_refused_and_costs_nothing(void **state)
{
    struct group g;

    (void)state;
    group_init(&g, 3);
    introduce_all(&g);
    propose(&g, "a");
    begin_a_generation(&g, 3);
    propose(&g, "b");
    const size_t hurt = (elect(&g)->place + 1) % 3;
    stop(&g, hurt);
    change_row(&g, hurt, "UPDATE generation SET crc = crc + 1");
    assert_int_equal(try_open(&g, hurt), ERR_CORRUPT);
    assert_true(was_logged("the row that names its generation is damaged"));
    propose(&g, "c"); // the others go on
    change_row(&g, hurt, "UPDATE generation SET crc = crc - 1");
    start(&g, hurt); // nothing was written meanwhile
    introduce_all(&g);
    run(&g, 2000);
    assert_state(&g.member[hurt], "abc");
    stop(&g, hurt);
    change_row(&g, hurt, "DELETE FROM generation");
    assert_int_equal(try_open(&g, hurt), ERR_CORRUPT);
    assert_true(was_logged("the row that names its generation is missing"));
    group_fini(&g);
}

static int all_cases(void)
{
    const struct CMUnitTest cases[] = {
        cmocka_unit_test(alone_it_leads_at_once_and_keeps_its_log),
        cmocka_unit_test(commands_that_wait_share_one_entry),
        cmocka_unit_test(a_barrier_alone_is_done),
        cmocka_unit_test(a_command_over_the_limit_is_refused),
        cmocka_unit_test(a_commit_is_one_write_and_one_sync_on_each_voter),
        cmocka_unit_test(a_barrier_writes_nothing_where_voters_know_rounds),
        cmocka_unit_test(an_answer_to_an_earlier_round_confirms_no_later_one),
        cmocka_unit_test(a_voter_repeats_no_number_of_an_older_term),
        cmocka_unit_test(a_round_of_a_deposed_leader_is_not_done),
        cmocka_unit_test(a_calm_leader_beats_seldom_and_tells_soon_what_is_committed),
        cmocka_unit_test(half_of_the_voters_answer_a_calm_beat_as_long_as_all_answer),
        cmocka_unit_test(a_lost_leader_is_not_waited_for),
        cmocka_unit_test(a_false_alarm_deposes_nobody),
        cmocka_unit_test(three_agree_and_survive_the_leader),
        cmocka_unit_test(five_go_on_without_two),
        cmocka_unit_test(all_restart_from_their_disks),
        cmocka_unit_test(a_deposed_leader_answers_and_says_so_once),
        cmocka_unit_test(one_past_the_logs_start_catches_up_by_snapshot),
        cmocka_unit_test(a_long_suffix_travels_in_pieces),
        cmocka_unit_test(leadership_can_be_handed_over),
        cmocka_unit_test(garbage_is_counted_and_dropped),
        cmocka_unit_test(no_vote_before_all_have_met),
        cmocka_unit_test(a_wiped_voter_is_refused_for_ever),
        cmocka_unit_test(a_wiped_voter_founds_no_second_group),
        cmocka_unit_test(a_newcomer_votes_once_it_has_caught_up),
        cmocka_unit_test(the_remedy_brings_a_wiped_voter_back),
        cmocka_unit_test(a_group_is_one_three_or_five),
        cmocka_unit_test(a_generation_begins_from_all_that_the_one_before_did),
        cmocka_unit_test(a_voter_without_a_leader_asks_who_votes_now),
        cmocka_unit_test(who_was_cut_off_follows_no_newer_generation),
        cmocka_unit_test(a_damaged_generation_is_refused_and_costs_nothing),
    };
    return cmocka_run_group_tests(cases, NULL, NULL);
}

int main(int argc, char **argv)
{
    static const enum mutant all[] = {M_ANYROUND, M_OLDTERMROUND, M_LATENEWS, M_QUIETBEATS};

    return planted_main(argc, argv, all_cases, all, sizeof all / sizeof all[0]);
}

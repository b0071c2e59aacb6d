/* SPDX-License-Identifier: Apache-2.0
 *
 * A member of the group: libraft started, fed, asked, and stopped or replaced by
 * the next generation.
 */
#include "raft/replica.h"

#include "raft/member.h"
#include "storage/log/entry.h"
#include "storage/log/log_sqlite.h"

#include "base/assert.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/mutant.h"
#include "base/random.h"
#include "wire/cursor.h"
#include "wire/versions.h"

#include <inttypes.h>
#include <raft.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    EXIT_BROKEN = 70, /* sysexits' EX_SOFTWARE */
    INSTALL_SNAPSHOT_MS = 2000
};

void member_give_up(struct replica *r, const char *why)
{
    if (r->broken != NULL) {
        r->broken(r->events.context, why);
        return;
    }
    log_error("raft",
              "broken",
              "reason=\"%s\" remedy=\"start again: the log on the disk is not affected; if that "
              "does not help, ringhold recover verify its folder (docs/recovery.md)\"",
              why);
    _exit(EXIT_BROKEN);
}

static void on_broken(void *context, const char *why)
{
    member_give_up(context, why);
}

static void on_send(void *context, uint64_t voter, struct bytes message)
{
    const struct replica *r = context;

    r->events.send(r->events.context, voter, message);
}

/* ---- the state machine's side of libraft ---- */

static void report_done(struct replica *r, uint64_t index)
{
    // Barriers after the SEAL are no more of this state than commands are.
    if (reconfiguration_is_sealed(r) && index > r->reconfiguration.index) {
        index = r->reconfiguration.index;
    }
    if (index > r->done_index) {
        r->done_index = index;
        r->events.applied(r->events.context, index);
    }
}

/* The command of the batch in flight that comes after `link` (NULL: the first); NULL at the end. */
static struct list_link *next_in_flight(const struct replica *r, struct list_link *link)
{
    do {
        link = link == NULL ? list_front(&r->in_flight) : list_next(&r->in_flight, link);
    } while (link != NULL && CONTAINER_OF(link, struct item, link)->barrier);
    return link;
}

static int on_apply(struct raft_fsm *fsm, const struct raft_buffer *entry, void **result)
{
    struct replica *r = fsm->data;
    struct entry_reader in;
    struct bytes command;
    // libraft does not pass it, and counts only after the call.
    const uint64_t index = raft_last_applied(&r->raft) + 1;
    // Leadership that is lost completes what is in flight before another leader's entry can apply.
    const bool mine = r->flight == FLIGHT_BATCH && !r->completed && index == r->flight_index;
    struct list_link *item = mine ? next_in_flight(r, NULL) : NULL;

    *result = NULL;
    if (reconfiguration_is_sealed(r)) {
        return 0; // what comes after the SEAL has no effect
    }
    report_done(r, index - 1);
    entry_open(&in, bytes_of(entry->base, entry->len));
    while (entry_next(&in, &command)) {
        const uint64_t tag = item == NULL ? 0 : CONTAINER_OF(item, struct item, link)->tag;
        item = item == NULL ? NULL : next_in_flight(r, item);
        if (entry_is_seal(command)) {
            reconfiguration_seal(r, index, command);
        } else {
            r->events.apply(r->events.context, index, tag, command);
        }
    }
    if (entry_bad(&in)) {
        member_give_up(r, "a committed entry can't be decoded");
        return RAFT_MALFORMED;
    }
    report_done(r, index);
    return 0;
}

static int on_snapshot(struct raft_fsm *fsm, struct raft_buffer *out[], unsigned *count)
{
    struct replica *r = fsm->data;
    struct buffer state = {0};

    if (reconfiguration_is_sealed(r)) {
        return RAFT_BUSY; // libraft's word for "later": a snapshot must not swallow the SEAL
    }
    report_done(r, raft_last_applied(&r->raft));
    r->events.snapshot(r->events.context, &state);
    struct raft_buffer *piece = raft_malloc(sizeof *piece);
    piece->len = ENTRY_SNAPSHOT_HEAD_SIZE + state.size;
    piece->base = raft_malloc(piece->len);
    entry_put_snapshot_head(piece->base, raft_last_applied(&r->raft), buffer_bytes(&state));
    if (state.size > 0) {
        memcpy((uint8_t *)piece->base + ENTRY_SNAPSHOT_HEAD_SIZE, state.data, state.size);
    }
    buffer_fini(&state);
    *out = piece;
    *count = 1;
    return 0;
}

static int on_restore(struct raft_fsm *fsm, struct raft_buffer *snapshot)
{
    struct replica *r = fsm->data;
    uint64_t index = 0;
    struct bytes state;

    if (!entry_open_snapshot(bytes_of(snapshot->base, snapshot->len), &index, &state) ||
        !r->events.restore(r->events.context, index, state)) {
        member_give_up(r, "the snapshot cannot be restored");
        return RAFT_CORRUPT;
    }
    r->done_index = index;
    raft_free(snapshot->base);
    return 0;
}

/* ---- queue, and what is in flight ---- */

static void item_free(struct item *item)
{
    mem_free(item);
}

static void free_items(struct list *items)
{
    struct list_link *link;

    while ((link = list_pop_front(items)) != NULL) {
        item_free(CONTAINER_OF(link, struct item, link));
    }
}

void member_answer(struct replica *r, struct list *items, enum err result)
{
    struct list answered = LIST_INIT(answered);
    struct list_link *link;

    // `done` may propose: what it adds is not ours to answer.
    list_splice_back(&answered, items);
    while ((link = list_pop_front(&answered)) != NULL) {
        struct item *item = CONTAINER_OF(link, struct item, link);
        const uint64_t tag = item->tag;
        item_free(item);
        r->events.done(r->events.context, tag, result);
    }
}

static void on_apply_completed(struct raft_apply *request, int status, void *result)
{
    struct replica *r = request->data;

    (void)result;
    r->completed = true;
    r->completed_status = status;
}

static void on_barrier_completed(struct raft_barrier *request, int status)
{
    struct replica *r = request->data;

    r->completed = true;
    r->completed_status = status;
}

static void on_transfer_over(struct raft_transfer *request)
{
    (void)request;
}

/* Whoever answered this term's round had no later leader when it began; all that I proposed before
 * is applied, as nothing else was in flight. */
static void watch_round(struct replica *r)
{
    const bool lost = raft_state(&r->raft) != RAFT_LEADER || r->raft.current_term != r->lead_term;

    if (r->flight == FLIGHT_ROUND && (lost || replica_io_is_confirmed(&r->io))) {
        r->completed = true;
        r->completed_status = lost ? RAFT_LEADERSHIPLOST : 0;
    }
}

/* The entry in flight has its outcome. True if there was one. */
static bool complete(struct replica *r)
{
    watch_round(r);
    if (!r->completed) {
        return false;
    }
    const enum flight flight = r->flight;
    const int status = r->completed_status;
    r->completed = false;
    r->flight = FLIGHT_NONE;
    if (flight == FLIGHT_ELECTION) {
        // A SEAL before the barrier: this term is of a group that is over, and may be of its heirs.
        if (status == 0 && raft_state(&r->raft) == RAFT_LEADER &&
            r->lead_term == r->raft.current_term && !reconfiguration_is_sealed(r)) {
            r->leading = true;
            log_info("raft", "leading", "term=%" PRIu64, r->lead_term);
            r->events.role(r->events.context, true, r->lead_term);
        }
        return true;
    }
    // libraft knows that leadership was lost, not whether the next leader has the entry.
    member_answer(r, &r->in_flight, status == 0 ? ERR_OK : ERR_TIMEOUT);
    return true;
}

/* Move what fits into one entry from waiting to in_flight; returns the entry's size, 0 = no
 * command.
 */
static size_t board(struct replica *r)
{
    size_t size = 0;
    struct list_link *link;

    while ((link = list_front(&r->waiting)) != NULL) {
        struct item *item = CONTAINER_OF(link, struct item, link);
        const size_t more = item->barrier ? 0 : ENTRY_LENGTH_SIZE + item->size;
        if (size > 0 && size + more > REPLICA_BATCH_SIZE_MAX) {
            break;
        }
        size += more;
        list_remove(link);
        list_push_back(&r->in_flight, link);
        r->waiting_size -= item->size;
        r->waiting_count--;
        if (item->seal) {
            break; // the next one would have no effect
        }
    }
    return size == 0 ? 0 : ENTRY_HEAD_SIZE + size;
}

static struct raft_buffer encode_batch(struct replica *r, size_t size)
{
    const size_t padded = (size + 7) / 8 * 8;
    struct raft_buffer entry = {.base = raft_malloc(padded), .len = padded};
    struct writer w = {.at = entry.base, .left = padded};
    uint32_t count = 0;

    memset(entry.base, 0, padded);
    put_u32(&w, 0);
    for (struct list_link *l = list_front(&r->in_flight); l != NULL;
         l = list_next(&r->in_flight, l)) {
        const struct item *item = CONTAINER_OF(l, struct item, link);
        if (!item->barrier) {
            put_u32(&w, (uint32_t)item->size);
            put_bytes(&w, item->data, item->size);
            count++;
        }
    }
    w = (struct writer){.at = entry.base, .left = ENTRY_HEAD_SIZE};
    put_u32(&w, count);
    return entry;
}

/* Start the next entry if none is in flight. True if it did. */
static bool submit(struct replica *r)
{
    if (!r->leading || reconfiguration_is_sealed(r) || r->flight != FLIGHT_NONE ||
        r->raft.transfer != NULL || raft_state(&r->raft) != RAFT_LEADER ||
        list_empty(&r->waiting)) {
        return false;
    }
    const size_t size = board(r);
    int failed = 0;
    if (size > 0) {
        struct raft_buffer entry = encode_batch(r, size);
        r->flight = FLIGHT_BATCH;
        r->apply.data = r;
        r->flight_index = raft_last_index(&r->raft) + 1;
        failed = raft_apply(&r->raft, &r->apply, &entry, 1, on_apply_completed);
    } else if (r->rounds) {
        r->flight = FLIGHT_ROUND;
        replica_io_begin_round(&r->io);
    } else {
        r->flight = FLIGHT_BARRIER;
        r->barrier.data = r;
        failed = raft_barrier(&r->raft, &r->barrier, on_barrier_completed);
    }
    if (failed != 0) {
        member_give_up(r, raft_strerror(failed));
    }
    return true;
}

/* ---- roles ---- */

void member_resign(struct replica *r)
{
    const bool told = r->leading;

    r->leading = false;
    r->lead_term = 0;
    if (!told) {
        return;
    }
    log_info("raft", "not_leading", "term=%" PRIu64, (uint64_t)r->raft.current_term);
    r->waiting_size = 0;
    r->waiting_count = 0;
    member_answer(r, &r->waiting, ERR_NOT_LEADER);
    r->events.role(r->events.context, false, r->raft.current_term);
}

/* Compare libraft's role with what we know; true if something changed. */
static bool watch_role(struct replica *r)
{
    const int state = raft_state(&r->raft);
    const uint64_t term = r->raft.current_term;

    if (state == RAFT_UNAVAILABLE) {
        member_give_up(r, "libraft stopped: a leader's message contradicts what is committed here");
        return false;
    }
    if (r->lead_term != 0 && (state != RAFT_LEADER || r->lead_term != term)) {
        member_resign(r);
        return true;
    }
    if (state != RAFT_LEADER || r->lead_term == term) {
        return false;
    }
    if (r->raft.transfer != NULL) {
        return false; // begun in an earlier leadership; libraft forgets it after an election
                      // time-out
    }
    ASSERT(r->flight == FLIGHT_NONE);
    r->lead_term = term;
    r->flight = FLIGHT_ELECTION;
    r->barrier.data = r;
    if (raft_barrier(&r->raft, &r->barrier, on_barrier_completed) != 0) {
        member_give_up(r, "a new leader cannot write");
    }
    return true;
}

static bool start_transfer(struct replica *r)
{
    if (!r->wants_transfer || r->flight != FLIGHT_NONE || r->raft.transfer != NULL) {
        return false;
    }
    r->wants_transfer = false;
    if (r->leading) {
        // Nobody to hand it to, or stepping down already: then there is nothing to do.
        (void)raft_transfer(&r->raft, &r->transfer, 0, on_transfer_over);
    }
    return true;
}

/* ---- who may vote ---- */

static void admit(struct replica *r, const char *why)
{
    r->io.admitted = true;
    log_store_set_admitted(r->store);
    log_info("raft", "admitted", "voter=%" PRIu64 " reason=\"%s\"", r->config.id, why);
}

/* A founder has met every other voter while none had taken part in anything; whoever joins later
 * must first have caught up with a leader. */
static void consider_admission(struct replica *r)
{
    size_t founders = 0;

    if (!r->running || r->io.admitted) {
        return;
    }
    for (size_t i = 0; i < r->peer_count; i++) {
        founders += r->peer[i].founder;
    }
    if (founders == r->voters.count - 1) {
        admit(r, "all other voters are here to found the group");
    } else if (raft_last_applied(&r->raft) > 1) {
        admit(r, "caught up with a leader");
    }
}

/* M_OLDLEADS: reads, and so leases, are confirmed by nobody. */
static void answer_as_if_it_led(struct replica *r)
{
    r->waiting_size = r->waiting_count = 0;
    member_answer(r, &r->waiting, ERR_OK);
}

/* Do all that libraft's callbacks have left to do, until nothing is left. */
static void settle(struct replica *r)
{
    bool more = true;

    r->settling = true;
    while (more && r->running) {
        report_done(r, raft_last_applied(&r->raft));
        more = complete(r);
        more = watch_role(r) || more;
        more = start_transfer(r) || more;
        more = submit(r) || more;
        more = replica_io_finish_sends(&r->io) || more;
    }
    if (r->running) {
        replica_io_keep_term(&r->io);
        consider_admission(r);
    }
    reconfiguration_settle(r);
    if (mutant(M_OLDLEADS) && r->leading && !(r->running && raft_state(&r->raft) == RAFT_LEADER)) {
        answer_as_if_it_led(r);
    }
    r->settling = false;
}

/* ---- open and close ---- */

static void start(struct replica *r)
{
    const int failed = raft_start(&r->raft);

    log_image_fini(r->image);
    mem_free(r->image);
    r->image = NULL;
    if (failed != 0) {
        member_give_up(r, raft_errmsg(&r->raft));
    }
    report_done(r, raft_last_applied(&r->raft));
}

static void init_raft(struct replica *r)
{
    const int failed = raft_init(
        &r->raft, &r->io.io, &r->fsm, r->config.id, voters_address(&r->voters, r->config.id));

    ASSERT(failed == 0);
    raft_set_election_timeout(&r->raft, r->config.election_ms);
    raft_set_heartbeat_timeout(&r->raft, r->config.heartbeat_ms);
    raft_set_install_snapshot_timeout(&r->raft, INSTALL_SNAPSHOT_MS);
    raft_set_snapshot_threshold(&r->raft, r->config.snapshot_entries);
    raft_set_snapshot_trailing(&r->raft, r->config.trailing_entries);
    raft_set_pre_vote(&r->raft, true);
}

static bool config_is_sound(const struct replica_config *config)
{
    return config->voter_count <= REPLICA_VOTERS_MAX && config->heartbeat_ms > 0 &&
           config->heartbeat_ms < config->election_ms && config->election_ms < 60000 &&
           config->snapshot_entries > 0 && config->trailing_entries > 0;
}

static enum err init_voters(struct voters *voters, const struct replica_config *config)
{
    if (config->voter_count <= REPLICA_VOTERS_MAX &&
        voters_init(voters, config->voter, config->voter_count) == ERR_OK &&
        voters_address(voters, config->id) != NULL) {
        return ERR_OK;
    }
    log_error("raft",
              "voters_refused",
              "voter=%" PRIu64 " count=%zu reason=\"a group is 1, 3 or 5 voters with distinct ids, "
              "this one among them\" remedy=\"correct the list of coordinators\"",
              config->id,
              config->voter_count);
    return ERR_INVALID;
}

/* Those that found the group; one who waits for a group has itself there, and never runs so. */
static enum err take_voters(struct voters *voters, const struct replica_config *config)
{
    return config->joining ? voters_init(voters, &config->id, 1) : init_voters(voters, config);
}

static struct replica *replica_new(const struct replica_config *config,
                                   const struct replica_events *events,
                                   const struct replica_base *base)
{
    struct replica *r = mem_new(1, sizeof *r);

    r->config = *config;
    r->config.directory = NULL; // borrowed during open only
    r->config.cluster = NULL;
    r->events = *events;
    r->broken = base->broken;
    r->rules_off = base->rules_off;
    r->entries_size_max =
        base->entries_size_max > 0 ? base->entries_size_max : MESSAGE_ENTRIES_SIZE_MAX;
    r->store = base->store;
    r->image = base->image;
    r->identity = base->image->identity;
    memcpy(r->peer, base->image->peer, sizeof r->peer);
    r->peer_count = base->image->peer_count;
    r->fsm = (struct raft_fsm){
        .version = 1, .data = r, .apply = on_apply, .snapshot = on_snapshot, .restore = on_restore};
    heap_init(&r->heap);
    list_init(&r->waiting);
    list_init(&r->in_flight);
    return r;
}

static void on_own_done(void *context, const struct log_request *request)
{
    reconfiguration_done(context, request);
}

/* libraft over the image, which stays ours until it is started. */
static void init_member(struct replica *r, struct log_image *image, uint64_t now_us)
{
    r->image = image;
    r->running = true;
    if (r->voters.count == 1) {
        // libraft elects a lone voter without a new term; every leadership shall have its own.
        image->term++;
        image->vote = 0;
        (void)log_store_set_vote(r->store, image->term, 0);
    }
    const struct replica_io_config io_config = {
        .voters = &r->voters,
        .store = r->store,
        .image = image,
        .seed = r->config.seed + r->generation.number,
        .rules_off = r->rules_off,
        .entries_size_max = r->entries_size_max,
        .context = r,
        .own = &r->reconfiguration,
        .done = on_own_done,
        .send = on_send,
        .broken = on_broken,
    };
    replica_io_init(&r->io, &r->raft, &io_config);
    r->io.now_us = now_us;
    init_raft(r);
}

void member_begin(struct replica *r, struct log_image *image)
{
    const uint64_t bad_messages = r->io.bad_messages;
    const uint64_t beat_us = (uint64_t)r->config.heartbeat_ms * 1000;
    const uint64_t now_us = r->io.now_us;

    replica_io_fini(&r->io);
    heap_abandon(&r->heap);
    memset(&r->raft, 0, sizeof r->raft);
    r->lead_term = 0;
    r->wants_transfer = false;
    init_member(r, image, now_us);
    r->io.bad_messages = bad_messages;
    start(r);
    if (r->reconfiguration.led) {
        replica_io_stand(&r->io, 2 * beat_us); // the others need a moment to get there, too
    }
}

enum err replica_open_over(struct replica **out, const struct replica_config *config,
                           const struct replica_events *events, const struct replica_base *base,
                           uint64_t now_us)
{
    struct replica *r = replica_new(config, events, base);
    struct heap *before = heap_enter(&r->heap);
    enum err e = config_is_sound(config) ? ERR_OK : ERR_INVALID;

    if (e == ERR_OK && !config->joining && r->image->generation.size == 0) {
        e = init_voters(&r->voters, config);
    }
    e = e == ERR_OK ? reconfiguration_open(r, r->image) : e;
    if (e != ERR_OK) {
        (void)heap_enter(before);
        replica_close(r);
        return e;
    }
    r->io.now_us = now_us;
    if (r->reconfiguration.stage == RECONFIGURATION_VOTES) {
        init_member(r, r->image, now_us);
    } else {
        log_image_fini(r->image);
        mem_free(r->image);
        r->image = NULL;
    }
    for (size_t i = 0; i < REPLICA_VOTERS_MAX; i++) {
        r->config.address[i] = NULL; // borrowed during open only
    }
    (void)heap_enter(before);
    *out = r;
    return ERR_OK;
}

/* 1..2^63-1: SQLite's integers have a sign. */
static uint64_t draw_identity(void)
{
    return random_u64() >> 1 | 1;
}

static struct log_sqlite_config log_config(const struct replica_config *config,
                                           const struct voters *voters)
{
    return (struct log_sqlite_config){.directory = config->directory,
                                      .cluster = config->cluster,
                                      .voter = config->id,
                                      .voters = voters->id,
                                      .voter_count = voters->count,
                                      .configuration = voters_configuration(voters),
                                      .identity = draw_identity(),
                                      .readmit = config->readmit,
                                      .joining = config->joining};
}

enum err replica_open(struct replica **out, const struct replica_config *config,
                      const struct replica_events *events, uint64_t now_us)
{
    struct voters voters;
    struct replica_base base = {0};

    if (!config_is_sound(config) || take_voters(&voters, config) != ERR_OK) {
        return ERR_INVALID;
    }
    struct log_sqlite_config disk = log_config(config, &voters);
    disk.context = events->context;
    disk.wake = events->wake;
    base.image = mem_new(1, sizeof *base.image);
    log_image_init(base.image);
    const enum err e = log_sqlite_open(&base.store, base.image, &disk);
    if (e != ERR_OK) {
        log_image_fini(base.image);
        mem_free(base.image);
        return e;
    }
    return replica_open_over(out, config, events, &base, now_us);
}

enum err replica_adopt(const struct replica_config *config)
{
    struct voters voters;

    if (init_voters(&voters, config) != ERR_OK) {
        return ERR_INVALID;
    }
    const struct log_sqlite_config disk = log_config(config, &voters);
    return log_sqlite_adopt(&disk);
}

void replica_close(struct replica *r)
{
    if (r == NULL) {
        return;
    }
    log_store_close(r->store);
    heap_abandon(&r->heap);
    replica_io_fini(&r->io);
    if (r->image != NULL) {
        log_image_fini(r->image);
        mem_free(r->image);
    }
    reconfiguration_fini(r);
    free_items(&r->waiting);
    free_items(&r->in_flight);
    mem_free(r);
}

/* ---- the loop's calls ---- */

static struct heap *enter(struct replica *r, uint64_t now_us)
{
    struct heap *before = heap_enter(&r->heap);

    ASSERT(!r->settling);
    r->settling = true;
    r->io.now_us = now_us;
    if (r->image != NULL) {
        start(r);
    }
    return before;
}

static void leave(struct replica *r, struct heap *before)
{
    settle(r);
    (void)heap_enter(before);
}

uint64_t replica_due_us(const struct replica *r)
{
    // The answers to a round wake whoever waits for them.
    const bool asks = r->flight == FLIGHT_ROUND || list_empty(&r->in_flight);

    return r->running && list_empty(&r->waiting) && asks ? replica_io_due_us(&r->io) : 0;
}

void replica_tick(struct replica *r, uint64_t now_us)
{
    struct heap *before = enter(r, now_us);

    if (r->running) {
        replica_io_tick(&r->io, now_us);
    }
    reconfiguration_tick(r);
    leave(r, before);
}

void replica_poll(struct replica *r, uint64_t now_us)
{
    struct heap *before = enter(r, now_us);

    if (r->running) {
        replica_io_poll(&r->io, now_us);
    } else {
        reconfiguration_poll(r);
    }
    leave(r, before);
}

struct log_peer *member_peer(struct replica *r, uint64_t voter)
{
    for (size_t i = 0; i < r->peer_count; i++) {
        if (r->peer[i].voter == voter) {
            return &r->peer[i];
        }
    }
    return NULL;
}

void replica_receive(struct replica *r, uint64_t now_us, uint64_t from, struct bytes message)
{
    struct heap *before = enter(r, now_us);

    if (reconfiguration_receive(r, from, message)) {
        // It was no message between two voters of this generation.
    } else if (member_peer(r, from) == NULL) {
        r->io.bad_messages++;
    } else {
        replica_io_receive(&r->io, now_us, from, message);
    }
    leave(r, before);
}

void replica_lost(struct replica *r, uint64_t now_us, uint64_t voter)
{
    const uint64_t beat_us = (uint64_t)r->config.heartbeat_ms * 1000;
    struct heap *before = enter(r, now_us);
    uint64_t turn = 0;

    for (size_t i = 0; i < r->voters.count; i++) {
        turn += r->voters.id[i] != voter && r->voters.id[i] < r->config.id;
    }
    // The others need a moment to see that it is gone, and an election is over within two beats.
    if (r->running) {
        replica_io_lost(&r->io, voter, beat_us / 5 + turn * 2 * beat_us);
    }
    leave(r, before);
}

/* Queue an item of `size` bytes; the caller has checked that it may. */
struct item *member_enqueue(struct replica *r, uint64_t tag, size_t size)
{
    struct item *item = mem_new(1, sizeof *item + size);

    item->tag = tag;
    item->size = size;
    r->waiting_size += size;
    r->waiting_count++;
    list_push_back(&r->waiting, &item->link);
    if (!r->settling && r->flight == FLIGHT_NONE) {
        r->events.wake(r->events.context);
    }
    return item;
}

enum err replica_propose(struct replica *r, uint64_t tag, struct bytes command)
{
    if (command.size > REPLICA_COMMAND_SIZE_MAX) {
        return ERR_TOO_BIG;
    }
    if (!r->leading) {
        return ERR_NOT_LEADER;
    }
    if (r->waiting_size + command.size > REPLICA_WAITING_SIZE_MAX) {
        return ERR_BUSY;
    }
    struct item *item = member_enqueue(r, tag, command.size);
    if (command.size > 0) {
        memcpy(item->data, command.data, command.size);
    }
    return ERR_OK;
}

enum err replica_barrier(struct replica *r, uint64_t tag)
{
    if (!r->leading) {
        return ERR_NOT_LEADER;
    }
    member_enqueue(r, tag, 0)->barrier = true;
    return ERR_OK;
}

void replica_transfer(struct replica *r)
{
    r->wants_transfer = r->leading;
    r->events.wake(r->events.context);
}

/* ---- identity ---- */

uint64_t replica_identity(const struct replica *r)
{
    return r->identity;
}

bool replica_pristine(const struct replica *r)
{
    return r->running && !r->io.touched && r->generation.number == 0;
}

static enum err refuse_once(struct replica *r, struct log_peer *peer, uint64_t identity)
{
    uint64_t *said = &r->refused[peer - r->peer];

    if (*said != identity) {
        *said = identity;
        log_error("raft",
                  "voter_refused",
                  "voter=%" PRIu64 " reason=\"voter %" PRIu64 "'s data folder was wiped or "
                  "replaced: it could vote twice\" remedy=\"stop all coordinators, give it a copy "
                  "of an up-to-date voter's folder with --adopt, start the others once with "
                  "--readmit %" PRIu64 " (docs/raft.md#remedy)\"",
                  peer->voter,
                  peer->voter,
                  peer->voter);
    }
    return ERR_REFUSED;
}

enum err replica_meet(struct replica *r, uint64_t voter, uint64_t identity, bool pristine)
{
    if (voter == r->config.id || voters_address(&r->voters, voter) == NULL || identity == 0 ||
        identity > INT64_MAX) {
        log_error("raft",
                  "voter_refused",
                  "voter=%" PRIu64 " reason=\"not one of the other voters\" remedy=\"give every "
                  "coordinator an id of its own and the same list\"",
                  voter);
        return ERR_REFUSED;
    }
    struct log_peer *peer = member_peer(r, voter);
    if (peer != NULL) {
        return peer->identity == identity ? ERR_OK : refuse_once(r, peer, identity);
    }
    peer = &r->peer[r->peer_count++];
    *peer = (struct log_peer){.voter = voter, .identity = identity, .founder = pristine};
    log_store_set_peer(r->store, peer);
    consider_admission(r);
    return ERR_OK;
}

void replica_set_format(struct replica *r, uint32_t fleet_format)
{
    r->rounds = fleet_format >= FLEET_FORMAT_ROUNDS;
    log_store_set_format(r->store, fleet_format);
}

void replica_status(const struct replica *r, struct replica_status *out)
{
    const struct raft_log *log = &r->raft.log;
    const size_t held =
        log->back >= log->front ? log->back - log->front : log->size - log->front + log->back;
    const int state = r->raft.state;

    *out = (struct replica_status){
        .leading = r->leading,
        .term = r->raft.current_term,
        .leader = state == RAFT_LEADER     ? r->config.id
                  : state == RAFT_FOLLOWER ? r->raft.follower_state.current_leader.id
                                           : 0,
        .applied_index = r->raft.last_applied,
        .last_index = held > 0 ? log->offset + held : log->snapshot.last_index,
        .first_index = log->offset + 1,
        .snapshot_index = log->snapshot.last_index,
        .bad_messages = r->io.bad_messages,
        .waiting = r->waiting_count,
        .admitted = r->io.admitted,
    };
    if (r->image != NULL) { // Not started yet: what was found on the disk.
        out->first_index = r->image->first;
        out->last_index = r->image->first + r->image->entry_count - 1;
        out->snapshot_index = r->image->snapshot.index;
        out->term = r->image->term;
    } else if (!r->running) {
        out->last_index = r->reconfiguration.last_index;
    }
}

const struct generation *replica_generation(const struct replica *r)
{
    return &r->generation;
}

enum replica_part replica_part(const struct replica *r)
{
    if (r->generation.voter_count == 0) {
        return REPLICA_WAITS;
    }
    return generation_voter(&r->generation, r->config.id) != NULL ? REPLICA_VOTES : REPLICA_RETIRED;
}

struct raft *replica_raft(struct replica *r)
{
    return &r->raft;
}

struct guard *replica_guard(struct replica *r)
{
    return &r->io.guard;
}

struct log_store *replica_store(struct replica *r)
{
    return r->store;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * libraft's I/O on our log, clock and links.
 */
#include "raft/io.h"

#include "base/assert.h"
#include "base/mem.h"
#include "base/mutant.h"

#include <string.h>

/* Between two beats of a calm leader, in thousandths of the election time-out: three are heard in
 * it, and the third may be late. */
enum { CALM_PARTS = 330 };

/* An append on its way; libraft's memory, so that it dies with the replica. */
struct append_tag {
    struct raft_io_append *request;
    raft_term own_term; /* the leader's term that these entries are of, 0 = a follower's */
};

static struct replica_io *self(struct raft_io *io)
{
    return io->impl;
}

static int on_init(struct raft_io *io, raft_id id, const char *address)
{
    (void)io;
    (void)id;
    (void)address;
    return 0;
}

static void on_close(struct raft_io *io, raft_io_close_cb callback)
{
    // A replica is abandoned, never closed: see heap.h.
    (void)io;
    (void)callback;
    UNREACHABLE();
}

static int on_bootstrap(struct raft_io *io, const struct raft_configuration *configuration)
{
    // The store makes the first entry when it makes the folder.
    (void)io;
    (void)configuration;
    return RAFT_CANTBOOTSTRAP;
}

static struct raft_snapshot *snapshot_new(const struct replica_io *s,
                                          const struct log_snapshot *from)
{
    struct raft_snapshot *snapshot = raft_calloc(1, sizeof *snapshot);

    snapshot->index = from->index;
    snapshot->term = from->term;
    snapshot->configuration_index = from->configuration_index;
    voters_configure(s->config.voters, &snapshot->configuration);
    snapshot->bufs = raft_malloc(sizeof *snapshot->bufs);
    snapshot->n_bufs = 1;
    snapshot->bufs[0].len = from->data.size;
    snapshot->bufs[0].base = raft_malloc(from->data.size);
    memcpy(snapshot->bufs[0].base, from->data.data, from->data.size);
    return snapshot;
}

static struct raft_entry *entries_new(const struct log_image *image)
{
    if (image->entry_count == 0) {
        return NULL;
    }
    struct raft_entry *entries = raft_calloc(image->entry_count, sizeof *entries);
    for (size_t i = 0; i < image->entry_count; i++) {
        const struct log_entry *from = &image->entry[i];
        entries[i].term = from->term;
        entries[i].type = from->type;
        entries[i].buf.len = from->data.size;
        entries[i].buf.base = raft_malloc(from->data.size);
        memcpy(entries[i].buf.base, from->data.data, from->data.size);
    }
    return entries;
}

// NOLINTNEXTLINE(readability-function-size): the signature is libraft's
static int on_load(struct raft_io *io, raft_term *term, raft_id *vote,
                   struct raft_snapshot **snapshot, raft_index *start, struct raft_entry **entries,
                   size_t *count)

{
    struct replica_io *s = self(io);
    const struct log_image *image = s->config.image;

    *term = image->term;
    *vote = image->vote;
    *snapshot = image->snapshot.index > 0 ? snapshot_new(s, &image->snapshot) : NULL;
    *start = image->first;
    *entries = entries_new(image);
    *count = image->entry_count;
    s->config.image = NULL;
    return 0;
}

static int on_start(struct raft_io *io, unsigned tick_ms, raft_io_tick_cb tick,
                    raft_io_recv_cb receive)
{
    struct replica_io *s = self(io);

    s->tick_us = (uint64_t)tick_ms * 1000;
    s->calm_us = (uint64_t)s->raft->election_timeout * CALM_PARTS;
    s->calm_us = s->calm_us > s->tick_us ? s->calm_us : s->tick_us;
    s->next_tick_us = s->now_us + s->tick_us;
    s->on_tick = tick;
    s->on_message = receive;
    return 0;
}

static void keep(struct replica_io *s, raft_term term, raft_id vote)
{
    s->held_term = 0;
    // libraft starts its timers after this: our own disk's time is nobody's silence.
    s->now_us += log_store_set_vote(s->config.store, term, vote);
}

void replica_io_keep_term(struct replica_io *io)
{
    if (io->held_term != 0) {
        keep(io, io->held_term, 0);
    }
}

/* A new term's vote mostly comes next, and then one write has both. Nobody may learn of the term
 * before: it is kept before anything is sent or appended, and before libraft returns to its caller.
 */
static int on_set_term(struct raft_io *io, raft_term term)
{
    struct replica_io *s = self(io);

    s->touched = true;
    s->held_term = term;
    return 0;
}

static int on_set_vote(struct raft_io *io, raft_id voter)
{
    struct replica_io *s = self(io);

    ASSERT(s->admitted);
    s->touched = true;
    // libraft has no vote without a term that it has told before.
    keep(s, s->held_term != 0 ? s->held_term : s->raft->current_term, voter);
    return 0;
}

/* NULL: it is none of the voters. */
static struct replica_io_voter *voter_of(struct replica_io *s, raft_id id)
{
    for (size_t i = 0; i < s->config.voters->count; i++) {
        if (s->config.voters->id[i] == id) {
            return &s->voter[i];
        }
    }
    return NULL;
}

/* The voter will know that all up to there is committed. */
static void note_told(struct replica_io *s, const struct raft_message *message)
{
    const struct raft_append_entries *append = &message->append_entries;
    const raft_index shown = append->prev_log_index + append->n_entries;

    if (message->type != RAFT_IO_APPEND_ENTRIES) {
        return;
    }
    if (s->told_term != append->term) {
        s->told_term = append->term;
        for (size_t i = 0; i < LOG_VOTERS_MAX; i++) {
            s->voter[i].told = 0;
        }
    }
    voter_of(s, message->server_id)->told =
        append->leader_commit < shown ? append->leader_commit : shown;
}

/* The number that a message goes with. */
static uint64_t round_of(const struct replica_io *s, const struct raft_message *message)
{
    const bool repeats = message->type == RAFT_IO_APPEND_ENTRIES_RESULT &&
                         message->append_entries_result.term == s->heard_term;

    return message->type == RAFT_IO_APPEND_ENTRIES ? s->round : repeats ? s->heard_round : 0;
}

/* A beat that asks half of the voters: is it one of the other half? */
static bool leaves_alone(const struct replica_io *s, const struct raft_message *message)
{
    const struct voters *voters = s->config.voters;
    uint64_t place = 0; // among the others

    if (!s->halves || message->type != RAFT_IO_APPEND_ENTRIES ||
        message->append_entries.n_entries > 0) {
        return false;
    }
    for (size_t i = 0; i < voters->count && voters->id[i] != message->server_id; i++) {
        place += voters->id[i] != s->raft->id;
    }
    return (place + s->beats) % 2 == 0 || mutant(M_QUIETBEATS);
}

static int on_send(struct raft_io *io, struct raft_io_send *request,
                   const struct raft_message *message, raft_io_send_cb callback)
{
    struct replica_io *s = self(io);
    struct raft_message guarded = *message;

    replica_io_keep_term(s);
    request->cb = callback;
    if (s->sent_count == s->sent_max) {
        s->sent_max = s->sent_max == 0 ? 16 : s->sent_max * 2;
        s->sent = mem_resize(s->sent, s->sent_max * sizeof(struct raft_io_send *));
    }
    s->sent[s->sent_count++] = request;
    // libraft answers a leader that it has forgotten meanwhile under the id 0, or worse.
    if (voters_address(s->config.voters, message->server_id) == NULL) {
        return 0;
    }
    if (s->unasked && message->type == RAFT_IO_APPEND_ENTRIES_RESULT &&
        message->append_entries_result.rejected == 0) {
        return 0;
    }
    const bool alone = leaves_alone(s, message);
    struct replica_io_voter *voter = voter_of(s, message->server_id);

    voter->awaited = voter->awaited || (message->type == RAFT_IO_APPEND_ENTRIES && !alone);
    guard_send(&s->guard, &guarded);
    note_told(s, &guarded);
    buffer_clear(&s->out);
    if (message_encode(&s->out,
                       &guarded,
                       alone ? 0 : round_of(s, &guarded),
                       s->config.voters,
                       s->config.entries_size_max) != ERR_OK) {
        s->config.broken(s->config.context, "the snapshot is larger than a message may be");
        return 0;
    }
    s->config.send(s->config.context, message->server_id, buffer_bytes(&s->out));
    return 0;
}

// Without G3, and only then, libraft appends entries again; what it then believes of its log and
// what goes to the disk part ways, and its memory is corrupt soon after.
static void check_append(struct replica_io *s, unsigned count)
{
    if (s->next_index + count - 1 != raft_last_index(s->raft)) {
        s->config.broken(s->config.context, "libraft appends at another index than the log's end");
    }
}

static int on_append(struct raft_io *io, struct raft_io_append *request,
                     const struct raft_entry entries[], unsigned count, raft_io_append_cb callback)
{
    struct replica_io *s = self(io);
    size_t size = 0;

    replica_io_keep_term(s);
    check_append(s, count);
    for (unsigned i = 0; i < count; i++) {
        // A length that is no multiple of 8 would lose this entry and all after it.
        ASSERT(entries[i].buf.len > 0 && entries[i].buf.len % 8 == 0);
        size += entries[i].buf.len;
    }
    struct log_request *write = log_append_new(count, size);

    write->index = s->next_index;
    for (unsigned i = 0; i < count; i++) {
        const struct log_entry entry = {
            .term = entries[i].term,
            .type = entries[i].type,
            .data = bytes_of(entries[i].buf.base, entries[i].buf.len),
        };
        log_append_add(write, &entry);
    }
    struct append_tag *tag = raft_malloc(sizeof *tag);
    tag->request = request;
    tag->own_term = s->raft->state == RAFT_LEADER ? entries[count - 1].term : 0;
    request->cb = callback;
    write->tag = tag;
    s->next_index += count;
    s->touched = true;
    log_store_submit(s->config.store, write);
    return 0;
}

static int on_truncate(struct raft_io *io, raft_index index)
{
    struct replica_io *s = self(io);

    replica_io_keep_term(s);
    s->next_index = index;
    log_store_submit(s->config.store, log_truncate_new(index));
    return 0;
}

static int on_snapshot_put(struct raft_io *io, unsigned trailing,
                           struct raft_io_snapshot_put *request,
                           const struct raft_snapshot *snapshot, raft_io_snapshot_put_cb callback)
{
    struct replica_io *s = self(io);
    const bool install = trailing == 0;
    uint64_t keep_from = 0;

    ASSERT(snapshot->n_bufs == 1);
    replica_io_keep_term(s);
    if (install) {
        keep_from = UINT64_MAX;
        s->next_index = snapshot->index + 1;
    } else if (snapshot->index > trailing) {
        keep_from = snapshot->index - trailing + 1;
    }
    const struct log_snapshot copy = {
        .index = snapshot->index,
        .term = snapshot->term,
        .configuration_index = snapshot->configuration_index,
        .configuration = voters_configuration(s->config.voters),
        .data = bytes_of(snapshot->bufs[0].base, snapshot->bufs[0].len),
    };
    struct log_request *write = log_snapshot_new(&copy, keep_from);
    request->cb = callback;
    write->tag = request;
    s->touched = true;
    log_store_submit(s->config.store, write);
    return 0;
}

static int on_snapshot_get(struct raft_io *io, struct raft_io_snapshot_get *request,
                           raft_io_snapshot_get_cb callback)
{
    struct replica_io *s = self(io);
    struct log_request *read = log_read_new();

    request->cb = callback;
    read->tag = request;
    log_store_submit(s->config.store, read);
    return 0;
}

static raft_time on_time(struct raft_io *io)
{
    return self(io)->now_us / 1000;
}

static int on_random(struct raft_io *io, int low, int high)
{
    return (int)prng_between(&self(io)->prng, (uint64_t)low, (uint64_t)high - 1);
}

void replica_io_init(struct replica_io *io, struct raft *raft,
                     const struct replica_io_config *config)
{
    *io = (struct replica_io){
        .raft = raft,
        .config = *config,
        .guard = {.rules_off = config->rules_off},
        .prng = {.state = config->seed},
        .next_index = config->image->first + config->image->entry_count,
        .admitted = config->image->admitted,
        .touched = config->image->vote != 0 || config->image->term > 1 ||
                   config->image->first + config->image->entry_count > 2,
        .io = {.version = 1,
               .init = on_init,
               .close = on_close,
               .load = on_load,
               .start = on_start,
               .bootstrap = on_bootstrap,
               .recover = on_bootstrap,
               .set_term = on_set_term,
               .set_vote = on_set_vote,
               .send = on_send,
               .append = on_append,
               .truncate = on_truncate,
               .snapshot_put = on_snapshot_put,
               .snapshot_get = on_snapshot_get,
               .time = on_time,
               .random = on_random},
    };
    io->io.impl = io;
}

void replica_io_fini(struct replica_io *io)
{
    mem_free(io->sent);
    io->sent = NULL;
    buffer_fini(&io->out);
}

void replica_io_stand(struct replica_io *io, uint64_t after_us)
{
    io->stand_us = io->now_us + after_us;
}

void replica_io_lost(struct replica_io *io, uint64_t voter, uint64_t after_us)
{
    struct raft *raft = io->raft;

    if (raft_state(raft) == RAFT_FOLLOWER && raft->follower_state.current_leader.id == voter) {
        // libraft refuses every vote while it knows of a leader, until its own time-out.
        raft->follower_state.current_leader.id = 0;
        replica_io_stand(io, after_us);
    }
}

/* With pre-vote: as long as the others hear the leader, nothing comes of it. */
static void stand_if_due(struct replica_io *io)
{
    struct raft *raft = io->raft;

    if (io->stand_us == 0 || io->now_us < io->stand_us) {
        return;
    }
    io->stand_us = 0;
    if (raft_state(raft) == RAFT_FOLLOWER && raft->follower_state.current_leader.id == 0 &&
        io->admitted) {
        raft->election_timer_start = 0; // long ago
        io->on_tick(&io->io);
    }
}

/* An entry is under way, or somebody may not know that it is committed. */
static bool has_news(const struct replica_io *io)
{
    const struct voters *voters = io->config.voters;

    for (size_t i = 0; i < voters->count; i++) {
        if (voters->id[i] != io->raft->id && (io->told_term != io->raft->current_term ||
                                              io->voter[i].told < io->raft->commit_index)) {
            return !mutant(M_LATENEWS);
        }
    }
    return io->raft->transfer != NULL || raft_last_index(io->raft) > io->raft->commit_index;
}

static uint64_t next_beat_us(const struct replica_io *io)
{
    return io->beat_us + (has_news(io) ? io->tick_us : io->calm_us);
}

/* All have answered what they were asked, and know what a beat without a number is. */
static bool all_answered(const struct replica_io *io)
{
    const struct voters *voters = io->config.voters;

    for (size_t i = 0; i < voters->count; i++) {
        if (voters->id[i] != io->raft->id &&
            (io->voter[i].awaited || io->voter[i].confirmed < io->round)) {
            return false;
        }
    }
    return io->round != 0;
}

/* A tick of libraft that sends each voter a heartbeat, whatever it was sent before. */
static void beat(struct replica_io *io, bool calm)
{
    const unsigned heartbeat_ms = io->raft->heartbeat_timeout;

    io->beat_us = io->now_us;
    io->beats++;
    io->halves = calm && all_answered(io);
    raft_set_heartbeat_timeout(io->raft, 0);
    io->on_tick(&io->io);
    raft_set_heartbeat_timeout(io->raft, heartbeat_ms);
    io->halves = false;
}

void replica_io_begin_round(struct replica_io *io)
{
    io->round++;
    beat(io, false);
}

bool replica_io_is_confirmed(const struct replica_io *io)
{
    const struct voters *voters = io->config.voters;
    size_t confirmed = 1; // I

    for (size_t i = 0; i < voters->count; i++) {
        confirmed += voters->id[i] != io->raft->id && io->voter[i].confirmed >= io->round;
    }
    return confirmed > voters->count / 2;
}

uint64_t replica_io_due_us(const struct replica_io *io)
{
    const struct raft *raft = io->raft;
    const int role = raft_state(io->raft);

    if (io->stand_us != 0 || !io->admitted) {
        return 0;
    }
    if (role == RAFT_LEADER) {
        return next_beat_us(io);
    }
    if (role != RAFT_FOLLOWER || raft->follower_state.current_leader.id == 0) {
        return 0;
    }
    const uint64_t patience_us =
        ((uint64_t)raft->election_timer_start + raft->follower_state.randomized_election_timeout) *
        1000;

    return patience_us > io->next_tick_us ? patience_us : io->next_tick_us;
}

void replica_io_tick(struct replica_io *io, uint64_t now_us)
{
    io->now_us = now_us;
    stand_if_due(io);
    if (raft_state(io->raft) == RAFT_LEADER) {
        io->next_tick_us = now_us + io->tick_us; // if it leads no more then
        if (now_us >= next_beat_us(io)) {
            beat(io, !has_news(io));
        }
        return;
    }
    if (now_us < io->next_tick_us) {
        return;
    }
    io->next_tick_us += io->tick_us;
    if (io->next_tick_us < now_us) { // we were held up: no burst of ticks
        io->next_tick_us = now_us + io->tick_us;
    }
    if (!io->admitted && raft_state(io->raft) == RAFT_FOLLOWER) {
        io->raft->election_timer_start = on_time(&io->io); // it never runs out: no election
    }
    io->on_tick(&io->io);
}

/* What guard_before() hid until now: as if it came only now. */
static void recall(struct replica_io *io)
{
    struct raft_message message;

    while (guard_recall(&io->guard, io->raft, &message)) {
        io->on_message(&io->io, &message);
    }
}

static void finish(struct replica_io *io, struct log_request *done)
{
    ASSERT(done->tag != NULL || done->kind == LOG_TRUNCATE || done->kind == LOG_FOUND);
    switch (done->kind) {
    case LOG_APPEND: {
        struct append_tag *tag = done->tag;
        struct raft_io_append *request = tag->request;
        guard_stored(&io->guard, tag->own_term);
        raft_free(tag);
        request->cb(request, 0);
        recall(io);
        break;
    }
    case LOG_TRUNCATE:
        break;
    case LOG_SNAPSHOT: {
        struct raft_io_snapshot_put *request = done->tag;
        request->cb(request, 0);
        break;
    }
    case LOG_READ_SNAPSHOT: {
        struct raft_io_snapshot_get *request = done->tag;
        ASSERT(done->snapshot.index > 0);
        request->cb(request, snapshot_new(io, &done->snapshot), 0);
        break;
    }
    case LOG_FOUND:
        break;
    }
}

void replica_io_poll(struct replica_io *io, uint64_t now_us)
{
    struct log_request *done;

    io->now_us = now_us;
    while ((done = log_store_completed(io->config.store)) != NULL) {
        if (done->tag != NULL && done->tag == io->config.own) {
            io->config.done(io->config.context, done);
        } else {
            finish(io, done);
        }
        log_request_free(done);
    }
}

/* A voter that may not vote yet neither answers candidates nor becomes one. */
static bool is_for_the_admitted(const struct raft_message *message)
{
    return message->type == RAFT_IO_REQUEST_VOTE || message->type == RAFT_IO_TIMEOUT_NOW;
}

/* A leader's number to repeat, or mine, repeated: with what else an answer shows of its voter. */
static void note_round(struct replica_io *io, const struct raft_message *message, uint64_t round)
{
    const raft_term term = io->raft->current_term;

    if (message->type == RAFT_IO_APPEND_ENTRIES && message->append_entries.term >= term) {
        const bool anew = message->append_entries.term > io->heard_term && !mutant(M_OLDTERMROUND);

        if (anew || round > io->heard_round) {
            io->heard_round = round;
        }
        io->heard_term = message->append_entries.term;
    } else if (message->type == RAFT_IO_APPEND_ENTRIES_RESULT &&
               message->append_entries_result.term == term && raft_state(io->raft) == RAFT_LEADER) {
        struct replica_io_voter *voter = voter_of(io, message->server_id);

        voter->awaited = false;
        // One that refused what it was sent took no note of what is committed either.
        voter->told = message->append_entries_result.rejected == 0 ? voter->told : 0;
        if (mutant(M_ANYROUND) || (io->config.rules_off & REPLICA_IO_ROUNDS) != 0) {
            round = io->round;
        }
        voter->confirmed = round > voter->confirmed ? round : voter->confirmed;
    }
}

/* A beat without a number of a leader that numbered one in this term. */
static bool needs_no_answer(const struct replica_io *io, const struct raft_message *message,
                            uint64_t round)
{
    return message->type == RAFT_IO_APPEND_ENTRIES && message->append_entries.n_entries == 0 &&
           round == 0 && message->append_entries.term == io->heard_term && io->heard_round != 0;
}

void replica_io_receive(struct replica_io *io, uint64_t now_us, uint64_t from, struct bytes in)
{
    struct raft_message message;
    uint64_t round;

    io->now_us = now_us;
    if (message_decode(&message, &round, from, in, io->config.voters) != ERR_OK) {
        io->bad_messages++;
        return;
    }
    if (!io->admitted && is_for_the_admitted(&message)) {
        return; // these two hold no memory
    }
    note_round(io, &message, round);
    io->unasked = needs_no_answer(io, &message, round);
    if (guard_before(&io->guard, io->raft, &message)) {
        io->on_message(&io->io, &message);
        guard_after(&io->guard, io->raft);
    }
    io->unasked = false;
}

bool replica_io_finish_sends(struct replica_io *io)
{
    const size_t count = io->sent_count;

    if (count == 0) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        struct raft_io_send *request = io->sent[i];
        if (request->cb != NULL) {
            request->cb(request, 0);
        }
    }
    memmove(io->sent, io->sent + count, (io->sent_count - count) * sizeof(struct raft_io_send *));
    io->sent_count -= count;
    return true;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Seals a generation of the group, carries its state to the next one's members,
 * and founds that.
 */
#include "raft/reconfiguration.h"

#include "raft/member.h"
#include "storage/log/entry.h"

#include "base/assert.h"
#include "base/log.h"
#include "base/machine.h"
#include "base/mem.h"
#include "base/mutant.h"
#include "wire/cursor.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const struct machine_state stages[] = {
    [RECONFIGURATION_VOTES] = {"votes", TO(RECONFIGURATION_FOUNDS)},
    [RECONFIGURATION_FOUNDS] = {"founds", TO(RECONFIGURATION_VOTES) | TO(RECONFIGURATION_RETIRED)},
    [RECONFIGURATION_WAITS] = {"waits", TO(RECONFIGURATION_FOUNDS)},
    [RECONFIGURATION_RETIRED] = {"retired", TO(RECONFIGURATION_FOUNDS)},
};
static const struct machine reconfiguration_machine = {"a coordinator's generation", stages};

static void enter(struct reconfiguration *h, enum reconfiguration_stage stage)
{
    h->stage = machine_enter(&reconfiguration_machine, h->stage, stage);
}

enum {
    HEAD_SIZE = 4,
    FOUND_SIZE = 4 + 3 * 8 + 2 * 4,
    NEWS = 7,
    WANT = 8,
    FOUND = 9,
    TARRY_US = 100 * 1000,
    STAND_US = 50 * 1000, /* after a state was given: it has to be written there */
    IDLE_ASKS_US = 1000 * 1000,
    ASK_US = 500 * 1000 /* one question at a time: the answer holds a whole state */
};

/* ---- what the folder says ---- */

static void first_generation(struct generation *g, const struct replica *r)
{
    *g = (struct generation){.voter_count = r->voters.count};
    for (size_t i = 0; i < r->voters.count; i++) {
        g->voter[i].id = r->voters.id[i];
        for (size_t k = 0; k < r->config.voter_count; k++) {
            if (r->config.voter[k] == g->voter[i].id && r->config.address[k] != NULL) {
                (void)snprintf(
                    g->voter[i].address, sizeof g->voter[i].address, "%s", r->config.address[k]);
            }
        }
    }
}

static enum err take_voters(struct replica *r)
{
    uint64_t id[GENERATION_VOTERS_MAX];

    for (size_t i = 0; i < r->generation.voter_count; i++) {
        id[i] = r->generation.voter[i].id;
    }
    const enum err e = voters_init(&r->voters, id, r->generation.voter_count);
    r->voters.generation = (uint16_t)r->generation.number;
    return e;
}

static enum err refuse_image(const char *reason)
{
    log_error("raft",
              "folder_refused",
              "error=ERR_CORRUPT reason=\"%s\" remedy=\"look with ringhold recover inspect "
              "(docs/recovery.md#one-folder)\"",
              reason);
    return ERR_CORRUPT;
}

enum err reconfiguration_open(struct replica *r, const struct log_image *image)
{
    struct reconfiguration *h = &r->reconfiguration;

    h->last_index = image->first + image->entry_count - 1;
    if (image->generation.size == 0) {
        h->stage = image->joining ? RECONFIGURATION_WAITS : RECONFIGURATION_VOTES; // STATE: new
        if (h->stage == RECONFIGURATION_VOTES) {
            first_generation(&r->generation, r);
        }
        return ERR_OK;
    }
    if (!generation_get(image->generation, &r->generation) || take_voters(r) != ERR_OK) {
        return refuse_image("the generation in raft.db is not valid");
    }
    if (!bytes_equal(image->snapshot.configuration, voters_configuration(&r->voters))) {
        return refuse_image("the snapshot belongs to another set of voters");
    }
    const bool votes = voters_address(&r->voters, r->config.id) != NULL;

    h->stage = votes ? RECONFIGURATION_VOTES : RECONFIGURATION_RETIRED; // STATE: new
    return ERR_OK;
}

void reconfiguration_fini(struct replica *r)
{
    log_request_free(r->reconfiguration.found);
}

/* ---- who is who ---- */

static uint64_t identity_of(struct replica *r, uint64_t id)
{
    const struct log_peer *peer = member_peer(r, id);

    if (id == r->config.id) {
        return r->identity;
    }
    if (peer != NULL) {
        return peer->identity;
    }
    for (size_t i = 0; i < RECONFIGURATION_STRANGERS_MAX; i++) {
        if (r->reconfiguration.stranger[i].id == id) {
            return r->reconfiguration.stranger[i].identity;
        }
    }
    return generation_identity(&r->generation, id); // linked since it was a voter
}

/* Somebody new: the place of the one that is known for longest is taken. */
static void remember(struct reconfiguration *h, uint64_t id, uint64_t identity)
{
    for (size_t i = 0; i < RECONFIGURATION_STRANGERS_MAX; i++) {
        if (h->stranger[i].id == id) {
            h->stranger[i].identity = identity;
            return;
        }
    }
    h->stranger[h->stranger_next++ % RECONFIGURATION_STRANGERS_MAX] =
        (struct generation_member){id, identity};
}

enum err replica_meet_stranger(struct replica *r, uint64_t id, uint64_t identity,
                               uint64_t generation)
{
    struct reconfiguration *h = &r->reconfiguration;
    const uint64_t known = identity_of(r, id);
    const bool voter = r->running && voters_address(&r->voters, id) != NULL;

    if (id == 0 || id == r->config.id || identity == 0 || identity > INT64_MAX ||
        (voter && known != 0 && known != identity) ||
        (r->generation.number > 0 && generation_used(&r->generation, id) &&
         generation_identity(&r->generation, id) != identity && known != identity)) {
        return ERR_REFUSED;
    }
    if (known != identity) {
        remember(h, id, identity);
    }
    if (generation > r->generation.number) {
        h->ask_next = id; // its link is not up yet
    }
    return ERR_OK;
}

/* ---- messages ---- */

static void put_head(struct writer *w, const struct replica *r, uint8_t type)
{
    put_u8(w, MESSAGE_FORMAT);
    put_u8(w, type);
    put_u16(w, (uint16_t)r->generation.number);
}

static void say(struct replica *r, uint64_t to, uint8_t type)
{
    uint8_t bytes[HEAD_SIZE];
    struct writer w = {.at = bytes, .left = sizeof bytes};

    put_head(&w, r, type);
    r->events.send(r->events.context, to, bytes_of(bytes, sizeof bytes));
}

static bool may_ask(const struct replica *r)
{
    const struct reconfiguration *h = &r->reconfiguration;

    return !h->sealed && (h->asked_us == 0 || r->io.now_us - h->asked_us >= ASK_US);
}

static void ask(struct replica *r, uint64_t from)
{
    struct reconfiguration *h = &r->reconfiguration;

    if (!may_ask(r)) {
        return;
    }
    h->asked_us = r->io.now_us;
    say(r, from, WANT);
}

static void read_for(struct replica *r, uint64_t from)
{
    struct reconfiguration *h = &r->reconfiguration;

    for (size_t i = 0; i < h->asking_count; i++) {
        if (h->asking[i] == from) {
            return;
        }
    }
    if (h->asking_count < RECONFIGURATION_STRANGERS_MAX) {
        h->asking[h->asking_count++] = from;
    }
    if (!h->reading) {
        struct log_request *request = log_read_new();
        request->tag = h;
        h->reading = true;
        log_store_submit(r->store, request);
    }
}

/* Only a folder that was chosen may have it: one that was wiped could vote twice. */
static void on_want(struct replica *r, uint64_t from, uint64_t generation)
{
    const enum reconfiguration_stage stage = r->reconfiguration.stage;
    const struct log_peer *peer = member_peer(r, from);
    const uint64_t identity = identity_of(r, from);

    if (generation >= r->generation.number || r->reconfiguration.sealed ||
        (stage != RECONFIGURATION_VOTES && stage != RECONFIGURATION_RETIRED)) {
        return;
    }
    if (peer != NULL || generation_identity(&r->generation, from) == identity) {
        read_for(r, from);
    }
}

static void give(struct replica *r, const struct log_snapshot *snapshot)
{
    struct reconfiguration *h = &r->reconfiguration;
    struct buffer generation = {0};
    struct buffer out = {0};

    generation_put(&generation, &r->generation);
    const size_t room = HEAD_SIZE + FOUND_SIZE + generation.size + r->voters.configuration_size +
                        snapshot->data.size;
    struct writer w = {.at = buffer_reserve(&out, room), .left = room};
    put_head(&w, r, FOUND);
    put_u32(&w, (uint32_t)generation.size);
    put_bytes(&w, generation.data, generation.size);
    put_u64(&w, snapshot->index);
    put_u64(&w, snapshot->term);
    put_u64(&w, snapshot->configuration_index);
    put_u32(&w, (uint32_t)r->voters.configuration_size);
    put_u32(&w, (uint32_t)snapshot->data.size);
    put_bytes(&w, r->voters.configuration, r->voters.configuration_size);
    put_bytes(&w, snapshot->data.data, snapshot->data.size);
    ASSERT(!w.bad);
    out.size += room - w.left;
    for (size_t i = 0; i < h->asking_count; i++) {
        log_info("raft",
                 "generation_given",
                 "generation=%" PRIu64 " coordinator=%" PRIu64 " index=%" PRIu64 " bytes=%zu",
                 r->generation.number,
                 h->asking[i],
                 snapshot->index,
                 out.size);
        r->events.send(r->events.context, h->asking[i], buffer_bytes(&out));
    }
    h->asking_count = 0;
    if (h->led && r->running && raft_state(&r->raft) == RAFT_FOLLOWER) {
        replica_io_stand(&r->io,
                         STAND_US); // they can vote for me now; with a leader nothing comes of it
    }
    buffer_fini(&generation);
    buffer_fini(&out);
}

static bool get_found(struct reader *r, struct generation *next, struct log_snapshot *snapshot)
{
    const uint32_t size = get_u32(r);
    const uint8_t *generation = get_bytes(r, size);

    snapshot->index = get_u64(r);
    snapshot->term = get_u64(r);
    snapshot->configuration_index = get_u64(r);
    const uint32_t configuration_size = get_u32(r);
    const uint32_t data_size = get_u32(r);
    const uint8_t *configuration = get_bytes(r, configuration_size);
    const uint8_t *data = get_bytes(r, data_size);
    if (r->bad || r->left != 0 || !generation_get(bytes_of(generation, size), next)) {
        return false;
    }
    snapshot->configuration = bytes_of(configuration, configuration_size);
    snapshot->data = bytes_of(data, data_size);
    return true;
}

/* A state of that generation, whole, and of exactly these voters. */
static bool is_sound(const struct generation *next, const struct log_snapshot *snapshot)
{
    uint64_t id[GENERATION_VOTERS_MAX];
    struct voters voters;
    struct bytes state;
    uint64_t index = 0;

    for (size_t i = 0; i < next->voter_count; i++) {
        id[i] = next->voter[i].id;
    }
    return voters_init(&voters, id, next->voter_count) == ERR_OK && snapshot->index > 0 &&
           snapshot->index <= INT64_MAX && snapshot->term > 0 && snapshot->term <= INT64_MAX &&
           snapshot->configuration_index <= snapshot->index &&
           bytes_equal(snapshot->configuration, voters_configuration(&voters)) &&
           entry_open_snapshot(snapshot->data, &index, &state) && index == snapshot->index;
}

static uint64_t term_now(const struct replica *r)
{
    if (!r->running) {
        return 0;
    }
    return r->image != NULL ? r->image->term : r->raft.current_term;
}

/* All that is written when `next` begins from the snapshot. */
static struct log_request *founding(const struct replica *r, const struct generation *next,
                                    const struct log_snapshot *snapshot)
{
    uint64_t id[GENERATION_VOTERS_MAX];
    struct buffer bytes = {0};
    struct log_founding f = {.snapshot = *snapshot,
                             .voters = id,
                             .voter_count = next->voter_count,
                             .term = term_now(r) > snapshot->term ? term_now(r) : snapshot->term};

    if ((r->rules_off & RECONFIGURATION_TERMS) != 0) {
        f.term = 1;
    }

    generation_put(&bytes, next);
    f.generation = buffer_bytes(&bytes);
    for (size_t i = 0; i < next->voter_count; i++) {
        const struct generation_voter *voter = &next->voter[i];
        id[i] = voter->id;
        if (voter->id == r->config.id) {
            f.admitted = true;
        } else {
            f.peer[f.peer_count++] =
                (struct log_peer){.voter = voter->id, .identity = voter->identity};
        }
    }
    struct log_request *request = log_found_new(&f);
    buffer_fini(&bytes);
    return request;
}

static void on_found(struct replica *r, struct reader *in)
{
    struct reconfiguration *h = &r->reconfiguration;
    struct log_snapshot snapshot = {0};
    struct generation next;

    if (!get_found(in, &next, &snapshot) || !is_sound(&next, &snapshot)) {
        r->io.bad_messages++;
        return;
    }
    if (h->sealed || next.number <= r->generation.number) {
        return;
    }
    if (generation_identity(&next, r->config.id) != r->identity) {
        log_error("raft",
                  "generation_refused",
                  "generation=%" PRIu64
                  " reason=\"its coordinators do not know this folder: it was "
                  "wiped or replaced, or is of another group\" remedy=\"take an id that was never "
                  "used, an empty folder and --join-group (docs/operating.md#coordinators)\"",
                  next.number);
        return;
    }
    h->sealed = true;
    h->index = UINT64_MAX; // what was applied here is as good as ever until the other state comes
    h->next = next;
    h->found = founding(r, &next, &snapshot);
}

bool reconfiguration_receive(struct replica *r, uint64_t from, struct bytes message)
{
    struct reader in = {.at = message.data, .left = message.size};
    const bool good = message_is_format(get_u8(&in));
    const uint8_t type = get_u8(&in);
    const uint64_t generation = get_u16(&in);
    const uint64_t mine = r->generation.number;

    if (in.bad || !good) {
        r->io.bad_messages++;
        return true;
    }
    if (r->reconfiguration.stage == RECONFIGURATION_FOUNDS) {
        return true; // soon it knows more
    }
    if (type == FOUND) {
        on_found(r, &in);
    } else if (type == WANT) {
        on_want(r, from, generation);
    } else if (generation > mine) {
        ask(r, from);
    } else if (generation < mine && type != NEWS) {
        say(r, from, NEWS);
    }
    return !r->running || type >= NEWS ||
           (generation != mine && !(mutant(M_ANYGENERATION) && generation > mine));
}

void reconfiguration_begun(struct replica *r)
{
    for (size_t i = 0; i < r->generation.voter_count; i++) {
        if (r->generation.voter[i].id != r->config.id) {
            say(r, r->generation.voter[i].id, NEWS);
        }
    }
}

/* Of those who may know more: the voters as they are known here, then whoever is linked. 0: nobody.
 */
static uint64_t next_to_ask(struct replica *r)
{
    struct reconfiguration *h = &r->reconfiguration;
    const size_t voters = r->generation.voter_count;
    const size_t count = voters + RECONFIGURATION_STRANGERS_MAX;
    uint64_t id = 0;

    for (size_t i = 0; i < count && id == 0; i++) {
        const size_t turn = h->ask_turn++ % count;

        id = turn < voters ? r->generation.voter[turn].id : h->stranger[turn - voters].id;
    }
    return id;
}

/* No leader is known here: the others may have gone on to a later generation. */
static bool has_no_leader(struct replica *r)
{
    raft_id id = 0;
    const char *address = NULL;

    if (!r->running) {
        return false;
    }
    raft_leader(&r->raft, &id, &address);
    return id == 0;
}

void reconfiguration_tick(struct replica *r)
{
    struct reconfiguration *h = &r->reconfiguration;
    // Nobody speaks to one that votes no more, and it tells addresses to all that are linked to it;
    // nor to one that was taken in and left out again before it heard of either. One that votes
    // asks again while it has no leader: those it asked first may have been founding, and silent.
    const bool idle = h->stage == RECONFIGURATION_RETIRED || h->stage == RECONFIGURATION_WAITS ||
                      (h->stage == RECONFIGURATION_VOTES && has_no_leader(r));

    if (idle && h->ask_next == 0 && r->io.now_us - h->asked_us >= IDLE_ASKS_US) {
        h->ask_next = next_to_ask(r);
    }
}

/* ---- the SEAL ---- */

/* The next generation into `next`, if there may be one. */
static enum err next_of(struct replica *r, struct generation_wish *wish, size_t count,
                        struct generation *next, char *why, size_t why_size)
{
    struct generation now = r->generation;

    if (!r->leading || r->reconfiguration.sealed) {
        (void)snprintf(why, why_size, "this coordinator does not lead");
        return ERR_NOT_LEADER;
    }
    for (size_t i = 0; i < now.voter_count; i++) {
        now.voter[i].identity = identity_of(r, now.voter[i].id);
    }
    for (size_t i = 0; i < count; i++) {
        wish[i].identity = identity_of(r, wish[i].id);
        wish[i].linked = wish[i].linked || wish[i].id == r->config.id;
    }
    return generation_next(&now, wish, count, next, why, why_size) ? ERR_OK : ERR_REFUSED;
}

enum err replica_may_change(struct replica *r, struct generation_wish *wish, size_t count,
                            char *why, size_t why_size)
{
    struct generation next;

    return next_of(r, wish, count, &next, why, why_size);
}

enum err replica_change(struct replica *r, uint64_t tag, struct generation_wish *wish, size_t count,
                        char *why, size_t why_size)
{
    struct generation next;
    struct buffer command = {0};
    const enum err error = next_of(r, wish, count, &next, why, why_size);

    if (error != ERR_OK) {
        return error;
    }
    generation_put_seal(&command, &next);
    struct item *item = member_enqueue(r, tag, command.size);
    memcpy(item->data, command.data, command.size);
    item->seal = true;
    buffer_fini(&command);
    return ERR_OK;
}

static uint64_t term_at(const struct replica *r, uint64_t index)
{
    const struct raft_log *log = &r->raft.log;

    ASSERT(index > log->offset);
    return log->entries[(log->front + (index - log->offset - 1)) % log->size].term;
}

void reconfiguration_seal(struct replica *r, uint64_t index, struct bytes command)
{
    struct reconfiguration *h = &r->reconfiguration;

    if (!generation_get_seal(command, &h->next) || h->next.number != r->generation.number + 1) {
        member_give_up(r, "a committed change of the coordinators can't be decoded");
        return;
    }
    h->sealed = true;
    h->index = index;
    h->term = term_at(r, index);
    log_info("raft",
             "sealed",
             "generation=%" PRIu64 " index=%" PRIu64 " next_voters=%zu",
             r->generation.number,
             index,
             h->next.voter_count);
}

bool reconfiguration_is_sealed(const struct replica *r)
{
    return r->reconfiguration.sealed && (r->rules_off & RECONFIGURATION_STOPS) == 0;
}

/* The state is as the SEAL left it: this very one goes over. */
static void found_from_here(struct replica *r)
{
    struct reconfiguration *h = &r->reconfiguration;
    struct buffer state = {0};
    struct buffer data = {0};
    uint64_t id[GENERATION_VOTERS_MAX];
    struct voters voters;

    for (size_t i = 0; i < h->next.voter_count; i++) {
        id[i] = h->next.voter[i].id;
    }
    if (voters_init(&voters, id, h->next.voter_count) != ERR_OK) {
        member_give_up(r, "a committed change of the coordinators is not valid");
        return;
    }
    r->events.snapshot(r->events.context, &state);
    entry_seal_snapshot(&data, h->index, buffer_bytes(&state));
    const struct log_snapshot snapshot = {.index = h->index,
                                          .term = h->term,
                                          .configuration_index = h->index,
                                          .configuration = voters_configuration(&voters),
                                          .data = buffer_bytes(&data)};
    h->found = founding(r, &h->next, &snapshot);
    buffer_fini(&state);
    buffer_fini(&data);
}

/* libraft is asked no more. What it had in flight may be in the log before the SEAL, or nowhere. */
static void stop_libraft(struct replica *r)
{
    r->reconfiguration.led = r->leading;
    r->flight = FLIGHT_NONE;
    r->completed = false;
    member_answer(r, &r->in_flight, ERR_TIMEOUT);
    if (!mutant(M_OLDLEADS)) {
        member_resign(r);
    }
    r->running = false;
    r->reconfiguration.last_index = r->done_index;
}

static struct log_image *image_of(const struct replica *r, const struct log_request *request)
{
    const struct log_founding *f = &request->founding;
    const struct log_snapshot *from = &request->snapshot;
    struct log_image *image = mem_new(1, sizeof *image);

    log_image_init(image);
    image->term = f->term;
    image->identity = r->identity;
    image->admitted = f->admitted;
    memcpy(image->peer, f->peer, sizeof image->peer);
    image->peer_count = f->peer_count;
    image->first = from->index + 1;
    image->snapshot = *from;
    uint8_t *copy = log_image_memory(image, from->configuration.size + from->data.size);
    memcpy(copy, from->configuration.data, from->configuration.size);
    memcpy(copy + from->configuration.size, from->data.data, from->data.size);
    image->snapshot.configuration.data = copy;
    image->snapshot.data.data = copy + from->configuration.size;
    return image;
}

/* `next` is on the disk. */
static void begin(struct replica *r, const struct log_request *request)
{
    struct reconfiguration *h = &r->reconfiguration;

    r->generation = h->next;
    h->sealed = false;
    h->tarries_until_us = 0;
    h->asked_us = 0;
    h->asking_count = 0;
    h->reading = false;
    h->last_index = request->snapshot.index;
    enter(h, request->founding.admitted ? RECONFIGURATION_VOTES : RECONFIGURATION_RETIRED);
    if (take_voters(r) != ERR_OK) {
        member_give_up(r, "the voters of a generation are not valid");
        return;
    }
    log_info("raft",
             h->stage == RECONFIGURATION_VOTES ? "generation_begins" : "retired",
             "generation=%" PRIu64 " voters=%zu index=%" PRIu64 " term=%" PRIu64,
             r->generation.number,
             r->generation.voter_count,
             request->snapshot.index,
             request->founding.term);
    memcpy(r->peer, request->founding.peer, sizeof r->peer);
    r->peer_count = request->founding.peer_count;
    if (h->stage == RECONFIGURATION_VOTES) {
        member_begin(r, image_of(r, request));
    }
    if (r->events.generation != NULL) {
        r->events.generation(r->events.context, &r->generation);
    }
    reconfiguration_begun(r);
}

/* Without RECONFIGURATION_STOPS it goes on for a moment, as one would that waits for its disk. */
static bool tarries(struct replica *r)
{
    struct reconfiguration *h = &r->reconfiguration;

    if ((r->rules_off & RECONFIGURATION_STOPS) == 0 || !r->running) {
        return false;
    }
    h->tarries_until_us = h->tarries_until_us == 0 ? r->io.now_us + TARRY_US : h->tarries_until_us;
    return r->io.now_us < h->tarries_until_us;
}

void reconfiguration_settle(struct replica *r)
{
    struct reconfiguration *h = &r->reconfiguration;

    if (h->ask_next != 0 && h->stage != RECONFIGURATION_FOUNDS && may_ask(r)) {
        ask(r, h->ask_next);
        h->ask_next = 0;
    }
    if (!h->sealed || h->stage == RECONFIGURATION_FOUNDS) {
        return;
    }
    if (h->found == NULL) {
        found_from_here(r);
    }
    if (tarries(r)) {
        return;
    }
    if (r->running) {
        stop_libraft(r);
    }
    enter(h, RECONFIGURATION_FOUNDS);
    if ((r->rules_off & RECONFIGURATION_DURABLE) != 0) {
        struct log_request *nothing = log_truncate_new(INT64_MAX);
        nothing->tag = h;
        log_store_submit(r->store, nothing);
        return;
    }
    h->found->tag = h;
    log_store_submit(r->store, h->found);
    h->found = NULL;
}

void reconfiguration_done(struct replica *r, const struct log_request *request)
{
    if (request->kind == LOG_READ_SNAPSHOT) {
        r->reconfiguration.reading = false;
        if (r->reconfiguration.stage != RECONFIGURATION_FOUNDS) {
            give(r, &request->snapshot);
        }
        return;
    }
    if (request->kind == LOG_TRUNCATE) { // without RECONFIGURATION_DURABLE
        request = r->reconfiguration.found;
        log_store_submit(r->store, r->reconfiguration.found);
        r->reconfiguration.found = NULL;
    }
    begin(r, request);
}

void reconfiguration_poll(struct replica *r)
{
    struct log_request *done;

    // What libraft had asked for is done, too, and nobody is left to be told.
    while (!r->running && (done = log_store_completed(r->store)) != NULL) {
        if (done->tag == &r->reconfiguration) {
            reconfiguration_done(r, done);
        }
        log_request_free(done);
    }
}

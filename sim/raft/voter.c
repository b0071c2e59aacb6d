/* SPDX-License-Identifier: Apache-2.0
 *
 * One shipped replica in a Raft world: started, crashed, watched.
 */
#include "sim/raft/inside.h"

#include "raft/heap.h"
#include "raft/inside.h"

#include "base/assert.h"
#include "base/mem.h"
#include "base/table.h"
#include "wire/versions.h"

#include <string.h>

enum { SHIPPED_EVERY = 4 }; /* seeds: SQLite takes time */

/* In the tag of a barrier, beside the highest index that was acknowledged before it began. */
static const uint64_t READ = UINT64_C(1) << 62;

/* ---- what the replicas ask of the world ---- */

static uint64_t disk_now(void *context)
{
    return ((const struct sim_voter *)context)->world->now_us;
}

static void disk_schedule(void *context, struct raft_disk *disk, uint64_t at_us)
{
    struct sim_voter *n = context;

    (void)disk;
    raft_world_push_for(n->world, ON_DISK, n, at_us);
}

void sim_voter_plug(struct sim_voter *n)
{
    n->disk.now = disk_now;
    n->disk.schedule = disk_schedule;
    n->disk.context = n;
}

static void on_apply(void *context, uint64_t index, uint64_t tag, struct bytes command)
{
    struct sim_voter *n = context;
    struct raft_world *w = n->world;
    uint64_t id = 0;

    ASSERT(command.size == sizeof id);
    memcpy(&id, command.data, sizeof id);
    if (tag != 0 && tag != id) {
        raft_world_violation(w, n, "a command was applied under another's tag");
        return;
    }
    if (id < w->command_max && w->index_of[id] == COMMAND_REFUSED) {
        raft_world_violation(w, n, "a command was refused and applied");
        return;
    }
    if (id >= w->command_max || (w->index_of[id] != 0 && w->index_of[id] != index)) {
        raft_world_violation(w, n, "a command was applied at two indexes");
        return;
    }
    w->index_of[id] = index;
    n->hash = table_mix(n->hash ^ id);
}

/* Of an entry in libraft's log. Barriers count too: entries are the same when their terms are. */
static uint64_t term_at(const struct sim_voter *n, uint64_t index)
{
    const struct raft_log *log = &replica_raft(n->replica)->log;

    ASSERT(index > log->offset);
    return log->entries[(log->front + (index - log->offset - 1)) % log->size].term;
}

static void chain_one(struct sim_voter *n, uint64_t index, uint64_t hash)
{
    struct raft_world *w = n->world;

    while (index >= w->chain_max) {
        const size_t before = w->chain_max;
        w->chain_max = before == 0 ? 4096 : 2 * before;
        w->chain_at = mem_resize(w->chain_at, w->chain_max * sizeof *w->chain_at);
        memset(w->chain_at + before, 0, (w->chain_max - before) * sizeof *w->chain_at);
    }
    n->chain = table_mix(n->chain ^ hash ^ (index << 32) ^ (term_at(n, index) << 8)) | 1;
    n->applied = index;
    if (w->chain_at[index] == 0) {
        w->chain_at[index] = n->chain;
    } else if (w->chain_at[index] != n->chain) {
        raft_world_violation(w, n, "two voters applied different histories");
    }
}

static void on_applied(void *context, uint64_t index)
{
    struct sim_voter *n = context;
    const uint64_t hash = n->hash;

    if (index <= n->applied) {
        raft_world_violation(n->world, n, "the applied index went back");
        return;
    }
    n->hash = 0;
    while (n->applied + 1 < index) {
        chain_one(n, n->applied + 1, 0);
    }
    chain_one(n, index, hash);
    raft_world_trace(n->world, n->chain);
}

static void on_snapshot(void *context, struct buffer *out)
{
    const struct sim_voter *n = context;

    buffer_put(out, &n->applied, sizeof n->applied);
    buffer_put(out, &n->chain, sizeof n->chain);
}

static bool on_restore(void *context, uint64_t index, struct bytes snapshot)
{
    struct sim_voter *n = context;

    ASSERT(snapshot.size == 16);
    n->world->result->installs += n->applied > 0;
    memcpy(&n->applied, snapshot.data, 8);
    memcpy(&n->chain, snapshot.data + 8, 8);
    n->hash = 0;
    if (n->applied != index || n->world->chain_at[index] != n->chain) {
        raft_world_violation(n->world, n, "a snapshot of another history");
    }
    return true;
}

static void on_role(void *context, bool leading, uint64_t term)
{
    struct sim_voter *n = context;

    if (leading && term < TERMS_MAX) {
        unsigned *told = &n->world->role_of[term];
        if (*told != 0 && *told != n->place + 1) {
            raft_world_violation(n->world, n, "two were told to lead in one term");
        }
        *told = n->place + 1;
    }
    raft_world_say(n->world, n, leading ? "leads" : "leads no more");
}

static void on_generation(void *context, const struct generation *generation)
{
    struct sim_voter *n = context;

    raft_world_say(
        n->world, n, replica_part(n->replica) == REPLICA_VOTES ? "founds" : "is retired");
    raft_world_trace(n->world, generation->number);
    raft_changes_begun(n);
}

static void on_done(void *context, uint64_t tag, enum err result)
{
    struct sim_voter *n = context;
    struct raft_world *w = n->world;

    if (tag == UINT64_MAX) {
        return; // a change of voters
    }
    if ((tag & READ) != 0) {
        w->result->reads += result == ERR_OK;
        if (result == ERR_OK && n->applied < (tag & ~READ)) {
            raft_world_violation(
                w, n, "a barrier is done, and misses what was acknowledged before");
        }
        return;
    }
    if (result == ERR_NOT_LEADER) {
        if (w->index_of[tag] != 0) {
            raft_world_violation(w, n, "a command was applied and refused");
        }
        w->index_of[tag] = COMMAND_REFUSED;
    }
    if (result != ERR_OK) {
        return;
    }
    w->result->acked++;
    if (w->index_of[tag] == 0 || w->index_of[tag] > n->applied) {
        raft_world_violation(w, n, "a command was acknowledged and not applied");
    } else if (w->index_of[tag] > w->acked_index) {
        w->acked_index = w->index_of[tag];
    }
}

/* An AppendEntries with entries: more than head and fixed fields. */
static bool carries_entries(struct bytes message)
{
    enum { FIXED_SIZE = 4 + 4 * 8 + 4, ROUND_SIZE = 8 };
    const size_t round_size = message.data[0] == MESSAGE_FORMAT_ROUND ? ROUND_SIZE : 0;

    return message.data[1] == RAFT_IO_APPEND_ENTRIES && message.size > FIXED_SIZE + round_size;
}

static void on_send(void *context, uint64_t voter, struct bytes message)
{
    struct sim_voter *n = context;
    struct raft_world *w = n->world;
    const unsigned to = (unsigned)voter - 1;
    const bool lost =
        w->cut[n->place][to] || prng_between(&w->prng, 1, 1000000) <= w->options.loss_ppm;
    uint64_t at_us = w->now_us + prng_between(&w->prng, 300, 2500);

    if (prng_chance(&w->prng, w->delay_percent)) {
        at_us += prng_between(&w->prng, 0, 1000000); // a link that stalls
    }
    w->result->messages++;
    if ((lost && !w->healing) || (w->mute[n->place] && carries_entries(message))) {
        return;
    }
    if (w->ordered && at_us < w->link_us[n->place][to]) {
        at_us = w->link_us[n->place][to];
    }
    w->link_us[n->place][to] = at_us;
    struct raft_packet *p = mem_new(1, sizeof *p + message.size);
    p->from = n->place;
    p->size = message.size;
    memcpy(p->data, message.data, message.size);
    raft_world_push(
        w,
        (struct raft_event){
            .at_us = at_us, .kind = ON_MESSAGE, .node = to, .life = w->node[to].life, .packet = p});
}

static void on_wake(void *context)
{
    struct sim_voter *n = context;

    if (!n->polling) {
        n->polling = true;
        raft_world_push_for(n->world, ON_POLL, n, n->world->now_us);
    }
}

static void on_broken(void *context, const char *why)
{
    struct sim_voter *n = context;

    raft_world_violation(n->world, n, why);
    n->world->broken = n;
    longjmp(n->world->stop, 1); // NOLINT(cert-err52-cpp): the replica is thrown away whole
}

/* ---- lives ---- */

uint64_t raft_world_tick_us(const struct raft_world *w)
{
    return w->election_ms * UINT64_C(50); // twice a heartbeat
}

void sim_voter_ship(struct sim_voter *n)
{
    const struct raft_world_options *o = &n->world->options;

    if (o->scenario == RANDOM_FAULTS && o->seed % SHIPPED_EVERY == 0) {
        raft_disk_ship(&n->disk, o->seed << 16 | n->place);
    }
}

void sim_voter_start(struct sim_voter *n)
{
    struct raft_world *w = n->world;
    const struct replica_events events = {
        .context = n,
        .apply = on_apply,
        .applied = on_applied,
        .snapshot = on_snapshot,
        .restore = on_restore,
        .role = on_role,
        .done = on_done,
        .generation = on_generation,
        .send = on_send,
        .wake = on_wake,
    };
    struct replica_config config = {
        .id = n->place + 1,
        .joining = n->place >= w->options.voters,
        .voter_count = n->place >= w->options.voters ? 0 : w->options.voters,
        .seed = prng_u64(&w->prng),
        .election_ms = w->election_ms,
        .heartbeat_ms = w->election_ms / 10,
        .snapshot_entries = n->snapshot_entries,
        .trailing_entries = n->trailing_entries,
    };
    struct replica_base base = {
        .store = &n->disk.store,
        .image = mem_new(1, sizeof *base.image),
        .rules_off = w->options.rules_off,
        .entries_size_max = w->entries_size_max,
        .broken = on_broken,
    };

    for (unsigned i = 0; i < config.voter_count; i++) {
        config.voter[i] = i + 1;
    }
    const struct log_sqlite_config folder = {.voter = config.id,
                                             .voters = config.voter,
                                             .voter_count = config.voter_count,
                                             .joining = config.joining};
    const char *wrong = raft_disk_load(&n->disk, &folder, base.image);
    if (wrong != NULL) {
        raft_world_violation(w, n, wrong);
    }
    n->chain = 0;
    n->applied = 0;
    n->hash = 0;
    n->polling = false;
    n->led_term = 0;
    n->commit = 0;
    const enum err e = replica_open_over(&n->replica, &config, &events, &base, w->now_us);
    ASSERT(e == ERR_OK);
    if (w->options.seed % 5 != 0) { // else the fleet is of before rounds
        replica_set_format(n->replica, FLEET_FORMAT_ROUNDS);
    }
    raft_changes_hello(n);
    raft_world_push_for(
        w, ON_TICK, n, w->now_us + prng_between(&w->prng, 1, raft_world_tick_us(w)));
    raft_world_say(w, n, "starts");
}

void sim_voter_count_cuts(struct sim_voter *n)
{
    for (unsigned i = 0; i < 4; i++) {
        n->world->result->cuts[i] += replica_guard(n->replica)->cut[i];
    }
}

void sim_voter_crash(struct sim_voter *n)
{
    if (n->replica == NULL) {
        return;
    }
    raft_world_say(n->world, n, "crashes");
    sim_voter_count_cuts(n);
    (void)heap_enter(NULL); // it may have been left in the middle
    replica_close(n->replica);
    n->replica = NULL;
    n->life++;
    n->world->result->crashes++;
    raft_world_end_links(n->world, n);
}

bool sim_voter_leads(const struct sim_voter *n)
{
    return n->replica != NULL && raft_state(replica_raft(n->replica)) == RAFT_LEADER;
}

void sim_voter_watch(struct sim_voter *n)
{
    struct raft_world *w = n->world;

    if (!sim_voter_leads(n)) {
        return;
    }
    const uint64_t term = replica_raft(n->replica)->current_term;
    if (term == n->led_term || term >= TERMS_MAX) {
        return;
    }
    n->led_term = term;
    n->led_since_us = w->now_us;
    w->result->elections++;
    // Between generations a term may be elected twice: the older one's is never told that it leads.
    const uint64_t generation = replica_generation(n->replica)->number;
    if (w->leader_of[term] != 0 && w->leader_of[term] >> 8 == generation &&
        (w->leader_of[term] & 0xff) != n->place + 1) {
        raft_world_violation(w, n, "two leaders in one term");
    }
    if (w->leader_of[term] >> 8 <= generation) {
        w->leader_of[term] = generation << 8 | (n->place + 1);
    }
    raft_world_trace(w, term * 8 + n->place);
}

void sim_voter_propose(struct sim_voter *n)
{
    struct raft_world *w = n->world;
    const uint64_t id = w->command_count;

    if (id + 1 >= w->command_max) {
        const size_t before = w->command_max;
        w->command_max = before == 0 ? 4096 : 2 * before;
        w->index_of = mem_resize(w->index_of, w->command_max * sizeof *w->index_of);
        memset(w->index_of + before, 0, (w->command_max - before) * sizeof *w->index_of);
    }
    if (replica_propose(n->replica, id, bytes_of(&id, sizeof id)) == ERR_OK) {
        w->command_count++;
    }
}

void sim_voter_read(struct sim_voter *n)
{
    if (n->replica != NULL && replica_barrier(n->replica, READ | n->world->acked_index) != ERR_OK) {
        return; // it does not lead
    }
}

void sim_voter_set_disk(struct sim_voter *n, uint64_t write_us)
{
    n->disk.write_min_us = write_us;
    n->disk.write_max_us = write_us;
}

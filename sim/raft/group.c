/* SPDX-License-Identifier: Apache-2.0
 *
 * The shipped Raft group inside a simulated fleet.
 */
#include "sim/raft/group_inside.h"
#include "wire/cursor.h"

#include "base/assert.h"
#include "base/mem.h"
#include "base/mutant.h"
#include "raft/reconfiguration.h"
#include "sim/same.h"
#include "wire/control.h"

#include <stdio.h>
#include <string.h>

enum {
    ELECTION_MS = 300,
    HEARTBEAT_MS = 50,
    COMMIT_EVERY = 32,
    SHIPPED_EVERY = 2 /* seeds: SQLite takes time */
};

static struct group_member *member_of(const struct fleet *f, unsigned at)
{
    return &f->group->member[at];
}

static struct sim_coordinator *shell_of(const struct group_member *m)
{
    return &m->fleet->coordinator[m->at];
}

static uint64_t group_now(const struct fleet *f, unsigned at)
{
    return sim_clock_read(&f->coordinator[at].process.clock, f->world.now_us);
}

unsigned group_machine(const struct fleet *f, uint64_t id)
{
    unsigned at = 0;

    while (at < FLEET_COORDINATORS_MAX && (id == 0 || member_of(f, at)->id != id)) {
        at++;
    }
    return at;
}

/* An event of this life of the process; it waits while the process stands still. */
static void later(struct group_member *m, uint64_t at_us, world_run run, uint64_t c)
{
    struct process *p = &shell_of(m)->process;

    world_at(
        &m->fleet->world,
        at_us,
        (struct world_event){
            .run = run, .context = m->fleet, .a = m->at, .b = p->life, .c = c, .gate = &p->gate});
}

static bool is_of_this_life(const struct fleet *f, const struct world_event *event)
{
    return member_of(f, (unsigned)event->a)->replica != NULL &&
           f->coordinator[event->a].process.life == event->b;
}

bool group_enter(struct fleet *f, unsigned at)
{
    if (member_of(f, at)->replica == NULL) {
        return false;
    }
    f->coordinator[at].inside = true;
    return true;
}

void group_leave(struct fleet *f, unsigned at)
{
    struct sim_coordinator *c = &f->coordinator[at];

    c->inside = false;
    if (c->dies) {
        coordinator_crash(f, c);
    }
}

/* ---- disk ---- */

static uint64_t disk_now(void *context)
{
    return ((const struct group_member *)context)->fleet->world.now_us;
}

static void on_disk(void *context, const struct world_event *event)
{
    struct fleet *f = context;
    struct group_member *m = member_of(f, (unsigned)event->a);

    if (is_of_this_life(f, event)) {
        raft_disk_finish(&m->disk);
        (void)group_enter(f, m->at);
        replica_poll(m->replica, group_now(f, m->at));
        group_leave(f, m->at);
    }
}

static void disk_schedule(void *context, struct raft_disk *disk, uint64_t at_us)
{
    (void)disk;
    later(context, at_us, on_disk, 0);
}

static void new_disk(struct group_member *m)
{
    struct fleet *f = m->fleet;

    raft_disk_fini(&m->disk);
    m->disk = (struct raft_disk){
        .prng = &f->world.prng,
        .write_min_us = 50,
        .write_max_us = world_between(&f->world, 500, 10000),
        .stall_percent = world_between(&f->world, 0, 3),
        .stall_us = 200000,
        .now = disk_now,
        .schedule = disk_schedule,
        .context = m,
    };
    raft_disk_init(
        &m->disk, 1000 + ++f->group->identities, voters_configuration(&f->group->founders));
    m->disk.joining = !m->founder;
    if (f->world.seed % SHIPPED_EVERY == 0) {
        raft_disk_ship(&m->disk, f->world.seed << 16 | f->group->identities);
    }
}

void group_address(const struct fleet *f, unsigned at, char *out, size_t size)
{
    (void)snprintf(out, size, "%s:1", f->coordinator[at].process.name);
}

void group_new_folder(struct fleet *f, unsigned at)
{
    struct group_member *m = member_of(f, at);

    ASSERT(m->replica == NULL);
    m->id = ++f->group->last_id;
    m->founder = m->lost = false;
    new_disk(m);
}

/* ---- what a replica tells ---- */

static struct group_entry *append(struct sim_group *g)
{
    if (g->count == g->cap) {
        g->cap = g->cap == 0 ? 256 : 2 * g->cap;
        g->log = mem_resize(g->log, g->cap * sizeof *g->log);
    }
    return &g->log[g->count++];
}

/* It is the first that applied it: so it is committed. */
static void commit(struct fleet *f, uint64_t index, struct bytes bytes)
{
    struct group_entry *e = append(f->group);
    Rh__Command *command = command_get(bytes);
    struct state_result result;

    ASSERT(command != NULL);
    *e = (struct group_entry){
        .index = index, .bytes = mem_copy(bytes.data, bytes.size), .size = bytes.size};
    state_apply(&f->raft.truth, command, &result);
    e->hash = raft_model_hash(&f->raft.truth);
    f->raft.events.committed(f->raft.events.context, command, &result);
    state_result_fini(&result);
    command_free(command);
}

static void differs(struct group_member *m, const char *what)
{
    world_violate(&m->fleet->world,
                  "raft-state",
                  "coordinator %llu on %s: %s, at command %zu",
                  (unsigned long long)m->id,
                  shell_of(m)->process.name,
                  what,
                  m->applied);
}

static void on_apply(void *context, uint64_t index, uint64_t tag, struct bytes bytes)
{
    struct group_member *m = context;
    struct fleet *f = m->fleet;
    struct state_result result;
    const struct group_entry *e;
    Rh__Command *command = command_get(bytes);

    if (m->applied == f->group->count) {
        commit(f, index, bytes);
    }
    e = &f->group->log[m->applied++];
    if (e->index != index || !bytes_equal(bytes, bytes_of(e->bytes, e->size))) {
        differs(m, "it applies another command than others");
    }
    ASSERT(command != NULL);
    state_apply(&m->state, command, &result);
    state_check(&m->state);
    state_db_apply(m->db, &m->state, command, &result);
    if (raft_model_hash(&m->state) != e->hash) {
        differs(m, "it has another state than others");
    }
    coordinator_step_from(f,
                          shell_of(m),
                          (struct coordinator_event){.type = COORDINATOR_APPLIED,
                                                     .tag = tag,
                                                     .index = index,
                                                     .command = command,
                                                     .result = &result});
    state_result_fini(&result);
    command_free(command);
}

static void on_applied(void *context, uint64_t index)
{
    struct group_member *m = context;

    m->index = index;
    if (m->format != m->state.format) {
        m->format = m->state.format;
        replica_set_format(m->replica, m->format);
    }
    group_watermark_note(m, index);
    if (index % COMMIT_EVERY == 0) {
        state_db_commit(m->db, index);
    }
}

/* What the first `count` commands make; in `db`, too, if it is there. */
static void replay(const struct sim_group *g, uint64_t count, struct state *out,
                   struct state_db *db)
{
    state_init(out);
    for (uint64_t i = 0; i < count; i++) {
        Rh__Command *command = command_get(bytes_of(g->log[i].bytes, g->log[i].size));
        struct state_result result;

        state_apply(out, command, &result);
        if (db != NULL) {
            state_db_apply(db, out, command, &result);
        }
        state_result_fini(&result);
        command_free(command);
    }
}

/* M_OLDSTATE: the newest commands are not in it. */
static void put_old_state(const struct group_member *m, struct buffer *out)
{
    const struct sim_group *g = m->fleet->group;
    struct state_db *db = NULL;
    struct state old;

    ASSERT(state_db_open(&db, NULL) == ERR_OK);
    replay(g, m->applied - 2, &old, db);
    state_db_commit(db, g->log[m->applied - 1].index);
    state_db_snapshot(db, &old, out);
    state_db_close(db);
    state_fini(&old);
}

static void on_snapshot(void *context, struct buffer *out)
{
    struct group_member *m = context;

    if (mutant(M_OLDSTATE) && reconfiguration_is_sealed(m->replica) && m->applied > 2) {
        put_old_state(m, out);
        return;
    }
    state_db_commit(m->db, m->index);
    state_db_snapshot(m->db, &m->state, out);
}

static bool on_restore(void *context, uint64_t index, struct bytes snapshot)
{
    struct group_member *m = context;
    const struct sim_group *g = m->fleet->group;
    struct state expected;

    if (!state_db_restore(m->db, snapshot, &m->state)) {
        differs(m, "a state that it was given does not load");
        return false;
    }
    m->index = index;
    m->applied = 0;
    while (m->applied < g->count && g->log[m->applied].index <= index) {
        m->applied++;
    }
    replay(g, m->applied, &expected, NULL);
    const char *what = same_state(&expected, &m->state);
    if (what != NULL) {
        differs(m, what);
    }
    state_fini(&expected);
    return true;
}

static void on_role(void *context, bool leading, uint64_t term)
{
    struct group_member *m = context;
    struct fleet *f = m->fleet;
    struct replica_status status;

    replica_status(m->replica, &status);
    if (leading) {
        group_watermark_lead(m);
        uint8_t *told = &f->group->leader_of[term % GROUP_TERMS_MAX];

        if (*told != 0 && *told != m->at + 1) {
            world_violate(&f->world,
                          "raft-term",
                          "%s leads in term %llu, and another did",
                          shell_of(m)->process.name,
                          (unsigned long long)term);
        }
        *told = (uint8_t)(m->at + 1);
        f->raft.leader = (int)m->at;
        f->raft.changes++;
        f->raft.elected_us = f->world.now_us;
    } else if (f->raft.leader == (int)m->at) {
        f->raft.leader = -1;
    }
    TRACE(&f->world,
          shell_of(m)->process.name,
          "%s, term %llu, generation %llu",
          leading ? "LEADS" : "leads no more",
          (unsigned long long)term,
          (unsigned long long)replica_generation(m->replica)->number);
    coordinator_step_from(
        f,
        shell_of(m),
        (struct coordinator_event){.type = leading ? COORDINATOR_LEAD : COORDINATOR_FOLLOW,
                                   .term = term,
                                   .leader = status.leader});
}

static void on_done(void *context, uint64_t tag, enum err error)
{
    struct group_member *m = context;

    if (tag == GROUP_WISH) {
        group_wish_done(m->fleet, error);
        return;
    }
    coordinator_step_from(
        m->fleet,
        shell_of(m),
        (struct coordinator_event){.type = COORDINATOR_DONE, .tag = tag, .error = error});
}

void group_tell_voters(struct fleet *f, unsigned at)
{
    const struct generation *g = replica_generation(member_of(f, at)->replica);
    struct state_voter voter[GENERATION_VOTERS_MAX] = {0};

    for (size_t i = 0; i < g->voter_count; i++) {
        voter[i].id = g->voter[i].id;
        (void)snprintf(voter[i].address, sizeof voter[i].address, "%s", g->voter[i].address);
    }
    coordinator_step_from(f,
                          &f->coordinator[at],
                          (struct coordinator_event){.type = COORDINATOR_VOTERS,
                                                     .voter = voter,
                                                     .voter_count = g->voter_count});
}

static void on_generation(void *context, const struct generation *generation)
{
    struct group_member *m = context;
    struct sim_group *g = m->fleet->group;

    TRACE(&m->fleet->world,
          shell_of(m)->process.name,
          "generation %llu, %zu voters, %s",
          (unsigned long long)generation->number,
          generation->voter_count,
          replica_part(m->replica) == REPLICA_VOTES ? "votes" : "retires");
    if (generation->number > g->newest.number) {
        g->counts.changes++;
        g->counts.grown += generation->voter_count > g->newest.voter_count;
        g->counts.shrunk += generation->voter_count < g->newest.voter_count;
        g->counts.replaced += generation->voter_count == g->newest.voter_count;
        g->newest = *generation;
    }
    group_tell_voters(m->fleet, m->at);
}

static void on_send(void *context, uint64_t voter, struct bytes message)
{
    struct group_member *m = context;
    struct fleet *f = m->fleet;
    const unsigned to = group_machine(f, voter);
    struct buffer out = {0};

    if (to == FLEET_COORDINATORS_MAX || m->fellow[to] == NULL || shell_of(m)->dies) {
        return;
    }
    buffer_put(&out, &m->id, sizeof m->id);
    buffer_put(&out, message.data, message.size);
    network_send(&f->network, m->fellow[to], FRAME_RAFT, buffer_bytes(&out));
    buffer_fini(&out);
}

static void on_poll(void *context, const struct world_event *event)
{
    struct fleet *f = context;
    struct group_member *m = member_of(f, (unsigned)event->a);

    if (is_of_this_life(f, event)) {
        m->polling = false;
        (void)group_enter(f, m->at);
        replica_poll(m->replica, group_now(f, m->at));
        group_leave(f, m->at);
    }
}

static void on_wake(void *context)
{
    struct group_member *m = context;

    if (!m->polling) {
        m->polling = true;
        later(m, m->fleet->world.now_us, on_poll, 0);
    }
}

static void on_broken(void *context, const char *why)
{
    struct group_member *m = context;

    world_violate(&m->fleet->world, "raft", "%s: %s", shell_of(m)->process.name, why);
    UNREACHABLE();
}

/* ---- what the process asks of it ---- */

static unsigned rules_off(void)
{
    return mutant(M_SEALEDON)    ? RECONFIGURATION_STOPS
           : mutant(M_UNFOUNDED) ? RECONFIGURATION_DURABLE
           : mutant(M_TERMSANEW) ? RECONFIGURATION_TERMS
                                 : 0;
}

void group_start(struct fleet *f, unsigned at)
{
    struct group_member *m = member_of(f, at);
    const struct voters *founders = &f->group->founders;
    const struct replica_events events = {
        .context = m,
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
        .id = m->id,
        .joining = !m->founder,
        .voter_count = m->founder ? founders->count : 0,
        .seed = prng_u64(&f->world.prng),
        .election_ms = ELECTION_MS,
        .heartbeat_ms = HEARTBEAT_MS,
        .snapshot_entries = 64,
        .trailing_entries = 16,
    };
    struct replica_base base = {
        .store = &m->disk.store,
        .image = mem_new(1, sizeof *base.image),
        .rules_off = rules_off(),
        .broken = on_broken,
    };

    char address[GENERATION_VOTERS_MAX][GROUP_ADDRESS_SIZE];

    for (size_t i = 0; i < config.voter_count; i++) {
        config.voter[i] = founders->id[i];
        group_address(f, (unsigned)i, address[i], sizeof address[i]);
        config.address[i] = address[i];
    }
    state_init(&m->state);
    const enum err made = state_db_open(&m->db, NULL);
    ASSERT(made == ERR_OK);
    m->applied = 0;
    m->format = 0;
    m->polling = false;
    const struct log_sqlite_config folder = {.voter = m->id,
                                             .voters = founders->id,
                                             .voter_count = config.voter_count,
                                             .joining = config.joining};
    const char *wrong = raft_disk_load(&m->disk, &folder, base.image);
    if (wrong != NULL) {
        world_violate(&f->world, "disk", "coordinator %llu: %s", (unsigned long long)m->id, wrong);
    }
    const enum err e = replica_open_over(&m->replica, &config, &events, &base, group_now(f, at));
    ASSERT(e == ERR_OK);
    if (m->disk.memory_disk != NULL) {
        group_watermark_open(m);
    }
}

static void close_state(struct group_member *m)
{
    state_db_close(m->db);
    m->db = NULL;
    state_fini(&m->state);
}

static bool may_be_lost(const struct sim_group *g, const struct group_member *m)
{
    size_t lost = 1;

    for (size_t i = 0; i < FLEET_COORDINATORS_MAX; i++) {
        lost += g->member[i].lost && generation_voter(&g->newest, g->member[i].id) != NULL;
    }
    return generation_voter(&g->newest, m->id) == NULL || lost * 2 < g->newest.voter_count;
}

void group_stop(struct fleet *f, unsigned at)
{
    struct group_member *m = member_of(f, at);

    group_watermark_close(m);
    const uint64_t losses = m->disk.power_losses;
    replica_close(m->replica);
    f->power_losses += m->disk.power_losses - losses;
    m->replica = NULL;
    close_state(m);
    memset(m->fellow, 0, sizeof m->fellow);
    f->coordinator[at].dies = false;
    if (f->raft.leader == (int)at) {
        f->raft.leader = -1;
    }
    if (f->group->wish_count > 0 && f->group->asked == at) {
        group_wish_done(f, ERR_TIMEOUT);
    }
    m->lost =
        !f->healed && may_be_lost(f->group, m) && world_chance(&f->world, f->faults.machine_pm);
    if (m->lost) {
        TRACE(&f->world, shell_of(m)->process.name, "IS LOST");
    }
}

const struct state *group_state(const struct fleet *f, unsigned at)
{
    return &member_of(f, at)->state;
}

uint64_t group_id(const struct fleet *f, unsigned at)
{
    return member_of(f, at)->id;
}

uint64_t group_identity(const struct fleet *f, unsigned at)
{
    return member_of(f, at)->disk.identity;
}

bool group_is_lost(const struct fleet *f, unsigned at)
{
    return member_of(f, at)->lost;
}

void group_tick(struct fleet *f, unsigned at)
{
    if (group_enter(f, at)) {
        replica_poll(member_of(f, at)->replica, group_now(f, at));
        replica_tick(member_of(f, at)->replica, group_now(f, at));
        group_leave(f, at);
    }
}

static void on_refused(void *context, const struct world_event *event)
{
    struct fleet *f = context;

    if (is_of_this_life(f, event)) {
        coordinator_step_from(f,
                              &f->coordinator[event->a],
                              (struct coordinator_event){.type = COORDINATOR_DONE,
                                                         .tag = event->c,
                                                         .error = ERR_NOT_LEADER});
    }
}

void group_propose(struct fleet *f, unsigned at, uint64_t tag, struct bytes command)
{
    struct group_member *m = member_of(f, at);

    if (replica_propose(m->replica, tag, command) != ERR_OK) {
        later(m, f->world.now_us, on_refused, tag);
    }
}

void group_barrier(struct fleet *f, unsigned at, uint64_t tag)
{
    struct group_member *m = member_of(f, at);

    if (replica_barrier(m->replica, tag) != ERR_OK) {
        later(m, f->world.now_us, on_refused, tag);
    }
}

/* As raft/reconfiguration.c puts it in front. */
static uint64_t generation_of(struct bytes message)
{
    struct reader in = {.at = message.data, .left = message.size};

    (void)get_u16(&in); // format and type
    return get_u16(&in);
}

void group_receive(struct fleet *f, unsigned at, struct bytes bytes)
{
    uint64_t from = 0;

    ASSERT(bytes.size > sizeof from);
    memcpy(&from, bytes.data, sizeof from);
    if (group_enter(f, at)) {
        struct replica *replica = member_of(f, at)->replica;
        const struct bytes message = bytes_of(bytes.data + sizeof from, bytes.size - sizeof from);
        const uint64_t mine = replica_generation(replica)->number;
        const uint64_t term = replica_raft(replica)->current_term;

        replica_receive(replica, group_now(f, at), from, message);
        if (generation_of(message) != mine && mine == replica_generation(replica)->number &&
            term != replica_raft(replica)->current_term) {
            world_violate(&f->world,
                          "raft-term",
                          "c%u, of generation %llu, follows a message of generation %llu",
                          at + 1,
                          (unsigned long long)mine,
                          (unsigned long long)generation_of(message));
        }
        group_leave(f, at);
    }
}

/* As coordinator/voters.c does it. */
static void meet(struct group_member *m, const struct group_member *other)
{
    const uint64_t generation = replica_generation(other->replica)->number;
    const bool fellows = replica_part(m->replica) == REPLICA_VOTES &&
                         replica_part(other->replica) == REPLICA_VOTES &&
                         replica_generation(m->replica)->number == generation;
    const enum err e =
        fellows ? replica_meet(
                      m->replica, other->id, other->disk.identity, replica_pristine(other->replica))
                : replica_meet_stranger(m->replica, other->id, other->disk.identity, generation);

    if (e != ERR_OK) {
        world_violate(&m->fleet->world,
                      "raft",
                      "%s refuses coordinator %llu, whose folder is sound",
                      shell_of(m)->process.name,
                      (unsigned long long)other->id);
    }
}

void group_up(struct fleet *f, unsigned at, struct net_end *end)
{
    struct group_member *m = member_of(f, at);
    const struct group_member *other = member_of(f, end->other->number);

    if (end->other->life != end->other_life || other->replica == NULL) {
        return; // it died since it said hello
    }
    m->fellow[other->at] = end;
    meet(m, other);
}

void group_down(struct fleet *f, unsigned at, const struct net_end *end)
{
    struct group_member *m = member_of(f, at);
    const unsigned other = end->other->number;

    if (m->fellow[other] != end) {
        return;
    }
    m->fellow[other] = NULL;
    if (end->other->life == end->other_life && group_enter(f, at)) {
        replica_lost(m->replica, group_now(f, at), member_of(f, other)->id);
        group_leave(f, at);
    }
}

/* ---- the group ---- */

void group_init(struct fleet *f, unsigned founders)
{
    struct sim_group *g = mem_new(1, sizeof *g);
    uint64_t id[GENERATION_VOTERS_MAX];

    f->group = g;
    for (unsigned i = 0; i < FLEET_COORDINATORS_MAX; i++) {
        g->member[i].fleet = f;
        g->member[i].at = i;
        list_init(&g->member[i].disk.queued);
        list_init(&g->member[i].disk.finished);
        list_init(&g->member[i].disk.doubtful);
    }
    for (unsigned i = 0; i < founders; i++) {
        id[i] = i + 1;
    }
    const enum err e = voters_init(&g->founders, id, founders);
    ASSERT(e == ERR_OK);
    g->last_id = founders;
    for (unsigned i = 0; i < founders; i++) {
        g->member[i].id = i + 1;
        g->member[i].founder = true;
        new_disk(&g->member[i]);
        g->newest.voter[g->newest.voter_count++].id = i + 1;
    }
}

void group_fini(struct fleet *f)
{
    struct sim_group *g = f->group;

    if (g == NULL) {
        return;
    }
    for (unsigned i = 0; i < FLEET_COORDINATORS_MAX; i++) {
        struct group_member *m = &g->member[i];

        if (m->replica != NULL) {
            group_watermark_close(m);
            replica_close(m->replica);
            close_state(m);
        }
        raft_disk_fini(&m->disk);
    }
    for (size_t i = 0; i < g->count; i++) {
        mem_free(g->log[i].bytes);
    }
    mem_free(g->log);
    mem_free(g);
    f->group = NULL;
}

void group_heal(struct fleet *f)
{
    for (unsigned i = 0; f->group != NULL && i < FLEET_COORDINATORS_MAX; i++) {
        struct group_member *m = member_of(f, i);

        m->disk.stall_percent = 0;
        if (m->lost) {
            m->lost = false;
            coordinator_start(f, shell_of(m));
        }
    }
}

static const char *member_waits(const struct sim_group *g, const struct group_member *m)
{
    const bool votes = generation_voter(&g->newest, m->id) != NULL;

    if (m->id == 0 || (m->replica == NULL && !votes)) {
        return NULL;
    }
    if (m->replica == NULL) {
        return "is down";
    }
    if (votes && m->applied < g->count) {
        return "does not have all that was committed";
    }
    return generation_used(&g->newest, m->id) &&
                   replica_generation(m->replica)->number != g->newest.number
               ? "does not know who votes now"
               : NULL;
}

const char *group_waits(struct fleet *f)
{
    static char text[WORLD_LINE_MAX];
    const struct sim_group *g = f->group;

    for (unsigned i = 0; g != NULL && i < FLEET_COORDINATORS_MAX; i++) {
        const struct group_member *m = &g->member[i];
        const char *what = member_waits(g, m);

        if (what != NULL) {
            (void)snprintf(text,
                           sizeof text,
                           "coordinator %llu on %s %s",
                           (unsigned long long)m->id,
                           f->coordinator[i].process.name,
                           what);
            return text;
        }
    }
    return NULL;
}

struct group_counts group_counts(const struct fleet *f)
{
    static const struct group_counts none;

    return f->group == NULL ? none : f->group->counts;
}

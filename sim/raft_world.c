/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/raft_world.h"

#include "raft/heap.h"
#include "raft/inside.h"
#include "raft/voters.h"
#include "sim/raft_disk.h"

#include "base/assert.h"
#include "base/mem.h"
#include "base/prng.h"
#include "base/table.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

enum {
    NODES_MAX = 5,
    CLIENT_US = 4 * 1000, /* mean time between commands */
    HEAL_US = 5 * 1000 * 1000,
    QUIET_S_MAX = 600,
    TERMS_MAX = 1 << 16
};

enum event_kind {
    ON_TICK,
    ON_DISK,
    ON_POLL,
    ON_MESSAGE,
    ON_CLIENT,
    ON_NEMESIS,
    ON_RESTART,
    ON_HEAL
};

struct event {
    uint64_t at_us;
    uint64_t number; /* of two at one time, the older goes first */
    enum event_kind kind;
    unsigned node;
    unsigned life; /* of the node; an event of an earlier life is void */
    struct packet *packet;
};

struct packet {
    unsigned from;
    bool lost; /* its sender died with it in its buffers */
    size_t size;
    uint8_t data[];
};

struct node {
    struct world *world;
    unsigned place;
    unsigned life;
    struct replica *replica; /* NULL = down */
    struct raft_disk disk;
    unsigned snapshot_entries;
    unsigned trailing_entries;
    bool polling;     /* an ON_POLL is due */
    uint64_t hash;    /* of the commands of the entry being applied; 0 = none yet */
    uint64_t chain;   /* of everything applied */
    uint64_t applied; /* index */
    uint64_t led_term;
    uint64_t led_since_us;
    uint64_t commit; /* index, when it was last looked at */
};

struct world {
    struct raft_world_options options;
    struct raft_world_result *result;
    struct prng prng;
    struct voters voters;
    uint64_t now_us;
    struct node node[NODES_MAX];
    bool cut[NODES_MAX][NODES_MAX]; /* [from][to] */
    uint64_t link_us[NODES_MAX][NODES_MAX];
    bool ordered;         /* links keep their order */
    bool mute[NODES_MAX]; /* figure 8: its entries reach nobody */
    uint64_t delay_percent;
    uint64_t shot_percent; /* a young leader crashes when its commit index moves */
    bool healing;
    bool quiet;              /* no more commands */
    size_t entries_size_max; /* of one message */
    unsigned election_ms;
    uint64_t fault_max_us; /* how long a voter is down or cut off */

    struct event *heap; /* owned */
    size_t heap_count;
    size_t heap_max;
    uint64_t event_number;

    uint64_t *chain_at; /* owned; by index; 0 = not applied by anybody */
    size_t chain_max;
    uint64_t *index_of; /* owned; by command; 0 = not applied */
    size_t command_max;
    uint64_t command_count;
    uint64_t acked_index; /* highest */
    uint64_t leader_of[TERMS_MAX];
    jmp_buf stop; /* out of a replica that is broken */
    struct node *broken;
};

static void trace(struct world *w, uint64_t value)
{
    w->result->trace = (w->result->trace ^ value) * 1099511628211u;
}

static void violation(struct world *w, const struct node *n, const char *what)
{
    char *first = w->result->first_violation;

    if (w->result->violations++ == 0) {
        (void)snprintf(first,
                       sizeof w->result->first_violation,
                       "t=%.3fs voter %u index %" PRIu64 ": %s",
                       (double)w->now_us / 1e6,
                       n->place + 1,
                       n->applied,
                       what);
    }
    if (w->options.verbose) {
        printf("%10.3f  voter %u  VIOLATION %s\n", (double)w->now_us / 1e6, n->place + 1, what);
    }
}

static void say(const struct world *w, const struct node *n, const char *what)
{
    if (w->options.verbose) {
        printf("%10.3f  voter %u  %s\n", (double)w->now_us / 1e6, n->place + 1, what);
    }
}

/* ---- event heap ---- */

static bool is_before(const struct event *a, const struct event *b)
{
    return a->at_us != b->at_us ? a->at_us < b->at_us : a->number < b->number;
}

static void push(struct world *w, struct event event)
{
    if (w->heap_count == w->heap_max) {
        w->heap_max = w->heap_max == 0 ? 256 : 2 * w->heap_max;
        w->heap = mem_resize(w->heap, w->heap_max * sizeof *w->heap);
    }
    event.number = w->event_number++;
    size_t at = w->heap_count++;
    for (; at > 0 && is_before(&event, &w->heap[(at - 1) / 2]); at = (at - 1) / 2) {
        w->heap[at] = w->heap[(at - 1) / 2];
    }
    w->heap[at] = event;
}

static struct event pop(struct world *w)
{
    const struct event top = w->heap[0];
    const struct event last = w->heap[--w->heap_count];
    size_t at = 0;

    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= w->heap_count) {
            break;
        }
        if (child + 1 < w->heap_count && is_before(&w->heap[child + 1], &w->heap[child])) {
            child++;
        }
        if (!is_before(&w->heap[child], &last)) {
            break;
        }
        w->heap[at] = w->heap[child];
        at = child;
    }
    w->heap[at] = last;
    return top;
}

static void push_for(struct world *w, enum event_kind kind, const struct node *n, uint64_t at_us)
{
    push(w, (struct event){.at_us = at_us, .kind = kind, .node = n->place, .life = n->life});
}

/* ---- what the replicas ask of the world ---- */

static uint64_t disk_now(void *context)
{
    return ((const struct node *)context)->world->now_us;
}

static void disk_schedule(void *context, struct raft_disk *disk, uint64_t at_us)
{
    struct node *n = context;

    (void)disk;
    push_for(n->world, ON_DISK, n, at_us);
}

static void on_apply(void *context, uint64_t index, uint64_t tag, struct bytes command)
{
    struct node *n = context;
    struct world *w = n->world;
    uint64_t id = 0;

    ASSERT(command.size == sizeof id);
    memcpy(&id, command.data, sizeof id);
    if (tag != 0 && tag != id) {
        violation(w, n, "a command was applied under another's tag");
        return;
    }
    if (id >= w->command_max || (w->index_of[id] != 0 && w->index_of[id] != index)) {
        violation(w, n, "a command was applied at two indexes");
        return;
    }
    w->index_of[id] = index;
    n->hash = table_mix(n->hash ^ id);
}

/* Of an entry in libraft's log. Barriers count too: entries are the same when their terms are. */
static uint64_t term_at(const struct node *n, uint64_t index)
{
    const struct raft_log *log = &replica_raft(n->replica)->log;

    ASSERT(index > log->offset);
    return log->entries[(log->front + (index - log->offset - 1)) % log->size].term;
}

static void chain_one(struct node *n, uint64_t index, uint64_t hash)
{
    struct world *w = n->world;

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
        violation(w, n, "two voters applied different histories");
    }
}

static void on_applied(void *context, uint64_t index)
{
    struct node *n = context;
    const uint64_t hash = n->hash;

    if (index <= n->applied) {
        violation(n->world, n, "the applied index went back");
        return;
    }
    n->hash = 0;
    while (n->applied + 1 < index) {
        chain_one(n, n->applied + 1, 0);
    }
    chain_one(n, index, hash);
    trace(n->world, n->chain);
}

static void on_snapshot(void *context, struct buffer *out)
{
    const struct node *n = context;

    buffer_put(out, &n->applied, sizeof n->applied);
    buffer_put(out, &n->chain, sizeof n->chain);
}

static bool on_restore(void *context, uint64_t index, struct bytes snapshot)
{
    struct node *n = context;

    ASSERT(snapshot.size == 16);
    n->world->result->installs += n->applied > 0;
    memcpy(&n->applied, snapshot.data, 8);
    memcpy(&n->chain, snapshot.data + 8, 8);
    n->hash = 0;
    if (n->applied != index || n->world->chain_at[index] != n->chain) {
        violation(n->world, n, "a snapshot of another history");
    }
    return true;
}

static void on_role(void *context, bool leading, uint64_t term)
{
    struct node *n = context;

    (void)term;
    say(n->world, n, leading ? "leads" : "leads no more");
}

static void on_done(void *context, uint64_t tag, enum err result)
{
    struct node *n = context;
    struct world *w = n->world;

    if (result != ERR_OK) {
        return;
    }
    w->result->acked++;
    if (w->index_of[tag] == 0 || w->index_of[tag] > n->applied) {
        violation(w, n, "a command was acknowledged and not applied");
    } else if (w->index_of[tag] > w->acked_index) {
        w->acked_index = w->index_of[tag];
    }
}

/* An AppendEntries with entries: more than head and fixed fields. */
static bool carries_entries(struct bytes message)
{
    return message.data[1] == RAFT_IO_APPEND_ENTRIES && message.size > 4 + 4 * 8 + 4;
}

static void on_send(void *context, uint64_t voter, struct bytes message)
{
    struct node *n = context;
    struct world *w = n->world;
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
    struct packet *p = mem_new(1, sizeof *p + message.size);
    p->from = n->place;
    p->size = message.size;
    memcpy(p->data, message.data, message.size);
    push(
        w,
        (struct event){
            .at_us = at_us, .kind = ON_MESSAGE, .node = to, .life = w->node[to].life, .packet = p});
}

static void on_wake(void *context)
{
    struct node *n = context;

    if (!n->polling) {
        n->polling = true;
        push_for(n->world, ON_POLL, n, n->world->now_us);
    }
}

static void on_broken(void *context, const char *why)
{
    struct node *n = context;

    violation(n->world, n, why);
    n->world->broken = n;
    longjmp(n->world->stop, 1); // NOLINT(cert-err52-cpp): the replica is thrown away whole
}

/* ---- lives ---- */

static uint64_t tick_us(const struct world *w)
{
    return w->election_ms * UINT64_C(50); // twice a heartbeat
}

static void node_start(struct node *n)
{
    struct world *w = n->world;
    const struct replica_events events = {
        .context = n,
        .apply = on_apply,
        .applied = on_applied,
        .snapshot = on_snapshot,
        .restore = on_restore,
        .role = on_role,
        .done = on_done,
        .send = on_send,
        .wake = on_wake,
    };
    struct replica_config config = {
        .id = n->place + 1,
        .voter_count = w->options.voters,
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

    for (unsigned i = 0; i < w->options.voters; i++) {
        config.voter[i] = i + 1;
    }
    raft_disk_load(&n->disk, base.image);
    n->chain = 0;
    n->applied = 0;
    n->hash = 0;
    n->polling = false;
    n->led_term = 0;
    n->commit = 0;
    const enum err e = replica_open_over(&n->replica, &config, &events, &base, w->now_us);
    ASSERT(e == ERR_OK);
    push_for(w, ON_TICK, n, w->now_us + prng_between(&w->prng, 1, tick_us(w)));
    say(w, n, "starts");
}

static void count_cuts(struct node *n)
{
    for (unsigned i = 0; i < 4; i++) {
        n->world->result->cuts[i] += replica_guard(n->replica)->cut[i];
    }
}

static void node_crash(struct node *n)
{
    if (n->replica == NULL) {
        return;
    }
    say(n->world, n, "crashes");
    count_cuts(n);
    (void)heap_enter(NULL); // it may have been left in the middle
    replica_close(n->replica);
    n->replica = NULL;
    n->life++;
    n->world->result->crashes++;
}

static bool leads(const struct node *n)
{
    return n->replica != NULL && raft_state(replica_raft(n->replica)) == RAFT_LEADER;
}

static void watch_elections(struct node *n)
{
    struct world *w = n->world;

    if (!leads(n)) {
        return;
    }
    const uint64_t term = replica_raft(n->replica)->current_term;
    if (term == n->led_term || term >= TERMS_MAX) {
        return;
    }
    n->led_term = term;
    n->led_since_us = w->now_us;
    w->result->elections++;
    if (w->leader_of[term] != 0 && w->leader_of[term] != n->place + 1) {
        violation(w, n, "two leaders in one term");
    }
    w->leader_of[term] = n->place + 1;
    trace(w, term * 8 + n->place);
}

static void client_proposes(struct node *n)
{
    struct world *w = n->world;
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

/* ---- faults ---- */

static struct node *pick_victim(struct world *w)
{
    struct node *victim = &w->node[prng_between(&w->prng, 0, w->options.voters - 1)];

    for (unsigned i = 0; i < w->options.voters && prng_chance(&w->prng, 80); i++) {
        if (leads(&w->node[i])) {
            victim = &w->node[i]; // leaders hurt most
        }
    }
    return victim;
}

static void nemesis_crashes(struct world *w)
{
    struct node *n = pick_victim(w);

    if (n->replica != NULL) {
        node_crash(n);
        push_for(w, ON_RESTART, n, w->now_us + 10000 + prng_between(&w->prng, 0, w->fault_max_us));
    }
}

static void nemesis_cuts(struct world *w)
{
    const struct node *n = pick_victim(w);
    const uint64_t mode = prng_between(&w->prng, 0, 2); // both ways, in, out

    for (unsigned i = 0; i < w->options.voters; i++) {
        if (i != n->place) {
            w->cut[n->place][i] = w->cut[n->place][i] || mode != 1;
            w->cut[i][n->place] = w->cut[i][n->place] || mode != 2;
        }
    }
    say(w, n, "is cut off");
    w->result->partitions++;
    push_for(w, ON_HEAL, n, w->now_us + 10000 + prng_between(&w->prng, 0, w->fault_max_us));
}

static void nemesis_transfers(struct world *w)
{
    for (unsigned i = 0; i < w->options.voters; i++) {
        if (leads(&w->node[i])) {
            replica_transfer(w->node[i].replica);
        }
    }
}

static void nemesis(struct world *w)
{
    if (prng_chance(&w->prng, 50)) {
        nemesis_crashes(w);
    }
    if (prng_chance(&w->prng, 50)) {
        nemesis_cuts(w);
    }
    if (prng_chance(&w->prng, 20)) {
        nemesis_transfers(w);
    }
    push_for(
        w, ON_NEMESIS, &w->node[0], w->now_us + 50000 + prng_between(&w->prng, 0, w->fault_max_us));
}

/* A leader that has just committed, perhaps what it must not, dies before it can tell anybody:
 * what it had sent is lost with it. */
static void maybe_shoot(struct world *w, struct node *n)
{
    enum { YOUNG_US = 400 * 1000 };
    const uint64_t commit = replica_raft(n->replica)->commit_index;
    const bool moved = commit > n->commit;

    n->commit = commit;
    if (!moved || w->healing || w->now_us - n->led_since_us > YOUNG_US ||
        !prng_chance(&w->prng, w->shot_percent)) {
        return;
    }
    for (size_t i = 0; i < w->heap_count; i++) {
        struct packet *p = w->heap[i].packet;
        if (p != NULL && p->from == n->place) {
            p->lost = true;
        }
    }
    node_crash(n);
    push_for(w, ON_RESTART, n, w->now_us + 10000 + prng_between(&w->prng, 0, w->fault_max_us));
}

/* ---- the loop ---- */

static void do_node_event(struct world *w, struct node *n, const struct event *e)
{
    switch (e->kind) {
    case ON_TICK:
        push_for(w, ON_TICK, n, w->now_us + tick_us(w));
        replica_tick(n->replica, w->now_us);
        break;
    case ON_DISK:
        raft_disk_finish(&n->disk);
        replica_poll(n->replica, w->now_us);
        break;
    case ON_POLL:
        n->polling = false;
        replica_poll(n->replica, w->now_us);
        break;
    case ON_MESSAGE:
        ASSERT(e->packet != NULL);
        replica_receive(
            n->replica, w->now_us, e->packet->from + 1, bytes_of(e->packet->data, e->packet->size));
        break;
    case ON_CLIENT:
    case ON_NEMESIS:
    case ON_RESTART:
    case ON_HEAL:
        UNREACHABLE();
    }
    watch_elections(n);
    if (leads(n)) {
        maybe_shoot(w, n);
    }
}

static void do_world_event(struct world *w, struct node *n, const struct event *e)
{
    if (e->kind == ON_CLIENT && !w->quiet) {
        for (unsigned i = 0; i < w->options.voters; i++) {
            if (leads(&w->node[i])) {
                client_proposes(&w->node[i]);
            }
        }
        push_for(w, ON_CLIENT, n, w->now_us + prng_between(&w->prng, 1, UINT64_C(2) * CLIENT_US));
    } else if (e->kind == ON_NEMESIS && !w->healing) {
        nemesis(w);
    } else if (e->kind == ON_HEAL) {
        memset(w->cut, 0, sizeof w->cut);
    } else if (e->kind == ON_RESTART && n->replica == NULL && n->life == e->life) {
        node_start(n);
    }
}

/* False: the replica found itself broken and is to be thrown away. */
static bool survives(struct world *w, struct node *n, const struct event *e)
{
    if (setjmp(w->stop) != 0) { // NOLINT(cert-err52-cpp): see on_broken()
        return false;
    }
    do_node_event(w, n, e);
    return true;
}

static void step(struct world *w)
{
    const struct event e = pop(w);
    struct node *n = &w->node[e.node];
    struct packet *p = e.packet;

    w->now_us = e.at_us;
    w->result->events++;
    if (e.kind > ON_MESSAGE) {
        do_world_event(w, n, &e);
    } else if (n->replica != NULL && n->life == e.life &&
               !(p != NULL && (p->lost || w->cut[p->from][n->place]))) {
        if (p != NULL) {
            trace(w, p->size * 8 + p->from);
        }
        if (!survives(w, n, &e)) {
            node_crash(w->broken);
            push_for(w, ON_RESTART, w->broken, w->now_us + 200000);
        }
    }
    mem_free(p);
}

static void run_until(struct world *w, uint64_t at_us)
{
    while (w->heap_count > 0 && w->heap[0].at_us <= at_us) {
        step(w);
    }
    w->now_us = at_us;
}

/* ---- directed plays ---- */

enum { S1, S2, S3 };

/* Hold the others' election timers back until `place` leads. */
static void make_leader(struct world *w, unsigned place)
{
    for (unsigned ms = 0; ms < 5000 && !leads(&w->node[place]); ms++) {
        for (unsigned i = 0; i < w->options.voters; i++) {
            struct node *n = &w->node[i];
            if (i != place && n->replica != NULL &&
                raft_state(replica_raft(n->replica)) == RAFT_FOLLOWER) {
                struct raft *raft = replica_raft(n->replica);
                raft->election_timer_start = w->now_us / 1000;
                raft->follower_state.current_leader.id = 0;
            }
        }
        run_until(w, w->now_us + 1000);
    }
    if (!leads(&w->node[place])) {
        violation(w, &w->node[place], "the scenario did not get the leader it needs");
    }
}

static void wait_ms(struct world *w, unsigned ms)
{
    run_until(w, w->now_us + ms * UINT64_C(1000));
}

static void propose_and_crash(struct world *w, unsigned place)
{
    client_proposes(&w->node[place]);
    wait_ms(w, 100);
    node_crash(&w->node[place]);
}

static void set_disk(struct node *n, uint64_t write_us)
{
    n->disk.write_min_us = write_us;
    n->disk.write_max_us = write_us;
}

static uint64_t last_on_disk(const struct node *n)
{
    return n->disk.first + n->disk.entry_count - 1;
}

static void play_figure_8(struct world *w)
{
    // Everybody equal, then X on S1 alone, which crashes.
    make_leader(w, S1);
    wait_ms(w, 500);
    w->mute[S1] = true;
    propose_and_crash(w, S1);
    const uint64_t x_index = last_on_disk(&w->node[S1]);
    // S3, elected by S2, has only its barrier, alone, and crashes.
    w->mute[S3] = true;
    make_leader(w, S3);
    propose_and_crash(w, S3);
    // S1 comes back, is elected by S2 and replicates X to it, while its own new entry is still on
    // its way to its slow disk: X is on a majority, and of an old term.
    w->mute[S1] = false;
    node_start(&w->node[S1]);
    set_disk(&w->node[S1], 300000);
    make_leader(w, S1);
    while (last_on_disk(&w->node[S2]) < x_index && leads(&w->node[S1])) {
        run_until(w, w->now_us + 100);
    }
    w->mute[S1] = true;
    wait_ms(w, 100);
    node_crash(&w->node[S1]);
    // S3 comes back with an entry of a higher term, is elected by S2 and overwrites X there.
    w->mute[S3] = false;
    w->mute[S1] = false;
    node_start(&w->node[S3]);
    make_leader(w, S3);
    wait_ms(w, 500);
    client_proposes(&w->node[S3]);
    wait_ms(w, 500);
    node_start(&w->node[S1]);
    wait_ms(w, 3000);
}

static void play_foreign_tail(struct world *w)
{
    // S1 has a tail that nobody else has; it crashes and is back at once.
    make_leader(w, S1);
    wait_ms(w, 500);
    w->mute[S1] = true;
    propose_and_crash(w, S1);
    node_start(&w->node[S1]);
    // S2, elected by S3, puts its own entry at the tail's index, on its own fast disk alone; S1
    // answers its empty heartbeat with the index of its tail. Two of three, it seems.
    w->mute[S2] = true;
    set_disk(&w->node[S2], 100);
    make_leader(w, S2);
    wait_ms(w, 150);
    node_crash(&w->node[S2]);
    // S1's log is the longer one now.
    w->mute[S1] = false;
    make_leader(w, S1);
    wait_ms(w, 500);
    w->mute[S2] = false;
    node_start(&w->node[S2]);
    wait_ms(w, 3000);
}

/* ---- one seed ---- */

/* Voters may differ in this: one that never takes a snapshot sends its whole log to one that has
 * nothing but a snapshot. */
static void draw_snapshots(struct world *w, struct node *n)
{
    n->snapshot_entries = 1u << prng_between(&w->prng, 3, 9);
    n->trailing_entries = (unsigned)prng_between(&w->prng, 1, n->snapshot_entries);
    if (w->options.scenario != RANDOM_FAULTS || prng_chance(&w->prng, 33)) {
        n->snapshot_entries = 1000000;
    }
}

static void world_init(struct world *w, const struct raft_world_options *options,
                       struct raft_world_result *result)
{
    uint64_t ids[NODES_MAX];

    w->options = *options;
    w->result = result;
    w->prng.state = options->seed * 0x2545f4914f6cdd1du + 1;
    w->now_us = 1000000;
    result->trace = 14695981039346656037u;
    w->ordered = prng_chance(&w->prng, 50);
    w->delay_percent = prng_between(&w->prng, 0, 2);
    w->shot_percent = prng_between(&w->prng, 0, 3) * 15;
    // Half of the seeds with the product's limits, half with those that interleave most: one entry
    // a message, many leaders.
    w->entries_size_max = prng_chance(&w->prng, 50) ? 0 : 1;
    w->election_ms = prng_chance(&w->prng, 50) ? 500 : 160;
    w->fault_max_us = 1000 * (prng_chance(&w->prng, 60) ? prng_between(&w->prng, 30, 400)
                                                        : prng_between(&w->prng, 400, 2000));
    if (options->scenario != RANDOM_FAULTS) {
        w->ordered = true;
        w->delay_percent = 0;
        w->shot_percent = 0;
        w->options.loss_ppm = 0;
        w->entries_size_max = 1;
        w->election_ms = 500;
    }
    for (unsigned i = 0; i < options->voters; i++) {
        ids[i] = i + 1;
    }
    const enum err e = voters_init(&w->voters, ids, options->voters);
    ASSERT(e == ERR_OK);
    for (unsigned i = 0; i < options->voters; i++) {
        struct node *n = &w->node[i];
        n->world = w;
        n->place = i;
        n->disk.prng = &w->prng;
        n->disk.write_min_us = options->disk_min_ms * UINT64_C(1000);
        n->disk.write_max_us = options->disk_max_ms * UINT64_C(1000);
        if (options->scenario == RANDOM_FAULTS && prng_chance(&w->prng, 15)) {
            set_disk(n, 100); // a fast one among slow ones
        }
        n->disk.stall_percent =
            options->scenario != RANDOM_FAULTS ? 0 : prng_between(&w->prng, 0, 5);
        n->disk.stall_us = 400000;
        n->disk.now = disk_now;
        n->disk.schedule = disk_schedule;
        n->disk.context = n;
        draw_snapshots(w, n);
        raft_disk_init(&n->disk, 1000 + i, voters_configuration(&w->voters));
        node_start(n);
    }
    for (unsigned i = 0; i < options->voters; i++) {
        for (unsigned k = 0; k < options->voters; k++) {
            if (i != k && replica_meet(w->node[i].replica, k + 1, 1000 + k, true) != ERR_OK) {
                UNREACHABLE();
            }
        }
    }
}

static bool all_have_what_was_acked(const struct world *w)
{
    for (unsigned i = 0; i < w->options.voters; i++) {
        if (w->node[i].applied < w->acked_index) {
            return false;
        }
    }
    return true;
}

static void heal(struct world *w)
{
    w->healing = true;
    w->delay_percent = 0;
    memset(w->cut, 0, sizeof w->cut);
    for (unsigned i = 0; i < w->options.voters; i++) {
        w->node[i].disk.stall_percent = 0;
        if (w->node[i].replica == NULL) {
            node_start(&w->node[i]);
        }
    }
    run_until(w, w->now_us + HEAL_US);
    w->quiet = true;
    // At one entry a message, a voter far behind takes its time.
    for (unsigned s = 0; s < QUIET_S_MAX && (s < 2 || !all_have_what_was_acked(w)); s++) {
        run_until(w, w->now_us + 1000000);
    }
}

static void check_end(struct world *w)
{
    unsigned leaders = 0;

    for (unsigned i = 0; i < w->options.voters; i++) {
        struct node *n = &w->node[i];
        leaders += leads(n);
        if (n->applied < w->acked_index) {
            violation(w, n, "an acknowledged command is missing after all healed");
        }
        if (n->disk.holes > 0) {
            violation(w, n, "an append left a hole on the disk");
        }
    }
    if (leaders != 1) {
        violation(w, &w->node[0], "no leader, or two, after all healed");
    }
}

static void world_fini(struct world *w)
{
    for (unsigned i = 0; i < w->options.voters; i++) {
        struct node *n = &w->node[i];
        if (n->replica != NULL) {
            count_cuts(n);
            replica_close(n->replica);
        }
        raft_disk_fini(&n->disk);
    }
    while (w->heap_count > 0) {
        mem_free(w->heap[--w->heap_count].packet);
    }
    mem_free(w->heap);
    mem_free(w->chain_at);
    mem_free(w->index_of);
}

void raft_world_run(const struct raft_world_options *options, struct raft_world_result *result)
{
    struct world *w = mem_new(1, sizeof *w);

    *result = (struct raft_world_result){0};
    world_init(w, options, result);
    if (options->scenario == FIGURE_8) {
        play_figure_8(w);
    } else if (options->scenario == FOREIGN_TAIL) {
        play_foreign_tail(w);
    } else {
        push_for(w, ON_CLIENT, &w->node[0], w->now_us);
        push_for(w, ON_NEMESIS, &w->node[0], w->now_us + 2000000);
        run_until(w, w->now_us + options->seconds * 1000000);
        heal(w);
        check_end(w);
    }
    result->virtual_us = w->now_us - 1000000;
    world_fini(w);
    mem_free(w);
}

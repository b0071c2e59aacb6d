/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/coordinator_uv.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/table.h"
#include "cli/inject.h"
#include "cli/witness.h"
#include "ring/hash.h"
#include "storage/state_sqlite.h"
#include "wire/control.h"
#include "wire/link.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <uv.h>

enum { TICK_MS = 10 };

/* One link that said hello. Known to the machine by its id, which is never used again. */
struct peer {
    struct table_link by_id;
    uint64_t id;
    struct link *link;
    uint64_t voter; /* 0 = no coordinator */
};

/* A propose or barrier that was refused at once: told after the step that asked for it. */
struct refusal {
    uint64_t tag;
    enum err error;
};

struct daemon {
    const struct coordinator_options *options;
    uv_loop_t loop;
    uv_async_t wake;
    uv_timer_t tick;
    uv_prepare_t before_sleep;
    uv_signal_t on_term;
    uv_signal_t on_int;
    struct links *links;
    struct link *dialled[REPLICA_VOTERS_MAX]; /* by position in options->voter; NULL = me */
    struct replica *replica;
    struct state state;
    struct state_db *db;
    struct witness *witness;
    struct coordinator *machine;
    struct table peers;
    uint64_t last_peer;
    bool leading;
    bool stopping;
    int exit_code;
    struct refusal *refused; /* owned */
    size_t refused_count;
    size_t refused_cap;
};

/* ---- the machine: events in, effects out ---- */

static struct peer *peer_find(const struct daemon *d, uint64_t id)
{
    struct table_link *found = table_first(&d->peers, table_mix(id));

    return found == NULL ? NULL : CONTAINER_OF(found, struct peer, by_id);
}

static void refuse_later(struct daemon *d, uint64_t tag, enum err error)
{
    if (d->refused_count == d->refused_cap) {
        d->refused_cap = d->refused_cap == 0 ? 16 : d->refused_cap * 2;
        d->refused = mem_resize(d->refused, d->refused_cap * sizeof *d->refused);
    }
    d->refused[d->refused_count++] = (struct refusal){tag, error};
}

static bool is_commit(struct bytes packed)
{
    Rh__Command *command = command_get(packed);
    const bool commit = command != NULL && command->body_case == RH__COMMAND__BODY_COMMIT;

    command_free(command);
    return commit;
}

static void propose(struct daemon *d, uint64_t tag, struct bytes command)
{
    const bool commit = is_commit(command);

    if (commit) {
        inject_point("commit-proposing");
    }
    const enum err error = replica_propose(d->replica, tag, command);
    if (error != ERR_OK) {
        refuse_later(d, tag, error);
    } else if (commit) {
        inject_point("commit-proposed");
    }
}

static void send_to(struct daemon *d, uint64_t peer, struct bytes message)
{
    const struct peer *p = peer_find(d, peer);

    if (p == NULL) {
        return; // It has just gone; whoever it was asks again.
    }
    const enum err error = link_send(p->link, FRAME_CONTROL, message);
    if (error != ERR_OK) {
        log_warn("coordinator",
                 "send_failed",
                 "peer=%s why=%s",
                 link_peer(p->link)->name,
                 err_name(error));
        return;
    }
    inject_sent(message);
}

static void run(struct daemon *d, struct coordinator_event *event)
{
    struct coordinator_effects effects = {0};

    event->now_us = clock_boottime_us();
    event->wall_us = clock_wall_us();
    coordinator_step(d->machine, event, &effects);
    for (size_t i = 0; i < effects.count; i++) {
        const struct coordinator_effect *e = &effects.item[i];
        const struct bytes bytes = {effects.bytes.data + e->at, e->size};

        switch (e->type) {
        case COORDINATOR_PROPOSE:
            propose(d, e->tag, bytes);
            break;
        case COORDINATOR_BARRIER: {
            const enum err error = replica_barrier(d->replica, e->tag);

            if (error != ERR_OK) {
                refuse_later(d, e->tag, error);
            }
            break;
        }
        case COORDINATOR_SEND:
            send_to(d, e->peer, bytes);
            break;
        }
    }
    coordinator_effects_fini(&effects);
}

/* Each refusal may cause another request; the machine backs off, so this ends. */
static void tell_refusals(struct daemon *d)
{
    const size_t count = d->refused_count;

    for (size_t i = 0; i < count; i++) {
        struct coordinator_event event = {
            .type = COORDINATOR_DONE, .tag = d->refused[i].tag, .error = d->refused[i].error};

        run(d, &event);
    }
    memmove(d->refused, d->refused + count, (d->refused_count - count) * sizeof *d->refused);
    d->refused_count -= count;
}

/* ---- the replica ---- */

static void inject_applied(const struct daemon *d, const Rh__Command *command,
                           const struct state_result *result)
{
    if (!d->leading || !result->accepted) {
        return;
    }
    if (command->body_case == RH__COMMAND__BODY_BEGIN) {
        inject_point("begin-applied");
    } else if (command->body_case == RH__COMMAND__BODY_COMMIT) {
        inject_point("commit-applied");
    }
}

static void on_apply(void *context, uint64_t index, struct bytes bytes)
{
    struct daemon *d = context;
    struct state_result result = {0};
    Rh__Command *command = command_get(bytes);

    if (command == NULL) {
        log_error("coordinator",
                  "bad_command",
                  "index=%" PRIu64 " is this log of a newer version?",
                  index);
        exit(70);
    }
    state_apply(&d->state, command, &result);
    state_db_apply(d->db, &d->state, command, &result);
    inject_applied(d, command, &result);
    struct coordinator_event event = {
        .type = COORDINATOR_APPLIED, .command = command, .result = &result};
    run(d, &event);
    state_result_fini(&result);
    command_free(command);
}

static void on_applied(void *context, uint64_t index)
{
    struct daemon *d = context;

    state_db_commit(d->db, index);
    witness_note(d->witness, d->state.number, index);
}

static void on_snapshot(void *context, struct buffer *out)
{
    struct daemon *d = context;

    state_db_snapshot(d->db, out);
}

static bool on_restore(void *context, uint64_t index, struct bytes snapshot)
{
    struct daemon *d = context;
    const bool restored = state_db_restore(d->db, snapshot, &d->state);

    log_info("coordinator",
             "snapshot_restored",
             "index=%" PRIu64 " bytes=%zu ok=%d version=%" PRIu64,
             index,
             snapshot.size,
             restored,
             d->state.view.ring.version);
    return restored;
}

static void on_role(void *context, bool leading, uint64_t term)
{
    struct daemon *d = context;
    struct replica_status status;
    struct coordinator_event event = {.type = leading ? COORDINATOR_LEAD : COORDINATOR_FOLLOW,
                                      .term = term};

    replica_status(d->replica, &status);
    event.leader = status.leader;
    if (leading && !witness_agrees(d->witness, d->state.number)) {
        log_error("coordinator",
                  "went_back",
                  "number=%" PRIu64 " witness=%" PRIu64
                  " the log lost what this folder had seen: restore it, do not serve",
                  d->state.number,
                  witness_number(d->witness));
        exit(1);
    }
    d->leading = leading;
    log_info("coordinator", leading ? "leading" : "following", "term=%" PRIu64, term);
    run(d, &event);
}

static void on_done(void *context, uint64_t tag, enum err error)
{
    struct daemon *d = context;
    struct coordinator_event event = {.type = COORDINATOR_DONE, .tag = tag, .error = error};

    run(d, &event);
}

/* Of the two links of a pair of coordinators either will do; mine is the first choice. */
static struct link *link_to_voter(const struct daemon *d, uint64_t voter)
{
    for (size_t i = 0; i < d->options->voter_count; i++) {
        if (d->options->voter[i] == voter && d->dialled[i] != NULL && link_is_up(d->dialled[i])) {
            return d->dialled[i];
        }
    }
    struct table_walk at = {0};
    for (struct table_link *l = table_walk(&d->peers, &at); l != NULL;
         l = table_walk(&d->peers, &at)) {
        const struct peer *p = CONTAINER_OF(l, struct peer, by_id);

        if (p->voter == voter) {
            return p->link;
        }
    }
    return NULL;
}

static void on_raft_send(void *context, uint64_t voter, struct bytes message)
{
    struct daemon *d = context;
    struct link *link = link_to_voter(d, voter);

    if (link != NULL && link_send(link, FRAME_RAFT, message) != ERR_OK) {
        log_debug("coordinator", "raft_dropped", "voter=%" PRIu64, voter);
    }
}

static void on_wake(void *context)
{
    struct daemon *d = context;

    (void)uv_async_send(&d->wake);
}

/* ---- links ---- */

/* Coordinators must be told the same list: one that counts other voters could elect on its own. */
static uint64_t voters_digest(const struct coordinator_options *o)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < o->voter_count; i++) {
        const struct ring_key key = {o->voter[i], o->voter_count};

        sum += ring_position(key, bytes_of(o->address[i], strlen(o->address[i])));
    }
    return o->voter_count == 1 ? 0 : sum;
}

static uint64_t voter_named(const struct daemon *d, const char *name)
{
    for (size_t i = 0; i < d->options->voter_count; i++) {
        char text[24];

        (void)snprintf(text, sizeof text, "%" PRIu64, d->options->voter[i]);
        if (strcmp(text, name) == 0) {
            return d->options->voter[i];
        }
    }
    return 0;
}

static const char *on_hello(void *context, const struct hello *peer)
{
    struct daemon *d = context;

    if (peer->role != ROLE_COORDINATOR) {
        return NULL;
    }
    const uint64_t voter = voter_named(d, peer->name);
    if (voter == 0 || peer->voters != voters_digest(d->options)) {
        return "the coordinators' --peers lists disagree";
    }
    if (voter == d->options->id) {
        return peer->identity == replica_identity(d->replica) ? "this is me"
                                                              : "another coordinator has my --id";
    }
    if (replica_meet(d->replica, voter, peer->identity, peer->pristine) != ERR_OK) {
        return "this voter's data folder was wiped or replaced: it could vote twice; see "
               "docs/raft.md, 'A voter that lost its folder'";
    }
    return NULL;
}

static void on_up(void *context, struct link *link)
{
    struct daemon *d = context;
    const struct hello *hello = link_peer(link);
    struct peer *p = mem_new(1, sizeof *p);

    p->id = ++d->last_peer;
    p->link = link;
    p->voter = hello->role == ROLE_COORDINATOR ? voter_named(d, hello->name) : 0;
    table_put(&d->peers, &p->by_id, table_mix(p->id));
    link_set_user(link, p);
    struct coordinator_event event = {
        .type = COORDINATOR_PEER_UP,
        .peer = p->id,
        .role = (int)hello->role,
        .name = hello->name,
        .incarnation = hello->incarnation,
        .identity = hello->identity,
    };
    run(d, &event);
}

static void on_down(void *context, struct link *link, const char *reason)
{
    struct daemon *d = context;
    struct peer *p = link_user(link);

    (void)reason;
    if (p == NULL) {
        return;
    }
    struct coordinator_event event = {.type = COORDINATOR_PEER_DOWN, .peer = p->id};
    table_remove(&d->peers, &p->by_id);
    link_set_user(link, NULL);
    run(d, &event);
    mem_free(p);
}

static void on_control(struct daemon *d, struct link *link, const struct frame *frame)
{
    const struct peer *p = link_user(link);
    Rh__Control *message = control_get(frame->body);

    if (message == NULL || p == NULL) {
        log_warn("coordinator", "bad_message", "peer=%s", link_peer(link)->name);
        control_free(message);
        link_drop(link, "it sent a control message that does not decode");
        return;
    }
    if (message->body_case == RH__CONTROL__BODY_PREPARED && d->leading) {
        inject_point("vote-received");
    }
    struct coordinator_event event = {
        .type = COORDINATOR_MESSAGE, .peer = p->id, .message = message};
    run(d, &event);
    control_free(message);
}

static void on_frame(void *context, struct link *link, const struct frame *frame)
{
    struct daemon *d = context;
    const struct peer *p = link_user(link);

    if (frame->type == FRAME_CONTROL) {
        on_control(d, link, frame);
    } else if (frame->type == FRAME_RAFT && p != NULL && p->voter != 0) {
        replica_receive(d->replica, clock_boottime_us(), p->voter, frame->body);
    } else {
        link_drop(link, "it sent a frame that a coordinator does not take");
    }
}

/* ---- the loop ---- */

static void on_async(uv_async_t *handle)
{
    struct daemon *d = handle->data;
    const uint64_t now_us = clock_boottime_us();

    links_poll(d->links, now_us);
    replica_poll(d->replica, now_us);
}

static void on_tick(uv_timer_t *handle)
{
    struct daemon *d = handle->data;
    const uint64_t now_us = clock_boottime_us();
    struct coordinator_event event = {.type = COORDINATOR_TICK};

    inject_turn();
    links_poll(d->links, now_us);
    replica_poll(d->replica, now_us);
    replica_tick(d->replica, now_us);
    run(d, &event);
}

static void on_prepare(uv_prepare_t *handle)
{
    struct daemon *d = handle->data;

    tell_refusals(d);
    links_flush(d->links);
}

static void on_signal(uv_signal_t *handle, int number)
{
    struct daemon *d = handle->data;

    log_info("coordinator", "stopping", "signal=%d leading=%d", number, d->leading);
    if (d->leading && d->options->voter_count > 1 && !d->stopping) {
        replica_transfer(d->replica); // Others need not wait for an election time-out.
        d->stopping = true;
    }
    uv_stop(&d->loop);
}

static void start_loop(struct daemon *d)
{
    (void)uv_loop_init(&d->loop);
    d->wake.data = d->tick.data = d->before_sleep.data = d;
    d->on_term.data = d->on_int.data = d;
    (void)uv_async_init(&d->loop, &d->wake, on_async);
    (void)uv_timer_init(&d->loop, &d->tick);
    (void)uv_prepare_init(&d->loop, &d->before_sleep);
    (void)uv_signal_init(&d->loop, &d->on_term);
    (void)uv_signal_init(&d->loop, &d->on_int);
    (void)uv_timer_start(&d->tick, on_tick, TICK_MS, TICK_MS);
    (void)uv_prepare_start(&d->before_sleep, on_prepare);
    (void)uv_signal_start(&d->on_term, on_signal, SIGTERM);
    (void)uv_signal_start(&d->on_int, on_signal, SIGINT);
}

/* ---- start ---- */

static bool open_replica(struct daemon *d)
{
    const struct coordinator_options *o = d->options;
    struct replica_config config = {
        .id = o->id,
        .voter_count = o->voter_count,
        .directory = o->data,
        .cluster = o->cluster,
        .seed = random_u64(),
        .election_ms = o->election_ms,
        .heartbeat_ms = o->heartbeat_ms,
        .snapshot_entries = o->snapshot_entries,
        .trailing_entries = o->snapshot_entries / 4,
        .readmit = o->readmit,
    };
    const struct replica_events events = {
        .context = d,
        .apply = on_apply,
        .applied = on_applied,
        .snapshot = on_snapshot,
        .restore = on_restore,
        .role = on_role,
        .done = on_done,
        .send = on_raft_send,
        .wake = on_wake,
    };
    memcpy(config.voter, o->voter, sizeof config.voter);
    const enum err error = replica_open(&d->replica, &config, &events, clock_boottime_us());
    if (error != ERR_OK) {
        (void)fprintf(stderr,
                      "ringhold coordinator: can't use the folder %s: %s\n",
                      o->data,
                      err_text(error));
        return false;
    }
    return true;
}

static bool open_storage(struct daemon *d)
{
    const struct coordinator_options *o = d->options;
    char path[4200];

    (void)snprintf(path, sizeof path, "%s/state.db", o->data);
    state_init(&d->state);
    if (state_db_open(&d->db, path) != ERR_OK) {
        (void)fprintf(stderr, "ringhold coordinator: can't write %s\n", path);
        return false;
    }
    if (!open_replica(d)) {
        return false;
    }
    struct replica_status status;
    replica_status(d->replica, &status);
    if (witness_open(&d->witness, o->data) != ERR_OK) {
        return false; // It said why.
    }
    if (witness_index(d->witness) > status.last_index) {
        (void)fprintf(stderr,
                      "ringhold coordinator: %s/raft.db went back: its log ends at %" PRIu64
                      ", but this folder had applied %" PRIu64
                      "; put the newer raft.db back (docs/raft.md)\n",
                      o->data,
                      status.last_index,
                      witness_index(d->witness));
        return false;
    }
    return true;
}

static void make_machine(struct daemon *d)
{
    struct coordinator_config config = d->options->machine;

    config.id = d->options->id;
    (void)snprintf(config.cluster, sizeof config.cluster, "%s", d->options->cluster);
    config.cluster_id = random_u64();
    random_fill(&config.key, sizeof config.key);
    d->machine = coordinator_new(&config, &d->state);
}

static bool open_links(struct daemon *d)
{
    const struct coordinator_options *o = d->options;
    struct links_config config = links_config_default();
    const struct link_events events = {
        .context = d,
        .hello = on_hello,
        .up = on_up,
        .down = on_down,
        .frame = on_frame,
        .wake = on_wake,
    };
    char bound[VIEW_ADDRESS_MAX + 1];

    config.self.role = ROLE_COORDINATOR;
    config.self.identity = replica_identity(d->replica);
    config.self.pristine = replica_pristine(d->replica);
    config.self.voters = voters_digest(o);
    (void)snprintf(config.self.cluster, sizeof config.self.cluster, "%s", o->cluster);
    (void)snprintf(config.self.name, sizeof config.self.name, "%u", o->id);
    (void)snprintf(config.self.address, sizeof config.self.address, "%s", o->listen);
    if (links_open(&d->links, &config, &events) != ERR_OK) {
        (void)fprintf(stderr, "ringhold coordinator: can't open links\n");
        return false;
    }
    const enum err error = links_listen(d->links, o->listen, bound, sizeof bound);
    if (error != ERR_OK) {
        (void)fprintf(stderr,
                      "ringhold coordinator: can't listen on %s: %s\n",
                      o->listen,
                      error == ERR_CONFLICT ? "the port is in use" : err_text(error));
        return false;
    }
    for (size_t i = 0; i < o->voter_count; i++) {
        if (o->voter[i] != o->id) {
            d->dialled[i] = links_dial(d->links, o->address[i]);
        }
    }
    (void)printf("ready coordinator=%u address=%s\n", o->id, bound);
    (void)fflush(stdout);
    return true;
}

static int adopt(const struct coordinator_options *o)
{
    const enum err error = replica_adopt(o->data, o->cluster, o->id, o->voter, o->voter_count);

    if (error != ERR_OK) {
        (void)fprintf(
            stderr, "ringhold coordinator: can't adopt %s: %s\n", o->data, err_text(error));
        return 1;
    }
    (void)printf("%s is coordinator %u's now; start the others once with --readmit %u\n",
                 o->data,
                 o->id,
                 o->id);
    return 0;
}

int coordinator_run(const struct coordinator_options *options)
{
    struct daemon *d = mem_new(1, sizeof *d);

    d->options = options;
    if (options->adopt) {
        mem_free(d);
        return adopt(options);
    }
    start_loop(d);
    if (!open_storage(d)) {
        return 1; // The process ends: nothing to unwind is worth the code.
    }
    make_machine(d);
    if (!open_links(d)) {
        return 1;
    }
    (void)uv_run(&d->loop, UV_RUN_DEFAULT);
    links_flush(d->links);
    links_close(d->links);
    replica_close(d->replica);
    witness_close(d->witness);
    state_db_close(d->db);
    return d->exit_code;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * What Raft tells the daemon: entries to apply, snapshots to make or take, a new
 * role; and state.db behind it.
 */
#include "coordinator/daemon.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "base/stamp.h"
#include "link/inject.h"
#include "wire/control.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The replica first: it makes the folder and takes its lock, so that the database of a running
 * coordinator is never touched. It may restore a snapshot while it opens: see on_restore(). */
static struct state_db *state_database(struct daemon *d)
{
    char path[4200];

    if (d->db == NULL) {
        (void)snprintf(path, sizeof path, "%s/state.db", d->options->data);
        if (state_db_open(&d->db, path) != ERR_OK) {
            (void)fprintf(
                stderr, "ringhold coordinator: can't write %s (docs/recovery.md#disk)\n", path);
            exit(1);
        }
    }
    return d->db;
}

/* "fence-applied", at the leader. Transactions only if they move something. */
static void inject_applied(const struct daemon *d, const Rh__Command *command,
                           const struct state_result *result)
{
#ifdef RINGHOLD_INJECT
    const struct state_txn *txn = state_txn(&d->state, result->txn);
    const ProtobufCFieldDescriptor *field = protobuf_c_message_descriptor_get_field(
        command->base.descriptor, (unsigned)command->body_case);
    char point[64];

    if (!d->leading || !result->accepted || field == NULL ||
        (txn != NULL && txn->part_count == 0)) {
        return;
    }
    (void)snprintf(point,
                   sizeof point,
                   "%.*s-applied",
                   (int)strcspn(field->name, "_"), // register_
                   field->name);
    inject_point(point);
#else
    (void)d;
    (void)command;
    (void)result;
#endif
}

/* The rows of the last command. Nothing may have changed the state since it was applied. */
static void write_rows(struct daemon *d)
{
    if (d->unwritten.command == NULL) {
        return;
    }
    state_db_apply(d->db, &d->state, d->unwritten.command, &d->unwritten.result);
    state_result_fini(&d->unwritten.result);
    command_free(d->unwritten.command);
    d->unwritten.command = NULL;
}

static void on_apply(void *context, uint64_t index, uint64_t tag, struct bytes bytes)
{
    struct daemon *d = context;
    struct state_result *result = &d->unwritten.result;
    Rh__Command *command = command_get(bytes);

    if (command == NULL) {
        log_error("coordinator",
                  "bad_command",
                  "file=%s/raft.db index=%" PRIu64 " reason=\"the log has a command of a newer "
                  "format, or a damaged one: a newer version wrote it\" "
                  "remedy=\"start the version that wrote it\"",
                  d->options->data,
                  index);
        exit(70);
    }
    write_rows(d);
    state_apply(&d->state, command, result);
    d->unwritten.command = command;
    d->changed = true;
    inject_applied(d, command, result);
    struct coordinator_event event = {.type = COORDINATOR_APPLIED,
                                      .tag = tag,
                                      .index = index,
                                      .command = command,
                                      .result = result};
    daemon_step(d, &event);
}

static void on_applied(void *context, uint64_t index)
{
    struct daemon *d = context;

    // Outcomes first: ids are held until they come. The rows of the entry, the next one of the log,
    // its thread and the plans of what begins next wait for nobody who waits.
    if (d->links != NULL) {
        links_flush(d->links);
    }
    write_rows(d);
    d->applied_index = index; // state.db gets it soon: daemon_commit_state()
    watermark_put(d->watermark, d->state.number, index);
    daemon_heed_state(d);
}

static void heed_fleet(struct daemon *d)
{
    char text[FLEET_ID_TEXT_SIZE];

    if (fleet_id_same(d->fleet, d->state.view.fleet)) {
        return;
    }
    d->fleet = d->state.view.fleet;
    fleet_id_print(d->fleet, text);
    log_info("coordinator", "fleet", "id=%s", text);
    links_set_fleet(d->links, d->fleet);
}

void daemon_heed_state(struct daemon *d)
{
    if (d->links == NULL) {
        return;
    }
    heed_fleet(d);
    if (d->format == d->state.format) {
        return;
    }
    if (d->state.format > FLEET_FORMAT_OLDEST) {
        log_info("coordinator", "fleet_format", "format=%" PRIu32, d->state.format);
    }
    d->format = d->state.format;
    replica_set_format(d->replica, d->format);
    links_set_format(d->links, d->format);
}

void daemon_commit_state(struct daemon *d)
{
    state_db_commit(d->db, d->applied_index);
    d->changed = false;
}

static void on_snapshot(void *context, struct buffer *out)
{
    struct daemon *d = context;

    daemon_commit_state(d);
    state_db_snapshot(d->db, &d->state, out);
}

static bool on_restore(void *context, uint64_t index, struct bytes snapshot)
{
    struct daemon *d = context;
    const bool restored = state_db_restore(state_database(d), snapshot, &d->state);

    if (!restored) {
        log_error("coordinator",
                  "snapshot_damaged",
                  "file=%s/raft.db index=%" PRIu64
                  " reason=\"the state in the snapshot does not load\" remedy=\"look with ringhold "
                  "recover verify (docs/recovery.md#one-folder)\"",
                  d->options->data,
                  index);
    }
    log_info("coordinator",
             "snapshot_restored",
             "index=%" PRIu64 " bytes=%zu ok=%d version=%s",
             index,
             snapshot.size,
             restored,
             STAMP(d->state.view.ring.version));
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
    if (leading && !watermark_agrees(d->watermark, d->state.number)) {
        log_error("coordinator",
                  "went_back",
                  "file=%s/raft.db number=%s witness=%s reason=\"the log lost what this folder had "
                  "seen\" remedy=\"put the newer raft.db and raft.tail back, or ringhold recover "
                  "restore a backup (docs/recovery.md#went-back)\"",
                  d->options->data,
                  STAMP(d->state.number),
                  STAMP(watermark_number(d->watermark)));
        exit(1);
    }
    d->leading = leading;
    log_info("coordinator", leading ? "leading" : "following", "term=%" PRIu64, term);
    daemon_step(d, &event);
}

static void on_done(void *context, uint64_t tag, enum err error)
{
    struct daemon *d = context;
    struct coordinator_event event = {.type = COORDINATOR_DONE, .tag = tag, .error = error};

    if (tag == WISH_TAG) {
        daemon_wish_done(d, error);
        return;
    }
    daemon_step(d, &event);
}

static struct replica_config replica_config_of(const struct coordinator_options *o)
{
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
        .joining = o->joining,
    };

    memcpy(config.voter, o->voter, sizeof config.voter);
    for (size_t i = 0; i < o->voter_count; i++) {
        config.address[i] = o->address[i];
    }
    return config;
}

static bool open_replica(struct daemon *d)
{
    const struct replica_config config = replica_config_of(d->options);
    const struct replica_events events = {
        .context = d,
        .apply = on_apply,
        .applied = on_applied,
        .snapshot = on_snapshot,
        .restore = on_restore,
        .role = on_role,
        .done = on_done,
        .generation = daemon_on_generation,
        .send = daemon_send_raft,
        .wake = daemon_wake,
    };
    const enum err error = replica_open(&d->replica, &config, &events, clock_boottime_us());

    if (error != ERR_OK) {
        (void)fprintf(stderr,
                      "ringhold coordinator: can't use the folder %s: %s\n",
                      d->options->data,
                      err_text(error));
        return false;
    }
    return true;
}

bool daemon_open_storage(struct daemon *d)
{
    const struct coordinator_options *o = d->options;

    state_init(&d->state);
    if (!open_replica(d)) {
        return false;
    }
    (void)state_database(d);
    struct replica_status status;
    replica_status(d->replica, &status);
    if (watermark_open(&d->watermark, o->data) != ERR_OK) {
        return false; // It said why.
    }
    if (watermark_index(d->watermark) > status.last_index) {
        (void)fprintf(stderr,
                      "ringhold coordinator: %s/raft.db is an old copy: its log ends at %" PRIu64
                      ", but this folder had applied %" PRIu64
                      "; put the newer raft.db and raft.tail back, or ringhold recover restore a "
                      "backup (docs/recovery.md#went-back)\n",
                      o->data,
                      status.last_index,
                      watermark_index(d->watermark));
        return false;
    }
    return true;
}

int daemon_adopt(const struct coordinator_options *o)
{
    const struct replica_config config = replica_config_of(o);
    const enum err error = replica_adopt(&config);

    if (error != ERR_OK) {
        (void)fprintf(
            stderr, "ringhold coordinator: can't adopt %s: %s\n", o->data, err_text(error));
        return 1;
    }
    (void)printf("%s now belongs to coordinator %u; start the others once with --readmit %u\n",
                 o->data,
                 o->id,
                 o->id);
    return 0;
}

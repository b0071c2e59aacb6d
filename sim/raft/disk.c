/* SPDX-License-Identifier: Apache-2.0
 *
 * A voter's disk in virtual time.
 */
#include "sim/raft/disk.h"

#include "base/assert.h"
#include "base/mem.h"
#include "storage/log/raftdb_sqlite.h"

#include <string.h>

enum { FOUND_US = 200 * 1000 };

static struct raft_disk *self(struct log_store *store)
{
    return (struct raft_disk *)(void *)store;
}

static uint64_t set_vote(struct log_store *store, uint64_t term, uint64_t vote)
{
    struct raft_disk *d = self(store);

    d->term = term;
    d->vote = vote;
    if (d->db != NULL) {
        raftdb_set_vote(d->db, term, vote);
    }
    return 0;
}

static void set_peer(struct log_store *store, const struct log_peer *peer)
{
    struct raft_disk *d = self(store);

    ASSERT(d->peer_count < LOG_VOTERS_MAX);
    d->peer[d->peer_count++] = *peer;
    if (d->db != NULL) {
        raftdb_set_peer(d->db, peer);
    }
}

static void set_admitted(struct log_store *store)
{
    struct raft_disk *d = self(store);

    d->admitted = true;
    if (d->db != NULL) {
        raftdb_set_admitted(d->db);
    }
}

static void set_format(struct log_store *store, uint32_t fleet_format)
{
    // Every simulated process is of one version.
    if (self(store)->db != NULL) {
        raftdb_set_format(self(store)->db, fleet_format);
    }
}

static void drop_entries_from(struct raft_disk *d, uint64_t index)
{
    while (d->entry_count > 0 && d->first + d->entry_count - 1 >= index) {
        mem_free(d->entry[--d->entry_count].memory);
    }
}

static void drop_entries_before(struct raft_disk *d, uint64_t index)
{
    size_t count = 0;

    while (count < d->entry_count && d->first + count < index) {
        mem_free(d->entry[count++].memory);
    }
    if (count > 0) {
        d->entry_count -= count;
        d->first += count;
        memmove(d->entry, d->entry + count, d->entry_count * sizeof *d->entry);
    }
}

static void add_entry(struct raft_disk *d, const struct log_entry *entry)
{
    if (d->entry_count == d->entry_max) {
        d->entry_max = d->entry_max == 0 ? 64 : 2 * d->entry_max;
        d->entry = mem_resize(d->entry, d->entry_max * sizeof *d->entry);
    }
    struct raft_disk_entry *added = &d->entry[d->entry_count++];
    added->entry = *entry;
    added->memory = mem_copy(entry->data.data, entry->data.size);
    added->entry.data.data = added->memory;
}

static void store_append(struct raft_disk *d, const struct log_request *request)
{
    if (request->index != d->first + d->entry_count) {
        d->holes++;
        return;
    }
    for (size_t i = 0; i < request->entry_count; i++) {
        add_entry(d, &request->entry[i]);
    }
}

static void store_snapshot(struct raft_disk *d, const struct log_request *request)
{
    log_request_free(d->snapshot);
    d->snapshot = log_snapshot_new(&request->snapshot, request->keep_from);
    if (request->keep_from == UINT64_MAX) {
        drop_entries_from(d, 0);
        d->first = request->snapshot.index + 1;
    } else {
        drop_entries_before(d, request->keep_from);
    }
}

static void read_snapshot(const struct raft_disk *d, struct log_request *request)
{
    ASSERT(d->snapshot != NULL);
    const struct log_snapshot *from = &d->snapshot->snapshot;
    request->snapshot = *from;
    request->read_memory = mem_copy(from->data.data, from->data.size);
    request->snapshot.data.data = request->read_memory;
    request->snapshot.configuration = bytes_of(NULL, 0);
}

static void store_founding(struct raft_disk *d, const struct log_request *request)
{
    const struct log_founding *f = &request->founding;

    store_snapshot(d, request);
    mem_free(d->generation);
    d->generation_size = f->generation.size;
    d->generation = mem_copy(f->generation.data, f->generation.size);
    memcpy(d->peer, f->peer, sizeof d->peer);
    d->peer_count = f->peer_count;
    d->term = f->term;
    d->vote = 0;
    d->admitted = f->admitted;
    d->joining = false;
}

static void store(struct raft_disk *d, struct log_request *request)
{
    switch (request->kind) {
    case LOG_APPEND:
        store_append(d, request);
        break;
    case LOG_TRUNCATE:
        drop_entries_from(d, request->index);
        break;
    case LOG_SNAPSHOT:
        store_snapshot(d, request);
        break;
    case LOG_READ_SNAPSHOT:
        read_snapshot(d, request);
        break;
    case LOG_FOUND:
        store_founding(d, request);
        break;
    }
}

static void submit(struct log_store *log, struct log_request *request)
{
    struct raft_disk *d = self(log);
    const uint64_t now = d->now(d->context);
    const uint64_t start = d->free_us > now ? d->free_us : now;

    d->free_us = start + prng_between(d->prng, d->write_min_us, d->write_max_us);
    if (prng_chance(d->prng, d->stall_percent)) {
        d->free_us += prng_between(d->prng, 0, d->stall_us);
    }
    if (request->kind == LOG_FOUND) {
        d->free_us += prng_between(d->prng, 0, FOUND_US); // a whole state
    }
    list_push_back(&d->queued, &request->link);
    d->schedule(d->context, d, d->free_us);
}

static struct log_request *completed(struct log_store *log)
{
    return log_requests_take(&self(log)->finished);
}

static void store_all(struct raft_disk *d, struct list *requests)
{
    for (struct list_link *l = list_front(requests); l != NULL; l = list_next(requests, l)) {
        store(d, CONTAINER_OF(l, struct log_request, link));
    }
}

/* Of what waits, some is written at once, as the worker does; the power fails meanwhile, or after.
 */
static void lose_power(struct raft_disk *d)
{
    uint64_t count = prng_between(&d->luck, 1, 4);

    while (count-- > 0 && !list_empty(&d->queued)) {
        struct log_request *r = CONTAINER_OF(list_front(&d->queued), struct log_request, link);

        if (r->kind == LOG_READ_SNAPSHOT) {
            break;
        }
        list_push_back(&d->doubtful, list_pop_front(&d->queued));
    }
    memory_disk_fail_at(d->memory_disk, (unsigned)prng_between(&d->luck, 1, 12));
    if (!list_empty(&d->doubtful)) {
        raftdb_write(d->db, &d->doubtful);
    }
    if (memory_disk_has_power(d->memory_disk)) {
        store_all(d, &d->doubtful);
        log_requests_free(&d->doubtful);
    }
    raftdb_close(d->db);
    memory_disk_lose(d->memory_disk);
    d->power_losses++;
}

/* Its process is killed: it does not come to close anything. */
static void drop_database(struct raft_disk *d)
{
    memory_disk_hold(d->memory_disk, true);
    raftdb_close(d->db);
    memory_disk_hold(d->memory_disk, false);
}

/* The crash. */
static void close_store(struct log_store *log)
{
    struct raft_disk *d = self(log);

    while (!list_empty(&d->queued) && prng_chance(d->prng, 50)) {
        raft_disk_finish(d);
    }
    if (d->db != NULL && prng_chance(&d->luck, 50)) {
        lose_power(d);
    } else if (d->db != NULL) {
        drop_database(d);
    }
    d->db = NULL;
    log_requests_free(&d->queued);
    log_requests_free(&d->finished);
    d->free_us = 0;
}

static const struct log_store_ops ops = {
    .set_vote = set_vote,
    .set_peer = set_peer,
    .set_admitted = set_admitted,
    .set_format = set_format,
    .submit = submit,
    .completed = completed,
    .close = close_store,
};

void raft_disk_init(struct raft_disk *disk, uint64_t identity, struct bytes configuration)
{
    const struct log_entry first = {.term = 1, .type = 3, .data = configuration};

    disk->store.ops = &ops;
    disk->term = 1;
    disk->identity = identity;
    disk->first = 1;
    disk->founders = configuration;
    list_init(&disk->queued);
    list_init(&disk->finished);
    list_init(&disk->doubtful);
    add_entry(disk, &first);
}

void raft_disk_ship(struct raft_disk *disk, uint64_t seed)
{
    memory_disk_install();
    disk->memory_disk = memory_disk_new(seed);
    disk->luck = (struct prng){~seed};
}

void raft_disk_fini(struct raft_disk *disk)
{
    drop_entries_from(disk, 0);
    mem_free(disk->entry);
    mem_free(disk->generation);
    log_request_free(disk->snapshot);
    log_requests_free(&disk->queued);
    log_requests_free(&disk->finished);
    log_requests_free(&disk->doubtful);
    memory_disk_free(disk->memory_disk);
}

static void load_model(const struct raft_disk *disk, struct log_image *image)
{
    log_image_init(image);
    image->term = disk->term;
    image->vote = disk->vote;
    image->identity = disk->identity;
    image->admitted = disk->admitted;
    image->joining = disk->joining;
    image->generation = bytes_of(disk->generation, disk->generation_size);
    memcpy(image->peer, disk->peer, sizeof image->peer);
    image->peer_count = disk->peer_count;
    image->first = disk->first;
    if (disk->snapshot != NULL) {
        // libraft copies while it loads: the image may borrow what the disk holds.
        image->snapshot = disk->snapshot->snapshot;
    }
    if (disk->entry_count > 0) {
        image->entry = mem_new(disk->entry_count, sizeof *image->entry);
        image->entry_count = disk->entry_count;
        for (size_t i = 0; i < disk->entry_count; i++) {
            image->entry[i] = disk->entry[i].entry;
        }
    }
}

/* ---- the shipped folder ---- */

static bool same_peers(const struct raft_disk *d, const struct log_image *image)
{
    size_t found = 0;

    for (size_t i = 0; i < d->peer_count; i++) {
        for (size_t k = 0; k < image->peer_count; k++) {
            found += d->peer[i].voter == image->peer[k].voter &&
                     d->peer[i].identity == image->peer[k].identity;
        }
    }
    return found == d->peer_count && found == image->peer_count;
}

static bool same_log(const struct raft_disk *d, const struct log_image *image)
{
    if (d->entry_count != image->entry_count || d->first != image->first) {
        return false;
    }
    for (size_t i = 0; i < d->entry_count; i++) {
        const struct log_entry *a = &d->entry[i].entry;
        const struct log_entry *b = &image->entry[i];

        if (a->term != b->term || a->type != b->type || !bytes_equal(a->data, b->data)) {
            return false;
        }
    }
    return true;
}

static bool same_snapshot(const struct raft_disk *d, const struct log_image *image)
{
    const struct log_snapshot *a = d->snapshot == NULL ? NULL : &d->snapshot->snapshot;
    const struct log_snapshot *b = &image->snapshot;

    return a == NULL ? b->index == 0
                     : a->index == b->index && a->term == b->term &&
                           a->configuration_index == b->configuration_index &&
                           bytes_equal(a->configuration, b->configuration) &&
                           bytes_equal(a->data, b->data);
}

/* In what the folder differs from what was confirmed; NULL: in nothing. */
static const char *differs(const struct raft_disk *d, const struct log_image *image)
{
    return d->term != image->term || d->vote != image->vote ? "raft.db has another vote"
           : d->identity != image->identity || d->admitted != image->admitted ||
                   d->joining != image->joining
               ? "raft.db is another one's"
           : !same_peers(d, image)    ? "raft.db has met others"
           : !same_log(d, image)      ? "raft.db has another log"
           : !same_snapshot(d, image) ? "raft.db has another snapshot"
           : !bytes_equal(bytes_of(d->generation, d->generation_size), image->generation)
               ? "raft.db is of another generation"
               : NULL;
}

/* What was under way when the power failed is there, as a whole, or not. */
static const char *judge(struct raft_disk *d, const struct log_image *image)
{
    const char *what = differs(d, image);

    if (what != NULL && !list_empty(&d->doubtful)) {
        store_all(d, &d->doubtful);
        what = differs(d, image);
    }
    log_requests_free(&d->doubtful);
    return what;
}

const char *raft_disk_load(struct raft_disk *disk, const struct log_sqlite_config *config,
                           struct log_image *image)
{
    struct log_sqlite_config own = *config;
    const char *what = "raft.db is refused";

    if (disk->memory_disk == NULL) {
        load_model(disk, image);
        return NULL;
    }
    own.directory = memory_disk_path(disk->memory_disk);
    own.cluster = "sim";
    own.identity = disk->identity;
    own.configuration = disk->founders;
    log_image_init(image);
    if (raftdb_open(&disk->db, image, &own) == ERR_OK) {
        disk->admitted = disk->admitted || (!disk->founded && image->admitted); // alone
        disk->founded = true;
        what = judge(disk, image);
    }
    if (what != NULL) {
        log_image_fini(image);
        load_model(disk, image); // whoever called says it, and ends
    }
    return what;
}

void raft_disk_finish(struct raft_disk *disk)
{
    struct list_link *link = list_pop_front(&disk->queued);

    if (link == NULL) {
        return;
    }
    struct log_request *request = CONTAINER_OF(link, struct log_request, link);
    if (disk->db != NULL) {
        struct list one;

        list_init(&one);
        list_push_back(&one, link);
        raftdb_write(disk->db, &one);
        (void)list_pop_front(&one);
    }
    if (disk->db == NULL || request->kind != LOG_READ_SNAPSHOT) {
        store(disk, request);
    }
    list_push_back(&disk->finished, link);
}

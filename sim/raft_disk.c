/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/raft_disk.h"

#include "base/assert.h"
#include "base/mem.h"

#include <string.h>

enum { FOUND_US = 200 * 1000 };

static struct raft_disk *self(struct log_store *store)
{
    return (struct raft_disk *)(void *)store;
}

static uint64_t set_vote(struct log_store *store, uint64_t term, uint64_t vote)
{
    self(store)->term = term;
    self(store)->vote = vote;
    return 0;
}

static void set_peer(struct log_store *store, const struct log_peer *peer)
{
    struct raft_disk *d = self(store);

    ASSERT(d->peer_count < LOG_VOTERS_MAX);
    d->peer[d->peer_count++] = *peer;
}

static void set_admitted(struct log_store *store)
{
    self(store)->admitted = true;
}

static void set_format(struct log_store *store, uint32_t fleet_format)
{
    (void)store; // every simulated process is of one version
    (void)fleet_format;
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

/* The crash. */
static void close_store(struct log_store *log)
{
    struct raft_disk *d = self(log);

    while (!list_empty(&d->queued) && prng_chance(d->prng, 50)) {
        raft_disk_finish(d);
    }
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
    list_init(&disk->queued);
    list_init(&disk->finished);
    add_entry(disk, &first);
}

void raft_disk_fini(struct raft_disk *disk)
{
    drop_entries_from(disk, 0);
    mem_free(disk->entry);
    mem_free(disk->generation);
    log_request_free(disk->snapshot);
    log_requests_free(&disk->queued);
    log_requests_free(&disk->finished);
}

void raft_disk_load(const struct raft_disk *disk, struct log_image *image)
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

void raft_disk_finish(struct raft_disk *disk)
{
    struct list_link *link = list_pop_front(&disk->queued);

    if (link != NULL) {
        store(disk, CONTAINER_OF(link, struct log_request, link));
        list_push_back(&disk->finished, link);
    }
}

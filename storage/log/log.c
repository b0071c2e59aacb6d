/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests to a log and the image of one in memory, common to both bodies.
 */
#include "storage/log/log.h"

#include "base/assert.h"
#include "base/mem.h"

#include <string.h>

/* A block of an image's memory; the bytes follow. */
struct log_block {
    struct list_link link;
};

void log_image_init(struct log_image *image)
{
    *image = (struct log_image){.first = 1};
    list_init(&image->memory);
}

void *log_image_memory(struct log_image *image, size_t size)
{
    struct log_block *block = mem_new(1, sizeof *block + size);

    list_push_back(&image->memory, &block->link);
    return block + 1;
}

void log_image_fini(struct log_image *image)
{
    struct list_link *link;

    while ((link = list_pop_front(&image->memory)) != NULL) {
        mem_free(CONTAINER_OF(link, struct log_block, link));
    }
    mem_free(image->entry);
    log_image_init(image);
}

static struct log_request *request_new(enum log_request_kind kind, size_t extra)
{
    struct log_request *request = mem_new(1, sizeof *request + extra);

    request->kind = kind;
    return request;
}

struct log_request *log_append_new(size_t entry_max, size_t data_size)
{
    const size_t table_size = entry_max * sizeof(struct log_entry);
    struct log_request *request = request_new(LOG_APPEND, table_size + data_size);

    request->entry = (struct log_entry *)(void *)(request + 1);
    request->entry_max = entry_max;
    request->free_bytes = (uint8_t *)(request + 1) + table_size;
    return request;
}

void log_append_add(struct log_request *request, const struct log_entry *entry)
{
    struct log_entry *copy = &request->entry[request->entry_count];

    ASSERT(request->entry_count < request->entry_max);
    *copy = *entry;
    copy->data.data = request->free_bytes;
    if (entry->data.size > 0) {
        memcpy(request->free_bytes, entry->data.data, entry->data.size);
    }
    request->free_bytes += entry->data.size;
    request->entry_count++;
}

struct log_request *log_truncate_new(uint64_t index)
{
    struct log_request *request = request_new(LOG_TRUNCATE, 0);

    request->index = index;
    return request;
}

/* Copy the run to `*at`, and move on. */
static void move_in(struct bytes *run, uint8_t **at)
{
    if (run->size > 0) {
        memcpy(*at, run->data, run->size);
    }
    run->data = *at;
    *at += run->size;
}

struct log_request *log_snapshot_new(const struct log_snapshot *snapshot, uint64_t keep_from)
{
    const size_t head = snapshot->configuration.size;
    struct log_request *request = request_new(LOG_SNAPSHOT, head + snapshot->data.size);
    uint8_t *bytes = (uint8_t *)(request + 1);

    request->snapshot = *snapshot;
    request->keep_from = keep_from;
    move_in(&request->snapshot.configuration, &bytes);
    move_in(&request->snapshot.data, &bytes);
    return request;
}

struct log_request *log_found_new(const struct log_founding *founding)
{
    const size_t ids = founding->voter_count * sizeof *founding->voters;
    const struct log_snapshot *snapshot = &founding->snapshot;
    struct log_request *request = request_new(
        LOG_FOUND,
        ids + founding->generation.size + snapshot->configuration.size + snapshot->data.size);
    uint8_t *bytes = (uint8_t *)(request + 1);

    request->founding = *founding;
    request->founding.voters = memcpy(bytes, founding->voters, ids);
    request->founding.snapshot = (struct log_snapshot){0};
    bytes += ids;
    request->snapshot = *snapshot;
    request->keep_from = UINT64_MAX;
    move_in(&request->founding.generation, &bytes);
    move_in(&request->snapshot.configuration, &bytes);
    move_in(&request->snapshot.data, &bytes);
    return request;
}

struct log_request *log_read_new(void)
{
    return request_new(LOG_READ_SNAPSHOT, 0);
}

void log_request_free(struct log_request *request)
{
    if (request != NULL) {
        mem_free(request->read_memory);
        mem_free(request);
    }
}

struct log_request *log_requests_take(struct list *requests)
{
    struct list_link *link = list_pop_front(requests);

    return link == NULL ? NULL : CONTAINER_OF(link, struct log_request, link);
}

void log_requests_free(struct list *requests)
{
    struct log_request *request;

    while ((request = log_requests_take(requests)) != NULL) {
        log_request_free(request);
    }
}

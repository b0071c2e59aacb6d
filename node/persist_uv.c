/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes the number record on a thread, one version at a time, and tells the
 * host when it is durable.
 */
#include "node/shell_uv.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/mem.h"
#include "node/disk.h"

#include <stdio.h>
#include <stdlib.h>

enum { EXIT_IO = 74 };

/* On a worker thread. */
static void on_work(uv_work_t *work)
{
    struct persist *p = CONTAINER_OF(work, struct persist, work);

    p->result = number_store(p->number, buffer_bytes(&p->writing));
}

static void start(struct shell *s);

static void on_written(uv_work_t *work, int status)
{
    struct persist *p = CONTAINER_OF(work, struct persist, work);
    struct shell *s = CONTAINER_OF(p, struct shell, persist);

    (void)status;
    if (p->result != ERR_OK) {
        // What the disk holds is unknown: a node that goes on could break its word.
        (void)fprintf(stderr, "ringhold node: can't write %s/number\n", s->options->node.data);
        _Exit(EXIT_IO);
    }
    s->now_us = clock_boottime_us();
    const size_t done = p->writing_count;
    for (size_t i = 0; i < done; i++) {
        struct host_event event = {.type = HOST_PERSISTED, .ticket = p->ticket[i]};

        shell_feed(s, &event); // It may add tickets, for the next write.
    }
    for (size_t i = done; i < p->ticket_count; i++) {
        p->ticket[i - done] = p->ticket[i];
    }
    p->ticket_count -= done;
    p->busy = false;
    if (p->ticket_count > 0) {
        start(s);
    }
}

static void start(struct shell *s)
{
    struct persist *p = &s->persist;
    const struct buffer spare = p->writing;

    p->writing = p->next;
    p->next = spare;
    p->writing_count = p->ticket_count;
    p->busy = true;
    ASSERT(uv_queue_work(&s->loop, &p->work, on_work, on_written) == 0);
}

void persist_put(struct shell *s, const struct host_disk *disk, uint64_t ticket)
{
    struct persist *p = &s->persist;

    buffer_clear(&p->next);
    disk_put(&p->next, disk);
    if (p->ticket_count == p->ticket_cap) {
        p->ticket_cap = p->ticket_cap == 0 ? 16 : p->ticket_cap * 2;
        p->ticket = mem_resize(p->ticket, p->ticket_cap * sizeof *p->ticket);
    }
    p->ticket[p->ticket_count++] = ticket;
    if (!p->busy) {
        start(s);
    }
}

void persist_fini(struct persist *p)
{
    ASSERT(!p->busy);
    number_close(p->number);
    buffer_fini(&p->writing);
    buffer_fini(&p->next);
    mem_free(p->ticket);
}

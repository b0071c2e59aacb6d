/* SPDX-License-Identifier: Apache-2.0
 *
 * The file `witness` in a coordinator's folder, shipped, written as coordinator/watermark.c does
 * it: beside raft.db, some time after what it tells of was applied.
 */
#include "sim/raft/group_inside.h"

#include "base/assert.h"

#include <stdio.h>

enum { PAUSE_US = 100 * 1000, WRITE_US = 20 * 1000 };

static void on_note(void *context, const struct world_event *event);

static void later(struct group_member *m, uint64_t in_us, bool writes)
{
    const struct process *p = &m->fleet->coordinator[m->at].process;

    m->noting = true;
    world_at(&m->fleet->world,
             m->fleet->world.now_us + in_us,
             (struct world_event){
                 .run = on_note, .context = m->fleet, .a = m->at, .b = p->life, .c = writes});
}

/* What is noted by now goes out, and is on the disk some time later. */
static void begin(struct group_member *m)
{
    m->writing = m->noted;
    later(m, prng_between(&m->disk.luck, 50, WRITE_US), true);
}

static void on_note(void *context, const struct world_event *event)
{
    struct fleet *f = context;
    struct group_member *m = &f->group->member[event->a];
    uint8_t payload[WATERMARK_RECORD_SIZE];

    if (m->watermark == NULL || f->coordinator[m->at].process.life != event->b) {
        return;
    }
    m->noting = false;
    if (event->c != 0) {
        watermark_record_encode(payload, &m->writing);
        const enum err e = number_store(m->watermark, bytes_of(payload, sizeof payload));
        ASSERT(e == ERR_OK);
        later(m, PAUSE_US, false);
    } else if (m->noted.index > m->writing.index) {
        begin(m);
    }
}

void group_watermark_open(struct group_member *m)
{
    struct buffer payload = {0};
    struct replica_status status;
    char path[64];

    replica_status(m->replica, &status);
    (void)snprintf(path, sizeof path, "%s/witness", memory_disk_path(m->disk.memory_disk));
    const bool whole = number_open(&m->watermark, path, &payload) == ERR_OK &&
                       watermark_record_decode(buffer_bytes(&payload), &m->found);
    if (!whole || m->found.index > status.last_index) {
        world_violate(&m->fleet->world,
                      "disk",
                      "coordinator %llu refuses its folder: the log ends at %llu, its witness has "
                      "%llu",
                      (unsigned long long)m->id,
                      (unsigned long long)status.last_index,
                      (unsigned long long)m->found.index);
    }
    m->noted = m->writing = m->found;
    m->noting = false;
    buffer_fini(&payload);
}

void group_watermark_note(struct group_member *m, uint64_t index)
{
    if (m->watermark != NULL && index > m->noted.index) {
        m->noted = (struct watermark_record){m->state.number, index};
        if (!m->noting) {
            begin(m);
        }
    }
}

void group_watermark_lead(const struct group_member *m)
{
    if (m->state.number < m->found.number) {
        world_violate(&m->fleet->world,
                      "disk",
                      "coordinator %llu leads with a number below its witness",
                      (unsigned long long)m->id);
    }
}

void group_watermark_close(struct group_member *m)
{
    number_close(m->watermark);
    m->watermark = NULL;
}

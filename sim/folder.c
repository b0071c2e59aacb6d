/* SPDX-License-Identifier: Apache-2.0
 *
 * A node's data folder on the simulated disk.
 */
#include "base/assert.h"
#include "node/disk.h"
#include "sim/fleet.h"
#include "sim/memory_disk.h"
#include "storage/log/number.h"

#include <stdio.h>
#include <string.h>

static bool same(const struct host_disk *a, const struct host_disk *b)
{
    return a->era == b->era && a->floor == b->floor && a->seen == b->seen &&
           a->active_count == b->active_count &&
           memcmp(a->active, b->active, a->active_count * sizeof a->active[0]) == 0;
}

static void open_number(struct fleet *f, struct sim_node *n, struct host_disk *out)
{
    struct buffer payload = {0};
    char path[64];

    (void)snprintf(path, sizeof path, "%s/number", memory_disk_path(n->memory_disk));
    if (number_open(&n->number, path, &payload) != ERR_OK ||
        disk_get(buffer_bytes(&payload), out) != ERR_OK) {
        world_violate(&f->world, "disk", "%s: its number file is refused", n->process.name);
        *out = n->told;
    }
    buffer_fini(&payload);
}

void sim_folder_open(struct fleet *f, struct sim_node *n)
{
    if (n->memory_disk == NULL) {
        const uint64_t number = n->process.number + 64u * n->wipes;

        memory_disk_install();
        n->memory_disk = memory_disk_new(f->world.seed << 16 | number);
    }
    if (n->number == NULL) {
        open_number(f, n, &n->disk);
    }
}

void sim_folder_store(struct sim_node *n)
{
    struct buffer payload = {0};

    disk_put(&payload, &n->disk);
    const enum err e = n->number == NULL ? ERR_OK : number_store(n->number, buffer_bytes(&payload));
    ASSERT(e == ERR_OK);
    buffer_fini(&payload);
}

static void lose_power(struct fleet *f, struct sim_node *n)
{
    memory_disk_lose(n->memory_disk);
    f->power_losses++;
    TRACE(&f->world, n->process.name, "lost its power");
}

void sim_folder_crash(struct fleet *f, struct sim_node *n, bool begun, bool power)
{
    const struct host_disk newer = n->disk;
    const bool writing = begun && !same(&newer, &n->told);

    if (power) {
        memory_disk_fail_at(n->memory_disk, 1 + (unsigned)(f->world.now_us % 3));
    }
    if (writing) {
        sim_folder_store(n);
    }
    const bool whole = writing && memory_disk_has_power(n->memory_disk);
    number_close(n->number);
    n->number = NULL;
    if (power) {
        lose_power(f, n);
    }
    open_number(f, n, &n->disk);
    if (!same(&n->disk, writing ? &newer : &n->told) && (whole || !same(&n->disk, &n->told))) {
        world_violate(&f->world, "disk", "%s: its number went back", n->process.name);
    }
    n->told = n->disk;
}

void sim_folder_free(struct sim_node *n)
{
    number_close(n->number);
    n->number = NULL;
    memory_disk_free(n->memory_disk);
    n->memory_disk = NULL;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Maps the file that names the actors whose code runs, and reads what the last
 * process left in it.
 */
#include "node/worker/crash_record.h"

#include "base/assert.h"
#include "base/crc.h"
#include "base/log.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_SIZE = 4096 };

static const char magic[8] = {'R', 'H', 'R', 'U', 'N', '0', '0', '3'};

struct crash_record_header {
    char magic[8];
    uint8_t boot_id[16];
    uint64_t incarnation; /* 0 = it stopped cleanly, as older versions say it */
    uint32_t check;       /* CRC-32C of all before it */
    uint8_t apart[28];
};
_Static_assert(sizeof(struct crash_record_header) == 64, "a line");

struct crash_record_file {
    struct crash_record_header header;
    struct crash_record_slot slot[CRASH_RECORD_SLOTS];
};

struct crash_record_slot *crash_record_slot(const struct crash_record *r, size_t index)
{
    ASSERT(index < CRASH_RECORD_SLOTS);
    return &r->file->slot[index];
}

/* ---- what was left ---- */

static uint32_t check_of(const struct crash_record_header *h)
{
    return crc32c(h, offsetof(struct crash_record_header, check));
}

static void read_slots(const struct crash_record_file *file, struct crash_record_left *left)
{
    for (size_t i = 0; i < CRASH_RECORD_SLOTS; i++) {
        const struct crash_record_slot *s = &file->slot[i];
        const uint64_t mark = atomic_load_explicit(&s->mark, memory_order_acquire);

        if (mark == 0) {
            continue;
        }
        if (s->name.id_size == 0 ||
            mark != crash_record_mark(s->name.kind, quarantined_id(&s->name))) {
            log_warn("node",
                     "blame_damaged",
                     "slot=%zu what=\"the record of a running actor is invalid and ignored\"",
                     i);
            continue;
        }
        // With no byte behind its id, as everybody else writes it.
        (void)quarantined_of(&left->actor[left->count++], s->name.kind, quarantined_id(&s->name));
    }
}

static void read_left(const struct crash_record *r, struct crash_record_left *left)
{
    const struct crash_record_header *h = &r->file->header;
    static const struct crash_record_header empty;

    if (memcmp(h, &empty, sizeof empty) == 0) {
        return; // just made
    }
    if (memcmp(h->magic, magic, sizeof magic) != 0 || h->check != check_of(h)) {
        log_warn("node",
                 "blame_damaged",
                 "what=\"the file's header is invalid; its records are ignored\"");
        return;
    }
    left->incarnation = h->incarnation;
    if (memcmp(h->boot_id, r->boot_id, sizeof h->boot_id) == 0) { // else its machine stopped
        read_slots(r->file, left);
    }
}

/* ---- the file ---- */

/* NULL: no, and errno says why. Its room on the disk is taken now: a full one would end the process
 * at a store. */
static struct crash_record_file *map(const char *folder)
{
    char path[PATH_SIZE + 16];
    struct crash_record_file *file = NULL;

    (void)snprintf(path, sizeof path, "%s/running", folder);
    const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) {
        return NULL;
    }
    errno = posix_fallocate(fd, 0, sizeof *file);
    if (errno == 0) {
        file = mmap(NULL, sizeof *file, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    }
    (void)close(fd);
    return file == MAP_FAILED ? NULL : file;
}

void crash_record_open(struct crash_record *r, const char *folder, const uint8_t boot_id[16],
                       struct crash_record_left *left)
{
    *r = (struct crash_record){.file = map(folder)};
    *left = (struct crash_record_left){0};
    memcpy(r->boot_id, boot_id, sizeof r->boot_id);
    r->mapped = r->file != NULL;
    if (r->mapped) {
        read_left(r, left);
        return;
    }
    log_warn("node",
             "blame_not_kept",
             "reason=\"%s\" what=\"an actor that kills this process will not be identified\"",
             strerror(errno));
    r->file = mem_new(1, sizeof *r->file);
}

static void write_header(const struct crash_record *r, uint64_t incarnation)
{
    struct crash_record_header h = {.incarnation = incarnation};

    memcpy(h.magic, magic, sizeof h.magic);
    memcpy(h.boot_id, r->boot_id, sizeof h.boot_id);
    h.check = check_of(&h);
    r->file->header = h;
}

static void clear_slots(const struct crash_record *r)
{
    for (size_t i = 0; i < CRASH_RECORD_SLOTS; i++) {
        crash_record_leave(&r->file->slot[i]);
    }
}

void crash_record_begin(struct crash_record *r, uint64_t incarnation)
{
    // Registered anew, in another era, it may run something.
    if (!r->begun) {
        clear_slots(r);
    }
    r->begun = true;
    write_header(r, incarnation);
}

void crash_record_close(struct crash_record *r)
{
    if (r->file == NULL) {
        return;
    }
    if (r->begun) {     // else it tells of the one before me, for the next
        clear_slots(r); // the next says so: others may have told that something ran
    }
    if (r->mapped) {
        (void)munmap(r->file, sizeof *r->file);
    } else {
        mem_free(r->file);
    }
    *r = (struct crash_record){0};
}

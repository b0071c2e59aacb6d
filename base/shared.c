/* SPDX-License-Identifier: Apache-2.0
 *
 * Counts the owners of a run of bytes and frees it with the last one.
 */
#include "base/shared.h"

#include "base/assert.h"
#include "base/mem.h"

struct shared *shared_new(size_t size)
{
    struct shared *s = mem_resize(NULL, sizeof *s + size);

    *s = (struct shared){.owners = 1, .size = size};
    return s;
}

struct shared *shared_hold(struct shared *s)
{
    ASSERT(s->owners > 0);
    s->owners++;
    return s;
}

void shared_drop(struct shared *s)
{
    if (s != NULL && --s->owners == 0) {
        mem_free(s);
    }
}

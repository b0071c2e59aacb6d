/* SPDX-License-Identifier: Apache-2.0
 *
 * Remembers which coordinator claimed to lead, and in which term.
 */
#include "wire/finder.h"

#include "base/assert.h"
#include "base/mutant.h"

#include <string.h>

void finder_init(struct finder *f, size_t count)
{
    ASSERT(count >= 1 && count <= FINDER_MAX);
    *f = (struct finder){.count = count};
}

static void claims(struct finder *f, size_t index, bool leading, uint64_t term)
{
    ASSERT(index < f->count);
    f->claim[index].leading = leading;
    f->claim[index].term = leading ? term : 0;
}

void finder_on_leader(struct finder *f, size_t index, bool leading, uint64_t term)
{
    ASSERT(index < f->count);
    if (term >= f->claim[index].term) {
        claims(f, index, leading, term);
    }
}

void finder_on_not_leader(struct finder *f, size_t index, uint64_t term)
{
    ASSERT(index < f->count);
    if (term == 0 || term >= f->claim[index].term || mutant(M_LATEREFUSAL)) {
        claims(f, index, false, 0);
    }
}

void finder_on_down(struct finder *f, size_t index)
{
    claims(f, index, false, 0);
}

int finder_leader(const struct finder *f)
{
    int leader = -1;

    for (size_t i = 0; i < f->count; i++) {
        if (f->claim[i].leading &&
            (leader < 0 || f->claim[i].term > f->claim[(size_t)leader].term)) {
            leader = (int)i;
        }
    }
    return leader;
}

static bool is_among(const char *address, char *const *voters, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(voters[i], address) == 0) {
            return true;
        }
    }
    return false;
}

size_t finder_place(const struct finder_known *known, size_t count, const char *address,
                    char *const *voters, size_t voter_count)
{
    size_t left = count;
    size_t free = count;

    for (size_t i = 0; i < count; i++) {
        if (known[i].address == NULL) {
            free = free == count ? i : free;
        } else if (strcmp(known[i].address, address) == 0) {
            return i;
        } else if (left == count && !known[i].linked &&
                   !is_among(known[i].address, voters, voter_count)) {
            left = i;
        }
    }
    return free < count ? free : left;
}

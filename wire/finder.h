/* SPDX-License-Identifier: Apache-2.0
 *
 * Which of the coordinators leads? Every coordinator tells each of its links
 * whether it leads, and in which term; a finder keeps what was claimed last.
 *
 * Pure. A deposed leader that does not know it yet may still claim to lead:
 * the claim of the higher term wins. A lost link or a "not leader" ends a claim;
 * what the same coordinator said in an earlier term, and comes late, does not.
 */
#ifndef WIRE_FINDER_H
#define WIRE_FINDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FINDER_MAX = 16 }; /* coordinators that one may know of */

struct finder {
    size_t count;
    struct {
        bool leading;
        uint64_t term;
    } claim[FINDER_MAX];
};

/* `count` coordinators, 1..FINDER_MAX, known by their index; none leads yet. */
void finder_init(struct finder *f, size_t count);

/* The coordinator at `index` said whether it leads, in `term`. */
void finder_on_leader(struct finder *f, size_t index, bool leading, uint64_t term);

/* The coordinator refused a request because it does not lead, in `term` (0 = it tells none). A
 * refusal of an earlier term than the one that the coordinator claims is late, and is ignored. */
void finder_on_not_leader(struct finder *f, size_t index, uint64_t term);

/* The link went down: forget what the coordinator claimed. */
void finder_on_down(struct finder *f, size_t index);

/* Index of the leader, or -1 while nobody claims to lead. */
int finder_leader(const struct finder *f);

/* One coordinator that is known: its address, NULL = the place is free. */
struct finder_known {
    const char *address;
    bool linked;
};

/* The place for a link to `address`: its own, else a free one, else that of one that is not linked
 * and is none of `voters`, whose machine may be gone for good. `count`: there is none. Without
 * the last a process that has seen FINDER_MAX addresses could follow the coordinators no more. */
size_t finder_place(const struct finder_known *known, size_t count, const char *address,
                    char *const *voters, size_t voter_count);

#endif

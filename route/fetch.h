/* SPDX-License-Identifier: Apache-2.0
 *
 * When to ask which coordinator for the configuration.
 *
 * Asked are: the leader, every refresh; at once when a version is known to
 * exist that the view lacks, then with growing gaps; another coordinator when
 * there is no leader or it does not answer.
 */
#ifndef ROUTE_FETCH_H
#define ROUTE_FETCH_H

#include "wire/finder.h"

#include <stdbool.h>
#include <stdint.h>

enum { FETCH_GAP_US = 20000, FETCH_SILENT_MAX = 2 };

struct fetch {
    struct finder finder;
    bool up[FINDER_MAX];
    int up_count;
    uint32_t refresh_ms;
    uint64_t want;    /* a version that exists, as somebody said */
    uint64_t last_us; /* when it asked; 0 = never */
    uint64_t next_us; /* when it asks again, if nothing is wanted */
    uint64_t gap_us;  /* before it asks again for `want` */
    uint32_t silent;  /* asked in a row without an answer */
    int cursor;       /* last one asked in turn */
    bool whole;       /* the view differs from the leader's: ask for all of it */
};

void fetch_init(struct fetch *f, uint32_t refresh_ms);
void fetch_on_up(struct fetch *f, int coordinator);
void fetch_on_down(struct fetch *f, int coordinator);
void fetch_on_leader(struct fetch *f, int coordinator, bool leading, uint64_t term);
void fetch_on_not_leader(struct fetch *f, int coordinator, uint64_t term);
/* The asked answered, and wishes to be asked again `again_us` from now, 0 = no matter when: heeded
 * between a half and nine eighths of the usual time after the last question. */
void fetch_on_answer(struct fetch *f, uint64_t now_us, uint32_t again_us);

/* Note that `version` exists, as somebody said. */
void fetch_want(struct fetch *f, uint64_t version);
/* The view could not follow a change: ask for all of it, soon. */
void fetch_whole(struct fetch *f);
/* The view has `version` now. */
void fetch_on_version(struct fetch *f, uint64_t version);

/* True: `version` is not enough. */
static inline bool fetch_is_urgent(const struct fetch *f, uint64_t version)
{
    return version == 0 || f->want > version || f->whole;
}

/* When it is time to ask somebody, who is up; UINT64_MAX = nobody is. */
uint64_t fetch_due_us(const struct fetch *f, uint64_t version);

/* True: it is time to ask somebody. */
static inline bool fetch_is_due(const struct fetch *f, uint64_t now_us, uint64_t version)
{
    const uint64_t again_us = f->last_us + f->gap_us;

    // Most often it was just asked, or, for who borrows another's view, nobody is up at all.
    return (f->last_us == 0 || ((now_us >= again_us || now_us >= f->next_us) &&
                                now_us >= (fetch_is_urgent(f, version) ? again_us : f->next_us))) &&
           f->up_count > 0;
}

/* Return which coordinator to ask now, which then counts as asked; -1: not yet, or none is up. */
int fetch_next(struct fetch *f, uint64_t now_us, uint64_t version);

#endif

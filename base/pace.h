/* SPDX-License-Identifier: Apache-2.0
 *
 * How often a daemon ticks: every 10 ms while something goes on, and later while all rests, so that
 * a fleet that nobody asks anything sleeps. Pure; the shell has the timer.
 *
 *     a tick          pace_ticked()
 *     end of a turn   if it rests and pace_is_along(): tick now, as the process is awake anyway;
 *                     if pace_is_open() and pace_is_to_set(): the timer to pace_delay_ms()
 *
 * `until_us`: when a tick has something to do at the latest, as those say whom it serves; 0 = soon,
 * as one of them does something.
 */
#ifndef BASE_PACE_H
#define BASE_PACE_H

#include <stdbool.h>
#include <stdint.h>

enum { PACE_MS = 10, PACE_ALONG_MS = 25 };

/* All zero is one that has not ticked. */
struct pace {
    uint64_t ticked_us; /* last */
    bool ticked;        /* and no timer was set since */
    bool rests;         /* the timer is set for later than PACE_MS */
};

/* Else all is as it was, and nobody need be asked. */
static inline bool pace_is_open(const struct pace *p)
{
    return p->ticked || p->rests;
}

static inline void pace_ticked(struct pace *p, uint64_t now_us)
{
    p->ticked_us = now_us;
    p->ticked = true;
}

static inline bool pace_is_along(const struct pace *p, uint64_t now_us)
{
    return now_us - p->ticked_us >= (uint64_t)PACE_ALONG_MS * 1000;
}

/* True if what rested goes on, so that the timer would come too late. */
static inline bool pace_is_to_set(const struct pace *p, uint64_t until_us)
{
    return p->ticked || until_us == 0;
}

/* From now; rounded up, so that what is due then is. */
static inline uint64_t pace_delay_ms(struct pace *p, uint64_t until_us, uint64_t now_us)
{
    const uint64_t usual_us = p->ticked_us + (uint64_t)PACE_MS * 1000;
    const uint64_t at_us = until_us > usual_us ? until_us : usual_us;

    p->ticked = false;
    p->rests = until_us > usual_us;
    return at_us > now_us ? (at_us - now_us + 999) / 1000 : 0;
}

#endif

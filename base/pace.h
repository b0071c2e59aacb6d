/* SPDX-License-Identifier: Apache-2.0
 *
 * How often a daemon ticks: every 10 ms while something goes on, and later while all rests, so that
 * a fleet that nobody asks anything sleeps. Pure; the shell has the timer.
 *
 *     a tick          pace_ticked()
 *     end of a turn   if pace_is_along(): tick now, as the process is awake anyway;
 *                     if pace_is_open() and pace_is_to_set(): the timer to pace_delay_ms()
 *
 * Where more of what goes on comes in the next moment, as nodes renew together, pace_stirs() has it
 * wait for that.
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
    bool stirred;       /* it rested; as soon as it rests again nothing is left to wait for */
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
    p->stirred = false;
}

/* What rested goes on: the next tick is due PACE_MS from now, or when it rests again. Not the
 * latter right behind a tick: who stirs again and again is ticked by the usual pace. */
static inline void pace_stirs(struct pace *p, uint64_t now_us)
{
    p->stirred = now_us - p->ticked_us >= (uint64_t)PACE_MS * 1000;
    p->ticked_us = now_us;
}

static inline bool pace_is_along(const struct pace *p, uint64_t now_us)
{
    return p->stirred || (p->rests && now_us - p->ticked_us >= (uint64_t)PACE_ALONG_MS * 1000);
}

/* True if what rested goes on, so that the timer would come too late. */
static inline bool pace_is_to_set(const struct pace *p, uint64_t until_us)
{
    return p->ticked || until_us == 0;
}

/* From now; rounded up, so that what is due then is. A loop counts whole milliseconds and is almost
 * one behind: a rest that ended too early would go on by the usual pace, 10 ms. */
static inline uint64_t pace_delay_ms(struct pace *p, uint64_t until_us, uint64_t now_us)
{
    const uint64_t usual_us = p->ticked_us + (uint64_t)PACE_MS * 1000;
    const uint64_t at_us = until_us > usual_us ? until_us : usual_us;

    p->ticked = false;
    p->rests = until_us > usual_us;
    return at_us > now_us ? (at_us - now_us + 999) / 1000 + (p->rests ? 1 : 0) : 0;
}

#endif

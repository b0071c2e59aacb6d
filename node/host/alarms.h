/* SPDX-License-Identifier: Apache-2.0
 *
 * Alarms of durable actors that sleep: who is to be started, for the time of one has come?
 *
 * Who lives has its alarms in memory (node/runtime/durable_alarms.c). Of the others only the store
 * knows, which several nodes may share. So once a second the node asks it for those that are due,
 * kind by kind and page by page, and of these it starts the ones whose ids are its own, so many a
 * second. A row that stays, for its actor could not start, is met again by a later scan.
 *
 *     RESTING -a second has passed-> ASKING -a page-> STARTING its actors, as the rate has it
 *     STARTING -the page was full-> ASKING for the one behind it
 *     STARTING -it was not-> ASKING for the next kind's, or RESTING
 *
 * A page is taken by that rate, so the node has one at a time, however many are due. Those of other
 * nodes cost a look each.
 */
#ifndef NODE_HOST_ALARMS_H
#define NODE_HOST_ALARMS_H

#include "base/bytes.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct host;
struct host_event;

struct alarm_scan {
    uint16_t *kinds; /* owned; numbers of the kinds that have alarms in the store … */
    bool *own;       /* owned; … and whether the game's are among them */
    size_t kind_count;
    size_t kind;        /* index: whose page that is, or is asked for; kind_count = RESTING */
    bool asked;         /* for a page, which has not come; perhaps it is not wanted any more */
    struct buffer page; /* owned */
    size_t at;          /* it was looked at up to there */
    size_t count;       /* alarms before that */
    uint64_t scan_us;   /* the next scan begins then at the earliest */
    uint64_t credit;    /* millionths of a start */
    uint64_t paced_us;  /* when it was reckoned */
    uint64_t lag_us;    /* by how much the last one was late; 0 = the last scan found none */
    bool found;         /* this scan has one */
    uint64_t started;   /* actors */
};

void alarm_scan_init(struct host *h);
void alarm_scan_fini(struct alarm_scan *s);
/* All actors are gone: begin anew. */
void alarm_scan_forget(struct alarm_scan *s);
/* The store has answered. */
void alarm_scan_on_page(struct host *h, const struct host_event *event);
void alarm_scan_tick(struct host *h);
/* Until when nothing is to be done for alarms; 0 = there is. */
uint64_t alarm_scan_rests_until_us(const struct host *h);

#endif

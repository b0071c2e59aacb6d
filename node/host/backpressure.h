/* SPDX-License-Identifier: Apache-2.0
 *
 * Backpressure: how much is started at once, and for whom? No more than the links can take back
 * (backpressure.c).
 */
#ifndef NODE_HOST_BACKPRESSURE_H
#define NODE_HOST_BACKPRESSURE_H

#include "node/host/requests.h"

struct backpressure {
    struct queue stalled; /* the link that their answers take, or they, is full */
    struct queue later;   /* for another step: this one has started enough */
    struct list cold;     /* struct actor_work: to be activated, once fewer are; … */
    size_t cold_count;    /* … so many, of some of which what waited has expired */
    size_t full_count;    /* links that are full */
    size_t started;       /* RUN and TURN effects of this step */
    size_t passed_on;     /* bytes forwarded in this step */
    uint64_t put_off_total;
    uint64_t full_total; /* times a link was full */
};

void backpressure_init(struct backpressure *p);
/* A step begins. */
void backpressure_begin(struct backpressure *p);
/* True if one more request may start in this step, and its answer leave; otherwise the request is
 * put off. One of a stream always may: its answer lies in the log. */
bool backpressure_may_start(const struct host *h, const struct admission *in);
void backpressure_put_off(struct host *h, struct admission *in);
/* Count one more that started in this step. */
static inline void backpressure_started(struct backpressure *p)
{
    p->started++;
}
/* True if one more request may be passed on over this link in this step. */
bool backpressure_may_pass_on(const struct host *h, uint64_t link);
void backpressure_pass_on_later(struct host *h, struct admission *in);
/* Note that `size` bytes were passed on. */
static inline void backpressure_passed_on(struct backpressure *p, size_t size)
{
    p->passed_on += size;
}
/* True if the request may begin an activation: fewer than may be are under way, and nobody stands
 * in line. What other actors ask always may: they may wait for it in an activation of their own. */
bool backpressure_may_activate(const struct host *h, const struct request_record *r);
/* True if no more actors may stand in line. */
bool backpressure_line_is_full(const struct host *h);
/* An actor that is ABSENT, and in whose mailbox something waits, is activated in its turn. */
void backpressure_line_up(struct host *h, struct actor *a);
/* The actor stands in no line from now on. */
void backpressure_leave_line(struct host *h, const struct actor *a);
/* Take up what was put off to another step. */
void backpressure_go_on(struct host *h);
void backpressure_on_link(struct host *h, uint64_t link, bool full);

#endif

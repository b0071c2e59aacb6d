/* SPDX-License-Identifier: Apache-2.0
 *
 * Judges requests in a history: begun once, answered truly, in order.
 */
#include "sim/history/judge.h"

#include "base/list.h"
#include "base/mem.h"

#include <inttypes.h>
#include <stdio.h>

static struct judged_lane *lane_of(struct judge *c, const struct history_event *e)
{
    const uint64_t hash = judge_mix(e->session, e->entity, 2);
    struct judged_lane *lane = NULL;

    for (struct table_link *l = table_first(&c->lane, hash); l != NULL; l = table_same(l)) {
        lane = CONTAINER_OF(l, struct judged_lane, link);
        if (lane->session == e->session && lane->entity == e->entity) {
            return lane;
        }
    }
    lane = mem_new(1, sizeof *lane);
    lane->session = e->session;
    lane->entity = e->entity;
    table_put(&c->lane, &lane->link, hash);
    return lane;
}

/* NULL = never sent. */
static struct judged_request *request_of(const struct judge *c, const struct history_event *e)
{
    for (struct table_link *l =
             table_first(&c->request, judge_mix(e->session, e->entity, e->seq + 2));
         l != NULL;
         l = table_same(l)) {
        struct judged_request *r = CONTAINER_OF(l, struct judged_request, link);

        if (r->send->session == e->session && r->send->entity == e->entity &&
            r->send->seq == e->seq) {
            return r;
        }
    }
    return NULL;
}

static void on_send(struct judge *c)
{
    const struct history_event *e = c->now;

    if (request_of(c, e) != NULL) {
        return; // a further copy
    }
    struct judged_request *r = mem_new(1, sizeof *r);
    r->send = e;
    table_put(&c->request, &r->link, judge_mix(e->session, e->entity, e->seq + 2));
    c->v->requests++;
    c->v->no_reply += e->no_reply;
}

/* "c7's request 12 to ada" */
static const char *request_text(const struct judge *c, char *out, size_t size)
{
    const struct history_event *e = c->now;

    (void)snprintf(out,
                   size,
                   "request %" PRIu64 " of %.40s to %.60s",
                   e->seq,
                   word(c, e->session),
                   word(c, e->entity));
    return out;
}

static void check_request_begins(struct judge *c, const struct judged_request *r, const char *text)
{
    const struct judged_lane *lane = lane_of(c, c->now);
    const bool again = r->runs > 0;

    if (r->answered && (r->code == HISTORY_REJECTED || r->code == HISTORY_NOKIND)) {
        ACCUSE(c,
               RULE_REFUSED_RAN,
               "%s runs, it was answered %s",
               text,
               history_code_name((enum history_code)r->code));
    } else if (r->answered && r->code == HISTORY_OK && !again) {
        ACCUSE(c, RULE_REAL_TIME, "%s runs after it was answered OK", text);
    }
    if (!again && c->now->seq < lane->last && !r->send->idempotent) {
        ACCUSE(c, RULE_ORDER, "%s runs after request %" PRIu64, text, lane->last);
    }
}

void judge_exec_begin(struct judge *c, struct judged_instance *i)
{
    struct judged_request *r = request_of(c, c->now);
    char text[HISTORY_TEXT_SIZE];

    (void)request_text(c, text, sizeof text);
    judge_check_actor(c);
    if (i->life != LIFE_LIVE) {
        static const char *const names[] = {"is not", "is", "is frozen", "has lost its lease"};

        ACCUSE(c, RULE_LIVE_TWICE, "%s runs where its actor %s", text, names[i->life]);
    } else if (i->runs != NULL) {
        ACCUSE(c, RULE_LIVE_TWICE, "%s runs beside another one", text);
    }
    if (r == NULL) {
        ACCUSE(c, RULE_INVENTED, "%s runs, nobody had sent it", text);
        return;
    }
    check_request_begins(c, r, text);
    r->begun++;
    i->runs = r;
}

static void count_run(struct judge *c, struct judged_request *r, const char *text)
{
    struct judged_lane *lane = lane_of(c, c->now);

    r->runs++;
    c->v->runs++;
    c->actor[c->now->entity].effects++;
    c->actor[c->now->entity].losses = c->losses;
    if (r->runs > 1 && !r->send->idempotent) {
        ACCUSE(c, RULE_RUN_TWICE, "%s ran a second time", text);
        if (r->answered && r->code == HISTORY_OK) {
            ACCUSE(c, RULE_DUPLICATED, "%s was answered OK and ran again", text);
        }
    }
    lane->last = c->now->seq > lane->last ? c->now->seq : lane->last;
}

void judge_exec_end(struct judge *c, struct judged_instance *i)
{
    struct judged_request *r = request_of(c, c->now);
    char text[HISTORY_TEXT_SIZE];

    (void)request_text(c, text, sizeof text);
    if (r == NULL) {
        return; // EXEC_BEGIN said so
    }
    if (i->runs != r) {
        ACCUSE(c, RULE_LIVE_TWICE, "%s ends where it did not run", text);
    } else if (i->life == LIFE_OUT) {
        c->v->overruns++;
    } else {
        count_run(c, r, text);
    }
    i->runs = NULL;
}

static void on_answer(struct judge *c)
{
    const struct history_event *e = c->now;
    struct judged_request *r = request_of(c, e);
    char text[HISTORY_TEXT_SIZE];

    (void)request_text(c, text, sizeof text);
    if (r == NULL || r->answered) {
        ACCUSE(c, RULE_INVENTED, "%s is answered, it waited for nothing", text);
        return;
    }
    r->answered = true;
    r->code = e->code;
    c->v->answers[e->code]++;
    const uint64_t waited_us = e->time_us - r->send->time_us;
    if (c->v->waited == NULL || waited_us > c->v->wait_max_us) {
        c->v->wait_max_us = waited_us;
        c->v->waited = r->send;
    }
    if (c->bounds->stall_us != 0 && waited_us > c->bounds->stall_us) {
        ACCUSE(c, RULE_STALL, "%s waited %" PRIu64 " us", text, waited_us);
    }
    if (e->code == HISTORY_OK && r->runs == 0) {
        ACCUSE(c, RULE_LOST, "%s was answered OK and has not run", text);
    } else if (e->code == HISTORY_OK && r->runs > 1 && !r->send->idempotent) {
        ACCUSE(c, RULE_DUPLICATED, "%s was answered OK and ran %u times", text, r->runs);
    } else if ((e->code == HISTORY_REJECTED || e->code == HISTORY_NOKIND) && r->begun > 0) {
        ACCUSE(c,
               RULE_REFUSED_RAN,
               "%s was answered %s and ran",
               text,
               history_code_name((enum history_code)e->code));
    }
}

void judge_client_event(struct judge *c)
{
    struct judged_session *s = &c->session[c->now->session];

    c->v->sessions += !s->known;
    s->known = true;
    if (c->now->type == HISTORY_CLOSE) {
        s->closed = true;
    } else if (c->now->type == HISTORY_SEND) {
        on_send(c);
    } else {
        on_answer(c);
    }
}

/* K9: each request has its answer, or nobody waits for it. Frees them. */
void judge_close_requests(struct judge *c)
{
    struct table_walk walk = {0};

    for (struct table_link *l = table_walk(&c->request, &walk); l != NULL;
         l = table_walk(&c->request, &walk)) {
        struct judged_request *r = CONTAINER_OF(l, struct judged_request, link);
        const struct history_event *e = r->send;

        if (!r->answered && !e->no_reply) {
            if (c->session[e->session].closed || c->process[e->process].dead) {
                c->v->abandoned++;
            } else {
                c->v->open++;
                if (!c->bounds->unfinished) {
                    judge_accuse(c,
                                 e,
                                 RULE_UNANSWERED,
                                 "request %" PRIu64 " of %.40s to %.60s was never answered",
                                 e->seq,
                                 word(c, e->session),
                                 word(c, e->entity));
                }
            }
        }
        mem_free(r);
    }
    table_fini(&c->request);
    walk = (struct table_walk){0};
    for (struct table_link *l = table_walk(&c->lane, &walk); l != NULL;
         l = table_walk(&c->lane, &walk)) {
        mem_free(CONTAINER_OF(l, struct judged_lane, link));
    }
    table_fini(&c->lane);
}

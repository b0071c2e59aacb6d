/* SPDX-License-Identifier: Apache-2.0
 *
 * The judge of histories: one walk over the events in order of time.
 */
#include "sim/history/judge.h"

#include "base/assert.h"
#include "base/list.h"
#include "base/mem.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void judge_accuse(struct judge *c, const struct history_event *e, enum history_rule rule,
                  const char *format, ...)
{
    struct history_verdict *v = c->v;
    va_list args;

    v->broken[rule]++;
    if (v->broken_total++ == 0) {
        v->first.rule = rule;
        v->first.event = e;
        va_start(args, format);
        (void)vsnprintf(v->first.text, sizeof v->first.text, format, args);
        va_end(args);
    }
}

struct fact *fact_of(const struct table *t, uint64_t number)
{
    for (struct table_link *l = table_first(t, table_mix(number)); l != NULL; l = table_same(l)) {
        struct fact *f = CONTAINER_OF(l, struct fact, link);

        if (f->number == number) {
            return f;
        }
    }
    return NULL;
}

static struct fact *fact_put(struct table *t, uint64_t number, uint64_t value)
{
    struct fact *f = mem_new(1, sizeof *f);

    f->number = number;
    f->value = value;
    table_put(t, &f->link, table_mix(number));
    return f;
}

/* ---- agreement and fences: K5, K6 ---- */

static void check_outcome(struct judge *c, bool committed, uint64_t version)
{
    const struct history_event *e = c->now;
    const uint64_t value = committed ? 1 : 2;
    struct fact *f = fact_of(&c->outcome, e->txn);

    if (f == NULL) {
        f = fact_put(&c->outcome, e->txn, value);
    }
    f->more = f->more == 0 ? version : f->more;
    if (f->value != value || (version != 0 && f->more != version)) {
        ACCUSE(c,
               RULE_AGREEMENT,
               "transaction %" PRIu64 " is %s for %s, another had it %s with version %" PRIu64,
               e->txn,
               committed ? "committed" : "aborted",
               word(c, e->process),
               f->value == 1 ? "committed" : "aborted",
               f->more);
    }
}

static void check_digest(struct judge *c)
{
    const struct history_event *e = c->now;
    struct fact *f = fact_of(&c->digest, e->version);

    if (e->digest == 0) {
        return;
    }
    if (f == NULL) {
        (void)fact_put(&c->digest, e->version, e->digest);
    } else if (f->value != e->digest) {
        ACCUSE(c,
               RULE_AGREEMENT,
               "version %" PRIu64 " is %s for %s and %s for another",
               e->version,
               word(c, e->digest),
               word(c, e->process),
               word(c, (uint32_t)f->value));
    }
}

static void on_view(struct judge *c)
{
    struct judged_process *p = &c->process[c->now->process];

    if (c->now->version < p->version) {
        ACCUSE(c,
               RULE_AGREEMENT,
               "%s goes back from version %" PRIu64 " to %" PRIu64,
               word(c, c->now->process),
               p->version,
               c->now->version);
    }
    p->version = c->now->version;
    check_digest(c);
}

static void on_store(struct judge *c)
{
    struct judged_actor *a = &c->actor[c->now->entity];

    if (!c->now->accepted) {
        c->v->refused++;
        return;
    }
    if (c->now->fence < a->stored) {
        ACCUSE(c,
               RULE_FENCED,
               "a store took %s with fence %" PRIu64 " after %" PRIu64,
               word(c, c->now->entity),
               c->now->fence,
               a->stored);
    }
    a->stored = c->now->fence > a->stored ? c->now->fence : a->stored;
}

static void on_lease(struct judge *c)
{
    struct judged_process *p = &c->process[c->now->process];

    p->leased = true;
    p->until_us = c->now->until_us > p->until_us ? c->now->until_us : p->until_us;
}

/* ---- the walk ---- */

static void take_log_event(struct judge *c)
{
    const struct history_event *e = c->now;

    if (e->type == HISTORY_REASSIGN) {
        if (e->inc != 0 && fact_of(&c->over, e->inc) == NULL) {
            (void)fact_put(&c->over, e->inc, e->version);
        }
        check_digest(c);
        c->losses += e->inc != 0;
    } else if (e->type == HISTORY_OUTCOME) {
        check_outcome(c, e->committed, 0);
    } else {
        check_outcome(c, e->type == HISTORY_COMMITTED, e->version);
        check_digest(c);
    }
}

static void take(struct judge *c)
{
    switch ((enum history_event_type)c->now->type) {
    case HISTORY_ACTIVATE:
    case HISTORY_FREEZE:
    case HISTORY_UNFREEZE:
    case HISTORY_STOP:
    case HISTORY_EXEC_BEGIN:
    case HISTORY_EXEC_END:
        judge_actor_event(c);
        return;
    case HISTORY_SEND:
    case HISTORY_ANSWER:
    case HISTORY_CLOSE:
        judge_client_event(c);
        return;
    case HISTORY_COMMITTED:
    case HISTORY_ABORTED:
    case HISTORY_REASSIGN:
    case HISTORY_OUTCOME:
        take_log_event(c);
        return;
    case HISTORY_OUTPUT:
        judge_check_actor(c);
        return;
    case HISTORY_STORE:
        on_store(c);
        return;
    case HISTORY_REGISTERED:
        c->process[c->now->process].inc = c->now->inc;
        c->losses++; // a new incarnation has no actors
        return;
    case HISTORY_LEASE:
        on_lease(c);
        return;
    case HISTORY_CRASH:
        judge_crash(c);
        return;
    case HISTORY_PAUSE:
        c->process[c->now->of].paused = true;
        return;
    case HISTORY_RESUME:
        c->process[c->now->of].paused = false;
        return;
    case HISTORY_VIEW:
        on_view(c);
        return;
    case HISTORY_NOTE:
        return;
    }
}

static void free_facts(struct table *t)
{
    struct table_walk walk = {0};

    for (struct table_link *l = table_walk(t, &walk); l != NULL; l = table_walk(t, &walk)) {
        mem_free(CONTAINER_OF(l, struct fact, link));
    }
    table_fini(t);
}

static int earlier(const void *a, const void *b)
{
    const struct history_event *x = *(struct history_event *const *)a;
    const struct history_event *y = *(struct history_event *const *)b;

    if (x->time_us != y->time_us) {
        return x->time_us < y->time_us ? -1 : 1;
    }
    return x < y ? -1 : x > y; // as read
}

static void put_in_order(struct history_book *b)
{
    mem_free(b->order);
    b->order = mem_new(b->event_count + 1, sizeof(struct history_event *));
    for (size_t i = 0; i < b->event_count; i++) {
        b->order[i] = &b->event[i];
    }
    qsort(b->order, b->event_count, sizeof(struct history_event *), earlier);
}

void history_judge(struct history_book *b, const struct history_bounds *bounds,
                   struct history_verdict *out)
{
    struct judge c = {.book = b, .bounds = bounds, .v = out};
    const size_t words = b->word_count + 1;

    *out = (struct history_verdict){.events = b->event_count, .processes = b->processes};
    put_in_order(b);
    c.actor = mem_new(words, sizeof *c.actor);
    c.process = mem_new(words, sizeof *c.process);
    c.session = mem_new(words, sizeof *c.session);
    for (size_t i = 0; i < b->event_count; i++) {
        c.now = b->order[i];
        take(&c);
    }
    judge_close_requests(&c);
    judge_free_lives(&c);
    free_facts(&c.outcome);
    free_facts(&c.digest);
    free_facts(&c.over);
    mem_free(c.actor);
    mem_free(c.process);
    mem_free(c.session);
}

/* ---- for people ---- */

const char *history_rule_name(enum history_rule rule)
{
    static const char *const names[] = {
#define X(name, checker, text) text,
        HISTORY_RULES(X)
#undef X
    };

    return names[rule];
}

const char *history_rule_checker(enum history_rule rule)
{
    static const char *const names[] = {
#define X(name, checker, text) checker,
        HISTORY_RULES(X)
#undef X
    };

    return names[rule];
}

static bool is_about_the_same(const struct history_event *e, const struct history_event *accused)
{
    return e == accused || (accused->entity != 0 && e->entity == accused->entity) ||
           (accused->entity == 0 && accused->txn != 0 && e->txn == accused->txn) ||
           (accused->version != 0 && accused->entity == 0 && e->version == accused->version) ||
           e->type == HISTORY_CRASH || e->type == HISTORY_PAUSE || e->type == HISTORY_RESUME ||
           e->type == HISTORY_REASSIGN;
}

size_t history_context(const struct history_book *b, const struct history_event *accused,
                       const struct history_event **out, size_t max)
{
    size_t at = 0;
    size_t count = 0;

    while (at < b->event_count && b->order[at] != accused) {
        at++;
    }
    ASSERT(at < b->event_count);
    for (size_t i = at + 1; i-- > 0 && count < max;) {
        if (is_about_the_same(b->order[i], accused)) {
            out[count++] = b->order[i];
        }
    }
    for (size_t i = 0; i < count / 2; i++) {
        const struct history_event *swap = out[i];

        out[i] = out[count - 1 - i];
        out[count - 1 - i] = swap;
    }
    return count;
}

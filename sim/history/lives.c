/* SPDX-License-Identifier: Apache-2.0
 *
 * Actors and where they live: K1, and K6 for what acts.
 *
 * An actor is live from ACTIVATE or UNFREEZE to FREEZE, STOP or its process's
 * CRASH. A process that stands still can write none of these; so when another
 * activates the actor after the lease of the first is over, or while the first
 * is paused, the first one's instance is *out*: it must not begin anything any
 * more. What it had begun may end (lease.on_overrun = gate), with no effect.
 */
#include "sim/history/judge.h"

#include "base/list.h"
#include "base/mem.h"

#include <inttypes.h>

static struct judged_instance *instance_of(struct judge *c, const struct history_event *e)
{
    const uint64_t hash = judge_mix(e->process, e->entity, 1);
    struct judged_instance *i = NULL;

    for (struct table_link *l = table_first(&c->instance, hash); l != NULL; l = table_same(l)) {
        i = CONTAINER_OF(l, struct judged_instance, link);
        if (i->process == e->process && i->entity == e->entity) {
            return i;
        }
    }
    i = mem_new(1, sizeof *i);
    i->process = e->process;
    i->entity = e->entity;
    table_put(&c->instance, &i->link, hash);
    return i;
}

/* It can't have said that it stopped, and may not act any more. */
static bool is_out(const struct judge *c, const struct judged_process *p)
{
    return p->paused || (p->leased && c->now->time_us >= p->until_us);
}

/* K6: nothing of an incarnation that was reassigned. */
static void check_fenced(struct judge *c)
{
    const uint64_t inc = c->process[c->now->process].inc;

    if (inc != 0 && fact_of(&c->over, inc) != NULL) {
        ACCUSE(c,
               RULE_FENCED,
               "%s acts as incarnation %" PRIu64 ", whose vnodes were reassigned",
               word(c, c->now->process),
               inc);
    }
}

static void check_alive(struct judge *c)
{
    if (c->process[c->now->process].dead) {
        ACCUSE(c, RULE_LIVE_TWICE, "%s acts after its crash", word(c, c->now->process));
    }
}

/* What it begins now, it begins under its lease. */
static void check_lease(struct judge *c)
{
    const struct judged_process *p = &c->process[c->now->process];

    if (p->leased && c->now->time_us >= p->until_us) {
        ACCUSE(c,
               RULE_LEASE,
               "%s of %s on %s, %" PRIu64 " us after its lease",
               history_event_name((enum history_event_type)c->now->type),
               word(c, c->now->entity),
               word(c, c->now->process),
               c->now->time_us - p->until_us);
    }
}

void judge_check_actor(struct judge *c)
{
    check_alive(c);
    check_lease(c);
    check_fenced(c);
}

static void begin_life(struct judge *c, struct judged_instance *i)
{
    struct judged_actor *a = &c->actor[i->entity];

    if (a->live != NULL && a->live != i) {
        if (is_out(c, &c->process[a->live->process])) {
            a->live->life = LIFE_OUT;
            c->losses++;
        } else {
            ACCUSE(c,
                   RULE_LIVE_TWICE,
                   "%s begins to live on %s while it lives on %s",
                   word(c, i->entity),
                   word(c, i->process),
                   word(c, a->live->process));
        }
    }
    i->life = LIFE_LIVE;
    i->runs = NULL;
    a->live = i;
    judge_check_actor(c);
}

static void on_activate(struct judge *c, struct judged_instance *i)
{
    const struct history_event *e = c->now;
    struct judged_actor *a = &c->actor[i->entity];

    if (i->life == LIFE_LIVE) {
        ACCUSE(c,
               RULE_LIVE_TWICE,
               "%s is activated a second time on %s",
               word(c, i->entity),
               word(c, i->process));
    }
    if ((e->keys & HISTORY_HAS_FENCE) != 0) {
        if (e->fence < a->token) {
            ACCUSE(c,
                   RULE_FENCED,
                   "%s is activated with fence %" PRIu64 ", it had %" PRIu64,
                   word(c, i->entity),
                   e->fence,
                   a->token);
        }
        a->token = e->fence > a->token ? e->fence : a->token;
    }
    begin_life(c, i);
    if ((e->keys & HISTORY_HAS_EFFECTS) != 0) {
        const bool differs = a->broke ? e->effects > a->effects : e->effects != a->effects;

        if (differs && c->losses == a->losses) {
            ACCUSE(c,
                   RULE_STATE,
                   "%s wakes with %" PRIu64 " effects, it had %" PRIu64,
                   word(c, i->entity),
                   e->effects,
                   a->effects);
        }
        a->effects = e->effects;
        a->losses = c->losses;
        a->broke = false;
    }
    c->v->activations++;
    c->v->moved += a->last != 0 && a->last != i->process;
    a->last = i->process;
}

static void on_unfreeze(struct judge *c, struct judged_instance *i)
{
    if (i->life != LIFE_FROZEN) {
        ACCUSE(c,
               RULE_LIVE_TWICE,
               "%s is unfrozen on %s, where it is not frozen",
               word(c, i->entity),
               word(c, i->process));
    }
    begin_life(c, i);
}

static void end_life(struct judge *c, struct judged_instance *i, enum life life)
{
    struct judged_actor *a = &c->actor[i->entity];

    if (life == LIFE_FROZEN && i->runs != NULL && i->life == LIFE_LIVE) {
        ACCUSE(c,
               RULE_LIVE_TWICE,
               "%s is frozen on %s while it runs a request",
               word(c, i->entity),
               word(c, i->process));
    }
    i->life = life;
    i->runs = NULL;
    a->live = a->live == i ? NULL : a->live;
}

void judge_crash(struct judge *c)
{
    const uint32_t who = c->now->of != 0 ? c->now->of : c->now->process;
    struct table_walk walk = {0};

    for (struct table_link *l = table_walk(&c->instance, &walk); l != NULL;
         l = table_walk(&c->instance, &walk)) {
        struct judged_instance *i = CONTAINER_OF(l, struct judged_instance, link);

        if (i->process == who) {
            end_life(c, i, LIFE_GONE);
        }
    }
    c->process[who].dead = true;
    c->losses++;
    c->v->crashes++;
}

void judge_actor_event(struct judge *c)
{
    struct judged_instance *i = instance_of(c, c->now);

    c->v->entities += !c->actor[i->entity].known;
    c->actor[i->entity].known = true;
    if (c->now->type == HISTORY_ACTIVATE) {
        on_activate(c, i);
    } else if (c->now->type == HISTORY_UNFREEZE) {
        on_unfreeze(c, i);
    } else if (c->now->type == HISTORY_FREEZE) {
        end_life(c, i, LIFE_FROZEN);
    } else if (c->now->type == HISTORY_STOP) {
        end_life(c, i, LIFE_GONE);
        c->actor[i->entity].broke = c->actor[i->entity].broke || c->now->broken;
    } else if (c->now->type == HISTORY_EXEC_BEGIN) {
        judge_exec_begin(c, i);
    } else {
        check_alive(c);
        judge_exec_end(c, i);
    }
}

void judge_free_lives(struct judge *c)
{
    struct table_walk walk = {0};

    for (struct table_link *l = table_walk(&c->instance, &walk); l != NULL;
         l = table_walk(&c->instance, &walk)) {
        mem_free(CONTAINER_OF(l, struct judged_instance, link));
    }
    table_fini(&c->instance);
}

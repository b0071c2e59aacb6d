/* SPDX-License-Identifier: Apache-2.0
 *
 * What is judged of session actors with several clients: by what they hear and do, which is the
 * truth, and by what the devices hear.
 */
#include "sim/players/players.h"

#include <stdio.h>
#include <string.h>

#define UNLESS(f, holds, ...)                                   \
    do {                                                        \
        if (!(holds)) {                                         \
            world_violate(&(f)->world, "session", __VA_ARGS__); \
        }                                                       \
    } while (0)

/* ---- actors ---- */

/* With a connection, as it was told. */
static size_t known_there(const struct session_actor *h)
{
    size_t there = 0;

    for (size_t i = 0; i < h->known_count; i++) {
        there += h->known[i].missed_us == 0;
    }
    return there;
}

/* Somebody has been away for so long that it need not be known any more, by a clock that is up to
 * 6 % fast. */
static bool known_expires(const struct fleet *f, const struct session_actor *h)
{
    bool expires = false;

    for (size_t i = 0; i < h->known_count; i++) {
        const uint64_t away_us = h->known[i].missed_us;

        expires = expires ||
                  (away_us != 0 && f->world.now_us - away_us > session_actor_resume_ms(f, h) * 900);
    }
    return expires;
}

size_t check_known_count(const struct session_actor *h)
{
    size_t stay = 0;

    for (size_t i = 0; i < h->known_count; i++) {
        stay += h->known[i].missed_us == 0 && h->known[i].leaves == KNOWN_STAYS;
    }
    return stay;
}

void check_several_begins(struct fleet *f, struct session_actor *h,
                          const struct known_session *known, size_t known_count, bool has_state)
{
    if (!has_state) {
        h->colds += h->lives > 1; // nothing was there before the first
        h->losses++;
        h->known_count = 0;
        return;
    }
    // It may have been taken for lost with the node that it comes from.
    UNLESS(f,
           h->known_count == 0 || (known_count == h->known_count &&
                                   memcmp(known, h->known, known_count * sizeof *known) == 0),
           "%s begins with %zu clients that are not the %zu it had",
           h->who.id,
           known_count,
           h->known_count);
}

/* Who was sent away gives its place first. */
static bool other_leaves(const struct session_actor *h, const struct known_session *former)
{
    bool leaves = false;

    for (size_t i = 0; i < h->known_count; i++) {
        leaves = leaves || (h->known[i].session != former->session && h->known[i].missed_us == 0 &&
                            h->known[i].leaves != KNOWN_STAYS);
    }
    return leaves && former->leaves == KNOWN_STAYS;
}

void check_known_heard(struct fleet *f, struct session_actor *h, const struct rh_session *e,
                       const struct known_session *had)
{
    const bool there = had != NULL && had->missed_us == 0;
    const size_t count = known_there(h);

    switch ((enum rh_session_type)e->type) {
    case RH_SESSION_BOUND:
        UNLESS(f, !there, "%s: a client is bound twice", h->who.id);
        UNLESS(f, count < SEVERAL_MAX, "%s: one more than %zu are bound", h->who.id, count);
        // One that is away gave its place, had none, or its time is over.
        h->losses += h->known_count >= SEVERAL_MAX || known_expires(f, h);
        h->binds++;
        f->players->total.begun++;
        break;
    case RH_SESSION_REPLACED:
        UNLESS(f, there, "%s: nobody was there to be replaced", h->who.id);
        UNLESS(f,
               had == NULL || !other_leaves(h, had),
               "%s: a client is replaced, and another had been sent away",
               h->who.id);
        check_replaced(f, h);
        break;
    case RH_SESSION_RESUMED:
        if (e->why == RH_RESUMED_CLIENT) {
            // It may be back before anybody noticed that it was gone.
            UNLESS(f, had != NULL, "%s: a client comes back that it does not know", h->who.id);
            f->players->total.resumed++;
            h->binds++; // its connection is the newest
        } else {
            UNLESS(f,
                   !there || h->displaced > 0,
                   "%s: a client begins afresh, and was there",
                   h->who.id);
            UNLESS(f,
                   there || count < SEVERAL_MAX,
                   "%s: one more than %zu are bound",
                   h->who.id,
                   count);
            f->players->total.afresh++;
            h->binds++;
        }
        break;
    case RH_SESSION_LOST:
        UNLESS(f, there, "%s: nobody was there to be lost", h->who.id);
        UNLESS(f,
               e->why != RH_LOST_REBOUND || (had != NULL && had->leaves != KNOWN_STAYS) ||
                   (h->rebinds > 0 && h->colds > 0), // it was begun afresh, and forgot
               "%s: a client was passed on, and was to stay",
               h->who.id);
        break;
    }
}

uint64_t check_known_spell(struct fleet *f, struct session_actor *h, uint64_t session, bool goes_on)
{
    struct sim_players *p = f->players;
    uint64_t at = goes_on ? p->spell_count : 0;

    while (at > 0 &&
           (&p->actor[p->spell[at - 1].actor] != h || p->spell[at - 1].session != session)) {
        at--;
    }
    UNLESS(f, !goes_on || at > 0, "%s: a session goes on that it never had", h->who.id);
    h->spell = at;
    (void)check_spell(f, h, at > 0);
    p->spell[p->spell_count - 1].session = session;
    p->bond[p->spell[p->spell_count - 1].bond - 1].sent_away = false; // who begins afresh forgot
    return p->spell_count;
}

void check_known_leaves(struct fleet *f, const struct known_session *g)
{
    f->players->bond[f->players->spell[g->spell - 1].bond - 1].sent_away = true;
}

/* ---- devices ---- */

/* Its bond is that of the first push that it alone gets: no other device has one of that. */
static void meet(struct fleet *f, struct device *d, const struct rhc_event *e, uint64_t number)
{
    struct sim_players *p = f->players;

    if (number == 0 || number > p->spell_count ||
        &p->actor[p->spell[number - 1].actor] != d->actor) {
        world_violate(
            &f->world, "session", "device %zu gets a push that nobody made it", d->number);
        return;
    }
    const uint64_t bond = p->spell[number - 1].bond;
    struct push_bond *b = &p->bond[bond - 1];

    UNLESS(f,
           b->device == NULL || b->device == d,
           "device %zu of %s gets push %llu, of the session of device %zu",
           d->number,
           d->actor->who.id,
           (unsigned long long)e->sequence,
           b->device == NULL ? 0 : b->device->number);
    UNLESS(f,
           d->bond == 0 || d->bond == bond,
           "device %zu of %s gets push %llu of another session",
           d->number,
           d->actor->who.id,
           (unsigned long long)e->sequence);
    b->device = d;
    d->bond = bond;
}

void check_known_push(struct fleet *f, struct device *d, const struct rhc_event *e)
{
    uint64_t head[2] = {0};

    if (e->payload.size >= sizeof head) {
        memcpy(head, e->payload.data, sizeof head);
    }
    if (head[0] != TO_ALL_MARK) {
        meet(f, d, e, head[0]);
    }
    if (f->world.checker != NULL || d->bond == 0) {
        return; // in front of what tells its bond stands what was lost, or was for all
    }
    const struct push_bond *b = &f->players->bond[d->bond - 1];
    const uint64_t spell = head[0] == TO_ALL_MARK ? 0 : head[0];
    const uint64_t own = head[0] == TO_ALL_MARK ? TO_ALL_MARK | head[1] : head[1];
    const bool known = e->sequence <= b->count;
    const struct push_made *made = known ? &b->push[e->sequence - 1] : NULL;

    UNLESS(f,
           known && made->own == own && (spell == 0 || made->spell == spell),
           "device %zu of %s gets push %llx of spell %llu as number %llu, which is another",
           d->number,
           d->actor->who.id,
           (unsigned long long)own,
           (unsigned long long)spell,
           (unsigned long long)e->sequence);
}

const char *check_known_waits(const struct fleet *f, const struct device *d)
{
    return d->bond == 0 || d->seen != f->players->bond[d->bond - 1].count ? "has not all pushes"
                                                                          : NULL;
}

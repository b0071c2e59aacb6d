/* SPDX-License-Identifier: Apache-2.0
 *
 * What is judged of sessions: by what session actors hear and do, which is the truth, and
 * by what devices hear.
 */
#include "base/mem.h"
#include "gateway/client/pushes.h"
#include "sim/players/players.h"

#include <stdio.h>
#include <string.h>

#define UNLESS(f, holds, ...)                                   \
    do {                                                        \
        if (!(holds)) {                                         \
            world_violate(&(f)->world, "session", __VA_ARGS__); \
        }                                                       \
    } while (0)

static struct spell *spell_at(const struct fleet *f, uint64_t number)
{
    return &f->players->spell[number - 1];
}

static struct push_bond *bond_at(const struct fleet *f, uint64_t number)
{
    return &f->players->bond[number - 1];
}

/* ---- session actors ---- */

void check_session_actor_begins(struct fleet *f, struct session_actor *h, const struct sim_node *n,
                                bool has_state, uint64_t spell, uint64_t made)
{
    if (!has_state) {
        h->colds += h->lives > 1; // nothing was there before the first
        h->losses++;
        h->client = CLIENT_NONE;
        h->fresh = true;
        h->away_us = 0;
        return;
    }
    UNLESS(f,
           spell == (h->fresh ? 0 : h->spell) && (spell == 0 || made == spell_at(f, spell)->made),
           "%s begins on %s with push %llu of spell %llu, it was at spell %llu",
           h->who.id,
           n->process.name,
           (unsigned long long)made,
           (unsigned long long)spell,
           (unsigned long long)h->spell);
}

/* A gateway that was away for 5 s is missed, and its clients are in nobody's way. */
static bool may_miss_gateways(const struct fleet *f)
{
    return f->gateway_crashes + f->cuts + f->pauses > 0;
}

/* What is due there waits for the next look, or stands behind what runs. */
enum { RETURN_US = 500000, TURN_US = 250000 };

void check_timer(struct fleet *f, const struct session_actor *h, const struct sim_node *n,
                 uint64_t due_us)
{
    const uint64_t idle_us = sim_runtime_idle_us(n);
    const uint64_t from_us = h->thawed_us > idle_us ? h->thawed_us : idle_us;

    UNLESS(f,
           due_us == 0 || due_us > h->thawed_us ||
               f->world.now_us <
                   (from_us > n->process.awake_us ? from_us : n->process.awake_us) + TURN_US,
           "%s: its timer was due %llu ms ago, and it is thawed since %llu ms",
           h->who.id,
           (unsigned long long)(f->world.now_us - due_us) / 1000,
           (unsigned long long)(f->world.now_us - h->thawed_us) / 1000);
}

void check_heard(struct fleet *f, struct session_actor *h, const struct rh_session *e, int client,
                 bool again)
{
    const uint64_t away_us = h->away_us == 0 ? 0 : f->world.now_us - h->away_us;
    const bool back = e->type == RH_SESSION_RESUMED && e->why == RH_RESUMED_CLIENT;

    // Nobody may return to one that was away for so long; clocks are up to 6 % fast.
    h->losses += away_us > session_actor_resume_ms(f, h) * 900;
    switch ((enum rh_session_type)e->type) {
    case RH_SESSION_BOUND:
        UNLESS(f, client != CLIENT_THERE, "%s: two are bound", h->who.id);
        h->displaced += client == CLIENT_AWAY;
        h->binds++;
        f->players->total.begun++;
        break;
    case RH_SESSION_REPLACED:
        UNLESS(f, client == CLIENT_THERE, "%s: nobody was there to be replaced", h->who.id);
        // By its own connection, too: that may not know that it was bound, and begin anew.
        UNLESS(f,
               !h->rejects || e->former == e->session || h->colds > 0 || h->kicks > 0 ||
                   h->ends > 0 || may_miss_gateways(f),
               "%s: the client that was there was to stay",
               h->who.id);
        check_replaced(f, h);
        break;
    case RH_SESSION_RESUMED:
        UNLESS(f, !back || client != CLIENT_NONE, "%s: nobody was there to come back", h->who.id);
        // One that is away is in nobody's way: who was replaced before and was not told may ask
        // again.
        UNLESS(f,
               back || again || client == CLIENT_NONE || h->colds > 0 ||
                   (client == CLIENT_AWAY && h->displaced > 0),
               "%s: its client begins afresh, and was there",
               h->who.id);
        UNLESS(f,
               !back || h->missed_us == 0 || f->profile == PROFILE_CLOCKS ||
                   f->world.now_us - h->missed_us <=
                       session_actor_resume_ms(f, h) * 1070 + RETURN_US,
               "%s: its client comes back %llu ms after it was missed",
               h->who.id,
               (unsigned long long)(f->world.now_us - h->missed_us) / 1000);
        f->players->total.resumed += back;
        f->players->total.afresh += !back;
        h->binds += !back;
        break;
    case RH_SESSION_LOST:
        UNLESS(f, client == CLIENT_THERE, "%s: nobody was there to be lost", h->who.id);
        break;
    }
}

/* Of two clients that both say that they were bound the later one stays, by these. */
void check_bond(struct fleet *f, struct session_actor *h, const struct sim_node *n,
                struct bond_stamp stamp)
{
    UNLESS(f,
           bond_stamp_before(h->stamp, stamp) || f->profile == PROFILE_CLOCKS ||
               past_doubts(f, n->incarnation),
           "%s: a bond of %s counts as older than one that was there before it",
           h->who.id,
           n->process.name);
    h->stamp = stamp;
}

static uint64_t bond_new(struct sim_players *p)
{
    if (p->bond_count == p->bond_cap) {
        p->bond_cap = p->bond_cap == 0 ? 64 : 2 * p->bond_cap;
        p->bond = mem_resize(p->bond, p->bond_cap * sizeof *p->bond);
    }
    p->bond[p->bond_count++] = (struct push_bond){0};
    return p->bond_count;
}

uint64_t check_spell(struct fleet *f, struct session_actor *h, bool goes_on)
{
    struct sim_players *p = f->players;

    if (p->spell_count == p->spell_cap) {
        p->spell_cap = p->spell_cap == 0 ? 64 : 2 * p->spell_cap;
        p->spell = mem_resize(p->spell, p->spell_cap * sizeof *p->spell);
    }
    p->spell[p->spell_count++] =
        (struct spell){.actor = (size_t)(h - p->actor),
                       .bond = goes_on && h->spell != 0 ? spell_at(f, h->spell)->bond : bond_new(p),
                       .losses = h->losses};
    h->spell = p->spell_count;
    h->fresh = false;
    return h->spell;
}

struct place check_pushed(struct fleet *f, struct pushed push)
{
    struct spell *s = push.spell == 0 ? NULL : spell_at(f, push.spell);

    const bool counts = push.own != 0 && (push.own & TO_ALL_MARK) == 0;

    if (s == NULL || (counts && push.own != s->made + 1)) {
        world_violate(&f->world,
                      "session",
                      "push %llu of a spell was made twice, or to nobody",
                      (unsigned long long)push.own);
        return (struct place){0};
    }
    struct push_bond *b = bond_at(f, s->bond);
    const uint64_t before = b->count == 0 ? 0 : b->push[b->count - 1].upto;

    if (b->count == b->cap) {
        b->cap = b->cap == 0 ? 64 : 2 * b->cap;
        b->push = mem_resize(b->push, b->cap * sizeof *b->push);
    }
    b->push[b->count++] = (struct push_made){.spell = push.spell,
                                             .own = push.own,
                                             .upto = before + 4 + push.size,
                                             .made_us = f->world.now_us};
    s->made += counts;
    return (struct place){s->bond, push.spell, b->count};
}

/* ---- requests ---- */

void check_player_run(struct fleet *f, const struct session_actor *h, uint64_t number)
{
    struct sim_players *p = f->players;

    if (number == 0 || number > p->ask_count) {
        world_violate(&f->world, "session", "%s is asked what nobody asked", h->who.id);
        return;
    }
    struct player_ask *a = &p->ask[number - 1];
    struct device *d = &p->device[a->device];

    TRACE(&f->world,
          h->who.id,
          "runs request %llu of device %zu",
          (unsigned long long)number,
          d->number);
    UNLESS(f, a->actor == h, "%s runs a request that was not for it", h->who.id);
    UNLESS(f, ++a->runs == 1, "request %llu of a player ran twice", (unsigned long long)number);
    UNLESS(f,
           !a->never,
           "request %llu of a player was answered that it did not run, and ran",
           (unsigned long long)number);
    UNLESS(f,
           number > d->ran || a->answered || number <= d->unordered,
           "request %llu of a player ran behind %llu",
           (unsigned long long)number,
           (unsigned long long)d->ran);
    d->ran = number > d->ran ? number : d->ran;
}

static bool is_never(unsigned status)
{
    return status == RHC_MOVING || status == RHC_OVERLOADED || status == RHC_NO_OWNER ||
           status == RHC_QUARANTINED || status == RHC_REJECTED || status == RHC_BAD_REQUEST ||
           status == RHC_UNAUTHORIZED || status == RHC_RATE_LIMITED;
}

static void on_response(struct fleet *f, struct device *d, const struct rhc_event *e)
{
    const uint64_t number = (uint64_t)(uintptr_t)e->context;
    struct player_ask *a = &f->players->ask[number - 1];
    uint64_t echo = 0;

    UNLESS(f, !a->answered, "request %llu is answered twice", (unsigned long long)number);
    a->answered = true;
    a->never = is_never(e->status);
    d->open--;
    if (e->status == RHC_OK) {
        UNLESS(f,
               e->payload.size == sizeof echo &&
                   memcmp(e->payload.data, &number, sizeof number) == 0,
               "request %llu got the answer of another",
               (unsigned long long)number);
    }
    UNLESS(f,
           (e->status != RHC_OK && e->status != RHC_ACTOR_FAILED) || a->runs == 1,
           "request %llu is answered and did not run",
           (unsigned long long)number);
    UNLESS(f,
           !a->never || a->runs == 0,
           "request %llu ran and is answered %s",
           (unsigned long long)number,
           rhc_status_name(e->status));
    // An actor may be asked more than it can do. Who returns asks again what its gateway gave up,
    // if the line took that TIMEOUT along. Later ones have run since: the owner can't say any more.
    const bool over = (e->status == RHC_TIMEOUT || e->status == RHC_UNKNOWN) &&
                      f->world.now_us >= a->asked_us + (uint64_t)f->deadline_ms * 1000;
    if (f->profile == PROFILE_CALM && e->status != RHC_OK && e->status != RHC_ACTOR_FAILED &&
        !over) {
        d->blamed = number;
    }
}

/* What it hears next tells whether its session was over: who was kicked, or is bound afresh, for
 * which on_bound() wants a reason. That ends what it had asked. */
static void judge_blamed(struct fleet *f, struct device *d, const struct rhc_event *e)
{
    UNLESS(f,
           d->blamed == 0 || e->type == RHC_EVENT_RESPONSE || e->type == RHC_EVENT_KICKED ||
               (e->type == RHC_EVENT_BOUND && e->fresh != 0),
           "request %llu has no answer for no reason",
           (unsigned long long)d->blamed);
    d->blamed = e->type == RHC_EVENT_RESPONSE ? d->blamed : 0;
}

/* ---- pushes ---- */

/* May push `at` of a bond not come any more? It was let go, in front of so many bytes that it has
 * by now, or its gateway has waited for it for long; clocks are up to 6 % fast. */
static bool may_be_lost(const struct fleet *f, const struct push_bond *b, uint64_t at)
{
    return at <= b->count &&
           (b->push[b->count - 1].upto - (at < 2 ? 0 : b->push[at - 2].upto) > BOND_UNACKED_MAX ||
            f->world.now_us - b->push[at - 1].made_us > PUSHES_GAP_US * UINT64_C(9) / 10);
}

/* Where its actor made it. */
static struct place place_of(struct fleet *f, struct device *d, const struct rhc_event *e)
{
    uint64_t head[2] = {0};

    if (e->payload.size >= sizeof head) {
        memcpy(head, e->payload.data, sizeof head);
    }
    if (head[0] == BROADCAST_MARK) {
        return check_broadcast_push(f, d, head[1]);
    }
    if (head[0] == 0 || head[0] > f->players->spell_count) {
        world_violate(&f->world, "session", "a push that nobody made");
        return (struct place){0};
    }
    const struct push_bond *b = bond_at(f, spell_at(f, head[0])->bond);
    const struct place place = {spell_at(f, head[0])->bond, head[0], e->sequence};

    UNLESS(f,
           place.at <= b->count && b->push[place.at - 1].spell == head[0] &&
               b->push[place.at - 1].own == head[1],
           "device %zu of %s gets push %llu of spell %llu as number %llu, which is another",
           d->number,
           d->actor->who.id,
           (unsigned long long)head[1],
           (unsigned long long)head[0],
           (unsigned long long)e->sequence);
    return place;
}

static void on_push(struct fleet *f, struct device *d, const struct rhc_event *e)
{
    UNLESS(f, d->keeps, "a push to a client that is not bound");
    UNLESS(f,
           e->sequence == d->seen + 1 + e->lost,
           "device %zu of %s gets push %llu behind %llu",
           d->number,
           d->actor->who.id,
           (unsigned long long)e->sequence,
           (unsigned long long)d->seen);
    d->seen = e->sequence;
    f->players->total.pushes++;
    f->players->total.lost += e->lost;
    if (d->actor->several) {
        check_known_push(f, d, e);
        UNLESS(f,
               e->lost == 0 || d->bond == 0 || f->world.checker != NULL ||
                   may_be_lost(f, bond_at(f, d->bond), e->sequence - 1),
               "device %zu of %s lost %llu pushes in front of %llu for no reason",
               d->number,
               d->actor->who.id,
               (unsigned long long)e->lost,
               (unsigned long long)e->sequence);
        return;
    }
    const struct place place = place_of(f, d, e);

    if (f->world.checker != NULL) {
        return;
    }
    if (place.spell == 0) {
        world_violate(&f->world, "session", "a push that was made to nobody");
        return;
    }
    const struct spell *s = spell_at(f, place.spell);

    UNLESS(f,
           &f->players->actor[s->actor] == d->actor && place.spell > d->old &&
               (d->spell == 0 || spell_at(f, d->spell)->bond == place.bond),
           "device %zu of %s gets a push of another session: of spell %llu, its own is %llu",
           d->number,
           d->actor->who.id,
           (unsigned long long)place.spell,
           (unsigned long long)d->spell);
    UNLESS(f,
           place.at == e->sequence,
           "device %zu of %s gets push %llu of its bond as number %llu",
           d->number,
           d->actor->who.id,
           (unsigned long long)place.at,
           (unsigned long long)e->sequence);
    if (f->world.checker != NULL) {
        return;
    }
    UNLESS(f,
           e->lost == 0 || may_be_lost(f, bond_at(f, place.bond), e->sequence - 1),
           "device %zu of %s lost %llu pushes in front of %llu for no reason",
           d->number,
           d->actor->who.id,
           (unsigned long long)e->lost,
           (unsigned long long)e->sequence);
    d->losses = d->spell != place.spell && s->losses > d->losses ? s->losses : d->losses;
    d->spell = place.spell;
}

/* ---- sessions ---- */

uint64_t check_rivals(const struct fleet *f, const struct device *d)
{
    uint64_t dials = 0;

    for (size_t i = 0; i < f->players->devices; i++) {
        const struct device *other = &f->players->device[i];

        dials += other != d && other->actor == d->actor ? other->dials : 0;
    }
    return dials;
}

/* With several: its actor told it to go, and a broken link lost that. Then any other one takes its
 * place. Whose bond it is tells only a push. */
static bool was_sent_away(const struct fleet *f, const struct device *d)
{
    return d->bond != 0 ? bond_at(f, d->bond)->sent_away : d->actor->kicks + d->actor->rebinds > 0;
}

/* Since it went to be bound, another one was: the other device, or it itself, by a bind that came
 * late, behind a newer one; a resume that does takes nobody's place. Or its actor was begun cold,
 * and forgot who that was; or took back one that it had forgotten. With several, a place is given
 * by who was sent away, or else has it for longest: by then all others have come since, and one
 * more. */
static bool was_replaced(const struct fleet *f, const struct device *d)
{
    const uint64_t others = d->actor->several && !was_sent_away(f, d) ? SEVERAL_MAX : 1;

    return session_actor_turns(d->actor) > (d->keeps ? d->turns : d->stood.turns) + others;
}

/* Somebody else may be bound: another device, or a line of its own that it has left, and whose
 * gateway does not know yet. */
static bool has_rival(const struct fleet *f, const struct device *d)
{
    return check_rivals(f, d) > 0 || d->dials > 1;
}

static void on_bound(struct fleet *f, struct device *d, bool fresh)
{
    UNLESS(f, fresh || d->keeps, "device %zu resumed what it has not", d->number);
    d->bound = true;
    if (!fresh) {
        d->turns = d->actor->several ? d->stood.turns : d->turns;
        return;
    }
    UNLESS(f,
           !d->keeps || d->losses != d->actor->losses || d->rivals != check_rivals(f, d) ||
               (d->actor->several && was_replaced(f, d)),
           "device %zu: its session of %s is gone, and nothing happened",
           d->number,
           d->actor->who.id);
    d->keeps = true;
    d->losses = d->stood.losses;
    d->rivals = d->stood.rivals;
    d->turns = d->stood.turns;
    d->old = d->stood.spell > d->old ? d->stood.spell : d->old;
    d->spell = 0;
    d->bond = 0;
    d->seen = 0;
}

static void on_begun(struct fleet *f, struct device *d)
{
    UNLESS(f,
           d->losses != d->actor->losses,
           "device %zu: %s was begun afresh, and was not",
           d->number,
           d->actor->who.id);
    d->old = d->spell > d->old ? d->spell : d->old;
    d->spell = 0;
    d->bond = 0;
    d->seen = 0;
}

/* It plays the one whom its actor named, and begins there afresh. */
static void on_rebound(struct fleet *f, struct device *d, const struct rhc_event *e)
{
    UNLESS(f, d->actor->rebinds > 0, "%s passed nobody on", d->actor->who.id);
    d->actor = session_actor_named(f, bytes_of(e->payload.data, e->payload.size));
    d->bound = d->keeps = false;
    d->unordered = f->players->ask_count;
    d->spell = d->bond = d->seen = 0;
}

static bool may_kick(const struct fleet *f, const struct device *d, uint32_t code)
{
    const struct session_actor *h = d->actor;

    switch (code) {
    case RH_KICK_REPLACED:
        return was_replaced(f, d);
    case RH_KICK_REFUSED: // it was told to go before, and did not hear
        return h->kicks + h->ends > 0;
    case RH_KICK_ENDED:
        return h->ends > 0;
    case RH_KICK_GAME:
        return h->kicks > 0;
    default:
        return false;
    }
}

static bool is_taken(const struct rhc_event *e)
{
    static const char taken[] = "TAKEN";

    return e->status == RHC_REJECTED && e->payload.size >= sizeof taken - 1 &&
           memcmp(e->payload.data, taken, sizeof taken - 1) == 0;
}

void check_player_event(struct fleet *f, struct device *d, const struct rhc_event *e)
{
    judge_blamed(f, d, e);
    switch (e->type) {
    case RHC_EVENT_RESPONSE:
        on_response(f, d, e);
        break;
    case RHC_EVENT_PUSH:
        on_push(f, d, e);
        break;
    case RHC_EVENT_BOUND:
        on_bound(f, d, e->fresh != 0);
        break;
    case RHC_EVENT_BEGUN:
        on_begun(f, d);
        break;
    case RHC_EVENT_REFUSED:
        UNLESS(f,
               e->status != RHC_REJECTED || (d->actor->rejects && has_rival(f, d)),
               "device %zu is refused by %s: %.*s",
               d->number,
               d->actor->who.id,
               (int)e->payload.size,
               (const char *)e->payload.data);
        // Who has no connection is in nobody's way.
        UNLESS(f,
               !is_taken(e) || d->actor->client != CLIENT_AWAY || d->actor->missed_us > d->asks_us,
               "device %zu is refused by %s, whose client was away all the while: %.*s",
               d->number,
               d->actor->who.id,
               (int)e->payload.size,
               (const char *)e->payload.data);
        d->bound = d->keeps = false;
        f->players->total.refused++;
        break;
    case RHC_EVENT_KICKED:
        UNLESS(f,
               may_kick(f, d, e->code),
               "device %zu is kicked by %s for no reason: %u %.*s",
               d->number,
               d->actor->who.id,
               e->code,
               (int)e->payload.size,
               (const char *)e->payload.data);
        d->bound = d->keeps = false;
        break;
    case RHC_EVENT_LOST:
        d->bound = false;
        d->unordered = d->leaves ? f->players->ask_count : d->unordered;
        d->leaves = false;
        break;
    case RHC_EVENT_GOAWAY: // what it answers with MOVING goes to the next one, behind others
        d->leaves = true;
        break;
    case RHC_EVENT_UNBOUND: // a kick of that session may come behind it
        d->stood.turns = d->keeps ? d->turns : d->stood.turns;
        d->bound = d->keeps = false;
        break;
    case RHC_EVENT_REBOUND:
        on_rebound(f, d, e);
        break;
    case RHC_EVENT_READY:
    case RHC_EVENT_KNOWN:
        break;
    }
}

/* ---- when all is quiet ---- */

static char waits_for[WORLD_LINE_MAX];

static const char *device_waits(const struct fleet *f, const struct device *d)
{
    const struct session_actor *h = d->actor;
    const struct spell *s = h->spell == 0 ? NULL : spell_at(f, h->spell);
    const char *what = NULL;

    if (rhc_state(d->rhc) == RHC_ENDED || d->begin_us != 0 || d->refused) {
        return d->open == 0 ? NULL : "has asked, and ended";
    }
    if (d->blamed != 0) {
        return "has lost a request";
    }
    if (!d->bound) {
        what = "is not bound";
    } else if (d->open > 0) {
        what = "has no answer";
    } else if (h->several) {
        what = check_known_waits(f, d);
    } else if (s == NULL || d->spell != h->spell || d->seen != bond_at(f, s->bond)->count) {
        what = "has not all pushes";
    }
    return what;
}

const char *sim_players_wait(struct fleet *f)
{
    const uint64_t missed = f->players == NULL ? 0 : check_broadcast_missed(f);

    if (missed != 0) {
        (void)snprintf(waits_for,
                       sizeof waits_for,
                       "broadcast %llu has not reached all members",
                       (unsigned long long)missed);
        return waits_for;
    }
    for (size_t i = 0; f->players != NULL && i < f->players->actors; i++) {
        const struct session_actor *h = &f->players->actor[i];
        const size_t clients = h->several ? check_known_count(h) : h->client == CLIENT_THERE;
        size_t bound = 0;

        for (size_t k = 0; k < f->players->devices; k++) {
            const struct device *d = &f->players->device[k];
            const char *what = d->actor == h ? device_waits(f, d) : NULL;

            if (what != NULL) {
                (void)snprintf(waits_for,
                               sizeof waits_for,
                               "device %zu of %s %s (spell %llu, %llu seen)",
                               k,
                               h->who.id,
                               what,
                               (unsigned long long)d->spell,
                               (unsigned long long)d->seen);
                return waits_for;
            }
            bound += d->actor == h && d->bound;
        }
        if (bound != clients) {
            (void)snprintf(waits_for,
                           sizeof waits_for,
                           "%s: %zu devices are bound, and it has %zu clients",
                           h->who.id,
                           bound,
                           clients);
            return waits_for;
        }
    }
    return NULL;
}

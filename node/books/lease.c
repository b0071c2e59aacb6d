/* SPDX-License-Identifier: Apache-2.0
 *
 * The lease's states by the clock, and which grant counts.
 */
#include "node/books/lease.h"

#include "base/machine.h"
#include "base/mutant.h"

#include <string.h>

/* Of D = 3 s: 500, 600, 300, 80 ms. Reassignment waits for D and another D/10 (hole 23): with
 * (D - kill)(1 + r) < D + D/10 the clocks' rates may differ by r = 13 % (hole 27). */
enum { RENEW_PART = 6, SOFT_PART = 5, GATE_PART = 10, KILL_OF_1000 = 27 };

/* Clocks move it, and a turn of the loop may be late: any may follow any. */
enum { ANY = TO(LEASE_NONE) | TO(LEASE_ACTIVE) | TO(LEASE_SOFT) | TO(LEASE_GATED) };
static const struct machine_state states[] = {
    [LEASE_NONE] = {"none", ANY},
    [LEASE_ACTIVE] = {"active", ANY},
    [LEASE_SOFT] = {"soft", ANY},
    [LEASE_GATED] = {"gated", ANY},
};
static const struct machine lease_machine = {"a lease", states};

const char *lease_state_name(enum lease_state state)
{
    return machine_name(&lease_machine, state);
}

void lease_init(struct lease *l, bool serve)
{
    *l = (struct lease){.serve = serve, .state = LEASE_NONE};
}

void lease_forget(struct lease *l)
{
    l->state = LEASE_NONE;
    l->until_us = 0;
    l->over_us = 0;
    l->base = (struct lease_sent){0};
    memset(l->sent, 0, sizeof l->sent);
}

void lease_void(struct lease *l)
{
    const uint64_t kill_us = lease_kill_us(l);

    lease_forget(l);
    l->over_us = kill_us;
}

void lease_start(struct lease *l, uint64_t term_us)
{
    lease_forget(l);
    l->in_force = term_us != 0;
    l->usual_us = term_us;
    l->term_us = term_us;
}

void lease_sent(struct lease *l, uint64_t seq, uint64_t now_us, uint64_t wall_us)
{
    l->sent[seq % LEASE_SENT_MAX] =
        (struct lease_sent){.seq = seq, .at_us = now_us, .wall_us = wall_us};
}

/* The renewal that was granted, if it counts still. */
static const struct lease_sent *granted(struct lease *l, uint64_t seq, uint64_t term_us)
{
    const struct lease_sent *sent = &l->sent[seq % LEASE_SENT_MAX];

    l->in_force = term_us != 0;
    if (!l->in_force) {
        return NULL;
    }
    l->usual_us = l->usual_us == 0 ? term_us : l->usual_us;
    l->term_us = l->term_us == 0 ? term_us : l->term_us;
    return seq != 0 && sent->seq == seq && (seq >= l->base.seq || mutant(M_EARLIERCOUNTS)) ? sent
                                                                                           : NULL;
}

static void take(struct lease *l, const struct lease_sent *sent, uint64_t until_us,
                 uint64_t term_us)
{
    l->until_us = until_us;
    l->term_us = term_us;
    l->base = *sent;
    l->margin_min_us = l->held ? l->margin_min_us : term_us;
    l->held = true;
}

bool lease_grant(struct lease *l, uint64_t seq, uint64_t term_us, uint64_t now_us)
{
    const struct lease_sent *sent = granted(l, seq, term_us);
    const uint64_t from_us = sent == NULL ? 0 : mutant(M_RECV) ? now_us : sent->at_us;

    // By when it would be SOFT: a lease keeps the margins of its own length, and those of a long
    // one are longer than a whole short one.
    if (sent == NULL ||
        from_us + term_us - term_us / SOFT_PART + l->term_us / SOFT_PART <= l->until_us) {
        return false;
    }
    take(l, sent, from_us + term_us, term_us);
    return true;
}

bool lease_replace(struct lease *l, uint64_t seq, uint64_t term_us, uint64_t now_us)
{
    const struct lease_sent *sent = granted(l, seq, term_us);

    if (sent == NULL || now_us >= sent->at_us + term_us - term_us / SOFT_PART) {
        return false;
    }
    take(l, sent, sent->at_us + term_us, term_us);
    return true;
}

/* The two clocks went apart since the renewal that the lease counts from: one of them stood still
 * or was set, and nobody knows which. */
static bool has_jumped(const struct lease *l, uint64_t now_us, uint64_t wall_us)
{
    if (l->until_us == 0 || l->base.wall_us == 0 || wall_us == 0) {
        return false;
    }
    const int64_t boot = (int64_t)(now_us - l->base.at_us);
    const int64_t wall = (int64_t)(wall_us - l->base.wall_us);
    const int64_t apart = boot - wall;

    return apart > LEASE_JUMP_US || apart < -(int64_t)LEASE_JUMP_US;
}

/* The gate closes now. What runs has as long as it always has from there, which is time enough for
 * a renewal: a clock that was set costs one round, no task. */
static void drop(struct lease *l, uint64_t now_us)
{
    const uint64_t soon_us = now_us + l->term_us / GATE_PART;

    l->until_us = l->until_us < soon_us ? l->until_us : soon_us;
    l->base = (struct lease_sent){0};
    memset(l->sent, 0, sizeof l->sent);
    l->jumps++;
}

static enum lease_state state_at(const struct lease *l, uint64_t now_us)
{
    if (now_us < lease_soft_us(l)) {
        return LEASE_ACTIVE;
    }
    if (l->until_us == 0) {
        return LEASE_NONE;
    }
    return now_us < lease_gate_us(l) ? LEASE_SOFT : LEASE_GATED;
}

struct lease_verdict lease_judge(struct lease *l, uint64_t now_us, uint64_t wall_us)
{
    struct lease_verdict v = {.before = l->state};

    if (l->in_force && has_jumped(l, now_us, wall_us)) {
        drop(l, now_us);
        v.jumped = true;
    }
    if (l->in_force && l->until_us != 0) {
        const uint64_t margin_us = lease_margin_us(l, now_us);

        l->margin_min_us = margin_us < l->margin_min_us ? margin_us : l->margin_min_us;
    }
    l->state = v.state = machine_enter(&lease_machine, l->state, state_at(l, now_us));
    if (v.state == LEASE_GATED && v.before != LEASE_GATED) {
        l->gated++;
    }
    return v;
}

static uint64_t before_end(const struct lease *l, uint64_t margin_us)
{
    if (!l->in_force || l->serve) {
        return UINT64_MAX;
    }
    return l->until_us > margin_us ? l->until_us - margin_us : 0;
}

uint64_t lease_soft_us(const struct lease *l)
{
    return before_end(l, l->term_us / (mutant(M_SOFTBEGINS) ? GATE_PART : SOFT_PART));
}

uint64_t lease_gate_us(const struct lease *l)
{
    return before_end(l, mutant(M_LATEGATE) ? 0 : l->term_us / GATE_PART);
}

uint64_t lease_kill_us(const struct lease *l)
{
    if (l->in_force && !l->serve && l->until_us == 0) {
        return l->over_us;
    }
    return before_end(l, l->term_us * KILL_OF_1000 / 1000);
}

uint64_t lease_renew_every_us(const struct lease *l, uint64_t most_us)
{
    const uint64_t part_us = l->term_us / RENEW_PART;
    uint64_t every_us = most_us;

    if (l->in_force) {
        every_us = part_us < every_us ? part_us : every_us;
        if (l->state != LEASE_ACTIVE && every_us > LEASE_HURRY_US) {
            every_us = LEASE_HURRY_US;
        }
    }
    return every_us;
}

uint64_t lease_margin_us(const struct lease *l, uint64_t now_us)
{
    return l->in_force && l->until_us > now_us ? l->until_us - now_us : 0;
}

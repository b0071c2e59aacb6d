/* SPDX-License-Identifier: Apache-2.0
 *
 * Session actors with groups: each has one of either kind, whose actors tell it that
 * they join or leave, and pushes to the clients of all of them at once.
 *
 *     a push to a group: | BROADCAST_MARK u64 | number of the broadcast u64 | filler |
 *     a message of an actor: | 0 u64 | enum group_message u64 | number u64 |
 */
#include "base/assert.h"
#include "sim/players/players.h"

#include <string.h>

enum group_message { GROUP_JOIN, GROUP_LEAVE, GROUP_BEHIND };

static uint16_t kind_at(size_t i)
{
    return i == 0 ? FLEET_KIND_SESSION : FLEET_KIND_REJECTING;
}

static struct rh_bytes name_of(const struct session_actor *h)
{
    return (struct rh_bytes){h->who.id, h->who.id_size};
}

/* ---- life ---- */

void group_actor_open(struct group_actor *r)
{
    for (size_t i = 0; i < ACTOR_GROUPS; i++) {
        r->group[i] = rh_group_new(kind_at(i), SESSION_ACTORS);
    }
}

void group_actor_close(struct group_actor *r)
{
    for (size_t i = 0; i < ACTOR_GROUPS; i++) {
        rh_group_free(r->group[i]);
        r->group[i] = NULL;
    }
}

void group_actor_save(const struct group_actor *r, struct rh_out *out)
{
    rh_out_put(out, &r->members, sizeof r->members);
    for (size_t i = 0; i < ACTOR_GROUPS; i++) {
        rh_group_save(r->group[i], out);
    }
}

void group_actor_load(struct group_actor *r, struct rh_bytes state)
{
    ASSERT(state.size >= sizeof r->members);
    memcpy(&r->members, state.data, sizeof r->members);
    state = (struct rh_bytes){(const uint8_t *)state.data + sizeof r->members,
                              state.size - sizeof r->members};
    for (size_t i = 0; i < ACTOR_GROUPS; i++) {
        r->group[i] = rh_group_load(&state);
        ASSERT(r->group[i] != NULL);
    }
    ASSERT(state.size == 0);
}

/* ---- what it hears ---- */

static void on_join(struct fleet *f, struct group_actor *r, size_t number)
{
    const struct session_actor *h = &f->players->actor[number];

    r->members |= UINT64_C(1) << number;
    if (rh_group_join(r->group[number % ACTOR_GROUPS], name_of(h)) != RH_OK) {
        world_violate(&f->world, "session", "%s may not join a group", h->who.id);
    }
}

static void on_leave(struct fleet *f, struct group_actor *r, size_t number)
{
    const struct session_actor *h = &f->players->actor[number];
    const bool was = (r->members >> number & 1) != 0;
    const int left = rh_group_leave(r->group[number % ACTOR_GROUPS], name_of(h));

    r->members &= ~(UINT64_C(1) << number);
    if (left != (was ? RH_OK : RH_GONE)) {
        world_violate(&f->world, "session", "%s may not leave its group", h->who.id);
    }
}

void group_actor_hears(struct fleet *f, struct session_actor *h, struct group_actor *r,
                       struct rh_bytes payload)
{
    uint64_t word[3];

    ASSERT(payload.size == sizeof word);
    memcpy(word, payload.data, sizeof word);
    switch ((enum group_message)word[1]) {
    case GROUP_JOIN:
        on_join(f, r, word[2]);
        break;
    case GROUP_LEAVE:
        on_leave(f, r, word[2]);
        break;
    case GROUP_BEHIND:
        check_behind(f, h, word[2]);
        break;
    }
}

/* ---- what it does ---- */

static void tell(struct rh_actor *actor, const struct session_actor *to, enum group_message what,
                 uint64_t number)
{
    const uint64_t word[3] = {0, what, number};

    (void)rh_send(actor, to->who.kind, name_of(to), (struct rh_bytes){word, sizeof word});
}

/* Some member is told of it in a message, which must come behind the push. */
void group_actor_broadcasts(struct rh_actor *actor, struct fleet *f, const struct session_actor *h,
                            const struct group_actor *r)
{
    static const uint8_t filler[FILLER_MAX];
    const size_t size = sim_players_chance(f, 50) ? sim_players_between(f, 1000, FILLER_MAX)
                                                  : sim_players_between(f, 0, 40);

    for (size_t i = 0; i < ACTOR_GROUPS; i++) {
        const uint64_t head[2] = {BROADCAST_MARK, check_broadcast(f, h, r->members, i)};
        struct buffer payload = {0};

        buffer_put(&payload, head, sizeof head);
        buffer_put(&payload, filler, size);
        if (rh_group_push(actor, r->group[i], (struct rh_bytes){payload.data, payload.size}) !=
            RH_OK) {
            world_violate(&f->world, "session", "%s may not push to its group", h->who.id);
        }
        buffer_fini(&payload);
        for (size_t m = i; m < SESSION_ACTORS; m += ACTOR_GROUPS) {
            if ((r->members >> m & 1) != 0 && sim_players_chance(f, 300)) {
                tell(actor, &f->players->actor[m], GROUP_BEHIND, head[1]);
            }
        }
    }
}

void group_actor_acts(struct rh_actor *actor, struct fleet *f, const struct session_actor *h,
                      const struct group_actor *r)
{
    struct sim_players *p = f->players;
    const struct session_actor *to = &p->actor[sim_players_between(f, 0, SESSION_ACTORS - 1)];

    if (sim_players_chance(f, p->joins_pm)) {
        tell(actor,
             to,
             sim_players_chance(f, 600) ? GROUP_JOIN : GROUP_LEAVE,
             (uint64_t)(h - p->actor));
    }
    if (sim_players_chance(f, p->broadcasts_pm)) {
        group_actor_broadcasts(actor, f, h, r);
    }
}

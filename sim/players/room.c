/* SPDX-License-Identifier: Apache-2.0
 *
 * Heroes as rooms: each has a group of either kind of heroes, who tell it that
 * they join or leave, and pushes to the clients of all of them at once.
 *
 *     a push to a group: | CAST_MARK u64 | number of the broadcast u64 | filler |
 *     a message of a hero: | 0 u64 | enum room_message u64 | number u64 |
 */
#include "base/assert.h"
#include "sim/players/players.h"

#include <string.h>

enum room_message { ROOM_JOIN, ROOM_LEAVE, ROOM_BEHIND };

static uint16_t kind_at(size_t i)
{
    return i == 0 ? FLEET_KIND_HERO : FLEET_KIND_LONER;
}

static struct rh_bytes name_of(const struct hero *h)
{
    return (struct rh_bytes){h->who.id, h->who.id_size};
}

/* ---- life ---- */

void room_open(struct room *r)
{
    for (size_t i = 0; i < ROOM_GROUPS; i++) {
        r->group[i] = rh_group_new(kind_at(i), HEROES);
    }
}

void room_close(struct room *r)
{
    for (size_t i = 0; i < ROOM_GROUPS; i++) {
        rh_group_free(r->group[i]);
        r->group[i] = NULL;
    }
}

void room_save(const struct room *r, struct rh_out *out)
{
    rh_out_put(out, &r->members, sizeof r->members);
    for (size_t i = 0; i < ROOM_GROUPS; i++) {
        rh_group_save(r->group[i], out);
    }
}

void room_load(struct room *r, struct rh_bytes state)
{
    ASSERT(state.size >= sizeof r->members);
    memcpy(&r->members, state.data, sizeof r->members);
    state = (struct rh_bytes){(const uint8_t *)state.data + sizeof r->members,
                              state.size - sizeof r->members};
    for (size_t i = 0; i < ROOM_GROUPS; i++) {
        r->group[i] = rh_group_load(&state);
        ASSERT(r->group[i] != NULL);
    }
    ASSERT(state.size == 0);
}

/* ---- what it hears ---- */

static void on_join(struct fleet *f, struct room *r, size_t number)
{
    const struct hero *h = &f->players->hero[number];

    r->members |= UINT64_C(1) << number;
    if (rh_group_join(r->group[number % ROOM_GROUPS], name_of(h)) != RH_OK) {
        world_violate(&f->world, "session", "%s may not join a group", h->who.id);
    }
}

static void on_leave(struct fleet *f, struct room *r, size_t number)
{
    const struct hero *h = &f->players->hero[number];
    const bool was = (r->members >> number & 1) != 0;
    const int left = rh_group_leave(r->group[number % ROOM_GROUPS], name_of(h));

    r->members &= ~(UINT64_C(1) << number);
    if (left != (was ? RH_OK : RH_GONE)) {
        world_violate(&f->world, "session", "%s may not leave its group", h->who.id);
    }
}

void room_hears(struct fleet *f, struct hero *h, struct room *r, struct rh_bytes payload)
{
    uint64_t word[3];

    ASSERT(payload.size == sizeof word);
    memcpy(word, payload.data, sizeof word);
    switch ((enum room_message)word[1]) {
    case ROOM_JOIN:
        on_join(f, r, word[2]);
        break;
    case ROOM_LEAVE:
        on_leave(f, r, word[2]);
        break;
    case ROOM_BEHIND:
        check_behind(f, h, word[2]);
        break;
    }
}

/* ---- what it does ---- */

static void tell(struct rh_actor *actor, const struct hero *to, enum room_message what,
                 uint64_t number)
{
    const uint64_t word[3] = {0, what, number};

    (void)rh_send(actor, to->who.kind, name_of(to), (struct rh_bytes){word, sizeof word});
}

/* Some member is told of it in a message, which must come behind the push. */
void room_casts(struct rh_actor *actor, struct fleet *f, const struct hero *h, const struct room *r)
{
    static const uint8_t filler[FILLER_MAX];
    const size_t size =
        players_chance(f, 50) ? players_between(f, 1000, FILLER_MAX) : players_between(f, 0, 40);

    for (size_t i = 0; i < ROOM_GROUPS; i++) {
        const uint64_t head[2] = {CAST_MARK, check_cast(f, h, r->members, i)};
        struct buffer payload = {0};

        buffer_put(&payload, head, sizeof head);
        buffer_put(&payload, filler, size);
        if (rh_group_push(actor, r->group[i], (struct rh_bytes){payload.data, payload.size}) !=
            RH_OK) {
            world_violate(&f->world, "session", "%s may not push to its group", h->who.id);
        }
        buffer_fini(&payload);
        for (size_t m = i; m < HEROES; m += ROOM_GROUPS) {
            if ((r->members >> m & 1) != 0 && players_chance(f, 300)) {
                tell(actor, &f->players->hero[m], ROOM_BEHIND, head[1]);
            }
        }
    }
}

void room_acts(struct rh_actor *actor, struct fleet *f, const struct hero *h, const struct room *r)
{
    struct players *p = f->players;
    const struct hero *to = &p->hero[players_between(f, 0, HEROES - 1)];

    if (players_chance(f, p->joins_pm)) {
        tell(actor, to, players_chance(f, 600) ? ROOM_JOIN : ROOM_LEAVE, (uint64_t)(h - p->hero));
    }
    if (players_chance(f, p->casts_pm)) {
        room_casts(actor, f, h, r);
    }
}

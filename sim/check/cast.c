/* SPDX-License-Identifier: Apache-2.0
 *
 * What is judged of groups: who is a member when its room pushes gets that at
 * most once, in the order of that room's life, and behind it what the room sent
 * it behind it; nobody else gets it.
 */
#include "base/mem.h"
#include "sim/players/players.h"

static struct cast_made *cast_at(const struct fleet *f, uint64_t number)
{
    return &f->players->cast[number - 1];
}

static uint64_t bit_of(const struct fleet *f, const struct hero *h)
{
    return UINT64_C(1) << (h - f->players->hero);
}

/* Members of the kind that its group number `i` is of. */
static uint64_t of_kind(uint64_t members, size_t i)
{
    uint64_t mask = 0;

    for (size_t m = i; m < HEROES; m += ROOM_GROUPS) {
        mask |= UINT64_C(1) << m;
    }
    return members & mask;
}

uint64_t check_cast(struct fleet *f, const struct hero *room, uint64_t members, size_t i)
{
    struct players *p = f->players;

    if (p->cast_count == p->cast_cap) {
        p->cast_cap = p->cast_cap == 0 ? 64 : 2 * p->cast_cap;
        p->cast = mem_resize(p->cast, p->cast_cap * sizeof *p->cast);
    }
    struct cast_made *c = &p->cast[p->cast_count++];

    *c = (struct cast_made){.room = (size_t)(room - p->hero),
                            .life = room->lives,
                            .members = of_kind(members, i),
                            .losses = room->losses,
                            .reaches_all = f->profile == PROFILE_CALM || f->healed};
    for (size_t m = 0; m < HEROES; m++) {
        c->lost[m] = p->hero[m].client == CLIENT_NONE ? UINT64_MAX : p->hero[m].losses;
    }
    p->total.casts++;
    TRACE(&f->world,
          room->who.id,
          "broadcasts %zu to members %llx",
          p->cast_count,
          (unsigned long long)of_kind(members, i));
    return p->cast_count;
}

uint64_t check_cast_missed(const struct fleet *f)
{
    const struct players *p = f->players;

    for (size_t i = 0; i < p->cast_count; i++) {
        const struct cast_made *c = &p->cast[i];

        // Else who died took what nobody asks for again along.
        const bool judged = c->reaches_all && c->losses == p->hero[c->room].losses;

        for (size_t m = 0; m < HEROES && judged; m++) {
            if ((c->members & ~c->ran) >> m & 1 && c->lost[m] == p->hero[m].losses) {
                return i + 1;
            }
        }
    }
    return 0;
}

/* A number that a broadcast has. */
static bool is_known(struct fleet *f, uint64_t number)
{
    if (number == 0 || number > f->players->cast_count) {
        world_violate(&f->world, "group", "a broadcast that nobody made");
        return false;
    }
    return true;
}

/* Of two that a room made before it was lost, wherever it lived, the later number comes later. */
static bool is_behind(const struct fleet *f, uint64_t number, uint64_t last)
{
    const struct cast_made *c = cast_at(f, number);
    const struct cast_made *before = last == 0 ? NULL : cast_at(f, last);

    return before == NULL || before->losses != c->losses || number > last;
}

void check_cast_runs(struct fleet *f, struct hero *h, struct bytes payload)
{
    uint64_t head[2] = {0};

    if (payload.size >= sizeof head) {
        memcpy(head, payload.data, sizeof head);
    }
    if (head[0] != CAST_MARK || !is_known(f, head[1])) {
        world_violate(&f->world, "group", "%s gets a push that no room made", h->who.id);
        return;
    }
    struct cast_made *c = cast_at(f, head[1]);
    const uint64_t me = bit_of(f, h);

    TRACE(&f->world, h->who.id, "gets broadcast %llu", (unsigned long long)head[1]);
    if ((c->members & me) == 0) {
        world_violate(&f->world,
                      "group",
                      "broadcast %llu reaches %s, who is no member",
                      (unsigned long long)head[1],
                      h->who.id);
    } else if ((c->ran & me) != 0) {
        world_violate(&f->world,
                      "group",
                      "broadcast %llu reaches %s twice",
                      (unsigned long long)head[1],
                      h->who.id);
    } else if (!is_behind(f, head[1], h->cast_ran[c->room]) ||
               !is_behind(f, head[1], h->cast_told[c->room])) {
        world_violate(&f->world,
                      "group",
                      "broadcast %llu reaches %s behind what was sent it later",
                      (unsigned long long)head[1],
                      h->who.id);
    }
    c->ran |= me;
    h->cast_ran[c->room] = head[1];
}

void check_cast_pushed(struct fleet *f, const struct hero *h, struct bytes payload,
                       struct place place)
{
    uint64_t head[2];

    memcpy(head, payload.data, sizeof head); // check_cast_runs() has looked at it
    cast_at(f, head[1])->place[h - f->players->hero] = place;
}

void check_behind(struct fleet *f, struct hero *h, uint64_t number)
{
    if (is_known(f, number)) {
        h->cast_told[cast_at(f, number)->room] = number;
    }
}

struct place check_cast_push(struct fleet *f, struct device *d, uint64_t number)
{
    if (!is_known(f, number)) {
        return (struct place){0};
    }
    struct cast_made *c = cast_at(f, number);
    const uint64_t me = bit_of(f, d->hero);

    if ((c->ran & me) == 0) {
        world_violate(&f->world,
                      "group",
                      "device %zu of %s gets broadcast %llu, which did not reach its actor",
                      d->number,
                      d->hero->who.id,
                      (unsigned long long)number);
    } else if ((c->got & me) != 0) {
        world_violate(&f->world,
                      "group",
                      "device %zu of %s gets broadcast %llu a second time",
                      d->number,
                      d->hero->who.id,
                      (unsigned long long)number);
    } else if (!is_behind(f, number, d->cast_seen[c->room])) {
        world_violate(&f->world,
                      "group",
                      "device %zu of %s gets broadcast %llu behind %llu",
                      d->number,
                      d->hero->who.id,
                      (unsigned long long)number,
                      (unsigned long long)d->cast_seen[c->room]);
    }
    c->got |= me;
    d->cast_seen[c->room] = number;
    f->players->total.cast_pushes++;
    return c->place[d->hero - f->players->hero];
}

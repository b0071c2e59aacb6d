/* SPDX-License-Identifier: Apache-2.0
 *
 * What is judged of groups: who is a member when the sender of its group pushes gets that at
 * most once, in the order of that sender's life, and behind it what the sender sent
 * it behind it; nobody else gets it.
 */
#include "base/mem.h"
#include "sim/players/players.h"

static struct broadcast_made *broadcast_at(const struct fleet *f, uint64_t number)
{
    return &f->players->broadcast[number - 1];
}

static uint64_t bit_of(const struct fleet *f, const struct session_actor *h)
{
    return UINT64_C(1) << (h - f->players->actor);
}

/* Members of the kind that its group number `i` is of. */
static uint64_t of_kind(uint64_t members, size_t i)
{
    uint64_t mask = 0;

    for (size_t m = i; m < SESSION_ACTORS; m += ACTOR_GROUPS) {
        mask |= UINT64_C(1) << m;
    }
    return members & mask;
}

/* Who moved away from a node that is down, and comes back as nobody, tells others nothing until all
 * that it told there is over (node/calls/former.c); by then the first of it may be late, too. */
static bool all_are_up(const struct fleet *f)
{
    bool up = true;

    for (unsigned i = 0; i < f->nodes; i++) {
        up = up && f->node[i].core != NULL;
    }
    return up;
}

uint64_t check_broadcast(struct fleet *f, const struct session_actor *sender, uint64_t members,
                         size_t i)
{
    struct sim_players *p = f->players;

    if (p->broadcast_count == p->broadcast_cap) {
        p->broadcast_cap = p->broadcast_cap == 0 ? 64 : 2 * p->broadcast_cap;
        p->broadcast = mem_resize(p->broadcast, p->broadcast_cap * sizeof *p->broadcast);
    }
    struct broadcast_made *c = &p->broadcast[p->broadcast_count++];

    *c = (struct broadcast_made){.sender = (size_t)(sender - p->actor),
                                 .life = sender->lives,
                                 .members = of_kind(members, i),
                                 .losses = sender->losses,
                                 // Where a node has no room for it in a second, it is dropped.
                                 .reaches_all = f->profile == PROFILE_CALM ||
                                                (f->healed && !p->tight && all_are_up(f))};
    for (size_t m = 0; m < SESSION_ACTORS; m++) {
        c->lost[m] = p->actor[m].client == CLIENT_NONE ? UINT64_MAX : p->actor[m].losses;
    }
    p->total.broadcasts++;
    TRACE(&f->world,
          sender->who.id,
          "broadcasts %zu to members %llx",
          p->broadcast_count,
          (unsigned long long)of_kind(members, i));
    return p->broadcast_count;
}

uint64_t check_broadcast_missed(const struct fleet *f)
{
    const struct sim_players *p = f->players;

    for (size_t i = 0; i < p->broadcast_count; i++) {
        const struct broadcast_made *c = &p->broadcast[i];

        // Else who died took what nobody asks for again along.
        const bool judged = c->reaches_all && c->losses == p->actor[c->sender].losses;

        for (size_t m = 0; m < SESSION_ACTORS && judged; m++) {
            if ((c->members & ~c->ran) >> m & 1 && c->lost[m] == p->actor[m].losses) {
                return i + 1;
            }
        }
    }
    return 0;
}

/* A number that a broadcast has. */
static bool is_known(struct fleet *f, uint64_t number)
{
    if (number == 0 || number > f->players->broadcast_count) {
        world_violate(&f->world, "group", "a broadcast that nobody made");
        return false;
    }
    return true;
}

/* Of two that a sender made before it was lost, wherever it lived, the later number comes later. */
static bool is_behind(const struct fleet *f, uint64_t number, uint64_t last)
{
    const struct broadcast_made *c = broadcast_at(f, number);
    const struct broadcast_made *before = last == 0 ? NULL : broadcast_at(f, last);

    return before == NULL || before->losses != c->losses || number > last;
}

void check_broadcast_runs(struct fleet *f, struct session_actor *h, struct bytes payload)
{
    uint64_t head[2] = {0};

    if (payload.size >= sizeof head) {
        memcpy(head, payload.data, sizeof head);
    }
    if (head[0] != BROADCAST_MARK || !is_known(f, head[1])) {
        world_violate(&f->world, "group", "%s gets a push that no actor made", h->who.id);
        return;
    }
    struct broadcast_made *c = broadcast_at(f, head[1]);
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
    } else if (!is_behind(f, head[1], h->broadcast_ran[c->sender]) ||
               !is_behind(f, head[1], h->broadcast_told[c->sender])) {
        world_violate(&f->world,
                      "group",
                      "broadcast %llu reaches %s behind what was sent it later",
                      (unsigned long long)head[1],
                      h->who.id);
    }
    c->ran |= me;
    h->broadcast_ran[c->sender] = head[1];
}

void check_broadcast_pushed(struct fleet *f, const struct session_actor *h, struct bytes payload,
                            struct place place)
{
    uint64_t head[2];

    memcpy(head, payload.data, sizeof head); // check_broadcast_runs() has looked at it
    broadcast_at(f, head[1])->place[h - f->players->actor] = place;
}

void check_behind(struct fleet *f, struct session_actor *h, uint64_t number)
{
    if (is_known(f, number)) {
        h->broadcast_told[broadcast_at(f, number)->sender] = number;
    }
}

struct place check_broadcast_push(struct fleet *f, struct device *d, uint64_t number)
{
    if (!is_known(f, number)) {
        return (struct place){0};
    }
    struct broadcast_made *c = broadcast_at(f, number);
    const uint64_t me = bit_of(f, d->actor);

    if ((c->ran & me) == 0) {
        world_violate(&f->world,
                      "group",
                      "device %zu of %s gets broadcast %llu, which did not reach its actor",
                      d->number,
                      d->actor->who.id,
                      (unsigned long long)number);
    } else if ((c->got & me) != 0) {
        world_violate(&f->world,
                      "group",
                      "device %zu of %s gets broadcast %llu a second time",
                      d->number,
                      d->actor->who.id,
                      (unsigned long long)number);
    } else if (!is_behind(f, number, d->broadcast_seen[c->sender])) {
        world_violate(&f->world,
                      "group",
                      "device %zu of %s gets broadcast %llu behind %llu",
                      d->number,
                      d->actor->who.id,
                      (unsigned long long)number,
                      (unsigned long long)d->broadcast_seen[c->sender]);
    }
    c->got |= me;
    d->broadcast_seen[c->sender] = number;
    f->players->total.broadcast_pushes++;
    return c->place[d->actor - f->players->actor];
}

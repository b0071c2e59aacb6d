/* SPDX-License-Identifier: Apache-2.0
 *
 * The bonds of an actor: one, or of a kind that allows several as many as it may have
 * (docs/decisions/027-several-sessions.md).
 */
#include "node/runtime/inside.h"

#include "base/mem.h"
#include "base/mutant.h"
#include "node/runtime/bond.h"

enum { SEVERAL_DEFAULT = 8 };

struct client_bond *bonds_add(struct rh_actor *a)
{
    struct client_bond *c = mem_new(1, sizeof *c);
    struct client_bond **last = &extra_of(a)->client;

    while (*last != NULL) {
        last = &(*last)->next;
    }
    *last = c;
    c->actor = a;
    list_push_back(&a->runtime->bonds, &c->in_runtime);
    return c;
}

void bonds_drop(struct client_bond *c)
{
    struct extras *x = c->actor->extra;
    struct client_bond **at = &x->client;

    while (*at != c) {
        at = &(*at)->next;
    }
    *at = c->next;
    x->told = x->told == c ? NULL : x->told;
    keep_unset(c);
    unacked_pushes_fini(&c->unacked_pushes);
    list_remove(&c->in_runtime);
    mem_free(c);
}

void bonds_drop_all(struct rh_actor *a)
{
    while (a->extra->client != NULL) {
        bonds_drop(a->extra->client);
    }
}

/* ---- finding ---- */

struct client_bond *bonds_of(const struct rh_actor *a, const struct note *note)
{
    struct client_bond *c = a->extra->client;

    while (c != NULL && !bond_is_of(&c->bond, note)) {
        c = c->next;
    }
    return c;
}

struct client_bond *bonds_due(const struct rh_actor *a)
{
    struct client_bond *c = a->extra->client;

    while (c != NULL && c->due == 0) {
        c = c->next;
    }
    return c;
}

/* The first to give its place: who was told to go or won't come back, then who has no connection,
 * whether its actor was told of that or not, then who has had its own for longest. */
static unsigned claim_of(const struct client_bond *c)
{
    if (bond_is_over(&c->bond) || (!c->away && c->due == RH_SESSION_LOST)) {
        return 0;
    }
    return c->away ? 1 : 2;
}

static bool is_before(const struct client_bond *a, const struct client_bond *b)
{
    return claim_of(a) != claim_of(b) ? claim_of(a) < claim_of(b)
                                      : bond_stamp_before(a->bond.stamp, b->bond.stamp);
}

static uint32_t bonds_max(const struct rh_actor *a)
{
    const struct rh_actor_ops *kind = role_of(a)->ops;

    if (kind->sessions != RH_SESSIONS_ALLOW) {
        return 1;
    }
    return kind->sessions_max == 0 ? SEVERAL_DEFAULT : kind->sessions_max;
}

/* Who gives its place to one more; NULL = there is room. */
static struct client_bond *first_to_go(const struct rh_actor *a)
{
    struct client_bond *first = a->extra->client;
    uint32_t count = 0;

    for (struct client_bond *c = first; c != NULL; c = c->next) {
        first = is_before(c, first) ? c : first;
        count++;
    }
    return count >= bonds_max(a) && !mutant(M_TOOMANY) ? first : NULL;
}

/* By its own name: it outlives its connection. */
static struct client_bond *bond_named(const struct rh_actor *a, const struct note *note)
{
    struct client_bond *c = a->extra->client;

    while (c != NULL && (note->session == 0 || c->bond.session != note->session)) {
        c = c->next;
    }
    return c;
}

/* Whose place it is: a session's, or of a client that keeps none its connection's. */
static uint64_t holder_of(uint64_t session, uint64_t gateway, uint64_t connection)
{
    return session != 0 ? session : table_mix(table_mix(gateway) ^ connection);
}

void bonds_yield(struct client_bond *c, const struct note *note)
{
    const struct bond *b = &c->bond;
    const uint64_t former = holder_of(b->session, b->gateway, b->connection);
    struct extras *x = c->actor->extra;

    if (former != holder_of(note->session, note->gateway, note->connection)) {
        x->yielded[x->yielded_count++ % YIELDED_MAX] = former;
    }
    bonds_drop(c);
}

bool bonds_yielded(const struct rh_actor *a, const struct note *note)
{
    const uint64_t holder = holder_of(note->session, note->gateway, note->connection);
    const bool again = note->type == NOTE_RENEW || note->type == NOTE_RESUME;
    bool yielded = false;

    for (size_t i = 0; i < YIELDED_MAX; i++) {
        yielded = yielded || a->extra->yielded[i] == holder;
    }
    return yielded && again && bond_named(a, note) == NULL && bonds_of(a, note) == NULL;
}

/* They travel as bonds that are kicked and away, which none is that stands here: a node that does
 * not know that takes each for one whose time to return is over. */
static bool is_yielded(const struct bond *b)
{
    return b->session != 0 && b->kicked && b->left_ms != BOND_THERE;
}

/* Behind `count` bonds, as many as have room, the newest. Returns how many those are. */
static size_t put_yielded(const struct rh_actor *a, size_t count, struct bond out[YIELDED_MAX])
{
    const struct extras *x = a->extra;
    size_t kept = 0;

    for (size_t i = YIELDED_MAX; i > 0 && count + kept < BONDS_MAX; i--) {
        const uint64_t holder = x->yielded[(x->yielded_count + i - 1) % YIELDED_MAX];

        if (holder != 0) {
            out[kept++] = (struct bond){.session = holder, .kicked = true};
        }
    }
    return kept;
}

struct client_bond *bonds_against(const struct rh_actor *a, const struct note *note)
{
    struct client_bond *only = a->extra->client;

    // Several may have come with their actor, though its kind allows but one here.
    const bool several =
        role_of(a)->ops->sessions == RH_SESSIONS_ALLOW || (only != NULL && only->next != NULL);
    if (!several || mutant(M_EACHOTHER)) {
        return only;
    }
    struct client_bond *c = bond_named(a, note);
    if (c == NULL && note->type != NOTE_RETURN) {
        c = bonds_of(a, note);
        c = c == NULL ? first_to_go(a) : c;
    }
    return c;
}

/* ---- parting ---- */

void bonds_lose(struct client_bond *c, enum rh_lost_why why)
{
    const bool stays = keep_leaves(c);

    // Its actor was not told yet that it is there: it is told both (session_turn()), or neither.
    if (c->due == RH_SESSION_RESUMED) {
        if (!stays) {
            bonds_drop(c);
        }
        return;
    }
    c->due = RH_SESSION_LOST;
    c->due_why = (uint8_t)why;
    actor_want_turn(c->actor);
}

void bonds_part(const struct client_bond *from)
{
    struct client_bond *next = NULL;

    for (struct client_bond *c = from->actor->extra->client; c != NULL; c = next) {
        next = c->next;
        if (c == from || c->bond.gateway != from->bond.gateway ||
            c->bond.connection != from->bond.connection) {
            continue;
        }
        c->bond.gateway = 0; // it has none: nobody tells that it is lost
        c->bond.connection = 0;
        if (!c->away) {
            bonds_lose(c, RH_LOST_CLOSED);
        }
    }
}

/* ---- with their actor ---- */

void bonds_arrive(struct rh_actor *a, struct bytes bonds, bool afresh)
{
    struct reader in = {.at = bonds.data, .left = bonds.size};
    struct bond b = {.followed = bonds.size > 0};

    for (unsigned i = 0; b.followed; i++) {
        if (i == BONDS_MAX || bond_take(&in, &b) != ERR_OK) {
            actor_complain(
                a, "bad_bond", "a client session of its handed-over state can't be decoded");
            return;
        }
        if (is_yielded(&b)) {
            struct extras *x = extra_of(a);

            x->yielded[x->yielded_count++ % YIELDED_MAX] = b.session;
            continue;
        }
        struct client_bond *c = bonds_add(a);

        keep_arrive(c, &b);
        c->due = afresh && role_of(a)->ops->session != NULL ? RH_SESSION_RESUMED : 0;
    }
}

struct bytes bonds_pack(const struct rh_actor *a)
{
    struct buffer *out = &a->runtime->body;
    struct bond yielded[YIELDED_MAX];
    struct bond b;
    size_t count = 0;

    if (mutant(M_BONDSTAYS)) {
        return (struct bytes){0};
    }
    buffer_clear(out);
    for (const struct client_bond *c = a->extra->client; c != NULL; c = c->next) {
        count++;
    }
    size_t names = count == 0 ? 0 : put_yielded(a, count, yielded);
    for (const struct client_bond *c = a->extra->client; c != NULL; c = c->next) {
        keep_pack(c, &b);
        b.followed = (c->next != NULL || names > 0) && !mutant(M_FIRSTMOVES);
        bond_put(out, &b);
        if (!b.followed) {
            return buffer_bytes(out);
        }
    }
    for (; names > 0; names--) { // the newest comes last
        yielded[names - 1].followed = names > 1;
        bond_put(out, &yielded[names - 1]);
    }
    return buffer_bytes(out);
}

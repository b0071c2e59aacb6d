/* SPDX-License-Identifier: Apache-2.0
 *
 * Which role may host which kind, and the ring's cells of each.
 */
#include "txn/state/roles.h"

#include "base/assert.h"
#include "base/mem.h"
#include "base/mutant.h"
#include "txn/state/delta.h"
#include "wire/versions.h"

#include <stdio.h>
#include <string.h>

static const enum ring_policy policy_of[] = {[PLACE_HASH] = RING_HASH,
                                             [PLACE_SINGLETON] = RING_OLDEST,
                                             [PLACE_DAEMONS] = RING_SPREAD,
                                             [PLACE_TOGETHER] = RING_TOGETHER,
                                             [PLACE_HOSTS] = RING_HOSTS};

const char *roles_placement_name(uint8_t placement)
{
    static const char *const names[] = {[PLACE_HASH] = "hash",
                                        [PLACE_SINGLETON] = "singleton",
                                        [PLACE_DAEMONS] = "daemons",
                                        [PLACE_TOGETHER] = "together",
                                        [PLACE_HOSTS] = "hosts"};

    return placement <= PLACE_HOSTS ? names[placement] : "?";
}

const struct state_kind *roles_kind(const struct state *s, uint16_t number)
{
    for (size_t i = 0; i < s->kind_count; i++) {
        if (s->kind[i].number == number) {
            return &s->kind[i];
        }
    }
    return NULL;
}

/* The kinds of a role are those that its nodes host, not the same on all. */
static bool kinds_grow(const struct state *s)
{
    return s->format >= FLEET_FORMAT_KINDS;
}

/* Another node than `name` that may live and hosts the kind; NULL = none. What only the dead had is
 * anybody's. */
static const struct state_node *other_host(const struct state *s, const struct state_kind *k,
                                           const char *name)
{
    for (size_t i = 0; i < s->node_count; i++) {
        const struct state_node *n = &s->node[i];

        if (!n->barred && strcmp(n->name, name) != 0 && strcmp(n->role, k->role) == 0 &&
            ring_kinds_have(&n->kinds, k->number)) {
            return n;
        }
    }
    return NULL;
}

/* "role 'match'", or "the default role". */
static const char *role_text(const char *role, char *text, size_t size)
{
    if (role[0] == '\0') {
        return "the default role";
    }
    (void)snprintf(text, size, "role '%s'", role);
    return text;
}

/* ---- what is wrong with a registration ---- */

struct roles_judge {
    const struct state *s;
    const Rh__CommandRegister *in;
    char *fault; /* ROLES_FAULT_SIZE */
};

static void fail(const struct roles_judge *j, const char *text)
{
    (void)snprintf(j->fault, ROLES_FAULT_SIZE, "%s", text);
}

static bool role_is_valid(const char *role)
{
    const size_t size = strlen(role);

    return size <= RING_ROLE_MAX &&
           strspn(role, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") ==
               size;
}

static const Rh__Kind *find_kind(const Rh__CommandRegister *in, uint32_t number)
{
    for (size_t i = 0; i < in->n_kinds; i++) {
        if (in->kinds[i]->number == number) {
            return in->kinds[i];
        }
    }
    return NULL;
}

static void judge_shape(const struct roles_judge *j)
{
    if (!role_is_valid(j->in->role)) {
        fail(j, "a role has at most 31 letters, digits and -_.");
    } else if (j->in->n_kinds > RING_SEGMENT_KINDS_MAX) {
        fail(j, "the node hosts more than 64 kinds");
    } else if (j->in->n_kinds == 0 && j->in->role[0] != '\0') {
        fail(j, "the node has a role, but no kinds");
    }
    for (size_t i = 0; j->fault[0] == '\0' && i < j->in->n_kinds; i++) {
        const Rh__Kind *k = j->in->kinds[i];

        if (k->number > UINT16_MAX || k->name[0] == '\0' || strlen(k->name) > VIEW_NAME_MAX ||
            k->placement > PLACE_HOSTS || k->daemons > ROLES_DAEMONS_MAX ||
            find_kind(j->in, k->number) != k) {
            fail(j,
                 "a kind's number, name, placement or count is out of range, or the kind is given "
                 "twice");
        } else if (k->placement >= PLACE_TOGETHER && j->s->format < FLEET_FORMAT_PLACEMENT) {
            (void)snprintf(j->fault,
                           ROLES_FAULT_SIZE,
                           "kind %u '%s' is placed %s, which the fleet's format %u does not "
                           "know: upgrade all processes, then `ringhold upgrade --finish`",
                           k->number,
                           k->name,
                           k->placement == PLACE_TOGETHER ? "together" : "by its hosts",
                           j->s->format);
        }
    }
}

/* What it owns was given to it for the role that it had. */
static void judge_change(const struct roles_judge *j)
{
    const struct state_node *n = state_node_named(j->s, j->in->name);

    if (n != NULL && strcmp(n->role, j->in->role) != 0 &&
        ring_owned_count(&j->s->view.ring, n->slot) > 0) {
        char was[64];
        char now[64];

        (void)snprintf(
            j->fault,
            ROLES_FAULT_SIZE,
            "node '%s' has %s and owns %zu vnodes, and can't change to %s: drain it first",
            n->name,
            role_text(n->role, was, sizeof was),
            ring_owned_count(&j->s->view.ring, n->slot),
            role_text(j->in->role, now, sizeof now));
    }
}

/* Somebody else may still host it as it is. */
static bool is_held(const struct roles_judge *j, const struct state_kind *k)
{
    return !kinds_grow(j->s) || other_host(j->s, k, j->in->name) != NULL;
}

static const char *canary_text(const struct state_kind *known, const Rh__Kind *k)
{
    return k->placement == PLACE_HOSTS && known->placement == PLACE_HASH &&
                   strcmp(known->name, k->name) == 0
               ? ", by its hosts, on all nodes, or set the node's weight (`ringhold node weight`)"
               : "";
}

/* Number, role and placement go together for all. */
static void judge_bindings(const struct roles_judge *j)
{
    for (size_t i = 0; j->fault[0] == '\0' && i < j->in->n_kinds; i++) {
        const Rh__Kind *k = j->in->kinds[i];
        const struct state_kind *known = roles_kind(j->s, (uint16_t)k->number);
        char was[64];
        char now[64];

        if (known != NULL && is_held(j, known) &&
            (strcmp(known->role, j->in->role) != 0 || known->placement != k->placement)) {
            (void)snprintf(j->fault,
                           ROLES_FAULT_SIZE,
                           "kind %u is '%s' of %s, by %s: it can't be '%s' of %s, by %s; take "
                           "another number%s",
                           k->number,
                           known->name,
                           role_text(known->role, was, sizeof was),
                           roles_placement_name(known->placement),
                           k->name,
                           role_text(j->in->role, now, sizeof now),
                           roles_placement_name((uint8_t)k->placement),
                           canary_text(known, k));
        }
    }
    for (size_t i = 0; j->fault[0] == '\0' && i < j->in->n_kinds; i++) {
        for (size_t n = 0; j->in->kinds[i]->placement == PLACE_DAEMONS && n < j->s->kind_count;
             n++) {
            const struct state_kind *k = &j->s->kind[n];

            if (k->placement == PLACE_DAEMONS && k->number != j->in->kinds[i]->number &&
                is_held(j, k) && strcmp(k->name, j->in->kinds[i]->name) == 0) {
                (void)snprintf(j->fault,
                               ROLES_FAULT_SIZE,
                               "a set of daemons '%s' exists already, of kind %u",
                               k->name,
                               k->number);
            }
        }
    }
}

/* Another node of the role; NULL = this one may say what the role's kinds are. */
static const struct state_node *other_of_role(const struct roles_judge *j)
{
    for (size_t i = 0; i < j->s->node_count; i++) {
        const struct state_node *n = &j->s->node[i];

        if (strcmp(n->role, j->in->role) == 0 && strcmp(n->name, j->in->name) != 0 &&
            !(n->barred && n->clean)) {
            return n;
        }
    }
    return NULL;
}

/* A number has one name on all nodes that may live. */
static void judge_names(const struct roles_judge *j)
{
    char role[64];

    for (size_t i = 0; j->fault[0] == '\0' && i < j->in->n_kinds; i++) {
        const Rh__Kind *its = j->in->kinds[i];
        const struct state_kind *k = roles_kind(j->s, (uint16_t)its->number);
        const struct state_node *other = k == NULL ? NULL : other_host(j->s, k, j->in->name);

        if (other != NULL && strcmp(its->name, k->name) != 0 && !mutant(M_TWONAMES)) {
            (void)snprintf(j->fault,
                           ROLES_FAULT_SIZE,
                           "the nodes of %s, such as '%s', host kind %u '%s', this one hosts '%s' "
                           "under that number: give it a number of its own",
                           role_text(j->in->role, role, sizeof role),
                           other->name,
                           k->number,
                           k->name,
                           its->name);
        }
    }
}

/* Before the kinds of a role could grow: an id of each may come to any node of it. */
static void judge_kinds(const struct roles_judge *j)
{
    const struct state_node *other = other_of_role(j);
    char role[64];
    size_t known = 0;

    (void)role_text(j->in->role, role, sizeof role);
    for (size_t i = 0; other != NULL && j->fault[0] == '\0' && i < j->s->kind_count; i++) {
        const struct state_kind *k = &j->s->kind[i];
        const Rh__Kind *its = find_kind(j->in, k->number);

        if (strcmp(k->role, j->in->role) != 0) {
            continue;
        }
        known++;
        if (its == NULL || strcmp(its->name, k->name) != 0) {
            (void)snprintf(j->fault,
                           ROLES_FAULT_SIZE,
                           "the nodes of %s, such as '%s', host kind %u '%s', this one %s%s%s: all "
                           "nodes of a role host the same kinds",
                           role_text(j->in->role, role, sizeof role),
                           other->name,
                           k->number,
                           k->name,
                           its == NULL ? "does not" : "hosts '",
                           its == NULL ? "" : its->name,
                           its == NULL ? "" : "' under that number");
        }
    }
    for (size_t i = 0; known > 0 && j->fault[0] == '\0' && i < j->in->n_kinds; i++) {
        if (roles_kind(j->s, (uint16_t)j->in->kinds[i]->number) == NULL) {
            (void)snprintf(j->fault,
                           ROLES_FAULT_SIZE,
                           "the nodes of %s, such as '%s', do not host kind %u '%s': all nodes of "
                           "a role host the same kinds",
                           role_text(j->in->role, role, sizeof role),
                           other->name,
                           j->in->kinds[i]->number,
                           j->in->kinds[i]->name);
        }
    }
}

/* ---- segments ---- */

/* The segments as they will be. */
struct roles_draft {
    struct ring_segment list[RING_SEGMENTS_MAX];
    bool changed[RING_SEGMENTS_MAX];
    size_t before;
    size_t count;
    uint64_t cells;
    bool full;
};

static struct ring_segment *add_segment(struct roles_draft *d, enum ring_policy policy,
                                        const char *role, uint8_t bits)
{
    if (d->count == RING_SEGMENTS_MAX || d->cells + (UINT64_C(1) << bits) > RING_CELLS_MAX) {
        d->full = true;
        return NULL;
    }
    d->cells += UINT64_C(1) << bits;
    d->changed[d->count] = true;
    d->list[d->count] = (struct ring_segment){.policy = policy, .bits = bits};
    memcpy(d->list[d->count].role, role, strlen(role));
    return &d->list[d->count++];
}

/* A segment of that role and policy that was there before: of `kind`; if there is none, one that
 * nothing is bound to any more. Of those that are shared there is one at most. */
static struct ring_segment *reuse_segment(struct roles_draft *d, enum ring_policy policy,
                                          const char *role, uint16_t kind)
{
    struct ring_segment *empty = NULL;

    for (size_t i = 0; i < d->before; i++) {
        struct ring_segment *s = &d->list[i];

        if (s->policy != policy || strcmp(s->role, role) != 0) {
            continue;
        }
        if (ring_is_shared(s) || (s->kind_count == 1 && s->kind[0] == kind)) {
            return s;
        }
        empty = s->kind_count == 0 ? s : empty;
    }
    return empty;
}

static void bind_kind(struct ring_segment *s, uint16_t kind)
{
    size_t at = s->kind_count;

    for (; at > 0 && s->kind[at - 1] > kind; at--) {
        s->kind[at] = s->kind[at - 1];
    }
    s->kind[at] = kind;
    s->kind_count++;
}

static void draft_kind(struct roles_draft *d, const struct state *s, const Rh__CommandRegister *in,
                       const Rh__Kind *k)
{
    const enum ring_policy policy = policy_of[k->placement];
    const uint8_t grid =
        s->view.ring.grid < RING_SEGMENT_BITS_MAX ? s->view.ring.grid : RING_SEGMENT_BITS_MAX;
    const struct ring_segment like = {.policy = policy};
    const bool shared = ring_is_shared(&like);
    const uint8_t bits = ring_is_hashed(&like)   ? grid
                         : policy == RING_SPREAD ? (uint8_t)RING_DAEMON_BITS
                                                 : 0;
    struct ring_segment *segment = reuse_segment(d, policy, in->role, (uint16_t)k->number);

    for (size_t i = d->before; segment == NULL && shared && i < d->count; i++) {
        segment = d->list[i].policy == policy ? &d->list[i] : NULL; // made for another kind
    }
    if (segment == NULL) {
        segment = add_segment(d, policy, in->role, bits);
    }
    if (segment == NULL) {
        return;
    }
    if (segment->kind_count == 0 && policy == RING_SPREAD) {
        segment->open = k->daemons;
    }
    if (shared || segment->kind_count == 0) {
        bind_kind(segment, (uint16_t)k->number);
    }
}

static void unbind_at(struct ring_segment *s, size_t at)
{
    s->kind_count--;
    memmove(&s->kind[at], &s->kind[at + 1], (s->kind_count - at) * sizeof *s->kind);
    s->kind[s->kind_count] = 0;
    s->open = s->kind_count == 0 ? 0 : s->open;
}

/* What the dead of another role, or by another placement, had under these numbers. */
static void unbind_taken(struct roles_draft *d, const Rh__CommandRegister *in)
{
    for (size_t i = 0; i < d->before; i++) {
        struct ring_segment *s = &d->list[i];

        for (size_t k = s->kind_count; k-- > 0;) {
            const Rh__Kind *its = find_kind(in, s->kind[k]);

            if (its != NULL &&
                (policy_of[its->placement] != s->policy || strcmp(s->role, in->role) != 0)) {
                unbind_at(s, k);
            }
        }
    }
}

/* Kinds that the role has no more are bound to nothing. */
static void unbind_others(struct roles_draft *d, const Rh__CommandRegister *in)
{
    for (size_t i = 0; i < d->before; i++) {
        struct ring_segment *s = &d->list[i];

        if (strcmp(s->role, in->role) != 0) {
            continue;
        }
        if (ring_is_shared(s)) {
            s->kind_count = 0; // bound anew
        } else if (s->kind_count == 1 && find_kind(in, s->kind[0]) == NULL) {
            s->kind_count = 0;
            s->open = 0;
        }
        memset(s->kind + s->kind_count, 0, sizeof s->kind - s->kind_count * sizeof *s->kind);
    }
}

static void draft_segments(struct roles_draft *d, const struct state *s,
                           const Rh__CommandRegister *in)
{
    const struct ring *r = &s->view.ring;

    *d = (struct roles_draft){.before = r->segment_count, .count = r->segment_count};
    d->cells = r->cell_count;
    if (r->segment_count > 0) {
        memcpy(d->list, r->segment, r->segment_count * sizeof *d->list);
    }
    if (in->n_kinds == 0) {
        return; // of an older version: it says nothing
    }
    unbind_others(d, in);
    unbind_taken(d, in);
    for (size_t i = 0; i < in->n_kinds; i++) {
        if (in->kinds[i]->placement != PLACE_HASH || in->role[0] != '\0') {
            draft_kind(d, s, in, in->kinds[i]);
        }
    }
    for (size_t i = 0; i < d->before; i++) {
        const struct ring_segment *was = &r->segment[i];

        d->changed[i] = was->kind_count != d->list[i].kind_count ||
                        memcmp(was->kind, d->list[i].kind, sizeof was->kind) != 0;
    }
}

/* ---- the registration ---- */

/* It, with the kinds that the role has then: its own, and what others of the role host. */
struct grown {
    Rh__CommandRegister in;
    Rh__Kind row[RING_SEGMENT_KINDS_MAX];
    char name[RING_SEGMENT_KINDS_MAX][VIEW_NAME_MAX + 1]; /* of the rows */
    Rh__Kind *list[2 * RING_SEGMENT_KINDS_MAX];
};

/* False: they are too many. */
static bool grow(struct grown *g, const struct state *s, const Rh__CommandRegister *in)
{
    size_t rows = 0;

    g->in = *in;
    g->in.kinds = g->list;
    memcpy(g->list, in->kinds, in->n_kinds * sizeof(Rh__Kind *));
    for (size_t i = 0; kinds_grow(s) && i < s->kind_count; i++) {
        const struct state_kind *k = &s->kind[i];

        if (strcmp(k->role, in->role) == 0 && find_kind(in, k->number) == NULL &&
            other_host(s, k, in->name) != NULL && !mutant(M_LASTKINDS)) {
            memcpy(g->name[rows], k->name, sizeof k->name);
            g->row[rows] = (Rh__Kind)RH__KIND__INIT;
            g->row[rows].number = k->number;
            g->row[rows].name = g->name[rows];
            g->row[rows].placement = k->placement;
            g->list[g->in.n_kinds++] = &g->row[rows];
            rows++;
        }
    }
    return g->in.n_kinds <= RING_SEGMENT_KINDS_MAX;
}

bool roles_rivals(const struct state *s, const Rh__CommandRegister *in,
                  const struct state_node *node)
{
    bool rival = false;

    for (size_t i = 0; kinds_grow(s) && !rival && i < s->kind_count; i++) {
        const struct state_kind *k = &s->kind[i];
        const Rh__Kind *its = find_kind(in, k->number);

        rival = its != NULL && other_host(s, k, in->name) != NULL && !node->barred &&
                strcmp(node->name, in->name) != 0 && strcmp(node->role, k->role) == 0 &&
                ring_kinds_have(&node->kinds, k->number) &&
                (strcmp(its->name, k->name) != 0 || strcmp(k->role, in->role) != 0 ||
                 its->placement != k->placement);
    }
    return rival;
}

void roles_fault(const struct state *s, const Rh__CommandRegister *in, char fault[ROLES_FAULT_SIZE])
{
    const struct roles_judge j = {s, in, fault};
    struct roles_draft *d;
    struct grown *g;

    fault[0] = '\0';
    judge_shape(&j);
    if (fault[0] == '\0') {
        judge_change(&j);
    }
    if (fault[0] != '\0' || in->n_kinds == 0) {
        return;
    }
    judge_bindings(&j);
    if (fault[0] == '\0') {
        (kinds_grow(s) ? judge_names : judge_kinds)(&j);
    }
    if (fault[0] != '\0') {
        return;
    }
    d = mem_new(1, sizeof *d);
    g = mem_new(1, sizeof *g);
    if (!grow(g, s, in)) {
        fail(&j, "the node and the other nodes of its role host more than 64 kinds");
    } else {
        draft_segments(d, s, &g->in);
    }
    mem_free(g);
    if (d->full) {
        fail(&j, "the ring has no room for another role, singleton or set of daemons");
    }
    mem_free(d);
}

/* The role's kinds are these. */
static void declare(struct state *s, const Rh__CommandRegister *in)
{
    size_t kept = 0;

    for (size_t i = 0; i < s->kind_count; i++) {
        if (strcmp(s->kind[i].role, in->role) != 0 && find_kind(in, s->kind[i].number) == NULL) {
            s->kind[kept++] = s->kind[i];
        }
    }
    s->kind = mem_resize(s->kind, (kept + in->n_kinds) * sizeof *s->kind);
    for (size_t i = 0; i < in->n_kinds; i++) {
        const Rh__Kind *k = in->kinds[i];
        size_t at = kept++;

        for (; at > 0 && s->kind[at - 1].number > k->number; at--) {
            s->kind[at] = s->kind[at - 1];
        }
        s->kind[at] =
            (struct state_kind){.number = (uint16_t)k->number, .placement = (uint8_t)k->placement};
        memcpy(s->kind[at].role, in->role, strlen(in->role));
        memcpy(s->kind[at].name, k->name, strlen(k->name));
    }
    s->kind_count = kept;
}

void roles_bind(struct state *s, const Rh__CommandRegister *in, Rh__Delta *delta)
{
    struct roles_draft *d;
    struct grown *g;
    bool fits;

    if (in->n_kinds == 0) {
        return;
    }
    d = mem_new(1, sizeof *d);
    g = mem_new(1, sizeof *g);
    fits = grow(g, s, in);
    draft_segments(d, s, &g->in);
    ASSERT(fits && !d->full);
    for (size_t i = 0; i < d->count; i++) {
        if (d->changed[i]) {
            delta_segment(delta, i, &d->list[i], i < d->before ? 0 : s->vnodes_per_weight);
        }
    }
    mem_free(d);
    declare(s, &g->in);
    mem_free(g);
}

/* ---- questions ---- */

const struct ring_segment *roles_daemons(const struct state *s, const char *name)
{
    for (size_t i = 0; i < s->kind_count; i++) {
        if (s->kind[i].placement == PLACE_DAEMONS && strcmp(s->kind[i].name, name) == 0) {
            return ring_segment_of_kind(&s->view.ring, s->kind[i].number);
        }
    }
    return NULL;
}

const char *roles_of_vnode(const struct ring *ring, const struct ring_vnode *v)
{
    const struct ring_segment *s = ring_segment_at(ring, v->from);

    return s == NULL ? "" : s->role;
}

bool roles_fit(const struct state *s, const struct state_node *node, uint32_t vnode)
{
    const struct ring_vnode *v = ring_find(&s->view.ring, vnode);

    // One that an op of the same transaction is to make: its left part is judged.
    return v == NULL || (strcmp(roles_of_vnode(&s->view.ring, v), node->role) == 0 &&
                         ring_kinds_fit(&node->kinds, ring_segment_at(&s->view.ring, v->from)));
}

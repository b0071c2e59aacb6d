/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares what one node writes with what another one reads.
 */
#include "txn/leader/inside.h"

#include "base/mutant.h"
#include "base/table.h"

void state_versions_note(struct state_versions *own, const Rh__Renew *in)
{
    own->told = true;
    own->count = 0;
    for (size_t i = 0; i < in->n_states && own->count < RING_SEGMENT_KINDS_MAX; i++) {
        const Rh__StateVersions *v = in->states[i];

        if (v->kind <= UINT16_MAX && v->least <= v->version && v->version <= v->most) {
            own->kind[own->count++] = (struct kind_versions){.kind = (uint16_t)v->kind,
                                                             .version = v->version,
                                                             .least = v->least,
                                                             .most = v->most};
        }
    }
}

uint64_t state_versions_mix(const struct state_versions *own)
{
    uint64_t mix = own->told ? 1 : 0;

    for (size_t i = 0; i < own->count; i++) {
        const struct kind_versions *k = &own->kind[i];

        mix = table_mix(mix ^ k->kind);
        mix = table_mix(mix ^ k->version);
        mix = table_mix(mix ^ ((uint64_t)k->least << 32 | k->most));
    }
    return mix;
}

static const struct kind_versions *versions_of(const struct state_versions *own, uint16_t kind)
{
    for (size_t i = 0; i < own->count; i++) {
        if (own->kind[i].kind == kind) {
            return &own->kind[i];
        }
    }
    return NULL;
}

/* Who gives, and who takes. */
struct giving {
    const struct state_node *source;
    const struct state_node *target;
    const struct state_versions *writes;
    const struct state_versions *reads;
};

/* Before FLEET_FORMAT_KINDS nobody says what he hosts: all of his role. */
static bool hosts(const struct state_node *node, uint16_t kind)
{
    return node->kinds.count == 0 || ring_kinds_have(&node->kinds, kind);
}

static bool is_unread(const struct giving *g, uint16_t kind, struct unread_state *out)
{
    const struct kind_versions *writes = versions_of(g->writes, kind);
    const struct kind_versions *reads = versions_of(g->reads, kind);
    const struct unread_state u = {.kind = kind,
                                   .version = writes == NULL ? 0 : writes->version,
                                   .least = reads == NULL ? 0 : reads->least,
                                   .most = reads == NULL ? 0 : reads->most};

    if (!hosts(g->source, kind) || !hosts(g->target, kind) ||
        (u.least <= u.version && u.version <= u.most)) {
        return false;
    }
    if (out != NULL) {
        *out = u;
    }
    return true;
}

/* Cells where it begins: a plan has a ring of its own. */
static bool is_of(const struct coordinator *c, uint16_t kind, const struct ring_segment *segment)
{
    const struct ring_segment *own = ring_segment_of_kind(&c->state->view.ring, kind);

    return own == NULL || segment == NULL ? own == segment : own->from == segment->from;
}

/* Of the kinds that `of` tells of; `segment` NULL: of whatever segment. */
static bool any_unread(const struct coordinator *c, const struct giving *g,
                       const struct state_versions *of, const struct ring_segment *const *segment,
                       struct unread_state *out)
{
    for (size_t i = 0; i < of->count; i++) {
        const uint16_t kind = of->kind[i].kind;

        if ((segment == NULL || is_of(c, kind, *segment)) && is_unread(g, kind, out)) {
            return true;
        }
    }
    return false;
}

static bool judge(const struct coordinator *c, uint16_t source, uint16_t target,
                  const struct ring_segment *const *segment, struct unread_state *out)
{
    struct giving g = {.source = state_node(c->state, source),
                       .target = state_node(c->state, target)};
    const struct seen *from = g.source == NULL ? NULL : peers_seen(c, g.source);
    const struct seen *to = g.target == NULL ? NULL : peers_seen(c, g.target);

    if (from == NULL || to == NULL || !from->states.told || !to->states.told ||
        mutant(M_NEWERSTATE)) {
        return false;
    }
    g.writes = &from->states;
    g.reads = &to->states;
    return any_unread(c, &g, g.writes, segment, out) || any_unread(c, &g, g.reads, segment, out);
}

bool state_versions_unread(const struct coordinator *c, uint16_t source, uint16_t target,
                           const struct ring_segment *segment, struct unread_state *out)
{
    return judge(c, source, target, &segment, out);
}

bool state_versions_unread_any(const struct coordinator *c, uint16_t source, uint16_t target,
                               struct unread_state *out)
{
    return judge(c, source, target, NULL, out);
}

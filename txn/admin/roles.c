/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators' questions about roles, and the size of a set of daemons.
 */
#include "txn/admin/inside.h"

#include "base/mem.h"

#include <string.h>

static Rh__Kind *kind_row(const struct state_kind *k, uint32_t daemons)
{
    Rh__Kind *row = mem_new(1, sizeof *row);

    *row = (Rh__Kind)RH__KIND__INIT;
    row->number = k->number;
    row->name = mem_string(k->name);
    row->placement = k->placement;
    row->daemons = daemons;
    return row;
}

/* The kinds whose cells the segment (NULL: the default one) has. */
static void add_kinds(const struct state *s, const struct ring_segment *segment, Rh__RoleRow *row)
{
    row->kinds = mem_new(s->kind_count + 1, sizeof(Rh__Kind *));
    for (size_t i = 0; i < s->kind_count; i++) {
        if (ring_segment_of_kind(&s->view.ring, s->kind[i].number) == segment) {
            row->kinds[row->n_kinds++] = kind_row(&s->kind[i], segment == NULL ? 0 : segment->open);
        }
    }
}

static uint64_t count_nobodys(const struct ring *r, uint32_t from, uint32_t end)
{
    uint64_t count = 0;

    for (uint32_t c = from; c < end; c++) {
        count += ring_hit_node(r->cell[c]) == RING_NODE_NONE;
    }
    return count;
}

/* "eu-1 eu-2"; returns owned. */
static char *zones_text(const struct coordinator_config *config, const char *role)
{
    struct buffer text = {0};
    char *out;

    for (size_t i = 0; i < config->zone_count; i++) {
        if (strcmp(config->zone[i].role, role) == 0) {
            buffer_put(&text, " ", text.size > 0);
            buffer_put(&text, config->zone[i].zone, strlen(config->zone[i].zone));
        }
    }
    buffer_put(&text, "", 1);
    out = mem_string((const char *)text.data);
    buffer_fini(&text);
    return out;
}

static Rh__RoleRow *role_row(struct coordinator *c, const struct ring_segment *s)
{
    static const uint32_t placement_of[] = {[RING_HASH] = PLACE_HASH,
                                            [RING_OLDEST] = PLACE_SINGLETON,
                                            [RING_SPREAD] = PLACE_DAEMONS,
                                            [RING_TOGETHER] = PLACE_TOGETHER,
                                            [RING_HOSTS] = PLACE_HOSTS};
    const struct ring *ring = &c->state->view.ring;
    Rh__RoleRow *row = mem_new(1, sizeof *row);

    *row = (Rh__RoleRow)RH__ROLE_ROW__INIT;
    row->role = mem_string(s == NULL ? "" : s->role);
    row->placement = placement_of[s == NULL ? RING_HASH : s->policy];
    row->from = s == NULL ? 0 : s->from;
    row->to = s == NULL ? (uint32_t)1 << ring->grid : ring_segment_end(s);
    row->least = fence_least_members(c, row->role);
    row->nobodys = count_nobodys(ring, row->from, row->to);
    add_kinds(c->state, s, row);
    row->zones = zones_text(&c->config, row->role);
    row->astray = row->zones[0] != '\0';
    for (size_t i = 0; i < c->state->node_count; i++) {
        const struct state_node *n = &c->state->node[i];

        if (strcmp(n->role, row->role) == 0 && peers_live(c, n) && !n->leaving &&
            ring_kinds_fit(&n->kinds, s)) {
            row->nodes++;
            row->astray = row->astray && !zones_has(&c->config, n->role, n->zone);
        }
        if (row->placement == PLACE_SINGLETON && ring_hit_node(ring->cell[row->from]) == n->slot) {
            row->owner = mem_string(n->name);
        }
    }
    return row;
}

void admin_add_roles(struct coordinator *c, Rh__AdminReply *reply)
{
    const struct ring *ring = &c->state->view.ring;

    reply->roles = mem_new(ring->segment_count + 1, sizeof(Rh__RoleRow *));
    reply->roles[reply->n_roles++] = role_row(c, NULL);
    for (size_t i = 0; i < ring->segment_count; i++) {
        reply->roles[reply->n_roles++] = role_row(c, &ring->segment[i]);
    }
}

struct proposal *admin_daemons(struct coordinator *c, Rh__AdminReply *reply,
                               const Rh__AdminDaemons *in)
{
    Rh__Command command = RH__COMMAND__INIT;
    Rh__CommandDaemons body = RH__COMMAND_DAEMONS__INIT;
    struct proposal *p;

    body.name = in->name;
    body.count = in->count;
    command.body_case = RH__COMMAND__BODY_DAEMONS;
    command.daemons = &body;
    command.by = in->by;
    command.reason = in->reason;
    p = coordinator_propose(c, PROPOSAL_DAEMONS, &command);
    if (p == NULL) {
        admin_not_ready(c, reply);
    }
    return p;
}

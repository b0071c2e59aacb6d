/* SPDX-License-Identifier: Apache-2.0
 *
 * What the node knows of cells and kinds: laid out at registration, marked with each configuration.
 */
#include "node/host/inside.h"

#include "base/assert.h"
#include "base/mem.h"
#include "base/mutant.h"

#include <string.h>

void cells_init(struct host_cells *c, const struct host_config *config)
{
    c->kind = mem_new(config->kind_count, sizeof *c->kind);
    for (size_t i = 0; i < config->kind_count; i++) {
        c->kind[i].how = &config->kinds[i];
        c->kind[i].any = kind_takes_any(&config->kinds[i]);
        c->kind[i].row = i < LATENCY_KINDS ? (uint8_t)(i + 1) : 0; // as times_init() gives them
        c->kind[i].at_once = config->kinds[i].brief && !config->kinds[i].durable;
    }
}

void cells_fini(struct host_cells *c)
{
    mem_free(c->state);
    mem_free(c->cost);
    mem_free(c->kind);
}

uint32_t cells_first_of(const struct ring *r, uint16_t kind)
{
    const struct ring_segment *s = ring_segment_of_kind(r, kind);

    return s == NULL ? 0 : s->from;
}

void cells_lay_out(struct host *h)
{
    for (size_t i = 0; i < h->config.kind_count; i++) {
        h->cells.kind[i].kind = h->config.kinds[i].number;
        h->cells.kind[i].key = ring_key_of_kind(h->topology.view.key, h->cells.kind[i].kind);
        h->cells.kind[i].first_cell = cells_first_of(&h->topology.view.ring, h->cells.kind[i].kind);
        idle_init(&h->cells.kind[i].idle, &h->actors, h->config.kinds[i].idle_ms, h->now_us);
    }
    actors_set_grid(&h->actors, h->topology.view.ring.grid, h->topology.view.ring.cell_count);
    mem_free(h->cells.state);
    h->cells.state = mem_new(h->actors.cell_count, sizeof *h->cells.state);
    mem_free(h->cells.cost);
    h->cells.cost = mem_new(h->actors.cell_count, sizeof *h->cells.cost);
    h->cells.mine_count = 0;
}

void cells_grow(struct host *h)
{
    const uint32_t before = h->actors.cell_count;
    const uint32_t now = h->topology.view.ring.cell_count;

    if (h->cells.state != NULL && now > before) {
        actors_grow(&h->actors, now);
        h->cells.state = mem_resize(h->cells.state, now * sizeof *h->cells.state);
        memset(h->cells.state + before, 0, (now - before) * sizeof *h->cells.state);
        h->cells.cost = mem_resize(h->cells.cost, now * sizeof *h->cells.cost);
        memset(h->cells.cost + before, 0, (now - before) * sizeof *h->cells.cost);
    }
}

void cells_forget(struct host *h)
{
    for (uint32_t c = 0; h->cells.state != NULL && c < h->actors.cell_count; c++) {
        h->cells.state[c] = (struct cell_state){0};
        h->cells.cost[c] = (struct cell_cost){0};
    }
    h->cells.mine_count = 0;
}

bool cells_mark(struct host *h, struct span at)
{
    bool lost = false;

    for (uint32_t c = at.from; c < at.to; c++) {
        const bool mine = host_owns(h, c);

        if (h->cells.state[c].mine && !mine) {
            h->cells.state[c].since_us = h->now_us;
            h->cells.mine_count--;
            lost = true;
        } else if (!h->cells.state[c].mine && mine) {
            h->cells.mine_count++;
            h->cells.state[c].since_us = h->now_us;
            cells_forget_costs(&h->cells, c);
            wake_came(h, c);
        }
        h->cells.state[c].mine = mine;
    }
    return lost;
}

void cells_count_time(struct host_cells *c, uint32_t cell, uint64_t us)
{
    uint32_t *busy_us = &c->cost[cell].busy_us;

    *busy_us = us < UINT32_MAX - *busy_us ? *busy_us + (uint32_t)us : UINT32_MAX;
}

uint32_t cells_memory_of(const struct host *h, uint16_t kind)
{
    const struct kind_state *known = host_kind_find(h, kind);
    const uint32_t own = known == NULL ? 0 : known->how->memory;

    return 1 + own / CELL_MEMORY_UNIT + (own % CELL_MEMORY_UNIT != 0 ? 1 : 0);
}

void cells_count_live(struct host *h, const struct actor *a, bool lives)
{
    const uint32_t memory = cells_memory_of(h, a->kind);

    h->cells.cost[ring_point_cell(actor_position(a))].memory += lives ? memory : -memory;
}

void cells_forget_costs(struct host_cells *c, uint32_t cell)
{
    c->state[cell].requests = c->cost[cell].busy_us = 0;
}

void cells_hold(struct host *h, uint32_t cell, struct hold *hold)
{
    h->cells.state[cell].hold = hold;
}

void cells_note_fence(struct host *h, const struct actor *a)
{
    struct cell_state *state = &h->cells.state[ring_point_cell(actor_position(a))];

    ASSERT(a->fence >= state->fence || mutant(M_REGRESS) || mutant(M_ERAMSG));
    state->fence = a->fence;
}

/* ---- kinds ---- */

struct kind_state *host_kind_find(const struct host *h, uint16_t kind)
{
    for (size_t i = 0; i < h->config.kind_count; i++) {
        if (h->cells.kind[i].kind == kind) {
            return &h->cells.kind[i];
        }
    }
    return NULL;
}

struct kind_state *host_kind_of(const struct host *h, uint16_t kind)
{
    struct kind_state *found = host_kind_find(h, kind);

    ASSERT(found != NULL);
    return found;
}

bool host_has_kind(const struct host *h, uint16_t kind)
{
    return host_kind_find(h, kind) != NULL;
}

uint64_t host_position(const struct host *h, uint16_t kind, struct bytes id)
{
    const struct kind_state *known = host_kind_find(h, kind);
    const struct ring_key key =
        known != NULL ? known->key : ring_key_of_kind(h->topology.view.key, kind);

    return ring_point(&h->topology.view.ring, kind, key, id);
}

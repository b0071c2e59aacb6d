/* SPDX-License-Identifier: Apache-2.0
 *
 * Tells how even the load of the nodes is.
 */
#include "txn/admin/inside.h"

#include "base/mem.h"

static const char *name_at(const struct coordinator *c, uint16_t slot)
{
    const struct state_node *node = state_node(c->state, slot);

    return node == NULL ? "" : node->name;
}

static uint32_t number(uint64_t value)
{
    return value < UINT32_MAX ? (uint32_t)value : UINT32_MAX;
}

void admin_add_balance(struct coordinator *c, Rh__AdminReply *reply)
{
    const struct loads_state state = loads_state(c);
    const struct ring_vnode *v = ring_find(&c->state->view.ring, state.vnode);
    const bool any = state.vnode_permille > 0 && v != NULL;
    Rh__BalanceRow *row = mem_new(1, sizeof *row);

    *row = (Rh__BalanceRow)RH__BALANCE_ROW__INIT;
    row->by = mem_string(balance_by_name(c->config.balance_by));
    row->unknown_why = mem_string(state.why == NULL ? "" : state.why);
    row->permille = number(state.permille);
    row->node = mem_string(name_at(c, state.node));
    row->vnode = state.vnode;
    row->vnode_node = mem_string(any ? name_at(c, v->owner) : "");
    row->vnode_permille = number(state.vnode_permille);
    reply->balance = row;
}

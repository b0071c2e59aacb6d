/* SPDX-License-Identifier: Apache-2.0
 *
 * The commands of the replicated state, one function each: specification §3.1. Those of nodes are
 * in txn/state/apply_node.c, those of transactions in txn/state/apply_txn.c.
 */
#include "txn/state/change.h"

#include "txn/state/delta.h"
#include "txn/state/pins.h"
#include "txn/state/remembered.h"
#include "txn/state/roles.h"
#include "txn/state/suspect.h"
#include "wire/versions.h"

#include <string.h>

enum { ERA_MAX = (1 << 24) - 1, CREATED_VNODES_MAX = 4096 };

static const uint64_t LEASE_US_MAX = (uint64_t)STATE_LEASE_S_MAX * 1000000;

static bool fits(const char *text, size_t size_max)
{
    return text[0] != '\0' && strlen(text) <= size_max;
}

/* ---- INIT ---- */

static void on_init(struct change *c, const Rh__CommandInit *in)
{
    struct state *s = c->s;

    if (s->begun) {
        change_refuse(c, "the cluster exists already");
        return;
    }
    if (!fits(in->cluster, VIEW_NAME_MAX) || in->grid < RING_GRID_MIN || in->grid > RING_GRID_MAX ||
        in->vnodes_per_weight < 1 || in->vnodes_per_weight > CREATED_VNODES_MAX ||
        in->era > ERA_MAX || in->format > FLEET_FORMAT || in->lease_us > LEASE_US_MAX ||
        (in->key0 == 0 && in->key1 == 0) || (in->fleet_high == 0 && in->fleet_low == 0)) {
        change_refuse(c, "a setting of the cluster is out of range");
        return;
    }
    s->begun = true;
    s->format = in->format == 0 ? FLEET_FORMAT_OLDEST : in->format;
    change_text(s->cluster, in->cluster, sizeof s->cluster);
    s->vnodes_per_weight = in->vnodes_per_weight;
    s->lease_us = in->lease_us;
    s->number = (uint64_t)in->era << STATE_NUMBER_BITS;
    view_fini(&s->view);
    view_init(&s->view, (uint8_t)in->grid);
    view_set_key(&s->view, (struct ring_key){in->key0, in->key1});
    s->view.era = in->era;
    s->view.fleet = (struct fleet_id){in->fleet_high, in->fleet_low};
}

/* ---- DAEMONS ---- */

static void on_daemons(struct change *c, const Rh__CommandDaemons *in)
{
    const struct ring_segment *known = roles_daemons(c->s, in->name);
    struct ring_segment changed;
    Rh__Delta *delta;

    if (known == NULL) {
        change_refuse(c, "there is no set of daemons with that name");
        return;
    }
    if (in->count > ROLES_DAEMONS_MAX) {
        change_refuse(c, "a set has at most 1000 daemons");
        return;
    }
    if (in->count == known->open) {
        return;
    }
    changed = *known;
    changed.open = in->count;
    c->r->stamp = change_draw(c);
    delta = delta_new(c->r->stamp, 0);
    delta_segment(delta, (size_t)(known - c->s->view.ring.segment), &changed, 0);
    change_delta(c, delta);
}

/* ---- QUARANTINE ---- */

static void on_quarantine(struct change *c, const Rh__CommandQuarantine *in)
{
    const struct state_suspect *known = NULL;
    struct quarantined actor;
    Rh__Delta *delta;

    if (in->actor == NULL || !quarantined_read(&actor, in->actor)) {
        change_refuse(c, "an actor's id has 1 to 255 bytes, its kind is at most 65535");
        return;
    }
    known = suspect_find(c->s, &actor);
    if (!in->add && known == NULL) {
        change_refuse(c, "that actor is not in quarantine, and has no strikes");
        return;
    }
    if (in->add && known != NULL && known->quarantined) {
        return;
    }
    c->r->stamp = change_draw(c);
    delta = delta_new(c->r->stamp, 0);
    if (in->add) {
        suspect_add(c->s, &actor, c->time_us, delta);
    } else {
        suspect_clear(c->s, known, delta);
    }
    change_delta(c, delta);
}

/* ---- VOTER ---- */

static bool is_in(const Rh__CommandVoter *in, uint64_t id)
{
    for (size_t i = 0; i < in->n_group; i++) {
        if (in->group[i] == id) {
            return true;
        }
    }
    return in->n_group == 0;
}

/* The rows that stay, into `kept`; returns how many. */
static size_t keep_voters(const struct state *s, const Rh__CommandVoter *in,
                          struct state_voter kept[STATE_VOTERS_MAX])
{
    size_t count = 0;

    for (size_t i = 0; i < s->voter_count; i++) {
        if (s->voter[i].id != in->id && is_in(in, s->voter[i].id)) {
            kept[count++] = s->voter[i];
        }
    }
    return count;
}

static void on_voter(struct change *c, const Rh__CommandVoter *in)
{
    struct state *s = c->s;
    struct state_voter kept[STATE_VOTERS_MAX] = {0};
    size_t count = 0;
    size_t at = 0;

    if (in->id == 0 || strlen(in->address) > VIEW_ADDRESS_MAX) {
        change_refuse(c, "the voter's id is 0, or its address too long");
        return;
    }
    count = keep_voters(s, in, kept);
    if (count == STATE_VOTERS_MAX) {
        change_refuse(c, "there are 5 voters already");
        return;
    }
    // By id, as a snapshot brings them back: the state's digest goes by this order.
    while (at < count && kept[at].id < in->id) {
        at++;
    }
    memmove(&kept[at + 1], &kept[at], (count - at) * sizeof *kept);
    kept[at] = (struct state_voter){.id = in->id, .identity = in->identity};
    change_text(kept[at].address, in->address, sizeof kept[at].address);
    memcpy(s->voter, kept, sizeof kept);
    s->voter_count = count + 1;
}

/* ---- LEASE ---- */

static void on_lease(struct change *c, const Rh__CommandLease *in)
{
    if (in->lease_us == 0 || in->lease_us > LEASE_US_MAX) {
        change_refuse(c, "the lease is out of range");
        return;
    }
    c->s->lease_us = in->lease_us;
}

/* ---- SETTLED ---- */

static void on_settled(struct change *c)
{
    if (!c->s->settling) {
        change_refuse(c, "the state has already settled");
        return;
    }
    c->s->settling = false;
}

/* ---- FORMAT ---- */

/* Until now all nodes of a role hosted the same. */
static void tell_kinds(struct change *c)
{
    struct state *s = c->s;
    Rh__Delta *delta;

    if (s->node_count == 0) {
        return;
    }
    c->r->stamp = change_draw(c);
    delta = delta_new(c->r->stamp, 0);
    for (size_t i = 0; i < s->node_count; i++) {
        for (size_t k = 0; k < s->kind_count; k++) {
            if (strcmp(s->kind[k].role, s->node[i].role) == 0) {
                (void)ring_kinds_add(&s->node[i].kinds, s->kind[k].number); // a role has 64 at most
            }
        }
        delta_change(delta, &s->node[i]);
    }
    change_delta(c, delta);
}

static void on_format(struct change *c, const Rh__CommandFormat *in)
{
    if (in->format <= c->s->format) {
        change_refuse(c, "the fleet already has that format, or a newer one");
        return;
    }
    if (c->s->format < FLEET_FORMAT_KINDS && in->format >= FLEET_FORMAT_KINDS) {
        tell_kinds(c);
    }
    c->s->format = in->format;
}

static void on_ahead(struct change *c)
{
    if (c->s->format < FLEET_FORMAT_AHEAD) {
        change_refuse(c, "that command belongs to a later format than the fleet's");
        return;
    }
    c->r->stamp = change_draw(c);
}

/* ---- all ---- */

static void dispatch(struct change *c, const Rh__Command *command)
{
    switch (command->body_case) {
    case RH__COMMAND__BODY_INIT:
        on_init(c, command->init);
        return;
    case RH__COMMAND__BODY_REGISTER_:
        apply_register(c, command->register_);
        return;
    case RH__COMMAND__BODY_BEGIN:
        apply_begin(c, command->begin);
        return;
    case RH__COMMAND__BODY_COMMIT:
        apply_commit(c, command->commit);
        return;
    case RH__COMMAND__BODY_ABORT:
        apply_abort(c, command->abort);
        return;
    case RH__COMMAND__BODY_DESIRE:
        apply_desire(c, command->desire);
        return;
    case RH__COMMAND__BODY_FENCE:
        apply_fence(c, command->fence);
        return;
    case RH__COMMAND__BODY_REASSIGN:
        apply_reassign(c, command->reassign);
        return;
    case RH__COMMAND__BODY_DEREGISTER:
        apply_deregister(c, command->deregister);
        return;
    case RH__COMMAND__BODY_VOTER:
        on_voter(c, command->voter);
        return;
    case RH__COMMAND__BODY_SETTLED:
        on_settled(c);
        return;
    case RH__COMMAND__BODY_LEASE:
        on_lease(c, command->lease);
        return;
    case RH__COMMAND__BODY_DAEMONS:
        on_daemons(c, command->daemons);
        return;
    case RH__COMMAND__BODY_QUARANTINE:
        on_quarantine(c, command->quarantine);
        return;
    case RH__COMMAND__BODY_FORMAT:
        on_format(c, command->format);
        return;
    case RH__COMMAND__BODY_AHEAD:
        on_ahead(c);
        return;
    case RH__COMMAND__BODY_PIN:
        apply_pin(c, command->pin);
        return;
    case RH__COMMAND__BODY_REMEMBER:
        apply_remember(c, command->remember);
        return;
    case RH__COMMAND__BODY_NOTE:
        return; // only for the history
    case RH__COMMAND__BODY__NOT_SET:
    case _RH__COMMAND__BODY__CASE_IS_INT_SIZE:
        break;
    }
    change_refuse(c, "the command is unknown");
}

void state_apply(struct state *s, const Rh__Command *command, struct state_result *result)
{
    struct change c = {.s = s, .r = result, .time_us = command->time_us, .by = command->by};

    *result = (struct state_result){.accepted = true};
    if (!s->begun && command->body_case != RH__COMMAND__BODY_INIT) {
        change_refuse(&c, "the cluster does not exist yet");
        return;
    }
    dispatch(&c, command);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Registration, and what begins with it. Holes 1, 2, 53, 54.
 */
#include "node/host/inside.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/stamp.h"
#include "wire/control.h"

#include <inttypes.h>

enum {
    MS = 1000,
    REGISTER_FIRST_MS = 200, /* doubled up to */
    REGISTER_LAST_MS = 2000,
};

/* What it hosts, to be told; false: nothing is told. Takes kinds that have names. */
static bool fill_kinds(const struct host_config *config, Rh__Kind *kind, Rh__Kind **list)
{
    for (size_t i = 0; i < config->kind_count; i++) {
        const struct host_kind *k = &config->kinds[i];

        if (k->name == NULL) {
            return false;
        }
        kind[i] = (Rh__Kind)RH__KIND__INIT;
        kind[i].number = k->number;
        kind[i].name = proto_text(k->name);
        kind[i].placement = k->placement;
        kind[i].daemons = k->daemons;
        list[i] = &kind[i];
    }
    return true;
}

void register_send(struct host *h)
{
    const struct host_config *config = &h->config;
    Rh__Control c = RH__CONTROL__INIT;
    Rh__Register r = RH__REGISTER__INIT;
    Rh__Kind *kind = mem_new(config->kind_count, sizeof *kind);
    Rh__Kind **list = mem_new(config->kind_count, sizeof(Rh__Kind *));
    Rh__Actor *actor = mem_new(config->suspect_count, sizeof *actor);
    Rh__Actor **suspects = mem_new(config->suspect_count, sizeof(Rh__Actor *));

    r.name = proto_text(config->name);
    r.address = proto_text(config->address);
    r.boot_id = proto_bytes(bytes_of(config->boot_id, sizeof config->boot_id));
    r.data_uuid = proto_bytes(bytes_of(config->data_uuid, sizeof config->data_uuid));
    r.nonce = h->membership.nonce;
    r.lock_held = true;
    r.weight = config->weight;
    r.zone = proto_text(config->zone);
    r.role = proto_text(config->role);
    if (fill_kinds(config, kind, list)) {
        r.kinds = list;
        r.n_kinds = config->kind_count;
    }
    quarantine_tell(h, &r, actor, suspects);
    r.disk_era = h->txns.disk.era;
    r.disk_floor = h->txns.disk.floor;
    r.disk_seen = h->txns.disk.seen;
    r.disk_active = h->txns.disk.active;
    r.n_disk_active = h->txns.disk.active_count;
    c.body_case = RH__CONTROL__BODY_REGISTER_;
    c.register_ = &r;
    host_tell(h, leader_of(&h->membership), &c);
    mem_free(kind);
    mem_free(list);
    mem_free(actor);
    mem_free(suspects);
    h->membership.register_us = h->now_us + (uint64_t)h->membership.register_ms * MS;
    h->membership.register_ms = h->membership.register_ms * 2 < REGISTER_LAST_MS
                                    ? h->membership.register_ms * 2
                                    : REGISTER_LAST_MS;
}

void register_soon(struct host *h)
{
    h->membership.register_ms = REGISTER_FIRST_MS;
    h->membership.register_us = h->now_us;
}

static void serve(struct host *h)
{
    struct host_effect *e = NULL;

    membership_enter(&h->membership, LIFE_SERVING);
    h->membership.renew_us = h->now_us;
    h->membership.may_leave = false;
    cells_lay_out(h);
    costs_begin(h);
    forwards_begin(h, h->membership.incarnation);
    streams_begin(h);
    adopt_first(h);
    e = host_emit(h, HOST_REGISTERED);
    e->incarnation = h->membership.incarnation;
    log_info("node",
             "registered",
             "incarnation=%s slot=%u version=%s",
             STAMP(h->membership.incarnation),
             h->membership.slot,
             STAMP(h->topology.view.ring.version));
    wake_adopt(h);
    always_adopt(h);
}

void register_say_went_back(uint64_t era, uint64_t seen)
{
    log_error("node",
              "database_went_back",
              "era=%" PRIu64 " seen=%" PRIu64
              " remedy=\"stop the coordinators and restore again: ringhold recover restore ... "
              "--era-above %" PRIu64 " (docs/recovery.md#went-back)\"",
              era,
              seen,
              seen);
}

void register_on_ok(struct host *h, const Rh__RegOk *ok)
{
    if (h->membership.life != LIFE_JOINING || ok->nonce != h->membership.nonce ||
        ok->config == NULL) {
        return;
    }
    if (fleet_id_differs(h->topology.view.fleet, view_fleet(ok->config))) {
        log_error("node",
                  "another_fleet",
                  "slot=%u: the registration comes from another fleet and is ignored",
                  ok->slot);
        return;
    }
    if (ok->config->era < h->txns.disk.era) {
        register_say_went_back(ok->config->era, h->txns.disk.era);
        host_stop(h, HOST_EXIT_ERA);
        return;
    }
    if (view_load(&h->topology.view, ok->config, true) != VIEW_APPLIED) {
        log_error("node", "config_broken", "version=%s", STAMP(ok->config->version));
        return;
    }
    const struct view_member *me = view_member(&h->topology.view, (uint16_t)ok->slot);
    if (me == NULL || me->incarnation != ok->incarnation) {
        log_error("node", "registration_does_not_fit", "slot=%u", ok->slot);
        return;
    }
    h->membership.slot = (uint16_t)ok->slot;
    h->membership.incarnation = ok->incarnation;
    h->membership.era = ok->config->era;
    lease_policy_begin(h, ok->lease_us);
    txn_begin_era(h, ok->floor);
    serve(h);
}

void register_on_refused(struct host *h, const Rh__RegRefused *refused)
{
    if (h->membership.life != LIFE_JOINING) {
        return;
    }
    if (refused->fatal) {
        log_error("node", "registration_refused", "reason=\"%s\"", refused->reason);
        host_stop(h, HOST_EXIT_REFUSED);
        return;
    }
    log_warn("node", "registration_put_off", "reason=\"%s\"", refused->reason);
    h->membership.register_us = h->now_us + (uint64_t)refused->retry_ms * MS;
}

void register_omitted(struct host *h, const Rh__ConfigAnswer *answer)
{
    const struct view_member *me = NULL;

    if (answer->config == NULL ||
        view_load(&h->topology.view, answer->config, true) != VIEW_APPLIED) {
        return;
    }
    me = view_member_named(&h->topology.view, h->config.name);
    if (me != NULL) {
        h->membership.slot = me->slot;
        h->membership.incarnation = me->incarnation;
        h->membership.era = h->topology.view.era;
        participant_reset(&h->txns.participant, h->txns.disk.floor);
        serve(h);
    }
}

void register_anew(struct host *h)
{
    log_warn("node", "other_era", "era=%" PRIu64, h->membership.era);
    lease_policy_end(h, HOST_DROP_ERA);
    if (h->membership.stopping) {
        host_stop(h, HOST_EXIT_OTHER_ERA);
        return;
    }
    host_drop_all(h, DISCARD_ERA);
    identity_forget(h);
    membership_enter(&h->membership, LIFE_JOINING);
    h->membership.incarnation = 0;
    h->membership.nonce = table_mix(h->membership.nonce + 1);
    register_soon(h);
}

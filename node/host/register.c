/* SPDX-License-Identifier: Apache-2.0
 *
 * Registration, and what begins with it. Holes 1, 2, 53, 54.
 */
#include "node/host/always.h"
#include "node/host/inside.h"
#include "node/host/isolate.h"

#include "base/log.h"
#include "base/mem.h"
#include "wire/control.h"

#include <inttypes.h>

enum { MS = 1000 };

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
    r.nonce = h->nonce;
    r.lock_held = true;
    r.weight = config->weight;
    r.zone = proto_text(config->zone);
    r.role = proto_text(config->role);
    if (fill_kinds(config, kind, list)) {
        r.kinds = list;
        r.n_kinds = config->kind_count;
    }
    isolate_tell(h, &r, actor, suspects);
    r.disk_era = h->disk.era;
    r.disk_floor = h->disk.floor;
    r.disk_seen = h->disk.seen;
    r.disk_active = h->disk.active;
    r.n_disk_active = h->disk.active_count;
    c.body_case = RH__CONTROL__BODY_REGISTER_;
    c.register_ = &r;
    host_tell(h, leader_of(h), &c);
    mem_free(kind);
    mem_free(list);
    mem_free(actor);
    mem_free(suspects);
    h->register_us = h->now_us + (uint64_t)h->register_ms * MS;
    h->register_ms = h->register_ms * 2 < REGISTER_LAST_MS ? h->register_ms * 2 : REGISTER_LAST_MS;
}

void register_soon(struct host *h)
{
    h->register_ms = REGISTER_FIRST_MS;
    h->register_us = h->now_us;
}

/* Everything that depends on the key and the grid of the cluster. */
static void lay_out(struct host *h)
{
    for (size_t i = 0; i < h->config.kind_count; i++) {
        h->kind[i].kind = h->config.kinds[i].number;
        h->kind[i].key = ring_key_of_kind(h->view.key, h->kind[i].kind);
        h->kind[i].first_cell = adopt_first_cell(&h->view.ring, h->kind[i].kind);
        idle_init(&h->kind[i].idle, &h->actors, h->config.kinds[i].idle_ms, h->now_us);
    }
    actors_set_grid(&h->actors, h->view.ring.grid, h->view.ring.cell_count);
    mem_free(h->place);
    h->place = mem_new(h->actors.cell_count, sizeof *h->place);
}

static void serve(struct host *h)
{
    struct host_effect *e = NULL;

    host_enter(h, LIFE_SERVING);
    h->checked_version = h->view.ring.version;
    h->lost_version = 0;
    h->lost_us = h->now_us;
    h->renew_us = h->now_us;
    h->want_version = 0;
    h->may_leave = false;
    lay_out(h);
    adopt_first(h);
    e = host_emit(h, HOST_REGISTERED);
    e->incarnation = h->incarnation;
    log_info("node",
             "registered",
             "incarnation=%" PRIu64 " slot=%u version=%" PRIu64,
             h->incarnation,
             h->slot,
             h->view.ring.version);
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
    if (h->life != LIFE_JOINING || ok->nonce != h->nonce || ok->config == NULL) {
        return;
    }
    if (fleet_id_differs(h->view.fleet, view_fleet(ok->config))) {
        log_error("node",
                  "another_fleet",
                  "slot=%u: the registration comes from another fleet and is ignored",
                  ok->slot);
        return;
    }
    if (ok->config->era < h->disk.era) {
        register_say_went_back(ok->config->era, h->disk.era);
        host_stop(h, HOST_EXIT_ERA);
        return;
    }
    if (view_load(&h->view, ok->config, true) != VIEW_APPLIED) {
        log_error("node", "config_broken", "version=%" PRIu64, ok->config->version);
        return;
    }
    const struct view_member *me = view_member(&h->view, (uint16_t)ok->slot);
    if (me == NULL || me->incarnation != ok->incarnation) {
        log_error("node", "registration_does_not_fit", "slot=%u", ok->slot);
        return;
    }
    h->slot = (uint16_t)ok->slot;
    h->incarnation = ok->incarnation;
    h->era = ok->config->era;
    participant_reset(&h->participant, ok->floor);
    tenure_begin(h, ok->lease_us);
    h->disk.era = h->era;
    h->disk.floor = ok->floor > h->disk.floor ? ok->floor : h->disk.floor;
    h->disk.active_count = 0;
    (void)host_persist(h);
    serve(h);
}

void register_on_refused(struct host *h, const Rh__RegRefused *refused)
{
    if (h->life != LIFE_JOINING) {
        return;
    }
    if (refused->fatal) {
        log_error("node", "registration_refused", "reason=\"%s\"", refused->reason);
        host_stop(h, HOST_EXIT_REFUSED);
        return;
    }
    log_warn("node", "registration_put_off", "reason=\"%s\"", refused->reason);
    h->register_us = h->now_us + (uint64_t)refused->retry_ms * MS;
}

void register_omitted(struct host *h, const Rh__ConfigAnswer *answer)
{
    const struct view_member *me = NULL;

    if (answer->config == NULL || view_load(&h->view, answer->config, true) != VIEW_APPLIED) {
        return;
    }
    me = view_member_named(&h->view, h->config.name);
    if (me != NULL) {
        h->slot = me->slot;
        h->incarnation = me->incarnation;
        h->era = h->view.era;
        participant_reset(&h->participant, h->disk.floor);
        serve(h);
    }
}

void register_anew(struct host *h)
{
    log_warn("node", "other_era", "era=%" PRIu64, h->era);
    tenure_end(h, HOST_DROP_ERA);
    if (h->stopping) {
        host_stop(h, HOST_EXIT_OTHER_ERA);
        return;
    }
    host_drop_all(h, DISCARD_ERA);
    identity_forget(h);
    host_enter(h, LIFE_JOINING);
    h->incarnation = 0;
    h->nonce = table_mix(h->nonce + 1);
    register_soon(h);
}

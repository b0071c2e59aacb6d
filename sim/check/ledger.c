/* SPDX-License-Identifier: Apache-2.0
 *
 * The checkers' memory: sessions, requests, owners and versions as they really
 * were.
 */
#include "base/mem.h"
#include "sim/fleet.h"

#include <stdio.h>
#include <string.h>

void ledger_list_add(struct ledger_list *l, uint64_t uid)
{
    if (l->count == l->cap) {
        l->cap = l->cap == 0 ? 16 : 2 * l->cap;
        l->uid = mem_resize(l->uid, l->cap * sizeof *l->uid);
    }
    l->uid[l->count++] = uid;
}

bool ledger_list_equal(const struct ledger_list *a, const struct ledger_list *b)
{
    return a->count == b->count &&
           (a->count == 0 || memcmp(a->uid, b->uid, a->count * sizeof *a->uid) == 0);
}

void ledger_list_copy(struct ledger_list *to, const struct ledger_list *from)
{
    to->count = 0;
    for (size_t i = 0; i < from->count; i++) {
        ledger_list_add(to, from->uid[i]);
    }
}

void ledger_list_fini(struct ledger_list *l)
{
    mem_free(l->uid);
    *l = (struct ledger_list){0};
}

void ledger_init(struct fleet *f)
{
    struct ledger *l = &f->ledger;

    for (size_t i = 0; i < LEDGER_ENTITIES; i++) {
        struct entity *e = &l->entity[i];

        (void)snprintf(e->id, sizeof e->id, "%s%zu", i < LEDGER_HOT ? "hot" : "cold", i);
        e->id_size = strlen(e->id);
        // A few are larger than one chunk of a hand-over, and than its window.
        e->durable = i == LEDGER_HOT - 1 || i % 4 == 3;
        e->ballast = world_chance(&f->world, 60) ? world_between(&f->world, 1000, 150000) : 0;
    }
    roles_entities(f);
}

void ledger_fini(struct ledger *l)
{
    for (size_t i = 0; i < LEDGER_ENTITIES; i++) {
        ledger_list_fini(&l->entity[i].history);
        ledger_list_fini(&l->entity[i].row);
        ledger_list_fini(&l->entity[i].saved);
    }
    for (size_t i = 0; i < l->session_count; i++) {
        ledger_list_fini(&l->session[i]->asked);
        mem_free(l->session[i]);
    }
    mem_free(l->session);
    mem_free(l->ask);
    mem_free(l->view);
    mem_free(l->former);
    mem_free(l->life);
    mem_free(l->outcome);
}

struct entity *ledger_entity(struct fleet *f, struct bytes id)
{
    for (size_t i = 0; i < LEDGER_ENTITIES; i++) {
        struct entity *e = &f->ledger.entity[i];

        if (bytes_equal(id, bytes_of(e->id, e->id_size))) {
            return e;
        }
    }
    return NULL;
}

struct sim_session *ledger_session(struct fleet *f, struct sim_gateway *g, uint64_t id)
{
    struct ledger *l = &f->ledger;
    struct sim_session *s = mem_new(1, sizeof *s);

    if (l->session_count == l->session_cap) {
        l->session_cap = l->session_cap == 0 ? 16 : 2 * l->session_cap;
        l->session = mem_resize(l->session, l->session_cap * sizeof(struct sim_session *));
    }
    l->session[l->session_count++] = s;
    s->number = l->session_count;
    s->id = id;
    s->gateway = g;
    return s;
}

const struct process *session_process(const struct sim_session *s)
{
    return s->gateway != NULL ? &s->gateway->process : &s->node->process;
}

uint64_t session_version(const struct sim_session *s)
{
    return s->gateway != NULL ? s->gateway->seen.version : s->node->seen.version;
}

void ledger_close(struct fleet *f, struct sim_session *s)
{
    struct ledger *l = &f->ledger;

    s->closed = true;
    record_close(f, s);
    for (size_t i = 0; i < l->ask_count; i++) {
        l->open -= l->ask[i].session == s && !l->ask[i].answered;
    }
}

uint64_t entity_busy_us(const struct fleet *f, const struct entity *e)
{
    return e->run_us + (e->run_from_us == 0 ? 0 : f->world.now_us - e->run_from_us);
}

void entity_rests(const struct fleet *f, struct entity *e)
{
    e->run_us = entity_busy_us(f, e);
    e->run_from_us = 0;
}

uint64_t entity_held_us(const struct fleet *f, const struct entity *e)
{
    return e->held_us + (e->held_from_us == 0 ? 0 : f->world.now_us - e->held_from_us);
}

uint64_t asker_put_off_us(const struct fleet *f, const struct sim_session *s)
{
    return s->gateway == NULL ? 0 : gateway_put_off_us(f, s->gateway);
}

uint64_t ledger_ask(struct fleet *f, struct sim_session *s, size_t entity, bool foreign)
{
    struct ledger *l = &f->ledger;

    if (l->ask_count == l->ask_cap) {
        l->ask_cap = l->ask_cap == 0 ? 1024 : 2 * l->ask_cap;
        l->ask = mem_resize(l->ask, l->ask_cap * sizeof *l->ask);
    }
    l->ask[l->ask_count++] = (struct sim_ask){
        .session = s,
        .entity = entity,
        .seq = foreign ? 0 : ++s->sent[entity],
        .foreign = foreign,
        .sent_us = f->world.now_us,
        .given_us = f->world.now_us,
        .busy_us = entity_busy_us(f, &l->entity[entity]),
        .held_us = entity_held_us(f, &l->entity[entity]),
        .put_off_us = asker_put_off_us(f, s),
        .ttl_us = (uint64_t)f->deadline_ms * 1000,
        .view = check_view_index(f, session_version(s)),
    };
    l->open++;
    return l->ask_count;
}

uint16_t entity_kind(const struct entity *e)
{
    return e->kind != 0 ? e->kind : e->durable ? FLEET_KIND_DURABLE : FLEET_KIND;
}

struct sim_ask *ledger_find(struct fleet *f, uint64_t uid)
{
    return uid == 0 || uid > f->ledger.ask_count ? NULL : &f->ledger.ask[uid - 1];
}

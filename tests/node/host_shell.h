/* SPDX-License-Identifier: Apache-2.0
 *
 * The shells of a few hosts, as far as host_test.c needs them: packets on their way, actors that do
 * as chance has it.
 */
#ifndef TESTS_NODE_HOST_SHELL_H
#define TESTS_NODE_HOST_SHELL_H

#include "tests/test.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/prng.h"
#include "node/host/host.h"
#include "node/host/inside.h"
#include "wire/control.h"
#include "wire/frame.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    NODES = 3,
    VNODES = 6,
    ENTITIES = 24,
    SESSIONS = 4,
    WINDOW = 4,
    LANE = 8, /* more than that never stands between the first and the last unfinished */
    ROUNDS = 6000,
    PACKETS_MAX = 65536,
    GATEWAY_LINK = 900,
    STATE_PAD = 90000, /* some actors need more than one chunk */
};

/* Ends of a packet's way: nodes 1..NODES, then these. */
enum { COORDINATOR = 0, GATEWAY = NODES + 1, ENDS };

struct packet {
    int from;
    int to;
    int frame_type;      /* 0 = what the shell reports of an actor */
    struct actor *actor; /* NULL: an id to wake */
    struct completion completion;
    uint64_t late_us; /* a second copy: not before; 0 = the first one */
    struct bytes bytes;
    void *memory; /* owned, behind `bytes` */
};

struct shell {
    struct host *host;
    struct host_effects effects;
    uint64_t persist_ticket; /* to be reported; 0 = none */
    bool linked[NODES + 1];
};

/* The shell's part of an actor: how many messages it took. */
struct instance {
    uint32_t taken;
    unsigned entity;
};

static struct prng prng;
static uint64_t now_us;
static struct shell shells[NODES + 1];
static struct packet *packets[PACKETS_MAX + 1];
static size_t packet_count;
/* With odd seeds actors retire, with even ones they live unasked. */
static struct host_kind kinds[] = {{.number = 0}};

/* The coordinator. */
static struct view cluster;
static uint64_t number;
static struct {
    uint64_t txn; /* 0 = none */
    uint32_t vnode;
    uint16_t from;
    uint16_t to;
    uint64_t superseded;
    uint64_t base;
    bool in_voted;
} pending;
static unsigned commits;
static unsigned cancels;
static unsigned supersedes;
static bool faulty; /* then no back-off outlasts a request */
static unsigned failures;
static unsigned turns;
static unsigned retirements;

/* The truth about each entity. */
static struct {
    int lives_at; /* node with a live actor, 0 = none */
    uint32_t taken;
    uint32_t saved; /* of it, when its instance ended without being handed over */
    uint64_t last[SESSIONS];
} truth[ENTITIES];

/* The gateway. */
static struct view routes;
static struct {
    uint64_t sent; /* highest seq given */
    uint64_t done; /* bit i of `finished`: done + 1 + i is answered */
    uint64_t finished;
    uint64_t asked[LANE]; /* by seq modulo: when to send again, 0 = now */
    uint8_t copy[LANE];
    uint64_t first[LANE];
} lane[SESSIONS][ENTITIES];
static uint64_t answered;

/* ---- packets ---- */

static inline void post(struct packet packet, struct bytes bytes)
{
    struct packet *p = mem_copy(&packet, sizeof packet);

    assert_true(packet_count < PACKETS_MAX);
    p->memory = mem_copy(bytes.data, bytes.size);
    p->bytes = bytes_of(p->memory, bytes.size);
    packets[packet_count++] = p;
}

static inline void packet_free(struct packet *p)
{
    mem_free(p->memory);
    mem_free(p);
}

static inline struct packet *take_packet(size_t at)
{
    struct packet *p = packets[at];

    packet_count--;
    for (; at < packet_count; at++) {
        packets[at] = packets[at + 1];
    }
    return p;
}

static inline void lose_between(int a, int b)
{
    for (size_t i = packet_count; i > 0; i--) {
        const struct packet *p = packets[i - 1];

        if ((p->from == a && p->to == b) || (p->from == b && p->to == a)) {
            packet_free(take_packet(i - 1));
        }
    }
}

/* ---- the shell of a node ---- */

static inline unsigned entity_of(struct bytes id)
{
    char text[16] = {0};

    memcpy(text, id.data, id.size);
    return (unsigned)strtoul(text + 1, NULL, 10);
}

static inline struct bytes entity_id(unsigned entity)
{
    static char id[16];

    (void)snprintf(id, sizeof id, "e%u", entity);
    return bytes_of(id, strlen(id));
}

static inline uint64_t link_of(int node)
{
    return (uint64_t)node;
}

static void step(int node, struct host_event event);

/* An actor's completion comes back by itself. */
static inline void complete(int node, struct packet packet, struct bytes bytes)
{
    packet.from = packet.to = node;
    post(packet, bytes);
}

/* A worker had no time for it: as if it had not been given. */
static inline bool give_back(int node, const struct host_effect *e, struct bytes bytes)
{
    if (!prng_chance(&prng, 3)) {
        return false;
    }
    complete(node,
             (struct packet){.actor = e->actor,
                             .completion = submission_returned(&e->submission, bytes)},
             bytes);
    return true;
}

static inline void activate(int node, const struct host_effect *e, struct bytes bytes)
{
    const unsigned entity = entity_of(actor_id(e->actor));
    struct packet done = {.actor = e->actor, .completion = {.verb = VERB_ACTIVATE}};
    struct instance *i = NULL;

    actor_set_instance(e->actor, NULL);
    if (faulty && prng_chance(&prng, 5)) {
        done.completion.error = ERR_IO;
        failures++;
    } else {
        i = mem_new(1, sizeof *i);
        i->entity = entity;
        i->taken = truth[entity].saved;
        if (e->submission.has_state) {
            memcpy(&i->taken, bytes.data, sizeof i->taken);
        }
        assert_int_equal(truth[entity].lives_at, 0);     // P1
        assert_int_equal(i->taken, truth[entity].taken); // the state came along
        truth[entity].lives_at = node;
        actor_set_instance(e->actor, i);
    }
    complete(node, done, bytes_of("", 0));
}

static inline void ask_for_more(int node, struct actor *a)
{
    static const enum verb verbs[] = {VERB_POKE, VERB_POKE, VERB_PASSIVATE, VERB_FAIL};

    const enum verb verb = verbs[prng_between(&prng, 0, 3)];

    // Who lives unasked and retires by its own wish stays so until it is listed again.
    if (faulty && prng_chance(&prng, 20) && !(verb == VERB_PASSIVATE && kinds[0].remembered)) {
        complete(node,
                 (struct packet){.actor = a, .completion = {.verb = (uint8_t)verb}},
                 bytes_of("", 0));
    }
}

static inline void run(int node, const struct host_effect *e, struct bytes body)
{
    struct instance *i = actor_instance(e->actor);
    uint64_t name[2];

    assert_int_equal(truth[i->entity].lives_at, node);
    assert_int_equal(i->taken, truth[i->entity].taken);
    if (e->submission.verb == VERB_RUN) {
        assert_int_equal(body.size, sizeof name);
        memcpy(name, body.data, sizeof name);
        assert_true(name[1] > truth[i->entity].last[name[0]]); // P2, P3
        truth[i->entity].last[name[0]] = name[1];
    } else {
        turns++;
    }
    truth[i->entity].taken = ++i->taken;
    ask_for_more(node, e->actor);
    complete(
        node,
        (struct packet){.actor = e->actor,
                        .completion = {.verb = e->submission.verb, .ticket = e->submission.ticket}},
        bytes_of("", 0));
}

static inline void export(int node, const struct host_effect *e)
{
    static uint8_t state[STATE_PAD];
    const struct instance *i = actor_instance(e->actor);
    const size_t size = i->entity % 4 == 0 ? sizeof state : sizeof i->taken;
    struct packet done = {.actor = e->actor,
                          .completion = {.verb = VERB_EXPORT, .has_state = true}};

    assert_int_equal(truth[i->entity].lives_at, node);
    if (prng_chance(&prng, 20)) {
        done.completion.error = ERR_BUSY; // it goes on
        ask_for_more(node, e->actor);
        complete(node, done, bytes_of("", 0));
        return;
    }
    truth[i->entity].lives_at = 0;
    if (prng_chance(&prng, 20)) {
        done.completion.has_state = false;
        truth[i->entity].saved = i->taken;
        complete(node, done, bytes_of("", 0));
        return;
    }
    memcpy(state, &i->taken, sizeof i->taken);
    complete(node, done, bytes_of(state, size));
}

/* The actor's instance ended: it says nothing more. */
static inline void end_instance(struct actor *a)
{
    mem_free(actor_instance(a));
    actor_set_instance(a, NULL);
    for (size_t at = packet_count; at > 0; at--) {
        if (packets[at - 1]->actor == a) {
            packet_free(take_packet(at - 1));
        }
    }
}

static inline void save(const struct instance *i)
{
    truth[i->entity].lives_at = 0;
    truth[i->entity].saved = i->taken;
}

static inline void retire_now(int node, const struct host_effect *e)
{
    struct instance *i = actor_instance(e->actor);
    const bool failed = faulty && prng_chance(&prng, 20);

    assert_int_equal(truth[i->entity].lives_at, node);
    if (!failed) {
        save(i);
        end_instance(e->actor);
        retirements++;
    }
    complete(node,
             (struct packet){.actor = e->actor,
                             .completion = {.verb = VERB_RETIRE,
                                            .ticket = e->submission.ticket,
                                            .error = failed ? ERR_IO : ERR_OK}},
             bytes_of("", 0));
}

static inline void discard(const struct host_effect *e)
{
    const struct instance *i = actor_instance(e->actor);

    if (e->submission.why == DISCARD_BROKEN) {
        save(i);
    }
    end_instance(e->actor);
}

/* Ids to start came to a node: all of them, it knows which are its own. */
static inline void list_ids(int node)
{
    for (unsigned e = 0; e < ENTITIES; e++) {
        complete(node, (struct packet){0}, entity_id(e));
    }
}

/* I6: a forward tells the version by which it was forwarded, and that strictly climbs. */
static inline void check_forward(int node, struct bytes bytes)
{
    struct reader in = {.at = bytes.data, .left = bytes.size};
    struct request_record r;

    assert_int_equal(request_get(&in, &r), ERR_OK);
    assert_int_equal(r.version, host_view(shells[node].host)->ring.version);
    assert_true(r.hops <= RECORD_HOPS_MAX);
}

static inline void submit(int node, const struct host_effect *e, struct bytes bytes)
{
    struct instance *i = NULL;

    if (host_effect_is_task(e) && give_back(node, e, bytes)) {
        return;
    }
    switch ((int)e->submission.verb) {
    case VERB_ACTIVATE:
        activate(node, e, bytes);
        break;
    case VERB_RUN:
    case VERB_TURN:
        run(node, e, bytes);
        break;
    case VERB_EXPORT:
        export(node, e);
        break;
    case VERB_UNFREEZE:
        i = actor_instance(e->actor);
        assert_int_equal(truth[i->entity].lives_at, 0);
        assert_int_equal(truth[i->entity].taken, i->taken);
        truth[i->entity].lives_at = node;
        break;
    case VERB_DISCARD:
        discard(e);
        break;
    case VERB_RETIRE:
        retire_now(node, e);
        break;
    default:
        fail_msg("node %d: verb %d", node, (int)e->submission.verb);
        break;
    }
}

static inline void do_effect(int node, const struct host_effect *e)
{
    const struct bytes bytes = {shells[node].effects.bytes.data + e->at, e->size};
    const int to = e->peer == GATEWAY_LINK ? GATEWAY : (int)e->peer;

    switch (e->type) {
    case HOST_SEND_COORDINATOR:
        post((struct packet){.from = node, .to = COORDINATOR, .frame_type = FRAME_CONTROL}, bytes);
        break;
    case HOST_SEND_PEER:
        if (e->frame_type == FRAME_REQUEST) {
            check_forward(node, bytes);
        }
        post((struct packet){.from = node, .to = to, .frame_type = e->frame_type}, bytes);
        break;
    case HOST_CONNECT:
    case HOST_DISCONNECT:
    case HOST_REGISTERED:
        break;
    case HOST_PERSIST:
        shells[node].persist_ticket = e->ticket;
        break;
    case HOST_SUBMIT:
        submit(node, e, bytes);
        break;
    case HOST_FORMER: // its actors ask nobody
        break;
    case HOST_LIST:
        list_ids(node);
        break;
    case HOST_MAILBOX_FULL:
    case HOST_DUE:
    case HOST_DROP_PEER:
        fail_msg("node %d: effect %d", node, (int)e->type);
        break;
    case HOST_EXIT:
        fail_msg("node %d exits: %s", node, e->why);
        break;
    }
}

static inline void step(int node, struct host_event event)
{
    struct shell *s = &shells[node];

    event.now_us = now_us;
    host_step(s->host, &event, &s->effects);
    for (size_t i = 0; i < s->effects.count; i++) {
        do_effect(node, &s->effects.item[i]);
    }
    host_effects_clear(&s->effects);
}

#endif

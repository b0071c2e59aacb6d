/* SPDX-License-Identifier: Apache-2.0
 *
 * Any sequence of well-formed records to a node's machine, by links of any role, name and
 * incarnation: it stays alive, and all that it holds fits together. Its coordinator is an honest
 * one, which moves vnodes to and fro; its actors end what they begin as chance has it. What comes
 * is encoded and decoded like what comes by a link: what a decoder refuses never gets there.
 */
#include "base/assert.h"
#include "base/crc.h"
#include "base/log.h"
#include "base/mem.h"
#include "node/books/image.h"
#include "node/host/host.h"
#include "tests/node/host_controls.h"
#include "wire/control.h"
#include "wire/cursor.h"
#include "wire/frame.h"

#include <stdio.h>
#include <string.h>

enum {
    VNODES = 4,
    SLOTS = 3,
    CELLS = (1u << RING_GRID_MIN) / VNODES,
    FIRST_VERSION = 20,
    LINKS = 6,
    IDS = 2 * VNODES,
    TASKS_MAX = 256,
    PENDING_MAX = 4,
    CHECK_EVERY = 64,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Something given to an actor that it has not answered. */
struct task {
    struct actor *actor;
    struct host_effect effect;
    uint8_t *data; /* owned; what came with it */
};

struct pending {
    uint64_t txn; /* 0 = none */
    uint64_t base;
    uint32_t vnode;
    uint16_t other;
    bool out;
    bool voted;
};

static const struct host_kind kinds[] = {
    {.number = 0, .idle_ms = 200, .mailbox = 3, .ahead = true},
    {.number = 1, .remembered = true},
};
static char ids[IDS][8];

/* Of this input. */
static struct reader in;
static struct host *host;
static struct host_effects effects;
static struct view cluster;
static uint64_t now_us;
static uint64_t number;
static uint64_t nonce;
static uint64_t renewed;
static uint64_t persisted;
static struct pending pending[PENDING_MAX];
static struct task tasks[TASKS_MAX];
static size_t task_count;
static struct actor *alive[TASKS_MAX];
static size_t alive_count;

static uint8_t byte(void)
{
    return get_u8(&in);
}

static uint8_t below(uint8_t count)
{
    return (uint8_t)(byte() % count);
}

/* One of those, or a few more. */
static uint64_t about(uint64_t what)
{
    return what + below(4) - 1;
}

/* ---- what the host wants done ---- */

static void forget_tasks(const struct actor *a)
{
    size_t kept = 0;

    for (size_t i = 0; i < task_count; i++) {
        if (tasks[i].actor != a) {
            tasks[kept++] = tasks[i];
        } else {
            mem_free(tasks[i].data);
        }
    }
    task_count = kept;
}

static void forget_actor(const struct actor *a)
{
    size_t kept = 0;

    for (size_t i = 0; i < alive_count; i++) {
        if (alive[i] != a) {
            alive[kept++] = alive[i];
        }
    }
    alive_count = kept;
    forget_tasks(a);
}

static void hear(struct bytes bytes)
{
    Rh__Control *c = control_get(bytes);

    ASSERT(c != NULL);
    if (c->body_case == RH__CONTROL__BODY_RENEW) {
        renewed = c->renew->seq;
    } else if (c->body_case == RH__CONTROL__BODY_REGISTER_) {
        nonce = c->register_->nonce;
    } else if (c->body_case == RH__CONTROL__BODY_PREPARED) {
        for (size_t i = 0; i < PENDING_MAX; i++) {
            pending[i].voted = pending[i].voted || pending[i].txn == c->prepared->txn;
        }
    }
    control_free(c);
}

static void perform(const struct host_effect *e)
{
    const struct bytes bytes = {effects.bytes.data + e->at, e->size};

    if (host_effect_is_task(e)) {
        ASSERT(task_count < TASKS_MAX);
        tasks[task_count++] = (struct task){e->actor, *e, mem_copy(bytes.data, bytes.size)};
    } else if (e->type == HOST_SEND_COORDINATOR) {
        hear(bytes);
    } else if (e->type == HOST_PERSIST) {
        persisted = e->ticket;
    } else if (e->submission.verb == VERB_DISCARD) {
        forget_actor(e->actor);
    } else if (e->type == HOST_EXIT) {
        ASSERT(false); // nobody told it to go
    }
}

static void step(struct host_event event)
{
    event.now_us = now_us;
    event.wall_us = now_us + 1;
    host_step(host, &event, &effects);
    for (size_t i = 0; i < effects.count; i++) {
        if (now_us >= host_limit_us(host, &effects.item[i])) {
            host_keep(host, &effects, i);
        } else {
            perform(&effects.item[i]);
        }
    }
    host_effects_clear(&effects);
}

/* ---- the coordinator ---- */

static void tell(Rh__Control *c)
{
    c->era = 1;
    c->version = cluster.ring.version;
    step((struct host_event){.type = HOST_CONTROL, .message = c});
}

static void lead(void)
{
    step((struct host_event){.type = HOST_COORDINATOR_UP});
    say_leader(tell);
}

static void enter(uint64_t lease_us)
{
    Rh__RegOk ok = RH__REG_OK__INIT;

    ok.nonce = nonce;
    ok.floor = number;
    ok.lease_us = lease_us;
    say_reg_ok(&cluster, 1, ok, tell);
}

static void grant(void)
{
    Rh__Control c = RH__CONTROL__INIT;
    Rh__Grant grant = RH__GRANT__INIT;

    grant.seq = renewed;
    grant.lease_us = 3000000;
    grant.version = cluster.ring.version;
    c.body_case = RH__CONTROL__BODY_GRANT;
    c.grant = &grant;
    tell(&c);
}

static uint16_t owner_of(uint32_t vnode)
{
    return ring_hit_node(cluster.ring.cell[(size_t)vnode * CELLS]);
}

static void say_prepare(const struct pending *p)
{
    Rh__Control c = RH__CONTROL__INIT;
    Rh__Prepare prepare = RH__PREPARE__INIT;
    Rh__Arc arc = RH__ARC__INIT;
    Rh__Arc *arcs[] = {&arc};

    arc.vnode = p->vnode;
    arc.from = p->vnode * CELLS;
    arc.to = arc.from + CELLS;
    arc.out = p->out;
    arc.peer = p->other;
    arc.peer_incarnation = cluster.member[p->other - 1].incarnation;
    prepare.txn = p->txn;
    prepare.base_version = p->base;
    prepare.arcs = arcs;
    prepare.n_arcs = 1;
    c.body_case = RH__CONTROL__BODY_PREPARE;
    c.prepare = &prepare;
    tell(&c);
}

static void prepare(void)
{
    struct pending *p = &pending[below(PENDING_MAX)];
    const uint32_t vnode = below(VNODES);
    const uint16_t owner = owner_of(vnode);

    if (p->txn == 0) {
        for (size_t i = 0; i < PENDING_MAX; i++) {
            if (pending[i].txn != 0 && pending[i].vnode == vnode) {
                return;
            }
        }
        *p = (struct pending){.txn = ++number,
                              .base = cluster.ring.version,
                              .vnode = vnode,
                              .other = owner == 1 ? (uint16_t)(2 + below(SLOTS - 1)) : owner,
                              .out = owner == 1};
    }
    say_prepare(p);
}

/* Both have voted, as far as one can see; the change has a number of its own. */
static void commit(struct pending *p)
{
    Rh__Control c = RH__CONTROL__INIT;
    Rh__Commit commit = RH__COMMIT__INIT;
    Rh__Delta delta = RH__DELTA__INIT;
    Rh__RingOp op = RH__RING_OP__INIT;
    Rh__RingOp *ops[] = {&op};

    op.kind = RING_MOVE;
    op.vnode = p->vnode;
    op.from = p->out ? 1 : p->other;
    op.to = p->out ? p->other : 1;
    delta.ops = ops;
    delta.n_ops = 1;
    delta.txn = p->txn;
    delta.version = ++number;
    const bool sealed = view_seal(&cluster, &delta);
    ASSERT(sealed && view_apply(&cluster, &delta) == VIEW_APPLIED);
    commit.txn = p->txn;
    commit.delta = &delta;
    c.body_case = RH__CONTROL__BODY_COMMIT;
    c.commit = &commit;
    *p = (struct pending){0};
    tell(&c);
}

static void cancel(struct pending *p)
{
    Rh__Control c = RH__CONTROL__INIT;
    Rh__Cancel cancel = RH__CANCEL__INIT;

    cancel.txn = p->txn;
    c.body_case = RH__CONTROL__BODY_CANCEL;
    c.cancel = &cancel;
    *p = (struct pending){0};
    tell(&c);
}

static void decide(void)
{
    struct pending *p = &pending[below(PENDING_MAX)];

    if (p->txn != 0 && p->voted && byte() % 4 != 0) {
        commit(p);
    } else if (p->txn != 0) {
        cancel(p);
    }
}

/* A process of another slot was started again. */
static void configure(void)
{
    if (byte() % 4 == 0) {
        const uint16_t slot = (uint16_t)(2 + below(SLOTS - 1));

        for (size_t i = 0; i < PENDING_MAX; i++) {
            if (pending[i].txn != 0 && pending[i].other == slot) {
                return;
            }
        }
        cluster.member[slot - 1].incarnation = ++number;
        ring_set_version(&cluster.ring, number);
    }
    say_config(&cluster, tell);
}

/* ---- actors ---- */

static void complete(struct actor *a, struct completion c)
{
    step((struct host_event){.type = HOST_COMPLETED, .actor = a, .completion = c});
}

static void give_back(const struct task *t)
{
    complete(t->actor,
             submission_returned(&t->effect.submission, bytes_of(t->data, t->effect.size)));
}

static void answer_task(const struct task *t, uint8_t how)
{
    struct completion c = {.verb = t->effect.submission.verb,
                           .ticket = t->effect.submission.ticket,
                           .bytes = bytes_of("well", how % 5)};

    if (c.verb == VERB_ACTIVATE) {
        c.error = how == 0 ? ERR_IO : ERR_OK;
        ASSERT(alive_count < TASKS_MAX);
        alive[alive_count] = t->actor;
        alive_count += how == 0 ? 0 : 1;
    } else if (c.verb == VERB_EXPORT || c.verb == VERB_COPY) {
        c.error = how == 0 ? ERR_BUSY : how == 1 ? ERR_IO : ERR_OK;
        c.has_state = how % 2 == 0;
    } else if (c.verb == VERB_RETIRE) {
        c.error = how == 0 ? ERR_IO : how == 1 ? ERR_BUSY : ERR_OK;
        if (c.error == ERR_OK) {
            forget_actor(t->actor);
        }
    } else {
        c.code = how == 0 ? ANSWER_APP_ERROR : ANSWER_OK;
    }
    complete(t->actor, c);
}

static void finish(void)
{
    const uint8_t at = byte();
    const uint8_t how = byte();

    if (task_count == 0) {
        return;
    }
    const struct task t = tasks[at % task_count];
    task_count--;
    tasks[at % (task_count + 1)] = tasks[task_count];
    if (how >= 240) {
        give_back(&t);
    } else {
        answer_task(&t, how % 8);
    }
    mem_free(t.data);
}

static bool has_task(const struct actor *a)
{
    size_t i = 0;

    while (i < task_count && tasks[i].actor != a) {
        i++;
    }
    return i < task_count;
}

static void stir(void)
{
    struct actor *a = alive_count == 0 ? NULL : alive[byte() % alive_count];
    const uint8_t how = below(4);

    if (how == 0) {
        const char *id = ids[below(IDS)];

        step((struct host_event){
            .type = HOST_WAKE, .kind = below(2), .id = bytes_of(id, strlen(id))});
    } else if (a != NULL && how == 1) {
        complete(a, (struct completion){.verb = VERB_POKE});
    } else if (a != NULL && how == 2) {
        complete(a, (struct completion){.verb = VERB_PASSIVATE});
    } else if (a != NULL && !has_task(a)) {
        complete(a, (struct completion){.verb = VERB_FAIL});
    }
}

/* ---- links, and what comes by them ---- */

static uint64_t some_process(void)
{
    static const uint64_t numbers[] = {102, 103, 101, 900, 901, 0, 102, 112};

    return numbers[below(sizeof numbers / sizeof numbers[0])];
}

static uint64_t some_link(void)
{
    return 1 + below(LINKS);
}

/* The first two are those of the other nodes, the rest are gateways'. */
static uint64_t process_at(uint64_t link)
{
    return link > 2 ? 900 + link : cluster.member[link].incarnation;
}

static void honest_link_comes(uint64_t link)
{
    static const char *const names[] = {"n2", "n3"};

    step((struct host_event){.type = HOST_PEER_UP,
                             .peer = link,
                             .role = link > 2 ? ROLE_GATEWAY : ROLE_NODE,
                             .name = link > 2 ? "g" : names[link - 1],
                             .incarnation = process_at(link)});
}

static void link_comes(void)
{
    static const char *const names[] = {"n2", "n3", "n1", "g", "h"};
    const uint64_t link = some_link();

    if (byte() < 160) {
        honest_link_comes(link);
        return;
    }
    step((struct host_event){.type = HOST_PEER_UP,
                             .peer = link,
                             .role = ROLE_NODE + below(2),
                             .name = names[below(sizeof names / sizeof names[0])],
                             .incarnation = some_process()});
}

static void link_changes(void)
{
    static const enum host_event_type what[] = {
        HOST_PEER_DOWN, HOST_PEER_FULL, HOST_PEER_ROOM, HOST_PEER_ROOM};

    step((struct host_event){.type = what[below(4)], .peer = some_link()});
}

static void link_tells(void)
{
    Rh__Control c = RH__CONTROL__INIT;
    Rh__Adopted adopted = RH__ADOPTED__INIT;

    adopted.version = about(cluster.ring.version);
    adopted.awaits = below(2);
    c.body_case = RH__CONTROL__BODY_ADOPTED;
    c.adopted = &adopted;
    step((struct host_event){.type = HOST_PEER_CONTROL, .peer = some_link(), .message = &c});
}

static struct bytes some_id(void)
{
    const char *id = ids[below(IDS)];

    return bytes_of(id, strlen(id));
}

static struct bytes rest(size_t size)
{
    const size_t taken = size < in.left ? size : in.left;

    return bytes_of(get_bytes(&in, taken), taken);
}

static void link_asks(void)
{
    static const uint8_t caller[] = {0, 0, 1, 'x', 'y'};
    static const uint8_t flags[] = {0, 0, 0, 0, 1, 2, 4, 8, 16, 32, 64, 4 | 64, 48, 255, 4, 0};
    const uint64_t link = some_link();
    const uint8_t how = byte();
    const bool honest = how % 4 != 0;
    struct buffer bytes = {0};
    struct request_record r = {
        .gateway = honest ? process_at(link) : some_process(),
        .session = 1 + below(3),
        .session_epoch = byte() / 100,
        .seq = below(12),
        .ttl_ms = (uint32_t)byte() * 100,
        .kind = byte() / 100,
        .copy = byte() < 240 ? 1 + below(3) : 0,
        .flags = flags[byte() % sizeof flags],
        .hops = honest && (link > 2 || how < 128) ? 0 : below(10),
        .id = some_id(),
    };
    uint64_t position[1];

    r.prev = byte() < 200 ? 0 : below(12);
    r.base = byte() < 200 ? 1 : below(14);
    r.first = about(byte() < 200 ? cluster.ring.version : 10);
    r.version = about(cluster.ring.version);
    r.chain_count = byte() < 200 ? 0 : below(RECORD_CHAIN_MAX + 1);
    for (size_t i = 0; i < r.chain_count; i++) {
        r.chain[i] = ring_point(&cluster.ring, 0, ring_key_of_kind(cluster.key, 0), some_id());
    }
    r.body = (r.flags & REQUEST_CALL) != 0 ? bytes_of(caller, sizeof caller) : rest(below(8));
    request_put_any(&bytes, &r);
    struct reader coded = {.at = bytes.data, .left = bytes.size};
    if (request_get(&coded, &r) == ERR_OK) {
        host_prefetch(host, &r, 1, position);
        step((struct host_event){.type = HOST_REQUEST,
                                 .peer = link,
                                 .request = &r,
                                 .position = how % 2 == 0 ? position[0] : 0});
    }
    buffer_fini(&bytes);
}

static void link_answers(void)
{
    const struct answer_record a = {.gateway = some_process(),
                                    .session = below(4),
                                    .seq = below(8),
                                    .code = below(ANSWER_CODE_LAST + 1),
                                    .copy = below(3),
                                    .body = rest(below(4))};

    step((struct host_event){.type = HOST_ANSWER, .peer = some_link(), .answer = &a});
}

static uint64_t some_txn(void)
{
    const struct pending *p = &pending[below(PENDING_MAX)];

    return byte() < 220 ? p->txn : about(number);
}

static void link_gives(void)
{
    const struct bytes state = rest(below(6));
    const struct image_name name = {.kind = byte() / 120, .id = some_id()};
    struct image *image = image_make_bound(name, &(struct image_cargo){.state = &state});
    uint8_t *data = mem_copy(image->data.data, image->data.size);
    const uint64_t link = some_link();
    struct state_record s = {
        .txn = some_txn(),
        .source = byte() < 200 ? process_at(link) : some_process(),
        .index = below(3),
        .flags = below(3) == 0 ? STATE_END : 0,
    };

    for (uint8_t changes = byte() < 160 ? 0 : below(4); changes > 0; changes--) {
        data[byte() % image->data.size] = byte();
    }
    if ((s.flags & STATE_END) == 0) {
        s.kind = name.kind;
        s.id = name.id;
        s.total = (uint32_t)image->data.size;
        s.offset = byte() < 200 ? 0 : byte() % s.total;
        s.chunk = bytes_of(data + s.offset,
                           byte() < 200 ? s.total - s.offset : byte() % (s.total - s.offset + 1));
    }
    s.crc = crc32c(s.chunk.data, s.chunk.size) + (byte() < 240 ? 0 : 1);
    step((struct host_event){.type = HOST_STATE, .peer = link, .state = &s, .state_count = 1});
    mem_free(data);
    image_free(image);
}

static void link_takes(void)
{
    const struct state_ack_record ack = {.txn = some_txn(),
                                         .source = byte() < 220 ? 101 : some_process(),
                                         .next = byte() < 250 ? below(6) : UINT32_MAX,
                                         .refused = byte() > 240};

    step((struct host_event){.type = HOST_STATE_ACK, .peer = some_link(), .state_ack = &ack});
}

static void time_goes_on(void)
{
    now_us += (uint64_t)byte() * 2000;
    step((struct host_event){.type = HOST_TICK});
}

static void disk_is_written(void)
{
    step((struct host_event){.type = HOST_PERSISTED, .ticket = persisted});
}

static void go_on(void)
{
    step((struct host_event){.type = HOST_GO_ON});
}

/* ---- one input ---- */

static void (*const moves[])(void) = {
    time_goes_on, finish,     finish,     finish,     finish,          link_comes,
    time_goes_on, link_tells, link_asks,  link_asks,  link_asks,       link_asks,
    link_answers, link_gives, link_gives, link_takes, disk_is_written, prepare,
    decide,       grant,      configure,  stir,       go_on,           disk_is_written,
    prepare,      finish,     link_takes, link_asks,  link_changes,    finish,
};

static void quiet(void *context, enum log_level level, const char *line)
{
    (void)context;
    (void)level;
    (void)line;
}

/* Two ids in each vnode. */
static void choose_ids(void)
{
    size_t count = 0;

    for (unsigned i = 0; count < IDS; i++) {
        (void)snprintf(ids[count], sizeof ids[count], "%u", i);
        const struct bytes id = bytes_of(ids[count], strlen(ids[count]));

        count += ring_hit_vnode(view_lookup(&cluster, 0, id)) == count / 2 ? 1 : 0;
    }
}

static void found(void)
{
    view_init(&cluster, RING_GRID_MIN);
    cluster.key = (struct ring_key){1, 2};
    cluster.era = 1;
    ring_create(&cluster.ring, VNODES, 1, 10);
    for (uint32_t v = 2; v < VNODES; v++) {
        const struct ring_op move = {.kind = RING_MOVE, .vnode = v, .from = 1, .to = (uint16_t)v};

        ring_apply(&cluster.ring, &move, 1, 10, 0);
    }
    ring_set_version(&cluster.ring, FIRST_VERSION);
    cluster.member = mem_new(SLOTS, sizeof *cluster.member);
    cluster.member_count = SLOTS;
    for (unsigned i = 0; i < SLOTS; i++) {
        struct view_member *m = &cluster.member[i];

        *m = (struct view_member){.slot = (uint16_t)(i + 1), .incarnation = 101 + i, .weight = 1};
        (void)snprintf(m->name, sizeof m->name, "n%u", i + 1);
        (void)snprintf(m->address, sizeof m->address, "10.0.0.%u:7000", i + 1);
    }
    if (ids[0][0] == '\0') {
        choose_ids();
    }
}

static void begin(uint8_t how)
{
    struct host_config config = host_config_default();

    log_set_sink(quiet, NULL);
    now_us = 1000000;
    number = FIRST_VERSION;
    renewed = persisted = 0;
    memset(pending, 0, sizeof pending);
    found();
    (void)snprintf(config.name, sizeof config.name, "n1");
    config.kinds = kinds;
    config.kind_count = sizeof kinds / sizeof kinds[0];
    config.nonce = 7;
    config.state_window = 200;
    config.staged_size_max = 2000;
    config.held_size_max = 20000;
    config.held_vnode_max = 8000;
    config.activations_max = 3;
    config.cold_count_max = 4;
    config.actors_max = how % 4 == 0 ? 3 : 0;
    host = host_new(&config);
    lead();
    step((struct host_event){.type = HOST_TICK});
    enter(how % 2 == 0 ? 3000000 : 0);
    grant();
    disk_is_written();
    for (uint64_t link = 1; link <= LINKS; link++) {
        honest_link_comes(link);
    }
}

static void end(void)
{
    host_check(host);
    while (task_count > 0) {
        mem_free(tasks[--task_count].data);
    }
    alive_count = 0;
    host_free(host);
    host_effects_fini(&effects);
    view_fini(&cluster);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    in = (struct reader){.at = data, .left = size};
    begin(byte());
    for (unsigned count = 1; in.left > 0; count++) {
        moves[byte() % (sizeof moves / sizeof moves[0])]();
        if (count % CHECK_EVERY == 0) {
            host_check(host);
        }
    }
    end();
    return 0;
}

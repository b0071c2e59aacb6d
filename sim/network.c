/* SPDX-License-Identifier: Apache-2.0
 *
 * Links between simulated processes: delay, loss, cuts, order.
 */
#include "sim/network.h"

#include "base/assert.h"
#include "base/mem.h"
#include "link/stall.h"

#include <string.h>

enum { SILENCE_US = 5000000, BACKOFF_MIN_US = 20000, BACKOFF_MAX_US = 1000000, PUMP_US = 50000 };
enum { POUR_SIZE = 4096 }; /* bytes of streams that one direction of a link takes at a time */

struct net_message {
    struct net_message *next;
    uint64_t to;        /* id of the receiving end */
    uint64_t from_life; /* of the sending process */
    uint64_t step_us;   /* its sender decided to send it, … */
    uint64_t sent_us;   /* … did so, … */
    uint64_t wire_us;   /* … and it is at the other side's kernel then */
    uint64_t stalls;    /* of the other side, that were over when it was sent */
    int type;
    size_t size;
    uint8_t bytes[];
};

/* Messages on their way to one end of a data link, oldest first. */
struct net_queue {
    struct net_message *head; /* owned */
    struct net_message *tail;
    uint64_t last_us; /* when the newest arrives */
    uint64_t cut_us;  /* nothing came through before */
    uint64_t delay_us;
    size_t poured; /* bytes of streams in it */
    bool wanted;   /* there was more to pour */
};

struct net_link {
    struct net_end end[2];     /* [0] dialled */
    struct net_queue queue[2]; /* to end[0], to end[1] */
    struct net_dial *dial;
    bool broken;
};

struct net_dial {
    size_t index;
    struct process *from;
    struct process *to;
    uint64_t life; /* of `from` */
    unsigned key;
    bool wanted;
    struct net_link *link; /* NULL while there is none */
};

static size_t side_of(const struct net_end *end)
{
    return end == &end->link->end[0] ? 0 : 1;
}

static struct net_end *other_end(const struct net_end *end)
{
    return &end->link->end[1 - side_of(end)];
}

static bool is_cut(const struct network *n, const struct process *from, const struct process *to)
{
    return n->cut[from->number][to->number];
}

static void queue_clear(struct net_queue *q)
{
    while (q->head != NULL) {
        struct net_message *m = q->head;

        q->head = m->next;
        mem_free(m);
    }
    q->tail = NULL;
}

void network_init(struct network *n, struct world *world, const struct net_events *events)
{
    memset(n, 0, sizeof *n);
    n->world = world;
    n->events = *events;
}

void network_fini(struct network *n)
{
    for (size_t i = 0; i < n->end_count; i += 2) {
        struct net_link *link = n->end[i]->link;

        queue_clear(&link->queue[0]);
        queue_clear(&link->queue[1]);
        mem_free(link);
    }
    for (size_t i = 0; i < n->dial_count; i++) {
        mem_free(n->dial[i]);
    }
    mem_free(n->end);
    mem_free(n->dial);
}

/* ---- links come up ---- */

static void on_dial(void *context, const struct world_event *event);

static void dial_later(struct network *n, struct net_dial *d, uint64_t in_us)
{
    d->link = NULL;
    world_at(
        n->world,
        n->world->now_us + in_us,
        (struct world_event){
            .run = on_dial, .context = n, .a = d->index, .gate = &d->from->gate, .timer = true});
}

static void on_up(void *context, const struct world_event *event)
{
    struct network *n = context;
    struct net_end *end = n->end[event->a - 1];

    if (end->link->broken || end->deaf || !end->me->up || end->me->life != end->my_life) {
        return;
    }
    end->up = true;
    TRACE(n->world,
          end->me->name,
          "link %llu to %s is up",
          (unsigned long long)end->id,
          end->other->name);
    n->events.up(n->events.context, end);
}

static void end_init(struct network *n, struct net_end *end, struct process *me,
                     struct process *other)
{
    if (n->end_count == n->end_cap) {
        n->end_cap = n->end_cap == 0 ? 64 : 2 * n->end_cap;
        n->end = mem_resize(n->end, n->end_cap * sizeof(struct net_end *));
    }
    n->end[n->end_count++] = end;
    end->id = n->end_count;
    end->me = me;
    end->other = other;
    end->my_life = me->life;
    end->other_life = other->life;
    end->control = me->role == ROLE_COORDINATOR || other->role == ROLE_COORDINATOR;
    end->control = end->control && !(n->fellows && me->role == other->role);
    end->up_at_us = n->world->now_us + world_between(n->world, 50, n->faults.delay_max_us + 50);
    world_at(n->world,
             end->up_at_us,
             (struct world_event){.run = on_up, .context = n, .a = end->id, .gate = &me->gate});
}

static void link_new(struct network *n, struct net_dial *d, uint64_t dialler, uint64_t acceptor)
{
    struct net_link *link = mem_new(1, sizeof *link);

    link->dial = d;
    d->link = link;
    for (size_t i = 0; i < 2; i++) {
        link->end[i].link = link;
        link->queue[i].delay_us = world_between(n->world, 20, n->faults.delay_max_us / 2 + 20);
    }
    end_init(n, &link->end[0], d->from, d->to);
    end_init(n, &link->end[1], d->to, d->from);
    link->end[0].dialled = true;
    link->end[0].key = d->key;
    link->end[0].other_incarnation = acceptor;
    link->end[1].other_incarnation = dialler;
}

static void on_dial(void *context, const struct world_event *event)
{
    struct network *n = context;
    struct net_dial *d = n->dial[event->a];
    uint64_t dialler = 0;
    uint64_t acceptor = 0;

    if (!d->wanted || d->link != NULL || !d->from->up || d->from->life != d->life) {
        return;
    }
    if (!d->to->up || d->to->gate.shut || is_cut(n, d->from, d->to) || is_cut(n, d->to, d->from) ||
        !n->events.hello(n->events.context, d->to, d->from, &acceptor) ||
        !n->events.hello(n->events.context, d->from, d->to, &dialler)) {
        dial_later(n, d, world_between(n->world, BACKOFF_MIN_US, BACKOFF_MAX_US));
        return;
    }
    link_new(n, d, dialler, acceptor);
}

void network_dial(struct network *n, struct process *from, struct process *to, unsigned key)
{
    struct net_dial *d = mem_new(1, sizeof *d);

    if (n->dial_count == n->dial_cap) {
        n->dial_cap = n->dial_cap == 0 ? 64 : 2 * n->dial_cap;
        n->dial = mem_resize(n->dial, n->dial_cap * sizeof(struct net_dial *));
    }
    *d = (struct net_dial){
        .index = n->dial_count,
        .from = from,
        .to = to,
        .life = from->life,
        .key = key,
        .wanted = true,
    };
    n->dial[n->dial_count++] = d;
    dial_later(n, d, world_between(n->world, 100, 2000));
}

/* ---- links break ---- */

static void on_down(void *context, const struct world_event *event)
{
    struct network *n = context;
    struct net_end *end = n->end[event->a - 1];
    struct net_dial *d = end->link->dial;
    const bool was_up = end->up;

    end->up = false;
    end->deaf = true;
    if (!end->me->up || end->me->life != end->my_life) {
        return;
    }
    if (end->dialled && d->wanted) {
        dial_later(n, d, world_between(n->world, BACKOFF_MIN_US, BACKOFF_MAX_US));
    }
    if (was_up) {
        TRACE(n->world,
              end->me->name,
              "link %llu to %s is down",
              (unsigned long long)end->id,
              end->other->name);
        n->events.down(n->events.context, end);
    }
}

/* `drain`: what is on its way to this end still arrives before it notices. */
static void end_break(struct network *n, struct net_end *end, uint64_t notice_us, bool drain)
{
    uint64_t at_us = n->world->now_us + world_between(n->world, 0, notice_us);
    const struct net_queue *q = &end->link->queue[side_of(end)];

    if (drain && q->head != NULL && q->last_us >= at_us) {
        at_us = q->last_us + 1;
    }
    end->deaf = end->deaf || !drain;
    world_at(
        n->world,
        at_us,
        (struct world_event){.run = on_down, .context = n, .a = end->id, .gate = &end->me->gate});
}

static void link_break(struct network *n, struct net_link *link, uint64_t notice_us)
{
    if (link->broken) {
        return;
    }
    link->broken = true;
    for (size_t i = 0; i < 2; i++) {
        const bool drain = world_chance(n->world, 500);

        // What came for a process that stands still lies in its kernel.
        end_break(n, &link->end[i], notice_us, drain || link->end[i].me->gate.shut);
    }
}

void network_forget(struct network *n, struct process *from, enum link_role role, unsigned key)
{
    for (size_t i = 0; i < n->dial_count; i++) {
        struct net_dial *d = n->dial[i];

        if (d->wanted && d->from == from && d->life == from->life && d->to->role == role &&
            d->key == key) {
            d->wanted = false;
            if (d->link != NULL) {
                link_break(n, d->link, 1000);
            }
        }
    }
}

void network_crash(struct network *n, struct process *p, bool clean)
{
    // Mostly the kernel closes the connections of a dead process at once; a dead machine is
    // noticed by its silence.
    const uint64_t notice_us = clean || world_chance(n->world, 900) ? 20000 : SILENCE_US;

    for (size_t i = 0; i < n->end_count; i++) {
        struct net_end *end = n->end[i];

        if (end->me != p || end->deaf) {
            continue;
        }
        end->up = false;
        end->deaf = true;
        if (!end->link->broken) {
            end->link->broken = true;
            end_break(n, other_end(end), notice_us, clean || world_chance(n->world, 500));
        }
    }
    for (size_t i = 0; i < n->dial_count; i++) {
        if (n->dial[i]->from == p) {
            n->dial[i]->wanted = false;
        }
    }
}

static void on_stalled(void *context, const struct world_event *event)
{
    struct network *n = context;
    struct net_end *end = n->end[event->a - 1];

    if (!end->other->gate.shut || end->other->life != end->other_life || end->link->broken ||
        event->b != n->stalls[end->other->number]) {
        return;
    }
    // Who stands still itself counts the time that it is awake.
    if (end->me->gate.shut || n->world->now_us - end->me->awake_us < SILENCE_US) {
        world_at(n->world, n->world->now_us + SILENCE_US, *event);
        return;
    }
    n->resets++;
    link_break(n, end->link, 1000000);
}

void network_stall(struct network *n, struct process *p)
{
    const uint64_t stall = ++n->stalls[p->number];

    for (size_t i = 0; i < n->end_count; i++) {
        struct net_end *end = n->end[i];

        if (end->other == p && !end->deaf && !end->link->broken) {
            world_at(
                n->world,
                n->world->now_us + SILENCE_US,
                (struct world_event){.run = on_stalled, .context = n, .a = end->id, .b = stall});
        }
    }
}

void network_resume(struct network *n, struct process *p, uint64_t gap_us)
{
    p->awake_us = n->world->now_us;
    for (size_t i = 0; stall_is_stale(gap_us, SILENCE_US) && i < n->end_count; i++) {
        struct net_end *end = n->end[i];

        if (end->me == p && end->my_life == p->life && !end->deaf) {
            end->deaf = true;
            n->stale++;
            if (!end->link->broken) {
                link_break(n, end->link, 1000);
            }
        }
    }
}

static bool may_reset(const struct net_end *end, bool control)
{
    return end->up && !end->link->broken && (control || !end->control);
}

void network_reset_any(struct network *n, bool control)
{
    size_t up = 0;
    size_t chosen;

    for (size_t i = 0; i < n->end_count; i++) {
        up += may_reset(n->end[i], control);
    }
    if (up == 0) {
        return;
    }
    chosen = (size_t)world_between(n->world, 1, up);
    for (size_t i = 0; i < n->end_count; i++) {
        struct net_end *end = n->end[i];

        if (may_reset(end, control) && --chosen == 0) {
            TRACE(n->world, "net", "reset %s - %s", end->me->name, end->other->name);
            n->resets++;
            link_break(n, end->link, 50000);
            return;
        }
    }
}

void network_renew(struct network *n, const struct process *p)
{
    for (size_t i = 0; i < n->end_count; i++) {
        const struct net_end *end = n->end[i];

        if (end->me == p && !end->control && !end->deaf && end->my_life == p->life) {
            link_break(n, end->link, 1000);
        }
    }
}

bool network_has_dead(const struct network *n)
{
    for (size_t i = 0; i < n->end_count; i++) {
        const struct net_end *end = n->end[i];

        if (end->up && end->link->broken && end->me->up && end->me->life == end->my_life) {
            return true;
        }
    }
    return false;
}

/* ---- cuts ---- */

bool network_carries(const struct network *n, enum link_role role,
                     bool (*is)(const void *context, int type, struct bytes bytes),
                     const void *context)
{
    for (size_t i = 0; i < n->end_count; i++) {
        const struct net_end *end = n->end[i];
        const struct net_message *m = end->link->queue[side_of(end)].head;

        for (; m != NULL && end->me->role == role && !end->deaf; m = m->next) {
            if (is(context, m->type, bytes_of(m->bytes, m->size))) {
                return true;
            }
        }
    }
    return false;
}

static void on_silence(void *context, const struct world_event *event)
{
    struct network *n = context;
    const unsigned from = (unsigned)(event->a / NETWORK_PROCESSES_MAX);
    const unsigned to = (unsigned)(event->a % NETWORK_PROCESSES_MAX);

    if (!n->cut[from][to] || n->cut_order[from][to] != event->b) {
        return;
    }
    for (size_t i = 0; i < n->end_count; i++) {
        struct net_end *end = n->end[i];

        if (end->me->number == to && end->other->number == from && !end->link->broken &&
            !end->me->gate.shut) {
            n->resets++;
            link_break(n, end->link, 1000000);
        }
    }
}

void network_cut(struct network *n, const struct process *from, const struct process *to, bool cut)
{
    if (n->cut[from->number][to->number] == cut) {
        return;
    }
    n->cut[from->number][to->number] = cut;
    if (cut) {
        world_at(n->world,
                 n->world->now_us + SILENCE_US,
                 (struct world_event){
                     .run = on_silence,
                     .context = n,
                     .a = (uint64_t)from->number * NETWORK_PROCESSES_MAX + to->number,
                     .b = ++n->cut_order[from->number][to->number],
                 });
    }
}

/* ---- messages ---- */

struct net_end *network_end(const struct network *n, uint64_t id)
{
    return id == 0 || id > n->end_count || !n->end[id - 1]->up ? NULL : n->end[id - 1];
}

static uint64_t delay(struct network *n)
{
    if (world_chance(n->world, n->faults.slow_pm)) {
        return world_between(n->world, 20, n->faults.slow_max_us);
    }
    return world_between(n->world, 20, n->faults.delay_max_us);
}

/* The newest end that is up between the two processes of `end`, for a message that outlived it. */
static struct net_end *ghost_end(const struct network *n, const struct net_end *end)
{
    for (size_t i = n->end_count; i > 0; i--) {
        struct net_end *e = n->end[i - 1];

        if (e->up && !e->deaf && e->me == end->me && e->other == end->other) {
            return e;
        }
    }
    return NULL;
}

static void on_control(void *context, const struct world_event *event)
{
    struct network *n = context;
    const struct net_message *m = event->data;
    struct net_end *end = n->end[m->to - 1];

    if (is_cut(n, end->other, end->me)) {
        n->lost++;
        return;
    }
    if (!end->up || end->deaf) {
        end = n->faults.ghosts ? ghost_end(n, end) : NULL;
    }
    if (end == NULL || !end->me->up) {
        n->lost++;
        return;
    }
    n->events.message(n->events.context, end, m->type, bytes_of(m->bytes, m->size));
}

/* No rule counts the time that a message waits for its sender, is on its way, or waits for its
 * receiver: each is shorter than the silence that breaks links, by any clock (specification 11.4).
 * A receiver that is stopped again before it read forgives each stop by itself. What a mutant lets
 * through beyond that is not excused. */
static uint64_t late_us(const struct net_message *m, uint64_t stalls, uint64_t wire_us,
                        uint64_t now_us)
{
    enum { MOST_US = SILENCE_US + SILENCE_US / 15 };
    const uint64_t part_us[] = {m->sent_us - m->step_us, wire_us - m->sent_us, now_us - wire_us};
    const uint64_t most_us[] = {MOST_US, MOST_US, MOST_US * (stalls > 1 ? stalls : 1)};
    uint64_t sum_us = 0;

    for (size_t i = 0; i < 3; i++) {
        sum_us += part_us[i] < most_us[i] ? part_us[i] : most_us[i];
    }
    return sum_us;
}

static void on_room(void *context, const struct world_event *event)
{
    struct network *n = context;
    struct net_end *end = n->end[event->a - 1];

    if (end->up && !end->deaf) {
        n->events.room(n->events.context, end);
    }
}

/* What is on its way to `to` has become less. */
static void make_room(struct network *n, const struct net_end *to, size_t size)
{
    struct net_end *from = other_end(to);
    struct net_queue *q = &to->link->queue[side_of(to)];

    q->poured -= size;
    if (q->wanted && q->poured < POUR_SIZE / 2) {
        q->wanted = false;
        world_at(n->world,
                 n->world->now_us,
                 (struct world_event){
                     .run = on_room, .context = n, .a = from->id, .gate = &from->me->gate});
    }
}

static struct frame frame_of(struct bytes whole)
{
    return (struct frame){
        .type = (enum frame_type)whole.data[4],
        .count = load_u16(whole.data + 6),
        .body = bytes_of(whole.data + FRAME_HEADER_SIZE, whole.size - FRAME_HEADER_SIZE)};
}

static void deliver(struct network *n, struct net_end *end, const struct net_message *m)
{
    const struct bytes bytes = bytes_of(m->bytes, m->size);

    if (frame_type_is_stream((uint8_t)m->type)) {
        const struct frame frame = frame_of(bytes);

        n->events.frame(n->events.context, end, &frame);
    } else {
        n->events.message(n->events.context, end, m->type, bytes);
    }
}

/* One event per message: each delivers the oldest, so order holds through stalls. */
static void on_pump(void *context, const struct world_event *event)
{
    struct network *n = context;
    struct net_end *end = n->end[event->a - 1];
    struct net_queue *q = &end->link->queue[side_of(end)];
    struct net_message *m = q->head;

    if (end->deaf) {
        queue_clear(q);
    }
    // What arrived earlier than its own event said leaves that event behind.
    if (q->head == NULL || m->wire_us > n->world->now_us) {
        return;
    }
    if (is_cut(n, end->other, end->me)) {
        q->cut_us = n->world->now_us + PUMP_US;
        world_at(n->world,
                 q->cut_us,
                 (struct world_event){
                     .run = on_pump, .context = n, .a = end->id, .gate = &end->me->gate});
        return;
    }
    const uint64_t wire_us = m->wire_us > q->cut_us ? m->wire_us : q->cut_us;
    q->head = m->next;
    if (q->head == NULL) {
        q->tail = NULL;
    }
    // A ping each second is behind it, or before: the other side heard nothing for so long.
    if (wire_us - m->sent_us >= SILENCE_US) {
        end->deaf = true;
        n->resets++;
        link_break(n, end->link, 1000);
    } else if (end->up) {
        n->late_us = late_us(m, n->stalls[end->me->number] - m->stalls, wire_us, n->world->now_us);
        if (frame_type_is_stream((uint8_t)m->type)) {
            make_room(n, end, m->size);
        }
        deliver(n, end, m);
    }
    mem_free(m);
}

/* What was held back for longer than a link of now holds anything arrives soon, in its order. */
static void let_through(struct network *n, struct net_end *to)
{
    enum { LONG_US = 100000, SOON_US = 1000 };
    struct net_queue *q = &to->link->queue[side_of(to)];
    uint64_t soon_us = n->world->now_us + SOON_US;

    for (struct net_message *m = q->head; m != NULL; m = m->next) {
        if (m->wire_us <= n->world->now_us + LONG_US) {
            soon_us = m->wire_us > soon_us ? m->wire_us : soon_us;
            continue;
        }
        m->wire_us = soon_us;
        q->last_us = soon_us;
        world_at(
            n->world,
            soon_us,
            (struct world_event){.run = on_pump, .context = n, .a = to->id, .gate = &to->me->gate});
    }
}

void network_heal(struct network *n)
{
    memset(n->cut, 0, sizeof n->cut);
    n->faults = (struct net_faults){.delay_max_us = 1000};
    n->aim.until_us = 0;
    for (size_t i = 0; i < n->end_count; i++) {
        if (!n->end[i]->control && !n->end[i]->deaf) {
            let_through(n, n->end[i]);
        }
    }
}

static struct net_message *message_new(const struct net_end *from, int type, struct bytes bytes)
{
    struct net_message *m = mem_new(1, sizeof *m + bytes.size);

    m->to = other_end(from)->id;
    m->from_life = from->my_life;
    m->type = type;
    m->size = bytes.size;
    if (bytes.size > 0) {
        memcpy(m->bytes, bytes.data, bytes.size);
    }
    return m;
}

static void control_at(struct network *n, const struct net_end *from, int type, struct bytes bytes,
                       uint64_t at_us)
{
    const struct net_end *to = other_end(from);

    world_at(n->world,
             at_us > to->up_at_us ? at_us : to->up_at_us + 1,
             (struct world_event){.run = on_control,
                                  .context = n,
                                  .data = message_new(from, type, bytes),
                                  .gate = &to->me->gate});
}

static void send_control(struct network *n, struct net_end *from, int type, struct bytes bytes)
{
    const int copies = world_chance(n->world, n->faults.duplicate_pm) ? 2 : 1;

    for (int i = 0; i < copies; i++) {
        const uint64_t at_us = n->world->now_us + delay(n);

        if (world_chance(n->world, n->faults.loss_pm)) {
            n->lost++;
            continue;
        }
        control_at(n, from, type, bytes, at_us);
    }
}

/* Not before `least_us`. */
static void send_data(struct network *n, struct net_end *from, int type, struct bytes bytes,
                      uint64_t least_us)
{
    struct net_end *to = other_end(from);
    struct net_queue *q = &from->link->queue[side_of(to)];
    struct net_message *m;
    uint64_t at_us = n->world->now_us + q->delay_us + delay(n) / 4;

    at_us = at_us > least_us ? at_us : least_us;
    if (from->link->broken) {
        n->lost++;
        return;
    }
    m = message_new(from, type, bytes);
    m->sent_us = n->world->now_us;
    m->stalls = n->stalls[to->me->number] - to->me->gate.shut;
    m->step_us = from->me->step_us != 0 ? from->me->step_us : m->sent_us;
    if (q->tail == NULL) {
        q->head = m;
    } else {
        q->tail->next = m;
    }
    q->tail = m;
    at_us = at_us > q->last_us ? at_us : q->last_us;
    at_us = at_us > to->up_at_us ? at_us : to->up_at_us + 1;
    // The other side lets go of the link then, see on_pump().
    at_us = at_us < m->sent_us + SILENCE_US ? at_us : m->sent_us + SILENCE_US;
    m->wire_us = q->last_us = at_us;
    world_at(
        n->world,
        at_us,
        (struct world_event){.run = on_pump, .context = n, .a = to->id, .gate = &to->me->gate});
}

static void send(struct network *n, struct net_end *from, int type, struct bytes bytes)
{
    if (from->control) {
        if (!from->link->broken || n->faults.ghosts) {
            send_control(n, from, type, bytes);
        }
    } else {
        send_data(n, from, type, bytes, 0);
    }
}

/* False: it goes its way. */
static bool is_hit(struct network *n, const struct net_end *from, int type, struct bytes bytes)
{
    const struct net_aim *aim = &n->aim;

    return n->world->now_us < aim->until_us && !from->link->broken &&
           (!aim->only || from->other->number == aim->to) &&
           n->events.kind(type, bytes) == aim->kind;
}

static void hit(struct network *n, struct net_end *from, int type, struct bytes bytes)
{
    const uint64_t until_us = n->aim.until_us + delay(n);

    TRACE(n->world,
          "net",
          "hits %s -> %s: %d of kind %d",
          from->me->name,
          from->other->name,
          (int)n->aim.what,
          n->aim.kind);
    n->hits++;
    switch (n->aim.what) {
    case NET_AIM_BEHIND:
        send(n, from, type, bytes);
        // fallthrough
    case NET_AIM_BREAK:
        n->aim.until_us = 0;
        n->resets++;
        link_break(n, from->link, 50000);
        break;
    case NET_AIM_HOLD:
        if (from->control) {
            control_at(n, from, type, bytes, until_us);
        } else {
            send_data(n, from, type, bytes, until_us);
        }
        break;
    case NET_AIM_LOSE:
        if (from->control) {
            n->lost++;
        } else {
            send(n, from, type, bytes);
        }
        break;
    case NET_AIM_TWICE:
        send(n, from, type, bytes);
        if (from->control) {
            control_at(n, from, type, bytes, until_us);
        }
        break;
    case NET_AIM_WHATS:
        UNREACHABLE();
    }
}

void network_send(struct network *n, struct net_end *from, int type, struct bytes bytes)
{
    n->sent++;
    if (is_hit(n, from, type, bytes)) {
        hit(n, from, type, bytes);
    } else {
        send(n, from, type, bytes);
    }
}

/* ---- streams ---- */

/* `bytes`: header and body. */
static void send_frame(struct network *n, struct net_end *from, struct bytes bytes)
{
    const struct frame frame = frame_of(bytes);

    from->link->queue[1 - side_of(from)].poured += bytes.size;
    if (n->events.poured != NULL) {
        n->events.poured(n->events.context, from, &frame);
    }
    network_send(n, from, bytes.data[4], bytes);
}

void network_say(struct network *n, struct net_end *from, enum stream_frame type, struct bytes body)
{
    struct buffer whole = {0};
    uint8_t *at = buffer_reserve(&whole, FRAME_HEADER_SIZE + body.size);

    ASSERT(network_has_streams(from));
    at = store_u32(at, (uint32_t)(FRAME_HEADER_SIZE + body.size));
    at = store_u8(at, (uint8_t)type);
    at = store_u8(at, 0);
    at = store_u16(at, 1);
    bytes_copy(at, body.data, body.size);
    whole.size += FRAME_HEADER_SIZE + body.size;
    send_frame(n, from, buffer_bytes(&whole));
    buffer_fini(&whole);
}

void network_pour(struct network *n, struct net_end *from, struct sendlog *log)
{
    struct net_queue *q = &from->link->queue[1 - side_of(from)];
    struct bytes unsent;

    ASSERT(network_has_streams(from));
    while ((unsent = sendlog_unsent(log)).size > 0) {
        if (q->poured >= POUR_SIZE) {
            q->wanted = true;
            return;
        }
        const size_t size = load_u32(unsent.data);

        send_frame(n, from, bytes_of(unsent.data, size));
        sendlog_sent(log, size);
    }
}

void network_break(struct network *n, struct net_end *end)
{
    n->resets++;
    link_break(n, end->link, 1000);
}

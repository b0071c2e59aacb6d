/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks answers: in time, true, once, and in order.
 */
#include "base/mem.h"
#include "node/books/order.h"
#include "sim/fleet.h"
#include "wire/cursor.h"

enum { IDLE_US = 1000000 }; /* so long a request may wait for nobody, where nothing fails */

static const char *reply_name(enum reply_code code)
{
    static const char *const name[] = {
        [REPLY_OK] = "OK",
        [REPLY_APP_ERROR] = "APP_ERROR",
        [REPLY_UNKNOWN] = "UNKNOWN",
        [REPLY_TIMEOUT] = "TIMEOUT",
        [REPLY_REJECTED] = "REJECTED",
        [REPLY_NO_KIND] = "NO_KIND",
        [REPLY_OVERLOADED] = "OVERLOADED",
        [REPLY_QUARANTINED] = "QUARANTINED",
        [REPLY_DEADLOCK] = "DEADLOCK",
    };

    return name[code];
}

/* May a copy of it have been lost at that node, or on its way there or back? */
static bool lost_at(const struct fleet *f, const struct sim_ask *a, unsigned node)
{
    const struct sim_node *n = &f->node[node];
    const struct sim_session *s = a->session;
    // By a ring of before its trouble it may be asked behind it.
    bool lost = n->trouble_us >= a->sent_us || a->view <= n->trouble_view;

    for (unsigned i = 0; i < f->gateways; i++) {
        const bool asks = s->gateway == &f->gateway[i] || a->resumed;

        lost = lost || (asks && f->gateway[i].lost_us[node] >= a->sent_us);
    }
    return lost || (s->node != NULL && s->node->lost_us[node] >= a->sent_us);
}

/* Was its vnode given to another cold, by a version that who asks did not know at the send? */
static bool was_taken_over(const struct fleet *f, const struct sim_ask *a)
{
    const struct view *view = &f->raft.truth.view;
    const struct entity *e = &f->ledger.entity[a->entity];
    const uint16_t kind = a->foreign ? FLEET_KIND_FOREIGN : entity_kind(e);
    const ring_hit hit = view_lookup(view, kind, bytes_of(e->id, e->id_size));
    const struct ring_vnode *vnode = ring_find(&view->ring, ring_hit_vnode(hit));
    const uint64_t first = f->ledger.view[a->view].version;

    return (vnode != NULL && vnode->cold > first) || e->cold_version > first ||
           e->forgotten > first;
}

static bool is_member(const struct fleet *f, const struct sim_node *n)
{
    const struct view *truth = &f->raft.truth.view;
    const struct view_member *m = view_member_named(truth, process_says(&n->process));

    return m != NULL && m->incarnation == n->incarnation;
}

/* What was sent in a stream is over with its node's end, wherever its vnode is by then (R14): with
 * its trouble, when the fleet has done with it, and with the era; and when its node has forgotten
 * the stream. */
static bool stream_is_over(const struct fleet *f, const struct sim_ask *a)
{
    const uint64_t version = f->ledger.view[a->view].version;
    bool over =
        a->forgotten || (a->streamed != 0 && version >> 40 < session_version(a->session) >> 40);

    for (unsigned i = 0; i < f->nodes; i++) {
        const struct sim_node *n = &f->node[i];
        const bool fenced = n->incarnation != 0 && !is_member(f, n);
        const bool troubled = n->trouble_us >= a->sent_us || a->view <= n->trouble_view;

        over = over || ((a->streamed >> i & 1) != 0 && (fenced || troubled));
    }
    return over;
}

/* It ran in an era that a restore ended, and a restored ring doesn't tell whose vnodes were taken
 * over after the backup: what it did may be gone. */
static bool ran_in_an_elder_era(const struct fleet *f, const struct sim_ask *a)
{
    const uint64_t era = session_version(a->session) >> 40;

    return a->runs > 0 && f->ledger.view[a->view].version >> 40 < era && f->taken_over != 0 &&
           f->taken_over >> 40 < era;
}

/* Nobody can tell whether it ran. */
static bool may_be_unknown(struct fleet *f, const struct sim_ask *a)
{
    const struct entity *e = &f->ledger.entity[a->entity];
    bool lost = false;

    // A gateway that its client left gave it up, and had what follows it run, or begin: it may wait
    // for a worker yet.
    if (a->resumed && a->runs == 0 && a->session->decided[a->entity] > a->seq) {
        return true;
    }
    // So many of its session ran after it that what it answered is not kept any more: those were
    // sent to its owner, while its own answer is held up behind a forward, or with a gateway that
    // its client left.
    if (a->runs > 0 && (a->resumed || (a->nodes & (a->nodes - 1)) != 0) &&
        a->session->ran[a->entity] >= a->seq + ORDER_ANSWERS_MAX) {
        return true;
    }
    // The store crashed amidst its commit.
    if (a->in_doubt) {
        return true;
    }
    // The quarantine refuses one copy of it while another one waits.
    if (poison_is_in(f, e)) {
        return true;
    }
    // A copy of it is refused for a circle of calls, and another one was lost, or is yet to come: a
    // former owner held it, and passes it on when it hears that the actor has moved; its caller
    // heard so first, and asked there. Or the refusal of another copy is yet to come: on a link
    // that came up later, this one overtook it.
    for (unsigned i = 0; i < f->nodes && a->parent != 0 && f->ledger.circles > 0; i++) {
        lost = lost || ((a->nodes >> i & 1) != 0 && lost_at(f, a, i));
    }
    if (a->parent != 0 && f->ledger.circles > 0 && !lost) {
        lost = (a->nodes & (a->nodes - 1)) != 0 || check_is_under_way(f, a);
    }
    lost = lost || stream_is_over(f, a) || ran_in_an_elder_era(f, a);
    // A gateway that jumps over a removal finds another node in the slot it had sent to.
    return lost || was_taken_over(f, a) || a->view < f->ledger.removed_view ||
           roles_came_early(f, a);
}

/* Not sent: what its session asked of that actor before it came back from a stream, and is asked by
 * name now, so its gateway keeps this one behind it. */
static bool waits_in_lane(const struct fleet *f, const struct sim_ask *a)
{
    for (size_t i = 0; i < f->ledger.ask_count; i++) {
        const struct sim_ask *before = &f->ledger.ask[i];

        if (before->session == a->session && before->entity == a->entity && before->seq < a->seq &&
            before->streamed != 0 && (!before->answered || before->answered_us > a->sent_us)) {
            return true;
        }
    }
    return false;
}

/* An answer other than OK needs a reason: a lost link, a crash, faults on the way. */
static bool excused(struct fleet *f, const struct sim_ask *a, enum reply_code code)
{
    const struct entity *e = &f->ledger.entity[a->entity];
    const uint64_t waited_us = f->world.now_us - a->sent_us;

    // One copy met no actor of its kind; who knows what the other met?
    if (a->foreign && waited_us >= (uint64_t)f->retry_ms * 500) {
        return true;
    }
    // All ids are asked at once in the end: where few may be started at a time, some wait too long.
    if (a->probe && f->activations > 0 && code != REPLY_UNKNOWN) {
        return true;
    }
    if ((code == REPLY_TIMEOUT || code == REPLY_REJECTED) && f->profile != PROFILE_CLOCKS &&
        waited_us < a->ttl_us - a->ttl_us / 10) {
        return false; // its time is not over by any clock
    }
    if (f->profile == PROFILE_CALM &&
        (code == REPLY_TIMEOUT ||
         (code == REPLY_REJECTED && (a->streamed != 0 || waits_in_lane(f, a))))) {
        // Others ran all the time, or were handed over, or the gateway spared a silent node or
        // lacked a link. What waited at its node for that comes back from a stream without having
        // run, behind one before it whose time was over there (R7).
        return entity_busy_us(f, e) - a->busy_us + entity_held_us(f, e) - a->held_us +
                   asker_put_off_us(f, a->session) - a->put_off_us + IDLE_US >=
               waited_us;
    }
    if (f->profile == PROFILE_CALM || a->probe) {
        return false;
    }
    return code != REPLY_UNKNOWN || may_be_unknown(f, a);
}

static bool ran_once(const struct fleet *f, const struct sim_ask *a)
{
    return a->runs == 1 || (a->runs > 1 && (a->idempotent || past_hides(f, a)));
}

static void check_code(struct fleet *f, const struct sim_ask *a, uint64_t uid, enum reply_code code,
                       struct bytes body)
{
    struct reader in = {.at = body.data, .left = body.size};
    const struct entity *e = &f->ledger.entity[a->entity];
    bool right = false;

    if (f->profile == PROFILE_CLOCKS && !e->durable) {
        return;
    }
    switch (code) {
    case REPLY_APP_ERROR:
        if (bytes_equal(body, bytes_of("the actor could not start", 25))) {
            right = a->runs == 0 || a->idempotent;
            break;
        }
        if (bytes_equal(body, bytes_of("not saved", 9))) {
            right = a->runs == 0 || a->idempotent;
            break;
        }
        right = ran_once(f, a) && !a->foreign && get_u64(&in) == uid;
        break;
    case REPLY_OK:
        right = ran_once(f, a) && !a->foreign && get_u64(&in) == uid;
        break;
    case REPLY_UNKNOWN:
    case REPLY_TIMEOUT:
        right = a->runs <= 1 || ran_once(f, a);
        break;
    case REPLY_REJECTED:
    case REPLY_OVERLOADED:
    case REPLY_DEADLOCK:
        right = a->runs == 0;
        break;
    case REPLY_QUARANTINED:
        right = a->runs == 0 && poison_is_in(f, e);
        break;
    case REPLY_NO_KIND:
        right = a->runs == 0 && (a->foreign || roles_may_miss(f, a));
        break;
    }
    if (!right) {
        world_violate(&f->world,
                      "answer",
                      "request %llu got %s but ran %u times",
                      (unsigned long long)uid,
                      reply_name(code),
                      a->runs);
    }
    if (code != REPLY_OK && code != REPLY_APP_ERROR && code != REPLY_NO_KIND &&
        code != REPLY_QUARANTINED && code != REPLY_DEADLOCK && !excused(f, a, code)) {
        world_violate(&f->world,
                      "spurious",
                      "request %llu to %s got %s without a cause",
                      (unsigned long long)uid,
                      f->ledger.entity[a->entity].id,
                      reply_name(code));
    }
}

/* Where nothing fails, a handler that asks an actor beside it is not kept waiting by a hold: it
 * would wait for itself (hole 18). It does wait for those before it in the mailbox, as long as
 * the actor runs. */
static void check_chain(struct fleet *f, uint64_t uid, const struct sim_ask *a)
{
    enum { BOUND_US = 2000000 };
    const uint64_t ran_us = entity_busy_us(f, &f->ledger.entity[a->entity]) - a->busy_us;
    const uint64_t idle_us = f->world.now_us - a->sent_us - ran_us;

    if (f->profile == PROFILE_CALM && idle_us > BOUND_US) {
        world_violate(&f->world,
                      "chain",
                      "request %llu, asked by the handler of %llu, waited %llu ms",
                      (unsigned long long)uid,
                      (unsigned long long)a->parent,
                      (unsigned long long)idle_us / 1000);
    }
}

/* What it did is lost with its owner, and the gateway knows: the answer is not OK any more. */
static void check_late(struct fleet *f, uint64_t uid, const struct sim_ask *a)
{
    const struct entity *e = &f->ledger.entity[a->entity];

    if (!e->durable && !a->idempotent && e->cold_version != 0 &&
        (a->ran_us < e->cold_us || a->ran_void) && session_version(a->session) >= e->cold_version) {
        world_violate(&f->world,
                      "late",
                      "request %llu gets the answer of an owner that was fenced",
                      (unsigned long long)uid);
    }
}

static void take_reply(struct fleet *f, uint64_t uid, enum reply_code code, struct bytes body)
{
    struct sim_ask *a = ledger_find(f, uid);

    TRACE(&f->world,
          session_process(a->session)->name,
          "answers request %llu: %s",
          (unsigned long long)uid,
          reply_name(code));
    record_answer(f, uid, code);
    check_code(f, a, uid, code, body);
    if (code == REPLY_DEADLOCK) {
        check_victim(f, a);
    } else if (code != REPLY_OK && a->parent != 0) {
        check_circle_ends(f, a);
    }
    if (code == REPLY_OK) {
        check_late(f, uid, a);
    }
    a->answered = true;
    a->code = code;
    a->answered_us = f->world.now_us;
    if (a->parent != 0) {
        check_chain(f, uid, a);
        actors_answered(f, uid);
    }
    f->ledger.open--;
    f->ledger.answers[code]++;
}

/* Its time is counted wherever it is but on links, by clocks that may be 6 % slow, and in whole
 * milliseconds, one of which each forward has left. Who counts it tells its client TIMEOUT at the
 * end, so not earlier than by as much. */
void check_in_time(struct fleet *f, const struct sim_node *n, uint64_t uid)
{
    enum { RATE_PART = 15, ROUND_US = 10000 };
    const struct sim_ask *a = ledger_find(f, uid);

    if (a == NULL) {
        return;
    }
    uint32_t *decided = &a->session->decided[a->entity];
    *decided = a->seq > *decided ? a->seq : *decided;
    if (f->profile == PROFILE_CLOCKS) {
        return;
    }
    const uint64_t late_us = a->late_us[n - f->node];
    const uint64_t end_us = a->given_us + a->ttl_us + a->ttl_us / RATE_PART + ROUND_US;

    if (f->world.now_us > end_us + late_us) {
        world_violate(&f->world,
                      "overdue",
                      "%s runs request %llu %llu ms after its time, of which links held %llu",
                      n->process.name,
                      (unsigned long long)uid,
                      (unsigned long long)(f->world.now_us - end_us) / 1000,
                      (unsigned long long)late_us / 1000);
    }
}

void check_reply(struct fleet *f, struct sim_gateway *g, uint64_t ticket, enum reply_code code,
                 struct bytes body)
{
    const uint64_t uid = ticket & ((UINT64_C(1) << CHECK_TICKET_BITS) - 1);
    struct sim_ask *a = ledger_find(f, uid);

    if (a != NULL && ticket >> CHECK_TICKET_BITS != a->session->epoch) {
        a->missed = a->missed || (code != REPLY_OK && code != REPLY_APP_ERROR);
        return; // that connection is gone
    }
    if (a == NULL || a->answered || a->session->closed || a->session->gateway != g) {
        world_violate(&f->world,
                      "answer",
                      "%s answers request %llu, which waits for nothing",
                      g->process.name,
                      (unsigned long long)uid);
        return;
    }
    take_reply(f, uid, code, body);
}

void check_call_reply(struct fleet *f, struct sim_node *n, uint64_t uid, enum reply_code code,
                      struct bytes body)
{
    const struct sim_ask *a = ledger_find(f, uid);

    if (a != NULL && !a->answered && a->session->closed && a->session->node == n) {
        return; // it was on its way to an actor that is gone, which the runtime drops too
    }
    if (a == NULL || a->answered || a->session->node != n) {
        world_violate(&f->world,
                      "answer",
                      "the calls of %s answer request %llu, which waits for nothing",
                      n->process.name,
                      (unsigned long long)uid);
        return;
    }
    take_reply(f, uid, code, body);
}

/* K4 between sessions: what was answered before another was sent stands before it. Not by a run
 * that came after its answer. */
static void check_real_time(struct fleet *f, const struct entity *e, const struct ledger_list *list)
{
    uint64_t answered_us = UINT64_MAX; // the first of all that stand behind …
    uint64_t first = 0;                // … this one

    for (size_t i = list->count; i > 0; i--) {
        const struct sim_ask *a = ledger_find(f, list->uid[i - 1]);

        if (answered_us < a->sent_us && a->runs == 1) {
            world_violate(
                &f->world,
                "order",
                "request %llu stands in %s before %llu, which was answered before it was sent",
                (unsigned long long)list->uid[i - 1],
                e->id,
                (unsigned long long)first);
        }
        if (a->answered && a->code == REPLY_OK && !a->ran_late && a->answered_us < answered_us) {
            answered_us = a->answered_us;
            first = list->uid[i - 1];
        }
    }
}

void check_final(struct fleet *f)
{
    struct ledger *l = &f->ledger;
    uint8_t *kept = mem_new(l->ask_count + 1, 1);

    for (size_t i = 0; i < LEDGER_ENTITIES; i++) {
        const struct entity *e = &l->entity[i];
        const struct ledger_list *list = e->durable ? &e->row : &e->history;

        if (f->profile != PROFILE_CLOCKS || e->durable) {
            check_real_time(f, e, list);
        }
        for (size_t k = 0; k < list->count; k++) {
            kept[list->uid[k]]++;
        }
    }
    for (size_t i = 0; i < l->ask_count; i++) {
        const struct sim_ask *a = &l->ask[i];

        const struct entity *e = &l->entity[a->entity];
        const bool done = a->answered && (a->code == REPLY_OK || a->code == REPLY_APP_ERROR);
        // What is in the store, or never was at risk, must be there.
        const bool safe = e->durable ? done && a->runs > 0
                                     : f->crashes == 0 && f->restores == 0 && l->reassigned == 0 &&
                                           !e->broke && a->runs > 0;

        if (f->profile == PROFILE_CLOCKS && !e->durable) {
            continue;
        }
        const bool twice = kept[i + 1] > 1 && !(a->idempotent && a->streamed != 0);

        if (twice || kept[i + 1] > a->runs || (safe && (kept[i + 1] == 0 || twice))) {
            world_violate(&f->world,
                          "state",
                          "request %zu ran %u times and stands %u times in the end",
                          i + 1,
                          a->runs,
                          kept[i + 1]);
        }
    }
    mem_free(kept);
}

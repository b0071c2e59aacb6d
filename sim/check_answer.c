/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "node/order.h"
#include "sim/fleet.h"
#include "wire/cursor.h"

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

/* An answer other than OK needs a reason: a lost link, a crash, faults on the way. */
static bool excused(const struct fleet *f, const struct ask *a, enum reply_code code)
{
    // One copy met no actor of its kind; who knows what the other met?
    if (a->foreign && f->world.now_us - a->sent_us >= (uint64_t)f->retry_ms * 500) {
        return true;
    }
    // All ids are asked at once in the end: where few may be started at a time, some wait too long.
    if (a->probe && f->activations > 0 && code != REPLY_UNKNOWN) {
        return true;
    }
    if (f->profile == PROFILE_CALM || a->probe) {
        return false;
    }
    if (code == REPLY_UNKNOWN && a->resumed && a->first == 1) {
        return true; // the client knew no version, so any take-over may be newer
    }
    // A gateway that its client had left gave it up, and had what follows it run.
    if (code == REPLY_UNKNOWN && a->missed) {
        return true;
    }
    // So many of its session ran after it that what it answered is not kept any more.
    if (code == REPLY_UNKNOWN && a->resumed &&
        a->session->ran[a->entity] >= a->seq + ORDER_ANSWERS_MAX) {
        return true;
    }
    if (code == REPLY_UNKNOWN) {
        // A gateway that jumps over a removal finds another node in the slot it had sent to.
        return session_downs(a->session) > a->downs || f->crashes > 0 || f->restores > 0 ||
               f->ledger.fences > 0 || f->ledger.reassigned > 0 ||
               a->view < f->ledger.removed_view || roles_came_early(f, a);
    }
    return true;
}

static bool ran_once(const struct ask *a)
{
    return a->runs == 1 || (a->idempotent && a->runs > 1);
}

static void check_code(struct fleet *f, const struct ask *a, uint64_t uid, enum reply_code code,
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
        if (bytes_equal(body, bytes_of("fenced", 6))) {
            right = a->runs == 0 || a->idempotent;
            break;
        }
        right = ran_once(a) && !a->foreign && get_u64(&in) == uid;
        break;
    case REPLY_OK:
        right = ran_once(a) && !a->foreign && get_u64(&in) == uid;
        break;
    case REPLY_UNKNOWN:
    case REPLY_TIMEOUT:
        right = a->runs <= 1 || a->idempotent;
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
static void check_chain(struct fleet *f, uint64_t uid, const struct ask *a)
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
static void check_late(struct fleet *f, uint64_t uid, const struct ask *a)
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
    struct ask *a = ledger_find(f, uid);

    TRACE(&f->world,
          session_process(a->session)->name,
          "answers request %llu: %s",
          (unsigned long long)uid,
          reply_name(code));
    record_answer(f, uid, code);
    check_code(f, a, uid, code, body);
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

void check_reply(struct fleet *f, struct sim_gateway *g, uint64_t ticket, enum reply_code code,
                 struct bytes body)
{
    const uint64_t uid = ticket & ((UINT64_C(1) << CHECK_TICKET_BITS) - 1);
    struct ask *a = ledger_find(f, uid);

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
    const struct ask *a = ledger_find(f, uid);

    if (a != NULL && !a->answered && a->session->closed && a->session->node == n) {
        return; // it was on its way to an actor that is gone, which the scene drops too
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
        const struct ask *a = ledger_find(f, list->uid[i - 1]);

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
        const struct ask *a = &l->ask[i];

        const struct entity *e = &l->entity[a->entity];
        const bool done = a->answered && (a->code == REPLY_OK || a->code == REPLY_APP_ERROR);
        // What is in the store, or never was at risk, must be there.
        const bool safe = e->durable ? done && a->runs > 0
                                     : f->crashes == 0 && f->restores == 0 && l->reassigned == 0 &&
                                           !e->broke && a->runs > 0;

        if (f->profile == PROFILE_CLOCKS && !e->durable) {
            continue;
        }
        if (kept[i + 1] > 1 || kept[i + 1] > a->runs || (safe && kept[i + 1] != 1)) {
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

/* SPDX-License-Identifier: Apache-2.0
 *
 * An account's code: it gives to others, takes what they give, and has alarms. Each of these is an
 * entry of its journal.
 *
 *     request: | number u64 |, what it asks for is the bank's to know
 *     answer:  | number u64 | sum u64 | entries u64 |, or an error: then nothing was changed
 *     send:    | number u64 | amount u64 |
 *     call:    | number u64 |
 *     alarm:   "a0" …, its payload | number u64 | of who set it
 */
#include "base/assert.h"
#include "base/mem.h"
#include "sim/bank/bank.h"
#include "wire/cursor.h"

enum { SEND_SIZE = 16, ANSWER_SIZE = 24, STATE_SIZE = 16 };

/* In memory. */
struct owner {
    struct fleet *fleet;
    const struct sim_worker *teller;
    struct account *account;
    uint64_t sum;
    uint64_t count;
};

struct bytes account_alarm(uint64_t slot)
{
    static const char names[ACCOUNT_ALARMS][3] = {"a0", "a1", "a2"};

    ASSERT(slot < ACCOUNT_ALARMS);
    return bytes_of(names[slot], 2);
}

/* ---- the journal ---- */

void entry_key(uint8_t key[ENTRY_KEY_SIZE], uint64_t id)
{
    (void)store_u64(store_u8(key, 'e'), id);
}

bool entry_get(struct bytes key, struct bytes value, struct entry *out)
{
    struct reader name = {.at = key.data, .left = key.size};
    struct reader in = {.at = value.data, .left = value.size};

    if (key.size != ENTRY_KEY_SIZE || value.size != ENTRY_SIZE || get_u8(&name) != 'e') {
        return false;
    }
    out->id = get_u64(&name);
    out->what = (enum entry_what)get_u64(&in);
    out->sum = get_u64(&in);
    out->count = get_u64(&in);
    out->other = get_u64(&in);
    out->amount = get_u64(&in);
    out->slot = get_u64(&in);
    out->due_ms = get_u64(&in);
    out->at_ms = get_u64(&in);
    return true;
}

static void put_value(struct rh_actor *actor, struct rh_bytes key, const uint8_t *value,
                      size_t size)
{
    const int put = rh_state_put(actor, key, (struct rh_bytes){value, size});

    ASSERT(put == RH_OK);
}

/* Its sum is `sum` from now on; what else the entry says is filled in. */
static void note(struct rh_actor *actor, struct owner *o, struct entry *e, uint64_t sum)
{
    uint8_t key[ENTRY_KEY_SIZE];
    uint8_t value[ENTRY_SIZE];
    uint8_t state[STATE_SIZE];
    struct writer w = {.at = value, .left = sizeof value};
    struct writer s = {.at = state, .left = sizeof state};

    e->sum = sum;
    e->count = o->count + 1;
    entry_key(key, e->id);
    put_u64(&w, e->what);
    put_u64(&w, e->sum);
    put_u64(&w, e->count);
    put_u64(&w, e->other);
    put_u64(&w, e->amount);
    put_u64(&w, e->slot);
    put_u64(&w, e->due_ms);
    put_u64(&w, e->at_ms);
    put_u64(&s, e->sum);
    put_u64(&s, e->count);
    put_value(actor, (struct rh_bytes){key, sizeof key}, value, sizeof value);
    put_value(actor, (struct rh_bytes){ACCOUNT_STATE, 5}, state, sizeof state);
}

static bool load(const struct rh_actor *actor, struct owner *o)
{
    struct rh_bytes value;

    if (rh_state_get(actor, (struct rh_bytes){ACCOUNT_STATE, 5}, &value) != RH_OK) {
        return false;
    }
    struct reader in = {.at = value.data, .left = value.size};
    o->sum = get_u64(&in);
    o->count = get_u64(&in);
    return true;
}

static bool has_entry(const struct rh_actor *actor, uint64_t id)
{
    uint8_t key[ENTRY_KEY_SIZE];
    struct rh_bytes value;

    entry_key(key, id);
    return rh_state_get(actor, (struct rh_bytes){key, sizeof key}, &value) == RH_OK;
}

/* ---- life ---- */

static int activate(struct rh_actor *actor, const struct rh_bytes *state, uint64_t fence,
                    void **instance)
{
    const struct rh_bytes id = rh_id(actor);
    const struct sim_worker *teller = rh_shared(actor);
    struct owner *o = mem_new(1, sizeof *o);
    struct entry born = {.what = ENTRY_BORN};

    (void)state;
    (void)fence;
    o->teller = teller;
    o->fleet = teller->fleet;
    o->account = bank_account(o->fleet, bytes_of(id.data, id.size));
    check_incarnation(o->fleet, o->account, rh_incarnation(actor));
    if (!load(actor, o)) {
        born.id = bank_number(o->fleet);
        note(actor, o, &born, ACCOUNT_SUM);
    }
    *instance = o;
    return RH_OK;
}

static void deactivate(struct rh_actor *actor, void *instance, enum rh_why why)
{
    (void)actor;
    (void)why;
    mem_free(instance);
}

/* So that it is no cold start. */
static int handoff(struct rh_actor *actor, void *instance, struct rh_out *out)
{
    const struct owner *o = instance;

    (void)actor;
    if (bank_fails(o->fleet, o->fleet->bank->busy_pm)) {
        return RH_BUSY;
    }
    rh_out_put(out, "moves", 5);
    return RH_OK;
}

/* ---- requests ---- */

static void answer(struct rh_actor *actor, struct owner *o, uint64_t id)
{
    uint8_t body[ANSWER_SIZE];
    struct writer w = {.at = body, .left = sizeof body};
    struct owner now = *o;

    (void)load(actor, &now);
    put_u64(&w, id);
    put_u64(&w, now.sum);
    put_u64(&w, now.count);
    (void)rh_reply(actor, rh_bytes_value(body, sizeof body));
}

static bool send(struct rh_actor *actor, const struct owner *o, uint64_t other, uint64_t amount)
{
    const struct account *to = &o->fleet->bank->account[other];
    const uint64_t id = bank_number(o->fleet);
    uint8_t payload[SEND_SIZE];
    struct writer w = {.at = payload, .left = sizeof payload};

    put_u64(&w, id);
    put_u64(&w, amount);
    return rh_send_once(actor,
                        FLEET_KIND_ACCOUNT,
                        (struct rh_bytes){to->id, to->id_size},
                        (struct rh_bytes){payload, sizeof payload}) == RH_OK;
}

/* In one send, or in two. */
static bool give(struct rh_actor *actor, struct owner *o, const struct bank_ask *a, uint64_t id)
{
    struct entry e = {.what = ENTRY_GIVE, .id = id, .other = a->other, .amount = a->amount};
    const uint64_t first = a->amount % 3 == 2 ? a->amount / 2 : a->amount;

    if (a->amount > o->sum) {
        return false;
    }
    note(actor, o, &e, o->sum - a->amount);
    return send(actor, o, a->other, first) &&
           (first == a->amount || send(actor, o, a->other, a->amount - first));
}

static bool set(struct rh_actor *actor, struct owner *o, const struct bank_ask *a, uint64_t id)
{
    const struct bytes name = account_alarm(a->slot);
    struct entry e = {.what = ENTRY_SET,
                      .id = id,
                      .slot = a->slot,
                      .due_ms = teller_wall_ms(o->teller) + a->delay_ms};
    uint8_t payload[8];
    struct writer w = {.at = payload, .left = sizeof payload};

    put_u64(&w, id);
    note(actor, o, &e, o->sum);
    return rh_alarm_set(actor,
                        (struct rh_bytes){name.data, name.size},
                        e.due_ms,
                        a->every_ms,
                        (struct rh_bytes){payload, sizeof payload}) == RH_OK;
}

static bool cancel(struct rh_actor *actor, struct owner *o, const struct bank_ask *a, uint64_t id)
{
    const struct bytes name = account_alarm(a->slot);
    const int result = rh_alarm_cancel(actor, (struct rh_bytes){name.data, name.size});
    struct entry e = {
        .what = ENTRY_CANCEL, .id = id, .slot = a->slot, .at_ms = result == RH_OK ? 1 : 0};

    ASSERT(result == RH_OK || result == RH_GONE);
    note(actor, o, &e, o->sum);
    return true;
}

/* ---- calls ---- */

static void on_answer(struct rh_actor *actor, void *instance, const struct rh_answer *answered,
                      void *argument)
{
    struct owner *o = instance;
    const uint64_t id = (uint64_t)(uintptr_t)argument;
    struct entry e = {.what = ENTRY_END,
                      .id = bank_number(o->fleet),
                      .amount = id,
                      .other = (uint64_t)answered->status};

    check_bank_called(o->fleet, bank_find(o->fleet, id)->call, answered->status);
    (void)load(actor, o);
    note(actor, o, &e, o->sum);
    answer(actor, o, id);
}

/* Only those behind it: none waits for another in a circle. */
static void call(struct rh_actor *actor, struct owner *o, uint64_t id)
{
    struct fleet *f = o->fleet;
    const uint64_t number = bank_number(f);
    struct bank_ask *a = bank_find(f, id);
    const struct account *to = &f->bank->account[a->other];
    struct entry e = {.what = ENTRY_BEGIN, .id = id, .other = a->other};
    uint8_t payload[8];
    struct writer w = {.at = payload, .left = sizeof payload};

    *bank_find(f, number) = (struct bank_ask){.verb = BANK_CALLED,
                                              .account = a->other,
                                              .answered = true,
                                              .doubts = to->doubts,
                                              .asked_us = f->world.now_us,
                                              .view = teller_view(o->teller)};
    a->call = number;
    put_u64(&w, number);
    note(actor, o, &e, o->sum);
    (void)rh_defer(actor);
    const int result = rh_call(actor,
                               FLEET_KIND_ACCOUNT,
                               (struct rh_bytes){to->id, to->id_size},
                               (struct rh_bytes){payload, sizeof payload},
                               (uint32_t)a->delay_ms + 1,
                               0,
                               on_answer,
                               (void *)(uintptr_t)id); // NOLINT(performance-no-int-to-ptr)
    ASSERT(result == RH_OK);
}

static void called(struct rh_actor *actor, struct owner *o, const struct rh_message *m)
{
    struct reader in = {.at = m->payload.data, .left = m->payload.size};
    struct entry e = {.what = ENTRY_CALLED, .id = get_u64(&in)};

    check_bank_runs(o->fleet, o->account, e.id, has_entry(actor, e.id));
    (void)load(actor, o);
    note(actor, o, &e, o->sum);
    answer(actor, o, e.id);
}

static bool change(struct rh_actor *actor, struct owner *o, const struct bank_ask *a, uint64_t id)
{
    switch (a->verb) {
    case BANK_READ:
        return true;
    case BANK_GIVE:
        return give(actor, o, a, id);
    case BANK_SET:
        return set(actor, o, a, id);
    case BANK_CANCEL:
        return cancel(actor, o, a, id);
    case BANK_CALL:
    case BANK_CALLED:
        return false;
    }
    UNREACHABLE();
}

static void request(struct rh_actor *actor, struct owner *o, const struct rh_message *m)
{
    struct reader in = {.at = m->payload.data, .left = m->payload.size};
    const uint64_t id = get_u64(&in);
    const struct bank_ask *found = bank_find(o->fleet, id);

    ASSERT(found != NULL && !in.bad);
    const struct bank_ask a = *found; // numbers are drawn meanwhile, and it may be elsewhere then
    check_bank_runs(o->fleet, o->account, id, has_entry(actor, id));
    (void)load(actor, o);
    if (a.verb == BANK_CALL && &o->fleet->bank->account[a.other] > o->account) {
        call(actor, o, id); // it is answered later
    } else if (!change(actor, o, &a, id)) {
        (void)rh_state_undo(actor);
        (void)rh_reply(actor, rh_error("ERR it can't be done"));
    } else if (bank_fails(o->fleet, o->fleet->bank->fail_pm)) {
        (void)rh_fail(actor, "ERR it fails");
    } else {
        answer(actor, o, id);
    }
}

/* ---- sends ---- */

static void take(struct rh_actor *actor, struct owner *o, const struct rh_message *m)
{
    struct reader in = {.at = m->payload.data, .left = m->payload.size};
    const struct account *from = bank_account(o->fleet, bytes_of(m->from.data, m->from.size));
    struct entry e = {.what = ENTRY_TAKE, .id = get_u64(&in), .amount = get_u64(&in)};

    e.other = (uint64_t)(from - o->fleet->bank->account);
    check_bank_runs(o->fleet, o->account, e.id, has_entry(actor, e.id));
    (void)load(actor, o);
    note(actor, o, &e, o->sum + e.amount);
    if (bank_fails(o->fleet, o->fleet->bank->refuse_pm)) {
        o->fleet->bank->total.refused++;
        (void)rh_reply(actor, rh_error("ERR not now"));
    } else if (bank_fails(o->fleet, o->fleet->bank->fail_pm)) {
        o->fleet->bank->total.refused++;
        (void)rh_fail(actor, "ERR it fails");
    }
}

static void message(struct rh_actor *actor, void *instance, const struct rh_message *m)
{
    if (m->from.size > 0 && (m->flags & RH_NO_REPLY) != 0) {
        take(actor, instance, m);
    } else if (m->from.size > 0) {
        called(actor, instance, m);
    } else {
        request(actor, instance, m);
    }
}

/* ---- alarms ---- */

/* It gives something to the next one. When the customers have gone it is the last time. */
static int alarm(struct rh_actor *actor, void *instance, const struct rh_alarm *alarm)
{
    struct owner *o = instance;
    struct fleet *f = o->fleet;
    const uint64_t slot = (uint64_t)(((const char *)alarm->name.data)[1] - '0');
    struct entry e = {.what = ENTRY_ALARM,
                      .id = bank_number(f),
                      .slot = slot,
                      .due_ms = alarm->due_ms,
                      .at_ms = teller_wall_ms(o->teller)};

    (void)load(actor, o);
    e.other = (uint64_t)(o->account - f->bank->account + 1) % ACCOUNTS;
    e.amount = f->working && o->sum > 0 ? 1 : 0;
    note(actor, o, &e, o->sum - e.amount);
    if (!f->working && alarm->every_ms > 0) {
        (void)rh_alarm_cancel(actor, alarm->name);
    }
    if (e.amount > 0 && !send(actor, o, e.other, e.amount)) {
        return RH_FAILED;
    }
    return bank_fails(f, f->bank->refuse_pm) ? RH_FAILED : RH_OK;
}

const struct rh_actor_ops account_ops = {
    .abi = RH_ABI,
    .size = sizeof account_ops,
    .name = "account",
    .activate = activate,
    .message = message,
    .handoff = handoff,
    .deactivate = deactivate,
    .ahead = 1,
    .durable = 1,
    .alarm = alarm,
};

/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks accounts: what their store takes is a history in which each request, send and alarm stands
 * once, nothing is lost and nothing made; and what customers hear is what stands there.
 */
#include "sim/bank/bank.h"
#include "base/mem.h"
#include "wire/cursor.h"

#include <inttypes.h>
#include <stdio.h>

enum { ALARM_LATE_MS = 5000, ANSWER_SIZE = 24, WORD_SIZE = 8 };

/* A row of an outbox. */
struct sent {
    uint64_t number;
    struct account *to;
    uint64_t id;
    uint64_t amount;
};

/* A commit, and what stands before the entry that is looked at. */
struct judged {
    struct fleet *fleet;
    struct account *account;
    const struct store_task *task;
    uint64_t sum;
    uint64_t count;
};

/* ---- rows ---- */

static uint64_t number_of(struct bytes key)
{
    uint64_t number = 0;

    for (size_t i = 0; i < key.size && i < WORD_SIZE; i++) {
        number = number << 8 | key.data[i];
    }
    return number;
}

static struct sent sent_of(struct fleet *f, const struct store_change *row)
{
    struct reader in = {.at = row->bytes.data, .left = row->bytes.size};
    struct sent s = {.number = number_of(row->key)};

    (void)get_u16(&in);
    const size_t id_size = get_u8(&in);
    const uint8_t *id = get_bytes(&in, id_size);

    s.to = bank_account(f, bytes_of(id, id_size));
    s.id = get_u64(&in);
    s.amount = get_u64(&in);
    if (in.bad || in.left > 0 || s.to == NULL) {
        world_violate(&f->world, "bank", "a send in the store does not decode");
    }
    return s;
}

/* The number of the last send of `from` that `to` has taken. */
static uint64_t taken_of(const struct account *from, const struct account *to)
{
    const uint8_t kind[] = {FLEET_KIND_ACCOUNT >> 8, FLEET_KIND_ACCOUNT & 0xff};
    struct buffer key = {0};
    struct store_change row;

    buffer_put(&key, kind, sizeof kind);
    buffer_put(&key, from->id, from->id_size);
    const bool found = vault_get(&to->vault, CHANGE_TAKEN, buffer_bytes(&key), &row);
    buffer_fini(&key);
    return found ? number_of(row.bytes) : 0;
}

/* The row of that send, if it is still in its sender's outbox. */
static bool find_sent(struct fleet *f, const struct account *from, uint64_t id, struct sent *out)
{
    struct store_change row = {.key = {0}};

    while (vault_next(&from->vault, CHANGE_SEND, row.key, &row)) {
        *out = sent_of(f, &row);
        if (out->id == id) {
            return true;
        }
    }
    return false;
}

/* Another one to the same receiver stands before it. */
static bool overtakes(struct fleet *f, const struct account *from, const struct sent *s)
{
    const uint64_t taken = taken_of(from, s->to);
    struct store_change row = {.key = {0}};

    while (vault_next(&from->vault, CHANGE_SEND, row.key, &row)) {
        const struct sent other = sent_of(f, &row);

        if (other.to == s->to && other.number > taken && other.number < s->number) {
            return true;
        }
    }
    return false;
}

static bool find_entry(const struct account *a, uint64_t id, struct entry *out)
{
    uint8_t key[ENTRY_KEY_SIZE];
    struct store_change row;

    entry_key(key, id);
    return vault_get(&a->vault, CHANGE_VALUE, bytes_of(key, sizeof key), &row) &&
           entry_get(row.key, row.bytes, out);
}

static void state_of(const struct account *a, uint64_t *sum, uint64_t *count)
{
    struct store_change row;

    *sum = *count = 0;
    if (vault_get(&a->vault, CHANGE_VALUE, bytes_of(ACCOUNT_STATE, 5), &row)) {
        struct reader in = {.at = row.bytes.data, .left = row.bytes.size};

        *sum = get_u64(&in);
        *count = get_u64(&in);
    }
}

/* The change of that key in the commit. */
static bool find_change(const struct store_task *t, enum change_of of, struct bytes key,
                        struct store_change *out)
{
    struct bytes all = buffer_bytes(&t->bytes);
    bool found = false;
    struct store_change c;

    while (changes_next(&all, &c)) {
        if (c.of == of && bytes_equal(c.key, key)) {
            *out = c;
            found = true;
        }
    }
    return found;
}

/* ---- entries ---- */

static void violate(const struct judged *j, const struct entry *e, const char *what)
{
    world_violate(&j->fleet->world,
                  "bank",
                  "%s, entry %" PRIu64 " of %" PRIu64 ": %s",
                  j->account->id,
                  e->count,
                  e->id,
                  what);
}

static uint64_t given_in(const struct judged *j, const struct account *to)
{
    struct bytes all = buffer_bytes(&j->task->bytes);
    uint64_t sum = 0;
    struct store_change c;

    while (changes_next(&all, &c)) {
        if (c.of == CHANGE_SEND && !c.gone) {
            const struct sent s = sent_of(j->fleet, &c);

            sum += s.to == to ? s.amount : 0;
        }
    }
    return sum;
}

static void judge_request(struct judged *j, const struct entry *e, enum bank_verb verb)
{
    struct bank_ask *a = bank_find(j->fleet, e->id);
    const bool is_it =
        a != NULL && a->verb == verb && &j->fleet->bank->account[a->account] == j->account;

    if (!is_it) {
        violate(j, e, "nobody asked for it");
    } else if (a->never) {
        violate(j, e, "it was said that nothing of it was saved");
    } else {
        a->ran = true;
    }
}

static void judge_give(struct judged *j, const struct entry *e)
{
    judge_request(j, e, BANK_GIVE);
    if (e->sum + e->amount != j->sum ||
        given_in(j, &j->fleet->bank->account[e->other]) != e->amount) {
        violate(j, e, "what is gone is not what is sent");
    }
}

static void judge_set(struct judged *j, const struct entry *e)
{
    struct store_change c;

    judge_request(j, e, BANK_SET);
    if (!find_change(j->task, CHANGE_ALARM, account_alarm(e->slot), &c) || c.gone ||
        c.due_ms != e->due_ms) {
        violate(j, e, "its alarm is not in the same commit");
    }
}

static void judge_cancel(struct judged *j, const struct entry *e)
{
    struct store_change c;
    const bool had = vault_get(&j->account->vault, CHANGE_ALARM, account_alarm(e->slot), &c);
    const bool goes = find_change(j->task, CHANGE_ALARM, account_alarm(e->slot), &c) && c.gone;

    judge_request(j, e, BANK_CANCEL);
    if (had != (e->at_ms == 1) || had != goes) {
        violate(j, e, "it cancels no alarm that is there");
    }
}

static void judge_take(struct judged *j, const struct entry *e)
{
    const struct account *from = &j->fleet->bank->account[e->other];
    struct sent s = {0};

    if (e->sum != j->sum + e->amount) {
        violate(j, e, "what it has is not what it took");
    } else if (!find_sent(j->fleet, from, e->id, &s) || s.to != j->account ||
               s.amount != e->amount) {
        violate(j, e, "it takes what is in no outbox");
    } else if (s.number <= taken_of(from, j->account)) {
        violate(j, e, "it takes what it took before");
    } else if (overtakes(j->fleet, from, &s)) {
        violate(j, e, "a send of the same sender stands before it");
    }
    j->fleet->bank->total.sends++;
}

/* It may be set anew by the same commit, for later. */
static void judge_alarm(struct judged *j, const struct entry *e)
{
    struct store_change row;
    struct store_change c;

    if (e->sum + e->amount != j->sum) {
        violate(j, e, "what is gone is not what is sent");
    } else if (!vault_get(&j->account->vault, CHANGE_ALARM, account_alarm(e->slot), &row) ||
               row.due_ms != e->due_ms) {
        violate(j, e, "an alarm goes off that is not there, or at another time");
    } else if (e->at_ms < row.due_ms) {
        violate(j, e, "an alarm goes off before its time");
    } else if (!find_change(j->task, CHANGE_ALARM, account_alarm(e->slot), &c) ||
               (!c.gone && (row.every_ms == 0 || c.due_ms <= row.due_ms ||
                            (c.due_ms - row.due_ms) % row.every_ms != 0))) {
        violate(j, e, "an alarm that went off stays as it was");
    }
    j->fleet->bank->total.alarms++;
}

static void judge_end(struct judged *j, const struct entry *e)
{
    struct bank_ask *a = bank_find(j->fleet, e->amount);
    struct entry begun;

    if (a == NULL || !find_entry(j->account, e->amount, &begun) || begun.what != ENTRY_BEGIN) {
        violate(j, e, "it ends what did not begin");
    } else if (a->ended != 0 || a->cut) {
        violate(j, e, "it ends what has ended, or will not, as was said");
    } else {
        a->ended = e->count;
    }
}

static void judge_same(struct judged *j, const struct entry *e)
{
    if (e->sum != j->sum) {
        violate(j, e, "its sum changes for nothing");
    }
}

static void judge_what(struct judged *j, const struct entry *e)
{
    switch (e->what) {
    case ENTRY_BORN:
        if (j->count != 0 || e->sum != ACCOUNT_SUM) {
            violate(j, e, "it is born a second time");
        }
        return;
    case ENTRY_GIVE:
        judge_give(j, e);
        return;
    case ENTRY_SET:
        judge_set(j, e);
        return;
    case ENTRY_CANCEL:
        judge_cancel(j, e);
        return;
    case ENTRY_TAKE:
        judge_take(j, e);
        return;
    case ENTRY_ALARM:
        judge_alarm(j, e);
        return;
    case ENTRY_BEGIN:
        judge_request(j, e, BANK_CALL);
        judge_same(j, e);
        return;
    case ENTRY_CALLED:
        judge_request(j, e, BANK_CALLED);
        judge_same(j, e);
        return;
    case ENTRY_END:
        judge_end(j, e);
        judge_same(j, e);
        return;
    }
}

static void remember(struct account *a, const struct entry *e)
{
    while (e->count > a->sum_cap) {
        a->sum_cap = a->sum_cap == 0 ? 256 : 2 * a->sum_cap;
        a->sum = mem_resize(a->sum, a->sum_cap * sizeof *a->sum);
    }
    a->sum[e->count - 1] = e->sum;
}

static void judge_entry(struct judged *j, const struct entry *e)
{
    struct entry before;

    if (find_entry(j->account, e->id, &before)) {
        violate(j, e, "it is in the journal already");
        return;
    }
    if (e->count != j->count + 1) {
        violate(j, e, "it does not know what stands before it");
        return;
    }
    TRACE(&j->fleet->world,
          j->account->id,
          "entry %" PRIu64 " is of %" PRIu64 ", kind %d, sum %" PRIu64,
          e->count,
          e->id,
          (int)e->what,
          e->sum);
    judge_what(j, e);
    remember(j->account, e);
    j->sum = e->sum;
    j->count = e->count;
}

/* ---- the rest of a commit ---- */

/* Changed by an entry of the same commit. */
static bool is_explained(const struct judged *j, const struct store_change *alarm)
{
    struct bytes all = buffer_bytes(&j->task->bytes);
    struct store_change c;
    struct entry e;

    while (changes_next(&all, &c)) {
        const bool of_alarm =
            c.of == CHANGE_VALUE && entry_get(c.key, c.bytes, &e) &&
            (e.what == ENTRY_SET || e.what == ENTRY_CANCEL || e.what == ENTRY_ALARM);

        if (of_alarm && bytes_equal(account_alarm(e.slot), alarm->key)) {
            return true;
        }
    }
    return false;
}

static void judge_row(const struct judged *j, const struct store_change *c)
{
    struct store_change row;
    const bool of_game = c->of == CHANGE_ALARM && c->key.data[0] != 0;

    if (of_game && !is_explained(j, c)) {
        world_violate(&j->fleet->world,
                      "bank",
                      "%s: commit %" PRIu64 " changes an alarm, and nothing says why",
                      j->account->id,
                      j->task->number);
    }
    if (c->of == CHANGE_SEND && c->gone &&
        vault_get(&j->account->vault, CHANGE_SEND, c->key, &row)) {
        const struct sent s = sent_of(j->fleet, &row);

        if (s.number > taken_of(j->account, s.to)) {
            world_violate(&j->fleet->world,
                          "bank",
                          "%s: send %" PRIu64 " to %s is deleted and was not taken",
                          j->account->id,
                          s.id,
                          s.to->id);
        }
    }
}

void check_bank_commit(struct fleet *f, struct account *a, const struct store_task *t)
{
    struct judged j = {.fleet = f, .account = a, .task = t};
    struct bytes all = buffer_bytes(&t->bytes);
    struct store_change c;
    struct entry e;

    f->bank->total.commits++;
    if (t->fence != a->vault.fence) {
        world_violate(&f->world,
                      "bank",
                      "%s: commit %" PRIu64 " is by fence %" PRIu64 ", it was claimed by %" PRIu64,
                      a->id,
                      t->number,
                      t->fence,
                      a->vault.fence);
    }
    state_of(a, &j.sum, &j.count);
    while (f->world.checker == NULL && changes_next(&all, &c)) {
        if (c.of == CHANGE_VALUE && entry_get(c.key, c.bytes, &e)) {
            judge_entry(&j, &e);
        } else {
            judge_row(&j, &c);
        }
    }
}

/* ---- between commits ---- */

/* What is in its outbox and was not taken; `any`: rows, taken or not. */
static uint64_t on_its_way(struct fleet *f, const struct account *a, bool *any)
{
    struct store_change row = {.key = {0}};
    uint64_t sum = 0;

    *any = false;
    while (vault_next(&a->vault, CHANGE_SEND, row.key, &row)) {
        const struct sent s = sent_of(f, &row);

        sum += s.number > taken_of(a, s.to) ? s.amount : 0;
        *any = true;
    }
    return sum;
}

static bool has_inner_alarm(const struct account *a)
{
    const struct bytes none = {0};
    struct store_change row;

    return vault_next(&a->vault, CHANGE_ALARM, none, &row) && row.key.data[0] == 0;
}

void check_bank_sums(struct fleet *f)
{
    uint64_t born = 0;
    uint64_t all = 0;

    for (size_t i = 0; i < ACCOUNTS; i++) {
        const struct account *a = &f->bank->account[i];
        uint64_t sum = 0;
        uint64_t count = 0;
        bool any = false;

        state_of(a, &sum, &count);
        born += count > 0 ? ACCOUNT_SUM : 0;
        all += sum + on_its_way(f, a, &any);
        if (any != has_inner_alarm(a)) {
            world_violate(&f->world,
                          "bank",
                          "%s has %s to send, and %s alarm to wake it for that",
                          a->id,
                          any ? "something" : "nothing",
                          any ? "no" : "an");
        }
    }
    if (all != born) {
        world_violate(&f->world,
                      "bank",
                      "all accounts have %" PRIu64 ", they began with %" PRIu64,
                      all,
                      born);
    }
}

void check_bank_doubt(struct fleet *f, const struct store_task *t)
{
    struct bytes all = buffer_bytes(&t->bytes);
    struct store_change c;
    struct entry e;

    while (changes_next(&all, &c)) {
        struct bank_ask *a = c.of == CHANGE_VALUE && entry_get(c.key, c.bytes, &e)
                                 ? bank_find(f, e.what == ENTRY_END ? e.amount : e.id)
                                 : NULL;

        if (a != NULL) {
            a->in_doubt = true;
        }
    }
}

void check_bank_runs(struct fleet *f, const struct account *a, uint64_t id, bool has)
{
    TRACE(&f->world, a->id, "runs %" PRIu64, id);
    if (has) {
        world_violate(&f->world, "bank", "%s runs %" PRIu64 ", which is in its journal", a->id, id);
    }
}

/* ---- answers ---- */

static void reply_violates(struct fleet *f, const struct bank_ask *a, const char *what)
{
    world_violate(&f->world,
                  "bank",
                  "request %" PRIu64 " to %s: %s",
                  (uint64_t)(a - f->bank->ask) + 1,
                  f->bank->account[a->account].id,
                  what);
}

static void judge_ok(struct fleet *f, const struct bank_ask *a, struct bytes body)
{
    struct account *to = &f->bank->account[a->account];
    const uint64_t uid = (uint64_t)(a - f->bank->ask) + 1;
    struct reader in = {.at = body.data, .left = body.size};
    const uint64_t id = get_u64(&in);
    const uint64_t sum = get_u64(&in);
    const uint64_t count = get_u64(&in);
    uint64_t sum_now = 0;
    uint64_t count_now = 0;
    struct entry e;

    state_of(to, &sum_now, &count_now);
    if (body.size != ANSWER_SIZE || id != uid) {
        reply_violates(f, a, "it gets another one's answer");
    } else if (count == 0 || count > count_now || to->sum[count - 1] != sum) {
        reply_violates(f, a, "it is told of what is not in the store");
    } else if (count < a->known) {
        reply_violates(f, a, "it is told of less than was known when it was asked");
    } else if (a->verb == BANK_CALL && a->ended != count) {
        reply_violates(f, a, "it was answered OK, and the store has no such end of it");
    } else if (a->verb != BANK_READ && a->verb != BANK_CALL &&
               (!find_entry(to, uid, &e) || e.sum != sum || e.count != count)) {
        reply_violates(f, a, "it was answered OK, and the store has not got it so");
    }
    to->heard = count > to->heard ? count : to->heard;
}

/* A part of one that waits for others may be saved, its end is not. */
static void judge_never(struct fleet *f, struct bank_ask *a, bool in_parts)
{
    if (in_parts && a->ran) {
        a->cut = true;
        if (a->ended != 0) {
            reply_violates(f, a, "it is told that it did not end, and the store has its end");
        }
        return;
    }
    a->never = true;
    if (a->ran) {
        reply_violates(f, a, "it is told that nothing of it was saved, and the store has it");
    }
}

/* Incarnations whose end its asker may have met. */
static size_t deaths_since(const struct sim_bank *b, const struct bank_ask *a)
{
    size_t count = 0;

    for (size_t i = 0; i < b->death_count; i++) {
        count += b->death[i].known_us >= a->asked_us || a->view <= b->death[i].view;
    }
    return count;
}

/* The store did not say, or two of its owners died with it, or may have (decision 090). Of one that
 * reads, or waits for others, it is not told to which commit that happened. A gateway that its
 * customer left gave it up, and had run what is behind it: then it did not run. */
static bool may_be_unknown(const struct fleet *f, const struct bank_ask *a)
{
    const bool any = (a->verb == BANK_CALL || a->verb == BANK_READ) &&
                     f->bank->account[a->account].doubts > a->doubts;

    const bool passed = a->resumed && !a->ran;

    return a->in_doubt || any || passed || deaths_since(f->bank, a) > 1;
}

void check_bank_reply(struct fleet *f, struct bank_ask *a, enum reply_code code, struct bytes body)
{
    TRACE(&f->world,
          f->bank->account[a->account].id,
          "request %" PRIu64 " is answered %d%s%.*s",
          (uint64_t)(a - f->bank->ask) + 1,
          (int)code,
          code == REPLY_APP_ERROR ? ": " : "",
          code == REPLY_APP_ERROR ? (int)body.size : 0,
          (const char *)body.data);
    if (a->replied) {
        reply_violates(f, a, "it is answered a second time");
    }
    a->answered = a->replied = true;
    switch (code) {
    case REPLY_OK:
        judge_ok(f, a, body);
        return;
    case REPLY_UNKNOWN:
        f->bank->total.unknown++;
        if (!may_be_unknown(f, a)) {
            reply_violates(f, a, "UNKNOWN without a cause");
        }
        return;
    case REPLY_TIMEOUT:
        return;
    case REPLY_APP_ERROR:
        judge_never(f, a, a->verb == BANK_CALL);
        return;
    case REPLY_REJECTED:
    case REPLY_NO_KIND:
    case REPLY_OVERLOADED:
    case REPLY_QUARANTINED:
    case REPLY_DEADLOCK:
        judge_never(f, a, false);
        return;
    }
}

void check_bank_called(struct fleet *f, uint64_t id, int status)
{
    struct bank_ask *a = bank_find(f, id);

    if (status == RH_OK && !a->ran) {
        reply_violates(f, a, "a call was answered, and the store has nothing of it");
    } else if (status == RH_UNKNOWN && !may_be_unknown(f, a)) {
        reply_violates(f, a, "the outcome of a call is UNKNOWN without a cause");
    } else if (status != RH_OK && status != RH_UNKNOWN && status != RH_TIMEOUT) {
        judge_never(f, a, false);
    }
}

static struct bank_death *death_of(struct sim_bank *b, uint64_t incarnation)
{
    for (size_t i = b->death_count; i > 0; i--) {
        if (b->death[i - 1].incarnation == incarnation) {
            return &b->death[i - 1];
        }
    }
    if (b->death_count == b->death_cap) {
        b->death_cap = b->death_cap == 0 ? 16 : 2 * b->death_cap;
        b->death = mem_resize(b->death, b->death_cap * sizeof *b->death);
    }
    b->death[b->death_count] = (struct bank_death){.incarnation = incarnation};
    return &b->death[b->death_count++];
}

void check_bank_death(struct fleet *f, const struct sim_node *n)
{
    if (f->bank != NULL && n->last_incarnation != 0) {
        struct bank_death *d = death_of(f->bank, n->last_incarnation);

        d->known_us = f->world.now_us;
        d->view = f->ledger.view_count;
    }
}

/* ---- at rest ---- */

/* By the slowest clock of a node. */
static uint64_t least_wall_ms(const struct fleet *f)
{
    uint64_t least_us = UINT64_MAX;

    for (unsigned i = 0; i < f->nodes; i++) {
        const struct sim_node *n = &f->node[i];
        const uint64_t us =
            sim_clock_read(&n->process.clock, f->world.now_us) + (uint64_t)n->wall_us;

        least_us = n->core != NULL && us < least_us ? us : least_us;
    }
    return (FLEET_WALL_US + least_us) / 1000;
}

const char *bank_waits(struct fleet *f)
{
    static char text[WORLD_LINE_MAX];

    for (size_t i = 0; f->bank != NULL && i < f->bank->ask_count; i++) {
        if (!f->bank->ask[i].answered) {
            (void)snprintf(text, sizeof text, "request %zu to an account has no answer", i + 1);
            return text;
        }
    }
    for (size_t i = 0; f->bank != NULL && i < ACCOUNTS; i++) {
        const struct account *a = &f->bank->account[i];
        struct store_change row = {.key = {0}};

        if (vault_next(&a->vault, CHANGE_SEND, row.key, &row)) {
            (void)snprintf(text, sizeof text, "%s has something to send", a->id);
            return text;
        }
        while (vault_next(&a->vault, CHANGE_ALARM, row.key, &row)) {
            if (row.due_ms + ALARM_LATE_MS < least_wall_ms(f)) {
                (void)snprintf(text, sizeof text, "%s has an alarm that is due", a->id);
                return text;
            }
        }
    }
    return NULL;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * rh_alarm_*: the alarms of a durable actor. They are named values of their own, whose bytes begin
 * with their times, so they are sealed and undone as values are; and their changes are rows of
 * another table, in the same commit.
 *
 *     REST -its time comes-> DUE (wants a turn) -its turn-> FIRING, perhaps deferred
 *     FIRING -OK-> gone, or REST until its next time: a change of the callback's last commit
 *     FIRING -failed-> REST for a back-off, and nothing of that is in the store
 *
 * One fires in a turn, the earliest. Only then all of them are looked at: `next_ms` is no later
 * than the first, and may be earlier, for one that was cancelled since.
 */
#include "node/runtime/durable.h"

#include "base/assert.h"
#include "base/mem.h"
#include "base/mutant.h"
#include "storage/actors/changes.h"

#include <stdatomic.h>

_Static_assert((int)RH_ALARMS_MAX == (int)NAMED_VALUES_MAX &&
                   (int)RH_ALARM_PAYLOAD_MAX <= (int)CHANGES_VALUE_MAX,
               "the same limits");

enum {
    GRID_MS = 100, /* those of one moment fire by one look at the clock */
    BACK_OFF_MS = 100,
    BACK_OFF_MAX_MS = 30000,
    BACK_OFF_STEPS = 9, /* doubled so often it is above the greatest */
    LATE_MS = 1000,     /* later than that counts as late */
    JUMP_US = 50000,    /* the two clocks drift apart by less, unless one is set */
};

/* In front of the payload. */
struct alarm_head {
    uint64_t due_ms;
    uint64_t every_ms; /* 0 = once */
    uint64_t again_ms; /* after it failed: not before; else 0 */
    uint64_t serial;   /* of its setting, in this life of the actor */
    uint32_t failures; /* in a row */
    uint32_t unused;
};

/* As it is in the table. */
struct durable_alarm {
    struct bytes name;
    struct alarm_head head;
    struct bytes payload;
};

struct durable_alarms {
    struct named_values table;
    struct list_link in_runtime; /* runtime.alarmed */
    struct timer timer;          /* for next_ms; or it is due, and waits for a turn */
    uint64_t next_ms;            /* no alarm is due before; UINT64_MAX = there is none */
    uint64_t last_serial;
    bool due;   /* the turn that runs is for one */
    bool fires; /* its callback runs, or is deferred: of … */
    uint64_t fires_serial;
    uint8_t fires_name_size;
    uint8_t fires_name[CHANGES_KEY_MAX];
};

/* ---- the table ---- */

static bool open_alarm(struct bytes name, struct bytes content, struct durable_alarm *out)
{
    ASSERT(content.size >= sizeof out->head);
    out->name = name;
    memcpy(&out->head, content.data, sizeof out->head);
    out->payload = bytes_of(content.data + sizeof out->head, content.size - sizeof out->head);
    return true;
}

static bool find(const struct durable_alarms *t, struct bytes name, struct durable_alarm *out)
{
    struct bytes content = {0};

    return named_values_get(&t->table, name, &content) && open_alarm(name, content, out);
}

static bool find_next(const struct durable_alarms *t, struct bytes after, struct durable_alarm *out)
{
    struct bytes name = {0};
    struct bytes content = {0};

    return named_values_next(&t->table, after, &name, &content) && open_alarm(name, content, out);
}

static enum named_put put(struct durable_alarms *t, const struct durable_alarm *alarm)
{
    struct buffer content = {0};

    buffer_put(&content, &alarm->head, sizeof alarm->head);
    buffer_put(&content, alarm->payload.data, alarm->payload.size);
    const enum named_put result = named_values_put(&t->table, alarm->name, buffer_bytes(&content));
    buffer_fini(&content);
    return result;
}

/* What was put is not for the store: it is there already, or only matters here. */
static void forget_changes(struct durable_alarms *t)
{
    struct buffer unused = {0};

    named_values_seal(&t->table, &unused);
    buffer_fini(&unused);
}

static struct durable_alarms *alarms_of(struct rh_actor *a)
{
    struct durable *d = a->extra->durable;

    if (d->alarms == NULL) {
        struct durable_alarms *t = d->alarms = mem_new(1, sizeof *t);

        named_values_init(&t->table);
        list_push_back(&a->runtime->alarmed, &t->in_runtime);
        t->timer.type = TIMER_ALARM;
        t->timer.actor = a;
        t->timer.due.is_timer = true;
        t->next_ms = UINT64_MAX;
    }
    return d->alarms;
}

/* ---- the clock ---- */

/* As it was when the runtime was told last, and the other clock since. */
uint64_t durable_wall_ms(const struct runtime *s)
{
    return s->has_wall ? (s->now_us + s->wall_offset_us) / 1000 : 0;
}

static uint64_t time_of(const struct durable_alarm *alarm)
{
    return alarm->head.again_ms > alarm->head.due_ms ? alarm->head.again_ms : alarm->head.due_ms;
}

static bool has_come(const struct runtime *s, uint64_t ms)
{
    return ms <= durable_wall_ms(s) || (mutant(M_ALARMEARLY) && s->has_wall);
}

static void set_timer(struct rh_actor *a)
{
    struct durable_alarms *t = a->extra->durable->alarms;
    struct runtime *s = a->runtime;
    const bool waits = list_linked(&t->timer.due.link) || t->due;

    alarms_unset(&s->alarms, &t->timer.alarm);
    if (waits || t->next_ms == UINT64_MAX || !s->has_wall || role_of(a)->ops->alarm == NULL) {
        return;
    }
    const uint64_t at_ms = (t->next_ms + GRID_MS - 1) / GRID_MS * GRID_MS;
    const uint64_t left_ms = has_come(s, t->next_ms) ? 0 : at_ms - durable_wall_ms(s);

    alarms_set(&s->alarms, &t->timer.alarm, s->now_us + left_ms * 1000);
}

void durable_alarms_rang(struct rh_actor *a)
{
    struct durable_alarms *t = a->extra->durable->alarms;

    if (has_come(a->runtime, t->next_ms)) {
        list_push_back(&a->extra->due, &t->timer.due.link);
        durable_count(a);
    } else {
        set_timer(a); // the clock was put back meanwhile
    }
}

void runtime_set_wall(struct runtime *s, uint64_t now_us, uint64_t wall_us)
{
    const uint64_t offset_us = wall_us - now_us;
    const uint64_t away_us = offset_us - s->alarms_offset_us + JUMP_US; // or far below it

    s->now_us = now_us;
    s->wall_offset_us = offset_us;
    if (s->has_wall && away_us <= 2 * (uint64_t)JUMP_US) {
        return;
    }
    s->has_wall = true;
    s->alarms_offset_us = offset_us;
    for (struct list_link *l = list_front(&s->alarmed); l != NULL; l = list_next(&s->alarmed, l)) {
        set_timer(CONTAINER_OF(l, struct durable_alarms, in_runtime)->timer.actor);
    }
}

/* ---- changes ---- */

static void note_next(struct durable_alarms *t, const struct durable_alarm *alarm)
{
    t->next_ms = time_of(alarm) < t->next_ms ? time_of(alarm) : t->next_ms;
}

static void seal_one(struct durable_alarms *t, const struct store_change *from, struct buffer *out)
{
    struct store_change c = {.of = CHANGE_ALARM, .key = from->key, .gone = from->gone};
    struct durable_alarm alarm;

    if (!c.gone) {
        (void)open_alarm(from->key, from->bytes, &alarm);
        note_next(t, &alarm);
        c.bytes = alarm.payload;
        c.due_ms = alarm.head.due_ms;
        c.every_ms = alarm.head.every_ms;
    }
    changes_put(out, &c);
}

void durable_alarms_seal(struct rh_actor *a, struct buffer *out)
{
    struct durable_alarms *t = a->extra->durable->alarms;
    struct buffer sealed = {0};
    struct store_change c;

    if (t == NULL || !named_values_are_changed(&t->table)) {
        return;
    }
    named_values_seal(&t->table, &sealed);
    struct bytes all = buffer_bytes(&sealed);
    while (changes_next(&all, &c)) {
        seal_one(t, &c, out);
    }
    buffer_fini(&sealed);
    set_timer(a);
}

bool durable_alarms_are_changed(const struct durable *d)
{
    return d->alarms != NULL && named_values_are_changed(&d->alarms->table);
}

void durable_alarms_undo(struct durable *d)
{
    if (d->alarms != NULL) {
        named_values_undo(&d->alarms->table);
    }
}

/* ---- its turn ---- */

/* Find the earliest, and the time of the one behind it. False: there is none that is due. */
static bool pick(struct rh_actor *a, struct durable_alarm *out)
{
    struct durable_alarms *t = a->extra->durable->alarms;
    struct durable_alarm at = {0};
    bool found = false;
    uint64_t behind_ms = UINT64_MAX;

    for (size_t i = 0; named_values_at(&t->table, i, &at.name, &at.payload); i++) {
        (void)open_alarm(at.name, at.payload, &at);
        if (!found || time_of(&at) < time_of(out)) {
            behind_ms = found ? time_of(out) : behind_ms;
            *out = at;
            found = true;
        } else if (time_of(&at) < behind_ms) {
            behind_ms = time_of(&at);
        }
    }
    const bool due = found && has_come(a->runtime, time_of(out));

    t->next_ms = found && !due ? time_of(out) : behind_ms;
    return due;
}

static void count(const struct runtime *s, const struct durable_alarm *alarm)
{
    struct alarm_counts *counts = s->config.alarm_counts;

    if (counts != NULL) {
        (void)atomic_fetch_add(&counts->fired, 1);
        if (alarm->head.due_ms + LATE_MS <= durable_wall_ms(s)) {
            (void)atomic_fetch_add(&counts->late, 1);
        }
    }
}

/* The one that fires, if it was neither set anew nor cancelled since. */
static bool find_firing(const struct durable_alarms *t, struct durable_alarm *out)
{
    return find(t, bytes_of(t->fires_name, t->fires_name_size), out) &&
           out->head.serial == t->fires_serial;
}

/* From when it was due, unless that has gone by as well: what was missed is not made up. */
static uint64_t next_time(const struct runtime *s, const struct alarm_head *head)
{
    const uint64_t now_ms = durable_wall_ms(s);
    const uint64_t gone_ms = now_ms > head->due_ms ? now_ms - head->due_ms : 0;

    return head->due_ms + (gone_ms / head->every_ms + 1) * head->every_ms;
}

/* It has fired: that is a change of its callback. */
static void consume(struct rh_actor *a)
{
    struct durable_alarms *t = a->extra->durable->alarms;
    struct durable_alarm alarm;

    if (!find_firing(t, &alarm)) {
        return;
    }
    const uint64_t next_ms = alarm.head.every_ms > 0 ? next_time(a->runtime, &alarm.head) : 0;
    if (alarm.head.every_ms == 0 || next_ms > CHANGES_MS_MAX) {
        (void)named_values_delete(&t->table, alarm.name);
        return;
    }
    alarm.head.due_ms = next_ms;
    alarm.head.again_ms = 0;
    alarm.head.failures = 0;
    const enum named_put result = put(t, &alarm);
    ASSERT(result == NAMED_PUT_DONE); // It has its place, and its size.
}

/* … or of what was before it. */
static void consume_apart(struct rh_actor *a)
{
    actor_enter_code(a);
    consume(a);
    actor_leave_code(a, true);
}

static void back_off(struct rh_actor *a)
{
    struct durable_alarms *t = a->extra->durable->alarms;
    struct alarm_counts *counts = a->runtime->config.alarm_counts;
    struct durable_alarm alarm;

    if (counts != NULL) {
        (void)atomic_fetch_add(&counts->failed, 1);
    }
    if (a->broken || !find_firing(t, &alarm)) {
        return;
    }
    const uint32_t doubled =
        alarm.head.failures < BACK_OFF_STEPS ? alarm.head.failures : BACK_OFF_STEPS;
    const uint64_t ms = (uint64_t)BACK_OFF_MS << doubled;

    actor_complain(a, "alarm_failed", "the alarm's callback failed: it is called again");
    alarm.head.again_ms =
        durable_wall_ms(a->runtime) + (ms < BACK_OFF_MAX_MS ? ms : BACK_OFF_MAX_MS);
    alarm.head.failures++;
    const enum named_put result = put(t, &alarm);
    ASSERT(result == NAMED_PUT_DONE);
    forget_changes(t);
    note_next(t, &alarm);
}

/* Others may be due, or this one again. */
static void rest(struct rh_actor *a)
{
    struct durable_alarms *t = a->extra->durable->alarms;

    t->fires = t->due = false;
    set_timer(a);
    durable_count(a);
}

bool durable_alarms_are_due(const struct rh_actor *a)
{
    const struct durable *d = a->extra->durable;

    return d != NULL && d->alarms != NULL && d->alarms->due;
}

void durable_alarms_want(struct rh_actor *a)
{
    a->extra->durable->alarms->due = true;
}

static int call(struct rh_actor *a, const struct durable_alarm *alarm)
{
    const struct rh_alarm shown = {.name = {alarm->name.data, alarm->name.size},
                                   .payload = {alarm->payload.data, alarm->payload.size},
                                   .due_ms = alarm->head.due_ms,
                                   .every_ms = alarm->head.every_ms};

    return role_of(a)->ops->alarm(a, a->instance, &shown);
}

static void fire(struct rh_actor *a, const struct durable_alarm *alarm)
{
    struct durable_alarms *t = a->extra->durable->alarms;

    t->fires = true;
    t->fires_serial = alarm->head.serial;
    t->fires_name_size = (uint8_t)alarm->name.size;
    memcpy(t->fires_name, alarm->name.data, alarm->name.size);
    count(a->runtime, alarm);
    a->callback = CALLBACK_ALARM;
    actor_enter_code(a);
    const int result = call(a, alarm);
    const bool waits = result == RH_PENDING && a->extra->deferral != NULL;
    if (result == RH_OK && !a->broken) {
        consume(a);
    }
    actor_leave_code(a, result == RH_OK || waits);
    if (mutant(M_ALARMLOST)) {
        consume_apart(a);
    }
    if (!waits) {
        if (result != RH_OK || a->broken) {
            back_off(a);
        }
        rest(a);
    }
    actor_returned(a, result);
}

bool durable_alarms_turn(struct rh_actor *a)
{
    struct durable_alarm alarm = {0};

    if (a->broken || a->ending || !pick(a, &alarm)) {
        rest(a); // Else it was cancelled, or set to another time.
        return false;
    }
    fire(a, &alarm);
    return true;
}

/* Of one that was deferred: what fires in a turn else has come to rest. */
void durable_alarms_fired(struct rh_actor *a, int result)
{
    if (!a->extra->durable->alarms->fires) {
        return;
    }
    if (result == RH_OK && !a->broken) {
        consume_apart(a);
    } else {
        back_off(a);
    }
    rest(a);
}

/* ---- its life ---- */

bool durable_alarms_load(struct rh_actor *a, struct bytes all)
{
    bool fits = true;
    struct store_change c;

    while (fits && changes_next(&all, &c)) {
        const bool stays = mutant(M_ALARMSTAYS) && a->extra->durable->has_state;

        if (c.of == CHANGE_ALARM && !durable_is_inner_alarm(c.key) && !stays) {
            struct durable_alarms *t = alarms_of(a);
            const struct durable_alarm alarm = {
                .name = c.key,
                .payload = c.bytes,
                .head = {.due_ms = c.due_ms, .every_ms = c.every_ms, .serial = ++t->last_serial},
            };

            fits = put(t, &alarm) == NAMED_PUT_DONE;
            note_next(t, &alarm);
        }
    }
    if (a->extra->durable->alarms != NULL) {
        forget_changes(a->extra->durable->alarms);
        set_timer(a);
    }
    return fits;
}

size_t durable_alarms_count(const struct durable *d, bool *due)
{
    const struct durable_alarms *t = d->alarms;

    *due = t != NULL && (list_linked(&t->timer.due.link) || t->due || t->fires);
    return t == NULL ? 0 : t->table.there;
}

void durable_alarms_free(struct rh_actor *a)
{
    struct durable_alarms *t = a->extra->durable->alarms;

    if (t == NULL) {
        return;
    }
    a->extra->durable->alarms = NULL;
    alarms_unset(&a->runtime->alarms, &t->timer.alarm);
    if (list_linked(&t->timer.due.link)) {
        list_remove(&t->timer.due.link);
    }
    list_remove(&t->in_runtime);
    named_values_fini(&t->table);
    mem_free(t);
}

/* ---- ringhold.h ---- */

/* A callback runs that may change alarms. */
static bool may_change(const struct rh_actor *a)
{
    const struct durable *d = a == NULL || a->extra == NULL ? NULL : a->extra->durable;

    return d != NULL && !d->loading && d->runs && actor_may_ask(a) &&
           role_of(a)->ops->alarm != NULL;
}

static bool name_is_valid(struct rh_bytes name)
{
    return name.data != NULL && name.size > 0 && name.size <= RH_STATE_KEY_MAX &&
           *(const char *)name.data != 0;
}

static void count_one(const struct rh_actor *a, bool set)
{
    struct alarm_counts *counts = a->runtime->config.alarm_counts;

    if (counts != NULL) {
        (void)atomic_fetch_add(set ? &counts->set : &counts->cancelled, 1);
    }
}

int rh_alarm_set(struct rh_actor *actor, struct rh_bytes name, uint64_t due_ms, uint64_t every_ms,
                 struct rh_bytes payload)
{
    const bool good = name_is_valid(name) && (payload.data != NULL || payload.size == 0) &&
                      due_ms <= CHANGES_MS_MAX && every_ms <= CHANGES_MS_MAX &&
                      (every_ms == 0 || every_ms >= RH_ALARM_EVERY_MIN_MS);

    if (!may_change(actor) || !good) {
        return RH_INVALID;
    }
    if (payload.size > RH_ALARM_PAYLOAD_MAX) {
        return RH_TOO_BIG;
    }
    if (actor->extra->durable->sealed.size > NAMED_VALUES_SIZE_MAX) {
        return RH_OVERLOADED;
    }
    struct durable_alarms *t = alarms_of(actor);
    const struct durable_alarm alarm = {
        .name = bytes_of(name.data, name.size),
        .payload = bytes_of(payload.data, payload.size),
        .head = {.due_ms = due_ms, .every_ms = every_ms, .serial = ++t->last_serial},
    };
    if (put(t, &alarm) != NAMED_PUT_DONE) {
        return RH_FULL;
    }
    count_one(actor, true);
    return RH_OK;
}

int rh_alarm_cancel(struct rh_actor *actor, struct rh_bytes name)
{
    if (!may_change(actor) || !name_is_valid(name)) {
        return RH_INVALID;
    }
    if (!named_values_delete(&alarms_of(actor)->table, bytes_of(name.data, name.size))) {
        return RH_GONE;
    }
    count_one(actor, false);
    return RH_OK;
}

int rh_alarm_next(const struct rh_actor *actor, struct rh_bytes after, struct rh_alarm *alarm)
{
    const struct durable *d = actor == NULL || actor->extra == NULL ? NULL : actor->extra->durable;
    struct durable_alarm found;

    if (d == NULL || d->loading || alarm == NULL || (after.data == NULL && after.size > 0)) {
        return RH_INVALID;
    }
    *alarm = (struct rh_alarm){{NULL, 0}, {NULL, 0}, 0, 0};
    if (d->alarms == NULL || !find_next(d->alarms, bytes_of(after.data, after.size), &found)) {
        return RH_GONE;
    }
    *alarm = (struct rh_alarm){.name = {found.name.data, found.name.size},
                               .payload = {found.payload.data, found.payload.size},
                               .due_ms = found.head.due_ms,
                               .every_ms = found.head.every_ms};
    return RH_OK;
}

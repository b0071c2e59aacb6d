/* SPDX-License-Identifier: Apache-2.0
 *
 * rh_send_once: what leaves a durable actor's outbox, again until it is taken, and what its inbox
 * takes.
 *
 *     a callback --rh_send_once--> outbox --committed--> a call of the runtime's own, a note SEND
 *     its answer: taken --> the row goes with the next commit, or one of its own
 *                 else  --> once more after a while
 *
 * As long as something is in the outbox there is an alarm, too, which is in no list of the game's:
 * so whoever owns the actor next starts it, though nobody asks for it.
 */
#include "node/runtime/durable.h"

#include "base/assert.h"
#include "base/mem.h"
#include "base/mutant.h"
#include "storage/actors/changes.h"
#include "wire/cursor.h"
#include "wire/session.h"

#include <stdatomic.h>

enum {
    TRY_MS = 10000,   /* how long a try may take */
    TRIES_UNSAID = 8, /* that fail before a log line says so; so long takes a take-over */
    AWAKE_MS = 10000, /* an actor with an outbox is started if nobody has for so long */
};

_Static_assert((int)NOTE_SEND_MAX <= (int)CHANGES_VALUE_MAX - (int)OUTBOX_HEAD_MAX &&
                   (int)RH_SEND_ONCE_MAX == (int)NOTE_SEND_MAX,
               "the same limits");

/* ---- the rows ---- */

bool durable_sends_are_changed(const struct durable *d)
{
    return outbox_is_changed(&d->outbox) || inbox_is_changed(&d->inbox);
}

/* There is an alarm just as long as there is something to send. */
static void put_alarm(struct rh_actor *a, struct buffer *out)
{
    struct durable *d = a->extra->durable;
    const bool wanted = d->outbox.count > 0;
    const struct store_change c = {
        .of = CHANGE_ALARM,
        .key = bytes_of(SENDS_ALARM, sizeof SENDS_ALARM - 1),
        .gone = !wanted,
        .due_ms = wanted ? durable_wall_ms(a->runtime) + AWAKE_MS : 0,
    };

    if (wanted != d->has_alarm) {
        changes_put(out, &c);
        d->has_alarm = wanted;
    }
}

void durable_sends_seal(struct rh_actor *a, struct buffer *out)
{
    struct durable *d = a->extra->durable;

    if (durable_sends_are_changed(d)) {
        inbox_seal(&d->inbox, out);
        outbox_seal(&d->outbox, d->number + (d->task == NULL ? 1 : 2), out);
        put_alarm(a, out);
    }
}

bool durable_sends_take(struct durable *d, bool changed)
{
    struct reader in = {.at = d->taking.data, .left = d->taking.size};
    const bool counts = changed || withheld_find(&d->said, VERB_RUN) != NULL ||
                        withheld_find(&d->said, VERB_CALL) != NULL || mutant(M_TAKENEARLY);

    if (d->taking.size == 0 || !counts) {
        return false;
    }
    const uint16_t kind = get_u16(&in);
    const uint64_t number = get_u64(&in);
    inbox_take(&d->inbox, kind, bytes_of(in.at, in.left), number);
    buffer_clear(&d->taking);
    return true;
}

void durable_sends_undo(struct durable *d)
{
    buffer_clear(&d->taking);
    outbox_undo(&d->outbox);
    inbox_undo(&d->inbox);
}

bool durable_sends_load(struct rh_actor *a, struct bytes all)
{
    struct durable *d = a->extra->durable;
    struct bytes rest = all;
    struct store_change c;

    while (changes_next(&rest, &c)) {
        d->has_alarm = d->has_alarm || (c.of == CHANGE_ALARM && durable_is_inner_alarm(c.key));
    }
    return outbox_load(&d->outbox, all) && inbox_load(&d->inbox, all);
}

void durable_sends_free(struct rh_actor *a)
{
    struct durable *d = a->extra->durable;

    alarms_unset(&a->runtime->alarms, &d->again.alarm);
    outbox_fini(&d->outbox);
    inbox_fini(&d->inbox);
    buffer_fini(&d->taking);
}

/* ---- out ---- */

static void try_one(struct rh_actor *a, const struct outbox_send *send)
{
    const struct note note = {.type = NOTE_SEND, .number = send->number, .payload = send->payload};
    struct buffer body = {0};
    struct call call = {
        .from_kind = a->kind,
        .from = bytes_of(a->id, a->id_size),
        .kind = send->kind,
        .id = send->id,
        .number = call_open_send(a, send->number),
        .outgoing = true,
        .timeout_ms = TRY_MS,
        .flags = RH_IDEMPOTENT,
    };

    note_put(&body, &note);
    call.payload = buffer_bytes(&body);
    call_tell(a, &call); // past the gate: what it tells of is in the store
    buffer_fini(&body);
}

void durable_sends_go(struct rh_actor *a)
{
    struct durable *d = a->extra->durable;
    struct runtime *s = a->runtime;
    struct outbox_send send;

    durable_count(a);
    alarms_unset(&s->alarms, &d->again.alarm);
    if (d->ended || a->frozen || a->broken) {
        return; // whoever has it next goes on
    }
    while (outbox_next(&d->outbox, s->now_us, &send)) {
        try_one(a, &send);
    }
    durable_save(a);
    const uint64_t again_us = outbox_wakes_us(&d->outbox);
    if (again_us != 0) {
        d->again.actor = a;
        d->again.type = TIMER_SENDS;
        alarms_set(&s->alarms, &d->again.alarm, again_us);
    }
}

void durable_send_ended(struct rh_actor *a, uint64_t number, const struct call_answer *answer)
{
    const bool taken =
        answer->status == RH_OK && answer->payload.size == 1 && answer->payload.data[0] == 1;

    const uint32_t failed =
        outbox_ended(&a->extra->durable->outbox, number, taken, a->runtime->now_us);

    if (failed > 0 && failed % TRIES_UNSAID == 0) {
        actor_complain(a,
                       answer->status == RH_NO_KIND ? "unknown_kind" : "send_not_taken",
                       "a send is refused again and again; those behind it wait");
    }
    durable_sends_go(a);
}

bool durable_sends_wait(const struct rh_actor *a)
{
    return a->extra->durable != NULL && a->extra->durable->outbox.count > 0;
}

int rh_send_once(struct rh_actor *actor, uint16_t kind, struct rh_bytes id, struct rh_bytes payload)
{
    struct durable *d = actor == NULL || actor->extra == NULL ? NULL : actor->extra->durable;
    const bool good = id.data != NULL && id.size >= 1 && id.size <= RECORD_ID_MAX &&
                      (payload.data != NULL || payload.size == 0);

    if (d == NULL || d->loading || !d->runs || !actor_may_ask(actor) || !good) {
        return RH_INVALID;
    }
    if (payload.size > RH_SEND_ONCE_MAX || actor->id_size > INBOX_ID_MAX) {
        return RH_TOO_BIG;
    }
    return outbox_put(
               &d->outbox, kind, bytes_of(id.data, id.size), bytes_of(payload.data, payload.size))
               ? RH_OK
               : RH_OVERLOADED;
}

/* ---- in ---- */

bool durable_has_taken(const struct rh_actor *a, const struct caller *from, uint64_t number)
{
    const struct durable *d = a->extra->durable;

    return d != NULL && inbox_has(&d->inbox, from->kind, from->id, number);
}

void durable_take_send(struct rh_actor *a, const struct caller *from, uint64_t number)
{
    struct durable *d = a->extra->durable;
    uint8_t head[2 + 8];

    if (d != NULL) {
        (void)store_u64(store_u16(head, from->kind), number);
        buffer_clear(&d->taking);
        buffer_put(&d->taking, head, sizeof head);
        buffer_put(&d->taking, from->id.data, from->id.size);
    }
}

void durable_refuse_send(struct rh_actor *a)
{
    if (a->extra->durable != NULL) {
        a->extra->durable->refuses = a->extra->durable->runs;
    }
}

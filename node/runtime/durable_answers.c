/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests of durable actors, once through a crash: which answers are saved, and what is answered
 * from there (decision 090).
 */
#include "node/runtime/durable.h"

#include "base/mutant.h"

/* ---- asked again ---- */

static void answer_interrupted(struct rh_actor *a)
{
    const struct rh_value error =
        rh_error("INTERRUPTED the request began before its node died, and will not go on");
    const enum answer_code code = reply_write(a, &error);

    actor_ran(a, code, buffer_bytes(&a->runtime->body));
}

static void answer_known(struct rh_actor *a, const struct runtime_message *m)
{
    struct durable *d = a->extra->durable;
    struct bytes body = {0};
    uint8_t code = ANSWER_OK;
    const enum answer_known known =
        answers_find(&d->answers, m->name, a->runtime->now_us, &code, &body);
    const bool runs = known == ANSWER_NONE && (m->asked != ASKED_LATE || mutant(M_LATERUNS));

    d->knows = !runs;
    switch (known) {
    case ANSWER_NONE:
        if (!runs) {
            actor_ran(a, ANSWER_LOST, (struct bytes){0});
        }
        return;
    case ANSWER_KEPT:
        actor_ran(a, (enum answer_code)code, body);
        return;
    case ANSWER_BEGUN:
        answer_interrupted(a);
        return;
    case ANSWER_GONE:
        actor_ran(a, ANSWER_LOST, (struct bytes){0});
        return;
    }
}

void durable_enter_request(struct rh_actor *a, const struct runtime_message *m)
{
    struct durable *d = a->extra->durable;
    const bool once = (m->flags & REQUEST_IDEMPOTENT) == 0;

    durable_enter(a);
    d->begun = false;
    d->name = once ? m->name : (struct request_name){0};
    if (once && m->asked != ASKED_FIRST) {
        answer_known(a, m);
    }
}

/* ---- saved ---- */

static void save(struct rh_actor *a, const struct completion *ran)
{
    struct durable *d = a->extra->durable;

    if (!mutant(M_NOSAVEDANSWER)) {
        answers_save(
            &d->answers, d->name, (uint8_t)ran->code, ran->bytes, a->runtime->now_us, &d->sealed);
    }
}

void durable_note_answer(struct rh_actor *a, bool changed)
{
    struct durable *d = a->extra->durable;
    const struct completion *ran = withheld_find(&d->said, VERB_RUN);
    const bool counts = changed || withheld_find(&d->said, VERB_CALL) != NULL;

    if (ran != NULL) {
        if (d->name.number != 0 && (counts || d->begun)) {
            save(a, ran);
        }
        d->name.number = 0;
    } else if (counts && !d->begun) {
        d->begun = true;
        if (d->name.number != 0) {
            answers_begin(&d->answers, d->name, a->runtime->now_us, &d->sealed);
        }
    }
}

void durable_note_late_answer(struct rh_actor *a, const struct completion *c)
{
    struct durable *d = a->extra->durable;

    if (d->name.number != 0 && d->begun) {
        save(a, c);
    }
    d->name.number = 0;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Lends an activation what only some of them need: calls, timers, bonds.
 */
#include "node/runtime/inside.h"

#include "base/assert.h"
#include "base/mem.h"

#include <string.h>

enum { SPARE_MAX = 64 };

struct extras runtime_nothing = {.after = LIST_INIT(runtime_nothing.after),
                                 .due = LIST_INIT(runtime_nothing.due),
                                 .timers = LIST_INIT(runtime_nothing.timers),
                                 .calls = LIST_INIT(runtime_nothing.calls)};

void extras_note(struct extras *x, const struct runtime_message *m)
{
    x->ticket = m->ticket;
    x->flags = m->flags;
    x->chain_count = m->chain_count;
    if (m->chain_count > 0) {
        memcpy(x->chain, m->chain, m->chain_count * sizeof x->chain[0]);
    }
}

static struct extras *take(struct runtime *s)
{
    struct extras *x = s->spare;

    if (x != NULL) {
        s->spare = x->spare;
        s->spare_count--;
        return x;
    }
    x = mem_new(1, sizeof *x);
    list_init(&x->after);
    list_init(&x->due);
    list_init(&x->timers);
    list_init(&x->calls);
    return x;
}

struct extras *extra_of(struct rh_actor *a)
{
    struct runtime *s = a->runtime;

    if (a->extra == &runtime_nothing) {
        a->extra = take(s);
        if (s->message != NULL && a->task == VERB_RUN) {
            extras_note(a->extra, s->message);
        }
    }
    return a->extra;
}

void extras_give_back(struct rh_actor *a)
{
    struct runtime *s = a->runtime;
    struct extras *x = a->extra;

    a->extra = &runtime_nothing;
    if (s->spare_count >= SPARE_MAX) {
        mem_free(x);
        return;
    }
    x->session = 0;
    x->start = 0;
    memset(x->yielded, 0, sizeof x->yielded);
    x->spare = s->spare;
    s->spare = x;
    s->spare_count++;
}

void extras_calm(struct rh_actor *a)
{
    const struct extras *x = a->extra;

    if (x != &runtime_nothing && a->task == VERB_NONE && a->callback == CALLBACK_NONE &&
        list_empty(&x->due) && list_empty(&x->timers) && list_empty(&x->calls) && x->session == 0 &&
        x->start == 0 && x->client == NULL && x->durable == NULL && x->life == NULL) {
        ASSERT(x->deferral == NULL && x->out == NULL && list_empty(&x->after));
        extras_give_back(a);
    }
}

void extras_fini(struct runtime *s)
{
    struct extras *x = NULL;

    while ((x = s->spare) != NULL) {
        s->spare = x->spare;
        mem_free(x);
    }
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Time in the test of a game: all that is to be done at a moment, then the next moment.
 */
#include "node/kit/inside.h"

static bool all_go_on(struct rh_test *t)
{
    bool any = false;

    for (struct list_link *l = list_front(&t->puppets); l != NULL; l = list_next(&t->puppets, l)) {
        struct puppet *s = CONTAINER_OF(l, struct puppet, link);

        any =
            (kinds_find(&t->kinds, s->kind) == NULL ? puppet_unhosted(t, s)
                                                    : puppet_expire(t, s) || puppet_go_on(t, s)) ||
            any;
    }
    return any;
}

void kit_settle(struct rh_test *t)
{
    bool any = true;

    kit_tell_time(t);
    kit_scan(t);
    while (any) {
        any = all_go_on(t);
        any = letter_answer_one(t) || any;
        any = kit_store_one(t) || any;
        runtime_tick(t->runtime, t->now_us);
    }
}

static void earlier(uint64_t *at_us, uint64_t us)
{
    *at_us = us < *at_us ? us : *at_us;
}

/* When something may happen next, `until_us` at the latest. */
static uint64_t next_us(const struct rh_test *t, uint64_t until_us)
{
    uint64_t at_us = until_us;

    earlier(&at_us, runtime_next_us(t->runtime));
    if (t->store != NULL) {
        earlier(&at_us, t->scan_us);
    }
    for (struct list_link *l = list_front(&t->puppets); l != NULL; l = list_next(&t->puppets, l)) {
        const struct puppet *s = CONTAINER_OF(l, struct puppet, link);
        struct list_link *first = list_front(&s->mailbox);

        if (s->actor == NULL && s->not_before_us > t->now_us) {
            earlier(&at_us, s->not_before_us);
        }
        if (first != NULL) {
            earlier(&at_us, CONTAINER_OF(first, struct letter, link)->until_us);
        }
        if (s->running != NULL && s->running->call != 0) {
            earlier(&at_us, s->running->until_us);
        }
    }
    return at_us > t->now_us ? at_us : t->now_us + 1000;
}

void kit_pass(struct rh_test *t, uint64_t until_us, bool until_answered)
{
    kit_settle(t);
    while (t->now_us < until_us && !(until_answered && t->answered)) {
        const uint64_t at_us = next_us(t, until_us);

        t->now_us = at_us < until_us ? at_us : until_us;
        kit_settle(t);
    }
}

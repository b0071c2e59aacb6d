/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages in the test of a game: in mailboxes, run, answered.
 */
#include "node/kit/inside.h"

#include "base/mem.h"

void letter_free(struct letter *l)
{
    buffer_fini(&l->body);
    mem_free(l);
}

struct letter *letter_put(struct rh_test *t, struct puppet *s, uint8_t flags, struct bytes body,
                          uint64_t for_us)
{
    struct letter *l = mem_new(1, sizeof *l);

    l->ticket = ++t->ticket;
    l->until_us = t->now_us + for_us;
    l->flags = flags;
    buffer_put(&l->body, body.data, body.size);
    list_push_back(&s->mailbox, &l->link);
    return l;
}

void letter_end(struct rh_test *t, struct letter *l, int status, struct bytes body)
{
    l->status = status;
    buffer_clear(&l->body);
    buffer_put(&l->body, body.data, body.size);
    list_push_back(&t->over, &l->link);
}

void letter_end_by_text(struct rh_test *t, struct letter *l, int status, const char *text)
{
    letter_end(t, l, status, kit_bytes(text));
}

bool letter_answer_one(struct rh_test *t)
{
    struct list_link *link = list_pop_front(&t->over);

    if (link == NULL) {
        return false;
    }
    struct letter *l = CONTAINER_OF(link, struct letter, link);
    if (l->call != 0) {
        const struct call_answer answer = {
            .number = l->call, .status = l->status, .payload = buffer_bytes(&l->body)};

        runtime_answer(t->runtime, &answer);
    } else if (l->asked) {
        t->answered = true;
        t->status = l->status;
        buffer_clear(&t->answer);
        buffer_put(&t->answer, l->body.data, l->body.size);
    }
    letter_free(l);
    return true;
}

const char letter_unknown[] = "UNKNOWN its node was lost: it may have run, at most once";

void letter_put_first(struct puppet *s, struct letter *l)
{
    struct list rest = LIST_INIT(rest);

    list_splice_back(&rest, &s->mailbox);
    list_push_back(&s->mailbox, &l->link);
    list_splice_back(&s->mailbox, &rest);
}

void letter_ran(struct rh_test *t, struct puppet *s, const struct completion *c)
{
    struct letter *l = s->running;

    s->running = NULL;
    if (c->error == ERR_BUSY && !s->failed) { // it has ended itself before
        letter_put_first(s, l);
    } else if (c->code == ANSWER_OK || c->code == ANSWER_APP_ERROR) {
        letter_end(t, l, c->code == ANSWER_OK ? RH_OK : RH_FAILED, c->bytes);
    } else {
        letter_end_by_text(t, l, RH_UNKNOWN, letter_unknown);
    }
}

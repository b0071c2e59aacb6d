/* SPDX-License-Identifier: Apache-2.0
 *
 * An asker's streams: begun, joined again, lost, dead.
 */
#include "stream/inside.h"

#include "base/mem.h"
#include "base/mutant.h"

struct stream_client *asker_add(struct stream_asker *a, uint64_t incarnation)
{
    size_t at = 0;

    while (at < a->stream_cap && a->stream[at] != NULL) {
        at++;
    }
    if (at == a->stream_cap) {
        a->stream_cap = 2 * a->stream_cap + 8;
        a->stream = mem_resize(a->stream, a->stream_cap * sizeof(struct stream_client *));
        memset(&a->stream[at], 0, (a->stream_cap - at) * sizeof(struct stream_client *));
    }
    ASSERT(at <= UINT16_MAX);
    struct stream_client *c = a->stream[at] = mem_new(1, sizeof *c);

    sendlog_init(&c->log, &a->chunks, STREAM_REQUEST, a->config.id, incarnation);
    c->log.said.version = a->version;
    c->index = (uint16_t)at;
    c->window = a->config.window;
    list_init(&c->starved);
    return c;
}

/* All that was sent there is of no stream any more. */
static void lose_all(struct stream_asker *a, struct stream_client *c)
{
    for (size_t i = 0; i < a->slot_cap && c->count > 0; i++) {
        if (slot_is_sent(&a->slot[i]) && a->slot[i].stream == c->index) {
            slot_lost(a, &a->slot[i]);
        }
    }
    ASSERT(c->count == 0 && c->size == 0);
    sendlog_drop(&c->log);
    c->joined = c->begun = false;
}

void asker_dead(struct stream_asker *a, struct stream_client *c)
{
    lose_all(a, c);
    c->connection = 0;
    c->left = true;
    lanes_feed(a, c);
}

void asker_remove(struct stream_asker *a, struct stream_client *c)
{
    ASSERT(c->left && c->count == 0 && list_empty(&c->starved));
    if (list_linked(&c->unsent)) {
        list_remove(&c->unsent);
    }
    sendlog_drop(&c->log);
    a->stream[c->index] = NULL;
    mem_free(c);
}

void asker_feed(struct stream_asker *a, struct stream_client *c)
{
    if (!list_linked(&c->unsent)) {
        list_push_back(&a->unsent, &c->unsent);
    }
}

void asker_look(struct stream_asker *a)
{
    for (size_t i = 0; i < a->stream_cap; i++) {
        struct stream_client *c = a->stream[i];

        if (c != NULL && c->joined && sendlog_look(&c->log)) {
            asker_feed(a, c);
        }
    }
}

struct stream_client *asker_unsent(struct stream_asker *a)
{
    struct list_link *l = list_pop_front(&a->unsent);

    return l == NULL ? NULL : CONTAINER_OF(l, struct stream_client, unsent);
}

struct stream_connect asker_connect(struct stream_asker *a, struct stream_client *c,
                                    uint64_t connection)
{
    ASSERT(connection != 0);
    c->connection = connection;
    c->joined = false;
    c->epoch++;
    c->log.said.version = a->version;
    return (struct stream_connect){c->begun ? STREAM_JOIN : STREAM_BEGIN,
                                   sendlog_say(&c->log, c->epoch)};
}

void asker_lost(struct stream_asker *a, struct stream_client *c, uint64_t connection)
{
    static const struct stream_answer unknown = {.code = STREAM_CODE_UNKNOWN};

    if (c->connection != connection) {
        return;
    }
    c->connection = 0;
    c->joined = false;
    for (size_t i = 0; i < a->slot_cap && mutant(M_FWAFTER); i++) {
        struct stream_slot *s = &a->slot[i];

        if (s->state == SLOT_SENT && s->stream == c->index && s->forward) {
            const struct stream_reply reply = {
                .ticket = s->ticket, .position = s->position, .forward = true, .answer = &unknown};

            a->config.reply(a->config.context, &reply);
            s->state = SLOT_SETTLES;
        }
    }
    if (mutant(M_REROUTE)) {
        asker_ring(a, a->version);
    }
}

static enum err on_gone(struct stream_asker *a, struct stream_client *c)
{
    if (!c->begun) {
        return ERR_CORRUPT;
    }
    lose_all(a, c);
    c->log.next = 1;
    c->log.said.ack = c->log.told = 0;
    return ERR_OK;
}

enum err asker_joined(struct stream_asker *a, struct stream_client *c, uint64_t connection,
                      enum stream_frame type, const struct stream_head *head)
{
    if (connection != c->connection || head->first != c->epoch || c->joined) {
        return ERR_OK; // of a connection before
    }
    if (type == STREAM_GONE) {
        return on_gone(a, c);
    }
    if (head->ack >= c->log.next) {
        return ERR_CORRUPT;
    }
    const uint64_t taken = mutant(M_NOSEQ) ? 0 : head->ack;

    for (size_t i = 0; i < a->slot_cap && c->count > 0; i++) {
        struct stream_slot *s = &a->slot[i];

        if (slot_is_sent(s) && s->stream == c->index && s->number > taken) {
            slot_untaken(a, s);
        }
    }
    sendlog_cut(&c->log, head->ack + 1);
    c->joined = c->begun = true;
    lanes_feed(a, c);
    return ERR_OK;
}

void asker_check(const struct stream_asker *a)
{
    size_t under_way = 0;

    for (size_t i = 0; i < a->stream_cap; i++) {
        const struct stream_client *c = a->stream[i];
        size_t count = 0;
        size_t size = 0;

        for (size_t k = 0; c != NULL && k < a->slot_cap; k++) {
            const struct stream_slot *s = &a->slot[k];

            if (slot_is_sent(s) && s->stream == i) {
                ASSERT(s->number < c->log.next);
                count++;
                size += s->size;
            }
        }
        ASSERT(c == NULL || (count == c->count && size == c->size));
    }
    for (size_t k = 0; k < a->slot_cap; k++) {
        under_way += a->slot[k].state != SLOT_FREE ? 1 : 0;
    }
    ASSERT(under_way == a->under_way);
    lanes_check(a);
}

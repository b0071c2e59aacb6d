/* SPDX-License-Identifier: Apache-2.0
 *
 * Connections of a stream at its server, refusals, forwards.
 */
#include "stream/server.h"

#include "base/mutant.h"

void server_init(struct stream_server *s, struct stream_chunks *chunks, uint64_t asker,
                 uint64_t incarnation)
{
    *s = (struct stream_server){0};
    sendlog_init(&s->log, chunks, STREAM_ANSWER, incarnation, asker);
}

void server_dead(struct stream_server *s)
{
    if (mutant(M_DEADFWD)) {
        return;
    }
    s->dead = true;
    s->connection = 0;
    sendlog_drop(&s->log);
}

enum server_join server_join(struct stream_server *s, uint64_t connection, enum stream_frame type,
                             const struct stream_head *head)
{
    ASSERT(connection != 0 && !s->dead);
    if (head->first <= s->epoch || (connection == s->connection && sendlog_is_cut(&s->log))) {
        return SERVER_OLD;
    }
    if (type == STREAM_BEGIN && s->log.said.ack > 0) {
        return SERVER_ANEW;
    }
    if (head->ack >= s->log.next) {
        return SERVER_GARBAGE;
    }
    s->connection = connection;
    s->epoch = head->first;
    sendlog_again(&s->log, head->ack + 1);
    sendlog_free(&s->log, head->ack);
    return SERVER_JOINED;
}

enum server_open server_open(struct stream_server *s, uint64_t connection,
                             const struct stream_head *head, uint64_t version)
{
    if (connection != s->connection && !mutant(M_OLDCONN)) {
        return SERVER_NOT_MINE;
    }
    const bool heard = s->left || head->first == 0;

    if (head->ack >= s->log.next || (!heard && head->first > s->log.said.ack + 1)) {
        return SERVER_BAD;
    }
    sendlog_free(&s->log, head->ack);
    if (heard) {
        return SERVER_HEARD;
    }
    return head->version > version && !mutant(M_AHEAD) ? SERVER_WAIT : SERVER_OPEN;
}

static void fence(struct stream_server *s, uint64_t position)
{
    s->fence_max = s->log.next; // the entry that comes
    s->fence[position % STREAM_FENCES] = s->log.next;
}

/* EXPIRED is the last word on a request, which nobody sends again: what comes behind it may run.
 * One that is UNKNOWN may be asked again (R19). */
static bool sets_fence(uint8_t code)
{
    return (stream_code_refuses(code) && code != ANSWER_EXPIRED) ||
           (code == STREAM_CODE_UNKNOWN && !mutant(M_DOUBTPASSED));
}

void server_refuse(struct stream_server *s, uint64_t rid, uint64_t position, uint8_t code,
                   uint64_t aux)
{
    const struct stream_answer a = {.rid = rid, .aux = aux, .code = code};

    ASSERT(stream_code_refuses(code));
    if (sets_fence(code) && !mutant(M_NOFENCE)) {
        fence(s, position);
    }
    server_answer(s, &a);
}

void server_unknown(struct stream_server *s, uint64_t rid, uint64_t position)
{
    const struct stream_answer a = {.rid = rid, .code = STREAM_CODE_UNKNOWN};

    if (!mutant(M_DOUBTPASSED)) {
        fence(s, position);
    }
    server_answer(s, &a);
}

struct server_passed *server_passed_at(const struct stream_server *s, uint64_t position)
{
    struct server_passed *p = s->passed[position % STREAM_FENCES];

    while (p != NULL && p->position != position) {
        p = p->next;
    }
    return p;
}

void server_passed(struct stream_server *s, struct server_passed *p)
{
    struct server_passed **first = &s->passed[p->position % STREAM_FENCES];
    const struct server_passed *before = server_passed_at(s, p->position);

    ASSERT(before == NULL || before->to == p->to || mutant(M_THIRD) || mutant(M_BESIDE));
    p->next = *first;
    *first = p;
    s->passed_count++;
}

static void forget_passed(struct stream_server *s, const struct server_passed *p)
{
    struct server_passed **at = &s->passed[p->position % STREAM_FENCES];

    while (*at != p) {
        ASSERT(*at != NULL);
        at = &(*at)->next;
    }
    *at = p->next;
    s->passed_count--;
}

void server_relay(struct stream_server *s, struct server_passed *p, const struct stream_answer *a)
{
    forget_passed(s, p);
    if (sets_fence(a->code) && !mutant(M_RELAY)) {
        fence(s, p->position);
    }
    server_answer(s, a);
}

void server_leave(struct stream_server *s)
{
    const struct stream_answer left = {.aux = s->log.said.ack, .code = STREAM_CODE_LEFT};

    ASSERT(s->open == 0 && !s->left);
    s->left = true;
    s->open++;
    server_answer(s, &left);
}

void server_check(const struct stream_server *s)
{
    size_t passed = 0;

    for (size_t i = 0; i < STREAM_FENCES; i++) {
        for (const struct server_passed *p = s->passed[i]; p != NULL; p = p->next) {
            passed++;
        }
        ASSERT(s->fence[i] <= s->fence_max);
    }
    ASSERT(passed == s->passed_count && passed <= s->open);
    ASSERT(s->dead || s->fence_max < s->log.next);
    ASSERT(s->dead || s->log.next - 1 + s->open >= s->log.said.ack);
}

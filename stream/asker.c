/* SPDX-License-Identifier: Apache-2.0
 *
 * A request's way: asked, sent, answered; what an asker's streams take.
 */
#include "stream/inside.h"

#include "base/mem.h"
#include "base/mutant.h"

enum { INDEX_BITS = 24, SLOTS_FIRST = 64 };

struct stream_asker_config asker_config_default(void)
{
    return (struct stream_asker_config){
        .window = 65536, .size_max = (size_t)16 * 1024 * 1024, .chunks_spare = 64};
}

void asker_init(struct stream_asker *a, const struct stream_asker_config *config)
{
    *a = (struct stream_asker){.config = *config, .chunks = {.spare_max = config->chunks_spare}};
    list_init(&a->ready);
    list_init(&a->resting);
    list_init(&a->ringless);
}

void asker_fini(struct stream_asker *a)
{
    for (size_t i = 0; i < a->slot_cap; i++) {
        if (a->slot[i].state != SLOT_FREE && a->slot[i].chunk == NULL) {
            mem_free(a->slot[i].record);
        }
        if (a->slot[i].chunk != NULL) {
            a->slot[i].chunk->live--;
        }
    }
    lanes_drop_all(a);
    for (size_t i = 0; i < a->stream_cap; i++) {
        if (a->stream[i] != NULL) {
            sendlog_drop(&a->stream[i]->log);
            mem_free(a->stream[i]);
        }
    }
    stream_chunks_fini(&a->chunks);
    mem_free(a->stream);
    mem_free(a->slot);
}

/* ---- slots ---- */

static void slots_grow(struct stream_asker *a)
{
    const size_t cap = a->slot_cap == 0 ? SLOTS_FIRST : 2 * a->slot_cap;
    struct stream_slot *slot = mem_lines(cap * sizeof *slot);

    ASSERT(cap <= (size_t)1 << INDEX_BITS);
    if (a->slot_cap > 0) {
        memcpy(slot, a->slot, a->slot_cap * sizeof *slot);
    }
    for (size_t i = cap; i-- > a->slot_cap;) {
        // rid 0 is nobody's.
        slot[i] = (struct stream_slot){.generation = 1, .next = a->spare};
        a->spare = (uint32_t)i + 1;
    }
    mem_free(a->slot);
    a->slot = slot;
    a->slot_cap = cap;
}

__attribute__((always_inline)) static inline struct stream_slot *slot_take(struct stream_asker *a)
{
    if (a->spare == 0) {
        slots_grow(a);
    }
    struct stream_slot *s = &a->slot[a->spare - 1];

    a->spare = s->next;
    if (a->spare != 0) {
        __builtin_prefetch(&a->slot[a->spare - 1], 1);
    }
    a->under_way++;
    return s;
}

__attribute__((always_inline)) static inline void slot_over(struct stream_asker *a,
                                                            struct stream_slot *s)
{
    if (__builtin_expect(s->chunk != NULL, true)) {
        s->chunk->live--;
    } else {
        mem_free(s->record);
    }
    s->chunk = NULL;
    s->record = NULL;
    s->state = SLOT_FREE;
    s->generation++;
    s->next = a->spare;
    a->spare = (uint32_t)(s - a->slot) + 1;
    a->under_way--;
}

void slot_free(struct stream_asker *a, struct stream_slot *s)
{
    slot_over(a, s);
}

static void slot_own(struct stream_slot *s)
{
    if (s->chunk != NULL) {
        s->record = mem_copy(s->record, s->size);
        s->chunk->live--;
        s->chunk = NULL;
    }
}

/* It is counted in the stream no more. */
__attribute__((always_inline)) static inline void leave_stream(struct stream_asker *a,
                                                               struct stream_slot *s)
{
    struct stream_client *c = a->stream[s->stream];

    c->count--;
    c->size -= s->size;
}

void slot_withdraw(struct stream_asker *a, struct stream_slot *s)
{
    leave_stream(a, s);
    slot_own(s);
    sendlog_free(&a->stream[s->stream]->log, UINT64_MAX);
}

/* What is unanswered in the oldest chunk pins it: that is copied out (R18). */
static void copy_out(struct stream_asker *a, struct stream_client *c)
{
    struct stream_chunk *oldest = c->log.head;

    for (size_t i = 0; i < a->slot_cap && oldest->live > 0; i++) {
        if (a->slot[i].chunk == oldest) {
            slot_own(&a->slot[i]);
        }
    }
    sendlog_free(&c->log, UINT64_MAX);
}

__attribute__((always_inline)) static inline uint8_t *
number(struct stream_asker *a, struct stream_slot *s, struct stream_client *c)
{
    const size_t size = s->size;
    uint8_t *at = sendlog_room(&c->log, size);

    s->record = at;
    s->chunk = c->log.tail;
    s->chunk->live++;
    s->number = c->log.next;
    s->stream = c->index;
    s->state = SLOT_SENT;
    c->count++;
    c->size += size;
    sendlog_put(&c->log, size);
    if (__builtin_expect(c->log.size > a->config.size_max, false) && c->log.head != c->log.send) {
        copy_out(a, c);
    }
    return at;
}

void slot_send(struct stream_asker *a, struct stream_slot *s, struct stream_client *c)
{
    uint8_t *own = s->record;

    ASSERT(s->state == SLOT_WAITS && s->chunk == NULL);
    memcpy(number(a, s, c), own, s->size);
    mem_free(own);
    if (mutant(M_FWAFTER) && s->forward) {
        s->state = SLOT_SETTLES;
    }
}

/* ---- asking ---- */

__attribute__((always_inline)) static inline struct stream_slot *
fill(struct stream_asker *a, struct stream_request *r, uint64_t position)
{
    struct stream_slot *s = slot_take(a);

    r->rid = slot_rid(a, s);
    s->position = position;
    s->size = (uint32_t)stream_request_size(r);
    s->order = ++a->order;
    s->forward = false;
    s->maybe = false;
    return s;
}

uint64_t asker_ask(struct stream_asker *a, struct stream_client *to, struct stream_request *r,
                   uint64_t position, uint64_t ticket)
{
    struct stream_slot *s = fill(a, r, position);

    s->ticket = ticket;

    if (__builtin_expect(to != NULL && client_takes(a, to, s->size), true) &&
        (__builtin_expect(a->lanes.count == 0, true) || !lanes_trouble(a, r->session, position))) {
        stream_request_store(number(a, s, to), r);
        return r->rid;
    }
    s->record = mem_new(1, s->size);
    stream_request_store(s->record, r);
    lanes_wait(a, s, 0, 0);
    return r->rid;
}

void asker_forward(struct stream_asker *a, struct stream_client *to, struct stream_request *r,
                   uint64_t position, void *forwarded)
{
    struct stream_slot *s = fill(a, r, position);

    s->forwarded = forwarded;
    s->forward = true;
    stream_request_store(number(a, s, to), r);
}

__attribute__((always_inline)) static inline struct stream_slot *
slot_of(const struct stream_asker *a, uint64_t rid)
{
    const size_t index = rid & (((uint64_t)1 << INDEX_BITS) - 1);
    struct stream_slot *s = index < a->slot_cap ? &a->slot[index] : NULL;

    return s != NULL && s->state != SLOT_FREE && s->generation == rid >> INDEX_BITS ? s : NULL;
}

/* It has left its stream for good. */
__attribute__((always_inline)) static inline void end(struct stream_asker *a, struct stream_slot *s)
{
    struct stream_client *c = a->stream[s->stream];

    leave_stream(a, s);
    if (__builtin_expect(a->lanes.count > 0, false)) {
        lanes_ended(a, s, c);
    }
    const bool oldest = s->chunk != NULL && s->chunk == c->log.head && s->chunk->live == 1;
    slot_over(a, s);
    if (__builtin_expect(oldest, false)) {
        sendlog_free(&c->log, UINT64_MAX);
    }
}

bool asker_give_up(struct stream_asker *a, uint64_t rid)
{
    struct stream_slot *s = slot_of(a, rid);

    ASSERT(s != NULL && s->state != SLOT_SETTLES);
    const bool maybe = s->maybe || s->state == SLOT_SENT;
    if (s->state == SLOT_SENT) {
        s->state = SLOT_SETTLES;
        if (mutant(M_ZOMBIE)) {
            end(a, s);
        }
    } else {
        lanes_forget(a, s);
        slot_free(a, s);
    }
    return maybe;
}

/* ---- answers ---- */

__attribute__((always_inline)) static inline void say(struct stream_asker *a,
                                                      const struct stream_slot *s, uint64_t version,
                                                      const struct stream_answer *answer)
{
    const struct stream_reply reply = {.ticket = s->ticket, // or what it forwards
                                       .position = s->position,
                                       .version = version,
                                       .forward = s->forward,
                                       .answer = answer};

    if (s->state != SLOT_SETTLES) {
        a->config.reply(a->config.context, &reply);
    }
}

enum err asker_open(const struct stream_client *c, uint64_t connection,
                    const struct stream_head *head)
{
    if (connection != c->connection || !c->joined) {
        return ERR_NOT_FOUND;
    }
    return head->from == c->log.said.to && head->to == c->log.said.from &&
                   head->first <= c->log.said.ack + 1 && head->ack < c->log.next
               ? ERR_OK
               : ERR_CORRUPT;
}

void slot_untaken(struct stream_asker *a, struct stream_slot *s)
{
    const struct stream_answer moved = {.aux = a->version, .code = ANSWER_MOVED};

    slot_withdraw(a, s);
    lanes_ended(a, s, a->stream[s->stream]);
    if ((s->state == SLOT_SETTLES || s->forward) && !(mutant(M_FWAFTER) && s->forward)) {
        say(a, s, 0, &moved);
        slot_free(a, s);
    } else {
        lanes_wait(a, s, 0, 0);
    }
}

void slot_unknown(struct stream_asker *a, struct stream_slot *s)
{
    static const struct stream_answer unknown = {.code = STREAM_CODE_UNKNOWN};
    const bool again = (slot_idempotent(s) || mutant(M_DEADSEND)) && !s->forward;

    if (!again || s->state == SLOT_SETTLES) {
        say(a, s, 0, &unknown);
        end(a, s);
        return;
    }
    slot_withdraw(a, s);
    lanes_ended(a, s, a->stream[s->stream]);
    s->maybe = true;
    lanes_wait(a, s, 0, 0);
}

/* It did not run (R12). */
static void refused(struct stream_asker *a, struct stream_client *c, struct stream_slot *s,
                    const struct stream_answer *answer)
{
    const bool waits = answer->code == ANSWER_BUSY || answer->code == ANSWER_MOVED ||
                       answer->code == STREAM_CODE_BEHIND;

    // What the open frame says was not heard when its requests were put into it (R4).
    if (!mutant(M_LATEACK)) {
        sendlog_close(&c->log);
    }
    if (!waits || s->state == SLOT_SETTLES || s->forward) {
        say(a, s, 0, answer);
        end(a, s);
        return;
    }
    slot_withdraw(a, s);
    lanes_ended(a, s, c);
    lanes_wait(a,
               s,
               answer->code == ANSWER_BUSY && answer->aux > 0 ? answer->aux : 1,
               answer->code == ANSWER_MOVED ? answer->aux : 0);
}

/* The server takes nothing more: what it did not take goes elsewhere (R16). */
static void on_left(struct stream_asker *a, struct stream_client *c, uint64_t taken)
{
    c->left = true;
    for (size_t i = 0; i < a->slot_cap; i++) {
        struct stream_slot *s = &a->slot[i];

        if (slot_is_sent(s) && s->stream == c->index && s->number > taken) {
            slot_untaken(a, s);
        }
    }
    // What is numbered already goes out all the same: the network may have half a frame of it.
}

enum err asker_answer(struct stream_asker *a, struct stream_client *c, uint64_t number,
                      uint64_t version, const struct stream_answer *answer)
{
    if (__builtin_expect(number <= c->log.said.ack, false)) {
        return ERR_OK; // it was read before the link was lost (R1)
    }
    c->log.said.ack = number;
    if (__builtin_expect(answer->code == STREAM_CODE_LEFT, false)) {
        on_left(a, c, answer->aux);
        return ERR_OK;
    }
    struct stream_slot *s = slot_of(a, answer->rid);
    if (__builtin_expect(s == NULL || !slot_is_sent(s) || s->stream != c->index, false)) {
        return ERR_OK; // asked elsewhere since
    }
    if (__builtin_expect(stream_code_refuses(answer->code), false)) {
        refused(a, c, s, answer);
        return ERR_OK;
    }
    if (__builtin_expect(answer->code == STREAM_CODE_UNKNOWN, false)) {
        slot_unknown(a, s);
        return ERR_OK;
    }
    say(a, s, version, answer);
    end(a, s);
    return ERR_OK;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * A request's way: asked, sent, answered; what an asker's streams take.
 */
#include "stream/inside.h"

#include "base/mem.h"
#include "base/mutant.h"

#include <stdlib.h>

enum { SLOTS_FIRST = 64 };

struct stream_asker_config asker_config_default(void)
{
    return (struct stream_asker_config){
        .window = 65536, .size_max = (size_t)16 * 1024 * 1024, .chunks_spare = 64};
}

void asker_init(struct stream_asker *a, const struct stream_asker_config *config)
{
    *a = (struct stream_asker){
        .config = *config, .chunks = {.spare_max = config->chunks_spare}, .rested_ms = UINT64_MAX};
    list_init(&a->ready);
    list_init(&a->resting);
    list_init(&a->ringless);
    list_init(&a->unsent);
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

void asker_grow(struct stream_asker *a)
{
    const size_t cap = a->slot_cap == 0 ? SLOTS_FIRST : 2 * a->slot_cap;
    struct stream_slot *slot = mem_lines(cap * sizeof *slot);

    ASSERT(cap <= (size_t)1 << STREAM_SLOT_BITS);
    if (a->slot_cap > 0) {
        memcpy(slot, a->slot, a->slot_cap * sizeof *slot);
    }
    for (size_t i = cap; i-- > a->slot_cap;) {
        slot[i] = (struct stream_slot){.next = a->spare};
        a->spare = (uint32_t)i + 1;
    }
    mem_free(a->slot);
    a->slot = slot;
    a->slot_cap = cap;
}

/* It is over, whatever its record is in. */
__attribute__((always_inline)) static inline void drop(struct stream_asker *a,
                                                       struct stream_slot *s)
{
    if (__builtin_expect(s->chunk != NULL, true)) {
        s->chunk->live--;
    } else {
        mem_free(s->record);
    }
    slot_empty(a, s, (uint32_t)(s - a->slot));
    a->under_way--;
}

void slot_free(struct stream_asker *a, struct stream_slot *s)
{
    drop(a, s);
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

/* The oldest chunk goes, whatever of it is unanswered. */
static void copy_out(struct stream_asker *a, struct stream_client *c)
{
    struct stream_chunk *oldest = c->log.head;

    if (oldest == c->log.send) {
        return; // the network has not all of it
    }
    for (size_t i = 0; i < a->slot_cap && oldest->live > 0; i++) {
        if (a->slot[i].chunk == oldest) {
            slot_own(&a->slot[i]);
        }
    }
    sendlog_free(&c->log, UINT64_MAX);
}

void asker_grow_log(struct stream_asker *a, struct stream_client *c, size_t size)
{
    if (c->log.frame == NULL && !list_linked(&c->unsent)) {
        list_push_back(&a->unsent, &c->unsent);
    }
    sendlog_grow(&c->log, size);
    if (c->log.size > a->config.size_max) {
        copy_out(a, c);
    }
}

void slot_send(struct stream_asker *a, struct stream_slot *s, struct stream_client *c)
{
    uint8_t *own = s->record;

    ASSERT(s->state == SLOT_WAITS && s->chunk == NULL);
    if (a->config.left != NULL) {
        stream_request_rename(
            own, slot_rid(a, s), a->config.left(a->config.context, (uint32_t)(s - a->slot)));
    }
    memcpy(slot_number(a, s, c), own, s->size);
    mem_free(own);
    if (mutant(M_FWAFTER) && s->forward) {
        s->state = SLOT_SETTLES;
    }
}

/* ---- asking ---- */

__attribute__((always_inline)) static inline struct stream_slot *
fill(struct stream_asker *a, struct stream_request *r, uint64_t position)
{
    if (a->spare == 0) {
        asker_grow(a);
    }
    struct stream_slot *s = slot_take(a, position, stream_request_size(r));

    r->rid = slot_rid(a, s);
    return s;
}

/* It can't be sent: it waits in its lane. */
static void wait_in_lane(struct stream_asker *a, struct stream_slot *s,
                         const struct stream_request *r)
{
    s->record = mem_new(1, s->size);
    stream_request_store(s->record, r);
    lanes_wait(a, s, 0, 0);
}

uint64_t asker_ask(struct stream_asker *a, struct stream_client *to, struct stream_request *r,
                   uint64_t position, uint64_t ticket)
{
    struct stream_slot *s = fill(a, r, position);

    s->ticket = ticket;
    if (__builtin_expect(to != NULL && client_takes(a, to, s->size), true) &&
        (__builtin_expect(a->lanes.count == 0, true) || !asker_has_lane(a, r->session, position))) {
        stream_request_store(slot_number(a, s, to), r);
    } else {
        wait_in_lane(a, s, r);
    }
    return r->rid;
}

void asker_forward(struct stream_asker *a, struct stream_client *to, struct stream_request *r,
                   uint64_t position, void *forwarded)
{
    struct stream_slot *s = fill(a, r, position);

    s->forwarded = forwarded;
    s->forward = true;
    stream_request_store(slot_number(a, s, to), r);
}

__attribute__((always_inline)) static inline struct stream_slot *
slot_of(const struct stream_asker *a, uint64_t rid)
{
    const size_t index = rid & STREAM_SLOT_MASK;
    struct stream_slot *s = index < a->slot_cap ? &a->slot[index] : NULL;

    return s != NULL && s->state != SLOT_FREE && slot_rid(a, s) == rid ? s : NULL;
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
    drop(a, s);
    if (__builtin_expect(oldest, false)) {
        sendlog_free(&c->log, UINT64_MAX);
    }
}

struct stream_entity slot_entity(const struct stream_slot *s)
{
    struct reader in = {.at = s->record, .left = s->size};
    struct stream_request r;

    if (stream_request_get(&in, &r) != ERR_OK) {
        UNREACHABLE();
    }
    return (struct stream_entity){.position = s->position, .kind = r.kind, .id = r.id};
}

struct stream_entity asker_entity(const struct stream_asker *a, uint64_t rid)
{
    const struct stream_slot *s = slot_of(a, rid);

    ASSERT(s != NULL);
    return slot_entity(s);
}

static int by_number(const void *a, const void *b)
{
    const struct stream_slot *const *const left = a;
    const struct stream_slot *const *const right = b;

    return (*left)->number < (*right)->number ? -1 : 1;
}

uint32_t *asker_sent(const struct stream_asker *a, const struct stream_client *c, size_t *count)
{
    const struct stream_slot **sent = mem_new(c->count + 1, sizeof(struct stream_slot *));
    uint32_t *slot = mem_new(c->count + 1, sizeof *slot);

    *count = 0;
    for (size_t i = 0; i < a->slot_cap && c->count > 0; i++) {
        const struct stream_slot *s = &a->slot[i];

        if (s->state == SLOT_SENT && s->stream == c->index && !s->forward) {
            sent[(*count)++] = s;
        }
    }
    qsort(sent, *count, sizeof(struct stream_slot *), by_number);
    for (size_t i = 0; i < *count; i++) {
        slot[i] = (uint32_t)(sent[i] - a->slot);
    }
    mem_free(sent);
    return slot;
}

/* The network was not handed a byte of it. */
static bool never_left(const struct stream_slot *s)
{
    return s->chunk != NULL && (size_t)(s->record - s->chunk->data) >= s->chunk->sent;
}

void asker_cut_forwards(struct stream_asker *a, uint64_t now_ms,
                        bool (*is_late)(const void *forwarded, uint64_t now_ms))
{
    for (size_t i = 0; i < a->slot_cap && a->under_way > 0; i++) {
        struct stream_slot *s = &a->slot[i];

        if (s->state == SLOT_SENT && s->forward && never_left(s) && is_late(s->forwarded, now_ms)) {
            stream_request_rename(s->record, slot_rid(a, s), 0);
        }
    }
}

bool asker_give_up(struct stream_asker *a, uint64_t rid)
{
    struct stream_slot *s = slot_of(a, rid);

    ASSERT(s != NULL && s->state != SLOT_SETTLES);
    const bool maybe = s->maybe || s->state == SLOT_SENT;
    if (s->state == SLOT_SENT) {
        s->state = SLOT_SETTLES;
        if (never_left(s)) {
            stream_request_rename(s->record, rid, 0); // its log may be longer than its time
        }
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

/* In how many ms it is to be asked again; 0 = it is over. */
__attribute__((always_inline)) static inline uint32_t say(struct stream_asker *a,
                                                          const struct stream_slot *s,
                                                          uint64_t version,
                                                          const struct stream_answer *answer)
{
    const struct stream_reply reply = {.ticket = s->ticket, // or what it forwards
                                       .slot = (uint32_t)(s - a->slot),
                                       .position = s->position,
                                       .version = version,
                                       .forward = s->forward,
                                       .maybe = s->maybe,
                                       .answer = answer};

    if (__builtin_expect(s->state == SLOT_SETTLES, false)) {
        return 0;
    }
    const uint32_t rest_ms = a->config.reply(a->config.context, &reply);
    return s->forward ? 0 : rest_ms;
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
        (void)say(a, s, 0, &moved);
        slot_free(a, s);
    } else {
        lanes_wait(a, s, 0, 0);
    }
}

/* Take one out of its stream, to send it in its lane's order. */
static void send_again(struct stream_asker *a, struct stream_slot *s, uint64_t rest_ms,
                       uint64_t version)
{
    slot_withdraw(a, s);
    lanes_ended(a, s, a->stream[s->stream]);
    lanes_wait(a, s, rest_ms, version);
}

/* It may have run, and says so when it is asked again. What the open frame says was not heard when
 * that was begun (R4): the answer may have left a fence. */
static void ask_again(struct stream_asker *a, struct stream_slot *s, uint64_t rest_ms)
{
    s->maybe = true;
    sendlog_close(&a->stream[s->stream]->log);
    send_again(a, s, rest_ms, 0);
    if (!mutant(M_NOTAGAIN)) {
        stream_request_again(s->record);
    }
}

/* It may have run, by what it is told. */
__attribute__((always_inline)) static inline void settle(struct stream_asker *a,
                                                         struct stream_slot *s, uint64_t version,
                                                         const struct stream_answer *answer)
{
    const uint32_t rest_ms = say(a, s, version, answer);

    if (__builtin_expect(rest_ms == 0, true)) {
        end(a, s);
    } else {
        ask_again(a, s, rest_ms);
    }
}

void slot_lost(struct stream_asker *a, struct stream_slot *s)
{
    if (never_left(s)) {
        slot_untaken(a, s);
    } else {
        slot_unknown(a, s);
    }
}

void slot_unknown(struct stream_asker *a, struct stream_slot *s)
{
    static const struct stream_answer unknown = {.code = STREAM_CODE_UNKNOWN};

    if (mutant(M_DEADSEND) && s->state == SLOT_SENT && !s->forward) {
        send_again(a, s, 1, 0);
    } else {
        settle(a, s, 0, &unknown);
    }
}

/* Nobody says for how long. Each refusal sets a fence, also of one that was behind another's: two
 * lanes of one fence, half a round trip apart, would keep each other back without end. So those
 * that are refused again and again go together: at times that are farther and farther apart, the
 * same for all. */
static uint64_t growing_rest_ms(const struct stream_asker *a, struct stream_slot *s,
                                uint64_t most_ms)
{
    enum { DOUBLINGS = 10 };
    const uint64_t apart_ms = UINT64_C(1) << s->refusals;

    s->refusals = s->refusals < DOUBLINGS ? (uint8_t)(s->refusals + 1) : (uint8_t)DOUBLINGS;
    const uint64_t rest_ms = apart_ms - a->now_ms % apart_ms;
    return rest_ms < most_ms ? rest_ms : most_ms;
}

/* A refusal asks for so much. MOVED names the ring by which it was said. Until that is here the
 * same node would be asked, which does no harm and mostly says the same. It is asked all the same
 * after as long as a record waits (MOVED_REST_MAX_MS): those who had that ring may all be gone, and
 * forget it (decision 071). So often it is asked, too, that says MOVED by this ring, as one does
 * that can't forward yet, or BUSY for no time. */
static uint64_t refusal_rest_ms(const struct stream_asker *a, struct stream_slot *s,
                                const struct stream_answer *answer)
{
    enum { RING_MS = 64 };

    switch (answer->code) {
    case STREAM_CODE_BEHIND:
        return growing_rest_ms(a, s, UINT64_MAX);
    case ANSWER_MOVED:
        return answer->aux > a->version ? RING_MS : growing_rest_ms(a, s, RING_MS);
    default: // BUSY
        return answer->aux > 0 ? answer->aux : growing_rest_ms(a, s, RING_MS);
    }
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
    const bool own = waits && s->state == SLOT_SENT && !s->forward;
    const uint64_t rest_ms = own ? refusal_rest_ms(a, s, answer) : say(a, s, 0, answer);

    if (rest_ms == 0) {
        end(a, s);
    } else {
        send_again(a, s, rest_ms, answer->code == ANSWER_MOVED ? answer->aux : 0);
    }
}

/* The server takes nothing more: what it did not take goes elsewhere (R16). */
static void on_left(struct stream_asker *a, struct stream_client *c, uint64_t taken)
{
    const bool again = c->left; // which no server says: a frame of it costs a pass for each

    c->left = true;
    for (size_t i = 0; i < a->slot_cap && !again; i++) {
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
        a->late++;
        return ERR_OK; // it was read before the link was lost (R1)
    }
    c->log.said.ack = number;
    if (__builtin_expect(answer->code == STREAM_CODE_LEFT, false)) {
        on_left(a, c, answer->aux);
        return ERR_OK;
    }
    struct stream_slot *s = slot_of(a, answer->rid);
    if (__builtin_expect(s == NULL || s->state != SLOT_SENT || s->stream != c->index, false)) {
        a->late++;
        if (s == NULL || s->state != SLOT_SETTLES || s->stream != c->index) {
            return ERR_OK; // asked elsewhere since
        }
    }
    if (__builtin_expect(stream_code_refuses(answer->code), false)) {
        refused(a, c, s, answer);
        return ERR_OK;
    }
    if (__builtin_expect(answer->code == STREAM_CODE_UNKNOWN, false)) {
        slot_unknown(a, s);
        return ERR_OK;
    }
    client_learn_reply(c, answer->body.size);
    settle(a, s, version, answer);
    return ERR_OK;
}

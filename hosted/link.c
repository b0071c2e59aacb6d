/* SPDX-License-Identifier: Apache-2.0
 *
 * A host's connection: its frames, its hello, its pings, and what it says of actors.
 */
#include "hosted/inside.h"

#include "base/assert.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/mutant.h"
#include "base/plain.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
    SIZE_SIZE = 4,           /* in front of a frame */
    FRAME_FULL = 256 * 1024, /* more goes into the next */
    UNFOLD_TIMES = 32,       /* what a frame may unfold into: its own size a few times over … */
    UNFOLD_FREE = 64 * 1024, /* … and this */
    TEXT_MAX = 256,
};

#define WORD(name, word) [RH__HOST__REASON__REASON_##name] = (word),
static const char *const reason_words[HOSTED_REASON_COUNT] = {HOSTED_REASONS(WORD)};

/* ---- memory of what came */

static _Thread_local size_t allowance;

static void *take_memory(void *context, size_t size)
{
    (void)context;
    if (size > allowance) {
        return NULL;
    }
    allowance -= size;
    return mem_new(1, size);
}

static void give_memory(void *context, void *memory)
{
    (void)context;
    mem_free(memory);
}

static ProtobufCAllocator memory = {.alloc = take_memory, .free = give_memory};

void hosted_step_free(struct hosted_step *s)
{
    rh__host__step__free_unpacked(s->step, &memory);
    mem_free(s);
}

/* ---- what goes out; under the lock */

static uint8_t *put_varint(uint8_t *at, uint64_t value)
{
    for (; value >= 0x80; value >>= 7) {
        *at++ = (uint8_t)(value | 0x80);
    }
    *at++ = (uint8_t)value;
    return at;
}

void hosted_pack(struct buffer *out, const Rh__Host__NodeSays *says)
{
    enum { TAG = 0x0a, HEAD_MAX = 11 }; // ToHost.says
    const size_t size = rh__host__node_says__get_packed_size(says);
    uint8_t *begin = buffer_reserve(out, HEAD_MAX + size);

    begin[0] = TAG;
    uint8_t *at = put_varint(begin + 1, size);
    at += rh__host__node_says__pack(says, at);
    out->size += (size_t)(at - begin);
}

/* Where the next message goes: in the last frame, or in a new one. */
static void open_frame(struct hosted_link *l)
{
    static const uint8_t size[SIZE_SIZE] = {0};

    if (l->out.size == 0) {
        l->hosted->on_output(l->hosted->context);
    }
    if (l->out.size == 0 || l->out.size - l->frame_at > FRAME_FULL) {
        l->frame_at = l->out.size;
        buffer_put(&l->out, size, sizeof size);
    }
}

static void close_frame(struct hosted_link *l)
{
    const size_t size = l->out.size - l->frame_at - SIZE_SIZE;
    uint8_t *at = l->out.data + l->frame_at;

    for (size_t i = 0; i < SIZE_SIZE; i++) {
        at[i] = (uint8_t)(size >> (8 * (SIZE_SIZE - 1 - i)));
    }
}

void hosted_say(struct hosted_link *l, const Rh__Host__NodeSays *says)
{
    open_frame(l);
    hosted_pack(&l->out, says);
    close_frame(l);
}

void hosted_say_packed(struct hosted_link *l, struct bytes packed)
{
    open_frame(l);
    buffer_put(&l->out, packed.data, packed.size);
    close_frame(l);
}

/* ---- its end; under the lock */

static void say_goodbye(struct hosted_link *l, Rh__Host__Reason reason, const char *text)
{
    char copy[TEXT_MAX];
    Rh__Host__Goodbye goodbye = RH__HOST__GOODBYE__INIT;
    Rh__Host__NodeSays says = RH__HOST__NODE_SAYS__INIT;

    (void)snprintf(copy, sizeof copy, "%s", text);
    goodbye.reason = reason;
    goodbye.text = copy;
    says.body_case = RH__HOST__NODE_SAYS__BODY_GOODBYE;
    says.goodbye = &goodbye;
    hosted_say(l, &says);
}

static void end(struct hosted_link *l, Rh__Host__Reason reason, const char *text)
{
    struct hosted *h = l->hosted;
    const bool was_welcome = l->state == LINK_OPEN;

    if (l->state == LINK_OVER) {
        return;
    }
    l->state = LINK_OVER;
    l->reason = reason;
    if (reason != RH__HOST__REASON__REASON_NONE) {
        say_goodbye(l, reason, text);
    }
    for (size_t i = 0; i < h->kind_count; i++) {
        h->kind[i].link = h->kind[i].link == l ? NULL : h->kind[i].link;
    }
    log_warn("hosted",
             "host_ended",
             "name=%s reason=%s actors=%zu what=\"%s\"",
             l->name,
             reason_words[reason],
             l->actors.count,
             text);
    // Counted first: whoever hears from another thread that its actor failed finds it in the
    // figures.
    (void)atomic_fetch_add(&h->stats.ended[reason], 1);
    (void)atomic_fetch_sub(&h->stats.hosts, was_welcome ? 1 : 0);
    hosted_turns_part(l);
    h->on_output(h->context); // to be closed
}

__attribute__((format(printf, 3, 4))) static void
end_for(struct hosted_link *l, Rh__Host__Reason reason, const char *format, ...)
{
    char text[TEXT_MAX];
    va_list list;

    va_start(list, format);
    (void)vsnprintf(text, sizeof text, format, list);
    va_end(list);
    plain_make(text);
    end(l, reason, text);
}

/* ---- hello; under the lock */

static struct hosted_kind *find_kind(struct hosted *h, const char *name)
{
    for (size_t i = 0; i < h->kind_count; i++) {
        if (strcmp(h->kind[i].name, name) == 0) {
            return &h->kind[i];
        }
    }
    return NULL;
}

/* As long as the true one, whatever was shown. */
static bool token_is(const char *token, const char *shown)
{
    const size_t size = strlen(token);
    const size_t shown_size = strlen(shown);
    unsigned differs = size != shown_size;

    for (size_t i = 0; i < size; i++) {
        differs |= (unsigned char)token[i] ^ (unsigned char)shown[i < shown_size ? i : shown_size];
    }
    return differs == 0;
}

static const char *difference(const struct hosted_kind *k, const Rh__Host__HostedKind *said)
{
    return k->durable != (said->durable != 0)     ? "durable"
           : k->alarms != (said->alarms != 0)     ? "alarms"
           : k->sessions != (said->sessions != 0) ? "sessions"
           : k->flush != (said->flush != 0)       ? "flush"
                                                  : NULL;
}

/* False: it was refused. */
static bool judge_kind(struct hosted_link *l, const Rh__Host__Hello *hello, size_t at)
{
    const Rh__Host__HostedKind *said = hello->kinds[at];
    const struct hosted_kind *k = find_kind(l->hosted, said->name);
    const char *differs = k == NULL ? NULL : difference(k, said);
    bool twice = false;

    for (size_t i = 0; i < at; i++) {
        twice = twice || strcmp(hello->kinds[i]->name, said->name) == 0;
    }
    if (k == NULL || twice) {
        end_for(l,
                RH__HOST__REASON__REASON_KIND_UNKNOWN,
                twice ? "the hello names the kind %s twice"
                      : "this node has no kind %s: its --kind N:host=NAME says which it has",
                said->name);
    } else if (k->link != NULL) {
        end_for(l,
                RH__HOST__REASON__REASON_KIND_TAKEN,
                "the kind %s has a host, named %s",
                k->name,
                k->link->name);
    } else if (differs != NULL) {
        end_for(l,
                RH__HOST__REASON__REASON_KIND_DIFFERS,
                "the kind %s: the host and the node's --kind do not say the same of `%s`",
                k->name,
                differs);
    } else {
        return true;
    }
    return false;
}

static bool judge_hello(struct hosted_link *l, const Rh__Host__Hello *hello)
{
    const size_t name_size = strlen(hello->name);

    if (strcmp(hello->product, "ringhold") != 0 || hello->version_min > HOSTED_VERSION ||
        hello->version_max < HOSTED_VERSION) {
        end_for(l,
                RH__HOST__REASON__REASON_VERSION,
                "this node speaks version %d of ringhold's protocol for hosts",
                HOSTED_VERSION);
        return false;
    }
    if (!token_is(l->hosted->token, hello->token)) {
        end_for(l, RH__HOST__REASON__REASON_TOKEN, "the token is not the node's");
        return false;
    }
    if (name_size == 0 || name_size > HOSTED_NAME_MAX || !plain_is(hello->name)) {
        end_for(l,
                RH__HOST__REASON__REASON_MALFORMED,
                "the host's name is not 1 to 63 plain characters");
        return false;
    }
    (void)snprintf(l->name, sizeof l->name, "%s", hello->name);
    if (hello->n_kinds == 0) {
        end_for(l, RH__HOST__REASON__REASON_KIND_UNKNOWN, "the hello names no kind");
        return false;
    }
    for (size_t i = 0; i < hello->n_kinds; i++) {
        if (!judge_kind(l, hello, i)) {
            return false;
        }
    }
    return true;
}

static void take_window(struct hosted_link *l, const Rh__Host__Window *w)
{
    if (w->turns == 0 || w->bytes == 0) {
        end_for(l, RH__HOST__REASON__REASON_MALFORMED, "a window of nothing");
        return;
    }
    l->window_turns = w->turns;
    l->window_bytes = w->bytes;
    hosted_turns_go(l);
}

static void say_welcome(struct hosted_link *l, const Rh__Host__Hello *hello)
{
    Rh__Host__ServedKind served[HOSTED_KINDS_MAX];
    Rh__Host__ServedKind *list[HOSTED_KINDS_MAX];
    Rh__Host__Welcome welcome = RH__HOST__WELCOME__INIT;
    Rh__Host__NodeSays says = RH__HOST__NODE_SAYS__INIT;

    for (size_t i = 0; i < hello->n_kinds; i++) {
        struct hosted_kind *k = find_kind(l->hosted, hello->kinds[i]->name);

        served[i] = (Rh__Host__ServedKind)RH__HOST__SERVED_KIND__INIT;
        served[i].name = k->name;
        served[i].number = k->number;
        served[i].state_max = k->ops.state_max;
        served[i].turn_ms = k->turn_ms;
        list[i] = &served[i];
    }
    welcome.version = HOSTED_VERSION;
    welcome.node = l->hosted->node;
    welcome.kinds = list;
    welcome.n_kinds = hello->n_kinds;
    welcome.silence_ms = l->hosted->options.silence_ms;
    welcome.frame_max = HOSTED_FRAME_MAX;
    says.body_case = RH__HOST__NODE_SAYS__BODY_WELCOME;
    says.welcome = &welcome;
    hosted_say(l, &says);
}

static void take_hello(struct hosted_link *l, const Rh__Host__Hello *hello)
{
    struct hosted *h = l->hosted;

    if (!judge_hello(l, hello)) {
        return;
    }
    if (hello->window != NULL) {
        take_window(l, hello->window);
        if (l->state == LINK_OVER) {
            return;
        }
    }
    say_welcome(l, hello);
    l->state = LINK_OPEN;
    l->ping_us = h->now_us;
    (void)atomic_fetch_add(&h->stats.hosts, 1);
    (void)atomic_fetch_add(&h->stats.welcome, 1);
    log_info("hosted", "host_welcome", "name=%s kinds=%zu", l->name, hello->n_kinds);
    for (size_t i = 0; i < hello->n_kinds; i++) {
        hosted_turns_serve(l, find_kind(h, hello->kinds[i]->name));
    }
}

/* ---- steps; under the lock */

static struct hosted_actor *find_actor(const struct hosted_link *l, uint64_t activation)
{
    // The mix is one to one: equal hashes are equal numbers.
    struct table_link *found = table_first(&l->actors, table_mix(activation));

    return found == NULL ? NULL : CONTAINER_OF(found, struct hosted_actor, by_number);
}

/* Take the step out of what came, to be done by its actor. */
static void take_step(struct hosted_link *l, Rh__Host__HostSays *says, size_t size)
{
    const Rh__Host__Step *step = says->step;
    struct hosted *h = l->hosted;
    struct hosted_actor *p = find_actor(l, step->activation);
    const bool waits = p != NULL && p->stage == TURN_STAGE_WAITS;

    (void)atomic_fetch_add(&h->stats.steps, 1);
    if (step->activation == 0 || step->activation > h->last_activation || step->turn == 0 ||
        (p != NULL && (step->turn > p->turn || (step->turn == p->turn && waits)))) {
        end_for(l,
                RH__HOST__REASON__REASON_NEVER_GIVEN,
                "a step of activation %" PRIu64 ", turn %" PRIu64 ", which was never given",
                step->activation,
                step->turn);
        return;
    }
    if (p == NULL || (step->turn < p->turn && !mutant(M_STALESTEP)) ||
        p->stage == TURN_STAGE_NONE) {
        (void)atomic_fetch_add(&h->stats.stale, 1);
        return;
    }
    struct hosted_step *s = mem_new(1, sizeof *s);
    s->step = says->step;
    s->size = size;
    says->step = NULL;
    says->body_case = RH__HOST__HOST_SAYS__BODY__NOT_SET;
    h->queued += size;
    list_push_back(&p->steps, &s->link);
    hosted_actor_post(p);
}

/* ---- frames; under the lock */

static void take_pong(struct hosted_link *l, const Rh__Host__Pong *pong)
{
    if (!l->pinged || pong->number != l->last_ping) {
        end_for(l, RH__HOST__REASON__REASON_UNEXPECTED, "a pong to no ping");
        return;
    }
    l->pinged = false;
}

static void take_says(struct hosted_link *l, Rh__Host__HostSays *says, size_t size)
{
    if (says->body_case == RH__HOST__HOST_SAYS__BODY__NOT_SET) {
        end_for(l, RH__HOST__REASON__REASON_MALFORMED, "a message without a body that is known");
        return;
    }
    if ((says->body_case == RH__HOST__HOST_SAYS__BODY_HELLO) != (l->state == LINK_GREETED)) {
        end_for(l,
                RH__HOST__REASON__REASON_UNEXPECTED,
                l->state == LINK_GREETED ? "the first message is not a hello" : "a second hello");
        return;
    }
    switch ((int)says->body_case) {
    case RH__HOST__HOST_SAYS__BODY_HELLO:
        take_hello(l, says->hello);
        return;
    case RH__HOST__HOST_SAYS__BODY_PONG:
        take_pong(l, says->pong);
        return;
    case RH__HOST__HOST_SAYS__BODY_STEP:
        take_step(l, says, size);
        return;
    case RH__HOST__HOST_SAYS__BODY_WINDOW:
        take_window(l, says->window);
        return;
    default:
        UNREACHABLE();
    }
}

static void take_frame(struct hosted_link *l, struct bytes frame)
{
    allowance = UNFOLD_TIMES * frame.size + UNFOLD_FREE;
    Rh__Host__ToNode *to = rh__host__to_node__unpack(&memory, frame.size, frame.data);

    if (to == NULL) {
        end_for(l, RH__HOST__REASON__REASON_MALFORMED, "a frame does not decode");
        return;
    }
    const size_t share = to->n_says == 0 ? 0 : frame.size / to->n_says;
    for (size_t i = 0; i < to->n_says && l->state != LINK_OVER; i++) {
        take_says(l, to->says[i], share);
    }
    rh__host__to_node__free_unpacked(to, &memory);
}

static size_t frame_size(const uint8_t *at)
{
    return (size_t)at[0] << 24 | (size_t)at[1] << 16 | (size_t)at[2] << 8 | at[3];
}

/* How much of it was whole frames. */
static size_t take_frames(struct hosted_link *l, struct bytes in)
{
    size_t at = 0;

    while (l->state != LINK_OVER && in.size - at >= SIZE_SIZE) {
        const size_t size = frame_size(in.data + at);

        if (size > (l->state == LINK_GREETED ? HOSTED_HELLO_MAX : HOSTED_FRAME_MAX)) {
            end_for(
                l, RH__HOST__REASON__REASON_MALFORMED, "a frame of %zu bytes is too long", size);
            break;
        }
        if (in.size - at - SIZE_SIZE < size) {
            break;
        }
        take_frame(l, bytes_of(in.data + at + SIZE_SIZE, size));
        at += SIZE_SIZE + size;
    }
    return at;
}

void hosted_link_receive(struct hosted_link *l, struct bytes in)
{
    (void)pthread_mutex_lock(&l->hosted->lock);
    if (l->in.size == 0) { // as nearly always: nothing is copied
        const size_t taken = take_frames(l, in);

        buffer_put(&l->in, in.data + taken, in.size - taken);
    } else {
        buffer_put(&l->in, in.data, in.size);
        buffer_consume(&l->in, take_frames(l, buffer_bytes(&l->in)));
    }
    if (l->state == LINK_OVER) {
        buffer_clear(&l->in);
    }
    (void)pthread_mutex_unlock(&l->hosted->lock);
}

/* ---- time; under the lock */

static void ping(struct hosted_link *l)
{
    Rh__Host__Ping ping = RH__HOST__PING__INIT;
    Rh__Host__NodeSays says = RH__HOST__NODE_SAYS__INIT;

    ping.number = ++l->last_ping;
    says.body_case = RH__HOST__NODE_SAYS__BODY_PING;
    says.ping = &ping;
    hosted_say(l, &says);
    l->pinged = true;
    l->ping_us = l->hosted->now_us;
}

static void tick(struct hosted_link *l)
{
    const uint64_t now_us = l->hosted->now_us;
    const uint32_t silence_ms = l->hosted->options.silence_ms;

    if (l->state == LINK_GREETED && now_us - l->begun_us >= HOSTED_HELLO_MS * 1000ull) {
        end_for(l, RH__HOST__REASON__REASON_LATE, "no hello in %d ms", HOSTED_HELLO_MS);
    } else if (l->state == LINK_OPEN && l->pinged && now_us - l->ping_us >= silence_ms * 1000ull) {
        end_for(l, RH__HOST__REASON__REASON_HUNG, "a ping was not answered in %u ms", silence_ms);
    } else if (l->state == LINK_OPEN && !l->pinged &&
               now_us - l->ping_us >= HOSTED_PING_MS * 1000ull) {
        ping(l);
    }
}

void hosted_tick(struct hosted *h, uint64_t now_us)
{
    (void)pthread_mutex_lock(&h->lock);
    // Who slept itself has not waited for anybody.
    const uint64_t slept_us =
        now_us - h->now_us > HOSTED_PING_MS * 1000ull ? now_us - h->now_us : 0;
    h->now_us = now_us;
    for (struct list_link *at = list_front(&h->links); at != NULL; at = list_next(&h->links, at)) {
        struct hosted_link *l = CONTAINER_OF(at, struct hosted_link, in_hosted);

        l->ping_us += slept_us;
        l->begun_us += slept_us;
        tick(l);
    }
    for (size_t i = 0; i < h->kind_count; i++) {
        hosted_turns_tick(&h->kind[i]);
    }
    (void)pthread_mutex_unlock(&h->lock);
}

/* ---- its life */

struct hosted_link *hosted_link_new(struct hosted *h)
{
    struct hosted_link *l = mem_new(1, sizeof *l);

    (void)pthread_mutex_lock(&h->lock);
    l->hosted = h;
    l->begun_us = h->now_us;
    l->window_turns = HOSTED_WINDOW_TURNS;
    l->window_bytes = HOSTED_WINDOW_BYTES;
    (void)snprintf(l->name, sizeof l->name, "?");
    list_init(&l->waiting);
    list_push_back(&h->links, &l->in_hosted);
    if (++h->link_count > HOSTED_LINKS_MAX) {
        end_for(l,
                RH__HOST__REASON__REASON_FULL,
                "this node has %d connections of hosts",
                HOSTED_LINKS_MAX);
    }
    (void)pthread_mutex_unlock(&h->lock);
    return l;
}

void hosted_link_end(struct hosted_link *l, Rh__Host__Reason reason, const char *text)
{
    (void)pthread_mutex_lock(&l->hosted->lock);
    end(l, reason, text);
    (void)pthread_mutex_unlock(&l->hosted->lock);
}

bool hosted_link_take(struct hosted_link *l, struct buffer *out)
{
    const struct buffer empty = *out;

    (void)pthread_mutex_lock(&l->hosted->lock);
    *out = l->out;
    l->out = empty;
    const bool over = l->state == LINK_OVER;
    (void)pthread_mutex_unlock(&l->hosted->lock);
    return over;
}

bool hosted_is_full(struct hosted *h)
{
    (void)pthread_mutex_lock(&h->lock);
    const bool full = h->queued > HOSTED_QUEUED_MAX;
    (void)pthread_mutex_unlock(&h->lock);
    return full;
}

void hosted_link_free(struct hosted_link *l)
{
    hosted_link_end(l, RH__HOST__REASON__REASON_NONE, "");
    (void)pthread_mutex_lock(&l->hosted->lock);
    list_remove(&l->in_hosted);
    l->hosted->link_count--;
    (void)pthread_mutex_unlock(&l->hosted->lock);
    buffer_fini(&l->in);
    buffer_fini(&l->out);
    mem_free(l);
}

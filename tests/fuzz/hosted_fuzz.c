/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as what a host says: before its hello, and after it, when an actor lives there that has
 * a turn open. Whatever it says, the actor has ended, or is served.
 */
#include "base/assert.h"
#include "base/log.h"
#include "hosted/inside.h"
#include "node/runtime/runtime.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const uint8_t hello[] = {0x00, 0x00, 0x00, 0x22, 0x0a, 0x20, 0x0a, 0x1e, 0x0a, 0x08,
                                0x72, 0x69, 0x6e, 0x67, 0x68, 0x6f, 0x6c, 0x64, 0x10, 0x01,
                                0x18, 0x01, 0x22, 0x04, 0x67, 0x61, 0x6d, 0x65, 0x32, 0x08,
                                0x0a, 0x06, 0x70, 0x6c, 0x61, 0x79, 0x65, 0x72};
static const uint8_t activated[] = {
    0x00, 0x00, 0x00, 0x0a, 0x0a, 0x08, 0x1a, 0x06, 0x08, 0x01, 0x10, 0x01, 0x22, 0x00};

/* An actor, as the host machine sees it. */
struct seat {
    struct runtime *runtime;
    struct rh_actor *actor; /* NULL = none */
    bool busy;
    bool failed;
};

static void on_completion(void *context, const struct completion *c)
{
    struct seat *s = context;

    if (c->verb == VERB_ACTIVATE || c->verb == VERB_RUN || c->verb == VERB_TURN) {
        s->busy = false;
    }
    s->failed = s->failed || c->verb == VERB_FAIL;
    if (c->verb == VERB_ACTIVATE && c->error != ERR_OK) {
        s->actor = NULL;
    }
}

static void no_line(void *context, enum log_level level, const char *line)
{
    (void)context;
    (void)level;
    (void)line;
}

static void go_on(struct seat *s, struct hosted *h)
{
    const struct runtime_message message = {.ticket = 1, .body = bytes_of("hi", 2)};

    h->now_us += 1000;
    runtime_tick(s->runtime, h->now_us);
    runtime_tick(s->runtime, h->now_us);
    if (s->actor != NULL && s->failed && !s->busy) {
        runtime_discard(s->actor, RH_BROKEN);
        s->actor = NULL;
    }
    if (s->actor != NULL && !s->busy) {
        s->busy = true;
        runtime_run(s->actor, &message);
    }
}

static void play(struct seat *s, struct hosted *h, struct hosted_link *l, struct bytes in)
{
    while (in.size > 0) { // as it comes from a socket
        const size_t part = in.data[0] % 64u + 1 < in.size ? in.data[0] % 64u + 1 : in.size;

        hosted_link_receive(l, bytes_of(in.data, part));
        in = bytes_of(in.data + part, in.size - part);
        go_on(s, h);
    }
}

static void one(struct bytes in, bool greeted)
{
    const struct hosted_options options = {
        .listener = -1, .node = "n1", .token = "", .silence_ms = 3000};
    const struct rh_kind_info info = {
        .size = sizeof info, .kind = 3, .node = "n1", .argument = "player"};
    struct seat seat = {.busy = true};
    const struct runtime_config config = {.on_completion = on_completion, .context = &seat};
    struct hosted *h = hosted_open(&options);
    const struct rh_actor_ops *ops = hosted_kind(h, "player,sessions=kick");
    struct runtime_entry entry = {
        .ops = ops, .kind = 3, .id = bytes_of("ann", 3), .actor = &seat, .fence = 7};
    struct buffer out = {0};

    ASSERT(hosted_kind(h, "unused") != NULL); // so it never listens
    ASSERT(ops->start(&info, &entry.shared) == RH_OK);
    h->kind[0].sessions = false; // the hello is of a kind without
    seat.runtime = runtime_new(&config);
    struct hosted_link *l = hosted_link_new(h);
    seat.actor = runtime_activate(seat.runtime, &entry);
    if (greeted) {
        hosted_link_receive(l, bytes_of(hello, sizeof hello));
        ASSERT(l->state == LINK_OPEN);
        hosted_link_receive(l, bytes_of(activated, sizeof activated));
        go_on(&seat, h);
    }
    play(&seat, h, l, in);
    hosted_link_free(l);
    go_on(&seat, h);
    runtime_close(seat.runtime, RH_STOP);
    ASSERT(h->queued == 0 && atomic_load(&h->stats.waiting) == 0);
    buffer_fini(&out);
    hosted_close(h);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    log_set_sink(no_line, NULL);
    one(bytes_of(data, size), false);
    one(bytes_of(data, size), true);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Commands that a group of coordinators commits, asked for in a closed loop:
 *
 *     commit_bench load CLUSTER MS DEPTH HOST:PORT...
 *     commit_bench watch CLUSTER MS 1 HOST:PORT...
 *
 * One command is `quarantine add` or `quarantine clear` of an actor's id: one
 * entry of the log or a part of one, on the disks of a majority, applied to the
 * state and the audit history, and answered to whoever asked. DEPTH of them
 * wait at a time, each for an actor of its own. `load` prints the commands
 * answered a second, and p50 and p99 of their way there and back in
 * microseconds. `watch` asks one after the other, the new leader when there is
 * one, and prints of each answer when it was asked for and when it came
 * (CLOCK_MONOTONIC, nanoseconds): for bench/coordinators, which kills leaders.
 */
#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "bench/took.h"
#include "link/link.h"
#include "wire/control.h"
#include "wire/finder.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum {
    COORDINATORS_MAX = 5,
    DEPTH_MAX = 1024,
    TURN_MS = 5,
    AGAIN_MS = 300, /* an answer that a leader lost is asked for again */
    NS_PER_MS = 1000000,
    SAMPLES_MAX = 4000000
};

struct slot {
    uint64_t tag; /* of the question under way, 0 = none */
    uint64_t sent_ns;
    bool add; /* what the next question wishes */
};

struct bench {
    struct links *links;
    struct link *coordinator[COORDINATORS_MAX];
    size_t count;
    struct finder finder;
    int wake_fd;
    struct slot slot[DEPTH_MAX];
    size_t depth;
    uint64_t last_tag;
    bool watch;
    uint64_t *took_ns; /* owned */
    size_t done;
    uint64_t refused;
};

static struct link *leader_of(const struct bench *b)
{
    const int at = finder_leader(&b->finder);

    return at < 0 || !link_is_up(b->coordinator[at]) ? NULL : b->coordinator[at];
}

static void ask(struct bench *b, size_t at)
{
    struct slot *slot = &b->slot[at];
    struct link *leader = leader_of(b);
    Rh__Control out = RH__CONTROL__INIT;
    Rh__Admin admin = RH__ADMIN__INIT;
    Rh__AdminQuarantine what = RH__ADMIN_QUARANTINE__INIT;
    Rh__Actor actor = RH__ACTOR__INIT;
    struct buffer bytes = {0};
    char id[32];

    slot->tag = 0;
    if (leader == NULL) {
        return;
    }
    (void)snprintf(id, sizeof id, "bench-%zu", at);
    actor.id = proto_bytes(bytes_of(id, strlen(id)));
    what.actor = &actor;
    what.add = slot->add;
    admin.tag = ++b->last_tag * DEPTH_MAX + at;
    admin.what_case = RH__ADMIN__WHAT_QUARANTINE;
    admin.quarantine = &what;
    out.body_case = RH__CONTROL__BODY_ADMIN;
    out.admin = &admin;
    control_put(&bytes, &out);
    if (link_send(leader, FRAME_CONTROL, buffer_bytes(&bytes)) == ERR_OK) {
        slot->tag = admin.tag;
        slot->sent_ns = now_ns();
    }
    buffer_fini(&bytes);
}

static void on_reply(struct bench *b, const Rh__AdminReply *reply)
{
    const size_t at = reply->tag % DEPTH_MAX;
    struct slot *slot = &b->slot[at];

    if (at >= b->depth || slot->tag != reply->tag) {
        return; // asked for again meanwhile
    }
    const uint64_t now = now_ns();
    slot->add = !slot->add;
    if (reply->error[0] != '\0') {
        b->refused++; // after a change of leaders it may be as wished already
    } else if (b->watch) {
        (void)printf("%" PRIu64 " %" PRIu64 "\n", slot->sent_ns, now);
        (void)fflush(stdout);
    } else if (b->done < SAMPLES_MAX) {
        b->took_ns[b->done++] = now - slot->sent_ns;
    }
    ask(b, at);
}

static size_t place_of(const struct bench *b, const struct link *link)
{
    size_t at = 0;

    while (at < b->count && b->coordinator[at] != link) {
        at++;
    }
    return at;
}

static void on_frame(void *context, struct link *link, const struct frame *frame)
{
    struct bench *b = context;
    const size_t at = place_of(b, link);
    Rh__Control *message = frame->type == FRAME_CONTROL ? control_get(frame->body) : NULL;

    if (message == NULL || at == b->count) {
        control_free(message);
        return;
    }
    if (message->body_case == RH__CONTROL__BODY_LEADER) {
        finder_on_leader(&b->finder, at, message->leader->leading, message->leader->term);
    } else if (message->body_case == RH__CONTROL__BODY_NOT_LEADER) {
        finder_on_not_leader(&b->finder, at, message->not_leader->term);
    } else if (message->body_case == RH__CONTROL__BODY_ADMIN_REPLY) {
        on_reply(b, message->admin_reply);
    }
    control_free(message);
}

static void on_up(void *context, struct link *link)
{
    (void)context;
    (void)link;
}

static void on_down(void *context, struct link *link, const char *reason)
{
    struct bench *b = context;

    (void)reason;
    finder_on_down(&b->finder, place_of(b, link));
    for (size_t i = 0; i < b->depth; i++) {
        b->slot[i].tag = 0;
    }
}

static void on_wake(void *context)
{
    const struct bench *b = context;
    const uint64_t one = 1;
    const ssize_t written = write(b->wake_fd, &one, sizeof one);

    (void)written; // A full counter is awake already.
}

static void turn(struct bench *b)
{
    struct pollfd woken = {.fd = b->wake_fd, .events = POLLIN};
    uint64_t count = 0;

    if (poll(&woken, 1, TURN_MS) > 0) {
        const ssize_t got = read(b->wake_fd, &count, sizeof count);
        (void)got;
    }
    links_poll(b->links, clock_boottime_us());
    const uint64_t now = now_ns();
    for (size_t i = 0; i < b->depth; i++) {
        if (b->slot[i].tag == 0 ||
            now - b->slot[i].sent_ns > (uint64_t)AGAIN_MS * (uint64_t)NS_PER_MS) {
            ask(b, i);
        }
    }
    links_flush(b->links);
}

static void start(struct bench *b, const char *cluster, char **addresses)
{
    struct links_config config = links_config_default();
    const struct link_events events = {
        .context = b, .up = on_up, .down = on_down, .frame = on_frame, .wake = on_wake};

    b->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    config.self.role = ROLE_CLI;
    config.self.incarnation = random_u64();
    (void)snprintf(config.self.name, sizeof config.self.name, "bench");
    (void)snprintf(config.self.cluster, sizeof config.self.cluster, "%s", cluster);
    if (links_open(&b->links, &config, &events) != ERR_OK) {
        exit(1);
    }
    finder_init(&b->finder, b->count);
    for (size_t i = 0; i < b->count; i++) {
        b->coordinator[i] = links_dial(b->links, addresses[i]);
        if (b->coordinator[i] == NULL) {
            exit(1);
        }
    }
    while (leader_of(b) == NULL) {
        turn(b);
    }
}

static void run(struct bench *b, uint64_t ms)
{
    for (size_t i = 0; i < b->depth; i++) {
        b->slot[i].add = true;
    }
    const uint64_t start_ns = now_ns();
    while (now_ns() - start_ns < ms * NS_PER_MS) {
        turn(b);
    }
    if (!b->watch) {
        took_print(b->took_ns, b->done, start_ns);
    }
}

int main(int argc, char **argv)
{
    static struct bench b;

    if (argc < 6 || argc > 5 + COORDINATORS_MAX ||
        (strcmp(argv[1], "load") != 0 && strcmp(argv[1], "watch") != 0)) {
        (void)fprintf(stderr, "commit_bench load|watch CLUSTER MS DEPTH HOST:PORT...\n");
        return 2;
    }
    b.watch = strcmp(argv[1], "watch") == 0;
    log_set_level(LOG_ERROR);
    b.count = (size_t)argc - 5;
    start(&b, argv[2], &argv[5]);
    b.depth = strtoul(argv[4], NULL, 10);
    b.took_ns = calloc(SAMPLES_MAX, sizeof *b.took_ns);
    if (b.took_ns == NULL || b.depth < 1 || b.depth > DEPTH_MAX) {
        return 2;
    }
    run(&b, strtoull(argv[3], NULL, 10));
    links_close(b.links);
    free(b.took_ns);
    return b.done > 0 || b.watch ? 0 : 1;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The client side of the control plane: dials all coordinators, finds the
 * leader, asks, waits for its answer.
 */
#include "daemon/admin.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/random.h"
#include "link/link.h"
#include "wire/control.h"
#include "wire/finder.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { TURN_MS = 20, ASK_AGAIN_MS = 100 };

struct admin {
    struct links *links;
    struct link *coordinator[FINDER_MAX];
    char addresses[ADMIN_ADDRESSES_SIZE];
    char reason[FINDER_MAX][128]; /* why the link went down last */
    size_t last_down;             /* which one did last */
    size_t count;
    bool learns; /* nobody counts on those that were named */
    int wake_fd;
    uint64_t tag;
    Rh__AdminReply *reply; /* owned; to `tag` */
    bool tells;            /* a terminal what it waits for */
    void (*hear)(void *context, size_t at, const Rh__Control *message);
    void *context;
};

MUST_CHECK enum err admin_split(const char *text, char out[][128], size_t max, size_t *count)
{
    *count = 0;
    while (*text != '\0') {
        const size_t size = strcspn(text, ",");
        const char *colon = NULL;

        if (size == 0 || size >= 128 || *count == max) {
            return ERR_INVALID;
        }
        memcpy(out[*count], text, size);
        out[*count][size] = '\0';
        colon = strrchr(out[*count], ':');
        if (colon == NULL || colon == out[*count] || colon[1] == '\0') {
            return ERR_INVALID;
        }
        ++*count;
        text += size;
        if (*text == ',' && *++text == '\0') {
            return ERR_INVALID;
        }
    }
    return *count == 0 ? ERR_INVALID : ERR_OK;
}

static void on_up(void *context, struct link *link)
{
    (void)context;
    (void)link;
}

static size_t place_of(const struct admin *a, const struct link *link)
{
    size_t at = 0;

    while (at < a->count && a->coordinator[at] != link) {
        at++;
    }
    return at;
}

static void on_down(void *context, struct link *link, const char *reason)
{
    struct admin *a = context;
    const size_t at = place_of(a, link);

    if (at < a->count) {
        a->last_down = at;
        (void)snprintf(a->reason[at], sizeof a->reason[at], "%s", reason);
    }
}

/* Others may lead by now than those that were named. */
static void learn_coordinators(struct admin *a, const Rh__Leader *leader)
{
    for (size_t i = 0; i < leader->n_coordinators && a->learns; i++) {
        size_t at = 0;

        while (at < a->count &&
               strcmp(link_address(a->coordinator[at]), leader->coordinators[i]) != 0) {
            at++;
        }
        if (at == a->count && at < FINDER_MAX) {
            a->coordinator[at] = links_dial(a->links, leader->coordinators[i]);
            a->count += a->coordinator[at] != NULL;
        }
    }
}

static void on_frame(void *context, struct link *link, const struct frame *frame)
{
    struct admin *a = context;
    Rh__Control *message = NULL;

    if (frame->type != FRAME_CONTROL || (message = control_get(frame->body)) == NULL) {
        return;
    }
    control_make_texts_plain(message); // all of it may be printed
    if (message->body_case == RH__CONTROL__BODY_LEADER) {
        learn_coordinators(a, message->leader);
    }
    if (a->hear != NULL) {
        a->hear(a->context, place_of(a, link), message);
    }
    if (message->body_case == RH__CONTROL__BODY_ADMIN_REPLY &&
        message->admin_reply->tag == a->tag && a->reply == NULL) {
        // Taken out of the message, so that freeing the message leaves it to us.
        a->reply = message->admin_reply;
        message->admin_reply = NULL;
        message->body_case = RH__CONTROL__BODY__NOT_SET;
    }
    control_free(message);
}

static void on_wake(void *context)
{
    const struct admin *a = context;
    const uint64_t one = 1;
    const ssize_t written = write(a->wake_fd, &one, sizeof one);

    (void)written; // A full counter is awake already.
}

struct admin *admin_open(const struct admin_where *where)
{
    const char *coordinators = where->coordinators;
    char addresses[ADMIN_COORDINATORS_MAX][128];
    struct links_config config = links_config_default();
    struct admin *a = mem_new(1, sizeof *a);
    size_t count = 0;

    if (admin_split(coordinators, addresses, ADMIN_COORDINATORS_MAX, &count) != ERR_OK) {
        (void)fprintf(stderr,
                      "ringhold: --coordinators: '%s' is not host:port[,host:port…], at most %d\n",
                      coordinators,
                      ADMIN_COORDINATORS_MAX);
        mem_free(a);
        return NULL;
    }
    (void)snprintf(a->addresses, sizeof a->addresses, "%s", coordinators);
    config.self.role = ROLE_CLI;
    config.self.incarnation = random_u64();
    (void)snprintf(config.self.cluster, sizeof config.self.cluster, "%s", where->cluster);
    config.tls = where->tls;
    (void)snprintf(config.self.name, sizeof config.self.name, "cli");
    a->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    a->count = count;
    a->learns = true;
    const struct link_events events = {
        .context = a,
        .up = on_up,
        .down = on_down,
        .refused = on_down,
        .frame = on_frame,
        .wake = on_wake,
    };
    if (a->wake_fd < 0 || links_open(&a->links, &config, &events) != ERR_OK) {
        (void)fprintf(stderr, "ringhold: can't open links to the coordinators\n");
        mem_free(a);
        return NULL;
    }
    for (size_t i = 0; i < count; i++) {
        a->coordinator[i] = links_dial(a->links, addresses[i]);
    }
    return a;
}

void admin_close(struct admin *a)
{
    if (a == NULL) {
        return;
    }
    links_close(a->links);
    (void)close(a->wake_fd);
    mem_free(a);
}

/* One turn of the loop: at most TURN_MS, less when something arrives. */
void admin_turn(struct admin *a)
{
    struct pollfd wait = {.fd = a->wake_fd, .events = POLLIN};
    uint64_t count = 0;

    links_flush(a->links);
    if (poll(&wait, 1, TURN_MS) > 0) {
        const ssize_t got = read(a->wake_fd, &count, sizeof count);

        (void)got;
    }
    links_poll(a->links, clock_boottime_us());
}

size_t admin_count(const struct admin *a)
{
    return a->count;
}

const char *admin_address(const struct admin *a, size_t at)
{
    return link_address(a->coordinator[at]);
}

bool admin_is_up(const struct admin *a, size_t at)
{
    return link_is_up(a->coordinator[at]);
}

const char *admin_reason(const struct admin *a, size_t at)
{
    return a->reason[at];
}

void admin_watch(struct admin *a,
                 void (*hear)(void *context, size_t at, const Rh__Control *message), void *context)
{
    a->hear = hear;
    a->learns = false;
    a->context = context;
}

bool admin_tell(struct admin *a, size_t at, const Rh__Control *message)
{
    struct buffer bytes = {0};

    control_put(&bytes, message);
    const bool told = link_is_up(a->coordinator[at]) &&
                      link_send(a->coordinator[at], FRAME_CONTROL, buffer_bytes(&bytes)) == ERR_OK;
    buffer_fini(&bytes);
    return told;
}

static size_t ask_all(struct admin *a, struct bytes request)
{
    size_t asked = 0;

    for (size_t i = 0; i < a->count; i++) {
        if (link_is_up(a->coordinator[i]) &&
            link_send(a->coordinator[i], FRAME_CONTROL, request) == ERR_OK) {
            asked++;
        }
    }
    return asked;
}

/* The field that carries it is the one of its type: no two are of the same. */
static void wrap(Rh__Admin *request, ProtobufCMessage *what)
{
    const ProtobufCMessageDescriptor *d = request->base.descriptor;
    unsigned i = 0;

    while (i < d->n_fields && d->fields[i].descriptor != what->descriptor) {
        i++;
    }
    ASSERT(i < d->n_fields);
    *(ProtobufCMessage **)(void *)((char *)request + d->fields[i].offset) = what;
    request->what_case = (Rh__Admin__WhatCase)d->fields[i].id;
}

/* The leader is not ready, as one that has just begun is not before it heard of each node: nothing
 * was done. `said` becomes its answer, if none better comes. */
static void wait_until_ready(struct admin *a, Rh__AdminReply **said)
{
    if (a->tells) {
        (void)fprintf(stderr, "\r\033[K%s", a->reply->error);
    }
    admin_free(*said);
    *said = a->reply;
    a->reply = NULL;
}

Rh__AdminReply *admin_try(struct admin *a, ProtobufCMessage *what, uint32_t timeout_ms)
{
    Rh__Control control = RH__CONTROL__INIT;
    Rh__Admin request = RH__ADMIN__INIT;
    struct buffer bytes = {0};
    const uint64_t end_us = clock_boottime_us() + (uint64_t)timeout_ms * 1000;
    Rh__AdminReply *said = NULL;
    uint64_t again_us = 0;

    wrap(&request, what);
    request.tag = ++a->tag;
    control.body_case = RH__CONTROL__BODY_ADMIN;
    control.admin = &request;
    control_make_texts_plain(&control); // else nobody takes it
    control_put(&bytes, &control);
    // Only the leader answers; whoever does not lead says so, and an election may be on. Reading
    // requests may be asked twice, and so may wishes about nodes: query_number_wish().
    for (;;) {
        const uint64_t now_us = clock_boottime_us();

        if (now_us >= end_us || (a->reply != NULL && !a->reply->again)) {
            break;
        }
        if (a->reply != NULL) {
            wait_until_ready(a, &said);
        }
        if (now_us >= again_us && ask_all(a, buffer_bytes(&bytes)) > 0) {
            again_us = now_us + (uint64_t)ASK_AGAIN_MS * 1000;
        }
        admin_turn(a);
    }
    buffer_fini(&bytes);
    if (said != NULL && a->tells) {
        (void)fprintf(stderr, "\r\033[K");
    }
    Rh__AdminReply *reply = a->reply == NULL ? said : a->reply;
    if (reply != said) {
        admin_free(said);
    }
    a->reply = NULL;
    return reply;
}

static size_t up_count(const struct admin *a)
{
    size_t up = 0;

    for (size_t i = 0; i < a->count; i++) {
        up += link_is_up(a->coordinator[i]) ? 1 : 0;
    }
    return up;
}

void admin_why_none(const struct admin *a, char *out, size_t size)
{
    const size_t up = up_count(a);

    if (up == 0) {
        (void)snprintf(out,
                       size,
                       "no coordinator answers at %s (%s)",
                       a->addresses,
                       a->reason[a->last_down][0] == '\0' ? "not reachable"
                                                          : a->reason[a->last_down]);
    } else {
        (void)snprintf(out,
                       size,
                       "%zu of %zu coordinators answer, but none leads: check that a majority of "
                       "them runs",
                       up,
                       a->count);
    }
}

Rh__AdminReply *admin_ask(struct admin *a, ProtobufCMessage *what, uint32_t timeout_ms)
{
    a->tells = isatty(STDERR_FILENO) != 0;
    Rh__AdminReply *reply = admin_try(a, what, timeout_ms);
    a->tells = false;

    if (reply == NULL) {
        char why[2 * ADMIN_ADDRESSES_SIZE];

        admin_why_none(a, why, sizeof why);
        (void)fprintf(stderr,
                      "ringhold: %s%s\n",
                      why,
                      strcmp(a->addresses, ADMIN_HERE) == 0 && up_count(a) == 0 ? ADMIN_ELSEWHERE
                                                                                : "");
    }
    return reply;
}

void admin_free(Rh__AdminReply *reply)
{
    if (reply != NULL) {
        rh__admin_reply__free_unpacked(reply, NULL);
    }
}

const char *role_text(const char *role)
{
    return role[0] == '\0' ? "default" : role;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * All links of a process: configuration, keys, timers, and those that are
 * closing.
 */
#include "link/links.h"

#include "base/assert.h"
#include "base/log.h"
#include "base/mem.h"
#include "link/inject.h"
#include "link/stall.h"
#include "wire/hello.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum {
    TIMER_STEP_US = 5 * 1000,
    EARLY_PART = 4, /* of the time between two pings */
    LOG_WINDOW_US = 10 * 1000 * 1000,
    LOG_LINES_MAX = 20, /* in a window, about strangers */
    REPEAT_US = 60 * 1000 * 1000,
};

struct links_config links_config_default(void)
{
    return (struct links_config){
        .self = {.product = "ringhold " RINGHOLD_VERSION,
                 .protocol = {LINK_PROTOCOL_OLDEST, LINK_PROTOCOL},
                 .format = {FLEET_FORMAT_OLDEST, FLEET_FORMAT}},
        .queue_size_max = (size_t)32 * 1024 * 1024,
        .silence_ms = 5000,
        .ping_ms = 1000,
        .retry_min_ms = 20,
        .retry_max_ms = 1000,
        .hello_ms = 3000,
        .connections_max = 1024,
        .same_max = 128,
    };
}

static bool self_is_valid(const struct hello *self)
{
    struct buffer encoded = {0};
    struct hello back;

    hello_put(&encoded, self);
    const bool valid = hello_get(buffer_bytes(&encoded), &back) == ERR_OK;
    buffer_fini(&encoded);
    return valid;
}

static bool open_keys(const struct links_config *config, struct tls_keys **keys)
{
    char why[TLS_WHY_SIZE];

    if (config->tls.ca == NULL) {
        return true;
    }
    *keys = secure_load(config, why);
    if (*keys == NULL) {
        log_error("link", "certificate", "why=\"%s\"", why);
    }
    return *keys != NULL;
}

bool links_take_files(const struct links_config *config, char *why, size_t size)
{
    char text[TLS_WHY_SIZE];
    struct tls_keys *keys = secure_load(config, text);

    if (keys == NULL) {
        (void)snprintf(why, size, "%s", text);
        return false;
    }
    tls_keys_free(keys);
    return true;
}

void links_reload(struct links *links)
{
    struct tls_keys *keys = NULL;

    // What is wrong is logged; what there was goes on.
    if (links->keys != NULL && open_keys(&links->config, &keys)) {
        tls_keys_free(links->keys);
        links->keys = keys;
        log_info("link", "certificate_read", "file=%s", links->config.tls.certificate);
    }
}

enum err links_open(struct links **out, const struct links_config *config,
                    const struct link_events *events)
{
    struct timespec now;

    struct tls_keys *keys = NULL;

    if (!self_is_valid(&config->self) || !open_keys(config, &keys)) {
        return ERR_INVALID;
    }
    struct links *links = mem_new(1, sizeof *links);

    links->keys = keys;

    links->config = *config;
    links->gate_us = UINT64_MAX;
    links->events = *events;
    // Only the jitter of retries comes from it.
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    links->prng.state = (uint64_t)now.tv_nsec ^ (uint64_t)(uintptr_t)links;
    list_init(&links->listeners);
    list_init(&links->conns);
    list_init(&links->closing);
    list_init(&links->links);
    list_init(&links->lost);
    list_init(&links->dirty);
    links->transport =
        config->loop == NULL ? transport_nng(links) : transport_uv(links, config->loop);
    *out = links;
    return ERR_OK;
}

void links_close(struct links *links)
{
    struct list_link *at;

    if (links == NULL) {
        return;
    }
    while ((at = list_front(&links->listeners)) != NULL) {
        listener_free(CONTAINER_OF(at, struct listener, in_links));
    }
    while ((at = list_front(&links->conns)) != NULL) {
        conn_close(CONTAINER_OF(at, struct conn, in_links), "closing");
    }
    while ((at = list_front(&links->closing)) != NULL) {
        (void)conn_reap(CONTAINER_OF(at, struct conn, in_links), true);
    }
    while ((at = list_front(&links->links)) != NULL) {
        link_free(CONTAINER_OF(at, struct link, in_links));
    }
    links->transport->ops->free(links->transport);
    tls_keys_free(links->keys);
    buffer_fini(&links->whole);
    mem_free(links);
}

void links_wake(struct links *links)
{
    links->events.wake(links->events.context);
}

void links_set_incarnation(struct links *links, uint64_t incarnation)
{
    links->config.self.incarnation = incarnation;
}

void links_set_format(struct links *links, uint32_t format)
{
    struct list_link *at;

    links->config.self.in_force = format;
    for (at = list_front(&links->links); at != NULL; at = list_next(&links->links, at)) {
        struct link *link = CONTAINER_OF(at, struct link, in_links);

        if (link->up && !hello_reads(&link->peer, format)) {
            link_drop(link, "the peer does not read the fleet's format");
        }
    }
}

void links_set_fleet(struct links *links, struct fleet_id fleet)
{
    struct list_link *at;

    if (fleet_id_same(links->config.self.fleet, fleet)) {
        return;
    }
    links->config.self.fleet = fleet;
    for (at = list_front(&links->links); at != NULL; at = list_next(&links->links, at)) {
        struct link *link = CONTAINER_OF(at, struct link, in_links);

        if (link->up) {
            greeting_judge_fleet(link->conn);
        }
    }
}

void links_set_pristine(struct links *links, bool pristine)
{
    links->config.self.pristine = pristine;
}

struct links_counts links_counts(const struct links *links)
{
    return links->counts;
}

bool links_may_log(struct links *links)
{
    if (links->now_us - links->log_window_us >= LOG_WINDOW_US) {
        if (links->log_dropped > 0) {
            log_warn("link", "quiet", "lines_left_out=%" PRIu32, links->log_dropped);
        }
        links->log_window_us = links->now_us;
        links->log_lines = links->log_dropped = 0;
    }
    if (links->log_lines >= LOG_LINES_MAX) {
        links->log_dropped++;
        return false;
    }
    links->log_lines++;
    return true;
}

bool links_may_log_refusal(struct conn *conn, const char *text)
{
    struct links *links = conn->links;

    if (conn->link->dialled) {
        return link_may_log(conn->link, text) && links_may_log(links);
    }
    if (strcmp(links->logged, text) == 0 && links->now_us - links->logged_us < REPEAT_US) {
        return false;
    }
    (void)snprintf(links->logged, sizeof links->logged, "%s", text);
    links->logged_us = links->now_us;
    return links_may_log(links);
}

/* What came until now is heard. Returns how much too early a ping may be: as one peer has to be
 * pinged, those that would be soon are as well, and the process wakes once for all. */
static uint64_t hear(struct links *links)
{
    struct list_link *at = list_front(&links->conns);
    uint64_t early_us = 0;

    for (; at != NULL; at = list_next(&links->conns, at)) {
        struct conn *conn = CONTAINER_OF(at, struct conn, in_links);

        conn_hear(conn);
        if (conn->link != NULL && conn->link->up && links->now_us >= conn_ping_us(conn)) {
            early_us = (uint64_t)links->config.ping_ms * 1000 / EARLY_PART;
        }
    }
    return early_us;
}

static void run_timers(struct links *links)
{
    const uint64_t early_us = hear(links);
    struct list_link *at;
    struct list_link *next;

    for (at = list_front(&links->listeners); at != NULL; at = list_next(&links->listeners, at)) {
        listener_on_timer(CONTAINER_OF(at, struct listener, in_links));
    }
    for (at = list_front(&links->conns); at != NULL; at = next) {
        next = list_next(&links->conns, at);
        conn_on_timer(CONTAINER_OF(at, struct conn, in_links), early_us);
    }
    for (at = list_front(&links->links); at != NULL; at = list_next(&links->links, at)) {
        link_on_timer(CONTAINER_OF(at, struct link, in_links));
    }
}

// We were stopped or asleep for a while: that is no silence of theirs. What
// they said meanwhile may still lie in the kernel.
static void forgive_gap(struct links *links, uint64_t gap_us)
{
    struct list_link *at = list_front(&links->conns);

    for (; at != NULL; at = list_next(&links->conns, at)) {
        struct conn *conn = CONTAINER_OF(at, struct conn, in_links);

        conn->since_us += gap_us;
        conn->heard_us += gap_us;
    }
    for (at = list_front(&links->links); at != NULL; at = list_next(&links->links, at)) {
        CONTAINER_OF(at, struct link, in_links)->dial_us += gap_us;
    }
}

/* We stood still for so long that what lies in the kernel is older than a request may become on its
 * way (T_conn, hole 43), and older than what guards against its copies may be kept. It goes with
 * its link, and whoever still wants it sends it again. */
static void drop_stale(struct links *links, uint64_t gap_us)
{
    struct list_link *next = NULL;
    uint64_t dropped = 0;

    for (struct list_link *at = list_front(&links->conns); at != NULL; at = next) {
        struct conn *conn = CONTAINER_OF(at, struct conn, in_links);

        next = list_next(&links->conns, at);
        if (conn->link != NULL && conn->link->up) {
            dropped++;
            conn_close(conn, "this process was not running for a while");
        }
    }
    links->counts.stale += dropped;
    if (dropped > 0) {
        log_warn(
            "link", "stood_still", "gap_ms=%" PRIu64 " links=%" PRIu64, gap_us / 1000, dropped);
    }
}

static void settle_lost(struct links *links)
{
    struct list todo;
    struct list_link *at;

    // `down` may lose other links, which are the next turn's.
    list_init(&todo);
    list_splice_back(&todo, &links->lost);
    while ((at = list_pop_front(&todo)) != NULL) {
        struct link *link = CONTAINER_OF(at, struct link, lost);

        if (!link_settle(link) && !list_linked(&link->lost)) {
            list_push_back(&links->lost, &link->lost);
        }
    }
}

static void reap_closing(struct links *links)
{
    struct list_link *at = list_front(&links->closing);

    while (at != NULL) {
        struct list_link *next = list_next(&links->closing, at);

        (void)conn_reap(CONTAINER_OF(at, struct conn, in_links), false);
        at = next;
    }
}

void links_poll(struct links *links, uint64_t now_us)
{
    const uint64_t gap_us = now_us - links->now_us;

    if (!links->transport->writes_at_once) {
        inject_turn();
    }
    if (links->now_us != 0 && stall_is_stale(gap_us, (uint64_t)links->config.silence_ms * 1000)) {
        drop_stale(links, gap_us);
    }
    if (links->now_us == 0 || gap_us >= (uint64_t)links->config.ping_ms * 1000) {
        forgive_gap(links, gap_us);
    }
    links->now_us = now_us;
    links->transport->ops->poll(links->transport);
    if (now_us - links->timers_us >= TIMER_STEP_US) {
        links->timers_us = now_us;
        run_timers(links);
    }
    settle_lost(links);
    reap_closing(links);
    if (!links->transport->writes_at_once) {
        links_flush(links);
    }
}

uint64_t links_rest_until_us(const struct links *links)
{
    uint64_t until_us = UINT64_MAX;
    struct list_link *at;

    if (!list_empty(&links->closing) || !list_empty(&links->lost)) {
        return 0;
    }
    for (at = list_front(&links->listeners); at != NULL; at = list_next(&links->listeners, at)) {
        if (CONTAINER_OF(at, struct listener, in_links)->paused) {
            return 0;
        }
    }
    for (at = list_front(&links->links); at != NULL; at = list_next(&links->links, at)) {
        if (!CONTAINER_OF(at, struct link, in_links)->up) {
            return 0;
        }
    }
    for (at = list_front(&links->conns); at != NULL; at = list_next(&links->conns, at)) {
        const struct conn *conn = CONTAINER_OF(at, struct conn, in_links);

        if (conn->link == NULL || !conn->link->up) {
            return 0;
        }
        const uint64_t due_us = conn_due_us(conn);

        until_us = due_us < until_us ? due_us : until_us;
    }
    return until_us;
}

void links_set_gate(struct links *links, uint64_t until_us)
{
    links->gate_us = until_us;
}

void links_flush(struct links *links)
{
    struct list todo;
    struct list_link *at;

    // What has to wait at the gate gets dirty again.
    list_init(&todo);
    list_splice_back(&todo, &links->dirty);
    while ((at = list_pop_front(&todo)) != NULL) {
        conn_flush(CONTAINER_OF(at, struct conn, dirty));
    }
    if (links->transport->writes_at_once) {
        inject_turn();
    }
}

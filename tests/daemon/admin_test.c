/* SPDX-License-Identifier: Apache-2.0
 *
 * Asking a leader that is not ready: it is asked again until it is, or the time is over. A
 * coordinator on a thread of its own answers by the rule of the test.
 */
#include "daemon/admin.h"

#include "base/clock.h"
#include "base/log.h"
#include "wire/control.h"
#include "wire/hello.h"

#include "tests/test.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

static struct {
    struct links *links;
    pthread_t thread;
    int wake_fd;
    char address[64];
    atomic_bool ends;
    atomic_uint asked;
    unsigned not_ready; /* so often it says that it is not */
} leader;

static void on_up(void *context, struct link *link)
{
    (void)context;
    (void)link;
}

static void on_down(void *context, struct link *link, const char *reason)
{
    (void)context;
    (void)link;
    (void)reason;
}

static void on_wake(void *context)
{
    const uint64_t one = 1;

    (void)context;
    (void)!write(leader.wake_fd, &one, sizeof one);
}

static void on_frame(void *context, struct link *link, const struct frame *frame)
{
    static char not_ready[] = "not ready";
    static char text[] = "done";
    Rh__Control *question = control_get(frame->body);
    Rh__Control out = RH__CONTROL__INIT;
    Rh__AdminReply reply = RH__ADMIN_REPLY__INIT;
    struct buffer bytes = {0};

    (void)context;
    assert_non_null(question);
    reply.tag = question->admin->tag;
    reply.again = atomic_fetch_add(&leader.asked, 1) < leader.not_ready;
    reply.error = reply.again ? not_ready : reply.error;
    reply.text = reply.again ? reply.text : text;
    out.body_case = RH__CONTROL__BODY_ADMIN_REPLY;
    out.admin_reply = &reply;
    control_put(&bytes, &out);
    assert_int_equal(link_send(link, FRAME_CONTROL, buffer_bytes(&bytes)), ERR_OK);
    buffer_fini(&bytes);
    control_free(question);
}

static void *lead(void *argument)
{
    struct pollfd wait = {.fd = leader.wake_fd, .events = POLLIN};
    uint64_t count = 0;

    while (!atomic_load(&leader.ends)) {
        links_poll(leader.links, clock_boottime_us());
        if (poll(&wait, 1, 10) > 0) {
            (void)!read(leader.wake_fd, &count, sizeof count);
        }
    }
    return argument;
}

static int begin(void **state)
{
    static const struct link_events events = {
        .up = on_up, .down = on_down, .refused = on_down, .frame = on_frame, .wake = on_wake};
    struct links_config config = links_config_default();

    (void)state;
    log_set_level(LOG_ERROR);
    config.self.role = ROLE_COORDINATOR;
    (void)snprintf(config.self.name, sizeof config.self.name, "1");
    (void)snprintf(config.self.cluster, sizeof config.self.cluster, "test");
    atomic_store(&leader.ends, false);
    atomic_store(&leader.asked, 0);
    leader.wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    assert_int_equal(links_open(&leader.links, &config, &events), ERR_OK);
    assert_int_equal(
        links_listen(leader.links, "127.0.0.1:0", leader.address, sizeof leader.address), ERR_OK);
    assert_int_equal(pthread_create(&leader.thread, NULL, lead, NULL), 0);
    return 0;
}

static int end(void **state)
{
    (void)state;
    atomic_store(&leader.ends, true);
    assert_int_equal(pthread_join(leader.thread, NULL), 0);
    links_close(leader.links);
    (void)close(leader.wake_fd);
    return 0;
}

static Rh__AdminReply *ask(uint32_t timeout_ms)
{
    const struct admin_where where = {.cluster = "test", .coordinators = leader.address};
    Rh__AdminDrain what = RH__ADMIN_DRAIN__INIT;
    struct admin *a = admin_open(&where);

    assert_non_null(a);
    Rh__AdminReply *reply = admin_ask(a, &what.base, timeout_ms);
    admin_close(a);
    return reply;
}

static void a_leader_that_is_not_ready_is_asked_again(void **state)
{
    (void)state;
    leader.not_ready = 3;
    Rh__AdminReply *reply = ask(60000);
    assert_non_null(reply);
    assert_string_equal(reply->error, "");
    assert_string_equal(reply->text, "done");
    assert_true(atomic_load(&leader.asked) >= 4);
    admin_free(reply);
}

static void what_it_said_is_told_when_the_time_is_over(void **state)
{
    (void)state;
    leader.not_ready = UINT32_MAX;
    Rh__AdminReply *reply = NULL;
    // So short a time may be over before the link is up.
    for (uint32_t ms = 250; reply == NULL; ms *= 2) {
        reply = ask(ms);
    }
    assert_string_equal(reply->error, "not ready");
    admin_free(reply);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_leader_that_is_not_ready_is_asked_again, begin, end),
        cmocka_unit_test_setup_teardown(what_it_said_is_told_when_the_time_is_over, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

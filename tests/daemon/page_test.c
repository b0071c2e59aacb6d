/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of daemon/page_uv.h, with a loop that turns and one that does not.
 */
#include "daemon/page_uv.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { LONG_MS = 10000, SHORT_MS = 20, ASKS = 1000 };

struct fixture {
    uv_loop_t loop;
    uv_async_t stop;
    struct pages *pages;
    pthread_t thread;
    unsigned written;
};

static bool write_page(void *owner, enum page page, struct buffer *out)
{
    struct fixture *f = owner;

    f->written++;
    buffer_put(out, "page", 4);
    return page != PAGE_READY;
}

static void on_stop(uv_async_t *handle)
{
    struct fixture *f = handle->data;

    pages_detach(f->pages);
    uv_close((uv_handle_t *)handle, NULL);
}

static void *run(void *argument)
{
    struct fixture *f = argument;

    (void)uv_run(&f->loop, UV_RUN_DEFAULT);
    return NULL;
}

static void open_loop(struct fixture *f)
{
    memset(f, 0, sizeof *f);
    assert_int_equal(uv_loop_init(&f->loop), 0);
    assert_int_equal(uv_async_init(&f->loop, &f->stop, on_stop), 0);
    f->stop.data = f;
    f->pages = pages_new();
}

/* Lets the loop end; it runs here, unless it does in its thread. */
static void close_loop(struct fixture *f, bool threaded)
{
    (void)uv_async_send(&f->stop);
    if (threaded) {
        assert_int_equal(pthread_join(f->thread, NULL), 0);
    } else {
        (void)uv_run(&f->loop, UV_RUN_DEFAULT);
    }
    assert_int_equal(uv_loop_close(&f->loop), 0);
}

static void a_loop_that_turns_answers(void **state)
{
    struct fixture f;
    struct buffer out = {0};

    (void)state;
    open_loop(&f);
    pages_attach(f.pages, &f.loop, write_page, &f);
    assert_int_equal(pthread_create(&f.thread, NULL, run, &f), 0);
    for (unsigned i = 0; i < ASKS; i++) {
        assert_int_equal(pages_ask(f.pages, PAGE_METRICS, LONG_MS, &out), PAGES_YES);
    }
    assert_int_equal(out.size, 4 * ASKS);
    assert_int_equal(pages_ask(f.pages, PAGE_READY, LONG_MS, &out), PAGES_NO);
    assert_int_equal(out.size, 4 * ASKS + 4);
    close_loop(&f, true);
    assert_int_equal(f.written, ASKS + 1);
    assert_int_equal(pages_ask(f.pages, PAGE_HEALTH, LONG_MS, &out), PAGES_GONE);
    pages_free(f.pages);
    buffer_fini(&out);
}

static void one_that_does_not_is_given_up(void **state)
{
    struct fixture f;
    struct buffer out = {0};

    (void)state;
    open_loop(&f);
    assert_int_equal(pages_ask(f.pages, PAGE_HEALTH, LONG_MS, &out), PAGES_GONE);
    pages_attach(f.pages, &f.loop, write_page, &f);
    assert_int_equal(pages_ask(f.pages, PAGE_HEALTH, SHORT_MS, &out), PAGES_SILENT);
    (void)uv_run(&f.loop, UV_RUN_NOWAIT); // it comes to it when nobody waits any more
    assert_int_equal(f.written, 0);
    assert_int_equal(out.size, 0);
    close_loop(&f, false);
    pages_free(f.pages);
    buffer_fini(&out);
}

static void *ask(void *argument)
{
    struct fixture *f = argument;
    struct buffer out = {0};
    static enum pages_result result;

    result = pages_ask(f->pages, PAGE_HEALTH, LONG_MS, &out);
    buffer_fini(&out);
    return &result;
}

static void who_waits_while_it_ends_is_told(void **state)
{
    struct fixture f;
    void *result = NULL;

    (void)state;
    open_loop(&f);
    pages_attach(f.pages, &f.loop, write_page, &f);
    assert_int_equal(pthread_create(&f.thread, NULL, ask, &f), 0);
    close_loop(&f, false); // before or after it asked, answered or not: it comes back at once
    assert_int_equal(pthread_join(f.thread, &result), 0);
    assert_true(*(enum pages_result *)result == PAGES_GONE ||
                *(enum pages_result *)result == PAGES_YES);
    pages_free(f.pages);
}

static void nobody_to_ask_is_no_harm(void **state)
{
    uv_loop_t loop;

    (void)state;
    assert_int_equal(uv_loop_init(&loop), 0);
    pages_attach(NULL, &loop, write_page, NULL);
    pages_detach(NULL);
    pages_free(NULL);
    assert_int_equal(uv_loop_close(&loop), 0);
}

static void put_stats(void *owner, struct metrics *m)
{
    static const struct metric one = {"one", "It is one.", METRIC_GAUGE};

    metrics_put(m, &one, *(uint64_t *)owner);
}

static bool begins_with(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static void pages_say_who_and_if_it_is_ready(void **state)
{
    struct page_who who = {.role = "node", .name = "n1", .cluster = "arena", .fleet = {1, 15}};
    uint64_t one = 1;
    struct buffer out = {0};

    (void)state;
    assert_true(page_render(PAGE_READY, &who, put_stats, &one, &out));
    assert_memory_equal(out.data, "ready\n", 6);
    buffer_clear(&out);
    who.not_ready = "it leaves";
    assert_false(page_render(PAGE_READY, &who, put_stats, &one, &out));
    assert_memory_equal(out.data, "it leaves\n", 10);
    buffer_clear(&out);
    assert_true(page_render(PAGE_HEALTH, &who, put_stats, &one, &out));
    buffer_clear(&out);
    assert_true(page_render(PAGE_STATUS, &who, put_stats, &one, &out));
    buffer_put(&out, "", 1);
    assert_true(
        begins_with((char *)out.data,
                    "{\"schema\":1,\"role\":\"node\",\"name\":\"n1\",\"cluster\":\"arena\","
                    "\"fleet\":\"0000000000000001000000000000000f\",\"version\":\"" RINGHOLD_VERSION
                    "\",\"ready\":false,\"why\":\"it leaves\","
                    "\"figures\":{\"ringhold_fleet_info{0000000000000001000000000000000f}\":1,"
                    "\"ringhold_ready{node}\":0,\"one\":1,"));
    assert_non_null(strstr((char *)out.data, "\"ringhold_link_refusals_total{cluster}\":0,"));
    assert_string_equal((char *)out.data + out.size - 1 - strlen("}}\n"), "}}\n");
    buffer_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_loop_that_turns_answers),
        cmocka_unit_test(one_that_does_not_is_given_up),
        cmocka_unit_test(who_waits_while_it_ends_is_told),
        cmocka_unit_test(nobody_to_ask_is_no_harm),
        cmocka_unit_test(pages_say_who_and_if_it_is_ready),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

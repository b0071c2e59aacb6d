/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of daemon/otlp.h: each byte of a document.
 */
#include "daemon/otlp.h"

#include "tests/test.h"

#include <stdio.h>

#define RESOURCE                                                                            \
    "{\"resourceSpans\":[{\"resource\":{\"attributes\":["                                   \
    "{\"key\":\"service.name\",\"value\":{\"stringValue\":\"ringhold-node\"}},"             \
    "{\"key\":\"service.instance.id\",\"value\":{\"stringValue\":\"n1\"}},"                 \
    "{\"key\":\"service.namespace\",\"value\":{\"stringValue\":\"ringhold\"}},"             \
    "{\"key\":\"service.version\",\"value\":{\"stringValue\":\"" RINGHOLD_VERSION "\"}}]}," \
    "\"scopeSpans\":[{\"scope\":{\"name\":\"ringhold\"},\"spans\":["

static const struct otlp_resource who = {"ringhold-node", "n1", "ringhold"};

static struct trace_span span_of(enum span_what what)
{
    struct trace_span s = {
        .what = what, .from_us = 1000000, .to_us = 1000250, .kind = 3, .id_size = 4};

    memset(s.context.trace, 0x4b, sizeof s.context.trace);
    memset(s.context.span, 0xa1, sizeof s.context.span);
    memset(s.parent, 0x0f, sizeof s.parent);
    memcpy(s.id, "a\"\\b", 4);
    return s;
}

static void check(const struct trace_span *s, size_t count, const char *spans)
{
    struct buffer out = {0};
    char want[4096];

    otlp_put(&out, &who, s, count, 1700000000000000);
    buffer_put(&out, "", 1);
    (void)snprintf(want, sizeof want, "%s%s]}]}]}", RESOURCE, spans);
    assert_string_equal((const char *)out.data, want);
    buffer_fini(&out);
}

static void spans_have_ids_times_and_attributes(void **state)
{
    struct trace_span s[2] = {span_of(SPAN_HOLD), span_of(SPAN_REQUEST)};

    (void)state;
    s[0].txn = (uint64_t)1 << 40 | 76;
    memset(s[1].parent, 0, sizeof s[1].parent);
    s[1].attempts = 2;
    s[1].outcome = "TIMEOUT";
    check(s,
          2,
          "{\"traceId\":\"4b4b4b4b4b4b4b4b4b4b4b4b4b4b4b4b\",\"spanId\":\"a1a1a1a1a1a1a1a1\","
          "\"parentSpanId\":\"0f0f0f0f0f0f0f0f\",\"name\":\"hold\",\"kind\":1,"
          "\"startTimeUnixNano\":\"1700000001000000000\","
          "\"endTimeUnixNano\":\"1700000001000250000\",\"attributes\":["
          "{\"key\":\"ringhold.actor\",\"value\":{\"stringValue\":\"3/a%22%5Cb\"}},"
          "{\"key\":\"ringhold.kind\",\"value\":{\"intValue\":\"3\"}},"
          "{\"key\":\"ringhold.outcome\",\"value\":{\"stringValue\":\"ok\"}},"
          "{\"key\":\"ringhold.cause\",\"value\":{\"stringValue\":\"move\"}},"
          "{\"key\":\"ringhold.txn\",\"value\":{\"stringValue\":\"1.76\"}}],\"status\":{}},"
          "{\"traceId\":\"4b4b4b4b4b4b4b4b4b4b4b4b4b4b4b4b\",\"spanId\":\"a1a1a1a1a1a1a1a1\","
          "\"name\":\"request\",\"kind\":2,"
          "\"startTimeUnixNano\":\"1700000001000000000\","
          "\"endTimeUnixNano\":\"1700000001000250000\",\"attributes\":["
          "{\"key\":\"ringhold.actor\",\"value\":{\"stringValue\":\"3/a%22%5Cb\"}},"
          "{\"key\":\"ringhold.kind\",\"value\":{\"intValue\":\"3\"}},"
          "{\"key\":\"ringhold.outcome\",\"value\":{\"stringValue\":\"TIMEOUT\"}},"
          "{\"key\":\"ringhold.attempts\",\"value\":{\"intValue\":\"2\"}}],"
          "\"status\":{\"message\":\"TIMEOUT\",\"code\":2}}");
}

static void a_document_may_be_empty(void **state)
{
    (void)state;
    check(NULL, 0, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spans_have_ids_times_and_attributes),
        cmocka_unit_test(a_document_may_be_empty),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

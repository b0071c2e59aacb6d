/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of daemon/http_accept.h: who is told figures as OpenMetrics.
 */
#include "daemon/http_accept.h"

#include "tests/test.h"

static void who_asks_for_it_by_name_is_told(void **state)
{
    static const char *const asks[] = {
        "application/openmetrics-text",
        "Application/OpenMetrics-Text; version=1.0.0; charset=utf-8",
        // Prometheus 2.42 and 3.
        "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;"
        "q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
        "application/"
        "vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;"
        "q=0.6,application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,"
        "text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
        "text/plain;q=0.2 , application/openmetrics-text ;q=0.201",
        "text/plain, application/openmetrics-text", // as much
        ",,application/openmetrics-text;q=0.001",
    };

    (void)state;
    for (size_t i = 0; i < sizeof asks / sizeof asks[0]; i++) {
        assert_true(http_accept_open(asks[i]));
    }
}

static void others_are_not(void **state)
{
    static const char *const asks[] = {
        "",
        "*/*",
        "application/*",
        "text/plain",
        "text/html,application/xhtml+xml,*/*;q=0.8",
        "application/openmetrics-text;q=0",
        "application/openmetrics-text;q=0.000",
        "application/openmetrics-texts",
        "application/openmetrics",
        "text/plain;q=0.9,application/openmetrics-text;q=0.8",
        "text/plain;q=1.0,application/openmetrics-text;version=1.0.0;q=0.999",
        ";;;q=1,,",
    };

    (void)state;
    assert_false(http_accept_open(NULL));
    for (size_t i = 0; i < sizeof asks / sizeof asks[0]; i++) {
        assert_false(http_accept_open(asks[i]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_asks_for_it_by_name_is_told),
        cmocka_unit_test(others_are_not),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Looks at a fleet several times and keeps only the findings that stay.
 */
#include "cli/sampling.h"

#include "base/clock.h"
#include "base/log.h"
#include "cli/check/check.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

enum { MS = 1000, ROUND_MS = 1000, PAUSE_MS = 50, DETAIL_SIZE = 160, DURATION_SIZE = 32 };

void sampling_fini(struct sampling *l)
{
    collection_fini(&l->collection);
    findings_fini(&l->findings);
}

static bool anybody(const struct collection *s)
{
    return collection_reference(s) != NULL;
}

/* One more look; what stood before keeps its age. */
static void sampling_once(struct sampling *l, struct collector *v, uint32_t round_ms)
{
    struct findings before = l->findings;

    collection_fini(&l->collection);
    collector_ask(v, round_ms, &l->collection);
    l->findings = (struct findings){0};
    l->end_us = clock_boottime_us();
    if (anybody(&l->collection)) {
        check_collection(&l->collection, &l->findings);
        findings_age(&l->findings, &before, l->end_us);
    }
    findings_fini(&before);
}

static void say_nobody(const struct sampling *l)
{
    const bool here = l->collection.coordinator_count == 1 &&
                      strcmp(l->collection.coordinator[0].address, ADMIN_HERE) == 0;

    (void)fprintf(stderr, "ringhold: no coordinator answers%s\n", here ? ADMIN_ELSEWHERE : "");
    for (size_t i = 0; i < l->collection.coordinator_count; i++) {
        const struct collection_coordinator *c = &l->collection.coordinator[i];

        (void)fprintf(
            stderr, "  %s  %s\n", c->address, c->why[0] == '\0' ? "not reachable" : c->why);
    }
}

bool sampling_run(struct sampling *l, const struct query *q, uint32_t settle_ms)
{
    const uint64_t settle_us = (uint64_t)settle_ms * MS;
    const uint64_t begin_us = clock_boottime_us();
    const uint64_t end_us = begin_us + 3 * settle_us + (uint64_t)q->timeout_ms * MS;
    const uint32_t round_ms = q->timeout_ms < ROUND_MS ? q->timeout_ms : ROUND_MS;
    const struct admin_where where = query_where(q);
    struct collector *v = NULL;
    bool seen = false;

    *l = (struct sampling){0};
    log_set_level(LOG_ERROR); // what fails is told in one line
    v = collector_new(&where);
    if (v == NULL) {
        return false;
    }
    for (;;) {
        sampling_once(l, v, round_ms);
        seen = anybody(&l->collection);
        if (seen && findings_settled(&l->findings, l->end_us, settle_us)) {
            break;
        }
        if (l->end_us >= (seen ? end_us : begin_us + (uint64_t)q->timeout_ms * MS)) {
            break;
        }
        (void)poll(NULL, 0, PAUSE_MS);
    }
    collector_free(v);
    if (!seen) {
        say_nobody(l);
        return false;
    }
    l->passing = findings_drop_young(&l->findings, l->end_us, settle_us);
    return true;
}

static const char *age_text(const struct sampling *l, const struct finding *f,
                            char out[DURATION_SIZE])
{
    return duration_text(l->end_us - f->since_us, out, DURATION_SIZE);
}

static void put_findings(const struct sampling *l, enum check check, struct rows *r)
{
    char age[DURATION_SIZE];

    for (size_t i = 0; i < l->findings.count; i++) {
        const struct finding *f = &l->findings.item[i];

        if (f->check == check) {
            rows_text(r, "problem");
            rows_text(r, "%s", check_name(check));
            rows_text(r, "%s; for at least %s; do: %s", f->what, age_text(l, f, age), f->todo);
        }
    }
}

void sampling_print(const struct sampling *l, const struct query *q)
{
    static const char *const columns[] = {"STATE", "CHECK", "WHAT", NULL};
    char text[DETAIL_SIZE];
    struct rows r;

    rows_init(&r, columns);
    for (int c = 0; c < CHECK_COUNT; c++) {
        const enum check check = (enum check)c;

        put_findings(l, check, &r);
        if (findings_of(&l->findings, check) == 0) {
            rows_text(&r, "ok");
            rows_text(&r, "%s", check_name(check));
            rows_text(&r, "%s", check_detail(&l->collection, check, text, sizeof text));
        }
    }
    if (l->passing > 0) {
        rows_text(&r, "note");
        rows_text(&r, "%s", "");
        rows_text(&r, "%zu changes were in progress until the end", l->passing);
    }
    query_print(q, &r);
}

static void print_finding_json(const struct sampling *l, const struct finding *f)
{
    char text[DETAIL_SIZE];

    (void)printf("{\"check\":");
    json_print_string(check_name(f->check));
    (void)printf(",\"subject\":");
    json_print_string(f->subject);
    (void)printf(",\"what\":");
    json_print_string(f->what);
    (void)printf(",\"todo\":");
    json_print_string(f->todo);
    (void)printf(",\"repair\":");
    json_print_string(repair_text(&f->plan, text, sizeof text));
    (void)printf(",\"seen_for_ms\":%" PRIu64 "}", (l->end_us - f->since_us) / MS);
}

void sampling_print_json(const struct sampling *l)
{
    char text[DETAIL_SIZE];

    (void)printf("{\"ok\":%s,\"passing\":%zu,\"checks\":[",
                 l->findings.count == 0 ? "true" : "false",
                 l->passing);
    for (int c = 0; c < CHECK_COUNT; c++) {
        const enum check check = (enum check)c;
        const size_t problems = findings_of(&l->findings, check);

        (void)printf("%s{\"check\":", c == 0 ? "" : ",");
        json_print_string(check_name(check));
        (void)printf(",\"problems\":%zu,\"detail\":", problems);
        json_print_string(problems > 0 ? ""
                                       : check_detail(&l->collection, check, text, sizeof text));
        (void)printf("}");
    }
    (void)printf("],\"findings\":[");
    for (size_t i = 0; i < l->findings.count; i++) {
        (void)printf("%s", i == 0 ? "" : ",");
        print_finding_json(l, &l->findings.item[i]);
    }
    (void)printf("]}\n");
}

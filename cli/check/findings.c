/* SPDX-License-Identifier: Apache-2.0
 *
 * The list of findings: adds one, drops those that were only passing, and words
 * each for people.
 */
#include "cli/check/findings.h"

#include "base/mem.h"
#include "base/stamp.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *check_name(enum check check)
{
    static const char *const names[CHECK_COUNT] = {
        [CHECK_COORDINATORS] = "coordinators",
        [CHECK_RING] = "ring",
        [CHECK_NODES] = "nodes",
        [CHECK_CONFIGURATION] = "configuration",
        [CHECK_TRANSACTIONS] = "transactions",
        [CHECK_HOLDS] = "holds",
        [CHECK_ACTORS] = "actors",
        [CHECK_GATEWAYS] = "gateways",
        [CHECK_LEASES] = "leases",
        [CHECK_DISKS] = "disks",
    };

    return names[check];
}

void findings_fini(struct findings *f)
{
    mem_free(f->item);
    *f = (struct findings){0};
}

struct finding *findings_add(struct findings *f, enum check check)
{
    f->item = mem_resize(f->item, (f->count + 1) * sizeof *f->item);
    f->item[f->count] = (struct finding){.check = check};
    return &f->item[f->count++];
}

#define FILL(field)                                               \
    do {                                                          \
        va_list rest;                                             \
        va_start(rest, format);                                   \
        (void)vsnprintf(f->field, sizeof f->field, format, rest); \
        va_end(rest);                                             \
    } while (0)

void finding_subject(struct finding *f, const char *format, ...)
{
    FILL(subject);
}

void finding_what(struct finding *f, const char *format, ...)
{
    FILL(what);
}

void finding_todo(struct finding *f, const char *format, ...)
{
    FILL(todo);
}

void finding_mark(struct finding *f, const char *format, ...)
{
    FILL(mark);
}

static bool is_same(const struct finding *a, const struct finding *b)
{
    return a->check == b->check && a->plan.repair == b->plan.repair &&
           strcmp(a->subject, b->subject) == 0 && strcmp(a->mark, b->mark) == 0;
}

void findings_age(struct findings *now, const struct findings *before, uint64_t now_us)
{
    for (size_t i = 0; i < now->count; i++) {
        now->item[i].since_us = now_us;
        for (size_t j = 0; j < before->count; j++) {
            if (is_same(&now->item[i], &before->item[j])) {
                now->item[i].since_us = before->item[j].since_us;
            }
        }
    }
}

static bool is_old(const struct finding *f, uint64_t now_us, uint64_t settle_us)
{
    return now_us - f->since_us >= settle_us;
}

bool findings_settled(const struct findings *f, uint64_t now_us, uint64_t settle_us)
{
    for (size_t i = 0; i < f->count; i++) {
        if (!is_old(&f->item[i], now_us, settle_us)) {
            return false;
        }
    }
    return true;
}

size_t findings_drop_young(struct findings *f, uint64_t now_us, uint64_t settle_us)
{
    const size_t before = f->count;
    size_t kept = 0;

    for (size_t i = 0; i < before; i++) {
        if (is_old(&f->item[i], now_us, settle_us)) {
            f->item[kept++] = f->item[i];
        }
    }
    f->count = kept;
    return before - kept;
}

size_t findings_of(const struct findings *f, enum check check)
{
    size_t count = 0;

    for (size_t i = 0; i < f->count; i++) {
        count += f->item[i].check == check ? 1 : 0;
    }
    return count;
}

const char *repair_text(const struct repair_plan *plan, char *out, size_t size)
{
    switch (plan->repair) {
    case REPAIR_NONE:
        (void)snprintf(out, size, "%s", "");
        break;
    case REPAIR_FETCH:
        (void)snprintf(out, size, "%s fetches the whole configuration again", plan->name);
        break;
    case REPAIR_OUTCOME:
        (void)snprintf(out,
                       size,
                       "%s is told again the outcome of transaction %s",
                       plan->name,
                       STAMP(plan->txn));
        break;
    case REPAIR_STRAYS:
        (void)snprintf(out, size, "%s stops the actors that live outside its vnodes", plan->name);
        break;
    case REPAIR_EXIT:
        (void)snprintf(out,
                       size,
                       "%s (incarnation %s, not a member) stops its actors and exits with 75",
                       plan->name,
                       STAMP(plan->incarnation));
        break;
    case REPAIR_ABORT:
        (void)snprintf(out, size, "transaction %s is aborted", STAMP(plan->txn));
        break;
    case REPAIR_REMOVE:
        (void)snprintf(out, size, "%s, dead and empty, is removed from the directory", plan->name);
        break;
    }
    return out;
}

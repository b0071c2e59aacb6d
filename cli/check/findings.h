/* SPDX-License-Identifier: Apache-2.0
 *
 * What `ringhold check` found: problems, each with what would repair it.
 *
 * A fleet at work is never seen at one instant, so what one look finds may only
 * be on its way. A finding counts when it stands unchanged, by its mark, in all
 * looks of a while: findings_age() carries over since when.
 *
 * Pure.
 */
#ifndef CLI_CHECK_FINDINGS_H
#define CLI_CHECK_FINDINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The checks, in the order in which they are told. */
enum check {
    CHECK_COORDINATORS,
    CHECK_RING,
    CHECK_NODES,
    CHECK_CONFIGURATION,
    CHECK_TRANSACTIONS,
    CHECK_HOLDS,
    CHECK_ACTORS,
    CHECK_GATEWAYS,
    CHECK_LEASES,
    CHECK_DISKS,
};
enum { CHECK_COUNT = CHECK_DISKS + 1 };
const char *check_name(enum check check);

/* The action that `ringhold fix` takes for a finding. */
enum repair {
    REPAIR_NONE,    /* nothing, online: `todo` says what to do */
    REPAIR_FETCH,   /* the process fetches the whole configuration */
    REPAIR_OUTCOME, /* the node hears once more what became of `txn` */
    REPAIR_STRAYS,  /* the node stops the actors outside its vnodes */
    REPAIR_EXIT,    /* the process, no member any more, stops all and exits 75 */
    REPAIR_ABORT,   /* `txn` is aborted */
    REPAIR_REMOVE,  /* the dead, empty node leaves the directory */
};

struct repair_plan {
    enum repair repair;
    uint32_t role;        /* enum link_role of the process; 0 = none is told */
    char name[64];        /* of the process or node */
    uint64_t incarnation; /* of the process */
    uint64_t txn;
};

struct finding {
    enum check check;
    char subject[80]; /* "node n2" */
    char what[320];   /* one line */
    char todo[192];   /* what to do, a command where there is one */
    char mark[128];   /* a changed mark is another finding */
    struct repair_plan plan;
    uint64_t since_us; /* seen so since then; findings_age() */
};

struct findings {
    struct finding *item; /* owned */
    size_t count;
};

void findings_fini(struct findings *f);

/* Add a finding with empty texts; valid until the next is added. */
struct finding *findings_add(struct findings *f, enum check check);
/* Fill in one of its texts. */
void finding_subject(struct finding *f, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void finding_what(struct finding *f, const char *format, ...) __attribute__((format(printf, 2, 3)));
void finding_todo(struct finding *f, const char *format, ...) __attribute__((format(printf, 2, 3)));
void finding_mark(struct finding *f, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Give each finding of `now` that also stands in `before` its age from there; all others begin at
 * `now_us`. */
void findings_age(struct findings *now, const struct findings *before, uint64_t now_us);
/* True if every one stands since at least `settle_us`. */
bool findings_settled(const struct findings *f, uint64_t now_us, uint64_t settle_us);
/* Drop those that are younger; returns how many. */
size_t findings_drop_young(struct findings *f, uint64_t now_us, uint64_t settle_us);
size_t findings_of(const struct findings *f, enum check check);

/* Say in words what `ringhold fix` would do: "n2 fetches the whole configuration". "" = nothing. */
const char *repair_text(const struct repair_plan *plan, char *out, size_t size);

#endif

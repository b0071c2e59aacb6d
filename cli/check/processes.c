/* SPDX-License-Identifier: Apache-2.0
 *
 * The rules of `ringhold check` about nodes and gateways: dead ones, old
 * configurations, leases.
 */
#include "base/stamp.h"
#include "cli/check/check.h"
#include "cli/rows.h"

#include "link/link.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { DURATION_SIZE = 32 };

/* ---- the directory's nodes ---- */

static struct finding *add_node(struct findings *out, const char *name)
{
    struct finding *f = findings_add(out, CHECK_NODES);

    finding_subject(f, "node %s", name);
    (void)snprintf(f->plan.name, sizeof f->plan.name, "%s", name);
    return f;
}

/* Nobody reaches it, or it is fenced: what of its vnodes? */
static void find_dead(const Rh__NodeRow *n, const char *state, struct findings *out)
{
    const char *name = n->member->name;
    struct finding *f = add_node(out, name);

    finding_mark(f, "%" PRIu64 " %u", n->member->incarnation, n->vnodes);
    if (n->vnodes > 0) {
        finding_what(f, "node %s is %s and still owns %u vnodes", name, state, n->vnodes);
        finding_todo(f,
                     "start it again with its data folder; otherwise other nodes get the vnodes "
                     "when its lease has surely ended");
    } else {
        finding_what(f, "node %s is %s; it owns nothing", name, state);
        finding_todo(f, "start it again, or: ringhold node remove %s", name);
        f->plan.repair = REPAIR_REMOVE;
    }
}

static void find_dead_or_silent(const struct collection *s, const Rh__AdminReply *ref,
                                const Rh__NodeRow *n, struct findings *out)
{
    const Rh__Member *m = n->member;
    char ago[DURATION_SIZE];
    char state[96] = "unreachable";

    if (check_is_barred(ref, m->name)) {
        find_dead(n, n->state[0] == '\0' ? "fenced" : n->state, out);
        return;
    }
    if (check_process_of(s, m) != NULL) {
        return;
    }
    if (collection_linked(s, ROLE_NODE, m->name, m->incarnation)) {
        struct finding *f = add_node(out, m->name);

        finding_mark(f, "silent %" PRIu64, m->incarnation);
        finding_what(f, "node %s has a link but does not answer: stopped or overloaded?", m->name);
        finding_todo(f, "check the process on %s", m->address);
        return;
    }
    if (n->heard_us_ago != 0) {
        (void)snprintf(state,
                       sizeof state,
                       "unreachable (last heard %s ago)",
                       duration_text(n->heard_us_ago, ago, sizeof ago));
    }
    find_dead(n, state, out);
}

static void find_unheard(const Rh__AdminReply *ref, const Rh__InspectAnswer *p,
                         struct findings *out)
{
    const Rh__NodeRow *n = check_node(ref, p->name);

    if (ref->leading && !n->live && !check_is_barred(ref, p->name)) {
        struct finding *f = add_node(out, p->name);

        finding_mark(f, "unheard");
        finding_what(
            f, "node %s answers, but the leader does not receive its lease renewals", p->name);
        finding_todo(f, "look at its log: does it know which coordinator leads?");
    }
}

/* A process that the directory does not mean. */
static void find_foreign(const Rh__InspectAnswer *p, struct findings *out)
{
    struct finding *f = NULL;

    if (strcmp(p->life, "serving") == 0) {
        f = add_node(out, p->name);
        finding_mark(f, "%" PRIu64, p->incarnation);
        finding_what(
            f,
            "node %s: a process of incarnation %s serves although it is not a member (any more)",
            p->name,
            STAMP(p->incarnation));
        finding_todo(f, "end that process; ringhold fix makes it exit with 75");
        check_plan(f, REPAIR_EXIT, p);
    } else if (strcmp(p->life, "joining") == 0) {
        f = add_node(out, p->name);
        finding_mark(f, "joining");
        finding_what(f, "node %s runs, but is not registered", p->name);
        finding_todo(f, "look at its log, which names the reason");
    }
}

/* ---- the configuration of every node and gateway ---- */

static struct finding *add_configuration(struct findings *out, const Rh__InspectAnswer *p)
{
    struct finding *f = findings_add(out, CHECK_CONFIGURATION);

    check_subject(f, p);
    finding_todo(f, "ringhold fix: the process fetches the whole configuration again");
    check_plan(f, REPAIR_FETCH, p);
    return f;
}

static void find_other_version(const Rh__AdminReply *ref, const Rh__InspectAnswer *p,
                               struct findings *out)
{
    struct finding *f = add_configuration(out, p);

    finding_mark(f, "%" PRIu64, p->version);
    finding_what(f,
                 "%s has ring version %s, the leader %s",
                 f->subject,
                 STAMP(p->version),
                 STAMP(ref->version));
    if (p->version > ref->version) {
        finding_todo(f, "the coordinators went back to an older state: docs/recovery.md");
        f->plan.repair = REPAIR_NONE;
    }
}

static void find_other_ring(const Rh__AdminReply *ref, const Rh__InspectAnswer *p,
                            struct findings *out)
{
    struct finding *f = NULL;

    if (p->version != ref->version) {
        find_other_version(ref, p, out);
    } else if (p->digest0 != ref->digest0 || p->digest1 != ref->digest1 ||
               p->ring0 != ref->inspection->ring0 || p->ring1 != ref->inspection->ring1) {
        f = add_configuration(out, p);
        finding_mark(f, "%016" PRIx64 "%016" PRIx64, p->ring1, p->ring0);
        finding_what(
            f,
            "%s has a ring that differs from the leader's at version %s: digest %016" PRIx64
            "%016" PRIx64 ", the leader's %016" PRIx64 "%016" PRIx64,
            f->subject,
            STAMP(p->version),
            p->ring1,
            p->ring0,
            ref->inspection->ring1,
            ref->inspection->ring0);
    } else if (p->members != ref->inspection->members) {
        f = add_configuration(out, p);
        finding_mark(f, "%016" PRIx64, p->members);
        finding_what(f,
                     "%s has a node directory that differs from the leader's at version %s",
                     f->subject,
                     STAMP(p->version));
    }
}

static void find_configuration(const Rh__AdminReply *ref, const Rh__InspectAnswer *p,
                               struct findings *out)
{
    struct finding *f = NULL;

    if (strcmp(p->life, "serving") != 0) {
        return;
    }
    if (p->ring_fault[0] != '\0') {
        f = add_configuration(out, p);
        finding_mark(f, "fault");
        finding_what(f, "%s: its ring contradicts itself: %s", f->subject, p->ring_fault);
        return;
    }
    if (p->era != ref->era) {
        f = add_configuration(out, p);
        finding_mark(f, "era %" PRIu64, p->era);
        finding_what(
            f, "%s is of era %" PRIu64 ", the leader of %" PRIu64, f->subject, p->era, ref->era);
        finding_todo(f, "restart it");
        f->plan.repair = REPAIR_NONE;
        return;
    }
    find_other_ring(ref, p, out);
}

/* ---- leases and disks ---- */

static void find_lease(const Rh__AdminReply *ref, const Rh__InspectAnswer *p, struct findings *out)
{
    const Rh__NodeRow *n = check_node(ref, p->name);
    struct finding *f = NULL;

    if (!p->leases || strcmp(p->lease_state, "active") == 0 || strcmp(p->life, "serving") != 0) {
        return;
    }
    f = findings_add(out, CHECK_LEASES);
    finding_subject(f, "node %s", p->name);
    finding_what(f,
                 "node %s has no valid lease (%s): nothing runs in its %u vnodes",
                 p->name,
                 p->lease_state,
                 n == NULL ? 0 : n->vnodes);
    finding_todo(f, "check its connection to the leader: network, load, a stopped process");
}

/* One node's clock is its own fault, all nodes' is the leader's. */
static void find_clocks(const Rh__AdminReply *ref, struct findings *out)
{
    size_t told = 0;
    size_t away = 0;

    for (size_t i = 0; i < ref->n_nodes; i++) {
        const bool counts =
            ref->nodes[i]->live && !check_is_barred(ref, ref->nodes[i]->member->name);

        told += counts;
        away += counts && ref->nodes[i]->clock_parts != 0;
    }
    for (size_t i = 0; i < ref->n_nodes && away > 0; i++) {
        const Rh__NodeRow *n = ref->nodes[i];
        struct finding *f = NULL;

        if (!n->live || n->clock_parts == 0 || check_is_barred(ref, n->member->name)) {
            continue;
        }
        f = findings_add(out, CHECK_LEASES);
        finding_subject(f, "node %s", n->member->name);
        finding_mark(f, "clock");
        finding_what(
            f,
            "the clock of node %s runs %.1f %% %s than the leader's: leases allow for 10 %%",
            n->member->name,
            (n->clock_parts < 0 ? -n->clock_parts : n->clock_parts) / 10.0,
            n->clock_parts < 0 ? "slower" : "faster");
        finding_todo(f,
                     "%s",
                     away > 1 && away == told
                         ? "all nodes say so: stop the leader, its machine's clock is wrong"
                         : "drain it, and see to its machine's clock: docs/leases.md");
    }
}

struct check_leases check_leases(const struct collection *s, const Rh__AdminReply *ref)
{
    struct check_leases l = {.granted = ref->inspection->lease_us > 0, .least_us = UINT64_MAX};

    for (size_t i = 0; i < ref->n_nodes; i++) {
        const Rh__NodeRow *n = ref->nodes[i];
        const Rh__InspectAnswer *p = check_process_of(s, n->member);

        if (n->vnodes == 0 || check_is_barred(ref, n->member->name)) {
            continue;
        }
        l.owners++;
        if (p != NULL && p->leases) {
            l.granted = true;
            l.told++;
            l.least_us = p->lease_us < l.least_us ? p->lease_us : l.least_us;
        }
    }
    return l;
}

/* Nobody is left to take over, so nobody is fenced: all are suspect, and no lease is seen. */
static void find_no_leases(const struct collection *s, const Rh__AdminReply *ref,
                           struct findings *out)
{
    const struct check_leases l = check_leases(s, ref);
    struct finding *f = NULL;

    if (!l.granted || l.owners == 0 || l.told > 0) {
        return;
    }
    f = findings_add(out, CHECK_LEASES);
    finding_subject(f, "all nodes");
    finding_what(
        f,
        "no lease is known to be in force: none of the nodes that own vnodes answers (%zu)",
        l.owners);
    finding_todo(
        f, "start them again with their data folders, or check their connection to the leader");
}

static void find_disk(const Rh__AdminReply *ref, const Rh__InspectAnswer *p, struct findings *out)
{
    const uint64_t top = p->disk_seen > p->disk_floor ? p->disk_seen : p->disk_floor;
    struct finding *f = NULL;

    if (top <= ref->number && p->disk_era <= ref->era) {
        return;
    }
    f = findings_add(out, CHECK_DISKS);
    finding_subject(f, "node %s", p->name);
    finding_mark(f, "%" PRIu64 " %" PRIu64, p->disk_era, top);
    finding_what(f,
                 "node %s has seen number %s of era %" PRIu64
                 "; the coordinators are at %s of era %" PRIu64
                 ": they went back to an older state",
                 p->name,
                 STAMP(top),
                 p->disk_era,
                 STAMP(ref->number),
                 ref->era);
    finding_todo(f, "stop the coordinators; see docs/recovery.md");
}

void check_processes(const struct collection *s, const Rh__AdminReply *ref, struct findings *out)
{
    for (size_t i = 0; i < ref->n_nodes; i++) {
        find_dead_or_silent(s, ref, ref->nodes[i], out);
    }
    for (size_t i = 0; i < s->process_count; i++) {
        const Rh__InspectAnswer *p = s->process[i];
        const bool member = p->role == ROLE_GATEWAY || check_is_member(ref, p);

        if (!member) {
            find_foreign(p, out);
        } else {
            find_configuration(ref, p, out);
        }
        if (p->role == ROLE_GATEWAY) {
            check_gateway(s, ref, p, out);
        } else if (member) {
            find_unheard(ref, p, out);
            find_lease(ref, p, out);
            find_disk(ref, p, out);
        }
    }
    find_no_leases(s, ref, out);
    find_clocks(ref, out);
    check_missing_gateways(s, out);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The rules of `ringhold check` about the coordinators: who is silent, who
 * leads, whose copies differ.
 */
#include "cli/check/check.h"

#include "base/mem.h"
#include "base/stamp.h"
#include "cli/query.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- coordinators ---- */

static struct finding *add_coordinator(struct findings *out, const Rh__AdminReply *reply)
{
    struct finding *f = findings_add(out, CHECK_COORDINATORS);

    finding_subject(f, "coordinator %u", reply->inspection->id);
    return f;
}

static void find_silent(const struct collection *s, struct findings *out)
{
    for (size_t i = 0; i < s->coordinator_count; i++) {
        const struct collection_coordinator *c = &s->coordinator[i];
        struct finding *f = NULL;

        if (c->reply != NULL) {
            continue;
        }
        f = findings_add(out, CHECK_COORDINATORS);
        finding_subject(f, "coordinator at %s", c->address);
        finding_what(
            f, "%s does not answer%s%s", f->subject, c->why[0] == '\0' ? "" : ": ", c->why);
        finding_todo(f, "start it; if its data folder is lost: docs/recovery.md");
    }
}

/* Voters whose address nobody asked, but the leader misses them too. */
static void find_unlinked(const struct collection *s, const Rh__AdminReply *ref,
                          struct findings *out)
{
    for (size_t i = 0; i < ref->n_voters; i++) {
        const Rh__VoterRow *voter = ref->voters[i];
        bool asked = voter->linked;

        for (size_t j = 0; j < s->coordinator_count; j++) {
            const Rh__AdminReply *reply = s->coordinator[j].reply;

            asked = asked || strcmp(s->coordinator[j].address, voter->address) == 0 ||
                    (reply != NULL && reply->inspection->id == voter->id);
        }
        if (!asked) {
            struct finding *f = findings_add(out, CHECK_COORDINATORS);

            finding_subject(f, "coordinator %u", voter->id);
            finding_what(
                f, "coordinator %u (%s) is not linked to the others", voter->id, voter->address);
            finding_todo(f, "start it; if its data folder is lost: docs/recovery.md");
        }
    }
}

static void find_leaders(const struct collection *s, const Rh__AdminReply *ref,
                         struct findings *out)
{
    struct finding *f = NULL;

    if (!ref->leading) {
        f = findings_add(out, CHECK_COORDINATORS);
        finding_subject(f, "the group");
        finding_what(f, "no coordinator leads: the fleet can't be changed");
        finding_todo(f,
                     "start a majority of the coordinators; if the majority is lost for good: "
                     "docs/recovery.md");
    }
    for (size_t i = 0; i < s->coordinator_count; i++) {
        const Rh__AdminReply *reply = s->coordinator[i].reply;

        if (reply == NULL || reply == ref || !reply->leading ||
            reply->inspection->id == ref->inspection->id) {
            continue;
        }
        f = add_coordinator(out, reply);
        finding_what(f,
                     "coordinators %u (term %" PRIu64 ") and %u (term %" PRIu64 ") both lead",
                     ref->inspection->id,
                     ref->term,
                     reply->inspection->id,
                     reply->term);
        finding_todo(f, "stop coordinator %u and look at its log", reply->inspection->id);
    }
}

/* One coordinator against the leader. */
static void find_difference(const Rh__AdminReply *ref, const Rh__AdminReply *reply,
                            struct findings *out)
{
    const unsigned id = reply->inspection->id;
    struct finding *f = NULL;

    if (reply->fleet[0] != '\0' && strcmp(reply->fleet, ref->fleet) != 0) {
        f = add_coordinator(out, reply);
        finding_what(
            f, "coordinator %u is of fleet %s, the leader of %s", id, reply->fleet, ref->fleet);
        finding_todo(
            f, "stop it: its data folder belongs to another fleet (docs/operating.md#fleets)");
        return;
    }
    if (strcmp(reply->cluster, ref->cluster) != 0 || reply->era != ref->era) {
        f = add_coordinator(out, reply);
        finding_what(f,
                     "coordinator %u is of cluster %s, era %" PRIu64 "; the leader of %s, %" PRIu64,
                     id,
                     reply->cluster,
                     reply->era,
                     ref->cluster,
                     ref->era);
        finding_todo(f, "stop it; see docs/recovery.md, One folder");
        return;
    }
    if (reply->inspection->state == ref->inspection->state) {
        return;
    }
    f = add_coordinator(out, reply);
    if (reply->applied_index == ref->applied_index && ref->applied_index != 0) {
        finding_mark(f, "differs");
        finding_what(f,
                     "coordinator %u and the leader (%u) have applied the same log up to %" PRIu64
                     ", but not to the same state",
                     id,
                     ref->inspection->id,
                     ref->applied_index);
        finding_todo(f, "stop it; see docs/recovery.md, One folder");
    } else {
        finding_mark(f, "%" PRIu64 " %016" PRIx64, reply->applied_index, reply->inspection->state);
        finding_what(f,
                     "coordinator %u lags behind: it has applied %" PRIu64 " of %" PRIu64
                     ", number %s of %s",
                     id,
                     reply->applied_index,
                     ref->applied_index,
                     STAMP(reply->number),
                     STAMP(ref->number));
        finding_todo(f, "look at its log, and check its disk and its network");
    }
}

static void find_fault(const Rh__AdminReply *reply, struct findings *out)
{
    const Rh__Inspection *i = reply->inspection;
    struct finding *f = NULL;

    if (i->ring_fault[0] != '\0') {
        f = add_coordinator(out, reply);
        finding_mark(f, "ring");
        finding_what(f, "coordinator %u's ring contradicts itself: %s", i->id, i->ring_fault);
        finding_todo(f, "restart it: at the start it checks its folder and refuses a damaged one");
    }
    if (i->settling) {
        f = add_coordinator(out, reply);
        finding_mark(f, "settling");
        finding_what(f, "restored from a backup and still settling: no node serves yet");
        finding_todo(f, "wait; `ringhold status` shows when the nodes serve again");
    }
}

/* ---- the ring, as the leader has it ---- */

static struct finding *add_ring(struct findings *out)
{
    struct finding *f = findings_add(out, CHECK_RING);

    finding_subject(f, "the ring");
    finding_todo(f, "this should be impossible: keep the data folders and see docs/recovery.md");
    return f;
}

static bool is_power_of_two(uint32_t n)
{
    return n != 0 && (n & (n - 1)) == 0;
}

static void find_gaps(const Rh__AdminReply *ref, struct findings *out)
{
    uint32_t at = 0;

    for (size_t i = 0; i < ref->n_vnodes; i++) {
        const Rh__VnodeRow *v = ref->vnodes[i];

        if (v->from != at || v->to <= v->from) {
            struct finding *f = add_ring(out);

            finding_mark(f, "%u", v->id);
            finding_what(f,
                         "cells %u to %u are covered %s (vnode %u has %u to %u)",
                         v->from < at ? v->from : at,
                         v->from < at ? at : v->from,
                         v->from < at ? "twice" : "by no vnode",
                         v->id,
                         v->from,
                         v->to);
        }
        at = v->to;
    }
    if (ref->n_vnodes > 0 &&
        (ref->n_roles == 0 ? !is_power_of_two(at) : at != ref->roles[ref->n_roles - 1]->to)) {
        struct finding *f = add_ring(out);

        finding_mark(f, "end");
        finding_what(f, "the cells after %u are covered by no vnode", at);
    }
}

static int compare_ids(const void *a, const void *b)
{
    const uint32_t left = *(const uint32_t *)a;
    const uint32_t right = *(const uint32_t *)b;

    return left < right ? -1 : left > right;
}

static void find_repeated_ids(const Rh__AdminReply *ref, struct findings *out)
{
    uint32_t *ids = mem_new(ref->n_vnodes, sizeof *ids);

    for (size_t i = 0; i < ref->n_vnodes; i++) {
        ids[i] = ref->vnodes[i]->id;
    }
    qsort(ids, ref->n_vnodes, sizeof *ids, compare_ids);
    for (size_t i = 1; i < ref->n_vnodes; i++) {
        if (ids[i] == ids[i - 1]) {
            struct finding *f = add_ring(out);

            finding_mark(f, "id %u", ids[i]);
            finding_what(f, "two vnodes have the id %u", ids[i]);
        }
    }
    mem_free(ids);
}

static void find_bad_stamps(const Rh__AdminReply *ref, struct findings *out)
{
    for (size_t i = 0; i < ref->n_vnodes; i++) {
        const Rh__VnodeRow *v = ref->vnodes[i];
        const bool nobodys = v->owner[0] == '\0' && ref->n_roles > 0; // find_nobodys() tells
        struct finding *f = NULL;

        if (!nobodys && check_node(ref, v->owner) == NULL) {
            f = add_ring(out);
            finding_mark(f, "owner %u", v->id);
            finding_what(f, "vnode %u is owned by no registered node", v->id);
        }
        if (v->generation == 0 || v->cold > v->generation || v->generation > ref->version) {
            f = add_ring(out);
            finding_mark(f, "generation %u", v->id);
            finding_what(f,
                         "vnode %u has generation %s, cold %s, higher than the ring's version %s",
                         v->id,
                         STAMP(v->generation),
                         STAMP(v->cold),
                         STAMP(ref->version));
        }
    }
    if (ref->version > ref->number) {
        struct finding *f = add_ring(out);

        finding_mark(f, "version");
        finding_what(f,
                     "the ring's version %s was never drawn: the highest number is %s",
                     STAMP(ref->version),
                     STAMP(ref->number));
    }
}

/* Cells that wait for nodes, and kinds that have them: nobody serves their ids. */
static void find_nobodys(const Rh__AdminReply *ref, struct findings *out)
{
    for (size_t i = 0; i < ref->n_roles; i++) {
        const Rh__RoleRow *row = ref->roles[i];
        struct finding *f = NULL;

        if (row->nobodys == 0 || row->n_kinds == 0) {
            continue;
        }
        f = add_ring(out);
        finding_mark(f, "nobodys %u", row->from);
        finding_what(f,
                     "%" PRIu64 " cells of role '%s' (kind %u '%s') have no owner: %u nodes of the "
                     "role run, at least %u are needed",
                     row->nobodys,
                     role_text(row->role),
                     row->kinds[0]->number,
                     row->kinds[0]->name,
                     row->nodes,
                     row->least);
        finding_todo(
            f, "start more nodes of the role: ringhold node --role %s …", role_text(row->role));
    }
}

void check_group(const struct collection *s, const Rh__AdminReply *ref, struct findings *out)
{
    find_silent(s, out);
    find_unlinked(s, ref, out);
    find_leaders(s, ref, out);
    for (size_t i = 0; i < s->coordinator_count; i++) {
        const Rh__AdminReply *reply = s->coordinator[i].reply;

        if (reply != NULL) {
            find_fault(reply, out);
        }
        if (reply != NULL && reply->inspection->id != ref->inspection->id) {
            find_difference(ref, reply, out);
        }
    }
    find_gaps(ref, out);
    find_repeated_ids(ref, out);
    find_bad_stamps(ref, out);
    find_nobodys(ref, out);
}

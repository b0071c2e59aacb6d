/* SPDX-License-Identifier: Apache-2.0
 *
 * The order of `ringhold check`'s rules, and what they all need: who is a
 * member, which process is whose.
 */
#include "cli/check/check.h"

#include "base/assert.h"
#include "base/stamp.h"
#include "cli/rows.h"
#include "link/link.h"
#include "wire/gateway_id.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *check_role(uint32_t role)
{
    return role == ROLE_GATEWAY ? "gateway" : "node";
}

const Rh__NodeRow *check_node(const Rh__AdminReply *ref, const char *name)
{
    for (size_t i = 0; i < ref->n_nodes; i++) {
        if (strcmp(ref->nodes[i]->member->name, name) == 0) {
            return ref->nodes[i];
        }
    }
    return NULL;
}

bool check_is_member(const Rh__AdminReply *ref, const Rh__InspectAnswer *p)
{
    const Rh__NodeRow *n = check_node(ref, p->name);

    return n != NULL && n->member->incarnation == p->incarnation;
}

const Rh__InspectAnswer *check_process_of(const struct collection *s, const Rh__Member *member)
{
    for (size_t i = 0; i < s->process_count; i++) {
        const Rh__InspectAnswer *p = s->process[i];

        if (p->role == ROLE_NODE && p->incarnation == member->incarnation &&
            strcmp(p->name, member->name) == 0) {
            return p;
        }
    }
    return NULL;
}

bool check_is_barred(const Rh__AdminReply *ref, const char *name)
{
    for (size_t i = 0; i < ref->inspection->n_barred; i++) {
        if (strcmp(ref->inspection->barred[i], name) == 0) {
            return true;
        }
    }
    return false;
}

void check_subject(struct finding *f, const Rh__InspectAnswer *p)
{
    if (p->role == ROLE_GATEWAY && p->threads > 1) {
        finding_subject(f, "gateway %s thread %u", p->name, gateway_id_thread(p->incarnation) + 1);
    } else {
        finding_subject(f, "%s %s", check_role(p->role), p->name);
    }
}

void check_plan(struct finding *f, enum repair repair, const Rh__InspectAnswer *p)
{
    f->plan.repair = repair;
    f->plan.role = p->role;
    f->plan.incarnation = p->incarnation;
    (void)snprintf(f->plan.name, sizeof f->plan.name, "%s", p->name);
}

void check_collection(const struct collection *s, struct findings *out)
{
    const Rh__AdminReply *ref = collection_reference(s);

    ASSERT(ref != NULL);
    check_group(s, ref, out);
    check_processes(s, ref, out);
    check_txns(s, ref, out);
}

/* ---- what was looked at ---- */

struct collected {
    size_t answers; /* of coordinators */
    size_t nodes;
    size_t gateways;
    size_t holds;
    uint64_t actors;
};

static struct collected count(const struct collection *s)
{
    struct collected t = {0};

    for (size_t i = 0; i < s->coordinator_count; i++) {
        t.answers += s->coordinator[i].reply != NULL ? 1 : 0;
    }
    for (size_t i = 0; i < s->process_count; i++) {
        const Rh__InspectAnswer *p = s->process[i];

        t.nodes += p->role == ROLE_NODE ? 1 : 0;
        // Those of one process lie together.
        t.gateways +=
            p->role == ROLE_GATEWAY && (i == 0 || !check_is_one_gateway(s->process[i - 1], p)) ? 1
                                                                                               : 0;
        t.holds += p->n_holds;
        for (size_t j = 0; j < p->n_live; j++) {
            t.actors += p->live[j]->count;
        }
    }
    return t;
}

static void detail_leases(const struct collection *s, const Rh__AdminReply *ref, char *out,
                          size_t size)
{
    const struct check_leases l = check_leases(s, ref);
    char left[32];

    if (l.told > 0) {
        (void)snprintf(out,
                       size,
                       "in force at %zu of %zu nodes that own vnodes, the shortest for another %s",
                       l.told,
                       l.owners,
                       ms_text(l.least_us / 1000, left, sizeof left));
    } else {
        (void)snprintf(out, size, l.owners > 0 ? "not in force" : "no node owns anything");
    }
}

const char *check_detail(const struct collection *s, enum check check, char *out, size_t size)
{
    const Rh__AdminReply *ref = collection_reference(s);
    const struct collected t = count(s);

    switch (check) {
    case CHECK_COORDINATORS:
        (void)snprintf(out,
                       size,
                       "%zu answer, coordinator %u leads in term %" PRIu64
                       ", all have one state, number %s",
                       t.answers,
                       ref->leader,
                       ref->term,
                       STAMP(ref->number));
        break;
    case CHECK_RING:
        (void)snprintf(out, size, "%zu vnodes cover every cell once", ref->n_vnodes);
        break;
    case CHECK_NODES:
        (void)snprintf(out, size, "%zu of %zu answer", t.nodes, ref->n_nodes);
        break;
    case CHECK_CONFIGURATION:
        (void)snprintf(out,
                       size,
                       "%zu nodes and %zu gateways have ring version %s and its digest",
                       t.nodes,
                       t.gateways,
                       STAMP(ref->version));
        break;
    case CHECK_TRANSACTIONS:
        (void)snprintf(out, size, "%zu pending, none past its deadline", ref->n_txns);
        break;
    case CHECK_HOLDS:
        (void)snprintf(out, size, "%zu, each for a pending transaction", t.holds);
        break;
    case CHECK_ACTORS:
        (void)snprintf(out, size, "%" PRIu64 " live, no id twice", t.actors);
        break;
    case CHECK_GATEWAYS:
        (void)snprintf(out, size, "%zu, linked to all owners", t.gateways);
        break;
    case CHECK_LEASES:
        detail_leases(s, ref, out, size);
        break;
    case CHECK_DISKS:
        (void)snprintf(out, size, "no node has seen a number higher than %s", STAMP(ref->number));
        break;
    }
    return out;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Gateways: there, and linked to who owns anything. Each thread of a gateway
 * answers for itself.
 */
#include "cli/check/check.h"

#include "link/link.h"
#include "wire/gateway_id.h"

#include <string.h>

static const Rh__NodeRow *node_at(const Rh__AdminReply *ref, uint32_t slot)
{
    for (size_t i = 0; i < ref->n_nodes; i++) {
        if (ref->nodes[i]->member->slot == slot) {
            return ref->nodes[i];
        }
    }
    return NULL;
}

void check_gateway(const struct collection *s, const Rh__AdminReply *ref,
                   const Rh__InspectAnswer *p, struct findings *out)
{
    struct finding *f = NULL;

    if (strcmp(p->life, "serving") != 0) {
        f = findings_add(out, CHECK_GATEWAYS);
        check_subject(f, p);
        finding_what(f, "%s has received no configuration yet", f->subject);
        finding_todo(f, "look at its log");
    }
    for (size_t i = 0; i < p->n_unlinked; i++) {
        const Rh__NodeRow *n = node_at(ref, p->unlinked[i]);

        if (n == NULL || n->vnodes == 0 || check_process_of(s, n->member) == NULL) {
            continue; // the node itself is the finding
        }
        f = findings_add(out, CHECK_GATEWAYS);
        check_subject(f, p);
        finding_mark(f, "%u", p->unlinked[i]);
        finding_what(f,
                     "%s has no link to node %s (%s), which owns %u vnodes",
                     f->subject,
                     n->member->name,
                     n->member->address,
                     n->vnodes);
        finding_todo(
            f, "check the network between them, and the address that the node gives: its --listen");
    }
}

/* ---- those that do not answer ---- */

static bool is_of_process(const Rh__LinkRow *link, const char *name, uint64_t id)
{
    return link->role == ROLE_GATEWAY && strcmp(link->name, name) == 0 &&
           gateway_id_process(link->incarnation) == gateway_id_process(id);
}

bool check_is_one_gateway(const Rh__InspectAnswer *a, const Rh__InspectAnswer *b)
{
    return a->role == ROLE_GATEWAY && b->role == ROLE_GATEWAY && strcmp(a->name, b->name) == 0 &&
           gateway_id_process(a->incarnation) == gateway_id_process(b->incarnation);
}

/* Some thread of the link's process has answered. */
static bool is_heard(const struct collection *s, const Rh__LinkRow *link)
{
    for (size_t i = 0; i < s->process_count; i++) {
        const Rh__InspectAnswer *p = s->process[i];

        if (p->role == ROLE_GATEWAY && is_of_process(link, p->name, p->incarnation)) {
            return true;
        }
    }
    return false;
}

/* An earlier link of that coordinator is of the same process, and as silent. */
static bool is_told(const struct collection *s, const Rh__Inspection *in, size_t at)
{
    const Rh__LinkRow *link = in->links[at];

    for (size_t i = 0; i < at; i++) {
        if (is_of_process(in->links[i], link->name, link->incarnation) &&
            !collection_has(s, in->links[i])) {
            return true;
        }
    }
    return false;
}

static void find_silent_link(const struct collection *s, const Rh__Inspection *in, size_t at,
                             struct findings *out)
{
    const Rh__LinkRow *link = in->links[at];
    const bool heard = is_heard(s, link);
    struct finding *f = NULL;

    if (link->role != ROLE_GATEWAY || collection_has(s, link) || (!heard && is_told(s, in, at))) {
        return;
    }
    f = findings_add(out, CHECK_GATEWAYS);
    if (heard) {
        finding_subject(
            f, "gateway %s thread %u", link->name, gateway_id_thread(link->incarnation) + 1);
    } else {
        finding_subject(f, "gateway %s", link->name);
    }
    finding_what(f, "%s has a link to coordinator %u but does not answer", f->subject, in->id);
    finding_todo(f, "check whether the process is stopped or overloaded");
}

/* ---- threads ---- */

/* The process of these answers, which lie together, is linked with fewer threads than it has. What
 * is linked and silent was told. */
static void find_missing(const struct collection *s, size_t first, size_t end, struct findings *out)
{
    const Rh__InspectAnswer *p = s->process[first];
    uint64_t seen = 0; /* threads, as bits: the ids have room for no more of them */

    for (size_t i = first; i < end; i++) {
        seen |= (uint64_t)1 << gateway_id_thread(s->process[i]->incarnation);
    }
    for (size_t i = 0; i < s->coordinator_count; i++) {
        const Rh__AdminReply *reply = s->coordinator[i].reply;

        for (size_t j = 0; reply != NULL && j < reply->inspection->n_links; j++) {
            const Rh__LinkRow *link = reply->inspection->links[j];

            if (is_of_process(link, p->name, p->incarnation)) {
                seen |= (uint64_t)1 << gateway_id_thread(link->incarnation);
            }
        }
    }
    for (unsigned i = 0; p->threads > 1 && i < p->threads && i < GATEWAY_THREADS_MAX; i++) {
        if ((seen >> i & 1) == 0) {
            struct finding *f = findings_add(out, CHECK_GATEWAYS);

            finding_subject(f, "gateway %s thread %u", p->name, i + 1);
            finding_what(f, "%s of %u has no link to any coordinator", f->subject, p->threads);
            finding_todo(f, "look at its log, and check the network to the coordinators");
        }
    }
}

void check_missing_gateways(const struct collection *s, struct findings *out)
{
    for (size_t i = 0; i < s->coordinator_count; i++) {
        const Rh__AdminReply *reply = s->coordinator[i].reply;

        for (size_t j = 0; reply != NULL && j < reply->inspection->n_links; j++) {
            find_silent_link(s, reply->inspection, j, out);
        }
    }
    for (size_t i = 0; i < s->process_count;) {
        const size_t first = i++;

        while (i < s->process_count && check_is_one_gateway(s->process[first], s->process[i])) {
            i++;
        }
        if (s->process[first]->role == ROLE_GATEWAY) {
            find_missing(s, first, i, out);
        }
    }
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The problems that `ringhold status` opens with, and what helps against each.
 */
#include "cli/health.h"

#include "base/stamp.h"
#include "cli/query.h"
#include "wire/control.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Two texts in one format, parted by a newline: what is wrong, and what helps. */
__attribute__((format(printf, 2, 3))) static void add(struct health *h, const char *format, ...)
{
    char text[2 * HEALTH_TEXT_SIZE];
    va_list args;

    h->count++;
    if (h->count > HEALTH_PROBLEMS_MAX) {
        return;
    }
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    struct health_problem *p = &h->problem[h->count - 1];
    const char *todo = strchr(text, '\n');
    (void)snprintf(p->what, sizeof p->what, "%.*s", (int)strcspn(text, "\n"), text);
    (void)snprintf(p->todo, sizeof p->todo, "%s", todo == NULL ? "" : todo + 1);
}

/* Until the leases of before surely have ended. */
static void find_restored(const Rh__AdminReply *reply, struct health *h)
{
    char left[32];

    for (size_t i = 0; i < reply->n_obstacles; i++) {
        const Rh__ObstacleRow *o = reply->obstacles[i];

        if (strcmp(o->reason, "restored") == 0) {
            add(h,
                "restored from a backup, and no node serves until the leases of before have "
                "ended\nwait for %s, and look again",
                ms_text((o->left_us + 999) / 1000, left, sizeof left));
        }
    }
}

static void find_coordinators(const Rh__AdminReply *reply, struct health *h)
{
    for (size_t i = 0; i < reply->n_voters; i++) {
        const Rh__VoterRow *v = reply->voters[i];

        if (!v->leader && !v->linked) {
            add(h,
                "coordinator %" PRIu32 " (%s) is unreachable\nstart it again, or see: ringhold "
                "coordinators list",
                v->id,
                v->address);
        }
    }
}

static void find_silent(const Rh__AdminReply *reply, struct health *h)
{
    char ago[32];

    for (size_t i = 0; i < reply->n_nodes; i++) {
        const Rh__NodeRow *n = reply->nodes[i];
        const char *name = n->member->name;

        if (strcmp(n->state, "dead") == 0) {
            add(h, "node %s is dead\nstart it again, or: ringhold node remove %s", name, name);
        } else if (strcmp(n->state, "fenced") == 0) {
            add(h,
                "node %s is fenced, and its %" PRIu32
                " vnodes are not others' yet\nstart it again, "
                "or see: ringhold txn list",
                name,
                n->vnodes);
        } else if (strcmp(n->state, "suspect") == 0) {
            add(h,
                "node %s is suspect, last heard %s ago\nringhold check",
                name,
                ms_text(n->heard_us_ago / 1000, ago, sizeof ago));
        }
    }
    if (reply->n_nodes == 0) {
        add(h, "no node is there\nstart one: ringhold node --join COORDINATOR");
    }
}

/* A role has a row for each placement. */
static bool is_again(const Rh__AdminReply *reply, size_t at)
{
    for (size_t k = 0; k < at; k++) {
        if (strcmp(reply->roles[k]->role, reply->roles[at]->role) == 0) {
            return true;
        }
    }
    return false;
}

static void find_roles(const Rh__AdminReply *reply, struct health *h)
{
    for (size_t i = 0; i < reply->n_roles; i++) {
        const Rh__RoleRow *row = reply->roles[i];

        if (row->nobodys > 0 && reply->pending == 0 && !reply->planning && reply->planned == 0) {
            add(h,
                "some ids of role %s are nobody's: %" PRIu32 " of at least %" PRIu32 " nodes are "
                "there\nstart a node of that role",
                role_text(row->role),
                row->nodes,
                row->least);
        }
        if (row->astray && row->nodes > 0 && !is_again(reply, i)) {
            add(h,
                "role %s is kept in %s, where none of its nodes is: others have its ids until one "
                "comes\nstart one there",
                role_text(row->role),
                row->zones);
        }
    }
}

static void find_clocks(const Rh__AdminReply *reply, struct health *h)
{
    for (size_t i = 0; i < reply->n_nodes; i++) {
        const Rh__NodeRow *n = reply->nodes[i];

        if (n->clock_parts != 0) {
            add(h,
                "the clock of %s runs away (%+.1f %%)\nringhold check",
                n->member->name,
                n->clock_parts / 10.0);
        }
    }
}

/* Two rings of one version: their digests are told, both. */
static void find_digests(const Rh__AdminReply *reply, struct health *h)
{
    char mine[33];
    char leaders[33];

    for (size_t i = 0; i < reply->n_nodes; i++) {
        const Rh__NodeRow *n = reply->nodes[i];

        if (n->version != 0 && n->version == reply->version &&
            (n->digest0 != reply->digest0 || n->digest1 != reply->digest1)) {
            add(h,
                "node %s has another ring of version %s than the leader: digest %s, the leader's "
                "%s\nringhold check, then ringhold fix",
                n->member->name,
                STAMP(n->version),
                digest_text(n->digest0, n->digest1, mine),
                digest_text(reply->digest0, reply->digest1, leaders));
        }
    }
}

static void find_quarantine(const Rh__AdminReply *reply, struct health *h)
{
    size_t count = 0;

    for (size_t i = 0; i < reply->n_quarantine; i++) {
        count += reply->quarantine[i]->since_us != 0;
    }
    if (count > 0) {
        add(h,
            "%zu %s in quarantine: requests to them are refused\nringhold quarantine list",
            count,
            count == 1 ? "actor is" : "actors are");
    }
}

/* Each name once. */
static void find_namesakes(const Rh__AdminReply *reply, struct health *h)
{
    for (size_t i = 0; i < reply->n_gateways; i++) {
        size_t before = 0;
        size_t behind = 0;

        for (size_t j = 0; j < reply->n_gateways; j++) {
            const bool same = strcmp(reply->gateways[i]->name, reply->gateways[j]->name) == 0;

            before += same && j < i;
            behind += same && j > i;
        }
        if (before == 0 && behind > 0) {
            add(h,
                "%zu gateways have the name %s\ngive each one a --name of its own",
                behind + 1,
                reply->gateways[i]->name);
        }
    }
}

static void find_pins(const Rh__AdminReply *reply, struct health *h)
{
    if (reply->pins_away > 0) {
        add(h,
            "of %" PRIu32 " of %" PRIu32 " pins the node is not there or drains\nringhold pin list",
            reply->pins_away,
            reply->pins_count);
    }
}

void health_of(const Rh__AdminReply *reply, struct health *out)
{
    *out = (struct health){0};
    find_restored(reply, out);
    find_coordinators(reply, out);
    find_silent(reply, out);
    find_digests(reply, out);
    find_roles(reply, out);
    find_clocks(reply, out);
    find_quarantine(reply, out);
    find_namesakes(reply, out);
    find_pins(reply, out);
}

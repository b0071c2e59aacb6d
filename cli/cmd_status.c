/* SPDX-License-Identifier: Apache-2.0
 *
 * `ringhold status`: the fleet at a glance, as tables or JSON.
 */
#include "cli/builds.h"
#include "cli/cmd_maintenance.h"
#include "cli/cmd_quarantine.h"
#include "cli/commands.h"
#include "cli/query.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static void put_coordinators(const Rh__AdminReply *reply, struct rows *r)
{
    static const char *const columns[] = {"COORDINATOR", "ADDRESS", "ROLE", NULL};

    rows_init(r, columns);
    for (size_t i = 0; i < reply->n_voters; i++) {
        const Rh__VoterRow *v = reply->voters[i];

        rows_number(r, v->id);
        rows_text(r, "%s", v->address);
        rows_text(r, "%s", v->leader ? "leader" : (v->linked ? "follower" : "unreachable"));
    }
}

static void put_nodes(const Rh__AdminReply *reply, struct rows *r)
{
    static const char *const columns[] = {"NODE",
                                          "ROLE",
                                          "ZONE",
                                          "ADDRESS",
                                          "STATE",
                                          "VNODES",
                                          "SHARE PPM",
                                          "ACTORS",
                                          "HELD",
                                          "HELD EVER",
                                          "RUN",
                                          "FORWARDED",
                                          "QUARANTINED",
                                          "JOINS MS",
                                          "VERSION",
                                          "DIGEST",
                                          NULL};
    uint64_t cells = 0;
    char digest[33];

    for (size_t i = 0; i < reply->n_nodes; i++) {
        cells += reply->nodes[i]->cells;
    }
    rows_init(r, columns);
    for (size_t i = 0; i < reply->n_nodes; i++) {
        const Rh__NodeRow *n = reply->nodes[i];

        rows_text(r, "%s", n->member->name);
        rows_text(r, "%s", role_text(n->member->role));
        rows_text(r, "%s", n->zone);
        rows_text(r, "%s", n->member->address);
        rows_text(r, "%s", n->state);
        rows_number(r, n->vnodes);
        rows_number(r, cells == 0 ? 0 : n->cells * 1000000 / cells);
        rows_number(r, n->actors);
        rows_number(r, n->held);
        rows_number(r, n->held_total);
        rows_number(r, n->executed);
        rows_number(r, n->forwarded);
        rows_number(r, n->refused_quarantine);
        rows_number(r, (n->joins_us + 999) / 1000);
        rows_number(r, n->version);
        rows_text(r, "%s", digest_text(n->digest0, n->digest1, digest));
    }
}

/* What a zone's nodes have in sum. */
static void put_zone(const Rh__AdminReply *reply, const char *zone, uint64_t cells, struct rows *r)
{
    uint64_t nodes = 0;
    uint64_t live = 0;
    uint64_t vnodes = 0;
    uint64_t owned = 0;
    uint64_t actors = 0;

    for (size_t i = 0; i < reply->n_nodes; i++) {
        const Rh__NodeRow *n = reply->nodes[i];

        if (strcmp(n->zone, zone) == 0) {
            nodes++;
            live += n->live != 0;
            vnodes += n->vnodes;
            owned += n->cells;
            actors += n->actors;
        }
    }
    rows_text(r, "%s", zone);
    rows_number(r, nodes);
    rows_number(r, live);
    rows_number(r, vnodes);
    rows_number(r, cells == 0 ? 0 : owned * 1000000 / cells);
    rows_number(r, actors);
}

/* Each zone that a node names; none: no rows. */
static void put_zones(const Rh__AdminReply *reply, struct rows *r)
{
    static const char *const columns[] = {
        "ZONE", "NODES", "LIVE", "VNODES", "SHARE PPM", "ACTORS", NULL};
    uint64_t cells = 0;

    rows_init(r, columns);
    for (size_t i = 0; i < reply->n_nodes; i++) {
        cells += reply->nodes[i]->cells;
    }
    for (size_t i = 0; i < reply->n_nodes; i++) {
        const char *zone = reply->nodes[i]->zone;
        bool again = zone[0] == '\0';

        for (size_t k = 0; k < i; k++) {
            again = again || strcmp(reply->nodes[k]->zone, zone) == 0;
        }
        if (!again) {
            put_zone(reply, zone, cells, r);
        }
    }
}

/* "0 kv, 3 match"; of a set how many there are. */
static void kinds_text(const Rh__RoleRow *row, char *text, size_t size)
{
    size_t used = 0;

    text[0] = '\0';
    for (size_t i = 0; i < row->n_kinds && used < size; i++) {
        const int more = snprintf(text + used,
                                  size - used,
                                  "%s%u %s",
                                  i == 0 ? "" : ", ",
                                  row->kinds[i]->number,
                                  row->kinds[i]->name);

        used += more < 0 ? size : (size_t)more;
    }
}

/* "n1 0.1, n2 0": which nodes take less of the kind than by their weight. */
static void canaries_text(const Rh__AdminReply *reply, const Rh__RoleRow *row, char *text,
                          size_t size)
{
    size_t used = 0;

    text[0] = '\0';
    for (size_t i = 0; row->n_kinds > 0 && i < reply->n_nodes; i++) {
        const Rh__NodeRow *n = reply->nodes[i];

        for (size_t k = 0; k < n->n_parts && used < size; k++) {
            if (n->parts[k]->kind == row->kinds[0]->number) {
                const int more = snprintf(text + used,
                                          size - used,
                                          "%s%s %g",
                                          used == 0 ? "" : ", ",
                                          n->member->name,
                                          n->parts[k]->permille / 1000.0);

                used += more < 0 ? size : (size_t)more;
            }
        }
    }
}

static void put_roles(const Rh__AdminReply *reply, struct rows *r)
{
    static const char *const columns[] = {"ROLE",
                                          "PLACEMENT",
                                          "KINDS",
                                          "ACTORS",
                                          "OWNER",
                                          "NODES",
                                          "AT LEAST",
                                          "UNALLOCATED",
                                          "ZONES",
                                          "ASTRAY",
                                          "CANARIES",
                                          NULL};
    static const char *const placements[] = {"hash", "singleton", "daemons", "together", "hosts"};

    rows_init(r, columns);
    for (size_t i = 0; i < reply->n_roles; i++) {
        const Rh__RoleRow *row = reply->roles[i];
        const bool set = row->placement == 2 && row->n_kinds > 0;
        char kinds[256];
        char canaries[512];

        kinds_text(row, kinds, sizeof kinds);
        rows_text(r, "%s", role_text(row->role));
        rows_text(r,
                  "%s",
                  row->placement < sizeof placements / sizeof placements[0]
                      ? placements[row->placement]
                      : "?");
        rows_text(r, "%s", kinds);
        rows_number(r, set ? row->kinds[0]->daemons : row->placement == 1 && row->n_kinds > 0);
        rows_text(r, "%s", row->owner);
        rows_number(r, row->nodes);
        rows_number(r, row->least);
        rows_number(r, row->nobodys);
        rows_text(r, "%s", row->zones);
        rows_text(r, "%s", row->astray ? "yes" : "no");
        canaries_text(reply, row, canaries, sizeof canaries);
        rows_text(r, "%s", canaries);
    }
}

static void put_gateways(const Rh__AdminReply *reply, struct rows *r)
{
    static const char *const columns[] = {"GATEWAY",
                                          "REQUESTS",
                                          "IN FLIGHT",
                                          "UNKNOWN",
                                          "STALE ANSWERS",
                                          "VERSION",
                                          "DIGEST",
                                          "THREADS",
                                          "LINKED",
                                          NULL};
    char digest[33];

    rows_init(r, columns);
    for (size_t i = 0; i < reply->n_gateways; i++) {
        const Rh__GatewayRow *g = reply->gateways[i];

        rows_text(r, "%s", g->name);
        rows_number(r, g->requests);
        rows_number(r, g->in_flight);
        rows_number(r, g->unknown);
        rows_number(r, g->stale_answers);
        rows_number(r, g->version);
        rows_text(r, "%s", digest_text(g->digest0, g->digest1, digest));
        rows_number(r, g->threads);
        rows_number(r, g->linked);
    }
}

/* Each once. */
static void print_namesakes(const Rh__AdminReply *reply)
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
            (void)printf("\n"
                         "%zu gateways have the name %s: give each one a --name of its own\n",
                         behind + 1,
                         reply->gateways[i]->name);
        }
    }
}

/* Why what is planned does not begin. */
static void put_obstacles(const Rh__AdminReply *reply, struct rows *r)
{
    static const char *const columns[] = {
        "REASON", "NODE", "OTHER", "DRAINS", "TRANSACTIONS", "VNODES", "LEFT MS", "TEXT", NULL};

    rows_init(r, columns);
    for (size_t i = 0; i < reply->n_obstacles; i++) {
        const Rh__ObstacleRow *o = reply->obstacles[i];

        rows_text(r, "%s", o->reason);
        rows_text(r, "%s", o->node);
        rows_text(r, "%s", o->other);
        rows_text(r, "%s", o->drains);
        rows_number(r, o->transactions);
        rows_number(r, o->vnodes);
        rows_number(r, (o->left_us + 999) / 1000);
        rows_text(r, "%s", o->text);
    }
}

static void print_obstacles(const Rh__AdminReply *reply)
{
    for (size_t i = 0; i < reply->n_obstacles; i++) {
        const Rh__ObstacleRow *o = reply->obstacles[i];

        (void)printf("%swaiting (%s)", i == 0 ? "\n" : "", o->reason);
        if (o->drains[0] != '\0') {
            (void)printf(", drain of %s", o->drains);
        }
        if (o->transactions > 0) {
            (void)printf(", %" PRIu32 " planned", o->transactions);
        }
        (void)printf(": %s\n", o->text);
    }
}

static void print_astray(const Rh__AdminReply *reply)
{
    for (size_t i = 0; i < reply->n_roles; i++) {
        const Rh__RoleRow *row = reply->roles[i];
        bool again = false; // a role has a row for each placement

        for (size_t k = 0; k < i; k++) {
            again = again || strcmp(reply->roles[k]->role, row->role) == 0;
        }
        if (row->astray && row->nodes > 0 && !again) {
            (void)printf("\n"
                         "role %s is kept in %s, where none of its nodes is: others have its ids "
                         "until one comes\n",
                         role_text(row->role),
                         row->zones);
        }
    }
}

static void print_clocks(const Rh__AdminReply *reply)
{
    for (size_t i = 0; i < reply->n_nodes; i++) {
        const Rh__NodeRow *n = reply->nodes[i];

        if (n->clock_parts != 0) {
            (void)printf("\nthe clock of %s runs away (%+.1f %%): ringhold check\n",
                         n->member->name,
                         n->clock_parts / 10.0);
        }
    }
}

/* Nothing, while a leader of before tells nothing, or no load is known. */
static void print_balance(const Rh__AdminReply *reply)
{
    const Rh__BalanceRow *b = reply->balance;

    if (b == NULL || (strcmp(b->by, "hash") == 0 && b->unknown_why[0] != '\0')) {
        return;
    }
    (void)printf("\nbalance by %s: ", b->by);
    const bool by_memory = strcmp(b->by, "memory") == 0;
    const char *what = by_memory ? "memory" : "load";
    if (b->unknown_why[0] != '\0') {
        (void)printf("the %s is not known yet: %s\n", what, b->unknown_why);
        return;
    }
    (void)printf("%s has %.2f of its share of the %s; vnode %" PRIu32 " at %s alone %.2f%s\n",
                 b->node,
                 b->permille / 1000.0,
                 what,
                 b->vnode,
                 b->vnode_node,
                 b->vnode_permille / 1000.0,
                 b->vnode_permille <= 1000 ? ""
                 : by_memory               ? ", which is too large to move"
                                           : ", which is too hot: ringhold top --hot");
}

static void print_balance_json(const Rh__AdminReply *reply)
{
    const Rh__BalanceRow *b = reply->balance;

    (void)printf(",\"balance\":");
    if (b == NULL) {
        (void)printf("null");
        return;
    }
    (void)printf("{\"by\":");
    json_print_string(b->by);
    (void)printf(",\"unknown_why\":");
    json_print_string(b->unknown_why);
    (void)printf(",\"max_permille\":%" PRIu32 ",\"node\":", b->permille);
    json_print_string(b->node);
    (void)printf(",\"vnode\":%" PRIu32 ",\"vnode_node\":", b->vnode);
    json_print_string(b->vnode_node);
    (void)printf(",\"vnode_permille\":%" PRIu32 "}", b->vnode_permille);
}

/* Live nodes that need no coordinator now, and for how long the first of them to need one doesn't.
 */
struct extended {
    size_t live;
    size_t count;
    uint64_t least_us;
};

static struct extended count_extended(const Rh__AdminReply *reply)
{
    struct extended e = {0};

    for (size_t i = 0; i < reply->n_nodes; i++) {
        const uint64_t us = maintenance_alone_us(reply, reply->nodes[i]);

        e.live += reply->nodes[i]->live ? 1 : 0;
        if (us > 0) {
            e.least_us = e.count == 0 || us < e.least_us ? us : e.least_us;
            e.count++;
        }
    }
    return e;
}

static void print_leases(const Rh__AdminReply *reply)
{
    const struct extended e = count_extended(reply);

    if (reply->lease_us == 0 || reply->lease_longest_us <= reply->lease_us) {
        return;
    }
    (void)printf("\nleases of up to %" PRIu64 " s may last, the leader's own are %" PRIu64
                 " s: the ids of a node that dies are served by others after up to %" PRIu64 " s\n",
                 (reply->lease_longest_us + 999999) / 1000000,
                 reply->lease_us / 1000000,
                 (reply->lease_wait_us + 999999) / 1000000);
    if (e.count == 0) {
        (void)printf("no live node can serve without coordinators\n");
    } else {
        (void)printf("%zu of %zu live nodes can serve without coordinators, for %" PRIu64
                     " s at least\n",
                     e.count,
                     e.live,
                     e.least_us / 1000000);
    }
}

/* All that is shown. */
struct tables {
    struct rows coordinators;
    struct rows nodes;
    struct rows gateways;
    struct rows roles;
    struct rows zones;
    struct rows quarantine;
};

static void print_json(const Rh__AdminReply *reply, const struct tables *t)
{
    struct rows builds;
    const struct extended e = count_extended(reply);
    struct rows obstacles;
    char digest[33];

    (void)printf("{\"cluster\":");
    json_print_string(reply->cluster);
    (void)printf(",\"fleet\":");
    json_print_string(reply->fleet);
    (void)printf(",\"leader\":%u,\"term\":%" PRIu64 ",\"version\":%" PRIu64 ",\"number\":%" PRIu64
                 ",\"era\":%" PRIu64 ",\"applied_index\":%" PRIu64
                 ",\"pending\":%u,\"planned\":%u,\"planning\":%s,\"lease_ms\":%" PRIu64
                 ",\"longest_ms\":%" PRIu64 ",\"takeover_ms\":%" PRIu64
                 ",\"extended_nodes\":%zu,\"extended_ms\":%" PRIu64
                 ",\"digest\":\"%s\",\"coordinators\":",
                 reply->leader,
                 reply->term,
                 reply->version,
                 reply->number,
                 reply->era,
                 reply->applied_index,
                 reply->pending,
                 reply->planned,
                 reply->planning ? "true" : "false",
                 reply->lease_us / 1000,
                 reply->lease_longest_us / 1000,
                 reply->lease_wait_us / 1000,
                 e.count,
                 e.least_us / 1000,
                 digest_text(reply->digest0, reply->digest1, digest));
    rows_print_json(&t->coordinators);
    (void)printf(",\"nodes\":");
    rows_print_json(&t->nodes);
    (void)printf(",\"gateways\":");
    rows_print_json(&t->gateways);
    (void)printf(",\"roles\":");
    rows_print_json(&t->roles);
    (void)printf(",\"zones\":");
    rows_print_json(&t->zones);
    (void)printf(",\"quarantine\":");
    rows_print_json(&t->quarantine);
    put_obstacles(reply, &obstacles);
    (void)printf(",\"obstacles\":");
    rows_print_json(&obstacles);
    rows_fini(&obstacles);
    print_balance_json(reply);
    builds_rows(reply, &builds);
    (void)printf(",\"pins\":%" PRIu32 ",\"pins_away\":%" PRIu32 ",\"remembered\":%" PRIu32
                 ",\"remembered_max\":%" PRIu32 ",\"remembered_full\":%" PRIu64
                 ",\"remembered_stale\":%" PRIu64 ",\"format\":%" PRIu32 ",\"builds\":",
                 reply->pins_count,
                 reply->pins_away,
                 reply->remembered_count,
                 reply->remembered_max,
                 reply->remembered_full,
                 reply->remembered_stale,
                 reply->format);
    rows_print_json(&builds);
    rows_fini(&builds);
    (void)printf("}\n");
}

static void print_remembered(const Rh__AdminReply *reply)
{
    if (reply->remembered_count > 0 || reply->remembered_full > 0) {
        (void)printf("\n%" PRIu32 " ids are remembered, of %" PRIu32 " at most",
                     reply->remembered_count,
                     reply->remembered_max);
        (void)printf(reply->remembered_full > 0
                         ? "; %" PRIu64 " times one was not, for want of room: see --remember-max\n"
                         : "\n",
                     reply->remembered_full);
    }
}

static void print_table(const Rh__AdminReply *reply, const struct tables *t)
{
    char digest[33];

    (void)printf("cluster %s  fleet %s\nleader %u (term %" PRIu64 ")  ring version %" PRIu64
                 "  number %" PRIu64 "  moving %u  planned %u%s  digest %s\n\n",
                 reply->cluster,
                 reply->fleet[0] == '\0' ? "not founded yet" : reply->fleet,
                 reply->leader,
                 reply->term,
                 reply->version,
                 reply->number,
                 reply->pending,
                 reply->planned,
                 reply->planning ? " (planning)" : "",
                 digest_text(reply->digest0, reply->digest1, digest));
    rows_print_table(&t->coordinators);
    (void)printf("\n");
    rows_print_table(&t->nodes);
    (void)printf("\n");
    rows_print_table(&t->gateways);
    (void)printf("\n");
    rows_print_table(&t->roles);
    if (t->zones.cell_count > 0) {
        (void)printf("\n");
        rows_print_table(&t->zones);
    }
    if (t->quarantine.cell_count > 0) {
        (void)printf("\n");
        rows_print_table(&t->quarantine);
    }
    if (reply->pins_count > 0) {
        (void)printf("\n%" PRIu32 " pins", reply->pins_count);
        (void)printf(reply->pins_away > 0 ? ", of %" PRIu32 " of them the node is not there or "
                                            "drains: see ringhold pin list\n"
                                          : "\n",
                     reply->pins_away);
    }
    print_remembered(reply);
    print_obstacles(reply);
    print_balance(reply);
    print_astray(reply);
    print_clocks(reply);
    print_leases(reply);
    print_namesakes(reply);
    if (builds_mixed(reply)) {
        (void)printf("\n"
                     "the processes are not all of one version: see ringhold upgrade\n");
    }
}

static void print_status(const Rh__AdminReply *reply, bool json)
{
    struct tables t;

    put_coordinators(reply, &t.coordinators);
    put_nodes(reply, &t.nodes);
    put_gateways(reply, &t.gateways);
    put_roles(reply, &t.roles);
    put_zones(reply, &t.zones);
    quarantine_rows(reply, false, &t.quarantine);
    (json ? print_json : print_table)(reply, &t);
    rows_fini(&t.coordinators);
    rows_fini(&t.nodes);
    rows_fini(&t.gateways);
    rows_fini(&t.roles);
    rows_fini(&t.zones);
    rows_fini(&t.quarantine);
}

static int show(const struct query *q)
{
    Rh__AdminStatus what = RH__ADMIN_STATUS__INIT;

    Rh__AdminReply *reply = query_ask(q, &what.base);
    if (reply == NULL) {
        return 1;
    }
    print_status(reply, q->json);
    admin_free(reply);
    return 0;
}

/* Until somebody ends it, or the output. */
static int show_again_and_again(const struct query *q)
{
    const struct timespec pause = {.tv_sec = 1};
    const bool screen = isatty(STDOUT_FILENO) != 0 && !q->json;

    while (ferror(stdout) == 0) {
        (void)fputs(screen ? "\033[H\033[J" : "", stdout);
        (void)show(q);
        (void)fputs(screen || q->json ? "" : "\n", stdout);
        (void)fflush(stdout);
        (void)nanosleep(&pause, NULL);
    }
    return 1;
}

int cmd_status(int argc, char **argv)
{
    struct query q;
    bool watch = false;
    const struct option watch_option =
        option_switch("watch", &watch, "show it anew each second, until ^C");
    const struct command command = {
        .name = "status",
        .summary = "Show the fleet at a glance: coordinators, nodes, gateways, moves in progress.",
        .arguments = "",
        .options = query_options(&q, &watch_option),
    };
    const int code = query_parse(&q, &command, argc, argv);

    if (code >= 0) {
        return code;
    }
    return watch ? show_again_and_again(&q) : show(&q);
}

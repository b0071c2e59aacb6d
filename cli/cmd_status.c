/* SPDX-License-Identifier: Apache-2.0
 *
 * `ringhold status`: the fleet at a glance, as tables or JSON.
 */
#include "base/stamp.h"
#include "cli/builds.h"
#include "cli/cmd_maintenance.h"
#include "cli/cmd_quarantine.h"
#include "cli/commands.h"
#include "cli/health.h"
#include "cli/paint.h"
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

static uint64_t share_ppm(uint64_t cells, uint64_t all)
{
    return all == 0 ? 0 : cells * 1000000 / all;
}

static uint64_t all_cells(const Rh__AdminReply *reply)
{
    uint64_t cells = 0;

    for (size_t i = 0; i < reply->n_nodes; i++) {
        cells += reply->nodes[i]->cells;
    }
    return cells;
}

static void put_node(const Rh__AdminReply *reply, const Rh__NodeRow *n, struct rows *r)
{
    const uint64_t joins_ms = (n->joins_us + 999) / 1000;
    char digest[33];
    char text[32];

    rows_text(r, "%s", n->member->name);
    rows_text(r, "%s", n->state);
    rows_share(r, share_ppm(n->cells, all_cells(reply)));
    rows_number(r, n->vnodes);
    rows_number(r, n->actors);
    rows_rate(r, n->requests_known, n->requests_s);
    rows_us_known(r, n->p99_us);
    rows_number(r, n->waiting);
    rows_number(r, n->held);
    rows_number(r, n->held_total);
    rows_number(r, n->executed);
    rows_number(r, n->forwarded);
    rows_number(r, n->refused_quarantine);
    rows_figure(r, joins_ms, "%s", joins_ms == 0 ? "" : ms_text(joins_ms, text, sizeof text));
    rows_stamp(r, n->version);
    rows_text(r, "%s", digest_text(n->digest0, n->digest1, digest));
    rows_text(r, "%s", role_text(n->member->role));
    rows_text(r, "%s", n->zone);
    rows_text(r, "%s", n->member->address);
}

static void put_nodes(const Rh__AdminReply *reply, struct rows *r)
{
    static const char *const columns[] = {"NODE",
                                          "STATE",
                                          "SHARE=share_ppm",
                                          "VNODES",
                                          "ACTORS",
                                          "REQUESTS=requests_s",
                                          "P99=p99_us",
                                          "QUEUE=waiting",
                                          "+HELD",
                                          "+HELD EVER",
                                          "+RUN",
                                          "+FORWARDED",
                                          "+QUARANTINED",
                                          "JOINS IN=joins_ms",
                                          "+VERSION",
                                          "+DIGEST",
                                          "ROLE",
                                          "ZONE",
                                          "ADDRESS",
                                          NULL};

    rows_init(r, columns);
    for (size_t i = 0; i < reply->n_nodes; i++) {
        put_node(reply, reply->nodes[i], r);
    }
}

/* How even the shares are, of those that have one. */
static void print_shares(const Rh__AdminReply *reply)
{
    const uint64_t all = all_cells(reply);
    const Rh__NodeRow *least = NULL;
    const Rh__NodeRow *most = NULL;
    size_t count = 0;

    for (size_t i = 0; i < reply->n_nodes; i++) {
        const Rh__NodeRow *n = reply->nodes[i];

        if (n->cells > 0) {
            least = least == NULL || n->cells < least->cells ? n : least;
            most = most == NULL || n->cells > most->cells ? n : most;
            count++;
        }
    }
    if (count > 1) {
        text_printf(2,
                    "share of a node: %.1f %% on average, least %.1f %% (%s), most %.1f %% (%s)",
                    100.0 / (double)count,
                    (double)share_ppm(least->cells, all) / 1e4,
                    least->member->name,
                    (double)share_ppm(most->cells, all) / 1e4,
                    most->member->name);
    }
}

/* What is asked of all, and where it takes longest. */
static void print_load(const Rh__AdminReply *reply)
{
    const Rh__NodeRow *slowest = NULL;
    uint64_t rate_s = 0;
    char text[32];

    for (size_t i = 0; i < reply->n_nodes; i++) {
        const Rh__NodeRow *n = reply->nodes[i];

        rate_s += n->requests_known ? n->requests_s : 0;
        slowest = n->p99_us > (slowest == NULL ? 0 : slowest->p99_us) ? n : slowest;
    }
    if (slowest != NULL) {
        text_printf(2,
                    "requests: %" PRIu64 " a second, p99 of a node %s at most (%s)",
                    rate_s,
                    duration_text(slowest->p99_us, text, sizeof text),
                    slowest->member->name);
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
    rows_share(r, share_ppm(owned, cells));
    rows_number(r, actors);
}

/* Each zone that a node names; none: no rows. */
static void put_zones(const Rh__AdminReply *reply, struct rows *r)
{
    static const char *const columns[] = {
        "ZONE", "NODES", "LIVE", "VNODES", "SHARE=share_ppm", "ACTORS", NULL};
    const uint64_t cells = all_cells(reply);

    rows_init(r, columns);
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
                                          "+AT LEAST",
                                          "+UNALLOCATED",
                                          "ZONES",
                                          "+ASTRAY",
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
                                          "+DIGEST",
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
        rows_stamp(r, g->version);
        rows_text(r, "%s", digest_text(g->digest0, g->digest1, digest));
        rows_number(r, g->threads);
        rows_number(r, g->linked);
    }
}

/* Why what is planned does not begin. */
static void put_obstacles(const Rh__AdminReply *reply, struct rows *r)
{
    static const char *const columns[] = {"REASON",
                                          "NODE",
                                          "OTHER",
                                          "DRAINS",
                                          "TRANSACTIONS",
                                          "VNODES",
                                          "LEFT=left_ms",
                                          "TEXT",
                                          NULL};

    rows_init(r, columns);
    for (size_t i = 0; i < reply->n_obstacles; i++) {
        const Rh__ObstacleRow *o = reply->obstacles[i];

        rows_text(r, "%s", o->reason);
        rows_text(r, "%s", o->node);
        rows_text(r, "%s", o->other);
        rows_text(r, "%s", o->drains);
        rows_number(r, o->transactions);
        rows_number(r, o->vnodes);
        rows_ms(r, (o->left_us + 999) / 1000);
        rows_text(r, "%s", o->text);
    }
}

static void print_obstacles(const Rh__AdminReply *reply)
{
    for (size_t i = 0; i < reply->n_obstacles; i++) {
        const Rh__ObstacleRow *o = reply->obstacles[i];
        char planned[32] = "";

        if (o->transactions > 0) {
            (void)snprintf(planned, sizeof planned, ", %" PRIu32 " planned", o->transactions);
        }
        (void)printf("%s", i == 0 ? "\n" : "");
        text_printf(2,
                    "waiting (%s)%s%s%s: %s",
                    o->reason,
                    o->drains[0] == '\0' ? "" : ", drain of ",
                    o->drains,
                    planned,
                    o->text);
    }
}

/* Nothing, while a leader of before tells nothing, or no load is known. */
static void print_balance(const Rh__AdminReply *reply)
{
    const Rh__BalanceRow *b = reply->balance;

    if (b == NULL || (strcmp(b->by, "hash") == 0 && b->unknown_why[0] != '\0')) {
        return;
    }
    (void)printf("\n");
    const bool by_memory = strcmp(b->by, "memory") == 0;
    const char *what = by_memory ? "memory" : "load";
    if (b->unknown_why[0] != '\0') {
        text_printf(2, "balance by %s: the %s is not known yet: %s", b->by, what, b->unknown_why);
        return;
    }
    text_printf(2,
                "balance by %s: %s has %.2f of its share of the %s; vnode %" PRIu32
                " at %s alone %.2f%s",
                b->by,
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
    (void)printf("\n");
    text_printf(2,
                "leases of up to %" PRIu64 " s may last, the leader's own are %" PRIu64
                " s: the ids of a node that dies are served by others after up to %" PRIu64 " s",
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

static void print_health_json(const struct health *h)
{
    (void)printf("{\"healthy\":%s,\"problems\":[", h->count == 0 ? "true" : "false");
    for (size_t i = 0; i < h->count && i < HEALTH_PROBLEMS_MAX; i++) {
        (void)printf("%s{\"what\":", i == 0 ? "" : ",");
        json_print_string(h->problem[i].what);
        (void)printf(",\"todo\":");
        json_print_string(h->problem[i].todo);
        (void)printf("}");
    }
    (void)printf("]");
}

static void print_json(const Rh__AdminReply *reply, const struct tables *t, const struct health *h)
{
    struct rows builds;
    const struct extended e = count_extended(reply);
    struct rows obstacles;
    char digest[33];

    print_health_json(h);
    (void)printf(",\"cluster\":");
    json_print_string(reply->cluster);
    (void)printf(",\"fleet\":");
    json_print_string(reply->fleet);
    (void)printf(",\"leader\":%u,\"term\":%" PRIu64, reply->leader, reply->term);
    json_print_stamp("version", reply->version);
    json_print_stamp("number", reply->number);
    (void)printf(",\"era\":%" PRIu64 ",\"applied_index\":%" PRIu64
                 ",\"pending\":%u,\"planned\":%u,\"planning\":%s,\"lease_ms\":%" PRIu64
                 ",\"longest_ms\":%" PRIu64 ",\"takeover_ms\":%" PRIu64
                 ",\"extended_nodes\":%zu,\"extended_ms\":%" PRIu64
                 ",\"digest\":\"%s\",\"coordinators\":",
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
    rows_print(&t->coordinators, ROWS_JSON);
    (void)printf(",\"nodes\":");
    rows_print(&t->nodes, ROWS_JSON);
    (void)printf(",\"gateways\":");
    rows_print(&t->gateways, ROWS_JSON);
    (void)printf(",\"roles\":");
    rows_print(&t->roles, ROWS_JSON);
    (void)printf(",\"zones\":");
    rows_print(&t->zones, ROWS_JSON);
    (void)printf(",\"quarantine\":");
    rows_print(&t->quarantine, ROWS_JSON);
    put_obstacles(reply, &obstacles);
    (void)printf(",\"obstacles\":");
    rows_print(&obstacles, ROWS_JSON);
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
    rows_print(&builds, ROWS_JSON);
    rows_fini(&builds);
    (void)printf("}\n");
}

static void print_remembered(const Rh__AdminReply *reply)
{
    char full[96] = "";

    if (reply->remembered_full > 0) {
        (void)snprintf(full,
                       sizeof full,
                       "; %" PRIu64 " times one was not, for want of room: see --remember-max",
                       reply->remembered_full);
    }
    if (reply->remembered_count > 0 || reply->remembered_full > 0) {
        (void)printf("\n");
        text_printf(2,
                    "%" PRIu32 " ids are remembered, of %" PRIu32 " at most%s",
                    reply->remembered_count,
                    reply->remembered_max,
                    full);
    }
}

/* The first line is what one has to know. */
static void print_health(const Rh__AdminReply *reply, const struct health *h)
{
    for (size_t i = 0; i < h->count && i < HEALTH_PROBLEMS_MAX; i++) {
        (void)fputs(paint_on(PAINT_BAD), stdout);
        text_printf(2, "PROBLEM: %s: %s", h->problem[i].what, h->problem[i].todo);
        (void)fputs(paint_off(PAINT_BAD), stdout);
    }
    if (h->count > HEALTH_PROBLEMS_MAX) {
        (void)printf("and %zu more: ringhold check\n", h->count - HEALTH_PROBLEMS_MAX);
    }
    if (h->count == 0) {
        (void)printf("%sHEALTHY%s%s\n",
                     paint_on(PAINT_GOOD),
                     paint_off(PAINT_GOOD),
                     reply->pending + reply->planned > 0 ? ", and vnodes move: ringhold txn list"
                                                         : "");
    }
}

static void print_head(const Rh__AdminReply *reply)
{
    (void)printf("\ncluster %s  fleet %s\n",
                 reply->cluster,
                 reply->fleet[0] == '\0' ? "not founded yet" : reply->fleet);
    text_printf(2,
                "leader %u (term %" PRIu64 ")  ring version %s  number %s  moving %u  planned %u%s",
                reply->leader,
                reply->term,
                STAMP(reply->version),
                STAMP(reply->number),
                reply->pending,
                reply->planned,
                reply->planning ? " (planning)" : "");
}

static void print_notes(const Rh__AdminReply *reply)
{
    if (reply->pins_count > 0) {
        (void)printf("\n%" PRIu32 " pins: ringhold pin list\n", reply->pins_count);
    }
    print_remembered(reply);
    print_obstacles(reply);
    print_balance(reply);
    print_leases(reply);
    if (builds_mixed(reply)) {
        (void)printf("\nthe processes are not all of one version: see ringhold upgrade\n");
    }
}

/* After an empty line; not a table without rows, unless it is needed. */
static void print_part(const struct query *q, const struct rows *r, bool needed)
{
    if (needed || r->cell_count > 0) {
        (void)printf("\n");
        rows_print(r, q->format);
    }
}

static void print_table(const struct query *q, const Rh__AdminReply *reply, const struct tables *t,
                        const struct health *h)
{
    if (query_bare(q)) {
        rows_print(&t->nodes, q->format);
    } else {
        print_health(reply, h);
        print_head(reply);
        print_part(q, &t->nodes, true);
        print_shares(reply);
        print_load(reply);
    }
    print_part(q, &t->gateways, false);
    print_part(q, &t->coordinators, true);
    print_part(q, &t->roles, false);
    print_part(q, &t->zones, false);
    print_part(q, &t->quarantine, false);
    if (!query_bare(q)) {
        print_notes(reply);
    }
}

static void print_status(const struct query *q, const Rh__AdminReply *reply)
{
    static struct health health;
    struct tables t;

    health_of(reply, &health);
    put_coordinators(reply, &t.coordinators);
    put_nodes(reply, &t.nodes);
    put_gateways(reply, &t.gateways);
    put_roles(reply, &t.roles);
    put_zones(reply, &t.zones);
    quarantine_rows(reply, false, &t.quarantine);
    if (q->json) {
        print_json(reply, &t, &health);
    } else {
        print_table(q, reply, &t, &health);
    }
    rows_fini(&t.coordinators);
    rows_fini(&t.nodes);
    rows_fini(&t.gateways);
    rows_fini(&t.roles);
    rows_fini(&t.zones);
    rows_fini(&t.quarantine);
}

/* `before` is printed once there is an answer. */
static int show(const struct query *q, const char *before)
{
    Rh__AdminStatus what = RH__ADMIN_STATUS__INIT;

    Rh__AdminReply *reply = query_ask(q, &what.base);
    if (reply == NULL) {
        return 1;
    }
    (void)fputs(before, stdout);
    print_status(q, reply);
    admin_free(reply);
    return 0;
}

/* Until somebody ends it, or the output. On a terminal it is drawn over what was there, at once;
 * why there is no answer stands below it. */
static int show_again_and_again(const struct query *q)
{
    static char screenful[65536];
    const struct timespec pause = {.tv_sec = 1};
    const bool screen = isatty(STDOUT_FILENO) != 0 && !q->json;

    (void)setvbuf(stdout, screenful, _IOFBF, sizeof screenful);
    (void)fputs(screen ? "\033[H\033[J\0337" : "", stdout);
    while (ferror(stdout) == 0) {
        (void)fputs(screen ? "\0338\033[J" : "", stdout); // goes back to the end of the table
        (void)fflush(stdout);
        (void)show(q, screen ? "\033[H\033[J" : "");
        (void)fputs(screen ? "\0337" : q->json ? "" : "\n", stdout);
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
        .details = "P99 is a node's own view: 99 of 100 requests that its actors answered in the "
                   "last five "
                   "seconds took\nat most so long, from when they came to the node to the answer.",
        .options = query_options(&q, &watch_option),
    };
    const int code = query_parse(&q, &command, argc, argv);

    if (code >= 0) {
        return code;
    }
    return watch ? show_again_and_again(&q) : show(&q, "");
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * `ringhold ring`: lists every vnode and its owner.
 */
#include "base/stamp.h"
#include "cli/commands.h"
#include "cli/query.h"
#include "cli/ring_diff.h"

#include <stdio.h>

static void put_vnodes(const Rh__AdminReply *reply, struct rows *r)
{
    static const char *const columns[] = {"VNODE",
                                          "FROM",
                                          "TO",
                                          "OWNER",
                                          "GENERATION",
                                          "+COLD",
                                          "MOVING IN",
                                          "MOVING TO",
                                          "ROLE",
                                          NULL};

    rows_init(r, columns);
    for (size_t i = 0; i < reply->n_vnodes; i++) {
        const Rh__VnodeRow *v = reply->vnodes[i];

        rows_number(r, v->id);
        rows_number(r, v->from);
        rows_number(r, v->to);
        rows_text(r, "%s", v->owner);
        rows_stamp(r, v->generation);
        rows_stamp(r, v->cold);
        rows_stamp(r, v->txn);
        rows_text(r, "%s", v->to_node);
        rows_text(r, "%s", role_text(v->role));
    }
}

static int print_ring(const struct query *q)
{
    struct rows vnodes;
    char digest[33];

    Rh__AdminRing what = RH__ADMIN_RING__INIT;
    Rh__AdminReply *reply = query_ask(q, &what.base);
    if (reply == NULL) {
        return 1;
    }
    put_vnodes(reply, &vnodes);
    if (q->json) {
        (void)printf("{\"version\":\"%s\",\"digest\":\"%s\",\"vnodes\":",
                     STAMP(reply->version),
                     digest_text(reply->digest0, reply->digest1, digest));
        rows_print(&vnodes, ROWS_JSON);
        (void)printf("}\n");
    } else {
        if (!query_bare(q)) {
            (void)printf("ring version %s\n\n", STAMP(reply->version));
        }
        rows_print(&vnodes, q->format);
    }
    rows_fini(&vnodes);
    admin_free(reply);
    return 0;
}

int cmd_ring(int argc, char **argv)
{
    struct query q;
    char diff[16] = "";
    char role[64] = "";
    const struct option more[] = {
        option_text("diff",
                    "add|drain|remove|weight|balance",
                    diff,
                    sizeof diff,
                    "show what would move if NODE came, left, or had another WEIGHT, or if the "
                    "load were balanced"),
        option_text("role", "NAME", role, sizeof role, "role of a node to add (default)"),
    };
    const struct command command = {
        .name = "ring",
        .summary = "List every vnode: its cells, its owner, its generation, the move it is in.",
        .arguments = "[NODE [WEIGHT]]",
        .details = "--diff changes nothing. The leader plans as it would for the real change, as "
                   "if all pending\n"
                   "transactions were done. The number of actors is estimated from the node's "
                   "average; bytes and\n"
                   "time are estimated from the moves that the leader drove last.",
        .options = query_options_more(&q, more, sizeof more / sizeof more[0]),
        .arguments_max = 2,
    };
    const int code = query_parse(&q, &command, argc, argv);

    if (code >= 0) {
        return code;
    }
    if (diff[0] != '\0') {
        return ring_diff(&q, diff, role);
    }
    if (q.argument_count > 0 || role[0] != '\0') {
        (void)fprintf(stderr, "ringhold ring: NODE and --role need --diff\n");
        return 1;
    }
    return print_ring(&q);
}

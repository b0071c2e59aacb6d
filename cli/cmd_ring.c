/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"
#include "cli/query.h"

#include <inttypes.h>
#include <stdio.h>

static void put_vnodes(const Rh__AdminReply *reply, struct rows *r)
{
    static const char *const columns[] = {"VNODE",
                                          "FROM",
                                          "TO",
                                          "OWNER",
                                          "GENERATION",
                                          "COLD",
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
        rows_number(r, v->generation);
        rows_number(r, v->cold);
        rows_number(r, v->txn);
        rows_text(r, "%s", v->to_node);
        rows_text(r, "%s", role_text(v->role));
    }
}

int cmd_ring(int argc, char **argv)
{
    struct query q;
    const struct command command = {
        .name = "ring",
        .summary = "Every vnode: its cells, its owner, its generation, the move it is in.",
        .arguments = "",
        .options = query_options(&q, NULL),
    };
    const int code = query_parse(&q, &command, argc, argv);
    struct rows vnodes;
    char digest[33];

    if (code >= 0) {
        return code;
    }
    Rh__AdminRing what = RH__ADMIN_RING__INIT;
    Rh__Admin request = RH__ADMIN__INIT;
    request.what_case = RH__ADMIN__WHAT_RING;
    request.ring = &what;
    Rh__AdminReply *reply = query_ask(&q, &request);
    if (reply == NULL) {
        return 1;
    }
    put_vnodes(reply, &vnodes);
    (void)digest_text(reply->digest0, reply->digest1, digest);
    if (q.json) {
        (void)printf(
            "{\"version\":%" PRIu64 ",\"digest\":\"%s\",\"vnodes\":", reply->version, digest);
        rows_print_json(&vnodes);
        (void)printf("}\n");
    } else {
        (void)printf("ring version %" PRIu64 "  digest %s\n\n", reply->version, digest);
        rows_print_table(&vnodes);
    }
    rows_fini(&vnodes);
    admin_free(reply);
    return 0;
}

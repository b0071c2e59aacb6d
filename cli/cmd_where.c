/* SPDX-License-Identifier: Apache-2.0
 *
 * `ringhold where`: which node owns an id.
 */
#include "cli/commands.h"
#include "cli/query.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { ID_SIZE_MAX = 255, KIND_MAX = 65535 };

static int print_where(const struct query *q, const Rh__AdminReply *reply)
{
    if (reply->n_vnodes == 0) {
        (void)fprintf(stderr, "ringhold where: no node owns anything yet\n");
        return 1;
    }
    const Rh__VnodeRow *v = reply->vnodes[0];
    if (q->json) {
        (void)printf("{\"node\":");
        json_print_string(v->owner);
        (void)printf(",\"role\":");
        json_print_string(role_text(v->role));
        (void)printf(",\"vnode\":%u,\"generation\":%" PRIu64 ",\"version\":%" PRIu64
                     ",\"moving_in\":%" PRIu64 "}\n",
                     v->id,
                     v->generation,
                     reply->version,
                     v->txn);
    } else {
        (void)printf("node %s  role %s  vnode %u  generation %" PRIu64 "  ring version %" PRIu64
                     "\n",
                     v->owner,
                     role_text(v->role),
                     v->id,
                     v->generation,
                     reply->version);
        if (v->txn != 0) {
            (void)printf("moving to %s in transaction %" PRIu64 "\n", v->to_node, v->txn);
        }
    }
    return 0;
}

int cmd_where(int argc, char **argv)
{
    struct query q;
    uint32_t kind = 0;
    const struct option kind_option =
        option_number("kind", &kind, (struct option_range){0, KIND_MAX}, "kind of the entity (0)");
    const struct command command = {
        .name = "where",
        .summary = "Show which node owns an id, by the leader's ring.",
        .arguments = "ID",
        .options = query_options(&q, &kind_option),
        .arguments_min = 1,
        .arguments_max = 1,
    };
    int code = query_parse(&q, &command, argc, argv);

    if (code >= 0) {
        return code;
    }
    const size_t size = strlen(q.arguments[0]);
    if (size == 0 || size > ID_SIZE_MAX) {
        (void)fprintf(stderr, "ringhold where: an id has 1 to %d bytes\n", ID_SIZE_MAX);
        return 1;
    }
    Rh__AdminWhere what = RH__ADMIN_WHERE__INIT;
    uint8_t id[ID_SIZE_MAX];
    memcpy(id, q.arguments[0], size);
    what.kind = kind;
    what.id = (ProtobufCBinaryData){.len = size, .data = id};
    Rh__AdminReply *reply = query_ask(&q, &what.base);
    if (reply == NULL) {
        return 1;
    }
    code = print_where(&q, reply);
    admin_free(reply);
    return code;
}

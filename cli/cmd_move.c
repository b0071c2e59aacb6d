/* SPDX-License-Identifier: Apache-2.0
 *
 * `ringhold move`: an operator, or a program of his, says which vnodes move where.
 */
#include "cli/commands.h"
#include "cli/move_list.h"
#include "cli/query.h"
#include "cli/ring_diff.h"
#include "ring/ring.h"

#include <stdio.h>
#include <string.h>

static bool read_moves(const struct query *q, const char *path, Rh__AdminMove *what)
{
    uint32_t vnode;

    if (path[0] != '\0' && q->argument_count == 0) {
        return move_list_read(path, what);
    }
    if (path[0] != '\0' || q->argument_count != 2) {
        (void)fprintf(stderr, "ringhold move: use VNODE NODE, or --json FILE\n");
        return false;
    }
    if (!query_number(
            "move", "VNODE", q->arguments[0], (struct option_range){0, RING_VNODES_MAX}, &vnode)) {
        return false;
    }
    move_list_add(what, vnode, q->arguments[1]);
    return true;
}

static int ask(const struct query *q, Rh__AdminMove *what)
{
    if (!what->dry_run) {
        if (!query_do(q, &what->base, NULL)) {
            return 1;
        }
        query_next(q,
                   what->once
                       ? "`ringhold txn list` shows the move"
                       : "`ringhold pin list` shows when it is there, `ringhold txn list` its "
                         "way; `ringhold unpin VNODE` lets the planner move it again");
        return 0;
    }
    Rh__AdminReply *reply = query_ask(q, &what->base);
    if (reply == NULL) {
        return 1;
    }
    ring_diff_print(q, reply);
    admin_free(reply);
    return 0;
}

int cmd_move(int argc, char **argv)
{
    struct query q;
    bool once = false;
    bool rehearses = false;
    char path[256] = "";
    char if_dead[8] = "hash";
    const struct option more[] = {
        option_switch(
            "once", &once, "do not pin it: the planner may move it again, once it is there"),
        option_text("if-dead",
                    "hash|wait",
                    if_dead,
                    sizeof if_dead,
                    "while NODE is dead, others get it by hash, or it waits for NODE (%)"),
        option_text("json",
                    "FILE",
                    path,
                    sizeof path,
                    "the moves: [{\"vnode\":7,\"node\":\"n2\"}, ...]; - reads stdin"),
        option_switch("dry-run", &rehearses, "only show what would move"),
        query_reason(&q),
    };
    const struct command command = {
        .name = "move",
        .summary = "Move vnodes to nodes, by transactions that drain them, like the planner's.",
        .arguments = "[VNODE NODE]",
        .details =
            "A vnode that was moved is pinned to NODE (`ringhold pin`), so that the planner\n"
            "leaves it there. Of a list all vnodes move; if one of them can't, none does. The\n"
            "coordinators' options --moves-at-once and --moves-per-node bound how many move at a\n"
            "time.",
        .options = query_options_more(&q, more, sizeof more / sizeof more[0]),
        .arguments_max = 2,
    };
    int code = query_parse(&q, &command, argc, argv);
    Rh__AdminMove what = RH__ADMIN_MOVE__INIT;

    if (code >= 0) {
        return code;
    }
    what.waits = strcmp(if_dead, "wait") == 0;
    if (!what.waits && strcmp(if_dead, "hash") != 0) {
        (void)fprintf(stderr, "ringhold move: --if-dead must be hash or wait\n");
        return 1;
    }
    what.once = once;
    what.dry_run = rehearses;
    what.by = query_who();
    what.reason = q.reason;
    code = read_moves(&q, path, &what) ? ask(&q, &what) : 1;
    move_list_free(&what);
    return code;
}

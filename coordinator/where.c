/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes the JSON of /where: where an actor lives, since when, and under which fence.
 */
#include "coordinator/overview.h"

#include "base/history.h"
#include "base/stamp.h"
#include "coordinator/actor_of.h"
#include "daemon/json.h"
#include "wire/control.h"

enum { ASK_MS = 1000 };

/* How it lives at its owner, as `ringhold where` tells. */
static void put_life(struct admin *a, const Rh__AdminWhere *whom, const char *node,
                     struct buffer *out)
{
    Rh__AdminActors what = RH__ADMIN_ACTORS__INIT;

    what.node = proto_text(node);
    what.kind = whom->kind;
    what.prefix = whom->id;
    what.whole = true;
    Rh__AdminReply *reply = admin_try(a, &what.base, ASK_MS);
    const Rh__ActorsAnswer *answer = reply == NULL ? NULL : reply->actors;
    if (answer == NULL) {
        json_text(out, "state", "unknown");
    } else if (answer->n_rows == 0) {
        json_text(out, "state", "none");
    } else {
        const Rh__ActorRow *row = answer->rows[0];

        json_text(out, "state", row->state);
        json_number(out, "unused_ms", row->unused_ms);
        json_text(out,
                  "came",
                  row->came == RESIDENT_STARTED ? "start"
                  : row->came == RESIDENT_MOVED ? "move"
                                                : "");
        json_number(out, "here_ms", row->here_ms);
    }
    admin_free(reply);
}

static void put_vnode(const Rh__VnodeRow *v, struct buffer *out)
{
    char word[HISTORY_WORD_SIZE] = "";

    if (v->tag.len > 0) {
        (void)history_word(bytes_of(v->tag.data, v->tag.len), word);
    }
    json_text(out, "node", v->owner);
    json_text(out, "role", role_text(v->role));
    json_number(out, "vnode", v->id);
    json_text(out, "fence", STAMP(v->generation)); // of the actor, while that node owns the vnode
    json_text(out, "moving_to", v->txn == 0 ? "" : v->to_node);
    json_text(out, "tag", word);
    json_text(out, "moved_from", v->moved_from);
    json_text(out, "moved_why", v->moved_txn == 0 ? "" : v->moved_why);
    json_number(out, "moved_ms", v->moved_us_ago / 1000);
}

/* The answer, or why there is none. */
static enum http_told put_found(struct admin *a, Rh__AdminWhere *what, struct buffer *out)
{
    Rh__AdminReply *reply = a == NULL ? NULL : admin_try(a, &what->base, ASK_MS);
    const enum http_told told = reply == NULL ? HTTP_TOLD_NOT
                                : reply->error[0] != '\0' || reply->n_vnodes == 0
                                    ? HTTP_TOLD_REFUSED
                                    : HTTP_TOLD;

    if (told == HTTP_TOLD) {
        put_vnode(reply->vnodes[0], out);
        put_life(a, what, reply->vnodes[0]->owner, out);
    } else {
        json_text(out,
                  "error",
                  reply == NULL             ? "no coordinator answers as leader"
                  : reply->error[0] == '\0' ? "the leader does not tell"
                                            : reply->error);
    }
    admin_free(reply);
    return told;
}

enum http_told overview_put_where(void *overview, const char *id, struct buffer *out)
{
    Rh__AdminWhere what = RH__ADMIN_WHERE__INIT;
    Rh__Actor actor = RH__ACTOR__INIT;
    struct actor_name room;
    char word[HISTORY_WORD_SIZE];
    enum http_told told = HTTP_TOLD_MALFORMED;

    json_begin(out, NULL, '{');
    json_number(out, "schema", 1);
    if (id == NULL || !actor_of(id, &actor, &room)) {
        json_text(out, "error", "id: must be ID or KIND/ID, such as 3/boss-7");
    } else {
        struct admin *a = overview_ask(overview);

        what.kind = actor.kind;
        what.id = actor.id;
        json_number(out, "kind", what.kind);
        json_text(out, "id", history_word(bytes_of(what.id.data, what.id.len), word));
        told = put_found(a, &what, out);
        admin_close(a);
    }
    json_end(out, '}');
    return told;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * `ringhold where`: which node owns an id, does it live there, and how did it get there?
 */
#include "base/clock.h"
#include "base/history.h"
#include "base/stamp.h"
#include "cli/actor_word.h"
#include "cli/commands.h"
#include "cli/query.h"
#include "wire/control.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum {
    SINCE_SIZE = 128,
    NO_KIND = ACTOR_KIND_MAX + 1,
    LIFE_WAIT_MS = 1000 /* for an owner that hangs */
};

/* How it lives at its owner; "none": it does not, "unknown": the owner does not tell. */
struct liveness {
    char state[32];
    uint64_t unused_ms; /* UINT64_MAX: it does not live, or is not known to */
    uint32_t came;      /* enum resident_came; 0 = the owner does not tell */
    uint64_t here_ms;   /* since then; 0 = not known */
};

static struct liveness ask_life(const struct query *q, const char *node, const Rh__AdminWhere *whom)
{
    struct liveness life = {.state = "unknown", .unused_ms = UINT64_MAX};
    Rh__AdminActors what = RH__ADMIN_ACTORS__INIT;

    what.node = proto_text(node);
    what.kind = whom->kind;
    what.prefix = whom->id;
    what.whole = true;
    Rh__AdminReply *reply =
        query_try(q, &what.base, q->timeout_ms < LIFE_WAIT_MS ? q->timeout_ms : LIFE_WAIT_MS);
    if (reply != NULL && reply->actors != NULL && reply->actors->n_rows > 0) {
        const Rh__ActorRow *row = reply->actors->rows[0];

        (void)snprintf(life.state, sizeof life.state, "%s", row->state);
        life.unused_ms = row->unused_ms;
        life.came = row->came;
        life.here_ms = row->here_ms;
    } else if (reply != NULL && reply->actors != NULL) {
        (void)snprintf(life.state, sizeof life.state, "none");
    }
    admin_free(reply);
    return life;
}

/* How it came to live there. */
static const char *came_text(const struct liveness *life)
{
    if (life->came == RESIDENT_STARTED) {
        return ", where it was started";
    }
    return life->here_ms == 0 || strcmp(life->state, "arrived") == 0 ? "" : ", by a move";
}

/* By this machine's clock. */
static const char *since_text(const struct liveness *life, char out[SINCE_SIZE])
{
    const time_t at = (time_t)((clock_wall_us() / 1000 - life->here_ms) / 1000);
    struct tm tm;
    char when[32] = "";
    char ago[32];

    out[0] = '\0';
    if (life->here_ms > 0 && gmtime_r(&at, &tm) != NULL &&
        strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", &tm) > 0) {
        (void)snprintf(
            out, SINCE_SIZE, ", since %s (%s)", when, span_text(life->here_ms, ago, sizeof ago));
    }
    return out;
}

static void print_coming_json(const struct liveness *life)
{
    (void)printf(",\"came\":");
    json_print_string(life->came == RESIDENT_STARTED ? "start"
                      : life->came == RESIDENT_MOVED ? "move"
                                                     : "");
    (void)printf(",\"here_ms\":");
    if (life->here_ms > 0) {
        (void)printf("%" PRIu64, life->here_ms);
    } else {
        (void)printf("null");
    }
}

static void print_life(const struct query *q, const struct liveness *life)
{
    const bool lives = life->unused_ms != UINT64_MAX;
    char text[32];
    char since[SINCE_SIZE];

    if (q->json) {
        (void)printf(",\"state\":");
        json_print_string(life->state);
        (void)printf(",\"unused_ms\":");
        if (lives) {
            (void)printf("%" PRIu64, life->unused_ms);
        } else {
            (void)printf("null");
        }
        print_coming_json(life);
    } else if (strcmp(life->state, "arrived") == 0) {
        (void)printf("it came there by a move%s, and its next message starts it\n",
                     since_text(life, since));
    } else if (lives) {
        (void)printf("it lives there%s%s: %s, last asked %s ago\n",
                     came_text(life),
                     since_text(life, since),
                     life->state,
                     duration_text(life->unused_ms * 1000, text, sizeof text));
    } else if (strcmp(life->state, "none") == 0) {
        (void)printf("it does not live there now\n");
    }
}

/* The last move of its vnode; an older leader does not tell. */
static void print_move(const struct query *q, const Rh__VnodeRow *v)
{
    const uint64_t ago_ms = v->moved_us_ago / 1000;
    char ago[32];

    if (q->json) {
        json_print_stamp("moved_in", v->moved_txn);
        (void)printf(",\"moved_from\":");
        json_print_string(v->moved_from);
        (void)printf(",\"moved_to\":");
        json_print_string(v->moved_to);
        (void)printf(",\"moved_why\":");
        json_print_string(v->moved_why);
        (void)printf(",\"moved_ms_ago\":");
        if (v->moved_txn != 0) {
            (void)printf("%" PRIu64, ago_ms);
        } else {
            (void)printf("null");
        }
    } else if (v->moved_txn != 0) {
        (void)printf("last moved%s%s%s%s in transaction %s, %s ago: %s\n",
                     v->moved_from[0] == '\0' ? "" : " from ",
                     v->moved_from,
                     v->moved_to[0] == '\0' ? "" : " to ",
                     v->moved_to,
                     STAMP(v->moved_txn),
                     span_text(ago_ms, ago, sizeof ago),
                     v->moved_why);
    }
}

static int print_where(const struct query *q, const Rh__AdminReply *reply,
                       const Rh__AdminWhere *whom)
{
    if (reply->n_vnodes == 0) {
        (void)fprintf(stderr, "ringhold where: no node owns anything yet\n");
        return 1;
    }
    const Rh__VnodeRow *v = reply->vnodes[0];
    const struct liveness life = ask_life(q, v->owner, whom);
    char tag[HISTORY_WORD_SIZE] = "";
    char name[ACTOR_NAME_SIZE];
    if (v->tag.len > 0) {
        (void)history_word(bytes_of(v->tag.data, v->tag.len), tag);
    }
    (void)actor_name_print(whom->kind, bytes_of(whom->id.data, whom->id.len), name);
    if (q->json) {
        (void)printf("{\"actor\":");
        json_print_string(name);
        (void)printf(",\"node\":");
        json_print_string(v->owner);
        (void)printf(",\"role\":");
        json_print_string(role_text(v->role));
        (void)printf(",\"vnode\":%u", v->id);
        json_print_stamp("generation", v->generation);
        json_print_stamp("version", reply->version);
        json_print_stamp("moving_in", v->txn);
        (void)printf(",\"tag\":");
        json_print_string(tag);
        print_life(q, &life);
        print_move(q, v);
        (void)printf("}\n");
    } else {
        (void)printf("actor %s  node %s  role %s  vnode %u  generation %s  ring version %s\n",
                     name,
                     v->owner,
                     role_text(v->role),
                     v->id,
                     STAMP(v->generation),
                     STAMP(reply->version));
        if (tag[0] != '\0') {
            (void)printf("tag %s decides: with it live all ids that have it\n", tag);
        }
        if (v->txn != 0) {
            (void)printf("moving to %s in transaction %s\n", v->to_node, STAMP(v->txn));
        }
        print_life(q, &life);
        print_move(q, v);
    }
    return 0;
}

int cmd_where(int argc, char **argv)
{
    struct query q;
    uint32_t kind = NO_KIND;
    const struct option kind_option =
        option_number("kind",
                      &kind,
                      (struct option_range){0, ACTOR_KIND_MAX},
                      "of an earlier version: the kind of ID; write KIND/ID");
    const struct command command = {
        .name = "where",
        .summary = "Show which node owns an actor, by the leader's ring, whether it lives there, "
                   "and its last move.",
        .arguments = "KIND/ID",
        .options = query_options(&q, &kind_option),
        .arguments_min = 1,
        .arguments_max = 1,
    };
    q.prose = true;
    int code = query_parse(&q, &command, argc, argv);

    if (code >= 0) {
        return code;
    }
    Rh__AdminWhere what = RH__ADMIN_WHERE__INIT;
    Rh__Actor actor = RH__ACTOR__INIT;
    uint8_t id[ACTOR_ID_MAX];
    if (kind == NO_KIND ? !actor_read_short(&q, command.name, q.arguments[0], &actor, id)
                        : !actor_read_of_kind(command.name, kind, q.arguments[0], &actor, id)) {
        return 1;
    }
    what.kind = actor.kind;
    what.id = actor.id;
    Rh__AdminReply *reply = query_ask(&q, &what.base);
    if (reply == NULL) {
        return 1;
    }
    code = print_where(&q, reply, &what);
    admin_free(reply);
    return code;
}

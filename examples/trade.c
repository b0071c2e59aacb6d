/* SPDX-License-Identifier: Apache-2.0
 *
 * Players who give each other gold. None is lost and none is made, whatever dies.
 *
 *     CALL ann "earn 10"          10       from nowhere
 *     CALL ann "give bob 3 g1"    7        gift g1: hers is 3 less at once, bob's 3 more soon
 *     CALL ann "gold"             7
 *
 * A gift is first taken away and put into an outbox, in one transaction of the store; then it is
 * sent, again and again until bob says that he has it. Bob notes which gifts he took, in the
 * transaction that adds the gold: one that comes twice counts once. Whoever asks for a gift names
 * it, and asks again by that name when the outcome is unknown. So nobody waits for anybody in the
 * midst of a message.
 *
 *     cc -shared -fPIC $(pkg-config --cflags ringhold) trade.c -lsqlite3 -o trade.so
 *     ringhold node --actor ./trade.so=players.db …
 */
#include <ringhold.h>

#include <inttypes.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { AGAIN_MS = 500, NAME_SIZE = 64 };

/* What all players of a node share. Workers run side by side: one at a time in here. */
struct store {
    pthread_mutex_t lock;
    sqlite3 *db;
};

struct player {
    int64_t gold;
    int64_t sent; /* number of the gift that is on its way */
    bool sends;   /* a gift of its outbox is on its way, or a timer is set for it */
};

/* ?1 = id, ?2 = fence, ?3 = number, ?4 = amount, ?5 = the other one, ?6 = the gift's name. */
struct gift {
    int64_t number, amount;
    char other[NAME_SIZE], name[NAME_SIZE];
};

static const char schema[] =
    "PRAGMA journal_mode=WAL;"
    "CREATE TABLE IF NOT EXISTS player(id TEXT PRIMARY KEY, fence INTEGER, gold INTEGER);"
    "CREATE TABLE IF NOT EXISTS gift(id TEXT, number INTEGER, amount INTEGER, other TEXT, name "
    "TEXT,"
    " taken INTEGER, PRIMARY KEY(id, number), UNIQUE(id, name));"
    "CREATE TABLE IF NOT EXISTS took(id TEXT, other TEXT, number INTEGER, PRIMARY KEY(id, other));";

static int on_start(const struct rh_kind_info *info, void **shared)
{
    const char *file = info->argument[0] == '\0' ? "players.db" : info->argument;
    struct store *s = calloc(1, sizeof *s);

    if (s == NULL || pthread_mutex_init(&s->lock, NULL) != 0 ||
        sqlite3_open(file, &s->db) != SQLITE_OK || sqlite3_busy_timeout(s->db, 5000) != SQLITE_OK ||
        sqlite3_exec(s->db, schema, NULL, NULL, NULL) != SQLITE_OK) {
        (void)fprintf(
            stderr, "trade: %s: %s\n", file, s == NULL ? "no memory" : sqlite3_errmsg(s->db));
        return RH_FAILED;
    }
    *shared = s;
    return RH_OK;
}

/* Run one statement, under the lock. How many rows came or changed, -1 = it failed. A row that came
 * is amount, number, the other one. */
static int run(struct rh_actor *actor, const char *sql, struct gift *g)
{
    sqlite3 *db = ((struct store *)rh_shared(actor))->db;
    const struct rh_bytes id = rh_id(actor);
    sqlite3_stmt *q = NULL;

    if (sqlite3_prepare_v2(db, sql, -1, &q, NULL) != SQLITE_OK) {
        return -1;
    }
    (void)sqlite3_bind_text(q, 1, id.data, (int)id.size, SQLITE_STATIC);
    (void)sqlite3_bind_int64(q, 2, (sqlite3_int64)rh_fence(actor));
    (void)sqlite3_bind_int64(q, 3, g->number);
    (void)sqlite3_bind_int64(q, 4, g->amount);
    (void)sqlite3_bind_text(q, 5, g->other, -1, SQLITE_TRANSIENT);
    (void)sqlite3_bind_text(q, 6, g->name, -1, SQLITE_TRANSIENT);
    int step = sqlite3_step(q);
    int rows = step == SQLITE_ROW ? 1 : 0;
    if (step == SQLITE_ROW) {
        g->amount = sqlite3_column_int64(q, 0);
        if (sqlite3_column_count(q) == 3) {
            g->number = sqlite3_column_int64(q, 1);
            (void)snprintf(
                g->other, sizeof g->other, "%s", (const char *)sqlite3_column_text(q, 2));
        }
        step = sqlite3_step(q);
    } else if (sqlite3_stmt_readonly(q) == 0) {
        rows = sqlite3_changes(db);
    }
    (void)sqlite3_finalize(q);
    return step == SQLITE_DONE ? rows : -1;
}

/* What lies between these two happens as a whole, or not at all. */
static bool begin(struct store *s)
{
    (void)pthread_mutex_lock(&s->lock);
    return sqlite3_exec(s->db, "BEGIN IMMEDIATE", NULL, NULL, NULL) == SQLITE_OK;
}

static bool end(struct store *s, bool done)
{
    done = sqlite3_exec(s->db, done ? "COMMIT" : "ROLLBACK", NULL, NULL, NULL) == SQLITE_OK && done;
    if (sqlite3_get_autocommit(s->db) == 0) {
        (void)sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
    }
    (void)pthread_mutex_unlock(&s->lock);
    return done;
}

/* One statement that is a transaction by itself. */
static int run_alone(struct rh_actor *actor, const char *sql, struct gift *g)
{
    struct store *s = rh_shared(actor);

    (void)pthread_mutex_lock(&s->lock);
    const int rows = run(actor, sql, g);
    (void)pthread_mutex_unlock(&s->lock);
    return rows;
}

/* A newer owner has the row, or the store is away: begin afresh from what it has. */
static void fail(struct rh_actor *actor)
{
    (void)rh_fail(actor, "ERR it was not saved: ask again, by the same name");
}

/* ---- the outbox ---- */

static void send_next(struct rh_actor *actor, struct player *p);

/* Its number is the argument. Taken, it leaves the outbox; else it is sent again, whatever became
 * of it: who took it before says so. */
static void on_taken(struct rh_actor *actor, void *instance, const struct rh_answer *answer,
                     void *argument)
{
    struct player *p = instance;
    struct gift g = {.number = p->sent};

    (void)argument;
    p->sends = false;
    if (answer->status == RH_OK &&
        run_alone(actor, "UPDATE gift SET taken = 1 WHERE id = ?1 AND number = ?3", &g) == 1) {
        send_next(actor, p);
    } else {
        p->sends = rh_timer_start(actor, AGAIN_MS, 0, NULL) != 0;
    }
}

/* One after the other: so they come in order, and the other side needs to note the last one only.
 */
static void send_next(struct rh_actor *actor, struct player *p)
{
    struct gift g = {0};
    char text[64];
    const int rows = p->sends ? 0
                              : run_alone(actor,
                                          "SELECT amount, number, other FROM gift"
                                          " WHERE id = ?1 AND taken = 0 ORDER BY number LIMIT 1",
                                          &g);

    if (rows == 0) {
        return;
    }
    (void)snprintf(text, sizeof text, "take %" PRId64 " %" PRId64, g.amount, g.number);
    const struct rh_bytes whom = {g.other, strlen(g.other)};
    const struct rh_bytes what = {text, strlen(text)};

    p->sent = g.number;
    p->sends = (rows == 1 && rh_call(actor, 0, whom, what, 5000, 0, on_taken, NULL) == RH_OK) ||
               rh_timer_start(actor, AGAIN_MS, 0, NULL) != 0;
}

static void on_timer(struct rh_actor *actor, void *instance, uint64_t timer, void *argument)
{
    struct player *p = instance;

    (void)timer, (void)argument;
    p->sends = false;
    send_next(actor, p);
}

/* Whoever has something in the outbox has to live without being asked. */
static int on_list(void *shared, struct rh_ids *out)
{
    struct store *s = shared;
    sqlite3_stmt *q = NULL;
    int step = SQLITE_ERROR;

    (void)pthread_mutex_lock(&s->lock);
    if (sqlite3_prepare_v2(s->db, "SELECT DISTINCT id FROM gift WHERE taken = 0", -1, &q, NULL) ==
        SQLITE_OK) {
        while ((step = sqlite3_step(q)) == SQLITE_ROW) {
            const char *id = (const char *)sqlite3_column_text(q, 0);

            rh_ids_put(out, (struct rh_bytes){id, strlen(id)});
        }
    }
    (void)sqlite3_finalize(q);
    (void)pthread_mutex_unlock(&s->lock);
    return step == SQLITE_DONE ? RH_OK : RH_FAILED;
}

/* ---- the life of a player ---- */

/* Raise the row's fence to mine and read it, in one statement; no row comes if a newer owner has
 * it. */
static int on_activate(struct rh_actor *actor, const struct rh_bytes *state, uint64_t fence,
                       void **instance)
{
    struct player *p = calloc(1, sizeof *p);
    struct gift g = {0};

    (void)state, (void)fence;
    if (p == NULL || run_alone(actor,
                               "INSERT INTO player VALUES(?1, ?2, 0) ON CONFLICT(id) DO UPDATE"
                               " SET fence = ?2 WHERE fence <= ?2 RETURNING gold",
                               &g) != 1) {
        free(p);
        return RH_FAILED;
    }
    p->gold = g.amount;
    p->sends = rh_timer_start(actor, 1, 0, NULL) != 0; /* what a former life has left */
    *instance = p;
    return RH_OK;
}

/* All is saved before it is answered. But it does not go to sleep on its outbox. */
static int on_flush(struct rh_actor *actor, void *instance, enum rh_why why, uint64_t fence)
{
    const struct player *p = instance;

    (void)actor, (void)fence;
    return why == RH_IDLE && p->sends ? RH_FAILED : RH_OK;
}

static void on_deactivate(struct rh_actor *actor, void *instance, enum rh_why why)
{
    (void)actor, (void)why;
    free(instance);
}

/* ---- what it is asked ---- */

static void earn(struct rh_actor *actor, struct player *p, struct gift *g)
{
    if (run_alone(actor, "UPDATE player SET gold = gold + ?4 WHERE id = ?1 AND fence = ?2", g) !=
        1) {
        fail(actor);
        return;
    }
    p->gold += g->amount;
    (void)rh_reply(actor, rh_integer(p->gold));
}

/* Of the same name it is the same gift, asked for again. */
static void give(struct rh_actor *actor, struct player *p, struct gift *g)
{
    struct store *s = rh_shared(actor);
    struct gift before = *g;

    if (g->other[0] == '\0' || g->name[0] == '\0' ||
        (strlen(g->other) == rh_id(actor).size &&
         memcmp(g->other, rh_id(actor).data, rh_id(actor).size) == 0)) {
        (void)rh_reply(actor, rh_error("ERR that is nobody to give to"));
        return;
    }
    bool done = begin(s);
    const bool known =
        done && run(actor, "SELECT 1 FROM gift WHERE id = ?1 AND name = ?6", &before) == 1;
    if (done && !known && g->amount > p->gold) {
        (void)end(s, false);
        (void)rh_reply(actor, rh_error("ERR you have not got that much"));
        return;
    }
    done =
        done &&
        (known ||
         (run(actor, "UPDATE player SET gold = gold - ?4 WHERE id = ?1 AND fence = ?2", g) == 1 &&
          run(actor,
              "INSERT INTO gift SELECT ?1, coalesce(max(number), 0) + 1, ?4,"
              " ?5, ?6, 0 FROM gift WHERE id = ?1",
              g) == 1));
    if (!end(s, done)) {
        fail(actor);
        return;
    }
    p->gold -= known ? 0 : g->amount;
    (void)rh_reply(actor, rh_integer(p->gold));
    send_next(actor, p);
}

/* Only what came after the last one of the same player is new. */
static void take(struct rh_actor *actor, struct player *p, struct gift *g)
{
    struct store *s = rh_shared(actor);
    struct gift before = *g;

    if (g->other[0] == '\0') {
        (void)rh_reply(actor, rh_error("ERR your name is too long"));
        return;
    }
    bool done = begin(s);
    const bool known =
        done &&
        run(actor, "SELECT 1 FROM took WHERE id = ?1 AND other = ?5 AND number >= ?3", &before) ==
            1;

    done =
        done &&
        (known ||
         (run(actor, "UPDATE player SET gold = gold + ?4 WHERE id = ?1 AND fence = ?2", g) == 1 &&
          run(actor,
              "INSERT INTO took VALUES(?1, ?5, ?3)"
              " ON CONFLICT(id, other) DO UPDATE SET number = ?3",
              g) == 1));
    if (!end(s, done)) {
        fail(actor);
        return;
    }
    p->gold += known ? 0 : g->amount;
    (void)rh_reply(actor, rh_text("OK"));
}

/* A name that fits; else none. */
static void copy_name(char to[NAME_SIZE], const char *name, size_t size)
{
    if (size < NAME_SIZE) {
        memcpy(to, name, size);
        to[size] = '\0';
    }
}

static void on_message(struct rh_actor *actor, void *instance, const struct rh_message *message)
{
    const struct rh_bytes from = message->from;
    struct player *p = instance;
    struct gift g = {0};
    char text[128];
    char *word[4] = {0};
    char *rest = NULL;
    int count = 0;

    (void)snprintf(text,
                   sizeof text,
                   "%.*s",
                   (int)message->payload.size,
                   message->payload.size == 0 ? "" : (const char *)message->payload.data);
    for (char *at = strtok_r(text, " ", &rest); at != NULL && count < 4;
         at = strtok_r(NULL, " ", &rest)) {
        word[count++] = at;
    }
    const char *verb = count == 0 ? "" : word[0];
    if (count == 1 && strcmp(verb, "gold") == 0) {
        (void)rh_reply(actor, rh_integer(p->gold));
    } else if (count == 2 && strcmp(verb, "earn") == 0 &&
               (g.amount = strtoll(word[1], NULL, 10)) > 0) {
        earn(actor, p, &g);
    } else if (count == 4 && strcmp(verb, "give") == 0 &&
               (g.amount = strtoll(word[2], NULL, 10)) > 0) {
        copy_name(g.other, word[1], strlen(word[1]));
        copy_name(g.name, word[3], strlen(word[3]));
        give(actor, p, &g);
    } else if (count == 3 && strcmp(verb, "take") == 0 && message->from_kind == 0 &&
               from.size > 0) {
        copy_name(g.other, from.data, from.size);
        g.amount = strtoll(word[1], NULL, 10);
        g.number = strtoll(word[2], NULL, 10);
        take(actor, p, &g);
    } else {
        (void)rh_reply(actor, rh_error("ERR a player knows: earn N, give WHOM N NAME, gold"));
    }
}

const struct rh_actor_ops ringhold_actor = {
    .abi = RH_ABI,
    .size = sizeof(struct rh_actor_ops),
    .name = "player",
    .start = on_start,
    .activate = on_activate,
    .message = on_message,
    .deactivate = on_deactivate,
    .timer = on_timer,
    .flush = on_flush,
    .list = on_list,
};

/* SPDX-License-Identifier: Apache-2.0
 *
 * Follows a drain until the node is empty: a bar on a terminal, lines elsewhere.
 */
#include "cli/drain_watch.h"

#include "base/clock.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    LOOK_AGAIN_MS = 250,
    FIRST_US = 200000,
    BAR_MAX = 30,
    BAR_MIN = 5,
    TXNS_MAX = 100,
    BLOCKER_SIZE = 256,
    BLOCKER_SHOWN = 92,
    LINE_SIZE = 320,
    REST_SIZE = 160
};

/* One look at the drain. */
struct progress {
    bool here;  /* it is a member */
    bool moves; /* a transaction that is under way may give it vnodes still */
    uint32_t left;
    uint64_t actors;
    uint64_t wait_us;           /* something that is planned begins in so long only; 0 = nothing */
    char blocker[BLOCKER_SIZE]; /* "for n2: …", ": …"; "" = none */
};

struct watch {
    const char *name; /* borrowed */
    bool terminal;
    uint64_t begin_us;
    uint64_t looked_us;
    uint64_t waited_us; /* nothing moved, and would not before a time */
    uint32_t start;     /* vnodes that it had at first */
    uint32_t last_part; /* tenths that were told; not on a terminal */
    char last_blocker[BLOCKER_SIZE];
    char told_blocker[BLOCKER_SIZE];
};

static volatile sig_atomic_t interrupted;

static void on_interrupt(int number)
{
    (void)number;
    interrupted = 1;
}

/* ---- looking ---- */

static Rh__AdminReply *ask_nodes(struct admin *a, uint32_t timeout_ms)
{
    Rh__AdminNodes what = RH__ADMIN_NODES__INIT;

    return admin_ask(a, &what.base, timeout_ms);
}

static Rh__AdminReply *ask_txns(struct admin *a, uint32_t timeout_ms)
{
    Rh__AdminTxns what = RH__ADMIN_TXNS__INIT;

    what.limit = TXNS_MAX;
    return admin_try(a, &what.base, timeout_ms);
}

/* Whom the oldest pending transaction that takes something off the node waits for. */
static void find_blocker(const Rh__AdminReply *txns, const char *name, char out[BLOCKER_SIZE])
{
    out[0] = '\0';
    for (size_t i = 0; i < txns->n_txns; i++) { // newest first
        const Rh__TxnRow *t = txns->txns[i];

        if (strcmp(t->state, "pending") == 0 && t->waiting_for[0] != '\0' && t->n_moves > 0 &&
            strcmp(t->moves[0]->from, name) == 0) {
            (void)snprintf(out, BLOCKER_SIZE, " for %s", t->waiting_for);
        }
    }
}

/* Of what is planned for the drain, or for anybody, what waits longest counts; and is told, if
 * nothing that moves is held up. */
static void find_wait(const Rh__AdminReply *nodes, const char *name, struct progress *out)
{
    const Rh__ObstacleRow *longest = NULL;

    for (size_t i = 0; i < nodes->n_obstacles; i++) {
        const Rh__ObstacleRow *o = nodes->obstacles[i];
        const bool anybodys = o->node[0] == '\0' && o->transactions == 0 && o->vnodes == 0;
        const bool mine = strcmp(o->drains, name) == 0 || anybodys;

        if (mine && (longest == NULL || o->left_us > longest->left_us)) {
            longest = o;
        }
    }
    if (longest != NULL) {
        out->wait_us = longest->left_us;
    }
    if (longest != NULL && !out->moves && out->blocker[0] == '\0') {
        (void)snprintf(out->blocker, BLOCKER_SIZE, ": %s", longest->text);
    }
}

/* False: no coordinator answers, and why is printed. */
static bool look(struct admin *a, const struct query *q, const char *name, struct progress *out)
{
    Rh__AdminReply *nodes = ask_nodes(a, q->timeout_ms);
    Rh__AdminReply *txns = nodes == NULL ? NULL : ask_txns(a, q->timeout_ms);

    *out = (struct progress){.left = 0};
    if (nodes == NULL) {
        return false;
    }
    for (size_t i = 0; i < nodes->n_nodes; i++) {
        const Rh__NodeRow *n = nodes->nodes[i];

        if (strcmp(n->member->name, name) == 0) {
            out->here = true;
            out->left = n->vnodes;
            out->moves = n->moves;
            out->actors = n->actors;
        }
    }
    if (txns != NULL) {
        find_blocker(txns, name, out->blocker);
    }
    find_wait(nodes, name, out);
    if (out->left == 0 && out->moves && out->blocker[0] == '\0') {
        (void)snprintf(out->blocker,
                       BLOCKER_SIZE,
                       ": a transaction that is under way may still give it vnodes; it ends first");
    }
    admin_free(nodes);
    admin_free(txns);
    return true;
}

/* ---- telling ---- */

static void put_bar(uint32_t done, uint32_t start, uint32_t width, char out[BAR_MAX + 1])
{
    const uint32_t filled = start == 0 ? width : width * done / start;

    memset(out, '-', width);
    memset(out, '#', filled > width ? width : filled);
    out[width] = '\0';
}

uint64_t drain_eta_us(const struct drain_pace *pace)
{
    const uint64_t rest_us = pace->done == 0 ? 0 : pace->moved_us / pace->done * pace->left;

    if (!pace->moves) {
        return pace->wait_us + rest_us;
    }
    return pace->wait_us > rest_us ? pace->wait_us : rest_us;
}

/* ", 18.4 vnodes/s, 0.7 s to go"; nothing while it is not known. */
static void put_eta(const struct drain_pace *pace, char *out, size_t size)
{
    const double eta_s = (double)drain_eta_us(pace) / 1e6;

    out[0] = '\0';
    if (pace->left > 0 && pace->done > 0) {
        (void)snprintf(out,
                       size,
                       ", %.1f vnodes/s, %.0f s to go",
                       (double)pace->done * 1e6 / (double)pace->moved_us,
                       eta_s + 0.5);
    } else if (pace->left > 0 && pace->wait_us > 0) {
        (void)snprintf(out, size, ", more than %.0f s to go", eta_s + 0.5);
    }
}

/* "n2 [####----] 12 of 64 vnodes left, 3041 actors, 18.4 vnodes/s, 0.7 s to go": the bar is as long
 * as there is room. */
static void put_line(const struct watch *w, const struct progress *p, char out[LINE_SIZE])
{
    const uint64_t moved_us = w->looked_us - w->begin_us - w->waited_us;
    const uint32_t done = w->start - p->left;
    // A rate of the first moments says nothing.
    const struct drain_pace pace = {.done = moved_us > FIRST_US ? done : 0,
                                    .left = p->left,
                                    .moved_us = moved_us,
                                    .wait_us = p->wait_us,
                                    .moves = p->moves};
    char bar[BAR_MAX + 1];
    char rest[REST_SIZE];
    char eta[64];
    char actors[32] = "";

    put_eta(&pace, eta, sizeof eta);
    if (p->left > 0) { // else those that the node told of last have gone
        (void)snprintf(actors, sizeof actors, ", %" PRIu64 " actors", p->actors);
    }
    (void)snprintf(rest,
                   sizeof rest,
                   "%" PRIu32 " of %" PRIu32 " vnodes left%s%s",
                   p->left,
                   w->start,
                   actors,
                   eta);
    const size_t used = strlen(w->name) + strlen(" [] ") + strlen(rest);
    const size_t room = used + BAR_MIN > ROWS_WIDTH ? BAR_MIN : ROWS_WIDTH - used;
    put_bar(done, w->start, room > BAR_MAX ? BAR_MAX : (uint32_t)room, bar);
    (void)snprintf(out, LINE_SIZE, "%s [%s] %s", w->name, bar, rest);
}

static void tell_terminal(const struct watch *w, const struct progress *p)
{
    char line[LINE_SIZE];

    put_line(w, p, line);
    // Two lines, drawn anew; the cursor goes back to the first.
    (void)fprintf(stderr, "\r\033[K%s\n\033[K", line);
    if (p->blocker[0] != '\0') {
        (void)fprintf(stderr, "  waits%.*s", BLOCKER_SHOWN, p->blocker); // it must not fold
    }
    (void)fprintf(stderr, "\033[A\r");
}

/* But for their numbers: ages in them change all the time. */
static bool is_same(const char *a, const char *b)
{
    for (;; a++, b++) {
        a += strspn(a, "0123456789.");
        b += strspn(b, "0123456789.");
        if (*a != *b || *a == '\0') {
            return *a == *b;
        }
    }
}

/* One that is still there at the next look, and was not told. */
static void tell_blocker(struct watch *w, const char *blocker)
{
    char line[LINE_SIZE];

    if (blocker[0] != '\0' && is_same(blocker, w->last_blocker) &&
        !is_same(blocker, w->told_blocker)) {
        (void)snprintf(line, sizeof line, "%s waits%s", w->name, blocker);
        text_print(stderr, line, 2);
        (void)snprintf(w->told_blocker, sizeof w->told_blocker, "%s", blocker);
    }
    (void)snprintf(w->last_blocker, sizeof w->last_blocker, "%s", blocker);
}

static void tell_lines(struct watch *w, const struct progress *p)
{
    const uint32_t part = w->start == 0 ? 10 : 10 * (w->start - p->left) / w->start;
    char line[LINE_SIZE];

    put_line(w, p, line);
    if (part != w->last_part) {
        w->last_part = part;
        (void)fprintf(stderr, "%s\n", line);
    }
    tell_blocker(w, p->blocker);
}

static void tell(struct watch *w, const struct progress *p)
{
    const uint64_t now_us = clock_boottime_us();

    w->waited_us += p->wait_us > 0 && !p->moves ? now_us - w->looked_us : 0;
    w->looked_us = now_us;
    if (p->left > w->start) { // a node that was just given more
        w->start = p->left;
    }
    if (w->terminal) {
        tell_terminal(w, p);
    } else {
        tell_lines(w, p);
    }
}

static void tell_end(const struct watch *w, enum drain_end end)
{
    if (w->terminal) {
        (void)fprintf(stderr, "\n\033[K\r");
    }
    if (end == DRAIN_EMPTY) {
        (void)fprintf(stderr,
                      "%s is empty after %.1f s\n",
                      w->name,
                      (double)(clock_boottime_us() - w->begin_us) / 1e6);
    } else if (end == DRAIN_DETACHED) {
        (void)fprintf(stderr,
                      "The drain goes on.\n"
                      "`ringhold node drain %s --watch` shows it again\n"
                      "`ringhold node drain %s cancel` cancels it\n",
                      w->name,
                      w->name);
    }
}

/* ---- the watch ---- */

static enum drain_end watch(struct watch *w, struct admin *a, const struct query *q,
                            uint32_t wait_s)
{
    const struct timespec pause = {.tv_nsec = (long)LOOK_AGAIN_MS * 1000000};
    const uint64_t wait_us = (uint64_t)wait_s * 1000000;
    struct progress p;

    for (;;) {
        if (interrupted != 0) {
            return DRAIN_DETACHED;
        }
        if (!look(a, q, w->name, &p)) {
            return interrupted != 0 ? DRAIN_DETACHED : DRAIN_NOBODY;
        }
        tell(w, &p);
        if (p.left == 0 && !p.moves) {
            return DRAIN_EMPTY;
        }
        if (wait_s != 0 && clock_boottime_us() - w->begin_us >= wait_us) {
            return DRAIN_NOT_YET;
        }
        (void)nanosleep(&pause, NULL); // ^C ends it
    }
}

enum drain_end drain_watch(const struct query *q, const char *name, uint32_t wait_s)
{
    const struct sigaction mine = {.sa_handler = on_interrupt};
    struct sigaction before;
    struct watch w = {
        .name = name, .terminal = isatty(STDERR_FILENO) != 0, .begin_us = clock_boottime_us()};
    w.looked_us = w.begin_us;
    const struct admin_where where = query_where(q);
    struct admin *a = admin_open(&where);

    if (a == NULL) {
        return DRAIN_NOBODY;
    }
    interrupted = 0;
    (void)sigaction(SIGINT, &mine, &before);
    const enum drain_end end = watch(&w, a, q, wait_s);
    tell_end(&w, end);
    (void)sigaction(SIGINT, &before, NULL);
    admin_close(a);
    return end;
}

int drain_exit_code(enum drain_end end)
{
    switch (end) {
    case DRAIN_EMPTY:
        return 0;
    case DRAIN_NOT_YET:
        return 3;
    case DRAIN_DETACHED:
        return 130;
    case DRAIN_NOBODY:
        break;
    }
    return 1;
}

/* ---- the wish ---- */

bool drain_wish(const struct query *q, const char *node, bool cancel)
{
    Rh__AdminDrain what = RH__ADMIN_DRAIN__INIT;
    char name[64];

    (void)snprintf(name, sizeof name, "%s", node);
    what.name = name;
    what.cancel = cancel;
    what.by = query_who();
    what.reason = proto_text(q->reason);
    return query_number_wish(q, &what.wish, &what.seen) && query_do(q, &what.base, NULL);
}

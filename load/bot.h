/* SPDX-License-Identifier: Apache-2.0
 *
 * Bots: players that log in, ask their actor, are pushed to, drop the line and
 * come back; and the ledger of what became of it.
 *
 * Pure. The shell (bots_uv.h) connects, reads and writes for them.
 *
 *     AWAY       -its time has come-> CONNECTING    connect
 *     CONNECTING -connected-> GREETING              hello, auth if it has keys
 *     GREETING   -hello-ack-> (same)                bind; resume if it has a session
 *                -bound, or its kind takes no session-> LIVE
 *                -resumed-> LIVE                    what has no answer is sent again
 *                -there is nothing to resume-> (same)              bind
 *     LIVE       does what its script says (script.h), acknowledges once a second
 *                -it drops the line-> AWAY                         close
 *                -it leaves-> (same), unbind; -answered-> OVER     close
 *                -told to go, answered-> AWAY, elsewhere           close
 *     any        -turned away-> AWAY, until the hint of the goaway
 *                -kicked, closed, failed-> AWAY, backing off
 *
 * Each bot is one entity, `PREFIX` and its number. It has several requests under way if it asks
 * faster than it is answered, BOT_DEPTH at most.
 *
 * The ledger judges a session over all its connections: what it was pushed, by its sequences and,
 * with BOT_CHECK_COUNT, by the actor's own numbers; and its requests, each of which is answered
 * once, in order, and has run once.
 */
#ifndef LOAD_BOT_H
#define LOAD_BOT_H

#include "base/bytes.h"
#include "base/histogram.h"
#include "base/prng.h"
#include "gateway/access/keyring.h"
#include "load/script.h"

#include <stdbool.h>
#include <stdint.h>

enum { BOT_DEPTH = 8, BOT_PREFIX_MAX = 63, BOT_STATUSES = 256 };

enum bot_check {
    BOT_CHECK_NONE,  /* whatever it answers */
    BOT_CHECK_ECHO,  /* what it was sent, as `echo` does */
    BOT_CHECK_COUNT, /* how many requests it has run, in digits: each runs once; and it pushes
                        numbers that go up by 1 (examples/bots.c) */
};

struct bots_config {
    uint32_t count;
    uint32_t addresses; /* of gateways; 1.. */
    uint32_t rate;      /* that begin a second; 0 = all at once */
    uint32_t size;      /* bytes of a payload, at least */
    uint32_t answer_ms; /* without an answer for so long a request is lost; 20000 */
    bool once;          /* who is turned away is through */
    bool bind;          /* they are bound to their actor */
    bool keep;          /* … in a session that outlives the connection, and is resumed */
    enum bot_check check;
    uint16_t kind;
    char prefix[BOT_PREFIX_MAX + 1];
    const struct script *script; /* borrowed for life */
    const char *cluster;         /* borrowed for life */
    const struct keyring *keys;  /* borrowed for life; NULL = none: they show no token */
    uint64_t unix_s;             /* the time of day, for tokens */
    uint64_t seed;
};

/* All of them together. */
struct bot_ledger {
    uint64_t attempts;    /* to connect */
    uint64_t logins;      /* that came to be LIVE */
    uint64_t turned_away; /* goaway before they were */
    uint64_t told_to_go;  /* … after */
    uint64_t kicked;
    uint64_t cut;         /* closed by the other side, or by the network */
    uint64_t unreachable; /* not even connected */
    uint64_t dropped;     /* the line, by will */
    uint64_t over;        /* bots that are through */
    uint64_t resumed;     /* sessions, each time */
    uint64_t gone;        /* sessions that could not be resumed: too late, or the actor was lost */
    uint64_t replaced;    /* … as another client was bound since */
    uint64_t asked;
    uint64_t again; /* requests sent again by a resumed session */
    uint64_t notified;
    uint64_t status[BOT_STATUSES]; /* answers */
    uint64_t unknown;              /* were under way when their session went, or are answered so */
    uint64_t lost;                 /* requests: not answered, or forgotten by the actor */
    uint64_t duplicated;           /* … answered twice, or run twice */
    uint64_t disordered;           /* … answered out of order */
    uint64_t wrong;                /* answers that are not what was to come */
    uint64_t pushes;
    uint64_t pushes_lost;
    uint64_t pushes_duplicated;
    uint64_t pushes_disordered;
    uint64_t begun_afresh; /* actors that were lost, and took the session anew */
    uint64_t live;         /* bots, now */
    uint64_t live_max;
    uint64_t last_login_us;   /* when the last one was that logged in for the first time */
    char first[256];          /* of all that isn't clean, in words */
    uint32_t hint_max_ms;     /* the longest that one was told to wait */
    uint32_t kick_code;       /* of the first kick; 0 = none */
    struct histogram login;   /* of those that succeed: from connecting to LIVE, us */
    struct histogram latency; /* of requests that are OK, us; not of those sent again */
};
/* True if nothing was lost, doubled, reordered or wrong. */
bool bot_ledger_is_clean(const struct bot_ledger *l);

struct bots;
struct bot;

struct bots *bots_new(const struct bots_config *config, uint64_t now_us);
void bots_free(struct bots *all);
struct bot *bots_at(struct bots *all, uint32_t number); /* 0.. */
const struct bot_ledger *bots_ledger(const struct bots *all);
/* From now on nobody asks, drops the line, or comes but for answers that it has not. */
void bots_stop(struct bots *all);
/* Requests under way. */
uint64_t bots_waiting(const struct bots *all);

enum bot_wish { BOT_NOTHING, BOT_CONNECT, BOT_CLOSE };

/* The action that the bot wants for its line now. Call it after each of the following. */
enum bot_wish bot_wish(const struct bot *b);
uint32_t bot_address(const struct bot *b); /* to connect to: 0.. */
struct buffer *bot_output(struct bot *b);  /* to be sent, and cleared */
/* When it is to be told of the time next; UINT64_MAX = need not. */
uint64_t bot_due_us(const struct bot *b);

void bot_tick(struct bot *b, uint64_t now_us);
void bot_on_connecting(struct bot *b, uint64_t now_us); /* what it wished is under way */
void bot_on_connected(struct bot *b, uint64_t now_us);
void bot_on_bytes(struct bot *b, struct bytes in, uint64_t now_us);
/* The line is closed, by whom ever, or could not be made. */
void bot_on_closed(struct bot *b, uint64_t now_us);

#endif

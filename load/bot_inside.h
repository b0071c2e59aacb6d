/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of a bot share: its state; what it says, hears, judges and does.
 */
#ifndef LOAD_BOT_INSIDE_H
#define LOAD_BOT_INSIDE_H

#include "gateway/protocol/packet.h"
#include "load/bot.h"

enum {
    BOT_MS = 1000,
    BOT_TEXT_MAX = 128,
    BOT_RETRY_MIN_MS = 100,  /* after a failure, and twice that after the next … */
    BOT_RETRY_MAX_MS = 5000, /* … until this */
    BOT_ACK_MS = 1000,       /* from what came to its acknowledgement */
};

enum bot_stage { BOT_AWAY, BOT_CONNECTING, BOT_GREETING, BOT_LIVE, BOT_OVER };

/* A request without an answer. */
struct asked {
    uint64_t since_us;
    uint32_t name;
    uint8_t line;  /* of the script: its payload */
    bool again;    /* sent by a connection before this one */
    bool orphaned; /* its actor was lost since: it is not sent again */
};

struct bot {
    struct bots *all;
    uint32_t number;
    uint32_t name;        /* of its last packet that wants an answer */
    uint32_t bind_name;   /* of the bind or resume under way; 0 = none */
    uint32_t unbind_name; /* of the unbind under way; 0 = none */
    uint32_t failures;    /* to log in, one after the other */
    uint32_t address;
    uint8_t stage;
    bool closing;  /* it wants its line closed */
    bool ending;   /* it is through when it has its answers */
    bool leaving;  /* it was told to go */
    bool counted;  /* `count` is known */
    bool numbered; /* `number_pushed` is known, and of the push before */
    bool was_live; /* some time */
    bool bound;
    bool resumed; /* some time */
    bool kept;    /* it has a session that can be resumed: `session` */
    uint8_t asked_count;
    uint8_t line;                       /* of the script, the next one */
    struct asked asked[BOT_DEPTH];      /* the oldest first */
    uint64_t task_us[SCRIPT_TASKS_MAX]; /* when each is done next; 0 = it hasn't begun */
    uint64_t wait_us;                   /* the script goes on; 0 = no wait is under way */
    uint32_t away_min_ms;               /* when it drops the line by chance */
    uint32_t away_max_ms;
    uint32_t drop_percent;
    uint32_t ran_name; /* of the last answer to a request that ran */
    uint64_t stage_us; /* since when */
    uint64_t next_us;  /* AWAY: it connects; GREETING: it binds again */
    uint64_t drop_us;  /* it drops the line; UINT64_MAX = never */
    uint64_t ack_us;   /* it acknowledges; UINT64_MAX = nothing to be */
    uint64_t count;    /* requests that its actor has run, as it said last */
    uint64_t unknown;  /* those that it may have run since */
    uint64_t push;     /* sequence of the next */
    uint64_t seen;     /* bit i: the push `push` - 1 - i has come */
    uint64_t number_pushed;
    struct session_name session;
    uint32_t attempts; /* resumes that it sent */
    struct buffer in;
    struct buffer out;
};

struct bots {
    struct bots_config config;
    struct bot_ledger ledger;
    struct prng chance;
    struct bot *bot; /* owned */
    uint64_t waiting;
    bool stopping;
    struct buffer payload; /* of the packet that is being made or judged */
};

/* ---- bot.c: its stages ---- */

void bot_enter(struct bot *b, enum bot_stage stage, uint64_t now_us);
/* The bot goes away and comes back after `for_ms`. A session that is kept stays, with what it
 * asked. */
void bot_go_away(struct bot *b, uint64_t for_ms, uint64_t now_us);
/* Return how long to wait for the next gateway after a failure: longer each time. */
uint64_t bot_back_off_ms(struct bot *b);
void bot_go_elsewhere(struct bot *b);
void bot_be_over(struct bot *b, uint64_t now_us);
/* Forget the session, which is gone: what the bot asked may have run. */
void bot_forget_session(struct bot *b);
/* Stop waiting for the answer to this request. */
void bot_drop_asked(struct bot *b, uint32_t i);

/* ---- bot_say.c: what it sends ---- */

void bot_say_hello(struct bot *b);
/* Bind, or resume if there is what to. */
void bot_say_bind(struct bot *b);
void bot_say_unbind(struct bot *b);
void bot_say_again(struct bot *b);
void bot_say_ack(struct bot *b);
/* Acknowledge what came, together with what comes in the next second. */
void bot_ack_later(struct bot *b, uint64_t now_us);
void bot_ask(struct bot *b, uint8_t line, uint64_t now_us);
void bot_notify(struct bot *b, uint8_t line);
/* Return the payload of the request of that name; valid until the next call for any bot. */
struct bytes bot_payload(struct bot *b, uint8_t line, uint32_t name);

/* ---- bot_hear.c: what it hears ---- */

/* False: it makes no sense here. */
bool bot_hear(struct bot *b, const struct packet *p, uint64_t now_us);

/* ---- bot_judge.c: what is entered in the ledger ---- */

void bot_judge_answer(struct bot *b, const struct response_packet *r, uint64_t now_us);
void bot_judge_push(struct bot *b, const struct push_packet *p);
/* Record the first thing of all that is not clean: `what` happened to the packet `name` of this
 * bot. */
void bot_note(struct bot *b, const char *what, uint64_t name);
/* A session of this actor begins, or goes on behind what was let go. */
void bot_expect_push(struct bot *b, uint64_t next);
/* Give up what has no answer for too long. */
void bot_judge_late(struct bot *b, uint64_t now_us);

/* ---- bot_play.c: what it does ---- */

void bot_be_live(struct bot *b, uint64_t now_us);
void bot_play(struct bot *b, uint64_t now_us);
/* When something is to be done next. */
uint64_t bot_play_us(const struct bot *b);

#endif

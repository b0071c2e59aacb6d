/* SPDX-License-Identifier: Apache-2.0
 *
 * What a gateway must do with a client's bytes: tables of vectors, each a small
 * script that is played on a connection of its own. The bytes are those of
 * docs/protocol-client.md. What is sent goes as it is through TCP; through a
 * WebSocket each packet is a message, and what comes in parts is in fragments.
 *
 * A line of a script is one of these. They send (say.c):
 *
 *     > HEX               these bytes; blanks are for the reader
 *     drip HEX            the same, each by itself
 *     ask T R [HEX]       a request of type T named R, to our entity, with this payload
 *     asks R COUNT        so many of them, named R and up, in one write
 *     big T SIZE          the head of a packet of type T: SIZE bytes, or "limit" or "over"
 *     full R              a request named R that is as large as may be
 *     token WHAT          an auth: "good", "forged", "expired", "foreign", or a text
 *     later               a packet of each type from 128 up
 *     half-close          that no more comes
 *
 * These wait (hear.c):
 *
 *     < HEX               for this packet: ".." any byte, "*" at the end: any more
 *     status R LIST       for the response to R, with a status of "0,1,6" or "any"
 *     answers R COUNT     for so many, in order
 *     greeted, known      for a hello-ack, and for an auth-ok where one is wanted
 *     silence             for the answer to a ping: nothing else is owed
 *     kick FIRST [LAST]   for a kick with such a code, and the end behind it
 *     gone                for the end, whatever comes before
 *
 * Those of sessions are in session.c, of HTTP in http.c, of frames
 * in ws.c.
 */
#ifndef CONFORM_CONFORM_H
#define CONFORM_CONFORM_H

#include "conform/socket.h"
#include "gateway/access/keyring.h"
#include "gateway/access/token.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How far a connection is when a vector's script begins. */
enum vector_from {
    FROM_DIAL,  /* connected; where packets go through a WebSocket, that isn't begun */
    FROM_START, /* connected: packets may be sent */
    FROM_HELLO, /* greeted; a gateway with keys waits for the auth */
    FROM_AUTH,  /* greeted, and known where the gateway has keys */
};

/* Of which gateways it is asked. */
enum vector_of {
    OF_ALL,
    OF_KEYS,         /* those that want an auth */
    OF_OPEN,         /* those that want none */
    OF_KEYS_FILE,    /* those that want one, when we have their secrets */
    OF_PATIENT,      /* all, with --slow: it waits for the gateway's own times */
    OF_PATIENT_KEYS, /* those that want an auth, with --slow */
    OF_PUSH,         /* all, when we know what makes the actor push */
    OF_WS,           /* those that we go to through a WebSocket */
    OF_PATIENT_WS,   /* the same, with --slow */
    OF_SKYNET,       /* those that we go to in skynet's frames */
};

struct vector {
    const char *name; /* what is right, in a line */
    enum vector_from from;
    enum vector_of of;
    const char *script; /* lines */
};

struct vectors {
    const struct vector *all;
    size_t count;
};

/* All, in the order in which they are played. */
extern const struct vectors conform_packets;  /* vectors.c */
extern const struct vectors conform_sessions; /* vectors_session.c */
extern const struct vectors conform_frames;   /* vectors_ws.c */
extern const struct vectors conform_skynet;   /* vectors_skynet.c */
extern const struct vectors conform_closing;  /* what must still be so behind all these */

enum { PUSHES_SIZE = 256, UPGRADE_KEY_TEXT = 32 };

/* The name under which the tester greets the gateway, and what the gateway said about itself. */
struct conform_target {
    struct conform_where where;
    struct ssl_ctx_st *trust; /* NULL where nothing is encrypted */
    uint32_t timeout_ms;      /* for whatever comes at once */
    char token[TOKEN_TEXT_MAX + 1];
    struct keyring keys; /* count 0: none were given */
    char cluster[TOKEN_CLUSTER_MAX + 1];
    uint16_t kind;
    uint8_t id[UINT8_MAX];
    size_t id_size;
    char pushes[PUSHES_SIZE]; /* a payload that makes our entity push; "" = we know none */
    bool slow;
    struct hello_ack_packet ack; /* of the first connection */
};

/* A session that is kept, as its client sees it. */
struct play_session {
    bool held; /* by the last connection: its pushes are counted */
    struct session_packet is;
    uint64_t next;        /* sequence of the push to come */
    uint8_t status;       /* of the answer that is remembered */
    struct buffer answer; /* its payload */
};

/* One play of a script. */
struct play {
    struct conform_target *target;
    struct conform_socket socket;
    struct conform_socket other; /* a second connection */
    char key[UPGRADE_KEY_TEXT];  /* of the WebSocket's handshake */
    struct hello_ack_packet ack;
    struct play_session session;
    uint32_t turned_away_ms; /* by one that nobody waited for: when to come again; 0 = it wasn't */
    bool skipped;            /* this actor can't be asked for it, or not through this carrier */
    char why[512];           /* what was wrong, or why it is skipped */
};

enum play_result { PLAY_RIGHT, PLAY_WRONG, PLAY_SKIPPED };

/* Play one. `why` of `p` says why it is not right. */
enum play_result conform_play(struct play *p, struct conform_target *target,
                              const struct vector *v);

/* Say why this vector is not for that gateway; NULL: it is. */
const char *conform_skips(const struct conform_target *target, const struct vector *v);

/* Connect, as often as a goaway with a retry hint asks for it, and be greeted: learn `ack`. False:
 * `why` of `p` says what was wrong. */
bool conform_probe(struct play *p, struct conform_target *target);

/* ---- what scripts are made of ---- */

enum line_result {
    LINE_DONE,
    LINE_FAILED,  /* something else came, and `why` says what */
    LINE_UNKNOWN, /* it is no line of this kind */
};

/* Do what a line says. */
enum line_result conform_say(struct play *p, const char *word, const char *rest);
enum line_result conform_hear(struct play *p, const char *word, const char *rest);
enum line_result conform_sit(struct play *p, const char *word, const char *rest);
enum line_result conform_http(struct play *p, const char *word, const char *rest);
enum line_result conform_ws(struct play *p, const char *word, const char *rest);

/* The bytes that `hex` says, blanks between them passed over; appended. Aborts if it is none:
 * scripts are ours. */
void conform_hex(struct buffer *out, const char *hex);

/* Send packets of ours, and free them. */
void conform_off(struct play *p, struct buffer *packets);

/* Append a request to our entity, or what else is like one. */
void conform_put_ask(const struct play *p, struct buffer *out, uint8_t type,
                     struct request_packet *r);

/* Record why a case failed. Always returns false. */
__attribute__((format(printf, 2, 3))) bool conform_fail(struct play *p, const char *format, ...);

/* Hang up, and connect anew as far as FROM_AUTH. */
bool conform_again(struct play *p);

/* The result is SOCKET_GOT; `want` is what was waited for. */
bool conform_got(struct play *p, enum socket_result result, const char *want);

/* The next response. What comes at any time is dealt with: a ping is answered, a push counted. */
bool conform_answer(struct play *p, const char *want, struct response_packet *out);

/* Note one push more; an answer before it is passed over, for nothing says which comes first. */
bool conform_pushed(struct play *p);

/* Check that the connection ends, and that nothing comes before its end; a WebSocket says a close
 * with this code first. */
bool conform_closes(struct play *p, uint16_t code);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * What a gateway must do with a client's bytes: a table of vectors, each a small
 * script that is played on a connection of its own. The bytes are those of
 * docs/protocol-client.md.
 *
 * A line of a script is one of
 *
 *     > HEX               send these bytes; blanks are for the reader
 *     drip HEX            send them, each by itself
 *     ask T R [HEX]       send a request of type T named R, to our entity, with this payload
 *     asks R COUNT        send so many of them, named R and up, in one write
 *     big T SIZE          send the head of a packet of type T: SIZE bytes, or "limit" or "over"
 *     full R              send a request named R that is as large as may be
 *     token WHAT          send an auth: "good", "forged", "expired", "foreign", or a text
 *     later               send a packet of each type from 128 up
 *     half-close          say that no more comes
 *     < HEX               wait for this packet: ".." any byte, "*" at the end: any more
 *     status R LIST       wait for the response to R, with a status of "0,1,6" or "any"
 *     answers R COUNT     wait for so many, in order
 *     greeted, known      wait for a hello-ack, and for an auth-ok where one is wanted, that are
 * right silence             nothing is owed: a ping is answered next kick FIRST [LAST]   wait for a
 * kick with such a code, and the end behind it gone                wait for the end, whatever comes
 * before
 */
#ifndef CLI_CONFORM_H
#define CLI_CONFORM_H

#include "cli/conform_socket.h"
#include "gateway/keyring.h"
#include "gateway/token.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How far a connection is when a vector's script begins. */
enum vector_from {
    FROM_START, /* connected */
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
};

struct vector {
    const char *name; /* what is right, in a line */
    enum vector_from from;
    enum vector_of of;
    const char *script; /* lines */
};

/* All, in the order in which they are played. */
extern const struct vector conform_vectors[];
extern const size_t conform_vector_count;

/* Who we are to the gateway, and what it said about itself. */
struct conform_target {
    const char *address;
    uint32_t timeout_ms; /* for whatever comes at once */
    char token[TOKEN_TEXT_MAX + 1];
    struct keyring keys; /* count 0: none were given */
    char cluster[TOKEN_CLUSTER_MAX + 1];
    uint16_t kind;
    uint8_t id[UINT8_MAX];
    size_t id_size;
    bool slow;
    struct hello_ack_packet ack; /* of the first connection */
};

/* One play of a script. */
struct play {
    struct conform_target *target;
    struct conform_socket socket;
    struct hello_ack_packet ack;
    uint32_t
        turned_away_ms; /* by a goaway that nobody waited for: when to come again; 0 = it wasn't */
    char why[512];      /* what was wrong */
};

/* Play one. False: `why` of `p` says what was wrong. */
bool conform_play(struct play *p, struct conform_target *target, const struct vector *v);

/* Why this one is not for that gateway; NULL: it is. */
const char *conform_skips(const struct conform_target *target, const struct vector *v);

/* Connect, as often as a goaway with a retry hint asks for it, and be greeted: learn `ack`. False:
 * `why` of `p` says what was wrong. */
bool conform_probe(struct play *p, struct conform_target *target);

/* ---- what scripts are made of ---- */

enum line_result { LINE_DONE, LINE_FAILED, LINE_UNKNOWN };

/* Send what a line says. LINE_UNKNOWN: it is no line that sends. (conform_say.c) */
enum line_result conform_say(struct play *p, const char *word, const char *rest);

/* Wait for what a line says. LINE_FAILED: something else came, and `why` says what.
 * (conform_hear.c) */
enum line_result conform_hear(struct play *p, const char *word, const char *rest);

/* The bytes that `hex` says, blanks between them passed over; appended. Aborts if it is none:
 * scripts are ours. */
void conform_hex(struct buffer *out, const char *hex);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * `ringhold conform client -- PROGRAM`: does a library for game clients keep the protocol of
 * docs/protocol-client.md, and what docs/clients.md promises? It starts PROGRAM, which the second
 * page describes, for each vector, and is its gateways: honest ones, and such that lie.
 *
 * A vector is a name and a script; a line of it is one of these. WORDS are bytes: hexadecimal, a
 * 'text', zeros:N, noise:N, x:N (so many letters x), SESSION and OTHER (24 bytes that name one),
 * NAME (of the last request that came), =TEXT (of the request with that payload); where bytes are
 * waited for, ".." is any byte, "*" at the end any more.
 *
 *     type LINE                  the program gets this line; `large N`: one of so many letters x
 *     says LINE                  it says this line: the next of its first word, or any of its
 *                                answers; a "*" at the end stands for any more
 *     ended                      it ends, with exit code 0
 *     come [other]               it connects; at the other address than before
 *     greet [FLAGS HEARTBEAT LARGEST]
 *                                it sends a hello, and gets a hello-ack
 *     meet                       both; then it binds itself to its entity, and that is accepted
 *     refuse                     its bind is answered with REJECTED
 *     > TYPE WORDS               it gets this packet
 *     message WORDS              it gets these bytes as the carrier's message
 *     raw WORDS                  it gets these bytes outside of any message
 *     < TYPE WORDS               its next packet is this
 *     asked TEXT, told TEXT      its next packet is a request, a notify with this payload
 *     answer TEXT STATUS [TEXT]  that request, or "bind", "resume", is answered
 *     acked PUSHES               it acknowledges so many pushes
 *     drip, gather, go           what it gets comes byte by byte; waits; and comes at once
 *     mute                       its pings are not answered, and can be waited for
 *     flood                      it gets 90,000 packets, while nothing of its own is read
 *     small                      it has taken at most 200 MiB of memory, when it has ended
 *     close, half                the connection is closed; no more comes, but its end is heard
 *     gone                       it closes the connection, and sends nothing before
 *     leaves                     it closes the connection, whatever it sends before
 *     instead TYPE WORDS         it comes, gets this in the place of a hello-ack, and leaves
 *     behind TYPE WORDS          the same, behind a good hello-ack
 *     too-large                  it is told that a packet was too large, as the carrier does
 *
 * Behind each script the program must answer a request at a gateway that takes it, have said no
 * answer and no push that was not due, and end when its input does; unless it has ended.
 */
#ifndef CONFORM_CLIENT_H
#define CONFORM_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct client_vector {
    const char *name;
    const char *script;
    const char *token;   /* given to the program; NULL = none */
    const char *carrier; /* "tcp" or "ws": only of that one; NULL = of both */
    bool slow;           /* it waits for the client's own times, of 10 s and more */
};

/* All, in the order in which they are told (vectors_client.c). */
extern const struct client_vector conform_client_vectors[];
extern const size_t conform_client_count;

struct client_run {
    char *const *program; /* words, NULL at the end */
    bool websocket;
    bool slow;           /* also the slow ones */
    uint32_t timeout_ms; /* for whatever is waited for; the program's own times are up to 15 s */
    const char *only;    /* vectors with this in their name; "" = all */
};

/* Play them, several at a time: a line of TAP for each. Returns the exit code: 0, 1 when the
 * program can't be started, 2 when a vector failed. */
int conform_client(const struct client_run *run);

/* Print all vectors. */
void conform_client_list(void);

#endif

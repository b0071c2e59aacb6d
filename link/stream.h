/* SPDX-License-Identifier: Apache-2.0
 *
 * Byte streams under the links: one interface, two bodies, the same bytes.
 *
 *     stream_nng.c   nng_stream, on nng's threads. For owners without a uv loop.
 *     transport_uv.c sockets on the owner's uv loop (with socket, dialler, acceptor). No thread but
 *                    the loop's (docs/decisions/014).
 *
 *     transport      what all streams of one `struct links` share
 *       dialler      makes streams to one address, one at a time
 *       acceptor     makes streams of those who come
 *       stream       one connection
 *
 * All is called on the loop thread. A transport tells what became of things from
 * its poll() only, with the functions below that stand under "told by". Until it
 * does, it wakes the owner: link_events.wake.
 */
#ifndef LINK_STREAM_H
#define LINK_STREAM_H

#include "base/bytes.h"
#include "wire/address.h"

#include <stdbool.h>

struct conn;
struct link;
struct links;
struct listener;

struct transport;
struct dialler;
struct acceptor;

struct stream {
    struct conn *conn; /* whom to tell; NULL until conn_new() takes it */
};

/* Errors are numbers of the body's own, 0 = none. */
struct transport_ops {
    /* Tell what is done. */
    void (*poll)(struct transport *t);
    /* All its streams, diallers and acceptors were freed. */
    void (*free)(struct transport *t);
    const char *(*error_text)(int error);

    /* Returns owned, NULL if it cannot. */
    struct dialler *(*dialler_new)(struct transport *t, const char *address, struct link *link);
    /* Connect; one at a time. link_on_dial() follows. */
    void (*dial)(struct dialler *d);
    /* The dial took too long, or is not wanted: link_on_dial() follows soon. Does nothing if no
     * dial is under way. */
    void (*dial_stop)(struct dialler *d);
    /* At any time; nothing is told any more. */
    void (*dialler_free)(struct dialler *d);

    /* Bind and listen. Returns an error, or 0 and sets *out (owned) and address->port. */
    int (*acceptor_new)(struct transport *t, struct address *address, struct listener *listener,
                        struct acceptor **out);
    enum err (*listen_error)(int error);
    /* Take those who come: listener_on_accept() for each, until one fails: then nothing is taken
     * before this is called again. */
    void (*accept)(struct acceptor *a);
    void (*acceptor_free)(struct acceptor *a);

    /* Read 1..size bytes to `to`, one read at a time; conn_on_read() follows. */
    void (*read)(struct stream *s, void *to, size_t size);
    /* Write. Returns an error, or 0 and in `count` what the network has of it already. If that is
     * not all, `bytes` is borrowed until conn_on_write(), which follows: then nothing of the rest
     * is being written, and the caller begins anew with it. */
    int (*write)(struct stream *s, struct bytes bytes, size_t *count);
    /* Nothing is told any more. */
    void (*close)(struct stream *s);
    /* Of a closed one. False: an operation still uses its conn's memory, try again; `force` waits
     * for it. */
    bool (*stream_free)(struct stream *s, bool force);
    /* The numeric address of the other end; host "?" if it is unknown. */
    void (*peer)(struct stream *s, struct address *address);
};

struct transport {
    const struct transport_ops *ops;
    /* Writes are done when write() returns, and the owner's links_flush() is the one place for
     * them: links_poll() must not write a part of what the turn has to say. */
    bool writes_at_once;
};

/* `links` is told of wake only. `loop` is a uv_loop_t. */
struct transport *transport_nng(struct links *links);
struct transport *transport_uv(struct links *links, void *loop);

/* ---- told by poll() */

/* `stream` is taken, NULL with an error. */
void link_on_dial(struct link *link, struct stream *stream, int error);
void listener_on_accept(struct listener *listener, struct stream *stream, int error);
/* `count` of 0 without an error: the peer has closed. */
void conn_on_read(struct conn *conn, size_t count, int error);
/* `count` bytes of what write() left over are out (may be 0). */
void conn_on_write(struct conn *conn, size_t count, int error);
/* From any thread. */
void links_wake(struct links *links);

#endif

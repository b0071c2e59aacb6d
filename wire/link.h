/* SPDX-License-Identifier: Apache-2.0
 *
 * Links: framed connections between our processes over nng_stream (tcp now,
 * tls+tcp later), with a hello on each, byte-bounded out-queues, reconnection
 * with jittered back-off, ping and a silence limit.
 *
 * One `struct links` a process. Everything is called and called back on the
 * loop thread; only `wake` comes from nng's threads. nng's pattern sockets are
 * not used: docs/decisions/ says why.
 */
#ifndef WIRE_LINK_H
#define WIRE_LINK_H

#include "base/bytes.h"
#include "base/err.h"
#include "wire/frame.h"

#include <stdbool.h>
#include <stdint.h>

enum link_role { ROLE_COORDINATOR = 1, ROLE_NODE = 2, ROLE_GATEWAY = 3, ROLE_CLI = 4 };

enum { LINK_NAME_MAX = 63, LINK_PROTOCOL = 1 };

/* What each side says first. A mismatch of cluster or protocol is refused with a reason that both
 * sides log. */
struct hello {
    char product[32];      /* "ringhold 0.1.0" */
    uint32_t protocol;     /* LINK_PROTOCOL */
    uint32_t protocol_min; /* oldest it speaks */
    char cluster[LINK_NAME_MAX + 1];
    enum link_role role;
    char name[LINK_NAME_MAX + 1]; /* node or gateway name; "1".."5" for a coordinator */
    uint64_t incarnation;         /* node: 0 before REGISTER; gateway: its random id */
    uint64_t identity;            /* coordinator: its folder's identity */
    bool pristine;                /* coordinator: never took part in a group */
    char address[128];            /* where the sender listens for links, "" = nowhere */
    uint64_t voters;              /* coordinator: digest of its voter list, 0 = none */
};

struct links;
struct link;

struct link_events {
    void *context;
    /* A peer's hello. Return NULL to accept or a reason (static text) to refuse. Called before up;
     * on the dialling side too. */
    const char *(*hello)(void *context, const struct hello *peer);
    void (*up)(void *context, struct link *link);
    /* The link is gone (peer closed, silence, bad bytes, refusal); a dialled one retries by itself.
     * Frames queued on it are lost. `reason` is static text. */
    void (*down)(void *context, struct link *link, const char *reason);
    void (*frame)(void *context, struct link *link, const struct frame *frame);
    /* From any thread: call links_poll() on the loop soon. */
    void (*wake)(void *context);
};

struct links_config {
    struct hello self;        /* may be updated later: links_set_incarnation() */
    size_t queue_size_max;    /* bytes waiting on one link; above it send says ERR_BUSY; 32 MiB */
    uint32_t silence_ms;      /* a link without a byte for so long is dropped; 5000 */
    uint32_t ping_ms;         /* 1000 */
    uint32_t retry_min_ms;    /* 20 */
    uint32_t retry_max_ms;    /* 1000 */
    uint32_t hello_ms;        /* an accepted connection must say hello within; 3000 */
    uint32_t connections_max; /* accepted ones; 1024 */
};
struct links_config links_config_default(void);

MUST_CHECK enum err links_open(struct links **out, const struct links_config *config,
                               const struct link_events *events);
/* Stop listening, drop all links. Crash-only: nothing is flushed. Takes NULL. */
void links_close(struct links *links);

/* Listen on "host:port"; port 0 = any free one. `bound` gets "host:port". ERR_CONFLICT: in use. */
MUST_CHECK enum err links_listen(struct links *links, const char *address, char *bound,
                                 size_t bound_size);
/* Keep a link to `address` until links_forget(). Never blocks. The same address twice is two links.
 */
struct link *links_dial(struct links *links, const char *address);
/* Close and free; its pointer is dead after this. `down` is not called. */
void links_forget(struct links *links, struct link *link);
/* Close this connection with a reason; a dialled one retries. */
void link_drop(struct link *link, const char *reason);
/* Later hellos carry this incarnation. */
void links_set_incarnation(struct links *links, uint64_t incarnation);

/* On the loop: deliver what arrived, run timers. Call on wake and every 10..50 ms. */
void links_poll(struct links *links, uint64_t now_us);
/* Hand queued frames to the network: once at the end of each loop turn. */
void links_flush(struct links *links);

/* Queue a frame (copied). ERR_STOPPED: not up; ERR_BUSY: over its byte bound (nothing queued). */
MUST_CHECK enum err link_send(struct link *link, enum frame_type type, struct bytes body);
/* Queue one encoded record: records of one type queued in one turn travel in one frame. */
MUST_CHECK enum err link_send_record(struct link *link, enum frame_type type, struct bytes record);

bool link_is_up(const struct link *link);
bool link_dialled(const struct link *link);
const struct hello *link_peer(const struct link *link); /* valid while up */
const char *link_address(const struct link *link);      /* dialled: as given; accepted: remote */
size_t link_queued(const struct link *link);            /* bytes waiting */
void link_set_user(struct link *link, void *user);      /* the owner's pointer */
void *link_user(const struct link *link);

#endif

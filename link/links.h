/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside the link layer: what link/link.h keeps to itself.
 *
 *     links --- transport       makes the streams: link/stream.h
 *           --- listener        accepts them
 *           --- link            what the owner holds; a dialled one outlives its connections
 *           --- conn            one stream: bytes in and out, hello, silence
 *                 --- tls       between the stream and the frames, if there is any
 *
 * All of it happens on the loop thread, in links_poll() and links_flush(). A
 * closed conn waits in `closing` until its stream needs its memory no more.
 */
#ifndef LINK_LINKS_H
#define LINK_LINKS_H

#include "base/list.h"
#include "base/prng.h"
#include "link/link.h"
#include "link/stream.h"
#include "link/tls.h"
#include "wire/address.h"

enum {
    LINK_REASON_MAX = 192,
    LINK_FRAME_MAX = 4 * 1024 * 1024,   /* from a peer that is no coordinator */
    LINK_GREETING_MAX = 64 * 1024,      /* one frame, before the hello */
    LINK_RECORDS_SIZE_MAX = 256 * 1024, /* records gather in one frame up to here */
    LINK_RECEIVE_SIZE = 64 * 1024,
    LINK_GREETING_RECEIVE_SIZE = 2 * 1024,
    LINK_KEEP_SIZE_MAX = 1024 * 1024, /* a larger buffer is given back when it runs empty */
    LINK_DIAL_MS = 2000,
    LINK_STEADY_MS = 1000, /* up for so long: the next retry comes at once */
};

struct listener {
    struct list_link in_links;
    struct links *links;
    struct acceptor *acceptor;
    bool paused;          /* a failed accept: goes on at */
    uint64_t retry_at_us; /* that time */
    char address[ADDRESS_SIZE_MAX + 8];
};

struct conn {
    struct list_link in_links; /* links->conns, or links->closing */
    struct list_link dirty;    /* links->dirty: has bytes to send */
    struct links *links;
    struct link *link; /* NULL once closing */
    struct stream *stream;
    bool closing;
    bool ending;   /* refused: closes when its last bytes are out */
    bool greeted;  /* their hello came */
    bool accepted; /* and we said welcome to it */
    bool welcomed; /* they said welcome */
    struct hello peer;
    uint64_t said;     /* the incarnation in our hello */
    bool said_fleet;   /* and whether it named a fleet */
    uint32_t protocol; /* chosen, once their hello was judged */
    uint64_t since_us; /* connected */
    uint64_t heard_us; /* last frame from it, or much of a large one */
    bool heard;        /* another since then, at the time of the next poll */
    size_t unheard;    /* bytes since it was heard */
    uint64_t pinged_us;

    struct buffer in;
    size_t in_at; /* bytes of it that were delivered */

    struct buffer out;     /* gathers */
    struct buffer sending; /* borrowed by the stream while `writing` */

    /* With TLS: bytes of the stream come to `raw`, and `in` is what they say; `out` is sealed as it
     * becomes `sending`, behind what TLS itself has to say. */
    struct tls *tls; /* owned; NULL = none */
    struct buffer raw;
    struct buffer sealed;

    size_t sent;    /* bytes of it that are out */
    bool writing;   /* conn_on_write() follows */
    bool gathering; /* the frame at gather_at takes more records */
    size_t gather_at;
    enum frame_type gather_type;
    uint16_t gather_count;
    uint64_t gather_number; /* of the body of its last record; 0 = its own */
    bool out_gated;         /* `out` has records: links->gate_us holds for it */
    bool sending_gated;     /* and `sending` */
    bool halted;            /* the rest of `sending` waits at the gate */
    bool feeding;           /* the link's source may have bytes */
    size_t half_left;       /* what was begun of it, and is to be finished before all else */
};

struct link {
    struct list_link in_links;
    struct list_link lost; /* links->lost: waits for its `down`, its retry or its end */
    struct links *links;
    struct conn *conn; /* NULL while not connected */
    bool dialled;
    bool up;
    bool down_due;
    bool forgotten;
    bool refused; /* last try ended so */
    struct hello peer;
    uint32_t protocol;
    struct link_source source; /* take NULL: none */
    void *user;
    char address[ADDRESS_SIZE_MAX + 8];
    char reason[LINK_REASON_MAX]; /* of the last loss */
    char logged[LINK_REASON_MAX]; /* what was logged last, so as not to repeat it */

    struct dialler *dialler; /* dialled ones only, as all below */
    bool dialling;           /* link_on_dial() follows */
    uint64_t dial_us;        /* since then */
    uint64_t retry_at_us;
    uint64_t up_us;
    uint32_t backoff_ms;
};

struct links {
    struct links_config config;
    struct link_events events;
    struct links_counts counts;
    struct transport *transport; /* owned */
    struct tls_keys *keys;       /* owned; NULL = no TLS */
    struct prng prng;
    uint64_t now_us;    /* of the last links_poll() */
    uint64_t timers_us; /* when timers ran last */
    uint64_t gate_us;   /* records leave before it only */

    struct buffer whole; /* scratch of link_send_common() */

    struct list listeners;
    struct list conns;
    struct list closing;
    struct list links;
    struct list lost;
    struct list dirty;
    uint32_t accepted_count; /* connections that we accepted and that are not closing */

    uint64_t log_window_us; /* hostile peers must not fill the log: links_may_log() */
    uint32_t log_lines;
    uint32_t log_dropped;
    char logged[LINK_REASON_MAX]; /* last refusal of an accepted connection, and when */
    uint64_t logged_us;
};

/* ---- conn.c */

/* Start talking on a fresh stream; takes it. The dialling side says hello. */
void conn_new(struct links *links, struct link *link, struct stream *stream);
/* Close; its link is lost with `reason` (copied). Nothing is called back from here. */
void conn_close(struct conn *conn, const char *reason);
/* Free it if its stream is through with it; `force`: wait for that. Returns whether it is gone. */
bool conn_reap(struct conn *conn, bool force);
/* What came since the last poll was heard now: the clock is read by polls alone. */
void conn_hear(struct conn *conn);
/* When its peer is to be pinged, if nothing else is said until then. Of one that is up. */
uint64_t conn_ping_us(const struct conn *conn);
/* When conn_on_timer() has something to do at the latest. Of one that is up. */
uint64_t conn_due_us(const struct conn *conn);
/* Close it if its peer is silent; ping it if that is due, or would be `early_us` later. */
void conn_on_timer(struct conn *conn, uint64_t early_us);
/* Queue a frame past every bound: for the greeting. */
void conn_put(struct conn *conn, enum frame_type type, struct bytes body);
void conn_mark_dirty(struct conn *conn);
void conn_flush(struct conn *conn);
size_t conn_queued(const struct conn *conn);
/* The flags of its frames of records, either way. */
static inline uint8_t conn_record_flags(const struct conn *conn)
{
    return conn->protocol > LINK_PROTOCOL_TODAY ? FRAME_MARK : 0;
}
/* Close it for sending what is not ours; logs and counts. */
void conn_garbage(struct conn *conn, const char *what, struct bytes seen);

/* ---- secure.c: TLS on a connection; nothing of it is called without conn->tls */

/* Begin TLS on a fresh connection if config.tls wants it. The dialling side speaks first. */
void secure_start(struct conn *conn);
/* `count` bytes are in conn->raw: append what they say to conn->in. False: it is over, or soon will
 * be; nothing is to be delivered. */
bool secure_take(struct conn *conn, size_t count);
/* Append conn->out to conn->sealed, if it may be said by now. */
void secure_seal(struct conn *conn);
/* Check the peer's hello against its certificate: REFUSAL_NONE, or what is wrong, with a reason. */
enum refusal secure_judge(const struct conn *conn, char *reason, size_t size);
/* The files of links->config.tls, as a process that greets with config.self needs them. NULL:
 * `why`.
 */
struct tls_keys *secure_load(const struct links_config *config, char why[TLS_WHY_SIZE]);

/* ---- greeting.c: hello, welcome, refused */

void greeting_start(struct conn *conn);
void greeting_on_frame(struct conn *conn, const struct frame *frame);
/* Our own fleet became known when this one was up already: close it if it can't stay so. */
void greeting_judge_fleet(struct conn *conn);

/* ---- link.c */

struct link *link_new(struct links *links, const char *address, bool dialled);
/* The link's connection or its dial attempt failed: queue the link for links_poll(). */
void link_lost(struct link *link, const char *reason);
void link_on_timer(struct link *link);
/* Taken off the lost list: call `down`, then set the retry or free. Returns false if it must wait.
 */
bool link_settle(struct link *link);
void link_free(struct link *link);
/* True if this text was not the last one logged about the link. */
bool link_may_log(struct link *link, const char *text);

/* ---- listener.c */

void listener_on_timer(struct listener *listener);
void listener_free(struct listener *listener);

/* ---- links.c */

/* True unless strangers have caused too many lines lately. */
bool links_may_log(struct links *links);
/* True if a refusal with this text may be logged. Refusals come again each second: the same text is
 * logged once a minute, or on a link that was dialled, once. */
bool links_may_log_refusal(struct conn *conn, const char *text);

#endif

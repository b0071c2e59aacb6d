/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the node's shell share (node_uv.c, start_uv.c, peers_uv.c,
 * effects_uv.c, persist_uv.c …).
 */
#ifndef NODE_SHELL_UV_H
#define NODE_SHELL_UV_H

#include "base/list.h"
#include "base/log.h"
#include "base/pace.h"
#include "base/table.h"
#include "daemon/reload_uv.h"
#include "link/link.h"
#include "node/books/backlog.h"
#include "node/books/presence.h"
#include "node/calls/calls.h"
#include "node/folder.h"
#include "node/lister_uv.h"
#include "node/node_uv.h"
#include "node/worker/crash_record.h"
#include "node/worker/kinds.h"
#include "node/worker/worker_uv.h"
#include "storage/log/number.h"
#include "wire/finder.h"
#include "wire/frame.h"

#include <uv.h>

/* One link that said hello. */
struct shell_peer {
    struct table_link by_id;
    uint64_t id; /* never used again */
    struct shell *shell;
    struct link *link;
    const char *drop;       /* why it is to go at the end of this turn; NULL = it stays */
    int coordinator;        /* index, or -1 */
    bool full;              /* the host was told so */
    struct backlog backlog; /* what is to go when there is room */
};

enum wants { WANTS_HOST = 1, WANTS_CALLS = 2 };

/* A link to another node that is kept for somebody. */
struct wanted {
    uint16_t slot;
    unsigned by; /* enum wants */
    char address[VIEW_ADDRESS_MAX + 1];
    struct link *link;
};

/* Events that the effects of another event caused; they borrow nothing. */
struct queued_events {
    struct host_event *event; /* owned */
    size_t head;
    size_t count;
    size_t cap;
};

/* The number record, written one version at a time on a worker thread. */
struct persist {
    uv_work_t work;
    struct number *number;
    struct buffer writing; /* the worker's while busy */
    struct buffer next;    /* the newest one asked for; it holds all before it */
    uint64_t *ticket;      /* owned; of `writing`, then of `next` */
    size_t ticket_count;
    size_t ticket_cap;
    size_t writing_count; /* tickets that `writing` covers */
    enum err result;
    bool busy;
};

/* When memory is given back. */
struct trim {
    uv_work_t work;
    uint64_t trimmed_us;
    uint64_t most; /* actors and records since the last time */
    bool busy;
};

enum { DISPATCHER_WORKERS_MAX = CRASH_RECORD_SLOTS };

/* Instances of a worker that moved to other nodes, to be discarded. */
struct departed {
    struct submission *item; /* owned, in their order */
    size_t count;
    size_t taken;
    size_t cap;
};

/* Where the actors are: the workers, and what is known of each actor. */
struct dispatcher {
    struct limits limits;
    struct committer *committer;      /* owned; NULL = the node has no store */
    struct store_task *_Atomic due;   /* owned; a page of due alarms that the store has read */
    struct alarm_counts alarm_counts; /* of all workers, like the next three */
    struct durable_figures figures;
    struct broadcasting broadcasting;
    struct numbering numbering;
    struct worker *worker[DISPATCHER_WORKERS_MAX];
    struct departed departed[DISPATCHER_WORKERS_MAX];
    size_t worker_count;
    size_t first;    /* worker: what it completed is taken first */
    bool told;       /* something was completed on this thread that is not taken yet */
    size_t exports;  /* actors that have told their state in this turn */
    size_t here_max; /* posts that are done on the protocol thread, at most */
    uint64_t
        told_us[DISPATCHER_WORKERS_MAX]; /* since when those ran that were complained of last … */
    uint64_t told_deferred_us;           /* … and that one was deferred */
    uint64_t looked_us;
};

/* Counters of what became of pushes. */
struct pushes_sent {
    uint64_t sent;
    uint64_t dropped_absent; /* no link to the gateway */
    uint64_t dropped_full;   /* its link has too much to send */
    uint64_t told;           /* dropped, as the log knows */
    uint64_t told_us;
};

/* The runtimes that a host_serve() runs actors on. All zero: it has entered none. */
struct serving {
    struct shell *shell;
    struct shell_peer *peer;  /* who asks; NULL = this node's calls, or what needs no answer */
    struct told_calls *heard; /* effects_uv.c's: what those calls were answered */
    uint64_t inside;          /* workers, by bit: entered … */
    uint64_t closed;          /* … or not to be */
};

struct shell {
    const struct node_options *options;
    struct node_asks *asks;
    uv_loop_t loop;
    uv_async_t wake;
    uv_poll_t completed; /* some worker has completed something: dispatcher_ring() */
    int completed_fd;
    uv_timer_t tick;
    uv_timer_t go_on; /* what goes by its own pace has its next turn */
    struct pace pace;
    uv_prepare_t before_sleep;
    uv_signal_t on_term;
    uv_signal_t on_int;
    struct reload reload;

    struct folder folder;
    struct host_disk disk; /* as found at the start */
    struct crash_record crash_record;
    struct crash_record_left left; /* by the process before me */
    struct persist persist;
    struct trim trim;
    struct kinds kinds;
    struct dispatcher dispatcher;
    struct lister *lister;
    struct host *host;
    struct calls *calls;
    struct presence presence;
    struct pushes_sent pushes;
    struct watchdog *watchdog;
    struct host_effects effects;
    struct buffer answer; /* of a request that was served at once */
    struct queued_events queued;
    bool stepping;

    struct links *links;
    struct link *coordinator[FINDER_MAX];
    size_t coordinator_count;
    size_t coordinators_up;
    struct table peers;
    uint64_t last_peer;
    struct wanted *wanted; /* owned */
    size_t wanted_count;
    size_t wanted_cap;
    size_t full_count;   /* peers that are full */
    size_t backlog_size; /* bytes of all backlogs */
    bool drops_due;      /* some peer has `drop` set */

    char address[VIEW_ADDRESS_MAX + 1]; /* as others reach my links */
    uint64_t bad_frames;
    uint64_t now_us;        /* read last … */
    uint64_t wall_us;       /* … with that */
    unsigned fresh;         /* so many more steps may go by it */
    uint64_t complained_us; /* of no coordinator; start of the wait */
    unsigned stops_seen;    /* calls of rh_node_stop() */
    bool ready;             /* announced */
    bool leaving;
    uint64_t leave_us; /* since when */
    bool exiting;      /* the host said EXIT */
    uint64_t exit_by_us;
    int exit_code;
};

/* ---- start_uv.c */

/* Everything that can be refused, in an order that leaves nothing half-done. False: one line about
 * it was printed. */
bool shell_start(struct shell *s);
/* Print that line. Always false. */
bool shell_complain(const char *what, const char *value);
/* The name of the cluster, or the one it has by default. */
const char *shell_cluster(const struct rh_node_options *o);

/* ---- node_uv.c */

/* Take what the workers completed and what came over the links. */
void shell_poll(struct shell *s);

/* ---- peers_uv.c: links, and what comes over them */

bool peers_open(struct shell *s);
bool peers_dial_coordinators(struct shell *s);

/* ---- effects_uv.c */

/* Step the host with an event, do its effects, and go on with what they caused. */
void shell_feed(struct shell *s, struct host_event *event);
/* Step the host with what is queued: what the runtime's timers caused. */
void shell_settle(struct shell *s);
/* Queue an event for after the present step. */
void shell_queue(struct shell *s, const struct host_event *event);
/* Tell the host which links have room again. */
void shell_look_for_room(struct shell *s);
/* A link is gone: forget what there is of it. It is in no table any more. */
void shell_free_peer(struct shell *s, struct shell_peer *p);
/* Drop the links that have to go; at the end of a turn. */
void shell_drop_peers(struct shell *s);
/* NULL = gone. */
struct shell_peer *shell_peer(const struct shell *s, uint64_t id);

/* Run one step of the host, and do its effects; not from within another step. */
void shell_step(struct shell *s, struct host_event *event);
/* Have the host serve those of the requests at the front that are steady, and tell how many. */
size_t shell_serve(struct shell *s, uint64_t peer, const struct request_record *r,
                   const uint64_t *position, size_t count);
/* Take a frame of a stream. */
void shell_take_frame(struct shell *s, uint64_t peer, const struct frame *frame);
/* Tell the links what streams have to send, which goes out with their next flush; at the end of a
 * turn. */
void shell_feed_links(struct shell *s);
/* Send a packed Control to the coordinator with that index. */
void shell_send_coordinator(struct shell *s, size_t index, struct bytes bytes);
/* ERR_NOT_FOUND: that link is gone. */
enum err shell_send_peer(struct shell *s, uint64_t peer, enum frame_type type, struct bytes bytes);
/* Like shell_send(), for a request whose body other requests share. */
enum err shell_send_common(struct shell *s, uint64_t peer, const struct calls_effect *e);
/* Have the host serve those at the front of requests of this node's own calls, without more ado:
 * nothing that follows from it is done. How many. */
size_t shell_serve_calls(struct serving *v, const struct calls_effect *e,
                         const struct request_record *r, const uint64_t *position, size_t count);

/* ---- calls_uv.c */

/* Do the effects of calls. True: some were done, and there may be queued events; what is left after
 * many comes in another turn. */
bool shell_settle_calls(struct shell *s);
/* Take a probe that another node sent. */
void shell_on_probe(struct shell *s, uint64_t peer, const Rh__Probe *message);
/* The host has answered on CALLS_LINK. */
void shell_on_call_record(struct shell *s, struct bytes record);

/* ---- pushes_uv.c */

/* Send a push record to that gateway, or drop it. */
void shell_push(struct shell *s, uint64_t gateway, struct bytes record);
/* Do what is due; every 10..50 ms. */
void shell_pushes_tick(struct shell *s);

/* ---- dials_uv.c */

/* Keep a link there, for one more. */
void shell_dial(struct shell *s, uint16_t slot, const char *address, enum wants who);
/* Not for that one any more. */
void shell_hang_up(struct shell *s, uint16_t slot, enum wants who);

/* Log a line that names an actor: "kind=… id=… what=…". */
void shell_log_actor(enum log_level level, const char *event, struct named actor, const char *what);

/* ---- dispatcher_uv.c */

/* Start watchdog and workers. False: one line about it was printed. */
bool dispatcher_open(struct shell *s);
/* Give HOST_SUBMIT to the actor's worker. */
void dispatcher_submit(struct shell *s, const struct host_effect *e, struct bytes bytes);
/* host_server.run(), of a struct serving. */
enum host_ran dispatcher_run(void *context, const struct actor *a, struct at_once *run);
/* Leave them. What else was completed there is taken by dispatcher_send() at the latest. */
void dispatcher_leave_serving(struct serving *v);
/* Leave them, and take now what else was completed. */
void dispatcher_end_serving(struct serving *v);
/* A call was answered: its actor hears so at once, on a runtime that is then entered, or its worker
 * does. */
void dispatcher_answer(struct serving *v, const struct call_answer *answer);
/* An actor makes a call. */
void dispatcher_on_call(void *shell, const struct completion *c);
/* A gateway is gone: tell the actors that clients of it are bound to. */
void dispatcher_gateway_gone(struct shell *s, uint64_t gateway);
/* Amidst much that comes: if all that is brief is done on this thread, do it while what it needs is
 * in the cache. */
void dispatcher_do(struct shell *s);
/* Do the brief submissions if they are few, and hand over the rest; at the end of a turn. */
void dispatcher_send(struct shell *s);
/* From any thread: the protocol thread is to take what the workers of this shell completed. Not by
 * uv_async_send(): whom that wakes spins until who woke it has come back from the kernel, and where
 * both are on one core that is a time slice. */
void dispatcher_ring(void *shell);
/* Feed the host with what the workers completed; what is too much of it for one turn waits for the
 * next.
 */
void dispatcher_take(struct shell *s);
/* Whether instances wait for their end, of which some go with each turn. */
bool dispatcher_has_departed(const struct shell *s);
/* Submit the ends of all of them. */
void dispatcher_end_departed(struct shell *s);
/* Like dispatcher_take(), for all completions. */
void dispatcher_take_all(struct shell *s);
/* Begin another turn if something waits for one; after all else of a turn. */
void dispatcher_end_turn(struct shell *s);
/* Feed it with ids of remembered kinds that were listed. */
void dispatcher_wake(struct shell *s);
/* Have the store read which alarms are due: HOST_DUE … */
void dispatcher_ask_due(struct shell *s, const struct host_effect *e, struct bytes after);
/* … and feed the host with what it has read. */
void dispatcher_take_due(struct shell *s);
/* Tell the workers the lease as it is now; after each step. */
void dispatcher_set_limits(struct shell *s);
/* Take back what is too late; every 10..50 ms. */
void dispatcher_recall(struct shell *s);
/* Name the actors whose task does not end, every 10..50 ms. */
void dispatcher_complain(struct shell *s);
/* Begin nothing more; `save`: flush what is left. */
void dispatcher_stop(struct shell *s, bool save);
/* Wait for the workers and free everything. False: one is stuck in an actor, and what it may touch
 * has to stay, the shell and the kinds included. */
bool dispatcher_close(struct shell *s);

/* ---- worker_stats_uv.c */

/* Feed an event that asks how it is (Inspect), with what the workers know. */
void worker_stats_feed(struct shell *s, struct host_event *event);
/* For how long actors ran, of all workers, since they began. */
uint64_t worker_stats_busy_us(const struct shell *s);

/* ---- persist_uv.c */

/* Write `disk` off the loop; HOST_PERSISTED follows for `ticket`. */
void persist_put(struct shell *s, const struct host_disk *disk, uint64_t ticket);
void persist_fini(struct persist *p);

/* ---- trim_uv.c */

/* Give memory back, every 10 ms, when many actors or records are gone. */
void trim_tick(struct shell *s);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * One thread of a gateway: an event loop with clients, a router and links of its
 * own. Towards nodes and coordinators each thread is a gateway by itself, with
 * an id of its own (wire/gateway_id.h); on the way of a request nothing is
 * shared with another thread.
 *
 *     thread_open()   its loop and handles; nothing moves yet
 *     thread_start()  cores and links
 *     thread_run()    in the thread that it is to be; returns when it is over
 *
 * Another thread may call thread_hand(), thread_reload(), thread_drain() and
 * thread_stop() at any time. It tells its owner THREAD_READY once, when it knows a ring, and
 * THREAD_ENDED as the last thing of all that it tells.
 */
#ifndef GATEWAY_THREAD_UV_H
#define GATEWAY_THREAD_UV_H

#include "base/pace.h"
#include "gateway/auth_uv.h"
#include "gateway/certificate_uv.h"
#include "gateway/client/stats.h"
#include "gateway/gateway_uv.h"
#include "gateway/shell_uv.h"
#include "wire/finder.h"

#include <pthread.h>

enum thread_news { THREAD_READY, THREAD_ENDED };

struct thread_config {
    const struct gateway_options *options;   /* borrowed for life */
    uint64_t process;                        /* random; gateway_id_process() of it is itself */
    unsigned index;                          /* of this thread */
    unsigned count;                          /* of threads */
    struct thread_stats *shared_stats;       /* borrowed for life; NULL with one thread */
    struct unauthenticated *unauthenticated; /* borrowed for life */
    struct admission_control *admission;     /* borrowed for life */
    void (*tell)(void *context, enum thread_news news); /* in the thread itself */
    void *context;
};

/* The process at the other end of a link. */
struct remote {
    struct link *link;
    int coordinator; /* its index, or -1 */
    uint16_t slot;   /* of a node */
    struct thread *thread;
};

/* A client's socket, on its way to the thread. */
struct handed {
    enum entry entry;
    int fd;
};
struct hands {
    struct handed *item; /* owned */
    size_t count;
    size_t cap;
};

/* Messages from other threads to this one. */
struct thread_post {
    pthread_mutex_t lock; /* all below */
    struct hands hands;
    struct gateway_options again; /* limits, times and rates as they are now, if `reload` */
    bool reload;
    bool drain;
    bool stop;
    bool closed; /* it takes nothing any more */
};

struct thread {
    struct thread_config config;
    uv_loop_t loop;
    uv_prepare_t prepare;
    uv_timer_t tick;
    struct pace pace;  /* of the ticks */
    uint64_t swept_us; /* clients that say nothing were looked at */
    uv_async_t wake;   /* there is something in the post */
    struct links *links;
    struct remote coordinator[FINDER_MAX];
    struct remote *node[RING_NODES_MAX + 1]; /* owned; NULL = no link kept */
    struct router *router;
    struct clients *clients;
    struct router_effects effects;
    size_t done; /* effects of this turn that are done */
    struct gateway_listener listener;
    struct auth auth;
    struct certificate certificate;
    struct hands taking; /* what the post held */
    struct thread_post post;
    bool ready;
    bool draining;
    bool stopping; /* handles are being closed */
};

/* NULL: no event loop. */
struct thread *thread_open(const struct thread_config *config);
/* False: it said on stderr why not; thread_stop() and thread_run() it all the same. `port`: of its
 * process, for INFO. */
bool thread_start(struct thread *t, uint16_t port);
void thread_run(struct thread *t);
/* Free the thread after thread_run(). Takes NULL. */
void thread_free(struct thread *t);

/* The time of this turn. For the files of the thread, as are the next three. */
static inline uint64_t thread_now(struct thread *t)
{
    return listener_now(&t->listener);
}

/* The thread's id as a gateway. */
static inline uint64_t thread_id(const struct thread *t)
{
    return t->config.process + t->config.index;
}

/* Dial the coordinators. (thread_links_uv.c) */
enum err thread_links_open(struct thread *t);
/* Do all that the router wants. By index: what is given back appends to the list, and may move it.
 */
void thread_do_effects(struct thread *t);
/* Tell the links what streams have to send, behind thread_do_effects(): it goes out with their next
 * flush. */
void thread_feed_links(struct thread *t);
/* Send requests and replies, up to the first effect of another kind: links may come and go at the
 * end of a turn only. In the middle of one the bytes are still in the CPU's cache. */
void thread_do_requests(struct thread *t);

/* Return this thread's share of the `total` (clients, bytes, …) that the process may have. */
size_t thread_share(const struct thread_config *config, size_t total);

/* Hand the thread a client of its own. Takes `fd`. */
void thread_hand(struct thread *t, enum entry entry, int fd);
/* Take over changed options, or changed files that they name. Call in the thread that may change
 * them. */
void thread_reload(struct thread *t);
/* Finish what is under way, then end. */
void thread_drain(struct thread *t);
/* End. */
void thread_stop(struct thread *t);

#endif

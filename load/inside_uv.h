/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files load*_uv.c share. Nobody else includes this.
 */
#ifndef LOAD_INSIDE_UV_H
#define LOAD_INSIDE_UV_H

#include "load/load_uv.h"
#include "load/mould.h"

#include "base/bytes.h"
#include "base/list.h"
#include "base/prng.h"

#include <uv.h>

enum { LOAD_READ_SIZE = 256 * 1024 };

enum stage { GREETING, WARMING, COUNTING, LINGERING };

struct run;

struct load_conn {
    uv_tcp_t tcp;
    uv_connect_t connect;
    uv_write_t write;
    struct run *run;
    struct list_link touched;
    struct buffer in;
    struct buffer out;
    struct buffer writing;
    uint64_t *since_us; /* owned; of request number i: when it was due; 0 = it is not under way */
    uint32_t *free;     /* owned: numbers that are not under way */
    uint32_t free_count;
    uint32_t depth;
    uint32_t batch;
    double due_us; /* open loop: of the next batch */
    bool held_up;  /* open loop: it is due, and has no room */
    bool writes;   /* a write is under way */
    bool greeted;
    bool gone;
};

struct run {
    const struct fleet_load *load;
    struct fleet_load_result *result;
    uv_loop_t loop;
    uv_prepare_t prepare;
    uv_poll_t poll;
    uv_timer_t tick; /* for stages */
    struct load_conn *conn;
    struct list touched;
    struct prng random;
    enum stage stage;
    uint64_t now_us;
    uint64_t stage_us; /* since when */
    uint64_t counted_from_us;
    uint32_t greeted;
    uint64_t same_us; /* so long took the last answers that are not in the histogram yet */
    uint64_t same_count;
    uint64_t used_us; /* our processor time until it counts */
    uint8_t *input;   /* owned: one read buffer for all */
    struct mould mould;
    int timer; /* timerfd, or -1 */
};

/* ---- conn_uv.c */

/* Callback of uv_tcp_connect(): the connection is up, or failed. */
void conn_on_connected(uv_connect_t *connect, int status);
/* The connection is lost; the first reason is reported. */
void conn_lose(struct load_conn *c, const char *why);

/* Put the answers that took equally long into the histogram. */
void load_count_same(struct run *r);
/* Do requests leave now? */
bool load_asks(const struct run *r);
/* Ask what is due, or as much as may be under way. Returns when to look again, in open loop. */
double load_ask_all(struct run *r);
/* Callback of the loop: send what was asked in this turn. */
void load_on_prepare(uv_prepare_t *prepare);

#endif

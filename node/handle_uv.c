/* SPDX-License-Identifier: Apache-2.0
 *
 * The node of ringhold.h: a handle on a node that runs on threads of its own.
 */
#include "node/node_uv.h"
#include "node/outside_uv.h"
#include "node/worker/worker_uv.h"

#include "base/given.h"
#include "base/mem.h"

#include <pthread.h>
#include <stdio.h>

enum { POLL_US = 100000 };

struct rh_node {
    struct node_options options; /* a copy */
    struct node_asks asks;
    struct outside outside;
    struct shell *shell;   /* the protocol thread's */
    struct worker *worker; /* embedded: until `ended` */
    pthread_t thread;
    bool embedded;
    bool ended;
    int exit_code;
};

static bool take_options(struct node_options *all, const struct rh_node_options *options)
{
    // What ABI 2 began with.
    struct given given = {.data = options,
                          .least = offsetof(struct rh_node_options, role) + sizeof options->role};
    char what[GIVEN_TEXT];

    *all = node_options_default();
    if (options == NULL) {
        (void)fprintf(stderr, "ringhold node: started without options\n");
        return false;
    }
    if (options->abi != RH_ABI) {
        (void)fprintf(
            stderr,
            "ringhold node: the options were built for ABI %u of libringhold, but this is ABI %d\n",
            options->abi,
            RH_ABI);
        return false;
    }
    given.size = options->size;
    if (!given_take(&given, &all->node, sizeof all->node, what)) {
        (void)fprintf(stderr, "ringhold node: the options: %s\n", what);
        return false;
    }
    return true;
}

static void handle_free(struct rh_node *node)
{
    outside_fini(&node->outside);
    mem_free(node);
}

static void *serve(void *argument)
{
    struct rh_node *node = argument;

    node->exit_code = node_serve(node->shell);
    return NULL;
}

struct rh_node *rh_node_start(const struct rh_node_options *options)
{
    struct rh_node *node = mem_new(1, sizeof *node);

    if (!take_options(&node->options, options)) {
        mem_free(node);
        return NULL;
    }
    outside_init(&node->outside, node);
    node->asks.outside = &node->outside;
    node->shell = node_open(&node->options, &node->asks);
    if (node->shell == NULL) {
        handle_free(node);
        return NULL;
    }
    node->embedded = node->options.node.embedded != 0;
    node->worker = node->embedded ? node_worker(node->shell) : NULL;
    node->outside.worker = node->worker;
    if (pthread_create(&node->thread, NULL, serve, node) != 0) {
        // Without a thread it leaves on this one, at once.
        (void)fprintf(stderr, "ringhold node: can't start its thread\n");
        atomic_store(&node->asks.stops, 2);
        (void)node_serve(node->shell);
        handle_free(node);
        return NULL;
    }
    return node;
}

int rh_node_drain(struct rh_node *node)
{
    if (node == NULL) {
        return RH_INVALID;
    }
    atomic_store(&node->asks.drain, true);
    return RH_OK;
}

void rh_node_stop(struct rh_node *node)
{
    if (node == NULL) {
        node_stop_any();
    } else {
        (void)atomic_fetch_add(&node->asks.stops, 1);
    }
}

static void poll_once(struct rh_node *node, uint64_t wait_us)
{
    node->ended = node->ended || !worker_poll(node->worker, wait_us);
    outside_hand_out(&node->outside);
}

int rh_node_wait(struct rh_node *node)
{
    if (node == NULL) {
        return 1;
    }
    while (node->embedded && !node->ended) {
        poll_once(node, POLL_US);
    }
    (void)pthread_join(node->thread, NULL);
    outside_hand_out(&node->outside);
    const int exit_code = node->exit_code;
    handle_free(node);
    return exit_code;
}

int rh_node_run(const struct rh_node_options *options)
{
    struct rh_node *node = rh_node_start(options);

    return node == NULL ? 1 : rh_node_wait(node);
}

int rh_node_fd(struct rh_node *node)
{
    return node != NULL && node->embedded && !node->ended ? worker_fd(node->worker) : -1;
}

int rh_node_poll(struct rh_node *node, int ms)
{
    if (node == NULL || !node->embedded) {
        return RH_INVALID;
    }
    if (!node->ended) {
        poll_once(node, ms < 0 ? UINT64_MAX : (uint64_t)ms * 1000);
    }
    return node->ended ? RH_GONE : RH_OK;
}

// NOLINTNEXTLINE(readability-function-size): what a call is made of, as ringhold.h has it
int rh_node_call(struct rh_node *node, uint16_t kind, struct rh_bytes id, struct rh_bytes payload,
                 uint32_t timeout_ms, uint32_t flags, rh_on_node_answer then, void *argument)
{
    const struct outside_question question = {.kind = kind,
                                              .id = id,
                                              .payload = payload,
                                              .timeout_ms = timeout_ms,
                                              .flags = flags,
                                              .then = then,
                                              .argument = argument};

    return node == NULL ? RH_INVALID : outside_call(&node->outside, &question);
}

int rh_node_owner(struct rh_node *node, uint16_t kind, struct rh_bytes id, char name[RH_NODE_NAME])
{
    return node == NULL || name == NULL
               ? RH_INVALID
               : outside_owner(&node->outside, node->shell, kind, id, name);
}

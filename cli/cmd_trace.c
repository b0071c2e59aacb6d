/* SPDX-License-Identifier: Apache-2.0
 *
 * `ringhold trace`: sends one request to an actor and prints the times of each
 * process on its way.
 */
#include "cli/commands.h"
#include "cli/operator_request.h"
#include "wire/trace.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *did_text(const struct trace_hop *hop)
{
    const bool held = (hop->did & TRACE_HELD) != 0;

    if ((hop->did & TRACE_RAN) != 0) {
        return held ? "held, then ran" : "ran";
    }
    return held ? "held, then forwarded" : "forwarded";
}

/* The gateway, each node, and what is left: links, and the loops that were not turning yet. */
static void put_hops(const Rh__OperatorRequestAnswer *a, struct rows *r)
{
    static const char *const columns[] = {
        "STEP", "PROCESS", "VERSION", "WAITED=waited_us", "RAN=ran_us", "DID", NULL};
    struct reader in = {.at = a->body.data, .left = a->body.len};
    struct trace_hop hop;
    uint64_t known_us = a->sent_us;

    rows_init(r, columns);
    rows_text(r, "gateway");
    rows_text(r, "%s", a->gateway);
    rows_stamp(r, a->version);
    rows_us(r, a->sent_us);
    rows_us(r, 0);
    rows_text(r, a->copies == 0 ? "not sent" : a->copies == 1 ? "sent" : "sent again");
    while (trace_next(&in, &hop)) {
        rows_text(r, "node");
        rows_text(r, "%.*s", (int)hop.node.size, (const char *)hop.node.data);
        rows_stamp(r, hop.version);
        rows_us(r, hop.waited_us);
        rows_us(r, hop.ran_us);
        rows_text(r, "%s", did_text(&hop));
        known_us += (uint64_t)hop.waited_us + hop.ran_us;
    }
    rows_text(r, "links");
    rows_text(r, "-");
    rows_stamp(r, a->version);
    rows_us(r, a->total_us > known_us ? a->total_us - known_us : 0);
    rows_us(r, 0);
    rows_text(r, "the rest, both ways");
}

/* Who ran it, or was asked last. */
static void owner_of(const Rh__OperatorRequestAnswer *a, char *out, size_t size)
{
    struct reader in = {.at = a->body.data, .left = a->body.len};
    struct trace_hop hop;

    (void)snprintf(out, size, "%s", a->node);
    while (trace_next(&in, &hop)) {
        (void)snprintf(out, size, "%.*s", (int)hop.node.size, (const char *)hop.node.data);
    }
}

static int tell(const struct query *q, const Rh__OperatorRequestAnswer *a)
{
    const bool ran = strcmp(a->outcome, "ok") == 0;
    const bool asleep = strcmp(a->outcome, "nobody") == 0;
    char owner[TRACE_NAME_MAX + 1];
    char text[32];
    struct rows hops;

    owner_of(a, owner, sizeof owner);
    put_hops(a, &hops);
    if (q->json) {
        (void)printf("{\"outcome\":");
        json_print_string(a->outcome);
        (void)printf(",\"owner\":");
        json_print_string(owner);
        (void)printf(",\"copies\":%u,\"total_us\":%" PRIu64 ",\"hops\":", a->copies, a->total_us);
        rows_print(&hops, ROWS_JSON);
        (void)printf("}\n");
    } else if (query_bare(q)) {
        rows_print(&hops, q->format);
    } else {
        rows_print(&hops, q->format);
        (void)printf("\n%s after %s, %u %s sent",
                     ran ? "answered" : "not answered by the actor,",
                     duration_text(a->total_us, text, sizeof text),
                     a->copies,
                     a->copies == 1 ? "copy" : "copies");
        (void)printf(
            owner[0] == '\0' ? "\n" : "; %s %s\n", ran ? "it lives at" : "the last to", owner);
    }
    rows_fini(&hops);
    if (!ran && !q->json) {
        (void)fprintf(stderr,
                      "ringhold trace: %s%s\n",
                      operator_request_fault(a) == NULL ? a->outcome : operator_request_fault(a),
                      asleep ? ": a request would activate it; --wake does" : "");
    }
    return ran ? 0 : 1;
}

int cmd_trace(int argc, char **argv)
{
    struct query q;
    bool wake = false;
    char gateway[64] = "";
    const struct option more[] = {
        option_text("gateway", "NAME", gateway, sizeof gateway, "the gateway that sends it (any)"),
        option_switch("wake", &wake, "activate the actor if it is not live"),
    };
    const struct command command = {
        .name = "trace",
        .summary = "Send a request to an actor and show its way, with the times of each process.",
        .arguments = "KIND/ID",
        .details =
            "The request takes the way of every request and waits its turn in the actor's mailbox; "
            "the actor's\n"
            "code is not run. Each process measures its own times: WAITED from arrival until sent "
            "on or run, RAN\n"
            "in the node's worker, its queue included. Exit code: 0 answered, 1 not answered.",
        .options = query_options_more(&q, more, sizeof more / sizeof more[0]),
        .arguments_min = 1,
        .arguments_max = 1,
    };
    const int parsed = query_parse(&q, &command, argc, argv);
    Rh__AdminOperatorRequest what = RH__ADMIN_OPERATOR_REQUEST__INIT;

    if (parsed >= 0) {
        return parsed;
    }
    what.what = RH__OPERATOR_REQUEST_WHAT__OPERATOR_REQUEST_TRACE;
    what.gateway = gateway;
    what.wake = wake;
    return operator_request_run(&q, command.name, &what, tell);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Opens a client at the gateways, and words how its requests end.
 */
#include "cli/gateway_client.h"

#include "base/random.h"
#include "base/secret_file.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_GATEWAY "127.0.0.1:6381"

enum {
    DEADLINE_MS = 5000,
    DEADLINE_MAX_MS = 600000,
    TOKEN_MAX = 1024,
    BODY_ROOM = 1024, /* for the head of a request, and its id */
    OUT_MIN = 128 * 1024,
};

void gateway_where_options(struct gateway_where *o, struct option rows[GATEWAY_OPTIONS])
{
    *o = (struct gateway_where){.deadline_ms = DEADLINE_MS};
    rows[0] = option_text(
        "gateway",
        "HOST:PORT,...",
        o->gateway,
        sizeof o->gateway,
        "gateways' addresses for packets, `gateway --frames` (RINGHOLD_GATEWAY; 127.0.0.1:6381)");
    rows[1] = option_text(
        "token", "FILE", o->token, sizeof o->token, "a file with the token that gateways ask for");
    rows[2] = option_time("deadline",
                          &o->deadline_ms,
                          (struct option_range){1, DEADLINE_MAX_MS},
                          "time limit of a request (%)");
}

/* An option, then the context that an option names, then the environment, then another context. */
static const char *address(const struct query *q, const struct gateway_where *o)
{
    const char *environment = getenv("RINGHOLD_GATEWAY");
    const char *fallback = q->gateway[0] != '\0' ? q->gateway : DEFAULT_GATEWAY;

    if (o->gateway[0] != '\0') {
        return o->gateway;
    }
    if (environment == NULL || environment[0] == '\0' ||
        (q->context[0] != '\0' && q->gateway[0] != '\0')) {
        return fallback;
    }
    return environment;
}

/* The first line of the file. False after printing. */
static bool read_token(const char *command, const char *path, char token[TOKEN_MAX + 2])
{
    size_t size = 0;
    const char *why = secret_file_read(path, (uint8_t *)token, TOKEN_MAX + 1, &size);

    if (why == NULL) {
        token[size] = '\0';
        token[strcspn(token, "\r\n")] = '\0';
        why = token[0] == '\0' ? "it has no token" : NULL;
    }
    if (why != NULL) {
        (void)fprintf(stderr, "ringhold %s: --token: %s: %s\n", command, path, why);
    }
    return why == NULL;
}

struct rhc_tcp *gateway_client(const char *command, const struct query *q,
                               const struct gateway_where *o, size_t body_size,
                               rhc_on_event *on_event, void *context)
{
    const char *path = o->token[0] != '\0' ? o->token : q->token;
    const char *gateways = address(q, o);
    char token[TOKEN_MAX + 2] = "";
    const size_t out_max = body_size + BODY_ROOM;

    if (path[0] != '\0' && !read_token(command, path, token)) {
        return NULL;
    }
    const struct rhc_options options = {.abi = RHC_ABI,
                                        .size = sizeof options,
                                        .token = token[0] == '\0' ? NULL : token,
                                        .seed = random_u64(),
                                        .answer_ms = o->deadline_ms,
                                        .in_max = 16 * 1024 * 1024 - 1,
                                        .out_max =
                                            (uint32_t)(out_max < OUT_MIN ? OUT_MIN : out_max)};
    struct rhc_tcp *tcp = rhc_tcp_new(gateways, &options, on_event, context);

    if (tcp == NULL) {
        (void)fprintf(
            stderr, "ringhold %s: '%s' is not HOST:PORT[,HOST:PORT...]\n", command, gateways);
    }
    return tcp;
}

void gateway_wait(struct rhc_tcp *tcp, int max_ms)
{
    struct pollfd fd = {.fd = rhc_tcp_fd(tcp), // poll() passes over a negative one
                        .events = (short)(POLLIN | (rhc_tcp_wants_write(tcp) ? POLLOUT : 0))};
    const int own_ms = rhc_tcp_wait_ms(tcp);
    const bool sooner = own_ms >= 0 && (max_ms < 0 || own_ms < max_ms);

    (void)poll(&fd, 1, sooner ? own_ms : max_ms);
    rhc_tcp_poll(tcp, 0);
}

int gateway_exit_code(unsigned status)
{
    switch (status) {
    case RHC_OK:
        return 0;
    case RHC_ACTOR_FAILED:
        return 4;
    case RHC_MOVING:
    case RHC_OVERLOADED:
    case RHC_NO_OWNER:
    case RHC_QUARANTINED:
    case RHC_REJECTED:
    case RHC_BAD_REQUEST:
    case RHC_UNAUTHORIZED:
    case RHC_RATE_LIMITED:
        return 5;
    default: // UNKNOWN, TIMEOUT, and what a later version says
        return 6;
    }
}

const char *gateway_status_text(unsigned status)
{
    switch (status) {
    case RHC_OK:
        return "answered";
    case RHC_ACTOR_FAILED:
        return "the actor answered with an error";
    case RHC_UNKNOWN:
        return "it may have run, at most once: its node or the connection was lost";
    case RHC_TIMEOUT:
        return "no answer in time: it may have run, or may run still, at most once";
    case RHC_MOVING:
        return "it did not run: no node or gateway could take it in time";
    case RHC_OVERLOADED:
        return "it did not run: there is no room for it now";
    case RHC_NO_OWNER:
        return "it did not run: no node hosts that kind (`ringhold status` lists them)";
    case RHC_QUARANTINED:
        return "it did not run: the actor is in quarantine (`ringhold quarantine list`)";
    case RHC_REJECTED:
        return "the actor takes no session";
    case RHC_BAD_REQUEST:
        return "it did not run: the request is invalid, or too large for the gateway";
    case RHC_UNAUTHORIZED:
        return "it did not run: the token is for another actor";
    case RHC_RATE_LIMITED:
        return "it did not run: too many requests";
    default:
        return "it may have run: the gateway says what this version does not know";
    }
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * `ringhold call`: one request to one actor by way of a gateway, for scripts.
 */
#include "base/bytes.h"
#include "base/escape.h"
#include "cli/actor_word.h"
#include "cli/commands.h"
#include "cli/gateway_client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BODY_MAX = 8 * 1024 * 1024 - 1, BLOCK = 65536, WHY_SIZE = 256 };

struct one_call {
    struct query q;
    struct gateway_where gateway;
    struct rhc_tcp *tcp;
    bool tells;
    bool hex;
    bool ready;  /* the gateway took this client, for now */
    bool kicked; /* for good */
    bool ended;
    int code;
    char why[WHY_SIZE]; /* the connection was lost last; "" = never */
};

/* ---- the body ---- */

static bool complain(const char *why)
{
    (void)fprintf(stderr, "ringhold call: %s\n", why);
    return false;
}

static bool read_input(struct buffer *out)
{
    size_t got;

    do {
        got = fread(buffer_reserve(out, BLOCK), 1, BLOCK, stdin);
        out->size += got;
    } while (got > 0 && out->size <= BODY_MAX);
    return ferror(stdin) == 0 || complain("standard input can't be read");
}

/* "48 65" in the place of what it stands for; blanks and line ends may stand between bytes. */
static bool from_hex(struct buffer *b)
{
    size_t size = 0;

    for (size_t at = 0; at < b->size; at++) {
        if (strchr(" \t\r\n", b->data[at]) != NULL && b->data[at] != '\0') {
            continue;
        }
        const int high = hex_of(b->data[at]);
        const int low = high < 0 || at + 1 == b->size ? -1 : hex_of(b->data[at + 1]);

        if (low < 0) {
            return complain("--hex: the body is no pairs of hexadecimal digits");
        }
        b->data[size++] = (uint8_t)(high * 16 + low);
        at++;
    }
    b->size = size;
    return true;
}

static bool take_body(const struct one_call *c, struct buffer *body)
{
    const char *text = c->q.argument_count > 1 ? c->q.arguments[1] : "";

    if (strcmp(text, "-") == 0) {
        if (!read_input(body)) {
            return false;
        }
    } else {
        const size_t size = strlen(text);

        memcpy(buffer_reserve(body, size + 1), text, size);
        body->size = size;
    }
    if (c->hex && !from_hex(body)) {
        return false;
    }
    return body->size <= BODY_MAX || complain("the body is over 8 MiB less 1 byte");
}

/* ---- what comes of it ---- */

static void put(struct one_call *c, FILE *out, struct rhc_bytes bytes)
{
    const uint8_t *data = bytes.data;

    for (size_t i = 0; c->hex && i < bytes.size; i++) {
        (void)fprintf(out, "%02x", data[i]);
    }
    if (!c->hex && bytes.size > 0) {
        (void)fwrite(data, 1, bytes.size, out);
    }
    (void)fputc('\n', out);
}

static void on_answer(void *context, unsigned status, struct rhc_bytes payload, uint32_t retry_ms)
{
    struct one_call *c = context;

    c->ended = true;
    c->code = gateway_exit_code(status);
    if (status == RHC_OK) {
        put(c, stdout, payload);
    } else if (status == RHC_ACTOR_FAILED) {
        (void)fprintf(stderr, "ringhold call: the actor answered: ");
        put(c, stderr, payload);
    } else if (!c->ready && c->why[0] != '\0') {
        c->code = 1;
        (void)fprintf(stderr, "ringhold call: no gateway took the request: %s\n", c->why);
    } else {
        (void)fprintf(stderr,
                      "ringhold call: %s: %s\n",
                      rhc_status_name(status),
                      gateway_status_text(status));
        if (retry_ms > 0) {
            (void)fprintf(stderr, "ringhold call: try again in %u ms\n", (unsigned)retry_ms);
        }
    }
}

static void on_event(void *context, const struct rhc_event *e)
{
    struct one_call *c = context;

    if (e->type == RHC_EVENT_READY) {
        c->ready = true;
    } else if (e->type == RHC_EVENT_LOST || e->type == RHC_EVENT_GOAWAY ||
               e->type == RHC_EVENT_KICKED) {
        (void)snprintf(c->why,
                       sizeof c->why,
                       "%.*s",
                       (int)(e->payload.size < WHY_SIZE ? e->payload.size : WHY_SIZE - 1),
                       (const char *)e->payload.data);
        c->kicked = e->type == RHC_EVENT_KICKED;
    }
}

/* ---- asking ---- */

static void await_answer(struct one_call *c)
{
    while (!c->ended && !c->kicked) {
        gateway_wait(c->tcp, -1);
    }
    if (!c->ended) {
        rhc_stop(rhc_tcp_client(c->tcp)); // its answer says the same
        rhc_tcp_poll(c->tcp, 0);
    }
}

/* Until the gateway's end of the connection has it all. */
static void await_sent(struct one_call *c)
{
    const uint64_t end_ms = rhc_now_ms() + c->gateway.deadline_ms;
    struct rhc *client = rhc_tcp_client(c->tcp);
    uint64_t now_ms = rhc_now_ms();

    while (!c->kicked && now_ms < end_ms &&
           (rhc_state(client) != RHC_READY || rhc_output(client).size > 0)) {
        gateway_wait(c->tcp, (int)(end_ms - now_ms));
        now_ms = rhc_now_ms();
    }
    c->ended = rhc_state(client) == RHC_READY && rhc_output(client).size == 0;
    c->code = c->ended ? 0 : 1;
    if (!c->ended) {
        (void)fprintf(stderr,
                      "ringhold call: no gateway took the message: %s\n",
                      c->why[0] == '\0' ? "none answered in time" : c->why);
    }
    rhc_tcp_poll(c->tcp, 0); // what is not read would reset the connection
}

static int ask(struct one_call *c, const Rh__Actor *actor, struct bytes body)
{
    const struct rhc_request request = {.kind = (uint16_t)actor->kind,
                                        .deadline_ms = c->gateway.deadline_ms,
                                        .id = {actor->id.data, actor->id.len},
                                        .payload = {body.data, body.size},
                                        .done = on_answer,
                                        .context = c};

    c->tcp = gateway_client("call", &c->q, &c->gateway, body.size, on_event, c);
    if (c->tcp == NULL) {
        return 1;
    }
    struct rhc *client = rhc_tcp_client(c->tcp);
    const int result = c->tells ? rhc_tell(client, &request, rhc_now_ms())
                                : rhc_ask(client, &request, rhc_now_ms(), NULL);
    if (result != RHC_DONE) {
        (void)complain("the request is too large for a client");
        c->code = 1;
    } else {
        (void)rhc_start(client, rhc_now_ms());
        (c->tells ? await_sent : await_answer)(c);
    }
    rhc_tcp_free(c->tcp);
    return c->code;
}

int cmd_call(int argc, char **argv)
{
    struct one_call c = {.code = 1};
    struct option more[GATEWAY_OPTIONS + 2];
    gateway_where_options(&c.gateway, more);
    more[GATEWAY_OPTIONS] =
        option_switch("tell", &c.tells, "send a message that has no answer, and go");
    more[GATEWAY_OPTIONS + 1] = option_switch(
        "hex", &c.hex, "the body, and what is answered, are written as hexadecimal digits");
    const struct command command = {
        .name = "call",
        .summary = "Ask one actor by way of a gateway, and print its answer.",
        .arguments = "KIND/ID [TEXT|-]",
        .details =
            "TEXT is the request's body, byte for byte; - reads it from standard input. The answer "
            "and a line's\nend go to standard output. The coordinators are asked only if KIND is a "
            "name.\n"
            "Exit code: 0 answered (--tell: sent), 4 the actor answered with an error, 5 it did "
            "not "
            "run,\n6 it may have run, at most once, 1 no gateway took it, or another error.",
        .options = query_options_more(&c.q, more, sizeof more / sizeof more[0]),
        .arguments_min = 1,
        .arguments_max = 2,
    };
    const int code = query_parse(&c.q, &command, argc, argv);
    Rh__Actor actor = RH__ACTOR__INIT;
    struct buffer body = {0};
    uint8_t id[ACTOR_ID_MAX];

    if (code >= 0) {
        return code;
    }
    if (c.q.json) {
        (void)complain("--output: what an actor says is bytes, not JSON; --hex writes any of them");
        return 1;
    }
    const bool good =
        actor_read(&c.q, "call", c.q.arguments[0], &actor, id) && take_body(&c, &body);
    const int result = good ? ask(&c, &actor, buffer_bytes(&body)) : 1;

    buffer_fini(&body);
    return result;
}

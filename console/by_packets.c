/* SPDX-License-Identifier: Apache-2.0
 *
 * The console by packets: call, tell and bind by libringhold-client.
 */
#include "base/mem.h"
#include "console/console.h"
#include "console/terminal_edit.h"

#include <stdio.h>
#include <string.h>

enum { BODY_MAX = 1024 * 1024, NAME_SIZE = ACTOR_NAME_SIZE + 64 };

struct packets {
    struct console_way way;
    const struct query *q;
    const struct gateway_where *o;
    struct rhc_tcp *tcp;
    unsigned waiting; /* for answers */
    bool bound;       /* or a bind is under way */
    bool ready;
    bool kicked;
    char name[NAME_SIZE]; /* of who is bound */
};

static struct packets *self(struct console_way *w)
{
    return (struct packets *)w;
}

/* ---- what comes ---- */

static void on_answer(void *context, unsigned status, struct rhc_bytes payload, uint32_t retry_ms)
{
    struct packets *p = context;
    char head[64];

    p->waiting--;
    if (status == RHC_OK) {
        console_say("", payload.data, payload.size);
    } else if (status == RHC_ACTOR_FAILED) {
        console_say("(error) ", payload.data, payload.size);
    } else {
        (void)snprintf(head, sizeof head, "(%s) ", rhc_status_name(status));
        console_say(head, gateway_status_text(status), strlen(gateway_status_text(status)));
        if (retry_ms > 0) {
            terminal_say("try again in %u ms", (unsigned)retry_ms);
        }
    }
}

static void on_event(void *context, const struct rhc_event *e)
{
    struct packets *p = context;
    char name[ACTOR_NAME_SIZE];

    switch (e->type) {
    case RHC_EVENT_READY:
        p->ready = true;
        break;
    case RHC_EVENT_PUSH:
        if (e->lost > 0) {
            terminal_say("(%llu pushes were lost)", (unsigned long long)e->lost);
        }
        console_say("push: ", e->payload.data, e->payload.size);
        break;
    case RHC_EVENT_BOUND:
        terminal_say("bound to %s%s", p->name, e->fresh ? "" : ", and nothing was lost");
        break;
    case RHC_EVENT_REFUSED:
        p->bound = false;
        console_say("bind refused: ", e->payload.data, e->payload.size);
        break;
    case RHC_EVENT_BEGUN:
        terminal_say("%s was lost and has started afresh", p->name);
        break;
    case RHC_EVENT_UNBOUND:
        p->bound = false;
        terminal_say("unbound");
        break;
    case RHC_EVENT_GOAWAY:
        console_say("the gateway stops: ", e->payload.data, e->payload.size);
        break;
    case RHC_EVENT_LOST:
        console_say("connection lost, dialling again: ", e->payload.data, e->payload.size);
        break;
    case RHC_EVENT_KICKED:
        p->kicked = true;
        console_say("kicked: ", e->payload.data, e->payload.size);
        break;
    case RHC_EVENT_REBOUND:
    case RHC_EVENT_KNOWN:
        (void)actor_name_print(e->code, bytes_of(e->payload.data, e->payload.size), name);
        if (e->type == RHC_EVENT_REBOUND) {
            (void)snprintf(p->name, sizeof p->name, "%s", name);
        }
        terminal_say("%s %s", e->type == RHC_EVENT_KNOWN ? "known as" : "from now on", name);
        break;
    case RHC_EVENT_RESPONSE: // ours have callbacks
        break;
    }
}

/* ---- what is typed ---- */

/* The first word of `line`, cut off; what is behind it and one blank. */
static const char *cut(char *word, size_t size, const char *line)
{
    const size_t length = strcspn(line, " ");

    (void)snprintf(word, size, "%.*s", (int)length, line);
    return line[length] == ' ' ? line + length + 1 : line + length;
}

static void send(struct packets *p, const char *rest, bool told)
{
    char word[NAME_SIZE];
    const char *text = cut(word, sizeof word, rest);
    Rh__Actor actor = RH__ACTOR__INIT;
    uint8_t id[ACTOR_ID_MAX];

    if (!actor_read(p->q, "cli", word, &actor, id)) {
        return;
    }
    const struct rhc_request request = {.kind = (uint16_t)actor.kind,
                                        .deadline_ms = p->o->deadline_ms,
                                        .id = {actor.id.data, actor.id.len},
                                        .payload = {text, strlen(text)},
                                        .done = on_answer,
                                        .context = p};
    struct rhc *c = rhc_tcp_client(p->tcp);
    const int result =
        told ? rhc_tell(c, &request, rhc_now_ms()) : rhc_ask(c, &request, rhc_now_ms(), NULL);

    if (result == RHC_DONE) {
        p->waiting += !told;
    } else {
        terminal_say("(error) %s",
                     result == RHC_FULL        ? "too much is under way: try again"
                     : result == RHC_TOO_LARGE ? "larger than the gateway takes"
                                               : "the request is invalid");
    }
}

static void bind_to(struct packets *p, const char *word)
{
    Rh__Actor actor = RH__ACTOR__INIT;
    uint8_t id[ACTOR_ID_MAX];

    if (!actor_read(p->q, "cli", word, &actor, id)) {
        return;
    }
    (void)proto_actor(&actor, p->name);
    if (p->bound || rhc_bind(rhc_tcp_client(p->tcp),
                             (uint16_t)actor.kind,
                             (struct rhc_bytes){actor.id.data, actor.id.len}) != RHC_DONE) {
        terminal_say("(error) bound already: unbind first");
        return;
    }
    p->bound = true;
}

static bool line(struct console_way *w, const char *text)
{
    struct packets *p = self(w);
    char word[16];
    const char *rest = cut(word, sizeof word, text);

    if (strcmp(word, "quit") == 0 || strcmp(word, "exit") == 0) {
        return false;
    }
    if (strcmp(word, "call") == 0 || strcmp(word, "tell") == 0) {
        send(p, rest, word[0] == 't');
    } else if (strcmp(word, "bind") == 0) {
        bind_to(p, rest);
    } else if (strcmp(word, "unbind") == 0) {
        if (rhc_unbind(rhc_tcp_client(p->tcp)) != RHC_DONE) {
            terminal_say("(error) nothing is bound, or a bind is under way");
        }
    } else if (strcmp(word, "help") == 0) {
        terminal_say("call KIND/ID TEXT   ask an actor; TEXT is the body, byte for byte\n"
                     "tell KIND/ID TEXT   send it a message that has no answer\n"
                     "bind KIND/ID        have its pushes shown here; unbind ends that\n"
                     "quit                or ^D");
    } else if (word[0] != '\0') {
        terminal_say("(error) unknown command '%s': call, tell, bind, unbind, help, quit", word);
    }
    return true;
}

/* ---- the connection ---- */

static int fd(const struct console_way *w)
{
    return rhc_tcp_fd(((const struct packets *)w)->tcp);
}

static bool wants_write(struct console_way *w)
{
    return rhc_tcp_wants_write(self(w)->tcp) != 0;
}

static int wait_ms(struct console_way *w)
{
    return rhc_tcp_wait_ms(self(w)->tcp);
}

static void turn(struct console_way *w)
{
    rhc_tcp_poll(self(w)->tcp, 0);
}

/* What was told is on its way too until it is sent. */
static bool is_busy(const struct console_way *w)
{
    const struct packets *p = (const struct packets *)w;
    struct rhc *c = rhc_tcp_client(p->tcp);

    return !p->kicked && (p->waiting > 0 || rhc_state(c) != RHC_READY || rhc_output(c).size > 0);
}

static bool failed(const struct console_way *w)
{
    return ((const struct packets *)w)->kicked;
}

static void close_it(struct console_way *w)
{
    rhc_tcp_free(self(w)->tcp);
    mem_free(w);
}

struct console_way *way_by_packets(const struct query *q, const struct gateway_where *o)
{
    static const char *const commands[] = {
        "call ", "tell ", "bind ", "unbind", "help", "quit", NULL};
    static const struct console_way_methods methods = {.commands = commands,
                                                       .line = line,
                                                       .fd = fd,
                                                       .wants_write = wants_write,
                                                       .wait_ms = wait_ms,
                                                       .turn = turn,
                                                       .is_busy = is_busy,
                                                       .failed = failed,
                                                       .close = close_it};
    struct packets *p = mem_new(1, sizeof *p);

    *p = (struct packets){.way = {&methods}, .q = q, .o = o};
    p->tcp = gateway_client("cli", q, o, BODY_MAX, on_event, p);
    if (p->tcp == NULL) {
        mem_free(p);
        return NULL;
    }
    (void)rhc_start(rhc_tcp_client(p->tcp), rhc_now_ms());
    return &p->way;
}

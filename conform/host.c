/* SPDX-License-Identifier: Apache-2.0
 *
 * Plays the node's part for a host, and compares what the host says with scripts.
 */
#include "conform/host.h"

#include "base/bytes.h"
#include "base/mem.h"
#include "daemon/http_listen.h"
#include "wire/host.pb-c.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    KIND = 9,
    LIVES_MAX = 8,
    TEXT_SIZE = 1024,
    WAIT_MS = 10000, /* for a step */
    COME_MS = 60000, /* for a host */
    FRAME_MAX = 1 << 20,
    SIZE_SIZE = 4,
};

/* An actor of the vector that is played. */
struct life {
    char id[32];
    uint64_t activation;
    uint64_t turn;
    uint64_t call; /* its last */
    bool over;
};

struct judge {
    int listener;
    int fd; /* -1: nobody is connected */
    uint64_t last_activation;
    uint64_t last_ping;
    struct life life[LIVES_MAX];
    size_t life_count;
    struct buffer out; /* gathered */
    bool gathers;
    bool drips;
    bool strange;
    Rh__Host__ToNode *came; /* owned: the last frame … */
    size_t at;              /* … of which so many messages were looked at */
    char why[TEXT_SIZE];
};

struct host_vector {
    const char *name;
    const char *script;
};

static const struct host_vector vectors[] = {
    {"an actor comes to life, and ends", "+ ann\nend ann\nping\n"},
    {"bytes come back as they are", "+ ann\n> ann echo-hello\n< ann done=data:hello\n"},
    {"each type of answer",
     "+ ann\n> ann text\n< ann done=text:OK\n> ann integer\n< ann done=integer:-42\n> ann nil\n< "
     "ann "
     "done\n> ann error\n< ann done=error:ERR_on_purpose\n"},
    {"a command comes as arguments", "+ ann\n> ann SET-key-value\n< ann done=integer:3\n"},
    {"code that fails breaks its actor alone",
     "+ ann\n+ bob\n> ann fail\n< ann fail\nend ann\n> bob echo-x\n< bob done=data:x\n"},
    {"a call waits for its answer",
     "+ ann\n> ann call-bob-hi\n< ann call:bob,hi\nanswer ann hey\n< ann done=data:hey\n"},
    {"a call that is refused",
     "+ ann\n> ann call-bob-hi\n< ann call:bob,hi\nrefuse ann ERR_no\n< ann done=error:ERR_no\n"},
    {"other actors go on while one waits",
     "+ ann\n+ bob\n> ann call-x-hi\n< ann call:x,hi\n> bob echo-y\n< bob done=data:y\nanswer ann "
     "z\n< "
     "ann done=data:z\n"},
    {"sends and pushes, in order",
     "+ ann\n> ann effects\n< ann send:bob,one push:0,two ids:a,b,three done\n"},
    {"values are put, read, deleted and undone",
     "+ ann\n> ann put-k-v\n< ann put:k,v done\n> ann get-k\n< ann done=data:v\n> ann undo-k-w\n< "
     "ann "
     "put:k,w undo done\n> ann get-k\n< ann done=data:v\n> ann delete-k\n< ann delete:k done\n> "
     "ann "
     "get-k\n< ann done\n"},
    {"what is put before a call is a step of its own",
     "+ ann\n> ann putcall-k-v-bob\n< ann put:k,v call:bob,k\nanswer ann x\n< ann put:k,x done\n"},
    {"an alarm goes off",
     "+ ann\n> ann alarm-tea\n< ann alarm:tea done\nalarm ann tea\n< ann "
     "put:rang,tea done\n"},
    {"a timer goes off",
     "+ ann\n> ann timer-7\n< ann timer:7,50,0 done\ntimer ann 7\n< ann push:0,tick_7 done\n"},
    {"a client is let in", "+ ann\nsession ann 5\n< ann push:5,welcome done\n"},
    {"a state moves",
     "+ ann\n> ann note-here\n< ann done\nhandoff ann\n< ann done state:here\nend ann\n+ bob "
     "here\n> bob "
     "note\n< bob done=data:here\n"},
    {"an actor that stays after all goes on",
     "+ ann\n> ann note-here\n< ann done\nhandoff ann\n< ann done state:here\nresume ann\n> ann "
     "note\n< "
     "ann done=data:here\n"},
    {"a life that is over says nothing more",
     "+ ann\n> ann call-bob-hi\n< ann call:bob,hi\nend ann\nping\nping\n"},
    {"many messages in one frame",
     "+ ann\n+ bob\ngather\n> ann call-x-1\n> bob call-x-2\ngo\nboth ann call:x,1\n"},
    {"frames in pieces", "drip\n+ ann\n> ann echo-hello\n< ann done=data:hello\nping\n"},
    {"fields of a later version are ignored",
     "strange\n+ ann\n> ann echo-hello\n< ann done=data:hello\nping\n"},
    {"an empty frame says nothing", "gather\ngo\nping\n"},
    {"what waited for a host comes with its welcome",
     "leave ann\n> ann echo-x\n< ann done=data:x\n"},
    {"a host comes again when its node was away",
     "+ ann\nleave\n+ bob\n> bob echo-x\n< bob done=data:x\n"},
};

__attribute__((format(printf, 2, 3))) static bool wrong(struct judge *j, const char *format, ...)
{
    va_list list;

    va_start(list, format);
    (void)vsnprintf(j->why, sizeof j->why, format, list);
    va_end(list);
    return false;
}

/* ---- the connection */

static bool wait_for(int fd, int ms)
{
    struct pollfd at = {.fd = fd, .events = POLLIN};

    return poll(&at, 1, ms) == 1;
}

static bool send_all(struct judge *j, const uint8_t *data, size_t size)
{
    while (size > 0) {
        const ssize_t sent = send(j->fd, data, j->drips ? 1 : size, MSG_NOSIGNAL);

        if (sent <= 0) {
            return wrong(j, "the host closed the connection");
        }
        data += sent;
        size -= (size_t)sent;
    }
    return true;
}

static bool send_frame(struct judge *j)
{
    const size_t size = j->out.size;
    const uint8_t head[SIZE_SIZE] = {
        (uint8_t)(size >> 24), (uint8_t)(size >> 16), (uint8_t)(size >> 8), (uint8_t)size};
    const bool sent = send_all(j, head, sizeof head) && send_all(j, j->out.data, size);

    buffer_clear(&j->out);
    return sent;
}

static bool receive(struct judge *j, uint8_t *data, size_t size)
{
    while (size > 0) {
        const ssize_t got = wait_for(j->fd, WAIT_MS) ? recv(j->fd, data, size, 0) : -1;

        if (got <= 0) {
            return wrong(j, got == 0 ? "the host closed the connection" : "nothing came in 10 s");
        }
        data += got;
        size -= (size_t)got;
    }
    return true;
}

static void forget_frame(struct judge *j)
{
    if (j->came != NULL) {
        rh__host__to_node__free_unpacked(j->came, NULL);
    }
    j->came = NULL;
    j->at = 0;
}

/* The next message; NULL: `why` says what came instead. Borrowed until the next. */
static Rh__Host__HostSays *next_message(struct judge *j)
{
    while (j->came == NULL || j->at == j->came->n_says) {
        uint8_t head[SIZE_SIZE] = {0};

        forget_frame(j);
        if (!receive(j, head, sizeof head)) {
            return NULL;
        }
        const size_t size =
            (size_t)head[0] << 24 | (size_t)head[1] << 16 | (size_t)head[2] << 8 | head[3];
        if (size > FRAME_MAX) {
            (void)wrong(j, "a frame of %zu bytes", size);
            return NULL;
        }
        uint8_t *frame = mem_new(size + 1, 1);
        if (receive(j, frame, size)) {
            j->came = rh__host__to_node__unpack(NULL, size, frame);
            if (j->came == NULL) {
                (void)wrong(j, "a frame does not decode");
            }
        }
        mem_free(frame);
        if (j->came == NULL) {
            return NULL;
        }
    }
    return j->came->says[j->at++];
}

/* ---- saying */

static bool say(struct judge *j, const Rh__Host__NodeSays *says)
{
    static const uint8_t later[] = {0xfa, 0x3e, 2, 'h', 'i', 0xf0, 0x3e, 7}; // fields 1007 and 1006
    uint8_t packed[TEXT_SIZE];
    size_t size = rh__host__node_says__pack(says, packed);

    if (j->strange) {
        memcpy(packed + size, later, sizeof later);
        size += sizeof later;
    }
    buffer_put(&j->out, (uint8_t[]){0x0a}, 1); // ToHost.says
    buffer_put(&j->out, (uint8_t[]){(uint8_t)(size | 0x80), (uint8_t)(size >> 7)}, 2);
    buffer_put(&j->out, packed, size);
    if (j->strange) {
        buffer_put(&j->out, later, sizeof later);
    }
    return j->gathers || send_frame(j);
}

static ProtobufCBinaryData data_of(const char *text)
{
    // NOLINTNEXTLINE(performance-no-int-to-ptr): it is only read
    return (ProtobufCBinaryData){strlen(text), (uint8_t *)(uintptr_t)text};
}

static struct life *life_of(struct judge *j, const char *id)
{
    for (size_t i = 0; i < j->life_count; i++) {
        if (strcmp(j->life[i].id, id) == 0) {
            return &j->life[i];
        }
    }
    return NULL;
}

/* ---- the host's steps as text */

static void add(char *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(char *text, const char *format, ...)
{
    const size_t at = strlen(text);
    va_list list;

    va_start(list, format);
    (void)vsnprintf(text + at, TEXT_SIZE - at, format, list);
    va_end(list);
}

/* Bytes as scripts write them: '_' is a blank. */
static void add_bytes(char *text, const void *data, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        const char c = ((const char *)data)[i];

        add(text, "%c", c == ' ' ? '_' : c);
    }
}

/* "word:first,second " */
static void add_pair(char *text, const char *word, ProtobufCBinaryData first,
                     ProtobufCBinaryData second)
{
    add(text, "%s:", word);
    add_bytes(text, first.data, first.len);
    add(text, ",");
    add_bytes(text, second.data, second.len);
    add(text, " ");
}

static void add_one(char *text, const char *word, ProtobufCBinaryData data)
{
    add(text, "%s:", word);
    add_bytes(text, data.data, data.len);
    add(text, " ");
}

static void add_ids(char *text, const Rh__Host__PushIds *p)
{
    add(text, "ids:");
    for (size_t i = 0; i < p->n_ids; i++) {
        add_bytes(text, p->ids[i].data, p->ids[i].len);
        add(text, ",");
    }
    add_bytes(text, p->payload.data, p->payload.len);
    add(text, " ");
}

static void add_effect(char *text, const Rh__Host__Effect *e, struct life *a)
{
    switch ((int)e->type_case) {
    case RH__HOST__EFFECT__TYPE_CALL:
        a->call = e->call->call;
        add_pair(text, "call", e->call->id, e->call->payload);
        return;
    case RH__HOST__EFFECT__TYPE_SEND:
        add_pair(text, "send", e->send->id, e->send->payload);
        return;
    case RH__HOST__EFFECT__TYPE_PUSH:
        add(text, "push:%" PRIu64 ",", e->push->session);
        add_bytes(text, e->push->payload.data, e->push->payload.len);
        add(text, " ");
        return;
    case RH__HOST__EFFECT__TYPE_PUSH_IDS:
        add_ids(text, e->push_ids);
        return;
    case RH__HOST__EFFECT__TYPE_PUT:
        add_pair(text, "put", e->put->key, e->put->value);
        return;
    case RH__HOST__EFFECT__TYPE_DELETE:
        add_one(text, "delete", e->delete_->key);
        return;
    case RH__HOST__EFFECT__TYPE_UNDO:
        add(text, "undo ");
        return;
    case RH__HOST__EFFECT__TYPE_SET_ALARM:
        add_one(text, "alarm", e->set_alarm->name);
        return;
    case RH__HOST__EFFECT__TYPE_START_TIMER:
        add(text,
            "timer:%" PRIu64 ",%u,%u ",
            e->start_timer->timer,
            e->start_timer->ms,
            e->start_timer->every_ms);
        return;
    default:
        add(text, "effect%d ", (int)e->type_case);
    }
}

static void add_reply(char *text, const Rh__Host__Value *v)
{
    switch ((int)v->type_case) {
    case RH__HOST__VALUE__TYPE_DATA:
        add(text, "=data:");
        add_bytes(text, v->data.data, v->data.len);
        return;
    case RH__HOST__VALUE__TYPE_TEXT:
        add(text, "=text:");
        add_bytes(text, v->text, strlen(v->text));
        return;
    case RH__HOST__VALUE__TYPE_INTEGER:
        add(text, "=integer:%" PRId64, v->integer);
        return;
    case RH__HOST__VALUE__TYPE_ERROR:
        add(text, "=error:");
        add_bytes(text, v->error, strlen(v->error));
        return;
    default:
        return; // nil is nothing
    }
}

/* Effects in order, then "done" with the answer, "fail", or nothing: "put:k,v done=text:OK". */
static void step_text(char *text, const Rh__Host__Step *s, struct life *a)
{
    text[0] = '\0';
    for (size_t i = 0; i < s->n_effects; i++) {
        add_effect(text, s->effects[i], a);
    }
    if (s->done != NULL && s->done->fail[0] != '\0') {
        add(text, "fail ");
    } else if (s->done != NULL) {
        add(text, "done");
        if (s->done->result != RH__HOST__RESULT__RESULT_OK) {
            add(text, "%d", (int)s->done->result);
        }
        if (s->done->reply != NULL) {
            add_reply(text, s->done->reply);
        }
        add(text, " ");
        if (s->done->state.len > 0) {
            add_one(text, "state", s->done->state);
        }
    }
    const size_t size = strlen(text);
    if (size > 0) {
        text[size - 1] = '\0'; // the last blank
    }
}

/* The next message is a step of one that lives. */
static Rh__Host__Step *next_step(struct judge *j, struct life **whose)
{
    Rh__Host__HostSays *says = next_message(j);

    if (says == NULL) {
        return NULL;
    }
    if (says->body_case != RH__HOST__HOST_SAYS__BODY_STEP) {
        (void)wrong(j, "message %d came, and not a step", (int)says->body_case);
        return NULL;
    }
    for (size_t i = 0; i < j->life_count; i++) {
        struct life *a = &j->life[i];

        if (a->activation == says->step->activation && a->turn == says->step->turn && !a->over) {
            *whose = a;
            return says->step;
        }
    }
    (void)wrong(j,
                "a step of activation %" PRIu64 ", turn %" PRIu64
                ", which is none of those that are open",
                says->step->activation,
                says->step->turn);
    return NULL;
}

static bool hear(struct judge *j, const char *id, const char *want)
{
    struct life *whose = NULL;
    char text[TEXT_SIZE];
    const Rh__Host__Step *step = next_step(j, &whose);

    if (step == NULL) {
        return false;
    }
    step_text(text, step, whose);
    return strcmp(whose->id, id) == 0 && strcmp(text, want) == 0
               ? true
               : wrong(j, "%s said \"%s\", but this is due: %s \"%s\"", whose->id, text, id, want);
}

/* ---- lines */

static bool say_activate(struct judge *j, const char *id, const char *state)
{
    Rh__Host__Activate activate = RH__HOST__ACTIVATE__INIT;
    Rh__Host__NodeSays says = RH__HOST__NODE_SAYS__INIT;
    struct life *a = &j->life[j->life_count++];

    *a = (struct life){.activation = ++j->last_activation, .turn = 1};
    (void)snprintf(a->id, sizeof a->id, "%s", id);
    activate.activation = a->activation;
    activate.turn = 1;
    activate.kind = KIND;
    activate.id = data_of(a->id);
    activate.fence = 1;
    activate.has_state = state[0] != '\0';
    activate.state = data_of(state);
    says.body_case = RH__HOST__NODE_SAYS__BODY_ACTIVATE;
    says.activate = &activate;
    return say(j, &says);
}

/* "SET-key-value" is a command, "echo-x" a payload: "-" stands for a blank. */
static bool line_message(struct judge *j, struct life *a, char *text)
{
    Rh__Host__Message message = RH__HOST__MESSAGE__INIT;
    Rh__Host__NodeSays says = RH__HOST__NODE_SAYS__INIT;
    ProtobufCBinaryData argument[8];
    char *rest = NULL;

    message.activation = a->activation;
    message.turn = a->turn;
    if (text[0] >= 'A' && text[0] <= 'Z') {
        message.argument = argument;
        for (char *w = strtok_r(text, "-", &rest); w != NULL; w = strtok_r(NULL, "-", &rest)) {
            argument[message.n_argument++] = data_of(w);
        }
    } else {
        for (char *at = text; *at != '\0'; at++) {
            if (*at == '-') {
                *at = ' ';
            }
        }
        message.payload = data_of(text);
    }
    says.body_case = RH__HOST__NODE_SAYS__BODY_MESSAGE;
    says.message = &message;
    return say(j, &says);
}

static bool line_turn(struct judge *j, struct life *a, const char *word, char *rest)
{
    Rh__Host__NodeSays says = RH__HOST__NODE_SAYS__INIT;
    Rh__Host__Timer timer = RH__HOST__TIMER__INIT;
    Rh__Host__Alarm alarm = RH__HOST__ALARM__INIT;
    Rh__Host__Session session = RH__HOST__SESSION__INIT;
    Rh__Host__Handoff handoff = RH__HOST__HANDOFF__INIT;

    a->turn++;
    timer.activation = alarm.activation = session.activation = handoff.activation = a->activation;
    timer.turn = alarm.turn = session.turn = handoff.turn = a->turn;
    if (strcmp(word, ">") == 0) {
        return line_message(j, a, rest);
    }
    if (strcmp(word, "timer") == 0) {
        timer.timer = strtoull(rest, NULL, 10);
        says.body_case = RH__HOST__NODE_SAYS__BODY_TIMER;
        says.timer = &timer;
    } else if (strcmp(word, "alarm") == 0) {
        alarm.name = data_of(rest);
        alarm.payload = data_of(rest);
        alarm.due_ms = 1;
        says.body_case = RH__HOST__NODE_SAYS__BODY_ALARM;
        says.alarm = &alarm;
    } else if (strcmp(word, "session") == 0) {
        session.event = RH__HOST__SESSION_EVENT__SESSION_BOUND;
        session.session = strtoull(rest, NULL, 10);
        says.body_case = RH__HOST__NODE_SAYS__BODY_SESSION;
        says.session = &session;
    } else {
        says.body_case = RH__HOST__NODE_SAYS__BODY_HANDOFF;
        says.handoff = &handoff;
    }
    return say(j, &says);
}

static bool line_answer(struct judge *j, const struct life *a, bool refused, char *text)
{
    Rh__Host__Answer answer = RH__HOST__ANSWER__INIT;
    Rh__Host__NodeSays says = RH__HOST__NODE_SAYS__INIT;

    for (char *at = text; *at != '\0'; at++) {
        if (*at == '_') {
            *at = ' ';
        }
    }
    answer.activation = a->activation;
    answer.call = a->call;
    answer.status = refused ? 4 : 0; // RH_FAILED
    answer.payload = data_of(text);
    says.body_case = RH__HOST__NODE_SAYS__BODY_ANSWER;
    says.answer = &answer;
    return say(j, &says);
}

static bool line_end(struct judge *j, struct life *a, bool resumes)
{
    Rh__Host__Resume resume = RH__HOST__RESUME__INIT;
    Rh__Host__Deactivate end = RH__HOST__DEACTIVATE__INIT;
    Rh__Host__NodeSays says = RH__HOST__NODE_SAYS__INIT;

    a->over = !resumes;
    resume.activation = end.activation = a->activation;
    end.why = RH__HOST__WHY__WHY_IDLE;
    if (resumes) {
        says.body_case = RH__HOST__NODE_SAYS__BODY_RESUME;
        says.resume = &resume;
    } else {
        says.body_case = RH__HOST__NODE_SAYS__BODY_DEACTIVATE;
        says.deactivate = &end;
    }
    return say(j, &says);
}

static bool line_ping(struct judge *j)
{
    Rh__Host__Ping ping = RH__HOST__PING__INIT;
    Rh__Host__NodeSays says = RH__HOST__NODE_SAYS__INIT;

    ping.number = ++j->last_ping;
    says.body_case = RH__HOST__NODE_SAYS__BODY_PING;
    says.ping = &ping;
    if (!say(j, &says)) {
        return false;
    }
    const Rh__Host__HostSays *came = next_message(j);
    if (came == NULL) {
        return false;
    }
    return came->body_case == RH__HOST__HOST_SAYS__BODY_PONG && came->pong->number == j->last_ping
               ? true
               : wrong(j, "message %d came, and not the pong", (int)came->body_case);
}

/* Two actors wait at a time: their steps come in any order. */
static bool line_both(struct judge *j)
{
    bool seen[LIVES_MAX] = {false};

    for (size_t i = 0; i < 2; i++) {
        struct life *whose = NULL;

        if (next_step(j, &whose) == NULL) {
            return false;
        }
        if (seen[whose - j->life]) {
            return wrong(j, "two steps of one actor");
        }
        seen[whose - j->life] = true;
    }
    return true;
}

static bool greet(struct judge *j, const char *waits);

static void hang_up(struct judge *j)
{
    if (j->fd >= 0) {
        (void)close(j->fd);
    }
    j->fd = -1;
    forget_frame(j);
    buffer_clear(&j->out);
    j->life_count = 0;
}

static bool play_line(struct judge *j, char *line)
{
    char *rest = NULL;
    const char *word = strtok_r(line, " ", &rest);
    char *id = strtok_r(NULL, " ", &rest);
    struct life *a = id == NULL ? NULL : life_of(j, id);

    if (strcmp(word, "gather") == 0) {
        j->gathers = true;
        return true;
    }
    if (strcmp(word, "go") == 0) {
        j->gathers = false;
        return send_frame(j);
    }
    if (strcmp(word, "drip") == 0 || strcmp(word, "strange") == 0) {
        j->drips = word[0] == 'd';
        j->strange = word[0] == 's';
        return true;
    }
    if (strcmp(word, "ping") == 0) {
        return line_ping(j);
    }
    if (strcmp(word, "leave") == 0) {
        hang_up(j);
        return greet(j, id);
    }
    if (strcmp(word, "both") == 0) {
        return line_both(j);
    }
    if (strcmp(word, "+") == 0) {
        return say_activate(j, id, rest) && hear(j, id, "done");
    }
    if (strcmp(word, "<") == 0) {
        return hear(j, id, rest);
    }
    if (strcmp(word, "answer") == 0 || strcmp(word, "refuse") == 0) {
        return line_answer(j, a, word[0] == 'r', rest);
    }
    if (strcmp(word, "resume") == 0 || strcmp(word, "end") == 0) {
        return line_end(j, a, word[0] == 'r');
    }
    return line_turn(j, a, word, rest);
}

/* ---- all of it */

static bool say_welcome(struct judge *j)
{
    static char name[] = "conform";
    Rh__Host__ServedKind kind = RH__HOST__SERVED_KIND__INIT;
    Rh__Host__ServedKind *kinds = &kind;
    Rh__Host__Welcome welcome = RH__HOST__WELCOME__INIT;
    Rh__Host__NodeSays says = RH__HOST__NODE_SAYS__INIT;

    kind.name = name;
    kind.number = KIND;
    kind.state_max = FRAME_MAX;
    kind.turn_ms = WAIT_MS;
    welcome.version = 1;
    welcome.node = name;
    welcome.kinds = &kinds;
    welcome.n_kinds = 1;
    welcome.silence_ms = WAIT_MS;
    welcome.frame_max = FRAME_MAX;
    says.body_case = RH__HOST__NODE_SAYS__BODY_WELCOME;
    says.welcome = &welcome;
    return say(j, &says);
}

/* Wait for a host, and welcome it, in one frame with the actor that waits for it; NULL = none. */
static bool greet(struct judge *j, const char *waits)
{
    j->gathers = j->drips = j->strange = false;
    if (!wait_for(j->listener, COME_MS)) {
        return wrong(j, "no host came in 60 s");
    }
    j->fd = accept(j->listener, NULL, NULL);
    const Rh__Host__HostSays *says = next_message(j);
    if (says == NULL) {
        return false;
    }
    const Rh__Host__Hello *hello =
        says->body_case == RH__HOST__HOST_SAYS__BODY_HELLO ? says->hello : NULL;
    if (hello == NULL || strcmp(hello->product, "ringhold") != 0 || hello->version_min > 1 ||
        hello->version_max < 1 || hello->name[0] == '\0') {
        return wrong(j, "the first message is no hello of version 1 with a name");
    }
    if (hello->n_kinds != 1 || strcmp(hello->kinds[0]->name, "conform") != 0 ||
        !hello->kinds[0]->durable || !hello->kinds[0]->alarms || !hello->kinds[0]->sessions ||
        hello->kinds[0]->flush) {
        return wrong(
            j,
            "the hello's one kind is to be \"conform\", with durable, alarms and sessions, "
            "and without flush");
    }
    j->gathers = waits != NULL;
    if (waits == NULL) {
        return say_welcome(j);
    }
    (void)say_welcome(j);
    (void)say_activate(j, waits, "");
    j->gathers = false;
    return send_frame(j) && hear(j, waits, "done");
}

static bool play(struct judge *j, const struct host_vector *v)
{
    char *copy = mem_string(v->script);
    char *rest = NULL;

    j->why[0] = '\0';
    bool right = j->fd >= 0 || greet(j, NULL);
    for (char *line = strtok_r(copy, "\n", &rest); right && line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        right = play_line(j, line);
    }
    j->gathers = j->drips = j->strange = false;
    for (size_t i = 0; right && i < j->life_count; i++) {
        right = j->life[i].over || line_end(j, &j->life[i], false);
    }
    j->life_count = 0;
    if (!right) {
        hang_up(j); // and the host comes again
    }
    mem_free(copy);
    return right;
}

int conform_host(const char *address)
{
    enum { COUNT = sizeof vectors / sizeof vectors[0], SCHEME = 5 };
    const bool is_path = strncmp(address, "unix:", SCHEME) == 0;
    static struct judge j;
    size_t failed = 0;

    j = (struct judge){.fd = -1};
    j.listener = is_path ? http_listen_unix(address + SCHEME) : http_listen_tcp(address);
    if (j.listener < 0) {
        (void)fprintf(stderr,
                      "ringhold conform: cannot listen at '%s', which is to be unix:PATH or "
                      "HOST:PORT: %s\n",
                      address,
                      strerror(errno));
        return 1;
    }
    if (!greet(&j, NULL)) {
        (void)printf("Bail out! %s\n", j.why);
        return 1;
    }
    (void)printf("TAP version 13\n1..%d\n", (int)COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        const bool right = play(&j, &vectors[i]);

        failed += right ? 0 : 1;
        (void)printf("%s %zu - %s\n", right ? "ok" : "not ok", i + 1, vectors[i].name);
        if (!right) {
            (void)printf("# %s\n", j.why);
        }
        (void)fflush(stdout);
    }
    (void)printf("# %zu passed, %zu failed\n", COUNT - failed, failed);
    hang_up(&j);
    buffer_fini(&j.out);
    (void)close(j.listener);
    if (is_path) {
        (void)unlink(address + SCHEME);
    }
    return failed == 0 ? 0 : 2;
}

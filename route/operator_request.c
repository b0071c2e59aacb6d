/* SPDX-License-Identifier: Apache-2.0
 *
 * What an operator has sent to one actor: `ringhold trace` and `ringhold kick` by a gateway,
 * `ringhold actor` by a node, whose calls are a router, too.
 * It is a request of a session of the router's own, so it is routed, held,
 * forwarded and sent again as every other one.
 */
#include "route/router_inside.h"

#include "base/log.h"
#include "ring/view.h"
#include "wire/control.h"
#include "wire/session.h"
#include "wire/values_ask.h"

#include <string.h>

/* Tell it to the coordinator that asked. */
static void send_answer(struct router *r, int coordinator, Rh__OperatorRequestAnswer *out)
{
    Rh__Control control = RH__CONTROL__INIT;
    struct router_effect *e = effects_add(r->out, ROUTER_SEND_COORDINATOR);

    out->gateway = proto_text(r->config.name);
    out->version = r->view->ring.version;
    control.body_case = RH__CONTROL__BODY_OPERATOR_REQUEST_ANSWER;
    control.operator_request_answer = out;
    e->coordinator = coordinator;
    fleet_send(r, e, &control);
}

static void refuse(struct router *r, int coordinator, const Rh__OperatorRequest *in,
                   const char *outcome)
{
    Rh__OperatorRequestAnswer out = RH__OPERATOR_REQUEST_ANSWER__INIT;

    out.tag = in->tag;
    out.route = in->route;
    out.outcome = proto_text(outcome);
    send_answer(r, coordinator, &out);
}

static const char *outcome_name(enum reply_code code)
{
    static const char *const names[] = {
        [REPLY_OK] = "ok",
        [REPLY_APP_ERROR] = "error",
        [REPLY_UNKNOWN] = "unknown",
        [REPLY_TIMEOUT] = "timeout",
        [REPLY_REJECTED] = "rejected",
        [REPLY_NO_KIND] = "nobody",
        [REPLY_OVERLOADED] = "overloaded",
        [REPLY_QUARANTINED] = "quarantined",
        [REPLY_DEADLOCK] = "deadlock",
    };

    return names[code];
}

/* ---- the note ---- */

/* A gateway may not ask for values: whoever has its key would have all of them. */
static bool may_send(const struct router *r, Rh__OperatorRequestWhat what)
{
    switch (what) {
    case RH__OPERATOR_REQUEST_WHAT__OPERATOR_REQUEST_TRACE:
    case RH__OPERATOR_REQUEST_WHAT__OPERATOR_REQUEST_KICK:
        return !r->config.of_node;
    case RH__OPERATOR_REQUEST_WHAT__OPERATOR_REQUEST_VALUES:
        return r->config.of_node;
    case _RH__OPERATOR_REQUEST_WHAT_IS_INT_SIZE:
        break;
    }
    return false; // of a newer version
}

static bool fits(const struct router *r, const Rh__AdminOperatorRequest *what)
{
    struct values_ask values;

    return what != NULL && what->actor != NULL && what->actor->kind <= UINT16_MAX &&
           what->actor->id.len >= 1 && what->actor->id.len <= RECORD_ID_MAX &&
           strlen(what->text) <= PUSH_TEXT_MAX && may_send(r, what->what) &&
           (!r->config.of_node ||
            values_ask_get(bytes_of(what->values.data, what->values.len), &values) == ERR_OK);
}

static void note_of(const Rh__AdminOperatorRequest *what, struct buffer *out)
{
    const bool kicks = what->what == RH__OPERATOR_REQUEST_WHAT__OPERATOR_REQUEST_KICK;
    struct note note = {.type = kicks ? NOTE_KICK : NOTE_TRACE,
                        .code = what->code,
                        .payload = bytes_of(what->text, kicks ? strlen(what->text) : 0)};

    if (what->what == RH__OPERATOR_REQUEST_WHAT__OPERATOR_REQUEST_VALUES) {
        note.type = NOTE_VALUES;
        note.payload = bytes_of(what->values.data, what->values.len);
    }
    note_put(out, &note);
}

/* Of many pages one is. */
static bool is_noted(const Rh__AdminOperatorRequest *what)
{
    struct values_ask values;

    return what->what != RH__OPERATOR_REQUEST_WHAT__OPERATOR_REQUEST_VALUES ||
           (values_ask_get(bytes_of(what->values.data, what->values.len), &values) == ERR_OK &&
            values_ask_is_noted(&values));
}

static const char *name_of(const Rh__AdminOperatorRequest *what)
{
    static const char *const names[] = {
        [RH__OPERATOR_REQUEST_WHAT__OPERATOR_REQUEST_TRACE] = "trace",
        [RH__OPERATOR_REQUEST_WHAT__OPERATOR_REQUEST_KICK] = "kick",
        [RH__OPERATOR_REQUEST_WHAT__OPERATOR_REQUEST_VALUES] = "values",
    };

    return names[what->what];
}

/* Where it is kept till it is answered; NULL: it is under way already, or all are in use. */
static struct operator_request *operator_request_add(struct router *r,
                                                     const Rh__OperatorRequest *in, bool *again)
{
    struct operator_request *spare = NULL;

    *again = false;
    for (size_t i = 0; i < OPERATOR_REQUESTS_MAX; i++) {
        struct operator_request *e = &r->operator_request[i];

        *again = *again || (e->used && e->tag == in->tag && e->route == in->route);
        spare = e->used ? spare : e;
    }
    return *again ? NULL : spare;
}

void operator_request_on_question(struct router *r, int coordinator, const Rh__OperatorRequest *in)
{
    const Rh__AdminOperatorRequest *what = in->what;
    struct buffer body = {0};
    char name[ACTOR_NAME_SIZE];
    bool again;

    if (!fits(r, what)) {
        refuse(r, coordinator, in, "malformed");
        return;
    }
    struct operator_request *e = operator_request_add(r, in, &again);
    if (e == NULL) {
        if (!again) {
            refuse(r, coordinator, in, "busy");
        }
        return;
    }
    *e = (struct operator_request){.used = true,
                                   .tag = in->tag,
                                   .route = in->route,
                                   .coordinator = coordinator,
                                   .begun_us = r->now_us};
    if (is_noted(what)) {
        log_info(r->config.of_node ? "node" : "gateway",
                 name_of(what),
                 "actor=%s by=%s",
                 proto_actor(what->actor, name),
                 what->by);
    }
    note_of(what, &body);
    route_request(r,
                  &(struct router_event){
                      .type = ROUTER_REQUEST,
                      .session = r->operator_requests_session,
                      .ticket = (uint64_t)(e - r->operator_request),
                      .kind = (uint16_t)what->actor->kind,
                      .flags = (uint8_t)(REQUEST_SESSION |
                                         (what->wake || r->config.of_node ? 0 : REQUEST_AWAKE)),
                      .id = bytes_of(what->actor->id.data, what->actor->id.len),
                      .body = buffer_bytes(&body),
                      .timeout_ms = what->timeout_ms > REQUEST_TTL_MAX_MS ? REQUEST_TTL_MAX_MS
                                                                          : what->timeout_ms,
                  });
    buffer_fini(&body);
}

/* ---- its answer ---- */

void operator_request_on_reply(struct router *r, const struct reply *reply, struct bytes body)
{
    struct operator_request *e = &r->operator_request[reply->ticket];
    const struct pending *p = reply->pending;
    Rh__OperatorRequestAnswer out = RH__OPERATOR_REQUEST_ANSWER__INIT;
    const struct view_member *node = NULL;

    out.tag = e->tag;
    out.route = e->route;
    out.outcome = proto_text(outcome_name(reply->code));
    out.body = proto_bytes(body);
    out.total_us = r->now_us - e->begun_us;
    if (p != NULL) {
        node = p->slot == RING_NODE_NONE ? NULL : view_member(r->view, p->slot);
        out.copies = p->attempts;
        out.sent_us = p->attempts == 0 ? out.total_us : p->sent_us - e->begun_us;
    }
    out.node = proto_text(node == NULL ? "" : node->name);
    e->used = false;
    send_answer(r, e->coordinator, &out);
}

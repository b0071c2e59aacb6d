/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of clients that speak HTTP share (http*.c, keyed.c). Nobody else includes this.
 */
#ifndef GATEWAY_CLIENT_HTTP_INSIDE_H
#define GATEWAY_CLIENT_HTTP_INSIDE_H

#include "base/actor_name.h"
#include "gateway/client/inside.h"
#include "gateway/protocol/http.h"

/* What is known of a reply when its request was read. */
enum http_form {
    HTTP_FORM_LAST = 1,  /* the connection ends behind it */
    HTTP_FORM_KEYED = 2, /* it says which version the ring has */
};

struct api_client {
    struct http_reader reader;
    uint64_t discard;  /* bytes of a refused body that are still to come */
    uint64_t since_us; /* since when a request, or its body, comes; or the next one is awaited */
    uint64_t said_us;  /* when something was said to who listens to events */
    bool coming;       /* bytes of a request are there */
    bool asked;        /* there was a request */
    bool leaving;      /* the gateway stops */
    bool bodiless;     /* the request is a HEAD: its answer has no body */
    bool streaming;    /* it listens to events, and asks nothing any more */
    struct list keyed; /* struct keyed: requests under way that have a key */
};

/* What a request asks for. */
struct http_asking {
    const struct api_request *request;
    struct target to;
    uint8_t id[ACTOR_NAME_ID_MAX];
    enum http_path { HTTP_PATH_ACTOR, HTTP_PATH_WHERE, HTTP_PATH_EVENTS, HTTP_PATH_NONE } path;
    uint8_t flags; /* enum request_flags */
    uint32_t timeout_ms;
    bool again;
    uint64_t first;        /* of `again` */
    struct bind_wish wish; /* of EVENTS */
};

/* ---- http_answer.c */

/* "GET, HEAD, OPTIONS" */
const char *http_allow(enum http_path path);
/* Put a reply that needs no request, behind what is owed. */
void http_put_local(struct client *c, struct bytes text);
/* Count it and reply with it; `last`: the connection is to end behind that. */
void http_refuse(struct client *c, enum http_refusal why, enum http_path path, bool last);
/* Count it and put the reply, with this text, behind which the connection is to end. */
void http_put_refusal(struct client *c, struct buffer *out, enum http_refusal why,
                      const char *text);
/* Put the reply to a request of an actor. */
void http_put_reply(struct client *c, struct buffer *out, uint8_t form,
                    const struct router_effect *reply, struct bytes body);
/* The slot has its whole reply in `text`, which had `before` bytes. */
void http_fill_slot(struct client *c, struct slot *slot, size_t before);
/* Reply with where an actor lives. */
void http_where(struct client *c, const struct http_asking *a);

/* ---- http_events.c */

/* False: it names no session. */
bool http_event_id(struct bytes text, struct return_packet *out);
/* Bind the connection to the actor: what it pushes comes as events. */
void http_listen(struct client *c, const struct http_asking *a);
void http_bind_over(struct client *c, uint64_t ticket, enum bound_result result, const char *why);
void http_bind_failed(struct client *c, const struct router_effect *reply, struct bytes body);
bool http_is_answered(const struct client *c, uint64_t ticket);
void http_push(struct client *c, struct bytes key, const struct push_record *push);
void http_kick(struct client *c, uint32_t code, struct bytes text);
void http_rebound(struct client *c, const struct rebind *to);
void http_begun(struct client *c);
/* Say something to who listens and has heard nothing for long: who has gone is found out so. */
void http_keep_alive(struct client *c);

#endif

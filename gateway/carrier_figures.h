/* SPDX-License-Identifier: Apache-2.0
 *
 * What happened on the way between sockets and clients, by reason: INFO transport.
 */
#ifndef GATEWAY_CARRIER_FIGURES_H
#define GATEWAY_CARRIER_FIGURES_H

#include <stdint.h>

/* clang-format off */
#define CARRIER_EVENTS(X)                                                                          \
    X(WS_OPENED, "ws_opened")                                                                      \
    X(WS_LEFT, "ws_left")                         /* the client said that it goes */               \
    X(HTTP_BAD_REQUEST, "http_bad_request")                                                        \
    X(HTTP_FORBIDDEN, "http_forbidden")           /* a page of an origin that may not */           \
    X(HTTP_NOT_FOUND, "http_not_found")                                                            \
    X(HTTP_METHOD, "http_method")                                                                  \
    X(HTTP_TIMEOUT, "http_timeout")                                                                \
    X(HTTP_UPGRADE_REQUIRED, "http_upgrade_required")                                              \
    X(HTTP_TOO_LARGE, "http_too_large")                                                            \
    X(HTTP_FULL, "http_full")                                                                      \
    X(WS_PROTOCOL, "ws_protocol")                                                                  \
    X(WS_TEXT, "ws_text")                                                                          \
    X(WS_BAD_UTF8, "ws_bad_utf8")                                                                  \
    X(WS_BAD_MESSAGE, "ws_bad_message")                                                            \
    X(WS_PINGS, "ws_pings")                                                                        \
    X(WS_TOO_LARGE, "ws_too_large")                                                                \
    X(UNREAD, "transport_unread")                 /* reads nothing, but asks for more answers */
/* clang-format on */

#define CARRIER_EVENT(name, text) CARRIER_##name,
enum carrier_event { CARRIER_EVENTS(CARRIER_EVENT) CARRIER_EVENT_COUNT };
#undef CARRIER_EVENT

/* "ws_opened" */
const char *carrier_event_name(enum carrier_event event);

struct carrier_figures {
    uint64_t count[CARRIER_EVENT_COUNT];
};

#endif

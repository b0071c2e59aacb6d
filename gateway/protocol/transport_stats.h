/* SPDX-License-Identifier: Apache-2.0
 *
 * What happened on the way between sockets and clients, by reason: INFO transport.
 */
#ifndef GATEWAY_PROTOCOL_TRANSPORT_STATS_H
#define GATEWAY_PROTOCOL_TRANSPORT_STATS_H

#include <stdint.h>

/* clang-format off */
#define TRANSPORT_EVENTS(X)                                                                          \
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
    X(TOLD, "turned_away_told")                   /* turned away, and told behind its handshakes */\
    X(UNREAD, "transport_unread")                 /* reads nothing, but asks for more answers */   \
    X(TLS_OPENED, "tls_opened")                                                                    \
    X(TLS_LEFT, "tls_left")                       /* the client said that nothing follows */       \
    X(TLS_PLAIN, "tls_plain")                     /* what came was no TLS */                       \
    X(TLS_UNSHARED, "tls_unshared")               /* no version, cipher, protocol in common */     \
    X(TLS_ALERT, "tls_alert")                     /* the client refused: our certificate, say */   \
    X(TLS_HANDSHAKE, "tls_handshake")             /* it made no sense, or was too long */          \
    X(TLS_TIMEOUT, "tls_timeout")                 /* it did not come in time */                    \
    X(TLS_GAVE_UP, "tls_gave_up")                 /* the line dropped before it was done */        \
    X(TLS_BROKEN, "tls_broken")                   /* a record that nobody could have sent */       \
    X(TLS_CUT, "tls_cut")                         /* the line dropped without a word */            \
    X(PROXY_NAMED, "proxy_named")                                                                  \
    X(PROXY_UNNAMED, "proxy_unnamed")             /* LOCAL, UNKNOWN */                             \
    X(PROXY_BAD, "proxy_bad")                     /* no header, or one that makes no sense */      \
    X(PROXY_TIMEOUT, "proxy_timeout")                                                              \
    X(PROXY_GAVE_UP, "proxy_gave_up")             /* the line dropped before it was whole */       \
    X(PROXY_FULL, "proxy_full")                   /* too many had none yet */                      \
    X(TLS_FULL, "tls_full")                       /* turned away */                                \
    X(FRAME_OPENED, "frame_opened")               /* --skynet */                                   \
    X(FRAME_EMPTY, "frame_empty")                 /* without a type */                             \
    X(FRAME_TOO_LARGE, "frame_too_large")         /* an answer or push that doesn't fit in one */
/* clang-format on */

#define TRANSPORT_EVENT(name, text) TRANSPORT_##name,
enum transport_event { TRANSPORT_EVENTS(TRANSPORT_EVENT) TRANSPORT_EVENT_COUNT };
#undef TRANSPORT_EVENT

/* "ws_opened" */
const char *transport_event_name(enum transport_event event);

struct transport_stats {
    uint64_t count[TRANSPORT_EVENT_COUNT];
};

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * What carries a client's bytes over a socket, where they don't go as they are:
 * TLS, a WebSocket, which begins with a request of HTTP, or a WebSocket in TLS. Or skynet's frames,
 * which are open at once.
 *
 * Pure. The shell feeds what the socket brings and sends what transport_output() has.
 *
 *     OPENING -its handshakes are done-> OPEN    -no handshake, opening_ms-> ENDED
 *     OPEN    -either side ends it, or the other breaks the rules-> ENDED
 *     ENDED   what is to be sent still is sent; then the socket is to be closed
 *
 * Memory: 8 KiB and one read while it opens; TRANSPORT_UNREAD_MAX of answers of its own that the
 * other side doesn't read; what TLS needs (tls.h).
 */
#ifndef GATEWAY_PROTOCOL_TRANSPORT_H
#define GATEWAY_PROTOCOL_TRANSPORT_H

#include "gateway/protocol/entry.h"
#include "gateway/protocol/transport_stats.h"
#include "gateway/protocol/upgrade.h"
#include "link/tls.h"

enum { TRANSPORT_UNREAD_MAX = 64 * 1024 };

enum transport_state { TRANSPORT_OPENING, TRANSPORT_OPEN, TRANSPORT_ENDED };

struct transport_rules {
    struct upgrade_rules upgrade;
    struct tls_keys *keys;         /* borrowed: of who comes from now on; NULL without TLS */
    size_t packet_size_max;        /* as the clients' */
    uint32_t opening_ms;           /* from the accept until it is open; 5000 */
    struct transport_stats *stats; /* borrowed: counted here */
};

/* Return the default rules, without keys, stats and packet_size_max: any origin, path "/". */
struct transport_rules transport_rules_default(void);

struct client_transport;

/* NULL: this entry needs none. Borrows the rules for life. */
struct client_transport *transport_new(enum entry entry, const struct transport_rules *rules,
                                       uint64_t now_us);
/* Takes NULL. */
void transport_free(struct client_transport *c);

enum transport_state transport_state(const struct client_transport *c);

/* Bytes of the socket. Appends what they mean to the client to `plain`. */
void transport_on_bytes(struct client_transport *c, struct bytes in, struct buffer *plain);
/* The client has said that it sends no more, but may still be answered. */
bool transport_has_left(const struct client_transport *c);
/* The socket has ended. */
void transport_on_end(struct client_transport *c);
/* Time passes: call it about once a second. */
void transport_tick(struct client_transport *c, uint64_t now_us);
/* Send the client's whole output. Only while it is open. */
void transport_put(struct client_transport *c, struct bytes plain);
/* End it. `leaving`: for this gateway stops. */
void transport_close(struct client_transport *c, bool leaving);
/* Turn the client away: once its transport is open it is told `words`, as a client without a
 * transport is, and then it ends. For a transport that was just made. */
void transport_part(struct client_transport *c, struct bytes words);
/* Like transport_part(), but does not wait until the transport is open: the words go in a frame or
 * as HTTP where that can be, else the connection ends without a word. */
void transport_refuse(struct client_transport *c, struct bytes words);
/* Bytes to send now; the caller removes what it sends. */
struct buffer *transport_output(struct client_transport *c);

#endif

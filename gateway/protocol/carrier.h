/* SPDX-License-Identifier: Apache-2.0
 *
 * What carries a client's bytes over a socket, where they don't go as they are:
 * TLS, a WebSocket, which begins with a request of HTTP, or a WebSocket in TLS. Or skynet's frames,
 * which are open at once.
 *
 * Pure. The shell feeds what the socket brings and sends what carrier_output() has.
 *
 *     OPENING -its handshakes are done-> OPEN    -no handshake, opening_ms-> ENDED
 *     OPEN    -either side ends it, or the other breaks the rules-> ENDED
 *     ENDED   what is to be sent still is sent; then the socket is to be closed
 *
 * Memory: 8 KiB and one read while it opens; CARRIER_UNREAD_MAX of answers of its own that the
 * other side doesn't read; what TLS needs (tls.h).
 */
#ifndef GATEWAY_PROTOCOL_CARRIER_H
#define GATEWAY_PROTOCOL_CARRIER_H

#include "gateway/protocol/carrier_figures.h"
#include "gateway/protocol/entry.h"
#include "gateway/protocol/upgrade.h"
#include "link/tls.h"

enum { CARRIER_UNREAD_MAX = 64 * 1024 };

enum carrier_state { CARRIER_OPENING, CARRIER_OPEN, CARRIER_ENDED };

struct carrier_rules {
    struct upgrade_rules upgrade;
    struct tls_keys *keys;           /* borrowed: of who comes from now on; NULL without TLS */
    size_t packet_size_max;          /* as the clients' */
    uint32_t opening_ms;             /* from the accept until it is open; 5000 */
    struct carrier_figures *figures; /* borrowed: counted here */
};

/* All but keys, figures and packet_size_max: any origin, path "/". */
struct carrier_rules carrier_rules_default(void);

struct carrier;

/* NULL: this entry needs none. Borrows the rules for life. */
struct carrier *carrier_new(enum entry entry, const struct carrier_rules *rules, uint64_t now_us);
/* Takes NULL. */
void carrier_free(struct carrier *c);

enum carrier_state carrier_state(const struct carrier *c);

/* Bytes of the socket. Appends what they mean to the client to `plain`. */
void carrier_on_bytes(struct carrier *c, struct bytes in, struct buffer *plain);
/* The client has said that it sends no more, but may still be answered. */
bool carrier_has_left(const struct carrier *c);
/* The socket has ended. */
void carrier_on_end(struct carrier *c);
/* Time passes: call it about once a second. */
void carrier_tick(struct carrier *c, uint64_t now_us);
/* Send the client's whole output. Only while it is open. */
void carrier_put(struct carrier *c, struct bytes plain);
/* End it. `leaving`: for this gateway stops. */
void carrier_close(struct carrier *c, bool leaving);
/* There are too many. `words`: what a client without a carrier is told; this one is, once it is
 * open, and then it ends. For a carrier that was just made. */
void carrier_part(struct carrier *c, struct bytes words);
/* The same without waiting for that: in a frame or as HTTP where that can be, else without a word.
 */
void carrier_refuse(struct carrier *c, struct bytes words);
/* What is to be sent now; the caller takes from it what it sends. */
struct buffer *carrier_output(struct carrier *c);

#endif

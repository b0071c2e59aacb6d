/* SPDX-License-Identifier: Apache-2.0
 *
 * How often this process refused a link, or was refused, by reason: for who
 * watches it. Counted for the process as a whole, since a gateway has links on
 * each of its threads; from any thread.
 */
#ifndef WIRE_REFUSALS_H
#define WIRE_REFUSALS_H

#include "base/metrics.h"

/* By reason: the word of a metric. */
#define REFUSALS(X)                                                                             \
    X(CLUSTER, "cluster")               /* it is of another cluster */                          \
    X(FLEET, "fleet")                   /* it is of another fleet of this cluster's name */     \
    X(PEER_OLDER, "peer_older")         /* no version in common: it must be upgraded */         \
    X(PEER_NEWER, "peer_newer")         /* ... and we must */                                   \
    X(NO_RANGE, "no_range")             /* what it says it speaks is no range of versions */    \
    X(OWNER, "owner")                   /* who owns the link does not want this peer */         \
    X(LINK, "link")                     /* its role has no links with ours */                   \
    X(TOO_MANY, "too_many")             /* it has as many links as one process may have */      \
    X(BY_PEER, "by_peer")               /* the peer refused us; its log knows why */            \
    X(PLAINTEXT, "plaintext")           /* it speaks no TLS, and we do */                       \
    X(NO_CERTIFICATE, "no_certificate") /* it shows none */                                     \
    X(UNTRUSTED, "untrusted")           /* it shows none that our CA has signed */              \
    X(EXPIRED, "expired")               /* its certificate is not valid any more, or not yet */ \
    X(SUBJECT, "subject")               /* that has no ringhold:// name in it, or several */    \
    X(ROLE, "role")                     /* that is of another role than its hello says */       \
    X(NAME, "name")                     /* and of another name */                               \
    X(IDENTITY, "identity")             /* its incarnation, or its address, is another's */     \
    X(TLS_HANDSHAKE, "tls_handshake")   /* no version in common, or it makes no sense */        \
    X(TLS_ALERT, "tls_alert")           /* it refuses our certificate */                        \
    X(TLS_BROKEN, "tls_broken")         /* a record that nobody could have sent */
enum refusal {
    REFUSAL_NONE,
#define X(name, word) REFUSAL_##name,
    REFUSALS(X)
#undef X
};

/* The refusal's word. */
const char *refusal_word(enum refusal reason);

void refusals_count(enum refusal reason);
uint64_t refusals_of(enum refusal reason);
void refusals_put_metrics(struct metrics *m);

#endif

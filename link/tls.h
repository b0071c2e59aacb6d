/* SPDX-License-Identifier: Apache-2.0
 *
 * TLS on memory: bytes of the socket in, what the peer says out, and back. OpenSSL
 * does it (tls_ssl.c).
 *
 *     players    TLS 1.2 and 1.3, the server's side; no client is asked for a certificate
 *     links      TLS 1.3, both sides; both show a certificate that the fleet's CA has
 *                signed, with a link/subject.h in it
 *
 *     OPENING -the handshake is done-> OPEN    -it can't be-> ENDED, with an alert
 *     OPEN    -a record is broken, or tls_close()-> ENDED
 *
 * While it is open the other side may say that nothing follows (tls_has_left()), and
 * can still be answered.
 *
 * There are no tickets and no cache: each connection makes keys of its own, and who
 * gets the certificate's key later can't read what was said before. Nobody can ask
 * for the handshake again.
 *
 * Memory: what OpenSSL keeps of an idle connection (of a link, two records more), and a record of
 * 16 KiB while only a part of it has come. While it opens, TLS_OPENING_MAX of what comes.
 */
#ifndef LINK_TLS_H
#define LINK_TLS_H

#include "base/bytes.h"
#include "link/link.h"
#include "link/subject.h"

enum {
    TLS_WHY_SIZE = 1024,
    TLS_OPENING_MAX = 16 * 1024, /* of a handshake, to us: what players' clients send is 2 KiB */
};

/* A certificate with its chain, and its key. Thread: any one, with all its connections. */
struct tls_keys;
/* Load these files (PEM): the certificate, followed by those between it and a trusted one; and its
 * key, without a passphrase, in a file as base/secret_file.h demands. NULL: `why` names the file
 * and says why not. Returns owned. */
struct tls_keys *tls_keys_load(const char *certificate, const char *key, char why[TLS_WHY_SIZE]);
/* Like tls_keys_load() for links, with the file of certificates to trust. The certificate must be
 * valid now for both sides, signed by one of those, and have exactly one subject. */
struct tls_keys *tls_keys_load_mutual(const struct link_files *files, char why[TLS_WHY_SIZE]);
/* Return whom our certificate names; the keys are mutual ones. */
const struct subject *tls_keys_subject(const struct tls_keys *keys);
/* Connections that have them keep them. Takes NULL. */
void tls_keys_free(struct tls_keys *keys);

enum tls_state { TLS_OPENING, TLS_OPEN, TLS_ENDED };

/* Why it has ended. */
enum tls_end {
    TLS_CLOSED,    /* tls_close() */
    TLS_PLAIN,     /* what came is no TLS */
    TLS_UNSHARED,  /* no version, cipher or protocol (ALPN) in common */
    TLS_ALERT,     /* the other side refuses the handshake: it doesn't trust the certificate, say */
    TLS_HANDSHAKE, /* the handshake makes no sense, or is too long */
    TLS_BROKEN,    /* a record does, behind it */
    /* Of links: */
    TLS_NO_CERTIFICATE, /* the peer shows none */
    TLS_UNTRUSTED,      /* what it shows is not our CA's */
    TLS_EXPIRED,        /* or is not valid now */
};

struct tls;
/* `http`: of clients that offer protocols (ALPN), one must be http/1.1. */
struct tls *tls_new(struct tls_keys *keys, bool http);
/* Make the TLS of a link. `dials`: this side is the client, and begins by tls_begin(). */
struct tls *tls_new_link(struct tls_keys *keys, bool dials);
/* Append the client's first handshake bytes to `out`. */
void tls_begin(struct tls *t, struct buffer *out);
/* Tell whom the peer's certificate names, once the link is open. False: the certificate has no
 * subject, or several. */
bool tls_subject(const struct tls *t, struct subject *out);
/* Return OpenSSL's words for the reason, once the TLS has ended. Static text. */
const char *tls_why(const struct tls *t);
/* Takes NULL. */
void tls_free(struct tls *t);

enum tls_state tls_state(const struct tls *t);
/* The reason, once it has ended. */
enum tls_end tls_end(const struct tls *t);
/* True if the handshake was complete at some time, whatever came then. */
bool tls_has_opened(const struct tls *t);
/* The other side has said that nothing follows. */
bool tls_has_left(const struct tls *t);

/* Bytes came: appends what they say to `plain`, and what is to be sent to `out`. */
void tls_on_bytes(struct tls *t, struct bytes in, struct buffer *plain, struct buffer *out);
/* Say that. Only while it is open. */
void tls_put(struct tls *t, struct bytes plain, struct buffer *out);
/* Say that nothing follows, if it is open; end it. */
void tls_close(struct tls *t, struct buffer *out);

#endif

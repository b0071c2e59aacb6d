/* SPDX-License-Identifier: Apache-2.0
 *
 * TLS over bytes that somebody else carries: handshake, records, close, by
 * OpenSSL.
 */
#include "link/tls_inside.h"

#include "base/assert.h"
#include "base/mem.h"
#include "link/tls_hello.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <string.h>

enum { RECORD_MAX = 16 * 1024 };

/* ---- what all connections have ---- */

/* Of TLS 1.2: keys that nobody can compute later, and none of the ciphers that padding broke. */
static const char ciphers[] = "ECDHE+AESGCM:ECDHE+CHACHA20";

static const char link_ciphers[] =
    "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256";

struct tls {
    SSL *ssl; /* owned */
    enum tls_state state;
    enum tls_end end;
    bool http;
    bool link;
    bool dials;
    bool opened;
    bool left;
    struct tls_hello hello;
    size_t opening_size; /* bytes of the handshake that came */
    const char *why;     /* of the end; static */
    /* Of this call. */
    struct bytes in;
    struct buffer *out;
};

/* Of what a client offers, "http/1.1" for a WebSocket; whoever speaks packets may offer anything.
 */
static int on_offer(SSL *ssl, const unsigned char **out, unsigned char *size,
                    const unsigned char *offer, unsigned offer_size, void *user)
{
    static const char http[] = "http/1.1";
    const struct tls *t = SSL_get_app_data(ssl);

    (void)user;
    if (!t->http) {
        return SSL_TLSEXT_ERR_NOACK;
    }
    for (unsigned at = 0; at < offer_size && offer[at] < offer_size - at; at += 1U + offer[at]) {
        if (offer[at] == sizeof http - 1 && memcmp(offer + at + 1, http, sizeof http - 1) == 0) {
            *out = offer + at + 1;
            *size = sizeof http - 1;
            return SSL_TLSEXT_ERR_OK;
        }
    }
    return SSL_TLSEXT_ERR_ALERT_FATAL;
}

struct ssl_ctx_st *tls_context_new(bool links)
{
    SSL_CTX *context = SSL_CTX_new(links ? TLS_method() : TLS_server_method());
    const int version = links ? TLS1_3_VERSION : TLS1_2_VERSION;

    ASSERT(context != NULL);
    const bool good = SSL_CTX_set_min_proto_version(context, version) == 1 &&
                      SSL_CTX_set_cipher_list(context, ciphers) == 1 &&
                      SSL_CTX_set_num_tickets(context, 0) == 1;
    ASSERT(good);
    (void)SSL_CTX_set_options(context,
                              SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                  SSL_OP_CIPHER_SERVER_PREFERENCE);
    (void)SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    if (links) {
        // Links are few and busy. All of these suites are sound; the first costs least.
        const int chosen = SSL_CTX_set_ciphersuites(context, link_ciphers);
        ASSERT(chosen == 1);
        SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
        // OpenSSL makes room for a chain as long as the peer says it is.
        SSL_CTX_set_max_cert_list(context, TLS_OPENING_MAX);
    } else {
        (void)SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS); // 34 KiB of each that is idle
        SSL_CTX_set_alpn_select_cb(context, on_offer, NULL);
    }
    return context;
}

/* ---- memory in place of a socket ----
 *
 * OpenSSL's own (BIO_s_mem) copies twice and keeps the most that it ever held.
 */

static int on_socket_read(BIO *bio, char *to, int size)
{
    struct tls *t = BIO_get_data(bio);
    const size_t wanted = size > 0 ? (size_t)size : 0;
    const size_t count = t->in.size < wanted ? t->in.size : wanted;

    BIO_clear_retry_flags(bio);
    if (count == 0) {
        BIO_set_retry_read(bio);
        return -1;
    }
    if (!t->opened && (t->opening_size += count) > TLS_OPENING_MAX) {
        return -1;
    }
    memcpy(to, t->in.data, count);
    t->in = bytes_of(t->in.data + count, t->in.size - count);
    return (int)count;
}

static int on_socket_write(BIO *bio, const char *data, int size)
{
    const struct tls *t = BIO_get_data(bio);

    buffer_put(t->out, data, (size_t)size);
    return size;
}

static long on_socket_ctrl(BIO *bio, int what, long number, void *pointer)
{
    (void)bio;
    (void)number;
    (void)pointer;
    return what == BIO_CTRL_FLUSH ? 1 : 0; // there is nothing to flush: it is done
}

static int on_socket_made(BIO *bio)
{
    BIO_set_init(bio, 1);
    return 1;
}

static BIO_METHOD *socket_method; /* of the process, for good */

static void make_socket_method(void)
{
    socket_method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "carrier");
    ASSERT(socket_method != NULL);
    (void)BIO_meth_set_read(socket_method, on_socket_read);
    (void)BIO_meth_set_write(socket_method, on_socket_write);
    (void)BIO_meth_set_ctrl(socket_method, on_socket_ctrl);
    (void)BIO_meth_set_create(socket_method, on_socket_made);
}

static BIO *new_socket(struct tls *t)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    (void)pthread_once(&once, make_socket_method);
    BIO *bio = BIO_new(socket_method);
    ASSERT(bio != NULL);
    BIO_set_data(bio, t);
    return bio;
}

/* ---- a connection ---- */

static struct tls *new_connection(struct tls_keys *keys)
{
    struct tls *t = mem_new(1, sizeof *t);
    BIO *bio = new_socket(t);

    t->ssl = SSL_new(tls_keys_context(keys));
    ASSERT(t->ssl != NULL); // no memory, as in mem_new()
    SSL_set_bio(t->ssl, bio, bio);
    (void)SSL_set_app_data(t->ssl, t);
    return t;
}

struct tls *tls_new(struct tls_keys *keys, bool http)
{
    struct tls *t = new_connection(keys);

    t->http = http;
    SSL_set_accept_state(t->ssl);
    return t;
}

struct tls *tls_new_link(struct tls_keys *keys, bool dials)
{
    struct tls *t = new_connection(keys);

    t->link = true;
    t->dials = dials;
    if (dials) {
        SSL_set_connect_state(t->ssl);
    } else {
        SSL_set_accept_state(t->ssl);
    }
    return t;
}

void tls_free(struct tls *t)
{
    if (t != NULL) {
        SSL_free(t->ssl); // and what it reads and writes
        mem_free(t);
    }
}

enum tls_state tls_state(const struct tls *t)
{
    return t->state;
}

enum tls_end tls_end(const struct tls *t)
{
    return t->end;
}

bool tls_has_opened(const struct tls *t)
{
    return t->opened;
}

bool tls_has_left(const struct tls *t)
{
    return t->left;
}

bool tls_subject(const struct tls *t, struct subject *out)
{
    const X509 *shown = SSL_get0_peer_certificate(t->ssl);

    return shown != NULL && tls_subject_of(shown, out);
}

const char *tls_why(const struct tls *t)
{
    return t->why == NULL ? "it ended" : t->why;
}

static enum tls_end end_of(unsigned long error)
{
    const int reason = ERR_GET_REASON(error);

    if (reason >= SSL_AD_REASON_OFFSET) {
        return TLS_ALERT;
    }
    switch (reason) {
    case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
        return TLS_NO_CERTIFICATE;
    case SSL_R_HTTP_REQUEST:
    case SSL_R_HTTPS_PROXY_REQUEST:
    case SSL_R_WRONG_VERSION_NUMBER: // of the first record: it is none
        return TLS_PLAIN;
    case SSL_R_UNSUPPORTED_PROTOCOL:
    case SSL_R_VERSION_TOO_LOW:
    case SSL_R_NO_SHARED_CIPHER:
    case SSL_R_NO_APPLICATION_PROTOCOL:
    case SSL_R_NO_SUITABLE_KEY_SHARE:
    case SSL_R_NO_SHARED_GROUPS:
    case SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM:
        return TLS_UNSHARED;
    default:
        return TLS_HANDSHAKE;
    }
}

/* What is wrong with the peer's certificate. */
static enum tls_end end_of_verdict(long verdict)
{
    return verdict == X509_V_ERR_CERT_HAS_EXPIRED || verdict == X509_V_ERR_CERT_NOT_YET_VALID
               ? TLS_EXPIRED
               : TLS_UNTRUSTED;
}

static void end(struct tls *t)
{
    const unsigned long error = ERR_peek_error();
    const long verdict = SSL_get_verify_result(t->ssl);

    t->state = TLS_ENDED;
    t->why = ERR_reason_error_string(error);
    // A client of TLS 1.3 has opened before the server judges its certificate.
    if (t->link && t->opened && ERR_GET_REASON(error) >= SSL_AD_REASON_OFFSET) {
        t->end = TLS_ALERT;
    } else if (t->opened) {
        t->end = TLS_BROKEN;
    } else if (t->link && verdict != X509_V_OK) {
        t->end = end_of_verdict(verdict);
        t->why = X509_verify_cert_error_string(verdict);
    } else {
        t->end = end_of(error);
    }
}

/* It is not done, for want of bytes, or it is over. */
static void judge(struct tls *t, int result)
{
    const int error = SSL_get_error(t->ssl, result);

    if (error == SSL_ERROR_WANT_READ) {
        return;
    }
    if (error == SSL_ERROR_ZERO_RETURN && t->opened) {
        t->left = true;
        return;
    }
    end(t);
}

static void open_up(struct tls *t)
{
    const int result = SSL_do_handshake(t->ssl);

    if (result == 1) {
        t->opened = true;
        t->state = TLS_OPEN;
    } else {
        judge(t, result);
    }
}

/* A client's hello that is too long is not shown to OpenSSL at all. */
static void open_up_if_it_fits(struct tls *t, struct bytes in)
{
    if (t->dials || tls_hello_fits(&t->hello, in, SSL_version(t->ssl) == TLS1_2_VERSION)) {
        open_up(t);
    } else {
        t->end = TLS_HANDSHAKE;
        t->state = TLS_ENDED;
        t->why = "the peer announced a TLS hello that is too long";
    }
}

void tls_begin(struct tls *t, struct buffer *out)
{
    ASSERT(t->dials && t->state == TLS_OPENING);
    t->out = out;
    ERR_clear_error();
    open_up(t);
    ERR_clear_error();
}

static void take_plain(struct tls *t, struct buffer *plain)
{
    int count = 0;

    do {
        count = SSL_read(t->ssl, buffer_reserve(plain, RECORD_MAX), RECORD_MAX);
        plain->size += count > 0 ? (size_t)count : 0;
    } while (count > 0);
    judge(t, count);
}

void tls_on_bytes(struct tls *t, struct bytes in, struct buffer *plain, struct buffer *out)
{
    if (t->state == TLS_ENDED || t->left) {
        return;
    }
    t->in = in;
    t->out = out;
    ERR_clear_error();
    if (t->state == TLS_OPENING) {
        open_up_if_it_fits(t, in);
    }
    if (t->state == TLS_OPEN) {
        take_plain(t, plain);
    }
    ERR_clear_error(); // the thread's: others must not find it
}

void tls_put(struct tls *t, struct bytes plain, struct buffer *out)
{
    ASSERT(t->state == TLS_OPEN);
    t->out = out;
    ERR_clear_error();
    while (plain.size > 0) {
        const size_t size = plain.size < RECORD_MAX ? plain.size : RECORD_MAX;

        if (SSL_write(t->ssl, plain.data, (int)size) != (int)size) { // memory takes all
            t->end = TLS_BROKEN;
            t->state = TLS_ENDED;
            break;
        }
        plain = bytes_of(plain.data + size, plain.size - size);
    }
    ERR_clear_error();
}

void tls_close(struct tls *t, struct buffer *out)
{
    if (t->state == TLS_OPEN) {
        t->out = out;
        ERR_clear_error();
        (void)SSL_shutdown(t->ssl);
        ERR_clear_error();
    }
    t->state = TLS_ENDED;
}

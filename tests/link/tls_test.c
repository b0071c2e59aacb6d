/* SPDX-License-Identifier: Apache-2.0
 *
 * TLS as a gateway speaks it, against OpenSSL as the client, memory to memory.
 */
#include "gateway/protocol/transport.h"
#include "link/tls.h"

#include "link/tls_hello.h"

#include "tests/folder.h"
#include "tests/test.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <string.h>
#include <sys/stat.h>

/* ---- certificates ---- */

struct pair {
    char folder[400];
    char chain[500];
    char key[500];
    EVP_PKEY *secret; /* owned */
    X509 *shown;      /* owned */
};

static X509 *certificate_of(EVP_PKEY *key)
{
    X509 *x = X509_new();
    X509_NAME *name = X509_get_subject_name(x);

    assert_int_equal(X509_set_version(x, 2), 1);
    assert_int_equal(ASN1_INTEGER_set(X509_get_serialNumber(x), 1), 1);
    assert_non_null(X509_gmtime_adj(X509_getm_notBefore(x), -60));
    assert_non_null(X509_gmtime_adj(X509_getm_notAfter(x), 3600));
    assert_int_equal(X509_NAME_add_entry_by_txt(
                         name, "CN", MBSTRING_ASC, (const unsigned char *)"localhost", -1, -1, 0),
                     1);
    assert_int_equal(X509_set_issuer_name(x, name), 1);
    assert_int_equal(X509_set_pubkey(x, key), 1);
    assert_true(X509_sign(x, key, EVP_sha256()) > 0);
    return x;
}

static void write_chain(const struct pair *p, int count, const char *behind)
{
    FILE *f = fopen(p->chain, "w");

    assert_non_null(f);
    for (int i = 0; i < count; i++) {
        assert_int_equal(PEM_write_X509(f, p->shown), 1);
    }
    (void)fputs(behind, f);
    assert_int_equal(fclose(f), 0);
}

static void write_key(const struct pair *p, EVP_PKEY *key, const char *passphrase)
{
    FILE *f = fopen(p->key, "w");

    assert_non_null(f);
    assert_int_equal(fchmod(fileno(f), 0600), 0);
    assert_int_equal(PEM_write_PrivateKey(f,
                                          key,
                                          passphrase == NULL ? NULL : EVP_aes_128_cbc(),
                                          (const unsigned char *)passphrase,
                                          passphrase == NULL ? 0 : (int)strlen(passphrase),
                                          NULL,
                                          NULL),
                     1);
    assert_int_equal(fclose(f), 0);
}

static void pair_make(struct pair *p)
{
    folder_make(p->folder, sizeof p->folder);
    (void)snprintf(p->chain, sizeof p->chain, "%s/chain", p->folder);
    (void)snprintf(p->key, sizeof p->key, "%s/key", p->folder);
    p->secret = EVP_EC_gen("P-256");
    assert_non_null(p->secret);
    p->shown = certificate_of(p->secret);
    write_chain(p, 1, "");
    write_key(p, p->secret, NULL);
}

static void pair_remove(struct pair *p)
{
    EVP_PKEY_free(p->secret);
    X509_free(p->shown);
    folder_remove(p->folder);
}

/* ---- both sides ---- */

struct rig {
    struct pair pair;
    struct tls_keys *keys;
    SSL_CTX *context; /* the client's */
    struct tls *tls;
    SSL *client;
    struct buffer sent;  /* by the client, not delivered yet */
    struct buffer plain; /* what the client said */
    struct buffer out;   /* what it is to get */
};

/* Client and gateway anew, with the same certificate. */
static void rig_connect(struct rig *r, bool http)
{
    SSL_free(r->client);
    tls_free(r->tls);
    buffer_clear(&r->sent);
    buffer_clear(&r->plain);
    buffer_clear(&r->out);
    r->client = SSL_new(r->context);
    SSL_set_bio(r->client, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    SSL_set_connect_state(r->client);
    assert_int_equal(SSL_set1_host(r->client, "localhost"), 1);
    r->tls = tls_new(r->keys, http);
}

static void rig_start(struct rig *r)
{
    char why[TLS_WHY_SIZE];

    *r = (struct rig){0};
    pair_make(&r->pair);
    r->keys = tls_keys_load(r->pair.chain, r->pair.key, why);
    assert_non_null(r->keys);
    r->context = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_verify(r->context, SSL_VERIFY_PEER, NULL);
    assert_int_equal(X509_STORE_add_cert(SSL_CTX_get_cert_store(r->context), r->pair.shown), 1);
    rig_connect(r, false);
}

static void rig_stop(struct rig *r)
{
    SSL_free(r->client);
    SSL_CTX_free(r->context);
    tls_free(r->tls);
    tls_keys_free(r->keys);
    pair_remove(&r->pair);
    buffer_fini(&r->sent);
    buffer_fini(&r->plain);
    buffer_fini(&r->out);
}

/* What the client has to send. */
static void collect(struct rig *r)
{
    char *data = NULL;
    const long size = BIO_get_mem_data(SSL_get_wbio(r->client), &data);

    if (size > 0) {
        buffer_put(&r->sent, data, (size_t)size);
        (void)BIO_reset(SSL_get_wbio(r->client));
    }
}

/* Bytes to the gateway, what it answers to the client. */
static void deliver(struct rig *r, struct bytes in)
{
    tls_on_bytes(r->tls, in, &r->plain, &r->out);
    if (r->out.size > 0) {
        assert_int_equal(BIO_write(SSL_get_rbio(r->client), r->out.data, (int)r->out.size),
                         r->out.size);
        buffer_clear(&r->out);
    }
}

/* What the client has said, in pieces of that size. */
static void deliver_all(struct rig *r, size_t piece)
{
    collect(r);
    for (size_t at = 0; at < r->sent.size; at += piece) {
        const size_t left = r->sent.size - at;

        deliver(r, bytes_of(r->sent.data + at, left < piece ? left : piece));
    }
    buffer_clear(&r->sent);
}

/* True: the client is content. */
static bool shake(struct rig *r, size_t piece)
{
    bool good = false;

    for (int i = 0; i < 6; i++) {
        good = SSL_do_handshake(r->client) == 1;
        deliver_all(r, piece);
    }
    ERR_clear_error();
    return good;
}

/* What the client reads is that. */
static void expect(struct rig *r, struct bytes right)
{
    uint8_t *got = malloc(right.size + 1);
    size_t size = 0;
    int count = 0;

    assert_non_null(got);
    if (r->out.size > 0) {
        assert_int_equal(BIO_write(SSL_get_rbio(r->client), r->out.data, (int)r->out.size),
                         r->out.size);
        buffer_clear(&r->out);
    }
    while (size <= right.size &&
           (count = SSL_read(r->client, got + size, (int)(right.size + 1 - size))) > 0) {
        size += (size_t)count;
    }
    assert_int_equal(size, right.size);
    assert_memory_equal(got, right.data, size);
    free(got);
}

static void both_versions(struct rig *r, int i)
{
    const int version = i == 0 ? TLS1_2_VERSION : TLS1_3_VERSION;

    assert_int_equal(SSL_CTX_set_min_proto_version(r->context, version), 1);
    assert_int_equal(SSL_CTX_set_max_proto_version(r->context, version), 1);
    rig_connect(r, false);
}

/* ---- what may be ---- */

static void it_carries_bytes_both_ways_in_any_pieces(void **state)
{
    static uint8_t many[100000];
    static const size_t pieces[] = {1, 7, 1000, sizeof many * 2};
    struct rig r;

    (void)state;
    rig_start(&r);
    for (size_t i = 0; i < sizeof many; i++) {
        many[i] = (uint8_t)(i * 31);
    }
    for (size_t i = 0; i < 2 * sizeof pieces / sizeof pieces[0]; i++) {
        both_versions(&r, (int)(i % 2));
        assert_int_equal(tls_state(r.tls), TLS_OPENING);
        assert_false(tls_has_opened(r.tls));
        assert_true(shake(&r, pieces[i / 2]));
        assert_int_equal(tls_state(r.tls), TLS_OPEN);
        assert_true(tls_has_opened(r.tls));
        for (int k = 0; k < 3; k++) {
            assert_int_equal(SSL_write(r.client, many, sizeof many), sizeof many);
        }
        deliver_all(&r, pieces[i / 2]);
        assert_int_equal(r.plain.size, 3 * sizeof many);
        assert_memory_equal(r.plain.data + 2 * sizeof many, many, sizeof many);
        tls_put(r.tls, bytes_of(many, sizeof many), &r.out);
        expect(&r, bytes_of(many, sizeof many));
        tls_put(r.tls, bytes_of(many, 0), &r.out);
        assert_int_equal(r.out.size, 0);
        tls_close(r.tls, &r.out);
        assert_int_equal(tls_state(r.tls), TLS_ENDED);
        assert_int_equal(tls_end(r.tls), TLS_CLOSED);
        expect(&r, bytes_of(many, 0));
        assert_int_equal(SSL_get_shutdown(r.client) & SSL_RECEIVED_SHUTDOWN, SSL_RECEIVED_SHUTDOWN);
    }
    rig_stop(&r);
}

static void who_says_that_nothing_follows_is_answered_still(void **state)
{
    struct rig r;

    (void)state;
    rig_start(&r);
    for (int i = 0; i < 2; i++) {
        both_versions(&r, i);
        assert_true(shake(&r, 1000));
        assert_int_equal(SSL_write(r.client, "last", 4), 4);
        (void)SSL_shutdown(r.client);
        deliver_all(&r, 100000);
        assert_int_equal(r.plain.size, 4);
        assert_true(tls_has_left(r.tls));
        assert_int_equal(tls_state(r.tls), TLS_OPEN);
        deliver(&r, bytes_of("anything", 8)); // is not looked at
        tls_put(r.tls, bytes_of("yes", 3), &r.out);
        assert_true(r.out.size > 3);
        tls_close(r.tls, &r.out);
        assert_int_equal(tls_state(r.tls), TLS_ENDED);
    }
    rig_stop(&r);
}

static bool no_memory;

static void *take_memory(size_t size, const char *file, int line)
{
    (void)file;
    (void)line;
    return no_memory ? NULL : malloc(size);
}

static void *resize_memory(void *data, size_t size, const char *file, int line)
{
    (void)file;
    (void)line;
    return no_memory ? NULL : realloc(data, size);
}

static void free_memory(void *data, const char *file, int line)
{
    (void)file;
    (void)line;
    free(data);
}

/* A gateway's carrier with the keys of the rig, whose TLS is open. */
static struct client_transport *transport_open(struct rig *r, const struct transport_rules *rules)
{
    struct client_transport *c = transport_new(ENTRY_FRAMES_TLS, rules, 0);

    rig_connect(r, false);
    for (int i = 0; i < 4; i++) {
        struct buffer *out = transport_output(c);

        (void)SSL_do_handshake(r->client);
        collect(r);
        transport_on_bytes(c, buffer_bytes(&r->sent), &r->plain);
        buffer_clear(&r->sent);
        assert_int_equal(BIO_write(SSL_get_rbio(r->client), out->data, (int)out->size), out->size);
        buffer_clear(out);
    }
    assert_int_equal(transport_state(c), TRANSPORT_OPEN);
    return c;
}

static void a_transport_whose_tls_can_not_write_has_ended(void **state)
{
    struct transport_stats stats = {{0}};
    struct transport_rules rules = transport_rules_default();
    struct rig r;

    (void)state;
    rig_start(&r);
    rules.keys = r.keys;
    rules.stats = &stats;
    struct client_transport *c = transport_open(&r, &rules);

    no_memory = true;
    transport_put(c, bytes_of("hello", 5));
    no_memory = false;
    assert_int_equal(transport_state(c), TRANSPORT_ENDED);
    assert_int_equal(stats.count[TRANSPORT_TLS_BROKEN], 1);
    transport_tick(c, 1000000);
    transport_close(c, false);
    transport_free(c);
    rig_stop(&r);
}

static void connections_keep_the_keys_that_they_began_with(void **state)
{
    struct rig r;

    (void)state;
    rig_start(&r);
    tls_keys_free(r.keys);
    r.keys = NULL;
    assert_true(shake(&r, 1000));
    rig_stop(&r);
}

static void of_offered_protocols_a_websocket_takes_http(void **state)
{
    static const struct {
        const char *offer;
        bool http;
        bool good;
        bool chosen;
    } table[] = {
        {"\x02h2\x08http/1.1", true, true, true},
        {"\x08http/1.1", true, true, true},
        {"", true, true, false},
        {"\x02h2", true, false, false},
        {"\x08http/1.0\x08http/1.2", true, false, false},
        {"\x02h2", false, true, false},
    };
    struct rig r;

    (void)state;
    rig_start(&r);
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        const unsigned char *chosen = NULL;
        unsigned size = 0;

        rig_connect(&r, table[i].http);
        assert_int_equal(SSL_set_alpn_protos(r.client,
                                             (const unsigned char *)table[i].offer,
                                             (unsigned)strlen(table[i].offer)),
                         0);
        assert_int_equal(shake(&r, 1000), table[i].good);
        SSL_get0_alpn_selected(r.client, &chosen, &size);
        assert_int_equal(size, table[i].chosen ? 8 : 0);
        if (!table[i].good) {
            assert_int_equal(tls_state(r.tls), TLS_ENDED);
            assert_int_equal(tls_end(r.tls), TLS_UNSHARED);
        }
    }
    rig_stop(&r);
}

/* ---- what may not ---- */

static void what_is_no_tls_is_told_from_it(void **state)
{
    static const struct {
        const char *bytes;
        size_t size;
        enum tls_end end;
    } table[] = {
        {"GET / HTTP/1.1\r\nHost: a\r\n\r\n", 26, TLS_PLAIN},
        {"CONNECT a:1 HTTP/1.1\r\n\r\n", 24, TLS_PLAIN},
        {"\1\0\0\6RH\1\1\0\0\0\0\0", 13, TLS_PLAIN}, // a hello of packets
        {"*1\r\n$4\r\nPING\r\n", 14, TLS_PLAIN},
        {"\0\0\0\0\0\0\0\0\0\0\0\0", 12, TLS_PLAIN},
        {"\x16\x03\x01\x00\x05\x0a\x00\x00\x01\x00", 10, TLS_HANDSHAKE},
        {"\x16\x03\x01\xff\xff\x01\x00\x00\x01\x00", 10, TLS_HANDSHAKE},
        {"\x17\x03\x03\x00\x05hello", 10, TLS_HANDSHAKE},
        {"\x15\x03\x01\x00\x02\x02\x28", 7, TLS_HANDSHAKE}, // an alert
    };
    struct rig r;

    (void)state;
    rig_start(&r);
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        rig_connect(&r, false);
        tls_on_bytes(r.tls, bytes_of(table[i].bytes, table[i].size), &r.plain, &r.out);
        assert_int_equal(tls_state(r.tls), TLS_ENDED);
        assert_int_equal(tls_end(r.tls), table[i].end);
        assert_false(tls_has_opened(r.tls));
        assert_int_equal(r.plain.size, 0);
        assert_true(r.out.size <= 7); // an alert, or nothing
    }
    rig_stop(&r);
}

static void a_client_of_old_finds_nothing_in_common(void **state)
{
    struct rig r;

    (void)state;
    rig_start(&r);
    SSL_CTX_set_security_level(r.context, 0);
    assert_int_equal(SSL_CTX_set_min_proto_version(r.context, TLS1_VERSION), 1);
    assert_int_equal(SSL_CTX_set_max_proto_version(r.context, TLS1_1_VERSION), 1);
    rig_connect(&r, false);
    assert_false(shake(&r, 1000));
    assert_int_equal(tls_end(r.tls), TLS_UNSHARED);
    assert_int_equal(SSL_CTX_set_max_proto_version(r.context, TLS1_2_VERSION), 1);
    assert_int_equal(SSL_CTX_set_cipher_list(r.context, "AES128-SHA:ECDHE-ECDSA-AES128-SHA"), 1);
    rig_connect(&r, false);
    assert_false(shake(&r, 1000));
    assert_int_equal(tls_end(r.tls), TLS_UNSHARED);
    rig_stop(&r);
}

static void a_client_that_does_not_trust_us_says_so(void **state)
{
    struct rig r;

    (void)state;
    rig_start(&r);
    for (int i = 0; i < 2; i++) {
        both_versions(&r, i);
        assert_int_equal(SSL_set1_host(r.client, "elsewhere"), 1);
        assert_false(shake(&r, 1000));
        assert_int_equal(tls_state(r.tls), TLS_ENDED);
        assert_int_equal(tls_end(r.tls), TLS_ALERT);
    }
    rig_stop(&r);
}

static void it_may_stop_anywhere(void **state)
{
    struct rig r;

    (void)state;
    rig_start(&r);
    for (int i = 0; i < 2; i++) {
        size_t first = 0;
        size_t second = 1;

        for (size_t at = 0; at < first + second; at += at < 20 ? 1 : 13) {
            both_versions(&r, i);
            (void)SSL_do_handshake(r.client);
            collect(&r);
            first = r.sent.size;
            deliver(&r, bytes_of(r.sent.data, at < first ? at : first));
            if (at >= first) {
                buffer_clear(&r.sent);
                (void)SSL_do_handshake(r.client);
                collect(&r);
                second = r.sent.size;
                deliver(&r, bytes_of(r.sent.data, at - first));
            }
            assert_int_equal(tls_state(r.tls), TLS_OPENING);
            tls_close(r.tls, &r.out);
            assert_int_equal(r.out.size, 0); // nobody could read it
        }
    }
    rig_stop(&r);
}

static void a_bit_that_was_turned_never_opens_it_wrong(void **state)
{
    struct rig r;

    (void)state;
    rig_start(&r);
    for (int i = 0; i < 2; i++) {
        size_t size = 1;

        for (size_t at = 0; at < size; at += 3) {
            both_versions(&r, i);
            (void)SSL_do_handshake(r.client);
            collect(&r);
            size = r.sent.size;
            r.sent.data[at] ^= (uint8_t)(1U << at % 8);
            deliver(&r, buffer_bytes(&r.sent));
            buffer_clear(&r.sent);
            (void)shake(&r, 1000);
            assert_int_not_equal(tls_state(r.tls), TLS_OPEN); // both sign what was said
        }
    }
    rig_stop(&r);
}

static void a_broken_record_ends_it(void **state)
{
    struct rig r;

    (void)state;
    rig_start(&r);
    for (int i = 0; i < 2; i++) {
        both_versions(&r, i);
        assert_true(shake(&r, 1000));
        assert_int_equal(SSL_write(r.client, "good", 4), 4);
        collect(&r);
        const size_t good = r.sent.size;
        assert_int_equal(SSL_write(r.client, "spoilt", 6), 6);
        collect(&r);
        r.sent.data[good + 12] ^= 1;
        deliver(&r, buffer_bytes(&r.sent));
        assert_int_equal(r.plain.size, 4); // what came before it counts
        assert_int_equal(tls_state(r.tls), TLS_ENDED);
        assert_int_equal(tls_end(r.tls), TLS_BROKEN);
        assert_true(tls_has_opened(r.tls));
        deliver(&r, buffer_bytes(&r.sent));
        assert_int_equal(r.plain.size, 4);
    }
    rig_stop(&r);
}

static void nobody_begins_the_handshake_again(void **state)
{
    struct rig r;

    (void)state;
    rig_start(&r);
    both_versions(&r, 0);
    assert_true(shake(&r, 1000));
    assert_int_equal(SSL_renegotiate(r.client), 1);
    (void)shake(&r, 1000);
    assert_true(SSL_renegotiate_pending(r.client) == 1 || tls_state(r.tls) == TLS_ENDED);
    rig_stop(&r);
}

static void a_handshake_is_not_too_long(void **state)
{
    static const uint8_t header[] = {0x16, 0x03, 0x01, 0x40, 0x00, 0x01, 0x00, 0xff, 0x00};
    static const uint8_t record[] = {0x16, 0x03, 0x01, 0x40, 0x00};
    static uint8_t body[0x4000];
    struct rig r;

    (void)state;
    rig_start(&r);
    deliver(&r, bytes_of(header, sizeof header));
    deliver(&r, bytes_of(body, sizeof body - 4));
    for (int i = 0; i < 4 && tls_state(r.tls) == TLS_OPENING; i++) {
        deliver(&r, bytes_of(record, sizeof record));
        deliver(&r, bytes_of(body, sizeof body));
    }
    assert_int_equal(tls_state(r.tls), TLS_ENDED);
    assert_int_equal(tls_end(r.tls), TLS_HANDSHAKE);
    rig_stop(&r);
}

static void a_hello_that_says_it_is_long_is_not_waited_for(void **state)
{
    static const struct {
        const char *bytes;
        size_t size;
        bool fits;
    } table[] = {
        {"\x16\x03\x01\x00\x08\x01\x00\x40\x00", 9, true},
        {"\x16\x03\x01\x00\x08\x01\x00\x40\x01", 9, false},
        {"\x16\x03\x01\x00\x08\x01\x01\xff\x00", 9, false},
        {"\x16\x03\x01\x00\x03\x01\x00\x00", 8, false}, // cut where its size stands
        {"\x16\x03\x01\x00\x00", 5, false},
        {"\x14\x03\x03\x00\x01\x01\x16\x03\x01\x00\x08\x01\x01\xff\x00", 15, false},
        {"\x16\x03\x01\x00\x05\x01\x00\x00\x01x\x16\x03\x01\x00\x08\x01\x01\xff\x00", 19, false},
        {"\x17\x03\x03\x00\x08\x01\x01\xff\x00", 9, true}, // encrypted
    };
    struct rig r;

    (void)state;
    rig_start(&r);
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct tls_hello whole = {0};
        struct tls_hello piece = {0};
        bool fits = true;

        assert_int_equal(tls_hello_fits(&whole, bytes_of(table[i].bytes, table[i].size), false),
                         table[i].fits);
        for (size_t at = 0; at < table[i].size && fits; at++) {
            fits = tls_hello_fits(&piece, bytes_of(table[i].bytes + at, 1), false);
        }
        assert_int_equal(fits, table[i].fits);
    }
    deliver(&r, bytes_of(table[2].bytes, table[2].size));
    assert_int_equal(tls_state(r.tls), TLS_ENDED);
    assert_int_equal(tls_end(r.tls), TLS_HANDSHAKE);
    rig_stop(&r);
}

static void what_is_encrypted_is_taken_for_no_hello(void **state)
{
    struct rig r;

    (void)state;
    rig_start(&r);
    for (int i = 0; i < 400; i++) { // of TLS 1.2 each 256th begins like one
        both_versions(&r, 0);
        assert_true(shake(&r, i % 2 == 0 ? 1000 : 3));
    }
    rig_stop(&r);
}

/* ---- files ---- */

static void expect_refused(const struct pair *p, const char *right)
{
    char why[TLS_WHY_SIZE] = "";

    struct tls_keys *keys = tls_keys_load(p->chain, p->key, why);
    if (keys != NULL || strstr(why, right) == NULL) {
        fail_msg("'%s' has no '%s'", keys != NULL ? "good" : why, right);
    }
    assert_int_equal(ERR_peek_error(), 0);
}

static void what_is_no_pair_is_said(void **state)
{
    char why[TLS_WHY_SIZE];
    struct pair p;

    (void)state;
    pair_make(&p);
    write_chain(&p, 3, "and what is no certificate\n");
    struct tls_keys *keys = tls_keys_load(p.chain, p.key, why);
    assert_non_null(keys);
    tls_keys_free(keys);
    write_chain(&p, 1, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
    expect_refused(&p, "/chain: a certificate of its chain is damaged");
    write_chain(&p, 0, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
    expect_refused(&p, "/chain: the certificate is damaged");
    write_chain(&p, 0, "");
    expect_refused(&p, "/chain: the file contains no certificate (PEM)");
    write_chain(&p, 300, "");
    expect_refused(&p, "/chain: the file is too large");
    write_chain(&p, 1, "");
    write_key(&p, p.secret, "secret");
    expect_refused(&p, "/key: the file contains no key (PEM), or one with a passphrase");
    EVP_PKEY *other = EVP_EC_gen("P-256");
    write_key(&p, other, NULL);
    EVP_PKEY_free(other);
    expect_refused(&p, "/key: the key does not belong to the certificate");
    other = EVP_RSA_gen(2048);
    write_key(&p, other, NULL);
    EVP_PKEY_free(other);
    expect_refused(&p, "/key: the key does not belong to the certificate");
    write_key(&p, p.secret, NULL);
    assert_int_equal(chmod(p.key, 0644), 0);
    expect_refused(&p, "/key: others may read or write the file: chmod 600");
    assert_int_equal(unlink(p.key), 0);
    expect_refused(&p, "/key: No such file");
    assert_int_equal(unlink(p.chain), 0);
    assert_int_equal(mkfifo(p.chain, 0600), 0); // it must not hold us up
    expect_refused(&p, "/chain: the file is not a regular file");
    pair_remove(&p);
}

int main(void)
{
    // What OpenSSL writes by takes memory, of which there is none in one of the cases.
    if (CRYPTO_set_mem_functions(take_memory, resize_memory, free_memory) != 1) {
        return 1;
    }
    const struct CMUnitTest cases[] = {
        cmocka_unit_test(a_transport_whose_tls_can_not_write_has_ended),
        cmocka_unit_test(it_carries_bytes_both_ways_in_any_pieces),
        cmocka_unit_test(who_says_that_nothing_follows_is_answered_still),
        cmocka_unit_test(connections_keep_the_keys_that_they_began_with),
        cmocka_unit_test(of_offered_protocols_a_websocket_takes_http),
        cmocka_unit_test(what_is_no_tls_is_told_from_it),
        cmocka_unit_test(a_client_of_old_finds_nothing_in_common),
        cmocka_unit_test(a_client_that_does_not_trust_us_says_so),
        cmocka_unit_test(it_may_stop_anywhere),
        cmocka_unit_test(a_bit_that_was_turned_never_opens_it_wrong),
        cmocka_unit_test(a_broken_record_ends_it),
        cmocka_unit_test(nobody_begins_the_handshake_again),
        cmocka_unit_test(a_handshake_is_not_too_long),
        cmocka_unit_test(a_hello_that_says_it_is_long_is_not_waited_for),
        cmocka_unit_test(what_is_encrypted_is_taken_for_no_hello),
        cmocka_unit_test(what_is_no_pair_is_said),
    };

    return cmocka_run_group_tests(cases, NULL, NULL);
}

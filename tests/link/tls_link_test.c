/* SPDX-License-Identifier: Apache-2.0
 *
 * TLS of links, memory to memory: both ends ours, or OpenSSL as a peer that shows what
 * no process of ours would start with.
 */
#include "link/tls.h"

#include "base/prng.h"
#include "cli/authority.h"

#include "tests/folder.h"
#include "tests/test.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* ---- certificates ---- */

static char folder[400];  /* of the fleet */
static char foreign[400]; /* of an authority that the fleet doesn't know */

/* Good until two more were asked for. */
static struct link_files files_of(const char *from, const char *stem)
{
    static char paths[2][3][500];
    static unsigned turn;
    char(*path)[500] = paths[turn++ % 2];

    (void)snprintf(path[0], sizeof paths[0][0], "%s/ca.pem", folder);
    (void)snprintf(path[1], sizeof paths[0][0], "%s/%s.pem", from, stem);
    (void)snprintf(path[2], sizeof paths[0][0], "%s/%s.key", from, stem);
    return (struct link_files){.ca = path[0], .certificate = path[1], .key = path[2]};
}

static void make(const char *where, enum link_role role, const char *name)
{
    struct subject subject = {.cluster = "test", .role = role};
    char why[PEM_WHY_SIZE];
    struct authority *a = authority_open(where, why);

    assert_non_null(a);
    (void)snprintf(subject.name, sizeof subject.name, "%s", name);
    assert_true(authority_issue(a, &subject, 1, false, why));
    authority_free(a);
}

static int begin(void **state)
{
    char why[PEM_WHY_SIZE];

    (void)state;
    folder_make(folder, sizeof folder);
    folder_make(foreign, sizeof foreign);
    assert_true(authority_create(folder, "test", 1, why));
    assert_true(authority_create(foreign, "test", 1, why));
    make(folder, ROLE_COORDINATOR, "1");
    make(folder, ROLE_NODE, "n1");
    make(foreign, ROLE_NODE, "n1");
    return 0;
}

static int end(void **state)
{
    (void)state;
    folder_remove(folder);
    folder_remove(foreign);
    return 0;
}

static struct tls_keys *keys_of(const char *stem)
{
    const struct link_files files = files_of(folder, stem);
    char why[TLS_WHY_SIZE];
    struct tls_keys *keys = tls_keys_load_mutual(&files, why);

    assert_non_null(keys);
    return keys;
}

/* ---- both ends ---- */

struct rig {
    struct tls_keys *keys[2]; /* who dials, and who is called */
    struct tls *tls[2];
    struct buffer plain[2]; /* what each was told */
    struct buffer out[2];   /* what each has to send */
};

static void rig_connect(struct rig *r)
{
    for (int i = 0; i < 2; i++) {
        tls_free(r->tls[i]);
        buffer_clear(&r->plain[i]);
        buffer_clear(&r->out[i]);
        r->tls[i] = tls_new_link(r->keys[i], i == 0);
    }
    tls_begin(r->tls[0], &r->out[0]);
}

static void rig_start(struct rig *r)
{
    *r = (struct rig){.keys = {keys_of("node-n1"), keys_of("coordinator-1")}};
    rig_connect(r);
}

static void rig_stop(struct rig *r)
{
    for (int i = 0; i < 2; i++) {
        tls_free(r->tls[i]);
        tls_keys_free(r->keys[i]);
        buffer_fini(&r->plain[i]);
        buffer_fini(&r->out[i]);
    }
}

/* All that `from` has to send, in pieces. */
static void carry(struct rig *r, int from, size_t piece)
{
    struct buffer sent = r->out[from];

    r->out[from] = (struct buffer){0};
    for (size_t at = 0; at < sent.size; at += piece) {
        const size_t left = sent.size - at;

        tls_on_bytes(r->tls[1 - from],
                     bytes_of(sent.data + at, left < piece ? left : piece),
                     &r->plain[1 - from],
                     &r->out[1 - from]);
    }
    buffer_fini(&sent);
}

static void settle(struct rig *r, size_t piece)
{
    for (int i = 0; i < 4; i++) {
        carry(r, 0, piece);
        carry(r, 1, piece);
    }
}

static void both_open_and_know_each_other(void **state)
{
    static uint8_t much[100000];
    struct subject s;
    struct rig r;

    (void)state;
    rig_start(&r);
    for (size_t piece = 1; piece < 3000; piece = piece * 7 + 3) {
        rig_connect(&r);
        settle(&r, piece);
        assert_int_equal(tls_state(r.tls[0]), TLS_OPEN);
        assert_int_equal(tls_state(r.tls[1]), TLS_OPEN);
        assert_true(tls_subject(r.tls[0], &s));
        assert_int_equal(s.role, ROLE_COORDINATOR);
        assert_string_equal(s.name, "1");
        assert_true(tls_subject(r.tls[1], &s));
        assert_int_equal(s.role, ROLE_NODE);
        assert_string_equal(s.name, "n1");
        assert_string_equal(s.cluster, "test");
        for (int i = 0; i < 2; i++) {
            memset(much, 'a' + i, sizeof much);
            tls_put(r.tls[i], bytes_of(much, sizeof much), &r.out[i]);
            carry(&r, i, piece);
            assert_int_equal(r.plain[1 - i].size, sizeof much);
            assert_memory_equal(r.plain[1 - i].data, much, sizeof much);
        }
    }
    rig_stop(&r);
}

static void nothing_opens_before_all_of_it_has_come(void **state)
{
    struct rig r;

    (void)state;
    rig_start(&r);
    for (int from = 0; from < 2; from++) {
        size_t size = 1;

        for (size_t at = 0; at < size; at += 11) {
            rig_connect(&r);
            if (from == 1) {
                carry(&r, 0, 1000);
            }
            size = r.out[from].size;
            if (at >= size) {
                break;
            }
            r.out[from].size = at;
            carry(&r, from, 1000);
            assert_int_equal(tls_state(r.tls[1 - from]), TLS_OPENING);
            assert_int_equal(r.plain[1 - from].size, 0);
        }
    }
    rig_stop(&r);
}

static void a_bit_that_was_turned_opens_for_nobody(void **state)
{
    struct rig r;

    (void)state;
    rig_start(&r);
    for (int from = 0; from < 2; from++) {
        size_t size = 1;

        for (size_t at = 0; at < size; at += 5) {
            rig_connect(&r);
            if (from == 1) {
                carry(&r, 0, 1000);
            }
            size = r.out[from].size; // a signature is a byte longer or shorter than another
            if (at >= size) {
                break;
            }
            r.out[from].data[at] ^= (uint8_t)(1U << at % 8);
            settle(&r, 1000);
            assert_int_not_equal(tls_state(r.tls[1]), TLS_OPEN); // both sign what was said
        }
    }
    rig_stop(&r);
}

static void any_bytes_end_it_or_are_waited_for(void **state)
{
    struct prng prng = {.state = 1};
    uint8_t bytes[600];
    struct rig r;

    (void)state;
    rig_start(&r);
    for (int turn = 0; turn < 3000; turn++) {
        const int to = turn % 2;
        const size_t size = (size_t)prng_between(&prng, 1, sizeof bytes);

        rig_connect(&r);
        if (turn % 3 == 0) { // in the middle of it
            carry(&r, 0, 1000);
        }
        for (size_t i = 0; i < size; i++) {
            bytes[i] = (uint8_t)prng_between(&prng, 0, 255);
        }
        if (turn % 5 != 0) { // as if it were a record
            memcpy(bytes, "\x16\x03\x03\x01\x00", size < 5 ? size : 5);
        }
        tls_on_bytes(r.tls[to], bytes_of(bytes, size), &r.plain[to], &r.out[to]);
        assert_int_not_equal(tls_state(r.tls[to]), TLS_OPEN);
        assert_int_equal(r.plain[to].size, 0);
        assert_true(r.out[to].size < 4096);
    }
    rig_stop(&r);
}

/* ---- a peer that shows what it likes ---- */

/* How a process that is called ends with that client. */
static enum tls_end answered(const char *certificate, const char *key, int version)
{
    struct tls_keys *keys = keys_of("coordinator-1");
    struct tls *tls = tls_new_link(keys, false);
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    struct buffer plain = {0};
    struct buffer out = {0};

    SSL_CTX_set_verify(context, SSL_VERIFY_NONE, NULL);
    assert_int_equal(SSL_CTX_set_max_proto_version(context, version), 1);
    if (certificate != NULL) {
        assert_int_equal(SSL_CTX_use_certificate_file(context, certificate, SSL_FILETYPE_PEM), 1);
        assert_int_equal(SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM), 1);
    }
    SSL *client = SSL_new(context);
    SSL_set_bio(client, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    SSL_set_connect_state(client);
    for (int i = 0; i < 6; i++) {
        char *data = NULL;

        (void)SSL_do_handshake(client);
        const long size = BIO_get_mem_data(SSL_get_wbio(client), &data);
        if (size > 0) {
            tls_on_bytes(tls, bytes_of(data, (size_t)size), &plain, &out);
            (void)BIO_reset(SSL_get_wbio(client));
        }
        if (out.size > 0) {
            (void)BIO_write(SSL_get_rbio(client), out.data, (int)out.size);
            buffer_clear(&out);
        }
    }
    ERR_clear_error();
    assert_int_equal(tls_state(tls), TLS_ENDED);
    const enum tls_end ended = tls_end(tls);
    SSL_free(client);
    SSL_CTX_free(context);
    tls_free(tls);
    tls_keys_free(keys);
    buffer_fini(&plain);
    buffer_fini(&out);
    return ended;
}

static void who_shows_nothing_good_is_refused(void **state)
{
    (void)state;
    assert_int_equal(answered(NULL, NULL, TLS1_3_VERSION), TLS_NO_CERTIFICATE);
    const struct link_files bad = files_of(foreign, "node-n1");
    assert_int_equal(answered(bad.certificate, bad.key, TLS1_3_VERSION), TLS_UNTRUSTED);
    const struct link_files good = files_of(folder, "node-n1");
    assert_int_equal(answered(good.certificate, good.key, TLS1_2_VERSION), TLS_UNSHARED);
}

/* ---- files ---- */

static void expect_refused(const struct link_files *files, const char *right)
{
    char why[TLS_WHY_SIZE] = "";
    struct tls_keys *keys = tls_keys_load_mutual(files, why);

    if (keys != NULL || strstr(why, right) == NULL) {
        fail_msg("'%s' has no '%s'", keys != NULL ? "good" : why, right);
    }
    assert_int_equal(ERR_peek_error(), 0);
}

static void what_others_would_refuse_is_not_taken(void **state)
{
    char ca[500];
    struct link_files files = files_of(foreign, "node-n1");

    (void)state;
    expect_refused(&files, "node-n1.pem: unable to get local issuer certificate");
    files = files_of(folder, "ca");
    expect_refused(&files, "ca.pem: "); // an authority is nobody's
    files = files_of(folder, "node-n1");
    files.ca = files.key;
    expect_refused(&files, "node-n1.key: the file contains no certificate (PEM)");
    (void)snprintf(ca, sizeof ca, "%s/ca.key", folder);
    files = files_of(folder, "node-n1");
    files.key = ca;
    expect_refused(&files, "ca.key: the key does not belong to the certificate");
    files = files_of(folder, "node-n1");
    assert_int_equal(chmod(files.key, 0666), 0);
    expect_refused(&files, "node-n1.key: others may read or write the file: chmod 600");
    assert_int_equal(chmod(files.key, 0600), 0);
    files.ca = "/nowhere";
    expect_refused(&files, "/nowhere: No such file");
}

int main(void)
{
    const struct CMUnitTest cases[] = {
        cmocka_unit_test(both_open_and_know_each_other),
        cmocka_unit_test(nothing_opens_before_all_of_it_has_come),
        cmocka_unit_test(a_bit_that_was_turned_opens_for_nobody),
        cmocka_unit_test(any_bytes_end_it_or_are_waited_for),
        cmocka_unit_test(who_shows_nothing_good_is_refused),
        cmocka_unit_test(what_others_would_refuse_is_not_taken),
    };

    return cmocka_run_group_tests(cases, begin, end);
}

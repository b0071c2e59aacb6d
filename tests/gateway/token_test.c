/* SPDX-License-Identifier: Apache-2.0
 *
 * Tokens: their bytes, and that nothing else is one.
 */
#include "gateway/access/token.h"

#include "base/prng.h"
#include "tests/hex.h"
#include "tests/test.h"

#include <string.h>

static const uint64_t expires_s = 1800000000;

static struct keyring two_keys(void)
{
    static const char file[] =
        "k1 hex:000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n"
        "k2 hex:202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f\n";
    struct keyring keys;
    unsigned line = 0;

    assert_null(keyring_parse(bytes_of(file, sizeof file - 1), &keys, &line));
    return keys;
}

static struct token a_token(const char *id, uint16_t kind)
{
    struct token t = {.expires_s = expires_s, .kind = kind, .cluster = "ringhold"};

    t.id_size = (uint8_t)strlen(id);
    memcpy(t.id, id, t.id_size);
    return t;
}

static enum token_verdict checked(struct bytes shown, const char *cluster, uint64_t unix_s)
{
    const struct keyring keys = two_keys();
    struct token out;

    return token_check(&keys, shown, cluster, unix_s, &out);
}

/* The vectors of docs/protocol-client.md. */
static const struct {
    size_t key;
    uint16_t kind;
    const char *id;
    const char *text;
} vectors[] = {
    {0,
     7,
     "player-42",
     "rh1.k1.AAAAAGtJ0gAABwhyaW5naG9sZHBsYXllci00Mg.JfAho9owe7GLl0sz4jDV2ol-qvk9CVTxprlX_6x2eR4"},
    {1, 0, "a", "rh1.k2.AAAAAGtJ0gAAAAhyaW5naG9sZGE.OVME4NcDeBanZT1ksHsn8fKY_ZxmZz1CJmdbwrOR-eE"},
};

static void its_bytes_are_those_of_the_manual(void **state)
{
    const struct keyring keys = two_keys();

    (void)state;
    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++) {
        const struct token t = a_token(vectors[i].id, vectors[i].kind);
        struct buffer made = {0};
        struct token out;

        assert_int_equal(token_put(&made, &t, &keys.key[vectors[i].key]), ERR_OK);
        buffer_put(&made, "", 1);
        assert_string_equal((const char *)made.data, vectors[i].text);
        assert_int_equal(token_check(&keys, text(vectors[i].text), "ringhold", expires_s - 1, &out),
                         TOKEN_GOOD);
        assert_int_equal(out.kind, vectors[i].kind);
        assert_int_equal(out.expires_s, expires_s);
        assert_true(bytes_equal(token_id(&out), text(vectors[i].id)));
        assert_string_equal(out.cluster, "ringhold");
        assert_string_equal(out.key, keys.key[vectors[i].key].name);
        buffer_fini(&made);
    }
}

static void the_largest_one_fits(void **state)
{
    struct keyring keys = two_keys();
    struct token t = {.expires_s = UINT64_MAX, .kind = UINT16_MAX, .id_size = TOKEN_ID_MAX};
    struct buffer made = {0};
    struct token out;

    (void)state;
    memset(t.id, 0xff, sizeof t.id);
    memset(t.cluster, 'c', TOKEN_CLUSTER_MAX);
    memset(keys.key[0].name, 'k', KEYRING_NAME_MAX);
    assert_int_equal(token_put(&made, &t, &keys.key[0]), ERR_OK);
    assert_int_equal(made.size, TOKEN_TEXT_MAX);
    assert_int_equal(token_check(&keys, buffer_bytes(&made), t.cluster, 1, &out), TOKEN_GOOD);
    assert_true(bytes_equal(token_id(&out), token_id(&t)));
    buffer_fini(&made);
}

static void what_cannot_be_said_is_not_made(void **state)
{
    struct keyring keys = two_keys();
    struct token t = a_token("", 0);
    struct buffer made = {0};

    (void)state;
    assert_int_equal(token_put(&made, &t, &keys.key[0]), ERR_INVALID);
    t = a_token("a", 0);
    t.cluster[0] = '\0';
    assert_int_equal(token_put(&made, &t, &keys.key[0]), ERR_INVALID);
    t = a_token("a", 0);
    memcpy(keys.key[0].name, "k.1", 4);
    assert_int_equal(token_put(&made, &t, &keys.key[0]), ERR_INVALID);
    assert_int_equal(made.size, 0);
    buffer_fini(&made);
}

static void each_refusal_has_its_reason(void **state)
{
    const struct bytes good = text(vectors[0].text);
    struct keyring keys = two_keys();
    struct token out;

    (void)state;
    assert_int_equal(checked(good, "ringhold", 0), TOKEN_GOOD);
    assert_int_equal(checked(good, "ringhold", expires_s - 1), TOKEN_GOOD);
    assert_int_equal(checked(good, "ringhold", expires_s), TOKEN_EXPIRED);
    assert_int_equal(checked(good, "ringhold2", 0), TOKEN_FOREIGN);
    assert_int_equal(checked(good, "", 0), TOKEN_FOREIGN);
    keys.count = 0;
    assert_int_equal(token_check(&keys, good, "ringhold", 0, &out), TOKEN_UNKNOWN_KEY);
    keys = two_keys();
    keys.key[0].secret[31] ^= 1;
    assert_int_equal(token_check(&keys, good, "ringhold", 0, &out), TOKEN_FORGED);
    assert_int_equal(out.id_size, 0);
    // One key's mac under the other's name.
    memcpy(keys.key[0].secret, keys.key[1].secret, sizeof keys.key[0].secret);
    assert_int_equal(token_check(&keys, good, "ringhold", 0, &out), TOKEN_FORGED);
    const char *const none[] = {"",
                                "rh1.",
                                "rh1..",
                                "rh1.k1",
                                "rh1.k1.",
                                "rh1.k1..",
                                "rh1.k1.AAAA.AAAA",
                                "rh2.k1.AAAA.AAAA",
                                "....",
                                "rh1.k 1.AAAA.AAAA"};
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        assert_int_equal(checked(text(none[i]), "ringhold", 0), TOKEN_MALFORMED);
    }
    assert_int_equal(checked((struct bytes){NULL, 0}, "ringhold", 0), TOKEN_MALFORMED);
}

/* Signed by us, and no payload all the same. */
static void what_is_signed_may_still_be_nonsense(void **state)
{
    static const struct {
        uint8_t size;
        uint8_t bytes[16];
    } payloads[] = {
        {0, {0}},
        {10, {0}},
        {13, {[10] = 0, [11] = 'c', [12] = 'i'}},  // no cluster
        {13, {[10] = 2, [11] = 'c', [12] = 'c'}},  // no id
        {13, {[10] = 64, [11] = 'c', [12] = 'i'}}, // a cluster over the end
        {13, {[10] = 1, [11] = 0, [12] = 'i'}},    // a cluster with a NUL
    };
    const struct keyring keys = two_keys();

    (void)state;
    for (size_t i = 0; i < sizeof payloads / sizeof payloads[0]; i++) {
        struct buffer made = {0};
        uint8_t mac[HMAC_SIZE];
        struct token out;

        buffer_put(&made, "rh1.k1.", 7);
        base64_put(&made, bytes_of(payloads[i].bytes, payloads[i].size));
        hmac_of(bytes_of(keys.key[0].secret, keys.key[0].size), buffer_bytes(&made), mac);
        buffer_put(&made, ".", 1);
        base64_put(&made, bytes_of(mac, sizeof mac));
        assert_int_equal(token_check(&keys, buffer_bytes(&made), "ringhold", 0, &out),
                         TOKEN_MALFORMED);
        buffer_fini(&made);
    }
}

/* No change of a token is a token: not of one bit, of its length, nor another spelling of it. */
static void whatever_is_changed_is_refused(void **state)
{
    const struct bytes good = text(vectors[0].text);
    struct prng prng = {.state = 7};
    uint8_t changed[TOKEN_TEXT_MAX + 8];

    (void)state;
    for (size_t bit = 0; bit < good.size * 8; bit++) {
        memcpy(changed, good.data, good.size);
        changed[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_not_equal(checked(bytes_of(changed, good.size), "ringhold", 0), TOKEN_GOOD);
    }
    for (size_t size = 0; size < good.size; size++) {
        assert_int_not_equal(checked(bytes_of(good.data, size), "ringhold", 0), TOKEN_GOOD);
    }
    memcpy(changed, good.data, good.size);
    changed[good.size] = '=';
    assert_int_equal(checked(bytes_of(changed, good.size + 1), "ringhold", 0), TOKEN_MALFORMED);
    for (int i = 0; i < 20000; i++) {
        memcpy(changed, good.data, good.size);
        for (uint64_t changes = prng_between(&prng, 1, 4); changes > 0; changes--) {
            changed[prng_u64(&prng) % TOKEN_TEXT_MAX] = (uint8_t)prng_u64(&prng);
        }
        if (memcmp(changed, good.data, good.size) != 0) {
            assert_int_not_equal(checked(bytes_of(changed, good.size), "ringhold", 0), TOKEN_GOOD);
        }
    }
}

/* RFC 4231, case 2. */
static void the_mac_is_hmac_sha256(void **state)
{
    static const uint8_t right[HMAC_SIZE] = {0x5b, 0xdc, 0xc1, 0x46, 0xbf, 0x60, 0x75, 0x4e,
                                             0x6a, 0x04, 0x24, 0x26, 0x08, 0x95, 0x75, 0xc7,
                                             0x5a, 0x00, 0x3f, 0x08, 0x9d, 0x27, 0x39, 0x83,
                                             0x9d, 0xec, 0x58, 0xb9, 0x64, 0xec, 0x38, 0x43};
    uint8_t mac[HMAC_SIZE];

    (void)state;
    hmac_of(text("Jefe"), text("what do ya want for nothing?"), mac);
    assert_memory_equal(mac, right, HMAC_SIZE);
    assert_true(hmac_equal(mac, right));
    mac[31] ^= 1;
    assert_false(hmac_equal(mac, right));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(its_bytes_are_those_of_the_manual),
        cmocka_unit_test(the_largest_one_fits),
        cmocka_unit_test(what_cannot_be_said_is_not_made),
        cmocka_unit_test(each_refusal_has_its_reason),
        cmocka_unit_test(what_is_signed_may_still_be_nonsense),
        cmocka_unit_test(whatever_is_changed_is_refused),
        cmocka_unit_test(the_mac_is_hmac_sha256),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

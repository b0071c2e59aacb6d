/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of lua/pack.h, also with damaged bytes.
 */
#include "lua/pack.h"

#include "tests/test.h"

#include <lua5.4/lauxlib.h>
#include <lua5.4/lualib.h>
#include <string.h>

/* Deep equality, with the types of numbers. */
static const char same_code[] =
    "function same(a, b)"
    "  if type(a) ~= 'table' or type(b) ~= 'table' then"
    "    return a == b and math.type(a) == math.type(b) or a ~= a and b ~= b"
    "  end"
    "  for k, v in pairs(a) do if not same(v, b[k]) then return false end end"
    "  for k in pairs(b) do if a[k] == nil then return false end end"
    "  return true "
    "end";

static int set_up(void **state)
{
    lua_State *L = luaL_newstate();

    luaL_openlibs(L);
    assert_int_equal(luaL_dostring(L, same_code), LUA_OK);
    *state = L;
    return 0;
}

static int tear_down(void **state)
{
    lua_close(*state);
    return 0;
}

/* Push the value of an expression. */
static void evaluate(lua_State *L, const char *expression)
{
    assert_int_equal(luaL_loadstring(L, lua_pushfstring(L, "return %s", expression)), LUA_OK);
    assert_int_equal(lua_pcall(L, 0, 1, 0), LUA_OK);
    lua_remove(L, -2);
}

static void values_come_back(void **state)
{
    const char *const values[] = {
        "nil",
        "true",
        "false",
        "0",
        "-1",
        "63",
        "64",
        "-64",
        "-65",
        "math.maxinteger",
        "math.mininteger",
        "0.0",
        "1.5",
        "-1e300",
        "1/0",
        "0/0",
        "2^53",
        "''",
        "'a\\0b'",
        "('x'):rep(1000)",
        "{}",
        "{1, 2, 3}",
        "{1, nil, 3}",
        "{a = 1, b = {c = {true, false}}, [10] = 'ten', [1.5] = 2, [true] = 3}",
        "{[1] = 'one', [2] = 'two', [4] = 'four', x = 'y', [-1] = 0, [0] = 0}",
        "{{{{{{{{}}}}}}}}",
    };
    lua_State *L = *state;

    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        struct buffer out = {0};
        struct pack_limit limit = {.name = "v", .size_max = 4096};

        (void)lua_getglobal(L, "same");
        evaluate(L, values[i]);
        assert_int_equal(pack_put(L, -1, &out, &limit), ERR_OK);
        struct bytes in = buffer_bytes(&out);
        assert_int_equal(pack_get(L, &in), ERR_OK);
        assert_int_equal(in.size, 0);
        assert_int_equal(lua_pcall(L, 2, 1, 0), LUA_OK);
        assert_true(lua_toboolean(L, -1));
        lua_pop(L, 1);
        buffer_fini(&out);
    }
    assert_int_equal(lua_gettop(L), 0);
}

static void what_cannot_be_packed_is_named(void **state)
{
    const struct {
        const char *value;
        enum err error;
        const char *text;
    } cases[] = {
        {"print", ERR_INVALID, "self is a function"},
        {"{a = {b = print}}", ERR_INVALID, "self.a.b is a function"},
        {"{party = {1, {on_hit = print}}}", ERR_INVALID, "self.party[2].on_hit is a function"},
        {"{x = io.stdout}", ERR_INVALID, "self.x is a userdata"},
        {"{co = coroutine.create(print)}", ERR_INVALID, "self.co is a thread"},
        {"{[{}] = 1}", ERR_INVALID, "self.(key) is a table as a key"},
        {"{[true] = print}", ERR_INVALID, "self.true is a function"},
        {"{[9] = print}", ERR_INVALID, "self[9] is a function"},
        {"(function() local t = {} t.me = {t} return t end)()",
         ERR_INVALID,
         "self.me[1] is a table that contains itself"},
        {"(function() local t = {} for i = 1, 40 do t = {t} end return t end)()",
         ERR_TOO_BIG,
         NULL},
        {"('x'):rep(300)", ERR_TOO_BIG, "self is too big"},
        {"{a = {('x'):rep(250), 'y'}}", ERR_TOO_BIG, "self is too big"},
    };
    lua_State *L = *state;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct buffer out = {0};
        struct pack_limit limit = {.name = "self", .size_max = 256};

        evaluate(L, cases[i].value);
        assert_int_equal(pack_put(L, -1, &out, &limit), cases[i].error);
        assert_true(out.size <= limit.size_max);
        if (cases[i].text != NULL) {
            assert_string_equal(limit.error, cases[i].text);
        } else {
            assert_non_null(strstr(limit.error, "is too deep"));
        }
        assert_int_equal(lua_gettop(L), 1);
        lua_pop(L, 1);
        buffer_fini(&out);
    }
}

static void damaged_bytes_are_refused(void **state)
{
    const char *const wrong[] = {
        "",
        "\x03",         // no integer
        "\x03\x80",     // half a varint
        "\x03\x80\x00", // one that is longer than it need be
        "\x04xxxxxxx",  // half a float
        "\x05\x03xx",   // half a string
        "\x06",         // no count
        "\x06\x05\x02", // a list longer than the bytes
        "\x07",         // an end of nothing
        "\x08",         // no such type
    };
    const char nil_key[] = "\x06\x00\x00\x01\x07";
    lua_State *L = *state;

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct bytes in = bytes_of(wrong[i], i == 3 ? 3 : strlen(wrong[i]));

        assert_int_equal(pack_get(L, &in), ERR_CORRUPT);
        assert_int_equal(lua_gettop(L), 0);
    }
    struct bytes in = bytes_of(nil_key, sizeof nil_key - 1);
    assert_int_equal(pack_get(L, &in), ERR_CORRUPT);
}

static void deep_bytes_are_refused(void **state)
{
    uint8_t bytes[100];
    lua_State *L = *state;

    // Lists of one list each.
    for (size_t i = 0; i < sizeof bytes; i += 2) {
        bytes[i] = 6;
        bytes[i + 1] = 1;
    }
    struct bytes in = bytes_of(bytes, sizeof bytes);
    assert_int_equal(pack_get(L, &in), ERR_CORRUPT);
    assert_int_equal(lua_gettop(L), 0);
}

static void every_cut_is_refused(void **state)
{
    lua_State *L = *state;
    struct buffer out = {0};
    struct pack_limit limit = {.name = "v", .size_max = 4096};

    evaluate(L, "{1, 'two', {x = 1.5, y = {true}}, z = -300}");
    assert_int_equal(pack_put(L, -1, &out, &limit), ERR_OK);
    for (size_t size = 0; size < out.size; size++) {
        struct bytes in = bytes_of(out.data, size);

        assert_int_equal(pack_get(L, &in), ERR_CORRUPT);
    }
    assert_int_equal(lua_gettop(L), 1);
    lua_pop(L, 1);
    buffer_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_come_back),
        cmocka_unit_test(what_cannot_be_packed_is_named),
        cmocka_unit_test(damaged_bytes_are_refused),
        cmocka_unit_test(deep_bytes_are_refused),
        cmocka_unit_test(every_cut_is_refused),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}

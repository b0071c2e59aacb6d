/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as a packed Lua value and as a client's words. A value that decodes
 * encodes to bytes that decode again.
 */
#include "base/assert.h"
#include "lua/pack.h"
#include "lua/words.h"

#include <lua5.4/lauxlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static lua_State *L;
    struct bytes in = bytes_of(data, size);
    struct words words = {0};
    struct buffer out = {0};
    struct pack_limit limit = {.name = "v", .size_max = 1 << 20};

    if (L == NULL) {
        L = luaL_newstate();
    }
    if (pack_get(L, &in) == ERR_OK) {
        ASSERT(pack_put(L, -1, &out, &limit) == ERR_OK);
        in = buffer_bytes(&out);
        ASSERT(pack_get(L, &in) == ERR_OK && in.size == 0);
        lua_pop(L, 2);
    }
    ASSERT(lua_gettop(L) == 0);
    if (words_split(bytes_of(data, size), &words) == ERR_OK) {
        size_t total = 0;

        for (size_t i = 0; i < words.count; i++) {
            total += words.word[i].size;
        }
        ASSERT(total <= size);
    }
    words_fini(&words);
    buffer_fini(&out);
    return 0;
}

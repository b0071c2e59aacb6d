/* SPDX-License-Identifier: Apache-2.0
 *
 * ringhold.store(path [, table]): what actors must not lose, in a SQLite file
 * that keeps old owners out. The contract is that of docs/stores.md:
 *
 *   claim   raise the row's fence to mine unless it is greater, and read the
 *           row, in one statement
 *   save    only where the row's fence is mine
 *
 * Each thread that runs actors opens the file for itself; all nodes of a
 * machine may share it.
 */
#include "lua/api.h"
#include "lua/pack.h"
#include "lua/vm.h"

#include <lua5.4/lauxlib.h>
#include <sqlite3.h>
#include <string.h>

enum { BUSY_MS = 5000, DATA_MAX = 16 << 20, TABLE_NAME_MAX = 40 };

static const char store_type[] = "ringhold.store";

struct store {
    sqlite3 *db;
    sqlite3_stmt *claim;
    sqlite3_stmt *save;
    struct buffer data; /* of a row that is written */
};

static const char schema_sql[] =
    "PRAGMA journal_mode=WAL;"
    "CREATE TABLE IF NOT EXISTS \"%s\"(id BLOB PRIMARY KEY, fence INTEGER NOT NULL,"
    " version INTEGER NOT NULL, data BLOB) WITHOUT ROWID;";
static const char claim_sql[] =
    "INSERT INTO \"%s\"(id, fence, version) VALUES(?1, ?2, 0)"
    " ON CONFLICT(id) DO UPDATE SET fence = excluded.fence WHERE fence <= excluded.fence"
    " RETURNING data";
static const char save_sql[] =
    "UPDATE \"%s\" SET data = ?3, version = version + 1 WHERE id = ?1 AND fence = ?2";

static struct store *check_store(lua_State *L)
{
    return luaL_checkudata(L, 1, store_type);
}

static void raise_failed(lua_State *L, const struct store *s)
{
    (void)luaL_error(L, "the store failed: %s", sqlite3_errmsg(s->db));
}

static int raise_fenced(lua_State *L)
{
    (void)lua_pushliteral(L, "FENCED a newer owner has this id");
    return lua_error(L);
}

static void bind(lua_State *L, sqlite3_stmt *q)
{
    size_t size = 0;
    const char *id = luaL_checklstring(L, 2, &size);
    const lua_Integer fence = luaL_checkinteger(L, 3);

    (void)sqlite3_reset(q);
    (void)sqlite3_bind_blob(q, 1, id, (int)size, SQLITE_TRANSIENT);
    (void)sqlite3_bind_int64(q, 2, (sqlite3_int64)fence);
}

/* store:claim(id, fence) -> what was saved last, or nil */
static int store_claim(lua_State *L)
{
    struct store *s = check_store(L);
    sqlite3_stmt *q = s->claim;

    bind(L, q);
    const int first = sqlite3_step(q);
    if (first == SQLITE_DONE) {
        (void)sqlite3_reset(q);
        return raise_fenced(L);
    }
    if (first != SQLITE_ROW) {
        (void)sqlite3_reset(q);
        raise_failed(L, s);
    }
    buffer_clear(&s->data);
    buffer_put(&s->data, sqlite3_column_blob(q, 0), (size_t)sqlite3_column_bytes(q, 0));
    // RETURNING is over, and the change is durable, when the next step says so.
    const int last = sqlite3_step(q);
    (void)sqlite3_reset(q);
    if (last != SQLITE_DONE) {
        raise_failed(L, s);
    }
    struct bytes in = buffer_bytes(&s->data);
    if (in.size == 0) {
        lua_pushnil(L);
    } else if (pack_get(L, &in) != ERR_OK || in.size > 0) {
        return luaL_error(L, "the saved data can't be decoded");
    }
    return 1;
}

/* store:save(id, fence, data) */
static int store_save(lua_State *L)
{
    struct store *s = check_store(L);
    struct pack_limit limit = {.name = "data", .size_max = DATA_MAX};

    luaL_checkany(L, 4);
    buffer_clear(&s->data);
    if (pack_put(L, 4, &s->data, &limit) != ERR_OK) {
        return luaL_error(L, "%s", limit.error);
    }
    bind(L, s->save);
    (void)sqlite3_bind_blob(s->save, 3, s->data.data, (int)s->data.size, SQLITE_STATIC);
    const int step = sqlite3_step(s->save);
    (void)sqlite3_reset(s->save);
    if (step != SQLITE_DONE) {
        raise_failed(L, s);
    }
    return sqlite3_changes(s->db) == 0 ? raise_fenced(L) : 0;
}

static int store_close(lua_State *L)
{
    struct store *s = check_store(L);

    (void)sqlite3_finalize(s->claim);
    (void)sqlite3_finalize(s->save);
    (void)sqlite3_close(s->db);
    buffer_fini(&s->data);
    *s = (struct store){0};
    return 0;
}

/* The table's name was checked: it needs no quoting. */
static bool prepare(lua_State *L, struct store *s, const char *sql, const char *table)
{
    sqlite3_stmt **out = sql == claim_sql ? &s->claim : &s->save;

    return sqlite3_prepare_v2(s->db, lua_pushfstring(L, sql, table), -1, out, NULL) == SQLITE_OK;
}

static void push_methods(lua_State *L)
{
    static const luaL_Reg methods[] = {
        {"claim", store_claim}, {"save", store_save}, {"__gc", store_close}, {NULL, NULL}};

    if (luaL_newmetatable(L, store_type) != 0) {
        luaL_setfuncs(L, methods, 0);
        lua_pushvalue(L, -1);
        lua_setfield(L, -2, "__index");
    }
}

int store_open(lua_State *L)
{
    const char *path = luaL_checkstring(L, 1);
    const char *table = luaL_optstring(L, 2, "actors");
    const size_t size = strlen(table);

    luaL_argcheck(L, path[0] != '\0', 1, "the file's name is empty");
    luaL_argcheck(L,
                  size > 0 && size <= TABLE_NAME_MAX &&
                      strspn(table, "abcdefghijklmnopqrstuvwxyz0123456789_") == size,
                  2,
                  "a table's name must be 1 to 40 of a-z 0-9 _");
    struct store *s = lua_newuserdatauv(L, sizeof *s, 0);
    const int store_index = lua_gettop(L);
    *s = (struct store){0};
    push_methods(L);
    (void)lua_setmetatable(L, -2); // From here on it is closed, whatever happens.
    const char *schema = lua_pushfstring(L, schema_sql, table);
    if (sqlite3_open(path, &s->db) != SQLITE_OK ||
        sqlite3_busy_timeout(s->db, BUSY_MS) != SQLITE_OK ||
        sqlite3_exec(s->db, schema, NULL, NULL, NULL) != SQLITE_OK ||
        !prepare(L, s, claim_sql, table) || !prepare(L, s, save_sql, table)) {
        return luaL_error(L, "store %s: %s", path, sqlite3_errmsg(s->db));
    }
    lua_settop(L, store_index);
    return 1;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The scripts of a store in Redis. What they compare may have more digits than a number of Lua has.
 */
#ifndef STORAGE_ACTORS_REMOTE_REDIS_LUA_H
#define STORAGE_ACTORS_REMOTE_REDIS_LUA_H

/* KEYS: the actor's, as those below. ARGV: fence. */
static const char redis_claim[] =
    "local function less(a, b) return #a < #b or #a == #b and a < b end "
    "local fence = redis.call('HGET', KEYS[1], 'fence') "
    "if not fence or less(fence, ARGV[1]) then"
    "  redis.call('HSET', KEYS[1], 'fence', ARGV[1])"
    "  redis.call('HSETNX', KEYS[1], 'number', '0')"
    "  fence = ARGV[1] "
    "end "
    "local number = redis.call('HGET', KEYS[1], 'number') "
    "if fence ~= ARGV[1] then return {0, fence, number} end "
    "local all = {1, fence, number} "
    "for i = 2, #KEYS do all[i + 2] = redis.call('HGETALL', KEYS[i]) end "
    "return all";

/* KEYS: actor, value, answer, alarm, send, taken, due. ARGV: fence, the number before, the number,
 * the actor in `due` (due_member.h); then for each change its table, "gone" or "put", key, bytes,
 * due, every. A key that is no hash is an error before anything is written: a script is not undone.
 */
static const char redis_commit[] =
    "local row = redis.call('HMGET', KEYS[1], 'fence', 'number') "
    "if row[1] ~= ARGV[1] or row[2] ~= ARGV[2] then return {0, row[1] or '0', row[2] or '0'} end "
    "for i = 2, 6 do redis.call('HLEN', KEYS[i]) end "
    "redis.call('ZCARD', KEYS[7]) "
    "redis.call('HSET', KEYS[1], 'number', ARGV[3]) "
    "for i = 5, #ARGV, 6 do"
    "  local at, gone, key = tonumber(ARGV[i]) + 2, ARGV[i + 1] == 'gone', ARGV[i + 2]"
    "  local bytes = ARGV[i + 3]"
    "  if at == 4 then"
    "    bytes = ARGV[i + 4] .. ' ' .. ARGV[i + 5] .. ' ' .. bytes"
    "    if gone then redis.call('ZREM', KEYS[7], ARGV[4] .. key)"
    "    else redis.call('ZADD', KEYS[7], ARGV[i + 4], ARGV[4] .. key) end"
    "  end"
    "  if gone then redis.call('HDEL', KEYS[at], key)"
    "  else redis.call('HSET', KEYS[at], key, bytes) end "
    "end "
    "return {1, ARGV[1], ARGV[3]}";

/* KEYS: due. ARGV: the time, the due and the member after which the page begins, how many it has at
 * most. That member may be gone, so its place is looked for. Strings are compared byte by byte, for
 * `<` goes by the server's language. What can't be a member is left out. */
static const char redis_due[] =
    "local function less(a, b)"
    "  for i = 1, math.min(#a, #b) do"
    "    local x, y = a:byte(i), b:byte(i)"
    "    if x ~= y then return x < y end"
    "  end"
    "  return #a < #b "
    "end "
    "local low = redis.call('ZCOUNT', KEYS[1], '-inf', '(' .. ARGV[2]) "
    "local high = redis.call('ZCOUNT', KEYS[1], '-inf', ARGV[2]) "
    "while low < high do"
    "  local at = math.floor((low + high) / 2)"
    "  local is = redis.call('ZRANGE', KEYS[1], at, at)[1]"
    "  if less(ARGV[3], is) then high = at else low = at + 1 end "
    "end "
    "local page, most = {}, tonumber(ARGV[4]) "
    "while #page < 2 * most do"
    "  local all = redis.call('ZRANGE', KEYS[1], low, low + most - 1, 'WITHSCORES')"
    "  if #all == 0 then break end"
    "  for i = 1, #all, 2 do"
    "    if tonumber(all[i + 1]) > tonumber(ARGV[1]) or #page == 2 * most then return page end"
    "    if all[i]:find('^.-%z%z.') and all[i]:sub(1, 2) ~= '\\0\\0' then"
    "      page[#page + 1] = all[i]"
    "      page[#page + 1] = all[i + 1]"
    "    end"
    "  end"
    "  low = low + most "
    "end "
    "return page";

/* KEYS: actor, store. ARGV: fence, the number before, what it is raised to. */
static const char redis_settle[] = "local row = redis.call('HMGET', KEYS[1], 'fence', 'number') "
                                   "if row[1] == ARGV[1] and row[2] == ARGV[2] then"
                                   "  redis.call('HSET', KEYS[1], 'number', ARGV[3]) "
                                   "end "
                                   "redis.call('HINCRBY', KEYS[2], 'read_back', 1) "
                                   "return {0, row[1] or '0', row[2] or '0'}";

#endif

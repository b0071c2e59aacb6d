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

/* ---- for operators: each looks at one key, so nobody waits for long */

/* KEYS: a table of an actor. ARGV: its number. Returns how many rows it has, and their bytes. */
static const char redis_weigh[] =
    "if redis.call('TYPE', KEYS[1]).ok ~= 'hash' then return {0, 0} end "
    "local all, bytes = redis.call('HGETALL', KEYS[1]), 0 "
    "for i = 1, #all, 2 do"
    "  local head = ARGV[1] == '2' and all[i + 1]:match('^%d+ %d+ ()') or 1"
    "  bytes = bytes + #all[i] + #all[i + 1] - head + 1 "
    "end "
    "return {#all / 2, bytes}";

/* KEYS: an actor, or a table of it; the actor; due. ARGV: the table's number, or -1; the actor in
 * `due`. Returns what is wrong, a key and a number of each finding (tools_hiredis.c). */
static const char redis_look[] =
    "local out, of = {}, tonumber(ARGV[1]) "
    "local function tell(what, key, number)"
    "  out[#out + 1] = what out[#out + 1] = key out[#out + 1] = number "
    "end "
    "if redis.call('TYPE', KEYS[1]).ok ~= 'hash' then tell(0, '', -1) return out end "
    "local row = {} "
    "if redis.call('TYPE', KEYS[2]).ok == 'hash' then"
    "  row = redis.call('HMGET', KEYS[2], 'fence', 'number') "
    "end "
    "local fence, number = (row[1] or ''):match('^%d+$'), (row[2] or ''):match('^%d+$') "
    "if of < 0 then"
    "  if not fence or not number then tell(1, '', -1) end"
    "  return out "
    "end "
    "local all, bytes = redis.call('HGETALL', KEYS[1]), 0 "
    "for i = 1, #all, 2 do"
    "  local key, size, head = all[i], #all[i + 1], 1"
    "  if not row[1] then tell(2, key, -1) end"
    "  if #key < 1 or #key > 255 then tell(3, key, #key) end"
    "  if of == 2 then"
    "    local due, every, at = all[i + 1]:match('^(%d+) (%d+) ()')"
    "    local score = redis.pcall('ZSCORE', KEYS[3], ARGV[2] .. key)"
    "    head = at or 1"
    "    if not due then tell(4, key, -1)"
    "    elseif type(score) ~= 'string' or tonumber(score) ~= tonumber(due) then"
    "      tell(5, key, -1) end"
    "  end"
    "  size = size - head + 1"
    "  if size > 1048576 then tell(6, key, size) end"
    "  if of == 3 and number and #key == 8 then"
    "    local commit = 0"
    "    for b = 1, 6 do commit = commit * 256 + key:byte(b) end"
    "    if commit > tonumber(number) then tell(7, key, -1) end"
    "  end"
    "  bytes = bytes + #key + size "
    "end "
    "if of == 0 and #all / 2 > 65536 then tell(8, '', #all / 2) end "
    "if of == 0 and bytes > 67108864 then tell(9, '', bytes) end "
    "return out";

/* KEYS: due; the alarms of an actor. ARGV: a member of `due`; its name. Returns 1 if there is no
 * such alarm. */
static const char redis_look_due[] = "if redis.call('ZSCORE', KEYS[1], ARGV[1]) then"
                                     "  local there = redis.pcall('HEXISTS', KEYS[2], ARGV[2])"
                                     "  if there ~= 1 then return 1 end "
                                     "end "
                                     "return 0";

#endif

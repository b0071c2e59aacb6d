/* SPDX-License-Identifier: Apache-2.0
 *
 * A line to Redis or Valkey: a script for each task, which compares fence and number and writes in
 * one piece; those of one call go out together, and share a flush of the append-only file.
 *
 *     ringhold:actor:KIND:ID   hash   fence, number
 *     ringhold:value:KIND:ID   hash   key -> value
 *     ringhold:answer:KIND:ID  hash   name -> answer
 *     ringhold:alarm:KIND:ID   hash   name -> "DUE EVERY PAYLOAD"
 *     ringhold:due:KIND        sorted set: ids and names (due_member.h) by when they are due
 *     ringhold:store           hash   version, read_back
 *     ringhold:alone           an operator has the store alone; it goes by itself after a while
 *
 * It is opened only if the server keeps what it has answered (appendonly yes, appendfsync always)
 * and forgets nothing when its memory is full.
 *
 * hiredis is loaded when the first such line is made.
 */
#ifndef STORAGE_ACTORS_REMOTE_REDIS_HIREDIS_H
#define STORAGE_ACTORS_REMOTE_REDIS_HIREDIS_H

#include "storage/actors/remote/line.h"

/* Returns owned; it is not open yet. `where`: "HOST:PORT", "HOST:PORT/DB" or "unix:PATH"; the
 * password is in the environment, REDIS_PASSWORD. NULL: it is none of these, or there is no
 * hiredis, `why`. */
struct store_line *redis_line(const char *where, char why[LINE_WHY_SIZE]);

/* ---- for operators: of a line that is open */

struct redisReply;

/* Put a command; it goes out by the next redis_take(). The words are borrowed until return. */
void redis_put(struct store_line *l, const struct bytes *word, size_t count);
/* Return the next answer, which is the caller's until redis_forget(). NULL: it is an error, or the
 * line broke: it is closed, `why`. */
struct redisReply *redis_take(struct store_line *l);
void redis_forget(struct redisReply *reply);
/* Keep nodes out for longer. False: the line is closed, `why`. */
bool redis_stay_alone(struct store_line *l);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * JSON, written into a buffer from left to right. Commas are put where one value
 * follows another.
 */
#ifndef DAEMON_JSON_H
#define DAEMON_JSON_H

#include "base/bytes.h"

#include <stdbool.h>
#include <stdint.h>

/* "{" or "[", and their ends. `key` NULL: in an array, or the outermost. */
void json_begin(struct buffer *out, const char *key, char bracket);
void json_end(struct buffer *out, char bracket);

/* `text` is UTF-8; what is no text (bytes below 0x20, quotes) is escaped. */
void json_text(struct buffer *out, const char *key, const char *text);
/* Write a number. Readers that know only doubles are inexact beyond 2^53: larger numbers are
 * written as text. */
void json_number(struct buffer *out, const char *key, uint64_t value);
void json_bool(struct buffer *out, const char *key, bool value);

#endif

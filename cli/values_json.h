/* SPDX-License-Identifier: Apache-2.0
 *
 * The values of one actor as JSON, as `ringhold actor export` writes them and `import` reads them:
 *
 *     {"actor":"0/boss-7","number":12,"values":[
 *     {"key":"gold","value":"7"},
 *     {"key":"map","value64":"AP8"}]}
 *
 * What is UTF-8 is text; all else is base64, under key64 and value64. Rows are those of
 * wire/values_ask.h.
 */
#ifndef CLI_VALUES_JSON_H
#define CLI_VALUES_JSON_H

#include "base/bytes.h"

#include <stdbool.h>
#include <stdint.h>

enum { VALUES_JSON_WHY_SIZE = 128 };

/* Append all of it, with a line for each value. */
void values_json_write(struct buffer *out, const char *actor, uint64_t number, struct bytes rows);
/* Append the members of one value: "key":"gold","value":"7". */
void values_json_row(struct buffer *out, struct bytes key, struct bytes value);

/* Append the rows that the text tells to `rows`; `actor` and `number` may be missing, and are
 * passed over. False: `why`, and what was appended means nothing. */
bool values_json_read(struct bytes text, struct buffer *rows, char why[VALUES_JSON_WHY_SIZE]);

#endif

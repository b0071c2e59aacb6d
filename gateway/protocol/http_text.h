/* SPDX-License-Identifier: Apache-2.0
 *
 * The text of HTTP/1.1, as all that reads requests needs it: words, lists, lines, headers
 * (RFC 9110, 5.5 and 5.6; RFC 9112, 2 and 5).
 *
 * Pure. All that is returned is borrowed from the input.
 */
#ifndef GATEWAY_PROTOCOL_HTTP_TEXT_H
#define GATEWAY_PROTOCOL_HTTP_TEXT_H

#include "base/bytes.h"

#include <stdbool.h>

enum { HTTP_METHOD_MAX = 16 /* bytes of a method */ };

/* True if the byte is a letter of a token. */
bool http_is_token(uint8_t c);
/* True if the text is this word; of http_is_word() whatever the case of its letters. */
bool http_is(struct bytes text, const char *word);
bool http_is_word(struct bytes text, const char *word);
/* The text without the blanks around it. */
struct bytes http_trim(struct bytes text);
/* Return what stands before `at`; `text` becomes what stands behind it. All, and none, without one.
 */
struct bytes http_cut(struct bytes *text, uint8_t at);
/* True if `word` is in the list, whose items commas separate; `same` is http_is() or
 * http_is_word(). */
bool http_lists(struct bytes list, const char *word, bool (*same)(struct bytes, const char *));

/* Take a line of `text`, without its end; `text` becomes what follows. False: it ends otherwise
 * than with CR LF. */
bool http_next_line(struct bytes *text, struct bytes *line);
/* Read the name and the trimmed value of a header's line. False: it is none, as a line that goes on
 * with the one before (it begins with a blank), or it has a control character. */
bool http_header(struct bytes line, struct bytes *name, struct bytes *value);
/* Read the three words of a request's line. False: it is none. */
bool http_request_line(struct bytes line, struct bytes *method, struct bytes *target,
                       struct bytes *version);
/* True if the bytes may be HTTP still: they begin with a method. Who speaks TLS or packets need not
 * be waited for. */
bool http_begins_well(struct bytes in);
/* Return where the head ends: behind the empty line. 0 = it does not yet. `scanned` is the
 * caller's: 0 at first, then what the call before left there. */
size_t http_find_end(struct bytes in, size_t *scanned);

#endif

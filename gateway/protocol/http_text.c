/* SPDX-License-Identifier: Apache-2.0
 *
 * Cuts the text of an HTTP/1.1 request into words, lines and headers.
 */
#include "gateway/protocol/http_text.h"

#include <string.h>
#include <strings.h>

bool http_is_token(uint8_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c != '\0' && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

bool http_is(struct bytes text, const char *word)
{
    return text.size == strlen(word) && memcmp(text.data, word, text.size) == 0;
}

bool http_is_word(struct bytes text, const char *word)
{
    return text.size == strlen(word) && strncasecmp((const char *)text.data, word, text.size) == 0;
}

struct bytes http_trim(struct bytes text)
{
    while (text.size > 0 && (text.data[0] == ' ' || text.data[0] == '\t')) {
        text = bytes_of(text.data + 1, text.size - 1);
    }
    while (text.size > 0 && (text.data[text.size - 1] == ' ' || text.data[text.size - 1] == '\t')) {
        text.size--;
    }
    return text;
}

struct bytes http_cut(struct bytes *text, uint8_t at)
{
    const uint8_t *found = text->size == 0 ? NULL : memchr(text->data, at, text->size);
    const size_t size = found == NULL ? text->size : (size_t)(found - text->data);
    const struct bytes before = bytes_of(text->data, size);
    const size_t used = found == NULL ? size : size + 1;

    *text = bytes_of(text->data + used, text->size - used);
    return before;
}

bool http_lists(struct bytes list, const char *word, bool (*same)(struct bytes, const char *))
{
    while (list.size > 0) {
        if (same(http_trim(http_cut(&list, ',')), word)) {
            return true;
        }
    }
    return false;
}

bool http_next_line(struct bytes *text, struct bytes *line)
{
    *line = http_cut(text, '\n');
    if (line->size == 0 || line->data[line->size - 1] != '\r') {
        return false;
    }
    line->size--;
    return true;
}

bool http_header(struct bytes line, struct bytes *name, struct bytes *value)
{
    const uint8_t *colon = line.size == 0 ? NULL : memchr(line.data, ':', line.size);

    if (colon == NULL || colon == line.data) {
        return false;
    }
    *name = http_cut(&line, ':');
    for (size_t i = 0; i < name->size; i++) {
        if (!http_is_token(name->data[i])) {
            return false; // a line that goes on with the one before begins with a space: not either
        }
    }
    for (size_t i = 0; i < line.size; i++) {
        if ((line.data[i] < ' ' && line.data[i] != '\t') || line.data[i] == 0x7f) {
            return false;
        }
    }
    *value = http_trim(line);
    return true;
}

bool http_request_line(struct bytes line, struct bytes *method, struct bytes *target,
                       struct bytes *version)
{
    *method = http_cut(&line, ' ');
    *target = http_cut(&line, ' ');
    *version = line;
    for (size_t i = 0; i < target->size; i++) {
        if (target->data[i] <= ' ' || target->data[i] >= 0x7f) {
            return false;
        }
    }
    return method->size > 0 && target->size > 0;
}

bool http_begins_well(struct bytes in)
{
    for (size_t i = 0; i < in.size && i <= HTTP_METHOD_MAX; i++) {
        if (in.data[i] == ' ') {
            return i > 0;
        }
        if (!http_is_token(in.data[i])) {
            return false;
        }
    }
    return in.size <= HTTP_METHOD_MAX;
}

size_t http_find_end(struct bytes in, size_t *scanned)
{
    for (size_t i = *scanned < 3 ? 3 : *scanned; i < in.size; i++) {
        if (in.data[i] == '\n' && memcmp(in.data + i - 3, "\r\n\r\n", 4) == 0) {
            return i + 1;
        }
    }
    *scanned = in.size;
    return 0;
}

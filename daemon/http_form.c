/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads a form by libmicrohttpd's parser, into fields of fixed size.
 */
#include "daemon/http_form.h"

#include <microhttpd.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { PARSER_MEMORY = 1024 };

void http_form_put(struct http_form *f, const char *key, const char *data, size_t at, size_t size)
{
    static const struct {
        const char *name;
        size_t offset;
        size_t size;
    } fields[] = {
#define X(name, size) {#name, offsetof(struct http_fields, name), size},
        HTTP_FORM_FIELDS(X)
#undef X
    };
    size_t i = 0;

    while (i < sizeof fields / sizeof fields[0] && strcmp(key, fields[i].name) != 0) {
        i++;
    }
    if (i == sizeof fields / sizeof fields[0]) {
        f->fault = "the form has a field that is not known: id, node, by and reason are";
    } else if (memchr(data, '\0', size) != NULL) {
        f->fault = "a field has a NUL";
    } else if (at >= fields[i].size || size >= fields[i].size - at) {
        f->fault = "a field is too long: id has at most 1023 bytes, node 63, by 31, reason 200";
    } else {
        char *field = (char *)&f->fields + fields[i].offset;

        memcpy(field + at, data, size);
        field[at + size] = '\0';
    }
}

// NOLINTBEGIN(bugprone-easily-swappable-parameters,readability-function-size): libmicrohttpd's
static enum MHD_Result on_piece(void *form, enum MHD_ValueKind kind, const char *key,
                                const char *filename, const char *type, const char *encoding,
                                const char *data, uint64_t at, size_t size)
{
    struct http_form *f = form;

    (void)kind;
    (void)filename;
    (void)type;
    (void)encoding;
    if (key != NULL && f->fault == NULL) {
        http_form_put(f, key, data, (size_t)at, size);
    }
    return f->fault == NULL ? MHD_YES : MHD_NO;
}
// NOLINTEND(bugprone-easily-swappable-parameters,readability-function-size)

/* As it says; who says nothing is counted as it comes. */
static bool declares_too_much(struct MHD_Connection *connection)
{
    const char *text = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Content-Length");

    return text != NULL && strtoull(text, NULL, 10) > HTTP_BODY_MAX;
}

void http_form_begin(struct http_form *f, struct MHD_Connection *connection)
{
    f->too_large = declares_too_much(connection);
    f->parser = MHD_create_post_processor(connection, PARSER_MEMORY, on_piece, f);
    if (f->parser == NULL) {
        f->fault = "the body is no form: application/x-www-form-urlencoded";
    }
}

void http_form_take(struct http_form *f, const char *data, size_t size)
{
    f->size += size;
    f->too_large = f->too_large || f->size > HTTP_BODY_MAX;
    if (f->parser != NULL && !f->too_large && f->fault == NULL &&
        MHD_post_process(f->parser, data, size) != MHD_YES && f->fault == NULL) {
        f->fault = "the form can't be decoded";
    }
}

void http_form_end(struct http_form *f)
{
    if (f->parser != NULL && MHD_destroy_post_processor(f->parser) != MHD_YES && f->fault == NULL) {
        f->fault = "the form can't be decoded";
    }
    f->parser = NULL;
}

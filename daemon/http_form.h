/* SPDX-License-Identifier: Apache-2.0
 *
 * The body of a POST: a form of a few short fields, as the web page sends it. What is no such form
 * is refused by name; no more than HTTP_BODY_MAX bytes of it are looked at.
 */
#ifndef DAEMON_HTTP_FORM_H
#define DAEMON_HTTP_FORM_H

#include <stdbool.h>
#include <stddef.h>

struct MHD_Connection;
struct MHD_PostProcessor;

enum { HTTP_BODY_MAX = 8192 };

/* X(field, bytes, the NUL included) */
#define HTTP_FORM_FIELDS(X) \
    X(id, 1024)             \
    X(node, 64)             \
    X(by, 32)               \
    X(reason, 201)

/* Fields of a form, "" = not there. */
struct http_fields {
#define X(name, size) char name[size];
    HTTP_FORM_FIELDS(X)
#undef X
};

struct http_form {
    struct http_fields fields;
    const char *fault; /* static; NULL = it is good so far */
    bool too_large;
    size_t size;                      /* bytes of the body that came */
    struct MHD_PostProcessor *parser; /* owned; NULL = the body is passed over */
};

/* Begin to read the form that `connection` sends. A body that it declares as larger than may be is
 * `too_large` at once. */
void http_form_begin(struct http_form *f, struct MHD_Connection *connection);
/* The next bytes of the body. */
void http_form_take(struct http_form *f, const char *data, size_t size);
/* The body is over. */
void http_form_end(struct http_form *f);

/* A piece of the value of `key`, `at` bytes behind its beginning: into its field, or a fault. */
void http_form_put(struct http_form *f, const char *key, const char *data, size_t at, size_t size);

#endif

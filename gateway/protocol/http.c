/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads requests of HTTP/1.1, in whichever pieces they come, and writes the heads of answers.
 */
#include "gateway/protocol/http.h"

#include "base/assert.h"
#include "base/escape.h"
#include "base/format.h"
#include "base/mutant.h"
#include "base/plain.h"
#include "base/stamp.h"
#include "gateway/protocol/http_text.h"

#include <inttypes.h>
#include <string.h>

enum { LENGTH_DIGITS_MAX = 15, JSON_TEXT_MAX = 1024 };

const struct http_why *http_why(enum http_refusal refusal)
{
#define HTTP_WHY(name, status, word, code, text) {status, word, code, text},
    static const struct http_why whys[] = {HTTP_REFUSALS(HTTP_WHY)};
#undef HTTP_WHY

    return &whys[refusal];
}

/* ---- headers ---- */

struct http_headers {
    struct api_request *request;
    unsigned hosts;
    unsigned lengths;
    unsigned codings; /* of the transfer */
    unsigned twice;   /* headers that may be there once, and were there again */
    bool bad_length;
    bool unknown_coding;
    bool unknown_expectation;
    bool keeps; /* Connection: keep-alive */
};

static void take_once(struct http_headers *h, struct bytes *field, struct bytes value)
{
    h->twice += field->data != NULL;
    *field = value;
}

static void take_length(struct http_headers *h, struct bytes value)
{
    h->lengths++;
    h->bad_length |= value.size == 0 || value.size > LENGTH_DIGITS_MAX;
    h->request->body_size = 0;
    for (size_t i = 0; i < value.size && !h->bad_length; i++) {
        h->bad_length = value.data[i] < '0' || value.data[i] > '9';
        h->request->body_size = h->request->body_size * 10 + (uint64_t)(value.data[i] - '0');
    }
}

/* Those that say how the body comes. True: it was one. */
static bool take_framing(struct http_headers *h, struct bytes name, struct bytes value)
{
    if (http_is_word(name, "Content-Length")) {
        take_length(h, value);
    } else if (http_is_word(name, "Transfer-Encoding")) {
        h->codings++;
        h->unknown_coding |= !http_is_word(value, "chunked");
        h->request->chunked = true;
    } else if (http_is_word(name, "Content-Encoding")) {
        h->request->coded |= !http_is_word(value, "identity");
    } else if (http_is_word(name, "Expect")) {
        h->request->expects = true;
        h->unknown_expectation |= !http_is_word(value, "100-continue");
    } else {
        return false;
    }
    return true;
}

static void take_header(struct http_headers *h, struct bytes name, struct bytes value)
{
    struct api_request *r = h->request;

    if (take_framing(h, name, value)) {
        return;
    }
    if (http_is_word(name, "Host")) {
        h->hosts += value.size > 0 ? 1 : 2;
    } else if (http_is_word(name, "Connection")) {
        r->last |= http_lists(value, "close", http_is_word);
        h->keeps |= http_lists(value, "keep-alive", http_is_word);
    } else if (http_is_word(name, "Authorization")) {
        take_once(h, &r->authorization, value);
    } else if (http_is_word(name, "Idempotency-Key")) {
        take_once(h, &r->idempotency_key, value);
    } else if (http_is_word(name, "Ringhold-Again")) {
        take_once(h, &r->again, value);
    } else if (http_is_word(name, "Last-Event-ID")) {
        take_once(h, &r->last_event_id, value);
    } else if (http_is_word(name, "traceparent")) {
        // Two are none, and no fault: proxies may add their own.
        r->traceparent = bytes_of(value.data, r->traceparent.data == NULL ? value.size : 0);
    } else if (http_is_word(name, "Origin")) {
        r->browser = true;
    } else if (http_is_word(name, "Sec-Fetch-Site")) {
        r->browser |= !http_is(value, "none");
    }
}

/* ---- the head ---- */

static enum http_method method_of(struct bytes word)
{
    return http_is(word, "POST")      ? HTTP_POST
           : http_is(word, "GET")     ? HTTP_GET
           : http_is(word, "HEAD")    ? HTTP_HEAD
           : http_is(word, "OPTIONS") ? HTTP_OPTIONS
                                      : HTTP_OTHER;
}

/* The path of a target that names the server, too, as a proxy's does. */
static struct bytes without_server(struct bytes target)
{
    static const char *const schemes[] = {"http://", "https://"};

    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
        const size_t size = strlen(schemes[i]);

        if (target.size > size && memcmp(target.data, schemes[i], size) == 0) {
            struct bytes rest = bytes_of(target.data + size, target.size - size);
            const struct bytes server = http_cut(&rest, '/');

            return bytes_of(server.data + server.size, target.size - size - server.size);
        }
    }
    return target;
}

/* False: `why`. */
static bool take_first_line(struct bytes line, struct api_request *out, bool *is_1_0,
                            enum http_refusal *why)
{
    struct bytes method;
    struct bytes target;
    struct bytes version;

    *why = HTTP_BAD_LINE;
    if (!http_request_line(line, &method, &target, &version) || !http_begins_well(line) ||
        version.size != 8 || memcmp(version.data, "HTTP/", 5) != 0 ||
        memchr(target.data, '#', target.size) != NULL) {
        return false;
    }
    *is_1_0 = http_is(version, "HTTP/1.0");
    *why = HTTP_VERSION;
    out->method = method_of(method);
    target = without_server(target);
    out->path = http_cut(&target, '?');
    out->query = target;
    out->last = *is_1_0;
    return *is_1_0 || http_is(version, "HTTP/1.1");
}

/* True: there is something. What is wrong with the length counts first: who gets it wrong may be
 * lying about all that follows. */
static bool find_fault(const struct http_headers *h, bool is_1_0, enum http_refusal *why)
{
    const struct api_request *r = h->request;

    if ((h->lengths + h->codings > 1 && !mutant(M_TWOLENGTHS)) || h->bad_length ||
        (h->codings > 0 && is_1_0)) {
        *why = HTTP_BAD_LENGTH;
    } else if (h->unknown_coding) {
        *why = HTTP_TRANSFER_CODING;
    } else if (h->hosts > 1 || (h->hosts == 0 && !is_1_0)) {
        *why = HTTP_BAD_HOST;
    } else if (h->twice > 0) {
        *why = HTTP_BAD_HEADER;
    } else if (h->unknown_expectation) {
        *why = HTTP_EXPECTATION;
    } else if (r->body_size > HTTP_CONTENT_MAX) {
        *why = HTTP_BODY_TOO_LARGE;
    } else {
        return false;
    }
    return true;
}

/* A head that is whole. False: `why`; all that was understood stands in `out` still. */
static bool parse_head(struct bytes head, struct api_request *out, enum http_refusal *why)
{
    struct http_headers h = {.request = out};
    struct bytes text = bytes_of(head.data, head.size - 2);
    struct bytes line;
    struct bytes name;
    struct bytes value;
    size_t count = 0;
    bool is_1_0 = false;

    *out = (struct api_request){.head_size = head.size};
    *why = HTTP_BAD_LINE;
    if (!http_next_line(&text, &line) || !take_first_line(line, out, &is_1_0, why)) {
        return false;
    }
    while (text.size > 0) {
        *why = ++count > HTTP_HEADERS_MAX ? HTTP_HEAD_TOO_LARGE : HTTP_BAD_HEADER;
        if (count > HTTP_HEADERS_MAX || !http_next_line(&text, &line) ||
            !http_header(line, &name, &value)) {
            return false;
        }
        take_header(&h, name, value);
    }
    out->last = out->last && !(is_1_0 && h.keeps);
    return !find_fault(&h, is_1_0, why);
}

/* A line that ends with LF alone never ends the head: it is refused, not waited for. */
static bool has_bare_end(struct bytes in, size_t from)
{
    for (size_t i = from; i < in.size; i++) {
        const uint8_t *end = memchr(in.data + i, '\n', in.size - i);

        if (end == NULL) {
            return false;
        }
        i = (size_t)(end - in.data);
        if (i == 0 || in.data[i - 1] != '\r') {
            return true;
        }
    }
    return false;
}

/* Bytes of the empty line that some clients send behind a body, before the next request. */
static size_t blank_size(struct bytes in)
{
    return in.size >= 2 && in.data[0] == '\r' && in.data[1] == '\n' ? 2 : 0;
}

static enum http_step refuse(enum http_refusal *why, enum http_refusal reason)
{
    *why = reason;
    return HTTP_REFUSED;
}

/* HTTP_WHOLE: the head is. */
static enum http_step read_head(struct http_reader *r, struct bytes in, struct api_request *out,
                                enum http_refusal *why)
{
    const size_t blank = blank_size(in);
    const size_t most = in.size < blank + HTTP_HEAD_MAX ? in.size : blank + HTTP_HEAD_MAX;
    const struct bytes text = bytes_of(in.data + blank, most - blank);
    const size_t from = r->scanned;

    if (in.size == 1 && in.data[0] == '\r') {
        return HTTP_MORE; // or it is that empty line
    }
    const size_t end = http_find_end(text, &r->scanned);
    if (end == 0) {
        if (!http_begins_well(text)) {
            return refuse(why, HTTP_BAD_LINE);
        }
        if (has_bare_end(text, from)) {
            return refuse(why, HTTP_BAD_HEADER);
        }
        return in.size < blank + HTTP_HEAD_MAX ? HTTP_MORE : refuse(why, HTTP_HEAD_TOO_LARGE);
    }
    // What was there before is to be found again when the body has come.
    r->scanned = end - 1;
    const bool good = parse_head(bytes_of(text.data, end), out, why);
    out->head_size += blank;
    return good ? HTTP_WHOLE : HTTP_REFUSED;
}

/* ---- chunks ---- */

/* The line at the front of `in`; false: it is not whole, or `bad`. */
static bool take_chunk_line(struct bytes in, size_t max, struct bytes *line, bool *bad)
{
    const uint8_t *end = in.size == 0 ? NULL : memchr(in.data, '\n', in.size);
    const size_t size = end == NULL ? in.size : (size_t)(end - in.data);

    *bad = size > max || (end != NULL && (size == 0 || in.data[size - 1] != '\r'));
    *line = bytes_of(in.data, size == 0 ? 0 : size - 1);
    for (size_t i = 0; i < line->size && !*bad; i++) {
        *bad = (line->data[i] < ' ' && line->data[i] != '\t') || line->data[i] == 0x7f;
    }
    return end != NULL && !*bad;
}

/* Hexadecimal digits, and extensions that nobody reads. False: it is no size. */
static bool read_chunk_size(struct bytes line, size_t *out)
{
    const struct bytes digits = http_trim(http_cut(&line, ';'));

    *out = 0;
    for (size_t i = 0; i < digits.size; i++) {
        const int value = hex_of(digits.data[i]);

        if (value < 0 || i == 8) {
            return false;
        }
        *out = *out * 16 + (size_t)value;
    }
    return digits.size > 0;
}

/* A line behind the last chunk. HTTP_WHOLE: it is the empty one. */
static enum http_step take_trailer(struct http_reader *r, struct bytes line, enum http_refusal *why)
{
    struct bytes name;
    struct bytes value;

    r->chunks.trailers += line.size + 2;
    if (line.size == 0) {
        return HTTP_WHOLE;
    }
    return r->chunks.trailers <= HTTP_TRAILERS_MAX && http_header(line, &name, &value)
               ? HTTP_MORE
               : refuse(why, HTTP_BAD_CHUNK);
}

/* A line with a chunk's size. */
static enum http_step take_chunk_size(struct http_reader *r, struct bytes line,
                                      enum http_refusal *why)
{
    size_t size = 0;

    if (!read_chunk_size(line, &size)) {
        return refuse(why, HTTP_BAD_CHUNK);
    }
    if (size > HTTP_CONTENT_MAX - r->chunks.size) {
        return refuse(why, HTTP_BODY_TOO_LARGE);
    }
    r->chunks.size += size;
    r->chunks.last = size == 0;
    r->chunks.left = size == 0 ? 0 : size + 2;
    return HTTP_MORE;
}

/* Pass over what is there of a chunk's bytes, up to the CR LF that ends it. */
static bool pass_chunk(struct http_reader *r, struct bytes rest)
{
    const size_t want = r->chunks.left - 2;
    const size_t take = want < rest.size ? want : rest.size;

    r->chunks.at += take;
    r->chunks.left -= take;
    return take == want;
}

/* Read on in `in`, which begins behind the head. HTTP_WHOLE: `chunks.at` bytes of it are all. */
static enum http_step read_chunks(struct http_reader *r, struct bytes in, enum http_refusal *why)
{
    enum http_step step = HTTP_MORE;

    while (step == HTTP_MORE) {
        const struct bytes rest = bytes_of(in.data + r->chunks.at, in.size - r->chunks.at);
        const bool ends_chunk = r->chunks.left == 2;
        struct bytes line;
        bool bad = false;

        if (r->chunks.left > 2) {
            if (!pass_chunk(r, rest)) {
                return HTTP_MORE;
            }
            continue;
        }
        if (!take_chunk_line(rest, ends_chunk ? 1 : HTTP_CHUNK_LINE_MAX, &line, &bad)) {
            return bad ? refuse(why, HTTP_BAD_CHUNK) : HTTP_MORE;
        }
        r->chunks.at += line.size + 2;
        if (r->chunks.at > HTTP_CHUNKED_MAX) {
            return refuse(why, HTTP_BODY_TOO_LARGE);
        }
        if (ends_chunk) {
            r->chunks.left = 0;
        } else {
            step = r->chunks.last ? take_trailer(r, line, why) : take_chunk_size(r, line, why);
        }
    }
    r->body = step == HTTP_WHOLE;
    return step;
}

/* The bytes of chunks that were read before. */
static void join_chunks(struct bytes in, struct buffer *out)
{
    size_t size = 0;

    buffer_clear(out);
    do {
        const struct bytes line = http_cut(&in, '\n');
        const bool good = read_chunk_size(bytes_of(line.data, line.size - 1), &size);

        ASSERT(good && size + 2 <= in.size);
        buffer_put(out, in.data, size);
        in = bytes_of(in.data + (size == 0 ? 0 : size + 2), in.size - (size == 0 ? 0 : size + 2));
    } while (size > 0);
}

/* ---- the whole ---- */

/* Is the body there? `in` begins behind the head. */
static enum http_step read_body(struct http_reader *r, struct bytes in, enum http_refusal *why)
{
    if (r->chunked && !r->body) {
        return read_chunks(r, in, why);
    }
    return r->chunked || in.size >= r->length ? HTTP_WHOLE : HTTP_MORE;
}

static void finish(struct http_reader *r, struct bytes in, struct buffer *chunked,
                   struct api_request *out)
{
    const struct bytes rest = bytes_of(in.data + out->head_size, in.size - out->head_size);
    const size_t size = r->chunked ? r->chunks.at : r->length;

    out->body = bytes_of(rest.data, size);
    out->size = out->head_size + size;
    if (r->chunked) {
        join_chunks(out->body, chunked);
        out->body = buffer_bytes(chunked);
    }
    *r = (struct http_reader){0};
}

enum http_step http_read(struct http_reader *r, struct bytes in, struct buffer *chunked,
                         struct api_request *out, enum http_refusal *why)
{
    enum http_step step = HTTP_WHOLE;
    const bool headed = r->head_size > 0;

    if (headed) {
        step = read_body(r, bytes_of(in.data + r->head_size, in.size - r->head_size), why);
    }
    if (step == HTTP_WHOLE) { // its words are to be found where they are now
        step = read_head(r, in, out, why);
    }
    if (step != HTTP_WHOLE) {
        return step;
    }
    r->head_size = out->head_size;
    r->length = (size_t)out->body_size;
    r->chunked = out->chunked;
    step = read_body(r, bytes_of(in.data + r->head_size, in.size - r->head_size), why);
    if (step == HTTP_WHOLE) {
        finish(r, in, chunked, out);
    }
    return step == HTTP_MORE && !headed ? HTTP_HEADED : step;
}

/* ---- answers ---- */

static const char *phrase_of(unsigned status)
{
    static const struct {
        unsigned status;
        const char *phrase;
    } phrases[] = {
        {200, "OK"},
        {202, "Accepted"},
        {204, "No Content"},
        {400, "Bad Request"},
        {401, "Unauthorized"},
        {403, "Forbidden"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {408, "Request Timeout"},
        {409, "Conflict"},
        {410, "Gone"},
        {413, "Content Too Large"},
        {415, "Unsupported Media Type"},
        {417, "Expectation Failed"},
        {422, "Unprocessable Content"},
        {429, "Too Many Requests"},
        {431, "Request Header Fields Too Large"},
        {501, "Not Implemented"},
        {502, "Bad Gateway"},
        {503, "Service Unavailable"},
        {504, "Gateway Timeout"},
        {505, "HTTP Version Not Supported"},
    };

    for (size_t i = 0; i < sizeof phrases / sizeof phrases[0]; i++) {
        if (phrases[i].status == status) {
            return phrases[i].phrase;
        }
    }
    UNREACHABLE();
}

void http_put_head(struct buffer *out, unsigned status, const struct http_head *head)
{
    buffer_put_format(out, "HTTP/1.1 %u %s\r\n", status, phrase_of(status));
    if (head->type != NULL) {
        // What an actor answers is bytes: no browser is to guess that they are a page.
        buffer_put_format(
            out,
            "Content-Type: %s\r\nX-Content-Type-Options: nosniff\r\nCache-Control: no-store\r\n",
            head->type);
    }
    if (head->type != NULL && !head->stream) {
        buffer_put_format(out, "Content-Length: %zu\r\n", head->body_size);
    } else if (head->type == NULL && status != 204) {
        buffer_put_format(out, "Content-Length: 0\r\n");
    }
    if (head->allow != NULL) {
        buffer_put_format(out, "Allow: %s\r\n", head->allow);
    }
    if (head->retry_s > 0) {
        buffer_put_format(out, "Retry-After: %" PRIu32 "\r\n", head->retry_s);
    }
    if (head->ring > 0) {
        buffer_put_format(out, "Ringhold-Ring: %s\r\n", STAMP(head->ring));
    }
    if (head->challenge) {
        buffer_put_format(out, "WWW-Authenticate: Bearer\r\n");
    }
    if (head->last || head->stream) {
        buffer_put_format(out, "Connection: close\r\n");
    }
    buffer_put(out, "\r\n", 2);
}

void http_put_json_text(struct buffer *out, struct bytes text)
{
    char plain[JSON_TEXT_MAX + 1];
    const size_t size = text.size < JSON_TEXT_MAX ? text.size : JSON_TEXT_MAX;

    for (size_t i = 0; i < size; i++) {
        plain[i] = (char)text.data[i];
        if (plain[i] == '\0') {
            plain[i] = '?';
        }
    }
    plain[size] = '\0';
    plain_make(plain);
    buffer_put(out, "\"", 1);
    for (const char *at = plain; *at != '\0'; at++) {
        if (*at == '"' || *at == '\\') {
            buffer_put(out, "\\", 1);
        }
        buffer_put(out, at, 1);
    }
    buffer_put(out, "\"", 1);
}

void http_put_problem(struct buffer *out, const struct http_problem *p)
{
    buffer_put_format(
        out,
        "{\"type\":\"urn:ringhold:problem:%s\",\"title\":\"%s\",\"status\":%u,\"code\":\"%s\","
        "\"may_have_run\":%s,\"detail\":",
        p->word,
        phrase_of(p->status),
        p->status,
        p->code,
        p->may_have_run ? "true" : "false");
    http_put_json_text(out, p->detail);
    buffer_put(out, "}\n", 2);
}

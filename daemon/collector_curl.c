/* SPDX-License-Identifier: Apache-2.0
 *
 * Sends documents to a collector of traces by libcurl, which is loaded for that.
 */
#define CURL_DISABLE_TYPECHECK 1 // of its macros, which know its functions by their names alone
#include "daemon/collector_curl.h"

#include "base/library.h"
#include "base/mem.h"

#include <curl/curl.h>
#include <stddef.h>
#include <stdio.h>

enum {
    URL_SIZE = 1024,
    STATUS_OK_FIRST = 200,
    STATUS_OK_LAST = 299,
    STATUS_TOO_MANY = 429,
    STATUS_BAD_GATEWAY = 502,
    STATUS_GATEWAY_TIMEOUT = 504,
};

/* What is used of libcurl. */
#define CURL_LIST(X)      \
    X(curl_global_init)   \
    X(curl_easy_init)     \
    X(curl_easy_setopt)   \
    X(curl_easy_perform)  \
    X(curl_easy_getinfo)  \
    X(curl_easy_strerror) \
    X(curl_easy_cleanup)  \
    X(curl_slist_append)  \
    X(curl_slist_free_all)

static struct libcurl {
#define X(name) __typeof__(name) *(name);
    CURL_LIST(X)
#undef X
} lib;

static const struct library_function functions[] = {
#define X(name) {#name, offsetof(struct libcurl, name)},
    CURL_LIST(X)
#undef X
};

struct trace_collector {
    CURL *curl;
    struct curl_slist *headers;
    char url[URL_SIZE];
};

/* The answer's body is not looked at. */
// NOLINTNEXTLINE(readability-non-const-parameter): the type is that of libcurl
static size_t pass_over(char *data, size_t size, size_t count, void *context)
{
    (void)data;
    (void)context;
    return size * count;
}

static void set_url(struct trace_collector *c, const char *url)
{
    static const char path[] = "/v1/traces";
    size_t size = strlen(url);
    const bool whole = size >= sizeof path && strcmp(url + size - (sizeof path - 1), path) == 0;

    while (!whole && size > 0 && url[size - 1] == '/') {
        size--;
    }
    (void)snprintf(c->url, sizeof c->url, "%.*s%s", (int)size, url, whole ? "" : path);
}

static void set_up(struct trace_collector *c)
{
    (void)lib.curl_easy_setopt(c->curl, CURLOPT_URL, c->url);
    (void)lib.curl_easy_setopt(c->curl, CURLOPT_PROTOCOLS_STR, "http,https");
    (void)lib.curl_easy_setopt(c->curl, CURLOPT_NOSIGNAL, 1L);
    (void)lib.curl_easy_setopt(c->curl, CURLOPT_HTTPHEADER, c->headers);
    (void)lib.curl_easy_setopt(c->curl, CURLOPT_USERAGENT, "ringhold/" RINGHOLD_VERSION);
    (void)lib.curl_easy_setopt(c->curl, CURLOPT_WRITEFUNCTION, pass_over);
}

struct trace_collector *trace_collector_new(const char *url, char why[COLLECTOR_WHY_SIZE])
{
    const char *fault = NULL;

    if (strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0) {
        (void)snprintf(why, COLLECTOR_WHY_SIZE, "it is neither http://… nor https://… nor file:…");
        return NULL;
    }
    if (strlen(url) > URL_SIZE / 2) {
        (void)snprintf(why, COLLECTOR_WHY_SIZE, "it is longer than %d bytes", URL_SIZE / 2);
        return NULL;
    }
    fault = library_load("libcurl.so.4", functions, sizeof functions / sizeof functions[0], &lib);
    if (fault != NULL) {
        (void)snprintf(why, COLLECTOR_WHY_SIZE, "it needs libcurl: %.200s", fault);
        return NULL;
    }
    struct trace_collector *c = mem_new(1, sizeof *c);

    (void)lib.curl_global_init(CURL_GLOBAL_DEFAULT);
    c->curl = lib.curl_easy_init();
    if (c->curl == NULL) {
        (void)snprintf(why, COLLECTOR_WHY_SIZE, "libcurl can't begin");
        mem_free(c);
        return NULL;
    }
    c->headers = lib.curl_slist_append(NULL, "Content-Type: application/json");
    set_url(c, url);
    set_up(c);
    return c;
}

void trace_collector_free(struct trace_collector *c)
{
    if (c != NULL) {
        lib.curl_easy_cleanup(c->curl);
        lib.curl_slist_free_all(c->headers);
        mem_free(c);
    }
}

enum collector_result trace_collector_post(struct trace_collector *c, struct bytes document,
                                           long timeout_ms, char why[COLLECTOR_WHY_SIZE])
{
    long status = 0;

    (void)lib.curl_easy_setopt(c->curl, CURLOPT_POSTFIELDS, (const char *)document.data);
    (void)lib.curl_easy_setopt(c->curl, CURLOPT_POSTFIELDSIZE, (long)document.size);
    (void)lib.curl_easy_setopt(c->curl, CURLOPT_TIMEOUT_MS, timeout_ms);
    const CURLcode code = lib.curl_easy_perform(c->curl);
    if (code != CURLE_OK) {
        (void)snprintf(why, COLLECTOR_WHY_SIZE, "%.200s", lib.curl_easy_strerror(code));
        return COLLECTOR_LATER;
    }
    (void)lib.curl_easy_getinfo(c->curl, CURLINFO_RESPONSE_CODE, &status);
    if (status >= STATUS_OK_FIRST && status <= STATUS_OK_LAST) {
        return COLLECTOR_TOOK;
    }
    (void)snprintf(why, COLLECTOR_WHY_SIZE, "it answered with status %ld", status);
    return status == STATUS_TOO_MANY ||
                   (status >= STATUS_BAD_GATEWAY && status <= STATUS_GATEWAY_TIMEOUT)
               ? COLLECTOR_LATER
               : COLLECTOR_REFUSES;
}

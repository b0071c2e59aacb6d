/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/http_mhd.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/secret_file.h"
#include "cli/listen.h"
#include "cli/process.h"
#include "cli/reread.h"
#include "cli/site.h"

#include <errno.h>
#include <microhttpd.h>
#include <netdb.h>
#include <openssl/crypto.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    CONNECTIONS_MAX = 64,
    CONNECTION_MEMORY = 16 * 1024,
    IDLE_S = 10,
    LOOP_MS = 2000, /* a loop that needs longer hangs */
    TOKEN_MIN = 16,
    TOKEN_MAX = 256,
    BACKLOG = 64
};

/* Answers, by status code, for /metrics. */
enum answer { ANSWERED_200, ANSWERED_401, ANSWERED_404, ANSWERED_405, ANSWERED_503, ANSWERS };
static const unsigned status_of[ANSWERS] = {200, 401, 404, 405, 503};
static const char *const status_word[ANSWERS] = {"200", "401", "404", "405", "503"};

struct token {
    char text[TOKEN_MAX + 1];
    size_t size; /* 0 = none */
};

struct http {
    struct MHD_Daemon *server;
    struct pages *pages;       /* borrowed, as the next */
    struct overview *overview; /* NULL = no web page */
    bool has_token;
    pthread_mutex_t lock; /* the token */
    struct token token;
    char path[sizeof(((struct sockaddr_un *)NULL)->sun_path)]; /* of a unix socket; "" = none */
    uint64_t answered[ANSWERS];                                /* by the server's thread alone */
};

static const struct route {
    const char *path;
    enum page page;
    const char *type;
    bool open; /* for a prober, which has no token */
} routes[] = {
    {"/metrics", PAGE_METRICS, "text/plain; version=0.0.4; charset=utf-8", false},
    {"/status", PAGE_STATUS, "application/json", false},
    {"/healthz", PAGE_HEALTH, "text/plain; charset=utf-8", true},
    {"/readyz", PAGE_READY, "text/plain; charset=utf-8", true},
};

static const char index_text[] = "/metrics  for Prometheus\n"
                                 "/status   the same as JSON, and who this is\n"
                                 "/healthz  200: this process works; nothing remote is asked\n"
                                 "/readyz   200: it takes work; not while it drains\n";

/* ---- options ---- */

struct option http_address_option(struct http_options *o)
{
    return option_text(
        "admin",
        "HOST:PORT",
        o->admin,
        sizeof o->admin,
        "where /metrics, /healthz, /readyz, /status and a coordinator's web page are; or "
        "unix:PATH (nowhere)");
}

struct option http_token_option(struct http_options *o)
{
    return option_text(
        "admin-token",
        "FILE",
        o->token,
        sizeof o->token,
        "who asks --admin for /metrics or /status shows this: Authorization: Bearer");
}

static const char *unix_path(const struct http_options *o)
{
    return strncmp(o->admin, "unix:", 5) == 0 ? o->admin + 5 : NULL;
}

static bool complain(const char *daemon, const char *what, const char *which, const char *why)
{
    (void)fprintf(stderr, "ringhold %s: %s '%s': %s\n", daemon, what, which, why);
    return false;
}

static const char *read_token(struct token *t, const char *path)
{
    size_t size = 0;
    const char *wrong = secret_file_read(path, (uint8_t *)t->text, TOKEN_MAX, &size);

    if (wrong != NULL) {
        return wrong;
    }
    t->size = strcspn(t->text, "\r\n");
    t->size = t->size < size ? t->size : size;
    return t->size < TOKEN_MIN ? "its first line has less than 16 bytes" : NULL;
}

/* None named is none. False after printing what is wrong. */
static bool load_token(struct token *t, const struct http_options *o, const char *daemon)
{
    const char *wrong = o->token[0] == '\0' ? NULL : read_token(t, o->token);

    return wrong == NULL || complain(daemon, "cannot take --admin-token", o->token, wrong);
}

static bool check_token(const struct http_options *o, const char *daemon)
{
    struct token token = {.size = 0};
    const bool good = load_token(&token, o, daemon);

    OPENSSL_cleanse(&token, sizeof token);
    return good;
}

bool http_check(const struct http_options *o, const char *daemon)
{
    const char *path = unix_path(o);

    if (o->admin[0] == '\0') {
        return o->token[0] == '\0' ||
               complain(daemon, "--admin-token", o->token, "it is of --admin, which is missing");
    }
    if (path != NULL) {
        if (path[0] != '/' || strlen(path) >= sizeof(((struct http *)NULL)->path)) {
            return complain(
                daemon, "--admin", o->admin, "it takes an absolute path of at most 107 bytes");
        }
        return check_token(o, daemon);
    }
    if (!listen_allowed(daemon, o->admin, true)) {
        return false; // it is no address
    }
    if (!listen_is_loopback(o->admin) && o->token[0] == '\0') {
        return complain(
            daemon, "--admin", o->admin, "it is beyond loopback: --admin-token is needed");
    }
    return check_token(o, daemon);
}

/* ---- answers ---- */

static bool is_token(struct http *h, struct MHD_Connection *connection)
{
    static const char scheme[] = "Bearer ";
    const char *given = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Authorization");

    if (given == NULL || strncmp(given, scheme, sizeof scheme - 1) != 0) {
        return false;
    }
    given += sizeof scheme - 1;
    (void)pthread_mutex_lock(&h->lock);
    const bool is =
        strlen(given) == h->token.size && CRYPTO_memcmp(given, h->token.text, h->token.size) == 0;
    (void)pthread_mutex_unlock(&h->lock);
    return is;
}

static void put_own(const struct http *h, struct buffer *out)
{
    static const struct metric answers = {
        "ringhold_admin_answers_total", "Answers of this HTTP server, by code.", METRIC_COUNTER};
    struct metrics m;

    metrics_begin(&m, METRICS_TEXT, out);
    for (size_t i = 0; i < ANSWERS; i++) {
        metrics_put_labelled(&m, &answers, "code", status_word[i], h->answered[i]);
    }
    process_metrics(&m);
    reread_metrics(&m);
    metrics_end(&m);
}

/* Takes `text`. */
static enum MHD_Result answer(struct http *h, struct MHD_Connection *connection, enum answer which,
                              const char *type, struct buffer *text)
{
    struct MHD_Response *response =
        MHD_create_response_from_buffer(text->size, text->data, MHD_RESPMEM_MUST_COPY);
    enum MHD_Result result = MHD_NO;

    buffer_fini(text);
    if (response == NULL) {
        return MHD_NO;
    }
    (void)MHD_add_response_header(response, "Content-Type", type);
    (void)MHD_add_response_header(response, "Cache-Control", "no-store");
    (void)MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    (void)MHD_add_response_header(response, "Content-Security-Policy", SITE_POLICY);
    (void)MHD_add_response_header(response, "Referrer-Policy", "no-referrer");
    if (which == ANSWERED_401) {
        (void)MHD_add_response_header(response, "WWW-Authenticate", "Bearer");
    }
    if (which == ANSWERED_405) {
        (void)MHD_add_response_header(response, "Allow", "GET, HEAD");
    }
    h->answered[which]++;
    result = MHD_queue_response(connection, status_of[which], response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result answer_text(struct http *h, struct MHD_Connection *connection,
                                   enum answer which, const char *words)
{
    struct buffer text = {0};

    buffer_put(&text, words, strlen(words));
    return answer(h, connection, which, "text/plain; charset=utf-8", &text);
}

static enum MHD_Result answer_page(struct http *h, struct MHD_Connection *connection,
                                   const struct route *route)
{
    struct buffer text = {0};

    switch (pages_ask(h->pages, route->page, LOOP_MS, &text)) {
    case PAGES_YES:
        if (route->page == PAGE_METRICS) {
            put_own(h, &text);
        }
        return answer(h, connection, ANSWERED_200, route->type, &text);
    case PAGES_NO:
        return answer(h, connection, ANSWERED_503, route->type, &text);
    case PAGES_SILENT:
        buffer_fini(&text);
        return answer_text(h, connection, ANSWERED_503, "the daemon's loop does not turn\n");
    case PAGES_GONE:
        break;
    }
    buffer_fini(&text);
    return answer_text(h, connection, ANSWERED_503, "it starts, or it ends\n");
}

static const struct route *find(const char *path)
{
    for (size_t i = 0; i < sizeof routes / sizeof routes[0]; i++) {
        if (strcmp(path, routes[i].path) == 0) {
            return &routes[i];
        }
    }
    return NULL;
}

/* Blocks this thread for a second at most: a prober may wait for so long. */
static enum MHD_Result answer_overview(struct http *h, struct MHD_Connection *connection)
{
    const char *known = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "ring");
    struct buffer text = {0};
    const bool answered = overview_put(h->overview, known == NULL ? "" : known, &text);

    return answer(h,
                  connection,
                  answered ? ANSWERED_200 : ANSWERED_503,
                  "application/json; charset=utf-8",
                  &text);
}

static enum MHD_Result answer_file(struct http *h, struct MHD_Connection *connection,
                                   const struct site_file *file)
{
    struct buffer text = {0};

    buffer_put(&text, file->content.data, file->content.size);
    return answer(h, connection, ANSWERED_200, file->type, &text);
}

static enum MHD_Result answer_path(struct http *h, struct MHD_Connection *connection,
                                   const char *path)
{
    const struct route *route = find(path);
    const struct site_file *file = h->overview == NULL ? NULL : site_find(path);

    if (file != NULL) { // there is nothing in it that others may not see
        return answer_file(h, connection, file);
    }
    if (h->has_token && (route == NULL || !route->open) && !is_token(h, connection)) {
        return answer_text(h, connection, ANSWERED_401, "a token is wanted\n");
    }
    if (route != NULL) {
        return answer_page(h, connection, route);
    }
    if (h->overview != NULL && strcmp(path, "/fleet") == 0) {
        return answer_overview(h, connection);
    }
    return strcmp(path, "/") == 0 ? answer_text(h, connection, ANSWERED_200, index_text)
                                  : answer_text(h, connection, ANSWERED_404, "no such page\n");
}

// NOLINTNEXTLINE(bugprone-easily-swappable-parameters,readability-function-size): libmicrohttpd's
static enum MHD_Result on_request(void *user, struct MHD_Connection *connection, const char *path,
                                  const char *method, const char *version, const char *upload,
                                  size_t *upload_size, void **state)
{
    static char seen; // its address marks a request whose head was seen

    (void)version;
    (void)upload;
    if (*state == NULL) {
        *state = &seen;
        return MHD_YES;
    }
    if (*upload_size > 0) {
        *upload_size = 0; // a body is read and forgotten
        return MHD_YES;
    }
    if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0) {
        return answer_text(user, connection, ANSWERED_405, "only GET and HEAD\n");
    }
    return answer_path(user, connection, path);
}

/* ---- life ---- */

static bool is_socket(const char *path)
{
    struct stat file;

    return lstat(path, &file) == 0 && S_ISSOCK(file.st_mode);
}

/* A socket that was left by a process that died is no obstacle; one that lives is. */
static int listen_unix(struct http *h, const char *path)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    (void)snprintf(name.sun_path, sizeof name.sun_path, "%s", path);
    if (fd < 0) {
        return -1;
    }
    if (connect(fd, (struct sockaddr *)&name, sizeof name) == 0) {
        (void)close(fd);
        errno = EADDRINUSE;
        return -1;
    }
    if (errno == ECONNREFUSED && is_socket(path)) {
        (void)unlink(path);
    }
    if (bind(fd, (struct sockaddr *)&name, sizeof name) == 0 && chmod(path, 0660) == 0 &&
        listen(fd, BACKLOG) == 0) {
        (void)snprintf(h->path, sizeof h->path, "%s", path);
        return fd;
    }
    const int failed = errno;
    (void)close(fd);
    errno = failed;
    return -1;
}

static int listen_at(const struct addrinfo *where)
{
    const int yes = 1;
    const int fd = socket(where->ai_family, where->ai_socktype | SOCK_CLOEXEC, where->ai_protocol);

    if (fd < 0) {
        return -1;
    }
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(fd, where->ai_addr, where->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0) {
        return fd;
    }
    const int failed = errno;
    (void)close(fd);
    errno = failed;
    return -1;
}

static int listen_tcp(const char *text)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct addrinfo *found = NULL;
    struct address address;
    char port[8];
    int fd = -1;

    errno = EINVAL;
    if (address_parse(text, &address) != ERR_OK) {
        return -1;
    }
    (void)snprintf(port, sizeof port, "%u", address.port);
    if (getaddrinfo(address.host, port, &hints, &found) != 0) {
        errno = EADDRNOTAVAIL;
        return -1;
    }
    for (const struct addrinfo *at = found; at != NULL && fd < 0; at = at->ai_next) {
        fd = listen_at(at);
    }
    freeaddrinfo(found);
    return fd;
}

static void free_http(struct http *h)
{
    OPENSSL_cleanse(&h->token, sizeof h->token);
    (void)pthread_mutex_destroy(&h->lock);
    mem_free(h);
}

bool http_open(const struct http_options *o, const char *daemon, struct pages *pages,
               struct overview *overview, struct http **out)
{
    struct http *h = NULL;

    *out = NULL;
    if (o->admin[0] == '\0') {
        return true;
    }
    h = mem_new(1, sizeof *h);
    h->pages = pages;
    h->overview = overview;
    (void)pthread_mutex_init(&h->lock, NULL);
    if (!load_token(&h->token, o, daemon)) {
        free_http(h);
        return false;
    }
    h->has_token = o->token[0] != '\0';
    const int fd = unix_path(o) != NULL ? listen_unix(h, unix_path(o)) : listen_tcp(o->admin);
    if (fd < 0) {
        free_http(h);
        return complain(daemon, "cannot listen on --admin", o->admin, strerror(errno));
    }
    h->server = MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL,
                                 0,
                                 NULL,
                                 NULL,
                                 on_request,
                                 h,
                                 MHD_OPTION_LISTEN_SOCKET,
                                 fd,
                                 MHD_OPTION_CONNECTION_LIMIT,
                                 CONNECTIONS_MAX,
                                 MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                                 (size_t)CONNECTION_MEMORY,
                                 MHD_OPTION_CONNECTION_TIMEOUT,
                                 IDLE_S,
                                 MHD_OPTION_END);
    if (h->server == NULL) {
        (void)close(fd);
        free_http(h);
        return complain(daemon, "cannot serve --admin", o->admin, "no more threads or memory");
    }
    log_info("admin", "listening", "address=%s token=%s", o->admin, h->has_token ? "yes" : "no");
    *out = h;
    return true;
}

bool http_reload(struct http *h, const struct http_options *o, const char *daemon)
{
    struct token token = {.size = 0};

    if (h == NULL || !h->has_token) {
        return true;
    }
    const bool good = load_token(&token, o, daemon);
    if (good) {
        (void)pthread_mutex_lock(&h->lock);
        h->token = token;
        (void)pthread_mutex_unlock(&h->lock);
    }
    OPENSSL_cleanse(&token, sizeof token);
    return good;
}

void http_close(struct http *h)
{
    if (h == NULL) {
        return;
    }
    MHD_stop_daemon(h->server);
    if (h->path[0] != '\0') {
        (void)unlink(h->path);
    }
    free_http(h);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Serves the administration's pages with libmicrohttpd, on a thread of its own.
 */
#include "daemon/http_mhd.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "daemon/bearer.h"
#include "daemon/fault.h"
#include "daemon/host_name.h"
#include "daemon/http_limits.h"
#include "daemon/http_listen.h"
#include "daemon/listen.h"
#include "daemon/process.h"
#include "daemon/reload_options.h"
#include "daemon/web_assets.h"
#include "wire/address.h"

#include <errno.h>
#include <limits.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    CONNECTION_MEMORY = 16 * 1024,
    LOOP_MS = 2000 /* a loop that needs longer hangs */
};

/* Answers, by status code, for /metrics. */
enum answer {
    ANSWERED_200,
    ANSWERED_400,
    ANSWERED_401,
    ANSWERED_404,
    ANSWERED_405,
    ANSWERED_421,
    ANSWERED_503,
    ANSWERS
};
static const unsigned status_of[ANSWERS] = {200, 400, 401, 404, 405, 421, 503};
static const char *const status_word[ANSWERS] = {"200", "400", "401", "404", "405", "421", "503"};

struct http {
    struct MHD_Daemon *server;
    struct pages *pages;            /* borrowed, as the next */
    const struct http_fleet *fleet; /* NULL = no web page */
    bool has_token;
    bool is_local;        /* on loopback: who asks names no other host */
    pthread_mutex_t lock; /* the token */
    struct bearer token;
    char path[sizeof(((struct sockaddr_un *)NULL)->sun_path)]; /* of a unix socket; "" = none */
    pthread_t thread;
    int end_fd; /* readable: the thread is to end */

    /* The thread's alone. */
    struct http_limits limits;
    uint64_t answered[ANSWERS];
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
                                 "/status   the same as JSON, and this process's identity\n"
                                 "/healthz  200: this process works; no other process is asked\n"
                                 "/readyz   200: the process takes work; not while it drains\n";

/* ---- options ---- */

struct option http_address_option(struct http_options *o)
{
    return option_text("admin",
                       "HOST:PORT",
                       o->admin,
                       sizeof o->admin,
                       "address for /metrics, /healthz, /readyz, /status and a coordinator's web "
                       "page; or unix:PATH (none)");
}

struct option http_token_option(struct http_options *o)
{
    return option_text("admin-token",
                       "FILE",
                       o->token,
                       sizeof o->token,
                       "file with the token that requests to --admin's /metrics and /status must "
                       "send: Authorization: Bearer");
}

static const char *unix_path(const struct http_options *o)
{
    return strncmp(o->admin, "unix:", 5) == 0 ? o->admin + 5 : NULL;
}

static bool complain(const char *daemon, const char *what, const char *which, const char *why)
{
    fault_print(daemon, "%s '%s': %s", what, which, why);
    return false;
}

/* None named is none. False after printing what is wrong. */
static bool load_token(struct bearer *t, const struct http_options *o, const char *daemon)
{
    const char *wrong = o->token[0] == '\0' ? NULL : bearer_read(t, o->token);

    return wrong == NULL || complain(daemon, "cannot take --admin-token", o->token, wrong);
}

static bool check_token(const struct http_options *o, const char *daemon)
{
    struct bearer token = {.size = 0};
    const bool good = load_token(&token, o, daemon);

    bearer_wipe(&token);
    return good;
}

bool http_check(const struct http_options *o, const char *daemon)
{
    const char *path = unix_path(o);

    if (o->admin[0] == '\0') {
        return o->token[0] == '\0' || complain(daemon,
                                               "--admin-token",
                                               o->token,
                                               "--admin-token needs --admin, which is missing");
    }
    if (path != NULL) {
        if (path[0] != '/' || strlen(path) >= sizeof(((struct http *)NULL)->path)) {
            return complain(daemon,
                            "--admin",
                            o->admin,
                            "a UNIX socket needs an absolute path of at most 107 bytes");
        }
        return check_token(o, daemon);
    }
    if (!listen_allowed(daemon, "admin", o->admin, true)) {
        return false; // it is no address
    }
    if (!address_is_loopback(o->admin) && o->token[0] == '\0') {
        return complain(
            daemon, "--admin", o->admin, "the address is beyond loopback: --admin-token is needed");
    }
    return check_token(o, daemon);
}

/* ---- answers ---- */

static bool is_token(struct http *h, struct MHD_Connection *connection)
{
    const char *given = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Authorization");

    (void)pthread_mutex_lock(&h->lock);
    const bool is = bearer_is(&h->token, given);
    (void)pthread_mutex_unlock(&h->lock);
    return is;
}

static void put_own(const struct http *h, struct buffer *out)
{
    static const struct metric answers = {
        "ringhold_admin_answers_total", "Answers of this HTTP server, by code.", METRIC_COUNTER};
    static const struct metric cuts = {"ringhold_admin_cut_total",
                                       "Connections that this HTTP server closed, by reason.",
                                       METRIC_COUNTER};
    static const char *const cut_word[HTTP_CUTS] = {
        [HTTP_CUT_DEADLINE] = "deadline", [HTTP_CUT_IDLE] = "idle", [HTTP_CUT_CROWDED] = "crowded"};
    struct metrics m;

    metrics_begin(&m, METRICS_TEXT, out);
    for (size_t i = 0; i < ANSWERS; i++) {
        metrics_put_labelled(&m, &answers, "code", status_word[i], h->answered[i]);
    }
    for (size_t i = 0; i < HTTP_CUTS; i++) {
        metrics_put_labelled(&m, &cuts, "reason", cut_word[i], h->limits.cut[i]);
    }
    process_metrics(&m);
    reload_metrics(&m);
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
    (void)MHD_add_response_header(response, "Content-Security-Policy", WEB_ASSETS_POLICY);
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
        return answer_text(
            h, connection, ANSWERED_503, "the daemon's event loop does not respond\n");
    case PAGES_GONE:
        break;
    }
    buffer_fini(&text);
    return answer_text(h, connection, ANSWERED_503, "the daemon is starting or stopping\n");
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
static enum MHD_Result answer_fleet(struct http *h, struct MHD_Connection *connection)
{
    const char *known = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "ring");
    struct buffer text = {0};
    const bool answered = h->fleet->put(h->fleet->context, known == NULL ? "" : known, &text);

    return answer(h,
                  connection,
                  answered ? ANSWERED_200 : ANSWERED_503,
                  "application/json; charset=utf-8",
                  &text);
}

/* Likewise. */
static enum MHD_Result answer_actors(struct http *h, struct MHD_Connection *connection)
{
    static const enum answer which[] = {[HTTP_TOLD] = ANSWERED_200,
                                        [HTTP_TOLD_MALFORMED] = ANSWERED_400,
                                        [HTTP_TOLD_NOT] = ANSWERED_503};
    const enum MHD_ValueKind url = MHD_GET_ARGUMENT_KIND;
    const struct http_actors asked = {
        .node = MHD_lookup_connection_value(connection, url, "node"),
        .kind = MHD_lookup_connection_value(connection, url, "kind"),
        .prefix = MHD_lookup_connection_value(connection, url, "prefix"),
        .cursor = MHD_lookup_connection_value(connection, url, "cursor"),
        .limit = MHD_lookup_connection_value(connection, url, "limit")};
    struct buffer text = {0};
    const enum http_told told = h->fleet->put_actors(h->fleet->context, &asked, &text);

    return answer(h, connection, which[told], "application/json; charset=utf-8", &text);
}

static enum MHD_Result answer_file(struct http *h, struct MHD_Connection *connection,
                                   const struct web_asset *file)
{
    struct buffer text = {0};

    buffer_put(&text, file->content.data, file->content.size);
    return answer(h, connection, ANSWERED_200, file->type, &text);
}

static enum MHD_Result answer_path(struct http *h, struct MHD_Connection *connection,
                                   const char *path)
{
    const struct route *route = find(path);
    const struct web_asset *file = h->fleet == NULL ? NULL : web_asset_find(path);

    if (file != NULL) { // there is nothing in it that others may not see
        return answer_file(h, connection, file);
    }
    if (h->has_token && (route == NULL || !route->open) && !is_token(h, connection)) {
        return answer_text(
            h, connection, ANSWERED_401, "this page needs a token: Authorization: Bearer\n");
    }
    if (route != NULL) {
        return answer_page(h, connection, route);
    }
    if (h->fleet != NULL && strcmp(path, "/fleet") == 0) {
        return answer_fleet(h, connection);
    }
    if (h->fleet != NULL && strcmp(path, "/actors") == 0) {
        return answer_actors(h, connection);
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
    const char *host = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Host");
    const struct http *h = user;
    if (h->is_local && !host_is_local(host)) {
        return answer_text(user,
                           connection,
                           ANSWERED_421,
                           "the Host header is neither an address nor localhost\n");
    }
    if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0) {
        return answer_text(user, connection, ANSWERED_405, "only GET and HEAD\n");
    }
    return answer_path(user, connection, path);
}

/* ---- who comes and goes ---- */

static uint64_t now_ms(void)
{
    return clock_boottime_us() / 1000;
}

static struct http_client_address address_of(const struct sockaddr *from)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    struct http_client_address address = {{0}};

    if (from != NULL && from->sa_family == AF_INET) {
        const struct sockaddr_in *in = (const void *)from;

        memcpy(address.byte, mapped, sizeof mapped);
        memcpy(address.byte + sizeof mapped, &in->sin_addr, 4);
    } else if (from != NULL && from->sa_family == AF_INET6) {
        const struct sockaddr_in6 *in6 = (const void *)from;

        memcpy(address.byte,
               &in6->sin6_addr,
               memcmp(&in6->sin6_addr, mapped, sizeof mapped) == 0 ? 16 : 8);
    }
    return address;
}

static void on_connection(void *user, struct MHD_Connection *connection, void **context,
                          enum MHD_ConnectionNotificationCode what)
{
    struct http *h = user;

    if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
        if (*context != NULL) {
            http_limits_gone(&h->limits, *context);
        }
        return;
    }
    const union MHD_ConnectionInfo *from =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    const struct http_client_address address = address_of(from == NULL ? NULL : from->client_addr);
    const union MHD_ConnectionInfo *socket =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct http_client *client = http_limits_come(&h->limits, &address, now_ms());

    ASSERT(client != NULL); // as many places as connections
    client->fd = socket->connect_fd;
    *context = client;
}

static void on_completed(void *user, struct MHD_Connection *connection, void **state,
                         enum MHD_RequestTerminationCode how)
{
    struct http *h = user;
    const union MHD_ConnectionInfo *context =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

    (void)state;
    if (how == MHD_REQUEST_TERMINATED_COMPLETED_OK) {
        http_limits_answered(&h->limits, context->socket_context, now_ms());
    }
}

/* The server notices in its next turn: no other thread has the socket. */
static void hang_up(struct http *h)
{
    const struct http_client *client = NULL;

    while ((client = http_limits_cut(&h->limits, now_ms())) != NULL) {
        (void)shutdown(client->fd, SHUT_RDWR);
    }
}

static int wait_ms(const struct http *h)
{
    MHD_UNSIGNED_LONG_LONG server = 0;
    uint64_t wait = http_limits_wait_ms(&h->limits, now_ms());

    if (MHD_get_timeout(h->server, &server) == MHD_YES && server < wait) {
        wait = server;
    }
    return wait > INT_MAX ? -1 : (int)wait;
}

static void *serve(void *user)
{
    struct http *h = user;
    struct pollfd on[2] = {
        {.fd = MHD_get_daemon_info(h->server, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd,
         .events = POLLIN},
        {.fd = h->end_fd, .events = POLLIN},
    };

    while (on[1].revents == 0) {
        (void)MHD_run(h->server);
        hang_up(h);
        (void)poll(on, 2, wait_ms(h));
    }
    return NULL;
}

/* ---- life ---- */

static void free_http(struct http *h)
{
    bearer_wipe(&h->token);
    (void)pthread_mutex_destroy(&h->lock);
    if (h->end_fd >= 0) {
        (void)close(h->end_fd);
    }
    mem_free(h);
}

/* Takes `fd`, also if it fails. */
static bool start(struct http *h, int fd)
{
    h->server = MHD_start_daemon(MHD_USE_EPOLL,
                                 0,
                                 NULL,
                                 NULL,
                                 on_request,
                                 h,
                                 MHD_OPTION_LISTEN_SOCKET,
                                 fd,
                                 MHD_OPTION_NOTIFY_CONNECTION,
                                 on_connection,
                                 h,
                                 MHD_OPTION_NOTIFY_COMPLETED,
                                 on_completed,
                                 h,
                                 MHD_OPTION_CONNECTION_LIMIT,
                                 HTTP_CLIENTS_MAX,
                                 MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                                 (size_t)CONNECTION_MEMORY,
                                 MHD_OPTION_END);
    if (h->server == NULL) {
        (void)close(fd);
        return false;
    }
    h->end_fd = eventfd(0, EFD_CLOEXEC);
    if (h->end_fd < 0 || pthread_create(&h->thread, NULL, serve, h) != 0) {
        MHD_stop_daemon(h->server);
        return false;
    }
    return true;
}

bool http_open(const struct http_options *o, const char *daemon, struct pages *pages,
               const struct http_fleet *fleet, struct http **out)
{
    const char *path = unix_path(o);
    struct http *h = NULL;

    *out = NULL;
    if (o->admin[0] == '\0') {
        return true;
    }
    h = mem_new(1, sizeof *h);
    h->pages = pages;
    h->fleet = fleet;
    h->end_fd = -1;
    (void)pthread_mutex_init(&h->lock, NULL);
    if (!load_token(&h->token, o, daemon)) {
        free_http(h);
        return false;
    }
    h->has_token = o->token[0] != '\0';
    h->is_local = path == NULL && address_is_loopback(o->admin);
    const int fd = path != NULL ? http_listen_unix(path) : http_listen_tcp(o->admin);
    if (fd < 0) {
        free_http(h);
        return complain(daemon, "cannot listen on --admin", o->admin, strerror(errno));
    }
    (void)snprintf(h->path, sizeof h->path, "%s", path != NULL ? path : "");
    if (!start(h, fd)) {
        free_http(h);
        return complain(daemon, "cannot serve --admin", o->admin, "no more threads or memory");
    }
    log_info("admin", "listening", "address=%s token=%s", o->admin, h->has_token ? "yes" : "no");
    *out = h;
    return true;
}

bool http_reload(struct http *h, const struct http_options *o, const char *daemon)
{
    struct bearer token = {.size = 0};

    if (h == NULL || !h->has_token) {
        return true;
    }
    const bool good = load_token(&token, o, daemon);
    if (good) {
        (void)pthread_mutex_lock(&h->lock);
        h->token = token;
        (void)pthread_mutex_unlock(&h->lock);
    }
    bearer_wipe(&token);
    return good;
}

void http_close(struct http *h)
{
    if (h == NULL) {
        return;
    }
    (void)eventfd_write(h->end_fd, 1);
    (void)pthread_join(h->thread, NULL);
    MHD_stop_daemon(h->server);
    if (h->path[0] != '\0') {
        (void)unlink(h->path);
    }
    free_http(h);
}

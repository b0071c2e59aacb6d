/* SPDX-License-Identifier: Apache-2.0
 *
 * Serves the administration's pages with libmicrohttpd, on a thread of its own.
 */
#include "daemon/http_mhd.h"
#include "daemon/http_accept.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "daemon/fault.h"
#include "daemon/host_name.h"
#include "daemon/http_limits.h"
#include "daemon/http_listen.h"
#include "daemon/http_options.h"
#include "daemon/process.h"
#include "daemon/reload_options.h"
#include "daemon/web_assets.h"
#include "wire/address.h"

#include <errno.h>
#include <limits.h>
#include <microhttpd.h>
#include <netdb.h>
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
    ANSWERED_403,
    ANSWERED_404,
    ANSWERED_405,
    ANSWERED_409,
    ANSWERED_413,
    ANSWERED_421,
    ANSWERED_503,
    ANSWERS
};
static const unsigned status_of[ANSWERS] = {200, 400, 401, 403, 404, 405, 409, 413, 421, 503};
static const char *const status_word[ANSWERS] = {
    "200", "400", "401", "403", "404", "405", "409", "413", "421", "503"};

/* A request under way. */
struct http_request {
    bool posts;
    struct http_form form; /* of one that posts */
};

struct http {
    struct MHD_Daemon *server;
    struct pages *pages;            /* borrowed, as the next */
    const struct http_fleet *fleet; /* NULL = no web page */
    bool has_token;
    bool has_operator;    /* a token of operators, likewise from its start on */
    bool is_local;        /* on loopback: who asks names no other host */
    pthread_mutex_t lock; /* the tokens */
    struct http_tokens tokens;
    char path[HTTP_UNIX_PATH_SIZE]; /* of a unix socket; "" = none */
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

/* The first of them, for who asks for it so. */
static const struct route open_metrics = {
    "/metrics",
    PAGE_METRICS_OPEN,
    "application/openmetrics-text; version=1.0.0; charset=utf-8",
    false};

static const char index_text[] = "/metrics  for Prometheus\n"
                                 "/status   the same as JSON, and this process's identity\n"
                                 "/healthz  200: this process works; no other process is asked\n"
                                 "/readyz   200: the process takes work; not while it drains\n";

/* ---- answers ---- */

enum shown { SHOWN_NONE, SHOWN_READER, SHOWN_OPERATOR };

static enum shown token_of(struct http *h, struct MHD_Connection *connection)
{
    const char *given = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Authorization");

    (void)pthread_mutex_lock(&h->lock);
    const enum shown shown = h->has_operator && bearer_is(&h->tokens.operator, given)
                                 ? SHOWN_OPERATOR
                             : h->has_token && bearer_is(&h->tokens.reader, given) ? SHOWN_READER
                                                                                   : SHOWN_NONE;
    (void)pthread_mutex_unlock(&h->lock);
    return shown;
}

static void put_own(const struct http *h, enum metrics_format format, struct buffer *out)
{
    static const struct metric answers = {
        "ringhold_admin_answers_total", "Answers of this HTTP server, by code.", METRIC_COUNTER};
    static const struct metric cuts = {"ringhold_admin_cut_total",
                                       "Connections that this HTTP server closed, by reason.",
                                       METRIC_COUNTER};
    static const char *const cut_word[HTTP_CUTS] = {
        [HTTP_CUT_DEADLINE] = "deadline", [HTTP_CUT_IDLE] = "idle", [HTTP_CUT_CROWDED] = "crowded"};
    struct metrics m;

    metrics_begin(&m, format, out);
    for (size_t i = 0; i < ANSWERS; i++) {
        metrics_put_labelled(&m, &answers, "code", status_word[i], h->answered[i]);
    }
    for (size_t i = 0; i < HTTP_CUTS; i++) {
        metrics_put_labelled(&m, &cuts, "reason", cut_word[i], h->limits.cut[i]);
    }
    process_metrics(&m);
    reload_metrics(&m);
    metrics_end(&m);
    if (format == METRICS_OPEN) {
        buffer_put(out, METRICS_OPEN_END, sizeof METRICS_OPEN_END - 1);
    }
}

/* Takes `text`. `allow`: the methods that may be used, of a 405. */
static enum MHD_Result answer_allowing(struct http *h, struct MHD_Connection *connection,
                                       enum answer which, const char *allow, const char *type,
                                       struct buffer *text)
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
        (void)MHD_add_response_header(response, "Allow", allow);
    }
    h->answered[which]++;
    result = MHD_queue_response(connection, status_of[which], response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result answer(struct http *h, struct MHD_Connection *connection, enum answer which,
                              const char *type, struct buffer *text)
{
    return answer_allowing(h, connection, which, NULL, type, text);
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
        if (route->page == PAGE_METRICS || route->page == PAGE_METRICS_OPEN) {
            put_own(h, route->page == PAGE_METRICS ? METRICS_TEXT : METRICS_OPEN, &text);
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

static const char json_type[] = "application/json; charset=utf-8";

static enum MHD_Result answer_told(struct http *h, struct MHD_Connection *connection,
                                   enum http_told told, struct buffer *text)
{
    static const enum answer which[] = {[HTTP_TOLD] = ANSWERED_200,
                                        [HTTP_TOLD_MALFORMED] = ANSWERED_400,
                                        [HTTP_TOLD_REFUSED] = ANSWERED_409,
                                        [HTTP_TOLD_NOT] = ANSWERED_503};

    return answer(h, connection, which[told], json_type, text);
}

static const char *word_of(struct MHD_Connection *connection, const char *key)
{
    return MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, key);
}

/* Who asks, as text; true: from this machine. */
static bool address_text(const struct http *h, struct MHD_Connection *connection,
                         char out[INET6_ADDRSTRLEN])
{
    static const char mapped[] = "::ffff:"; // an IPv4 address that came by an IPv6 socket
    const union MHD_ConnectionInfo *from =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    const struct sockaddr *a = from == NULL ? NULL : from->client_addr;
    const socklen_t size = a == NULL                  ? 0
                           : a->sa_family == AF_INET  ? sizeof(struct sockaddr_in)
                           : a->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
                                                      : 0;
    struct address address = {.port = 0};
    char text[ADDRESS_SIZE_MAX + 8];

    (void)snprintf(out, INET6_ADDRSTRLEN, "%s", h->path[0] != '\0' ? "unix" : "unknown");
    if (size == 0 ||
        getnameinfo(a, size, address.host, sizeof address.host, NULL, 0, NI_NUMERICHOST) != 0) {
        return h->path[0] != '\0';
    }
    const size_t skip =
        strncmp(address.host, mapped, sizeof mapped - 1) == 0 ? sizeof mapped - 1 : 0;
    (void)snprintf(out, INET6_ADDRSTRLEN, "%.45s", address.host + skip);
    (void)snprintf(address.host, sizeof address.host, "%s", out);
    address_format(&address, text, sizeof text);
    return address_is_loopback(text);
}

/* Blocks this thread for a second at most: a prober may wait for so long. */
static enum MHD_Result answer_fleet(struct http *h, struct MHD_Connection *connection)
{
    char from[INET6_ADDRSTRLEN];
    const char *known = word_of(connection, "ring");
    const struct http_look look = {.known = known == NULL ? "" : known,
                                   .trend = word_of(connection, "trend"),
                                   .changes = !h->has_operator                     ? "no"
                                              : !address_text(h, connection, from) ? "elsewhere"
                                                                                   : "yes"};
    struct buffer text = {0};
    const bool answered = h->fleet->put(h->fleet->context, &look, &text);

    return answer_told(h, connection, answered ? HTTP_TOLD : HTTP_TOLD_NOT, &text);
}

/* Likewise, as the next two. */
static enum MHD_Result answer_actors(struct http *h, struct MHD_Connection *connection)
{
    const struct http_actors asked = {.node = word_of(connection, "node"),
                                      .kind = word_of(connection, "kind"),
                                      .prefix = word_of(connection, "prefix"),
                                      .cursor = word_of(connection, "cursor"),
                                      .limit = word_of(connection, "limit")};
    struct buffer text = {0};
    const enum http_told told = h->fleet->put_actors(h->fleet->context, &asked, &text);

    return answer_told(h, connection, told, &text);
}

static enum MHD_Result answer_where(struct http *h, struct MHD_Connection *connection)
{
    struct buffer text = {0};
    const enum http_told told =
        h->fleet->put_where(h->fleet->context, word_of(connection, "id"), &text);

    return answer_told(h, connection, told, &text);
}

static enum MHD_Result answer_hot(struct http *h, struct MHD_Connection *connection)
{
    struct buffer text = {0};
    const enum http_told told = h->fleet->put_hot(h->fleet->context, &text);

    return answer_told(h, connection, told, &text);
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
    static const struct {
        const char *path;
        enum MHD_Result (*answer)(struct http *h, struct MHD_Connection *connection);
    } of_fleet[] = {{"/fleet", answer_fleet},
                    {"/actors", answer_actors},
                    {"/where", answer_where},
                    {"/hot", answer_hot}};
    const struct route *route = find(path);
    const struct web_asset *file = h->fleet == NULL ? NULL : web_asset_find(path);

    if (file != NULL) { // there is nothing in it that others may not see
        return answer_file(h, connection, file);
    }
    if (h->has_token && (route == NULL || !route->open) && token_of(h, connection) == SHOWN_NONE) {
        return answer_text(
            h, connection, ANSWERED_401, "this page needs a token: Authorization: Bearer\n");
    }
    if (route != NULL) {
        const char *accept = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Accept");
        const bool open = route->page == PAGE_METRICS && http_accept_open(accept);

        return answer_page(h, connection, open ? &open_metrics : route);
    }
    for (size_t i = 0; h->fleet != NULL && i < sizeof of_fleet / sizeof of_fleet[0]; i++) {
        if (strcmp(path, of_fleet[i].path) == 0) {
            return of_fleet[i].answer(h, connection);
        }
    }
    return strcmp(path, "/") == 0 ? answer_text(h, connection, ANSWERED_200, index_text)
                                  : answer_text(h, connection, ANSWERED_404, "no such page\n");
}

/* ---- what operators do ---- */

/* HTTP_DEED_COUNT: the path is none. */
static enum http_deed deed_of(const struct http *h, const char *path)
{
#define X(name, path) (path),
    static const char *const paths[] = {HTTP_DEEDS(X)};
#undef X
    unsigned i = 0;

    while (h->fleet != NULL && i < HTTP_DEED_COUNT && strcmp(path, paths[i]) != 0) {
        i++;
    }
    return h->fleet == NULL ? HTTP_DEED_COUNT : (enum http_deed)i;
}

/* Browsers send no other site's Authorization, and ask first whether they may: nobody says yes. */
static enum MHD_Result answer_deed(struct http *h, struct MHD_Connection *connection,
                                   enum http_deed deed, const struct http_form *form)
{
    char from[INET6_ADDRSTRLEN];
    struct buffer text = {0};

    if (!h->has_operator) {
        return answer_text(h,
                           connection,
                           ANSWERED_403,
                           "this coordinator has no --operator-token: nobody changes the fleet by "
                           "its page\n");
    }
    if (!address_text(h, connection, from)) {
        return answer_text(h,
                           connection,
                           ANSWERED_403,
                           "operators ask from this machine alone, for nothing is encrypted: put "
                           "a proxy with TLS on it, or forward a port\n");
    }
    if (token_of(h, connection) != SHOWN_OPERATOR) {
        return answer_text(h,
                           connection,
                           ANSWERED_401,
                           "this needs the operators' token: Authorization: Bearer\n");
    }
    if (form->fault != NULL) {
        buffer_put(&text, form->fault, strlen(form->fault));
        buffer_put(&text, "\n", 1);
        return answer(h, connection, ANSWERED_400, "text/plain; charset=utf-8", &text);
    }
    const enum http_told told =
        h->fleet->operate(h->fleet->context, deed, &form->fields, from, &text);
    return answer_told(h, connection, told, &text);
}

static enum MHD_Result answer_method(struct http *h, struct MHD_Connection *connection, bool posts)
{
    static const char words[] = "only GET and HEAD\n";
    static const char words_of_deeds[] = "only POST\n";
    const char *which = posts ? words_of_deeds : words;
    struct buffer text = {0};

    buffer_put(&text, which, strlen(which));
    return answer_allowing(h,
                           connection,
                           ANSWERED_405,
                           posts ? "POST" : "GET, HEAD",
                           "text/plain; charset=utf-8",
                           &text);
}

/* All of it is here. */
static enum MHD_Result answer_request(struct http *h, struct MHD_Connection *connection,
                                      const char *path, const char *method, struct http_request *r)
{
    const char *host = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Host");
    const enum http_deed deed = deed_of(h, path);

    if (h->is_local && !host_is_local(host)) {
        return answer_text(
            h, connection, ANSWERED_421, "the Host header is neither an address nor localhost\n");
    }
    if (r->posts && deed != HTTP_DEED_COUNT) {
        return r->form.too_large
                   ? answer_text(h, connection, ANSWERED_413, "the body has more than 8192 bytes\n")
                   : answer_deed(h, connection, deed, &r->form);
    }
    if (deed != HTTP_DEED_COUNT || (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)) {
        return answer_method(h, connection, deed != HTTP_DEED_COUNT);
    }
    return answer_path(h, connection, path);
}

/* The head is here, and what is in the body not yet. */
static enum MHD_Result begin(struct http *h, struct MHD_Connection *connection, const char *method,
                             void **state)
{
    struct http_request *r = mem_new(1, sizeof *r);

    *state = r;
    r->posts = strcmp(method, "POST") == 0;
    http_form_begin(&r->form, connection);
    return r->form.too_large
               ? answer_text(h, connection, ANSWERED_413, "the body has more than 8192 bytes\n")
               : MHD_YES;
}

// NOLINTBEGIN(bugprone-easily-swappable-parameters,readability-function-size): libmicrohttpd's
static enum MHD_Result on_request(void *user, struct MHD_Connection *connection, const char *path,
                                  const char *method, const char *version, const char *upload,
                                  size_t *upload_size, void **state)
{
    (void)version;
    if (*state == NULL) {
        return begin(user, connection, method, state);
    }
    struct http_request *r = *state;
    if (*upload_size > 0) {
        http_form_take(&r->form, upload, *upload_size); // what is no form is passed over
        *upload_size = 0;
        return MHD_YES;
    }
    http_form_end(&r->form);
    return answer_request(user, connection, path, method, r);
}
// NOLINTEND(bugprone-easily-swappable-parameters,readability-function-size)

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

    if (how == MHD_REQUEST_TERMINATED_COMPLETED_OK) {
        http_limits_answered(&h->limits, context->socket_context, now_ms());
    }
    if (*state != NULL) {
        http_form_end(&((struct http_request *)*state)->form);
        mem_free(*state);
        *state = NULL;
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
    http_tokens_wipe(&h->tokens);
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
    const char *path = http_unix_path(o);
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
    if (!http_tokens_load(&h->tokens, o, daemon)) {
        free_http(h);
        return false;
    }
    h->has_token = h->tokens.reader.size > 0;
    h->has_operator = h->tokens.operator.size> 0;
    h->is_local = path == NULL && address_is_loopback(o->admin);
    const int fd = path != NULL ? http_listen_unix(path) : http_listen_tcp(o->admin);
    if (fd < 0) {
        fault_print(daemon, "cannot listen on --admin '%s': %s", o->admin, strerror(errno));
        free_http(h);
        return false;
    }
    (void)snprintf(h->path, sizeof h->path, "%s", path != NULL ? path : "");
    if (!start(h, fd)) {
        free_http(h);
        fault_print(daemon, "cannot serve --admin '%s': no more threads or memory", o->admin);
        return false;
    }
    log_info("admin", "listening", "address=%s token=%s", o->admin, h->has_token ? "yes" : "no");
    *out = h;
    return true;
}

bool http_reload(struct http *h, const struct http_options *o, const char *daemon)
{
    struct http_tokens tokens = {.reader = {.size = 0}};

    if (h == NULL || (!h->has_token && !h->has_operator)) {
        return true;
    }
    const bool good = http_tokens_load(&tokens, o, daemon);
    if (good) {
        (void)pthread_mutex_lock(&h->lock);
        h->tokens = tokens;
        (void)pthread_mutex_unlock(&h->lock);
    }
    http_tokens_wipe(&tokens);
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

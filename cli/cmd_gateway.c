/* SPDX-License-Identifier: Apache-2.0
 *
 * `ringhold gateway`: its options, what must hold among them, and the start of
 * the daemon.
 */
#include "base/list.h"
#include "cli/commands.h"
#include "daemon/admin.h"
#include "daemon/fault.h"
#include "daemon/link_args.h"
#include "daemon/listen.h"
#include "daemon/options.h"
#include "daemon/reload_options.h"
#include "daemon/services.h"
#include "daemon/traces.h"
#include "gateway/access/hmac.h"
#include "gateway/access/keyring.h"
#include "gateway/gateway_uv.h"
#include "wire/gateway_id.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    DEADLINE_MAX_MS = 60000,
    IN_FLIGHT_MAX = 10000000,
    DRAIN_MAX_MS = 600000,
    AUTH_TIME_MAX_MS = 600000,
    RATE_MAX = 10000000,
    LOGIN_SPREAD_MAX = 65536,
    PPM = 1000000
};

struct gateway_args {
    char cluster[VIEW_NAME_MAX + 1];
    char name[VIEW_NAME_MAX + 1];
    char resp[VIEW_ADDRESS_MAX + 1];
    char frames[VIEW_ADDRESS_MAX + 1];
    char ws[VIEW_ADDRESS_MAX + 1];
    char skynet[VIEW_ADDRESS_MAX + 1];
    char http_api[VIEW_ADDRESS_MAX + 1];
    char https_api[VIEW_ADDRESS_MAX + 1];
    char resp_tls[VIEW_ADDRESS_MAX + 1];
    char frames_tls[VIEW_ADDRESS_MAX + 1];
    char wss[VIEW_ADDRESS_MAX + 1];
    char tls_cert[512];
    char tls_key[512];
    char proxy_from[1024];
    char ws_path[128];
    char ws_origins[1024];
    char join[ADMIN_ADDRESSES_SIZE];
    char auth_keys[512];
    char auth_kind[RING_ROLE_MAX + 1];
    char level[8];
    char traces[TRACES_WHERE_SIZE];
    char trace_sample[16];
    bool insecure;
    struct link_args links;
    struct http_options http;
    char address[ADMIN_COORDINATORS_MAX][128];
    const char *coordinator[ADMIN_COORDINATORS_MAX];
};

static uint32_t burst_of(struct bucket_rate r, uint32_t part_of_second)
{
    const uint32_t part = r.rate / part_of_second;

    if (r.burst != 0) {
        return r.burst;
    }
    return part == 0 ? 1 : part;
}

static void fill_bursts(struct clients_config *c)
{
    c->admission.accept.burst = burst_of(c->admission.accept, 10);
    c->admission.address.burst = burst_of(c->admission.address, 1);
    c->requests.burst = burst_of(c->requests, 1);
}

static const char *given(const char *text)
{
    return text[0] != '\0' ? text : NULL;
}

/* A kind by its number, or the role whose first kind it is. */
static bool check_login(const char *word, struct login_config *login)
{
    char *end = NULL;
    const unsigned long number = strtoul(word, &end, 10);

    login->asked = word[0] != '\0';
    if (word[0] < '0' || word[0] > '9' || *end != '\0') {
        (void)snprintf(login->role, sizeof login->role, "%s", word);
        return true;
    }
    if (number > UINT16_MAX) {
        fault_print("gateway", "--auth-kind: there is no kind %s", word);
        return false;
    }
    login->kind = (uint16_t)number;
    return true;
}

/* Is it a pair? */
static bool check_certificate(const struct gateway_options *o, bool wanted)
{
    char why[TLS_WHY_SIZE];

    if ((o->tls_cert == NULL) != (o->tls_key == NULL)) {
        fault_print("gateway", "--tls-cert and --tls-key: one needs the other");
        return false;
    }
    if ((o->tls_cert != NULL) != wanted) {
        fault_print(
            "gateway",
            "--tls-cert needs one of --frames-tls, --wss, --resp-tls, --https, and these need "
            "--tls-cert");
        return false;
    }
    struct tls_keys *keys = wanted ? tls_keys_load(o->tls_cert, o->tls_key, why) : NULL;
    if (wanted && keys == NULL) {
        fault_print("gateway", "cannot take --tls-cert, --tls-key: %s", why);
    }
    tls_keys_free(keys);
    return !wanted || keys != NULL;
}

/* What is encrypted and asks who comes may be anywhere. */
static bool check_place(const struct gateway_args *w, const char *address, struct entry_shape shape)
{
    const bool asks = w->auth_keys[0] != '\0' || w->auth_kind[0] != '\0';
    const bool guarded = shape.tls && shape.speech != CLIENT_RESP && asks;

    return listen_allowed("gateway", shape.name, address, w->insecure || guarded);
}

/* Are they any? */
static bool check_keys(const char *path)
{
    struct keyring keys;
    char why[KEYRING_WHY_SIZE];
    const bool good = path == NULL || keyring_load(path, &keys, why);

    if (!good) {
        fault_print("gateway", "cannot take --auth-keys: %s", why);
    } else if (path != NULL) {
        hmac_wipe(&keys, sizeof keys);
    }
    return good;
}

/* No port is for two, but 0, which is any. */
static bool check_apart(const struct gateway_options *o)
{
    for (size_t i = 0; i < ENTRY_COUNT; i++) {
        for (size_t j = 0; j < i && o->at[i] != NULL; j++) {
            const char *port = strrchr(o->at[i], ':');

            if (o->at[j] != NULL && strcmp(o->at[i], o->at[j]) == 0 && strcmp(port, ":0") != 0) {
                fault_print("gateway",
                            "--%s and --%s are both %s: give each listener its own address",
                            entry_shape((enum entry)j).name,
                            entry_shape((enum entry)i).name,
                            o->at[i]);
                return false;
            }
        }
    }
    return true;
}

/* Where players come in. */
static bool check_players(struct gateway_args *w, struct gateway_options *o)
{
    bool any = false;
    bool any_tls = false;

    o->at[ENTRY_RESP] = w->resp;
    o->at[ENTRY_FRAMES] = given(w->frames);
    o->at[ENTRY_WS] = given(w->ws);
    o->at[ENTRY_SKYNET] = given(w->skynet);
    o->at[ENTRY_RESP_TLS] = given(w->resp_tls);
    o->at[ENTRY_FRAMES_TLS] = given(w->frames_tls);
    o->at[ENTRY_WSS] = given(w->wss);
    o->at[ENTRY_HTTP] = given(w->http_api);
    o->at[ENTRY_HTTPS] = given(w->https_api);
    o->tls_cert = given(w->tls_cert);
    o->tls_key = given(w->tls_key);
    o->transports.upgrade = (struct upgrade_rules){.path = w->ws_path, .origins = w->ws_origins};
    for (size_t i = 0; i < ENTRY_COUNT; i++) {
        const struct entry_shape shape = entry_shape((enum entry)i);

        if (o->at[i] != NULL && !check_place(w, o->at[i], shape)) {
            return false;
        }
        any |= o->at[i] != NULL && shape.speech != CLIENT_RESP;
        any_tls |= o->at[i] != NULL && shape.tls;
    }
    o->auth_keys = given(w->auth_keys);
    if ((o->auth_keys != NULL || w->auth_kind[0] != '\0') && !any) {
        fault_print(
            "gateway",
            "--auth-keys and --auth-kind need --frames, --ws, --http, or their TLS variants");
        return false;
    }
    if (o->auth_keys == NULL && w->auth_kind[0] != '\0' &&
        (o->at[ENTRY_HTTP] != NULL || o->at[ENTRY_HTTPS] != NULL)) {
        fault_print("gateway",
                    "--http and --https take tokens, but no logins: with --auth-kind they need "
                    "--auth-keys");
        return false;
    }
    if (!check_apart(o) || !check_login(w->auth_kind, &o->clients.login) ||
        !check_certificate(o, any_tls) || !check_keys(o->auth_keys)) {
        return false;
    }
    if (w->ws_path[0] != '/') {
        fault_print("gateway", "--ws-path: '%s' does not begin with '/'", w->ws_path);
        return false;
    }
    return true;
}

/* What is divided among threads comes to one at least. */
static bool enough(const struct gateway_options *o, const char *key, uint32_t value)
{
    if (value < o->threads) {
        fault_print("gateway",
                    "--%s: must be at least one for each of %" PRIu32 " threads, not %" PRIu32 "",
                    key,
                    o->threads,
                    value);
    }
    return value >= o->threads;
}

static bool check_proxies(const struct gateway_args *w, struct gateway_options *o)
{
    if (!ranges_parse(w->proxy_from, &o->proxies)) {
        fault_print("gateway",
                    "--proxy-from: '%s' is not CIDR[,CIDR…], at most %d",
                    w->proxy_from,
                    RANGES_MAX);
        return false;
    }
    return true;
}

/* A part of all, as "0.01". */
static bool check_sample(const struct gateway_args *w, uint32_t *ppm)
{
    char *end = NULL;
    const double rate = strtod(w->trace_sample, &end);

    if (end == w->trace_sample || *end != '\0' || !(rate >= 0 && rate <= 1)) {
        fault_print("gateway", "--trace-sample: '%s' is not from 0 to 1", w->trace_sample);
        return false;
    }
    if (rate > 0 && w->traces[0] == '\0') {
        fault_print("gateway", "--trace-sample needs --traces, which says where traces go");
        return false;
    }
    *ppm = (uint32_t)(rate * PPM + 0.5);
    return true;
}

static bool check(struct gateway_args *w, struct gateway_options *o)
{
    size_t count = 0;

    if (admin_split(w->join, w->address, ADMIN_COORDINATORS_MAX, &count) != ERR_OK) {
        fault_print("gateway",
                    "--join: '%s' is not HOST:PORT[,HOST:PORT…], at most %d",
                    w->join,
                    ADMIN_COORDINATORS_MAX);
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        w->coordinator[i] = w->address[i];
    }
    o->coordinators = w->coordinator;
    o->coordinator_count = count;
    o->name = w->name;
    o->cluster = w->cluster;
    struct hello self = {.role = ROLE_GATEWAY};
    (void)snprintf(self.cluster, sizeof self.cluster, "%s", w->cluster);
    (void)snprintf(self.name, sizeof self.name, "%s", w->name);
    o->links = link_args_files(&w->links);
    return link_args_check(&w->links, "gateway", &self) && check_players(w, o) &&
           check_sample(w, &o->clients.trace_ppm) && http_check(&w->http, "gateway");
}

static void add_names(struct options *t, struct gateway_args *w, struct gateway_options *o)
{
    (void)options_add(
        t,
        option_text("name", "NAME", w->name, sizeof w->name, "this gateway's name (gateway-PID)"));
    options_add(
        t, option_text("join", "HOST:PORT,...", w->join, sizeof w->join, "the coordinators (%)"))
        ->alias = "coordinators";
    (void)options_add(
        t, option_text("cluster", "NAME", w->cluster, sizeof w->cluster, "the cluster's name (%)"));
    (void)options_add(t,
                      option_text("role",
                                  "NAME",
                                  o->clients.role,
                                  sizeof o->clients.role,
                                  "keys without @KIND/ belong to this role's first kind (kind 0)"));
}

static void add_listeners(struct options *t, struct gateway_args *w)
{
    (void)options_add(t,
                      option_text("resp",
                                  "HOST:PORT",
                                  w->resp,
                                  sizeof w->resp,
                                  "address for Redis clients (%); port 0: any free port"));
    (void)options_add(
        t,
        option_text("frames",
                    "HOST:PORT",
                    w->frames,
                    sizeof w->frames,
                    "address for clients with the binary protocol (none); port 0: any free port"));
    (void)options_add(
        t,
        option_text(
            "ws",
            "HOST:PORT",
            w->ws,
            sizeof w->ws,
            "address for the binary protocol through WebSockets (none); port 0: any free port"));
    (void)options_add(t,
                      option_text("ws-path",
                                  "PATH",
                                  w->ws_path,
                                  sizeof w->ws_path,
                                  "the path that a WebSocket must ask for (/)"));
    (void)options_add(t,
                      option_text("ws-origins",
                                  "URL,...",
                                  w->ws_origins,
                                  sizeof w->ws_origins,
                                  "origins whose pages may connect: https://a.example,… (any)"));
    (void)options_add(t,
                      option_switch("insecure",
                                    &w->insecure,
                                    "listen beyond loopback although RESP clients need no token "
                                    "and not all traffic is encrypted"));
}

static void add_skynet(struct options *t, struct gateway_args *w)
{
    (void)options_add(
        t,
        option_text(
            "skynet",
            "HOST:PORT",
            w->skynet,
            sizeof w->skynet,
            "like --frames, for skynet's frames with a u16 size (none); port 0: any free port"));
}

static void add_http(struct options *t, struct gateway_args *w)
{
    (void)options_add(t,
                      option_text("http",
                                  "HOST:PORT",
                                  w->http_api,
                                  sizeof w->http_api,
                                  "address for HTTP requests of back ends: call, tell, where, "
                                  "events (none); port 0: any free port"));
    (void)options_add(t,
                      option_text("https",
                                  "HOST:PORT",
                                  w->https_api,
                                  sizeof w->https_api,
                                  "like --http, over TLS (none); port 0: any free port"));
}

static void add_tls(struct options *t, struct gateway_args *w)
{
    (void)options_add(t,
                      option_text("frames-tls",
                                  "HOST:PORT",
                                  w->frames_tls,
                                  sizeof w->frames_tls,
                                  "like --frames, over TLS (none); port 0: any free port"));
    (void)options_add(t,
                      option_text("wss",
                                  "HOST:PORT",
                                  w->wss,
                                  sizeof w->wss,
                                  "like --ws, over TLS (none); port 0: any free port"));
    (void)options_add(t,
                      option_text("resp-tls",
                                  "HOST:PORT",
                                  w->resp_tls,
                                  sizeof w->resp_tls,
                                  "like --resp, over TLS (none); port 0: any free port"));
    (void)options_add(t,
                      option_text("tls-cert",
                                  "FILE",
                                  w->tls_cert,
                                  sizeof w->tls_cert,
                                  "certificate and its chain (PEM); SIGHUP reads it again"));
    (void)options_add(t,
                      option_text("tls-key",
                                  "FILE",
                                  w->tls_key,
                                  sizeof w->tls_key,
                                  "its key (PEM), which other users must not be able to read"));
    (void)options_add(
        t,
        option_reloads(option_text(
            "proxy-from",
            "CIDR,...",
            w->proxy_from,
            sizeof w->proxy_from,
            "proxies that are trusted to tell the client's address: PROXY protocol (none)")));
}

static void add_admin(struct options *t, struct gateway_args *w)
{
    (void)options_add(t, link_ca_option(&w->links));
    (void)options_add(t, link_certificate_option(&w->links));
    (void)options_add(t, link_key_option(&w->links));
    (void)options_add(t, http_address_option(&w->http));
    (void)options_add(t, http_token_option(&w->http));
}

static void add_unauthenticated(struct options *t, struct gateway_args *w,
                                struct gateway_options *o)
{
    (void)options_add(
        t,
        option_text("auth-keys",
                    "FILE",
                    w->auth_keys,
                    sizeof w->auth_keys,
                    "clients must show tokens signed with these keys; SIGHUP reads them again"));
    (void)options_add(
        t,
        option_reloads(option_time(
            "opening-time",
            &o->transports.opening_ms,
            (struct option_range){100, AUTH_TIME_MAX_MS},
            "time limit for the start of a connection, such as TLS and HTTP handshakes (%)")));
    (void)options_add(t,
                      option_reloads(option_time("auth-time",
                                                 &o->clients.auth_ms,
                                                 (struct option_range){100, AUTH_TIME_MAX_MS},
                                                 "time limit to log in (%)")));
    (void)options_add(
        t,
        option_reloads(option_number("unauthenticated",
                                     &o->clients.unauthenticated_max,
                                     (struct option_range){1, IN_FLIGHT_MAX},
                                     "connections that have not logged in yet, in all (%)")));
    (void)options_add(
        t,
        option_reloads(option_number("unauthenticated-address",
                                     &o->clients.unauthenticated_address_max,
                                     (struct option_range){1, IN_FLIGHT_MAX},
                                     "connections that have not logged in yet, per address (%)")));
}

static void add_login(struct options *t, struct gateway_args *w, struct login_config *login)
{
    (void)options_add(
        t,
        option_text("auth-kind",
                    "ROLE|NUMBER",
                    w->auth_kind,
                    sizeof w->auth_kind,
                    "an actor of this kind checks a client's login and names the entity"));
    (void)options_add(t,
                      option_number("auth-spread",
                                    &login->spread,
                                    (struct option_range){1, LOGIN_SPREAD_MAX},
                                    "number of login actors: login-0 to login-15 (%)"));
    (void)options_add(t,
                      option_reloads(option_number("auth-logins",
                                                   &login->at_once_max,
                                                   (struct option_range){1, IN_FLIGHT_MAX},
                                                   "logins in progress, in all (%)")));
}

static void add_rate(struct options *t, const char *key, uint32_t *target, const char *text)
{
    (void)options_add(
        t, option_reloads(option_number(key, target, (struct option_range){0, RATE_MAX}, text)));
}

static void add_limits(struct options *t, struct clients_config *c)
{
    (void)options_add(t,
                      option_reloads(option_number("max-clients",
                                                   &c->connections_max,
                                                   (struct option_range){1, IN_FLIGHT_MAX},
                                                   "connections at a time, in all (%)")));
    add_rate(t,
             "accept-rate",
             &c->admission.accept.rate,
             "new connections per second on --frames; others are told when to retry (0: no limit)");
    add_rate(t,
             "accept-burst",
             &c->admission.accept.burst,
             "burst for --accept-rate (0: the rate's worth of 100 ms)");
    add_rate(t,
             "address-rate",
             &c->admission.address.rate,
             "new connections per second from one address (0: no limit)");
    add_rate(t,
             "address-clients",
             &c->admission.address_count_max,
             "connections to --frames from one address at a time (0: no limit)");
    add_rate(t,
             "request-rate",
             &c->requests.rate,
             "requests per second of a connection to --frames (0: no limit)");
    add_rate(t,
             "request-burst",
             &c->requests.burst,
             "burst for --request-rate (0: the rate's worth of 1 s)");
}

static void add_traces(struct options *t, struct gateway_args *w, struct clients_config *c)
{
    (void)options_add(t, traces_option(w->traces));
    (void)options_add(t,
                      option_text("trace-sample",
                                  "RATE",
                                  w->trace_sample,
                                  sizeof w->trace_sample,
                                  "part of the requests without a trace context that are traced, "
                                  "0 to 1 (%)"));
    (void)options_add(
        t,
        option_number("trace-rate",
                      &c->trace_rate,
                      (struct option_range){1, RATE_MAX},
                      "traces that each thread takes or begins in a second at the most (%)"));
}

static void add_rest(struct options *t, struct gateway_args *w, struct gateway_options *o)
{
    (void)options_add(t,
                      option_reloads(option_number(
                          "deadline-ms",
                          &o->router.deadline_ms,
                          (struct option_range){10, DEADLINE_MAX_MS},
                          "every request is answered within this time, whatever happens (%)")));
    (void)options_add(
        t,
        option_reloads(option_number("in-flight",
                                     &o->router.in_flight_max,
                                     (struct option_range){1, IN_FLIGHT_MAX},
                                     "requests in progress in all; above it clients wait (%)")));
    (void)options_add(
        t,
        option_number(
            "threads",
            &o->threads,
            (struct option_range){1, GATEWAY_THREADS_MAX},
            "event loops; clients are spread over them, and limits are divided among them (%)"));
    (void)options_add(
        t,
        option_reloads(option_number("drain-ms",
                                     &o->drain_ms,
                                     (struct option_range){0, DRAIN_MAX_MS},
                                     "at SIGTERM: time to finish requests in progress (%)")));
    (void)options_add(t, log_level_option(w->level, sizeof w->level));
}

struct gateway_settings {
    struct settings settings;
    struct gateway_args w;
    struct gateway_options o;
};

static void init(struct settings *s)
{
    struct gateway_settings *c = CONTAINER_OF(s, struct gateway_settings, settings);
    struct options *t = &s->table;

    c->w = (struct gateway_args){.cluster = "ringhold",
                                 .resp = "127.0.0.1:6380",
                                 .join = "127.0.0.1:7400",
                                 .level = "info",
                                 .trace_sample = "0",
                                 .ws_path = "/"};
    c->o = gateway_options_default();
    s->command = (struct command){
        .name = "gateway",
        .summary = "Run a gateway: it takes clients' requests (Redis protocol, packets, HTTP) and "
                   "sends each to its owner.",
        .arguments = "",
        .daemon = true,
    };
    (void)snprintf(c->w.name, sizeof c->w.name, "gateway-%ld", (long)getpid());
    add_names(t, &c->w, &c->o);
    add_listeners(t, &c->w);
    add_skynet(t, &c->w);
    add_http(t, &c->w);
    add_tls(t, &c->w);
    add_admin(t, &c->w);
    add_unauthenticated(t, &c->w, &c->o);
    add_login(t, &c->w, &c->o.clients.login);
    add_limits(t, &c->o.clients);
    add_traces(t, &c->w, &c->o.clients);
    add_rest(t, &c->w, &c->o);
}

static bool derive(struct settings *s)
{
    struct gateway_settings *c = CONTAINER_OF(s, struct gateway_settings, settings);

    fill_bursts(&c->o.clients);
    c->o.clients.head_ms = c->o.transports.opening_ms;
    return enough(&c->o, "in-flight", c->o.router.in_flight_max) &&
           enough(&c->o, "max-clients", c->o.clients.connections_max) &&
           check_proxies(&c->w, &c->o) && log_level_check("gateway", c->w.level);
}

static int check_settings(struct settings *s)
{
    struct gateway_settings *c = CONTAINER_OF(s, struct gateway_settings, settings);

    return derive(s) && check(&c->w, &c->o) ? OPTIONS_RUN : 1;
}

static int run(struct settings *s, int argc, char **argv)
{
    struct gateway_settings *c = CONTAINER_OF(s, struct gateway_settings, settings);
    struct daemon_services services;
    struct reload_options reload_options = {
        .running = s, .argc = argc, .argv = argv, .services = &services, .http = &c->w.http};
    const struct otlp_resource who = {"ringhold-gateway", c->w.name, c->w.cluster};
    struct traces *traces = NULL;
    int code = 1;

    c->o.source = reload_begin(&reload_options);
    if (daemon_services_open(&services, &c->w.http, "gateway", NULL) &&
        traces_open(c->w.traces, &who, &traces)) {
        c->o.clients.tracing = traces_tracing(traces);
        c->o.pages = services.pages;
        code = gateway_run(&c->o);
    }
    daemon_services_close(&services);
    traces_close(traces);
    return code;
}

int cmd_gateway(int argc, char **argv)
{
    static const struct settings_kind kind = {.size = sizeof(struct gateway_settings),
                                              .init = init,
                                              .derive = derive,
                                              .check = check_settings,
                                              .run = run};

    return settings_run(&kind, argc, argv);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * `ringhold node`: the daemon's options and its start; with a second word, one
 * of the commands about nodes.
 */
#include "base/list.h"
#include "cli/cmd_nodes.h"
#include "cli/commands.h"
#include "cli/hosted_options.h"
#include "cli/lua_options.h"
#include "cli/subcommand.h"
#include "daemon/admin.h"
#include "daemon/fault.h"
#include "daemon/link_args.h"
#include "daemon/listen.h"
#include "daemon/options.h"
#include "daemon/reload_options.h"
#include "daemon/services.h"
#include "daemon/traces.h"
#include "node/node_uv.h"

#include <stdio.h>
#include <string.h>

enum {
    WEIGHT_MAX = 1000,
    THREADS_MAX = 64,
    LINGER_MAX_MS = 600000,
    DRAIN_MAX_MS = 7 * 24 * 3600 * 1000,
    HELD_MB_MAX = 1024 * 1024,
    MOVE_MB_MAX = 64 * 1024,
    MB_SHIFT = 20,
    ACTIVATIONS_MAX = 10000000
};

struct node_args {
    char cluster[VIEW_NAME_MAX + 1];
    char name[VIEW_NAME_MAX + 1];
    char listen[VIEW_ADDRESS_MAX + 1];
    char join[ADMIN_ADDRESSES_SIZE];
    char data[4096];
    char zone[VIEW_NAME_MAX + 1];
    char role[RING_ROLE_MAX + 1];
    char actor[4096];
    char kinds[8192];
    char store[4096];
    char level[8];
    char traces[TRACES_WHERE_SIZE];
    char on_loss[8];
    char on_overrun[8];
    bool insecure;
    struct link_args tls;
    struct lua_args lua;
    struct hosted_args hosted;
    struct http_options http;
};

/* Which of two words is it? Prints what is wrong. */
static bool choose(const char *option, const char *word, const char *const choice[2], uint32_t *out)
{
    for (uint32_t i = 0; i < 2; i++) {
        if (strcmp(word, choice[i]) == 0) {
            *out = i;
            return true;
        }
    }
    fault_print("node", "--%s is %s or %s, not '%s'", option, choice[0], choice[1], word);
    return false;
}

static bool choose_lease(const struct node_args *w, struct rh_node_options *o)
{
    static const char *const loss[] = {[RH_LOSS_PAUSE] = "pause", [RH_LOSS_SERVE] = "serve"};
    static const char *const overrun[] = {[RH_OVERRUN_ABORT] = "abort", [RH_OVERRUN_GATE] = "gate"};

    return choose("on-lease-loss", w->on_loss, loss, &o->on_lease_loss) &&
           choose("on-lease-overrun", w->on_overrun, overrun, &o->on_lease_overrun);
}

static bool check(struct node_args *w)
{
    char addresses[ADMIN_COORDINATORS_MAX][128];
    size_t count = 0;

    if (w->name[0] == '\0') {
        fault_print("node", "--name is needed; it must be unique in the cluster");
        return false;
    }
    if (admin_split(w->join, addresses, ADMIN_COORDINATORS_MAX, &count) != ERR_OK) {
        fault_print("node",
                    "--join: '%s' is not HOST:PORT[,HOST:PORT…], at most %d",
                    w->join,
                    ADMIN_COORDINATORS_MAX);
        return false;
    }
    if (w->data[0] == '\0') {
        (void)snprintf(w->data, sizeof w->data, "ringhold-data/node-%s", w->name);
    }
    struct hello self = {.role = ROLE_NODE};
    (void)snprintf(self.cluster, sizeof self.cluster, "%s", w->cluster);
    (void)snprintf(self.name, sizeof self.name, "%s", w->name);
    return link_args_check(&w->tls, "node", &self) &&
           listen_allowed("node", "listen", w->listen, w->insecure || w->tls.ca[0] != '\0') &&
           http_check(&w->http, "node");
}

static struct option on_loss_option(struct node_args *w)
{
    return option_text(
        "on-lease-loss",
        "WORD",
        w->on_loss,
        sizeof w->on_loss,
        "when its lease ends without contact to the coordinators: pause, or serve (go on and "
        "risk that an id lives twice) (%)");
}

static struct option on_overrun_option(struct node_args *w)
{
    return option_text(
        "on-lease-overrun",
        "WORD",
        w->on_overrun,
        sizeof w->on_overrun,
        "when a message handler runs past the lease's end: abort the process, or gate "
        "(let it run, and hold back its output) (%)");
}

/* The words are borrowed. */
static void take_words(struct rh_node_options *o, const struct node_args *w)
{
    o->abi = RH_ABI;
    o->size = sizeof *o;
    o->cluster = w->cluster;
    o->name = w->name;
    o->listen = w->listen;
    o->insecure = w->insecure ? 1 : 0;
    o->join = w->join;
    o->data = w->data;
    o->zone = w->zone[0] == '\0' ? NULL : w->zone;
    o->role = w->role;
    o->actor = w->actor[0] == '\0' ? NULL : w->actor;
    o->store = w->store[0] == '\0' ? NULL : w->store;
    const struct link_files tls = link_args_files(&w->tls);
    o->link_ca = tls.ca;
    o->link_certificate = tls.certificate;
    o->link_key = tls.key;
}

/* More is refused. */
static struct option held_option(const char *name, uint32_t *mb, const char *help)
{
    const struct option o = option_number(name, mb, (struct option_range){1, HELD_MB_MAX}, help);

    return o;
}

static struct node_args words_default(void)
{
    return (struct node_args){
        .cluster = "ringhold",
        .listen = "127.0.0.1:0",
        .join = "127.0.0.1:7400",
        .level = "info",
        .on_loss = "pause",
        .on_overrun = "abort",
        .lua = lua_args_default(),
        .hosted = hosted_args_default(),
    };
}

static struct option actor_option(struct node_args *w)
{
    return option_text("actor",
                       "NAME|FILE",
                       w->actor,
                       sizeof w->actor,
                       "the actor of kind 0: kv, echo, or a shared object ./x.so, of several kinds "
                       "./x.so:KIND; =ARG after it (kv, unless --kind or --lua names others)");
}

static struct option kind_option(struct node_args *w)
{
    return option_list("kind",
                       "N[@PLACE][@remember]:NAME|FILE",
                       w->kinds,
                       sizeof w->kinds,
                       "another kind of actor, as for --actor, or host=NAME[,WORD...], whose code "
                       "is in a host (--host); PLACE: together, hosts, 0 to 1 "
                       "(hosts, and 0.1: a canary), singleton, or daemons=COUNT; remember: the "
                       "fleet remembers which ids live; may be repeated");
}

static struct option store_option(struct node_args *w)
{
    return option_text("store",
                       "STORE",
                       w->store,
                       sizeof w->store,
                       "where durable kinds keep their values: sqlite:PATH, a file of one "
                       "machine; postgres:CONNECTION, a connection string or URI; or "
                       "redis:HOST:PORT[/DB] (none)");
}

static struct option listen_option(struct node_args *w)
{
    return option_text("listen",
                       "HOST:PORT",
                       w->listen,
                       sizeof w->listen,
                       "address where gateways and nodes reach this node (%, any free port)");
}

static struct option role_option(struct node_args *w)
{
    return option_text("role",
                       "NAME",
                       w->role,
                       sizeof w->role,
                       "the node's role: its kinds live only on nodes of that role (default)");
}

static struct option linger_option(uint32_t *ms)
{
    return option_number("linger-ms",
                         ms,
                         (struct option_range){100, LINGER_MAX_MS},
                         "after the last vnode has left: forward requests of outdated gateways for "
                         "at most this long (%)");
}

static struct option drain_option(uint32_t *ms)
{
    return option_time("drain",
                       ms,
                       (struct option_range){1000, DRAIN_MAX_MS},
                       "after SIGTERM: hand its ids over within this time; actors still here then "
                       "are flushed and lose their state (%)");
}

static struct option move_rate_option(uint32_t *mb)
{
    return option_number("move-rate",
                         mb,
                         (struct option_range){0, MOVE_MB_MAX},
                         "MiB of state per second that this node sends ahead of a move, while the "
                         "requests still run; each actor counts 1 KiB more; 0: send nothing "
                         "ahead (%)");
}

static struct option threads_option(uint32_t *threads)
{
    return option_number("threads",
                         threads,
                         (struct option_range){1, THREADS_MAX},
                         "worker threads that run the actors (one per core)");
}

static struct option activations_option(uint32_t *count)
{
    return option_number("activations",
                         count,
                         (struct option_range){1, ACTIVATIONS_MAX},
                         "actors that clients' requests may activate at a time (%)");
}

static struct option remember_rate_option(uint32_t *count)
{
    return option_number("remember-rate",
                         count,
                         (struct option_range){1, 1000000},
                         "actors a second that are started without a request: those that are "
                         "remembered or listed, after a crash or a restart (%)");
}

static struct option alarm_rate_option(uint32_t *count)
{
    return option_number("alarm-rate",
                         count,
                         (struct option_range){1, 1000000},
                         "sleeping actors a second that are started because an alarm of theirs is "
                         "due (%)");
}

static struct option activations_waiting_option(uint32_t *count)
{
    return option_number(
        "activations-waiting",
        count,
        (struct option_range){0, ACTIVATIONS_MAX},
        "actors that may wait for their activation; requests for more are told to retry (%)");
}

struct node_settings {
    struct settings settings;
    struct node_args w;
    struct node_options o;
    uint32_t held_mb;
    uint32_t held_vnode_mb;
    uint32_t move_mb;
};

static void add_names(struct options *t, struct node_args *w)
{
    (void)options_add(t,
                      option_text("name",
                                  "NAME",
                                  w->name,
                                  sizeof w->name,
                                  "this node's name, unique in the cluster; required"));
    options_add(
        t, option_text("join", "HOST:PORT,...", w->join, sizeof w->join, "the coordinators (%)"))
        ->alias = "coordinators";
    (void)options_add(
        t, option_text("cluster", "NAME", w->cluster, sizeof w->cluster, "the cluster's name (%)"));
    (void)options_add(t, listen_option(w));
    (void)options_add(
        t,
        option_text(
            "data", "DIR", w->data, sizeof w->data, "data folder (ringhold-data/node-NAME)"));
}

static void add_actors(struct options *t, struct node_args *w)
{
    (void)options_add(t, option_veiled(actor_option(w)));
    (void)options_add(t, option_veiled(kind_option(w)));
    (void)options_add(t, store_option(w));
    lua_args_add(t, &w->lua);
    hosted_args_add(t, &w->hosted);
    (void)options_add(t, role_option(w));
    (void)options_add(t, http_address_option(&w->http));
    (void)options_add(t, http_token_option(&w->http));
    (void)options_add(t, traces_option(w->traces));
}

static void add_share(struct options *t, struct node_settings *c)
{
    (void)options_add(t,
                      option_number("weight",
                                    &c->o.node.weight,
                                    (struct option_range){1, WEIGHT_MAX},
                                    "share of the ids, relative to other nodes (1)"));
    (void)options_add(t, threads_option(&c->o.node.threads));
    (void)options_add(t,
                      option_text("zone",
                                  "NAME",
                                  c->w.zone,
                                  sizeof c->w.zone,
                                  "the zone that it runs in: take-overs and --role-zone go by it"));
}

static void add_limits(struct options *t, struct node_settings *c)
{
    struct host_config *limits = &c->o.limits;

    (void)options_add(t, option_reloads(linger_option(&limits->linger_ms)));
    (void)options_add(t, option_reloads(drain_option(&c->o.drain_ms)));
    (void)options_add(t, on_loss_option(&c->w));
    (void)options_add(t, on_overrun_option(&c->w));
    (void)options_add(
        t,
        option_reloads(held_option(
            "held-mb", &c->held_mb, "MiB of requests that may wait on this node in all (256)")));
    (void)options_add(
        t,
        option_reloads(held_option("held-vnode-mb",
                                   &c->held_vnode_mb,
                                   "MiB of requests that may wait for one vnode (64)")));
    (void)options_add(t, option_reloads(move_rate_option(&c->move_mb)));
    (void)options_add(t, option_reloads(activations_option(&limits->activations_max)));
    (void)options_add(t, option_reloads(activations_waiting_option(&limits->cold_count_max)));
    (void)options_add(t, option_reloads(remember_rate_option(&limits->wake_rate)));
    (void)options_add(t, option_reloads(alarm_rate_option(&limits->alarm_rate)));
}

static void add_links(struct options *t, struct node_args *w)
{
    (void)options_add(t, link_ca_option(&w->tls));
    (void)options_add(t, link_certificate_option(&w->tls));
    (void)options_add(t, link_key_option(&w->tls));
    (void)options_add(t, link_insecure_option(&w->insecure));
    (void)options_add(t, log_level_option(w->level, sizeof w->level));
}

static void init(struct settings *s)
{
    struct node_settings *c = CONTAINER_OF(s, struct node_settings, settings);

    c->w = words_default();
    c->o = node_options_default();
    c->held_mb = (uint32_t)(c->o.limits.held_size_max >> MB_SHIFT);
    c->held_vnode_mb = (uint32_t)(c->o.limits.held_vnode_max >> MB_SHIFT);
    c->move_mb = (uint32_t)(c->o.limits.move_rate >> MB_SHIFT);
    s->command = (struct command){
        .name = "node",
        .summary = "Run a node: it registers, gets its share of the ids, and hosts actors. SIGTERM "
                   "drains it.",
        .arguments = "",
        .details = "Exit code 75: the node was fenced and others took its ids; start it again (a "
                   "supervisor does). 69: no coordinator renewed its lease while it was leaving; "
                   "its actors were flushed. 143: its drain was cut short.\nAlso: ringhold node "
                   "list | wait | add | drain | remove | replace | weight (each with --help).",
        .daemon = true,
    };
    add_names(&s->table, &c->w);
    add_actors(&s->table, &c->w);
    add_share(&s->table, c);
    add_limits(&s->table, c);
    add_links(&s->table, &c->w);
}

static bool derive(struct settings *s)
{
    struct node_settings *c = CONTAINER_OF(s, struct node_settings, settings);

    c->o.limits.held_size_max = (size_t)c->held_mb << MB_SHIFT;
    c->o.limits.held_vnode_max = (size_t)c->held_vnode_mb << MB_SHIFT;
    c->o.limits.move_rate = (size_t)c->move_mb << MB_SHIFT;
    return log_level_check("node", c->w.level);
}

static int check_settings(struct settings *s)
{
    struct node_settings *c = CONTAINER_OF(s, struct node_settings, settings);
    const int checked = lua_args_check(&c->w.lua);

    if (checked >= 0) {
        return checked;
    }
    return check(&c->w) && choose_lease(&c->w, &c->o.node) && derive(s) ? OPTIONS_RUN : 1;
}

static int run(struct settings *s, int argc, char **argv)
{
    struct node_settings *c = CONTAINER_OF(s, struct node_settings, settings);
    struct daemon_services services;
    struct reload_options reload_options = {
        .running = s, .argc = argc, .argv = argv, .services = &services, .http = &c->w.http};
    const struct otlp_resource who = {"ringhold-node", c->w.name, c->w.cluster};
    struct traces *traces = NULL;
    int code = 1;

    c->o.announce = true;
    c->o.kinds = c->w.kinds;
    take_words(&c->o.node, &c->w);
    c->o.source = reload_begin(&reload_options);
    if (daemon_services_open(&services, &c->w.http, "node", NULL) &&
        traces_open(c->w.traces, &who, &traces)) {
        c->o.tracing = traces_tracing(traces);
        c->o.pages = services.pages;
        code = hosted_args_open(&c->w.hosted, &c->o) ? lua_args_run(&c->w.lua, &c->o) : 1;
        hosted_args_close(&c->w.hosted);
    }
    daemon_services_close(&services);
    traces_close(traces);
    return code;
}

static int run_daemon(int argc, char **argv)
{
    static const struct settings_kind kind = {.size = sizeof(struct node_settings),
                                              .init = init,
                                              .derive = derive,
                                              .check = check_settings,
                                              .run = run};

    return settings_run(&kind, argc, argv);
}

int cmd_node(int argc, char **argv)
{
    static const struct subcommand table[] = {
        {.name = "list", .run = cmd_node_list},
        {.name = "wait", .run = cmd_node_wait},
        {.name = "add", .run = cmd_node_add},
        {.name = "drain", .run = cmd_node_drain},
        {.name = "remove", .run = cmd_node_remove},
        {.name = "replace", .run = cmd_node_replace},
        {.name = "weight", .run = cmd_node_weight},
        {.run = run_daemon},
    };

    return subcommand_run("node", table, argc, argv);
}

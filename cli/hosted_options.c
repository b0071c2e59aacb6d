/* SPDX-License-Identifier: Apache-2.0
 *
 * The options of `ringhold node` for hosts, and the socket where they connect.
 */
#include "cli/hosted_options.h"

#include "daemon/bearer.h"
#include "daemon/fault.h"
#include "daemon/http_listen.h"
#include "hosted/hosted.h"
#include "wire/address.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum { SILENCE_MS = 3000, SILENCE_MAX_MS = 3600 * 1000 };

static const char unix_scheme[] = "unix:";

static struct hosted *hosted; /* of this process; NULL = none */

struct hosted_args hosted_args_default(void)
{
    return (struct hosted_args){.silence_ms = SILENCE_MS};
}

void hosted_args_add(struct options *t, struct hosted_args *w)
{
    (void)options_add(
        t,
        option_text("host",
                    "ADDRESS",
                    w->address,
                    sizeof w->address,
                    "where hosts connect, processes that have the code of kinds declared by "
                    "--kind N:host=NAME: unix:PATH, or a loopback HOST:PORT with --host-token"));
    (void)options_add(t,
                      option_text("host-token",
                                  "FILE",
                                  w->token,
                                  sizeof w->token,
                                  "file with the token that hosts must show (16 bytes or more)"));
    (void)options_add(
        t,
        option_time("host-silence",
                    &w->silence_ms,
                    (struct option_range){500, SILENCE_MAX_MS},
                    "a host that does not answer for so long is hung: its actors end (%)"));
}

static bool is_path(const struct hosted_args *w)
{
    return strncmp(w->address, unix_scheme, sizeof unix_scheme - 1) == 0;
}

static const char *path_of(const struct hosted_args *w)
{
    return w->address + sizeof unix_scheme - 1;
}

/* Below 0 after printing why not. */
static int listen_for_hosts(const struct hosted_args *w)
{
    if (!is_path(w) && (!address_is_loopback(w->address) || w->token[0] == '\0')) {
        fault_print("node",
                    "--host: '%s' is not unix:PATH, or a loopback address with --host-token: who "
                    "connects there can act for this node's actors",
                    w->address);
        return -1;
    }
    const int fd = is_path(w) ? http_listen_unix(path_of(w)) : http_listen_tcp(w->address);
    if (fd < 0) {
        fault_print("node", "--host: cannot listen at %s: %s", w->address, strerror(errno));
    }
    return fd;
}

static const struct rh_actor_ops *find_kind(const char *words)
{
    if (hosted == NULL) {
        fault_print("node", "--kind: host=%s needs --host: where hosts connect", words);
        return NULL;
    }
    return hosted_kind(hosted, words);
}

static void put_figures(struct metrics *m)
{
    if (hosted != NULL) {
        hosted_metrics(hosted, m);
    }
}

bool hosted_args_open(const struct hosted_args *w, struct node_options *o)
{
    struct bearer token = {.size = 0};

    o->host_kind = find_kind;
    o->host_figures = put_figures;
    if (w->address[0] == '\0') {
        return true;
    }
    const char *wrong = w->token[0] == '\0' ? NULL : bearer_read(&token, w->token);
    if (wrong != NULL) {
        fault_print("node", "cannot take --host-token %s: %s", w->token, wrong);
        return false;
    }
    const int fd = listen_for_hosts(w);
    if (fd < 0) {
        return false;
    }
    token.text[token.size] = '\0';
    hosted = hosted_open(&(struct hosted_options){
        .listener = fd, .node = o->node.name, .token = token.text, .silence_ms = w->silence_ms});
    bearer_wipe(&token);
    return true;
}

void hosted_args_close(const struct hosted_args *w)
{
    hosted_close(hosted);
    if (hosted != NULL && is_path(w)) {
        (void)unlink(path_of(w));
    }
    hosted = NULL;
}

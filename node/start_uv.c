/* SPDX-License-Identifier: Apache-2.0
 *
 * Starts a node: its folder, its number record, its kinds, its host.
 */
#include "node/shell_uv.h"

#include "base/log.h"
#include "base/random.h"
#include "node/disk.h"
#include "wire/address.h"
#include "wire/hello.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool shell_complain(const char *what, const char *value)
{
    (void)fprintf(stderr, "ringhold node: %s%s\n", what, value);
    return false;
}

const char *shell_cluster(const struct rh_node_options *o)
{
    return o->cluster == NULL ? "ringhold" : o->cluster;
}

/* First of all after the folder: identity and number come and go together. */
static bool open_number(struct shell *s)
{
    struct buffer payload = {0};
    char path[VIEW_ADDRESS_MAX + 4096];

    (void)snprintf(path, sizeof path, "%s/number", s->options->node.data);
    if (!s->folder.fresh && access(path, F_OK) != 0 && errno == ENOENT) {
        return shell_complain(
            path,
            ": the file is missing, and with it the numbers that this node has seen; start in a "
            "new folder under another name (docs/recovery.md#a-nodes-folder)");
    }
    enum err error = number_open(&s->persist.number, path, &payload);
    if (error == ERR_OK) {
        error = disk_get(buffer_bytes(&payload), &s->disk);
    }
    buffer_fini(&payload);
    if (error != ERR_OK && s->folder.fresh) {
        folder_unmake(&s->folder, s->options->node.data);
        return shell_complain(
            path,
            ": can't create it: give this user access to the folder, and free space on the disk");
    }
    if (error != ERR_OK) {
        (void)fprintf(stderr,
                      "ringhold node: can't use %s: %s: run `ringhold recover inspect %s` "
                      "(docs/recovery.md#a-nodes-folder)\n",
                      path,
                      err_text(error),
                      s->options->node.data);
    }
    return error == ERR_OK;
}

static bool make_host(struct shell *s)
{
    struct host_config config = s->options->limits;
    const struct rh_node_options *o = &s->options->node;
    (void)snprintf(config.name, sizeof config.name, "%s", o->name);
    (void)snprintf(config.zone, sizeof config.zone, "%s", o->zone == NULL ? "" : o->zone);
    if (o->role != NULL && strcmp(o->role, "default") != 0) {
        (void)snprintf(config.role, sizeof config.role, "%s", o->role);
    }
    memcpy(config.address, s->address, sizeof config.address);
    memcpy(config.boot_id, s->folder.boot_id, sizeof config.boot_id);
    memcpy(config.data_uuid, s->folder.data_uuid, sizeof config.data_uuid);
    config.weight = o->weight == 0 ? 1 : o->weight;
    config.serve = o->on_lease_loss == RH_LOSS_SERVE;
    config.actors_max = o->actors_max;
    config.nonce = random_u64();
    config.tracing = s->options->tracing;
    config.span_seed = random_u64();
    config.fleet = s->folder.fleet;
    config.disk = s->disk;
    config.died = s->left.incarnation;
    config.suspects = s->left.actor;
    config.suspect_count = s->left.count;
    config.kinds = s->kinds.hosted;
    config.kind_count = s->kinds.count;
    if (config.serve) {
        log_warn("node",
                 "serves_without_lease",
                 "--on-lease-loss serve: when cut off from the coordinators the node serves on, "
                 "and two nodes may run the same actor");
    }
    s->host = host_new(&config);
    return dispatcher_open(s);
}

static bool has_store(const struct shell *s)
{
    const char *kind = kinds_durable(&s->kinds);

    return s->options->node.store != NULL || kind == NULL ||
           shell_complain("a durable kind needs a store (--store): ", kind);
}

static bool add_kinds(struct shell *s)
{
    const struct rh_node_options *o = &s->options->node;

    if (o->kinds == NULL && o->kind_count > 0) {
        return shell_complain("the options have a count of kinds, but no kinds", "");
    }
    for (size_t i = 0; i < o->kind_count; i++) {
        if (kinds_add(&s->kinds, &o->kinds[i]) != ERR_OK) {
            return false;
        }
    }
    s->kinds.host_kind = s->options->host_kind;
    if (!kinds_add_lines(&s->kinds, s->options->kinds)) {
        return false;
    }
    if ((o->actor != NULL || s->kinds.count == 0) &&
        kinds_add_named(&s->kinds, 0, o->actor == NULL ? "kv" : o->actor) != ERR_OK) {
        return false;
    }
    return has_store(s) && kinds_start(&s->kinds, o->name) == ERR_OK;
}

static bool is_reachable(const char *address)
{
    struct address parsed;

    return strlen(address) <= VIEW_ADDRESS_MAX && address_parse(address, &parsed) == ERR_OK &&
           parsed.port != 0;
}

static bool options_are_valid(const struct rh_node_options *o)
{
    if (o->name == NULL || !hello_name_is_valid(o->name)) {
        return shell_complain("a node's name is 1 to 63 letters, digits, '.', '_' or '-', not ",
                              o->name == NULL ? "nothing" : o->name);
    }
    if (!hello_name_is_valid(shell_cluster(o))) {
        return shell_complain("a cluster's name is 1 to 63 letters, digits, '.', '_' or '-', not ",
                              shell_cluster(o));
    }
    if (o->join == NULL) {
        return shell_complain("the node needs coordinators to join", "");
    }
    if (o->advertise != NULL && !is_reachable(o->advertise)) {
        return shell_complain("the advertised address must be HOST:PORT, not ", o->advertise);
    }
    if ((o->link_ca == NULL) != (o->link_certificate == NULL) ||
        (o->link_ca == NULL) != (o->link_key == NULL)) {
        return shell_complain("links with TLS need a CA, a certificate and its key", "");
    }
    if (o->listen != NULL && o->link_ca == NULL && o->insecure == 0 &&
        !address_is_loopback(o->listen)) {
        return shell_complain(
            "the address is beyond loopback and unencrypted: anyone who can connect controls the "
            "fleet. Use TLS for links, or `insecure` if you accept this: ",
            o->listen);
    }
    if (o->listen != NULL && o->advertise == NULL && address_is_any(o->listen)) {
        return shell_complain("other machines can't connect to this address: listen on one address "
                              "of this machine, or advertise one: ",
                              o->listen);
    }
    if (o->data == NULL || o->data[0] == '\0') {
        return shell_complain("the node needs a data folder", "");
    }
    if (o->on_lease_loss > RH_LOSS_SERVE || o->on_lease_overrun > RH_OVERRUN_GATE) {
        return shell_complain("the choice for a lost lease is unknown", "");
    }
    return true;
}

/* Everything that can be refused, in an order that leaves nothing half-done. */
bool shell_start(struct shell *s)
{
    const struct rh_node_options *o = &s->options->node;

    if (!options_are_valid(o) ||
        folder_open(&s->folder, o->data, shell_cluster(o), o->name) != ERR_OK || !open_number(s) ||
        !peers_open(s) || !add_kinds(s)) {
        return false;
    }
    crash_record_open(&s->crash_record, o->data, s->folder.boot_id, &s->left);
    return make_host(s) && peers_dial_coordinators(s);
}

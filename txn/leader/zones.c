/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps a role's cells in its zones.
 */
#include "txn/leader/zones.h"

#include "base/mutant.h"

#include <string.h>

bool zones_has(const struct coordinator_config *config, const char *role, const char *zone)
{
    bool kept = false;

    for (size_t i = 0; i < config->zone_count; i++) {
        if (strcmp(config->zone[i].role, role) == 0) {
            if (strcmp(config->zone[i].zone, zone) == 0) {
                return true;
            }
            kept = true;
        }
    }
    return !kept || mutant(M_ANYZONE);
}

static bool is_inside(const struct coordinator_config *config, const struct plan_node *node)
{
    return zones_has(config, node->role, node->zone);
}

/* Somebody of its role stays inside. */
static bool has_home(const struct coordinator_config *config, const struct plan_node *nodes,
                     size_t count, const struct plan_node *node)
{
    for (size_t i = 0; i < count; i++) {
        if (!nodes[i].leaving && strcmp(nodes[i].role, node->role) == 0 &&
            is_inside(config, &nodes[i])) {
            return true;
        }
    }
    return false;
}

void zones_keep(const struct coordinator_config *config, struct plan_node *nodes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        // Who is outside is nobody's home: the order in which they leave does not matter.
        if (!is_inside(config, &nodes[i]) && has_home(config, nodes, count, &nodes[i])) {
            nodes[i].leaving = true;
        }
    }
}

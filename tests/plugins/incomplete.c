/* SPDX-License-Identifier: Apache-2.0
 *
 * A shared object whose actor can do nothing.
 */
#include <ringhold.h>

const struct rh_actor_ops ringhold_actor = {
    .abi = RH_ABI,
    .size = sizeof(struct rh_actor_ops),
    .name = "incomplete",
};

/* SPDX-License-Identifier: Apache-2.0
 *
 * A shared object of another ABI: tests/node/kinds_test.c wants it refused.
 */
#include <ringhold.h>

const struct rh_actor_ops ringhold_actor = {
    .abi = RH_ABI - 1,
    .size = sizeof(struct rh_actor_ops),
    .name = "foreign",
};

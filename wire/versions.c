/* SPDX-License-Identifier: Apache-2.0
 *
 * Chooses the version that two builds speak with each other.
 */
#include "wire/versions.h"

bool versions_are_range(struct versions v)
{
    return v.oldest >= 1 && v.oldest <= v.newest;
}

enum versions_fit versions_choose(struct versions here, struct versions there, uint32_t *chosen)
{
    *chosen = 0;
    if (!versions_are_range(here) || !versions_are_range(there)) {
        return VERSIONS_NONE;
    }
    if (there.newest < here.oldest) {
        return VERSIONS_OLDER;
    }
    if (there.oldest > here.newest) {
        return VERSIONS_NEWER;
    }
    *chosen = here.newest < there.newest ? here.newest : there.newest;
    return VERSIONS_FIT;
}

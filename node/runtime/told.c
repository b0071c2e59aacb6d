/* SPDX-License-Identifier: Apache-2.0 */
#include "node/runtime/told.h"

#include "base/assert.h"

enum host_event_type scene_told_type(enum scene_event_type type)
{
    switch (type) {
    case SCENE_ACTIVATED:
        return HOST_ACTIVATED;
    case SCENE_RAN:
        return HOST_RAN;
    case SCENE_EXPORTED:
        return HOST_EXPORTED;
    case SCENE_RETIRED:
        return HOST_RETIRED;
    case SCENE_POKE:
        return HOST_POKE;
    case SCENE_PASSIVATE:
        return HOST_PASSIVATE;
    case SCENE_FAILED:
        return HOST_FAILED;
    case SCENE_CALL:
    case SCENE_PUSH:
    case SCENE_BOUND:
    case SCENE_GONE:
    case SCENE_DEFERRED:
    case SCENE_FINISHED:
    case SCENE_PARTED:
        break;
    }
    UNREACHABLE();
}

bool scene_told_ends(enum scene_event_type type, enum err error)
{
    return (type == SCENE_ACTIVATED && error != ERR_OK) ||
           (type == SCENE_RETIRED && error == ERR_OK);
}

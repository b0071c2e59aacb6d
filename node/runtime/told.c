/* SPDX-License-Identifier: Apache-2.0 */
#include "node/runtime/told.h"

#include "base/assert.h"

enum host_event_type runtime_told_type(enum runtime_event_type type)
{
    switch (type) {
    case RUNTIME_ACTIVATED:
        return HOST_ACTIVATED;
    case RUNTIME_RAN:
        return HOST_RAN;
    case RUNTIME_EXPORTED:
        return HOST_EXPORTED;
    case RUNTIME_RETIRED:
        return HOST_RETIRED;
    case RUNTIME_POKE:
        return HOST_POKE;
    case RUNTIME_PASSIVATE:
        return HOST_PASSIVATE;
    case RUNTIME_FAILED:
        return HOST_FAILED;
    case RUNTIME_CALL:
    case RUNTIME_PUSH:
    case RUNTIME_BOUND:
    case RUNTIME_GONE:
    case RUNTIME_DEFERRED:
    case RUNTIME_FINISHED:
    case RUNTIME_PARTED:
        break;
    }
    UNREACHABLE();
}

bool runtime_told_ends(enum runtime_event_type type, enum err error)
{
    return (type == RUNTIME_ACTIVATED && error != ERR_OK) ||
           (type == RUNTIME_RETIRED && error == ERR_OK);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Structures that tell their size, taken or not.
 */
#include "base/given.h"

#include <stdio.h>
#include <string.h>

static bool is_set_beyond(const struct given *given, size_t size)
{
    const char *bytes = given->data;

    for (size_t i = size; i < given->size; i++) {
        if (bytes[i] != 0) {
            return true;
        }
    }
    return false;
}

bool given_take(const struct given *given, void *to, size_t size, char text[GIVEN_TEXT])
{
    if (given->size < given->least || given->size > GIVEN_MAX) {
        (void)snprintf(text,
                       GIVEN_TEXT,
                       "it says that it has %zu bytes, but libringhold " RINGHOLD_VERSION
                       " takes %zu to %zu",
                       given->size,
                       given->least,
                       size);
        return false;
    }
    if (is_set_beyond(given, size)) {
        (void)snprintf(text,
                       GIVEN_TEXT,
                       "it has %zu bytes, but libringhold " RINGHOLD_VERSION
                       " knows only the first %zu, and something behind them is set: it needs a "
                       "newer libringhold",
                       given->size,
                       size);
        return false;
    }
    memset(to, 0, size);
    memcpy(to, given->data, given->size < size ? given->size : size);
    return true;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Random bytes of the kernel, by getrandom().
 */
#include "base/random.h"

#include "base/assert.h"

#include <sys/random.h>
#include <sys/types.h>

void random_fill(void *data, size_t size)
{
    uint8_t *at = data;

    while (size > 0) {
        const ssize_t got = getrandom(at, size, 0);

        ASSERT(got > 0);
        at += got;
        size -= (size_t)got;
    }
}

uint64_t random_u64(void)
{
    uint64_t value = 0;

    while (value == 0) {
        random_fill(&value, sizeof value);
    }
    return value;
}

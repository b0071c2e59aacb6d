/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory from malloc(), with every failure an abort.
 */
#include "base/mem.h"

#include "base/assert.h"

#include <stdlib.h>
#include <string.h>

void *mem_new(size_t count, size_t size)
{
    void *memory = calloc(count == 0 ? 1 : count, size == 0 ? 1 : size);

    ASSERT(memory != NULL);
    return memory;
}

void *mem_resize(void *old, size_t size)
{
    void *memory = NULL;

    ASSERT(size > 0);
    memory = realloc(old, size);
    ASSERT(memory != NULL);
    return memory;
}

void *mem_copy(const void *data, size_t size)
{
    void *memory = mem_new(1, size);

    if (size > 0) {
        memcpy(memory, data, size);
    }
    return memory;
}

char *mem_string(const char *text)
{
    return mem_copy(text, strlen(text) + 1);
}

void *mem_lines(size_t size)
{
    enum { LINE = 64 };
    void *memory = aligned_alloc(LINE, (size + LINE - 1) / LINE * LINE);

    ASSERT(memory != NULL);
    return memory;
}

void mem_free(void *memory)
{
    free(memory);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Loads a library, and finds its functions.
 */
#include "base/library.h"

#include <dlfcn.h>
#include <string.h>

const char *library_load(const char *file, const struct library_function *function, size_t count,
                         void *table)
{
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);

    for (size_t i = 0; i < count && library != NULL; i++) {
        void *found = dlsym(library, function[i].name);

        if (found == NULL) {
            return dlerror();
        }
        memcpy((char *)table + function[i].at, &found, sizeof found);
    }
    return library == NULL ? dlerror() : NULL;
}

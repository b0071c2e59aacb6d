/* SPDX-License-Identifier: Apache-2.0
 *
 * Looks for the files that were installed together with the running program.
 */
#include "base/beside.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool beside_find(const char *name, char *path, size_t size)
{
    static const char *const folders[] = {"", "../libexec/ringhold/", "../../bin/"};
    char self[4096];
    const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);

    self[length < 0 ? 0 : length] = '\0';
    const char *slash = strrchr(self, '/');
    const int folder_size = slash == NULL ? 0 : (int)(slash - self) + 1;
    for (size_t i = 0; folder_size > 0 && i < sizeof folders / sizeof folders[0]; i++) {
        const int used = snprintf(path, size, "%.*s%s%s", folder_size, self, folders[i], name);

        if (used > 0 && (size_t)used < size && access(path, F_OK) == 0) {
            return true;
        }
    }
    (void)snprintf(path, size, "%s", self);
    return false;
}

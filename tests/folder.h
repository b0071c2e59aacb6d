/* SPDX-License-Identifier: Apache-2.0
 *
 * A folder of its own for a test, under TMPDIR or /tmp.
 */
#ifndef TESTS_FOLDER_H
#define TESTS_FOLDER_H

#include "tests/test.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static inline void folder_make(char *path, size_t size)
{
    const char *tmp = getenv("TMPDIR");

    (void)snprintf(path, size, "%s/ringhold-test-XXXXXX", tmp == NULL ? "/tmp" : tmp);
    assert_non_null(mkdtemp(path));
}

/* With the files in it. */
static inline void folder_remove(const char *path)
{
    DIR *dir = opendir(path);

    assert_non_null(dir);
    for (const struct dirent *at = readdir(dir); at != NULL; at = readdir(dir)) {
        char name[800];

        (void)snprintf(name, sizeof name, "%s/%s", path, at->d_name);
        (void)unlink(name);
    }
    (void)closedir(dir);
    assert_int_equal(rmdir(path), 0);
}

#endif

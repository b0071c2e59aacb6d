/* SPDX-License-Identifier: Apache-2.0
 *
 * The system calls by which records are kept that a crash must not lose. A
 * contract with two bodies: the kernel, and the simulator's disk, which forgets
 * what was not synced when the power fails (sim/memory_disk.h).
 */
#ifndef BASE_FILES_H
#define BASE_FILES_H

#include <stdbool.h>
#include <sys/types.h>

/* Each as the call of its name: -1 or false, and errno says why. */
struct files {
    int (*open)(const char *path, int flags); /* mode 0600, closed on exec */
    int (*close)(int file);
    off_t (*size)(int file);
    ssize_t (*read)(int file, void *data, size_t size, off_t at);
    ssize_t (*write)(int file, const void *data, size_t size, off_t at);
    int (*sync)(int file); /* its content and size */
    bool (*exists)(const char *path);
    int (*rename)(const char *from, const char *to);
    int (*remove)(const char *path);
    int (*sync_directory)(const char *path); /* which names there are in it */
};

/* The file operations in force: the kernel's. The simulator sets its own before it starts anything.
 */
extern const struct files *files;
extern const struct files files_kernel;

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * The process's own figures: memory, processor time, open files.
 */
#include "daemon/process.h"

#include <dirent.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

static uint64_t resident_bytes(void)
{
    unsigned long long size = 0;
    unsigned long long resident = 0;
    FILE *file = fopen("/proc/self/statm", "re");

    if (file == NULL) {
        return 0;
    }
    const int fields =
        fscanf(file, "%llu %llu", &size, &resident); // NOLINT(cert-err34-c): the kernel's
    (void)fclose(file);
    return fields == 2 ? resident * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}

static uint64_t cpu_us(void)
{
    struct rusage use;

    if (getrusage(RUSAGE_SELF, &use) != 0) {
        return 0;
    }
    return (uint64_t)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) * 1000000 +
           (uint64_t)(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
}

static uint64_t open_files(void)
{
    uint64_t count = 0;
    DIR *folder = opendir("/proc/self/fd");

    if (folder == NULL) {
        return 0;
    }
    while (readdir(folder) != NULL) {
        count++;
    }
    (void)closedir(folder);
    return count - 3; // ".", ".." and that of the folder itself
}

void process_metrics(struct metrics *m)
{
    static const struct metric cpu = {
        "process_cpu_seconds_total", "CPU time of the process, user and system.", METRIC_COUNTER};
    static const struct metric memory = {
        "process_resident_memory_bytes", "Resident memory.", METRIC_GAUGE};
    static const struct metric files = {"process_open_fds", "Open file descriptors.", METRIC_GAUGE};
    static const struct metric files_max = {
        "process_max_fds", "Limit of open file descriptors.", METRIC_GAUGE};
    static const struct metric build = {
        "ringhold_build_info", "Always 1, with the version as label.", METRIC_GAUGE};
    struct rlimit limit = {0};

    metrics_put_us(m, &cpu, cpu_us());
    metrics_put(m, &memory, resident_bytes());
    metrics_put(m, &files, open_files());
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        metrics_put(m, &files_max, limit.rlim_cur);
    }
    metrics_put_labelled(m, &build, "version", RINGHOLD_VERSION, 1);
}

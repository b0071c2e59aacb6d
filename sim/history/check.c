/* SPDX-License-Identifier: Apache-2.0
 *
 * ringhold-history: judges histories (docs/history.md), of the simulator and of
 * real processes alike.
 *
 *     ringhold-history [--stall MS] [--unfinished] [--quiet] FILE ...
 *
 * All files are one history. Exit: 0 no rule was broken, 1 one was, 2 a file
 * can't be read or a line is malformed, or wrong usage.
 */
#include "base/mem.h"
#include "sim/history/history.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CONTEXT_MAX = 12, EXIT_BROKEN = 1, EXIT_USAGE = 2 };

static const char usage[] =
    "usage: ringhold-history [--stall MS] [--unfinished] [--quiet] FILE ...\n"
    "Judge what clients, nodes and coordinators wrote down: docs/history.md.\n"
    "  --stall MS     no request may wait longer for its answer\n"
    "  --unfinished   the history was cut off: requests may be open\n"
    "  --quiet        print nothing but what was broken\n";

/* Maps the file for the program's life. */
static bool map(const char *path, struct bytes *out)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat info;
    void *at = NULL;

    if (fd < 0 || fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
        (void)fprintf(stderr,
                      "ringhold-history: can't read %s: %s\n",
                      path,
                      fd < 0 ? strerror(errno) : "it is no file");
        return false;
    }
    *out = bytes_of("", 0);
    if (info.st_size > 0) {
        at = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (at == MAP_FAILED) {
            (void)fprintf(stderr, "ringhold-history: can't read %s: %s\n", path, strerror(errno));
            return false;
        }
        *out = bytes_of(at, (size_t)info.st_size);
    }
    (void)close(fd);
    return true;
}

static void print_line(const struct history_book *b, const struct history_event *e, char mark)
{
    (void)printf("%c %s:%zu: %.*s\n",
                 mark,
                 b->file[e->file].name,
                 history_book_line(b, e),
                 (int)e->text_size,
                 e->text);
}

static void print_broken(const struct history_book *b, const struct history_verdict *v)
{
    const struct history_event *context[CONTEXT_MAX];
    const struct history_accusation *a = &v->first;
    const size_t count = history_context(b, a->event, context, CONTEXT_MAX);

    (void)printf(
        "BROKEN %s %s: %s\n", history_rule_checker(a->rule), history_rule_name(a->rule), a->text);
    for (size_t i = 0; i < count; i++) {
        print_line(b, context[i], context[i] == a->event ? '>' : ' ');
    }
}

static void print_stats(const struct history_book *b, const struct history_verdict *v)
{
    (void)printf("events %" PRIu64 ", processes %" PRIu64 ", entities %" PRIu64
                 ", sessions %" PRIu64 "\n",
                 v->events,
                 v->processes,
                 v->entities,
                 v->sessions);
    (void)printf("requests %" PRIu64 ":", v->requests);
    for (int code = 0; code < HISTORY_CODES; code++) {
        (void)printf(
            " %s %" PRIu64 ",", history_code_name((enum history_code)code), v->answers[code]);
    }
    (void)printf(" no reply wanted %" PRIu64 ", abandoned %" PRIu64 ", open %" PRIu64 "\n",
                 v->no_reply,
                 v->abandoned,
                 v->open);
    (void)printf("runs %" PRIu64 ", activations %" PRIu64 ", moved %" PRIu64 ", crashes %" PRIu64
                 ", overruns %" PRIu64 ", refused by stores %" PRIu64 "\n",
                 v->runs,
                 v->activations,
                 v->moved,
                 v->crashes,
                 v->overruns,
                 v->refused);
    if (v->waited != NULL) {
        (void)printf("longest wait %" PRIu64 ".%03" PRIu64 " ms: %s seq %" PRIu64 " to %s\n",
                     v->wait_max_us / 1000,
                     v->wait_max_us % 1000,
                     history_book_word(b, v->waited->session),
                     v->waited->seq,
                     history_book_word(b, v->waited->entity));
    }
    for (int rule = 0; rule < HISTORY_RULES_COUNT; rule++) {
        (void)printf("%s%s %" PRIu64,
                     rule == 0 ? "" : " ",
                     history_rule_name((enum history_rule)rule),
                     v->broken[rule]);
    }
    (void)printf("\n");
}

static bool milliseconds(const char *text, uint64_t *out_us)
{
    char *end = NULL;
    const uint64_t ms =
        text == NULL || text[0] < '0' || text[0] > '9' ? 0 : strtoull(text, &end, 10);

    *out_us = ms * 1000;
    return ms > 0 && ms < UINT64_MAX / 1000 && *end == '\0';
}

/* The index of the first file; 0 = wrong usage. */
static int parse(int argc, char **argv, struct history_bounds *bounds, bool *quiet)
{
    int i = 1;

    for (; i < argc && strncmp(argv[i], "--", 2) == 0; i++) {
        if (strcmp(argv[i], "--stall") == 0 && i + 1 < argc) {
            if (!milliseconds(argv[++i], &bounds->stall_us)) {
                return 0;
            }
        } else if (strcmp(argv[i], "--unfinished") == 0) {
            bounds->unfinished = true;
        } else if (strcmp(argv[i], "--quiet") == 0) {
            *quiet = true;
        } else {
            return 0;
        }
    }
    return i < argc ? i : 0;
}

int main(int argc, char **argv)
{
    struct history_bounds bounds = {0};
    struct history_verdict verdict;
    struct history_book book;
    char error[HISTORY_ERROR_SIZE];
    bool quiet = false;
    int first = 0;

    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        (void)fputs(usage, stdout);
        return 0;
    }
    first = parse(argc, argv, &bounds, &quiet);
    if (first == 0) {
        (void)fputs(usage, stderr);
        return EXIT_USAGE;
    }
    history_book_init(&book);
    for (int i = first; i < argc; i++) {
        struct bytes bytes;

        if (!map(argv[i], &bytes)) {
            history_book_fini(&book);
            return EXIT_USAGE;
        }
        if (!history_book_read(&book, argv[i], bytes, error)) {
            (void)fprintf(stderr, "ringhold-history: %s\n", error);
            history_book_fini(&book);
            return EXIT_USAGE;
        }
    }
    history_judge(&book, &bounds, &verdict);
    if (verdict.broken_total > 0) {
        print_broken(&book, &verdict);
    }
    if (!quiet) {
        print_stats(&book, &verdict);
    }
    history_book_fini(&book);
    return verdict.broken_total > 0 ? EXIT_BROKEN : 0;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Prints what is wrong with options that stand against each other, with the file
 * and line of each.
 */
#include "daemon/fault.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { TEXT_SIZE = 2048 };

static _Thread_local const struct option_places *known;

void fault_places(const struct option_places *places)
{
    known = places;
}

/* The line of the key of that many letters; 0 = the file doesn't set it. */
static uint32_t line_of(const char *key, size_t size)
{
    for (size_t i = 0; known->options[i].key != NULL; i++) {
        if (strlen(known->options[i].key) == size &&
            memcmp(known->options[i].key, key, size) == 0) {
            return known->line[i];
        }
    }
    return 0;
}

static void print_places(const char *text)
{
    uint32_t last = 0;

    for (const char *at = strstr(text, "--"); at != NULL; at = strstr(at, "--")) {
        at += 2;
        const size_t size = strspn(at, "abcdefghijklmnopqrstuvwxyz0123456789-");
        const uint32_t line = line_of(at, size);

        if (line != 0 && line != last) {
            (void)fprintf(stderr, "%s%s:%u", last == 0 ? "" : ", ", known->file, line);
            last = line;
        }
        at += size;
    }
    (void)fprintf(stderr, "%s", last == 0 ? "" : ": ");
}

void fault_print(const char *daemon, const char *format, ...)
{
    char text[TEXT_SIZE];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    (void)fprintf(stderr, "ringhold %s: ", daemon);
    if (known != NULL) {
        print_places(text);
    }
    (void)fprintf(stderr, "%s\n", text);
}

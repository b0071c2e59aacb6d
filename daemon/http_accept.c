/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the media types of an Accept header, and how much each is wanted.
 */
#include "daemon/http_accept.h"

#include <string.h>
#include <strings.h>

enum { WHOLE = 1000 };

static const char blanks[] = " \t";

/* In thousandths, of the parameters of one type; WHOLE if it says nothing. */
static int weight_of(const char *parameters, const char *end)
{
    for (const char *p = parameters; p < end; p++) {
        p += strspn(p, blanks);
        if (end - p >= 3 && (p[0] == 'q' || p[0] == 'Q') && p[1] == '=') {
            int weight = p[2] == '1' ? WHOLE : 0;

            for (int i = 4, part = WHOLE / 10; p + i < end && p[3] == '.' && part > 0; i++) {
                weight += p[i] >= '0' && p[i] <= '9' ? (p[i] - '0') * part : 0;
                part /= 10;
            }
            return weight < WHOLE ? weight : WHOLE;
        }
        while (p < end && *p != ';') {
            p++;
        }
    }
    return WHOLE;
}

/* How much a type is wanted that is asked for by name; 0 = not at all. */
static int wanted(const char *accept, const char *type)
{
    const size_t size = strlen(type);
    int most = 0;

    for (const char *at = accept; *at != '\0';) {
        at += strspn(at, " \t,");
        const char *end = at + strcspn(at, ",");
        const char *name_end = at + strcspn(at, " \t;,");

        if ((size_t)(name_end - at) == size && strncasecmp(at, type, size) == 0) {
            name_end += strspn(name_end, " \t;");
            const int weight = weight_of(name_end, end);

            most = weight > most ? weight : most;
        }
        at = end;
    }
    return most;
}

bool http_accept_open(const char *accept)
{
    const int open = accept == NULL ? 0 : wanted(accept, "application/openmetrics-text");

    return open > 0 && open >= wanted(accept, "text/plain");
}

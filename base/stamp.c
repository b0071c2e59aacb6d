/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers that coordinators draw, as text with their era.
 */
#include "base/stamp.h"

#include <inttypes.h>
#include <stdio.h>

static const uint64_t count_max = (UINT64_C(1) << STAMP_COUNT_BITS) - 1;

const char *stamp_text(uint64_t number, char text[STAMP_TEXT_SIZE])
{
    const uint64_t era = number >> STAMP_COUNT_BITS;

    if (era == 0) {
        (void)snprintf(text, STAMP_TEXT_SIZE, "%" PRIu64, number);
    } else {
        (void)snprintf(text, STAMP_TEXT_SIZE, "%" PRIu64 ".%" PRIu64, era, number & count_max);
    }
    return text;
}

/* Digits, at least one; returns what stands behind them. NULL: there are none, or it is above
 * `max`.
 */
static const char *parse_digits(const char *text, uint64_t max, uint64_t *out)
{
    const char *at = text;

    *out = 0;
    for (; *at >= '0' && *at <= '9'; at++) {
        const uint64_t digit = (uint64_t)(*at - '0');

        if (*out > (max - digit) / 10) {
            return NULL;
        }
        *out = *out * 10 + digit;
    }
    return at == text ? NULL : at;
}

bool stamp_parse(const char *text, uint64_t *number)
{
    uint64_t era = 0;
    const char *rest = parse_digits(text, UINT64_MAX, number);

    if (rest == NULL || *rest == '\0') {
        return rest != NULL;
    }
    if (*rest != '.' || parse_digits(text, UINT64_MAX >> STAMP_COUNT_BITS, &era) != rest) {
        return false;
    }
    rest = parse_digits(rest + 1, count_max, number);
    *number |= era << STAMP_COUNT_BITS;
    return rest != NULL && *rest == '\0';
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * One option's value: parse it, check its range, print it.
 */
#include "daemon/options_inside.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns NULL or what is wrong with the value. */
static const char *set_number(const struct option *o, const char *value)
{
    static char why[96];
    char *end = NULL;

    errno = 0;
    const unsigned long long number = strtoull(value, &end, 10);
    if (value[0] < '0' || value[0] > '9' || *end != '\0' || errno != 0 || number < o->min ||
        number > o->max) {
        (void)snprintf(why, sizeof why, "must be a whole number from %u to %u", o->min, o->max);
        return why;
    }
    *(uint32_t *)o->target = (uint32_t)number;
    return NULL;
}

/* Milliseconds in a unit, 0 = no such unit. */
static uint32_t unit_ms(const char *unit)
{
    return strcmp(unit, "ms") == 0    ? 1
           : strcmp(unit, "s") == 0   ? 1000
           : strcmp(unit, "min") == 0 ? 60000
           : strcmp(unit, "h") == 0   ? 3600000
           : strcmp(unit, "d") == 0   ? 86400000
                                      : 0;
}

bool options_duration(const char *text, uint64_t *ms)
{
    char *end = NULL;

    errno = 0;
    const unsigned long long number = strtoull(text, &end, 10);
    const uint32_t unit = unit_ms(end);
    if (text[0] < '0' || text[0] > '9' || errno != 0 || unit == 0 || number > UINT32_MAX) {
        return false;
    }
    *ms = number * unit;
    return true;
}

/* Returns NULL or what is wrong with the value. */
static const char *set_time(const struct option *o, const char *value)
{
    static char why[96];
    uint64_t ms = 0;

    if (!options_duration(value, &ms) || ms < o->min || ms > o->max) {
        (void)snprintf(why,
                       sizeof why,
                       "must be a time such as 300ms, 3s or 5min, also h and d, from %ums to %us",
                       o->min,
                       o->max / 1000);
        return why;
    }
    *(uint32_t *)o->target = (uint32_t)ms;
    return NULL;
}

static const char *set_text(const struct option *o, const char *value)
{
    static char why[64];

    if (strlen(value) >= o->size) {
        (void)snprintf(why, sizeof why, "the value is too long: at most %zu bytes", o->size - 1);
        return why;
    }
    (void)snprintf(o->target, o->size, "%s", value);
    return NULL;
}

static const char *set_list(const struct option *o, const char *value)
{
    char *text = o->target;
    const size_t used = strlen(text);

    if (strlen(value) + 2 > o->size - used || strchr(value, '\n') != NULL) {
        return "the value is too long";
    }
    (void)snprintf(text + used, o->size - used, "%s%s", used == 0 ? "" : "\n", value);
    return NULL;
}

static const char *set_switch(const struct option *o, const char *value)
{
    if (strcmp(value, "yes") == 0 || strcmp(value, "true") == 0) {
        *(bool *)o->target = true;
    } else if (strcmp(value, "no") == 0 || strcmp(value, "false") == 0) {
        *(bool *)o->target = false;
    } else {
        return "must be yes or no";
    }
    return NULL;
}

const char *option_set(const struct option *o, const char *value)
{
    switch (o->kind) {
    case OPTION_TEXT:
        return set_text(o, value);
    case OPTION_NUMBER:
        return set_number(o, value);
    case OPTION_TIME:
        return set_time(o, value);
    case OPTION_LIST:
        return set_list(o, value);
    case OPTION_SWITCH:
        return set_switch(o, value);
    }
    return "has an unknown type";
}

/* In the largest unit that says it whole. */
static void format_time(uint32_t ms, char *out, size_t size)
{
    static const char *const unit[] = {"d", "h", "min", "s"};

    for (size_t i = 0; i < sizeof unit / sizeof unit[0]; i++) {
        if (ms != 0 && ms % unit_ms(unit[i]) == 0) {
            (void)snprintf(out, size, "%" PRIu32 "%s", ms / unit_ms(unit[i]), unit[i]);
            return;
        }
    }
    (void)snprintf(out, size, "%" PRIu32 "ms", ms);
}

/* Below what may be said: it is what others make it. */
static bool is_derived(const struct option *o)
{
    return (o->kind == OPTION_NUMBER || o->kind == OPTION_TIME) &&
           *(const uint32_t *)o->target < o->min;
}

void option_format(const struct option *o, char *out, size_t size)
{
    if (is_derived(o)) {
        out[0] = '\0';
        return;
    }
    switch (o->kind) {
    case OPTION_TEXT:
    case OPTION_LIST:
        (void)snprintf(out, size, "%s", (const char *)o->target);
        break;
    case OPTION_NUMBER:
        (void)snprintf(out, size, "%" PRIu32, *(const uint32_t *)o->target);
        break;
    case OPTION_TIME:
        format_time(*(const uint32_t *)o->target, out, size);
        break;
    case OPTION_SWITCH:
        (void)snprintf(out, size, "%s", *(const bool *)o->target ? "yes" : "no");
        break;
    }
}

void option_copy(const struct option *to, const struct option *from)
{
    switch (to->kind) {
    case OPTION_TEXT:
    case OPTION_LIST:
        memcpy(to->target, from->target, to->size);
        break;
    case OPTION_NUMBER:
    case OPTION_TIME:
        *(uint32_t *)to->target = *(const uint32_t *)from->target;
        break;
    case OPTION_SWITCH:
        *(bool *)to->target = *(const bool *)from->target;
        break;
    }
}

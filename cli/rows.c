/* SPDX-License-Identifier: Apache-2.0
 *
 * Collects cells, then prints them as aligned columns or as JSON.
 */
#include "cli/rows.h"

#include "base/assert.h"
#include "base/mem.h"
#include "cli/paint.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { CELL_SIZE = 512 };

void rows_init(struct rows *r, const char *const *columns)
{
    *r = (struct rows){0};
    while (columns[r->column_count] != NULL) {
        ASSERT(r->column_count < ROWS_COLUMNS_MAX);
        r->column[r->column_count] = columns[r->column_count];
        r->column_count++;
    }
}

static void forget(struct rows *r)
{
    for (size_t i = 0; i < r->cell_count; i++) {
        mem_free(r->cell[i]);
    }
    r->cell_count = 0;
}

void rows_fini(struct rows *r)
{
    forget(r);
    mem_free((void *)r->cell);
    mem_free(r->number);
    *r = (struct rows){0};
}

static void add(struct rows *r, const char *text, bool number)
{
    if (r->cell_count == r->cell_cap) {
        r->cell_cap = r->cell_cap == 0 ? 64 : r->cell_cap * 2;
        r->cell = mem_resize((void *)r->cell, r->cell_cap * sizeof *r->cell);
        r->number = mem_resize(r->number, r->cell_cap * sizeof *r->number);
    }
    r->cell[r->cell_count] = mem_string(text);
    r->number[r->cell_count++] = number;
}

void rows_text(struct rows *r, const char *format, ...)
{
    char text[CELL_SIZE];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    add(r, text, false);
}

void rows_number(struct rows *r, uint64_t value)
{
    char text[32];

    (void)snprintf(text, sizeof text, "%" PRIu64, value);
    add(r, text, true);
}

struct cell {
    const char *text;
    int width;
    bool right;
    enum paint paint;
};

/* Its blanks are not painted: a terminal may show them. */
static void print_cell(const struct cell *cell)
{
    const int size = (int)strlen(cell->text);
    const int blanks = cell->width > size ? cell->width - size : 0;

    (void)printf("%*s%s%s%s%*s",
                 cell->right ? blanks : 0,
                 "",
                 paint_on(cell->paint),
                 cell->text,
                 paint_off(cell->paint),
                 cell->right ? 0 : blanks,
                 "");
}

/* As wide as the widest so far. */
static void widen(const struct rows *r, size_t *width)
{
    ASSERT(r->column_count > 0);
    for (size_t c = 0; c < r->column_count; c++) {
        const size_t size = strlen(r->column[c]);

        width[c] = size > width[c] ? size : width[c];
    }
    for (size_t i = 0; i < r->cell_count; i++) {
        const size_t size = strlen(r->cell[i]);
        const size_t c = i % r->column_count;

        width[c] = size > width[c] ? size : width[c];
    }
}

/* All but the end of the last line. */
static void print_lines(const struct rows *r, const size_t *width)
{
    ASSERT(r->column_count > 0);
    for (size_t c = 0; c < r->column_count && !r->begun; c++) {
        const struct cell head = {.text = r->column[c],
                                  .width = (int)width[c],
                                  .right = r->cell_count > c && r->number[c],
                                  .paint = PAINT_HEAD};

        (void)printf("%s", c == 0 ? "" : "  ");
        print_cell(&head);
    }
    for (size_t i = 0; i < r->cell_count; i++) {
        const size_t c = i % r->column_count;
        const bool last = c + 1 == r->column_count;
        const struct cell cell = {.text = r->cell[i],
                                  .width = last && !r->number[i] ? 0 : (int)width[c],
                                  .right = r->number[i],
                                  .paint = paint_of_word(r->cell[i])};

        (void)printf(c == 0 ? "\n" : "  ");
        print_cell(&cell);
    }
}

void rows_print_table(const struct rows *r)
{
    size_t width[ROWS_COLUMNS_MAX];

    memcpy(width, r->width, sizeof width);
    widen(r, width);
    print_lines(r, width);
    (void)printf("\n");
}

void json_print_string(const char *text)
{
    (void)putchar('"');
    for (const char *at = text; *at != '\0'; at++) {
        const unsigned char c = (unsigned char)*at;

        if (c == '"' || c == '\\') {
            (void)printf("\\%c", c);
        } else if (c < 0x20) {
            (void)printf("\\u%04x", c);
        } else {
            (void)putchar(c);
        }
    }
    (void)putchar('"');
}

/* All but the bracket that closes them. */
static void print_objects(const struct rows *r)
{
    if (!r->begun) {
        (void)printf("[");
    }
    for (size_t i = 0; i < r->cell_count; i++) {
        const size_t c = i % r->column_count;
        char key[64] = {0};

        for (size_t k = 0; k + 1 < sizeof key && r->column[c][k] != '\0'; k++) {
            const char letter = r->column[c][k];

            key[k] = (char)(letter >= 'A' && letter <= 'Z' ? letter + 32 : letter);
            key[k] = (char)(letter == ' ' ? '_' : key[k]);
        }
        (void)printf("%s", c > 0 ? "," : (i == 0 && !r->begun ? "{" : ",{"));
        json_print_string(key);
        (void)printf(":");
        if (r->number[i]) {
            (void)printf("%s", r->cell[i]);
        } else {
            json_print_string(r->cell[i]);
        }
        (void)printf("%s", c + 1 == r->column_count ? "}" : "");
    }
}

void rows_print_json(const struct rows *r)
{
    print_objects(r);
    (void)printf("]");
}

void rows_print_some(struct rows *r, bool json)
{
    ASSERT(r->cell_count > 0);
    if (json) {
        print_objects(r);
    } else {
        widen(r, r->width);
        print_lines(r, r->width);
    }
    r->begun = true;
    forget(r);
}

const char *duration_text(uint64_t us, char *out, size_t size)
{
    if (us < 1000) {
        (void)snprintf(out, size, "%" PRIu64 " us", us);
    } else if (us < 1000000) {
        (void)snprintf(out, size, "%.1f ms", (double)us / 1e3);
    } else {
        (void)snprintf(out, size, "%.1f s", (double)us / 1e6);
    }
    return out;
}

const char *span_text(uint64_t ms, char *out, size_t size)
{
    const uint64_t s = ms / 1000;

    if (s < 60) {
        (void)snprintf(out, size, "%" PRIu64 "s", s);
    } else if (s < 3600) {
        (void)snprintf(out, size, "%" PRIu64 "m%02" PRIu64 "s", s / 60, s % 60);
    } else if (s < 86400) {
        (void)snprintf(out, size, "%" PRIu64 "h%02" PRIu64 "m", s / 3600, s / 60 % 60);
    } else {
        (void)snprintf(out, size, "%" PRIu64 "d%02" PRIu64 "h", s / 86400, s / 3600 % 24);
    }
    return out;
}

const char *wall_text(uint64_t us, char *out, size_t size)
{
    const time_t seconds = (time_t)(us / 1000000);
    struct tm utc = {0};
    char text[32];

    if (us == 0) {
        (void)snprintf(out, size, "-");
        return out;
    }
    (void)gmtime_r(&seconds, &utc);
    (void)strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &utc);
    (void)snprintf(out, size, "%s.%03u", text, (unsigned)(us / 1000 % 1000));
    return out;
}

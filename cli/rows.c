/* SPDX-License-Identifier: Apache-2.0
 *
 * Collects cells, then prints them as aligned columns, tab-separated lines or JSON.
 */
#include "cli/rows.h"

#include "base/assert.h"
#include "base/mem.h"
#include "base/stamp.h"
#include "cli/paint.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { CELL_SIZE = 512, KEY_SIZE = 64, TEXT_SIZE = 2048, UNIT_SIZE = 32, GAP = 2, FOLD_MIN = 24 };

/* ---- columns ---- */

void rows_init(struct rows *r, const char *const *columns)
{
    *r = (struct rows){0};
    while (columns[r->column_count] != NULL) {
        ASSERT(r->column_count < ROWS_COLUMNS_MAX);
        r->column[r->column_count] = columns[r->column_count];
        r->column_count++;
    }
}

static bool is_marked(const char *column)
{
    return column[0] == '+' || column[0] == '-';
}

static const char *head_of(const char *column, char out[KEY_SIZE])
{
    const char *from = column + is_marked(column);

    (void)snprintf(out, KEY_SIZE, "%.*s", (int)strcspn(from, "="), from);
    return out;
}

static const char *key_of(const char *column, char out[KEY_SIZE])
{
    const char *equals = strchr(column, '=');

    if (equals != NULL) {
        (void)snprintf(out, KEY_SIZE, "%s", equals + 1);
        return out;
    }
    (void)head_of(column, out);
    for (char *at = out; *at != '\0'; at++) {
        *at = (char)(*at >= 'A' && *at <= 'Z' ? *at + 32 : *at == ' ' ? '_' : *at);
    }
    return out;
}

/* ---- cells ---- */

static void forget(struct rows *r)
{
    for (size_t i = 0; i < r->cell_count; i++) {
        mem_free(r->cell[i].text);
        mem_free(r->cell[i].value);
    }
    r->cell_count = 0;
}

void rows_fini(struct rows *r)
{
    forget(r);
    mem_free(r->cell);
    *r = (struct rows){0};
}

static struct rows_cell *add(struct rows *r, const char *text)
{
    if (r->cell_count == r->cell_cap) {
        r->cell_cap = r->cell_cap == 0 ? 64 : r->cell_cap * 2;
        r->cell = mem_resize(r->cell, r->cell_cap * sizeof *r->cell);
    }
    r->cell[r->cell_count] = (struct rows_cell){.text = mem_string(text)};
    return &r->cell[r->cell_count++];
}

void rows_text(struct rows *r, const char *format, ...)
{
    char text[CELL_SIZE];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    (void)add(r, text);
}

static void add_figure(struct rows *r, uint64_t value, const char *text)
{
    char figure[UNIT_SIZE];
    struct rows_cell *cell = add(r, text);

    (void)snprintf(figure, sizeof figure, "%" PRIu64, value);
    cell->value = mem_string(figure);
    cell->number = true;
    cell->right = true;
}

void rows_figure(struct rows *r, uint64_t value, const char *format, ...)
{
    char text[CELL_SIZE];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    add_figure(r, value, text);
}

void rows_number(struct rows *r, uint64_t value)
{
    rows_figure(r, value, "%" PRIu64, value);
}

void rows_stamp(struct rows *r, uint64_t stamp)
{
    struct rows_cell *cell = add(r, stamp == 0 ? "" : STAMP(stamp));

    cell->value = mem_string(STAMP(stamp));
    cell->right = true;
}

void rows_share(struct rows *r, uint64_t ppm)
{
    rows_figure(r, ppm, "%.1f %%", (double)ppm / 1e4);
}

void rows_size(struct rows *r, uint64_t bytes)
{
    char text[UNIT_SIZE];

    add_figure(r, bytes, size_text(bytes, text, sizeof text));
}

void rows_ms(struct rows *r, uint64_t ms)
{
    char text[UNIT_SIZE];

    add_figure(r, ms, ms_text(ms, text, sizeof text));
}

void rows_us(struct rows *r, uint64_t us)
{
    char text[UNIT_SIZE];

    add_figure(r, us, duration_text(us, text, sizeof text));
}

void rows_us_known(struct rows *r, uint64_t us)
{
    if (us > 0) {
        rows_us(r, us);
    } else {
        rows_figure(r, 0, "-");
    }
}

void rows_rate(struct rows *r, bool known, uint64_t rate_s)
{
    if (known) {
        rows_figure(r, rate_s, "%" PRIu64 "/s", rate_s);
    } else {
        rows_figure(r, 0, "-");
    }
}

/* ---- tables ---- */

/* Of UTF-8: bytes that go on with a character take no column. */
static size_t width_of(const char *text)
{
    size_t width = 0;

    for (; *text != '\0'; text++) {
        width += ((unsigned char)*text & 0xc0) != 0x80;
    }
    return width;
}

/* As wide as the widest so far. */
static void widen(const struct rows *r, size_t *width)
{
    char head[KEY_SIZE];

    ASSERT(r->column_count > 0);
    for (size_t c = 0; c < r->column_count; c++) {
        const size_t size = width_of(head_of(r->column[c], head));

        width[c] = size > width[c] ? size : width[c];
    }
    for (size_t i = 0; i < r->cell_count; i++) {
        const size_t size = width_of(r->cell[i].text);
        const size_t c = i % r->column_count;

        width[c] = size > width[c] ? size : width[c];
    }
}

static bool is_empty(const struct rows *r, size_t column)
{
    for (size_t i = column; i < r->cell_count; i += r->column_count) {
        if (r->cell[i].text[0] != '\0') {
            return false;
        }
    }
    return r->cell_count > 0;
}

static size_t total_of(const struct rows *r, const size_t *width)
{
    size_t total = 0;

    for (size_t c = 0; c < r->column_count; c++) {
        total += r->shown[c] ? width[c] + (total == 0 ? 0 : GAP) : 0;
    }
    return total;
}

/* The last shown column before `end`; column_count: there is none. */
static size_t last_shown(const struct rows *r, size_t end)
{
    for (size_t c = end; c-- > 0;) {
        if (r->shown[c]) {
            return c;
        }
    }
    return r->column_count;
}

/* A column of sentences: one of names has no blanks. */
static bool is_prose(const struct rows *r, size_t column)
{
    for (size_t i = column; i < r->cell_count; i += r->column_count) {
        if (!r->cell[i].right && strchr(r->cell[i].text, ' ') != NULL) {
            return true;
        }
    }
    return false;
}

/* What is too wide: a last column of prose is folded, and what stands before it is left out if that
 * is not enough; else the last columns are. The first one stays. */
static void narrow(struct rows *r, size_t *width)
{
    for (;;) {
        const size_t total = total_of(r, width);
        const size_t last = last_shown(r, r->column_count);
        const bool prose = is_prose(r, last);
        const size_t out = prose ? last_shown(r, last) : last;

        if (total <= ROWS_WIDTH) {
            return;
        }
        if (prose && width[last] >= total - ROWS_WIDTH + FOLD_MIN) {
            width[last] -= total - ROWS_WIDTH;
            return;
        }
        if (out == r->column_count || last_shown(r, out) == r->column_count) {
            return; // names alone are too wide
        }
        r->shown[out] = false;
    }
}

static void choose(struct rows *r, enum rows_format format, size_t *width)
{
    for (size_t c = 0; c < r->column_count; c++) {
        r->right[c] = r->cell_count > c && r->cell[c].right;
        r->shown[c] = r->column[c][0] != '-' &&
                      (format == ROWS_WIDE || (r->column[c][0] != '+' && !is_empty(r, c)));
    }
    if (format == ROWS_TABLE) {
        narrow(r, width);
    }
}

/* How many bytes of it stand in a line of `width`; `*next` is where the next line begins. */
static size_t fold(const char *text, size_t width, const char **next)
{
    const char *blank = NULL;
    const char *at = text;

    for (size_t used = 0; *at != '\0'; at++) {
        used += ((unsigned char)*at & 0xc0) != 0x80;
        blank = *at == ' ' && used <= width + 1 ? at : blank;
        if (used > width) {
            break;
        }
    }
    if (*at == '\0') {
        *next = at;
        return (size_t)(at - text);
    }
    if (blank != NULL && blank > text) {
        *next = blank + 1;
        return (size_t)(blank - text);
    }
    *next = at;
    return (size_t)(at - text);
}

/* One line of a table as it is printed. */
struct rows_line {
    size_t at;     /* columns that are filled */
    size_t column; /* where the next cell begins */
};

/* Blanks are printed, not painted, when something follows: a terminal may show them. */
static void put(struct rows_line *line, const char *text, size_t size, enum paint paint)
{
    char part[CELL_SIZE];

    (void)snprintf(part, sizeof part, "%.*s", (int)size, text);
    if (part[0] == '\0') {
        return;
    }
    (void)printf(
        "%*s%s%s%s", (int)(line->column - line->at), "", paint_on(paint), part, paint_off(paint));
    line->at = line->column + width_of(part);
}

static void print_row(const struct rows *r, const struct rows_cell *row, const size_t *width)
{
    const size_t last = last_shown(r, r->column_count);
    struct rows_line line = {0};
    size_t begin = 0;
    const char *rest = "";

    for (size_t c = 0; c < r->column_count; c++) {
        const size_t size = width_of(row[c].text);
        const char *next = row[c].text;

        if (!r->shown[c]) {
            continue;
        }
        line.column = begin + (row[c].right && size < width[c] ? width[c] - size : 0);
        size_t bytes = strlen(row[c].text);
        if (c == last && size > width[c]) {
            bytes = fold(row[c].text, width[c], &next);
            rest = next;
        }
        put(&line, row[c].text, bytes, paint_of_word(row[c].text));
        begin += c == last ? 0 : width[c] + GAP;
    }
    while (*rest != '\0') {
        const char *text = rest;
        const size_t bytes = fold(text, width[last], &rest);

        (void)printf("\n");
        line = (struct rows_line){.column = begin};
        put(&line, text, bytes, PAINT_NONE);
    }
}

static void print_head(const struct rows *r, const size_t *width)
{
    struct rows_line line = {0};
    size_t begin = 0;
    char head[KEY_SIZE];

    for (size_t c = 0; c < r->column_count; c++) {
        if (r->shown[c]) {
            const size_t size = width_of(head_of(r->column[c], head));

            line.column = begin + (r->right[c] && size < width[c] ? width[c] - size : 0);
            put(&line, head, strlen(head), PAINT_HEAD);
            begin += width[c] + GAP;
        }
    }
}

/* All but the end of the last line. */
static void print_lines(struct rows *r, enum rows_format format, size_t *width)
{
    ASSERT(r->column_count > 0);
    if (!r->begun) {
        choose(r, format, width);
        print_head(r, width);
    }
    for (size_t i = 0; i < r->cell_count; i += r->column_count) {
        (void)printf("\n");
        print_row(r, &r->cell[i], width);
    }
}

/* Which columns there was no room for. */
static void print_left_out(const struct rows *r)
{
    size_t count = 0;
    char head[KEY_SIZE];

    for (size_t c = 0; c < r->column_count; c++) {
        if (!r->shown[c] && !is_marked(r->column[c]) && !is_empty(r, c)) {
            (void)printf(
                "%s%s", count++ == 0 ? "(no room for " : ", ", head_of(r->column[c], head));
        }
    }
    (void)printf(count == 0 ? "" : ": see -o wide)\n");
}

static void print_table(const struct rows *r, enum rows_format format)
{
    struct rows copy = *r;

    widen(r, copy.width);
    print_lines(&copy, format, copy.width);
    (void)printf("\n");
    if (format == ROWS_TABLE && !r->begun) {
        print_left_out(&copy);
    }
}

/* ---- for programs ---- */

static const char *value_of(const struct rows_cell *cell)
{
    return cell->value == NULL ? cell->text : cell->value;
}

/* A tab or a newline in it would be taken for the end of the cell. */
static void print_tsv_cell(const char *text, bool last)
{
    for (; *text != '\0'; text++) {
        (void)putchar(*text == '\t' || *text == '\n' || *text == '\r' ? ' ' : *text);
    }
    (void)putchar(last ? '\n' : '\t');
}

static void print_tsv(const struct rows *r)
{
    char key[KEY_SIZE];

    ASSERT(r->column_count > 0);
    for (size_t c = 0; c < r->column_count && !r->begun; c++) {
        print_tsv_cell(key_of(r->column[c], key), c + 1 == r->column_count);
    }
    for (size_t i = 0; i < r->cell_count; i++) {
        print_tsv_cell(value_of(&r->cell[i]), i % r->column_count + 1 == r->column_count);
    }
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

void json_print_stamp(const char *key, uint64_t stamp)
{
    (void)printf(",\"%s\":\"%s\"", key, STAMP(stamp));
}

/* All but the bracket that closes them. */
static void print_objects(const struct rows *r)
{
    char key[KEY_SIZE];

    if (!r->begun) {
        (void)printf("[");
    }
    for (size_t i = 0; i < r->cell_count; i++) {
        const size_t c = i % r->column_count;

        (void)printf("%s", c > 0 ? "," : (i == 0 && !r->begun ? "{" : ",{"));
        json_print_string(key_of(r->column[c], key));
        (void)printf(":");
        if (r->cell[i].number) {
            (void)printf("%s", value_of(&r->cell[i]));
        } else {
            json_print_string(value_of(&r->cell[i]));
        }
        (void)printf("%s", c + 1 == r->column_count ? "}" : "");
    }
}

void rows_print(const struct rows *r, enum rows_format format)
{
    switch (format) {
    case ROWS_TABLE:
    case ROWS_WIDE:
        print_table(r, format);
        break;
    case ROWS_TSV:
        print_tsv(r);
        break;
    case ROWS_JSON:
        print_objects(r);
        (void)printf("]");
        break;
    }
}

void rows_print_some(struct rows *r, enum rows_format format)
{
    ASSERT(r->cell_count > 0);
    if (format == ROWS_JSON) {
        print_objects(r);
    } else if (format == ROWS_TSV) {
        print_tsv(r);
    } else {
        widen(r, r->width);
        print_lines(r, format, r->width);
    }
    r->begun = true;
    forget(r);
}

/* ---- texts ---- */

void text_print(FILE *out, const char *text, size_t indent)
{
    size_t blanks = 0;

    do {
        const char *line = text;
        const size_t bytes = fold(line, ROWS_WIDTH - blanks, &text);

        (void)fprintf(out, "%*s%.*s\n", (int)blanks, "", (int)bytes, line);
        blanks = indent;
    } while (*text != '\0');
}

void text_printf(size_t indent, const char *format, ...)
{
    char text[TEXT_SIZE];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    text_print(stdout, text, indent);
}

const char *size_text(uint64_t bytes, char *out, size_t size)
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB"};
    double value = (double)bytes / 1024;
    size_t unit = 0;

    if (bytes < 1024) {
        (void)snprintf(out, size, "%" PRIu64 " B", bytes);
        return out;
    }
    while (value >= 1024 && unit + 1 < sizeof units / sizeof units[0]) {
        value /= 1024;
        unit++;
    }
    (void)snprintf(out, size, "%.1f %s", value, units[unit]);
    return out;
}

const char *ms_text(uint64_t ms, char *out, size_t size)
{
    if (ms < 1000) {
        (void)snprintf(out, size, "%" PRIu64 " ms", ms);
        return out;
    }
    return ms < 60000 ? duration_text(ms * 1000, out, size) : span_text(ms, out, size);
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

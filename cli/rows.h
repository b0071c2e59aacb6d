/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows for people (aligned columns) or for programs (tab-separated lines, or a JSON array of
 * objects). Collects all cells, then prints; of a long list some at a time.
 *
 * People get units ("33.3 %", "2.9 s", "1.76"), programs plain figures. A table is plain text, no
 * wider than ROWS_WIDTH: it leaves out columns in which no row has anything, folds a last column of
 * text, and if that is not enough leaves out columns from the right, and says which.
 */
#ifndef CLI_ROWS_H
#define CLI_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { ROWS_COLUMNS_MAX = 24, ROWS_WIDTH = 100 };

enum rows_format {
    ROWS_TABLE,
    ROWS_WIDE, /* a table with all columns, however wide */
    ROWS_TSV,
    ROWS_JSON,
};

struct rows_cell {
    char *text;  /* owned; for people */
    char *value; /* owned; for programs; NULL: the same */
    bool number; /* of JSON: not in quotes */
    bool right;  /* aligned */
};

struct rows {
    const char *column[ROWS_COLUMNS_MAX]; /* as rows_init() got them */
    size_t column_count;
    struct rows_cell *cell; /* owned; column_count a row */
    size_t cell_count;
    size_t cell_cap;
    bool begun;                     /* rows_print_some() has printed the first ones */
    bool shown[ROWS_COLUMNS_MAX];   /* by a table; chosen when its first rows are printed */
    bool right[ROWS_COLUMNS_MAX];   /* likewise: its head is aligned so */
    size_t width[ROWS_COLUMNS_MAX]; /* of a table's columns, in what that printed */
};

/* `columns` is NULL-terminated and outlives the rows. One is its head, "HELD EVER"; programs know
 * it by that in lower case, held_ever, or by what follows "=": "SHARE=share_ppm". With "+" before
 * it only wide tables have it, and with "-" no table. */
void rows_init(struct rows *r, const char *const *columns);
void rows_fini(struct rows *r);

/* Cells are added left to right, row after row. */
void rows_text(struct rows *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
void rows_number(struct rows *r, uint64_t value);
/* A number for programs, with a text of its own for people, "" for nothing. */
void rows_figure(struct rows *r, uint64_t value, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* "1.76" (base/stamp.h), a text for programs; for people nothing if it is 0. */
void rows_stamp(struct rows *r, uint64_t stamp);
/* Of millionths, bytes, milliseconds, microseconds: "33.3 %", "80.1 KiB", "2.9 s". */
void rows_share(struct rows *r, uint64_t ppm);
void rows_size(struct rows *r, uint64_t bytes);
void rows_ms(struct rows *r, uint64_t ms);
void rows_us(struct rows *r, uint64_t us);
/* Likewise; 0 is not known: "-" for people. */
void rows_us_known(struct rows *r, uint64_t us);
/* "12/s"; if that is not known 0, for people "-". */
void rows_rate(struct rows *r, bool known, uint64_t rate_s);

/* Print them all. JSON, `[{"name":"n1",…},…]`, is without a newline. */
void rows_print(const struct rows *r, enum rows_format format);

/* Print the rows that there are, at least one, and forget them; rows_print() prints those that are
 * added then, and the end. A table's columns are as wide as the widest cell so far, and are
 * chosen by the rows that come first. */
void rows_print_some(struct rows *r, enum rows_format format);

/* Print a text for people in lines of at most ROWS_WIDTH, broken at blanks; those behind the first
 * begin with `indent` blanks. */
void text_print(FILE *out, const char *text, size_t indent);
/* text_print() of a format, to stdout. */
void text_printf(size_t indent, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Print a JSON string with its quotes. */
void json_print_string(const char *text);
/* Print `,"key":"1.76"`, of a stamp. */
void json_print_stamp(const char *key, uint64_t stamp);

/* "984 B", "80.1 KiB", "3.2 MiB". Buffer of the caller. */
const char *size_text(uint64_t bytes, char *out, size_t size);

/* "330 ms", "2.9 s", then as span_text(); from milliseconds. Likewise. */
const char *ms_text(uint64_t ms, char *out, size_t size);

/* "3.2 s" for people, from microseconds. Static buffer of the caller. */
const char *duration_text(uint64_t us, char *out, size_t size);

/* "12s", "3m12s", "5h02m" or "4d07h", for what may have been long ago; from milliseconds. Likewise.
 */
const char *span_text(uint64_t ms, char *out, size_t size);

/* "2026-01-31 12:00:00.123" in UTC, or "-" for 0. Buffer of the caller, 48 bytes. */
const char *wall_text(uint64_t us, char *out, size_t size);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows for people (aligned columns) or for programs (a JSON array of objects).
 * Collects all cells, then prints; of a long list some at a time.
 */
#ifndef CLI_ROWS_H
#define CLI_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ROWS_COLUMNS_MAX = 20 };

struct rows {
    const char *column[ROWS_COLUMNS_MAX]; /* names; JSON keys in lower case */
    size_t column_count;
    char **cell; /* owned; column_count a row */
    bool *number;
    size_t cell_count;
    size_t cell_cap;
    bool begun;                     /* rows_print_some() has printed the first ones */
    size_t width[ROWS_COLUMNS_MAX]; /* of a table's columns, in what that printed */
};

/* `columns` is NULL-terminated and outlives the rows. */
void rows_init(struct rows *r, const char *const *columns);
void rows_fini(struct rows *r);

/* Cells are added left to right, row after row. */
void rows_text(struct rows *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
void rows_number(struct rows *r, uint64_t value);

void rows_print_table(const struct rows *r);
/* Prints `[{"name":"n1",…},…]` without a newline. */
void rows_print_json(const struct rows *r);

/* Print the rows that there are, at least one, and forget them; rows_print_table() or
 * rows_print_json() prints those that are added then, and the end. A table's columns are as wide as
 * the widest cell so far. */
void rows_print_some(struct rows *r, bool json);

/* Print a JSON string with its quotes. */
void json_print_string(const char *text);

/* "3.2 s" for people, from microseconds. Static buffer of the caller. */
const char *duration_text(uint64_t us, char *out, size_t size);

/* "12s", "3m12s", "5h02m" or "4d07h", for what may have been long ago; from milliseconds. Likewise.
 */
const char *span_text(uint64_t ms, char *out, size_t size);

/* "2026-01-31 12:00:00.123" in UTC, or "-" for 0. Buffer of the caller, 48 bytes. */
const char *wall_text(uint64_t us, char *out, size_t size);

#endif

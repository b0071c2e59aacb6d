/* SPDX-License-Identifier: Apache-2.0
 *
 * Golden vectors: compare bytes with the hex text that documents them.
 */
#ifndef TESTS_HEX_H
#define TESTS_HEX_H

#include "base/bytes.h"

#include "tests/test.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* Fail unless `bytes` are exactly what `hex` says; blanks in it are for the reader. */
static inline void assert_hex(struct bytes bytes, const char *hex)
{
    char have[4096];
    char want[4096];
    size_t size = 0;

    assert_true(bytes.size * 2 < sizeof have);
    for (size_t i = 0; bytes.data != NULL && i < bytes.size; i++) {
        (void)snprintf(have + 2 * i, 3, "%02x", bytes.data[i]);
    }
    have[bytes.data == NULL ? 0 : 2 * bytes.size] = '\0';
    for (; *hex != '\0'; hex++) {
        if (!isspace((unsigned char)*hex)) {
            want[size++] = *hex;
        }
    }
    want[size] = '\0';
    assert_string_equal(have, want);
}

static inline struct bytes text(const char *string)
{
    return bytes_of(string, strlen(string));
}

#endif

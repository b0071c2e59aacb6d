/* SPDX-License-Identifier: Apache-2.0
 *
 * What every test includes: cmocka, in the order that it wants its headers.
 * A test is one program tests/NAME_test.c with a table of cases; a case's name
 * is its sentence. CMOCKA_TEST_FILTER=pattern runs some of them.
 */
#ifndef TESTS_TEST_H
#define TESTS_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#endif

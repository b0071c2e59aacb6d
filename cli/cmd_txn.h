/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the files of `ringhold txn`.
 */
#ifndef CLI_CMD_TXN_H
#define CLI_CMD_TXN_H

#include <stdbool.h>
#include <stdint.h>

/* A transaction's number as it was typed. False after printing why. */
bool txn_number(const char *command, const char *text, uint64_t *number);
int txn_resolve(int argc, char **argv);

#endif

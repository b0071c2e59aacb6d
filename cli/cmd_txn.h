/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the files of `ringhold txn`.
 */
#ifndef CLI_CMD_TXN_H
#define CLI_CMD_TXN_H

int txn_resolve(int argc, char **argv);

#endif

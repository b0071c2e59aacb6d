/* SPDX-License-Identifier: Apache-2.0
 *
 * ledger_each.c whose states are of the next version.
 */
#define LEDGER_NEXT
#include "tests/plugins/ledger_each.c" // NOLINT(bugprone-suspicious-include)

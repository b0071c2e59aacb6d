/* SPDX-License-Identifier: Apache-2.0
 *
 * tally.c whose states are of the next version.
 */
#define TALLY_WRITES 2
#define TALLY_READS  2
#include "tests/plugins/tally.c" // NOLINT(bugprone-suspicious-include)

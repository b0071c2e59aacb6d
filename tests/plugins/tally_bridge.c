/* SPDX-License-Identifier: Apache-2.0
 *
 * tally.c that also reads the states of tally_next.c.
 */
#define TALLY_READS 2
#include "tests/plugins/tally.c" // NOLINT(bugprone-suspicious-include)

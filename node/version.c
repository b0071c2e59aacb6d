/* SPDX-License-Identifier: Apache-2.0
 *
 * rh_version: which release runs.
 */
#include <ringhold.h>

const char *rh_version(void)
{
    return RINGHOLD_VERSION;
}

uint32_t rh_version_number(void)
{
    return RH_VERSION_NUMBER;
}

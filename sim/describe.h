/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages in words, for the trace.
 */
#ifndef SIM_DESCRIBE_H
#define SIM_DESCRIBE_H

#include "wire/control.pb-c.h"

/* "PREPARE 57 (2 arcs)". Static memory, good until the next call. */
const char *describe_control(const Rh__Control *message);

#endif

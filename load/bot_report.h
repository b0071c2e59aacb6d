/* SPDX-License-Identifier: Apache-2.0
 *
 * What is printed of a run of bots, on standard output.
 */
#ifndef LOAD_BOT_REPORT_H
#define LOAD_BOT_REPORT_H

#include "load/bots_uv.h"

/* Print the outcome for people. */
void bot_report_text(const struct bots_outcome *o);

/* Print the outcome as one JSON object in one line; times in microseconds. */
void bot_report_json(const struct bots_outcome *o);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * What is printed of a run of bots, on standard output.
 */
#ifndef LOAD_BOT_REPORT_H
#define LOAD_BOT_REPORT_H

#include "load/bots_uv.h"

/* For people. */
void bot_report_text(const struct bots_outcome *o);

/* One JSON object in one line; times in microseconds. */
void bot_report_json(const struct bots_outcome *o);

#endif

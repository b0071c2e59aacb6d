/* SPDX-License-Identifier: Apache-2.0
 *
 * What happened, in words: an event of the history as a sentence.
 *
 * Pure.
 */
#ifndef CLI_EVENT_TEXT_H
#define CLI_EVENT_TEXT_H

#include "wire/control.pb-c.h"

#include <stddef.h>

enum { EVENT_TEXT_SIZE = 1024 };

/* "transaction 1.28 began: drain n1". `history` names the nodes behind incarnations, where
 * it has the events of their registration. Returns `out`. */
const char *event_text(const Rh__EventRow *event, const Rh__AdminReply *history,
                       char out[EVENT_TEXT_SIZE]);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages: what comes over links, who may say it, and who decides on it?
 */
#ifndef TXN_LEADER_MESSAGE_H
#define TXN_LEADER_MESSAGE_H

#include "txn/leader/coordinator.h"

struct messages {
    uint64_t refused; /* that their sender may not send */
};

void message_on(struct coordinator *c, const struct coordinator_event *event);
/* Answer that another one leads. */
void message_not_leading(struct coordinator *c, uint64_t peer);

#endif

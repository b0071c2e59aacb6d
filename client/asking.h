/* SPDX-License-Identifier: Apache-2.0
 *
 * Asking: which requests and notifies does the owner want sent, and when is one due?
 */
#ifndef CLIENT_ASKING_H
#define CLIENT_ASKING_H

#include <ringhold_client.h>
#include <stdbool.h>
#include <stdint.h>

struct asking {
    uint64_t scan_ms; /* when to look for requests that are due */
    uint32_t last_name;
};

/* End those that are due. */
void asking_tick(struct rhc *c);
/* True: `event` tells of one that ended here, without an answer. */
bool asking_tells(struct rhc *c, struct rhc_event *event);

#endif

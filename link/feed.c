/* SPDX-License-Identifier: Apache-2.0
 *
 * Has a link write from the log of a stream, and say what that owes.
 */
#include "link/feed.h"

void link_feed_log(struct link *link, struct sendlog *log)
{
    link_feed(link);
    if (sendlog_owes_ack(log)) {
        uint8_t ack[STREAM_HEADER_SIZE];
        const struct stream_head head = sendlog_say(log, 0);

        stream_head_store(ack, STREAM_ACK, &head);
        if (link_send(link,
                      FRAME_STREAM_ACK,
                      bytes_of(ack + FRAME_HEADER_SIZE, sizeof ack - FRAME_HEADER_SIZE)) !=
            ERR_OK) {
            log->told = 0; // the next time it is said again
        }
    }
}

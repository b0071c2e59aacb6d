/* SPDX-License-Identifier: Apache-2.0
 *
 * What a stream has for its link: the link writes the log's frames from where they lie, and `ack`
 * goes in a frame of its own where no frame of the log says it.
 */
#ifndef LINK_FEED_H
#define LINK_FEED_H

#include "link/link.h"
#include "stream/sendlog.h"

/* The log, which the link's source (link_set_source) takes from, has something for the link, which
 * is up. What begins or joins the stream on this connection was sent by link_send() before. At the
 * end of a turn, before links_flush(). */
void link_feed_log(struct link *link, struct sendlog *log);

#endif

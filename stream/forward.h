/* SPDX-License-Identifier: Apache-2.0
 *
 * A node that does not own a request's entity sends it on, as a client of the
 * owner, by its own stream (R8F). The request stays taken and unanswered in the
 * stream that it came by until the owner's answer, or refusal, is appended there.
 *
 * A request is forwarded once. When the node in the middle dies, whoever it sent
 * the request to drops it with that death, before it takes anything of a ring that
 * says so. A third node could not: it does not know that the request came by the
 * dead one, and would run it behind the lane's next one (M_TWOHOPS).
 */
#ifndef STREAM_FORWARD_H
#define STREAM_FORWARD_H

#include "stream/asker.h"
#include "stream/server.h"

/* Send on a request that `s` has taken, to the owner's stream; NULL = there is none. `verdict` is
 * server_judge()'s of it: RUN or FOLLOWS. False: it is to be refused, MOVED with the version
 * adopted here: it was forwarded before, there is no room, or others of its position that went
 * elsewhere are unanswered (beside). `r` is borrowed and not changed. */
bool forward_pass(struct stream_asker *a, struct stream_client *to, struct stream_server *s,
                  enum server_verdict verdict, const struct stream_request *r, uint64_t position);
/* From time to time: what waits here for its link, and whose time is over, must not run. */
void forward_expire(struct stream_asker *a, uint64_t now_ms);
/* A reply of the asker that is of a forward: makes the entry of the request in the stream that it
 * came by. Returns that stream. */
struct stream_server *forward_ended(const struct stream_reply *reply);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * Protobuf messages to bytes and back: the control plane (wire/control.proto)
 * and the commands of the replicated state (wire/raft.proto).
 *
 * Decoding is bounded twice: by the size of what came in, and by the memory
 * that it may unfold into, for two hostile bytes can stand for a structure of
 * a hundred.
 */
#ifndef WIRE_CONTROL_H
#define WIRE_CONTROL_H

#include "base/actor_name.h"
#include "base/bytes.h"
#include "wire/control.pb-c.h"
#include "wire/raft.pb-c.h"

#include <stdbool.h>

enum { CONTROL_SIZE_MAX = 16 * 1024 * 1024 }; /* of one encoded message */
/* ActorRow.came: how an actor that lives at a node came to live there. */
enum resident_came { RESIDENT_STARTED = 1, RESIDENT_MOVED = 2 };
enum { ADMIN_REASON_MAX = 200 }; /* bytes of an operator's reason: control_reason() */

/* Append the encoded message to `out`. A Commit of MOVEs becomes Moves on its way, and a Commit
 * again. */
void control_put(struct buffer *out, const Rh__Control *control);
void command_put(struct buffer *out, const Rh__Command *command);
void proto_put(struct buffer *out, const ProtobufCMessage *message);

/* Returns the message, owned, or NULL if the bytes are not one or break a limit. */
Rh__Control *control_get(struct bytes in);
Rh__Command *command_get(struct bytes in);
ProtobufCMessage *proto_get(const ProtobufCMessageDescriptor *descriptor, struct bytes in);

/* True if all texts in the message are plain (base/plain.h), as what peers say for people to read
 * must be. */
bool control_texts_are_plain(const Rh__Control *control);
/* Make them so. */
void control_make_texts_plain(Rh__Control *control);

/* Return the reason that an operator gives for his wish; "" for a question, which has none.
 * Borrowed from `in`. */
const char *control_reason(const Rh__Admin *in);

/* Free what the functions above returned; takes NULL. */
void control_free(Rh__Control *control);
void command_free(Rh__Command *command);
void proto_free(ProtobufCMessage *message);

/* Return a pointer for a message that is only going to be encoded: protobuf-c's members are not
 * const, but encoding only reads them. Both functions borrow until the message was put. */
char *proto_text(const char *text);
ProtobufCBinaryData proto_bytes(struct bytes bytes);

/* Print an actor's name, as actor_name_print(); "0/" for NULL. Return `out`. */
const char *proto_actor(const Rh__Actor *actor, char out[ACTOR_NAME_SIZE]);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/control.h"

#include "base/assert.h"
#include "base/mem.h"
#include "wire/moves.h"
#include "wire/versions.h"

/* What an honest message unfolds into: its own size a few times over. */
enum { UNFOLD_TIMES = 16, UNFOLD_FREE = 1024 * 1024 };

struct allowance {
    size_t left; /* bytes that decoding may still take */
};

static void *take(void *context, size_t size)
{
    struct allowance *allowance = context;

    if (size > allowance->left) {
        return NULL;
    }
    allowance->left -= size;
    return mem_new(1, size);
}

static void give(void *context, void *memory)
{
    (void)context;
    mem_free(memory);
}

void proto_put(struct buffer *out, const ProtobufCMessage *message)
{
    const size_t size = protobuf_c_message_get_packed_size(message);
    const size_t packed = protobuf_c_message_pack(message, buffer_reserve(out, size));

    ASSERT(packed == size);
    out->size += size;
}

ProtobufCMessage *proto_get(const ProtobufCMessageDescriptor *descriptor, struct bytes in)
{
    struct allowance allowance = {.left = UNFOLD_TIMES * in.size + UNFOLD_FREE};
    ProtobufCAllocator allocator = {.alloc = take, .free = give, .allocator_data = &allowance};

    if (in.size > CONTROL_SIZE_MAX) {
        return NULL;
    }
    return protobuf_c_message_unpack(descriptor, &allocator, in.size, in.data);
}

void proto_free(ProtobufCMessage *message)
{
    ProtobufCAllocator allocator = {.alloc = take, .free = give};

    if (message != NULL) {
        protobuf_c_message_free_unpacked(message, &allocator);
    }
}

void control_put(struct buffer *out, const Rh__Control *control)
{
    if (!moves_put(out, control)) {
        proto_put(out, &control->base);
    }
}

Rh__Control *control_get(struct bytes in)
{
    Rh__Control *control = (Rh__Control *)proto_get(&rh__control__descriptor, in);

    if (control != NULL && control->body_case == RH__CONTROL__BODY_MOVES &&
        !moves_unfold(control)) {
        control_free(control);
        return NULL;
    }
    return control;
}

void control_free(Rh__Control *control)
{
    proto_free(control == NULL ? NULL : &control->base);
}

void command_put(struct buffer *out, const Rh__Command *command)
{
    proto_put(out, &command->base);
}

/* False: it is of a format that this version does not read. Whoever skipped it would have another
 * state than those who know it. */
static bool is_read(const Rh__Command *command)
{
    if (command->body_case == RH__COMMAND__BODY_INIT) {
        return command->init->format <= FLEET_FORMAT;
    }
    if (command->body_case == RH__COMMAND__BODY_FORMAT) {
        return command->format->format <= FLEET_FORMAT;
    }
    return command->body_case == RH__COMMAND__BODY_AHEAD
               ? FLEET_FORMAT >= FLEET_FORMAT_AHEAD
               : command->body_case != RH__COMMAND__BODY__NOT_SET;
}

Rh__Command *command_get(struct bytes in)
{
    Rh__Command *command = (Rh__Command *)proto_get(&rh__command__descriptor, in);

    if (command != NULL && !is_read(command)) {
        command_free(command);
        return NULL;
    }
    return command;
}

void command_free(Rh__Command *command)
{
    proto_free(command == NULL ? NULL : &command->base);
}

char *proto_text(const char *text)
{
    union {
        const char *in;
        char *out;
    } cast = {.in = text};

    return cast.out;
}

ProtobufCBinaryData proto_bytes(struct bytes bytes)
{
    union {
        const uint8_t *in;
        uint8_t *out;
    } cast = {.in = bytes.data};

    return (ProtobufCBinaryData){.len = bytes.size, .data = cast.out};
}

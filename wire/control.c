/* SPDX-License-Identifier: Apache-2.0
 *
 * Packs and unpacks protobuf messages, and refuses texts that are not plain.
 */
#include "wire/control.h"

#include "base/assert.h"
#include "base/mem.h"
#include "base/plain.h"
#include "wire/moves.h"
#include "wire/versions.h"

#include <string.h>

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

/* ---- texts ---- */

enum { DEPTH_MAX = 16 };

typedef bool text_visit(char *text);

static bool is_plain(char *text)
{
    return plain_is(text);
}

static bool make_plain(char *text)
{
    if (!plain_is(text)) { // else it may be a constant
        plain_make(text);
    }
    return true;
}

/* Items of a field; 0: it is not there. */
static size_t field_count(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *f)
{
    const uint8_t *quantifier = (const uint8_t *)message + f->quantifier_offset;
    uint32_t oneof = f->id;
    size_t count = 1;

    if (f->label == PROTOBUF_C_LABEL_REPEATED) {
        memcpy(&count, quantifier, sizeof count);
    } else if ((f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0) {
        memcpy(&oneof, quantifier, sizeof oneof);
    }
    return oneof == f->id ? count : 0;
}

/* The item of a field whose items are pointers. */
static void *field_item(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *f,
                        size_t index)
{
    const uint8_t *items = (const uint8_t *)message + f->offset;
    void *item;

    if (f->label == PROTOBUF_C_LABEL_REPEATED) {
        memcpy(&items, (const uint8_t *)message + f->offset, sizeof items);
    }
    memcpy(&item, items + index * sizeof item, sizeof item);
    return item;
}

/* False as soon as `visit` says so of one text in it. */
static bool walk_texts(const ProtobufCMessage *message, text_visit *visit)
{
    struct {
        const ProtobufCMessage *message;
        unsigned field; /* the next one of it, */
        size_t item;    /* and of that */
    } stack[DEPTH_MAX] = {{message, 0, 0}};
    size_t depth = 1;

    while (depth > 0) {
        const size_t top = depth - 1;
        const ProtobufCMessage *m = stack[top].message;

        if (stack[top].field == m->descriptor->n_fields) {
            depth--;
            continue;
        }
        const ProtobufCFieldDescriptor *f = &m->descriptor->fields[stack[top].field];
        const bool text = f->type == PROTOBUF_C_TYPE_STRING;

        if ((!text && f->type != PROTOBUF_C_TYPE_MESSAGE) || stack[top].item == field_count(m, f)) {
            stack[top].field++;
            stack[top].item = 0;
            continue;
        }
        void *item = field_item(m, f, stack[top].item++);

        if (text && !visit(item)) {
            return false;
        }
        if (!text && item != NULL) {
            ASSERT(depth < DEPTH_MAX); // no message of ours is in itself
            stack[depth].message = item;
            stack[depth].field = 0;
            stack[depth++].item = 0;
        }
    }
    return true;
}

bool control_texts_are_plain(const Rh__Control *control)
{
    return walk_texts(&control->base, is_plain);
}

void control_make_texts_plain(Rh__Control *control)
{
    (void)walk_texts(&control->base, make_plain);
}

const char *control_reason(const Rh__Admin *in)
{
    return in->what_case == RH__ADMIN__WHAT_DRAIN              ? in->drain->reason
           : in->what_case == RH__ADMIN__WHAT_REMOVE           ? in->remove->reason
           : in->what_case == RH__ADMIN__WHAT_WEIGHT           ? in->weight->reason
           : in->what_case == RH__ADMIN__WHAT_DAEMONS          ? in->daemons->reason
           : in->what_case == RH__ADMIN__WHAT_QUARANTINE       ? in->quarantine->reason
           : in->what_case == RH__ADMIN__WHAT_RESOLVE          ? in->resolve->reason
           : in->what_case == RH__ADMIN__WHAT_REPAIR           ? in->repair->why
           : in->what_case == RH__ADMIN__WHAT_UPGRADE          ? in->upgrade->reason
           : in->what_case == RH__ADMIN__WHAT_COORDINATORS     ? in->coordinators->reason
           : in->what_case == RH__ADMIN__WHAT_OPERATOR_REQUEST ? in->operator_request->reason
           : in->what_case == RH__ADMIN__WHAT_MOVE             ? in->move->reason
           : in->what_case == RH__ADMIN__WHAT_PIN              ? in->pin->reason
           : in->what_case == RH__ADMIN__WHAT_MAINTENANCE      ? in->maintenance->reason
           : in->what_case == RH__ADMIN__WHAT_FORGET           ? in->forget->reason
                                                               : "";
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

const char *proto_actor(const Rh__Actor *actor, char out[ACTOR_NAME_SIZE])
{
    return actor == NULL
               ? actor_name_print(0, bytes_of(NULL, 0), out)
               : actor_name_print(actor->kind, bytes_of(actor->id.data, actor->id.len), out);
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

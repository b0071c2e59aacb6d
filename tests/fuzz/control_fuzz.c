/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as a control message, a command of the replicated state, a hello
 * and a refusal. What decodes can be encoded, and was judged by its row. (Decoding that again may
 * fail: protobuf-c keeps an unknown field of number 0 if its tag was padded.)
 */
#include "base/assert.h"
#include "wire/access.h"
#include "wire/control.h"
#include "wire/hello.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void control_again(struct bytes in)
{
    Rh__Control *control = control_get(in);
    struct buffer out = {0};

    if (control != NULL) {
        control_put(&out, control);
        control_free(control);
        control_free(control_get(buffer_bytes(&out)));
    }
    buffer_fini(&out);
}

/* The rows of what a decoder makes of it; ACCESS_NONE: none. */
static enum access_message body_row(const Rh__Control *control)
{
#define X(name, ...)                                      \
    if (control->body_case == RH__CONTROL__BODY_##name) { \
        return ACCESS_BODY_##name;                        \
    }
    ACCESS_BODIES(X)
#undef X
    return ACCESS_NONE;
}

static enum access_message what_row(const Rh__Control *control)
{
    if (control->body_case != RH__CONTROL__BODY_ADMIN) {
        return body_row(control);
    }
#define X(name, ...)                                           \
    if (control->admin->what_case == RH__ADMIN__WHAT_##name) { \
        return ACCESS_WHAT_##name;                             \
    }
    ACCESS_WHATS(X)
#undef X
    return ACCESS_BODY_ADMIN;
}

static void is_judged(struct bytes in)
{
    const struct frame frame = {.type = FRAME_CONTROL, .count = 1, .body = in};
    Rh__Control *control = control_get(in);

    for (unsigned from = ROLE_STRANGER; from < ACCESS_ROLES; from++) {
        for (enum link_role to = ROLE_COORDINATOR; to <= ROLE_CLI; to++) {
            ASSERT(access_judge(&frame, from, to) != ACCESS_NONE || control == NULL ||
                   (access_may(body_row(control), from, to) &&
                    access_may(what_row(control), from, to)));
        }
    }
    control_free(control);
}

static void command_again(struct bytes in)
{
    Rh__Command *command = command_get(in);
    struct buffer out = {0};

    if (command != NULL) {
        command_put(&out, command);
        command_free(command);
        command_free(command_get(buffer_bytes(&out)));
    }
    buffer_fini(&out);
}

static void hello_again(struct bytes in)
{
    struct hello hello;
    struct buffer out = {0};
    char reason[64];

    if (hello_get(in, &hello) == ERR_OK) {
        hello_put(&out, &hello);
        ASSERT(hello_get(buffer_bytes(&out), &hello) == ERR_OK);
        const bool fits = versions_are_range(hello.protocol) && versions_are_range(hello.format) &&
                          hello_reads(&hello, hello.in_force);

        ASSERT((hello_judge(&hello, &hello).refusal == REFUSAL_NONE) == fits);
    }
    refusal_get(in, reason, sizeof reason);
    buffer_fini(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct bytes in = bytes_of(data, size);

    control_again(in);
    is_judged(in);
    command_again(in);
    hello_again(in);
    return 0;
}

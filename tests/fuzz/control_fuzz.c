/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as a control message, a command of the replicated state, a hello
 * and a refusal. What decodes can be encoded. (Decoding that again may fail:
 * protobuf-c keeps an unknown field of number 0 if its tag was padded.)
 */
#include "base/assert.h"
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
        ASSERT((hello_judge(&hello, &hello).refusal == REFUSAL_NONE) ==
               versions_are_range(hello.protocol));
    }
    refusal_get(in, reason, sizeof reason);
    buffer_fini(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct bytes in = bytes_of(data, size);

    control_again(in);
    command_again(in);
    hello_again(in);
    return 0;
}

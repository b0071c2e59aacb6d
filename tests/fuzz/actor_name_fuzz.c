/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as an actor's name: what is one is printed, read again, and is the same.
 */
#include "base/actor_name.h"
#include "base/assert.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_whole(struct bytes text)
{
    struct actor_name name;
    struct actor_name again;
    char printed[ACTOR_NAME_SIZE];

    if (actor_name_parse(text, &name) == ACTOR_SPELLING_NONE) {
        return;
    }
    (void)actor_name_print(name.kind, bytes_of(name.id, name.id_size), printed);
    const struct bytes all = bytes_of(printed, strlen(printed));
    ASSERT(actor_name_parse(all, &again) == ACTOR_SPELLING_NUMBER);
    ASSERT(again.kind == name.kind && again.id_size == name.id_size && !again.at);
    ASSERT(memcmp(again.id, name.id, name.id_size) == 0);
}

/* And as the bytes of an id. */
static void check_id(struct bytes id)
{
    char printed[ACTOR_NAME_ID_SIZE];
    uint8_t again[ACTOR_NAME_ID_MAX];
    size_t size;

    if (id.size == 0 || id.size > ACTOR_NAME_ID_MAX) {
        return;
    }
    (void)actor_name_print_id(id, printed);
    ASSERT(actor_name_parse_id(bytes_of(printed, strlen(printed)), again, &size));
    ASSERT(size == id.size && memcmp(again, id.data, size) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check_whole(bytes_of(data, size));
    check_id(bytes_of(data, size));
    return 0;
}

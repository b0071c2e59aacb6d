/* SPDX-License-Identifier: Apache-2.0
 *
 * A fleet's id as 32 hexadecimal digits, and read from them.
 */
#include "base/fleet_id.h"

#include "base/escape.h"

#include <inttypes.h>
#include <stdio.h>

void fleet_id_print(struct fleet_id f, char text[FLEET_ID_TEXT_SIZE])
{
    text[0] = '\0';
    if (fleet_id_known(f)) {
        (void)snprintf(text, FLEET_ID_TEXT_SIZE, "%016" PRIx64 "%016" PRIx64, f.high, f.low);
    }
}

bool fleet_id_parse(const char *text, struct fleet_id *out)
{
    uint64_t half[2] = {0};

    *out = (struct fleet_id){0};
    for (int i = 0; i < FLEET_ID_TEXT_SIZE - 1; i++) {
        const int digit = hex_of((uint8_t)text[i]);

        if (digit < 0) {
            return false; // also at an early end
        }
        half[i / 16] = half[i / 16] << 4 | (uint64_t)digit;
    }
    if (text[FLEET_ID_TEXT_SIZE - 1] != '\0' && text[FLEET_ID_TEXT_SIZE - 1] != '\n') {
        return false;
    }
    *out = (struct fleet_id){half[0], half[1]};
    return fleet_id_known(*out);
}

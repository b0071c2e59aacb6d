/* SPDX-License-Identifier: Apache-2.0
 *
 * Bytes: what is on its way out beside the log, and what came and was not taken yet?
 *
 * bytes.c has both ends; packets.c puts packets behind what is to be sent.
 */
#ifndef CLIENT_BYTES_H
#define CLIENT_BYTES_H

#include <ringhold_client.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CONTROL_MAX = 2048 }; /* hello, auth, bind or resume, acks and some pongs */

struct client_bytes {
    uint8_t control[CONTROL_MAX];
    size_t control_size;
    bool sending_control;
    uint8_t *in; /* the owner's memory */
    size_t in_max;
    size_t in_at;  /* taken */
    size_t in_end; /* received */
};

static inline struct rhc_bytes bytes_at(const void *data, size_t size)
{
    struct rhc_bytes b = {data, size};
    return b;
}

void incoming_init(struct rhc *c, uint8_t *in, size_t in_max);
/* The connection is gone, and what was half sent or half read with it. */
void bytes_forget(struct rhc *c);
/* The next packet that is whole. */
bool packet_take(struct rhc *c, uint8_t *type, struct rhc_bytes *body);

#endif

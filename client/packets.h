/* SPDX-License-Identifier: Apache-2.0
 *
 * Packets: how does a client say what it says?
 */
#ifndef CLIENT_PACKETS_H
#define CLIENT_PACKETS_H

#include <ringhold_client.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HEAD = 4 }; /* of a packet: u8 type, u24 size */

enum packet_number {
    P_HELLO = 1,
    P_HELLO_ACK = 2,
    P_PING = 3,
    P_PONG = 4,
    P_KICK = 5,
    P_REQUEST = 6,
    P_RESPONSE = 7,
    P_NOTIFY = 8,
    P_PUSH = 9,
    P_GOAWAY = 10,
    P_BIND = 11,
    P_UNBIND = 12,
    P_AUTH = 13,
    P_RESUME = 14,
    P_AUTH_OK = 15,
    P_BEGUN = 16,
    P_ACK = 17,
    P_REBOUND = 18,
    P_LATER = 128, /* from here on: passed over if not known */
};

/* Names of our own questions, out of the way of requests'. */
enum { NAME_BIND = 0x7FFFFFFF, NAME_UNBIND = 0x7FFFFFFE, NAME_MAX_ASKED = 0x7FFFFF00 };

enum wire_flags { F_IDEMPOTENT = 1, F_DEADLINE = 2, F_KEEP = 4, F_AGAIN = 8 };

void say_hello(struct rhc *c);
void say_auth(struct rhc *c);
void say_bind(struct rhc *c);
/* The client's resume number `attempt`. False: there is no room, and the connection is given up. */
bool say_resume(struct rhc *c, uint32_t attempt);
void say_unbind(struct rhc *c);
void say_ack(struct rhc *c);
void say_ping(struct rhc *c, enum packet_number type, struct rhc_bytes body);

/* Write a request or a notify to `out`, HEAD + asking_size() bytes. */
size_t asking_size(const struct rhc_request *r);
void asking_write(uint8_t *out, enum packet_number type, uint32_t name,
                  const struct rhc_request *r);

#endif

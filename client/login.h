/* SPDX-License-Identifier: Apache-2.0
 *
 * Login: what does the client show to say who it is?
 */
#ifndef CLIENT_LOGIN_H
#define CLIENT_LOGIN_H

#include <ringhold_client.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    AUTH_MAX = 1024, /* bytes that are shown to log in */
    TOKEN_MAX = 520, /* … of a token that a gateway gives */
};

struct login {
    char token[AUTH_MAX + 1];
    uint8_t given[TOKEN_MAX]; /* by the gateway that we were known at last: shown instead */
    size_t given_size;        /* 0 = none */
    bool showed_given;        /* in this connection */
};

/* True if the client has anything to show. */
bool login_has(const struct login *l);
/* The bytes to show now; login.showed_given says which they are. */
struct rhc_bytes login_show(struct rhc *c);
/* The gateway gives a token, of at most TOKEN_MAX bytes; none of them: show what was set. */
void login_take(struct rhc *c, struct rhc_bytes given);
/* Forget the token that a gateway issued. */
void login_forget(struct rhc *c);

#endif

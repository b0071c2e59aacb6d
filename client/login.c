/* SPDX-License-Identifier: Apache-2.0
 *
 * What a client shows to log in: its owner's token, or the one that a gateway gave for it.
 */
#include "client/inside.h"

#include <string.h>

int rhc_set_token(struct rhc *c, const char *token)
{
    if (c == NULL) {
        return RHC_INVALID;
    }
    const size_t size = token == NULL ? 0 : strlen(token);

    if (size > AUTH_MAX) {
        return RHC_INVALID;
    }
    login_forget(c);
    if (size > 0) {
        memcpy(c->login.token, token, size);
    }
    c->login.token[size] = '\0';
    return RHC_DONE;
}

bool login_has(const struct login *l)
{
    return l->token[0] != '\0' || l->given_size > 0;
}

struct rhc_bytes login_show(struct rhc *c)
{
    struct login *l = &c->login;

    l->showed_given = l->given_size > 0;
    return l->showed_given ? bytes_at(l->given, l->given_size)
                           : bytes_at(l->token, strlen(l->token));
}

void login_take(struct rhc *c, struct rhc_bytes given)
{
    if (given.size > 0) {
        memcpy(c->login.given, given.data, given.size);
    }
    c->login.given_size = given.size;
}

void login_forget(struct rhc *c)
{
    c->login.given_size = 0;
}

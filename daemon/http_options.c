/* SPDX-License-Identifier: Apache-2.0
 *
 * The rows --admin, --admin-token and --operator-token, and whether a daemon may start with them.
 */
#include "daemon/http_options.h"

#include "daemon/fault.h"
#include "daemon/listen.h"
#include "wire/address.h"

#include <openssl/crypto.h>
#include <string.h>

struct option http_address_option(struct http_options *o)
{
    return option_text("admin",
                       "HOST:PORT",
                       o->admin,
                       sizeof o->admin,
                       "address for /metrics, /healthz, /readyz, /status and a coordinator's web "
                       "page; or unix:PATH (none)");
}

struct option http_token_option(struct http_options *o)
{
    return option_text("admin-token",
                       "FILE",
                       o->token,
                       sizeof o->token,
                       "file with the token that requests to --admin's /metrics and /status must "
                       "send: Authorization: Bearer");
}

struct option http_operator_option(struct http_options *o)
{
    return option_text("operator-token",
                       "FILE",
                       o->operator_token,
                       sizeof o->operator_token,
                       "file with another token, of operators, who may change the fleet by the web "
                       "page (nobody may)");
}

const char *http_unix_path(const struct http_options *o)
{
    return strncmp(o->admin, "unix:", 5) == 0 ? o->admin + 5 : NULL;
}

static bool complain(const char *daemon, const char *what, const char *which, const char *why)
{
    fault_print(daemon, "%s '%s': %s", what, which, why);
    return false;
}

/* None named is none. False after printing what is wrong. */
static bool load(struct bearer *t, const char *file, const char *what, const char *daemon)
{
    const char *wrong = file[0] == '\0' ? NULL : bearer_read(t, file);

    return wrong == NULL || complain(daemon, what, file, wrong);
}

bool http_tokens_load(struct http_tokens *t, const struct http_options *o, const char *daemon)
{
    const struct bearer *a = &t->reader;
    const struct bearer *b = &t->operator;

    if (!load(&t->reader, o->token, "cannot take --admin-token", daemon) ||
        !load(&t->operator, o->operator_token, "cannot take --operator-token", daemon)) {
        return false;
    }
    // Who may look, monitoring above all, would be an operator.
    return a->size == 0 || a->size != b->size || CRYPTO_memcmp(a->text, b->text, a->size) != 0 ||
           complain(daemon,
                    "--operator-token",
                    o->operator_token,
                    "it has the same token as --admin-token: take another");
}

void http_tokens_wipe(struct http_tokens *t)
{
    bearer_wipe(&t->reader);
    bearer_wipe(&t->operator);
}

static bool check_tokens(const struct http_options *o, const char *daemon)
{
    struct http_tokens tokens = {.reader = {.size = 0}};
    const bool good = http_tokens_load(&tokens, o, daemon);

    http_tokens_wipe(&tokens);
    return good;
}

bool http_check(const struct http_options *o, const char *daemon)
{
    const char *path = http_unix_path(o);

    if (o->admin[0] == '\0' && o->token[0] != '\0') {
        return complain(
            daemon, "--admin-token", o->token, "--admin-token needs --admin, which is missing");
    }
    if (o->admin[0] == '\0') {
        return o->operator_token[0] == '\0' ||
               complain(daemon,
                        "--operator-token",
                        o->operator_token,
                        "--operator-token needs --admin, which is missing");
    }
    if (path != NULL) {
        if (path[0] != '/' || strlen(path) >= HTTP_UNIX_PATH_SIZE) {
            return complain(daemon,
                            "--admin",
                            o->admin,
                            "a UNIX socket needs an absolute path of at most 107 bytes");
        }
        return check_tokens(o, daemon);
    }
    if (!listen_allowed(daemon, "admin", o->admin, true)) {
        return false; // it is no address
    }
    if (!address_is_loopback(o->admin) && o->token[0] == '\0') {
        return complain(
            daemon, "--admin", o->admin, "the address is beyond loopback: --admin-token is needed");
    }
    return check_tokens(o, daemon);
}

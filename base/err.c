/* SPDX-License-Identifier: Apache-2.0
 *
 * The names and texts of enum err, made from its list.
 */
#include "base/err.h"

static const struct {
    const char *name;
    const char *text;
} errors[] = {
#define X(name, text) [name] = {#name, text},
    ERR_LIST(X)
#undef X
};

const char *err_name(enum err e)
{
    return errors[e].name;
}

const char *err_text(enum err e)
{
    return errors[e].text;
}

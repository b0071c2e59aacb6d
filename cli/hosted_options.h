/* SPDX-License-Identifier: Apache-2.0
 *
 * The flags of `ringhold node` about hosts: processes that have the code of its actors
 * (hosted/hosted.h).
 */
#ifndef CLI_HOSTED_OPTIONS_H
#define CLI_HOSTED_OPTIONS_H

#include "daemon/options.h"
#include "node/node_uv.h"

struct hosted_args {
    char address[256]; /* "" = none */
    char token[512];   /* a file; "" = none */
    uint32_t silence_ms;
};

struct hosted_args hosted_args_default(void);

/* Add the rows to the command's table; `w` is borrowed as long as that is used. */
void hosted_args_add(struct options *t, struct hosted_args *w);

/* Listen for hosts if that is asked for, and let `o` have kinds of theirs. False after printing why
 * not; hosted_args_close() is due all the same. */
bool hosted_args_open(const struct hosted_args *w, struct node_options *o);
void hosted_args_close(const struct hosted_args *w);

#endif

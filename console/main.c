/* SPDX-License-Identifier: Apache-2.0
 *
 * ringhold-console: `ringhold cli`.
 */
#include "console/console.h"

#include "daemon/program.h"

int main(int argc, char **argv)
{
    static const struct verb verbs[] = {
        {"cli", cmd_cli, NULL, ""},
    };

    return program_main(verbs, sizeof verbs / sizeof verbs[0], argc, argv);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * ringhold-load: `ringhold bench` and `ringhold bot`.
 */
#include "daemon/program.h"
#include "load/commands.h"

int main(int argc, char **argv)
{
    static const struct verb verbs[] = {
        {"bench", cmd_bench, NULL, ""},
        {"bot", cmd_bot, NULL, ""},
    };

    return program_main(verbs, sizeof verbs / sizeof verbs[0], argc, argv);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Embeds the web page's files into the program.
 */
#include "daemon/site.h"

#include <string.h>

/* The assembler puts the files in; the Makefile names them as what this object is made of. */
#define SITE_FILE(name, file)                                                    \
    __asm__(".pushsection .rodata\n"                                             \
            ".balign 8\n" #name "_size: .quad " #name "_end - " #name "\n" #name \
            ": .incbin \"" file "\"\n" #name "_end:\n"                           \
            ".popsection\n")

SITE_FILE(site_index, "daemon/web/index.html");
SITE_FILE(site_script, "daemon/web/fleet.js");
SITE_FILE(site_style, "daemon/web/fleet.css");

extern const unsigned char site_index[];
extern const unsigned char site_script[];
extern const unsigned char site_style[];
extern const uint64_t site_index_size;
extern const uint64_t site_script_size;
extern const uint64_t site_style_size;

const struct site_file *site_find(const char *path)
{
    static struct site_file files[] = {
        {.path = "/", .type = "text/html; charset=utf-8"},
        {.path = "/fleet.js", .type = "text/javascript; charset=utf-8"},
        {.path = "/fleet.css", .type = "text/css; charset=utf-8"},
    };

    files[0].content = bytes_of(site_index, site_index_size);
    files[1].content = bytes_of(site_script, site_script_size);
    files[2].content = bytes_of(site_style, site_style_size);
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        if (strcmp(path, files[i].path) == 0) {
            return &files[i];
        }
    }
    return NULL;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Embeds the web page's files into the program.
 */
#include "daemon/web_assets.h"

#include <string.h>

/* The assembler puts the files in; the Makefile names them as what this object is made of. */
#define WEB_ASSET(name, file)                                                    \
    __asm__(".pushsection .rodata\n"                                             \
            ".balign 8\n" #name "_size: .quad " #name "_end - " #name "\n" #name \
            ": .incbin \"" file "\"\n" #name "_end:\n"                           \
            ".popsection\n")

WEB_ASSET(web_index, "daemon/web/index.html");
WEB_ASSET(web_script, "daemon/web/fleet.js");
WEB_ASSET(web_style, "daemon/web/fleet.css");
WEB_ASSET(web_icon, "daemon/web/icon.svg");

extern const unsigned char web_index[];
extern const unsigned char web_script[];
extern const unsigned char web_style[];
extern const unsigned char web_icon[];
extern const uint64_t web_index_size;
extern const uint64_t web_script_size;
extern const uint64_t web_style_size;
extern const uint64_t web_icon_size;

const struct web_asset *web_asset_find(const char *path)
{
    static struct web_asset files[] = {
        {.path = "/", .type = "text/html; charset=utf-8"},
        {.path = "/fleet.js", .type = "text/javascript; charset=utf-8"},
        {.path = "/fleet.css", .type = "text/css; charset=utf-8"},
        {.path = "/icon.svg", .type = "image/svg+xml"},
    };

    files[0].content = bytes_of(web_index, web_index_size);
    files[1].content = bytes_of(web_script, web_script_size);
    files[2].content = bytes_of(web_style, web_style_size);
    files[3].content = bytes_of(web_icon, web_icon_size);
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        if (strcmp(path, files[i].path) == 0) {
            return &files[i];
        }
    }
    return NULL;
}

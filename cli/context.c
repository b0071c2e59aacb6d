/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads and writes contexts, which are small files of the user's.
 */
#include "cli/context.h"

#include "base/mem.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LINE_SIZE = CONTEXT_VALUE_SIZE + 64, NAMES_MAX = 1000 };

const char *context_key_name(enum context_key key)
{
    static const char *const names[CONTEXT_KEYS] = {
        [CONTEXT_COORDINATORS] = "coordinators",
        [CONTEXT_CLUSTER] = "cluster",
        [CONTEXT_GATEWAY] = "gateway",
        [CONTEXT_TLS_CA] = "link-ca",
        [CONTEXT_TLS_CERTIFICATE] = "link-certificate",
        [CONTEXT_TLS_KEY] = "link-key",
        [CONTEXT_TOKEN] = "token",
    };

    return names[key];
}

bool context_is_name(const char *name)
{
    const size_t size = strlen(name);

    return size > 0 && size < CONTEXT_NAME_SIZE && name[0] != '.' && name[0] != '-' &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") ==
               size;
}

static bool complain(const char *path, const char *why)
{
    (void)fprintf(stderr, "ringhold: %s: %s\n", path, why);
    return false;
}

/* ---- where ---- */

/* The folder of it all, with `more` behind it. False: nobody says where. */
static bool path_of(const char *more, const char *name, char out[CONTEXT_PATH_SIZE])
{
    const char *base = getenv("XDG_CONFIG_HOME");
    const char *home = getenv("HOME");
    const bool own = base != NULL && base[0] == '/'; // a relative one is to be ignored
    int size;

    if (!own && (home == NULL || home[0] == '\0')) {
        return false;
    }
    size = own ? snprintf(out, CONTEXT_PATH_SIZE, "%s/ringhold%s%s", base, more, name)
               : snprintf(out, CONTEXT_PATH_SIZE, "%s/.config/ringhold%s%s", home, more, name);
    return size > 0 && size < CONTEXT_PATH_SIZE;
}

static bool need_path(const char *more, const char *name, char out[CONTEXT_PATH_SIZE])
{
    return path_of(more, name, out) ||
           complain("contexts", "neither XDG_CONFIG_HOME nor HOME says where they are");
}

/* All folders on the way to the file. */
static bool make_folders(const char *path)
{
    char folder[CONTEXT_PATH_SIZE];

    for (const char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        (void)snprintf(folder, sizeof folder, "%.*s", (int)(slash - path), path);
        if (mkdir(folder, 0700) != 0 && errno != EEXIST) {
            return complain(folder, strerror(errno));
        }
    }
    return true;
}

/* ---- reading ---- */

/* Whoever writes it decides whom the commands ask, and what they believe. */
static bool is_mine(FILE *file, const char *path)
{
    struct stat s;

    if (fstat(fileno(file), &s) != 0) {
        return complain(path, strerror(errno));
    }
    if (!S_ISREG(s.st_mode)) {
        return complain(path, "it is no file");
    }
    if ((s.st_uid != geteuid() && s.st_uid != 0) || (s.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
        return complain(path, "others may write it: chmod 600, or make it yours");
    }
    return true;
}

/* NULL, and errno, if it can't be opened; NULL, and `told`, if it must not be used. */
static FILE *open_mine(const char *path, bool *told)
{
    FILE *file = fopen(path, "re");

    *told = file != NULL && !is_mine(file, path);
    if (*told) {
        (void)fclose(file);
        file = NULL;
    }
    return file;
}

/* The word without blanks around it. */
static char *trim(char *text)
{
    text += strspn(text, " \t");
    for (size_t size = strlen(text); size > 0 && strchr(" \t\r\n", text[size - 1]) != NULL;) {
        text[--size] = '\0';
    }
    return text;
}

/* NULL, or what is wrong with the line. */
static const char *take_line(struct context *c, char *line)
{
    char *equals = strchr(line, '=');
    const char *text = trim(line);

    if (text[0] == '\0' || text[0] == '#') {
        return NULL;
    }
    if (equals == NULL) {
        return "a line is no KEY = VALUE";
    }
    *equals = '\0';
    text = trim(line);
    const char *value = trim(equals + 1);
    for (int key = 0; key < CONTEXT_KEYS; key++) {
        if (strcmp(text, context_key_name((enum context_key)key)) == 0) {
            if (strlen(value) >= CONTEXT_VALUE_SIZE) {
                return "a value is too long";
            }
            (void)snprintf(c->value[key], CONTEXT_VALUE_SIZE, "%s", value);
            return NULL;
        }
    }
    return "a key is unknown: a newer version may have written it";
}

bool context_load(const char *name, struct context *out)
{
    char path[CONTEXT_PATH_SIZE];
    char line[LINE_SIZE];
    const char *why = NULL;
    bool told = false;

    *out = (struct context){.name = ""};
    if (!context_is_name(name)) {
        return complain(name, "it is no name of a context: use a-z A-Z 0-9 . _ -");
    }
    if (!need_path("/context/", name, path)) {
        return false;
    }
    FILE *file = open_mine(path, &told);
    if (file == NULL) {
        if (!told && errno == ENOENT) {
            (void)fprintf(stderr,
                          "ringhold: there is no context '%s': `ringhold context list` lists them, "
                          "`ringhold context add %s` makes one\n",
                          name,
                          name);
            return false;
        }
        return told ? false : complain(path, strerror(errno));
    }
    (void)snprintf(out->name, sizeof out->name, "%s", name);
    while (why == NULL && fgets(line, sizeof line, file) != NULL) {
        why = take_line(out, line);
    }
    if (why == NULL && ferror(file) != 0) {
        why = strerror(errno);
    }
    (void)fclose(file);
    return why == NULL || complain(path, why);
}

/* Who has no home, or none of his own, has no contexts. */
static bool is_nowhere(int error)
{
    return error == ENOENT || error == ENOTDIR || error == EACCES;
}

bool context_current(char name[CONTEXT_NAME_SIZE])
{
    char path[CONTEXT_PATH_SIZE];
    char line[LINE_SIZE] = "";
    bool told = false;

    name[0] = '\0';
    if (!path_of("/current", "", path)) {
        return true; // a service without a home has no contexts
    }
    FILE *file = open_mine(path, &told);
    if (file == NULL) {
        return !told && (is_nowhere(errno) || complain(path, strerror(errno)));
    }
    const char *text = fgets(line, sizeof line, file) == NULL ? "" : trim(line);
    (void)fclose(file);
    if (text[0] != '\0' && !context_is_name(text)) {
        return complain(path, "it names no context");
    }
    (void)snprintf(name, CONTEXT_NAME_SIZE, "%s", text);
    return true;
}

bool context_default(struct context *out)
{
    const char *asked = getenv("RINGHOLD_CONTEXT");
    char name[CONTEXT_NAME_SIZE];

    *out = (struct context){.name = ""};
    if (asked != NULL && asked[0] != '\0') {
        return context_load(asked, out);
    }
    return context_current(name) && (name[0] == '\0' || context_load(name, out));
}

/* ---- writing ---- */

/* Whole, or as it was: a new file takes the place of the old one. */
static bool write_file(const char *path, const char *text)
{
    char fresh[CONTEXT_PATH_SIZE + 16];
    const size_t size = strlen(text);
    const int folder = (int)(strrchr(path, '/') - path);

    if (!make_folders(path)) {
        return false;
    }
    (void)snprintf(fresh, sizeof fresh, "%.*s/.new-XXXXXX", folder, path);
    const int file = mkstemp(fresh); // mode 0600
    if (file < 0) {
        return complain(fresh, strerror(errno));
    }
    const bool written =
        write(file, text, size) == (ssize_t)size && fsync(file) == 0 && close(file) == 0;
    if (!written || rename(fresh, path) != 0) {
        (void)complain(path, strerror(errno));
        (void)unlink(fresh);
        return false;
    }
    return true;
}

bool context_save(const struct context *c)
{
    char text[CONTEXT_KEYS * LINE_SIZE] = "";
    char path[CONTEXT_PATH_SIZE];
    size_t used = 0;

    for (int key = 0; key < CONTEXT_KEYS; key++) {
        if (c->value[key][0] != '\0') {
            used += (size_t)snprintf(text + used,
                                     sizeof text - used,
                                     "%s = %s\n",
                                     context_key_name((enum context_key)key),
                                     c->value[key]);
        }
    }
    return need_path("/context/", c->name, path) && write_file(path, text);
}

bool context_use(const char *name)
{
    char path[CONTEXT_PATH_SIZE];
    char text[CONTEXT_NAME_SIZE + 1];

    if (!need_path("/current", "", path)) {
        return false;
    }
    if (name[0] == '\0') {
        return unlink(path) == 0 || errno == ENOENT || complain(path, strerror(errno));
    }
    (void)snprintf(text, sizeof text, "%s\n", name);
    return write_file(path, text);
}

bool context_remove(const char *name)
{
    char path[CONTEXT_PATH_SIZE];
    char current[CONTEXT_NAME_SIZE];

    if (!context_is_name(name)) {
        return complain(name, "it is no name of a context");
    }
    if (!need_path("/context/", name, path) || !context_current(current)) {
        return false;
    }
    if (unlink(path) != 0) {
        return complain(path, strerror(errno));
    }
    return strcmp(current, name) != 0 || context_use("");
}

/* ---- all of them ---- */

static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

bool context_list(void (*each)(void *context, const char *name), void *context)
{
    char *names[NAMES_MAX];
    char path[CONTEXT_PATH_SIZE];
    size_t count = 0;

    if (!need_path("/context", "", path)) {
        return false;
    }
    DIR *folder = opendir(path);
    if (folder == NULL) {
        return errno == ENOENT || complain(path, strerror(errno));
    }
    for (const struct dirent *e = readdir(folder); e != NULL && count < NAMES_MAX;
         e = readdir(folder)) {
        if (context_is_name(e->d_name)) {
            names[count++] = mem_string(e->d_name);
        }
    }
    (void)closedir(folder);
    qsort(names, count, sizeof *names, compare);
    for (size_t i = 0; i < count; i++) {
        each(context, names[i]);
        mem_free(names[i]);
    }
    return true;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads as much of JSON as a list of moves needs: names of nodes have nothing to escape.
 */
#include "cli/move_list.h"

#include "base/bytes.h"
#include "base/mem.h"
#include "ring/view.h"
#include "wire/control.h"

#include <stdio.h>
#include <string.h>

enum { MOVES_MAX = 4096, PIECE = 65536, WORD_MAX = VIEW_NAME_MAX };

/* What is still to be read. */
struct text {
    const char *at;
    const char *end;
};

static void skip_space(struct text *t)
{
    while (t->at < t->end && strchr(" \t\r\n", *t->at) != NULL) {
        t->at++;
    }
}

/* True, and it is behind us: this character comes next. */
static bool take(struct text *t, char wanted)
{
    skip_space(t);
    if (t->at == t->end || *t->at != wanted) {
        return false;
    }
    t->at++;
    return true;
}

static bool take_word(struct text *t, char word[WORD_MAX + 1])
{
    size_t size = 0;

    if (!take(t, '"')) {
        return false;
    }
    while (t->at < t->end && *t->at != '"' && *t->at != '\\' && size < WORD_MAX) {
        word[size++] = *t->at++;
    }
    word[size] = '\0';
    return t->at < t->end && *t->at++ == '"';
}

static bool take_number(struct text *t, uint32_t *number)
{
    const char *begin;
    uint64_t value = 0;

    skip_space(t);
    begin = t->at;
    while (t->at < t->end && *t->at >= '0' && *t->at <= '9' && value <= UINT32_MAX) {
        value = value * 10 + (uint64_t)(*t->at++ - '0');
    }
    *number = (uint32_t)value;
    return t->at > begin && value <= UINT32_MAX;
}

static bool take_move(struct text *t, Rh__AdminMove *moves)
{
    char key[WORD_MAX + 1];
    char node[WORD_MAX + 1] = "";
    uint32_t vnode = 0;
    bool has_vnode = false;
    bool good = take(t, '{');

    do {
        good = good && take_word(t, key) && take(t, ':');
        if (good && strcmp(key, "vnode") == 0 && !has_vnode) {
            good = has_vnode = take_number(t, &vnode);
        } else {
            good = good && strcmp(key, "node") == 0 && node[0] == '\0' && take_word(t, node);
        }
    } while (good && take(t, ','));
    if (good && take(t, '}') && has_vnode && node[0] != '\0' && moves->n_moves < MOVES_MAX) {
        move_list_add(moves, vnode, node);
        return true;
    }
    return false;
}

static bool take_moves(struct text *t, Rh__AdminMove *moves)
{
    bool good = take(t, '[');

    if (good && take(t, ']')) {
        return true;
    }
    do {
        good = good && take_move(t, moves);
    } while (good && take(t, ','));
    good = good && take(t, ']');
    skip_space(t);
    return good && t->at == t->end;
}

static bool read_all(const char *path, struct buffer *out)
{
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "rbe");
    size_t size = 1;
    bool good = file != NULL;

    while (good && size > 0) {
        size = fread(buffer_reserve(out, PIECE), 1, PIECE, file);
        out->size += size;
    }
    good = good && ferror(file) == 0;
    if (file != NULL && file != stdin) {
        (void)fclose(file);
    }
    return good;
}

bool move_list_read(const char *path, Rh__AdminMove *moves)
{
    struct buffer bytes = {0};
    bool good = read_all(path, &bytes);

    if (!good) {
        (void)fprintf(stderr, "ringhold move: %s can't be read\n", path);
    } else {
        const char *begin = (const char *)bytes.data;
        struct text t = {begin, begin + bytes.size};

        good = take_moves(&t, moves);
        if (!good) {
            (void)fprintf(stderr,
                          "ringhold move: %s: byte %zu: this is not "
                          "[{\"vnode\":7,\"node\":\"n2\"}, ...] with at most %d moves\n",
                          path,
                          (size_t)(t.at - begin),
                          MOVES_MAX);
        }
    }
    buffer_fini(&bytes);
    return good;
}

void move_list_add(Rh__AdminMove *moves, uint32_t vnode, const char *node)
{
    Rh__VnodeMove *move = mem_new(1, sizeof *move);

    *move = (Rh__VnodeMove)RH__VNODE_MOVE__INIT;
    move->vnode = vnode;
    move->node = mem_string(node);
    moves->moves = mem_resize(moves->moves, (moves->n_moves + 1) * sizeof(Rh__VnodeMove *));
    moves->moves[moves->n_moves++] = move;
}

void move_list_free(Rh__AdminMove *moves)
{
    for (size_t i = 0; i < moves->n_moves; i++) {
        proto_free(&moves->moves[i]->base);
    }
    mem_free(moves->moves);
    moves->moves = NULL;
    moves->n_moves = 0;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a fuzz entry without libFuzzer, where there is none: bytes by chance and
 * the given seed files with bytes changed, put in and cut out. It sees no
 * coverage, so it finds less; the sanitizers judge what it finds.
 *
 *     frame_fuzz SECONDS [SEED-FILE…]
 *     frame_fuzz --runs=COUNT [SEED-FILE…]    so many inputs, and how many so far each 10 s
 *     frame_fuzz --replay SEED-FILE…    each as it is and cut short anywhere, and some changed
 */
#include "base/bytes.h"
#include "base/mem.h"
#include "base/prng.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    SIZE_MAX_OF_INPUT = 4096,
    SEEDS_MAX = 64,
    BATCH = 1000,
    REPLAY_BATCHES = 10,
    PROGRESS_S = 10
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct buffer seeds[SEEDS_MAX];
static size_t seed_count;

static void load(const char *path)
{
    FILE *file = fopen(path, "rb");

    if (file == NULL || seed_count == SEEDS_MAX) {
        (void)fprintf(stderr, "cannot read %s\n", path);
        exit(1);
    }
    struct buffer *seed = &seeds[seed_count++];
    seed->size = fread(buffer_reserve(seed, SIZE_MAX_OF_INPUT), 1, SIZE_MAX_OF_INPUT, file);
    (void)fclose(file);
}

static void change(struct prng *p, struct buffer *input)
{
    static const uint8_t odd[] = {0, 1, 2, 8, 0x10, 0x7f, 0x80, 0xff};
    const size_t at = input->size == 0 ? 0 : prng_u64(p) % input->size;

    switch (prng_u64(p) % 6) {
    case 0: // cut short
        input->size = at;
        break;
    case 1: // add bytes
        for (uint64_t more = prng_between(p, 1, 8); more > 0; more--) {
            const uint8_t byte = (uint8_t)prng_u64(p);

            buffer_put(input, &byte, 1);
        }
        break;
    case 2: // cut out of the middle
        if (input->size > at + 4) {
            memmove(input->data + at, input->data + at + 4, input->size - at - 4);
            input->size -= 4;
        }
        break;
    case 3: // another seed behind it
        if (seed_count > 0 && input->size < SIZE_MAX_OF_INPUT) {
            const struct buffer *seed = &seeds[prng_u64(p) % seed_count];

            buffer_put(input, seed->data, seed->size);
        }
        break;
    case 4:
        if (input->size > 0) {
            input->data[at] = odd[prng_u64(p) % sizeof odd];
        }
        break;
    default:
        if (input->size > 0) {
            input->data[at] ^= (uint8_t)(1u << prng_u64(p) % 8);
        }
        break;
    }
}

/* In memory of exactly that size: a sanitizer sees any look past the end. */
static void run(struct bytes input)
{
    uint8_t *exact = mem_copy(input.data, input.size);

    (void)LLVMFuzzerTestOneInput(exact, input.size);
    mem_free(exact);
}

static void run_one(struct prng *p)
{
    struct buffer input = {0};

    if (seed_count > 0) {
        const struct buffer *seed = &seeds[prng_u64(p) % seed_count];

        buffer_put(&input, seed->data, seed->size);
    }
    for (uint64_t changes = prng_between(p, 0, 6); changes > 0; changes--) {
        change(p, &input);
    }
    run(buffer_bytes(&input));
    buffer_fini(&input);
}

static uint64_t run_batch(struct prng *p)
{
    for (int i = 0; i < BATCH; i++) {
        run_one(p);
    }
    return BATCH;
}

static int replay(struct prng *p)
{
    uint64_t runs = 0;

    for (size_t i = 0; i < seed_count; i++) {
        for (size_t size = 0; size <= seeds[i].size; size++, runs++) {
            run(bytes_of(seeds[i].data, size));
        }
    }
    for (int i = 0; i < REPLAY_BATCHES; i++) {
        runs += run_batch(p);
    }
    printf("ok - %zu seeds and what is like them: %" PRIu64 " inputs\n", seed_count, runs);
    return seed_count > 0 ? 0 : 1;
}

/* Until that many have run, or so much time has passed: UINT64_MAX, 0 = whatever it takes. */
static int search(struct prng *p, uint64_t count, long seconds)
{
    const time_t begun = time(NULL);
    time_t told = begun;
    uint64_t runs = 0;

    do {
        runs += run_batch(p);
        if (seconds == 0 && time(NULL) - told >= PROGRESS_S) {
            told = time(NULL);
            (void)fprintf(stderr, "  %" PRIu64 " of %" PRIu64 " inputs\n", runs, count);
        }
    } while (runs < count && (seconds == 0 || time(NULL) - begun < seconds));
    printf("%" PRIu64 " inputs, clean, in %ld s\n", runs, (long)(time(NULL) - begun));
    return 0;
}

/* What to do is the first word. */
static int do_it(struct prng *p, const char *word)
{
    static const char runs[] = "--runs=";

    if (strcmp(word, "--replay") == 0) {
        return replay(p);
    }
    if (strncmp(word, runs, sizeof runs - 1) == 0) {
        return search(p, strtoull(word + sizeof runs - 1, NULL, 10), 0);
    }
    return search(p, UINT64_MAX, strtol(word, NULL, 10));
}

int main(int argc, char **argv)
{
    struct prng prng = {.state = 1};

    for (int i = 2; i < argc; i++) {
        load(argv[i]);
    }
    const int code = do_it(&prng, argc > 1 ? argv[1] : "1");
    for (size_t i = 0; i < seed_count; i++) {
        buffer_fini(&seeds[i]);
    }
    return code;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs whole fleets in virtual time, one history a seed, and judges them.
 *
 *     fleet_sim --seeds 200 [--from 1]      many seeds; stops at the first violation, but with
 *                                           --keep-going
 *     fleet_sim --seed 42 [--trace]         one seed; --trace prints every event
 *     fleet_sim --mutants                   each planted bug must be caught (MUTANTS=1 builds)
 *     fleet_sim --mutant M_NODRAIN          one of them; with --seed that history alone
 *     also: --profile NAME of faults, --calm for "--profile calm", --seconds S of faults,
 *           --nodes N at most, --jobs N workers, --quiet
 *           --history FILE: with --seed, for ringhold-history (docs/history.md)
 *
 * Exit: 0 no violation, 1 violation or a mutant survived, 2 wrong usage.
 */
#include "base/log.h"
#include "sim/campaign.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct fleet_sim_options {
    struct campaign campaign;
    bool one; /* --seed */
    bool mutants;
    enum mutant mutant;
};

static void no_log(void *context, enum log_level level, const char *line)
{
    (void)context;
    (void)level;
    (void)line;
}

static bool number(const char *text, uint64_t *value)
{
    char *end = NULL;

    if (text == NULL || text[0] < '0' || text[0] > '9') {
        return false;
    }
    *value = strtoull(text, &end, 10);
    return *end == '\0';
}

/* One without a value. */
static bool parse_flag(const char *a, struct fleet_sim_options *o)
{
    if (strcmp(a, "--trace") == 0) {
        o->campaign.trace = true;
    } else if (strcmp(a, "--quiet") == 0) {
        o->campaign.quiet = true;
    } else if (strcmp(a, "--keep-going") == 0) {
        o->campaign.keep_going = true;
    } else if (strcmp(a, "--maintenance") == 0) {
        o->campaign.fleet.maintained = true;
    } else if (strcmp(a, "--serve") == 0) {
        o->campaign.fleet.serves = true;
    } else if (strcmp(a, "--calm") == 0) {
        o->campaign.fleet.profile = PROFILE_CALM;
    } else if (strcmp(a, "--mutants") == 0) {
        o->mutants = true;
    } else {
        return false;
    }
    return true;
}

static bool parse_number(const char *a, uint64_t n, struct fleet_sim_options *o)
{
    struct campaign *c = &o->campaign;

    if (strcmp(a, "--seeds") == 0) {
        c->seeds = n;
    } else if (strcmp(a, "--from") == 0) {
        c->from = n;
    } else if (strcmp(a, "--seed") == 0) {
        c->from = n;
        o->one = true;
    } else if (strcmp(a, "--jobs") == 0 && n >= 1 && n <= 64) {
        c->jobs = (unsigned)n;
    } else if (strcmp(a, "--seconds") == 0 && n >= 1 && n <= 3600) {
        c->fleet.seconds = n;
    } else if (strcmp(a, "--nodes") == 0 && n >= 1 && n <= FLEET_NODES_MAX) {
        c->fleet.nodes = (unsigned)n;
    } else {
        return false;
    }
    return true;
}

static bool parse_value(const char *a, const char *value, struct fleet_sim_options *o)
{
    uint64_t n = 0;

    if (strcmp(a, "--mutant") == 0) {
        o->mutants = true;
        return mutant_named(value, &o->mutant);
    }
    if (strcmp(a, "--history") == 0) {
        o->campaign.history = value;
        return true;
    }
    if (strcmp(a, "--streams") == 0 && strcmp(value, "always") == 0) {
        o->campaign.fleet.streams = STREAMS_ALWAYS;
        return true;
    }
    if (strcmp(a, "--streams") == 0 && strcmp(value, "never") == 0) {
        o->campaign.fleet.streams = STREAMS_NEVER;
        return true;
    }
    if (strcmp(a, "--profile") == 0) {
        return profile_named(value, &o->campaign.fleet.profile);
    }
    return number(value, &n) && parse_number(a, n, o);
}

static bool parse(int argc, char **argv, struct fleet_sim_options *o)
{
    for (int i = 1; i < argc; i++) {
        if (parse_flag(argv[i], o)) {
            continue;
        }
        if (i + 1 == argc || !parse_value(argv[i], argv[i + 1], o)) {
            return false;
        }
        i++;
    }
    return true;
}

int main(int argc, char **argv)
{
    struct fleet_sim_options o = {.campaign = {.fleet = {.seconds = 20}, .seeds = 200, .from = 1}};
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);

    o.campaign.jobs = cores < 1 ? 1 : (unsigned)cores;
    if (!parse(argc, argv, &o) || (o.campaign.history != NULL && !o.one)) {
        (void)fprintf(
            stderr,
            "usage: fleet_sim [--seeds N] [--from K] [--seed K] [--trace] [--seconds S]\n"
            "                 [--nodes N] [--profile NAME | --calm] [--streams always | never]\n"
            "                 [--maintenance] [--serve] [--jobs N] [--quiet]\n"
            "                 [--keep-going] [--mutant NAME | --mutants]\n"
            "                 [--history FILE (with --seed)]\n");
        return 2;
    }
    o.campaign.seeds = o.one ? 1 : o.campaign.seeds;
    log_set_sink(no_log, NULL);
    if (o.one && o.mutant != M_NONE) {
        return campaign_mutant_seed(&o.campaign, o.mutant);
    }
    return o.mutants ? campaign_mutants(&o.campaign, o.mutant) : campaign_run(&o.campaign);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * What a coordinator says to a host; `say` hands it over.
 */
#ifndef TESTS_NODE_HOST_CONTROLS_H
#define TESTS_NODE_HOST_CONTROLS_H

#include "ring/view.h"
#include "wire/control.h"

typedef void say_control(Rh__Control *c);

static inline void say_leader(say_control *say)
{
    Rh__Control c = RH__CONTROL__INIT;
    Rh__Leader leader = RH__LEADER__INIT;

    leader.leading = true;
    leader.term = 1;
    c.body_case = RH__CONTROL__BODY_LEADER;
    c.leader = &leader;
    say(&c);
}

/* The node is registered as slot 1 of `cluster`; nonce, floor and lease are those of `ok`. */
static inline void say_reg_ok(const struct view *cluster, uint64_t era, Rh__RegOk ok,
                              say_control *say)
{
    Rh__Control c = RH__CONTROL__INIT;
    Rh__Config config;

    view_config(cluster, &config);
    config.era = era;
    ok.slot = 1;
    ok.incarnation = 101;
    ok.config = &config;
    c.body_case = RH__CONTROL__BODY_REG_OK;
    c.reg_ok = &ok;
    say(&c);
    view_config_fini(&config);
}

static inline void say_config(const struct view *cluster, say_control *say)
{
    Rh__Control c = RH__CONTROL__INIT;
    Rh__ConfigAnswer answer = RH__CONFIG_ANSWER__INIT;
    Rh__Config config;

    view_config(cluster, &config);
    config.era = 1;
    answer.config = &config;
    answer.version = cluster->ring.version;
    c.body_case = RH__CONTROL__BODY_CONFIG;
    c.config = &answer;
    say(&c);
    view_config_fini(&config);
}

#endif

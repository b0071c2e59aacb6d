/* SPDX-License-Identifier: Apache-2.0
 *
 * The leader's inside, shared by its files and those of txn/admin/: a list of parts, each with a
 * header of its own, whose fields are written in the part's own files alone (tools/parts). What
 * stands here belongs to coordinator.c, which runs a step.
 *
 * No handler calls back into coordinator_step().
 */
#ifndef TXN_LEADER_INSIDE_H
#define TXN_LEADER_INSIDE_H

#include "txn/leader/admin.h"
#include "txn/leader/applied.h"
#include "txn/leader/barrier.h"
#include "txn/leader/drive.h"
#include "txn/leader/eligibility.h"
#include "txn/leader/fence.h"
#include "txn/leader/history.h"
#include "txn/leader/loads.h"
#include "txn/leader/message.h"
#include "txn/leader/past.h"
#include "txn/leader/peers.h"
#include "txn/leader/phases.h"
#include "txn/leader/planted.h"
#include "txn/leader/proposal.h"
#include "txn/leader/rebalance.h"
#include "txn/leader/recall.h"
#include "txn/leader/register.h"
#include "txn/leader/trend.h"
#include "txn/leader/wishes.h"
#include "txn/leader/zones.h"

struct coordinator {
    struct coordinator_config config;
    const struct state *state;       /* borrowed */
    struct coordinator_effects *out; /* borrowed, during a step */
    uint64_t now_us;
    uint64_t wall_us;
    uint64_t step_us;  /* of the last step */
    uint64_t awake_us; /* I slept until then: what is silent was perhaps not heard */
    uint64_t steps;

    bool leading;
    uint64_t term;
    uint64_t leader;   /* voter id, 0 = unknown */
    uint64_t lead_us;  /* when my leadership began */
    uint64_t claim_us; /* when I told last that I lead */

    struct messages messages;
    struct barrier barrier;
    struct leader_peers peers;
    struct delta_history history;
    struct past past;
    struct registration registration;
    struct fence fence;
    struct drives drives;
    struct phases phases;
    struct eligibility eligibility;
    struct leader_wishes wishes;
    struct leader_loads loads;
    struct rebalance rebalance;
    struct recall recall;
    struct proposals proposals;
    struct applied applied;
    struct fleet_upgrade upgrade;
    struct leader_trend trend;
    struct planted planted;
};

#endif

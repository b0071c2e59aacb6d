/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes a simulated history down in the public format (docs/history.md), told
 * by the same calls as the checkers; `ringhold-history` judges it without them.
 *
 * Processes are named NAME.LIFE, sessions s1 …; the log's commands are written
 * by "log". All of it does nothing while fleet.history is NULL.
 */
#ifndef SIM_RECORDING_H
#define SIM_RECORDING_H

#include "base/history.h"
#include "route/router.h"
#include "txn/state/state.h"

struct sim_ask;
struct fleet;
struct instance;
struct process;
struct sim_session;
struct sim_node;
struct view;

/* ACTIVATE, FREEZE, UNFREEZE, STOP. */
void record_life(struct fleet *f, enum history_event_type type, const struct instance *i);
/* EXEC_BEGIN, EXEC_END. */
void record_run(struct fleet *f, enum history_event_type type, const struct instance *i,
                uint64_t uid);
void record_send(struct fleet *f, uint64_t uid);
void record_answer(struct fleet *f, uint64_t uid, enum reply_code code);
void record_close(struct fleet *f, const struct sim_session *s);
/* CRASH, PAUSE, RESUME. */
void record_process(struct fleet *f, enum history_event_type type, const struct process *p);
void record_registered(struct fleet *f, const struct sim_node *n, uint64_t incarnation);
/* After each step: the end of its lease, if that changed. */
void record_lease(struct fleet *f, const struct sim_node *n);
void record_output(struct fleet *f, const struct sim_node *n);
void record_committed(struct fleet *f, const Rh__Command *command,
                      const struct state_result *result);
void record_outcome(struct fleet *f, const char *who, uint64_t txn, bool committed);
void record_view(struct fleet *f, const char *who, const struct view *view);

#endif

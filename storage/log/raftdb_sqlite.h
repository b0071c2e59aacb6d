/* SPDX-License-Identifier: Apache-2.0
 *
 * `raft.db` itself: schema, checksummed rows, verification, transactions.
 * No thread and no lock of its own: storage/log/log_sqlite.c sees to that.
 *
 *     self      cluster, voter, voters, identity, admitted      one row
 *     vote      term, vote, last (log index), writes (counter)  one row
 *     peer      voter, identity, founder                        one a peer met
 *     log       idx, term, type, data                           no gap
 *     snapshot  idx, term, conf_idx, conf, data                 none or one row
 *     generation data        none, or one row once the voters were changed; then
 *               `voters` of self are those it names, and format is 2
 *
 * Every row ends with the CRC-32C of its columns. Every transaction adds one
 * to vote.writes.
 */
#ifndef STORAGE_LOG_RAFTDB_SQLITE_H
#define STORAGE_LOG_RAFTDB_SQLITE_H

#include "storage/log/log_sqlite.h"

struct raftdb;

/* Open raft.db as log_sqlite_open() does, without lock and thread. */
MUST_CHECK enum err raftdb_open(struct raftdb **out, struct log_image *image,
                                const struct log_sqlite_config *config);
/* Adopt raft.db as log_sqlite_adopt() does, without lock. */
MUST_CHECK enum err raftdb_adopt(const struct log_sqlite_config *config);
/* Inspect raft.db as log_sqlite_inspect() does, without lock. */
MUST_CHECK enum err raftdb_inspect(const char *directory, struct log_folder *out);
void raftdb_close(struct raftdb *db);

/* The writers: durable on return; they end the process with 74 if they fail. */
void raftdb_set_vote(struct raftdb *db, uint64_t term, uint64_t vote);
void raftdb_set_peer(struct raftdb *db, const struct log_peer *peer);
void raftdb_set_admitted(struct raftdb *db);
void raftdb_set_format(struct raftdb *db, uint32_t fleet_format);
/* Do all requests of the list in one transaction. The list keeps them. */
void raftdb_write(struct raftdb *db, struct list *requests);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * The SQL of a store in PostgreSQL.
 */
#ifndef STORAGE_ACTORS_REMOTE_POSTGRES_SQL_H
#define STORAGE_ACTORS_REMOTE_POSTGRES_SQL_H

/* What a session begins with. What was answered is on the disk, whatever the database's default is.
 * A lock that is not to be had in time is an error, and so is a client that the network has lost.
 * There is no statement_timeout: it would cut short the wait of a COMMIT for its standby. */
static const char postgres_session[] =
    "SET client_min_messages = error; SET lock_timeout = 3000;"
    "SET tcp_keepalives_idle = 5; SET tcp_keepalives_interval = 3; SET tcp_keepalives_count = 3;"
    "SELECT set_config('synchronous_commit', 'on', false)"
    " WHERE current_setting('synchronous_commit') = 'off'";

static const char postgres_tables[] =
    // Nodes may begin at the same time. Who may make no tables may use those that are there.
    "DO $$ BEGIN IF to_regclass('store') IS NULL THEN"
    " PERFORM pg_advisory_xact_lock(7467);"
    " CREATE TABLE IF NOT EXISTS actor (kind integer NOT NULL, id bytea NOT NULL,"
    "  fence bigint NOT NULL, number bigint NOT NULL, PRIMARY KEY (kind, id));"
    " CREATE TABLE IF NOT EXISTS value (kind integer NOT NULL, id bytea NOT NULL,"
    "  key bytea NOT NULL, value bytea NOT NULL, PRIMARY KEY (kind, id, key));"
    " CREATE TABLE IF NOT EXISTS answer (kind integer NOT NULL, id bytea NOT NULL,"
    "  name bytea NOT NULL, answer bytea NOT NULL, PRIMARY KEY (kind, id, name));"
    " CREATE TABLE IF NOT EXISTS alarm (kind integer NOT NULL, id bytea NOT NULL,"
    "  name bytea NOT NULL, payload bytea NOT NULL, due bigint NOT NULL, every bigint NOT NULL,"
    "  PRIMARY KEY (kind, id, name));"
    " CREATE TABLE IF NOT EXISTS send (kind integer NOT NULL, id bytea NOT NULL,"
    "  number bytea NOT NULL, message bytea NOT NULL, PRIMARY KEY (kind, id, number));"
    " CREATE TABLE IF NOT EXISTS taken (kind integer NOT NULL, id bytea NOT NULL,"
    "  sender bytea NOT NULL, last bytea NOT NULL, PRIMARY KEY (kind, id, sender));"
    " CREATE INDEX IF NOT EXISTS alarm_due ON alarm (kind, due, id, name);"
    " CREATE TABLE IF NOT EXISTS store (one integer PRIMARY KEY CHECK (one = 1),"
    "  version bigint NOT NULL, read_back bigint NOT NULL);"
    " INSERT INTO store VALUES (1, 2, 0) ON CONFLICT DO NOTHING;"
    "END IF; END $$";

/* Of one store: there may be another one in another schema. */
#define POSTGRES_LOCK "(7467, ('store'::regclass::oid::bigint - 2147483648)::integer)"
static const char postgres_lock_shared[] = "SELECT pg_advisory_lock_shared" POSTGRES_LOCK;
static const char postgres_lock_alone[] = "SELECT pg_advisory_lock" POSTGRES_LOCK;

/* A commit in one statement, which changes nothing if the row is not what it is for. It is the
 * session's own, so that nodes of two versions may use one database. */
static const char postgres_function[] =
    "CREATE FUNCTION pg_temp.ringhold_commit(k integer, i bytea, f bigint, n bigint, t integer[],"
    " names bytea[], gone boolean[], vals bytea[], dues bigint[], everies bigint[],"
    " OUT done boolean, OUT has_fence bigint, OUT has_number bigint) LANGUAGE plpgsql AS $$"
    "BEGIN"
    " UPDATE actor SET number = n WHERE kind = k AND id = i AND number = n - 1 AND fence = f;"
    " done := FOUND;"
    " IF NOT done THEN"
    "  SELECT fence, number INTO has_fence, has_number FROM actor WHERE kind = k AND id = i;"
    "  RETURN;"
    " END IF;"
    " FOR c IN 1 .. coalesce(array_length(t, 1), 0) LOOP"
    "  CASE t[c]"
    "  WHEN 0 THEN"
    "   IF gone[c] THEN DELETE FROM value WHERE kind = k AND id = i AND key = names[c];"
    "   ELSE INSERT INTO value VALUES (k, i, names[c], vals[c])"
    "    ON CONFLICT (kind, id, key) DO UPDATE SET value = excluded.value; END IF;"
    "  WHEN 1 THEN"
    "   IF gone[c] THEN DELETE FROM answer WHERE kind = k AND id = i AND name = names[c];"
    "   ELSE INSERT INTO answer VALUES (k, i, names[c], vals[c])"
    "    ON CONFLICT (kind, id, name) DO UPDATE SET answer = excluded.answer; END IF;"
    "  WHEN 3 THEN"
    "   IF gone[c] THEN DELETE FROM send WHERE kind = k AND id = i AND number = names[c];"
    "   ELSE INSERT INTO send VALUES (k, i, names[c], vals[c])"
    "    ON CONFLICT (kind, id, number) DO UPDATE SET message = excluded.message; END IF;"
    "  WHEN 4 THEN"
    "   IF gone[c] THEN DELETE FROM taken WHERE kind = k AND id = i AND sender = names[c];"
    "   ELSE INSERT INTO taken VALUES (k, i, names[c], vals[c])"
    "    ON CONFLICT (kind, id, sender) DO UPDATE SET last = excluded.last; END IF;"
    "  ELSE"
    "   IF gone[c] THEN DELETE FROM alarm WHERE kind = k AND id = i AND name = names[c];"
    "   ELSE INSERT INTO alarm VALUES (k, i, names[c], vals[c], dues[c], everies[c])"
    "    ON CONFLICT (kind, id, name) DO UPDATE SET payload = excluded.payload,"
    "     due = excluded.due, every = excluded.every; END IF;"
    "  END CASE;"
    " END LOOP;"
    "END $$";

/* Raises the fence, and locks the row in any case: what is read next has all that was committed. */
static const char postgres_claim[] =
    "INSERT INTO actor AS a VALUES ($1, $2, $3, 0) ON CONFLICT (kind, id)"
    " DO UPDATE SET fence = greatest(a.fence, excluded.fence) RETURNING fence, number";
static const char postgres_load[] =
    "SELECT 0, key, value, 0::bigint, 0::bigint FROM value WHERE kind = $1 AND id = $2"
    " UNION ALL SELECT 1, name, answer, 0, 0 FROM answer WHERE kind = $1 AND id = $2"
    " UNION ALL SELECT 2, name, payload, due, every FROM alarm WHERE kind = $1 AND id = $2"
    " UNION ALL SELECT 3, number, message, 0, 0 FROM send WHERE kind = $1 AND id = $2"
    " UNION ALL SELECT 4, sender, last, 0, 0 FROM taken WHERE kind = $1 AND id = $2"
    " ORDER BY 1, 2";
static const char postgres_due[] =
    "SELECT due, id, name FROM alarm WHERE kind = $1 AND due <= $2"
    " AND (due, id, name) > ($3, $4, $5) AND due >= 0 AND length(id) BETWEEN 1 AND 255"
    " AND length(name) BETWEEN 1 AND 255 ORDER BY due, id, name LIMIT $6";
static const char postgres_commit[] =
    "SELECT * FROM pg_temp.ringhold_commit($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";

/* Waits for a transaction that has the row: the row is as that one leaves it. */
static const char postgres_found[] =
    "SELECT fence, number FROM actor WHERE kind = $1 AND id = $2 FOR UPDATE";
static const char postgres_raise[] =
    "UPDATE actor SET number = $5 WHERE kind = $1 AND id = $2 AND fence = $3 AND number = $4 - 1";

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * Prints what was found in a data folder, as a table or JSON.
 */
#include "cli/recover/recover.h"

#include "cli/query.h"
#include "cli/rows.h"
#include "node/disk.h"

#include "base/crc.h"
#include "base/stamp.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static uint64_t age_us(uint64_t since_us, uint64_t wall_us)
{
    return wall_us > since_us ? wall_us - since_us : 0; // clocks jump
}

static void put_files(const struct recover_folder *f, struct rows *r)
{
    static const char *const columns[] = {"FILE", "STATE", "SIZE=bytes", "WHAT", "REMEDY", NULL};

    rows_init(r, columns);
    for (size_t i = 0; i < f->file_count; i++) {
        rows_text(r, "%s", f->file[i].name);
        rows_text(r, "%s", recover_health_name(f->file[i].health));
        rows_size(r, f->file[i].size);
        rows_text(r, "%s", f->file[i].what);
        rows_text(r, "%s", f->file[i].remedy);
    }
}

static void put_nodes(const struct state *s, struct rows *r)
{
    static const char *const columns[] = {
        "SLOT", "NODE", "ADDRESS", "INCARNATION", "WEIGHT", "VNODES", "STATE", NULL};

    rows_init(r, columns);
    for (size_t i = 0; i < s->node_count; i++) {
        const struct state_node *n = &s->node[i];
        size_t vnodes = 0;

        for (size_t k = 0; k < s->view.ring.vnode_count; k++) {
            vnodes += s->view.ring.vnode[k].owner == n->slot;
        }
        rows_number(r, n->slot);
        rows_text(r, "%s", n->name);
        rows_text(r, "%s", n->address);
        rows_stamp(r, n->incarnation);
        rows_number(r, n->weight);
        rows_number(r, vnodes);
        rows_text(r, "%s", n->barred ? "fenced" : n->leaving ? "leaving" : "member");
    }
}

/* "n1,n2" */
static void put_parts(const struct state *s, const struct state_txn *t, char *out, size_t size)
{
    size_t used = 0;

    out[0] = '\0';
    for (size_t i = 0; i < t->part_count && used < size; i++) {
        const struct state_node *n = state_node(s, t->parts[i].slot);

        used += (size_t)snprintf(
            out + used, size - used, "%s%s", i == 0 ? "" : ",", n == NULL ? "?" : n->name);
    }
}

static void put_pending(const struct state *s, uint64_t wall_us, struct rows *r)
{
    static const char *const columns[] = {"TXN", "MOVES", "NODES", "AGE", "WHY", NULL};

    rows_init(r, columns);
    for (size_t i = 0; i < s->txn_count; i++) {
        const struct state_txn *t = &s->txn[i];
        char parts[256];
        char age[32];

        if (t->state != TXN_PENDING) {
            continue;
        }
        put_parts(s, t, parts, sizeof parts);
        rows_stamp(r, t->number);
        rows_number(r, t->op_count);
        rows_text(r, "%s", parts);
        rows_text(r, "%s", duration_text(age_us(t->created_us, wall_us), age, sizeof age));
        rows_text(r, "%s", t->why);
    }
}

void recover_show_files(const struct recover_folder *f)
{
    struct rows rows;

    put_files(f, &rows);
    rows_print(&rows, ROWS_TABLE);
    rows_fini(&rows);
}

/* ---- text ---- */

static void show_log(const struct recover_folder *f)
{
    const struct log_image *image = &f->image;

    (void)printf("identity     %016" PRIx64 "   voters %s   may vote: %s\n",
                 image->identity,
                 f->voters,
                 image->admitted ? "yes" : "not yet");
    (void)printf("term         %" PRIu64 "   vote ", image->term);
    (void)(image->vote == 0 ? printf("none\n") : printf("for %" PRIu64 "\n", image->vote));
    if (image->entry_count > 0) {
        (void)printf("log          %" PRIu64 "..%" PRIu64 "   terms %" PRIu64 "..%" PRIu64 "\n",
                     image->first,
                     recover_last_index(f),
                     image->entry[0].term,
                     recover_last_term(f));
    } else {
        (void)printf("log          empty, after index %" PRIu64 "\n", image->first - 1);
    }
    if (image->snapshot.index > 0) {
        (void)printf("snapshot     index %" PRIu64 "   term %" PRIu64
                     "   %zu bytes   crc32c %08" PRIx32 "\n",
                     image->snapshot.index,
                     image->snapshot.term,
                     image->snapshot.data.size,
                     crc32c(image->snapshot.data.data, image->snapshot.data.size));
    } else {
        (void)printf("snapshot     none\n");
    }
    (void)printf("writes       %" PRIu64 "   raft.tail has seen %" PRIu64 "\n",
                 f->writes,
                 f->confirmed_writes);
}

/* The ring that the log makes, and the one of state.db: a digest is of use where they are two. */
static bool digests_differ(const struct recover_folder *f)
{
    const uint64_t *of_log = f->replay.state.view.ring.digest;
    char digest[33];

    return f->cache.readable && f->has_state &&
           strcmp(digest_text(of_log[0], of_log[1], digest), f->cache.digest) != 0;
}

static void show_state(const struct recover_folder *f, uint64_t wall_us)
{
    const struct state *s = &f->replay.state;
    char digest[33];
    char id[FLEET_ID_TEXT_SIZE];
    struct rows rows;

    fleet_id_print(s->view.fleet, id);
    (void)printf("fleet        %s\n", id);
    (void)printf("number       %s   era %" PRIu64 "%s\n",
                 STAMP(s->number),
                 s->view.era,
                 s->settling ? "   settling: restored, not led yet" : "");
    (void)printf("ring         version %s   %zu vnodes%s%s\n",
                 STAMP(s->view.ring.version),
                 s->view.ring.vnode_count,
                 digests_differ(f) ? "   digest " : "",
                 digests_differ(f)
                     ? digest_text(s->view.ring.digest[0], s->view.ring.digest[1], digest)
                     : "");
    (void)printf("\nnodes: %zu\n", s->node_count);
    if (s->node_count > 0) {
        put_nodes(s, &rows);
        rows_print(&rows, ROWS_TABLE);
        rows_fini(&rows);
    }
    (void)printf("\npending transactions: %zu\n", state_pending_count(s));
    if (state_pending_count(s) > 0) {
        put_pending(s, wall_us, &rows);
        rows_print(&rows, ROWS_TABLE);
        rows_fini(&rows);
    }
}

static void show_coordinator(const struct recover_folder *f, uint64_t wall_us)
{
    (void)printf("coordinator %" PRIu64 " of cluster %s: %s\n",
                 f->voter,
                 f->cluster[0] == '\0' ? "?" : f->cluster,
                 f->path);
    if (f->in_use) {
        (void)printf("IN USE by a running process: the values below may change\n");
    }
    if (f->has_log) {
        show_log(f);
    }
    if (f->has_note) {
        (void)printf("witness      number %s   index %" PRIu64 "\n",
                     STAMP(f->watermark.number),
                     f->watermark.index);
    }
    if (f->cache.readable) {
        (void)printf("state.db     number %s   version %s   index %" PRIu64 "%s%s\n",
                     STAMP(f->cache.number),
                     STAMP(f->cache.version),
                     f->cache.applied,
                     digests_differ(f) ? "   digest " : "",
                     digests_differ(f) ? f->cache.digest : "");
    }
    if (f->has_state) {
        show_state(f, wall_us);
    }
}

static bool get_disk(const struct recover_folder *f, struct host_disk *disk)
{
    return f->has_record && disk_get(buffer_bytes(&f->record), disk) == ERR_OK;
}

static void show_node(const struct recover_folder *f)
{
    struct host_disk disk;

    (void)printf("node %s of cluster %s: %s\n",
                 f->node[0] == '\0' ? "?" : f->node,
                 f->cluster[0] == '\0' ? "?" : f->cluster,
                 f->path);
    if (f->in_use) {
        (void)printf("IN USE by a running process: the values below may change\n");
    }
    (void)printf("identity     %s\n", f->uuid[0] == '\0' ? "?" : f->uuid);
    if (get_disk(f, &disk)) {
        (void)printf("number       seen %s   floor %s   era %" PRIu64 "\n",
                     STAMP(disk.seen),
                     STAMP(disk.floor),
                     disk.era);
        (void)printf("voted for    %zu transactions that have not ended\n", disk.active_count);
        for (size_t i = 0; i < disk.active_count; i++) {
            (void)printf("             %s\n", STAMP(disk.active[i]));
        }
    }
}

void recover_show_text(const struct recover_folder *f, uint64_t wall_us)
{
    if (f->kind == RECOVER_NODE) {
        show_node(f);
    } else {
        show_coordinator(f, wall_us);
    }
    (void)printf("\n");
    recover_show_files(f);
}

/* ---- JSON ---- */

static void key_text(const char *key, const char *value)
{
    (void)printf(",\"%s\":", key);
    json_print_string(value);
}

static void key_number(const char *key, uint64_t value)
{
    (void)printf(",\"%s\":%" PRIu64, key, value);
}

static void key_rows(const char *key, struct rows *rows)
{
    (void)printf(",\"%s\":", key);
    rows_print(rows, ROWS_JSON);
    rows_fini(rows);
}

static void json_log(const struct recover_folder *f)
{
    const struct log_image *image = &f->image;

    (void)printf(",\"identity\":\"%016" PRIx64 "\"", image->identity);
    (void)printf(",\"admitted\":%s", image->admitted ? "true" : "false");
    key_number("term", image->term);
    key_number("vote", image->vote);
    key_number("first_index", image->first);
    key_number("last_index", recover_last_index(f));
    key_number("last_term", recover_last_term(f));
    key_number("snapshot_index", image->snapshot.index);
    key_number("snapshot_term", image->snapshot.term);
    key_number("snapshot_bytes", image->snapshot.data.size);
    key_number("snapshot_crc32c", crc32c(image->snapshot.data.data, image->snapshot.data.size));
    key_number("writes", f->writes);
    key_number("writes_seen", f->confirmed_writes);
}

static void json_state(const struct recover_folder *f, uint64_t wall_us)
{
    const struct state *s = &f->replay.state;
    char digest[33];
    char id[FLEET_ID_TEXT_SIZE];
    struct rows rows;

    fleet_id_print(s->view.fleet, id);
    key_text("fleet", id);
    json_print_stamp("number", s->number);
    key_number("era", s->view.era);
    (void)printf(",\"settling\":%s", s->settling ? "true" : "false");
    json_print_stamp("version", s->view.ring.version);
    key_number("vnodes", s->view.ring.vnode_count);
    key_text("digest", digest_text(s->view.ring.digest[0], s->view.ring.digest[1], digest));
    put_nodes(s, &rows);
    key_rows("nodes", &rows);
    put_pending(s, wall_us, &rows);
    key_rows("pending", &rows);
}

static void json_coordinator(const struct recover_folder *f, uint64_t wall_us)
{
    key_number("voter", f->voter);
    key_text("voters", f->voters);
    if (f->has_log) {
        json_log(f);
    }
    if (f->has_note) {
        json_print_stamp("witness_number", f->watermark.number);
        key_number("witness_index", f->watermark.index);
    }
    if (f->has_state) {
        json_state(f, wall_us);
    }
    if (f->cache.readable) {
        (void)printf(",\"state_db\":{\"applied\":%" PRIu64, f->cache.applied);
        json_print_stamp("number", f->cache.number);
        key_number("era", f->cache.era);
        json_print_stamp("version", f->cache.version);
        key_text("digest", f->cache.digest);
        (void)printf("}");
    }
}

static void json_node(const struct recover_folder *f)
{
    struct host_disk disk;

    key_text("node", f->node);
    key_text("identity", f->uuid);
    if (get_disk(f, &disk)) {
        json_print_stamp("seen", disk.seen);
        json_print_stamp("floor", disk.floor);
        key_number("era", disk.era);
        (void)printf(",\"active\":[");
        for (size_t i = 0; i < disk.active_count; i++) {
            (void)printf("%s\"%s\"", i == 0 ? "" : ",", STAMP(disk.active[i]));
        }
        (void)printf("]");
    }
}

void recover_show_json(const struct recover_folder *f, uint64_t wall_us)
{
    struct rows rows;

    (void)printf("{\"kind\":\"%s\"", f->kind == RECOVER_NODE ? "node" : "coordinator");
    key_text("folder", f->path);
    key_text("cluster", f->cluster);
    (void)printf(",\"in_use\":%s", f->in_use ? "true" : "false");
    if (f->kind == RECOVER_NODE) {
        json_node(f);
    } else {
        json_coordinator(f, wall_us);
    }
    put_files(f, &rows);
    key_rows("files", &rows);
    key_number("damaged", recover_damage(f));
    (void)printf("}\n");
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Who may say what: every message, said by each role with each certificate to each
 * other, by the table and over real links by TLS. A message that has no row fails here.
 *
 *     access_test --mutants     with nobody asked, it must be found
 *
 * REWRITE=1 writes the table to docs/security.md.
 */
#include "tests/link/link_rig.h"
#include "tests/planted.h"

#include "link/subject.h"
#include "wire/access.h"
#include "wire/control.h"
#include "wire/session.h"
#include "wire/stream.h"

static const char doc_path[] = "docs/security.md";

static const enum link_role role_of[] = {ROLE_COORDINATOR, ROLE_NODE, ROLE_GATEWAY, ROLE_CLI};
enum { ROLES = sizeof role_of / sizeof role_of[0] };

/* How to say it. */
enum list { FRAMES, REQUESTS, NOTES, BODIES, WHATS };
static const struct saying {
    enum list list;
    uint32_t number; /* type of the frame or the note, flags of a request, field of a body */
} sayings[ACCESS_END] = {
#define X(name, ...) [ACCESS_FRAME_##name] = {FRAMES, FRAME_##name},
    ACCESS_FRAMES(X)
#undef X
        [ACCESS_REQUEST] = {REQUESTS, 0},
    [ACCESS_CALL] = {REQUESTS, REQUEST_CALL},
    [ACCESS_FORWARDED] = {REQUESTS, REQUEST_HELD},
#define X(name, ...) [ACCESS_NOTE_##name] = {NOTES, NOTE_##name},
    ACCESS_NOTES(X)
#undef X
#define X(name, ...) [ACCESS_BODY_##name] = {BODIES, RH__CONTROL__BODY_##name},
        ACCESS_BODIES(X)
#undef X
#define X(name, ...) [ACCESS_WHAT_##name] = {WHATS, RH__ADMIN__WHAT_##name},
            ACCESS_WHATS(X)
#undef X
};

/* A field of protobuf that has bytes. */
static void put_field(struct buffer *out, uint32_t number, struct bytes value)
{
    const uint32_t key = number << 3 | 2;
    const uint8_t head[] = {(uint8_t)(key | 0x80), (uint8_t)(key >> 7), (uint8_t)value.size};

    buffer_put(out, head, sizeof head);
    buffer_put(out, value.data, value.size);
}

static void put_request(struct buffer *out, uint32_t flags, uint8_t note)
{
    struct request_record r = {.seq = 1, .copy = 1, .flags = (uint8_t)flags, .id = text("a")};

    r.body = note != 0                     ? bytes_of(&note, 1)
             : (flags & REQUEST_CALL) != 0 ? bytes_of("\0\0\1z", 4)
                                           : (struct bytes){0};
    request_put(out, &r);
}

/* The body of a frame that says `m`, and its type. */
static enum frame_type put_saying(struct buffer *out, enum access_message m)
{
    const struct saying s = sayings[m];
    struct buffer inner = {0};

    switch (s.list) {
    case FRAMES:
        return (enum frame_type)s.number;
    case REQUESTS:
        put_request(out, s.number, 0);
        return FRAME_REQUEST;
    case NOTES:
        put_request(out, REQUEST_SESSION, (uint8_t)s.number);
        return FRAME_REQUEST;
    case BODIES:
        put_field(out, s.number == 0 ? 9 : s.number, (struct bytes){0});
        return FRAME_CONTROL;
    case WHATS:
        put_field(&inner, s.number, (struct bytes){0});
        put_field(out, RH__CONTROL__BODY_ADMIN, buffer_bytes(&inner));
        buffer_fini(&inner);
        return FRAME_CONTROL;
    }
    fail();
    return FRAME_HELLO;
}

static bool is_let_through(enum access_message m, unsigned from, enum link_role to)
{
    struct buffer body = {0};
    const enum frame_type type = put_saying(&body, m);
    const struct frame frame = {.type = type, .count = 1, .body = buffer_bytes(&body)};
    const enum access_message refused = access_judge(&frame, from, to);

    buffer_fini(&body);
    return refused == ACCESS_NONE;
}

/* May who has the certificate of one role greet as the other? */
static bool may_greet(enum link_role certificate, enum link_role as)
{
    const struct subject subject = {.cluster = "test", .role = certificate, .name = "1"};
    const struct hello hello = {.cluster = "test", .role = as, .name = "1"};

    return subject_refusal(&subject, &hello) == REFUSAL_NONE;
}

static void every_message_of_every_role_with_every_certificate_is_judged_by_its_row(void **state)
{
    size_t said = 0;
    size_t allowed = 0;

    (void)state;
    for (enum access_message m = ACCESS_NONE + 1; m < ACCESS_END; m++) {
        for (size_t to = 0; to < ROLES; to++) {
            assert_int_equal(is_let_through(m, ROLE_STRANGER, role_of[to]),
                             access_may(m, ROLE_STRANGER, role_of[to]));
            for (size_t as = 0; as < ROLES; as++) {
                assert_int_equal(is_let_through(m, role_of[as], role_of[to]),
                                 access_may(m, role_of[as], role_of[to]));
                for (size_t certificate = 0; certificate < ROLES; certificate++) {
                    said++;
                    allowed += may_greet(role_of[certificate], role_of[as]) &&
                               is_let_through(m, role_of[as], role_of[to]);
                }
            }
        }
        // Who has not greeted may do nothing else, and nobody may do it again.
        const bool greets = m <= ACCESS_FRAME_REFUSED;
        assert_int_equal(access_may(m, ROLE_STRANGER, ROLE_COORDINATOR), greets);
    }
    print_message("%d messages: said %zu times by 4 roles with 4 certificates to 4, %zu allowed\n",
                  ACCESS_END - 1,
                  said,
                  allowed);
}

/* A field of a message is one of the oneof's: somebody may say it to somebody. */
static void walk_oneof(const ProtobufCMessageDescriptor *of, const char *oneof, bool admin)
{
    size_t count = 0;

    for (unsigned i = 0; i < of->n_fields; i++) {
        const ProtobufCFieldDescriptor *f = &of->fields[i];
        struct buffer inner = {0};
        struct buffer body = {0};
        bool somebody = false;

        if ((f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) == 0) {
            continue;
        }
        put_field(admin ? &inner : &body, f->id, (struct bytes){0});
        if (admin) {
            put_field(&body, RH__CONTROL__BODY_ADMIN, buffer_bytes(&inner));
        }
        const struct frame frame = {.type = FRAME_CONTROL, .count = 1, .body = buffer_bytes(&body)};
        for (size_t from = 0; from < ROLES; from++) {
            for (size_t to = 0; to < ROLES; to++) {
                somebody = somebody || access_judge(&frame, role_of[from], role_of[to]) == 0;
            }
        }
        // A `what` without a row would pass with the row of Admin: its own refusal is wanted.
        if (!somebody || (admin && access_judge(&frame, ROLE_NODE, ROLE_COORDINATOR) == 0)) {
            fail_msg("%s.%s has no row in wire/access.h", of->name, f->name);
        }
        buffer_fini(&inner);
        buffer_fini(&body);
        count++;
    }
    assert_true(count > 0);
    print_message("%zu of %s\n", count, oneof);
}

static size_t rows_of(enum list list)
{
    size_t count = 0;

    for (enum access_message m = ACCESS_NONE + 1; m < ACCESS_END; m++) {
        count += sayings[m].list == list;
    }
    return count;
}

static size_t fields_of(const ProtobufCMessageDescriptor *of)
{
    size_t count = 0;

    for (unsigned i = 0; i < of->n_fields; i++) {
        count += (of->fields[i].flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0;
    }
    return count;
}

static void every_message_that_decodes_has_a_row(void **state)
{
    size_t types = 0;

    (void)state;
    walk_oneof(&rh__control__descriptor, "Control", false);
    walk_oneof(&rh__admin__descriptor, "Admin", true);
    assert_int_equal(rows_of(BODIES), fields_of(&rh__control__descriptor) + 1);
    assert_int_equal(rows_of(WHATS), fields_of(&rh__admin__descriptor));
    assert_int_equal(rows_of(NOTES), NOTE_TYPE_LAST);
    for (unsigned type = 0; type < 256; type++) {
        const uint8_t bytes[] = {8, 0, 0, 0, (uint8_t)type, 0, 1, 0};
        struct frame frame;
        size_t size;

        types +=
            frame_decode(bytes_of(bytes, sizeof bytes), FRAME_SIZE_MAX, &frame, &size) == ERR_OK;
    }
    assert_int_equal(rows_of(FRAMES), types - 3); // CONTROL, REQUEST and STREAM_REQUEST have others
}

/* Of several bodies a decoder takes the last, or merges them. */
static void what_is_hidden_behind_what_may_be_said_is_found(void **state)
{
    struct buffer whats = {0};
    struct buffer bytes = {0};
    struct request_record r = {.seq = 1, .copy = 1, .id = text("a"), .body = text("b")};

    (void)state;
    put_field(&bytes, RH__CONTROL__BODY_GET_CONFIG, (struct bytes){0});
    put_field(&whats, RH__ADMIN__WHAT_STATUS, (struct bytes){0});
    put_field(&whats, RH__ADMIN__WHAT_DRAIN, (struct bytes){0});
    put_field(&bytes, RH__CONTROL__BODY_ADMIN, buffer_bytes(&whats));
    put_field(&bytes, RH__CONTROL__BODY_GET_CONFIG, (struct bytes){0});
    struct frame frame = {.type = FRAME_CONTROL, .count = 1, .body = buffer_bytes(&bytes)};
    assert_int_equal(access_judge(&frame, ROLE_GATEWAY, ROLE_COORDINATOR), ACCESS_BODY_ADMIN);
    buffer_clear(&bytes);
    request_put(&bytes, &r);
    r.chain_count = 1;
    request_put(&bytes, &r);
    frame = (struct frame){.type = FRAME_REQUEST, .count = 2, .body = buffer_bytes(&bytes)};
    assert_int_equal(access_judge(&frame, ROLE_GATEWAY, ROLE_NODE), ACCESS_CALL);
    assert_int_equal(access_judge(&frame, ROLE_NODE, ROLE_NODE), ACCESS_NONE);
    // What it asks again it may ask.
    r.chain_count = 0;
    r.again = true;
    buffer_clear(&bytes);
    request_put(&bytes, &r);
    frame = (struct frame){.type = FRAME_REQUEST, .count = 1, .body = buffer_bytes(&bytes)};
    assert_int_equal(access_judge(&frame, ROLE_GATEWAY, ROLE_NODE), ACCESS_NONE);
    buffer_fini(&whats);
    buffer_fini(&bytes);
}

/* A stream's requests are judged as all others. */
static void who_asks_for_another_forwards(void **state)
{
    const struct stream_head head = {.from = 1, .to = 2, .first = 1};
    const struct stream_request asked[] = {{.rid = 1, .id = text("a"), .again = true},
                                           {.rid = 2, .id = text("a"), .hops = 1},
                                           {.rid = 2, .id = text("a"), .name = {3, 4}}};

    (void)state;
    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) {
        const size_t size = stream_request_size(&asked[i]);
        struct buffer bytes = {0};

        stream_head_store(buffer_reserve(&bytes, STREAM_HEADER_SIZE + size), STREAM_REQUEST, &head);
        stream_request_store(bytes.data + STREAM_HEADER_SIZE, &asked[i]);
        const struct frame frame = {.type = FRAME_STREAM_REQUEST,
                                    .count = 1,
                                    .body =
                                        bytes_of(bytes.data + FRAME_HEADER_SIZE,
                                                 STREAM_HEADER_SIZE - FRAME_HEADER_SIZE + size)};
        assert_int_equal(access_judge(&frame, ROLE_GATEWAY, ROLE_NODE),
                         i == 0 ? ACCESS_NONE : ACCESS_FORWARDED);
        assert_int_equal(access_judge(&frame, ROLE_NODE, ROLE_NODE), ACCESS_NONE);
        buffer_fini(&bytes);
    }
}

/* ---- over links */

static uint64_t said[2];
static uint64_t wanted[2];

static bool all_came(void)
{
    return sides[0].frames >= wanted[0] && sides[1].frames >= wanted[1];
}

/* Say all to the other side, and last something that it must hear. The count that it must hear. */
static uint64_t say_all(struct side *from, const struct side *to)
{
    const enum link_role roles[] = {from->config.self.role, to->config.self.role};
    enum access_message last = ACCESS_NONE;
    uint64_t count = 0;

    for (enum access_message m = ACCESS_FRAME_RAFT; m <= ACCESS_END; m++) {
        struct buffer body = {0};
        const enum access_message now = m == ACCESS_END ? last : m;

        const enum frame_type type = put_saying(&body, now);
        if (frame_type_is_stream((uint8_t)type) &&
            link_protocol(from->up[0]) < LINK_PROTOCOL_STREAMS) {
            continue; // it is no message there: link_source_test
        }
        said[from - sides]++;
        assert_int_equal(link_send(from->up[0], type, buffer_bytes(&body)), ERR_OK);
        buffer_fini(&body);
        if (access_may(now, roles[0], roles[1]) && !mutant(M_ANYROLE)) {
            count++;
            last = now;
        }
    }
    return count;
}

static uint64_t refused_so_far(void)
{
    struct metrics m;
    struct buffer page = {0};
    uint64_t sum = 0;

    metrics_begin(&m, METRICS_TEXT, &page);
    access_put_metrics(&m);
    metrics_end(&m);
    buffer_put(&page, "", 1);
    for (const char *at = (char *)page.data; (at = strstr(at, "\"} ")) != NULL;) {
        at += 3;
        sum += strtoull(at, NULL, 10);
    }
    buffer_fini(&page);
    return sum;
}

static void links_carry_what_may_be_said_and_nothing_else(void **state)
{
    static const enum link_role pairs[][2] = {{ROLE_COORDINATOR, ROLE_COORDINATOR},
                                              {ROLE_COORDINATOR, ROLE_NODE},
                                              {ROLE_COORDINATOR, ROLE_GATEWAY},
                                              {ROLE_COORDINATOR, ROLE_CLI},
                                              {ROLE_NODE, ROLE_NODE},
                                              {ROLE_NODE, ROLE_GATEWAY}};

    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        struct side *a = side_start(0, pairs[i][0], "1");
        struct side *b = side_start(1, pairs[i][1], "2");
        const uint64_t before = refused_so_far();

        assert_int_equal(links_listen(a->links, "127.0.0.1:0", bound, sizeof bound), ERR_OK);
        assert_non_null(links_dial(b->links, bound));
        until(both_up);
        memset(said, 0, sizeof said);
        wanted[1] = say_all(a, b);
        wanted[0] = say_all(b, a);
        until(all_came);
        assert_int_equal(a->frames, wanted[0]);
        assert_int_equal(b->frames, wanted[1]);
        assert_true(wanted[0] > 0 && wanted[1] > 0);
        assert_int_equal(refused_so_far() - before, said[0] + said[1] - wanted[0] - wanted[1]);
        assert_in_range(lines_with("link message_refused peer="), 2, 40); // a ration of each side
        assert_int_equal(a->downs + b->downs, 0);
        teardown(state);
        setup(state);
    }
}

static bool refusals_are_known(void)
{
    return sides[1].refusals >= 1;
}

static void roles_without_a_row_for_it_have_no_link(void **state)
{
    static const enum link_role pairs[][2] = {{ROLE_NODE, ROLE_CLI},
                                              {ROLE_GATEWAY, ROLE_GATEWAY},
                                              {ROLE_GATEWAY, ROLE_CLI},
                                              {ROLE_CLI, ROLE_CLI}};

    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        struct side *a = side_start(0, pairs[i][0], "1");
        struct side *b = side_start(1, pairs[i][1], "2");
        const uint64_t before = refusals_of(REFUSAL_LINK);

        assert_int_equal(links_listen(a->links, "127.0.0.1:0", bound, sizeof bound), ERR_OK);
        assert_non_null(links_dial(b->links, bound));
        until(refusals_are_known);
        assert_int_equal(a->ups + b->ups, 0);
        assert_true(refusals_of(REFUSAL_LINK) > before);
        assert_true(lines_with("have no links with each other") > 0);
        teardown(state);
        setup(state);
    }
}

/* ---- docs/security.md has the table */

static const char begin_mark[] = "<!-- the table of wire/access.h: REWRITE=1 access_test -->\n";
static const char end_mark[] = "<!-- its end -->\n";

static bool same_row(enum access_message a, enum access_message b)
{
    bool same = sayings[a].list == sayings[b].list;

    for (unsigned from = ROLE_STRANGER; from < ACCESS_ROLES; from++) {
        for (size_t to = 0; to < ROLES; to++) {
            same = same && access_may(a, from, role_of[to]) == access_may(b, from, role_of[to]);
        }
    }
    return same;
}

static void put_text(struct buffer *out, const char *words)
{
    buffer_put(out, words, strlen(words));
}

static void put_cells(struct buffer *out, enum access_message m)
{
    static const char *const letter[] = {" C", " N", " G", " O"};

    for (unsigned from = ROLE_STRANGER; from < ACCESS_ROLES; from++) {
        put_text(out, " |");
        for (size_t to = 0; to < ROLES; to++) {
            put_text(out, access_may(m, from, role_of[to]) ? letter[to] : "");
        }
    }
    put_text(out, " |\n");
}

/* One row for all of a list that the same may say to the same. */
static void put_table(struct buffer *out)
{
    bool done[ACCESS_END] = {false};

    put_text(out,
             "| message | before hello | coordinator | node | gateway | operator |\n"
             "|---|---|---|---|---|---|\n");
    for (enum access_message m = ACCESS_NONE + 1; m < ACCESS_END; m++) {
        const size_t prefix = sayings[m].list == NOTES   ? strlen("note ")
                              : sayings[m].list == WHATS ? strlen("Admin ")
                                                         : 0;

        for (enum access_message other = m; other < ACCESS_END && !done[m]; other++) {
            if (same_row(m, other)) {
                put_text(out, other == m ? "| " : ", ");
                put_text(out, access_text(other) + (other == m ? 0 : prefix));
                done[other] = other != m;
            }
        }
        if (!done[m]) {
            put_cells(out, m);
        }
    }
}

static void the_documents_table_is_the_codes(void **state)
{
    static char doc[1 << 17];
    struct buffer table = {0};
    FILE *file = fopen(doc_path, "r");

    (void)state;
    assert_non_null(file);
    doc[fread(doc, 1, sizeof doc - 1, file)] = '\0';
    (void)fclose(file);
    const char *begin = strstr(doc, begin_mark);
    const char *end = strstr(doc, end_mark);
    assert_non_null(begin);
    assert_non_null(end);
    begin += sizeof begin_mark - 1;
    put_table(&table);
    const size_t size = (size_t)(end - begin);
    if (table.size == size && memcmp(table.data, begin, size) == 0) {
        buffer_fini(&table);
        return;
    }
    if (getenv("REWRITE") == NULL) {
        fail_msg("%s has another table than wire/access.h: REWRITE=1, then git diff", doc_path);
    }
    file = fopen(doc_path, "w");
    assert_non_null(file);
    (void)fprintf(
        file, "%.*s%.*s%s", (int)(begin - doc), doc, (int)table.size, (char *)table.data, end);
    (void)fclose(file);
    buffer_fini(&table);
}

/* ---- */

static int all_cases(void)
{
    const struct CMUnitTest cases[] = {
        cmocka_unit_test(every_message_of_every_role_with_every_certificate_is_judged_by_its_row),
        cmocka_unit_test(every_message_that_decodes_has_a_row),
        cmocka_unit_test(what_is_hidden_behind_what_may_be_said_is_found),
        cmocka_unit_test(who_asks_for_another_forwards),
        LINK_CASE(links_carry_what_may_be_said_and_nothing_else),
        LINK_CASE(roles_without_a_row_for_it_have_no_link),
        cmocka_unit_test(the_documents_table_is_the_codes),
    };

    open_wake_pipe();
    transport = &transports[5]; // over uv by TLS
    return cmocka_run_group_tests(cases, tls_begins, tls_ends);
}

int main(int argc, char **argv)
{
    static const enum mutant all[] = {
#define X(name, text) name,
        MUTANT_LINK_LIST(X)
#undef X
    };

    return planted_main(argc, argv, all_cases, all, sizeof all / sizeof all[0]);
}

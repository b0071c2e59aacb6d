/* SPDX-License-Identifier: Apache-2.0
 *
 * Who may host what: registrations with roles and kinds, the segments that come
 * of them, and that all of it survives a snapshot.
 */
#include "tests/command.h"

#include "base/log.h"
#include "storage/state/state_sqlite.h"
#include "txn/state/digest.h"
#include "txn/state/roles.h"
#include "wire/versions.h"

#include "tests/planted.h"
#include "tests/test.h"

static struct state s;

static int setup(void **state)
{
    (void)state;
    init(&s);
    s.format = FLEET_FORMAT_KINDS;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    state_fini(&s);
    return 0;
}

/* What a node hosts: "role 0:kv 7:boss:1 9:mail:2:5", number, name, placement, daemons. */
struct hosted {
    Rh__Kind kind[8];
    Rh__Kind *list[8];
    size_t count;
};

static void host(struct hosted *h, uint32_t number, const char *name, uint32_t placement,
                 uint32_t daemons)
{
    Rh__Kind *k = &h->kind[h->count];

    *k = (Rh__Kind)RH__KIND__INIT;
    k->number = number;
    k->name = proto_text(name);
    k->placement = placement;
    k->daemons = daemons;
    h->list[h->count++] = k;
}

static Rh__CommandRegister with(const char *name, const char *role, struct hosted *h)
{
    static uint64_t nonce = 100;
    const struct state_node *known = state_node_named(&s, name);
    Rh__CommandRegister in = registration(name, ++nonce, known == NULL ? 0 : known->incarnation);

    in.role = proto_text(role);
    in.kinds = h->list;
    in.n_kinds = h->count;
    return in;
}

static void expect_fault(const Rh__CommandRegister *in, const char *fault)
{
    Rh__CommandRegister copy = *in;
    char text[ROLES_FAULT_SIZE];
    struct state_result r;

    roles_fault(&s, in, text);
    if (strstr(text, fault) == NULL || fault[0] == '\0') {
        assert_string_equal(text, fault);
    }
    r = apply(&s, RH__COMMAND__BODY_REGISTER_, &copy);
    assert_int_equal(r.accepted, fault[0] == '\0');
    state_result_fini(&r);
}

static void expect_fine(Rh__CommandRegister in)
{
    expect_fault(&in, "");
}

static const struct ring_segment *segment_of(uint16_t kind)
{
    return ring_segment_of_kind(&s.view.ring, kind);
}

static struct hosted plain(void)
{
    struct hosted h = {.count = 0};

    host(&h, 0, "kv", PLACE_HASH, 0);
    return h;
}

static struct hosted match(void)
{
    struct hosted h = {.count = 0};

    host(&h, 3, "match", PLACE_HASH, 0);
    host(&h, 7, "boss", PLACE_SINGLETON, 0);
    host(&h, 9, "mail", PLACE_DAEMONS, 5);
    return h;
}

/* The lists point into it. */
static struct hosted *of(struct hosted *h)
{
    for (size_t i = 0; i < h->count; i++) {
        h->list[i] = &h->kind[i];
    }
    return h;
}

static void each_role_gets_its_segments_once(void **state)
{
    struct hosted kv = plain();
    struct hosted m = match();

    (void)state;
    expect_fine(with("n1", "", of(&kv)));
    assert_int_equal(s.view.ring.segment_count, 0);
    assert_int_equal(ring_owned_count(&s.view.ring, 1), TEST_VNODES);
    expect_fine(with("m1", "match", of(&m)));
    expect_fine(with("m2", "match", of(&m)));
    assert_int_equal(s.view.ring.segment_count, 3);
    assert_null(segment_of(0));
    assert_int_equal(segment_of(3)->policy, RING_HASH);
    assert_int_equal(segment_of(7)->policy, RING_OLDEST);
    assert_int_equal(segment_of(9)->policy, RING_SPREAD);
    assert_int_equal(segment_of(9)->open, 5);
    // Nobody's: the leader gives them when enough members are there.
    assert_int_equal(ring_owned_count(&s.view.ring, RING_NODE_NONE), TEST_VNODES + 1 + 6);
    assert_int_equal(s.kind_count, 4);
    assert_string_equal(view_member_named(&s.view, "m2")->role, "match");
}

static void a_role_can_come_before_the_default_one(void **state)
{
    struct hosted m = match();
    struct hosted kv = plain();

    (void)state;
    expect_fine(with("m1", "match", of(&m)));
    assert_int_equal(ring_owned_count(&s.view.ring, RING_NODE_NONE),
                     TEST_VNODES + TEST_VNODES + 1 + 6);
    expect_fine(with("n1", "", of(&kv)));
    assert_int_equal(ring_owned_count(&s.view.ring, 2), 0); // by REASSIGN
}

static void a_number_is_bound_for_all(void **state)
{
    struct hosted m = match();
    struct hosted h = {.count = 0};
    Rh__CommandRegister in;

    (void)state;
    expect_fine(with("m1", "match", of(&m)));
    host(&h, 7, "boss", PLACE_SINGLETON, 0);
    in = with("c1", "chat", of(&h));
    expect_fault(&in,
                 "kind 7 is 'boss' of role 'match', by singleton: it can't be 'boss' of role "
                 "'chat', by singleton; take another number");
    h.kind[0].placement = PLACE_HASH;
    in = with("m2", "match", of(&h));
    expect_fault(&in, "by singleton: it can't be 'boss' of role 'match', by hash");
    h.kind[0] = *m.list[2];
    h.kind[0].number = 10;
    in = with("c1", "chat", of(&h));
    expect_fault(&in, "a set of daemons 'mail' exists already, of kind 9");
}

static void before_the_second_format_all_nodes_of_a_role_host_the_same(void **state)
{
    struct hosted kv = plain();
    struct hosted echo = {.count = 0};
    struct hosted more = plain();
    Rh__CommandRegister in;

    (void)state;
    s.format = FLEET_FORMAT_OLDEST;
    expect_fine(with("n1", "", of(&kv)));
    host(&echo, 0, "echo", PLACE_HASH, 0);
    in = with("n2", "", of(&echo));
    expect_fault(&in,
                 "the nodes of the default role, such as 'n1', host kind 0 'kv', this one hosts "
                 "'echo' under that number: all nodes of a role host the same kinds");
    host(&more, 1, "extra", PLACE_HASH, 0);
    in = with("n2", "", of(&more));
    expect_fault(&in,
                 "the nodes of the default role, such as 'n1', do not host kind 1 'extra': all "
                 "nodes of a role host the same kinds");
    echo.kind[0].number = 1;
    in = with("n2", "", of(&echo));
    expect_fault(&in, "host kind 0 'kv', this one does not");
    // The only one that ever said something may say something else.
    expect_fine(with("n1", "", of(&more)));
    assert_int_equal(s.kind_count, 2);
    expect_fine(with("n1", "", of(&kv)));
    assert_int_equal(s.kind_count, 1);
}

static const struct state_node *node_of(const char *name)
{
    const struct state_node *n = state_node_named(&s, name);

    assert_non_null(n);
    return n;
}

static void die(const char *name)
{
    struct state_result r = fence(&s, node_of(name)->slot, node_of(name)->incarnation);

    assert_true(r.accepted);
    state_result_fini(&r);
}

static void expect_kinds(const char *want)
{
    char text[256] = "";
    size_t used = 0;

    for (size_t i = 0; i < s.kind_count; i++) {
        used += (size_t)snprintf(
            text + used, sizeof text - used, "%u %s;", s.kind[i].number, s.kind[i].name);
    }
    assert_string_equal(text, want);
}

static void the_kinds_of_a_role_grow_node_by_node(void **state)
{
    struct hosted kv = plain();
    struct hosted more = plain();
    struct hosted echo = {.count = 0};
    Rh__CommandRegister in;

    (void)state;
    expect_fine(with("n1", "", of(&kv)));
    expect_fine(with("n2", "", of(&kv)));
    host(&more, 1, "extra", PLACE_HASH, 0);
    host(&more, 2, "one", PLACE_SINGLETON, 0);
    expect_fine(with("n1", "", of(&more)));
    expect_kinds("0 kv;1 extra;2 one;");
    assert_int_equal(node_of("n1")->kinds.count, 3);
    assert_int_equal(node_of("n2")->kinds.count, 1);
    // An old one that comes back takes nothing away.
    expect_fine(with("n2", "", of(&kv)));
    expect_kinds("0 kv;1 extra;2 one;");
    assert_int_equal(segment_of(2)->kind_count, 1);
    // Its cells are for who hosts it alone, those of the default segment for both.
    assert_true(
        roles_fit(&s, node_of("n1"), ring_hit_vnode(s.view.ring.cell[segment_of(2)->from])));
    assert_false(
        roles_fit(&s, node_of("n2"), ring_hit_vnode(s.view.ring.cell[segment_of(2)->from])));
    assert_true(roles_fit(&s, node_of("n2"), ring_hit_vnode(s.view.ring.cell[0])));
    // A number has one name.
    host(&echo, 1, "echo", PLACE_HASH, 0);
    in = with("n3", "", of(&echo));
    expect_fault(&in,
                 "the nodes of the default role, such as 'n1', host kind 1 'extra', this one hosts "
                 "'echo' under that number: give it a number of its own");
    in = with("m1", "match", of(&echo));
    expect_fault(&in, "kind 1 is 'extra' of the default role, by hash: it can't be 'echo' of role");
    // It goes with the last that has it.
    expect_fine(with("n2", "", of(&more)));
    expect_fine(with("n1", "", of(&kv)));
    expect_kinds("0 kv;1 extra;2 one;");
    expect_fine(with("n2", "", of(&kv)));
    expect_kinds("0 kv;");
    assert_null(segment_of(2));
    expect_fine(with("m1", "match", of(&echo)));
    expect_kinds("0 kv;1 echo;");
    state_check(&s);
}

static void what_only_the_dead_hosted_is_anybodys(void **state)
{
    struct hosted old = plain();
    struct hosted next = {.count = 0};
    Rh__CommandRegister in;

    (void)state;
    host(&old, 1, "extra", PLACE_SINGLETON, 0);
    expect_fine(with("n1", "", of(&old)));
    expect_fine(with("n2", "", of(&old)));
    host(&next, 0, "hero", PLACE_HASH, 0);
    host(&next, 1, "room", PLACE_HASH, 0);
    in = with("n3", "", of(&next));
    assert_true(roles_rivals(&s, &in, node_of("n1")));
    expect_fault(&in, "kind 1 is 'extra' of the default role, by singleton: it can't be 'room'");
    die("n1");
    expect_fault(&in, "kind 1 is 'extra'");
    assert_false(roles_rivals(&s, &in, node_of("n1")));
    die("n2");
    expect_fine(in);
    expect_kinds("0 hero;1 room;");
    assert_null(segment_of(1));
    // The first that comes back is one of many now.
    in = with("n1", "", of(&old));
    expect_fault(&in, "kind 1 is 'room' of the default role, by hash: it can't be 'extra'");
    expect_fine(with("n1", "", of(&next)));
    state_check(&s);
}

static void who_was_there_before_the_format_rose_hosts_what_all_did(void **state)
{
    Rh__CommandFormat format = RH__COMMAND_FORMAT__INIT;
    struct hosted kv = plain();
    struct hosted more = plain();
    struct state_result r;

    (void)state;
    s.format = FLEET_FORMAT_OLDEST;
    expect_fine(with("n1", "", of(&kv)));
    assert_int_equal(node_of("n1")->kinds.count, 0);
    format.format = FLEET_FORMAT_KINDS;
    r = apply(&s, RH__COMMAND__BODY_FORMAT, &format);
    assert_true(r.accepted);
    state_result_fini(&r);
    assert_int_equal(node_of("n1")->kinds.count, 1);
    state_check(&s);
    host(&more, 1, "extra", PLACE_HASH, 0);
    expect_fine(with("n2", "", of(&more)));
    assert_false(ring_kinds_have(&node_of("n1")->kinds, 1));
}

static void dropped_kinds_free_their_segment(void **state)
{
    struct hosted m = match();
    struct hosted other = {.count = 0};

    (void)state;
    expect_fine(with("m1", "match", of(&m)));
    host(&other, 4, "lobby", PLACE_HASH, 0);
    host(&other, 8, "chief", PLACE_SINGLETON, 0);
    expect_fine(with("m1", "match", of(&other)));
    assert_int_equal(s.view.ring.segment_count, 3);
    assert_null(segment_of(3));
    assert_null(segment_of(7));
    assert_int_equal(segment_of(4) - s.view.ring.segment, 0);
    assert_int_equal(s.view.ring.segment[2].open, 0);
    // Cells that are bound to nothing are the next one's.
    assert_int_equal(segment_of(8) - s.view.ring.segment, 1);
    expect_fine(with("m1", "match", of(&m)));
    assert_int_equal(s.view.ring.segment_count, 3);
    assert_int_equal(segment_of(9)->open, 5);
}

static struct hosted tagged(void)
{
    struct hosted h = plain();

    host(&h, 4, "room", PLACE_TOGETHER, 0);
    host(&h, 5, "seat", PLACE_TOGETHER, 0);
    return h;
}

static void kinds_of_a_role_that_are_placed_together_share_a_segment(void **state)
{
    struct hosted h = tagged();
    struct hosted m = match();
    const struct bytes a = bytes_of("room-7{x}", 9);
    const struct bytes b = bytes_of("ann{x}", 6);

    (void)state;
    s.format = FLEET_FORMAT_PLACEMENT;
    expect_fine(with("n1", "", of(&h)));
    assert_int_equal(s.view.ring.segment_count, 1);
    assert_int_equal(segment_of(4)->policy, RING_TOGETHER);
    assert_string_equal(segment_of(4)->role, "");
    assert_int_equal(segment_of(4)->kind_count, 2);
    assert_ptr_equal(segment_of(4), segment_of(5));
    assert_null(segment_of(0));
    assert_int_equal(view_lookup(&s.view, 4, a), view_lookup(&s.view, 5, b));
    // Each role has its own, beside that of what is placed by hash.
    m.kind[0].number = 6;
    host(&m, 8, "table", PLACE_TOGETHER, 0);
    host(&m, 10, "chair", PLACE_TOGETHER, 0);
    expect_fine(with("m1", "match", of(&m)));
    assert_int_equal(s.view.ring.segment_count, 5);
    assert_ptr_equal(segment_of(8), segment_of(10));
    assert_ptr_not_equal(segment_of(8), segment_of(6));
    assert_ptr_not_equal(segment_of(8), segment_of(4));
}

static void a_kind_is_placed_together_on_all_nodes_or_on_none(void **state)
{
    struct hosted h = tagged();
    struct hosted other = plain();
    Rh__CommandRegister in;

    (void)state;
    s.format = FLEET_FORMAT_PLACEMENT;
    expect_fine(with("n1", "", of(&h)));
    host(&other, 4, "room", PLACE_HASH, 0);
    in = with("n2", "", of(&other));
    expect_fault(&in, "kind 4 is 'room' of the default role, by together: it can't be 'room'");
    // The only one that hosts it may place it anew: its actors end with its process.
    expect_fine(with("n1", "", of(&other)));
    assert_null(segment_of(4));
    assert_int_equal(s.view.ring.segment_count, 1);
    expect_fine(with("n1", "", of(&h)));
    assert_int_equal(s.view.ring.segment_count, 1);
    assert_int_equal(segment_of(4)->kind_count, 2);
}

static void before_the_fourth_format_no_kind_is_placed_together(void **state)
{
    struct hosted h = tagged();
    Rh__CommandRegister in;

    (void)state;
    s.format = FLEET_FORMAT_STRIKES;
    in = with("n1", "", of(&h));
    expect_fault(&in, "kind 4 'room' is placed together, which the fleet's format 3 does not know");
}

static struct hosted by_hosts(void)
{
    struct hosted h = plain();

    host(&h, 4, "arena", PLACE_HOSTS, 0);
    host(&h, 5, "lobby", PLACE_HOSTS, 0);
    host(&h, 7, "boss", PLACE_SINGLETON, 0);
    return h;
}

static bool may_get(const char *name, uint16_t kind)
{
    return roles_fit(&s, node_of(name), ring_hit_vnode(s.view.ring.cell[segment_of(kind)->from]));
}

static void a_kind_that_is_placed_by_its_hosts_has_a_segment_for_itself(void **state)
{
    struct hosted h = by_hosts();
    struct hosted kv = plain();
    struct hosted more = plain();
    Rh__CommandRegister in;

    (void)state;
    s.format = FLEET_FORMAT_STRIKES;
    in = with("n1", "", of(&h));
    expect_fault(&in, "kind 4 'arena' is placed by its hosts, which the fleet's format 3 does not");
    s.format = FLEET_FORMAT_PLACEMENT;
    expect_fine(with("n1", "", of(&h)));
    expect_fine(with("n2", "", of(&kv)));
    assert_int_equal(s.view.ring.segment_count, 3);
    assert_int_equal(segment_of(4)->policy, RING_HOSTS);
    assert_int_equal(segment_of(4)->kind_count, 1);
    assert_ptr_not_equal(segment_of(4), segment_of(5));
    assert_true(may_get("n1", 4));
    assert_false(may_get("n2", 4));
    // One goes, and another one comes: it has the cells.
    host(&more, 5, "lobby", PLACE_HOSTS, 0);
    host(&more, 6, "yard", PLACE_HOSTS, 0);
    expect_fine(with("n1", "", of(&more)));
    assert_null(segment_of(4));
    assert_int_equal(segment_of(6) - s.view.ring.segment, 0);
    assert_int_equal(s.view.ring.segment_count, 3);
    state_check(&s);
}

static void a_canary_of_a_kind_that_is_hashed_is_told_what_to_do(void **state)
{
    struct hosted kv = plain();
    struct hosted canary = {.count = 0};
    Rh__CommandRegister in;

    (void)state;
    s.format = FLEET_FORMAT_PLACEMENT;
    expect_fine(with("n1", "", of(&kv)));
    host(&canary, 0, "kv", PLACE_HOSTS, 0);
    in = with("n2", "", of(&canary));
    expect_fault(
        &in,
        "kind 0 is 'kv' of the default role, by hash: it can't be 'kv' of the default role, "
        "by hosts; take another number, by its hosts, on all nodes, or set the node's weight");
}

static bool give(uint16_t kind, const char *from, const char *to)
{
    struct ring_op op = {.kind = RING_MOVE, .to = node_of(to)->slot};
    Rh__CommandReassign body = RH__COMMAND_REASSIGN__INIT;
    struct state_result r;
    bool accepted;

    op.vnode = ring_hit_vnode(s.view.ring.cell[segment_of(kind)->from]);
    if (from != NULL) {
        body.slot = op.from = node_of(from)->slot;
        body.incarnation = node_of(from)->incarnation;
    }
    body.moves = view_wire_ops(&op, 1);
    body.n_moves = 1;
    r = apply(&s, RH__COMMAND__BODY_REASSIGN, &body);
    accepted = r.accepted;
    mem_free(body.moves[0]);
    mem_free(body.moves);
    state_result_fini(&r);
    return accepted;
}

static uint16_t owner_of(uint16_t kind)
{
    return ring_hit_node(s.view.ring.cell[segment_of(kind)->from]);
}

static void who_hosts_a_kind_no_more_keeps_its_cells_until_another_takes_them(void **state)
{
    struct hosted h = by_hosts();
    struct hosted kv = plain();
    struct hosted next = plain();

    (void)state;
    s.format = FLEET_FORMAT_PLACEMENT;
    host(&next, 8, "chief", PLACE_SINGLETON, 0);
    expect_fine(with("n2", "", of(&h)));
    expect_fine(with("n3", "", of(&kv)));
    for (uint16_t kind = 4; kind <= 7; kind += 3) {
        expect_fine(with("n1", "", of(&h)));
        assert_false(give(kind, NULL, "n3"));
        assert_true(give(kind, NULL, "n1"));
        // Its process died, and was started again without the kinds.
        expect_fine(with("n1", "", of(&kv)));
        assert_int_equal(owner_of(kind), node_of("n1")->slot);
        assert_false(may_get("n1", kind));
        die("n1");
        assert_true(give(kind, "n1", "n2"));
        assert_int_equal(owner_of(kind), node_of("n2")->slot);
    }
    // Cells of what is gone are the next one's, whoever owns them.
    expect_fine(with("n2", "", of(&kv)));
    expect_fine(with("n3", "", of(&next)));
    assert_int_equal(owner_of(8), node_of("n2")->slot);
    state_check(&s);
}

static void nonsense_is_refused(void **state)
{
    static const char *const roles[] = {"a role", "0123456789012345678901234567890x", "a/b"};
    struct hosted h = plain();
    Rh__CommandRegister in;

    (void)state;
    for (size_t i = 0; i < sizeof roles / sizeof roles[0]; i++) {
        in = with("n1", roles[i], of(&h));
        expect_fault(&in, "a role has at most 31 letters");
    }
    host(&h, 0, "again", PLACE_HASH, 0);
    in = with("n1", "", of(&h));
    expect_fault(&in, "or the kind is given twice");
    h = plain();
    h.kind[0].placement = 5;
    in = with("n1", "", of(&h));
    expect_fault(&in, "out of range");
    h = plain();
    h.kind[0].number = 65536;
    in = with("n1", "", of(&h));
    expect_fault(&in, "out of range");
}

static void no_node_gets_what_is_of_another_role(void **state)
{
    struct hosted kv = plain();
    struct hosted m = match();
    const struct ring_vnode *boss;
    struct ring_op op = {.kind = RING_MOVE};
    struct state_result r;
    Rh__CommandRegister in;

    (void)state;
    expect_fine(with("n1", "", of(&kv)));
    expect_fine(with("m1", "match", of(&m)));
    boss = ring_find(&s.view.ring, ring_hit_vnode(s.view.ring.cell[segment_of(7)->from]));
    op.vnode = boss->id;
    op.to = 1;
    r = reassign(&s, 0, 0, &op, 1);
    assert_string_equal(r.why, "a node would get a vnode of another role");
    state_result_fini(&r);
    op.to = 2;
    assert_int_not_equal(stamp_of(reassign(&s, 0, 0, &op, 1)), 0);
    op.from = 2;
    op.to = 1;
    r = begin(&s, &op, 1);
    assert_string_equal(r.why, "a node would get a vnode of another role");
    state_result_fini(&r);
    in = with("m1", "", of(&kv));
    expect_fault(
        &in,
        "node 'm1' has role 'match' and owns 1 vnodes, and can't change to the default role: "
        "drain it first");
    r = desire(&s, "m1", 0, DESIRE_DRAIN);
    assert_string_equal(r.why, "the node is the last one of its role");
    state_result_fini(&r);
}

static void a_set_grows_and_shrinks(void **state)
{
    struct hosted m = match();
    Rh__CommandDaemons in = RH__COMMAND_DAEMONS__INIT;
    struct state_result r;

    (void)state;
    expect_fine(with("m1", "match", of(&m)));
    in.name = proto_text("mail");
    in.count = 9;
    assert_int_not_equal(stamp_of(apply(&s, RH__COMMAND__BODY_DAEMONS, &in)), 0);
    assert_int_equal(segment_of(9)->open, 9);
    expect_fine(with("m1", "match", of(&m))); // a restart does not undo it
    assert_int_equal(segment_of(9)->open, 9);
    in.count = 1001;
    r = apply(&s, RH__COMMAND__BODY_DAEMONS, &in);
    assert_string_equal(r.why, "a set has at most 1000 daemons");
    state_result_fini(&r);
    in.name = proto_text("boss");
    r = apply(&s, RH__COMMAND__BODY_DAEMONS, &in);
    assert_string_equal(r.why, "there is no set of daemons with that name");
    state_result_fini(&r);
}

static void a_snapshot_has_it_all(void **state)
{
    struct hosted kv = plain();
    struct hosted m = match();
    struct buffer image = {0};
    struct state loaded;
    struct state_db *db = NULL;
    struct state_result r;

    (void)state;
    s.format = FLEET_FORMAT_OLDEST; // that of a database without an INIT
    expect_fine(with("n1", "", of(&kv)));
    assert_int_equal(state_db_open(&db, NULL), ERR_OK);
    Rh__CommandRegister in = with("m1", "match", of(&m));
    Rh__Command command = RH__COMMAND__INIT;
    command.body_case = RH__COMMAND__BODY_REGISTER_;
    command.register_ = &in;
    state_apply(&s, &command, &r);
    state_db_apply(db, &s, &command, &r);
    state_result_fini(&r);
    state_db_commit(db, 1);
    state_db_snapshot(db, &s, &image);
    state_init(&loaded);
    assert_true(state_db_restore(db, buffer_bytes(&image), &loaded));
    state_check(&loaded);
    assert_int_equal(loaded.kind_count, 4);
    assert_string_equal(state_node_named(&loaded, "m1")->role, "match");
    assert_int_equal(state_digest(&loaded), state_digest(&s));
    state_fini(&loaded);
    state_db_close(db);
    buffer_fini(&image);
}

static int all_cases(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_role_gets_its_segments_once, setup, teardown),
        cmocka_unit_test_setup_teardown(a_role_can_come_before_the_default_one, setup, teardown),
        cmocka_unit_test_setup_teardown(a_number_is_bound_for_all, setup, teardown),
        cmocka_unit_test_setup_teardown(
            before_the_second_format_all_nodes_of_a_role_host_the_same, setup, teardown),
        cmocka_unit_test_setup_teardown(the_kinds_of_a_role_grow_node_by_node, setup, teardown),
        cmocka_unit_test_setup_teardown(what_only_the_dead_hosted_is_anybodys, setup, teardown),
        cmocka_unit_test_setup_teardown(
            who_was_there_before_the_format_rose_hosts_what_all_did, setup, teardown),
        cmocka_unit_test_setup_teardown(dropped_kinds_free_their_segment, setup, teardown),
        cmocka_unit_test_setup_teardown(
            kinds_of_a_role_that_are_placed_together_share_a_segment, setup, teardown),
        cmocka_unit_test_setup_teardown(
            a_kind_is_placed_together_on_all_nodes_or_on_none, setup, teardown),
        cmocka_unit_test_setup_teardown(
            before_the_fourth_format_no_kind_is_placed_together, setup, teardown),
        cmocka_unit_test_setup_teardown(
            a_kind_that_is_placed_by_its_hosts_has_a_segment_for_itself, setup, teardown),
        cmocka_unit_test_setup_teardown(
            a_canary_of_a_kind_that_is_hashed_is_told_what_to_do, setup, teardown),
        cmocka_unit_test_setup_teardown(
            who_hosts_a_kind_no_more_keeps_its_cells_until_another_takes_them, setup, teardown),
        cmocka_unit_test_setup_teardown(nonsense_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(no_node_gets_what_is_of_another_role, setup, teardown),
        cmocka_unit_test_setup_teardown(a_set_grows_and_shrinks, setup, teardown),
        cmocka_unit_test_setup_teardown(a_snapshot_has_it_all, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv)
{
    static const enum mutant planted[] = {M_TWONAMES, M_LASTKINDS};

    return planted_main(argc, argv, all_cases, planted, sizeof planted / sizeof planted[0]);
}

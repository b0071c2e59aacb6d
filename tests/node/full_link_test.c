/* SPDX-License-Identifier: Apache-2.0
 *
 * What the node's shell does with frames for a link that is full.
 */
#include "node/shell_uv.h"
#include "tests/link/link_rig.h"
#include "wire/stream.h"

static bool joined_came(void)
{
    return sides[0].frames == 1;
}

/* Its log goes past the backlog, so JOINED must, too. */
static void what_joins_a_stream_does_not_wait_for_records(void **state)
{
    static struct shell shell;
    struct shell_peer peer = {.id = 1, .shell = &shell, .coordinator = -1, .full = true};
    struct side *listening = side_prepare(0, ROLE_NODE, "n2");
    struct side *dialling = side_prepare(1, ROLE_NODE, "n1");
    const struct stream_head head = {.from = 1, .to = 2, .first = 1};
    uint8_t joined[STREAM_HEADER_SIZE];

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        sides[i].config.self.protocol.newest = LINK_PROTOCOL_STREAMS;
        side_open(&sides[i]);
    }
    assert_int_equal(links_listen(listening->links, "127.0.0.1:0", bound, sizeof bound), ERR_OK);
    peer.link = links_dial(dialling->links, bound);
    until(both_up);
    backlog_init(&peer.backlog);
    table_put(&shell.peers, &peer.by_id, table_mix(peer.id));
    assert_int_equal(shell_send_peer(&shell, peer.id, FRAME_ANSWER, text("a record")), ERR_OK);
    assert_int_equal(peer.backlog.size, 8);
    stream_head_store(joined, STREAM_JOINED, &head);
    assert_int_equal(
        shell_send_peer(&shell,
                        peer.id,
                        FRAME_STREAM_JOINED,
                        bytes_of(joined + FRAME_HEADER_SIZE, sizeof joined - FRAME_HEADER_SIZE)),
        ERR_OK);
    assert_int_equal(peer.backlog.size, 8); // the record still waits
    until(joined_came);
    assert_int_equal(sides[0].last_type, FRAME_STREAM_JOINED);
    table_remove(&shell.peers, &peer.by_id);
    table_fini(&shell.peers);
    backlog_fini(&peer.backlog);
}

int main(void)
{
    const struct CMUnitTest cases[] = {
        LINK_CASE(what_joins_a_stream_does_not_wait_for_records),
    };

    return run_on_transports(cases, sizeof cases / sizeof cases[0]);
}

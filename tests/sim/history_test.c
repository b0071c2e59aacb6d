/* SPDX-License-Identifier: Apache-2.0
 *
 * The judge of histories, on histories written by hand: each rule once kept and
 * once broken.
 */
#include "sim/history/history.h"

#include "base/bytes.h"
#include "base/mem.h"
#include "base/prng.h"
#include "tests/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HEAD "ringhold-history 1\n"

static struct history_book book;
static struct history_verdict verdict;
static char error[HISTORY_ERROR_SIZE];

static bool read_text(const char *text)
{
    history_book_fini(&book);
    error[0] = '\0';
    return history_book_read(&book, "h", bytes_of(text, strlen(text)), error);
}

static void judge_within(const char *text, struct history_bounds bounds)
{
    if (!read_text(text)) {
        fail_msg("%s", error);
    }
    history_judge(&book, &bounds, &verdict);
}

static void judge(const char *text)
{
    judge_within(text, (struct history_bounds){0});
}

static void assert_clean(const char *text)
{
    judge(text);
    if (verdict.broken_total != 0) {
        fail_msg("%s: %s", history_rule_name(verdict.first.rule), verdict.first.text);
    }
}

/* The first thing that is broken is `rule`, in line `line`. */
static void assert_broken(const char *text, enum history_rule rule, size_t line)
{
    judge(text);
    assert_int_not_equal(verdict.broken_total, 0);
    assert_string_equal(history_rule_name(verdict.first.rule), history_rule_name(rule));
    assert_int_equal(history_book_line(&book, verdict.first.event), line);
    assert_int_not_equal(verdict.broken[rule], 0);
}

static int end(void **state)
{
    (void)state;
    history_book_fini(&book);
    return 0;
}

/* ---- K1 ---- */

static void a_planned_move_is_clean(void **state)
{
    (void)state;
    assert_clean(HEAD "1 n1 ACTIVATE entity=a fence=5\n"
                      "2 c SEND session=s entity=a seq=1\n"
                      "3 n1 EXEC_BEGIN entity=a session=s seq=1\n"
                      "4 n1 EXEC_END entity=a session=s seq=1\n"
                      "5 c ANSWER session=s entity=a seq=1 code=OK\n"
                      "6 n1 FREEZE entity=a\n"
                      "7 n2 ACTIVATE entity=a fence=9 effects=1\n"
                      "8 n1 STOP entity=a\n");
    assert_int_equal(verdict.moved, 1);
    assert_int_equal(verdict.runs, 1);
    assert_int_equal(verdict.processes, 3);
    assert_int_equal(verdict.answers[HISTORY_OK], 1);
    assert_int_equal(verdict.wait_max_us, 3);
}

static void two_that_live_at_once_are_seen(void **state)
{
    (void)state;
    assert_broken(HEAD "1 n1 ACTIVATE entity=a\n2 n2 ACTIVATE entity=a\n", RULE_LIVE_TWICE, 3);
    assert_broken(HEAD "1 n1 ACTIVATE entity=a\n2 n1 FREEZE entity=a\n3 n2 ACTIVATE entity=a\n"
                       "4 n1 UNFREEZE entity=a\n",
                  RULE_LIVE_TWICE,
                  5);
    assert_broken(HEAD "1 n1 ACTIVATE entity=a\n2 n1 ACTIVATE entity=a\n", RULE_LIVE_TWICE, 3);
    // Of another entity it is no business.
    assert_clean(HEAD "1 n1 ACTIVATE entity=a\n2 n2 ACTIVATE entity=b\n");
}

static void times_count_not_the_order_of_files(void **state)
{
    static const char second[] = HEAD "1 n1 ACTIVATE entity=a\n5 n1 STOP entity=a\n";

    (void)state;
    assert_true(read_text(HEAD "6 n2 ACTIVATE entity=a\n"));
    assert_true(history_book_read(&book, "g", bytes_of(second, strlen(second)), error));
    history_judge(&book, &(struct history_bounds){0}, &verdict);
    assert_int_equal(verdict.broken_total, 0);
    assert_int_equal(verdict.moved, 1);
}

static void a_crash_ends_all_lives_and_nothing_follows_it(void **state)
{
    (void)state;
    assert_clean(HEAD "1 n1 ACTIVATE entity=a\n2 test CRASH of=n1\n3 n2 ACTIVATE entity=a\n");
    assert_int_equal(verdict.crashes, 1);
    assert_clean(HEAD "1 n1 ACTIVATE entity=a\n2 n1 CRASH\n3 n2 ACTIVATE entity=a\n");
    assert_broken(HEAD "1 n1 ACTIVATE entity=a\n2 t CRASH of=n1\n3 n1 ACTIVATE entity=b\n",
                  RULE_LIVE_TWICE,
                  4);
}

static void a_paused_or_leaseless_process_is_replaced(void **state)
{
    (void)state;
    assert_clean(HEAD "1 n1 ACTIVATE entity=a\n2 t PAUSE of=n1\n3 n2 ACTIVATE entity=a\n"
                      "4 t RESUME of=n1\n5 n1 STOP entity=a\n");
    assert_clean(HEAD "1 n1 LEASE until=10\n2 n1 ACTIVATE entity=a\n10 n2 ACTIVATE entity=a\n");
    assert_broken(HEAD "1 n1 LEASE until=10\n2 n1 ACTIVATE entity=a\n9 n2 ACTIVATE entity=a\n",
                  RULE_LIVE_TWICE,
                  4);
    // But when it wakes it begins nothing.
    assert_broken(HEAD "1 c SEND session=s entity=a seq=1\n1 n1 ACTIVATE entity=a\n"
                       "2 t PAUSE of=n1\n3 n2 ACTIVATE entity=a\n4 t RESUME of=n1\n"
                       "5 n1 EXEC_BEGIN entity=a session=s seq=1\n",
                  RULE_LIVE_TWICE,
                  7);
}

static void what_began_before_the_pause_may_end_without_effect(void **state)
{
    (void)state;
    assert_clean(HEAD "1 c SEND session=s entity=a seq=1\n1 n1 ACTIVATE entity=a\n"
                      "2 n1 EXEC_BEGIN entity=a session=s seq=1\n2 t PAUSE of=n1\n"
                      "3 n2 ACTIVATE entity=a effects=0\n4 t RESUME of=n1\n"
                      "5 n1 EXEC_END entity=a session=s seq=1\n"
                      "6 c ANSWER session=s entity=a seq=1 code=UNKNOWN\n");
    assert_int_equal(verdict.overruns, 1);
    assert_int_equal(verdict.runs, 0);
}

static void nothing_begins_after_the_lease(void **state)
{
    (void)state;
    assert_broken(HEAD "1 c SEND session=s entity=a seq=1\n1 n1 LEASE until=10\n"
                       "2 n1 ACTIVATE entity=a\n10 n1 EXEC_BEGIN entity=a session=s seq=1\n",
                  RULE_LEASE,
                  5);
    assert_broken(HEAD "1 n1 LEASE until=10\n10 n1 OUTPUT kind=answer\n", RULE_LEASE, 3);
    assert_clean(HEAD "1 n1 LEASE until=10\n5 n1 LEASE until=20\n19 n1 OUTPUT kind=answer\n");
}

static void an_actor_runs_only_where_it_lives_one_at_a_time(void **state)
{
    (void)state;
    assert_broken(HEAD "1 c SEND session=s entity=a seq=1\n"
                       "2 n1 EXEC_BEGIN entity=a session=s seq=1\n",
                  RULE_LIVE_TWICE,
                  3);
    assert_broken(HEAD "1 c SEND session=s entity=a seq=1\n1 c SEND session=s entity=a seq=2\n"
                       "2 n1 ACTIVATE entity=a\n3 n1 EXEC_BEGIN entity=a session=s seq=1\n"
                       "4 n1 EXEC_BEGIN entity=a session=s seq=2\n",
                  RULE_LIVE_TWICE,
                  6);
    assert_broken(HEAD "1 c SEND session=s entity=a seq=1\n2 n1 ACTIVATE entity=a\n"
                       "3 n1 EXEC_BEGIN entity=a session=s seq=1\n4 n1 FREEZE entity=a\n",
                  RULE_LIVE_TWICE,
                  5);
}

/* ---- K3, K4, K9 ---- */

/* SEND of requests 1 and 2 of s, then `rest`. */
#define TWO                                                                       \
    HEAD "1 c SEND session=s entity=a seq=1\n1 c SEND session=s entity=a seq=2\n" \
         "2 n1 ACTIVATE entity=a\n"
#define RUN(time, n)                                          \
    time " n1 EXEC_BEGIN entity=a session=s seq=" n "\n" time \
         " n1 EXEC_END entity=a session=s seq=" n "\n"
#define ANSWERED(time, n, code) time " c ANSWER session=s entity=a seq=" n " code=" code "\n"

static void answers_agree_with_what_ran(void **state)
{
    (void)state;
    assert_clean(TWO RUN("3", "1") RUN("4", "2") ANSWERED("5", "1", "OK") ANSWERED("5", "2", "OK"));
    assert_clean(TWO RUN("3", "1") ANSWERED("5", "1", "UNKNOWN") ANSWERED("5", "2", "TIMEOUT"));
    assert_clean(TWO ANSWERED("5", "1", "REJECTED") ANSWERED("5", "2", "NOKIND"));
    assert_broken(TWO ANSWERED("5", "1", "OK"), RULE_LOST, 5);
    assert_broken(TWO RUN("3", "1") ANSWERED("5", "1", "REJECTED"), RULE_REFUSED_RAN, 7);
    assert_broken(TWO ANSWERED("3", "1", "REJECTED") RUN("4", "1"), RULE_REFUSED_RAN, 6);
    assert_broken(TWO RUN("3", "1") RUN("4", "1"), RULE_RUN_TWICE, 8);
    assert_int_equal(verdict.broken[RULE_DUPLICATED], 0);
    assert_broken(TWO RUN("3", "1") ANSWERED("4", "1", "OK") RUN("5", "1"), RULE_RUN_TWICE, 9);
    assert_int_equal(verdict.broken[RULE_DUPLICATED], 1);
    assert_broken(TWO ANSWERED("3", "1", "UNKNOWN") ANSWERED("4", "1", "OK"), RULE_INVENTED, 6);
}

static void requests_run_in_their_order(void **state)
{
    (void)state;
    assert_broken(TWO RUN("3", "2") RUN("4", "1"), RULE_ORDER, 7);
    // After a time-out the next one may have gone first; then the late one may not run.
    assert_broken(TWO ANSWERED("3", "1", "TIMEOUT") RUN("4", "2") RUN("5", "1"), RULE_ORDER, 8);
    // Sessions have no order among each other.
    assert_clean(HEAD "1 c SEND session=s entity=a seq=2\n1 c SEND session=t entity=a seq=1\n"
                      "1 c CLOSE session=s\n1 c CLOSE session=t\n2 n1 ACTIVATE entity=a\n"
                      "3 n1 EXEC_BEGIN entity=a session=s seq=2\n"
                      "3 n1 EXEC_END entity=a session=s seq=2\n"
                      "4 n1 EXEC_BEGIN entity=a session=t seq=1\n"
                      "4 n1 EXEC_END entity=a session=t seq=1\n");
}

static void nothing_runs_before_its_send_or_after_its_ok(void **state)
{
    (void)state;
    assert_broken(HEAD "1 n1 ACTIVATE entity=a\n2 n1 EXEC_BEGIN entity=a session=s seq=1\n"
                       "3 c SEND session=s entity=a seq=1\n",
                  RULE_INVENTED,
                  3);
    assert_broken(TWO ANSWERED("3", "1", "OK") RUN("4", "1"), RULE_LOST, 5);
    assert_int_equal(verdict.broken[RULE_REAL_TIME], 1);
}

static void every_request_has_an_answer_or_an_excuse(void **state)
{
    (void)state;
    assert_broken(HEAD "1 c SEND session=s entity=a seq=1\n", RULE_UNANSWERED, 2);
    judge_within(HEAD "1 c SEND session=s entity=a seq=1\n",
                 (struct history_bounds){.unfinished = true});
    assert_int_equal(verdict.broken_total, 0);
    assert_int_equal(verdict.open, 1);
    assert_clean(HEAD "1 c SEND session=s entity=a seq=1 reply=no\n");
    assert_int_equal(verdict.no_reply, 1);
    assert_clean(HEAD "1 c SEND session=s entity=a seq=1\n2 c CLOSE session=s\n");
    assert_clean(HEAD "1 c SEND session=s entity=a seq=1\n2 t CRASH of=c\n");
    assert_int_equal(verdict.abandoned, 1);
}

static void idempotent_requests_may_run_again(void **state)
{
    (void)state;
    assert_clean(HEAD "1 c SEND session=s entity=a seq=1 idempotent=yes\n"
                      "1 c SEND session=s entity=a seq=1 copy=2\n"
                      "2 n1 ACTIVATE entity=a\n" RUN("3", "1") RUN("4", "1")
                          ANSWERED("5", "1", "OK"));
    assert_int_equal(verdict.requests, 1);
}

static void a_moved_actor_knows_all_it_did(void **state)
{
    (void)state;
    assert_broken(TWO RUN("3", "1") "4 n1 FREEZE entity=a\n5 n2 ACTIVATE entity=a effects=0\n",
                  RULE_STATE,
                  8);
    // A crash may have taken it.
    assert_clean(TWO RUN("3", "1") "4 t CRASH of=n1\n5 n2 ACTIVATE entity=a effects=0\n"
                                   "6 c CLOSE session=s\n");
}

static void one_that_stopped_broken_may_know_less_never_more(void **state)
{
    (void)state;
    assert_clean(TWO RUN("3", "1") "4 n1 STOP entity=a why=broken\n"
                                   "5 n1 ACTIVATE entity=a effects=0\n6 c CLOSE session=s\n");
    assert_broken(TWO RUN("3", "1") "4 n1 STOP entity=a why=broken\n"
                                    "5 n1 ACTIVATE entity=a effects=2\n",
                  RULE_STATE,
                  8);
    // For another reason it loses nothing; nor does it a second time.
    assert_broken(TWO RUN("3", "1") "4 n1 STOP entity=a why=idle\n"
                                    "5 n1 ACTIVATE entity=a effects=0\n",
                  RULE_STATE,
                  8);
    assert_broken(TWO RUN("3", "1") "4 n1 STOP entity=a why=broken\n"
                                    "5 n1 ACTIVATE entity=a effects=1\n6 n1 STOP entity=a\n"
                                    "7 n1 ACTIVATE entity=a effects=0\n",
                  RULE_STATE,
                  10);
}

static void a_wait_may_have_a_bound(void **state)
{
    const char *text = TWO RUN("3", "1") ANSWERED("9", "1", "OK") ANSWERED("9", "2", "UNKNOWN");

    (void)state;
    judge_within(text, (struct history_bounds){.stall_us = 8});
    assert_int_equal(verdict.broken_total, 0);
    judge_within(text, (struct history_bounds){.stall_us = 7});
    assert_int_equal(verdict.broken[RULE_STALL], 2);
    assert_string_equal(history_rule_checker(verdict.first.rule), "K7");
}

/* ---- K5, K6 ---- */

static void outcomes_versions_and_digests_agree(void **state)
{
    (void)state;
    assert_clean(HEAD "1 c1 COMMITTED txn=5 version=6 digest=ab\n1 c2 COMMITTED txn=5 version=6\n"
                      "2 n1 OUTCOME txn=5 is=commit\n2 n1 VIEW version=6 digest=ab\n"
                      "3 c1 ABORTED txn=7\n4 n1 OUTCOME txn=7 is=abort\n");
    assert_broken(
        HEAD "1 c1 COMMITTED txn=5 version=6\n2 n1 OUTCOME txn=5 is=abort\n", RULE_AGREEMENT, 3);
    assert_broken(
        HEAD "1 c1 COMMITTED txn=5 version=6\n2 c2 COMMITTED txn=5 version=7\n", RULE_AGREEMENT, 3);
    assert_broken(HEAD "1 n1 VIEW version=6\n2 n1 VIEW version=5\n", RULE_AGREEMENT, 3);
    assert_broken(
        HEAD "1 n1 VIEW version=6 digest=ab\n2 n2 VIEW version=6 digest=ac\n", RULE_AGREEMENT, 3);
}

static void a_reassigned_incarnation_is_silent(void **state)
{
    (void)state;
    assert_clean(HEAD "1 n1 REGISTERED inc=4\n2 n1 OUTPUT kind=answer\n"
                      "3 c1 REASSIGN inc=4 version=9\n4 n2 REGISTERED inc=5\n"
                      "5 n2 OUTPUT kind=answer\n");
    assert_broken(HEAD "1 n1 REGISTERED inc=4\n2 c1 REASSIGN inc=4 version=9\n"
                       "3 n1 OUTPUT kind=answer\n",
                  RULE_FENCED,
                  4);
}

static void tokens_never_go_down(void **state)
{
    (void)state;
    assert_broken(HEAD "1 n1 ACTIVATE entity=a fence=9\n2 n1 STOP entity=a\n"
                       "3 n2 ACTIVATE entity=a fence=8\n",
                  RULE_FENCED,
                  4);
    assert_clean(HEAD "1 db STORE entity=a fence=9 accepted=yes\n"
                      "2 db STORE entity=a fence=8 accepted=no\n");
    assert_int_equal(verdict.refused, 1);
    assert_broken(HEAD "1 db STORE entity=a fence=9 accepted=yes\n"
                       "2 db STORE entity=a fence=8 accepted=yes\n",
                  RULE_FENCED,
                  3);
}

/* ---- reading ---- */

static void malformed_lines_are_named(void **state)
{
    static const struct {
        const char *line;
        const char *why;
    } cases[] = {
        {"x n1 CRASH", "it does not begin with a time"},
        {"18446744073709551616 n1 CRASH", "it does not begin with a time"},
        {"1", "the second word is no process's name"},
        {"1 ", "the second word is no process's name"},
        {"1  CRASH", "the second word is no process's name"},
        {"1 n1", "an unknown event"},
        {"1 n1 BOOM", "an unknown event"},
        {"1 n1 CRASH of", "a key without '=value'"},
        {"1 n1 CRASH of=", "a value that this key can't have"},
        {"1 n1 CRASH size=1", "an unknown key"},
        {"1 n1 CRASH seq=1", "a key that this event has not"},
        {"1 n1 CRASH of=a of=b", "a key stands twice"},
        {"1 n1 CRASH of=a  why=b", "a key without '=value'"},
        {"1 n1 STOP", "a key is missing"},
        {"1 c SEND session=s entity=a seq=0", "a value that this key can't have"},
        {"1 c SEND session=s entity=a seq=-1", "a value that this key can't have"},
        {"1 c SEND session=s entity=a seq=1 reply=maybe", "a value that this key can't have"},
        {"1 c ANSWER session=s entity=a seq=1 code=FINE", "a value that this key can't have"},
        {"1 n1 OUTCOME txn=1 is=maybe", "a value that this key can't have"},
        {"1 n1 NOTE \x01", "it has unprintable bytes"},
        {"1 n1 STOP entity=\xc3\xa4", "it has unprintable bytes"},
    };
    char text[256];
    char want[256];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        (void)snprintf(
            text, sizeof text, HEAD "# fine\n\n1 n1 NOTE all is well\n%s\n", cases[i].line);
        (void)snprintf(want, sizeof want, "h:5: %s", cases[i].why);
        assert_false(read_text(text));
        assert_string_equal(error, want);
    }
    assert_false(read_text("1 n1 CRASH\n"));
    assert_string_equal(error, "h:1: the file does not begin with 'ringhold-history 1'");
    assert_false(read_text(HEAD "1 n1 CRASH"));
    assert_string_equal(error, "h:2: it is cut off");
    assert_true(read_text(""));
}

static void a_line_may_be_long_not_endless(void **state)
{
    char text[HISTORY_LINE_MAX + 64];

    (void)state;
    (void)snprintf(text, sizeof text, HEAD "1 n1 NOTE %*s\n", HISTORY_LINE_MAX - 30, "x");
    assert_true(read_text(text));
    (void)snprintf(text, sizeof text, HEAD "1 n1 NOTE %*s\n", HISTORY_LINE_MAX, "x");
    assert_false(read_text(text));
    assert_string_equal(error, "h:2: it is too long");
}

/* Bytes turned over, cut out and doubled in a good history: it is refused or judged, never worse.
 */
static void damaged_histories_are_refused_or_judged(void **state)
{
    static const char good[] = TWO RUN("3", "1") RUN("4", "2") ANSWERED("5", "1", "OK") ANSWERED(
        "5",
        "2",
        "UNKNOWN") "6 n1 LEASE until=50\n7 n1 REGISTERED inc=3\n8 n1 OUTPUT kind=answer fence=3\n"
                   "9 t PAUSE of=n1\n10 t RESUME of=n1\n11 c1 COMMITTED txn=5 version=6 digest=ab\n"
                   "12 n1 VIEW version=6 digest=ab\n13 n1 FREEZE entity=a\n14 n1 UNFREEZE "
                   "entity=a\n"
                   "15 c1 REASSIGN inc=4 version=9\n16 db STORE entity=a fence=9 accepted=yes\n"
                   "17 n1 OUTCOME txn=5 is=commit\n18 t CRASH of=n1\n19 c CLOSE session=s\n";
    const size_t size = sizeof good - 1;
    struct prng prng = {.state = 7};
    size_t judged = 0;

    (void)state;
    assert_clean(good);
    for (unsigned round = 0; round < 20000; round++) {
        char text[2 * sizeof good];
        size_t used = size;

        memcpy(text, good, size);
        for (uint64_t n = prng_between(&prng, 1, 4); n > 0; n--) {
            const size_t at = prng_between(&prng, 0, used - 1);
            const size_t many = prng_between(&prng, 1, 8);

            if (prng_between(&prng, 0, 2) == 0 && at + many <= used && used > 200) {
                memmove(text + at, text + at + many, used - at - many);
                used -= many;
            } else if (prng_between(&prng, 0, 1) == 0 && at + many <= used &&
                       used + many < sizeof text) {
                memmove(text + at + many, text + at, used - at);
                used += many;
            } else {
                text[at] = "0123456789 =\nabnsc%"[prng_between(&prng, 0, 18)];
            }
        }
        history_book_fini(&book);
        if (history_book_read(&book, "h", bytes_of(text, used), error)) {
            const struct history_event *context[4];

            judged++;
            history_judge(&book, &(struct history_bounds){0}, &verdict);
            if (verdict.broken_total > 0) {
                assert_int_not_equal(history_context(&book, verdict.first.event, context, 4), 0);
            }
        }
    }
    assert_true(judged > 100 && judged < 19900);
}

/* ---- writing ---- */

static void what_is_written_is_read(void **state)
{
    char path[] = "/tmp/ringhold-history-XXXXXX";
    const int fd = mkstemp(path);
    char word[HISTORY_WORD_SIZE];
    char text[512];
    struct history *h = NULL;
    struct history *again = NULL;

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(history_open(&h, path), ERR_OK);
    assert_int_equal(history_open(&again, path), ERR_OK);
    history_write(h,
                  7,
                  "n1.9",
                  HISTORY_ACTIVATE,
                  "entity=%s fence=%d",
                  history_word(bytes_of("a b%\xff", 5), word),
                  4);
    history_write(again, 6, "n2.9", HISTORY_NOTE, "hello");
    history_write(NULL, 6, "n2.9", HISTORY_NOTE, "nowhere");
    history_close(h);
    history_close(again);
    history_close(NULL);
    const ssize_t got = read(fd, text, sizeof text - 1);
    assert_true(got > 0);
    text[got] = '\0';
    assert_string_equal(text,
                        HEAD "7 n1.9 ACTIVATE entity=a%20b%25%FF fence=4\n6 n2.9 NOTE hello\n");
    assert_clean(text);
    assert_int_equal(verdict.events, 2);
    assert_int_equal(history_open(&h, "/dev/null/file"), ERR_IO);
    assert_null(h);
    (void)close(fd);
    (void)unlink(path);
}

static void the_longest_ids_fit_a_line(void **state)
{
    char path[] = "/tmp/ringhold-history-XXXXXX";
    const int fd = mkstemp(path);
    uint8_t id[HISTORY_WORD_MAX];
    char word[HISTORY_WORD_SIZE];
    static char text[HISTORY_LINE_MAX + 64];
    struct history *h = NULL;

    (void)state;
    memset(id, 0xff, sizeof id);
    (void)history_word(bytes_of(id, sizeof id), word);
    assert_int_equal(history_open(&h, path), ERR_OK);
    history_write(h, UINT64_MAX, "c", HISTORY_SEND, "session=%s entity=%s seq=1", word, word);
    history_close(h);
    const ssize_t got = read(fd, text, sizeof text);
    assert_true(got > 0);
    history_book_fini(&book);
    assert_true(history_book_read(&book, path, bytes_of(text, (size_t)got), error));
    assert_string_equal(history_book_word(&book, book.event[0].entity), word);
    (void)close(fd);
    (void)unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_planned_move_is_clean, end),
        cmocka_unit_test_teardown(two_that_live_at_once_are_seen, end),
        cmocka_unit_test_teardown(times_count_not_the_order_of_files, end),
        cmocka_unit_test_teardown(a_crash_ends_all_lives_and_nothing_follows_it, end),
        cmocka_unit_test_teardown(a_paused_or_leaseless_process_is_replaced, end),
        cmocka_unit_test_teardown(what_began_before_the_pause_may_end_without_effect, end),
        cmocka_unit_test_teardown(nothing_begins_after_the_lease, end),
        cmocka_unit_test_teardown(an_actor_runs_only_where_it_lives_one_at_a_time, end),
        cmocka_unit_test_teardown(answers_agree_with_what_ran, end),
        cmocka_unit_test_teardown(requests_run_in_their_order, end),
        cmocka_unit_test_teardown(nothing_runs_before_its_send_or_after_its_ok, end),
        cmocka_unit_test_teardown(every_request_has_an_answer_or_an_excuse, end),
        cmocka_unit_test_teardown(idempotent_requests_may_run_again, end),
        cmocka_unit_test_teardown(a_moved_actor_knows_all_it_did, end),
        cmocka_unit_test_teardown(one_that_stopped_broken_may_know_less_never_more, end),
        cmocka_unit_test_teardown(a_wait_may_have_a_bound, end),
        cmocka_unit_test_teardown(outcomes_versions_and_digests_agree, end),
        cmocka_unit_test_teardown(a_reassigned_incarnation_is_silent, end),
        cmocka_unit_test_teardown(tokens_never_go_down, end),
        cmocka_unit_test_teardown(malformed_lines_are_named, end),
        cmocka_unit_test_teardown(a_line_may_be_long_not_endless, end),
        cmocka_unit_test_teardown(damaged_histories_are_refused_or_judged, end),
        cmocka_unit_test_teardown(what_is_written_is_read, end),
        cmocka_unit_test_teardown(the_longest_ids_fit_a_line, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

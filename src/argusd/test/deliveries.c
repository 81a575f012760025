/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of deliveries.c: which message goes next, and how many one user may have there. */
#include "argusd/alerts/deliveries.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/text.h"
#include "base/unit.h"

static void add(struct deliveries *q, const char *incident, const char *user, int severity)
{
    struct delivery *d = xcalloc(1, sizeof(*d));
    text_printf(d->id, "m%zu", q->n);
    d->incident = xstrdup(incident);
    d->user = xstrdup(user);
    d->severity = severity;
    deliveries_add(q, d);
}

static struct delivery *next_of(struct deliveries *q, usec_t now)
{
    struct deliveries_ask ask = {.now = now, .least = ALERT_INFO};
    return deliveries_take(q, &ask);
}

/* The next one is of this incident, and its receiver takes it. NULL: none may go. */
static void takes(struct deliveries *q, const char *incident)
{
    struct delivery *d = next_of(q, 0);
    if (!incident) {
        assert_null(d);
        return;
    }
    assert_non_null(d);
    assert_string_equal(d->incident, incident);
    deliveries_gone(q, d);
    delivery_free(d);
}

static void fails(struct deliveries *q, usec_t now, usec_t after)
{
    struct delivery *d = next_of(q, now);
    assert_non_null(d);
    d->goes_alone = true;
    d->after = after;
    deliveries_put_back(q, d);
}

static void test_the_severest_goes_first(void **state)
{
    struct deliveries q = {0};
    (void)state;
    takes(&q, NULL);
    add(&q, "i1", "alice", ALERT_INFO);
    add(&q, "i2", "alice", ALERT_WARNING);
    add(&q, "i3", NULL, ALERT_CRITICAL);
    add(&q, "i4", NULL, ALERT_WARNING);
    takes(&q, "i3");
    takes(&q, "i4");
    takes(&q, "i2");
    takes(&q, "i1");
    takes(&q, NULL);
    assert_int_equal(q.n, 0);
    deliveries_release(&q);
}

static void test_users_take_turns(void **state)
{
    struct deliveries q = {0};
    char name[20];
    (void)state;
    for (int i = 0; i < 500; i++) {
        text_printf(name, "a%d", i);
        add(&q, name, "alice", ALERT_WARNING);
    }
    add(&q, "b1", "bob", ALERT_WARNING);
    add(&q, "b2", "bob", ALERT_WARNING);
    takes(&q, "a0");
    takes(&q, "b1");
    takes(&q, "a1");
    takes(&q, "b2");
    takes(&q, "a2");
    deliveries_release(&q);
}

/* The begin of what has grown worse is as urgent as that, and comes before it. */
static void test_an_incident_keeps_its_order(void **state)
{
    struct deliveries q = {0};
    (void)state;
    add(&q, "i1", "alice", ALERT_INFO);
    add(&q, "i2", NULL, ALERT_WARNING);
    add(&q, "i1", "alice", ALERT_CRITICAL);
    struct delivery *d = next_of(&q, 0);
    assert_int_equal(d->severity, ALERT_INFO);
    d->goes_alone = true;
    d->after = 10;
    deliveries_put_back(&q, d); /* what follows of i1 waits for it */
    takes(&q, "i2");
    takes(&q, NULL);
    d = next_of(&q, 10);
    assert_int_equal(d->severity, ALERT_INFO);
    deliveries_gone(&q, d);
    delivery_free(d);
    takes(&q, "i1");
    deliveries_release(&q);
}

static void count_one(const struct delivery *d, void *arg)
{
    (void)d;
    ++*(size_t *)arg;
}

/* One is not to go: what follows of its incident comes with it, and nothing else. */
static void test_what_is_behind_one(void **state)
{
    static const int newest_first[] = {ALERT_CRITICAL, ALERT_WARNING, ALERT_INFO};
    struct deliveries q = {0};
    size_t waiting = 0;
    (void)state;
    for (int severity = ALERT_INFO; severity <= ALERT_CRITICAL; severity++)
        add(&q, "i1", "alice", severity);
    add(&q, "i2", NULL, ALERT_INFO);
    deliveries_each(&q, count_one, &waiting);
    assert_int_equal(waiting, 4);
    struct delivery *d = deliveries_take_behind(&q, next_of(&q, 0));
    for (size_t i = 0; i < array_len(newest_first); i++) {
        struct delivery *next = d->next;
        assert_string_equal(d->incident, "i1");
        assert_int_equal(d->severity, newest_first[i]);
        deliveries_gone(&q, d);
        delivery_free(d);
        d = next;
    }
    assert_null(d);
    takes(&q, "i2");
    takes(&q, NULL);
    deliveries_release(&q);
}

/* What a message tells of is in its row; in one of before it is not. */
static void test_the_way_is_in_the_row(void **state)
{
    struct delivery d = {.receiver = xstrdup("r0"), .payload = xstrdup("{}")}, read = {0};
    struct delivery old = {0};
    (void)state;
    strv_add(&d.way.names, "a1");
    strv_add(&d.way.names, "a2");
    strv_add(&d.way.fresh, "a2");
    d.way.begun = true;
    d.way.severity = ALERT_CRITICAL;
    d.way.told = TELLING_NOTHING;
    _cleanup_(freep) char *row = field_to_text(&delivery_table, &d, FIELD_STORED, FIELD_ROW);
    assert_true(field_from_text(&delivery_table, row, FIELD_STORED, &read));
    assert_int_equal(read.way.names.n, 2);
    assert_string_equal(read.way.fresh.v[0], "a2");
    assert_true(read.way.begun);
    assert_int_equal(read.way.severity, ALERT_CRITICAL);
    assert_int_equal(read.way.told, TELLING_NOTHING);
    assert_true(
        field_from_text(&delivery_table, "{\"id\":\"m\",\"receiver\":\"r0\"}", FIELD_STORED, &old));
    assert_int_equal(old.way.names.n, 0);
    field_release(&delivery_table, &d);
    field_release(&delivery_table, &read);
    field_release(&delivery_table, &old);
}

static void test_rows_of_the_store_go_by_their_time(void **state)
{
    static const usec_t at[] = {30, 10, 20};
    static const char *const ids[] = {"m10", "m20", "m30", "m3"};
    struct deliveries q = {0};
    (void)state;
    for (size_t i = 0; i < array_len(at); i++) {
        struct delivery *d = xcalloc(1, sizeof(*d));
        text_printf(d->id, "m%d", (int)at[i]);
        d->incident = xstrdup("i1");
        d->at = at[i];
        deliveries_restore(&q, d);
    }
    add(&q, "i1", NULL, ALERT_WARNING); /* m3 */
    for (size_t i = 0; i < array_len(ids); i++) {
        struct delivery *d = next_of(&q, 0);
        assert_string_equal(d->id, ids[i]);
        deliveries_gone(&q, d);
        delivery_free(d);
    }
    deliveries_release(&q);
}

/* One that always fails, and is the severest and due at once, is every other one at most. */
static void test_what_fails_holds_nothing(void **state)
{
    struct deliveries q = {0};
    (void)state;
    add(&q, "poison", NULL, ALERT_CRITICAL);
    fails(&q, 0, 0);
    add(&q, "i1", "alice", ALERT_INFO);
    add(&q, "i2", "alice", ALERT_INFO);
    fails(&q, 0, 0);
    takes(&q, "i1");
    fails(&q, 0, 0);
    takes(&q, "i2");
    fails(&q, 0, 5);
    takes(&q, NULL);
    deliveries_release(&q);
}

/* Fifty users put messages there at every moment, each as often as he may, and every third send
 * fails after the longest that one takes. What is critical has left within a minute. */
static void test_fifty_users_hold_up_nothing_critical(void **state)
{
    enum { USERS = 50, SENDS = 200 };
    const usec_t send = 15 * USEC_SEC, within = USEC_MIN; /* courier.c cuts one off then */
    struct deliveries q = {0};
    char user[20], name[20];
    usec_t put_at = 0, now = 0;
    size_t left = 0;
    (void)state;
    for (int i = 0; i < SENDS; i++, now += send) {
        for (int k = 0; k < USERS; k++) {
            text_printf(user, "u%d", k);
            text_printf(name, "u%d-%d", k, i);
            if (deliveries_room(&q, user) == TELLING_ON_THE_WAY)
                add(&q, name, user, k % 2 ? ALERT_INFO : ALERT_WARNING);
        }
        if (!put_at && i % 7 == 3) {
            assert_int_equal(deliveries_room(&q, NULL), TELLING_ON_THE_WAY);
            add(&q, "head-lost", NULL, ALERT_CRITICAL);
            put_at = now + 1;
        }
        struct delivery *d = next_of(&q, now);
        assert_non_null(d);
        bool is_critical = !strcmp(d->incident, "head-lost");
        if (!is_critical && i % 3 == 0) {
            d->goes_alone = true;
            d->after = now + send;
            deliveries_put_back(&q, d);
            continue;
        }
        if (is_critical) {
            assert_true(now + send - put_at <= within);
            put_at = 0;
            left++;
        }
        deliveries_gone(&q, d);
        delivery_free(d);
    }
    assert_true(left > SENDS / 10);
    deliveries_release(&q);
}

static void test_only_what_is_on_disk_and_severe_enough(void **state)
{
    struct deliveries q = {0};
    struct deliveries_ask ask = {.durable = 6, .least = ALERT_CRITICAL};
    (void)state;
    add(&q, "i1", NULL, ALERT_WARNING);
    assert_null(deliveries_take(&q, &ask));
    add(&q, "i2", NULL, ALERT_CRITICAL);
    struct delivery *d = deliveries_take(&q, &ask);
    assert_string_equal(d->incident, "i2");
    d->batch = 7;
    deliveries_put_back(&q, d);
    assert_null(deliveries_take(&q, &ask));
    ask.durable = 7;
    d = deliveries_take(&q, &ask);
    d->goes_alone = true;
    deliveries_put_back(&q, d);
    ask.joins = true;
    assert_null(deliveries_take(&q, &ask));
    deliveries_release(&q);
}

static void test_shares(void **state)
{
    struct deliveries q = {0};
    char name[20];
    (void)state;
    for (int i = 0; i < DELIVERIES_OF_USERS; i++) {
        text_printf(name, "u%d", i / DELIVERIES_OF_USER_MAX);
        assert_int_equal(deliveries_room(&q, name), TELLING_ON_THE_WAY);
        add(&q, name, name, ALERT_INFO);
    }
    assert_int_equal(deliveries_room(&q, "u0"), TELLING_SHARE);
    assert_int_equal(deliveries_room(&q, "new"), TELLING_SHARE);
    takes(&q, "u0");
    assert_int_equal(deliveries_room(&q, "u0"), TELLING_ON_THE_WAY);
    assert_int_equal(deliveries_room(&q, "u1"), TELLING_SHARE);
    while (q.n < DELIVERIES_MAX) {
        assert_int_equal(deliveries_room(&q, NULL), TELLING_ON_THE_WAY);
        add(&q, "cluster", NULL, ALERT_INFO);
    }
    assert_int_equal(deliveries_room(&q, NULL), TELLING_FULL);
    assert_int_equal(deliveries_room(&q, "u0"), TELLING_FULL);
    deliveries_release(&q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_severest_goes_first),
        cmocka_unit_test(test_users_take_turns),
        cmocka_unit_test(test_an_incident_keeps_its_order),
        cmocka_unit_test(test_rows_of_the_store_go_by_their_time),
        cmocka_unit_test(test_what_is_behind_one),
        cmocka_unit_test(test_the_way_is_in_the_row),
        cmocka_unit_test(test_what_fails_holds_nothing),
        cmocka_unit_test(test_fifty_users_hold_up_nothing_critical),
        cmocka_unit_test(test_only_what_is_on_disk_and_severe_enough),
        cmocka_unit_test(test_shares),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of alert_way.h: a message that waits is asked again, taken back, and told anew as far as it
 * may be; and what waits keeps its alerts and its incident. */
#include "core/alert/alert_way.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/doc/doc.h"
#include "base/str.h"
#include "base/text.h"
#include "base/unit_message.h"
#include "core/alert/alert_tell.h"

static const unsigned char SEED[16] = {3};
static const usec_t T = 1700000000 * USEC_SEC; /* 22:13:20 */
enum { MESSAGES_MAX = 2000, SILENCES_MAX = 4 };

#define RULES                                                                                      \
    "lost: {of: node, when: alive == no, severity: critical, text: 'lost'}\n"                      \
    "sick: {of: node, when: unhealthy == yes, text: 'sick'}\n"                                     \
    "failed: {of: job, when: event == failed, keep: 1h, text: 'failed'}\n"
#define ONE_RECEIVER "receivers: {r0: {kind: log}}\nroutes: [{to: r0}]\n"

struct posted {
    char incident[ALERT_ID_MAX];
    char receiver[8];
    enum alert_what what;
    struct alert_way way;
};

struct bed {
    struct alert_config config;
    struct alert_rules rules;
    struct alert_table *t;
    struct alert_silence silences[SILENCES_MAX];
    size_t n_silences;
    struct posted *v; /* that wait, the oldest first */
    size_t n;
    const char *full; /* receiver whose line is full; NULL */
    usec_t now;
};

static void bed_read(const char *yaml, bool is_config, struct bed *b)
{
    struct doc *d = NULL;
    struct problems ps = {0};
    assert_int_equal(doc_parse(yaml, strlen(yaml), true, &d, &ps), 0);
    if (is_config)
        alert_config_read(doc_root(d), &b->config, &ps);
    else
        assert_int_equal(alert_rules_read(doc_root(d), "test", &b->rules, &ps), 0);
    if (ps.errors)
        fail_msg("%s\n%s", unit_problem(&ps.v[0]), yaml);
    problems_release(&ps);
    doc_free(d);
}

static struct bed bed_new(const char *config)
{
    struct bed b = {
        .t = alert_table_new(SEED), .v = xcalloc(MESSAGES_MAX, sizeof(struct posted)), .now = T};
    bed_read(RULES, false, &b);
    bed_read(config, true, &b);
    return b;
}

static void bed_drop(struct bed *b, size_t k)
{
    field_release(&alert_way_table, &b->v[k].way);
    memmove(&b->v[k], &b->v[k + 1], (--b->n - k) * sizeof(*b->v));
}

static void bed_end(struct bed *b)
{
    while (b->n)
        bed_drop(b, b->n - 1);
    for (size_t k = 0; k < b->n_silences; k++)
        field_release(&alert_silence_table, &b->silences[k]);
    free(b->v);
    alert_table_free(b->t);
    alert_rules_release(&b->rules);
    alert_config_release(&b->config);
}

static enum telling_state bed_put(const struct incident *view,
                                  enum alert_what what,
                                  const char *receiver,
                                  const struct alert_way *way,
                                  usec_t now,
                                  void *arg)
{
    struct bed *b = arg;
    assert_int_equal(now, b->now);
    assert_int_equal(way->names.n, view->alerts.n);
    if (str_eq(receiver, b->full))
        return TELLING_FULL;
    assert_true(b->n < MESSAGES_MAX);
    struct posted *m = &b->v[b->n++];
    *m = (struct posted){.what = what};
    text_copy(m->incident, view->id);
    text_copy(m->receiver, receiver);
    field_assign(&alert_way_table, &m->way, way, FIELD_STORED);
    return TELLING_ON_THE_WAY;
}

/* Looks every two seconds for so long; what is seen stays as it is. */
static void bed_run(struct bed *b, usec_t span)
{
    struct incident *i;
    struct tell_parts parts = {.config = &b->config,
                               .silences = b->silences,
                               .n_silences = b->n_silences,
                               .put = bed_put,
                               .arg = b};
    for (usec_t end = b->now + span; b->now < end;) {
        b->now += 2 * USEC_SEC;
        alert_table_tick(b->t, &b->rules, b->now);
        for (size_t k = 0; (i = incident_at(b->t, k)); k++) {
            incident_tell(i, &parts, b->now);
            incident_took(i);
        }
    }
}

static void bed_see(struct bed *b,
                    enum alert_of of,
                    const char *name,
                    const char *fact,
                    const char *value,
                    const char *suspect)
{
    struct alert_fact is = {fact, 0, value};
    struct strv suspects = {0};
    if (suspect)
        strv_add(&suspects, suspect);
    struct alert_subject s = {
        .of = of, .name = name, .v = &is, .n = 1, .suspects = &suspects, .gpus = 8};
    alert_table_see(b->t, &b->rules, &s, b->now);
    strv_release(&suspects);
}

static void bed_silence(struct bed *b, const char *id, usec_t span)
{
    struct incident *i;
    const struct alert *a = alert_table_find(b->t, id, &i);
    struct alert_silence *s = &b->silences[b->n_silences++];
    assert_non_null(a);
    *s = (struct alert_silence){.from = b->now, .until = b->now + span};
    alert_silence_cover(s, a);
    assert_string_equal(s->alert, id);
}

static struct alert_way_of bed_way(const struct bed *b, size_t k)
{
    return (struct alert_way_of){b->v[k].incident, b->v[k].receiver, &b->v[k].way};
}

static enum telling_state bed_ask(const struct bed *b, size_t k)
{
    struct alert_way_of m = bed_way(b, k);
    struct alert_silences silences = {b->silences, b->n_silences};
    return alert_way_ask(b->t, &m, &b->config, silences, b->now);
}

/* The receiver is there: the first message is asked, and taken, or all of them are taken back. */
static void bed_send(struct bed *b, enum telling_state expected)
{
    assert_true(b->n > 0);
    assert_int_equal(bed_ask(b, 0), expected);
    while (expected != TELLING_ON_THE_WAY && b->n) {
        struct alert_way_of m = bed_way(b, b->n - 1);
        alert_way_take_back(b->t, &m, expected);
        bed_drop(b, b->n - 1);
    }
    if (expected == TELLING_ON_THE_WAY) {
        struct alert_way_of m = bed_way(b, 0);
        assert_non_null(alert_way_end(b->t, &m, TELLING_TAKEN, NULL));
        bed_drop(b, 0);
    }
}

/* What waits: "opened 1, grew 2"; the number is of the alerts in it. */
static const char *bed_waits(const struct bed *b)
{
    static char text[200];
    struct buf out = BUF_INIT(sizeof(text));
    for (size_t k = 0; k < b->n; k++)
        (void)buf_addf(&out, "%s%s %zu", k ? ", " : "", alert_what_names[b->v[k].what],
                       b->v[k].way.names.n);
    text_copy(text, buf_str(&out));
    buf_release(&out);
    return text;
}

static const struct telling *bed_telling(const struct bed *b, size_t incident)
{
    const struct telling *t = incident_telling(incident_at(b->t, incident), "r0");
    assert_non_null(t);
    return t;
}

/* ---- what came while it waited ---- */

static void test_a_silence_takes_back_what_waits(void **state)
{
    struct bed b = bed_new(ONE_RECEIVER);
    (void)state;
    bed_see(&b, ALERT_OF_NODE, "w0", "alive", "no", NULL);
    bed_run(&b, 20 * USEC_SEC);
    assert_string_equal(bed_waits(&b), "opened 1");
    bed_silence(&b, "a1", 2 * USEC_HOUR);
    bed_send(&b, TELLING_SILENCED);
    assert_int_equal(bed_telling(&b, 0)->state, TELLING_SILENCED);
    assert_false(bed_telling(&b, 0)->begun);
    assert_int_equal(incident_at(b.t, 0)->told_at, 0);
    assert_true(incident_at(b.t, 0)->is_dirty);
    bed_run(&b, USEC_HOUR);
    assert_string_equal(bed_waits(&b), "");
    assert_int_equal(bed_telling(&b, 0)->state, TELLING_SILENCED);
    bed_run(&b, USEC_HOUR + USEC_MIN); /* it is open still */
    assert_string_equal(bed_waits(&b), "opened 1");
    bed_send(&b, TELLING_ON_THE_WAY);
    assert_int_equal(bed_telling(&b, 0)->state, TELLING_TAKEN);
    bed_end(&b);
}

static void test_what_no_silence_covers_is_told_anew(void **state)
{
    struct bed b = bed_new(ONE_RECEIVER);
    (void)state;
    bed_see(&b, ALERT_OF_NODE, "w0", "alive", "no", NULL);
    bed_see(&b, ALERT_OF_JOB, "j0", "event", "failed", "node/w0");
    bed_run(&b, 20 * USEC_SEC);
    assert_string_equal(bed_waits(&b), "opened 2");
    bed_silence(&b, "a2", USEC_HOUR);
    bed_send(&b, TELLING_SILENCED);
    bed_run(&b, 2 * USEC_SEC);
    assert_string_equal(bed_waits(&b), "opened 1");
    assert_string_equal(b.v[0].way.names.v[0], "a1");
    bed_end(&b);
}

/* What became of the last message stays said, and who was told of the begin is told what is news.
 */
static void test_the_message_before_was_taken(void **state)
{
    struct bed b = bed_new(ONE_RECEIVER);
    (void)state;
    bed_see(&b, ALERT_OF_NODE, "w0", "alive", "no", NULL);
    bed_run(&b, 20 * USEC_SEC);
    bed_send(&b, TELLING_ON_THE_WAY);
    bed_see(&b, ALERT_OF_JOB, "j0", "event", "failed", "node/w0");
    bed_run(&b, USEC_MIN);
    assert_string_equal(bed_waits(&b), "grew 2");
    assert_int_equal(bed_telling(&b, 0)->state, TELLING_ON_THE_WAY);
    bed_silence(&b, "a2", USEC_HOUR);
    bed_send(&b, TELLING_SILENCED);
    assert_int_equal(bed_telling(&b, 0)->state, TELLING_TAKEN);
    assert_true(bed_telling(&b, 0)->begun);
    assert_int_equal(bed_telling(&b, 0)->messages, 1);
    bed_see(&b, ALERT_OF_JOB, "j1", "event", "failed", "node/w0");
    bed_run(&b, USEC_MIN);
    assert_string_equal(bed_waits(&b), "grew 2");
    assert_false(strv_has(&b.v[0].way.names, "a2"));
    bed_end(&b);
}

static void test_quiet_hours_begin_while_it_waits(void **state)
{
    struct bed b = bed_new(ONE_RECEIVER "quiet: {from: '22:14', to: '23:00'}\n");
    (void)state;
    bed_see(&b, ALERT_OF_NODE, "w0", "unhealthy", "yes", NULL);
    bed_run(&b, 20 * USEC_SEC); /* 22:13:40 */
    assert_string_equal(bed_waits(&b), "opened 1");
    assert_int_equal(bed_ask(&b, 0), TELLING_ON_THE_WAY);
    b.now += 20 * USEC_MIN;
    bed_send(&b, TELLING_QUIET);
    assert_int_equal(bed_telling(&b, 0)->state, TELLING_QUIET);
    bed_run(&b, 20 * USEC_MIN);
    assert_string_equal(bed_waits(&b), "");
    bed_run(&b, 10 * USEC_MIN);
    assert_string_equal(bed_waits(&b), "opened 1");
    bed_send(&b, TELLING_ON_THE_WAY);
    bed_end(&b);
}

static void test_what_is_critical_goes_through_the_night(void **state)
{
    struct bed b = bed_new(ONE_RECEIVER "quiet: {from: '22:14', to: '23:00'}\n");
    (void)state;
    bed_see(&b, ALERT_OF_NODE, "w0", "unhealthy", "yes", NULL);
    bed_run(&b, 20 * USEC_SEC);
    b.now += 20 * USEC_MIN;
    bed_see(&b, ALERT_OF_NODE, "w0", "alive", "no", NULL);
    bed_run(&b, 2 * USEC_SEC);
    assert_string_equal(bed_waits(&b), "opened 1, grew 2");
    bed_send(&b, TELLING_QUIET); /* the first one; what follows is told anew, as one */
    bed_run(&b, 2 * USEC_SEC);
    assert_string_equal(bed_waits(&b), "opened 2");
    bed_send(&b, TELLING_ON_THE_WAY);
    bed_end(&b);
}

static void test_an_end_and_an_escalation_are_taken_back(void **state)
{
    struct bed b = bed_new(ONE_RECEIVER "escalate: {after: 1m, to: r0}\n");
    (void)state;
    bed_see(&b, ALERT_OF_NODE, "w0", "alive", "no", NULL);
    bed_run(&b, 20 * USEC_SEC);
    bed_send(&b, TELLING_ON_THE_WAY);
    bed_run(&b, 2 * USEC_MIN);
    assert_string_equal(bed_waits(&b), "escalated 1");
    assert_int_equal(incident_at(b.t, 0)->escalations, 1);
    bed_silence(&b, "a1", USEC_HOUR);
    bed_send(&b, TELLING_SILENCED);
    assert_int_equal(incident_at(b.t, 0)->escalations, 0);
    bed_run(&b, USEC_HOUR + 10 * USEC_SEC);
    assert_string_equal(bed_waits(&b), "escalated 1"); /* nobody has acknowledged it since */
    bed_send(&b, TELLING_ON_THE_WAY);
    bed_see(&b, ALERT_OF_NODE, "w0", "alive", "yes", NULL);
    bed_run(&b, USEC_MIN);
    assert_string_equal(bed_waits(&b), "resolved 1");
    assert_true(incident_at(b.t, 0)->told_end);
    bed_silence(&b, "a1", USEC_HOUR);
    bed_send(&b, TELLING_SILENCED);
    assert_false(incident_at(b.t, 0)->told_end);
    bed_run(&b, USEC_MIN);
    assert_string_equal(bed_waits(&b), "");
    assert_true(incident_at(b.t, 0)->told_end);
    assert_int_equal(bed_telling(&b, 0)->state, TELLING_SILENCED);
    bed_end(&b);
}

/* Its alerts are another incident's by then: that one tells of them. */
static void test_its_incident_was_merged(void **state)
{
    struct bed b = bed_new(ONE_RECEIVER "quiet: {from: '22:14', to: '23:00'}\n");
    (void)state;
    bed_see(&b, ALERT_OF_JOB, "j0", "event", "failed", "node/w0");
    bed_run(&b, 10 * USEC_SEC);
    assert_string_equal(bed_waits(&b), "opened 1");
    bed_see(&b, ALERT_OF_NODE, "w0", "unhealthy", "yes", NULL);
    assert_string_equal(incident_at(b.t, 0)->merged_into, "i2");
    assert_true(incident_waits(incident_at(b.t, 1)));
    b.now += 20 * USEC_MIN;
    bed_send(&b, TELLING_QUIET);
    assert_false(incident_waits(incident_at(b.t, 1)));
    bed_run(&b, 20 * USEC_MIN);
    assert_string_equal(bed_waits(&b), "");
    bed_run(&b, 10 * USEC_MIN);
    assert_string_equal(bed_waits(&b), "opened 2");
    bed_end(&b);
}

static void test_a_state_that_came_back_meanwhile_is_not_known(void **state)
{
    struct bed b = bed_new(ONE_RECEIVER "quiet: {from: '22:14', to: '23:00'}\n");
    (void)state;
    bed_see(&b, ALERT_OF_NODE, "w0", "alive", "no", NULL); /* keeps the incident open */
    bed_run(&b, 10 * USEC_SEC);
    bed_send(&b, TELLING_ON_THE_WAY);
    bed_see(&b, ALERT_OF_NODE, "w0", "unhealthy", "yes", NULL);
    struct incident *i = incident_at(b.t, 0);
    strv_add(&incident_alert(i, 1)->told, "r0"); /* as if a message named it that waits */
    struct alert_way way = {.begun = true, .severity = ALERT_WARNING, .told = ALERT_CRITICAL};
    strv_add(&way.names, "a2");
    strv_add(&way.fresh, "a2");
    struct alert_way_of m = {"i1", "r0", &way};
    alert_way_restore(b.t, &m);
    bed_see(&b, ALERT_OF_NODE, "w0", "unhealthy", "no", NULL);
    b.now += USEC_MIN;
    bed_see(&b, ALERT_OF_NODE, "w0", "unhealthy", "yes", NULL);
    assert_int_equal(i->alerts.n, 3);
    assert_true(strv_has(&incident_alert(i, 2)->told, "r0"));
    alert_way_take_back(b.t, &m, TELLING_QUIET);
    assert_false(strv_has(&incident_alert(i, 1)->told, "r0"));
    assert_false(strv_has(&incident_alert(i, 2)->told, "r0"));
    assert_true(strv_has(&incident_alert(i, 0)->told, "r0"));
    field_release(&alert_way_table, &way);
    bed_end(&b);
}

/* A test, and a message of an argusd of before, name nothing: they go. */
static void test_what_names_nothing_goes(void **state)
{
    struct bed b = bed_new(ONE_RECEIVER "quiet: {from: '22:00', to: '23:00', below: critical}\n");
    struct alert_way none = {0};
    struct alert_silences silences = {0};
    (void)state;
    struct alert_way_of test = {NULL, "r0", &none}, old = {"i1", "r0", &none};
    assert_int_equal(alert_way_ask(b.t, &test, &b.config, silences, b.now), TELLING_ON_THE_WAY);
    assert_int_equal(alert_way_ask(b.t, &old, &b.config, silences, b.now), TELLING_ON_THE_WAY);
    assert_null(alert_way_end(b.t, &test, TELLING_TAKEN, NULL));
    bed_end(&b);
}

/* ---- a silence of an alert ---- */

static void test_a_silence_outlives_the_id(void **state)
{
    struct bed b = bed_new(ONE_RECEIVER);
    (void)state;
    bed_see(&b, ALERT_OF_NODE, "w0", "alive", "no", NULL);
    bed_silence(&b, "a1", 2 * USEC_HOUR);
    bed_run(&b, 20 * USEC_SEC);
    bed_see(&b, ALERT_OF_NODE, "w0", "alive", "yes", NULL);
    bed_run(&b, 20 * USEC_MIN); /* longer than what flaps */
    bed_see(&b, ALERT_OF_NODE, "w0", "alive", "no", NULL);
    bed_run(&b, USEC_MIN);
    assert_string_equal(incident_alert(incident_at(b.t, 1), 0)->id, "a2");
    assert_string_equal(bed_waits(&b), "");
    assert_int_equal(bed_telling(&b, 1)->state, TELLING_SILENCED);
    bed_see(&b, ALERT_OF_NODE, "w1", "alive", "no", NULL); /* another node */
    bed_see(&b, ALERT_OF_NODE, "w0", "unhealthy", "yes", NULL);
    bed_run(&b, 10 * USEC_MIN); /* another rule */
    assert_string_equal(bed_waits(&b), "opened 1, opened 1");
    bed_end(&b);
}

/* Rows of the store: as it is written now, and one that has the id alone. */
static void test_a_silence_of_before_is_of_its_id(void **state)
{
    struct bed b = bed_new(ONE_RECEIVER);
    struct alert_silence old = {0}, now = {0};
    (void)state;
    bed_see(&b, ALERT_OF_NODE, "w0", "alive", "no", NULL);
    bed_see(&b, ALERT_OF_NODE, "w1", "alive", "no", NULL);
    bed_silence(&b, "a1", USEC_HOUR);
    const struct alert *a = incident_alert(incident_at(b.t, 0), 0);
    const struct alert *other = incident_alert(incident_at(b.t, 1), 0);
    assert_true(field_from_text(&alert_silence_table,
                                "{\"id\":\"s1\",\"alert\":\"a1\",\"until\":9999999999999999}",
                                FIELD_STORED, &old));
    assert_true(alert_silence_holds(&old, a, T));
    assert_false(alert_silence_holds(&old, other, T));
    assert_true(alert_silence_is_again(&old, &b.silences[0]));
    _cleanup_(freep) char *row =
        field_to_text(&alert_silence_table, &b.silences[0], FIELD_STORED, FIELD_ROW);
    assert_true(field_from_text(&alert_silence_table, row, FIELD_STORED, &now));
    set_str(&now.alert, "a99"); /* of before it came back */
    assert_true(alert_silence_holds(&now, a, T));
    assert_false(alert_silence_holds(&now, other, T));
    assert_true(alert_silence_is_again(&now, &b.silences[0]));
    assert_false(alert_silence_is_again(&now, &old));
    field_release(&alert_silence_table, &old);
    field_release(&alert_silence_table, &now);
    bed_end(&b);
}

/* ---- what waits keeps its alerts and its incident ---- */

static void test_a_full_incident_keeps_what_one_has_not_heard(void **state)
{
    struct bed b = bed_new("receivers: {r0: {kind: log}, r1: {kind: log}}\n"
                           "routes: [{to: [r0, r1]}]\n");
    char name[16];
    (void)state;
    b.full = "r1";
    bed_see(&b, ALERT_OF_NODE, "w0", "alive", "no", NULL);
    for (int k = 1; k < INCIDENT_ALERTS_MAX; k++) {
        text_printf(name, "j%d", k);
        bed_see(&b, ALERT_OF_JOB, name, "event", "failed", "node/w0");
    }
    bed_run(&b, 10 * USEC_SEC);
    assert_int_equal(b.n, 1);
    bed_send(&b, TELLING_ON_THE_WAY);
    b.now += 2 * USEC_HOUR;
    bed_run(&b, 10 * USEC_SEC); /* all jobs are over */
    struct incident *i = incident_at(b.t, 0);
    assert_int_equal(incident_open_alerts(i), 1);
    assert_int_equal(bed_telling(&b, 0)->state, TELLING_TAKEN);
    assert_int_equal(incident_telling(i, "r1")->state, TELLING_FULL);
    assert_false(incident_has_room(i)); /* r1 has not heard of any of them */
    bed_see(&b, ALERT_OF_JOB, "late", "event", "failed", "node/w0");
    assert_int_equal(i->left_out, 0);
    assert_non_null(incident_at(b.t, 1));
    b.full = NULL;
    bed_run(&b, 4 * USEC_SEC);
    assert_int_equal(b.n, 1);
    assert_string_equal(b.v[0].receiver, "r1");
    assert_int_equal(b.v[0].way.names.n, INCIDENT_ALERTS_MAX);
    assert_false(incident_has_room(i)); /* it might be taken back */
    bed_send(&b, TELLING_ON_THE_WAY);
    assert_true(incident_has_room(i));
    bed_end(&b);
}

static void test_an_incident_stays_while_a_message_waits(void **state)
{
    struct bed b = bed_new(ONE_RECEIVER);
    char name[16];
    (void)state;
    for (int k = 0; k <= INCIDENTS_CLOSED_MAX; k++) {
        text_printf(name, "j%d", k);
        bed_see(&b, ALERT_OF_JOB, name, "event", "failed", NULL);
    }
    bed_run(&b, 10 * USEC_SEC);
    b.now += 2 * USEC_HOUR;
    bed_run(&b, USEC_MIN); /* all are over, and nothing is left to tell */
    assert_int_equal(b.n, INCIDENTS_CLOSED_MAX + 1);
    for (int k = 0; k < 2; k++) {
        assert_true(incident_at(b.t, (size_t)k)->told_end);
        assert_false(incident_at(b.t, (size_t)k)->open);
    }
    assert_null(alert_table_expire(b.t));
    struct alert_way_of second = bed_way(&b, 1);
    struct incident *i = alert_way_end(b.t, &second, TELLING_GIVEN_UP, "HTTP status 503");
    assert_non_null(i);
    assert_int_equal(incident_telling(i, "r0")->state, TELLING_GIVEN_UP);
    struct incident *gone = alert_table_expire(b.t);
    assert_ptr_equal(gone, i); /* the one of which none waits, though another is older */
    incident_free(gone);
    assert_null(alert_table_expire(b.t));
    bed_end(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_silence_takes_back_what_waits),
        cmocka_unit_test(test_what_no_silence_covers_is_told_anew),
        cmocka_unit_test(test_the_message_before_was_taken),
        cmocka_unit_test(test_quiet_hours_begin_while_it_waits),
        cmocka_unit_test(test_what_is_critical_goes_through_the_night),
        cmocka_unit_test(test_an_end_and_an_escalation_are_taken_back),
        cmocka_unit_test(test_its_incident_was_merged),
        cmocka_unit_test(test_a_state_that_came_back_meanwhile_is_not_known),
        cmocka_unit_test(test_what_names_nothing_goes),
        cmocka_unit_test(test_a_silence_outlives_the_id),
        cmocka_unit_test(test_a_silence_of_before_is_of_its_id),
        cmocka_unit_test(test_a_full_incident_keeps_what_one_has_not_heard),
        cmocka_unit_test(test_an_incident_stays_while_a_message_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

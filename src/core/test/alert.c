/* SPDX-License-Identifier: Apache-2.0 */
/* alert.c - tests of core/alert: expressions, rules, what becomes of alerts and incidents, routes,
 * forms and signatures, words. Times are numbers; nothing here asks a clock. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest/hash.h"
#include "base/str.h"
#include "base/text.h"
#include "base/unit_message.h"
#include "core/alert/alert_cause.h"
#include "core/alert/alert_form.h"
#include "core/alert/incident_rows.h"

static const unsigned char SEED[16] = {1};
static const usec_t T = 1700000000 * USEC_SEC;

/* ---- expressions ---- */

static const struct alert_fact FACTS[] = {
    {"state", 0, "offline"}, {"free", 5.0 * (1 << 30), NULL},
    {"use", 0.04, NULL},     {"age", 90, NULL},
    {"blind", NAN, NULL},
};

static enum alert_truth ask(const char *text)
{
    struct alert_expr *e = NULL;
    struct err err = {0};
    if (alert_expr_parse(text, &e, &err) < 0)
        fail_msg("%s: %s", text, err.text);
    enum alert_truth t = alert_expr_ask(e, FACTS, array_len(FACTS));
    alert_expr_free(e);
    return t;
}

static void test_expressions(void **state)
{
    (void)state;
    assert_int_equal(ask("state == offline"), ALERT_TRUE);
    assert_int_equal(ask("state != 'offline'"), ALERT_FALSE);
    assert_int_equal(ask("state ~ off*"), ALERT_TRUE);
    assert_int_equal(ask("free < 10GiB and use < 5%"), ALERT_TRUE);
    assert_int_equal(ask("free<1GiB or age >= 1m30s"), ALERT_TRUE);
    assert_int_equal(ask("not (age > 2m)"), ALERT_TRUE);
    assert_int_equal(ask("age > 2m or use > 5% and state == offline"), ALERT_FALSE);
    assert_int_equal(ask("blind > 0"), ALERT_NOT_KNOWN);
    assert_int_equal(ask("missing == yes"), ALERT_NOT_KNOWN);
    assert_int_equal(ask("not missing == yes"), ALERT_NOT_KNOWN);
    assert_int_equal(ask("missing == yes or age == 90"), ALERT_TRUE);
    assert_int_equal(ask("missing == yes and age == 91"), ALERT_FALSE);
    assert_int_equal(ask("missing == yes and age == 90"), ALERT_NOT_KNOWN);
    assert_int_equal(ask("state > 5"), ALERT_NOT_KNOWN); /* a text is no number */
}

static double next_number(const char *text, double from)
{
    struct alert_expr *e = NULL;
    assert_int_equal(alert_expr_parse(text, &e, NULL), 0);
    double next = alert_expr_next(e, "age", from);
    alert_expr_free(e);
    return next;
}

/* A fact that only grows need not be asked about before its next number. */
static void test_the_next_number_of_a_fact(void **state)
{
    (void)state;
    static const char text[] = "age > 1m or not (age <= 2h and use < 5s) or state == age";
    assert_true(next_number(text, 0) == 60);
    assert_true(next_number(text, 60) == 60);
    assert_true(next_number(text, 61) == 7200);
    assert_true(isinf(next_number(text, 7201)));
    assert_true(isinf(next_number("use < 5s", 0)));
}

static void test_bad_expressions(void **state)
{
    static const char *const bad[] = {
        "",        "state",    "state ==", "state = x", "a == 1 b == 2", "(a == 1",
        "a == 'x", "a > text", "and",      "1 == 1",    "not",           "a == 1 or"};
    (void)state;
    for (size_t i = 0; i < array_len(bad); i++) {
        struct alert_expr *e = NULL;
        struct err err = {0};
        assert_int_equal(alert_expr_parse(bad[i], &e, &err), ERR_BAD_SPEC);
        assert_null(e);
        assert_non_null(strstr(err.text, "column"));
    }
    char deep[400];
    memset(deep, '(', 300);
    deep[300] = 0;
    struct alert_expr *e = NULL;
    assert_int_equal(alert_expr_parse(deep, &e, NULL), ERR_BAD_SPEC);
}

/* ---- rules ---- */

static void rules_of(const char *yaml, struct alert_rules *ret, struct problems *ps)
{
    struct doc *d = NULL;
    assert_int_equal(doc_parse(yaml, strlen(yaml), true, &d, ps), 0);
    int r = alert_rules_read(doc_root(d), "test", ret, ps);
    assert_int_equal(r, ps->errors ? -EINVAL : 0);
    doc_free(d);
}

static void test_shipped_rules(void **state)
{
    static const char *const named[] = {
        "job_failed",       "job_hung",         "job_unknown",     "job_idle_gpus",
        "job_gpu_abnormal", "node_lost",        "node_unhealthy",  "gpu_xid",
        "gpu_ecc",          "gpu_hot",          "head_lost",       "ray_port_open",
        "root_full",        "root_slow",        "node_disk_low",   "queue_stuck",
        "quota_near",       "node_clock_skew",  "store_failing",   "gpu_throttled",
        "gpu_rows_failed",  "gpu_rows_pending", "gpu_pcie_fallen", "gpu_nvlink_fallen",
        "gpu_xid_program"};
    struct alert_rules rules = {0};
    struct problems ps = {0};
    (void)state;
    alert_rules_add_shipped(&rules);
    for (size_t i = 0; i < array_len(named); i++)
        if (!alert_rules_find(&rules, named[i]))
            fail_msg("no rule %s", named[i]);
    for (size_t i = 0; i < rules.n; i++)
        assert_non_null(rules.v[i].zh); /* each in both languages */
    rules_of("job_hung: {off: true}\nmine: {of: node, when: state == x, text: hm}", &rules, &ps);
    assert_int_equal(ps.errors, 0);
    assert_true(alert_rules_find(&rules, "job_hung")->off);
    assert_string_equal(alert_rules_find(&rules, "job_hung")->when, "hung == yes");
    assert_string_equal(alert_rules_find(&rules, "mine")->from, "test");
    alert_rules_release(&rules);
}

static void test_an_unknown_fact_is_refused_with_the_nearest(void **state)
{
    struct alert_rules rules = {0};
    struct problems ps = {0};
    (void)state;
    rules_of("mine:\n  of: node\n  when: disk_fre < 10GiB\n  text: '{disk_free} {naem}'\n", &rules,
             &ps);
    assert_int_equal(ps.errors, 2);
    assert_int_equal(ps.v[0].line, 3);
    assert_string_equal(
        unit_problem(&ps.v[0]),
        "no_fact: nothing is known as 'disk_fre' of a node: did you mean 'disk_free'?");
    assert_string_equal(ps.v[1].field, "text");
    assert_int_equal(rules.n, 0);
    problems_release(&ps);
    rules_of("mine: {of: queue, when: temperature > 3, text: hm}", &rules, &ps);
    assert_int_equal(ps.errors, 1); /* of another kind */
    problems_release(&ps);
    alert_rules_release(&rules);
}

static void test_a_bad_rule_has_its_place(void **state)
{
    struct alert_rules rules = {0};
    struct problems ps = {0};
    (void)state;
    rules_of("mine:\n  of: node\n  when: state = x\n  text: hm\n", &rules, &ps);
    assert_int_equal(ps.errors, 1);
    assert_int_equal(ps.v[0].line, 3);
    assert_string_equal(ps.v[0].field, "when");
    assert_int_equal(rules.n, 0);
    problems_release(&ps);
    rules_of("Mine: {of: nothing, when: a == 1, sev: 1}\n", &rules, &ps);
    assert_int_equal(ps.errors, 3); /* of, text is missing, sev is unknown */
    problems_release(&ps);
    alert_rules_release(&rules);
}

/* ---- the table ---- */

struct world {
    struct alert_rules rules;
    struct alert_table *t;
};

static struct world world_new(const char *yaml)
{
    struct world w = {.t = alert_table_new(SEED)};
    struct problems ps = {0};
    rules_of(yaml, &w.rules, &ps);
    assert_int_equal(ps.errors, 0);
    return w;
}

static void world_end(struct world *w)
{
    alert_table_free(w->t);
    alert_rules_release(&w->rules);
}

static void see(struct world *w,
                enum alert_of of,
                const char *name,
                struct alert_fact fact,
                const char *suspect,
                usec_t now)
{
    struct strv suspects = {0};
    if (suspect)
        strv_add(&suspects, suspect);
    struct alert_subject s = {
        .of = of, .name = name, .v = &fact, .n = 1, .suspects = &suspects, .gpus = 8};
    alert_table_see(w->t, &w->rules, &s, now);
    strv_release(&suspects);
}

#define HOT                                                                                        \
    "hot: {of: gpu, when: temperature >= 90, for: 60s, clear: temperature < 80, clear_for: 30s, text: 'at {temperature}'}"

static void test_for_and_hysteresis(void **state)
{
    struct world w = world_new(HOT);
    (void)state;
#define AT(degrees, s)                                                                             \
    see(&w, ALERT_OF_GPU, "w1/0", (struct alert_fact){"temperature", degrees, NULL}, NULL,         \
        T + (s)*USEC_SEC)
    AT(95, 0);
    AT(95, 59);
    assert_null(incident_at(w.t, 0));
    AT(85, 59); /* it did not hold for 60 s: the clock begins anew */
    AT(95, 60);
    AT(95, 119);
    assert_null(incident_at(w.t, 0));
    AT(95, 120);
    struct incident *i = incident_at(w.t, 0);
    assert_non_null(i);
    assert_string_equal(i->cause, "gpu/w1/0");
    AT(85, 130); /* below 90 and above 80: it goes on */
    AT(79, 140);
    AT(85, 160);
    AT(79, 170);
    AT(79, 199);
    assert_true(i->open);
    AT(79, 200);
    assert_false(i->open);
    AT(95, 210); /* it flaps: the same incident */
    AT(95, 270);
    assert_true(i->open);
    assert_null(incident_at(w.t, 1));
    assert_int_equal(i->alerts.n, 2);
    struct buf out = BUF_INIT(1000);
    alert_sentence(incident_alert(i, 1), MESSAGE_ENGLISH, false, &out);
    assert_string_equal(buf_str(&out), "at 95");
    buf_release(&out);
    world_end(&w);
}

#define LOST                                                                                       \
    "lost: {of: node, when: alive == no, severity: critical, text: 'lost {name}'}\n"               \
    "failed: {of: job, when: event == ended, keep: 1h, text: 'failed'}\n"                          \
    "blind: {of: job, when: unknown == yes, text: 'blind'}"

static void lose_node(struct world *w, usec_t now)
{
    see(w, ALERT_OF_NODE, "w1", (struct alert_fact){"alive", 0, "no"}, NULL, now);
}

static void lose_jobs(struct world *w, int first, int last, usec_t now)
{
    char name[20];
    for (int k = first; k < last; k++) {
        (void)snprintf(name, sizeof(name), "job-%d", k);
        see(w, ALERT_OF_JOB, name, (struct alert_fact){"unknown", 0, "yes"}, "node/w1", now);
    }
}

static size_t open_incidents(const struct world *w)
{
    size_t n = 0;
    struct incident *x;
    for (size_t i = 0; (x = incident_at(w->t, i)); i++)
        n += x->open;
    return n;
}

/* Whichever is seen first. */
static void test_one_cause_is_one_incident(void **state)
{
    (void)state;
    for (int before = 0; before <= 8; before += 4) {
        struct world w = world_new(LOST);
        lose_jobs(&w, 0, before, T);
        lose_node(&w, T + 20 * USEC_SEC);
        lose_jobs(&w, before, 8, T + 30 * USEC_SEC);
        lose_jobs(&w, 0, 8, T + 40 * USEC_SEC); /* again: no news */
        see(&w, ALERT_OF_JOB, "other", (struct alert_fact){"unknown", 0, "yes"}, NULL, T);
        assert_int_equal(open_incidents(&w), 2);
        struct incident *node = NULL, *x;
        for (size_t i = 0; (x = incident_at(w.t, i)); i++)
            if (x->open && !strcmp(x->cause, "node/w1"))
                node = x;
        if (!node) {
            fail_msg("no incident of the node");
            return;
        }
        assert_int_equal(node->alerts.n, 9);
        assert_int_equal(incident_jobs(node), 8);
        assert_int_equal(node->severity, ALERT_CRITICAL);
        struct buf title = BUF_INIT(1000);
        incident_title(node, ALERT_OPENED, MESSAGE_ENGLISH, &title);
        assert_string_equal(buf_str(&title), "[critical] lost ? (8 jobs)");
        buf_release(&title);
        world_end(&w);
    }
}

static void see_root_at(struct world *w, const char *node, bool misses_root, usec_t now)
{
    struct alert_where where = {.cluster = "default", .misses_root = misses_root};
    struct alert_fact fact = {"unhealthy", 0, "yes"};
    struct strv suspects = {0};
    alert_suspects(ALERT_OF_NODE, &where, &suspects);
    struct alert_subject s = {
        .of = ALERT_OF_NODE, .name = node, .v = &fact, .n = 1, .suspects = &suspects, .gpus = 8};
    alert_table_see(w->t, &w->rules, &s, now);
    strv_release(&suspects);
}

static void blind_job_on(struct world *w, const char *job, const char *node, usec_t now)
{
    struct strv nodes = {0}, suspects = {0};
    strv_add(&nodes, node);
    struct alert_where where = {.cluster = "default", .nodes = &nodes};
    struct alert_fact fact = {"unknown", 0, "yes"};
    alert_suspects(ALERT_OF_JOB, &where, &suspects);
    struct alert_subject s = {
        .of = ALERT_OF_JOB, .name = job, .v = &fact, .n = 1, .suspects = &suspects, .gpus = 8};
    alert_table_see(w->t, &w->rules, &s, now);
    strv_release(&suspects);
    strv_release(&nodes);
}

/* The root that is away on one node is that node's trouble, away everywhere the root's own. */
static void test_a_root_that_is_away_somewhere(void **state)
{
    static const char rules[] =
        LOST "\nsick: {of: node, when: unhealthy == yes, text: 'sick'}\n"
             "away: {of: root, when: ok == no, severity: critical, text: 'away'}";
    (void)state;
    for (int all = 0; all < 2; all++) {
        struct world w = world_new(rules);
        blind_job_on(&w, "a", "w1", T);
        see_root_at(&w, "w1", true, T + USEC_SEC);
        blind_job_on(&w, "b", "w1", T + 2 * USEC_SEC);
        assert_int_equal(open_incidents(&w), 1);
        see_root_at(&w, "w2", all, T + 3 * USEC_SEC); /* w2 is sick of something else, or not */
        assert_int_equal(open_incidents(&w), 2);
        if (all)
            see(&w, ALERT_OF_ROOT, ALERT_ROOT_NAME, (struct alert_fact){"ok", 0, "no"}, NULL,
                T + 4 * USEC_SEC);
        assert_int_equal(open_incidents(&w), all ? 1 : 2);
        struct incident *x;
        for (size_t i = 0; (x = incident_at(w.t, i)); i++)
            if (x->open && !all)
                assert_int_equal(x->alerts.n, !strcmp(x->cause, "node/w1") ? 3 : 1);
            else if (x->open)
                assert_int_equal(x->alerts.n, !strcmp(x->cause, "root/shared") ? 5 : 0);
        world_end(&w);
    }
}

static void test_what_is_gone_ends_and_what_is_kept_stays(void **state)
{
    struct world w = world_new(LOST);
    (void)state;
    lose_node(&w, T);
    see(&w, ALERT_OF_JOB, "j", (struct alert_fact){"event", 0, "ended"}, NULL, T);
    alert_table_round(w.t, ALERT_OF_NODE, T); /* seen in this round */
    assert_int_equal(open_incidents(&w), 2);
    alert_table_round(w.t, ALERT_OF_NODE, T + 1);
    alert_table_round(w.t, ALERT_OF_JOB, T + 1);
    alert_table_round(w.t, ALERT_OF_JOB, T + 2);
    assert_int_equal(open_incidents(&w), 1); /* the node is gone; the failure is kept */
    alert_table_tick(w.t, &w.rules, T + USEC_HOUR);
    assert_int_equal(open_incidents(&w), 0);
    world_end(&w);
}

/* Whoever lets jobs fail in a loop has the newest of their alerts open; others keep theirs. */
static void test_what_one_user_has_open_is_bounded(void **state)
{
    enum { FAILED = ALERTS_OF_USER_MAX + 30 };
    struct world w = world_new(LOST);
    struct alert_fact ended = {"event", 0, "ended"};
    struct incident *of;
    char name[20];
    (void)state;
    for (int k = -1; k < FAILED; k++) {
        (void)snprintf(name, sizeof(name), "job-%d", k);
        struct alert_subject s = {.of = ALERT_OF_JOB,
                                  .name = name,
                                  .v = &ended,
                                  .n = 1,
                                  .owner = k < 0 ? "bob" : "alice"};
        alert_table_see(w.t, &w.rules, &s, T + (usec_t)(k + 1) * USEC_SEC);
    }
    assert_int_equal(open_incidents(&w), ALERTS_OF_USER_MAX + 1);
    assert_true(incident_at(w.t, 0)->open);
    assert_false(incident_at(w.t, 30)->open);
    assert_true(incident_at(w.t, 31)->open);
    for (int k = 0; k <= FAILED; k++) { /* by id and by number */
        struct incident *i = incident_at(w.t, (size_t)k);
        assert_ptr_equal(incident_find(w.t, i->id), i);
        assert_ptr_equal(alert_table_find(w.t, incident_alert(i, 0)->id, &of),
                         incident_alert(i, 0));
        assert_ptr_equal(of, i);
    }
    assert_null(incident_find(w.t, "i0"));
    assert_null(incident_find(w.t, "i999"));
    assert_null(alert_table_find(w.t, "a999", &of));
    world_end(&w);
}

static void restore_row(enum incident_row of,
                        const char *id,
                        const char *body,
                        usec_t at,
                        void *arg)
{
    struct incident i;
    struct alert a;
    (void)at;
    (void)id;
    if (of == INCIDENT_ROW) {
        assert_true(incident_read(body, &i));
        alert_table_restore(arg, &i);
        return;
    }
    assert_true(incident_read_alert(body, &a));
    assert_true(alert_table_restore_alert(arg, &a));
}

struct written {
    size_t rows, bytes, removed;
};

static void count_row(enum incident_row of, const char *id, const char *body, usec_t at, void *arg)
{
    struct written *w = arg;
    (void)of;
    (void)id;
    (void)at;
    w->rows++;
    w->bytes += body ? strlen(body) : 0;
    w->removed += !body;
}

static struct written write_first(const struct world *w)
{
    struct written n = {0};
    incident_write(incident_at(w->t, 0), count_row, &n);
    return n;
}

/* An event writes what it changed, however many alerts its incident has. */
static void test_an_event_writes_what_it_changed(void **state)
{
    struct world w = world_new(LOST);
    struct incident *of = NULL;
    (void)state;
    lose_node(&w, T);
    lose_jobs(&w, 100, 101, T);
    (void)write_first(&w);
    lose_jobs(&w, 101, 102, T);
    struct written small = write_first(&w), last = {0};
    for (int k = 102; k < 100 + INCIDENT_ALERTS_MAX - 1; k++) {
        lose_jobs(&w, k, k + 1, T);
        last = write_first(&w);
    }
    assert_int_equal(incident_at(w.t, 0)->alerts.n, INCIDENT_ALERTS_MAX);
    assert_int_equal(small.rows, 2); /* the incident and the alert */
    assert_int_equal(last.rows, 2);
    assert_true(last.bytes <= small.bytes + 20); /* numbers with more digits */
    assert_int_equal(write_first(&w).rows, 1);
    struct alert *a = alert_table_find(w.t, "a7", &of);
    assert_true(alert_table_ack(a, of, "boss", NULL, T));
    assert_int_equal(write_first(&w).rows, 2);

    incident_alert(of, 0)->open = false; /* one that is over and was told makes room for another */
    incident_alert(of, 0)->is_told = true;
    lose_jobs(&w, 1000, 1001, T);
    struct written dropped = write_first(&w);
    assert_int_equal(dropped.rows, 3);
    assert_int_equal(dropped.removed, 1);
    assert_int_equal(write_first(&w).rows, 1);
    struct written erased = {0};
    incident_erase(of, count_row, &erased);
    assert_int_equal(erased.removed, 1 + INCIDENT_ALERTS_MAX);
    world_end(&w);
}

/* Rows that an argusd of before wrote have their alerts in them: they are written anew once. */
static void test_an_incident_of_before_is_written_anew(void **state)
{
    struct world w = world_new(LOST);
    struct incident i;
    struct alert a;
    (void)state;
    assert_true(incident_read(
        "{\"id\":\"i3\",\"seq\":3,\"cause\":\"node/w1\",\"open\":true,\"rows\":1,\"alerts\":["
        "{\"id\":\"a4\",\"rule\":\"lost\",\"of\":\"node\",\"name\":\"w1\",\"open\":true},"
        "{\"id\":\"a9\",\"rule\":\"blind\",\"of\":\"job\",\"name\":\"j\",\"open\":true}]}",
        &i));
    alert_table_restore(w.t, &i);
    assert_true(incident_at(w.t, 0)->is_dirty);
    struct world v = world_new(LOST);
    incident_write(incident_at(w.t, 0), restore_row, v.t);
    assert_int_equal(write_first(&w).rows, 1);
    assert_int_equal(incident_at(v.t, 0)->alerts.n, 2);
    assert_string_equal(incident_alert(incident_at(v.t, 0), 1)->id, "a9");
    assert_false(incident_at(v.t, 0)->is_dirty);
    assert_false(incident_read("{\"id\":\"i3\",\"seq\":3}", &i));
    assert_false(incident_read_alert("{\"id\":\"a1\",\"rule\":\"r\",\"name\":\"n\"}", &a));
    assert_true(incident_read_alert(
        "{\"id\":\"a1\",\"rule\":\"r\",\"name\":\"n\",\"incident\":\"i99\"}", &a));
    assert_false(alert_table_restore_alert(v.t, &a)); /* nobody has it */
    field_release(&alert_table_of_alert, &a);
    world_end(&w);
    world_end(&v);
}

static void test_a_restart_forgets_nothing(void **state)
{
    struct world w = world_new(LOST), v = world_new(LOST);
    (void)state;
    lose_node(&w, T);
    lose_jobs(&w, 0, 8, T);
    incident_write(incident_at(w.t, 0), restore_row, v.t);
    lose_node(&v, T + USEC_SEC); /* it is open already */
    lose_jobs(&v, 0, 8, T + USEC_SEC);
    assert_int_equal(incident_at(v.t, 0)->alerts.n, 9);
    assert_null(incident_at(v.t, 1));
    lose_jobs(&v, 8, 9, T + USEC_SEC);
    assert_string_equal(incident_alert(incident_at(v.t, 0), 9)->id, "a10");
    world_end(&w);
    world_end(&v);
}

/* ---- routes ---- */

static struct alert_config config_of(const char *yaml, size_t errors)
{
    struct alert_config c = {0};
    struct problems ps = {0};
    struct doc *d = NULL;
    assert_int_equal(doc_parse(yaml, strlen(yaml), true, &d, &ps), 0);
    alert_config_read(doc_root(d), &c, &ps);
    if (ps.errors != errors)
        fail_msg("%zu errors, the first: %s", ps.errors, ps.n ? unit_problem(&ps.v[0]) : "");
    problems_release(&ps);
    doc_free(d);
    return c;
}

#define RECEIVERS                                                                                  \
    "receivers: {ops: {kind: webhook, url: 'http://x/'}, boss: {kind: log}, rl: {kind: log}}\n"

static void test_routes_silences_and_quiet_hours(void **state)
{
    struct alert_config c = config_of(
        RECEIVERS "routes: [{to: ops, least: warning}, {to: rl, projects: [rl], kinds: job}]\n"
                  "quiet: {from: '22:00', to: '06:00', zone: '+08:00'}\n",
        0);
    struct world w = world_new(LOST);
    struct strv to = {0};
    (void)state;
    lose_node(&w, T);
    lose_jobs(&w, 0, 1, T);
    struct incident *i = incident_at(w.t, 0);
    set_str(&incident_alert(i, 1)->project, "rl");
    alert_route(&c, incident_alert(i, 0), &to);
    alert_route(&c, incident_alert(i, 1), &to);
    assert_int_equal(to.n, 2);
    strv_release(&to);
    struct alert_silence s = {.from = T, .until = T + USEC_HOUR};
    strv_add(&s.match.kinds, "node");
    assert_true(alert_is_silenced(&s, 1, incident_alert(i, 0), T));
    assert_false(alert_is_silenced(&s, 1, incident_alert(i, 1), T));
    assert_false(alert_is_silenced(&s, 1, incident_alert(i, 0), T + USEC_HOUR)); /* it is over */
    strv_add(&incident_alert(i, 1)->notify, "boss");
    incident_alert(i, 1)->severity = ALERT_INFO;
    alert_route(&c, incident_alert(i, 1), &to);
    assert_int_equal(to.n, 2);
    assert_string_equal(to.v[0], "rl");
    assert_string_equal(to.v[1], "boss");
    strv_release(&to);
    usec_t noon = 1700006400 * USEC_SEC; /* 00:00 UTC is 08:00 there */
    assert_false(alert_is_quiet(&c, ALERT_WARNING, noon));
    assert_true(alert_is_quiet(&c, ALERT_WARNING, noon - 3 * USEC_HOUR));
    assert_false(alert_is_quiet(&c, ALERT_CRITICAL, noon - 3 * USEC_HOUR));
    strv_release(&s.match.kinds);
    alert_config_release(&c);
    world_end(&w);
}

static void test_bad_receivers(void **state)
{
    (void)state;
    static const struct {
        const char *yaml;
        size_t errors;
    } bad[] = {
        {"receivers: {a: {kind: webhook}}", 1},
        {"receivers: {a: {kind: webhook, url: 'file:///etc/passwd'}}", 1},
        {"receivers: {a: {kind: webhook, url: 'http://x/', secret: S}}", 1}, /* whose? */
        {"receivers: {a: {kind: mail, url: 'smtp://x', from: 'a@b', to: \"x@y\\r\\nBcc: z\"}}", 1},
        {"receivers: {A: {kind: log}}", 1},
        {"routes: [{to: nobody}]", 1},
        {"quiet: {from: '25:00', to: '06:00'}", 1},
        {"rules: {job_hung: {when: 'hung ='}}", 1},
    };
    for (size_t i = 0; i < array_len(bad); i++) {
        struct alert_config c = config_of(bad[i].yaml, bad[i].errors);
        alert_config_release(&c);
    }
}

static void test_notify(void **state)
{
    struct alert_config c = config_of(RECEIVERS, 0);
    struct strv to = {0};
    (void)state;
    assert_int_equal(alert_notify_check(&c, "ops", NULL), 0);
    assert_int_equal(alert_notify_check(&c, "ops:succeeded,failed", NULL), 0);
    assert_int_equal(alert_notify_check(&c, "nobody", NULL), ERR_BAD_SPEC);
    assert_int_equal(alert_notify_check(&c, "ops:died", NULL), ERR_BAD_SPEC);
    assert_int_equal(alert_notify_check(&c, "ops:", NULL), ERR_BAD_SPEC);
    assert_true(alert_notify_wants("ops", "failed", &to));
    assert_false(alert_notify_wants("boss", "succeeded", &to));
    assert_true(alert_notify_wants("boss:succeeded", "succeeded", &to));
    assert_int_equal(to.n, 2);
    strv_release(&to);
    alert_config_release(&c);
}

/* ---- forms ---- */

static void form_of(enum alert_kind kind,
                    const char *url,
                    const char *secret,
                    struct alert_letter *ret)
{
    char name[] = "x", key[] = "S", from[] = "a@b.org";
    struct alert_receiver to = {.name = name, .kind = (int)kind, .secret = key, .from = from};
    json_t *p =
        json_pack("{s:s,s:[s]}", "title",
                  "<it> & \"more\" 节点 'w1' 失联：Ray 已放弃它，其上有 8 个作业", "lines", "one");
    const json_t *const payloads[] = {p};
    struct alert_order o = {.to = &to,
                            .url = url,
                            .secret = secret,
                            .id = "msg_1",
                            .payloads = payloads,
                            .n = 1,
                            .now = T};
    struct err err = {0};
    strv_add(&to.to, "c@d.org");
    if (alert_form(&o, ret, &err) < 0)
        fail_msg("%s", err.text);
    strv_release(&to.to);
    json_decref(p);
}

/* Signatures as Python's hmac makes them. */
static void test_signatures(void **state)
{
    struct alert_letter l;
    (void)state;
    form_of(ALERT_KIND_FEISHU, "http://x/", "SEC", &l);
    assert_non_null(
        strstr(buf_str(&l.body), "\"sign\":\"yKzlnG5gJbbUvULgjP0QN/V99n1fNH31XG8Rrvl9pfk=\""));
    assert_non_null(strstr(buf_str(&l.body), "\"timestamp\":\"1700000000\""));
    alert_letter_release(&l);
    form_of(ALERT_KIND_DINGTALK, "http://x/send?access_token=t", "SEC", &l);
    assert_string_equal(
        l.url,
        "http://x/send?access_token=t&timestamp=1700000000000&sign=r%2B2we0q01lkZqz38LA5IPNbHN81U1leRf3Au4PSQb6Q%3D");
    alert_letter_release(&l);
    form_of(ALERT_KIND_WEBHOOK, "http://x/", "whsec_MDEyMzQ1Njc4OWFiY2RlZg==", &l);
    assert_int_equal(l.headers.n, 3);
    unsigned char mac[HASH_BYTES];
    _cleanup_(freep) char *signed_text = xasprintf("msg_1.1700000000.%s", buf_str(&l.body));
    hash_hmac("0123456789abcdef", 16, signed_text, strlen(signed_text), mac);
    _cleanup_(freep) char *sign = hash_base64(mac, sizeof(mac));
    assert_true(str_ends(l.headers.v[2], sign));
    alert_letter_release(&l);
    form_of(ALERT_KIND_SLACK, "http://x/", NULL, &l);
    assert_non_null(strstr(buf_str(&l.body), "&lt;it&gt; &amp; \\\"more\\\""));
    alert_letter_release(&l);
}

/* A job's name or error calls nobody in a chat. */
static void test_chats_take_no_tags(void **state)
{
    static const enum alert_kind kinds[] = {ALERT_KIND_FEISHU, ALERT_KIND_DINGTALK,
                                            ALERT_KIND_WECOM};
    (void)state;
    for (size_t i = 0; i < array_len(kinds); i++) {
        struct alert_letter l;
        form_of(kinds[i], "http://x/", "SEC", &l);
        assert_null(strchr(buf_str(&l.body), '<'));
        assert_non_null(strstr(buf_str(&l.body), "it> & \\\"more"));
        alert_letter_release(&l);
    }
}

static void test_a_200_may_be_a_failure(void **state)
{
    static const struct {
        enum alert_kind kind;
        int status;
        const char *body;
        enum alert_verdict verdict;
    } rows[] = {
        {ALERT_KIND_FEISHU, 200, "{\"code\":0}", ALERT_TAKEN},
        {ALERT_KIND_FEISHU, 200, "{\"StatusCode\":0}", ALERT_TAKEN},
        {ALERT_KIND_FEISHU, 200, "{\"code\":19021,\"msg\":\"sign match fail\"}", ALERT_REFUSED},
        {ALERT_KIND_FEISHU, 200, "{\"code\":11232}", ALERT_AGAIN},
        {ALERT_KIND_DINGTALK, 200, "{\"errcode\":0,\"errmsg\":\"ok\"}", ALERT_TAKEN},
        {ALERT_KIND_DINGTALK, 200, "{\"errcode\":310000}", ALERT_REFUSED},
        {ALERT_KIND_DINGTALK, 200, "{\"errcode\":130101}", ALERT_AGAIN},
        {ALERT_KIND_WECOM, 200, "{\"errcode\":45009}", ALERT_AGAIN},
        {ALERT_KIND_WECOM, 200, "<html>", ALERT_AGAIN},
        {ALERT_KIND_WECOM, 200, "{}", ALERT_AGAIN},
        {ALERT_KIND_WEBHOOK, 204, "", ALERT_TAKEN},
        {ALERT_KIND_WEBHOOK, 302, "", ALERT_REFUSED},
        {ALERT_KIND_WEBHOOK, 410, "", ALERT_REFUSED},
        {ALERT_KIND_WEBHOOK, 429, "", ALERT_AGAIN},
        {ALERT_KIND_SLACK, 503, "", ALERT_AGAIN},
        {ALERT_KIND_MAIL, 250, "", ALERT_TAKEN},
        {ALERT_KIND_MAIL, 451, "", ALERT_AGAIN},
        {ALERT_KIND_MAIL, 550, "", ALERT_REFUSED},
    };
    (void)state;
    for (size_t i = 0; i < array_len(rows); i++) {
        struct err err = {0};
        enum alert_verdict v =
            alert_judge(rows[i].kind, rows[i].status, rows[i].body, strlen(rows[i].body), &err);
        if (v != rows[i].verdict)
            fail_msg("row %zu: %d, %s", i, (int)v, err.text);
    }
}

/* RFC 2047: an encoded word has 75 characters at most, and a line that has one 76. */
static void check_encoded_words(const char *mail)
{
    const char *at = mail, *end;
    size_t n = 0;
    for (; (at = strstr(at, "=?UTF-8?B?")); at = end, n++) {
        end = strstr(at, "?=");
        assert_non_null(end);
        assert_true((size_t)(end + 2 - at) <= 75);
        assert_memory_equal(end + 2, "\r\n", 2);
    }
    assert_true(n > 1); /* the title is a long one */
}

static void test_mail(void **state)
{
    struct alert_letter l;
    (void)state;
    form_of(ALERT_KIND_MAIL, "smtp://x", NULL, &l);
    assert_non_null(strstr(buf_str(&l.body), "To: <c@d.org>\r\n"));
    assert_non_null(strstr(buf_str(&l.body), "Message-ID: <msg_1@b.org>\r\n"));
    assert_non_null(strstr(buf_str(&l.body), "Date: Tue, 14 Nov 2023 22:13:20 +0000\r\n"));
    check_encoded_words(buf_str(&l.body));
    for (const char *s = buf_str(&l.body); *s; s++)
        assert_true(*s != '\n' || s[-1] == '\r');
    alert_letter_release(&l);
}

/* ---- words ---- */

static void test_filling(void **state)
{
    struct buf out = BUF_INIT(2000);
    (void)state;
    alert_fill("{a} {b:percent} {c:bytes} {d:span} {e} {a",
               "{\"a\":\"{b}\\n\",\"b\":0.04,\"c\":1073741824,\"d\":90}", MESSAGE_ENGLISH, &out);
    assert_string_equal(buf_str(&out), "{b}  4 % 1 GiB 1m30s ? {a");
    buf_reset(&out);
    alert_fill("look{a:also}{b:also}{c:also}", "{\"a\":\"here\",\"b\":\"\"}", MESSAGE_ENGLISH,
               &out);
    assert_string_equal(buf_str(&out), "look; here");
    buf_release(&out);
}

/* What a fact of a message says is heard in the reader's language, in sentences and as a fact. */
static void test_a_fact_that_is_a_message(void **state)
{
    static const char args[] =
        "{\"reason\":{\"code\":\"no_reason_known\",\"args\":\"{}\"},\"n\":2}";
    struct buf out = BUF_INIT(2000);
    (void)state;
    alert_fill("lost: {reason}; ", args, MESSAGE_ENGLISH, &out);
    alert_fill("{reason}", args, MESSAGE_CHINESE, &out);
    assert_string_equal(buf_str(&out), "lost: no reason is known; 原因未知");
    buf_release(&out);
    char *facts = alert_facts_said(args, MESSAGE_ENGLISH);
    assert_string_equal(facts, "{\"reason\":\"no reason is known\",\"n\":2}");
    free(facts);
    assert_null(alert_facts_said(NULL, MESSAGE_ENGLISH));
}

static const struct incident_acts no_acts;

static void test_report(void **state)
{
    struct world w = world_new(LOST);
    struct buf out = BUF_INIT(INCIDENT_REPORT_MAX);
    (void)state;
    lose_node(&w, T);
    lose_jobs(&w, 0, 8, T);
    struct incident *i = incident_at(w.t, 0);
    assert_true(alert_table_ack(incident_alert(i, 0), i, "<b>", "x | y", T));
    incident_report(i, &no_acts, true, MESSAGE_CHINESE, T + USEC_HOUR, NULL, NULL, &out);
    assert_null(strstr(buf_str(&out), "<b>"));
    assert_non_null(strstr(buf_str(&out), "64.00 GPU")); /* 8 jobs x 8 GPUs x 1 hour */
    assert_non_null(strstr(buf_str(&out), "存活 为 否"));
    assert_non_null(strstr(buf_str(&out), "严重"));
    assert_null(strstr(buf_str(&out), "critical"));
    buf_reset(&out);
    incident_report(i, &no_acts, false, MESSAGE_ENGLISH, T + USEC_HOUR, NULL, NULL, &out);
    assert_non_null(strstr(buf_str(&out), "# Incident i1"));
    assert_non_null(strstr(buf_str(&out), "alive is no"));
    assert_non_null(strstr(buf_str(&out), "no event tells of an act"));
    assert_non_null(strstr(buf_str(&out), "no route of argus.yaml names a receiver for it"));
    buf_reset(&out);
    incident_settle(i, "ops", TELLING_REFUSED, "HTTP 403");
    incident_report(i, &no_acts, false, MESSAGE_ENGLISH, T + USEC_HOUR, NULL, NULL, &out);
    assert_non_null(strstr(buf_str(&out), "ops: refused the message (HTTP 403)"));
    assert_non_null(strstr(buf_str(&out), "x \\| y"));
    buf_release(&out);
    world_end(&w);
}

static char *report_of(const struct incident *i,
                       const struct incident_acts *acts,
                       bool is_html,
                       enum message_language in)
{
    struct buf out = BUF_INIT(INCIDENT_REPORT_MAX);
    incident_report(i, acts, is_html, in, T + USEC_HOUR, NULL, NULL, &out);
    return buf_take(&out);
}

static struct incident_act act_of(usec_t at,
                                  const char *who,
                                  const char *subject,
                                  const char *from,
                                  const char *to,
                                  const char *text)
{
    return (struct incident_act){.at = at,
                                 .who = xstrdup(who),
                                 .subject = xstrdup(subject),
                                 .from = xstrdup(from),
                                 .to = xstrdup(to),
                                 .text = xstrdup(text)};
}

/* One incident, two courses of events: what was done is told by these alone. */
static void test_a_report_tells_the_acts_that_were(void **state)
{
    struct world w = world_new(LOST);
    struct incident_act v[] = {
        act_of(T, "argusd", "job/j0", "RUNNING", "QUEUED", "its <node> is lost"),
        act_of(T + USEC_MIN, "ann", "node/w1", "online", "online", "drained"),
    };
    struct incident_acts both = {.v = v, .n = 2}, one = {.v = v, .n = 1, .is_cut = true};
    struct incident_acts unread = {.is_cut = true};
    char at[CLOCK_TEXT_MAX];
    (void)state;
    lose_node(&w, T);
    const struct incident *i = incident_at(w.t, 0);
    _cleanup_(freep) char *all = report_of(i, &both, false, MESSAGE_ENGLISH);
    _cleanup_(freep) char *part = report_of(i, &one, false, MESSAGE_ENGLISH);
    _cleanup_(freep) char *page = report_of(i, &both, true, MESSAGE_CHINESE);
    _cleanup_(freep) char *none = report_of(i, &no_acts, true, MESSAGE_CHINESE);
    _cleanup_(freep) char *left = report_of(i, &unread, false, MESSAGE_ENGLISH);
    assert_non_null(strstr(all, "argusd, job/j0 RUNNING → QUEUED: its"));
    assert_non_null(strstr(all, "ann, node/w1: drained"));
    assert_non_null(strstr(all, clock_to_string(T + USEC_MIN, at)));
    assert_null(strstr(all, "left out"));
    assert_non_null(strstr(part, "job/j0"));
    assert_null(strstr(part, "drained"));
    assert_non_null(strstr(part, "others are left out"));
    assert_non_null(strstr(page, "argusd，job/j0 RUNNING → QUEUED: its &lt;node&gt; is lost"));
    assert_null(strstr(none, "job/j0"));
    assert_non_null(strstr(left, "others are left out"));
    assert_null(strstr(left, "no event tells")); /* there may be some */
    assert_non_null(strstr(none, "没有事件记录"));
    incident_act_release(&v[0]);
    incident_act_release(&v[1]);
    world_end(&w);
}

static void test_each_fact_has_its_word(void **state)
{
    char code[80];
    (void)state;
    for (size_t of = 0; of < ALERT_OF_END; of++)
        for (const char *at = alert_of_facts[of]; *at;) {
            size_t n = strcspn(at, " ");
            text_printf(code, "fact_%.*s", (int)n, at);
            if (!message_code(code))
                fail_msg("message_fact.c has no row '%s'", code);
            at += n + (at[n] == ' ');
        }
    for (size_t k = 0; k <= ALERT_CRITICAL; k++) {
        text_printf(code, "severity_%s", alert_severity_names[k]);
        assert_non_null(message_code(code));
    }
}

static bool sees_nodes(const struct alert *a, void *arg)
{
    (void)arg;
    return a->of == ALERT_OF_NODE;
}

/* Who looks after an alert that the reader may not see, and what he noted, is as hidden as that. */
static void test_a_report_hides_what_its_reader_may_not_see(void **state)
{
    struct world w = world_new(LOST);
    struct buf out = BUF_INIT(INCIDENT_REPORT_MAX);
    (void)state;
    lose_node(&w, T);
    lose_jobs(&w, 0, 8, T);
    struct incident *i = incident_at(w.t, 0);
    for (size_t k = 0; k < i->alerts.n; k++)
        if (incident_alert(i, k)->of == ALERT_OF_JOB)
            assert_true(alert_table_ack(incident_alert(i, k), i, "the-owner", "the-note", T));
    incident_report(i, &no_acts, false, MESSAGE_ENGLISH, T + USEC_HOUR, NULL, NULL, &out);
    assert_non_null(strstr(buf_str(&out), "the-note"));
    buf_reset(&out);
    incident_report(i, &no_acts, false, MESSAGE_ENGLISH, T + USEC_HOUR, sees_nodes, NULL, &out);
    assert_null(strstr(buf_str(&out), "the-owner"));
    assert_null(strstr(buf_str(&out), "the-note"));
    set_str(&i->cause, "job/hidden-one");
    assert_string_equal(incident_cause(i, sees_nodes, NULL), "job");
    assert_string_equal(incident_cause(i, NULL, NULL), "job/hidden-one");
    buf_release(&out);
    world_end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chats_take_no_tags),
        cmocka_unit_test(test_a_report_hides_what_its_reader_may_not_see),
        cmocka_unit_test(test_a_report_tells_the_acts_that_were),
        cmocka_unit_test(test_expressions),
        cmocka_unit_test(test_the_next_number_of_a_fact),
        cmocka_unit_test(test_bad_expressions),
        cmocka_unit_test(test_shipped_rules),
        cmocka_unit_test(test_a_bad_rule_has_its_place),
        cmocka_unit_test(test_an_unknown_fact_is_refused_with_the_nearest),
        cmocka_unit_test(test_for_and_hysteresis),
        cmocka_unit_test(test_one_cause_is_one_incident),
        cmocka_unit_test(test_a_root_that_is_away_somewhere),
        cmocka_unit_test(test_what_is_gone_ends_and_what_is_kept_stays),
        cmocka_unit_test(test_what_one_user_has_open_is_bounded),
        cmocka_unit_test(test_an_event_writes_what_it_changed),
        cmocka_unit_test(test_an_incident_of_before_is_written_anew),
        cmocka_unit_test(test_a_restart_forgets_nothing),
        cmocka_unit_test(test_routes_silences_and_quiet_hours),
        cmocka_unit_test(test_bad_receivers),
        cmocka_unit_test(test_notify),
        cmocka_unit_test(test_signatures),
        cmocka_unit_test(test_a_200_may_be_a_failure),
        cmocka_unit_test(test_mail),
        cmocka_unit_test(test_filling),
        cmocka_unit_test(test_a_fact_that_is_a_message),
        cmocka_unit_test(test_report),
        cmocka_unit_test(test_each_fact_has_its_word),
    };
    hash_init();
    return cmocka_run_group_tests(tests, NULL, NULL);
}

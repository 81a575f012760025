/* SPDX-License-Identifier: Apache-2.0 */
/* alert_tell.c - random worlds of rules, routes, quiet hours, silences, escalations, receivers that
 * fail in each way, and crashes; and some that were once wrong. Messages wait for receivers that
 * are away: meanwhile silences come, of the very alerts, quiet hours begin, and some are given up.
 *
 * What must hold: each alert comes to each receiver that its routes name, or its incident says why
 * not; and no receiver takes what a silence covers then, or what is for no quiet hours.
 * ARGUS_NIGHTLY makes it 10,000 worlds, and
 * ARGUS_WORLD=N the one of that number. */
#include "core/alert/alert_tell.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/doc/doc.h"
#include "base/str.h"
#include "base/text.h"
#include "base/unit_message.h"
#include "core/alert/alert_cause.h"
#include "core/alert/incident_rows.h"

static const unsigned char SEED[16] = {2};
static const usec_t T = 1700000000 * USEC_SEC;
static const usec_t GIVES_UP = 2 * USEC_HOUR;
enum {
    RECEIVERS = 5,
    NODES = 3,
    JOBS = 6,
    STEPS = 120,
    LINE_MAX_ = 6,
    SILENCES_MAX = 16,
    CHECKS_EVERY = 4
};

#define RULES                                                                                      \
    "lost: {of: node, when: alive == no, severity: critical, text: 'lost {name}'}\n"               \
    "deaf: {of: node, when: ssh_away == yes, severity: critical, text: 'deaf'}\n"                  \
    "sick: {of: node, when: unhealthy == yes, for: 20s, text: 'sick'}\n"                           \
    "failed: {of: job, when: event == failed, keep: 1h, text: 'failed'}\n"                         \
    "done: {of: job, when: event == done, keep: 1m, severity: info, text: 'done'}\n"               \
    "blind: {of: job, when: unknown == yes, text: 'blind'}\n"                                      \
    "away: {of: root, when: ok == no, severity: critical, text: 'away'}\n"

struct sent {
    struct sent *next;
    char incident[ALERT_ID_MAX];
    char receiver[20];
    enum alert_what what;
    struct alert_way way;
    usec_t at;
    uint64_t step;
};

/* What happened to messages that waited. */
struct tally {
    size_t taken_back[TELLING_END], given_up;
};

struct world {
    uint64_t random;
    struct alert_config config;
    struct alert_rules rules;
    struct alert_table *t;
    struct alert_silence silences[SILENCES_MAX];
    size_t n_silences;
    struct sent *sent, **tail;
    struct pairs store; /* the rows of incidents, then those of alerts: "1/a17" */
    struct map *fate;   /* "a1/r0" -> "taken" "refused"; "a1" -> "silenced" */
    usec_t now, down_until[RECEIVERS];
    uint64_t step;
    bool lost[NODES], sick[NODES], blind[JOBS];
    size_t messages;
    struct tally tally;
};

static uint64_t draw(struct world *w, uint64_t below)
{
    w->random ^= w->random << 13;
    w->random ^= w->random >> 7;
    w->random ^= w->random << 17;
    return w->random % below;
}

/* ---- what is set up ---- */

static void read_rules(const char *yaml, struct alert_rules *ret)
{
    struct doc *d = NULL;
    struct problems ps = {0};
    assert_int_equal(doc_parse(yaml, strlen(yaml), true, &d, &ps), 0);
    assert_int_equal(alert_rules_read(doc_root(d), "test", ret, &ps), 0);
    doc_free(d);
}

static void read_config(const char *yaml, struct alert_config *ret)
{
    struct doc *d = NULL;
    struct problems ps = {0};
    assert_int_equal(doc_parse(yaml, strlen(yaml), true, &d, &ps), 0);
    alert_config_read(doc_root(d), ret, &ps);
    if (ps.errors)
        fail_msg("%s\n%s", unit_problem(&ps.v[0]), yaml);
    problems_release(&ps);
    doc_free(d);
}

static void draw_routes(struct world *w, struct buf *out)
{
    static const char *const some[] = {"", ", kinds: [job]", ", kinds: [node]", ", rules: [lost]",
                                       ", names: ['j1', 'w*']"};
    static const char *const least[] = {"info", "warning", "critical"};
    (void)buf_adds(out, "routes:\n");
    for (uint64_t k = 1 + draw(w, 4); k > 0; k--)
        (void)buf_addf(out, "  - {to: [r%u], least: %s%s}\n", (unsigned)draw(w, RECEIVERS),
                       least[draw(w, 3)], some[draw(w, array_len(some))]);
}

static void draw_config(struct world *w)
{
    struct buf out = BUF_INIT(8192);
    (void)buf_adds(&out, "receivers:\n");
    for (unsigned k = 0; k < RECEIVERS; k++)
        (void)buf_addf(&out, "  r%u: {kind: log, resolved: %s}\n", k,
                       draw(w, 3) ? "true" : "false");
    if (draw(w, 4))
        draw_routes(w, &out);
    if (draw(w, 2))
        (void)buf_addf(&out, "quiet: {from: '%02u:00', to: '%02u:00', below: %s}\n",
                       (unsigned)draw(w, 24), (unsigned)draw(w, 24),
                       draw(w, 2) ? "critical" : "warning");
    if (draw(w, 2))
        (void)buf_addf(&out, "escalate: {after: %um, to: [r%u], least: %s}\n",
                       1 + (unsigned)draw(w, 40), (unsigned)draw(w, RECEIVERS),
                       draw(w, 2) ? "critical" : "warning");
    read_config(buf_str(&out), &w->config);
    buf_release(&out);
}

static void world_open(struct world *w, uint64_t number)
{
    *w = (struct world){.random = number * 2654435761U + 88172645463325252ULL,
                        .t = alert_table_new(SEED),
                        .fate = map_new(SEED),
                        .now = T};
    w->tail = &w->sent;
    read_rules(RULES, &w->rules);
    draw_config(w);
    w->now += draw(w, 24 * 60) * USEC_MIN;
}

static void sent_drop(struct world *w, struct sent **at)
{
    struct sent *s = *at;
    *at = s->next;
    field_release(&alert_way_table, &s->way);
    free(s);
    for (w->tail = &w->sent; *w->tail;)
        w->tail = &(*w->tail)->next;
}

static void world_close(struct world *w)
{
    while (w->sent)
        sent_drop(w, &w->sent);
    for (size_t k = 0; k < w->n_silences; k++)
        field_release(&alert_silence_table, &w->silences[k]);
    pairs_release(&w->store);
    map_free(w->fate);
    alert_table_free(w->t);
    alert_rules_release(&w->rules);
    alert_config_release(&w->config);
}

/* ---- messages ---- */

static void fate_set(struct world *w, const char *alert, const char *receiver, const char *what)
{
    char key[80];
    text_printf(key, "%s%s%s", alert, *receiver ? "/" : "", receiver);
    (void)map_set(w->fate, key, (void *)(uintptr_t)what);
}

static const char *fate_of(const struct world *w, const char *alert, const char *receiver)
{
    char key[80];
    text_printf(key, "%s%s%s", alert, *receiver ? "/" : "", receiver);
    const char *what = map_find(w->fate, key);
    return what ? what : "";
}

static bool covered(const struct world *w, const struct alert *a)
{
    bool is = false;
    for (size_t k = 0; k < w->n_silences; k++)
        is = is || alert_silence_holds(&w->silences[k], a, w->now);
    return is;
}

static enum telling_state world_put(const struct incident *view,
                                    enum alert_what what,
                                    const char *receiver,
                                    const struct alert_way *way,
                                    usec_t now,
                                    void *arg)
{
    struct world *w = arg;
    size_t waiting = 0;
    assert_int_equal(now, w->now);
    assert_true(view->alerts.n > 0);
    assert_false(alert_is_quiet(&w->config, view->severity, now));
    for (size_t k = 0; k < view->alerts.n; k++)
        assert_false(covered(w, incident_alert(view, k)));
    if (!alert_config_find(&w->config, receiver))
        return TELLING_NOT_THERE;
    for (const struct sent *s = w->sent; s; s = s->next)
        waiting += !strcmp(s->receiver, receiver);
    if (waiting >= LINE_MAX_)
        return TELLING_FULL;
    struct sent *s = xcalloc(1, sizeof(*s));
    text_copy(s->incident, view->id);
    text_copy(s->receiver, receiver);
    s->what = what;
    s->step = w->step;
    s->at = now;
    field_assign(&alert_way_table, &s->way, way, FIELD_STORED);
    assert_int_equal(s->way.names.n, view->alerts.n);
    *w->tail = s;
    w->tail = &s->next;
    w->messages++;
    return TELLING_ON_THE_WAY;
}

static struct alert_way_of sent_way(const struct sent *s)
{
    return (struct alert_way_of){s->incident, s->receiver, &s->way};
}

static enum telling_state sent_ask(const struct world *w, const struct sent *s)
{
    struct alert_way_of m = sent_way(s);
    struct alert_silences silences = {w->silences, w->n_silences};
    return alert_way_ask(w->t, &m, &w->config, silences, w->now);
}

/* It, and what waits behind it in its incident, the newest first. */
static void sent_take_back(struct world *w, const struct sent *first, enum telling_state why)
{
    bool is_first = false;
    while (!is_first) {
        struct sent **last = NULL;
        for (struct sent **at = &w->sent; *at; at = &(*at)->next)
            if (!strcmp((*at)->incident, first->incident) &&
                !strcmp((*at)->receiver, first->receiver))
                last = at;
        assert_non_null(last);
        struct alert_way_of m = sent_way(*last);
        is_first = *last == first;
        alert_way_take_back(w->t, &m, why);
        w->tally.taken_back[why]++;
        sent_drop(w, last);
    }
}

/* A receiver has it now. */
static void check_may_be_told(const struct world *w, const struct sent *s)
{
    struct incident *i;
    assert_false(alert_is_quiet(&w->config, s->way.severity, w->now));
    for (size_t k = 0; k < s->way.names.n; k++) {
        const struct alert *a = alert_table_find(w->t, s->way.names.v[k], &i);
        assert_non_null(a);
        if (covered(w, a))
            fail_msg("'%s' is told of %s, which is silenced", s->receiver, a->id);
    }
}

static void sent_end(struct world *w, struct sent **at, enum telling_state state)
{
    struct sent *s = *at;
    struct alert_way_of m = sent_way(s);
    const char *fate = telling_state_names[state];
    for (size_t k = 0; k < s->way.names.n; k++)
        if (state == TELLING_TAKEN ||
            strcmp(fate_of(w, s->way.names.v[k], s->receiver), "taken") != 0)
            fate_set(w, s->way.names.v[k], s->receiver, fate);
    assert_non_null(alert_way_end(w->t, &m, state, state == TELLING_TAKEN ? NULL : "no"));
    sent_drop(w, at);
}

/* Receivers take, refuse for good, or are away; the core hears of it as of any answer. Each is
 * asked before each try. */
static void world_send(struct world *w, bool all_well)
{
    bool tries[RECEIVERS];
    for (size_t r = 0; r < RECEIVERS; r++)
        tries[r] = all_well || w->now >= w->down_until[r] || !draw(w, 3);
    for (struct sent **at = &w->sent; *at;) {
        struct sent *s = *at;
        size_t r = (size_t)(s->receiver[1] - '0');
        enum telling_state may = tries[r] ? sent_ask(w, s) : TELLING_ON_THE_WAY;
        if (may != TELLING_ON_THE_WAY) {
            sent_take_back(w, s, may);
            at = &w->sent;
        } else if (all_well || w->now >= w->down_until[r]) {
            check_may_be_told(w, s);
            sent_end(w, at, all_well || draw(w, 8) ? TELLING_TAKEN : TELLING_REFUSED);
        } else if (tries[r] && w->now >= s->at + GIVES_UP) {
            w->tally.given_up++;
            sent_end(w, at, TELLING_GIVEN_UP);
        } else {
            at = &s->next;
        }
    }
}

/* ---- the store ---- */

/* "" is a row that was taken out. */
static void world_put_row(enum incident_row of,
                          const char *id,
                          const char *body,
                          usec_t at,
                          void *arg)
{
    struct world *w = arg;
    char key[ALERT_ID_MAX + 4];
    (void)at;
    text_printf(key, "%d/%s", (int)of, id);
    pairs_set(&w->store, key, body ? body : "");
}

/* Whatever has changed was marked: the store has every row as it would be written now. */
static void check_rows(const struct world *w, const struct incident *i)
{
    for (size_t k = 0; k < i->alerts.n; k++) {
        const struct alert *a = incident_alert(i, k);
        _cleanup_(freep) char *row =
            field_to_text(&alert_table_of_alert, a, FIELD_STORED, FIELD_ROW);
        char key[ALERT_ID_MAX + 4];
        text_printf(key, "%d/%s", (int)INCIDENT_ROW_ALERT, a->id);
        const char *stored = pairs_find(&w->store, key);
        if (!stored || strcmp(stored, row) != 0)
            fail_msg("the store has %s, and not %s", stored ? stored : "nothing", row);
        assert_string_equal(a->incident, i->id);
    }
}

static void world_save(struct world *w)
{
    struct incident *i;
    for (size_t k = 0; (i = incident_at(w->t, k)); k++)
        incident_write(i, world_put_row, w);
    for (size_t k = 0; w->step % CHECKS_EVERY == 0 && (i = incident_at(w->t, k)); k++)
        check_rows(w, i);
}

static void world_restore_row(struct world *w, enum incident_row of, const char *body)
{
    struct incident i;
    struct alert a;
    if (!*body)
        return;
    if (of == INCIDENT_ROW) {
        assert_true(incident_read(body, &i));
        alert_table_restore(w->t, &i);
    } else {
        assert_true(incident_read_alert(body, &a));
        assert_true(alert_table_restore_alert(w->t, &a));
    }
}

/* What was not on disk is gone, with its messages. */
static void world_crash(struct world *w, bool before_the_disk)
{
    for (struct sent **at = &w->sent; before_the_disk && *at;)
        if ((*at)->step == w->step)
            sent_drop(w, at);
        else
            at = &(*at)->next;
    alert_table_free(w->t);
    w->t = alert_table_new(SEED);
    for (int of = INCIDENT_ROW; of <= INCIDENT_ROW_ALERT; of++)
        for (size_t k = w->store.n; k-- > 0;) /* whichever alert comes first */
            if (w->store.v[k].key[0] == '0' + of)
                world_restore_row(w, (enum incident_row)of, w->store.v[k].value);
    for (const struct sent *s = w->sent; s; s = s->next) {
        struct alert_way_of m = sent_way(s);
        alert_way_restore(w->t, &m);
    }
}

/* ---- what happens ---- */

static void world_see_facts(struct world *w,
                            enum alert_of of,
                            const char *name,
                            const struct alert_fact *facts,
                            size_t n)
{
    struct strv suspects = {0}, notify = {0};
    if (of == ALERT_OF_JOB) {
        struct strv nodes = {0};
        strv_addf(&nodes, "w%d", (name[1] - '0') % NODES);
        alert_suspects(of, &(struct alert_where){.cluster = "c", .nodes = &nodes}, &suspects);
        strv_release(&nodes);
        if (name[1] == '1')
            strv_add(&notify, "r2");
        if (name[1] == '2')
            strv_add(&notify, "gone");
    }
    struct alert_subject s = {.of = of,
                              .name = name,
                              .v = facts,
                              .n = n,
                              .suspects = &suspects,
                              .notify = &notify,
                              .gpus = 8};
    alert_table_see(w->t, &w->rules, &s, w->now);
    strv_release(&suspects);
    strv_release(&notify);
}

static void world_see(struct world *w, enum alert_of of, const char *name, struct alert_fact fact)
{
    world_see_facts(w, of, name, &fact, 1);
}

static void world_look(struct world *w)
{
    char name[8];
    for (int k = 0; k < NODES; k++) {
        text_printf(name, "w%d", k);
        struct alert_fact facts[] = {{"alive", 0, w->lost[k] ? "no" : "yes"},
                                     {"unhealthy", 0, w->sick[k] ? "yes" : "no"}};
        world_see_facts(w, ALERT_OF_NODE, name, facts, array_len(facts));
    }
    for (int k = 0; k < JOBS; k++) {
        text_printf(name, "j%d", k);
        world_see(w, ALERT_OF_JOB, name,
                  (struct alert_fact){"unknown", 0, w->blind[k] ? "yes" : "no"});
    }
    alert_table_tick(w->t, &w->rules, w->now);
}

/* Half of them are of an alert that a message names which waits, if one does. */
static void draw_silence(struct world *w)
{
    static const char *const rules[] = {"lost", "failed", "*"}, *const names[] = {"w0", "j*", "j1"};
    struct incident *i;
    if (w->n_silences == SILENCES_MAX)
        return;
    struct alert_silence *s = &w->silences[w->n_silences++];
    *s = (struct alert_silence){.from = w->now, .until = w->now + draw(w, 180) * USEC_MIN};
    const struct alert *waits =
        w->sent && draw(w, 2) ? alert_table_find(w->t, w->sent->way.names.v[0], &i) : NULL;
    if (waits)
        alert_silence_cover(s, waits);
    else if (draw(w, 2))
        strv_add(&s->match.rules, rules[draw(w, 3)]);
    else
        strv_add(&s->match.names, names[draw(w, 3)]);
}

static void draw_event(struct world *w)
{
    char name[8];
    switch (draw(w, 8)) {
    case 0:
        w->lost[draw(w, NODES)] ^= true;
        break;
    case 1:
        w->sick[draw(w, NODES)] ^= true;
        break;
    case 2:
        w->blind[draw(w, JOBS)] ^= true;
        break;
    case 3:
    case 4:
        text_printf(name, "j%u", (unsigned)draw(w, JOBS));
        world_see(w, ALERT_OF_JOB, name,
                  (struct alert_fact){"event", 0, draw(w, 3) ? "failed" : "done"});
        break;
    case 5:
        draw_silence(w);
        break;
    case 6:
        w->down_until[draw(w, RECEIVERS)] = w->now + draw(w, 120) * USEC_MIN;
        break;
    default:
        break;
    }
}

static void note_silenced(struct world *w)
{
    struct incident *i;
    for (size_t n = 0; (i = incident_at(w->t, n)); n++)
        for (size_t k = 0; k < i->alerts.n; k++)
            if (covered(w, incident_alert(i, k)))
                fate_set(w, incident_alert(i, k)->id, "", "silenced");
}

static void world_settle(struct world *w)
{
    struct incident *i;
    struct tell_parts parts = {.config = &w->config,
                               .silences = w->silences,
                               .n_silences = w->n_silences,
                               .put = world_put,
                               .arg = w};
    for (size_t k = 0; (i = incident_at(w->t, k)); k++) {
        incident_tell(i, &parts, w->now);
        incident_took(i);
    }
}

static void world_step(struct world *w)
{
    w->step++;
    w->now += draw(w, 12) ? (1 + draw(w, 60)) * USEC_SEC : draw(w, 180) * USEC_MIN;
    draw_event(w);
    world_look(w);
    note_silenced(w);
    world_settle(w);
    bool crashes = !draw(w, 10);
    if (crashes && draw(w, 2)) {
        world_crash(w, true);
        return;
    }
    world_save(w);
    if (crashes)
        world_crash(w, false);
    world_send(w, false);
    world_save(w); /* the answers */
}

/* ---- what must hold ---- */

static bool incident_took_any(const struct world *w, const struct incident *i, const char *receiver)
{
    bool any = false;
    for (size_t k = 0; k < i->alerts.n; k++)
        any = any || !strcmp(fate_of(w, incident_alert(i, k)->id, receiver), "taken");
    return any;
}

/* What came back while its incident was open was told the first time. */
static const char *fate_of_state(const struct world *w,
                                 const struct incident *i,
                                 const struct alert *a,
                                 const char *receiver)
{
    const char *fate = fate_of(w, a->id, receiver);
    for (size_t k = 0; k < i->alerts.n && !*fate && !a->keep; k++) {
        const struct alert *b = incident_alert(i, k);
        if (b->of == a->of && !strcmp(b->rule, a->rule) && !strcmp(b->name, a->name))
            fate = fate_of(w, b->id, receiver);
    }
    return fate;
}

static void check_alert(const struct world *w,
                        const struct incident *i,
                        const struct alert *a,
                        const char *receiver)
{
    const struct telling *t = incident_telling(i, receiver);
    const char *fate = fate_of_state(w, i, a, receiver);
    if (!strcmp(fate, "taken"))
        return;
    if (!t)
        fail_msg("%s of %s: nobody told '%s', and there is no reason", a->id, i->id, receiver);
    else if (!*fate && strcmp(fate_of(w, a->id, ""), "silenced") != 0 &&
             t->state != TELLING_NOT_THERE)
        fail_msg("%s of %s was never sent to '%s': %s", a->id, i->id, receiver,
                 telling_state_names[t->state]);
    else if (!incident_took_any(w, i, receiver) && t->state == TELLING_TAKEN)
        fail_msg("%s says that '%s' took its message", i->id, receiver);
}

static void check_world(const struct world *w)
{
    struct incident *i;
    for (size_t n = 0; (i = incident_at(w->t, n)); n++) {
        assert_true(i->told_end);
        assert_true(i->merged_into || i->alerts.n > 0);
        for (size_t k = 0; k < i->tellings.n && !i->merged_into; k++) { /* none is half-way */
            const struct telling *t = incident_telling_at(i, k);
            assert_int_not_equal(t->state, TELLING_ON_THE_WAY);
            /* an escalation, then it was over */
            assert_true((t->state != TELLING_FULL && t->state != TELLING_QUIET) || !t->begun);
            assert_int_equal(t->waits, 0);
        }
        for (size_t k = 0; k < i->alerts.n; k++) {
            struct strv to = {0};
            alert_route(&w->config, incident_alert(i, k), &to);
            for (size_t r = 0; r < to.n; r++)
                check_alert(w, i, incident_alert(i, k), to.v[r]);
            strv_release(&to);
        }
    }
}

static bool is_over(const struct world *w)
{
    struct incident *i;
    bool over = !w->sent;
    for (size_t n = 0; over && (i = incident_at(w->t, n)); n++)
        over = i->told_end;
    return over;
}

static void run_world(uint64_t number, struct tally *sum)
{
    struct world w;
    world_open(&w, number);
    for (int k = 0; k < STEPS; k++)
        world_step(&w);
    memset(w.lost, 0, sizeof(w.lost));
    memset(w.sick, 0, sizeof(w.sick));
    memset(w.blind, 0, sizeof(w.blind));
    for (int k = 0; k < 1000 && !is_over(&w); k++) {
        w.step++;
        w.now += 10 * USEC_MIN;
        world_look(&w);
        note_silenced(&w);
        world_settle(&w);
        world_send(&w, true);
        world_save(&w);
    }
    if (!is_over(&w))
        fail_msg("world %llu does not end", (unsigned long long)number);
    check_world(&w);
    for (size_t k = 0; k < TELLING_END; k++)
        sum->taken_back[k] += w.tally.taken_back[k];
    sum->given_up += w.tally.given_up;
    world_close(&w);
}

static void test_random_worlds(void **state)
{
    const char *one = getenv("ARGUS_WORLD");
    uint64_t worlds = getenv("ARGUS_NIGHTLY") ? 10000 : 200;
    struct tally sum = {0};
    (void)state;
    if (one) {
        run_world(strtoull(one, NULL, 10), &sum);
        return;
    }
    for (uint64_t k = 1; k <= worlds; k++)
        run_world(k, &sum);
    assert_true(sum.taken_back[TELLING_SILENCED] > 0);
    assert_true(sum.taken_back[TELLING_QUIET] > 0);
    assert_true(sum.given_up > 0);
}

/* ---- some that were once wrong ---- */

static void plain_open(struct world *w, const char *config)
{
    *w = (struct world){.random = 1, .t = alert_table_new(SEED), .fate = map_new(SEED), .now = T};
    w->tail = &w->sent;
    read_rules(RULES, &w->rules);
    read_config(config, &w->config);
}

/* Looks every two seconds for so long. */
static void plain_run(struct world *w, usec_t span)
{
    for (usec_t end = w->now + span; w->now < end;) {
        w->now += 2 * USEC_SEC;
        world_look(w);
        world_settle(w);
    }
}

/* The messages to r0, in order: "opened 1, grew 5"; the number is of the alerts in it. */
static const char *plain_said(const struct world *w)
{
    static char text[400];
    struct buf out = BUF_INIT(sizeof(text));
    for (const struct sent *s = w->sent; s; s = s->next)
        if (!strcmp(s->receiver, "r0"))
            (void)buf_addf(&out, "%s%s %zu", out.len ? ", " : "", alert_what_names[s->what],
                           s->way.names.n);
    text_copy(text, buf_str(&out));
    buf_release(&out);
    return text;
}

#define ONE_RECEIVER "receivers: {r0: {kind: log}}\nroutes: [{to: r0}]\n"

static void test_jobs_that_are_hit_later_are_told(void **state)
{
    struct world w;
    char name[8];
    (void)state;
    plain_open(&w, ONE_RECEIVER);
    w.lost[0] = true;
    plain_run(&w, 20 * USEC_SEC);
    assert_string_equal(plain_said(&w), "opened 1");
    for (int k = 0; k < JOBS; k += NODES) { /* those on w0 */
        text_printf(name, "j%d", k);
        world_see(&w, ALERT_OF_JOB, name, (struct alert_fact){"event", 0, "failed"});
    }
    plain_run(&w, USEC_MIN);
    assert_string_equal(plain_said(&w), "opened 1, grew 3");
    assert_null(incident_at(w.t, 1));
    world_close(&w);
}

/* What is wrong with a node for days keeps nobody from hearing at once that it is lost. */
static void test_a_trouble_of_before_hides_no_other(void **state)
{
    struct world w;
    (void)state;
    plain_open(&w, ONE_RECEIVER);
    world_see(&w, ALERT_OF_NODE, "w0", (struct alert_fact){"ssh_away", 0, "yes"});
    plain_run(&w, 2 * USEC_MIN);
    assert_string_equal(plain_said(&w), "opened 1");
    w.lost[0] = w.sick[0] = true;
    plain_run(&w, 40 * USEC_SEC);
    assert_string_equal(plain_said(&w), "opened 1, grew 3");
    w.lost[0] = false;
    plain_run(&w, 10 * USEC_SEC);
    w.lost[0] = true; /* it flaps */
    plain_run(&w, 7 * USEC_MIN);
    w.lost[0] = false;
    plain_run(&w, 6 * USEC_MIN);
    assert_string_equal(plain_said(&w), "opened 1, grew 3");
    w.lost[0] = true; /* lost again, and the incident is open all the while */
    plain_run(&w, 40 * USEC_SEC);
    assert_string_equal(plain_said(&w), "opened 1, grew 3, grew 5");
    assert_null(incident_at(w.t, 1));
    world_close(&w);
}

static void test_a_root_that_is_away_is_two_messages(void **state)
{
    struct world w;
    struct alert_fact away = {"ok", 0, "no"}, back = {"ok", 0, "yes"};
    (void)state;
    plain_open(&w, ONE_RECEIVER);
    for (usec_t end = T + 200 * USEC_SEC; w.now < end; plain_run(&w, 2 * USEC_SEC)) {
        world_see(&w, ALERT_OF_ROOT, "shared", away);
        for (int k = 0; k < JOBS && w.now > T + USEC_MIN; k++)
            w.blind[k] = true;
    }
    memset(w.blind, 0, sizeof(w.blind));
    world_see(&w, ALERT_OF_ROOT, "shared", back);
    plain_run(&w, 2 * USEC_MIN);
    assert_string_equal(plain_said(&w), "opened 1, resolved 7");
    assert_null(incident_at(w.t, 1));
    world_close(&w);
}

static void test_a_night_is_told_in_the_morning(void **state)
{
    struct world w;
    (void)state;
    plain_open(&w, ONE_RECEIVER "quiet: {from: '22:00', to: '02:00'}\n"); /* T is 22:13 */
    world_see(&w, ALERT_OF_JOB, "j5", (struct alert_fact){"event", 0, "failed"});
    w.sick[1] = true;
    plain_run(&w, 2 * USEC_HOUR); /* the failure is not kept for so long */
    w.sick[1] = false;
    plain_run(&w, USEC_MIN);
    assert_string_equal(plain_said(&w), "");
    assert_int_equal(incident_telling(incident_at(w.t, 0), "r0")->state, TELLING_QUIET);
    plain_run(&w, 2 * USEC_HOUR);
    assert_string_equal(plain_said(&w), "opened 1, resolved 1");
    world_close(&w);
}

static enum telling_state share_put(const struct incident *view,
                                    enum alert_what what,
                                    const char *receiver,
                                    const struct alert_way *way,
                                    usec_t now,
                                    void *arg)
{
    (void)view;
    (void)what;
    (void)receiver;
    (void)way;
    (void)now;
    ++*(int *)arg;
    return TELLING_SHARE;
}

/* It waits for a place while it is open; what is over is not waited for, and says why. */
static void test_a_share_that_is_used_up(void **state)
{
    struct world w;
    int asked = 0;
    struct tell_parts parts = {.config = &w.config, .put = share_put, .arg = &asked};
    (void)state;
    plain_open(&w, ONE_RECEIVER);
    world_see(&w, ALERT_OF_JOB, "j5", (struct alert_fact){"event", 0, "failed"});
    struct incident *i = incident_at(w.t, 0);
    for (int k = 1; k <= 3; k++) {
        incident_tell(i, &parts, w.now + USEC_MIN);
        assert_int_equal(asked, k);
    }
    assert_int_equal(i->told_at, 0);
    assert_false(i->told_end);
    assert_int_equal(incident_telling(i, "r0")->state, TELLING_SHARE);
    i->open = false;
    i->closed_at = w.now + USEC_HOUR;
    incident_tell(i, &parts, w.now + 2 * USEC_HOUR);
    assert_int_equal(asked, 4);
    assert_true(i->told_end);
    assert_int_equal(incident_telling(i, "r0")->state, TELLING_SHARE);
    world_close(&w);
}

static void test_an_escalation_skips_what_is_silenced(void **state)
{
    struct world w;
    (void)state;
    plain_open(&w, "receivers: {r0: {kind: log}, r1: {kind: log}}\nroutes: [{to: r1}]\n"
                   "escalate: {after: 1m, to: r0}\n");
    w.silences[w.n_silences++] = (struct alert_silence){.from = T, .until = T + USEC_HOUR};
    strv_add(&w.silences[0].match.names, "w0");
    w.lost[0] = true;
    plain_run(&w, 10 * USEC_MIN);
    assert_string_equal(plain_said(&w), "");
    w.lost[1] = true;
    plain_run(&w, 10 * USEC_MIN);
    assert_string_equal(plain_said(&w), "escalated 1");
    world_close(&w);
}

static void test_a_row_of_before_is_told_no_more(void **state)
{
    static const char *const rows[] = {
        "{\"id\":\"i1\",\"seq\":1,\"cause\":\"job/j0\",\"open\":false,\"told_severity\":-1,"
        "\"alerts\":[{\"id\":\"a1\",\"rule\":\"failed\",\"of\":\"job\",\"name\":\"j0\",\"keep\":1}]}",
        "{\"id\":\"i2\",\"seq\":2,\"cause\":\"node/w0\",\"open\":true,\"told_severity\":2,"
        "\"told\":[\"r0\"],\"alerts\":[{\"id\":\"a2\",\"rule\":\"lost\",\"of\":\"node\",\"name\":\"w0\","
        "\"severity\":\"critical\",\"open\":true}]}"};
    struct world w;
    (void)state;
    plain_open(&w, ONE_RECEIVER);
    for (size_t k = 0; k < array_len(rows); k++)
        pairs_set(&w.store, k ? "0/i2" : "0/i1", rows[k]);
    world_crash(&w, false);
    w.lost[0] = true;
    plain_run(&w, USEC_HOUR);
    assert_string_equal(plain_said(&w), "");
    w.lost[0] = false;
    plain_run(&w, USEC_MIN);
    assert_string_equal(plain_said(&w), "resolved 1");
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_jobs_that_are_hit_later_are_told),
        cmocka_unit_test(test_a_trouble_of_before_hides_no_other),
        cmocka_unit_test(test_a_root_that_is_away_is_two_messages),
        cmocka_unit_test(test_a_night_is_told_in_the_morning),
        cmocka_unit_test(test_a_share_that_is_used_up),
        cmocka_unit_test(test_an_escalation_skips_what_is_silenced),
        cmocka_unit_test(test_a_row_of_before_is_told_no_more),
        cmocka_unit_test(test_random_worlds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

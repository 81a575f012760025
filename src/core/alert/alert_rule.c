/* SPDX-License-Identifier: Apache-2.0 */
/* alert_rule.c - see alert_rule.h.
 *
 * Rules stand by name in one block. A rule of argus.yaml that has the name of a shipped one changes
 * the keys that it gives and leaves the others. */
#include "core/alert/alert_rule.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/doc/conf.h"
#include "base/message.h"
#include "base/str.h"
#include "embedded.h"

const char *const alert_of_names[] = {
#define X(e, word) [ALERT_OF_##e] = (word),
    ALERT_OF_TABLE(X)
#undef X
        NULL};
const char *const alert_severity_names[] =
    {[ALERT_INFO] = "info", [ALERT_WARNING] = "warning", [ALERT_CRITICAL] = "critical", NULL};

const char *const alert_of_facts[] = {
    [ALERT_OF_JOB] = "name user project workload pool state gpus gpu_use gpu_use_min gpu_use_max "
                     "attempts hung idle held unknown unknown_for unknown_since running_for "
                     "queued_for verdict verdict_says verdict_samples verdict_certainty "
                     "metric_alert metric_alert_says metric_alert_samples metric_alert_curve "
                     "rank_slow rank_slow_says notebook notebook_warned notebook_left event from "
                     "to code class finding asked_for",
    [ALERT_OF_NODE] = "name state want wanted alive head unhealthy ssh_away reason clock_skew "
                      "disk_free shm_free root_write_time ray_port_open ray_port ray_port_key "
                      "ray_port_from slow_jobs slow_users",
    [ALERT_OF_GPU] = "name node index uuid use xid xid_of_program ecc_uncorrected temperature "
                     "rows_failed rows_pending nvlinks nvlinks_missing pcie_lanes "
                     "pcie_lanes_missing throttled slowdown_temperature",
    [ALERT_OF_CLUSTER] = "name up reason session",
    [ALERT_OF_ROOT] = "name ok hangs free write_time reason",
    [ALERT_OF_QUEUE] = "name waiting running blocked code reason longest_wait",
    [ALERT_OF_QUOTA] = "name kind limit used used_hours",
    [ALERT_OF_ARGUSD] = "name store_failing loop_late messages_failing receiver reason "
                        "agent_failing agent_trouble backup_overdue backup_trouble "
                        "services_down service_down",
    [ALERT_OF_PIPELINE] = "name user project event from to reason",
    [ALERT_OF_END] = NULL,
};

enum {
    RULE_GIVEN = FIELD_STORED | FIELD_SHOWN | FIELD_ASKED,
    RULE_KEPT = FIELD_STORED | FIELD_SHOWN
};
enum { FACTS_KNOWN_MAX = 64 };
#define RULE(key, ftype, member, ...) FIELD_AT(alert_rule, key, ftype, member, __VA_ARGS__)
/* needed: FIELD_REQUIRED of a whole rule, 0 of a change. */
#define RULE_ROWS(needed)                                                                          \
    RULE("name", FIELD_STR, name, .flags = RULE_KEPT | FIELD_ALWAYS),                              \
        RULE("of", FIELD_ENUM, of, .names = alert_of_names, .flags = RULE_GIVEN | (needed),        \
             .doc = "what it is about"),                                                           \
        RULE("when", FIELD_STR, when, .flags = RULE_GIVEN | (needed) | FIELD_ALWAYS,               \
             .doc = "an expression over its facts: state == offline and want == up"),              \
        RULE("for", FIELD_SPAN, hold, .max = 30 * 86400.0, .flags = RULE_GIVEN,                    \
             .doc = "so long it must hold"),                                                       \
        RULE("clear", FIELD_STR, clear, .flags = RULE_GIVEN,                                       \
             .doc = "what ends it; if not given, that `when` does not hold"),                      \
        RULE("clear_for", FIELD_SPAN, clear_hold, .max = 30 * 86400.0, .flags = RULE_GIVEN,        \
             .doc = "so long that must hold"),                                                     \
        RULE("keep", FIELD_SPAN, keep, .max = 30 * 86400.0, .flags = RULE_GIVEN,                   \
             .doc = "of one that an event fires: so long it is open"),                             \
        RULE("severity", FIELD_ENUM, severity, "warning", .names = alert_severity_names,           \
             .flags = RULE_GIVEN),                                                                 \
        RULE("text", FIELD_STR, text, .flags = RULE_GIVEN | (needed) | FIELD_ALWAYS,               \
             .doc = "one sentence; {fact} is what it is then"),                                    \
        RULE("zh", FIELD_STR, zh, .flags = RULE_GIVEN, .doc = "the same in Chinese"),              \
        RULE("fix", FIELD_STR, fix, .flags = RULE_GIVEN, .doc = "what to do"),                     \
        RULE("fix_zh", FIELD_STR, fix_zh, .flags = RULE_GIVEN),                                    \
        RULE("off", FIELD_BOOL, off, "false", .flags = RULE_GIVEN, .doc = "it is not asked"),      \
        RULE("from", FIELD_STR, from, .flags = RULE_KEPT | FIELD_ALWAYS,                           \
             .doc = "shipped, argus.yaml, or who added it"),                                       \
        RULE("changed_at", FIELD_TIME, changed_at, .flags = RULE_KEPT)
static const struct field rule_rows[] = {RULE_ROWS(FIELD_REQUIRED)};
const struct field_table alert_rule_table = FIELD_TABLE("AlertRule", rule_rows, alert_rule);
static const struct field rule_change_rows[] = {RULE_ROWS(0u)};
const struct field_table alert_rule_change_table =
    FIELD_TABLE("AlertRuleChange", rule_change_rows, alert_rule);

void alert_rule_release(struct alert_rule *r)
{
    alert_expr_free(r->when_expr);
    alert_expr_free(r->clear_expr);
    field_release(&alert_rule_table, r);
    *r = (struct alert_rule){0};
}

void alert_rule_copy(struct alert_rule *dst, const struct alert_rule *src)
{
    field_copy(&alert_rule_table, dst, src);
    dst->when_expr = dst->clear_expr = NULL;
}

/* ---- reading ---- */

static bool rule_name_is_good(const char *name)
{
    size_t n = strlen(name);
    bool ok = n > 0 && n <= ALERT_RULE_NAME_MAX && isalpha((unsigned char)*name);
    for (; ok && *name; name++)
        ok = islower((unsigned char)*name) || isdigit((unsigned char)*name) || *name == '_';
    return ok;
}

static void rule_complain(const struct node *map,
                          const char *key,
                          struct problems *ps,
                          const struct err *err)
{
    const struct node *n = node_find(map, key);
    problems_add_err(ps, PROBLEM_ERROR, key, n ? n->line : 0, n ? n->column : 0, err);
}

static void rule_check_expr(const char *text,
                            const char *key,
                            const struct node *map,
                            struct alert_expr **ret,
                            struct problems *ps)
{
    struct err err = {0};
    alert_expr_free(*ret);
    *ret = NULL;
    if (text && alert_expr_parse(text, ret, &err) < 0)
        rule_complain(map, key, ps, &err);
}

int alert_rule_check(struct alert_rule *r, const struct node *map, struct problems *ps)
{
    const struct {
        const char *key, *text;
    } said[] = {{"text", r->text}, {"zh", r->zh}, {"fix", r->fix}, {"fix_zh", r->fix_zh}};
    if (!rule_name_is_good(str_or(r->name, "")))
        problems_add(ps, PROBLEM_ERROR, "name", map ? map->key_line : 0, map ? map->key_column : 0,
                     "bad_rule_name",
                     MESSAGE_ARGS(MESSAGE_STR("name", str_or(r->name, "")),
                                  MESSAGE_NUM("most", ALERT_RULE_NAME_MAX)));
    rule_check_expr(r->when, "when", map, &r->when_expr, ps);
    rule_check_expr(r->clear, "clear", map, &r->clear_expr, ps);
    for (size_t i = 0; i < array_len(said); i++)
        if (said[i].text && strlen(said[i].text) > ALERT_SENTENCE_MAX)
            problems_add(ps, PROBLEM_ERROR, said[i].key, map ? map->line : 0, map ? map->column : 0,
                         "rule_text_long", MESSAGE_NO_ARGS);
    return ps->errors ? -EINVAL : 0;
}

static void rule_check_fact(const struct alert_rule *r,
                            const char *fact,
                            const char *key,
                            const struct node *map,
                            struct problems *ps)
{
    const char *known[FACTS_KNOWN_MAX], *at = alert_of_facts[r->of];
    struct strv names = {0};
    struct err err = {0};
    while (*at) {
        _cleanup_(freep) char *name = xstrndup(at, strcspn(at, " "));
        strv_add(&names, name);
        at += strlen(name) + (at[strlen(name)] == ' ');
    }
    for (size_t i = 0; i < names.n && i < FACTS_KNOWN_MAX; i++)
        known[i] = names.v[i];
    if (!strv_has(&names, fact)) {
        const char *near = str_nearest(fact, known, names.n);
        (void)message_refuse(&err, ERR_BAD_SPEC, "no_fact",
                             MESSAGE_ARGS(MESSAGE_STR("fact", fact),
                                          MESSAGE_STR("kind", alert_of_names[r->of]),
                                          MESSAGE_STR("near", near))); /* only fills err */
        rule_complain(map, key, ps, &err);
    }
    strv_release(&names);
}

static void rule_check_holes(const struct alert_rule *r,
                             const char *text,
                             const char *key,
                             const struct node *map,
                             struct problems *ps)
{
    for (const char *open = text; open && (open = strchr(open, '{')); open++) {
        size_t n = strspn(open + 1, "abcdefghijklmnopqrstuvwxyz_0123456789");
        _cleanup_(freep) char *fact = xstrndup(open + 1, n);
        if (n && (open[1 + n] == '}' || open[1 + n] == ':')) /* else it is no hole */
            rule_check_fact(r, fact, key, map, ps);
    }
}

int alert_rule_check_facts(const struct alert_rule *r, const struct node *map, struct problems *ps)
{
    const struct {
        const char *key;
        const struct alert_expr *e;
    } asked[] = {{"when", r->when_expr}, {"clear", r->clear_expr}};
    size_t before = ps->errors;
    const char *fact;
    for (size_t k = 0; k < array_len(asked); k++)
        for (size_t i = 0; asked[k].e && (fact = alert_expr_fact(asked[k].e, i)); i++)
            rule_check_fact(r, fact, asked[k].key, map, ps);
    rule_check_holes(r, r->text, "text", map, ps);
    rule_check_holes(r, r->zh, "zh", map, ps);
    rule_check_holes(r, r->fix, "fix", map, ps);
    rule_check_holes(r, r->fix_zh, "fix_zh", map, ps);
    return ps->errors > before ? -EINVAL : 0;
}

int alert_rule_read(const struct node *map,
                    const char *name,
                    bool is_change,
                    struct alert_rule *ret,
                    struct problems *ps)
{
    conf_read_table(&alert_rule_table, FIELD_ASKED, is_change, map, ret, ps);
    set_str(&ret->name, name);
    if (ps->errors)
        return -EINVAL;
    int r = alert_rule_check(ret, map, ps);
    return r < 0 ? r : alert_rule_check_facts(ret, map, ps);
}

/* ---- a set of them ---- */

void alert_rules_release(struct alert_rules *rules)
{
    for (size_t i = 0; i < rules->n; i++)
        alert_rule_release(&rules->v[i]);
    free(rules->v);
    *rules = (struct alert_rules){0};
}

double alert_rules_next(const struct alert_rules *rules,
                        enum alert_of of,
                        const char *fact,
                        double from)
{
    double next = INFINITY;
    for (size_t i = 0; i < rules->n; i++) {
        const struct alert_rule *r = &rules->v[i];
        if (r->of != (int)of || r->off)
            continue;
        if (r->when_expr)
            next = fmin(next, alert_expr_next(r->when_expr, fact, from));
        if (r->clear_expr)
            next = fmin(next, alert_expr_next(r->clear_expr, fact, from));
    }
    return next;
}

struct alert_rule *alert_rules_find(const struct alert_rules *rules, const char *name)
{
    for (size_t i = 0; i < rules->n; i++)
        if (str_eq(rules->v[i].name, name))
            return &rules->v[i];
    return NULL;
}

int alert_rules_put(struct alert_rules *rules, struct alert_rule *taken, struct err *err)
{
    struct alert_rule *old = alert_rules_find(rules, taken->name);
    if (old) {
        alert_rule_release(old);
        *old = *taken;
        *taken = (struct alert_rule){0};
        return 0;
    }
    if (rules->n >= ALERT_RULES_MAX)
        return message_refuse(err, ERR_REFUSED, "too_many_rules",
                              MESSAGE_ARGS(MESSAGE_NUM("most", ALERT_RULES_MAX)));
    size_t at = 0;
    while (at < rules->n && strcmp(rules->v[at].name, taken->name) < 0)
        at++;
    rules->v = xrealloc(rules->v, rules->n + 1, sizeof(*rules->v));
    memmove(&rules->v[at + 1], &rules->v[at], (rules->n - at) * sizeof(*rules->v));
    rules->v[at] = *taken;
    rules->n++;
    *taken = (struct alert_rule){0};
    return 0;
}

void alert_rules_remove(struct alert_rules *rules, const char *name)
{
    struct alert_rule *r = alert_rules_find(rules, name);
    if (!r)
        return;
    size_t at = (size_t)(r - rules->v);
    alert_rule_release(r);
    memmove(r, r + 1, (--rules->n - at) * sizeof(*r));
}

static void rules_read_one(const struct node *map,
                           const char *from,
                           struct alert_rules *rules,
                           struct problems *ps)
{
    const struct alert_rule *old = alert_rules_find(rules, map->key);
    struct alert_rule r = {0};
    struct err err = {0};
    size_t before = ps->errors;
    if (old)
        alert_rule_copy(&r, old);
    int x = alert_rule_read(map, map->key, old != NULL, &r, ps);
    set_str(&r.from, from);
    if (x == 0 && ps->errors == before && alert_rules_put(rules, &r, &err) < 0)
        problems_add_err(ps, PROBLEM_ERROR, map->key, map->line, map->column, &err);
    alert_rule_release(&r);
}

int alert_rules_read(const struct node *map,
                     const char *from,
                     struct alert_rules *rules,
                     struct problems *ps)
{
    if (map && map->kind != NODE_MAP && !node_is_null(map))
        problems_add(ps, PROBLEM_ERROR, "rules", map->line, map->column, "rules_not_mapping",
                     MESSAGE_NO_ARGS);
    for (const struct node *c = map && map->kind == NODE_MAP ? map->first : NULL; c; c = c->next)
        rules_read_one(c, from, rules, ps);
    return ps->errors ? -EINVAL : 0;
}

void alert_rules_add_shipped(struct alert_rules *rules)
{
    struct problems ps = {0};
    struct doc *d = NULL;
    int r = doc_parse((const char *)embedded_alerts_yaml, embedded_alerts_yaml_size, true, &d, &ps);
    if (r == 0)
        r = alert_rules_read(doc_root(d), "shipped", rules, &ps);
    assert(r == 0); /* a test reads them */
    (void)r;
    doc_free(d);
    problems_release(&ps);
}

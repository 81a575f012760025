/* SPDX-License-Identifier: Apache-2.0 */
/* rules.c - /v1/alert_rules, which decide what is an alert, and /v1/receivers, who are told. */
#include "argusd/api/alerts/notices.h"

#include <stdlib.h>
#include <string.h>

#include "argusd/kit/part.h"
#include "argusd/kit/resource.h"
#include "base/doc/conf.h"
#include "base/message.h"
#include "base/str.h"

/* ---- rules ---- */

static const void *rule_next(struct resource_ask *q, size_t *pos)
{
    const struct alert_rules *r = alerts_rules(q->a->alerts);
    return *pos < r->n ? &r->v[(*pos)++] : NULL;
}

static const void *rule_find(struct resource_ask *q, const void *asked)
{
    (void)asked;
    const struct alert_rule *r = alert_rules_find(alerts_rules(q->a->alerts), q->name);
    if (!r)
        (void)message_refuse(&q->err, ERR_NOT_FOUND, "no_rule",
                             MESSAGE_ARGS(MESSAGE_STR("name", q->name))); /* only fills err */
    return r;
}

static void rule_thing(struct resource_ask *q,
                       const void *x,
                       const void *asked,
                       struct access_thing *ret)
{
    (void)x;
    (void)asked;
    ret->name = q->name;
}

static char *rule_object(const void *x)
{
    return xasprintf("alert_rule/%s", ((const struct alert_rule *)x)->name);
}

static int rule_check(struct resource_ask *q, const void *old, void *asked)
{
    struct alert_rule *r = asked;
    (void)old;
    set_str(&r->name, q->name);
    int x = alert_rule_check(r, NULL, &q->problems);
    if (x == 0)
        x = alert_rule_check_facts(r, NULL, &q->problems);
    alert_expr_free(r->when_expr); /* the form has none */
    alert_expr_free(r->clear_expr);
    r->when_expr = r->clear_expr = NULL;
    return x < 0 ? ERR_BAD_SPEC : 0;
}

static const void *rule_write(struct resource_ask *q, const void *old, void *asked)
{
    const struct alert_rule *r = NULL;
    struct alert_rule taken = {0};
    (void)old;
    alert_rule_copy(&taken, asked);
    set_str(&taken.from, q->who.user);
    taken.changed_at = clock_wall();
    bool ok = alert_rule_check(&taken, NULL, &q->problems) == 0 &&
              alerts_rule_put(q->a->alerts, &taken, &r, &q->err) == 0;
    alert_rule_release(&taken);
    return ok ? r : NULL;
}

static int rule_check_remove(struct resource_ask *q, const void *x)
{
    const struct alert_rule *r = x;
    if (!str_eq(r->from, "shipped") && !str_eq(r->from, "argus.yaml"))
        return 0;
    return message_refuse(&q->err, ERR_CONFLICT, "rule_kept",
                          MESSAGE_ARGS(MESSAGE_STR("name", r->name), MESSAGE_STR("from", r->from)));
}

static bool rule_take_away(struct resource_ask *q, const void *x)
{
    (void)x;
    return alerts_rule_remove(q->a->alerts, q->name, &q->err) == 0;
}

static const struct resource rule_noun = {.noun = "rule",
                                          .kind = ACCESS_KIND_CLUSTER,
                                          .collection = "rules",
                                          .param = "rule",
                                          .page = &alert_rule_table,
                                          .form = &alert_rule_table,
                                          .may_see = ACCESS_MACHINE_SEE,
                                          .may_change = ACCESS_MACHINE_CHANGE,
                                          .add = {"rule_added", "make"},
                                          .change = {"rule_changed", "change"},
                                          .remove = {"rule_removed", "remove"},
                                          .next = rule_next,
                                          .find = rule_find,
                                          .thing = rule_thing,
                                          .object = rule_object,
                                          .check = rule_check,
                                          .write = rule_write,
                                          .check_remove = rule_check_remove,
                                          .take_away = rule_take_away};

/* ---- receivers ---- */

struct receiver_page {
    struct alerts_outlet outlet;
    char *name, *kind, *trouble; /* borrowed */
    int64_t waiting, taken, refused, per_minute;
    usec_t taken_at, failing_since;
};
#define RECEIVER_PAGE(key, ftype, ...)                                                             \
    FIELD_AT(receiver_page, #key, ftype, key, .flags = FIELD_SHOWN | __VA_ARGS__)
static const struct field receiver_page_rows[] = {
    RECEIVER_PAGE(name, FIELD_STR, FIELD_BORROWED | FIELD_ALWAYS),
    RECEIVER_PAGE(kind, FIELD_STR, FIELD_BORROWED | FIELD_ALWAYS),
    RECEIVER_PAGE(per_minute, FIELD_INT, 0u, .doc = "messages that it is sent; 0 = no limit"),
    RECEIVER_PAGE(waiting, FIELD_INT, 0u, .doc = "messages that it has not taken"),
    RECEIVER_PAGE(taken, FIELD_INT, 0u, .doc = "since argusd started"),
    RECEIVER_PAGE(refused, FIELD_INT, 0u),
    RECEIVER_PAGE(taken_at, FIELD_TIME, 0u),
    RECEIVER_PAGE(failing_since, FIELD_TIME, 0u),
    RECEIVER_PAGE(trouble,
                  FIELD_STR,
                  FIELD_BORROWED,
                  .doc = "why the last message was not taken; told to admins"),
};
static const struct field_table receiver_page_table =
    FIELD_TABLE("Receiver", receiver_page_rows, receiver_page);

static void receiver_page_of(const struct api *a, size_t i, struct receiver_page *page)
{
    struct alerts_outlet o;
    if (!alerts_outlet_at(a->alerts, i, &o))
        return;
    *page = (struct receiver_page){.outlet = o,
                                   .name = o.receiver->name,
                                   .kind = alert_borrow(alert_kind_names[o.receiver->kind]),
                                   .trouble = *o.trouble ? alert_borrow(o.trouble) : NULL,
                                   .waiting = (int64_t)o.waiting,
                                   .taken = o.taken,
                                   .refused = o.refused,
                                   .per_minute = o.receiver->per_minute,
                                   .taken_at = o.taken_at,
                                   .failing_since = o.failing_since};
}

static const void *receiver_next(struct resource_ask *q, size_t *pos)
{
    const struct alert_config *c = alerts_config(q->a->alerts);
    return *pos < c->n_receivers ? &c->receivers[(*pos)++] : NULL;
}

static const void *receiver_find(struct resource_ask *q, const void *asked)
{
    (void)asked;
    return alert_config_find(alerts_config(q->a->alerts), q->name);
}

static void receiver_fill(struct resource_ask *q, const void *x, void *out)
{
    const struct alert_config *c = alerts_config(q->a->alerts);
    receiver_page_of(q->a, (size_t)((const struct alert_receiver *)x - c->receivers), out);
    if (!access_sees_answers(&q->who))
        ((struct receiver_page *)out)->trouble = NULL;
}

static const struct resource receiver_noun = {.noun = "receiver",
                                              .kind = ACCESS_KIND_CLUSTER,
                                              .collection = "receivers",
                                              .param = "receiver",
                                              .page = &receiver_page_table,
                                              .may_see = ACCESS_MACHINE_SEE,
                                              .may_change = ACCESS_MACHINE_CHANGE,
                                              .next = receiver_next,
                                              .find = receiver_find,
                                              .fill = receiver_fill};

static void receiver_test(struct http_req *req, void *app)
{
    struct resource_ask q;
    resource_begin(&q, req, app);
    const struct alert_receiver *r = resource_find(&q, RESOURCE_TO_CHANGE, "test");
    if (r && alerts_test(q.a->alerts, r->name, q.who.user, &q.err) == 0)
        resource_reply(&q, r, 202, api_barrier(q.a));
    else
        resource_refuse(&q);
    resource_end(&q);
}

/* ---- routes ---- */

#define ACTION(noun, does, path, role, words, ...)                                                 \
    RESOURCE_ROUTE("POST", does, noun, path, role, words, .max_body = RESOURCE_BODY_MAX,           \
                   __VA_ARGS__)
static const struct http_route rows[] = {
    RESOURCE_LIST(&rule_noun,
                  "/v1/alert_rules",
                  VIEWER,
                  "the rules that are in force",
                  .reply_schema = "AlertRuleList"),
    RESOURCE_GET(&rule_noun,
                 "/v1/alert_rules/{rule}",
                 VIEWER,
                 "one rule",
                 .reply_schema = "AlertRule",
                 .example = "job_failed"),
    RESOURCE_PUT(&rule_noun,
                 "/v1/alert_rules/{rule}",
                 ADMIN,
                 "a rule as a whole: a new one, or in place of the one of that name",
                 .max_body = RESOURCE_BODY_MAX,
                 .request_schema = "AlertRuleForm",
                 .reply_schema = "AlertRule",
                 .reply_status = 201,
                 .other_schema = "AlertRule"),
    RESOURCE_CHANGE(
        &rule_noun,
        "/v1/alert_rules/{rule}",
        ADMIN,
        "change what is given of a rule; the changed one stands in place of a shipped one",
        .max_body = RESOURCE_BODY_MAX,
        .request_schema = "AlertRuleChange",
        .reply_schema = "AlertRule"),
    RESOURCE_REMOVE(&rule_noun,
                    "/v1/alert_rules/{rule}",
                    ADMIN,
                    "remove a rule that was added here: what it stood for holds again",
                    .reply_schema = "AlertRule"),
    RESOURCE_LIST(
        &receiver_noun,
        "/v1/receivers",
        VIEWER,
        "who is told of alerts, and whether the messages arrive; neither addresses nor keys",
        .reply_schema = "ReceiverList"),
    ACTION(&receiver_noun,
           receiver_test,
           "/v1/receivers/{receiver}:test",
           ADMIN,
           "send it a test message",
           .reply_schema = "Receiver",
           .reply_status = 202,
           .example = "ops"),
};
static const struct http_schema schemas[] = {
    {.name = "AlertRule", .table = &alert_rule_table, .which = FIELD_SHOWN},
    {.name = "AlertRuleForm", .table = &alert_rule_table, .which = FIELD_ASKED, .is_form = true},
    {.name = "AlertRuleChange",
     .table = &alert_rule_change_table,
     .which = FIELD_ASKED,
     .is_form = true},
    LIST_OF("AlertRuleList", "rules", "AlertRule"),
    {.name = "Receiver", .table = &receiver_page_table, .which = FIELD_SHOWN},
    LIST_OF("ReceiverList", "receivers", "Receiver"),
};
const struct api_part part_rules = {rows, array_len(rows), schemas, array_len(schemas)};

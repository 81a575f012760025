/* SPDX-License-Identifier: Apache-2.0 */
/* metric_alarm.c - what each alert of a job has seen of each metric that it names; see
 * metric_alarm.h. A metric is remembered from its first value on. */
#include "core/training/metric_alarm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/text.h"
#include "core/training/spark.h"
#include "core/training/training_message.h"

/* One metric that an alert is of. */
struct alarm_metric {
    char *name;
    double first, most, least; /* NaN: none yet */
    double value;
    int64_t held; /* records for which it has done what the alert says */
    int64_t since;
    struct spark curve;
};

struct alarm {
    char *text;
    bool of_project;
    struct metric_alert alert;
    struct alarm_metric *of; /* METRIC_ALARM_METRICS at most */
    size_t n;
    bool seen, stands;
    struct metric_alarm last;   /* of when it held last */
    struct sample_picks *picks; /* heap */
    char curve[SPARK_TEXT_MAX];
    double points[SPARK_POINTS + 1];
    size_t n_points;
    struct metric_alarm_span spans[METRIC_ALARM_SPANS];
    size_t n_spans;
};

struct metric_alarms {
    struct alarm *v;
    size_t n;
};

static bool alarms_have(const struct metric_alarms *as, const char *text)
{
    for (size_t i = 0; i < as->n; i++)
        if (str_eq(as->v[i].text, text))
            return true;
    return false;
}

/* METRIC_ALERTS_MAX of them. */
static void alarms_take(struct metric_alarms *as, const struct strv *texts, bool of_project)
{
    size_t end = as->n + METRIC_ALERTS_MAX;
    for (size_t i = 0; texts && i < texts->n && as->n < end; i++) {
        struct alarm *a = &as->v[as->n];
        if ((of_project && alarms_have(as, texts->v[i])) ||
            metric_alert_parse(texts->v[i], &a->alert, NULL) < 0)
            continue;
        a->text = xstrdup(texts->v[i]);
        a->of_project = of_project;
        as->n++;
    }
}

struct metric_alarms *metric_alarms_new(const struct strv *own, const struct strv *of_project)
{
    struct metric_alarms *as = xcalloc(1, sizeof(*as));
    as->v = xcalloc((own ? own->n : 0) + (of_project ? of_project->n : 0) + 1, sizeof(*as->v));
    alarms_take(as, own, false);
    alarms_take(as, of_project, true);
    return as;
}

void metric_alarms_free(struct metric_alarms *as)
{
    if (!as)
        return;
    for (size_t i = 0; i < as->n; i++) {
        for (size_t k = 0; k < as->v[i].n; k++)
            free(as->v[i].of[k].name);
        free(as->v[i].of);
        metric_alert_release(&as->v[i].alert);
        free(as->v[i].text);
        free(as->v[i].picks);
    }
    free(as->v);
    free(as);
}

struct metric_alarms *metric_alarms_like(const struct metric_alarms *as)
{
    struct strv own = {0}, of_project = {0};
    if (!as)
        return NULL;
    for (size_t i = 0; i < as->n; i++)
        strv_add(as->v[i].of_project ? &of_project : &own, as->v[i].text);
    struct metric_alarms *ret = metric_alarms_new(&own, &of_project);
    strv_release(&own);
    strv_release(&of_project);
    return ret;
}

/* ---- records ---- */

/* NULL: there are too many. */
static struct alarm_metric *alarm_metric_of(struct alarm *a, const char *name)
{
    for (size_t i = 0; i < a->n; i++)
        if (str_eq(a->of[i].name, name))
            return &a->of[i];
    if (a->n == METRIC_ALARM_METRICS)
        return NULL;
    a->of = xrealloc(a->of, a->n + 1, sizeof(*a->of));
    struct alarm_metric *m = &a->of[a->n++];
    *m = (struct alarm_metric){
        .name = xstrdup(name), .first = NAN, .most = NAN, .least = NAN, .value = NAN};
    return m;
}

static double alarm_from(const struct alarm *a, const struct alarm_metric *m)
{
    if (a->alert.kind != METRIC_ALERT_FALLS && a->alert.kind != METRIC_ALERT_RISES)
        return NAN;
    if (a->alert.from_first)
        return m->first;
    return a->alert.kind == METRIC_ALERT_FALLS ? m->most : m->least;
}

/* Where a value of the metric would be at the edge of the alert; NaN: it has none. */
static double alarm_limit(const struct alarm *a, const struct alarm_metric *m)
{
    double from = alarm_from(a, m), apart = a->alert.number * fabs(from);
    switch (a->alert.kind) {
    case METRIC_ALERT_FALLS:
        return from - apart;
    case METRIC_ALERT_RISES:
        return from + apart;
    case METRIC_ALERT_IS_NAN:
    case METRIC_ALERT_KINDS:
        return NAN;
    case METRIC_ALERT_BELOW:
    case METRIC_ALERT_AT_MOST:
    case METRIC_ALERT_ABOVE:
    case METRIC_ALERT_AT_LEAST:
        break;
    }
    return a->alert.number;
}

/* A value that is the share away to the last bit but for rounding is it: 0.4 rises by 50 % to 0.6.
 */
static const double SHARE_SLACK = 1e-9;

/* A comparison with what is no number is false, so that only `is nan` is true of it. */
static bool alarm_holds(const struct alarm *a, const struct alarm_metric *m)
{
    double x = m->value, number = a->alert.number, from = alarm_from(a, m);
    double apart = (number - SHARE_SLACK) * fabs(from);
    switch (a->alert.kind) {
    case METRIC_ALERT_BELOW:
        return x < number;
    case METRIC_ALERT_AT_MOST:
        return x <= number;
    case METRIC_ALERT_ABOVE:
        return x > number;
    case METRIC_ALERT_AT_LEAST:
        return x >= number;
    case METRIC_ALERT_FALLS:
        return x <= from - apart && x < from;
    case METRIC_ALERT_RISES:
        return x >= from + apart && x > from;
    case METRIC_ALERT_IS_NAN:
        return !isfinite(x);
    case METRIC_ALERT_KINDS:
        break;
    }
    return false;
}

/* The oldest span makes room. */
static void alarm_span_begin(struct alarm *a, const struct alarm_metric *m, int64_t step)
{
    if (a->n_spans == METRIC_ALARM_SPANS)
        memmove(a->spans, a->spans + 1, --a->n_spans * sizeof(a->spans[0]));
    a->spans[a->n_spans++] = (struct metric_alarm_span){
        .metric = m->name, .since = m->since, .told = step, .value = m->value};
}

/* The metric's newest span is the one that goes on. One that made room for others is not there. */
static void alarm_span_end(struct alarm *a, const struct alarm_metric *m, int64_t step)
{
    for (size_t i = a->n_spans; i > 0; i--)
        if (a->spans[i - 1].metric == m->name) {
            a->spans[i - 1].ended = step;
            return;
        }
}

static void alarm_metric_add(struct alarm *a, struct alarm_metric *m, int64_t step, double value)
{
    m->value = value;
    spark_add(&m->curve, value);
    if (isfinite(value)) {
        m->first = isfinite(m->first) ? m->first : value;
        m->most = fmax(m->most, value);
        m->least = fmin(m->least, value);
    }
    if (!alarm_holds(a, m)) {
        if (m->held >= a->alert.steps)
            alarm_span_end(a, m, step);
        m->held = 0;
        return;
    }
    m->since = m->held++ ? m->since : step;
    if (m->held == a->alert.steps)
        alarm_span_begin(a, m, step);
}

/* The first of its metrics that holds. */
static void alarm_judge(struct alarm *a, int64_t step)
{
    int64_t told = a->stands ? a->last.told : step;
    a->stands = false;
    for (size_t i = 0; i < a->n && !a->stands; i++) {
        const struct alarm_metric *m = &a->of[i];
        if (m->held < a->alert.steps)
            continue;
        a->stands = a->seen = true;
        a->last = (struct metric_alarm){.metric = m->name,
                                        .step = m->since,
                                        .told = told,
                                        .value = m->value,
                                        .from = alarm_from(a, m),
                                        .limit = alarm_limit(a, m)};
        (void)spark_text(&m->curve, a->curve);
        a->n_points = spark_points(&m->curve, a->points);
    }
}

void metric_alarms_add(struct metric_alarms *as, const struct metric_record *r)
{
    for (size_t i = 0; as && i < as->n && !r->superseded; i++) {
        struct alarm *a = &as->v[i];
        for (size_t k = 0; k < r->n; k++) {
            struct alarm_metric *m =
                str_glob(a->alert.metric, r->v[k].name) ? alarm_metric_of(a, r->v[k].name) : NULL;
            if (m)
                alarm_metric_add(a, m, r->step, r->v[k].value);
        }
        alarm_judge(a, r->step);
    }
}

/* ---- what they came to ---- */

size_t metric_alarms_count(const struct metric_alarms *as)
{
    return as ? as->n : 0;
}

void metric_alarms_get(const struct metric_alarms *as, size_t i, struct metric_alarm *ret)
{
    const struct alarm *a = &as->v[i];
    *ret = a->last;
    ret->alert = a->text;
    ret->of_project = a->of_project;
    ret->stands = a->stands;
    ret->seen = a->seen;
    ret->curve = a->curve;
    ret->points = a->points;
    ret->n_points = a->n_points;
    ret->spans = a->spans;
    ret->n_spans = a->n_spans;
    ret->picks = a->picks;
    if (!a->seen)
        ret->value = ret->from = ret->limit = NAN;
}

void metric_alarms_set_picks(struct metric_alarms *as, size_t i, const struct sample_picks *picks)
{
    struct alarm *a = &as->v[i];
    if (!a->picks)
        a->picks = xcalloc(1, sizeof(*a->picks));
    *a->picks = *picks;
}

unsigned metric_alarms_seen(const struct metric_alarms *as)
{
    unsigned seen = 0;
    for (size_t i = 0; i < metric_alarms_count(as); i++)
        seen |= as->v[i].seen ? 1u << i : 0;
    return seen;
}

const char *metric_alarm_message(const struct metric_alarm *a, char *text, size_t size)
{
    char value[32], from[32];
    text_printf(value, "%.4g", a->value);
    text_printf(from, "%.4g", a->from);
    message_write(text, size,
                  MESSAGE_ARGS(MESSAGE_STR("alert", a->alert), MESSAGE_STR("metric", a->metric),
                               MESSAGE_STR("value", value),
                               MESSAGE_STR("from", isfinite(a->from) ? from : ""),
                               MESSAGE_NUM("step", a->step)));
    return "metric_alert";
}

/* ---- as JSON ---- */

#define SPAN(key, ftype, member, ...) FIELD_AT(metric_alarm_span, key, ftype, member, __VA_ARGS__)
static const struct field alarm_span_rows[] = {
    SPAN("metric", FIELD_STR, metric, .flags = FIELD_ALWAYS),
    SPAN("step", FIELD_INT, since, .doc = "the first one that counts for it"),
    SPAN("seen_at", FIELD_INT, told, .doc = "the step at which it was clear"),
    SPAN("ended_at",
         FIELD_INT,
         ended,
         .doc = "the step at which it did not hold any more; 0: it does"),
    SPAN("value",
         FIELD_REAL,
         value,
         .flags = FIELD_MAYBE,
         .doc = "of the metric when it was clear; null: no number"),
};
static const struct field_table alarm_span_table =
    FIELD_TABLE(NULL, alarm_span_rows, metric_alarm_span);

struct alarm_page {
    struct metric_alarm is;
    struct field_list samples, points, spans;
    double v[SPARK_POINTS + 1];
    struct metric_alarm_span held[METRIC_ALARM_SPANS];
    struct training_message said;
};
#define ALARM(key, ftype, member, ...) FIELD_AT(alarm_page, key, ftype, member, __VA_ARGS__)
static const struct field alarm_rows[] = {
    ALARM("alert", FIELD_STR, is.alert, .flags = FIELD_ALWAYS),
    ALARM("of_project",
          FIELD_BOOL,
          is.of_project,
          .flags = FIELD_OMIT,
          .doc = "a rule of the job's project; left out where it is the job's own"),
    ALARM("stands", FIELD_BOOL, is.stands, .doc = "it holds now"),
    ALARM("seen", FIELD_BOOL, is.seen, .doc = "it ever held"),
    ALARM("metric", FIELD_STR, is.metric, .doc = "that does so, or did last"),
    ALARM("step", FIELD_INT, is.step, .doc = "since this one"),
    ALARM("value", FIELD_REAL, is.value, .flags = FIELD_MAYBE),
    ALARM("from", FIELD_REAL, is.from, .flags = FIELD_MAYBE, .doc = "its best or first value"),
    ALARM("curve", FIELD_STR, is.curve, .doc = "all of its values up to then, in a line of text"),
    /* What an older version stored has none of these. */
    ALARM("limit",
          FIELD_REAL,
          is.limit,
          .flags = FIELD_MAYBE | FIELD_OMIT,
          .doc = "that the value is held against; left out where there is none"),
    ALARM("points",
          FIELD_REALS,
          points,
          .flags = FIELD_OMIT,
          .doc = "of that curve, 33 at most, the newest last; null: no number"),
    ALARM("spans",
          FIELD_LIST,
          spans,
          .of = &alarm_span_table,
          .flags = FIELD_OMIT,
          .doc = "when it held, one for each time and metric: the newest 8, the oldest of them "
                 "first; left out where it never did"),
    ALARM("samples",
          FIELD_LIST,
          samples,
          .of = &sample_pick_table,
          .flags = FIELD_OMIT,
          .doc = "to look at, five at most; left out where no samples are kept"),
    TRAINING_MESSAGE_ROWS(alarm_page, said),
};
const struct field_table metric_alarm_table = FIELD_TABLE("MetricAlert", alarm_rows, alarm_page);

static void alarm_fill(struct alarm_page *p)
{
    char args[METRIC_ALARM_ARGS_MAX];
    if (p->is.seen)
        training_message_say_text(&p->said, metric_alarm_message(&p->is, args, sizeof(args)), args);
    else
        training_message_say(&p->said, "metric_alert_waits",
                             MESSAGE_ARGS(MESSAGE_STR("alert", p->is.alert)));
}

void metric_alarms_to_json(const struct metric_alarms *as, struct jout *j, const char *key)
{
    jout_open(j, key, '[');
    for (size_t i = 0; i < metric_alarms_count(as); i++) {
        struct alarm_page page = {0};
        metric_alarms_get(as, i, &page.is);
        memcpy(page.v, page.is.points, page.is.n_points * sizeof(page.v[0]));
        page.points = (struct field_list){page.v, page.is.n_points};
        memcpy(page.held, page.is.spans, page.is.n_spans * sizeof(page.held[0]));
        page.spans = (struct field_list){page.held, page.is.n_spans};
        if (page.is.picks)
            page.samples = (struct field_list){page.is.picks->v, page.is.picks->n};
        alarm_fill(&page);
        field_to_json(&metric_alarm_table, &page, FIELD_ALL, FIELD_PAGE, j, NULL);
        training_message_release(&page.said);
    }
    jout_close(j, ']');
}

unsigned metric_alarms_seen_from_json(const json_t *alarms)
{
    unsigned seen = 0;
    size_t i;
    const json_t *one;
    json_array_foreach (alarms, i, one)
        seen |= i < METRIC_ALARMS_MAX && json_is_true(json_object_get(one, "seen")) ? 1u << i : 0;
    return seen;
}

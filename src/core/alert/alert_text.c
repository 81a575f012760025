/* SPDX-License-Identifier: Apache-2.0 */
/* alert_text.c - see alert_text.h. A rule brings its sentence in both languages; the words around
 * it are the table below. */
#include "core/alert/alert_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"
#include "core/training/curve.h"

enum { SENTENCE_MAX = 4096, TITLE_MAX = 1024, FACT_MAX = 600, LISTED_MAX = 20 };

const char *const alert_what_names[] = {
    [ALERT_OPENED] = "opened",     [ALERT_GREW] = "grew", [ALERT_ESCALATED] = "escalated",
    [ALERT_RESOLVED] = "resolved", [ALERT_TEST] = "test", NULL};

enum said {
    SAID_RESOLVED,
    SAID_ESCALATED,
    SAID_GREW,
    SAID_JOB,
    SAID_JOBS,
    SAID_MORE,
    SAID_TEST,
};
static const char *const said[][2] = {
    [SAID_RESOLVED] = {"resolved", "已恢复"},
    [SAID_ESCALATED] = {"nobody acknowledged it", "无人确认"},
    [SAID_GREW] = {"worse", "加重"},
    [SAID_JOB] = {"job", "个作业"},
    [SAID_JOBS] = {"jobs", "个作业"},
    [SAID_MORE] = {"more", "更多"},
    [SAID_TEST] = {"a test message of Argus: nothing is wrong", "Argus 测试消息：一切正常"},
};

/* ---- sentences ---- */

static void put_bytes(double bytes, struct buf *out)
{
    const char *unit = text_bytes_unit(&bytes);
    (void)buf_addf(out, "%.3g %s", bytes, unit);
}

static void put_number(double n, const char *how, struct buf *out)
{
    char text[CLOCK_TEXT_MAX];
    if (str_eq(how, "percent"))
        (void)buf_addf(out, "%.3g %%", n * 100);
    else if (str_eq(how, "bytes"))
        put_bytes(n, out);
    else if (str_eq(how, "span") && n >= 0 && n < 1e9)
        (void)buf_adds(out, span_to_string((usec_t)(n * 1e6), text));
    else
        (void)buf_addf(out, "%.10g", n);
}

/* Control characters and line ends of others make no line of ours. */
static void put_plain(const char *text, struct buf *out)
{
    size_t n = 0;
    for (; *text && n < FACT_MAX; n++, text++)
        (void)buf_addc(out, (unsigned char)*text < ' ' || *text == 127 ? ' ' : *text);
    if (*text)
        (void)buf_adds(out, "...");
}

static void put_said(const json_t *v, enum message_language in, struct buf *out)
{
    struct message_listener listener = {.language = in};
    struct buf held = {0};
    put_plain(message_say(json_get_str(v, ALERT_SAID_CODE, ""),
                          json_get_str(v, ALERT_SAID_ARGS, ""), &listener, &held),
              out);
    buf_release(&held);
}

static void fill_hole(const char *hole,
                      size_t n,
                      const json_t *args,
                      enum message_language in,
                      struct buf *out)
{
    _cleanup_(freep) char *name = xstrndup(hole, n);
    char *how = strchr(name, ':');
    if (how)
        *how++ = 0;
    const json_t *v = json_object_get(args, name);
    if (str_eq(how, "also")) {
        const char *more = json_is_string(v) ? json_string_value(v) : "";
        (void)buf_adds(out, *more ? "; " : "");
        put_plain(more, out);
    } else if (json_is_string(v))
        put_plain(json_string_value(v), out);
    else if (json_is_number(v))
        put_number(json_number_value(v), how, out);
    else if (json_is_object(v))
        put_said(v, in, out);
    else
        (void)buf_adds(out, "?");
}

void alert_fill(const char *text, const char *args, enum message_language in, struct buf *out)
{
    _cleanup_(json_unrefp) json_t *o = NULL;
    if (!args || json_parse(args, strlen(args), ALERT_ARGS_MAX, &o, NULL) < 0)
        o = json_object();
    for (const char *open; (open = strchr(text, '{'));) {
        size_t n = strcspn(open + 1, "}");
        if (!open[1 + n])
            break;
        (void)buf_add(out, text, (size_t)(open - text));
        fill_hole(open + 1, n, o, in, out);
        text = open + n + 2;
    }
    (void)buf_adds(out, text);
}

void alert_sentence(const struct alert *a, enum message_language in, bool is_fix, struct buf *out)
{
    const char *zh = is_fix ? a->fix_zh : a->zh, *en = is_fix ? a->fix : a->text;
    alert_fill(str_or(in == MESSAGE_CHINESE && zh ? zh : en, ""), a->args, in, out);
}

char *alert_facts_said(const char *args, enum message_language in)
{
    _cleanup_(json_unrefp) json_t *o = NULL;
    const char *name;
    json_t *v;
    if (!args || json_parse(args, strlen(args), ALERT_ARGS_MAX, &o, NULL) < 0)
        return NULL;
    json_object_foreach (o, name, v) {
        struct buf text = BUF_INIT(SENTENCE_MAX);
        if (json_is_object(v)) {
            put_said(v, in, &text);
            (void)json_object_set_new(o, name, json_string(buf_str(&text)));
        }
        buf_release(&text);
    }
    return json_dumps(o, JSON_COMPACT);
}

const struct alert *incident_first(const struct incident *i)
{
    const struct alert *first = NULL;
    for (size_t k = 0; k < i->alerts.n; k++) {
        const struct alert *a = incident_alert(i, k);
        _cleanup_(freep) char *about = xasprintf("%s/%s", alert_of_names[a->of], a->name);
        bool is_cause = str_eq(about, i->cause);
        if (!first || a->severity > first->severity ||
            (a->severity == first->severity && is_cause && first->of != a->of))
            first = a;
    }
    return first;
}

size_t incident_jobs(const struct incident *i)
{
    struct strv names = {0};
    for (size_t k = 0; k < i->alerts.n; k++)
        if (incident_alert(i, k)->of == ALERT_OF_JOB &&
            !strv_has(&names, incident_alert(i, k)->name))
            strv_add(&names, incident_alert(i, k)->name);
    size_t n = names.n;
    strv_release(&names);
    return n;
}

void incident_sentence(const struct incident *i, enum message_language in, struct buf *out)
{
    const struct alert *first = incident_first(i);
    size_t jobs = incident_jobs(i);
    if (first)
        alert_sentence(first, in, false, out);
    if (jobs > 0 && (jobs > 1 || first->of != ALERT_OF_JOB))
        (void)buf_addf(out, " (%zu %s)", jobs, said[jobs == 1 ? SAID_JOB : SAID_JOBS][in]);
}

void incident_title(const struct incident *i,
                    enum alert_what what,
                    enum message_language in,
                    struct buf *out)
{
    (void)buf_addf(out, "[%s%s%s] ", alert_severity_names[i->severity],
                   what == ALERT_OPENED ? "" : ", ",
                   what == ALERT_RESOLVED    ? said[SAID_RESOLVED][in]
                   : what == ALERT_ESCALATED ? said[SAID_ESCALATED][in]
                   : what == ALERT_GREW      ? said[SAID_GREW][in]
                                             : "");
    incident_sentence(i, in, out);
}

static bool is_before(const struct alert *a, const struct alert *b)
{
    return a->since < b->since || (a->since == b->since && a < b);
}

/* GPU-seconds of this alert alone: what another one of the same job counts is not counted again. */
static double alert_cost(const struct incident *i, const struct alert *a, usec_t now)
{
    usec_t from = a->since, end = a->open ? now : a->ended_at;
    bool ended = false;
    if (a->of != ALERT_OF_JOB)
        return 0;
    for (size_t k = 0; k < i->alerts.n; k++) {
        const struct alert *b = incident_alert(i, k);
        usec_t until = b->open ? now : b->ended_at;
        if (b->of != ALERT_OF_JOB || !str_eq(b->name, a->name))
            continue;
        ended = ended || b->lost > 0;
        if (b != a && !b->keep && is_before(b, a) && until > from)
            from = until;
    }
    return ended || a->keep ? a->lost
           : end > from     ? a->gpus * (double)(end - from) / (double)USEC_SEC
                            : 0;
}

double incident_gpu_hours(const struct incident *i, usec_t now)
{
    double seconds = 0;
    for (size_t k = 0; k < i->alerts.n; k++)
        seconds += alert_cost(i, incident_alert(i, k), now);
    return seconds / 3600;
}

/* ---- the message ---- */

/* The curve, where the sentence is about the alert of a metric: any other alert of the job has that
 * fact beside its own. */
static void payload_curve(const struct alert *a, struct jout *j)
{
    _cleanup_(json_unrefp) json_t *args = NULL;
    struct curve c;
    if (!a->open || !a->args || !strstr(str_or(a->text, ""), "{metric_alert_says}") ||
        json_parse(a->args, strlen(a->args), ALERT_ARGS_MAX, &args, NULL) < 0 ||
        !curve_from_text(json_get_str(args, "metric_alert_curve", NULL), &c))
        return;
    jout_open(j, "curve", '{');
    jout_str(j, "metric", c.metric);
    jout_real(j, "limit", c.limit);
    jout_open(j, "points", '[');
    for (size_t i = 0; i < c.n; i++)
        jout_real(j, NULL, c.v[i]);
    jout_close(j, ']');
    jout_close(j, '}');
}

static void payload_alert(const struct alert *a, struct jout *j)
{
    struct buf text = BUF_INIT(SENTENCE_MAX), zh = BUF_INIT(SENTENCE_MAX);
    alert_sentence(a, MESSAGE_ENGLISH, false, &text);
    alert_sentence(a, MESSAGE_CHINESE, false, &zh);
    jout_open(j, NULL, '{');
    jout_str(j, "id", a->id);
    jout_str(j, "rule", a->rule);
    jout_str(j, "severity", alert_severity_names[a->severity]);
    jout_str(j, "kind", alert_of_names[a->of]);
    jout_str(j, "name", a->name);
    jout_str(j, "user", a->owner);
    jout_str(j, "project", a->project);
    jout_bool(j, "open", a->open);
    jout_time(j, "since", a->since);
    jout_time(j, "ended_at", a->ended_at);
    jout_str(j, "text", buf_str(&text));
    jout_str(j, "text_zh", buf_str(&zh));
    payload_curve(a, j);
    jout_close(j, '}');
    buf_release(&text);
    buf_release(&zh);
}

static void payload_lines(const struct incident *i,
                          enum message_language in,
                          const char *key,
                          size_t most,
                          struct jout *j)
{
    const struct alert *first = incident_first(i);
    jout_open(j, key, '[');
    for (size_t k = 0; k < i->alerts.n && k < most; k++) {
        struct buf line = BUF_INIT(SENTENCE_MAX);
        const struct alert *a = incident_alert(i, k);
        if (a != first)
            alert_sentence(a, in, false, &line);
        else
            alert_sentence(a, in, true, &line);
        if (line.len)
            jout_str(j, NULL, buf_str(&line));
        buf_release(&line);
    }
    if (i->alerts.n > most) {
        char more[64];
        text_printf(more, "+ %zu %s", i->alerts.n - most, said[SAID_MORE][in]);
        jout_str(j, NULL, more);
    }
    jout_close(j, ']');
}

static void payload_incident(const struct incident *i, size_t most, usec_t now, struct jout *j)
{
    jout_open(j, "incident", '{');
    jout_str(j, "id", i->id);
    jout_str(j, "cause", i->cause);
    jout_str(j, "severity", alert_severity_names[i->severity]);
    jout_bool(j, "open", i->open);
    jout_time(j, "opened_at", i->opened_at);
    jout_time(j, "closed_at", i->closed_at);
    jout_int(j, "jobs", (int64_t)incident_jobs(i));
    jout_real(j, "gpu_hours", incident_gpu_hours(i, now));
    jout_int(j, "alerts_total", (int64_t)i->alerts.n + i->left_out);
    jout_open(j, "alerts", '[');
    for (size_t k = 0; k < i->alerts.n && k < most; k++)
        payload_alert(incident_alert(i, k), j);
    jout_close(j, ']');
    jout_close(j, '}');
}

static void payload_head(const char *id, enum alert_what what, usec_t now, struct jout *j)
{
    char type[40];
    text_printf(type, "incident.%s", alert_what_names[what]);
    jout_open(j, NULL, '{');
    jout_str(j, "id", id);
    jout_str(j, "type", what == ALERT_TEST ? "test" : type);
    jout_time(j, "timestamp", now);
}

static void payload_of(const struct incident *i,
                       enum alert_what what,
                       const char *id,
                       size_t most,
                       usec_t now,
                       struct buf *out)
{
    struct jout j = jout_begin(out);
    payload_head(id, what, now, &j);
    payload_incident(i, most, now, &j);
    for (int in = MESSAGE_ENGLISH; in <= MESSAGE_CHINESE; in++) {
        struct buf title = BUF_INIT(TITLE_MAX * 4);
        incident_title(i, what, (enum message_language)in, &title);
        jout_str(&j, in == MESSAGE_ENGLISH ? "title" : "title_zh", buf_str(&title));
        payload_lines(i, (enum message_language)in, in == MESSAGE_ENGLISH ? "lines" : "lines_zh",
                      most, &j);
        buf_release(&title);
    }
    jout_close(&j, '}');
}

/* Sentences may be long: with so many that the message is too large it lists fewer alerts. */
void incident_payload(const struct incident *i,
                      enum alert_what what,
                      const char *id,
                      usec_t now,
                      struct buf *out)
{
    for (size_t most = LISTED_MAX; most > 0; most /= 2) {
        struct buf text = BUF_INIT(ALERT_PAYLOAD_MAX);
        payload_of(i, what, id, most, now, &text);
        bool fits = !text.failed;
        if (fits)
            (void)buf_add(out, text.data, text.len);
        buf_release(&text);
        if (fits)
            return;
    }
}

void alert_test_payload(const char *id, const char *by, usec_t now, struct buf *out)
{
    struct jout j = jout_begin(out);
    payload_head(id, ALERT_TEST, now, &j);
    jout_null(&j, "incident");
    for (int in = MESSAGE_ENGLISH; in <= MESSAGE_CHINESE; in++) {
        jout_str(&j, in == MESSAGE_ENGLISH ? "title" : "title_zh", said[SAID_TEST][in]);
        jout_open(&j, in == MESSAGE_ENGLISH ? "lines" : "lines_zh", '[');
        jout_str(&j, NULL, by);
        jout_close(&j, ']');
    }
    jout_close(&j, '}');
}

/* SPDX-License-Identifier: Apache-2.0 */
/* alert_text.c - see alert_text.h. A rule brings its sentence in both languages; the words around
 * it are the table below. */
#include "core/alert/alert_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/text.h"

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
    SAID_REPORT,
    SAID_WHAT,
    SAID_WHEN,
    SAID_UNTIL,
    SAID_OPEN,
    SAID_SEVERITY,
    SAID_CAUSE,
    SAID_COST,
    SAID_HOURS,
    SAID_ALERTS,
    SAID_EVIDENCE,
    SAID_DONE,
    SAID_ACKED,
    SAID_NOBODY,
    SAID_TOLD,
    SAID_FIX,
    SAID_HIDDEN,
    SAID_TEST
};
static const char *const said[][2] = {
    [SAID_RESOLVED] = {"resolved", "已恢复"},
    [SAID_ESCALATED] = {"nobody acknowledged it", "无人确认"},
    [SAID_GREW] = {"worse", "加重"},
    [SAID_JOB] = {"job", "个作业"},
    [SAID_JOBS] = {"jobs", "个作业"},
    [SAID_MORE] = {"more", "更多"},
    [SAID_REPORT] = {"Incident", "事件"},
    [SAID_WHAT] = {"What", "经过"},
    [SAID_WHEN] = {"From", "开始"},
    [SAID_UNTIL] = {"Until", "结束"},
    [SAID_OPEN] = {"it is open", "尚未结束"},
    [SAID_SEVERITY] = {"Severity", "级别"},
    [SAID_CAUSE] = {"Cause", "原因对象"},
    [SAID_COST] = {"Cost", "损失"},
    [SAID_HOURS] = {"GPU-hours", "GPU 小时"},
    [SAID_ALERTS] = {"Alerts", "告警"},
    [SAID_EVIDENCE] = {"Evidence", "证据"},
    [SAID_DONE] = {"What was done", "处理"},
    [SAID_ACKED] = {"acknowledged by", "确认人"},
    [SAID_NOBODY] = {"nobody has acknowledged anything", "无人确认"},
    [SAID_TOLD] = {"told to", "已通知"},
    [SAID_FIX] = {"fix", "建议"},
    [SAID_HIDDEN] = {"alerts that you may not see", "条告警无权查看"},
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

static void fill_hole(const char *hole, size_t n, const json_t *args, struct buf *out)
{
    _cleanup_(freep) char *name = xstrndup(hole, n);
    char *how = strchr(name, ':');
    if (how)
        *how++ = 0;
    const json_t *v = json_object_get(args, name);
    if (json_is_string(v))
        put_plain(json_string_value(v), out);
    else if (json_is_number(v))
        put_number(json_number_value(v), how, out);
    else
        (void)buf_adds(out, "?");
}

void alert_fill(const char *text, const char *args, struct buf *out)
{
    _cleanup_(json_unrefp) json_t *o = NULL;
    if (!args || json_parse(args, strlen(args), ALERT_ARGS_MAX, &o, NULL) < 0)
        o = json_object();
    for (const char *open; (open = strchr(text, '{'));) {
        size_t n = strcspn(open + 1, "}");
        if (!open[1 + n])
            break;
        (void)buf_add(out, text, (size_t)(open - text));
        fill_hole(open + 1, n, o, out);
        text = open + n + 2;
    }
    (void)buf_adds(out, text);
}

void alert_sentence(const struct alert *a, enum message_language in, bool is_fix, struct buf *out)
{
    const char *zh = is_fix ? a->fix_zh : a->zh, *en = is_fix ? a->fix : a->text;
    alert_fill(str_or(in == MESSAGE_CHINESE && zh ? zh : en, ""), a->args, out);
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

void incident_title(const struct incident *i,
                    enum alert_what what,
                    enum message_language in,
                    struct buf *out)
{
    const struct alert *first = incident_first(i);
    size_t jobs = incident_jobs(i);
    (void)buf_addf(out, "[%s%s%s] ", alert_severity_names[i->severity],
                   what == ALERT_OPENED ? "" : ", ",
                   what == ALERT_RESOLVED    ? said[SAID_RESOLVED][in]
                   : what == ALERT_ESCALATED ? said[SAID_ESCALATED][in]
                   : what == ALERT_GREW      ? said[SAID_GREW][in]
                                             : "");
    if (first)
        alert_sentence(first, in, false, out);
    if (jobs > 0 && (jobs > 1 || first->of != ALERT_OF_JOB))
        (void)buf_addf(out, " (%zu %s)", jobs, said[jobs == 1 ? SAID_JOB : SAID_JOBS][in]);
}

double incident_gpu_hours(const struct incident *i, usec_t now)
{
    double hours = 0;
    for (size_t k = 0; k < i->alerts.n; k++) {
        const struct alert *a = incident_alert(i, k);
        usec_t end = a->open ? now : a->ended_at;
        bool counts = a->of == ALERT_OF_JOB && !a->keep && end > a->since;
        if (counts)
            hours += a->gpus * (double)(end - a->since) / (double)USEC_HOUR;
    }
    return hours;
}

/* ---- the message ---- */

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
    jout_close(j, '}');
    buf_release(&text);
    buf_release(&zh);
}

static void payload_lines(const struct incident *i,
                          enum message_language in,
                          const char *key,
                          struct jout *j)
{
    const struct alert *first = incident_first(i);
    jout_open(j, key, '[');
    for (size_t k = 0; k < i->alerts.n && k < LISTED_MAX; k++) {
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
    if (i->alerts.n > LISTED_MAX) {
        char more[64];
        text_printf(more, "+ %zu %s", i->alerts.n - LISTED_MAX, said[SAID_MORE][in]);
        jout_str(j, NULL, more);
    }
    jout_close(j, ']');
}

static void payload_incident(const struct incident *i, usec_t now, struct jout *j)
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
    for (size_t k = 0; k < i->alerts.n && k < LISTED_MAX; k++)
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

void incident_payload(const struct incident *i,
                      enum alert_what what,
                      const char *id,
                      usec_t now,
                      struct buf *out)
{
    struct jout j = jout_begin(out);
    payload_head(id, what, now, &j);
    payload_incident(i, now, &j);
    for (int in = MESSAGE_ENGLISH; in <= MESSAGE_CHINESE; in++) {
        struct buf title = BUF_INIT(TITLE_MAX * 4);
        incident_title(i, what, (enum message_language)in, &title);
        jout_str(&j, in == MESSAGE_ENGLISH ? "title" : "title_zh", buf_str(&title));
        payload_lines(i, (enum message_language)in, in == MESSAGE_ENGLISH ? "lines" : "lines_zh",
                      &j);
        buf_release(&title);
    }
    jout_close(&j, '}');
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

/* ---- the report ---- */

const char *incident_cause(const struct incident *i, incident_sees_f sees, void *arg)
{
    bool is_job = str_starts(i->cause, "job/");
    if (!sees || (!is_job && !str_starts(i->cause, "quota/")))
        return i->cause; /* everybody sees machines */
    for (size_t k = 0; k < i->alerts.n; k++) {
        const struct alert *a = incident_alert(i, k);
        _cleanup_(freep) char *about = xasprintf("%s/%s", alert_of_names[a->of], a->name);
        if (str_eq(about, i->cause) && sees(a, arg))
            return i->cause;
    }
    return alert_of_names[is_job ? ALERT_OF_JOB : ALERT_OF_QUOTA];
}

struct report {
    struct buf *out;
    bool is_html;
    enum message_language in;
    incident_sees_f sees; /* NULL: all alerts */
    void *arg;
};

/* Text of others: nothing in it is markup. */
static void report_text(const struct report *r, const char *text)
{
    for (; *text; text++) {
        const char *html = *text == '<'   ? "&lt;"
                           : *text == '>' ? "&gt;"
                           : *text == '&' ? "&amp;"
                           : *text == '"' ? "&quot;"
                                          : NULL;
        bool marks = strchr("\\`*_{}[]<>#|", *text) != NULL;
        if (r->is_html && html)
            (void)buf_adds(r->out, html);
        else if (!r->is_html && marks)
            (void)buf_addf(r->out, "\\%c", *text);
        else
            (void)buf_addc(r->out, (unsigned char)*text < ' ' ? ' ' : *text);
    }
}

static void report_heading(const struct report *r, int level, const char *text)
{
    if (r->is_html)
        (void)buf_addf(r->out, "<h%d>", level);
    else
        (void)buf_addf(r->out, "\n%s ", level == 1 ? "#" : "##");
    report_text(r, text);
    if (r->is_html)
        (void)buf_addf(r->out, "</h%d>\n", level);
    else
        (void)buf_adds(r->out, "\n\n");
}

static void report_item(const struct report *r, const char *label, const char *text)
{
    (void)buf_adds(r->out, r->is_html ? "<li>" : "- ");
    if (label) {
        report_text(r, label);
        (void)buf_adds(r->out, ": ");
    }
    report_text(r, text);
    (void)buf_adds(r->out, r->is_html ? "</li>\n" : "\n");
}

static void report_list(const struct report *r, bool opens)
{
    if (r->is_html)
        (void)buf_adds(r->out, opens ? "<ul>\n" : "</ul>\n");
}

static void report_summary(const struct report *r, const struct incident *i, usec_t now)
{
    char at[CLOCK_TEXT_MAX], cost[64];
    report_list(r, true);
    report_item(r, said[SAID_SEVERITY][r->in], alert_severity_names[i->severity]);
    report_item(r, said[SAID_CAUSE][r->in], incident_cause(i, r->sees, r->arg));
    report_item(r, said[SAID_WHEN][r->in], clock_to_string(i->opened_at, at));
    report_item(r, said[SAID_UNTIL][r->in],
                i->open ? said[SAID_OPEN][r->in] : clock_to_string(i->closed_at, at));
    text_printf(cost, "%.2f %s", incident_gpu_hours(i, now), said[SAID_HOURS][r->in]);
    report_item(r, said[SAID_COST][r->in], cost);
    report_list(r, false);
}

static void report_alert(const struct report *r, const struct alert *a)
{
    struct buf text = BUF_INIT(2 * SENTENCE_MAX), fix = BUF_INIT(SENTENCE_MAX);
    char since[CLOCK_TEXT_MAX], end[CLOCK_TEXT_MAX];
    (void)buf_addf(&text, "%s %s%s%s %s: ", a->id, clock_to_string(a->since, since),
                   a->open ? "" : " - ", a->open ? "" : clock_to_string(a->ended_at, end), a->rule);
    alert_sentence(a, r->in, false, &text);
    alert_sentence(a, r->in, true, &fix);
    report_item(r, NULL, buf_str(&text));
    if (fix.len)
        report_item(r, said[SAID_FIX][r->in], buf_str(&fix));
    buf_release(&text);
    buf_release(&fix);
}

static bool report_shows(const struct report *r, const struct alert *a)
{
    return !r->sees || r->sees(a, r->arg);
}

/* What was done about the alerts that the reader may see: who looks after the others, and what he
 * noted there, is as hidden as they are. */
static void report_done(const struct report *r, const struct incident *i)
{
    char at[CLOCK_TEXT_MAX];
    size_t acks = 0;
    report_list(r, true);
    for (size_t k = 0; k < i->alerts.n; k++) {
        const struct alert *a = incident_alert(i, k);
        if (!a->acked_at || !report_shows(r, a))
            continue;
        _cleanup_(freep) char *text =
            xasprintf("%s %s %s%s%s", a->id, clock_to_string(a->acked_at, at),
                      str_or(a->acked_by, "?"), a->ack_note ? ": " : "", str_or(a->ack_note, ""));
        report_item(r, said[SAID_ACKED][r->in], text);
        acks++;
    }
    if (!acks)
        report_item(r, NULL, said[SAID_NOBODY][r->in]);
    for (size_t k = 0; k < i->told.n; k++)
        report_item(r, said[SAID_TOLD][r->in], i->told.v[k]);
    report_list(r, false);
}

void incident_report(const struct incident *i,
                     bool is_html,
                     enum message_language in,
                     usec_t now,
                     incident_sees_f sees,
                     void *arg,
                     struct buf *out)
{
    struct report r = {.out = out, .is_html = is_html, .in = in, .sees = sees, .arg = arg};
    _cleanup_(freep) char *title = xasprintf("%s %s", said[SAID_REPORT][in], i->id);
    size_t hidden = 0;
    if (is_html)
        (void)buf_adds(out, "<!doctype html>\n<meta charset=\"utf-8\">\n<title>Argus</title>\n");
    report_heading(&r, 1, title);
    report_summary(&r, i, now);
    report_heading(&r, 2, said[SAID_WHAT][in]);
    report_list(&r, true);
    for (size_t k = 0; k < i->alerts.n; k++)
        if (report_shows(&r, incident_alert(i, k)))
            report_alert(&r, incident_alert(i, k));
        else
            hidden++;
    if (hidden) {
        _cleanup_(freep) char *text = xasprintf("%zu %s", hidden, said[SAID_HIDDEN][in]);
        report_item(&r, NULL, text);
    }
    report_list(&r, false);
    report_heading(&r, 2, said[SAID_EVIDENCE][in]);
    report_list(&r, true);
    for (size_t k = 0; k < i->alerts.n && k < LISTED_MAX; k++)
        if (report_shows(&r, incident_alert(i, k)))
            report_item(&r, incident_alert(i, k)->id, str_or(incident_alert(i, k)->args, "{}"));
    report_list(&r, false);
    report_heading(&r, 2, said[SAID_DONE][in]);
    report_done(&r, i);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* alert_report.c - the report of an incident, in Markdown or HTML and in two languages: what, when,
 * evidence, what argusd and people did by the events that tell it, who was told, what it cost; see
 * alert_text.h. */
#include <stdlib.h>
#include <string.h>

#include "base/message.h"
#include "base/report.h"
#include "base/str.h"
#include "base/text.h"
#include "core/alert/alert_text.h"

enum { SENTENCE_MAX = 4096, EVIDENCE_MAX = 20 };

enum report_word {
    TOLD_REPORT,
    TOLD_WHAT,
    TOLD_WHEN,
    TOLD_UNTIL,
    TOLD_OPEN,
    TOLD_SEVERITY,
    TOLD_CAUSE,
    TOLD_COST,
    TOLD_HOURS,
    TOLD_EVIDENCE,
    TOLD_DONE,
    TOLD_NO_ACT,
    TOLD_MORE_ACTS,
    TOLD_ACKED,
    TOLD_NOBODY,
    TOLD_NO_ROUTE,
    TOLD_FIX,
    TOLD_HIDDEN,
    TOLD_IS,
    TOLD_COMMA,
};
static const char *const report_words[][2] = {
    [TOLD_REPORT] = {"Incident", "事故"},
    [TOLD_WHAT] = {"What", "经过"},
    [TOLD_WHEN] = {"From", "开始"},
    [TOLD_UNTIL] = {"Until", "结束"},
    [TOLD_OPEN] = {"it is open", "尚未结束"},
    [TOLD_SEVERITY] = {"Severity", "级别"},
    [TOLD_CAUSE] = {"Cause", "原因对象"},
    [TOLD_COST] = {"Cost", "损失"},
    [TOLD_HOURS] = {"GPU-hours", "GPU 小时"},
    [TOLD_EVIDENCE] = {"Evidence", "证据"},
    [TOLD_DONE] = {"What was done", "处理"},
    [TOLD_NO_ACT] = {"no event tells of an act of argusd or of people",
                     "没有事件记录 argusd 或人员的操作"},
    [TOLD_MORE_ACTS] = {"others are left out here: argus events has them",
                        "其余从略，可用 argus events 查看"},
    [TOLD_ACKED] = {"acknowledged by", "确认人"},
    [TOLD_NOBODY] = {"nobody has acknowledged anything", "无人确认"},
    [TOLD_NO_ROUTE] = {"no route of argus.yaml names a receiver for it",
                       "argus.yaml 中没有路由为其指定接收方"},
    [TOLD_FIX] = {"fix", "建议"},
    [TOLD_HIDDEN] = {"alerts that you may not see", "条告警无权查看"},
    [TOLD_IS] = {"is", "为"},
    [TOLD_COMMA] = {", ", "，"},
};

/* Codes of the catalogue. */
static const char *const told_words[] = {
    [TELLING_ON_THE_WAY] = "say_told_on_the_way", [TELLING_TAKEN] = "say_told_taken",
    [TELLING_REFUSED] = "say_told_refused",       [TELLING_GIVEN_UP] = "say_told_given_up",
    [TELLING_QUIET] = "say_told_quiet",           [TELLING_SILENCED] = "say_told_silenced",
    [TELLING_NOT_THERE] = "say_told_not_there",   [TELLING_FULL] = "say_told_full",
    [TELLING_SHARE] = "say_told_share",
};

const char *incident_cause(const struct incident *i, incident_sees_f sees, void *arg)
{
    enum alert_of of = str_starts(i->cause, "job/") ? ALERT_OF_JOB : ALERT_OF_QUOTA;
    const char *name = strchr(i->cause, '/');
    if (!sees || (of == ALERT_OF_QUOTA && !str_starts(i->cause, "quota/")))
        return i->cause; /* everybody sees machines */
    for (size_t k = 0; k < i->alerts.n; k++) {
        const struct alert *a = incident_alert(i, k);
        if (a->of == (int)of && str_eq(a->name, name + 1) && sees(a, arg))
            return i->cause;
    }
    return alert_of_names[of];
}

struct incident_told {
    struct report r;
    enum message_language in;
    incident_sees_f sees; /* NULL: all alerts */
    void *arg;
};

static bool incident_shows(const struct incident_told *r, const struct alert *a)
{
    return !r->sees || r->sees(a, r->arg);
}

static const char *severity_word(const struct incident_told *r, int severity)
{
    char code[40];
    text_printf(code, "severity_%s", alert_severity_names[severity]);
    return message_words(message_code(code), r->in);
}

/* In the reader's words; as it is where a row of the store has a fact that none knows any more. */
static const char *fact_word(const struct incident_told *r, const char *fact)
{
    char code[80];
    text_printf(code, "fact_%s", fact);
    const char *known = message_code(code);
    return known ? message_words(known, r->in) : fact;
}

static void incident_summary(const struct incident_told *r, const struct incident *i, usec_t now)
{
    char at[CLOCK_TEXT_MAX], cost[64];
    report_list(&r->r, true);
    report_item(&r->r, report_words[TOLD_SEVERITY][r->in], severity_word(r, i->severity));
    report_item(&r->r, report_words[TOLD_CAUSE][r->in], incident_cause(i, r->sees, r->arg));
    report_item(&r->r, report_words[TOLD_WHEN][r->in], clock_to_string(i->opened_at, at));
    report_item(&r->r, report_words[TOLD_UNTIL][r->in],
                i->open ? report_words[TOLD_OPEN][r->in] : clock_to_string(i->closed_at, at));
    text_printf(cost, "%.2f %s", incident_gpu_hours(i, now), report_words[TOLD_HOURS][r->in]);
    report_item(&r->r, report_words[TOLD_COST][r->in], cost);
    report_list(&r->r, false);
}

static void report_alert(const struct incident_told *r, const struct alert *a)
{
    struct buf text = BUF_INIT(2 * SENTENCE_MAX), fix = BUF_INIT(SENTENCE_MAX);
    char since[CLOCK_TEXT_MAX], end[CLOCK_TEXT_MAX];
    (void)buf_addf(&text, "%s %s%s%s %s: ", a->id, clock_to_string(a->since, since),
                   a->open ? "" : " - ", a->open ? "" : clock_to_string(a->ended_at, end), a->rule);
    alert_sentence(a, r->in, false, &text);
    alert_sentence(a, r->in, true, &fix);
    report_item(&r->r, NULL, buf_str(&text));
    if (fix.len)
        report_item(&r->r, report_words[TOLD_FIX][r->in], buf_str(&fix));
    buf_release(&text);
    buf_release(&fix);
}

static void report_value(const struct incident_told *r,
                         const struct alert *a,
                         const char *name,
                         const json_t *v,
                         struct buf *out)
{
    _cleanup_(freep) char *hole = xasprintf("{%s}", name);
    const char *word = json_string_value(v);
    if (str_eq(word, "yes") || str_eq(word, "no"))
        (void)buf_adds(out, fact_word(r, *word == 'y' ? "is_yes" : "is_no"));
    else
        alert_fill(hole, a->args, r->in, out);
}

/* What was seen of it, in the order of its facts: "state is offline, wanted is yes". */
static void report_evidence(const struct incident_told *r, const struct alert *a)
{
    _cleanup_(json_unrefp) json_t *args = NULL;
    struct buf text = BUF_INIT(2 * SENTENCE_MAX);
    const char *name;
    json_t *v;
    char at[CLOCK_TEXT_MAX];
    size_t n = 0;
    if (!a->args || json_parse(a->args, strlen(a->args), ALERT_ARGS_MAX, &args, NULL) < 0)
        args = json_object();
    (void)buf_addf(&text, "%s '%s' %s: ", alert_of_names[a->of], a->name,
                   clock_to_string(a->last_at, at));
    json_object_foreach (args, name, v) {
        if (str_eq(name, "name") || json_is_null(v))
            continue;
        (void)buf_addf(&text, "%s%s %s ", n++ > 0 ? report_words[TOLD_COMMA][r->in] : "",
                       fact_word(r, name), report_words[TOLD_IS][r->in]);
        report_value(r, a, name, v, &text);
    }
    report_item(&r->r, NULL, buf_str(&text));
    buf_release(&text);
}

void incident_act_release(struct incident_act *act)
{
    free(act->who);
    free(act->subject);
    free(act->from);
    free(act->to);
    free(act->text);
    *act = (struct incident_act){0};
}

/* "2026-01-02T03:04:05Z argusd, job/x RUNNING → QUEUED: its node is lost" */
static void report_act(const struct incident_told *r, const struct incident_act *act)
{
    char at[CLOCK_TEXT_MAX];
    bool moves = act->from && act->to && !str_eq(act->from, act->to);
    _cleanup_(freep) char *text = xasprintf(
        "%s %s%s%s%s%s%s%s: %s", clock_to_string(act->at, at), str_or(act->who, "?"),
        report_words[TOLD_COMMA][r->in], act->subject, moves ? " " : "", moves ? act->from : "",
        moves ? " → " : "", moves ? act->to : "", str_or(act->text, ""));
    report_item(&r->r, NULL, text);
}

static void report_acts(const struct incident_told *r, const struct incident_acts *acts)
{
    for (size_t k = 0; k < acts->n; k++)
        report_act(r, &acts->v[k]);
    if (!acts->n || acts->is_cut)
        report_item(&r->r, NULL, report_words[acts->is_cut ? TOLD_MORE_ACTS : TOLD_NO_ACT][r->in]);
}

static void report_telling(const struct incident_told *r, const struct telling *t)
{
    char at[CLOCK_TEXT_MAX];
    _cleanup_(freep) char *text =
        xasprintf("%s: %s%s%s%s%s%s", t->receiver, message_words(told_words[t->state], r->in),
                  t->why ? " (" : "", str_or(t->why, ""), t->why ? ")" : "", t->at ? ", " : "",
                  t->at ? clock_to_string(t->at, at) : "");
    report_item(&r->r, NULL, text);
}

/* What was done about the alerts that the reader may see: who looks after the others, and what he
 * noted there, is as hidden as they are. */
static void report_done(const struct incident_told *r,
                        const struct incident *i,
                        const struct incident_acts *acts)
{
    char at[CLOCK_TEXT_MAX];
    size_t acks = 0;
    report_list(&r->r, true);
    report_acts(r, acts);
    for (size_t k = 0; k < i->alerts.n; k++) {
        const struct alert *a = incident_alert(i, k);
        if (!a->acked_at || !incident_shows(r, a))
            continue;
        _cleanup_(freep) char *text =
            xasprintf("%s %s %s%s%s", a->id, clock_to_string(a->acked_at, at),
                      str_or(a->acked_by, "?"), a->ack_note ? ": " : "", str_or(a->ack_note, ""));
        report_item(&r->r, report_words[TOLD_ACKED][r->in], text);
        acks++;
    }
    if (!acks)
        report_item(&r->r, NULL, report_words[TOLD_NOBODY][r->in]);
    for (size_t k = 0; k < i->tellings.n; k++)
        report_telling(r, incident_telling_at(i, k));
    if (!i->tellings.n)
        report_item(&r->r, NULL, report_words[TOLD_NO_ROUTE][r->in]);
    report_list(&r->r, false);
}

void incident_report(const struct incident *i,
                     const struct incident_acts *acts,
                     bool is_html,
                     enum message_language in,
                     usec_t now,
                     incident_sees_f sees,
                     void *arg,
                     struct buf *out)
{
    struct incident_told r = {
        .r = {.out = out, .is_html = is_html}, .in = in, .sees = sees, .arg = arg};
    _cleanup_(freep) char *title = xasprintf("%s %s", report_words[TOLD_REPORT][in], i->id);
    size_t hidden = 0;
    report_begin(&r.r, title);
    incident_summary(&r, i, now);
    report_heading(&r.r, report_words[TOLD_WHAT][in]);
    report_list(&r.r, true);
    for (size_t k = 0; k < i->alerts.n; k++)
        if (incident_shows(&r, incident_alert(i, k)))
            report_alert(&r, incident_alert(i, k));
        else
            hidden++;
    if (hidden) {
        _cleanup_(freep) char *text = xasprintf("%zu %s", hidden, report_words[TOLD_HIDDEN][in]);
        report_item(&r.r, NULL, text);
    }
    report_list(&r.r, false);
    report_heading(&r.r, report_words[TOLD_EVIDENCE][in]);
    report_list(&r.r, true);
    for (size_t k = 0; k < i->alerts.n && k < EVIDENCE_MAX; k++)
        if (incident_shows(&r, incident_alert(i, k)))
            report_evidence(&r, incident_alert(i, k));
    report_list(&r.r, false);
    report_heading(&r.r, report_words[TOLD_DONE][in]);
    report_done(&r, i, acts);
}

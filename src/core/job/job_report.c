/* SPDX-License-Identifier: Apache-2.0 */
/* job_report.c - a job as its page tells it, part by part, as a report; see job_report.h. */
#include "core/job/job_report.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"

enum { QUOTES_MAX = 40, CHECKPOINTS_MAX = 20, SPEC_LINES_MAX = 500 };

struct job_told {
    struct report r;
    enum message_language in;
    const json_t *page;
};

static const char *told_label(const struct job_told *t, const char *code)
{
    return message_words(code, t->in);
}

static void told_item(const struct job_told *t, const char *code, const char *text)
{
    if (text && *text)
        report_item(&t->r, told_label(t, code), text);
}

static void told_heading(const struct job_told *t, const char *code)
{
    report_heading(&t->r, told_label(t, code));
}

static void told_number(const struct job_told *t, const char *code, const json_t *v)
{
    if (!json_is_number(v))
        return;
    _cleanup_(freep) char *text = xasprintf("%.4g", json_number_value(v));
    told_item(t, code, text);
}

/* ---- what happened ---- */

static void told_exit(const struct job_told *t)
{
    const json_t *x = json_get_object(t->page, "exit");
    const char *signal = json_get_str(x, "signal", "");
    if (!x)
        return;
    _cleanup_(freep) char *code = json_is_integer(json_object_get(x, "code"))
                                      ? xasprintf(" %" PRId64, json_get_int(x, "code", 0))
                                      : xstrdup("");
    _cleanup_(freep) char *text =
        xasprintf("%s%s%s%s", json_get_str(x, "cause", ""), code, *signal ? ", " : "", signal);
    told_item(t, "report_exit", text);
}

static void told_nodes(const struct job_told *t)
{
    struct buf names = BUF_INIT(64 << 10);
    const json_t *v;
    size_t i;
    json_array_foreach (json_get_array(t->page, "nodes"), i, v)
        (void)buf_addf(&names, "%s%s", i ? ", " : "", json_get_str(v, "name", ""));
    told_item(t, "report_nodes", buf_str(&names));
    buf_release(&names);
}

static void told_what(const struct job_told *t)
{
    const json_t *p = t->page;
    _cleanup_(freep) char *who =
        xasprintf("%s, %s", json_get_str(p, "user", ""), json_get_str(p, "project", ""));
    _cleanup_(freep) char *gang =
        xasprintf("%" PRId64 " × %g (%s)", json_get_int(p, "nnodes", 0),
                  json_get_real(p, "n_gpus_per_node", 0), json_get_str(p, "workload", ""));
    told_heading(t, "report_what");
    report_paragraph(&t->r, json_get_str(json_get_object(p, "reason"), "text", ""));
    report_list(&t->r, true);
    told_item(t, "report_state", json_get_str(p, "state", ""));
    told_item(t, "report_who", who);
    told_item(t, "report_gang", gang);
    told_nodes(t);
    told_item(t, "report_queued", json_get_str(p, "queued_at", NULL));
    told_item(t, "report_started", json_get_str(p, "started_at", NULL));
    told_item(t, "report_ended", json_get_str(p, "ended_at", NULL));
    told_exit(t);
    report_list(&t->r, false);
}

static void told_attempts(const struct job_told *t)
{
    const json_t *v;
    size_t i;
    if (!json_array_size(json_get_array(t->page, "attempts")))
        return;
    told_heading(t, "report_attempts");
    report_list(&t->r, true);
    json_array_foreach (json_get_array(t->page, "attempts"), i, v) {
        const char *began = json_get_str(v, "started_at", NULL), *end = json_get_str(v, "end", "");
        _cleanup_(freep) char *name = xasprintf("%" PRId64, json_get_int(v, "k", 0));
        _cleanup_(freep) char *text =
            xasprintf("%s%s%s - %s%s%s", json_get_str(v, "state", ""), began ? ", " : "",
                      str_or(began, ""), json_get_str(v, "ended_at", ""), *end ? ": " : "", end);
        report_item(&t->r, name, text);
    }
    report_list(&t->r, false);
}

/* ---- why ---- */

static void told_quotes(const struct job_told *t, const char *code, const json_t *quotes)
{
    const json_t *v;
    size_t i;
    if (!json_array_size(quotes))
        return;
    told_heading(t, code);
    report_quote(&t->r, true);
    json_array_foreach (quotes, i, v) {
        if (i == QUOTES_MAX)
            break;
        _cleanup_(freep) char *line =
            xasprintf("%s:%" PRId64 ": %s", json_get_str(v, "source", ""),
                      json_get_int(v, "line", 0), json_get_str(v, "text", ""));
        report_quoted(&t->r, line);
    }
    report_quote(&t->r, false);
}

/* "key × 0.5", "key = 4", "key + 1024". */
static void told_change(const struct job_told *t, const json_t *change)
{
    static const char *const acts[][2] = {{"set", "="}, {"scale", "×"}, {"add", "+"}};
    for (size_t i = 0; i < array_len(acts); i++) {
        const char *value = json_get_str(change, acts[i][0], NULL);
        if (!value)
            continue;
        _cleanup_(freep) char *text =
            xasprintf("%s %s %s", json_get_str(change, "key", ""), acts[i][1], value);
        told_item(t, "report_fix", text);
    }
}

static void told_cause(const struct job_told *t)
{
    const json_t *f = json_get_object(t->page, "finding"), *v;
    const json_t *second = json_get_object(f, "second");
    size_t i;
    if (!f)
        return;
    told_heading(t, "report_cause");
    report_paragraph(&t->r, json_get_str(f, "sentence", ""));
    _cleanup_(freep) char *class = xasprintf("%s (%.0f %%)", json_get_str(f, "class", ""),
                                             100 * json_get_real(f, "confidence", 1));
    _cleanup_(freep) char *other =
        second ? xasprintf("%s (%.0f %%)", json_get_str(second, "class", ""),
                           100 * json_get_real(second, "confidence", 0))
               : NULL;
    report_list(&t->r, true);
    report_item(&t->r, NULL, class);
    told_item(t, "report_nodes", json_get_str(f, "node", NULL));
    told_item(t, "report_second", other);
    told_item(t, "report_advice", json_get_str(f, "advice", NULL));
    json_array_foreach (json_get_array(f, "patch"), i, v)
        told_change(t, v);
    report_list(&t->r, false);
    told_quotes(t, "report_evidence", json_get_array(f, "evidence"));
    told_quotes(t, "report_after", json_get_array(f, "after"));
}

/* ---- what it cost, and what there is ---- */

/* "productive 812, detect 3, …": the parts that are not empty. */
static void told_recovery(const struct job_told *t)
{
    static const char *const words[] = {"productive", "detect", "diagnose", "queue",
                                        "start",      "redo",   "other"};
    const json_t *r = json_get_object(t->page, "recovery");
    double ettr = json_get_real(r, "ettr", NAN);
    struct buf parts = BUF_INIT(4096);
    if (!isfinite(ettr))
        return;
    for (size_t i = 0; i < array_len(words); i++) {
        _cleanup_(freep) char *key = xasprintf("%s_s", words[i]);
        double s = json_get_real(r, key, 0);
        if (s >= 0.5)
            (void)buf_addf(&parts, "%s%s %.0f", parts.len ? ", " : "", words[i], s);
    }
    _cleanup_(freep) char *percent = xasprintf("%.0f %%", 100 * ettr);
    told_item(t, "report_ettr", percent);
    told_item(t, "report_parts", buf_str(&parts));
    told_number(t, "report_mttr", json_object_get(r, "mttr_s"));
    buf_release(&parts);
}

static void told_effect(const struct job_told *t)
{
    const json_t *good = json_get_object(t->page, "goodput");
    double ratio = json_get_real(good, "ratio", NAN);
    _cleanup_(freep) char *percent = isfinite(ratio) ? xasprintf("%.0f %%", 100 * ratio) : NULL;
    told_heading(t, "report_effect");
    report_list(&t->r, true);
    told_number(t, "report_held", json_object_get(t->page, "gpu_hours"));
    told_number(t, "report_idle", json_object_get(t->page, "gpu_idle_hours"));
    told_item(t, "report_goodput", percent);
    told_number(t, "report_steps_lost", json_object_get(good, "steps_lost"));
    told_recovery(t);
    report_list(&t->r, false);
}

static void told_curve(const struct job_told *t, const char *code, const json_t *curve)
{
    if (!json_is_number(json_object_get(curve, "value")))
        return;
    _cleanup_(freep) char *text =
        xasprintf("%s %.4g", json_get_str(curve, "key", ""), json_get_real(curve, "value", 0));
    told_item(t, code, text);
}

static void told_training(const struct job_told *t)
{
    const json_t *m = json_get_object(t->page, "metrics");
    int64_t total = json_get_int(m, "total_steps", 0);
    if (!m)
        return;
    _cleanup_(freep) char *of = total > 0 ? xasprintf(" / %" PRId64, total) : xstrdup("");
    _cleanup_(freep) char *step = xasprintf("%" PRId64 "%s", json_get_int(m, "step", 0), of);
    told_heading(t, "report_training");
    report_list(&t->r, true);
    told_item(t, "report_step", step);
    told_curve(t, "report_reward", json_get_object(m, "reward"));
    told_curve(t, "report_validation", json_get_object(m, "validation"));
    report_list(&t->r, false);
}

/* The newest ones. */
static void told_checkpoints(const struct job_told *t)
{
    const json_t *all = json_get_array(t->page, "checkpoints");
    size_t n = json_array_size(all);
    if (!n)
        return;
    told_heading(t, "report_checkpoints");
    report_list(&t->r, true);
    for (size_t i = n; i > 0 && n - i < CHECKPOINTS_MAX; i--) {
        const json_t *c = json_array_get(all, i - 1);
        const char *why = json_get_str(c, "why", "");
        _cleanup_(freep) char *step = xasprintf("%" PRId64, json_get_int(c, "step", 0));
        _cleanup_(freep) char *text =
            xasprintf("%s%s%s", json_get_str(c, "state", ""), *why ? ": " : "", why);
        report_item(&t->r, step, text);
    }
    report_list(&t->r, false);
}

static void told_proof(const struct job_told *t)
{
    const json_t *p = json_get_object(t->page, "proof"), *v;
    size_t i;
    told_heading(t, "report_proof");
    report_list(&t->r, true);
    told_item(t, "report_driver", json_get_str(p, "driver_node", NULL));
    json_array_foreach (json_get_array(t->page, "snapshots"), i, v) {
        _cleanup_(freep) char *text =
            xasprintf("%s %s: %s", json_get_str(v, "key", ""), json_get_str(v, "name", ""),
                      json_get_str(v, "hash", ""));
        told_item(t, "report_code", text);
    }
    report_list(&t->r, false);
}

static void told_spec(const struct job_told *t)
{
    const char *at = json_get_str(t->page, "spec", "");
    told_heading(t, "report_spec");
    report_quote(&t->r, true);
    for (int n = 0; *at && n < SPEC_LINES_MAX; n++) {
        size_t len = strcspn(at, "\n");
        _cleanup_(freep) char *line = xstrndup(at, len);
        report_quoted(&t->r, line);
        at += len + (at[len] == '\n');
    }
    report_quote(&t->r, false);
}

void job_report(const json_t *page, bool is_html, enum message_language in, struct buf *out)
{
    const struct job_told t = {.r = {.out = out, .is_html = is_html}, .in = in, .page = page};
    const char *name = json_get_str(page, "name", NULL), *id = json_get_str(page, "id", "");
    _cleanup_(freep) char *title = name ? xasprintf("%s (%s)", name, id) : xstrdup(id);
    report_begin(&t.r, title);
    told_what(&t);
    told_cause(&t);
    told_attempts(&t);
    told_effect(&t);
    told_training(&t);
    told_checkpoints(&t);
    told_proof(&t);
    told_spec(&t);
}

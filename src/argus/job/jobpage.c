/* SPDX-License-Identifier: Apache-2.0 */
/* jobpage.c - what `argus status` shows. A line whose facts the server did not
 * give is left out; a path is never cut, so that it can be copied. See jobpage.h. */
#include "argus/job/jobpage.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "argus/job/jobview.h"
#include "argus/job/verdictview.h"
#include "argus/show/curve.h"
#include "argus/show/member.h"
#include "argus/show/text.h"
#include "base/str.h"
#include "base/text.h"
#include "core/metric/metric.h"

enum { LABEL_WIDTH = 12, VALUE_MAX = 1 << 14 };

struct page {
    struct cli *cli;
    const json_t *job;
    const struct when *w;
};

static void jobpage_line(const struct page *p,
                         const char *label,
                         enum style style,
                         const char *value)
{
    if (!value || !*value)
        return;
    const struct term *t = &p->cli->term;
    const char *name = msg(t->lang, label);
    struct buf clean = BUF_INIT(VALUE_MAX), folded = BUF_INIT(2 * VALUE_MAX);
    text_clean(&clean, value); /* a longer one is cut */
    int pad = LABEL_WIDTH - text_width(name);
    if (t->width > 2 * LABEL_WIDTH && LABEL_WIDTH + text_width(buf_str(&clean)) > t->width)
        text_wrap(&folded, buf_str(&clean), t->width, LABEL_WIDTH);
    (void)fprintf(p->cli->out, "%s%s%s%*s%s%s%s\n", term_on(t, STYLE_DIM), name,
                  term_off(t, STYLE_DIM), pad > 1 ? pad : 1, "", term_on(t, style),
                  buf_str(folded.len ? &folded : &clean), term_off(t, style));
    buf_release(&clean);
    buf_release(&folded);
}

/* Takes the value. */
static void line_owned(const struct page *p, const char *label, enum style style, char *value)
{
    jobpage_line(p, label, style, value);
    free(value);
}

static void time_line(const struct page *p, const char *label, const char *key)
{
    char text[WHEN_TEXT_MAX];
    usec_t at = when_get(p->job, key);
    jobpage_line(p, label, STYLE_PLAIN, at ? when_point(p->w, at, text) : "");
}

static void print_head(const struct page *p)
{
    const char *name = json_get_str(p->job, "name", "");
    const char *state = member_str(p->job, "state");
    int64_t position = json_get_int(p->job, "position", 0);
    line_owned(
        p, "say_l_job", STYLE_BOLD,
        xasprintf("%s%s%s%s", member_str(p->job, "id"), *name ? " (" : "", name, *name ? ")" : ""));
    line_owned(p, "say_l_state", jobview_style(state), jobview_state(p->job));
    line_owned(p, "say_l_reason", STYLE_PLAIN, jobview_reason(p->job));
    if (position > 0)
        line_owned(p, "say_l_position", STYLE_PLAIN, xasprintf("%" PRId64, position));
    const char *project = json_get_str(p->job, "project", "");
    line_owned(
        p, "say_l_owner", STYLE_PLAIN,
        xasprintf("%s%s%s", member_str(p->job, "user"), *project ? ", project " : "", project));
    char *gang = jobview_gang(p->job);
    line_owned(p, "say_l_gang", STYLE_PLAIN,
               xasprintf("%s GPU, %s", gang, member_str(p->job, "workload")));
    free(gang);
}

static void print_proof(const struct page *p)
{
    const json_t *proof = json_get_object(p->job, "proof");
    const json_t *on_worker = json_object_get(proof, "driver_on_worker");
    const json_t *driver = json_get_object(p->job, "driver");
    const char *head = member_str(proof, "head_ip");
    const char *ip = json_get_str(proof, "driver_node_ip", member_str(driver, "ip"));
    const char *texts[] = {member_str(driver, "node"), ip, head};
    const char *bad[] = {head};
    char text[512];
    enum message_language lang = p->cli->term.lang;
    if (json_is_true(on_worker))
        jobpage_line(p, "say_l_proof", STYLE_GREEN,
                     msg_fill(lang, "say_driver_ok", texts, text, sizeof(text)));
    else if (json_is_false(on_worker))
        jobpage_line(p, "say_l_proof", STYLE_RED,
                     msg_fill(lang, "say_driver_bad", bad, text, sizeof(text)));
    else if (when_get(p->job, "started_at") && !when_get(p->job, "ended_at"))
        jobpage_line(p, "say_l_proof", STYLE_PLAIN, msg(lang, "say_driver_unknown"));
}

static char *joined(const json_t *list)
{
    struct buf out = BUF_INIT(VALUE_MAX);
    size_t i;
    const json_t *item;
    json_array_foreach (list, i, item)
        (void)buf_addf(&out, "%s%s", i ? "," : "", str_or(json_string_value(item), "-"));
    return buf_take(&out); /* more nodes than that: the first of them */
}

/* Which verl its processes imported, and of which snapshot; or what was wrong with it. */
static void print_imports(const struct page *p)
{
    const json_t *imports = json_get_object(json_get_object(p->job, "proof"), "imports");
    const char *bad = json_get_str(imports, "mismatch", NULL);
    const char *file = json_get_str(imports, "file", NULL);
    const char *snapshot = json_get_str(imports, "snapshot", "");
    const char *hash = json_get_str(imports, "hash", "");
    if (bad) {
        jobpage_line(p, "say_l_imports", STYLE_RED, bad);
        return;
    }
    if (!file)
        return;
    _cleanup_(freep) char *from = xasprintf("%s%s%s%s%s%s", file, *snapshot ? " = " : "", snapshot,
                                            *hash ? " (" : "", hash, *hash ? ")" : "");
    _cleanup_(freep) char *nodes = joined(json_get_array(imports, "nodes"));
    const char *texts[] = {json_get_str(imports, "verl", "-"), from, nodes};
    _cleanup_(freep) char *text = xmalloc(VALUE_MAX);
    jobpage_line(p, "say_l_imports", STYLE_GREEN,
                 msg_fill(p->cli->term.lang, "say_import_ok", texts, text, VALUE_MAX));
}

static void print_places(const struct page *p)
{
    const json_t *driver = json_get_object(p->job, "driver");
    const char *node = json_get_str(driver, "node", NULL);
    const char *ip = json_get_str(driver, "ip", "");
    int64_t pid = json_get_int(driver, "pid", 0);
    line_owned(p, "say_l_nodes", STYLE_PLAIN, jobview_nodes(p->job));
    if (node && *node && pid > 0)
        line_owned(p, "say_l_driver", STYLE_PLAIN,
                   xasprintf("%s (%s), pid %" PRId64, node, ip, pid));
    else if (node && *node)
        line_owned(p, "say_l_driver", STYLE_PLAIN, xasprintf("%s (%s)", node, ip));
    print_proof(p);
    print_imports(p);
}

static void print_times(const struct page *p)
{
    char point[WHEN_TEXT_MAX], lasted[WHEN_TEXT_MAX];
    usec_t start = when_get(p->job, "started_at"), end = when_get(p->job, "ended_at");
    time_line(p, "say_l_queued", "queued_at");
    if (start) {
        when_point(p->w, start, point);
        when_lasted(p->w, start, end, lasted);
        line_owned(p, "say_l_started", STYLE_PLAIN,
                   xasprintf("%s, %s %s", point, end ? "ran" : "running for", lasted));
    }
    time_line(p, "say_l_ended", "ended_at");
    time_line(p, "say_l_deadline", "deadline");
}

/* How long an attempt waited until Ray had it, and where it was put. Nobody kept that of attempts
 * of an older argusd: what is not known is left out. */
static void print_attempt_place(const struct page *p, const json_t *attempt)
{
    enum message_language lang = p->cli->term.lang;
    char lasted[WHEN_TEXT_MAX], waited[128] = "";
    _cleanup_(buf_release) struct buf places = BUF_INIT(VALUE_MAX / 2);
    _cleanup_(freep) char *on = xmalloc(VALUE_MAX);
    usec_t from = when_get(attempt, "queued_at"), to = when_get(attempt, "accepted_at");
    if (!to)
        to = when_get(attempt, "started_at");
    if (!to)
        to = when_get(attempt, "ended_at"); /* Ray never had it */
    const char *spans[] = {when_lasted(p->w, from, to, lasted)};
    if (from)
        msg_fill(lang, "say_attempt_waited", spans, waited, sizeof(waited));
    jobview_add_places(&places, json_get_array(attempt, "nodes"), " (", " ");
    const char *names[] = {buf_str(&places)};
    on[0] = 0;
    if (places.len)
        msg_fill(lang, "say_attempt_on", names, on, VALUE_MAX);
    line_owned(p, NULL, STYLE_PLAIN, xasprintf("%s%s%s", waited, *waited && *on ? ", " : "", on));
}

/* Why an attempt failed, else how it ended. What the job tells of its newest attempt has a line of
 * its own: see print_finding(). */
static char *jobpage_attempt_why(const struct page *p, const json_t *attempt, bool is_newest)
{
    const json_t *finding = json_get_object(attempt, "finding");
    const char *end = json_get_str(attempt, "end", "");
    if (!finding || (is_newest && json_get_object(p->job, "finding")))
        return xstrdup(end);
    const char *class = member_str(finding, "class"), *says = json_get_str(finding, "sentence", "");
    if (!*says)
        says = end;
    return str_starts(says, class) ? xstrdup(says)
                                   : xasprintf("%s%s%s", class, *says ? ": " : "", says);
}

static void print_attempts(const struct page *p)
{
    const json_t *attempts = json_get_array(p->job, "attempts");
    char lasted[WHEN_TEXT_MAX];
    size_t i;
    json_t *a;
    json_array_foreach (attempts, i, a) {
        usec_t start = when_get(a, "started_at");
        when_lasted(p->w, start, when_get(a, "ended_at"), lasted);
        _cleanup_(freep) char *why = jobpage_attempt_why(p, a, i + 1 == json_array_size(attempts));
        line_owned(p, i ? NULL : "say_l_attempts", STYLE_PLAIN,
                   xasprintf("%" PRId64 "  %s  %s  Ray job %s%s%s",
                             json_get_int(a, "k", (int64_t)i + 1), member_str(a, "state"), lasted,
                             member_str(a, "ray_id"), *why ? ": " : "", why));
        print_attempt_place(p, a);
    }
    const json_t *restart = json_get_object(p->job, "restart");
    int64_t most = json_get_int(restart, "max", 0);
    char used[32], of[32], text[256];
    if (most <= 0)
        return;
    text_printf(used, "%" PRId64, json_get_int(restart, "failures", 0));
    text_printf(of, "%" PRId64, most);
    const char *numbers[] = {used, of};
    jobpage_line(p, "say_l_restarts", STYLE_PLAIN,
                 msg_fill(p->cli->term.lang, "say_restarts_of", numbers, text, sizeof(text)));
}

/* The sentence begins with the class, and most often with the node: neither is told twice. */
static void print_finding(const struct page *p, const json_t *finding)
{
    const char *class = member_str(finding, "class"), *node = json_get_str(finding, "node", "");
    const char *says = json_get_str(finding, "sentence", "");
    const char *rest = str_starts(says, class) ? says + strlen(class) : NULL;
    bool is_placed = rest && str_starts(rest, " on ");
    if (rest && !is_placed)
        says = rest + strspn(rest, ": ");
    line_owned(p, "say_l_finding", STYLE_RED,
               is_placed ? xstrdup(says)
                         : xasprintf("%s%s%s: %s", class, *node ? " on " : "", node,
                                     says && *says ? says : json_get_str(finding, "meaning", "-")));
    jobpage_line(p, NULL, STYLE_PLAIN, json_get_str(finding, "advice", ""));
}

static void print_end(const struct page *p)
{
    const json_t *end = json_get_object(p->job, "exit");
    const json_t *finding = json_get_object(p->job, "finding");
    const char *signal = json_get_str(end, "signal", "");
    int64_t code = json_get_int(end, "code", -1);
    if (end && code >= 0)
        line_owned(p, "say_l_exit", STYLE_PLAIN,
                   xasprintf("%s, code %" PRId64, member_str(end, "cause"), code));
    else if (end)
        line_owned(p, "say_l_exit", STYLE_PLAIN,
                   xasprintf("%s%s%s", member_str(end, "cause"), *signal ? ", " : "", signal));
    if (finding)
        print_finding(p, finding);
}

static void jobpage_verdict_line(void *page, const char *label, enum style style, const char *text)
{
    jobpage_line(page, label, style, text);
}

/* What is wrong with its training, and what to do; of one that is well, what nobody measures. */
static void print_verdict(const struct page *p)
{
    const json_t *v = json_get_object(p->job, "verdict"), *one;
    struct page lines = *p;
    struct buf blind = BUF_INIT(VALUE_MAX);
    size_t i;
    verdictview_print(p->cli, member_str(p->job, "id"), v, jobpage_verdict_line, &lines);
    json_array_foreach (json_get_array(v, "not_measured"), i, one)
        (void)buf_addf(&blind, "%s%s", i ? ", " : "", json_get_str(one, "figure", "-"));
    jobpage_line(p, "say_l_blind", STYLE_DIM, buf_str(&blind)); /* a few words: they fit */
    buf_release(&blind);
}

/* What the alerts of its spec and of its project came to. */
static void print_alerts(const struct page *p)
{
    enum message_language lang = p->cli->term.lang;
    _cleanup_(freep) char *text = xmalloc(VALUE_MAX);
    size_t i;
    const json_t *one;
    json_array_foreach (json_get_array(p->job, "metric_alerts"), i, one) {
        bool stands = json_is_true(json_object_get(one, "stands"));
        const char *says = member_str(one, "text");
        if (json_is_true(json_object_get(one, "of_project")))
            says = msg_fill(lang, "say_alert_of_project", &says, text, VALUE_MAX);
        jobpage_line(p, i ? NULL : "say_l_alerts", stands ? STYLE_RED : STYLE_PLAIN, says);
    }
}

/* The rank for which the others wait. */
static void print_slow_rank(const struct page *p)
{
    const json_t *slow = json_get_object(p->job, "slow_rank");
    jobpage_line(p, "say_l_rank", STYLE_RED, json_get_str(slow, "text", ""));
    jobpage_line(p, "say_l_advice", STYLE_PLAIN, json_get_str(slow, "fix", ""));
}

/* How its training goes. */
static void print_training(const struct page *p)
{
    static const struct {
        const char *label;
        const char *key;
    } curves[] = {
        {"say_l_reward", "reward"}, {"say_l_loss", "loss"}, {"say_l_validation", "validation"}};
    const json_t *m = json_get_object(p->job, "metrics");
    int width = p->cli->term.width ? p->cli->term.width - LABEL_WIDTH : 0;
    line_owned(p, "say_l_progress", STYLE_PLAIN, curve_progress(m, p->w));
    print_verdict(p);
    print_alerts(p);
    print_slow_rank(p);
    for (size_t i = 0; i < array_len(curves); i++)
        line_owned(p, curves[i].label, STYLE_PLAIN,
                   curve_line(json_get_object(m, curves[i].key), width ? width : 68));
    line_owned(p, "say_l_trouble", STYLE_RED, curve_trouble(m, p->cli->term.lang));
}

static void jobpage_span_of(const json_t *o, const char *key, char out[static CLOCK_TEXT_MAX])
{
    double s = json_get_real(o, key, 0);
    (void)span_to_string(s > 0 && s < 1e10 ? (usec_t)(s * (double)USEC_SEC) : 0, out);
}

/* As above; under 10 s with two digits, since a save may take milliseconds. */
static void short_span_of(const json_t *o, const char *key, char out[static CLOCK_TEXT_MAX])
{
    double s = json_get_real(o, key, 0);
    if (!(s < 10))
        jobpage_span_of(o, key, out);
    else if (s < 0.001)
        text_copy_to(out, CLOCK_TEXT_MAX, "<1ms");
    else if (s < 1)
        text_printf_to(out, CLOCK_TEXT_MAX, "%.0fms", s * 1000);
    else
        text_printf_to(out, CLOCK_TEXT_MAX, "%.1fs", s);
}

/* What its GPUs do now, where it runs and at least half of them are measured. */
static void print_use(const struct page *p)
{
    double use = json_get_real(p->job, "gpu_util", -1);
    char percent[32], text[128];
    const char *args[] = {percent};
    if (use < 0)
        return;
    text_printf(percent, "%.0f", use);
    jobpage_line(p, "say_l_use", STYLE_PLAIN,
                 msg_fill(p->cli->term.lang, "say_use", args, text, sizeof(text)));
}

/* The memory of the fullest of the job's GPUs, where somebody told it. */
static void print_memory(const struct page *p)
{
    const double gib = 1024.0 * 1024 * 1024;
    double most = json_get_real(p->job, "gpu_mem_max_bytes", -1);
    double total = json_get_real(p->job, "gpu_mem_total_bytes", -1);
    char used[32], whole[32], text[256];
    const char *args[] = {used, whole};
    if (most < 0)
        return;
    text_printf(used, "%.1f", most / gib);
    text_printf(whole, "%.1f", total / gib);
    jobpage_line(p, "say_l_gpus", STYLE_PLAIN,
                 msg_fill(p->cli->term.lang, total > 0 ? "say_mem_of" : "say_mem_peak", args, text,
                          sizeof(text)));
}

/* The energy of its GPUs over all attempts, where somebody told it. */
static void print_energy(const struct page *p)
{
    double kwh = json_get_real(p->job, "gpu_joules", -1) / 3.6e6;
    char used[32], text[128];
    const char *args[] = {used};
    if (kwh < 0)
        return;
    text_printf(used, "%.*f", kwh < 0.1 ? 4 : kwh < 10 ? 2 : 0, kwh);
    jobpage_line(p, "say_l_energy", STYLE_PLAIN,
                 msg_fill(p->cli->term.lang, "say_energy", args, text, sizeof(text)));
}

/* What restarts cost it, and how often it should save. */
static void print_goodput(const struct page *p)
{
    const json_t *g = json_get_object(p->job, "goodput");
    double ratio = json_get_real(g, "ratio", -1);
    int64_t freq = json_get_int(g, "save_freq", 0);
    char percent[32], held[CLOCK_TEXT_MAX], lost[32], save[CLOCK_TEXT_MAX], apart[CLOCK_TEXT_MAX];
    char steps[32], text[512];
    if (ratio < 0)
        return;
    text_printf(percent, "%.0f%%", 100 * ratio);
    text_printf(lost, "%" PRId64, json_get_int(g, "steps_lost", 0));
    text_printf(steps, "%" PRId64, freq);
    jobpage_span_of(g, "held_s", held);
    short_span_of(g, "save_s", save);
    jobpage_span_of(g, "mtbf_s", apart);
    const char *of_time[] = {percent, held, lost}, *of_saves[] = {steps, save, apart};
    enum message_language lang = p->cli->term.lang;
    jobpage_line(p, "say_l_goodput", STYLE_PLAIN,
                 msg_fill(lang, "say_goodput", of_time, text, sizeof(text)));
    bool is_rate = json_get_int(g, "failures", 2) > 1;
    if (freq > 0)
        jobpage_line(p, NULL, STYLE_PLAIN,
                     msg_fill(lang, is_rate ? "say_save_every" : "say_save_guess", of_saves, text,
                              sizeof(text)));
}

void jobpage_print_metrics(struct cli *cli, const json_t *job, const struct when *w)
{
    struct page p = {.cli = cli, .job = job, .w = w};
    const json_t *latest = json_get_object(json_get_object(job, "metrics"), "latest");
    jobpage_line(&p, "say_l_job", STYLE_BOLD, member_str(job, "id"));
    line_owned(&p, "say_l_state", jobview_style(member_str(job, "state")), jobview_state(job));
    print_training(&p);
    void *it = latest ? json_object_iter((json_t *)(uintptr_t)latest) : NULL;
    if (!it)
        cli_say(cli, "say_no_metrics", METRIC_LINE_EXAMPLE, "", "");
    for (int i = 0; it; it = json_object_iter_next((json_t *)(uintptr_t)latest, it), i++) {
        const json_t *v = json_object_iter_value(it);
        const char *key = json_object_iter_key(it);
        line_owned(&p, i ? NULL : "say_l_metrics", STYLE_PLAIN,
                   json_is_number(v) ? xasprintf("%s %.6g", key, json_number_value(v))
                                     : xasprintf("%s nan", key));
    }
}

void jobpage_print_load(struct cli *cli, const json_t *load)
{
    const double gib = 1024.0 * 1024 * 1024;
    struct page p = {.cli = cli};
    double cores = json_get_real(load, "job_cpu_cores", -1);
    double memory = json_get_real(load, "job_mem_bytes", -1);
    char used[32], resident[32], text[256];
    const char *args[] = {used, resident};
    if (cores < 0 || memory < 0)
        return;
    text_printf(used, "%.1f", cores);
    text_printf(resident, "%.1f", memory / gib);
    jobpage_line(&p, "say_l_load", STYLE_PLAIN,
                 msg_fill(cli->term.lang, "say_load_sum", args, text, sizeof(text)));
}

/* Why an archive failed; else how far the archive is, and where. */
static void print_archive(const struct page *p)
{
    const json_t *x = json_get_object(p->job, "archived");
    const char *state = json_get_str(x, "state", NULL);
    const char *more = json_get_str(x, "problem", json_get_str(x, "path", ""));
    if (state)
        line_owned(p, "say_l_archive", STYLE_PLAIN, xasprintf("%s: %s", state, more));
}

/* Each run: where it is seen, and why not all of it is there yet. */
static void print_trackers(const struct page *p)
{
    size_t i;
    const json_t *x;
    json_array_foreach (json_get_array(p->job, "trackers"), i, x) {
        const char *why = json_get_str(x, "problem", "");
        line_owned(p, i ? NULL : "say_l_trackers", STYLE_PLAIN,
                   xasprintf("%" PRId64 "  %s  %s, %s  %s%s%s", json_get_int(x, "attempt", 1),
                             member_str(x, "tracker"), member_str(x, "mode"),
                             member_str(x, "state"), json_get_str(x, "link", ""), *why ? ": " : "",
                             why));
    }
}

static void print_paths(const struct page *p)
{
    static const struct {
        const char *label;
        const char *key;
    } paths[] = {{"say_l_dir", "dir"},
                 {"say_l_log", "driver_log"},
                 {"say_l_config", "config"},
                 {"say_l_checkpoints", "checkpoints"},
                 {"say_l_metrics", "metrics"}};
    const json_t *all = json_get_object(p->job, "paths");
    for (size_t i = 0; i < array_len(paths); i++)
        jobpage_line(p, paths[i].label, STYLE_PLAIN, json_get_str(all, paths[i].key, ""));
    print_trackers(p);
    print_archive(p);
    if (!json_get_str(all, "dir", NULL))
        jobpage_line(p, "say_l_dir", STYLE_PLAIN, json_get_str(p->job, "output_dir", ""));
}

void jobpage_print(struct cli *cli, const json_t *job, const struct when *w)
{
    struct page p = {.cli = cli, .job = job, .w = w};
    print_head(&p);
    print_places(&p);
    print_times(&p);
    print_attempts(&p);
    print_end(&p);
    print_training(&p);
    print_use(&p);
    print_memory(&p);
    print_energy(&p);
    print_goodput(&p);
    print_paths(&p);
}

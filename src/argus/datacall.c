/* SPDX-License-Identifier: Apache-2.0 */
/* datacall.c - calls and tables of data sets and models; see datacall.h. What the server sends is
 * cleaned before it reaches the terminal. */
#include "argus/datacall.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "argus/follow.h"
#include "argus/jobview.h"
#include "argus/people.h"
#include "argus/table.h"
#include "argus/text.h"
#include "argus/waiting.h"
#include "base/str.h"

enum { LINE_MAX = 4096, TITLE_WIDTH = 12, PLAIN_WIDTH = 80 };

const char *datacall_size(int64_t bytes, char text[static DATACALL_SIZE_MAX])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double v = (double)bytes;
    size_t i = 0;
    while (v >= 1024 && i + 1 < array_len(units)) {
        v /= 1024;
        i++;
    }
    (void)snprintf(text, DATACALL_SIZE_MAX, i ? "%.1f %s" : "%.0f %s", v, units[i]); /* fits */
    return text;
}

/* ---- import ---- */

/* Each as it is: a comma is part of it. */
static void set_texts(json_t *body, const char *key, const struct strv *list)
{
    json_t *all = json_array();
    for (size_t i = 0; i < list->n; i++)
        (void)json_array_append_new(all, json_string(list->v[i])); /* fails for lack of memory */
    if (list->n)
        (void)json_object_set(body, key, all); /* as above */
    json_decref(all);
}

static json_t *form(const char *source, const struct datacall_import *o)
{
    json_t *body = json_object();
    _cleanup_(freep) char *pinned = o->revision ? xasprintf("%s@%s", source, o->revision) : NULL;
    people_set_text(body, "source", str_or(pinned, source));
    people_set_text(body, "name", o->name);
    people_set_text(body, "endpoint", o->endpoint);
    people_set_text(body, "sha256", o->sha256);
    people_set_text(body, "project", o->project);
    people_set_text(body, "pool", o->pool);
    people_set_text(body, "py_executable", o->python);
    set_texts(body, "include", &o->include);
    set_texts(body, "secrets", &o->secrets);
    if (o->is_common)
        (void)json_object_set_new(body, "common", json_true()); /* fails for lack of memory */
    if (o->in_place)
        (void)json_object_set_new(body, "in_place", json_true()); /* as above */
    return body;
}

static int stay(struct cli *cli, const char *job, bool follow, bool wait, struct err *err)
{
    if (follow) {
        _cleanup_(logout_release) struct logout logout = {0};
        int r = logout_init(&logout, cli->out, cli->term.is_tty, NULL, err);
        struct follow_opts f = {.query = "", .logout = &logout};
        return r < 0 ? r : follow_run(cli, job, &f, err);
    }
    if (!wait)
        return 0;
    _cleanup_(strv_release) struct strv ids = {0};
    strv_add(&ids, job);
    return waiting_run(cli, &ids, 0, OUTPUT_TABLE, err);
}

/* What POST answered: the entry, and its job to be followed. */
static int after(struct cli *cli,
                 const json_t *answer,
                 int output,
                 bool follow,
                 bool wait,
                 struct err *err)
{
    const char *job = json_get_str(answer, "job", "?");
    if (output >= OUTPUT_JSON)
        cli_emit(cli, answer, output);
    else
        (void)fprintf(cli->out, "%s %s\n", json_get_str(answer, "ref", "?"), job);
    if (!follow && !wait)
        cli_say(cli, MSG_NEXT_STEPS, job, job, job);
    (void)fflush(cli->out); /* what follows may take hours */
    return stay(cli, job, follow, wait, err);
}

int datacall_import(struct cli *cli,
                    const char *kind,
                    const char *source,
                    const struct datacall_import *o,
                    struct err *err)
{
    _cleanup_(json_unrefp) json_t *answer = NULL;
    if (!o->name)
        return err_set(err, ERR_USAGE, "say what it will be called: --name NAME");
    if (o->revision && !str_starts(source, "hf://"))
        return err_set(err, ERR_USAGE, "'--revision' goes with hf://owner/name only");
    int r = cli_open(cli, err);
    if (r >= 0)
        r = people_call(cli, "POST", kind, NULL, "", form(source, o), &answer, err);
    if (r < 0)
        return r;
    return after(cli, answer, o->output, o->follow, o->wait, err);
}

static json_t *preparation(const char *name, const struct datacall_preparation *o)
{
    json_t *body = json_object();
    people_set_text(body, "name", name);
    people_set_text(body, "with", o->with);
    people_set_text(body, "as", o->as);
    people_set_text(body, "project", o->project);
    people_set_text(body, "pool", o->pool);
    people_set_text(body, "py_executable", o->python);
    set_texts(body, "args", &o->args);
    set_texts(body, "secrets", &o->secrets);
    if (o->is_common)
        (void)json_object_set_new(body, "common", json_true()); /* fails for lack of memory */
    return body;
}

int datacall_prepare(struct cli *cli,
                     const char *name,
                     const struct datacall_preparation *o,
                     struct err *err)
{
    _cleanup_(json_unrefp) json_t *answer = NULL;
    if (!o->with)
        return err_set(err, ERR_USAGE, "say what prepares it: --with gsm8k, or --with SCRIPT");
    int r = cli_open(cli, err);
    if (r >= 0)
        r = people_call(cli, "POST", "datasets:prepare", NULL, "", preparation(name, o), &answer,
                        err);
    return r < 0 ? r : after(cli, answer, o->output, o->follow, o->wait, err);
}

int datacall_remove(struct cli *cli, const char *kind, const char *name, struct err *err)
{
    _cleanup_(json_unrefp) json_t *answer = NULL;
    int r = cli_open(cli, err);
    if (r >= 0)
        r = people_call(cli, "DELETE", kind, name, "", NULL, &answer, err);
    if (r >= 0)
        (void)fprintf(cli->out, "%s removed\n", json_get_str(answer, "ref", name));
    return r;
}

/* ---- tables ---- */

static void add_state(struct table *t, const json_t *e)
{
    const json_t *p = json_get_object(e, "progress");
    const char *state = jobview_str(e, "state");
    int64_t have = json_get_int(p, "bytes", 0), total = json_get_int(p, "total", 0);
    char size[DATACALL_SIZE_MAX];
    if (str_eq(state, "importing") && total > 0)
        table_addf(t, STYLE_YELLOW, "importing %d%%", (int)(have * 100 / total));
    else if (str_eq(state, "importing") && have > 0)
        table_addf(t, STYLE_YELLOW, "importing %s", datacall_size(have, size));
    else
        table_add(t, str_eq(state, "ready") ? STYLE_PLAIN : STYLE_YELLOW, state);
}

static void add_owner(struct table *t, const json_t *e)
{
    bool common = json_get_bool(e, "common", false);
    table_add(t, common ? STYLE_DIM : STYLE_PLAIN, common ? "(common)" : jobview_str(e, "owner"));
}

static void add_size(struct table *t, const json_t *e)
{
    char size[DATACALL_SIZE_MAX];
    bool ready = str_eq(json_get_str(e, "state", ""), "ready");
    table_add(t, STYLE_PLAIN, ready ? datacall_size(json_get_int(e, "bytes", 0), size) : NULL);
}

/* "rl,sft": what it is fit for. */
static void add_fit(struct table *t, const json_t *e)
{
    struct buf out = BUF_INIT(256);
    const char *key;
    json_t *v;
    json_object_foreach (json_object_get(e, "fit"), key, v)
        if (json_get_bool(v, "fit", false))
            (void)buf_addf(&out, "%s%.20s", out.len ? "," : "", key); /* cut: fine */
    table_add(t, STYLE_PLAIN, out.len ? buf_str(&out) : NULL);
    buf_release(&out);
}

static void add_end(struct table *t, const json_t *e, const struct when *w)
{
    char text[WHEN_TEXT_MAX];
    table_add(t, STYLE_PLAIN, when_point(w, when_get(e, "created_at"), text));
    table_add(t, STYLE_PLAIN, json_get_str(e, "source", ""));
}

void datacall_dataset_row(struct table *t, const json_t *e, const struct when *w)
{
    int64_t rows = json_get_int(e, "rows", -1);
    table_add(t, STYLE_PLAIN, jobview_str(e, "ref"));
    add_owner(t, e);
    add_state(t, e);
    if (rows >= 0)
        table_addf(t, STYLE_PLAIN, "%" PRId64, rows);
    else
        table_add(t, STYLE_PLAIN, NULL);
    add_size(t, e);
    add_fit(t, e);
    add_end(t, e, w);
}

void datacall_model_row(struct table *t, const json_t *e, const struct when *w)
{
    double parameters = json_get_real(e, "parameters", 0);
    table_add(t, STYLE_PLAIN, jobview_str(e, "ref"));
    add_owner(t, e);
    add_state(t, e);
    add_size(t, e);
    if (parameters > 0)
        table_addf(t, STYLE_PLAIN, "%.3gB", parameters / 1e9);
    else
        table_add(t, STYLE_PLAIN, NULL);
    table_add(t, STYLE_PLAIN, json_get_str(e, "architecture", ""));
    add_end(t, e, w);
}

/* ---- one ---- */

static void line(struct cli *cli, const char *title, const char *fmt, ...) printf_like(3, 4);

static void line(struct cli *cli, const char *title, const char *fmt, ...)
{
    char text[LINE_MAX];
    struct buf clean = BUF_INIT(LINE_MAX * 2);
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap); /* cut: fine */
    va_end(ap);
    text_clean(&clean, text);
    (void)fprintf(cli->out, "%-*s %s\n", TITLE_WIDTH, title, buf_str(&clean));
    buf_release(&clean);
}

static void text_line(struct cli *cli, const char *title, const json_t *o, const char *key)
{
    const char *text = json_get_str(o, key, "");
    if (*text)
        line(cli, title, "%s", text);
}

static void print_progress(struct cli *cli, const json_t *e)
{
    const json_t *p = json_get_object(e, "progress");
    char have[DATACALL_SIZE_MAX], all[DATACALL_SIZE_MAX];
    int64_t bytes = json_get_int(p, "bytes", 0), total = json_get_int(p, "total", 0);
    if (p)
        line(cli, "progress", "%s: %s%s%s, %d of %d files", json_get_str(p, "phase", "?"),
             datacall_size(bytes, have), total ? " of " : "",
             total ? datacall_size(total, all) : "", (int)json_get_int(p, "files", 0),
             (int)json_get_int(p, "of", 0));
}

static void print_common(struct cli *cli, const json_t *e)
{
    char size[DATACALL_SIZE_MAX];
    line(cli, "name", "%s", jobview_str(e, "ref"));
    line(cli, "owner", "%s%s", jobview_str(e, "owner"),
         json_get_bool(e, "common", false) ? " (common)" : "");
    text_line(cli, "project", e, "project");
    line(cli, "state", "%s", jobview_str(e, "state"));
    print_progress(cli, e);
    text_line(cli, "path", e, "path");
    text_line(cli, "source", e, "source");
    text_line(cli, "revision", e, "revision");
    text_line(cli, "job", e, "job");
    line(cli, "size", "%s in %d files", datacall_size(json_get_int(e, "bytes", 0), size),
         (int)json_get_int(e, "files", 0));
    text_line(cli, "hash", e, "hash");
    text_line(cli, "note", e, "note");
}

static void print_fit(struct cli *cli, const json_t *e)
{
    const char *key;
    json_t *v, *name;
    json_object_foreach (json_object_get(e, "fit"), key, v) {
        struct buf out = BUF_INIT(1024);
        size_t i;
        json_array_foreach (json_get_array(v, "missing"), i, name)
            (void)buf_addf(&out, "%s%s", i ? ", " : "", str_or(json_string_value(name), "?"));
        if (json_get_bool(v, "fit", false))
            line(cli, key, "fit");
        else
            line(cli, key, "not fit: %s%s", out.len ? "missing " : "its format is not read",
                 buf_str(&out));
        buf_release(&out);
    }
}

static void print_columns(struct cli *cli, const json_t *about)
{
    size_t i;
    json_t *c;
    json_array_foreach (json_get_array(about, "columns"), i, c)
        line(cli, i ? "" : "columns", "%s: %s", jobview_str(c, "name"), jobview_str(c, "type"));
}

/* One line per row, cut to the screen. */
static void print_sample(struct cli *cli, const json_t *about)
{
    size_t i;
    json_t *row;
    int width = cli->term.width > 0 ? cli->term.width : PLAIN_WIDTH;
    json_array_foreach (json_get_array(about, "sample"), i, row) {
        _cleanup_(freep) char *text = json_dumps(row, JSON_COMPACT);
        struct buf clean = BUF_INIT(1 << 20), cut = BUF_INIT(1 << 20);
        text_clean(&clean, str_or(text, ""));
        text_cut(&cut, buf_str(&clean), width - TITLE_WIDTH - 1);
        (void)fprintf(cli->out, "%-*s %s\n", TITLE_WIDTH, i ? "" : "sample", buf_str(&cut));
        buf_release(&clean);
        buf_release(&cut);
    }
}

/* "train_file gsm8k@1 sha256:…": what there is of it. */
static void print_made_of(struct cli *cli, const char *title, const json_t *o)
{
    static const char *const keys[] = {"key", "name", "ref", "id", "path", "hash"};
    struct buf out = BUF_INIT(4096);
    for (size_t i = 0; i < array_len(keys); i++)
        if (json_get_str(o, keys[i], NULL))
            (void)buf_addf(&out, "%s%s", out.len ? " " : "",
                           json_get_str(o, keys[i], "")); /* cut */
    line(cli, title, "%s", buf_str(&out));
    buf_release(&out);
}

/* What argusd itself knows. */
static void print_recorded(struct cli *cli, const json_t *l)
{
    struct buf out = BUF_INIT(1024);
    const json_t *v;
    size_t i;
    if (json_get_str(l, "job", NULL)) {
        (void)buf_addf(&out, "job %s", json_get_str(l, "job", "")); /* cut: fine, as below */
        if (json_get_int(l, "attempt", 0))
            (void)buf_addf(&out, ", attempt %" PRId64, json_get_int(l, "attempt", 0));
        if (json_get_int(l, "step", 0))
            (void)buf_addf(&out, ", step %" PRId64, json_get_int(l, "step", 0));
        if (json_get_str(l, "merge", NULL))
            (void)buf_addf(&out, ", merged by job %s", json_get_str(l, "merge", ""));
        line(cli, "made by", "%s", buf_str(&out));
    }
    buf_release(&out);
    json_array_foreach (json_get_array(l, "snapshot"), i, v)
        print_made_of(cli, i ? "" : "of code", v);
    json_array_foreach (json_get_array(l, "data"), i, v)
        print_made_of(cli, i ? "" : "of data", v);
    if (json_get_int(l, "more_data", 0))
        line(cli, "", "and %" PRId64 " more", json_get_int(l, "more_data", 0));
    if (json_get_object(l, "model"))
        print_made_of(cli, "of model", json_get_object(l, "model"));
}

/* What who imported it says, and of a prepared data set all. */
static void print_said(struct cli *cli, const char *title, json_t *lineage)
{
    const char *key;
    json_t *v;
    json_object_foreach (lineage, key, v) {
        _cleanup_(freep) char *text =
            json_is_string(v) ? NULL : json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY);
        line(cli, title, "%s %s", key, text ? text : json_string_value(v));
    }
}

static void print_lineage(struct cli *cli, const json_t *e)
{
    json_t *lineage = json_object_get(e, "lineage");
    bool recorded = !strcmp(json_get_str(e, "lineage_by", ""), "argusd");
    if (!recorded || !json_get_str(lineage, "job", NULL)) {
        print_said(cli, recorded ? "from" : "said to be", lineage);
        return;
    }
    print_recorded(cli, lineage);
    print_said(cli, "said to be", json_object_get(lineage, "said"));
}

int datacall_show(struct cli *cli, const char *kind, const char *name, int output, struct err *err)
{
    _cleanup_(json_unrefp) json_t *e = NULL;
    int r = cli_open(cli, err);
    if (r >= 0)
        r = people_call(cli, "GET", kind, name, "", NULL, &e, err);
    if (r < 0)
        return r;
    if (output >= OUTPUT_JSON) {
        cli_emit(cli, e, output);
        return 0;
    }
    const json_t *about = json_get_object(e, "about");
    print_common(cli, e);
    if (json_object_get(e, "rows") && !json_is_null(json_object_get(e, "rows")))
        line(cli, "rows", "%" PRId64, json_get_int(e, "rows", 0));
    print_fit(cli, e);
    text_line(cli, "architecture", e, "architecture");
    if (json_get_int(e, "parameters", 0))
        line(cli, "parameters", "%" PRId64, json_get_int(e, "parameters", 0));
    print_lineage(cli, e);
    print_columns(cli, about);
    print_sample(cli, about);
    return 0;
}

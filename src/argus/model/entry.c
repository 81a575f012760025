/* SPDX-License-Identifier: Apache-2.0 */
/* entry.c - see entry.h. What the server sends is cleaned before it reaches the terminal. */
#include "argus/model/entry.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "argus/cli/command.h"
#include "argus/job/waiting.h"
#include "argus/log/follow.h"
#include "argus/show/member.h"
#include "argus/show/text.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"

enum { LINE_MAX = 4096, ROWS_SHOWN = 3, TITLE_WIDTH = 12, PLAIN_WIDTH = 80 };

/* ---- import ---- */

#define ROW(type_, member) .type = (type_), .offset = offsetof(struct entry_import, member)

const struct opt ENTRY_IMPORT_OPTS[] = {
    {.name = "name",
     ROW(OPT_TEXT, name),
     .arg = "NAME",
     .doc = "name that it gets",
     .to = "body:name",
     .need = "cli_say_called"},
    {.name = "revision",
     ROW(OPT_TEXT, revision),
     .arg = "REV",
     .doc = "branch, tag or commit of hf://; it is pinned to its commit [main]"},
    {.name = "endpoint",
     ROW(OPT_TEXT, endpoint),
     .arg = "URL",
     .doc = "the Hugging Face mirror, or S3",
     .to = "body:endpoint"},
    {.name = "sha256",
     ROW(OPT_TEXT, sha256),
     .arg = "HEX",
     .doc = "hash of the one file, where the source does not tell it",
     .to = "body:sha256"},
    {.name = "include",
     ROW(OPT_LIST, include),
     .arg = "PATTERN",
     .doc = "only files like this, *.parquet; may be given again",
     .to = "body:include"},
    {.name = "secret",
     ROW(OPT_LIST, secrets),
     .arg = "NAME",
     .doc = "a stored secret that the source needs: HF_TOKEN, AWS_SECRET_ACCESS_KEY …",
     .to = "body:secrets"},
    {.name = "project",
     ROW(OPT_TEXT, project),
     .arg = "NAME",
     .doc = "project of the job; its members see what is imported",
     .to = "body:project"},
    {.name = "pool",
     ROW(OPT_TEXT, pool),
     .arg = "POOL",
     .doc = "pool in which the job runs",
     .to = "body:pool"},
    {.name = "python",
     ROW(OPT_TEXT, python),
     .arg = "PATH",
     .doc = "Python on the shared root that has pyarrow, if the nodes' has none",
     .to = "body:py_executable"},
    {.name = "common",
     ROW(OPT_FLAG, is_common),
     .doc = "put it below common/, for everybody",
     .to = "body:common"},
    {.name = "in-place",
     ROW(OPT_FLAG, in_place),
     .doc = "leave a path where it is: only look at it",
     .to = "body:in_place"},
    {.letter = 'f',
     .name = "follow",
     ROW(OPT_FLAG, follow),
     .doc = "print the job's log to its end"},
    {.name = "wait", ROW(OPT_FLAG, wait), .doc = "return when the job has ended"},
    OPT_OUTPUT(struct entry_import),
};
const struct opt ENTRY_SHARE_OPTS[] = {
    {.name = "user",
     .type = OPT_NAMES,
     .arg = "USER",
     .doc = "a user who may see the entry; repeat the option, or separate names with commas",
     .to = "body:users"},
    {.name = "project",
     .type = OPT_NAMES,
     .arg = "PROJECT",
     .doc = "a project whose members may see the entry",
     .to = "body:projects"},
    {.name = "off", .type = OPT_FLAG, .doc = "take the permission back", .to = "body:off"},
};
static_assert(array_len(ENTRY_SHARE_OPTS) == ENTRY_SHARE_OPT_COUNT, "entry.h says how many");
static_assert(array_len(ENTRY_IMPORT_OPTS) == ENTRY_IMPORT_OPT_COUNT, "entry.h says how many");

static int entry_stay(struct cli *cli, const char *job, bool follow, bool wait, struct err *err)
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
int entry_follow(struct cli *cli,
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
        cli_say(cli, "say_next_steps", job, job, job);
    (void)fflush(cli->out); /* what follows may take hours */
    return entry_stay(cli, job, follow, wait, err);
}

int entry_import(struct cli *cli,
                 const char *path,
                 const char *source,
                 const struct entry_import *o,
                 struct err *err)
{
    _cleanup_(json_unrefp) json_t *answer = NULL;
    _cleanup_(freep) char *pinned = o->revision ? xasprintf("%s@%s", source, o->revision) : NULL;
    _cleanup_(json_unrefp) json_t *body = json_pack("{s:s}", "source", str_or(pinned, source));
    int r = ask_check(ENTRY_IMPORT_OPTS, ENTRY_IMPORT_OPT_COUNT, o, err);
    if (r >= 0 && o->revision && !str_starts(source, "hf://"))
        r = message_refuse(err, ERR_USAGE, "cli_revision_hf", MESSAGE_NO_ARGS);
    if (r >= 0)
        r = ask_fill(ENTRY_IMPORT_OPTS, ENTRY_IMPORT_OPT_COUNT, o, body, err);
    if (r >= 0)
        r = cli_open(cli, err);
    if (r >= 0)
        r = ask_send(cli, "POST", path, json_incref(body), 0, &answer, err);
    return r < 0 ? r : entry_follow(cli, answer, o->output, o->follow, o->wait, err);
}

/* ---- cells ---- */

void entry_state(struct table *t, const json_t *e, const struct when *w)
{
    (void)w;
    const json_t *p = json_get_object(e, "progress");
    const char *state = member_str(e, "state");
    int64_t have = json_get_int(p, "bytes", 0), total = json_get_int(p, "total", 0);
    char size[SIZE_TEXT_MAX];
    if (str_eq(state, "importing") && total > 0)
        table_addf(t, STYLE_YELLOW, "importing %d%%", (int)(have * 100 / total));
    else if (str_eq(state, "importing") && have > 0)
        table_addf(t, STYLE_YELLOW, "importing %s", size_text(have, size));
    else
        table_add(t, str_eq(state, "ready") ? STYLE_PLAIN : STYLE_YELLOW, state);
}

void entry_owner(struct table *t, const json_t *e, const struct when *w)
{
    (void)w;
    bool common = json_get_bool(e, "common", false);
    table_add(t, common ? STYLE_DIM : STYLE_PLAIN, common ? "(common)" : member_str(e, "owner"));
}

void entry_size(struct table *t, const json_t *e, const struct when *w)
{
    (void)w;
    char size[SIZE_TEXT_MAX];
    bool ready = str_eq(json_get_str(e, "state", ""), "ready");
    table_add(t, STYLE_PLAIN, ready ? size_text(json_get_int(e, "bytes", 0), size) : NULL);
}

/* ---- one ---- */

static void entry_line(struct cli *cli, const char *title, const char *fmt, ...) printf_like(3, 4);

static void entry_line(struct cli *cli, const char *title, const char *fmt, ...)
{
    char text[LINE_MAX];
    struct buf clean = BUF_INIT(LINE_MAX * 2);
    va_list ap;
    va_start(ap, fmt);
    text_vprintf(text, fmt, ap);
    va_end(ap);
    text_clean(&clean, text);
    (void)fprintf(cli->out, "%-*s %s\n", TITLE_WIDTH, title, buf_str(&clean));
    buf_release(&clean);
}

static void entry_text(struct cli *cli, const char *title, const json_t *o, const char *key)
{
    const char *text = json_get_str(o, key, "");
    if (*text)
        entry_line(cli, title, "%s", text);
}

static void entry_print_progress(struct cli *cli, const json_t *e)
{
    const json_t *p = json_get_object(e, "progress");
    char have[SIZE_TEXT_MAX], all[SIZE_TEXT_MAX];
    int64_t bytes = json_get_int(p, "bytes", 0), total = json_get_int(p, "total", 0);
    if (p)
        entry_line(cli, "progress", "%s: %s%s%s, %d of %d files", json_get_str(p, "phase", "?"),
                   size_text(bytes, have), total ? " of " : "", total ? size_text(total, all) : "",
                   (int)json_get_int(p, "files", 0), (int)json_get_int(p, "of", 0));
}

static void entry_print_common(struct cli *cli, const json_t *e)
{
    char size[SIZE_TEXT_MAX];
    entry_line(cli, "name", "%s", member_str(e, "ref"));
    entry_line(cli, "owner", "%s%s", member_str(e, "owner"),
               json_get_bool(e, "common", false) ? " (common)" : "");
    entry_text(cli, "project", e, "project");
    entry_line(cli, "state", "%s", member_str(e, "state"));
    entry_print_progress(cli, e);
    entry_text(cli, "path", e, "path");
    entry_text(cli, "source", e, "source");
    entry_text(cli, "revision", e, "revision");
    entry_text(cli, "job", e, "job");
    entry_line(cli, "size", "%s in %d files", size_text(json_get_int(e, "bytes", 0), size),
               (int)json_get_int(e, "files", 0));
    entry_text(cli, "hash", e, "hash");
    entry_text(cli, "note", e, "note");
}

static void entry_print_fit(struct cli *cli, const json_t *e)
{
    const char *key;
    json_t *v, *name;
    json_object_foreach (json_object_get(e, "fit"), key, v) {
        struct buf out = BUF_INIT(1024);
        size_t i;
        json_array_foreach (json_get_array(v, "missing"), i, name)
            (void)buf_addf(&out, "%s%s", i ? ", " : "", str_or(json_string_value(name), "?"));
        if (json_get_bool(v, "fit", false))
            entry_line(cli, key, "fit");
        else
            entry_line(cli, key, "not fit: %s%s", out.len ? "missing " : "its format is not read",
                       buf_str(&out));
        buf_release(&out);
    }
}

static void entry_print_columns(struct cli *cli, const json_t *about)
{
    size_t i;
    json_t *c;
    json_array_foreach (json_get_array(about, "columns"), i, c)
        entry_line(cli, i ? "" : "columns", "%s: %s", member_str(c, "name"), member_str(c, "type"));
}

static void entry_print_cell(struct cli *cli, const char *title, const char *name, json_t *value)
{
    int width = cli->term.width > 0 ? cli->term.width : PLAIN_WIDTH;
    _cleanup_(freep) char *text = json_is_string(value)
                                      ? xstrdup(json_string_value(value))
                                      : json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
    _cleanup_(freep) char *line = xasprintf("%s: %s", name, str_or(text, ""));
    struct buf clean = BUF_INIT(1 << 20), cut = BUF_INIT(1 << 20);
    text_clean(&clean, line);
    text_cut(&cut, buf_str(&clean), width - TITLE_WIDTH - 1);
    (void)fprintf(cli->out, "%-*s %s\n", TITLE_WIDTH, title, buf_str(&cut));
    buf_release(&clean);
    buf_release(&cut);
}

/* A few rows, a line per column: whole rows, each on one line, are cut where they begin to differ.
 */
static void entry_print_sample(struct cli *cli, const json_t *about)
{
    const json_t *rows = json_get_array(about, "sample");
    for (size_t i = 0; i < json_array_size(rows) && i < ROWS_SHOWN; i++) {
        _cleanup_(freep) char *title = xasprintf("row %zu", i + 1);
        const char *name, *first = title;
        json_t *value;
        json_object_foreach (json_array_get(rows, i), name, value) {
            entry_print_cell(cli, first, name, value);
            first = "";
        }
    }
    if (json_array_size(rows) > ROWS_SHOWN)
        cli_say(cli, "say_rows_more", "", "", "");
}

/* "train_file gsm8k@1 sha256:…": what there is of it. */
static void entry_print_made_of(struct cli *cli, const char *title, const json_t *o)
{
    static const char *const keys[] = {"key", "name", "ref", "id", "path", "hash"};
    struct buf out = BUF_INIT(4096);
    for (size_t i = 0; i < array_len(keys); i++)
        if (json_get_str(o, keys[i], NULL))
            (void)buf_addf(&out, "%s%s", out.len ? " " : "",
                           json_get_str(o, keys[i], "")); /* cut */
    entry_line(cli, title, "%s", buf_str(&out));
    buf_release(&out);
}

/* What argusd itself knows. */
static void entry_print_recorded(struct cli *cli, const json_t *l)
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
        entry_line(cli, "made by", "%s", buf_str(&out));
    }
    buf_release(&out);
    json_array_foreach (json_get_array(l, "snapshot"), i, v)
        entry_print_made_of(cli, i ? "" : "of code", v);
    json_array_foreach (json_get_array(l, "data"), i, v)
        entry_print_made_of(cli, i ? "" : "of data", v);
    if (json_get_int(l, "more_data", 0))
        entry_line(cli, "", "and %" PRId64 " more", json_get_int(l, "more_data", 0));
    if (json_get_object(l, "model"))
        entry_print_made_of(cli, "of model", json_get_object(l, "model"));
}

/* ---- what uses it ---- */

static void entry_user_keeps(struct table *t, const json_t *user, const struct when *w)
{
    bool keeps = json_get_bool(user, "keeps", false);
    table_add(t, keeps ? STYLE_YELLOW : STYLE_PLAIN,
              msg(w->lang, keeps ? "say_removal_refused" : "say_removal_breaks"));
}

static const struct column ENTRY_USER_COLUMNS[] = {
    {.title = "say_kind", .key = "kind"},
    {.title = "say_name", .flags = COLUMN_FLEX, .least = 12, .key = "name"},
    {.title = "say_owner", .flags = COLUMN_FLEX, .least = 6, .rank = 1, .key = "owner"},
    {.title = "say_fate", .draw = entry_user_keeps},
};

void entry_print_users(struct cli *cli, const json_t *plan, const struct seen *seen)
{
    const struct listing list = {.key = "users", COLUMNS(ENTRY_USER_COLUMNS)};
    char hidden[32];
    (void)seen;
    text_printf(hidden, "%" PRId64, json_get_int(plan, "hidden", 0));
    listing_print(cli, &list, plan, OUTPUT_TABLE, false);
    if (json_get_int(plan, "hidden", 0))
        cli_say(cli, "say_removal_hidden", hidden, "", "");
    else if (!json_array_size(json_get_array(plan, "users")))
        cli_say(cli, "say_removal_free", "", "", "");
}

/* ---- one of them ---- */

/* What who imported it says, and of a prepared data set all. */
static void entry_print_said(struct cli *cli, const char *title, json_t *lineage)
{
    const char *key;
    json_t *v;
    json_object_foreach (lineage, key, v) {
        _cleanup_(freep) char *text =
            json_is_string(v) ? NULL : json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY);
        entry_line(cli, title, "%s %s", key, text ? text : json_string_value(v));
    }
}

static void entry_print_lineage(struct cli *cli, const json_t *e)
{
    json_t *lineage = json_object_get(e, "lineage");
    bool recorded = !strcmp(json_get_str(e, "lineage_by", ""), "argusd");
    if (!recorded || !json_get_str(lineage, "job", NULL)) {
        entry_print_said(cli, recorded ? "from" : "said to be", lineage);
        return;
    }
    entry_print_recorded(cli, lineage);
    entry_print_said(cli, "said to be", json_object_get(lineage, "said"));
}

void entry_print(struct cli *cli, const json_t *e, const struct seen *seen)
{
    (void)seen;
    const json_t *about = json_get_object(e, "about");
    entry_print_common(cli, e);
    if (json_object_get(e, "rows") && !json_is_null(json_object_get(e, "rows")))
        entry_line(cli, "rows", "%" PRId64, json_get_int(e, "rows", 0));
    entry_print_fit(cli, e);
    entry_text(cli, "architecture", e, "architecture");
    if (json_get_int(e, "parameters", 0))
        entry_line(cli, "parameters", "%" PRId64, json_get_int(e, "parameters", 0));
    entry_print_lineage(cli, e);
    entry_print_columns(cli, about);
    entry_print_sample(cli, about);
}

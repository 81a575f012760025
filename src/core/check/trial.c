/* SPDX-License-Identifier: Apache-2.0 */
/* trial.c - the result of a trial, read from its file; see trial.h. Only known members are
 * shown, each with a ceiling. */
#include "core/check/trial.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"

enum { TRIAL_ARGS_MAX = 1000, SAYS_AROUND_MAX = 80 };

/* One finding: a message, or a sentence of a trial's program of before. The texts are owned. */
struct trial_finding_page {
    const char *class, *field; /* borrowed */
    const char *code;          /* the catalogue's; NULL: detail and hint are all there is */
    char *args, *detail, *hint;
};

/* Numbers and texts alone: the bytes come from a job's own environment. Heap. */
static char *trial_args(const json_t *args)
{
    struct message m;
    char text[TRIAL_ARGS_MAX];
    const char *key;
    json_t *v;
    message_begin(&m);
    json_object_foreach ((json_t *)(uintptr_t)args, key, v) {
        if (json_is_string(v))
            jout_str(&m.j, key, json_string_value(v));
        else if (json_is_integer(v))
            jout_int(&m.j, key, json_integer_value(v));
        else if (json_is_real(v))
            jout_real(&m.j, key, json_real_value(v));
    }
    message_end(&m, text, sizeof(text));
    return xstrdup(text);
}

static void trial_finding_fill(const json_t *f, struct trial_finding_page *ret)
{
    static const struct message_listener english = {.language = MESSAGE_ENGLISH};
    const json_t *args = json_get_object(f, "args");
    const char *code = args ? message_code(json_get_str(f, "code", "")) : NULL;
    *ret = (struct trial_finding_page){
        .class = json_get_str(f, "class", ""), .field = json_get_str(f, "field", ""), .code = code};
    if (!code) {
        ret->detail = xstrdup(json_get_str(f, "detail", ""));
        ret->hint = xstrdup(json_get_str(f, "hint", NULL));
        return;
    }
    struct message_page said;
    ret->args = trial_args(args);
    message_page(code, ret->args, &english, &said);
    ret->detail = xstrdup(said.text);
    ret->hint = xstrdup(said.fix);
    message_page_release(&said);
}

static void trial_finding_release(struct trial_finding_page *p)
{
    free(p->args);
    free(p->detail);
    free(p->hint);
}

/* As many as have room: all of them are in the result. */
static void trial_say_all(const struct field_list *found, struct trial_result *r)
{
    const struct trial_finding_page *v = found->v;
    struct message m;
    message_begin(&m);
    jout_int(&m.j, "count", (int64_t)found->n);
    jout_open(&m.j, "findings", '[');
    for (size_t i = 0; i < found->n; i++) {
        const char *text = v[i].code ? v[i].args : v[i].detail;
        if (m.buf.len + strlen(text) + SAYS_AROUND_MAX < sizeof(r->text))
            message_put(&m.j, NULL, v[i].code, text);
    }
    jout_close(&m.j, ']');
    message_end(&m, r->text, sizeof(r->text));
}

static void say_first(const struct field_list *found, struct trial_result *r)
{
    const struct trial_finding_page *v = found->v;
    bool is_one = found->n == 1 && *v->detail;
    r->message = found->n > 1 ? "trial_failed" : is_one ? v->code : "trial_silent";
    if (found->n > 1)
        trial_say_all(found, r);
    else
        text_copy(r->text, !is_one ? "{}" : v->code ? v->args : v->detail);
}

#define FOUND(member, ...) FIELD_AT(trial_finding_page, #member, FIELD_STR, member, __VA_ARGS__)
static const struct field found_rows[] = {
    FOUND(class, .flags = FIELD_ALWAYS),
    FOUND(field, .flags = FIELD_ALWAYS),
    FOUND(detail, .flags = FIELD_ALWAYS),
    FOUND(hint, .flags = 0),
    FOUND(code, .flags = FIELD_OMIT),
    FIELD_AT(trial_finding_page,
             "args",
             FIELD_JSON,
             args,
             .flags = FIELD_OMIT,
             .schema = MESSAGE_ARGS_SCHEMA),
};
static const struct field_table found_table = FIELD_TABLE(NULL, found_rows, trial_finding_page);

/* The parts are what the trial wrote, and left out where it wrote none. */
struct trial_page {
    bool ok;
    struct field_list findings;
    char *seconds, *versions, *row, *reward, *train_rows, *verl_at; /* owned */
};
#define NUMBER_OR_NULL "{\"type\":[\"number\",\"null\"]}"
#define SAID(what) "{\"description\":\"" what "\"}"
#define PART(member, text)                                                                         \
    FIELD_AT(trial_page, #member, FIELD_JSON, member, .flags = FIELD_OMIT, .schema = (text))
static const struct field trial_rows[] = {
    FIELD_AT(trial_page, "ok", FIELD_BOOL, ok),
    FIELD_AT(trial_page, "findings", FIELD_LIST, findings, .of = &found_table),
    PART(seconds, NUMBER_OR_NULL),
    PART(versions,
         "{\"type\":[\"object\",\"null\"],\"additionalProperties\":" SAID(
             "a version, by package") "}"),
    PART(row, SAID("the first row of the data")),
    PART(reward, SAID("what the reward gave for it")),
    PART(train_rows, NUMBER_OR_NULL),
    PART(verl_at, "{\"type\":[\"string\",\"null\"]}"),
};
const struct field_table trial_result_table = FIELD_TABLE("TrialResult", trial_rows, trial_page);

static struct field_list trial_findings(const json_t *findings, struct trial_finding_page *v)
{
    struct field_list list = {.v = v};
    for (; list.n < json_array_size(findings) && list.n < TRIAL_FINDINGS_MAX; list.n++)
        trial_finding_fill(json_array_get(findings, list.n), &v[list.n]);
    return list;
}

/* A member as it came; NULL: there is none, or too much. Heap. */
static char *trial_part(const json_t *root, const char *key)
{
    const json_t *v = json_object_get(root, key);
    char *text = v ? json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
    if (!text || strlen(text) < TRIAL_SHOWN_MAX / 8)
        return text;
    free(text);
    return NULL;
}

static char *shown(const json_t *root, const struct field_list *found, bool ok)
{
    struct trial_page page = {.ok = ok, .findings = *found};
    struct buf out = BUF_INIT(TRIAL_SHOWN_MAX);
    struct jout j = jout_begin(&out);
    for (size_t i = 0; i < array_len(trial_rows); i++)
        if (trial_rows[i].type == FIELD_JSON)
            *(char **)((char *)&page + trial_rows[i].offset) = trial_part(root, trial_rows[i].name);
    field_to_json(&trial_result_table, &page, FIELD_ALL, FIELD_PAGE, &j, NULL);
    page.findings = (struct field_list){0}; /* not the page's */
    field_release(&trial_result_table, &page);
    char *whole = buf_take_whole(&out);
    return whole ? whole
                 : xstrdup(ok ? "{\"ok\":true,\"findings\":[]}" : "{\"ok\":false,\"findings\":[]}");
}

int trial_read(const char *text,
               size_t len,
               const char *hash,
               struct trial_result *ret,
               struct err *err)
{
    _cleanup_(json_unrefp) json_t *root = NULL;
    *ret = (struct trial_result){0};
    int r = json_parse(text, len, TRIAL_RESULT_MAX, &root, err);
    if (r < 0 || !json_is_object(root))
        return message_refuse(err, -EINVAL, "trial_not_readable", MESSAGE_NO_ARGS);
    if (!str_eq(json_get_str(root, "hash", NULL), hash))
        return message_refuse(err, -ESTALE, "trial_of_other", MESSAGE_NO_ARGS);
    const json_t *findings = json_get_array(root, "findings");
    ret->ok = json_get_bool(root, "ok", false) && !json_array_size(findings);
    struct trial_finding_page v[TRIAL_FINDINGS_MAX];
    const struct field_list found = trial_findings(findings, v);
    if (!ret->ok) {
        say_first(&found, ret);
        trial_finding(findings, &ret->found);
    }
    ret->shown = shown(root, &found, ret->ok);
    for (size_t i = 0; i < found.n; i++)
        trial_finding_release(&v[i]);
    return 0;
}

int64_t trial_train_rows(const char *shown)
{
    _cleanup_(json_unrefp) json_t *root = NULL;
    if (!shown || json_parse(shown, strlen(shown), TRIAL_SHOWN_MAX, &root, NULL) < 0)
        return 0;
    int64_t rows = json_get_int(root, "train_rows", 0);
    return rows > 0 ? rows : 0;
}

void trial_result_release(struct trial_result *r)
{
    freep(&r->shown);
    finding_release(&r->found);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* trial.c - the result of a trial, read from its file; see trial.h. Only known members are
 * shown, each with a ceiling. */
#include "core/check/trial.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "base/text.h"

static void trial_say_all(const json_t *findings, struct trial_result *r)
{
    size_t n = json_array_size(findings), len = 0, i;
    json_t *f;
    if (n > 1)
        text_printf(r->sentence, "%zu findings: ", n);
    json_array_foreach (findings, i, f) {
        len = strlen(r->sentence);
        text_printf_to(r->sentence + len, sizeof(r->sentence) - len, "%s%s", i ? "; " : "",
                       json_get_str(f, "detail", "")); /* cut: all of them are in the result */
    }
    trial_finding(findings, &r->found);
    if (!*r->sentence)
        text_copy(r->sentence, r->found.evidence[0].text);
}

struct trial_finding_page {
    const char *class, *field, *detail, *hint;
};
#define FOUND(member, ...) FIELD_AT(trial_finding_page, #member, FIELD_STR, member, __VA_ARGS__)
static const struct field found_rows[] = {
    FOUND(class, .flags = FIELD_ALWAYS),
    FOUND(field, .flags = FIELD_ALWAYS),
    FOUND(detail, .flags = FIELD_ALWAYS),
    FOUND(hint, .flags = 0),
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
    for (; list.n < json_array_size(findings) && list.n < TRIAL_FINDINGS_MAX; list.n++) {
        const json_t *f = json_array_get(findings, list.n);
        v[list.n] = (struct trial_finding_page){.class = json_get_str(f, "class", ""),
                                                .field = json_get_str(f, "field", ""),
                                                .detail = json_get_str(f, "detail", ""),
                                                .hint = json_get_str(f, "hint", NULL)};
    }
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

static char *shown(const json_t *root, const json_t *findings, bool ok)
{
    struct trial_finding_page found[TRIAL_FINDINGS_MAX];
    struct trial_page page = {.ok = ok, .findings = trial_findings(findings, found)};
    struct buf out = BUF_INIT(TRIAL_SHOWN_MAX);
    struct jout j = jout_begin(&out);
    for (size_t i = 0; i < array_len(trial_rows); i++)
        if (trial_rows[i].type == FIELD_JSON)
            *(char **)((char *)&page + trial_rows[i].offset) = trial_part(root, trial_rows[i].name);
    field_to_json(&trial_result_table, &page, FIELD_ALL, FIELD_PAGE, &j, NULL);
    page.findings = (struct field_list){0}; /* not the page's */
    field_release(&trial_result_table, &page);
    if (!out.failed)
        return buf_take(&out);
    buf_release(&out);
    return xstrdup(ok ? "{\"ok\":true,\"findings\":[]}" : "{\"ok\":false,\"findings\":[]}");
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
        return err_set(err, -EINVAL, "the trial's result cannot be read");
    if (!str_eq(json_get_str(root, "hash", NULL), hash))
        return err_set(err, -ESTALE, "the trial's result is of something else");
    const json_t *findings = json_get_array(root, "findings");
    ret->ok = json_get_bool(root, "ok", false) && !json_array_size(findings);
    if (!ret->ok)
        trial_say_all(findings, ret);
    ret->shown = shown(root, findings, ret->ok);
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

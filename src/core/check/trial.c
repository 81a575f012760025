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

static enum finding_class class_of_trial(const char *word)
{
    int class = finding_class_from_string(word);
    bool fits = class >= 0 && finding_class_is((enum finding_class) class, FINDING_OF_TRIAL);
    return fits ? (enum finding_class) class : FINDING_CONFIG_ERROR;
}

static void say_first(const json_t *findings, struct trial_result *r)
{
    size_t n = json_array_size(findings), len = 0, i;
    json_t *f;
    r->class = class_of_trial(json_get_str(json_array_get(findings, 0), "class", ""));
    if (n > 1)
        text_printf(r->sentence, "%zu findings: ", n);
    json_array_foreach (findings, i, f) {
        len = strlen(r->sentence);
        text_printf_to(r->sentence + len, sizeof(r->sentence) - len, "%s%s", i ? "; " : "",
                       json_get_str(f, "detail", "")); /* cut: all of them are in the result */
    }
    if (!n)
        text_copy(r->sentence, "the trial failed and did not say why");
}

static void trial_put_findings(struct jout *j, const json_t *findings)
{
    size_t i;
    json_t *f;
    jout_open(j, "findings", '[');
    json_array_foreach (findings, i, f) {
        if (i >= TRIAL_FINDINGS_MAX)
            break;
        jout_open(j, NULL, '{');
        jout_str(j, "class", json_get_str(f, "class", ""));
        jout_str(j, "field", json_get_str(f, "field", ""));
        jout_str(j, "detail", json_get_str(f, "detail", ""));
        jout_str(j, "hint", json_get_str(f, "hint", NULL));
        jout_close(j, '}');
    }
    jout_close(j, ']');
}

static void trial_put_part(struct jout *j, const json_t *root, const char *key)
{
    const json_t *v = json_object_get(root, key);
    char *text = v ? json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
    if (text && strlen(text) < TRIAL_SHOWN_MAX / 8)
        jout_raw(j, key, text);
    free(text);
}

static char *shown(const json_t *root, const json_t *findings, bool ok)
{
    static const char *const parts[] = {"seconds", "versions",   "row",
                                        "reward",  "train_rows", "verl_at"};
    struct buf out = BUF_INIT(TRIAL_SHOWN_MAX);
    struct jout j = jout_begin(&out);
    jout_open(&j, NULL, '{');
    jout_bool(&j, "ok", ok);
    trial_put_findings(&j, findings);
    for (size_t i = 0; i < array_len(parts); i++)
        trial_put_part(&j, root, parts[i]);
    jout_close(&j, '}');
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
        say_first(findings, ret);
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
}

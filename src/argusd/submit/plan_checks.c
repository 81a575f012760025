/* SPDX-License-Identifier: Apache-2.0 */
/* plan_checks.c - see plan_checks.h. A problem belongs to the check that names its field; all
 * others are the spec's own. */
#include "argusd/submit/plan_checks.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"

static const struct field plan_check_rows[] = {
    FIELD_AT(plan_check, "", FIELD_INLINE, said, .of = &said_table),
    FIELD_AT(plan_check, "ok", FIELD_BOOL, ok, .doc = "false: problems says why"),
};
const struct field_table plan_check_table = FIELD_TABLE(NULL, plan_check_rows, plan_check);

enum check {
    CHECK_SPEC,
    CHECK_CODE,
    CHECK_DATA,
    CHECK_SECRETS,
    CHECK_FIT,
    CHECK_QUOTA,
    CHECK_SPACE
};

static const struct {
    const char *code;
    const char *fields;
} checks[] = {
    [CHECK_SPEC] = {"check_spec", ""},
    [CHECK_CODE] = {"check_code", "code,code_path,reward_fn_path,py_executable"},
    [CHECK_DATA] = {"check_data", "model_id,train_file,val_file,resume"},
    [CHECK_SECRETS] = {"check_secrets", "secrets,env"},
    [CHECK_FIT] = {"check_fit", "pool,nnodes,n_gpus_per_node,n_cpus_per_node,memory_per_node"},
    [CHECK_QUOTA] = {"check_quota", "project,priority"},
    [CHECK_SPACE] = {"check_space", "checkpoint"},
};

/* "checkpoint.keep_last" is of checkpoint. */
static enum check check_of(const char *field)
{
    _cleanup_(freep) char *key = xstrndup(field, strcspn(field, ".[ "));
    for (size_t i = 0; i < array_len(checks); i++)
        if (*key && str_list_has(checks[i].fields, key))
            return (enum check)i;
    return CHECK_SPEC;
}

struct field_list plan_checks(const struct api_eyes *eyes, const struct plan_checked *seen)
{
    struct plan_check *v = xcalloc(array_len(checks), sizeof(*v));
    bool wrong[array_len(checks)] = {0};
    for (size_t i = 0; i < seen->ps->n; i++)
        wrong[check_of(str_or(seen->ps->v[i].field, ""))] = true;
    wrong[CHECK_FIT] |= !seen->fits;
    wrong[CHECK_SPACE] |= seen->free && seen->checkpoint_bytes > seen->free;
    for (size_t i = 0; i < array_len(checks); i++) {
        v[i].ok = !wrong[i];
        saying_say(eyes, NULL, checks[i].code, "{}", &v[i].said);
    }
    return (struct field_list){.v = v, .n = array_len(checks)};
}

void plan_checks_release(struct field_list *list)
{
    struct plan_check *v = list->v;
    for (size_t i = 0; i < list->n; i++)
        said_release(&v[i].said);
    free(v);
    *list = (struct field_list){0};
}

/* SPDX-License-Identifier: Apache-2.0 */
/* spec_check.c - what the table of a JobSpec cannot say: keys that need or
 * exclude each other, and texts with a grammar of their own. See spec_table.h.
 * Every check appends and goes on, so that all problems are told at once. */
#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/message.h"
#include "base/str.h"
#include "base/text.h"
#include "core/spec/metric_alert.h"
#include "core/spec/restart.h"
#include "core/spec/snapshot.h"
#include "core/spec/spec_secret.h"
#include "core/spec/spec_table.h"
#include "core/spec/tracker.h"

bool spec_is_given(const struct node *root, const char *path)
{
    const struct node *n = node_find_path(root, path);
    return n && !node_is_null(n);
}

/* A key that could not be read has its default, of which nothing is to be said. */
static void spec_check_complain(const struct spec_check *c,
                                enum problem_level level,
                                const char *field,
                                const char *code,
                                const struct message_arg *args)
{
    for (size_t i = 0; i < c->n_read; i++)
        if (c->ps->v[i].level == PROBLEM_ERROR && str_eq(c->ps->v[i].field, field))
            return;
    const struct node *n = node_find_path(c->root, field);
    problems_add(c->ps, level, field, n ? n->line : 0, n ? n->column : 0, code, args);
}

/* NULL: it came without places. */
static const struct node *place_node(const struct spec_place *at)
{
    const struct node *n = node_find_path(at->c->root, at->field);
    const struct node *item = n && n->kind == NODE_SEQ ? n->first : NULL;
    for (size_t i = 0; item && i < at->item; i++)
        item = item->next;
    return item ? item : n;
}

/* What another check says of the item. */
static void spec_error_at(const struct spec_place *at, const struct err *err)
{
    const struct node *n = place_node(at);
    problems_add_err(at->c->ps, PROBLEM_ERROR, at->field, n ? n->line : 0, n ? n->column : 0, err);
}

void spec_problem_at(const struct spec_place *at,
                     enum problem_level level,
                     const char *code,
                     const struct message_arg *args)
{
    const struct node *n = place_node(at);
    problems_add(at->c->ps, level, at->field, n ? n->line : 0, n ? n->column : 0, code, args);
}

void spec_error(const struct spec_check *c,
                const char *field,
                const char *code,
                const struct message_arg *args)
{
    spec_check_complain(c, PROBLEM_ERROR, field, code, args);
}

void spec_warning(const struct spec_check *c,
                  const char *field,
                  const char *code,
                  const struct message_arg *args)
{
    spec_check_complain(c, PROBLEM_WARNING, field, code, args);
}

void spec_error_of(const struct spec_check *c, const char *field, const struct err *err)
{
    const struct node *n = node_find_path(c->root, field);
    problems_add_err(c->ps, PROBLEM_ERROR, field, n ? n->line : 0, n ? n->column : 0, err);
}

/* ---- what each workload needs ---- */

enum need { NEED_NO, NEED_MAY, NEED_YES };

struct needs {
    enum need model, train, val, reward, gpus, steps;
};

static const struct needs needs[] = {
    [WORKLOAD_PPO] = {NEED_YES, NEED_YES, NEED_YES, NEED_MAY, NEED_YES, NEED_MAY},
    [WORKLOAD_GRPO] = {NEED_YES, NEED_YES, NEED_YES, NEED_MAY, NEED_YES, NEED_MAY},
    [WORKLOAD_SFT] = {NEED_YES, NEED_YES, NEED_MAY, NEED_NO, NEED_YES, NEED_MAY},
    [WORKLOAD_EVAL] = {NEED_NO, NEED_NO, NEED_YES, NEED_YES, NEED_NO, NEED_NO},
    [WORKLOAD_GENERATE] = {NEED_YES, NEED_NO, NEED_YES, NEED_NO, NEED_YES, NEED_NO},
    [WORKLOAD_MERGE] = {NEED_YES, NEED_NO, NEED_NO, NEED_NO, NEED_NO, NEED_NO},
    [WORKLOAD_RAY] = {NEED_MAY, NEED_MAY, NEED_MAY, NEED_NO, NEED_MAY, NEED_NO},
};

/* Programs with an entrypoint all need what ray does. */
static const struct needs *needs_of(const struct spec *s)
{
    return &needs[workload_has_entrypoint((enum workload)s->workload) ? WORKLOAD_RAY : s->workload];
}

static void check_need(const struct spec_check *c,
                       const struct spec *s,
                       const char *key,
                       enum need need,
                       bool given)
{
    const char *word = workload_to_string((enum workload)s->workload);
    bool is_notebook = s->workload == WORKLOAD_NOTEBOOK; /* a command makes its entrypoint */
    if (need == NEED_YES && !given)
        spec_error(c, key, is_notebook ? "notebook_needs" : "workload_needs",
                   MESSAGE_ARGS(MESSAGE_STR("workload", word), MESSAGE_STR("key", key)));
    if (need == NEED_NO && given)
        spec_error(c, key, "workload_not_uses",
                   MESSAGE_ARGS(MESSAGE_STR("workload", word), MESSAGE_STR("key", key)));
}

static void check_needs(const struct spec *s, const struct spec_check *c)
{
    const struct needs *n = needs_of(s);
    bool runs_any = workload_has_entrypoint((enum workload)s->workload);
    check_need(c, s, "model_id", n->model, s->model_id != NULL);
    check_need(c, s, "train_file", n->train, s->train_file.n > 0);
    check_need(c, s, "val_file", n->val, s->val_file.n > 0);
    check_need(c, s, "reward_fn_path", n->reward, s->reward_fn_path != NULL);
    check_need(c, s, "n_gpus_per_node", n->gpus, s->gpus_per_node > 0);
    check_need(c, s, "total_epochs", n->steps, s->total_epochs != 0);
    check_need(c, s, "total_training_steps", n->steps, s->total_training_steps != 0);
    check_need(c, s, "save_freq", n->steps, spec_is_given(c->root, "save_freq"));
    check_need(c, s, "test_freq", n->steps, spec_is_given(c->root, "test_freq"));
    check_need(c, s, "n_cpus_per_node", runs_any ? NEED_MAY : NEED_NO, s->cpus_per_node > 0);
    check_need(c, s, "entrypoint", runs_any ? NEED_YES : NEED_NO, s->entrypoint.n > 0);
    if (runs_any && s->overrides.n > 0)
        spec_error(
            c, "overrides", "workload_no_overrides",
            MESSAGE_ARGS(MESSAGE_STR("workload", workload_to_string((enum workload)s->workload))));
}

/* ---- sizes ---- */

static void check_gang(const struct spec *s,
                       const struct spec_limits *lim,
                       const struct spec_check *c)
{
    double g = s->gpus_per_node, all = g * (double)s->nnodes + fmax(s->entrypoint_gpus, 0);
    bool runs_any = workload_has_entrypoint((enum workload)s->workload);
    if (g != floor(g) && !(runs_any && (g == 0.25 || g == 0.5)))
        spec_error(c, "n_gpus_per_node", "gpus_not_whole", MESSAGE_ARGS(MESSAGE_NUM("gpus", g)));
    if ((s->workload == WORKLOAD_EVAL || s->workload == WORKLOAD_MERGE) && s->nnodes > 1)
        spec_error(
            c, "nnodes", "workload_one_node",
            MESSAGE_ARGS(MESSAGE_STR("workload", workload_to_string((enum workload)s->workload))));
    if (s->cpus_per_gpu != floor(s->cpus_per_gpu))
        spec_error(c, "n_cpus_per_gpu", "cpus_not_whole", MESSAGE_NO_ARGS);
    if (lim && lim->gpus_per_job > 0 && all > lim->gpus_per_job)
        spec_error(c, "nnodes", "gang_above_limit",
                   MESSAGE_ARGS(MESSAGE_NUM("gpus", all), MESSAGE_NUM("limit", lim->gpus_per_job)));
}

static void check_resources(const struct spec *s, const struct spec_check *c)
{
    for (size_t i = 0; i < s->entrypoint_resources.n; i++) {
        const struct pair *p = &s->entrypoint_resources.v[i];
        double amount = 0;
        struct err err = {0};
        if (str_to_real(p->value, &amount, &err) < 0 || amount < 0)
            spec_error(c, "entrypoint_resources", "resource_amount",
                       MESSAGE_ARGS(MESSAGE_STR("key", p->key), MESSAGE_STR("value", p->value)));
        else if (!strcmp(p->key, "worker_node") && amount <= 0)
            spec_error(c, "entrypoint_resources", "worker_node_kept", MESSAGE_NO_ARGS);
        if (!strcmp(p->key, "CPU") || !strcmp(p->key, "GPU"))
            spec_error(c, "entrypoint_resources", "not_custom_resource",
                       MESSAGE_ARGS(MESSAGE_STR("key", p->key)));
    }
}

/* ---- saving, resuming ---- */

static void check_saving(const struct spec *s, const struct spec_check *c)
{
    if (spec_is_given(c->root, "save_freq") && s->save_freq == 0)
        spec_error(c, "save_freq", "save_freq_zero", MESSAGE_NO_ARGS);
    if (spec_is_given(c->root, "test_freq") && s->test_freq == 0)
        spec_error(c, "test_freq", "test_freq_zero", MESSAGE_NO_ARGS);
    if (s->save_freq == -1 && !s->checkpoint_none)
        spec_error(c, "save_freq", "save_freq_never", MESSAGE_NO_ARGS);
    if (s->save_freq > 0 && s->checkpoint_none)
        spec_error(c, "save_freq", "save_freq_and_none", MESSAGE_NO_ARGS);
    if (s->save_freq > 0 && s->save_freq < 10)
        spec_warning(c, "save_freq", "save_freq_small",
                     MESSAGE_ARGS(MESSAGE_NUM("steps", s->save_freq)));
    if (s->workload == WORKLOAD_SFT && s->test_freq > 0 && s->val_file.n == 0)
        spec_error(c, "test_freq", "test_without_val", MESSAGE_NO_ARGS);
}

static void check_resume(struct spec *s, const struct spec_check *c)
{
    if (!strcmp(s->resume, "auto") || !strcmp(s->resume, "never")) {
        s->resume_mode = !strcmp(s->resume, "auto") ? SPEC_RESUME_AUTO : SPEC_RESUME_NEVER;
        return;
    }
    const char *at = strchr(s->resume, '@');
    s->resume_mode = SPEC_RESUME_JOB;
    s->resume_job = at ? xstrndup(s->resume, (size_t)(at - s->resume)) : xstrdup(s->resume);
    if (spec_check_id(s->resume_job, NULL) < 0)
        spec_error(c, "resume", "resume_job", MESSAGE_ARGS(MESSAGE_STR("job_id", s->resume_job)));
    if (at && str_to_int(at + 1, 1, INT32_MAX, &s->resume_step, NULL) < 0)
        spec_error(c, "resume", "resume_step", MESSAGE_ARGS(MESSAGE_STR("step", at + 1)));
    if (needs_of(s)->steps == NEED_NO)
        spec_error(
            c, "resume", "workload_no_resume",
            MESSAGE_ARGS(MESSAGE_STR("workload", workload_to_string((enum workload)s->workload))));
}

/* The words that restart.on may have, into ret; how many. */
static size_t restart_words(const char *ret[static FINDING_CLASS_COUNT])
{
    size_t n = 0;
    for (int c = 0; c < FINDING_CLASS_COUNT; c++)
        if (!finding_class_is((enum finding_class)c, FINDING_NO_RESTART))
            ret[n++] = finding_class_to_string((enum finding_class)c);
    return n;
}

static void check_classes(const struct spec *s, const struct spec_check *c)
{
    const char *words[FINDING_CLASS_COUNT];
    struct restart_on on = {0};
    for (size_t i = 0; i < s->restart_on.n; i++) {
        const char *word = s->restart_on.v[i];
        if (restart_on_add(&on, word))
            continue;
        if (str_starts(word, "exit:")) {
            spec_error(c, "restart.on", "bad_exit_code", MESSAGE_ARGS(MESSAGE_STR("word", word)));
            continue;
        }
        const char *near = str_nearest(word, words, restart_words(words));
        spec_error(c, "restart.on", "restart_class",
                   MESSAGE_ARGS(MESSAGE_STR("word", word), MESSAGE_STR("near", str_or(near, ""))));
    }
}

static void check_tracking(const struct spec *s, const struct spec_check *c)
{
    static const char *const backends[] = {"mlflow", "tensorboard", "swanlab"};
    bool known = false;
    for (size_t i = 0; i < array_len(backends); i++)
        known |= str_eq(s->tracking_backend, backends[i]);
    if (s->tracking_backend && !known)
        spec_error(c, "tracking.backend", "tracking_backend",
                   MESSAGE_ARGS(MESSAGE_STR("backend", s->tracking_backend)));
    if (s->tracking_uri && !s->tracking_backend)
        spec_error(c, "tracking.uri", "tracking_no_backend", MESSAGE_NO_ARGS);
    if (s->tracking_uri && str_eq(s->tracking_backend, "mlflow") &&
        !tracker_is_url(s->tracking_uri))
        spec_error(c, "tracking.uri", "tracking_url", MESSAGE_NO_ARGS);
}

/* What of it is not acted on; the GPUs' use is told of where the key is read. */
static void check_idle(const struct spec *s, const struct spec_check *c)
{
    if (!spec_is_given(c->root, "idle"))
        return;
    if (!s->idle_window)
        spec_warning(c, "idle.window", "idle_no_window", MESSAGE_NO_ARGS);
    else if (s->workload == WORKLOAD_SERVE || s->workload == WORKLOAD_NOTEBOOK)
        spec_warning(c, "idle.window", "idle_of_service", MESSAGE_NO_ARGS);
    else if (workload_trains((enum workload)s->workload))
        spec_warning(c, "idle.window", "idle_of_training", MESSAGE_NO_ARGS);
}

/* ---- the reward ---- */

static bool is_identifier(const char *s, bool dots)
{
    if (!isalpha((unsigned char)*s) && *s != '_')
        return false;
    for (; *s; s++)
        if (!isalnum((unsigned char)*s) && *s != '_' && !(dots && *s == '.' && s[1] && s[1] != '.'))
            return false;
    return true;
}

void spec_read_reward(struct spec *s, const struct spec_check *c)
{
    const char *given = s->reward_fn_path;
    const char *colon = strrchr(given, ':');
    bool split = colon && is_identifier(colon + 1, false);
    _cleanup_(freep) char *where =
        split ? xstrndup(given, (size_t)(colon - given)) : xstrdup(given);
    set_str(&s->reward_function, split ? colon + 1 : "compute_score");
    set_str(&s->reward_file, NULL);
    set_str(&s->reward_module, NULL);
    if (where[0] == '/' || where[0] == '$')
        set_str(&s->reward_file, where);
    else if (is_identifier(where, true) && !str_ends(where, ".py"))
        set_str(&s->reward_module, where);
    else
        spec_error(c, "reward_fn_path", "reward_path", MESSAGE_ARGS(MESSAGE_STR("given", given)));
}

/* ---- all ---- */

static void check_code(const struct spec *s, const struct spec_check *c)
{
    struct err err = {0};
    if (s->code && snapshot_check_ref(s->code, &err) < 0)
        spec_error_of(c, "code", &err);
    if (s->code && s->code_path)
        spec_error(c, "code", "code_and_code_path", MESSAGE_NO_ARGS);
    if (s->working_dir && snapshot_is_ref(s->working_dir) &&
        snapshot_check_ref(s->working_dir, &err) < 0)
        spec_error_of(c, "working_dir", &err);
}

static void check_secrets(const struct spec *s, const struct spec_check *c)
{
    struct err err = {0};
    if (s->secrets.n > SPEC_SECRETS_MAX)
        spec_error(c, "secrets", "too_many_secrets",
                   MESSAGE_ARGS(MESSAGE_NUM("secrets", s->secrets.n),
                                MESSAGE_NUM("most", SPEC_SECRETS_MAX)));
    for (size_t i = 0; i < s->secrets.n; i++) {
        const char *name = s->secrets.v[i];
        if (spec_check_secret_name(name, &err) < 0)
            spec_error_of(c, "secrets", &err);
        else if (pairs_find(&s->env, name))
            spec_error(c, "secrets", "secret_in_env", MESSAGE_ARGS(MESSAGE_STR("name", name)));
    }
}

/* Everybody who sees the job sees its overrides and its command line. */
static void check_secret_texts(const struct strv *list,
                               const char *field,
                               const struct spec_check *c)
{
    for (size_t i = 0; i < list->n; i++) {
        struct strv values = {0}, names = {0};
        const struct spec_place at = {.c = c, .field = field, .item = i};
        spec_secrets_in(list->v[i], i ? list->v[i - 1] : NULL, &values, &names);
        for (size_t k = 0; k < names.n; k++)
            spec_problem_at(
                &at, PROBLEM_WARNING, "text_looks_secret",
                MESSAGE_ARGS(MESSAGE_STR("field", field), MESSAGE_STR("name", names.v[k])));
        strv_release(&values);
        strv_release(&names);
    }
}

/* ---- the entrypoint ---- */

/* One argument, and one variable, is at most this long for the kernel: MAX_ARG_STRLEN. */
enum { ARGUMENT_MAX = 128 * 1024 - 1 };

/* The quote that ends the one at s, or the last byte of the line. */
static const char *shell_quote_end(const char *s)
{
    const char quote = *s;
    while (s[1] && *++s != quote)
        if (*s == '\\' && quote == '"' && s[1])
            s++;
    return s;
}

/* "a | b": the exit status is that of b alone, whatever becomes of a. */
static bool has_silent_pipe(const char *line)
{
    if (strstr(line, "pipefail"))
        return false;
    for (const char *s = line; *s; s++) {
        bool begins_word = s == line || strchr(" \t\n;", s[-1]);
        bool skips_next = (*s == '\\' && s[1]) || (*s == '|' && s[1] == '|');
        if (skips_next)
            s++;
        else if (*s == '"' || *s == '\'')
            s = shell_quote_end(s);
        else if (*s == '#' && begins_word)
            s += strcspn(s, "\n") - 1;
        else if (*s == '|' && !(s > line && s[-1] == '>'))
            return true;
    }
    return false;
}

/* The line of a shell: the entrypoint as a text, or what follows "sh -c". NULL: there is none. */
static const char *shell_line(const struct spec *s)
{
    static const char *const shells[] = {"sh", "bash", "dash", "zsh", "ksh"};
    if (s->entrypoint_is_shell)
        return s->entrypoint.v[0];
    const char *slash = s->entrypoint.n ? strrchr(s->entrypoint.v[0], '/') : NULL;
    const char *program = slash ? slash + 1 : s->entrypoint.n ? s->entrypoint.v[0] : "";
    bool is_shell = false;
    for (size_t i = 0; i < array_len(shells); i++)
        is_shell |= !strcmp(program, shells[i]);
    is_shell = is_shell && !strv_has(&s->entrypoint, "pipefail");
    for (size_t i = 1; is_shell && i + 1 < s->entrypoint.n; i++)
        if (s->entrypoint.v[i][0] == '-' && str_ends(s->entrypoint.v[i], "c"))
            return s->entrypoint.v[i + 1];
    return NULL;
}

/* A script of one's own, "train.py": it is looked for where the job runs. */
static bool is_own_script(const char *word, size_t n)
{
    return n > 3 && *word != '/' && *word != '-' && *word != '$' && *word != '~' &&
           (!strncmp(word + n - 3, ".py", 3) || !strncmp(word + n - 3, ".sh", 3));
}

/* The script that the job begins with, by its relative path; 0: there is none. */
static size_t script_of(const struct spec *s, const char **ret)
{
    static const char blanks[] = " \t\n";
    const struct strv *e = &s->entrypoint;
    if (!s->entrypoint_is_shell) {
        const char *second = e->n > 1 ? e->v[1] : "";
        *ret = is_own_script(e->n ? e->v[0] : "", e->n ? strlen(e->v[0]) : 0) ? e->v[0] : second;
        return is_own_script(*ret, strlen(*ret)) ? strlen(*ret) : 0;
    }
    const char *first = e->v[0] + strspn(e->v[0], blanks);
    size_t n = strcspn(first, blanks);
    *ret = first;
    if (is_own_script(first, n))
        return n;
    *ret = first + n + strspn(first + n, blanks);
    n = strcspn(*ret, blanks);
    return is_own_script(*ret, n) ? n : 0;
}

static void check_script(const struct spec *s, const struct spec_check *c)
{
    const char *script;
    size_t n = s->working_dir || !s->entrypoint.n ? 0 : script_of(s, &script);
    if (!n)
        return;
    _cleanup_(freep) char *name = xstrndup(script, n);
    spec_warning(c, "entrypoint", "entrypoint_no_dir", MESSAGE_ARGS(MESSAGE_STR("path", name)));
}

static void check_entrypoint(const struct spec *s, const struct spec_check *c)
{
    const struct strv *e = &s->entrypoint;
    bool blank = e->n && !e->v[0][strspn(e->v[0], " \t\r\n")];
    if (blank && s->entrypoint_is_shell)
        spec_error(c, "entrypoint", "entrypoint_empty", MESSAGE_NO_ARGS);
    else if (blank)
        spec_error(c, "entrypoint", "entrypoint_no_program", MESSAGE_NO_ARGS);
    for (size_t i = 0; i < e->n; i++)
        if (strlen(e->v[i]) > ARGUMENT_MAX)
            spec_error(c, "entrypoint", "argument_too_long",
                       MESSAGE_ARGS(MESSAGE_NUM("bytes", strlen(e->v[i])),
                                    MESSAGE_NUM("most", ARGUMENT_MAX)));
    const char *line = shell_line(s);
    if (line && has_silent_pipe(line))
        spec_warning(c, "entrypoint", "entrypoint_pipe", MESSAGE_NO_ARGS);
    check_script(s, c);
    check_secret_texts(e, "entrypoint", c);
    check_secret_texts(&s->overrides, "overrides", c);
}

/* ---- names ---- */

/* It stands in tables, in titles and in files of the job. */
static void check_job_name(const struct spec *s, const struct spec_check *c)
{
    size_t letters = 0;
    for (const char *p = str_or(s->name, ""); *p; p++)
        letters += (*p & 0xc0) != 0x80;
    if (letters > SPEC_JOB_NAME_MAX)
        spec_error(
            c, "name", "job_name_long",
            MESSAGE_ARGS(MESSAGE_NUM("letters", letters), MESSAGE_NUM("most", SPEC_JOB_NAME_MAX)));
    if (str_has_control(str_or(s->name, "")))
        spec_error(c, "name", "name_control", MESSAGE_NO_ARGS);
}

static void spec_check_names(const struct spec *s, const struct spec_check *c)
{
    struct err err = {0};
    check_job_name(s, c);
    if (s->id && spec_check_id(s->id, &err) < 0)
        spec_error_of(c, "submission_id", &err);
    check_secrets(s, c);
}

static void check_alerts(const struct spec *s, const struct spec_check *c)
{
    if (s->alerts.n > METRIC_ALERTS_MAX)
        spec_error(c, "alerts", "metric_alerts_many",
                   MESSAGE_ARGS(MESSAGE_NUM("most", METRIC_ALERTS_MAX)));
    for (size_t i = 0; i < s->alerts.n; i++) {
        struct metric_alert a = {0};
        struct err err = {0};
        const struct spec_place at = {.c = c, .field = "alerts", .item = i};
        if (metric_alert_parse(s->alerts.v[i], &a, &err) < 0)
            spec_error_at(&at, &err);
        metric_alert_release(&a);
    }
}

void spec_check_all(struct spec *s, const struct spec_limits *lim, const struct spec_check *c)
{
    const struct node *word = node_find_path(c->root, "workload");
    if (word && str_eq(word->text, workload_to_string((enum workload)s->workload)))
        check_needs(s, c);
    spec_check_names(s, c);
    check_entrypoint(s, c);
    check_code(s, c);
    check_gang(s, lim, c);
    check_resources(s, c);
    check_saving(s, c);
    check_resume(s, c);
    check_classes(s, c);
    check_idle(s, c);
    check_tracking(s, c);
    check_alerts(s, c);
    if (s->reward_fn_path)
        spec_read_reward(s, c);
    if (s->overrides.n > SPEC_OVERRIDES_MAX)
        spec_error(c, "overrides", "too_many_overrides",
                   MESSAGE_ARGS(MESSAGE_NUM("overrides", s->overrides.n),
                                MESSAGE_NUM("most", SPEC_OVERRIDES_MAX)));
    spec_check_overrides(s, c);
    spec_check_env(s, c);
    spec_check_eval(s, c);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* spec_expand.c - ${SHARED_ROOT} and ${USER_ROOT} in a JobSpec, and the rule that
 * a path stays under a root that its user may use; see spec.h.
 *
 * Lexical only: "a/../b" is resolved as text. What symbolic links do is the
 * preflight's question. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/message.h"
#include "base/str.h"
#include "base/text.h"
#include "core/spec/snapshot.h"
#include "core/spec/spec_table.h"

enum { VALUE_MAX = 128 * 1024 };

struct expansion {
    struct spec_roots roots;
    struct spec_check check;
};

static const char *spec_expand_look_up(const char *name, void *arg)
{
    const struct spec_roots *r = arg;
    if (!strcmp(name, "SHARED_ROOT") || !strcmp(name, "shared_root"))
        return r->shared_root;
    if (!strcmp(name, "USER_ROOT") || !strcmp(name, "user_root"))
        return r->user_root;
    return NULL;
}

/* ---- free text: other names stay ---- */

static void expand_text(struct expansion *x, const char *field, char **text)
{
    struct buf out = BUF_INIT(VALUE_MAX);
    const char *s = *text;
    if (!strchr(s, '$') && strlen(s) <= VALUE_MAX)
        return; /* nearly all */
    while (*s && !out.failed) {
        size_t n = 0, plain = strcspn(s, "$");
        char name[32];
        if (plain) {
            (void)buf_add(&out, s, plain); /* failed is looked at below */
            s += plain;
            continue;
        }
        if (s[1] == '{')
            n = strcspn(s + 2, "}");
        const char *value = NULL;
        if (n > 0 && n < sizeof(name) && s[2 + n] == '}') {
            text_printf(name, "%.*s", (int)n, s + 2);
            value = spec_expand_look_up(name, &x->roots);
        }
        (void)(value ? buf_adds(&out, value) : buf_addc(&out, *s)); /* failed is looked at below */
        s += value ? n + 3 : 1;
    }
    if (out.failed) {
        spec_error(&x->check, field, "expanded_too_long", MESSAGE_NO_ARGS);
        buf_release(&out);
        return;
    }
    free(*text);
    *text = buf_take(&out);
}

static void expand_pairs(struct expansion *x, const char *field, struct pairs *p)
{
    for (size_t i = 0; i < p->n; i++)
        expand_text(x, field, &p->v[i].value);
}

static void expand_list(struct expansion *x, const char *field, struct strv *sv)
{
    for (size_t i = 0; i < sv->n; i++)
        expand_text(x, field, &sv->v[i]);
}

/* ---- paths ---- */

static bool spec_expand_is_below(const char *path, const char *root)
{
    size_t n = strlen(root);
    return !strncmp(path, root, n) && (path[n] == 0 || path[n] == '/');
}

/* "/a//b/./c/../d/" to "/a/b/d", in place; false when it climbs above "/". */
static bool normalise(char *path)
{
    char *out = path;
    const char *s = path;
    while (*s) {
        while (*s == '/')
            s++;
        size_t n = strcspn(s, "/");
        if (n == 2 && !strncmp(s, "..", 2)) {
            if (out == path)
                return false;
            while (*--out != '/')
                ;
        } else if (n > 0 && !(n == 1 && *s == '.')) {
            *out++ = '/';
            memmove(out, s, n);
            out += n;
        }
        s += n;
    }
    if (out == path)
        *out++ = '/';
    *out = 0;
    return true;
}

static bool is_under_a_root(const struct spec_roots *r, const char *path)
{
    if (spec_expand_is_below(path, r->shared_root) || spec_expand_is_below(path, r->user_root))
        return true;
    for (size_t i = 0; r->more && i < r->more->n; i++)
        if (spec_expand_is_below(path, r->more->v[i]))
            return true;
    return false;
}

/* Argus's own: secrets, uploads, and snapshots, which anybody could name by their hash. */
static bool spec_expand_is_ours(const struct spec_roots *r, const char *path, const char *dir)
{
    size_t n = strlen(r->shared_root);
    return spec_expand_is_below(path, r->shared_root) && spec_expand_is_below(path + n, dir);
}

static bool spec_expand_is_foreign(const struct spec_roots *r, const char *path)
{
    size_t n = strlen(r->shared_root);
    return spec_expand_is_below(path, r->shared_root) && str_starts(path + n, "/users/") &&
           path[n + strlen("/users/")] && !spec_expand_is_below(path, r->user_root);
}

/* An absolute path is checked and made canonical; *path stays as it was on a problem. */
static void expand_path(struct expansion *x, const char *field, char **path)
{
    struct buf out = BUF_INIT(VALUE_MAX);
    if (!*path)
        return;
    if (str_expand(&out, *path, spec_expand_look_up, &x->roots, NULL) < 0) {
        spec_error(&x->check, field, "unknown_variable", MESSAGE_ARGS(MESSAGE_STR("path", *path)));
        buf_release(&out);
        return;
    }
    char *full = buf_take(&out);
    if (full[0] != '/')
        spec_error(&x->check, field, "path_not_absolute", MESSAGE_ARGS(MESSAGE_STR("path", full)));
    else if (!normalise(full) || !is_under_a_root(&x->roots, full))
        spec_error(
            &x->check, field, "path_outside_root",
            MESSAGE_ARGS(MESSAGE_STR("path", full), MESSAGE_STR("root", x->roots.shared_root)));
    else if (spec_expand_is_ours(&x->roots, full, "/argus/snapshots"))
        spec_error(&x->check, field, "path_in_snapshot", MESSAGE_ARGS(MESSAGE_STR("path", full)));
    else if (spec_expand_is_ours(&x->roots, full, "/argus"))
        spec_error(&x->check, field, "path_of_argus", MESSAGE_ARGS(MESSAGE_STR("path", full)));
    else if (spec_expand_is_foreign(&x->roots, full))
        spec_error(&x->check, field, "path_of_other_user", MESSAGE_ARGS(MESSAGE_STR("path", full)));
    free(*path);
    *path = full;
}

static void expand_paths(struct expansion *x, const char *field, struct strv *sv)
{
    for (size_t i = 0; i < sv->n; i++)
        expand_path(x, field, &sv->v[i]);
}

/* Registered names stay: what they mean is asked elsewhere. */
static void expand_inputs(struct expansion *x, const char *field, struct strv *sv)
{
    for (size_t i = 0; i < sv->n; i++)
        if (!spec_is_input_name(sv->v[i]))
            expand_path(x, field, &sv->v[i]);
}

/* Expands overrides that name a file as other paths are. Relative ones, and Hydra's own names, are
 * no business of argusd, which opens none of them. */
static void expand_file_overrides(struct expansion *x, struct strv *overrides)
{
    for (size_t i = 0; i < overrides->n; i++) {
        char **all = &overrides->v[i];
        const char *value = spec_override_file(*all);
        if (!value || *value != '/' || strchr(value, '$'))
            continue;
        _cleanup_(freep) char *path = xstrdup(value);
        expand_path(x, "overrides", &path);
        char *whole = xasprintf("%.*s%s", (int)(value - *all), *all, path);
        free(*all);
        *all = whole;
    }
}

static bool looks_like_path(const char *s)
{
    return *s == '/' || *s == '$' || *s == '.' || *s == '~';
}

static bool is_hub_id(const char *s)
{
    int slashes = 0;
    for (const char *p = s; *p; p++) {
        slashes += *p == '/';
        if (!isalnum((unsigned char)*p) && !strchr("-_./", *p))
            return false;
    }
    return isalnum((unsigned char)*s) && slashes <= 1 && !str_ends(s, "/");
}

static void expand_model(struct expansion *x, struct spec *s)
{
    if (!s->model_id)
        return;
    if (looks_like_path(s->model_id))
        expand_path(x, "model_id", &s->model_id);
    else if (s->workload == WORKLOAD_MERGE)
        spec_error(&x->check, "model_id", "merge_needs_path", MESSAGE_NO_ARGS);
    else if (!is_hub_id(s->model_id) && !spec_is_input_name(s->model_id))
        spec_error(&x->check, "model_id", "model_unknown_form",
                   MESSAGE_ARGS(MESSAGE_STR("model", s->model_id)));
}

static void expand_reward(struct expansion *x, struct spec *s)
{
    if (!s->reward_file)
        return;
    expand_path(x, "reward_fn_path", &s->reward_file);
    free(s->reward_fn_path);
    s->reward_fn_path = xasprintf("%s:%s", s->reward_file, s->reward_function);
}

static void check_final_path(struct expansion *x, const char *path)
{
    if (!path || *path != '/')
        return;
    _cleanup_(freep) char *copy = xstrdup(path);
    expand_path(x, "overrides", &copy);
}

/* What overrides put in the place of data, model and reward lies where those may lie. */
static void check_final(struct expansion *x, const struct spec *s)
{
    struct spec held;
    unsigned replaced;
    const struct spec *final = spec_final(s, &held, &replaced);
    for (size_t i = 0; replaced & SPEC_REPLACED_TRAIN && i < final->train_file.n; i++)
        check_final_path(x, final->train_file.v[i]);
    for (size_t i = 0; replaced & SPEC_REPLACED_VAL && i < final->val_file.n; i++)
        check_final_path(x, final->val_file.v[i]);
    if (replaced & SPEC_REPLACED_MODEL)
        check_final_path(x, final->model_id);
    if (replaced & SPEC_REPLACED_REWARD)
        check_final_path(x, final->reward_file);
    spec_release(&held);
}

int spec_expand(struct spec *s, const struct spec_roots *roots, struct problems *ps)
{
    size_t errors = ps->errors;
    struct expansion x = {.roots = *roots, .check = {.ps = ps}};
    expand_path(&x, "code_path", &s->code_path);
    if (!s->working_dir || !snapshot_is_ref(s->working_dir)) /* a name: its path comes later */
        expand_path(&x, "working_dir", &s->working_dir);
    expand_path(&x, "runtime_env.py_executable", &s->py_executable);
    expand_paths(&x, "extra_pythonpath", &s->extra_pythonpath);
    expand_inputs(&x, "train_file", &s->train_file);
    expand_inputs(&x, "val_file", &s->val_file);
    expand_model(&x, s);
    expand_reward(&x, s);
    expand_pairs(&x, "env", &s->env);
    expand_list(&x, "entrypoint", &s->entrypoint);
    expand_list(&x, "overrides", &s->overrides);
    expand_file_overrides(&x, &s->overrides);
    check_final(&x, s);
    if (s->tracking_uri)
        expand_text(&x, "tracking.uri", &s->tracking_uri);
    return ps->errors > errors ? ERR_BAD_SPEC : 0;
}

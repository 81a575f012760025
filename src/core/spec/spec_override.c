/* SPDX-License-Identifier: Apache-2.0 */
/* spec_override.c - what a JobSpec may not set: Hydra keys and environment
 * variables that the platform owns. Both are tables with the key to use instead.
 *
 * Hydra has several ways to one key: "+a.b=1", "++a.b=1", "~a.b", "a.b@p=1", and a
 * whole mapping at once, "a={b: 1}". All are seen through here. */
#include <ctype.h>
#include <string.h>

#include "base/message.h"
#include "base/str.h"
#include "core/spec/hydra_read.h"
#include "core/spec/spec_secret.h"
#include "core/spec/spec_table.h"

struct owned {
    const char *name;    /* itself and everything below it */
    const char *instead; /* the key to use; NULL: none, the code has its own fix */
    const char *code;    /* of the refusal */
};

static const char OVERRIDE_CODE[] = "override_owned", CHECKPOINTS[] = "override_owned_checkpoints",
                  RAY[] = "override_owned_ray", POINTS[] = "override_owned_points";
static const struct owned owned_keys[] = {
    {"trainer.nnodes", "nnodes", OVERRIDE_CODE},
    {"trainer.n_gpus_per_node", "n_gpus_per_node", OVERRIDE_CODE},
    {"trainer.default_local_dir", NULL, CHECKPOINTS},
    {"trainer.default_hdfs_dir", NULL, CHECKPOINTS},
    {"trainer.resume_mode", "resume", OVERRIDE_CODE},
    {"trainer.resume_from_path", "resume: <job id>@<step>", OVERRIDE_CODE},
    {"trainer.resume_path", "resume: <job id>@<step>", OVERRIDE_CODE},
    {"hydra.run", NULL, "override_owned_run"},
    {"hydra.sweep", NULL, POINTS},
    {"hydra.mode", NULL, POINTS},
    {"ray_init", NULL, RAY},
    {"ray_kwargs.ray_init", NULL, RAY},
};

/* Names, and the key to use instead of each; NULL: none. */
static const char *const owned_env[][2] = {
    {"PYTHONPATH", "extra_pythonpath"},
    {"PYTHONHOME", "runtime_env.py_executable"},
    {"CUDA_VISIBLE_DEVICES", "n_gpus_per_node"},
    {"NVIDIA_VISIBLE_DEVICES", "n_gpus_per_node"},
    {"RAY_ADDRESS", NULL},
    {"RAY_AUTH_TOKEN", NULL},
    {"RAY_AUTH_TOKEN_PATH", NULL},
    {"RAY_AUTH_MODE", NULL},
    {"RAY_JOB_CONFIG_JSON_ENV_VAR", NULL},
    {"RAY_JOB_STOP_WAIT_TIME_S", "stop_grace"},
    {"VERL_FILE_LOGGER_PATH", NULL},
    {"VERL_FILE_LOGGER_ROOT", NULL},
    {"BASH_ENV", NULL},
};

/* The key part of an override without its marks: start and length. */
static size_t key_part(const char *override, const char **ret)
{
    const char *s = override;
    s += strspn(s, "+~ \t");
    *ret = s;
    return strcspn(s, "=@ \t");
}

static bool is_flag(const char *override)
{
    return override[0] == '-';
}

/* True if key (n bytes) is name, below it, or above it with a mapping as value. */
static bool is_owned(const char *key, size_t n, const char *name, bool mapping)
{
    size_t m = strlen(name);
    if (n >= m)
        return !strncmp(key, name, m) && (n == m || key[m] == '.' || key[m] == '/');
    return mapping && !strncmp(key, name, n) && name[n] == '.';
}

static void check_flag(const char *o, enum workload w, const struct spec_place *at)
{
    if (w == WORKLOAD_MERGE && (str_starts(o, "--local_dir") || str_starts(o, "--target_dir")))
        spec_problem_at(at, PROBLEM_ERROR, "override_owned_result",
                        MESSAGE_ARGS(MESSAGE_STR("override", o)));
    if (w != WORKLOAD_MERGE && !str_starts(o, "--config-name="))
        spec_problem_at(at, PROBLEM_ERROR, "override_option",
                        MESSAGE_ARGS(MESSAGE_STR("override", o)));
}

/* True: it sets what the platform owns, and that is told. */
static bool check_owner(const char *o, const struct spec_place *at)
{
    const char *key;
    size_t n = key_part(o, &key);
    const char *equals = strchr(o, '=');
    bool mapping = (equals && equals[1 + strspn(equals + 1, " \t")] == '{') || o[0] == '~';
    for (size_t i = 0; i < array_len(owned_keys); i++) {
        if (!is_owned(key, n, owned_keys[i].name, mapping))
            continue;
        spec_problem_at(at, PROBLEM_ERROR, owned_keys[i].code,
                        MESSAGE_ARGS(MESSAGE_STR("override", o),
                                     MESSAGE_STR("owned", owned_keys[i].name),
                                     MESSAGE_STR("use", str_or(owned_keys[i].instead, ""))));
        return true;
    }
    return false;
}

/* As an item of a YAML list: in quotes where a plain text would end early or be another. */
static char *as_yaml_item(const char *text)
{
    bool plain = !strstr(text, ": ") && !strstr(text, " #") && !strpbrk(text, "\n\t") &&
                 !str_ends(text, ":") && !str_ends(text, " ") && *text && !strchr("~$@", *text);
    if (plain)
        return xstrdup(text);
    _cleanup_(json_unrefp) json_t *v = json_string(text);
    char *quoted = v ? json_dumps(v, JSON_ENCODE_ANY) : NULL;
    return quoted ? quoted : xstrdup(text);
}

static void refuse_grammar(const char *o, const struct hydra_value *v, const struct spec_place *at)
{
    static const char *const codes[] = {
        [HYDRA_BAD_KEY] = "override_bad_key",     [HYDRA_BAD_VALUE] = "override_bad_value",
        [HYDRA_SWEEP] = "override_sweep",         [HYDRA_NO_CALL] = "override_bad_value",
        [HYDRA_OPEN_NAME] = "override_open_name",
    };
    _cleanup_(freep) char *near = hydra_nearest(o);
    _cleanup_(freep) char *item = near ? as_yaml_item(near) : NULL;
    const char *rest = v->at < strlen(o) ? o + v->at : "";
    spec_problem_at(at, PROBLEM_ERROR, codes[v->fault],
                    MESSAGE_ARGS(MESSAGE_STR("override", o), MESSAGE_STR("rest", rest),
                                 MESSAGE_STR("near", str_or(item, ""))));
}

/* A list that came with the quotes of a shell is one text to Hydra. */
static void warn_of_quoted_list(const char *o,
                                const struct hydra_value *v,
                                const struct spec_place *at)
{
    const char *text = v->is_quoted && v->texts.n == 1 ? v->texts.v[0] : "";
    if (!(*text == '[' && str_ends(text, "]")) && !(*text == '{' && str_ends(text, "}")))
        return;
    _cleanup_(freep) char *bare = xasprintf("%.*s%s", (int)v->value, o, text);
    _cleanup_(freep) char *near = hydra_nearest(bare);
    struct hydra_value inner;
    if (near && hydra_read(near, &inner) == HYDRA_FINE && !inner.is_quoted) {
        _cleanup_(freep) char *item = as_yaml_item(near);
        spec_problem_at(at, PROBLEM_WARNING, "override_quoted_list",
                        MESSAGE_ARGS(MESSAGE_STR("override", o), MESSAGE_STR("near", item)));
    }
    if (near)
        hydra_value_release(&inner);
}

static bool names_the_same(const struct spec *s, const char *field, const struct strv *texts)
{
    const char *one = str_eq(field, "model_id") ? s->model_id : s->reward_fn_path;
    const struct strv *list = str_eq(field, "train_file") ? &s->train_file
                              : str_eq(field, "val_file") ? &s->val_file
                                                          : NULL;
    if (!list)
        return !one || (texts->n == 1 && str_eq(one, texts->v[0]));
    for (size_t i = 0; i < list->n && list->n == texts->n; i++)
        if (strcmp(list->v[i], texts->v[i]) != 0)
            return false;
    return !list->n || list->n == texts->n;
}

/* Two places say what the job reads: the override counts. */
static void warn_of_second_place(const struct spec *s,
                                 const char *o,
                                 const struct hydra_value *v,
                                 const struct spec_place *at)
{
    const char *key;
    size_t n = key_part(o, &key);
    const char *field = *o == '~' ? NULL : spec_field_of_override(s, key, n);
    _cleanup_(strv_release) struct strv raw = {0}; /* ${SHARED_ROOT}/x is as it is in the key */
    strv_add(&raw, o + v->value);
    if (field && !names_the_same(s, field, v->is_known ? &v->texts : &raw))
        spec_problem_at(at, PROBLEM_WARNING, "override_replaces",
                        MESSAGE_ARGS(MESSAGE_STR("override", o), MESSAGE_STR("field", field)));
}

static void check_override(const struct spec *s, const char *o, const struct spec_place *at)
{
    const char *key;
    struct hydra_value v;
    if (key_part(o, &key) == 0 || (!strchr(o, '=') && o[0] != '~')) {
        spec_problem_at(at, PROBLEM_ERROR, "override_form",
                        MESSAGE_ARGS(MESSAGE_STR("override", o)));
        return;
    }
    if (check_owner(o, at))
        return;
    if (hydra_read(o, &v) != HYDRA_FINE) {
        refuse_grammar(o, &v, at);
    } else {
        warn_of_quoted_list(o, &v, at);
        warn_of_second_place(s, o, &v, at);
    }
    hydra_value_release(&v);
}

void spec_check_overrides(const struct spec *s, const struct spec_check *c)
{
    for (size_t i = 0; i < s->overrides.n; i++) {
        const struct spec_place at = {.c = c, .field = "overrides", .item = i};
        if (is_flag(s->overrides.v[i]) || s->workload == WORKLOAD_MERGE)
            check_flag(s->overrides.v[i], (enum workload)s->workload, &at);
        else
            check_override(s, s->overrides.v[i], &at);
    }
}

const char *const spec_file_overrides[] = {
    "actor_rollout_ref.rollout.multi_turn.tool_config_path",
    "actor_rollout_ref.rollout.multi_turn.interaction_config_path",
    "actor_rollout_ref.rollout.agent.agent_loop_config_path",
    NULL,
};

const char *spec_override_file(const char *override)
{
    const char *start;
    size_t n = key_part(override, &start);
    const char *equals = is_flag(override) || *override == '~' ? NULL : strchr(start, '=');
    for (size_t i = 0; equals && spec_file_overrides[i]; i++)
        if (n == strlen(spec_file_overrides[i]) && !strncmp(start, spec_file_overrides[i], n))
            return equals + 1;
    return NULL;
}

/* Asked many times for each submit: most overrides differ from the key in a few bytes. */
const char *spec_override_find(const struct spec *s, const char *key)
{
    size_t n = strlen(key);
    for (size_t i = s->overrides.n; i > 0; i--) {
        const char *o = s->overrides.v[i - 1], *start = o;
        while (*start == '+' || *start == '~' || *start == ' ' || *start == '\t')
            start++;
        if (strncmp(start, key, n) != 0 || !strchr("=@ \t", start[n]) || is_flag(o) || o[0] == '~')
            continue;
        const char *equals = strchr(start, '=');
        if (equals)
            return equals + 1;
    }
    return NULL;
}

/* ---- environment ---- */

bool spec_is_reserved_env(const char *name, const char **ret_instead)
{
    for (size_t i = 0; i < array_len(owned_env); i++) {
        if (strcmp(name, owned_env[i][0]) != 0)
            continue;
        if (ret_instead)
            *ret_instead = owned_env[i][1];
        return true;
    }
    if (!str_starts(name, "ARGUS_"))
        return false;
    if (ret_instead)
        *ret_instead = NULL;
    return true;
}

int spec_check_secret_name(const char *name, struct err *err)
{
    static const char *const first = "ABCDEFGHIJKLMNOPQRSTUVWXYZ_", *const digits = "0123456789";
    size_t n = strlen(name);
    bool ok = n && n <= SPEC_SECRET_NAME_MAX && strchr(first, *name);
    for (const char *s = name; ok && *s; s++)
        ok = strchr(first, *s) || strchr(digits, *s);
    if (!ok)
        return message_refuse(
            err, ERR_BAD_SPEC, "bad_secret_name",
            MESSAGE_ARGS(MESSAGE_STR("name", name), MESSAGE_NUM("most", SPEC_SECRET_NAME_MAX)));
    static const char *const owned[] = {"PATH", "HOME", "LD_LIBRARY_PATH", "LD_PRELOAD", "PWD"};
    bool is_owned =
        spec_is_reserved_env(name, NULL) || str_starts(name, "RAY_") || str_starts(name, "PYTHON");
    for (size_t i = 0; i < array_len(owned); i++)
        is_owned = is_owned || str_eq(name, owned[i]);
    return is_owned ? message_refuse(err, ERR_BAD_SPEC, "env_owned",
                                     MESSAGE_ARGS(MESSAGE_STR("name", name)))
                    : 0;
}

static bool spec_override_is_env_name(const char *s)
{
    if (!isalpha((unsigned char)*s) && *s != '_')
        return false;
    while (isalnum((unsigned char)*s) || *s == '_')
        s++;
    return !*s;
}

/* Ray gives a job its whole runtime_env in one variable, RAY_JOB_CONFIG_JSON_ENV_VAR, as JSON in
 * ASCII; the kernel starts no program with a variable of more than 128 KiB. The rest is for what
 * argus.yaml and argusd add. */
enum { ENV_BYTES_MAX = 112 * 1024 };

/* As Python's json writes the text: \\uXXXX beyond ASCII, two of them beyond 16 bits. */
static size_t json_ascii_bytes(const char *text)
{
    size_t bytes = 2;
    for (const unsigned char *s = (const unsigned char *)text; *s; s++) {
        bool escaped = strchr("\"\\\n\r\t\b\f", *s) != NULL;
        if (*s < 0x80)
            bytes += escaped ? 2 : *s < 0x20 || *s == 0x7f ? 6 : 1;
        else if (*s >= 0xc0)
            bytes += *s >= 0xf0 ? 12 : 6;
    }
    return bytes;
}

static void check_env_size(const struct spec *s, const char *field, const struct spec_check *c)
{
    size_t all = 0, most = 0;
    const char *largest = "";
    for (size_t i = 0; i < s->env.n; i++) {
        size_t bytes = json_ascii_bytes(s->env.v[i].key) + json_ascii_bytes(s->env.v[i].value) + 4;
        if (bytes > most) {
            most = bytes;
            largest = s->env.v[i].key;
        }
        all += bytes;
    }
    if (all > ENV_BYTES_MAX)
        spec_error(c, field, "env_too_large",
                   MESSAGE_ARGS(MESSAGE_NUM("bytes", all), MESSAGE_NUM("most", ENV_BYTES_MAX),
                                MESSAGE_STR("name", largest), MESSAGE_NUM("size", most)));
}

void spec_check_env(const struct spec *s, const struct spec_check *c)
{
    check_env_size(s, spec_is_given(c->root, "env") ? "env" : "runtime_env.env_vars", c);
    for (size_t i = 0; i < s->env.n; i++) {
        const char *name = s->env.v[i].key, *instead = NULL;
        const char *field = spec_is_given(c->root, "env") ? "env" : "runtime_env.env_vars";
        if (!spec_override_is_env_name(name))
            spec_error(c, field, "bad_env_name", MESSAGE_ARGS(MESSAGE_STR("name", name)));
        else if (spec_is_reserved_env(name, &instead))
            spec_error(
                c, field, "env_owned",
                MESSAGE_ARGS(MESSAGE_STR("name", name), MESSAGE_STR("use", str_or(instead, ""))));
        else if (str_is_secret_name(name))
            spec_warning(c, field, "env_looks_secret", MESSAGE_ARGS(MESSAGE_STR("name", name)));
    }
}

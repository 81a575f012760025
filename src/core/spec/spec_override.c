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

static void check_flag(const char *o, enum workload w, const struct spec_check *c)
{
    if (w == WORKLOAD_MERGE && (str_starts(o, "--local_dir") || str_starts(o, "--target_dir")))
        spec_error(c, "overrides", "override_owned_result",
                   MESSAGE_ARGS(MESSAGE_STR("override", o)));
    if (w != WORKLOAD_MERGE && !str_starts(o, "--config-name="))
        spec_error(c, "overrides", "override_option", MESSAGE_ARGS(MESSAGE_STR("override", o)));
}

static void check_override(const char *o, const struct spec_check *c)
{
    const char *key;
    size_t n = key_part(o, &key);
    const char *equals = strchr(o, '=');
    bool mapping = (equals && equals[1 + strspn(equals + 1, " \t")] == '{') || o[0] == '~';
    if (n == 0 || (!equals && o[0] != '~')) {
        spec_error(c, "overrides", "override_form", MESSAGE_ARGS(MESSAGE_STR("override", o)));
        return;
    }
    for (size_t i = 0; i < array_len(owned_keys); i++) {
        if (!is_owned(key, n, owned_keys[i].name, mapping))
            continue;
        spec_error(c, "overrides", owned_keys[i].code,
                   MESSAGE_ARGS(MESSAGE_STR("override", o),
                                MESSAGE_STR("owned", owned_keys[i].name),
                                MESSAGE_STR("use", str_or(owned_keys[i].instead, ""))));
        return;
    }
}

void spec_check_overrides(const struct spec *s, const struct spec_check *c)
{
    for (size_t i = 0; i < s->overrides.n; i++) {
        if (is_flag(s->overrides.v[i]) || s->workload == WORKLOAD_MERGE)
            check_flag(s->overrides.v[i], (enum workload)s->workload, c);
        else
            check_override(s->overrides.v[i], c);
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

void spec_check_env(const struct spec *s, const struct spec_check *c)
{
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

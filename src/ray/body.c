/* SPDX-License-Identifier: Apache-2.0 */
/* body.c - the body of a submission to Ray; see body.h. Keys with nothing in them are not sent
 * at all. */
#include "ray/body.h"

#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/message.h"
#include "base/str.h"

enum { RUNTIME_ENV_MAX_BYTES = 1 << 20 };

/* Whole numbers as integers: that is what a person would write. */
static json_t *ray_body_number(double v)
{
    return v == floor(v) && fabs(v) < 1e15 ? json_integer((json_int_t)v) : json_real(v);
}

static int ray_body_add_text(json_t *object, const char *key, const char *value, struct err *err)
{
    if (json_object_set_new(object, key, json_string(value)) < 0)
        return message_refuse(err, ERR_USAGE, "ray_value_utf8",
                              MESSAGE_ARGS(MESSAGE_STR("key", key)));
    return 0;
}

static int add_pairs(json_t *object, const struct pairs *pairs, struct err *err)
{
    for (size_t i = 0; pairs && i < pairs->n; i++) {
        int r = ray_body_add_text(object, pairs->v[i].key, pairs->v[i].value, err);
        if (r < 0)
            return r;
    }
    return 0;
}

/* An empty object is not sent. */
static int add_mapping(json_t *body, const char *key, const struct pairs *pairs, struct err *err)
{
    if (!pairs || !pairs->n)
        return 0;
    json_t *object = json_object();
    json_object_set_new(body, key, object);
    return add_pairs(object, pairs, err);
}

static int add_runtime_env(json_t *body, const struct ray_submit *what, struct err *err)
{
    bool has_env = what->env && what->env->n;
    if (!what->runtime_env && !has_env)
        return 0;
    json_t *runtime = NULL;
    if (!what->runtime_env) {
        runtime = json_object();
    } else {
        int r = json_parse(what->runtime_env, strlen(what->runtime_env), RUNTIME_ENV_MAX_BYTES,
                           &runtime, err);
        if (r < 0)
            return message_refuse(err, ERR_USAGE, "ray_env_broken", MESSAGE_NO_ARGS);
    }
    json_object_set_new(body, "runtime_env", runtime);
    if (!json_is_object(runtime))
        return message_refuse(err, ERR_USAGE, "ray_env_no_object", MESSAGE_NO_ARGS);
    if (!has_env)
        return 0;
    if (!json_object_get(runtime, "env_vars"))
        json_object_set_new(runtime, "env_vars", json_object());
    json_t *env = json_object_get(runtime, "env_vars");
    if (!json_is_object(env))
        return message_refuse(err, ERR_USAGE, "ray_env_vars", MESSAGE_NO_ARGS);
    return add_pairs(env, what->env, err);
}

static int add_resources(json_t *body, const struct ray_submit *what, struct err *err)
{
    if (what->num_cpus > 0)
        json_object_set_new(body, "entrypoint_num_cpus", ray_body_number(what->num_cpus));
    if (what->num_gpus > 0)
        json_object_set_new(body, "entrypoint_num_gpus", ray_body_number(what->num_gpus));
    if (what->memory_bytes > 0)
        json_object_set_new(body, "entrypoint_memory",
                            json_integer((json_int_t)what->memory_bytes));
    if (!what->resources || !what->resources->n)
        return 0;
    json_t *object = json_object();
    json_object_set_new(body, "entrypoint_resources", object);
    for (size_t i = 0; i < what->resources->n; i++) {
        const struct ray_amount *a = &what->resources->v[i];
        if (json_object_set_new(object, a->name, ray_body_number(a->amount)) < 0)
            return message_refuse(err, ERR_USAGE, "ray_resource",
                                  MESSAGE_ARGS(MESSAGE_STR("name", a->name)));
    }
    return 0;
}

static int ray_body_fill(json_t *body, const struct ray_submit *what, struct err *err)
{
    if (!what->submission_id || !*what->submission_id)
        return message_refuse(err, ERR_USAGE, "ray_no_id", MESSAGE_NO_ARGS);
    if (!what->entrypoint || !*what->entrypoint)
        return message_refuse(err, ERR_USAGE, "ray_no_entrypoint",
                              MESSAGE_ARGS(MESSAGE_STR("id", what->submission_id)));
    int r = ray_body_add_text(body, "entrypoint", what->entrypoint, err);
    if (r == 0)
        r = ray_body_add_text(body, "submission_id", what->submission_id, err);
    if (r == 0)
        r = add_mapping(body, "metadata", what->metadata, err);
    if (r == 0)
        r = add_mapping(body, "entrypoint_label_selector", what->labels, err);
    if (r == 0)
        r = add_runtime_env(body, what, err);
    if (r == 0)
        r = add_resources(body, what, err);
    return r;
}

int body_new(const struct ray_submit *what, json_t **ret, struct err *err)
{
    json_t *body = json_object();
    int r = ray_body_fill(body, what, err);
    if (r < 0)
        json_decref(body);
    else
        *ret = body;
    return r;
}

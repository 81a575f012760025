/* SPDX-License-Identifier: Apache-2.0 */
/* preflight_keys.c - do the overrides name keys that this release of verl has; see preflight.h. */
#include <stdlib.h>
#include <string.h>

#include "base/message.h"
#include "base/str.h"
#include "base/text.h"
#include "core/check/preflight.h"

enum { KEY_MAX = 256 };

const char *preflight_config_name(const struct spec *s,
                                  const struct verl_version *v,
                                  char buf[static 128])
{
    for (size_t i = 0; i < s->overrides.n; i++) {
        const char *given = s->overrides.v[i] + strlen("--config-name=");
        if (!str_starts(s->overrides.v[i], "--config-name="))
            continue;
        size_t n = str_ends(given, ".yaml") ? strlen(given) - 5 : strlen(given);
        text_printf_to(buf, 128, "%.*s", (int)n, given); /* cut: then there is none such */
        return strchr(buf, '/') ? NULL : buf;
    }
    switch (s->workload) {
    case WORKLOAD_PPO:
    case WORKLOAD_GRPO:
        return str_eq(spec_override_find(s, "model_engine"), "megatron") ? "ppo_megatron_trainer"
                                                                         : "ppo_trainer";
    case WORKLOAD_SFT:
        return v->sft_is_engine ? "sft_trainer_engine" : "sft_trainer";
    case WORKLOAD_EVAL:
        return "evaluation";
    case WORKLOAD_GENERATE:
        return v->generate_is_server ? "ppo_trainer" : "generation";
    default:
        return NULL;
    }
}

struct named {
    const char *override;
    int plus;     /* 0 none, 1 "+", 2 "++" */
    bool minus;   /* "~" */
    bool package; /* "group@package" */
    char key[KEY_MAX];
    const char *value; /* NULL: none */
};

static bool read_override(const char *o, struct named *ret)
{
    const char *s = o + strspn(o, " \t");
    *ret = (struct named){.override = o};
    if (*s == '-')
        return false;
    ret->minus = *s == '~';
    while (*s == '+' || *s == '~') {
        ret->plus += *s == '+';
        s++;
    }
    size_t n = strcspn(s, "=@ \t");
    ret->package = s[n] == '@';
    const char *equals = strchr(s, '=');
    ret->value = equals ? equals + 1 : NULL;
    if (!n || n >= sizeof(ret->key))
        return false;
    memcpy(ret->key, s, n);
    ret->key[n] = 0;
    return true;
}

/* The one key that ends in the same word elsewhere; NULL: there is none, or several. */
static const char *same_word(const char *key, const struct strv *keys)
{
    const char *dot = strrchr(key, '.'), *found = NULL;
    _cleanup_(freep) char *tail = dot ? xstrdup(dot) : xasprintf(".%s", key);
    size_t n = 0;
    for (size_t i = 0; i < keys->n; i++)
        if (str_ends(keys->v[i], tail)) {
            found = keys->v[i];
            n++;
        }
    return n == 1 ? found : NULL;
}

static bool preflight_keys_is_known(const struct preflight_keys *k, const char *key)
{
    return strv_has(&k->keys, key);
}

/* Something above it is a mapping that is empty, or null: verl fills it by itself. */
static const char *leaf_above(const struct preflight_keys *k, const char *key)
{
    char part[KEY_MAX];
    for (const char *dot = strchr(key, '.'); dot; dot = strchr(dot + 1, '.')) {
        text_printf(part, "%.*s", (int)(dot - key), key);
        for (size_t i = 0; i < k->leaves.n; i++)
            if (!strcmp(k->leaves.v[i], part))
                return k->leaves.v[i];
    }
    return NULL;
}

static void judge_group(const struct named *n, const struct preflight_keys *k, struct problems *ps)
{
    _cleanup_(freep) char *option = xasprintf("%s=%s", n->key, str_or(n->value, ""));
    if (!n->value || strpbrk(n->value, "[{$'\"") || strv_has(&k->options, option))
        return;
    const char *near = str_nearest(option, (const char *const *)k->options.v, k->options.n);
    problems_add(ps, PROBLEM_ERROR, "overrides", 0, 0, "override_option_unknown",
                 MESSAGE_ARGS(MESSAGE_STR("override", n->override), MESSAGE_STR("key", n->key),
                              MESSAGE_STR("value", n->value),
                              MESSAGE_STR("near", str_or(near, ""))));
}

static void say_unknown(const struct named *n, const struct preflight_keys *k, struct problems *ps)
{
    const char *leaf = leaf_above(k, n->key);
    const char *near = leaf ? NULL : str_nearest(n->key, (const char *const *)k->keys.v, k->keys.n);
    const char *elsewhere = leaf || near ? NULL : same_word(n->key, &k->keys);
    problems_add(ps, PROBLEM_ERROR, "overrides", 0, 0, "override_key_unknown",
                 MESSAGE_ARGS(MESSAGE_STR("override", n->override), MESSAGE_STR("key", n->key),
                              MESSAGE_STR("config", k->name), MESSAGE_STR("near", str_or(near, "")),
                              MESSAGE_STR("elsewhere", str_or(elsewhere, "")),
                              MESSAGE_STR("leaf", str_or(leaf, ""))));
}

static void judge_key(const struct named *n, const struct preflight_keys *k, struct problems *ps)
{
    bool known = preflight_keys_is_known(k, n->key);
    if (strv_has(&k->groups, n->key) && (n->package || !known)) {
        judge_group(n, k, ps);
        return;
    }
    if (n->package || !k->whole)
        return;
    if (known && n->plus == 1) {
        problems_add(ps, PROBLEM_ERROR, "overrides", 0, 0, "override_has_key",
                     MESSAGE_ARGS(MESSAGE_STR("override", n->override), MESSAGE_STR("key", n->key),
                                  MESSAGE_STR("config", k->name)));
        return;
    }
    if (known || n->plus)
        return;
    say_unknown(n, k, ps);
}

void preflight_judge_keys(const struct spec *s,
                          const struct preflight_keys *keys,
                          struct problems *ps)
{
    struct named n;
    if (s->workload == WORKLOAD_MERGE || !workload_is_verl((enum workload)s->workload))
        return;
    for (size_t i = 0; i < s->overrides.n; i++)
        if (read_override(s->overrides.v[i], &n) && !str_starts(n.key, "hydra"))
            judge_key(&n, keys, ps);
}

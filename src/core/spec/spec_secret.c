/* SPDX-License-Identifier: Apache-2.0 */
/* spec_secret.c - see spec_secret.h. A text is cut into words at blanks, quotes and the marks of a
 * shell or of Hydra; a word is looked at with the name before it: "--api-key X", "api_key=X". */
#include "core/spec/spec_secret.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/text.h"
#include "core/spec/spec.h"

enum { KEY_MIN = 16, PASSWORD_MIN = 4, NAME_MAX_BYTES = 128 };

/* Beginnings that providers give their keys, and how many letters and digits follow at least. */
static const struct {
    const char *begins;
    size_t rest;
} forms[] = {
    {"sk-", 16},         {"hf_", 16},    {"ghp_", 20},   {"gho_", 20},  {"ghs_", 20},
    {"github_pat_", 20}, {"glpat-", 16}, {"xoxb-", 16},  {"xoxp-", 16}, {"AKIA", 16},
    {"AIza", 30},        {"LTAI", 16},   {"local-", 40},
};

static bool secret_is_key_byte(char c)
{
    return isalnum((unsigned char)c) || (c && strchr("-_+/=", c));
}

static size_t secret_key_run(const char *s)
{
    size_t n = 0;
    while (secret_is_key_byte(s[n]))
        n++;
    return n;
}

static bool secret_has_form(const char *s, size_t n)
{
    for (size_t i = 0; i < array_len(forms); i++) {
        size_t m = strlen(forms[i].begins);
        if (n >= m + forms[i].rest && !strncmp(s, forms[i].begins, m))
            return true;
    }
    return false;
}

/* Letters and digits mixed, as words are not: "0123456789abcdef", and not "Qwen2.5-7B". */
static bool secret_is_random(const char *s, size_t n)
{
    size_t digits = 0, letters = 0;
    for (size_t i = 0; i < n; i++) {
        digits += isdigit((unsigned char)s[i]) != 0;
        letters += isalpha((unsigned char)s[i]) != 0;
        if (!secret_is_key_byte(s[i]) || s[i] == '/')
            return false;
    }
    return n >= KEY_MIN && digits >= 2 && letters >= 2;
}

static bool secret_says_password(const char *name)
{
    return strcasestr(name, "passw") || strcasestr(name, "secret");
}

/* A name of words: "x.api-key" is API_KEY. */
static bool secret_is_named(const char *name)
{
    char word[NAME_MAX_BYTES];
    const char *last = strrchr(name, '.');
    size_t n = 0;
    for (const char *s = last ? last + 1 : name; *s && n + 1 < sizeof(word); s++)
        word[n++] = *s == '-' ? '_' : *s;
    word[n] = 0;
    return str_is_secret_name(word);
}

static void secret_add_value(const char *s,
                             size_t n,
                             const char *name,
                             struct strv *values,
                             struct strv *names)
{
    _cleanup_(freep) char *value = xstrndup(s, n);
    if (values->n <= SPEC_SECRETS_ONCE && strv_has(values, value))
        return;
    strv_add(values, value);
    if (names)
        strv_add(names, name);
}

/* "://user:value@" */
static void secret_find_in_url(const char *text, struct strv *values, struct strv *names)
{
    for (const char *s = strstr(text, "://"); s; s = strstr(s + 3, "://")) {
        size_t n = strcspn(s + 3, "/ \t\n'\"");
        const char *at = memrchr(s + 3, '@', n);
        const char *colon = at ? memchr(s + 3, ':', (size_t)(at - s) - 3) : NULL;
        if (colon && at - colon > PASSWORD_MIN && colon[1] != '$')
            secret_add_value(colon + 1, (size_t)(at - colon) - 1, "", values, names);
    }
}

struct word {
    const char *s;
    size_t n;
};

/* The next word behind *at; words end at blanks, quotes and what parts values from one another. */
static bool secret_next_word(const char **at, struct word *ret)
{
    static const char ends[] = " \t\r\n'\";|&<>(),[]{}=:";
    const char *s = *at + strspn(*at, ends);
    ret->s = s;
    ret->n = strcspn(s, ends);
    *at = s + ret->n;
    return ret->n > 0;
}

static bool secret_is_word(const struct word *w, const char *name)
{
    if (secret_has_form(w->s, secret_key_run(w->s) < w->n ? secret_key_run(w->s) : w->n))
        return true;
    if (!name || !secret_is_named(name) || *w->s == '$')
        return false;
    return secret_is_random(w->s, w->n) || (secret_says_password(name) && w->n >= PASSWORD_MIN);
}

/* The name that this word is for the next one: "name=", "name:", or "--name" and a blank; "" for
 * none. at: what stands behind the word. */
static void secret_take_name(const struct word *w, const char *at, char ret[static NAME_MAX_BYTES])
{
    bool is_name = *at == '=' || *at == ':' || (*w->s == '-' && *at && strchr(" \t", *at));
    const char *begin = w->s + strspn(w->s, "-+");
    size_t n = is_name ? (size_t)(w->s + w->n - begin) : 0;
    if (w->n == 6 && !strncasecmp(w->s, "bearer", w->n)) {
        begin = "token";
        n = 5;
    }
    n = n < NAME_MAX_BYTES ? n : 0;
    memcpy(ret, begin, n);
    ret[n] = 0;
}

void spec_secrets_in(const char *text,
                     const char *previous,
                     struct strv *values,
                     struct strv *names)
{
    const char *at = text;
    struct word w;
    char name[NAME_MAX_BYTES] = "";
    if (previous && *previous == '-')
        text_copy(name, previous + strspn(previous, "-"));
    while (secret_next_word(&at, &w)) {
        if (secret_is_word(&w, *name ? name : NULL))
            secret_add_value(w.s, w.n, name, values, names);
        secret_take_name(&w, at, name);
    }
    secret_find_in_url(text, values, names);
}

/* A list for each text: one for all would be walked once for each value of each text. */
void spec_add_secrets(const char *text, const char *previous, struct strv *ret)
{
    struct strv found = {0};
    spec_secrets_in(text, previous, &found, NULL);
    for (size_t i = 0; i < found.n; i++)
        strv_add(ret, found.v[i]);
    strv_release(&found);
}

static void secret_list_texts(const struct strv *texts, bool has_order, struct strv *ret)
{
    for (size_t i = 0; i < texts->n; i++)
        spec_add_secrets(texts->v[i], has_order && i ? texts->v[i - 1] : NULL, ret);
}

/* One text, or a list of arguments. */
static void secret_list_json(const json_t *texts, struct strv *ret)
{
    const char *previous = NULL, *text = json_string_value(texts);
    size_t i;
    const json_t *v;
    if (text)
        spec_add_secrets(text, NULL, ret);
    json_array_foreach (texts, i, v) {
        text = json_string_value(v);
        if (text)
            spec_add_secrets(text, previous, ret);
        previous = text;
    }
}

void spec_list_secrets(const struct spec *s, struct strv *ret)
{
    secret_list_texts(&s->overrides, false, ret);
    secret_list_texts(&s->entrypoint, true, ret);
    json_t *eval = s->eval_on_save ? json_loads(s->eval_on_save, 0, NULL) : NULL;
    secret_list_json(json_object_get(eval, "overrides"), ret);
    secret_list_json(json_object_get(eval, "entrypoint"), ret);
    json_decref(eval);
    strv_sort_once(ret);
}

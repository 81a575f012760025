/* SPDX-License-Identifier: Apache-2.0 */
/* mask.c - one pass over a text of unknown grammar (YAML, JSON, a shell line);
 * see mask.h.
 *
 * At each position, in this order: a known value; a secret name with what is
 * assigned to it; the password of a URL; else the byte as it is. Lower-case names
 * that only end in _key (data.prompt_key) are column names in training configs
 * and no secrets, and neither are their numbers and booleans (max_token: 5). */
#define _GNU_SOURCE
#include "fsroot/attempt/mask.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/order/place.h"
#include "base/str.h"

enum { VALUE_MIN = 4, TEXT_MAX = 64 << 20 };

void mask_release(struct mask *m)
{
    for (size_t i = 0; i < m->values.n; i++)
        explicit_bzero(m->values.v[i], strlen(m->values.v[i]));
    strv_release(&m->values);
}

/* The first n bytes of a text. */
struct mask_at {
    const char *s;
    size_t n;
};

static int mask_compare(const void *key, const void *element)
{
    const struct mask_at *at = key;
    const char *v = *(const char *const *)element;
    int c = strncmp(at->s, v, at->n);
    return c ? c : v[strnlen(v, at->n)] ? -1 : 0;
}

static void add_unless_there(struct mask *m, const char *s)
{
    struct strv *sv = &m->values;
    const struct mask_at at = {s, strlen(s)};
    size_t i = place_of(&at, sv->v, sv->n, sizeof(*sv->v), mask_compare);
    if (i < sv->n && !strcmp(sv->v[i], s))
        return;
    strv_add(sv, s);
    char *added = sv->v[sv->n - 1];
    memmove(&sv->v[i + 1], &sv->v[i], (sv->n - 1 - i) * sizeof(*sv->v));
    sv->v[i] = added;
}

void mask_add(struct mask *m, const char *value)
{
    if (strlen(value) < VALUE_MIN)
        return;
    add_unless_there(m, value);
    _cleanup_(buf_release) struct buf quoted = BUF_INIT(TEXT_MAX);
    struct jout j = jout_begin(&quoted);
    jout_str(&j, NULL, value);
    if (!quoted.failed && quoted.len > 2) { /* without its quotes */
        quoted.data[quoted.len - 1] = 0;
        add_unless_there(m, quoted.data + 1);
    }
    buf_reset(&quoted);
    for (const char *s = value; *s; s++)
        (void)(*s == '\'' ? buf_adds(&quoted, "'\\''") : buf_addc(&quoted, *s)); /* far below max */
    add_unless_there(m, buf_str(&quoted));
}

static bool is_name_byte(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '-' || c == '.';
}

bool mask_is_secret(const char *name)
{
    const char *dot = strrchr(name, '.');
    _cleanup_(freep) char *last = xstrdup(dot ? dot + 1 : name);
    for (char *s = last; *s; s++)
        if (*s == '-')
            *s = '_';
    if (!strcasecmp(last, "secrets") || !str_is_secret_name(last))
        return false;
    if (!str_ends(last, "_key"))
        return true;
    return strstr(last, "api_") || strstr(last, "access_") || strstr(last, "private_") ||
           strstr(last, "secret");
}

/* ---- what is assigned to a name ---- */

/* Where the value behind a name at `s` begins, or NULL when nothing is assigned:
 * closing quotes of the name, blanks, ':' or '=', blanks. */
static const char *find_value(const char *s, char *ret_sign)
{
    s += strspn(s, "\\\"'");
    s += strspn(s, " \t");
    if (*s != ':' && *s != '=')
        return NULL;
    *ret_sign = *s++;
    if (*ret_sign == '=')
        return s;
    if (*s == '/' && s[1] == '/') /* the scheme of a URL */
        return NULL;
    return s + strspn(s, " \t");
}

static bool is_plain_setting(const char *name, const char *value, size_t n)
{
    static const char *const words[] = {"true", "false", "null", "True", "False", "None", "~"};
    for (const char *s = name; *s; s++)
        if (isupper((unsigned char)*s))
            return false;
    for (size_t i = 0; i < array_len(words); i++)
        if (n == strlen(words[i]) && !strncmp(value, words[i], n))
            return true;
    return n && n < 16 && strspn(value, "0123456789.e-") >= n;
}

/* The end of a YAML block scalar whose "|" or ">" stands at s: all deeper lines. */
static const char *block_end(const char *line, const char *s)
{
    size_t indent = strspn(line, " ");
    s += strcspn(s, "\n");
    while (*s) {
        size_t deep = strspn(s + 1, " ");
        if (deep <= indent && s[1 + deep] != '\n')
            break;
        s++;
        s += strcspn(s, "\n");
    }
    return s;
}

/* The end of the value at s. `line` is the start of its line. */
static const char *value_end(const char *line, const char *s, char sign)
{
    size_t slashes = strspn(s, "\\");
    char quote = s[slashes];
    if (quote == '"' || quote == '\'') { /* \" closes with \" when that is how it opened */
        const char *p = s + slashes + 1;
        while (*p) {
            size_t n = strspn(p, "\\");
            if (p[n] == quote && (n == slashes || quote == '\''))
                return p + n + 1;
            p += n + (p[n] ? 1 : 0);
        }
        return p;
    }
    if (sign == '=')
        return s + strcspn(s, " \t\r\n\"'\\");
    if (*s == '|' || *s == '>')
        return block_end(line, s);
    if (memchr(line, '{', (size_t)(s - line)))
        return s + strcspn(s, ",}]\r\n\"'\\");
    return s + strcspn(s, "\r\n");
}

/* Appends "name: ***" for a secret assignment at s and returns where it ends; NULL if
 * there is none. */
static const char *take_assignment(const char *line, const char *s, struct buf *out)
{
    size_t n = 0;
    while (is_name_byte(s[n]))
        n++;
    if (!n || n > 256)
        return NULL;
    char sign;
    const char *value = find_value(s + n, &sign);
    if (!value || !*value || strchr("\r\n#[{", *value)) /* nothing, or a nested thing */
        return NULL;
    _cleanup_(freep) char *name = xstrndup(s, n);
    const char *end = value_end(line, value, sign);
    if (end == value || !mask_is_secret(name) ||
        is_plain_setting(name, value, (size_t)(end - value)))
        return NULL;
    size_t slashes = strspn(value, "\\");
    bool quoted = value[slashes] == '"' || value[slashes] == '\'';
    (void)buf_add(out, s, (size_t)(value - s)); /* overflow: out->failed, here and below */
    if (quoted)
        (void)buf_add(out, value, slashes + 1);
    else if (sign == ':')
        (void)buf_addc(out, '"'); /* a bare star is an alias in YAML */
    (void)buf_adds(out, MASK_STARS);
    if (quoted)
        (void)buf_add(out, value, slashes + 1);
    else if (sign == ':')
        (void)buf_addc(out, '"');
    return end;
}

/* Masks the password of "://user:password@"; s stands at the colon. */
static const char *take_url(const char *s, struct buf *out)
{
    if (!str_starts(s, "://"))
        return NULL;
    size_t user = strcspn(s + 3, ":@/ \t\r\n\"'");
    const char *colon = s + 3 + user;
    if (*colon != ':')
        return NULL;
    size_t n = strcspn(colon + 1, "@/ \t\r\n\"'");
    if (!n || colon[1 + n] != '@')
        return NULL;
    (void)buf_add(out, s, (size_t)(colon + 1 - s)); /* overflow: out->failed */
    (void)buf_adds(out, MASK_STARS);
    return colon + 1 + n;
}

static size_t mask_common(const char *a, const char *b)
{
    size_t n = 0;
    while (a[n] && a[n] == b[n])
        n++;
    return n;
}

/* The longest known value that the first `most` bytes at s begin with, 0 if there is none. Of the
 * values that do not come after s the last one is it, unless it goes on otherwise than s; then the
 * longest one is looked for in what the two have in common. */
static size_t known_length(const struct mask *m, const char *s, size_t most)
{
    struct mask_at at = {s, most};
    for (size_t n = m->values.n; n && at.n;) {
        size_t i = place_of(&at, m->values.v, n, sizeof(*m->values.v), mask_compare);
        if (i < n && !mask_compare(&at, &m->values.v[i]))
            return strlen(m->values.v[i]);
        if (i == 0)
            break;
        n = i - 1;
        at.n = mask_common(m->values.v[n], s);
        if (!m->values.v[n][at.n])
            return at.n;
    }
    return 0;
}

void mask_text(const struct mask *m, const char *text, struct buf *out)
{
    const char *line = text;
    for (const char *s = text; *s;) {
        const char *end = NULL;
        size_t known = known_length(m, s, TEXT_MAX);
        if (known) {
            (void)buf_adds(out, MASK_STARS); /* overflow: out->failed, here and below */
            s += known;
            continue;
        }
        if (s == text || !is_name_byte(s[-1]))
            end = take_assignment(line, s, out);
        if (!end && *s == ':')
            end = take_url(s, out);
        if (!end) {
            (void)buf_addc(out, *s);
            end = s + 1;
        }
        if (*s == '\n')
            line = end;
        s = end;
    }
}

/* Where the string whose inside begins at s ends: at its quote. */
static const char *string_end(const char *s)
{
    while (*s && *s != '"')
        s += *s == '\\' && s[1] ? 2 : 1;
    return s;
}

void mask_json_of_two(const struct mask *m,
                      const struct mask *also,
                      const char *json,
                      struct buf *out)
{
    for (const char *s = json; *s;) {
        size_t head = strcspn(s, "\"");
        bool opens = s[head] != 0;
        (void)buf_add(out, s, head + opens); /* overflow: out->failed, here and below */
        s += head + opens;
        for (const char *end = opens ? string_end(s) : s; s < end;) {
            size_t left = (size_t)(end - s);
            size_t known = known_length(m, s, left), other = known_length(also, s, left);
            size_t hit = known > other ? known : other;
            size_t n = *s == '\\' && s + 1 < end ? 2 : 1; /* an escape stays whole */
            (void)buf_add(out, hit ? MASK_STARS : s, hit ? sizeof(MASK_STARS) - 1 : n);
            s += hit ? hit : n;
        }
        if (*s) {
            (void)buf_addc(out, '"');
            s++;
        }
    }
}

void mask_json(const struct mask *m, const char *json, struct buf *out)
{
    static const struct mask none;
    mask_json_of_two(m, &none, json, out);
}

bool mask_finds(const struct mask *m, const char *text)
{
    for (size_t i = 0; i < m->values.n; i++)
        if (strstr(text, m->values.v[i]))
            return true;
    return false;
}

static char *masked(const struct mask *m, const char *text)
{
    _cleanup_(buf_release) struct buf out = BUF_INIT(TEXT_MAX);
    mask_text(m, text, &out);
    return out.failed ? xstrdup(MASK_STARS) : buf_take(&out);
}

char *mask_value(const struct mask *m, const char *name, const char *value)
{
    if (mask_is_secret(name) && *value)
        return xstrdup(MASK_STARS);
    return masked(m, value);
}

static bool is_always_open(const char *name)
{
    return str_eq(name, "PYTHONPATH") || str_starts(name, "ARGUS_");
}

static bool is_named_secret(const char *name)
{
    return !is_always_open(name) && (str_is_secret_name(name) || mask_is_secret(name));
}

void mask_env(struct mask *m,
              const struct pairs *env,
              const struct pairs *secrets,
              struct pairs *ret_open,
              struct pairs *ret_secret)
{
    for (size_t i = 0; secrets && i < secrets->n; i++)
        mask_add(m, secrets->v[i].value);
    for (size_t i = 0; env && i < env->n; i++)
        if (is_named_secret(env->v[i].key))
            mask_add(m, env->v[i].value);
    for (size_t i = 0; env && i < env->n; i++) {
        const struct pair *e = &env->v[i];
        if (secrets && pairs_find(secrets, e->key))
            continue;
        _cleanup_(freep) char *shown = mask_value(m, e->key, e->value);
        bool hide = is_named_secret(e->key) ? *e->value != 0
                                            : !is_always_open(e->key) && !str_eq(shown, e->value);
        pairs_set(hide ? ret_secret : ret_open, e->key, e->value);
    }
    for (size_t i = 0; secrets && i < secrets->n; i++)
        pairs_set(ret_secret, secrets->v[i].key, secrets->v[i].value);
}

/* "--api-key" without '=': the next argument is the value. */
static bool announces_secret(const char *arg)
{
    return str_starts(arg, "--") && !strchr(arg, '=') && mask_is_secret(arg + 2);
}

static char *masked_argument(const struct mask *m, const char *arg)
{
    const char *equals = strchr(arg, '=');
    size_t n = equals ? (size_t)(equals - arg) : 0;
    _cleanup_(freep) char *name = xstrndup(arg, n);
    const char *bare = name + strspn(name, "+~-");
    if (n && equals[1] && mask_is_secret(bare) &&
        !is_plain_setting(bare, equals + 1, strlen(equals + 1)))
        return xasprintf("%s=" MASK_STARS, name);
    return masked(m, arg);
}

void mask_argv(const struct mask *m, const struct strv *argv, struct strv *ret)
{
    strv_release(ret);
    for (size_t i = 0; i < argv->n; i++) {
        bool is_value = i && announces_secret(argv->v[i - 1]) && !str_starts(argv->v[i], "--");
        _cleanup_(freep) char *arg =
            is_value ? xstrdup(MASK_STARS) : masked_argument(m, argv->v[i]);
        strv_add(ret, arg);
    }
}

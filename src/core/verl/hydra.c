/* SPDX-License-Identifier: Apache-2.0 */
/* hydra.c - quoting of one value for Hydra's override grammar; see hydra.h.
 *
 * Two readers stand in a row, so two escapes are applied, the last reader's first:
 *   OmegaConf reads "${": the k backslashes before a literal one become 2k + 1.
 *   Hydra reads '…': a quote gets a backslash, and backslashes that stand before a
 *   quote, the closing one included, are doubled. Others stay as they are.
 * Example: it's \${x}  ->  'it\'s \\\${x}'. */
#include "core/verl/hydra.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "base/message.h"
#include "base/str.h"

enum { VALUE_MAX = 64 * 1024 };

static int hydra_check(const char *value, struct err *err)
{
    const unsigned char *s = (const unsigned char *)value;
    for (size_t n; *s; s += n) {
        n = str_utf8_length(s, strnlen((const char *)s, 4));
        if (n == 0)
            return message_refuse(
                err, -EINVAL, "hydra_not_utf8",
                MESSAGE_ARGS(MESSAGE_NUM("offset", s - (const unsigned char *)value)));
    }
    if (!strcmp(value, "???"))
        return message_refuse(err, -EINVAL, "hydra_missing", MESSAGE_NO_ARGS);
    return 0;
}

/* True if Hydra reads the bare value as this very text. */
static bool is_bare(const char *s)
{
    static const char *const words[] = {"null", "true", "false", "nan", "inf"};
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    static const char more[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                               "0123456789_./-";
    if (!*s || (*s != '/' && !strchr(letters, *s)) || s[strspn(s, more)])
        return false;
    for (size_t i = 0; i < array_len(words); i++)
        if (!strcasecmp(s, words[i]))
            return false;
    return true;
}

static void repeat(struct buf *out, size_t n)
{
    while (n-- > 0)
        (void)buf_addc(out, '\\'); /* out->failed is looked at by the caller */
}

/* Append s with every run of k backslashes before stop made 2k + 1 long; when at_end, a run at
 * the end of s is made 2k long. */
static void escape(struct buf *out, const char *s, const char *stop, bool at_end)
{
    while (*s) {
        size_t k = strspn(s, "\\");
        bool stops = str_starts(s + k, stop);
        repeat(out, stops ? 2 * k + 1 : !s[k] && at_end ? 2 * k : k);
        s += k;
        if (*s)
            (void)buf_addc(out, *s++); /* as above */
    }
}

static int spec_hydra_quote(struct buf *out, const char *value, struct err *err)
{
    size_t before = out->len;
    struct buf inner = BUF_INIT(VALUE_MAX);
    int r = hydra_check(value, err);
    if (r < 0)
        return r;
    escape(&inner, value, "${", false);
    bool failed = inner.failed || buf_addc(out, '\'') < 0;
    if (!failed) {
        escape(out, buf_str(&inner), "'", true);
        failed = buf_addc(out, '\'') < 0;
    }
    buf_release(&inner);
    if (!failed)
        return 0;
    if (out->data && out->len > before) {
        out->len = before;
        out->data[before] = 0;
    }
    return message_refuse(err, -EMSGSIZE, "hydra_too_long", MESSAGE_NO_ARGS);
}

int hydra_quote(struct buf *out, const char *value, struct err *err)
{
    if (!is_bare(value))
        return spec_hydra_quote(out, value, err);
    if (buf_adds(out, value) < 0)
        return message_refuse(err, -EMSGSIZE, "hydra_too_long", MESSAGE_NO_ARGS);
    return 0;
}

int hydra_quote_list(struct buf *out, const struct strv *values, struct err *err)
{
    size_t before = out->len;
    int r = buf_addc(out, '[');
    for (size_t i = 0; r == 0 && i < values->n; i++) {
        r = i > 0 ? buf_addc(out, ',') : 0;
        if (r == 0)
            r = spec_hydra_quote(out, values->v[i], err);
    }
    if (r == 0)
        r = buf_addc(out, ']');
    if (r == 0)
        return 0;
    if (out->data) {
        out->len = before;
        out->data[before] = 0;
    }
    return r == -EINVAL ? r
                        : message_refuse(err, -EMSGSIZE, "hydra_list_too_long", MESSAGE_NO_ARGS);
}

static int spec_hydra_add(struct strv *argv,
                          const char *key,
                          struct buf *value,
                          int r,
                          struct err *err)
{
    if (r < 0)
        (void)err_prefix(err, "'%s'", key); /* the code is r already */
    else
        strv_addf(argv, "%s=%s", key, buf_str(value));
    buf_release(value);
    return r;
}

int hydra_add(struct strv *argv, const char *key, const char *value, struct err *err)
{
    struct buf b = BUF_INIT(VALUE_MAX);
    int r = hydra_quote(&b, value, err);
    return spec_hydra_add(argv, key, &b, r, err);
}

int hydra_add_list(struct strv *argv, const char *key, const struct strv *values, struct err *err)
{
    struct buf b = BUF_INIT(VALUE_MAX);
    int r = hydra_quote_list(&b, values, err);
    return spec_hydra_add(argv, key, &b, r, err);
}

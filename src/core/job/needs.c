/* SPDX-License-Identifier: Apache-2.0 */
/* needs.c - see needs.h. Four small readers look for the places where requirements stand; one reads
 * a requirement. TOML, INI and Python are not parsed: a list of quoted texts between brackets looks
 * the same in all of them. */
#include "core/job/needs.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"
#include "core/job/node.h"
#include "core/job/pep440.h"

enum {
    LIST_TEXTS_MAX = 1000,
    LINE_TEXT_MAX = 400,
    VERSIONS_MAX = 1024,
    NEEDS_ALL_MAX = 8 * NEEDS_MAX * NEEDS_TEXT_MAX, /* of all snapshots of a job */
};

const char *const needs_files[] = {"pyproject.toml", "setup.cfg", "setup.py", "requirements.txt",
                                   NULL};

/* ---- what a probe sees ---- */

static const struct needs_fact {
    const char *name;
    size_t offset;
} facts_known[] = {
#define FACT(member)                                                                               \
    {                                                                                              \
#member, offsetof(struct node_facts, member)                                               \
    }
    FACT(python), FACT(torch),        FACT(ray),  FACT(vllm),   FACT(sglang),
    FACT(numpy),  FACT(transformers), FACT(cuda), FACT(driver),
#undef FACT
};

static const struct needs_fact *needs_find_fact(const char *name, size_t n)
{
    for (size_t i = 0; i < array_len(facts_known); i++)
        if (strlen(facts_known[i].name) == n && !strncasecmp(facts_known[i].name, name, n))
            return &facts_known[i];
    return NULL;
}

static size_t name_length(const char *text)
{
    size_t n = 0;
    while (isalnum((unsigned char)text[n]) || (text[n] && strchr("-_.", text[n])))
        n++;
    return n;
}

/* ---- one requirement ---- */

static bool has_need(const struct strv *all, const char *name)
{
    size_t n = strlen(name);
    for (size_t i = 0; i < all->n; i++)
        if (!strncmp(all->v[i], name, n) && name_length(all->v[i]) == n)
            return true;
    return false;
}

static void need_add(struct strv *ret, const char *name, const char *specifiers)
{
    char text[NEEDS_TEXT_MAX];
    size_t n = 0;
    for (const char *p = specifiers; *p && n + 1 < sizeof(text); p++)
        if (!isspace((unsigned char)*p) && *p != '(' && *p != ')')
            text[n++] = *p;
    text[n] = 0;
    bool is_new = n && strlen(name) + n < NEEDS_TEXT_MAX && ret->n < NEEDS_MAX &&
                  pep440_check(text, NULL) == 0 && !has_need(ret, name);
    if (is_new)
        strv_addf(ret, "%s%s", name, text);
}

/* "ray[default]>=2.41.0  # why"; "torch @ https://…" and "x; extra == 'gpu'" are none. */
static void read_requirement(const char *line, struct strv *ret)
{
    line += strspn(line, " \t");
    size_t n = name_length(line);
    const struct needs_fact *fact = needs_find_fact(line, n);
    if (!fact || strchr(line, ';') || strchr(line, '@'))
        return;
    const char *rest = line + n + strspn(line + n, " \t");
    if (*rest == '[')
        rest = strchr(rest, ']') ? strchr(rest, ']') + 1 : "";
    _cleanup_(freep) char *specifiers = xstrndup(rest, strcspn(rest, "#"));
    need_add(ret, fact->name, specifiers);
}

/* ---- lines ---- */

/* The next line without its end; false at the end of the text. A long one is cut. */
static bool next_line(const char **p, char ret[static LINE_TEXT_MAX])
{
    if (!**p)
        return false;
    size_t n = strcspn(*p, "\n");
    text_printf_to(ret, LINE_TEXT_MAX, "%.*s", n < LINE_TEXT_MAX ? (int)n : LINE_TEXT_MAX - 1, *p);
    ret[strcspn(ret, "\r")] = 0;
    *p += n + ((*p)[n] == '\n');
    return true;
}

static void read_lines(const char *text, struct strv *ret)
{
    char line[LINE_TEXT_MAX];
    while (next_line(&text, line))
        if (*line != '-' && *line != '#')
            read_requirement(line, ret);
}

/* What stands behind "key =" at the beginning of a line; NULL: it is another line. */
static const char *value_of(const char *line, const char *key)
{
    size_t n = strlen(key);
    line += strspn(line, " \t");
    if (strncmp(line, key, n) != 0)
        return NULL;
    line += n + strspn(line + n, " \t");
    return *line == '=' && line[1] != '=' ? line + 1 + strspn(line + 1, " \t") : NULL;
}

/* ---- quoted texts ---- */

/* A text in quotes at p: it, and what comes behind it; NULL: none. */
static const char *read_quoted(const char *p, char ret[static LINE_TEXT_MAX])
{
    const char *end = *p == '"' || *p == '\'' ? strchr(p + 1, *p) : NULL;
    if (!end || end - p > LINE_TEXT_MAX || memchr(p, '\n', (size_t)(end - p)))
        return NULL;
    text_printf_to(ret, LINE_TEXT_MAX, "%.*s", (int)(end - p - 1), p + 1);
    return end + 1;
}

/* ["a", "b",  # why
 *  "c"]; anything else ends it. */
static void read_list(const char *p, struct strv *ret)
{
    char text[LINE_TEXT_MAX];
    if (*p++ != '[')
        return;
    for (int i = 0; i < LIST_TEXTS_MAX; i++) {
        p += strspn(p, " \t\r\n,");
        if (*p == '#') {
            p += strcspn(p, "\n");
            continue;
        }
        p = read_quoted(p, text);
        if (!p)
            return;
        read_requirement(text, ret);
    }
}

static void read_python(const char *quoted, struct strv *ret)
{
    char text[LINE_TEXT_MAX];
    if (read_quoted(quoted, text))
        need_add(ret, "python", text);
}

/* ---- the files ---- */

/* The value in the text itself, so that a list may go on over lines. */
static const char *value_at(const char *line_begin, const char *key)
{
    const char *value = value_of(line_begin, key);
    const char *end = line_begin + strcspn(line_begin, "\n");
    return value && value <= end ? value : NULL;
}

/* [project] alone: other tables have keys of these names, too. */
static void read_pyproject(const char *text, struct strv *ret)
{
    bool inside = false;
    for (const char *p = text; *p; p += strcspn(p, "\n"), p += *p == '\n') {
        const char *python, *list;
        if (*p == '[')
            inside = !strncmp(p, "[project]", 9);
        else if (inside && (python = value_at(p, "requires-python")))
            read_python(python, ret);
        else if (inside && (list = value_at(p, "dependencies")))
            read_list(list, ret);
    }
}

static void read_setup_cfg(const char *text, struct strv *ret)
{
    char line[LINE_TEXT_MAX];
    bool inside = false, listing = false;
    while (next_line(&text, line)) {
        const char *value;
        bool is_deeper = *line == ' ' || *line == '\t';
        if (*line == '[')
            inside = !strncmp(line, "[options]", 9);
        listing = listing && is_deeper;
        if (!inside)
            continue;
        if (listing)
            read_requirement(line, ret);
        else if ((value = value_of(line, "python_requires")))
            need_add(ret, "python", value);
        else if ((value = value_of(line, "install_requires"))) {
            listing = true;
            read_requirement(value, ret);
        }
    }
}

/* As an argument of setup(), or as a variable of this name. */
static void read_setup_py(const char *text, struct strv *ret)
{
    for (const char *p = text; *p; p += strcspn(p, "\n"), p += *p == '\n') {
        const char *value;
        if ((value = value_at(p, "python_requires")))
            read_python(value, ret);
        else if ((value = value_at(p, "install_requires")))
            read_list(value, ret);
    }
}

void needs_read(const char *file, const char *text, struct strv *ret)
{
    static void (*const readers[])(const char *, struct strv *) = {read_pyproject, read_setup_cfg,
                                                                   read_setup_py, read_lines};
    for (size_t i = 0; i < array_len(readers); i++)
        if (!strcmp(file, needs_files[i]))
            readers[i](text, ret);
}

/* ---- against a machine ---- */

int needs_check(const char *need, struct err *err)
{
    size_t n = name_length(need);
    const struct needs_fact *fact = needs_find_fact(need, n);
    if (strlen(need) >= NEEDS_TEXT_MAX || strpbrk(need, " \t\r\n") || !fact || !need[n] ||
        strncmp(need, fact->name, n) != 0)
        return message_refuse(err, ERR_BAD_SPEC, "bad_need",
                              MESSAGE_ARGS(MESSAGE_STR("need", need)));
    return pep440_check(need + n, err);
}

char *needs_versions(const struct node_facts *facts)
{
    struct buf out = BUF_INIT(VERSIONS_MAX);
    struct pep440 version;
    for (size_t i = 0; i < array_len(facts_known); i++) {
        const char *has = (const char *)facts + facts_known[i].offset;
        if (!strpbrk(has, " \t") && pep440_read(has, &version))
            (void)buf_addf(&out, "%s%s=%s", out.len ? " " : "", facts_known[i].name, has);
    }
    return buf_take(&out);
}

/* The next word of *list, which has no other spaces than those between; NULL: the end. */
static const char *next_word(const char **list, size_t *ret_len)
{
    const char *word = *list + strspn(*list, " ");
    *ret_len = strcspn(word, " ");
    *list = word + *ret_len;
    return *ret_len ? word : NULL;
}

/* What "name=…" of these versions says; NULL: nothing. */
static const char *version_of(const char *versions, const char *name, size_t n, size_t *ret_len)
{
    size_t len;
    for (const char *v; (v = next_word(&versions, &len));)
        if (len > n && !strncmp(v, name, n) && v[n] == '=') {
            *ret_len = len - n - 1;
            return v + n + 1;
        }
    return NULL;
}

/* One need against the versions: does it hold, and is its fact there at all? */
struct needs_seen {
    bool is_known, is_met;
    struct needs_unmet as;
};

static struct needs_seen need_look(const char *word, size_t len, const char *versions)
{
    struct needs_seen ret = {.is_met = true};
    struct pep440 version;
    text_printf(ret.as.need, "%.*s", (int)len, word);
    size_t n = name_length(ret.as.need), has_len;
    const char *has = version_of(versions, ret.as.need, n, &has_len);
    if (!has)
        return ret;
    text_printf(ret.as.has, "%.*s", (int)has_len, has);
    ret.is_known = pep440_read(ret.as.has, &version);
    ret.is_met = !ret.is_known || pep440_satisfies(&version, ret.as.need + n);
    return ret;
}

bool needs_find_unmet(const char *needs, const char *versions, struct needs_unmet *ret)
{
    size_t len;
    for (const char *need; (need = next_word(&needs, &len));) {
        struct needs_seen seen = need_look(need, len, versions);
        if (seen.is_met)
            continue;
        if (ret)
            *ret = seen.as;
        return true;
    }
    return false;
}

bool needs_find_unseen(const char *needs, const char *versions, struct needs_unmet *ret)
{
    size_t len;
    for (const char *need; (need = next_word(&needs, &len));) {
        struct needs_seen seen = need_look(need, len, versions);
        if (seen.is_known)
            continue;
        *ret = seen.as;
        ret->has[0] = 0;
        return true;
    }
    return false;
}

/* Ray refuses a driver of another version than its cluster's, wherever the driver's Python is. */
char *needs_beside_own_python(const char *needs)
{
    static const char *const kept[] = {"ray", "driver"};
    struct buf out = BUF_INIT(NEEDS_ALL_MAX);
    size_t len;
    for (const char *need; (need = next_word(&needs, &len));)
        for (size_t i = 0; i < array_len(kept); i++)
            if (name_length(need) == strlen(kept[i]) && str_starts(need, kept[i]))
                (void)buf_addf(&out, "%s%.*s", out.len ? " " : "", (int)len, need);
    return buf_take(&out);
}

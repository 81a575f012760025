/* SPDX-License-Identifier: Apache-2.0 */
/* problem.c - a list of what is wrong with one input; see problem.h. */
#include "base/doc/problem.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/message.h"
#include "base/str.h"
#include "base/text.h"

enum { PROBLEM_ARGS_MAX = 2048, STORED_MAX = 256 << 10, FILE_ARGS_MAX = 200 };

void problems_release(struct problems *ps)
{
    for (size_t i = 0; i < ps->n; i++) {
        free(ps->v[i].field);
        free(ps->v[i].code);
        free(ps->v[i].text);
        free(ps->v[i].hint);
    }
    free(ps->v);
    *ps = (struct problems){0};
}

static void problems_put(struct problems *ps, const struct problem *p)
{
    ps->errors += p->level == PROBLEM_ERROR;
    if (ps->n == PROBLEMS_MAX) {
        ps->dropped++;
        return;
    }
    ps->v = xrealloc(ps->v, ps->n + 1, sizeof(*ps->v));
    ps->v[ps->n++] = (struct problem){.level = p->level,
                                      .field = xstrdup(str_or(p->field, "")),
                                      .code = xstrdup(p->code),
                                      .text = xstrdup(str_or(p->text, "")),
                                      .hint = xstrdup(p->hint),
                                      .line = p->line,
                                      .column = p->column};
}

/* What is copied by problems_put() may be borrowed before. */
static char *borrowed(const char *text)
{
    return (char *)(uintptr_t)text;
}

void problems_add(struct problems *ps,
                  enum problem_level level,
                  const char *field,
                  int line,
                  int column,
                  const char *code,
                  const struct message_arg *args)
{
    char text[PROBLEM_ARGS_MAX];
    message_write(text, sizeof(text), args);
    problems_put(ps, &(struct problem){.level = (int)level,
                                       .field = borrowed(field),
                                       .code = borrowed(code),
                                       .text = text,
                                       .line = line,
                                       .column = column});
}

void problems_add_err(struct problems *ps,
                      enum problem_level level,
                      const char *field,
                      int line,
                      int column,
                      const struct err *err)
{
    problems_put(ps, &(struct problem){.level = (int)level,
                                       .field = borrowed(field),
                                       .code = borrowed(err->message),
                                       .text = borrowed(err->message ? err->args : err->text),
                                       .line = line,
                                       .column = column});
}

void problems_add_said(struct problems *ps,
                       enum problem_level level,
                       const char *field,
                       int line,
                       int column,
                       const char *hint,
                       const char *text)
{
    problems_put(ps, &(struct problem){.level = (int)level,
                                       .field = borrowed(field),
                                       .text = borrowed(text),
                                       .hint = borrowed(hint),
                                       .line = line,
                                       .column = column});
}

void problems_add_copy(struct problems *ps,
                       const struct problem *p,
                       const char *field,
                       int line,
                       int column)
{
    struct problem copy = *p;
    copy.field = borrowed(field);
    copy.line = line;
    copy.column = column;
    problems_put(ps, &copy);
}

int problem_to_err(const struct problem *p, int code, struct err *err)
{
    static const struct message_listener to = {.language = MESSAGE_ENGLISH};
    struct buf said = {0};
    if (!err)
        return code;
    (void)err_set(err, code, "%s", message_say(p->code, p->text, &to, &said)); /* only fills err */
    buf_release(&said);
    if (!p->code || strlen(p->text) >= sizeof(err->args))
        return code;
    err->message = message_code(p->code);
    text_copy(err->args, p->text);
    return code;
}

int problems_to_err(const struct problems *ps, const char *file, int code, struct err *err)
{
    const struct problem *p = problems_first(ps);
    if (!p)
        return message_refuse(err, code, "file_unreadable_now",
                              MESSAGE_ARGS(MESSAGE_STR("file", file)));
    struct message_arg args[] = {
        MESSAGE_STR("file", file),
        MESSAGE_STR("field", p->field),
        MESSAGE_OF("problem", p->code, strlen(p->text) < FILE_ARGS_MAX ? p->text : "{}"),
        MESSAGE_NUM("line", p->line),
        MESSAGE_NUM("column", p->column),
        {.key = NULL},
    };
    if (p->line == 0)
        args[3].key = NULL; /* no place is known: the list ends before it */
    return message_refuse(err, code, "problem_in_file", args);
}

const struct problem *problems_first(const struct problems *ps)
{
    for (size_t i = 0; i < ps->n; i++)
        if (ps->v[i].level == PROBLEM_ERROR)
            return &ps->v[i];
    return NULL;
}

/* ---- pages ---- */

static const char *const level_words[] =
    {[PROBLEM_ERROR] = "error", [PROBLEM_WARNING] = "warning", NULL};

#define ROW(key, ftype, member, ...) FIELD_AT(problem_page, key, ftype, member, __VA_ARGS__)
static const struct field problem_rows[] = {
    ROW("level", FIELD_ENUM, level, .names = level_words),
    ROW("field", FIELD_STR, field, .flags = FIELD_ALWAYS, .doc = "dotted; empty: all of it"),
    ROW("line", FIELD_INT32, line, .doc = "0: not known"),
    ROW("column", FIELD_INT32, column),
    ROW("code", FIELD_STR, code, .doc = "code of the sentence; null: it has none"),
    ROW("args", FIELD_JSON, args, .schema = MESSAGE_ARGS_SCHEMA),
    ROW("detail", FIELD_STR, detail, .flags = FIELD_ALWAYS),
    ROW("hint", FIELD_STR, hint, .doc = "what would mend it"),
};
#undef ROW
const struct field_table problem_table = FIELD_TABLE("SpecProblem", problem_rows, problem_page);

struct problem_page problem_say(const struct problem *p, enum message_language language)
{
    const struct message_listener to = {.language = language};
    struct message_page said;
    message_page(p->code, p->text, &to, &said);
    struct problem_page page = {.level = p->level,
                                .line = p->line,
                                .column = p->column,
                                .field = p->field,
                                .code = p->code,
                                .args = said.args,
                                .detail = xstrdup(said.text),
                                .hint = xstrdup(str_or(said.fix, p->hint))};
    said.args = NULL; /* the page's now */
    message_page_release(&said);
    return page;
}

void problem_page_release(struct problem_page *page)
{
    free(page->args);
    free(page->detail);
    free(page->hint);
}

struct field_list problem_pages(const struct problems *ps, enum message_language language)
{
    struct problem_page *v = xcalloc(ps->n + 1, sizeof(*v));
    for (size_t i = 0; i < ps->n; i++)
        v[i] = problem_say(&ps->v[i], language);
    return (struct field_list){.v = v, .n = ps->n};
}

void problem_pages_release(struct field_list *pages)
{
    struct problem_page *v = pages->v;
    for (size_t i = 0; i < pages->n; i++)
        problem_page_release(&v[i]);
    free(v);
    *pages = (struct field_list){0};
}

static void problem_to_json(const struct problem *p, enum message_language language, struct jout *j)
{
    struct problem_page page = problem_say(p, language);
    field_to_json(&problem_table, &page, FIELD_ALL, FIELD_PAGE, j, NULL);
    problem_page_release(&page);
}

void problems_to_json(const struct problems *ps,
                      enum message_language language,
                      struct jout *j,
                      const char *key)
{
    jout_open(j, key, '[');
    for (size_t i = 0; i < ps->n; i++)
        problem_to_json(&ps->v[i], language, j);
    jout_close(j, ']');
}

void problems_to_text(const struct problems *ps,
                      const char *file,
                      enum message_language language,
                      struct buf *out)
{
    for (size_t i = 0; i < ps->n; i++) {
        struct problem_page p = problem_say(&ps->v[i], language);
        (void)buf_adds(out, file); /* overflow: out->failed, here and below */
        if (p.line > 0)
            (void)buf_addf(out, ":%d:%d", p.line, p.column);
        (void)buf_addf(out, ": %s: ", level_words[p.level]);
        if (*p.field)
            (void)buf_addf(out, "'%s': ", p.field);
        (void)buf_adds(out, p.detail);
        if (p.hint)
            (void)buf_addf(out, " (%s)", p.hint);
        (void)buf_addc(out, '\n');
        problem_page_release(&p);
    }
    if (ps->dropped)
        (void)buf_addf(out, "%s: and %zu more\n", file, ps->dropped);
}

/* ---- the store ---- */

/* What is kept: the words of a problem, and of one without a code its sentence. */
struct problem_row {
    int level, line, column;
    char *field, *code, *args, *detail, *hint;
};
#define ROW(key, ftype, member, ...) FIELD_AT(problem_row, key, ftype, member, __VA_ARGS__)
static const struct field stored_rows[] = {
    ROW("level", FIELD_ENUM, level, .names = level_words),
    ROW("field", FIELD_STR, field),
    ROW("line", FIELD_INT32, line),
    ROW("column", FIELD_INT32, column),
    ROW("code", FIELD_STR, code, .flags = FIELD_OMIT),
    ROW("args", FIELD_JSON, args, .flags = FIELD_OMIT),
    ROW("detail", FIELD_STR, detail, .flags = FIELD_OMIT),
    ROW("hint", FIELD_STR, hint, .flags = FIELD_OMIT),
};
#undef ROW
static const struct field_table stored_table = FIELD_TABLE(NULL, stored_rows, problem_row);

/* A list that is too long is none: half of one cannot be read. */
static char *take_list(struct buf *out)
{
    char *whole = buf_take_whole(out);
    return whole ? whole : xstrdup("[]");
}

char *problems_to_stored(const struct problems *ps)
{
    struct buf out = BUF_INIT(STORED_MAX);
    struct jout j = jout_begin(&out);
    jout_open(&j, NULL, '[');
    for (size_t i = 0; i < ps->n; i++) {
        const struct problem *p = &ps->v[i];
        const struct problem_row row = {.level = p->level,
                                        .line = p->line,
                                        .column = p->column,
                                        .field = p->field,
                                        .code = p->code,
                                        .args = p->code ? p->text : NULL,
                                        .detail = p->code ? NULL : p->text,
                                        .hint = p->hint};
        field_to_json(&stored_table, &row, FIELD_ALL, FIELD_ROW, &j, NULL);
    }
    jout_close(&j, ']');
    return take_list(&out);
}

static void problem_stored_say(const json_t *v, enum message_language language, struct jout *j)
{
    struct problem_row row = {0};
    field_from_json(&stored_table, v, FIELD_ALL, &row);
    const struct problem p = {.level = row.level,
                              .field = borrowed(str_or(row.field, "")),
                              .code = row.code,
                              .text = borrowed(str_or(row.code ? row.args : row.detail, "")),
                              .hint = row.hint,
                              .line = row.line,
                              .column = row.column};
    problem_to_json(&p, language, j);
    field_release(&stored_table, &row);
}

char *problems_say(const struct problems *ps, enum message_language language)
{
    if (!ps->n)
        return xstrdup("[]");
    struct buf out = BUF_INIT(2 * STORED_MAX);
    struct jout j = jout_begin(&out);
    problems_to_json(ps, language, &j, NULL);
    return take_list(&out);
}

char *problems_stored_say(const char *stored, enum message_language language)
{
    _cleanup_(json_unrefp) json_t *all = NULL;
    size_t i;
    json_t *v;
    if (!stored || json_parse(stored, strlen(stored), STORED_MAX, &all, NULL) < 0)
        return xstrdup("[]");
    struct buf out = BUF_INIT(2 * STORED_MAX);
    struct jout j = jout_begin(&out);
    jout_open(&j, NULL, '[');
    json_array_foreach (all, i, v)
        problem_stored_say(v, language, &j);
    jout_close(&j, ']');
    return take_list(&out);
}

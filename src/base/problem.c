/* SPDX-License-Identifier: Apache-2.0 */
/* problem.c - a list of what is wrong with one input; see problem.h. */
#define _GNU_SOURCE
#include "base/problem.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void problems_release(struct problems *ps)
{
    for (size_t i = 0; i < ps->n; i++) {
        free(ps->v[i].field);
        free(ps->v[i].text);
        free(ps->v[i].hint);
    }
    free(ps->v);
    *ps = (struct problems){0};
}

void problems_add(struct problems *ps,
                  enum problem_level level,
                  const char *field,
                  int line,
                  int column,
                  const char *hint,
                  const char *fmt,
                  ...)
{
    ps->errors += level == PROBLEM_ERROR;
    if (ps->n == PROBLEMS_MAX) {
        ps->dropped++;
        return;
    }
    char *text = NULL;
    va_list ap;
    va_start(ap, fmt);
    if (vasprintf(&text, fmt, ap) < 0)
        abort(); /* memory: as xmalloc */
    va_end(ap);
    ps->v = xrealloc(ps->v, ps->n + 1, sizeof(*ps->v));
    ps->v[ps->n++] = (struct problem){.level = (int)level,
                                      .field = xstrdup(field ? field : ""),
                                      .text = text,
                                      .hint = xstrdup(hint),
                                      .line = line,
                                      .column = column};
}

static const char *const level_words[] =
    {[PROBLEM_ERROR] = "error", [PROBLEM_WARNING] = "warning", NULL};

#define ROW(key, ftype, member, ...)                                                               \
    {                                                                                              \
        .name = key, .type = ftype, .offset = offsetof(struct problem, member), __VA_ARGS__        \
    }
static const struct field problem_rows[] = {
    ROW("level", FIELD_ENUM, level, .names = level_words),
    ROW("field", FIELD_STR, field, .flags = FIELD_ALWAYS, .doc = "dotted; empty: all of it"),
    ROW("line", FIELD_INT32, line, .doc = "0: not known"),
    ROW("column", FIELD_INT32, column),
    ROW("detail", FIELD_STR, text, .flags = FIELD_ALWAYS),
    ROW("hint", FIELD_STR, hint, .doc = "what would mend it"),
};
#undef ROW
const struct field_table problem_table = {"SpecProblem", problem_rows, array_len(problem_rows),
                                          sizeof(struct problem), 0};

void problems_to_text(const struct problems *ps, const char *file, struct buf *out)
{
    for (size_t i = 0; i < ps->n; i++) {
        const struct problem *p = &ps->v[i];
        (void)buf_adds(out, file); /* overflow: out->failed, here and below */
        if (p->line > 0)
            (void)buf_addf(out, ":%d:%d", p->line, p->column);
        (void)buf_addf(out, ": %s: ", level_words[p->level]);
        if (*p->field)
            (void)buf_addf(out, "'%s': ", p->field);
        (void)buf_adds(out, p->text);
        if (p->hint)
            (void)buf_addf(out, " (%s)", p->hint);
        (void)buf_addc(out, '\n');
    }
    if (ps->dropped)
        (void)buf_addf(out, "%s: and %zu more\n", file, ps->dropped);
}

void problems_to_json(const struct problems *ps, struct jout *j, const char *key)
{
    jout_open(j, key, '[');
    for (size_t i = 0; i < ps->n; i++)
        field_to_json(&problem_table, &ps->v[i], FIELD_ALL, FIELD_PAGE, j, NULL);
    jout_close(j, ']');
}

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
    ps->v[ps->n++] = (struct problem){.level = level,
                                      .field = xstrdup(field ? field : ""),
                                      .text = text,
                                      .hint = xstrdup(hint),
                                      .line = line,
                                      .column = column};
}

static const char *level_word(enum problem_level level)
{
    return level == PROBLEM_ERROR ? "error" : "warning";
}

void problems_to_text(const struct problems *ps, const char *file, struct buf *out)
{
    for (size_t i = 0; i < ps->n; i++) {
        const struct problem *p = &ps->v[i];
        (void)buf_adds(out, file); /* overflow: out->failed, here and below */
        if (p->line > 0)
            (void)buf_addf(out, ":%d:%d", p->line, p->column);
        (void)buf_addf(out, ": %s: ", level_word(p->level));
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
    for (size_t i = 0; i < ps->n; i++) {
        const struct problem *p = &ps->v[i];
        jout_open(j, NULL, '{');
        jout_str(j, "level", level_word(p->level));
        jout_str(j, "field", p->field);
        jout_int(j, "line", p->line);
        jout_int(j, "column", p->column);
        jout_str(j, "detail", p->text);
        jout_str(j, "hint", p->hint);
        jout_close(j, '}');
    }
    jout_close(j, ']');
}

/* SPDX-License-Identifier: Apache-2.0 */
/* field.c - what a field table knows without any text form: to find, free, copy and compare
 * members, and to tell people of them.
 *
 * Comparison goes through the row form, so that two objects are alike exactly when their rows in
 * the store would be. See also field_json.c and field_schema.c. */
#include "base/field.h"

#include <stdlib.h>
#include <string.h>

enum { ROW_TEXT_MAX = 4 << 20 };

static void *field_at(const struct field *f, void *object)
{
    return (char *)object + f->offset;
}

unsigned field_which_of(const struct field_table *of, unsigned which)
{
    unsigned flags = of->all;
    for (size_t i = 0; i < of->n; i++)
        flags |= of->rows[i].flags;
    return flags & (FIELD_STORED | FIELD_SHOWN | FIELD_LISTED | FIELD_ASKED) ? which : FIELD_ALL;
}

void field_list_add(struct field_list *list, const void *item, size_t size)
{
    list->v = xrealloc(list->v, list->n + 1, size);
    memcpy((char *)list->v + list->n++ * size, item, size);
}

static void field_release_list(const struct field_table *of, struct field_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        field_release(of, (char *)list->v + i * of->size);
    free(list->v);
    *list = (struct field_list){0};
}

static void field_release_one(const struct field *f, void *p)
{
    switch (f->type) {
    case FIELD_STR:
    case FIELD_JSON:
        if (f->flags & FIELD_BORROWED)
            *(const char **)p = NULL;
        else
            freep(p);
        break;
    case FIELD_STRV:
        strv_release(p);
        break;
    case FIELD_PAIRS:
        pairs_release(p);
        break;
    case FIELD_INLINE:
        if (f->flags & FIELD_BORROWED)
            memset(p, 0, f->of->size);
        else
            field_release(f->of, p);
        break;
    case FIELD_OBJECT:
        field_release(f->of, p);
        break;
    case FIELD_LIST:
        field_release_list(f->of, p);
        break;
    case FIELD_REALS:
        free(((struct field_list *)p)->v);
        *(struct field_list *)p = (struct field_list){0};
        break;
    default:
        break; /* plain values own nothing */
    }
}

void field_release(const struct field_table *t, void *object)
{
    for (size_t i = 0; i < t->n; i++)
        field_release_one(&t->rows[i], field_at(&t->rows[i], object));
}

/* ---- copying ---- */

static size_t field_width(const struct field *f)
{
    static const size_t widths[] = {
        [FIELD_INT] = sizeof(int64_t),
        [FIELD_REAL] = sizeof(double),
        [FIELD_BOOL] = sizeof(bool),
        [FIELD_SPAN] = sizeof(usec_t),
        [FIELD_ENUM] = sizeof(int),
        [FIELD_SIZE] = sizeof(uint64_t),
        [FIELD_INT32] = sizeof(int),
        [FIELD_COUNT] = sizeof(uint64_t),
        [FIELD_TIME] = sizeof(usec_t),
        [FIELD_NODE] = sizeof(void *),
        [FIELD_PART] = sizeof(void *),
        [FIELD_BITS] = sizeof(uint64_t),
        [FIELD_REALS] = 0, /* JSON out only: a copy has none */
    };
    return f->type == FIELD_TEXT ? f->size : widths[f->type];
}

static void field_copy_list(const struct field_table *of,
                            struct field_list *dst,
                            const struct field_list *src)
{
    dst->v = src->n ? xcalloc(src->n, of->size) : NULL;
    dst->n = src->n;
    for (size_t i = 0; i < src->n; i++)
        field_copy(of, (char *)dst->v + i * of->size, (const char *)src->v + i * of->size);
}

static void field_copy_one(const struct field *f, void *dst, const void *src)
{
    switch (f->type) {
    case FIELD_STR:
    case FIELD_JSON:
        if (f->flags & FIELD_BORROWED)
            *(const char **)dst = *(const char *const *)src;
        else
            set_str(dst, *(char *const *)src);
        break;
    case FIELD_STRV:
        strv_copy(dst, src);
        break;
    case FIELD_PAIRS:
        pairs_copy(dst, src);
        break;
    case FIELD_INLINE:
        if (f->flags & FIELD_BORROWED)
            memcpy(dst, src, f->of->size);
        else
            field_copy(f->of, dst, src);
        break;
    case FIELD_OBJECT:
        field_copy(f->of, dst, src);
        break;
    case FIELD_LIST:
        field_copy_list(f->of, dst, src);
        break;
    default:
        memcpy(dst, src, field_width(f));
    }
}

void field_copy(const struct field_table *t, void *dst, const void *src)
{
    for (size_t i = 0; i < t->n; i++) {
        const struct field *f = &t->rows[i];
        field_copy_one(f, field_at(f, dst), (const char *)src + f->offset);
    }
}

void field_assign(const struct field_table *t, void *dst, const void *src, unsigned which)
{
    size_t n;
    _cleanup_(freep) struct field *rows = field_flatten(t, which, &n);
    for (size_t i = 0; i < n; i++) {
        field_release_one(&rows[i], field_at(&rows[i], dst));
        field_copy_one(&rows[i], field_at(&rows[i], dst), (const char *)src + rows[i].offset);
    }
}

void field_clear_limits(const struct field_table *t, void *object)
{
    for (size_t i = 0; i < t->n; i++) {
        void *p = field_at(&t->rows[i], object);
        if (!((t->all | t->rows[i].flags) & FIELD_NO_LIMIT))
            continue;
        if (t->rows[i].type == FIELD_REAL)
            *(double *)p = -1;
        else if (t->rows[i].type == FIELD_INT)
            *(int64_t *)p = -1;
        else
            *(int *)p = -1;
    }
}

static void field_flatten_into(const struct field_table *t,
                               size_t offset,
                               unsigned which,
                               struct field **ret,
                               size_t *ret_n)
{
    for (size_t i = 0; i < t->n; i++) {
        struct field f = t->rows[i];
        f.offset += offset;
        f.flags |= t->all;
        if (f.type == FIELD_INLINE) {
            field_flatten_into(f.of, f.offset, which, ret, ret_n);
        } else if (!which || f.flags & which) {
            *ret = xrealloc(*ret, *ret_n + 1, sizeof(**ret));
            (*ret)[(*ret_n)++] = f;
        }
    }
}

struct field *field_flatten(const struct field_table *t, unsigned which, size_t *ret_n)
{
    struct field *rows = NULL;
    *ret_n = 0;
    field_flatten_into(t, 0, which, &rows, ret_n);
    return rows;
}

bool field_equal(const struct field_table *t, const void *a, const void *b, unsigned which)
{
    struct buf one = BUF_INIT(ROW_TEXT_MAX), other = BUF_INIT(ROW_TEXT_MAX);
    struct jout j = jout_begin(&one), k = jout_begin(&other);
    field_to_json(t, a, which, FIELD_ROW, &j, NULL);
    field_to_json(t, b, which, FIELD_ROW, &k, NULL);
    bool equal = !one.failed && !other.failed && !strcmp(buf_str(&one), buf_str(&other));
    buf_release(&one);
    buf_release(&other);
    return equal;
}

/* ---- for people ---- */

static const char *field_type_word(enum field_type type)
{
    static const char *const words[] = {
        [FIELD_STR] = "text",      [FIELD_INT] = "whole number",
        [FIELD_REAL] = "number",   [FIELD_BOOL] = "true|false",
        [FIELD_SPAN] = "duration", [FIELD_SIZE] = "size",
        [FIELD_ENUM] = "one of",   [FIELD_STRV] = "list",
        [FIELD_PAIRS] = "mapping", [FIELD_NODE] = "mapping or text",
        [FIELD_TIME] = "time",     [FIELD_INT32] = "whole number",
        [FIELD_TEXT] = "text",     [FIELD_COUNT] = "whole number",
        [FIELD_JSON] = "mapping",  [FIELD_OBJECT] = "mapping",
        [FIELD_LIST] = "list",     [FIELD_INLINE] = "mapping",
    };
    return words[type];
}

void field_describe(const struct field *rows, size_t n, struct buf *out)
{
    for (size_t i = 0; i < n; i++) {
        const struct field *f = &rows[i];
        (void)buf_addf(out, "%-28s %s", f->name, field_type_word(f->type)); /* out->failed */
        for (size_t k = 0; f->type == FIELD_ENUM && f->names[k]; k++)
            (void)buf_addf(out, "%s%s", k ? "|" : " ", f->names[k]);
        if (f->dflt)
            (void)buf_addf(out, ", default %s", f->dflt);
        (void)buf_addf(out, "\n    %s\n", f->doc);
    }
}

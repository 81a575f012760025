/* SPDX-License-Identifier: Apache-2.0 */
/* field_json.c - the members of a struct as JSON and back, by its field table.
 *
 * An object is opened where a dotted prefix begins and closed where the prefix ends. Reading never
 * trusts a type: what does not fit leaves the member as it is. */
#include "base/field.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/text.h"

enum { DEPTH_MAX = 4, PREFIX_MAX = 64, ROW_TEXT_MAX = 4 << 20 };

static unsigned field_flags_of(const struct field_table *t, const struct field *f)
{
    return t->all | f->flags;
}

/* ---- writing ---- */

static double field_number(const struct field *f, const void *p)
{
    switch (f->type) {
    case FIELD_INT:
        return (double)*(const int64_t *)p;
    case FIELD_INT32:
        return *(const int *)p;
    case FIELD_REAL:
        return *(const double *)p;
    default: /* usec_t and sizes are uint64_t */
        return (double)*(const uint64_t *)p;
    }
}

static bool field_is_set(const struct field *f, unsigned flags, const void *p)
{
    switch (f->type) {
    case FIELD_STR:
    case FIELD_JSON:
    case FIELD_PART:
        return *(char *const *)p != NULL;
    case FIELD_TEXT:
        return *(const char *)p != 0;
    case FIELD_STRV:
        return ((const struct strv *)p)->n > 0;
    case FIELD_PAIRS:
        return ((const struct pairs *)p)->n > 0;
    case FIELD_LIST:
    case FIELD_REALS:
        return ((const struct field_list *)p)->n > 0;
    case FIELD_BITS:
        return *(const uint64_t *)p != 0;
    case FIELD_BOOL:
        return *(const bool *)p;
    case FIELD_ENUM:
        return !str_eq(str_or(f->names[*(const int *)p], ""), "");
    case FIELD_OBJECT:
    case FIELD_INLINE:
    case FIELD_NODE:
        return true;
    default:
        if (flags & FIELD_MAYBE)
            return !isnan(*(const double *)p);
        return flags & FIELD_NO_LIMIT ? field_number(f, p) >= 0
                                      : field_number(f, p) != 0 || f->dflt != NULL;
    }
}

static void field_put_strv(struct jout *j, const char *key, const struct strv *sv)
{
    jout_open(j, key, '[');
    for (size_t i = 0; i < sv->n; i++)
        jout_str(j, NULL, sv->v[i]);
    jout_close(j, ']');
}

static void field_put_pairs(struct jout *j,
                            const char *key,
                            const struct pairs *p,
                            enum field_form form)
{
    jout_open(j, key, '{');
    for (size_t i = 0; i < p->n; i++) {
        bool masked = form == FIELD_PAGE && str_is_secret_name(p->v[i].key);
        jout_str(j, p->v[i].key, masked ? "***" : p->v[i].value);
    }
    jout_close(j, '}');
}

static void field_put_list(struct jout *j,
                           const char *key,
                           const struct field_table *of,
                           const struct field_list *list,
                           unsigned which,
                           enum field_form form)
{
    jout_open(j, key, '[');
    for (size_t i = 0; i < list->n; i++)
        field_to_json(of, (const char *)list->v + i * of->size, which, form, j, NULL);
    jout_close(j, ']');
}

static void field_put_span(struct jout *j, const char *key, usec_t span, enum field_form form)
{
    char text[CLOCK_TEXT_MAX];
    if (form == FIELD_ROW) {
        jout_int(j, key, (int64_t)span);
        return;
    }
    text_printf(text, "%llus", (unsigned long long)(span / USEC_SEC));
    jout_str(j, key, text);
}

static void field_put_size(struct jout *j, const char *key, uint64_t bytes, enum field_form form)
{
    static const char *const units[] = {"", "KiB", "MiB", "GiB", "TiB"};
    char text[CLOCK_TEXT_MAX];
    size_t u = 0;
    if (form == FIELD_ROW) {
        jout_int(j, key, (int64_t)bytes);
        return;
    }
    while (bytes && bytes % 1024 == 0 && u + 1 < array_len(units)) {
        bytes /= 1024;
        u++;
    }
    text_printf(text, "%llu%s", (unsigned long long)bytes, units[u]);
    jout_str(j, key, text);
}

static void field_put_real(struct jout *j, const char *key, double v)
{
    if (v == floor(v) && fabs(v) < 1e15)
        jout_int(j, key, (int64_t)v);
    else
        jout_real(j, key, v);
}

static void field_put_reals(struct jout *j, const char *key, const struct field_list *list)
{
    const double *v = list->v;
    jout_open(j, key, '[');
    for (size_t i = 0; i < list->n; i++)
        jout_real(j, NULL, v[i]);
    jout_close(j, ']');
}

static void field_put_time(struct jout *j, const char *key, usec_t wall, enum field_form form)
{
    if (form == FIELD_ROW)
        jout_int(j, key, (int64_t)wall);
    else
        jout_time(j, key, wall);
}

static void field_put_enum(struct jout *j, const char *key, const struct field *f, int i)
{
    const char *word = f->names[i];
    jout_str(j, key, word && *word ? word : NULL);
}

static void field_put_bits(struct jout *j, const char *key, const struct field *f, uint64_t bits)
{
    jout_open(j, key, '[');
    for (; bits; bits &= bits - 1) {
        int bit = __builtin_ctzll(bits);
        if (f->names)
            jout_str(j, NULL, f->names[bit]);
        else
            jout_int(j, NULL, bit);
    }
    jout_close(j, ']');
}

static void field_put_number(struct jout *j,
                             const char *key,
                             const struct field *f,
                             const void *p,
                             enum field_form form)
{
    switch (f->type) {
    case FIELD_INT:
        jout_int(j, key, *(const int64_t *)p);
        break;
    case FIELD_INT32:
        jout_int(j, key, *(const int *)p);
        break;
    case FIELD_COUNT:
        jout_int(j, key, (int64_t) * (const uint64_t *)p);
        break;
    case FIELD_SPAN:
        field_put_span(j, key, *(const usec_t *)p, form);
        break;
    case FIELD_SIZE:
        field_put_size(j, key, *(const uint64_t *)p, form);
        break;
    case FIELD_TIME:
        field_put_time(j, key, *(const usec_t *)p, form);
        break;
    default:
        field_put_real(j, key, *(const double *)p);
    }
}

static void field_put_text(struct jout *j,
                           const char *key,
                           const struct field *f,
                           const void *p,
                           enum field_form form)
{
    const char *text = f->type == FIELD_TEXT ? p : *(char *const *)p;
    if (f->type == FIELD_JSON)
        jout_raw(j, key, text ? text : "null");
    else
        jout_str(j, key, text && f->flags & FIELD_SECRET && form == FIELD_PAGE ? "***" : text);
}

static void field_put_value(const struct field *f,
                            unsigned which,
                            const void *p,
                            enum field_form form,
                            struct jout *j,
                            const char *key)
{
    switch (f->type) {
    case FIELD_STR:
    case FIELD_TEXT:
    case FIELD_JSON:
        field_put_text(j, key, f, p, form);
        break;
    case FIELD_BOOL:
        jout_bool(j, key, *(const bool *)p);
        break;
    case FIELD_ENUM:
        field_put_enum(j, key, f, *(const int *)p);
        break;
    case FIELD_STRV:
        field_put_strv(j, key, p);
        break;
    case FIELD_BITS:
        field_put_bits(j, key, f, *(const uint64_t *)p);
        break;
    case FIELD_REALS:
        field_put_reals(j, key, p);
        break;
    case FIELD_PAIRS:
        field_put_pairs(j, key, p, form);
        break;
    case FIELD_OBJECT:
        field_to_json(f->of, p, field_which_of(f->of, which), form, j, key);
        break;
    case FIELD_LIST:
        field_put_list(j, key, f->of, p, field_which_of(f->of, which), form);
        break;
    case FIELD_PART:
        if (*(const void *const *)p)
            field_to_json(f->of, *(const void *const *)p, field_which_of(f->of, which), form, j,
                          key);
        else
            jout_null(j, key);
        break;
    case FIELD_NODE:
        break; /* belongs to the text that it was read from */
    default:
        if (f->flags & FIELD_NO_LIMIT && field_number(f, p) < 0)
            jout_null(j, key);
        else
            field_put_number(j, key, f, p, form);
    }
}

/* The objects that are open, by the parts of a dotted name. */
struct field_path {
    char part[DEPTH_MAX][PREFIX_MAX];
    int depth;
};

/* Close and open objects so that the open ones spell the prefix of name; returns its last part. */
static const char *field_path_move(struct field_path *path, struct jout *j, const char *name)
{
    int keep = 0;
    const char *dot = strchr(name, '.');
    if (!dot && !path->depth)
        return name;
    while ((dot = strchr(name, '.')) != NULL) {
        char part[PREFIX_MAX];
        text_printf(part, "%.*s", (int)(dot - name), name); /* rows are short */
        if (keep < path->depth && !strcmp(path->part[keep], part)) {
            keep++;
        } else {
            for (; path->depth > keep; path->depth--)
                jout_close(j, '}');
            jout_open(j, part, '{');
            memcpy(path->part[keep], part, sizeof(part));
            path->depth = ++keep;
        }
        name = dot + 1;
    }
    for (; path->depth > keep; path->depth--)
        jout_close(j, '}');
    return name;
}

void field_put_members(const struct field_table *t,
                       const void *object,
                       unsigned which,
                       enum field_form form,
                       struct jout *j)
{
    struct field_path path;
    path.depth = 0; /* its parts are written before they are read */
    for (size_t i = 0; i < t->n; i++) {
        const struct field *f = &t->rows[i];
        const void *p = (const char *)object + f->offset;
        unsigned flags = field_flags_of(t, f);
        if (f->type == FIELD_INLINE) {
            (void)field_path_move(&path, j, ""); /* closes what is open */
            field_put_members(f->of, p, which, form, j);
            continue;
        }
        if ((which && !(flags & which)) || f->type == FIELD_NODE)
            continue;
        if (flags & FIELD_OMIT && !field_is_set(f, flags, p))
            continue;
        const char *name = f->name;
        size_t n = strlen(name);
        if (path.depth || memchr(name, '.', n)) {
            name = field_path_move(&path, j, name);
            n = strlen(name);
        }
        jout_key(j, name, n);
        field_put_value(f, which, p, form, j, NULL);
    }
    (void)field_path_move(&path, j, ""); /* closes what is open */
}

void field_to_json(const struct field_table *t,
                   const void *object,
                   unsigned which,
                   enum field_form form,
                   struct jout *j,
                   const char *key)
{
    jout_open(j, key, '{');
    field_put_members(t, object, which, form, j);
    jout_close(j, '}');
}

char *field_to_text(const struct field_table *t,
                    const void *object,
                    unsigned which,
                    enum field_form form)
{
    struct buf out = BUF_INIT(ROW_TEXT_MAX);
    struct jout j = jout_begin(&out);
    field_to_json(t, object, which, form, &j, NULL);
    return buf_take(&out);
}

/* ---- reading ---- */

static const json_t *field_json_at(const json_t *v, const char *name)
{
    char part[PREFIX_MAX];
    while (v && *name) {
        size_t n = strcspn(name, ".");
        text_printf(part, "%.*s", (int)n, name); /* rows are short */
        v = json_object_get(v, part);
        name += n + (name[n] == '.');
    }
    return v;
}

static void field_get_strv(struct strv *sv, const json_t *v)
{
    const json_t *item;
    size_t i;
    if (!json_is_array(v))
        return;
    strv_release(sv);
    json_array_foreach (v, i, item)
        if (json_is_string(item))
            strv_add(sv, json_string_value(item));
}

static void field_get_pairs(struct pairs *p, const json_t *v)
{
    const char *key;
    json_t *item;
    if (!json_is_object(v))
        return;
    pairs_release(p);
    json_t *object = json_copy((json_t *)(uintptr_t)v); /* foreach wants to be able to write */
    json_object_foreach (object, key, item)
        if (json_is_string(item))
            pairs_set(p, key, json_string_value(item));
    json_decref(object);
}

static void field_get_list(const struct field *f, const json_t *v, unsigned which, void *p)
{
    struct field_list *list = p;
    if (!json_is_array(v))
        return;
    const struct field_table one = {.rows = f, .n = 1};
    field_release(&one, (char *)p - f->offset);
    size_t n = json_array_size(v);
    list->v = n ? xcalloc(n, f->of->size) : NULL;
    list->n = n;
    which = field_which_of(f->of, which);
    for (size_t i = 0; i < n; i++)
        field_from_json(f->of, json_array_get(v, i), which, (char *)list->v + i * f->of->size);
}

static void field_get_enum(const struct field *f, const json_t *v, int *p)
{
    const char *word = json_string_value(v);
    for (int i = 0; word && f->names[i]; i++)
        if (!strcmp(f->names[i], word))
            *p = i;
}

/* A number, or a text in the page form. */
static bool field_get_usec(const struct field *f, const json_t *v, usec_t *p)
{
    const char *text = json_string_value(v);
    if (json_is_integer(v) && json_integer_value(v) >= 0) {
        *p = (usec_t)json_integer_value(v);
        return true;
    }
    usec_t got = 0;
    int r = !text                   ? -1
            : f->type == FIELD_TIME ? clock_from_string(text, &got, NULL)
                                    : span_from_string(text, &got, NULL);
    if (r >= 0)
        *p = got;
    return r >= 0;
}

static void field_get_number(const struct field *f, const json_t *v, void *p)
{
    uint64_t bytes = 0;
    if (json_is_null(v) && f->flags & FIELD_NO_LIMIT) {
        if (f->type == FIELD_REAL)
            *(double *)p = -1;
        else if (f->type == FIELD_INT)
            *(int64_t *)p = -1;
        else if (f->type == FIELD_INT32)
            *(int *)p = -1;
    } else if (f->type == FIELD_SPAN || f->type == FIELD_TIME) {
        (void)field_get_usec(f, v, p); /* else it stays */
    } else if (f->type == FIELD_SIZE && json_is_string(v)) {
        if (size_from_string(json_string_value(v), &bytes, NULL) >= 0)
            *(uint64_t *)p = bytes;
    } else if (!json_is_number(v)) {
        return;
    } else if (f->type == FIELD_REAL) {
        *(double *)p = json_number_value(v);
    } else if (f->type == FIELD_INT32) {
        *(int *)p = (int)json_number_value(v);
    } else {
        *(int64_t *)p =
            json_is_integer(v) ? (int64_t)json_integer_value(v) : (int64_t)json_number_value(v);
    }
}

static void field_get_text(const struct field *f, const json_t *v, void *p)
{
    if (f->type == FIELD_JSON) {
        freep(p);
        *(char **)p = v && !json_is_null(v) ? json_dumps(v, JSON_COMPACT) : NULL;
    } else if (json_is_null(v) && f->type == FIELD_STR) {
        set_str(p, NULL);
    } else if (json_is_string(v)) {
        if (f->type == FIELD_STR)
            set_str(p, json_string_value(v));
        else
            text_copy_to(p, f->size, json_string_value(v)); /* cut: as it was stored */
    }
}

static void field_get_one(const struct field *f, const json_t *v, unsigned which, void *p)
{
    switch (f->type) {
    case FIELD_STR:
    case FIELD_TEXT:
    case FIELD_JSON:
        field_get_text(f, v, p);
        break;
    case FIELD_BOOL:
        if (json_is_boolean(v))
            *(bool *)p = json_is_true(v);
        break;
    case FIELD_ENUM:
        field_get_enum(f, v, p);
        break;
    case FIELD_STRV:
        field_get_strv(p, v);
        break;
    case FIELD_PAIRS:
        field_get_pairs(p, v);
        break;
    case FIELD_OBJECT:
        if (json_is_object(v))
            field_from_json(f->of, v, field_which_of(f->of, which), p);
        break;
    case FIELD_LIST:
        field_get_list(f, v, which, p);
        break;
    case FIELD_PART:
    case FIELD_REALS:
    case FIELD_NODE:
        break; /* borrowed; see conf_read() */
    default:
        field_get_number(f, v, p);
    }
}

void field_from_json(const struct field_table *t, const json_t *v, unsigned which, void *object)
{
    for (size_t i = 0; i < t->n; i++) {
        const struct field *f = &t->rows[i];
        const json_t *value = field_json_at(v, f->name);
        if (f->type == FIELD_INLINE && !(f->flags & FIELD_BORROWED))
            field_from_json(f->of, v, which, (char *)object + f->offset);
        else if (f->type == FIELD_INLINE || !value || (which && !(field_flags_of(t, f) & which)) ||
                 f->flags & FIELD_BORROWED)
            continue;
        else
            field_get_one(f, value, which, (char *)object + f->offset);
    }
}

bool field_from_text(const struct field_table *t, const char *text, unsigned which, void *object)
{
    _cleanup_(json_unrefp) json_t *v = NULL;
    if (!text || json_parse(text, strlen(text), ROW_TEXT_MAX, &v, NULL) < 0 || !json_is_object(v))
        return false;
    field_from_json(t, v, which, object);
    return true;
}

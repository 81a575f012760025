/* SPDX-License-Identifier: Apache-2.0 */
/* field_schema.c - a field table as JSON schema, for openapi.json.
 *
 * Every object is closed: a member that no row names is a mistake of the sender, or of the table.
 * A schema named by a row is a reference into components/schemas. */
#include "base/field.h"

#include <string.h>

#include "base/str.h"
#include "base/text.h"

enum { PART_MAX = 64, REF_MAX = 128 };

struct schema_writer {
    const struct field_table *t;
    unsigned which;
    bool is_form;
    struct jout *j;
};

static unsigned schema_flags(const struct schema_writer *w, const struct field *f)
{
    return w->t->all | f->flags;
}

static bool schema_takes(const struct schema_writer *w, const struct field *f)
{
    return f->type != FIELD_INLINE && (!w->which || schema_flags(w, f) & w->which) &&
           (w->is_form || f->type != FIELD_NODE);
}

/* May the member be null? */
static bool schema_is_nullable(const struct schema_writer *w, const struct field *f)
{
    unsigned flags = schema_flags(w, f);
    if (flags & FIELD_NO_LIMIT)
        return w->is_form || !(flags & FIELD_OMIT);
    if (flags & FIELD_MAYBE)
        return !w->is_form;
    if (w->is_form || flags & (FIELD_OMIT | FIELD_REQUIRED | FIELD_ALWAYS))
        return false;
    return f->type == FIELD_STR || f->type == FIELD_JSON || f->type == FIELD_TIME ||
           f->type == FIELD_PART || (f->type == FIELD_ENUM && f->names[0] && !*f->names[0]);
}

static void schema_put_type(struct jout *j, const char *type, bool nullable)
{
    if (!nullable) {
        jout_str(j, "type", type);
        return;
    }
    jout_open(j, "type", '[');
    jout_str(j, NULL, type);
    jout_str(j, NULL, "null");
    jout_close(j, ']');
}

static void schema_put_bounds(const struct field *f, struct jout *j)
{
    if (f->min == 0 && f->max == 0)
        return;
    jout_real(j, "minimum", f->min);
    jout_real(j, "maximum", f->max);
}

static void schema_put_enum(const struct field *f, struct jout *j, bool nullable)
{
    jout_open(j, "enum", '[');
    for (size_t i = 0; f->names[i]; i++)
        if (*f->names[i])
            jout_str(j, NULL, f->names[i]);
    if (nullable)
        jout_null(j, NULL);
    jout_close(j, ']');
}

/* {"$ref":…}, or a whole schema as the row has it. */
static void schema_put_named(const char *schema, struct jout *j, const char *key)
{
    char ref[REF_MAX];
    if (*schema == '{') {
        jout_raw(j, key, schema);
        return;
    }
    text_printf(ref, "#/components/schemas/%s", schema); /* ours, short */
    jout_open(j, key, '{');
    jout_str(j, "$ref", ref);
    jout_close(j, '}');
}

static void schema_put_choice(const char *schema, struct jout *j)
{
    jout_open(j, "anyOf", '[');
    schema_put_named(schema, j, NULL);
    jout_raw(j, NULL, "{\"type\":\"null\"}");
    jout_close(j, ']');
}

static void schema_put_struct(const struct schema_writer *w,
                              const struct field_table *of,
                              struct jout *j,
                              const char *key)
{
    if (of->name)
        schema_put_named(of->name, j, key);
    else if (w->is_form)
        field_form_schema(of, field_which_of(of, w->which), j, key);
    else
        field_page_schema(of, field_which_of(of, w->which), j, key);
}

static void schema_put_strv(const struct schema_writer *w, struct jout *j)
{
    if (!w->is_form)
        jout_str(j, "type", "array");
    if (w->is_form)
        jout_raw(j, "anyOf",
                 "[{\"type\":\"array\",\"items\":{\"type\":[\"string\",\"number\",\"boolean\"]}},"
                 "{\"type\":[\"string\",\"number\",\"boolean\"]}]");
    else
        jout_raw(j, "items", "{\"type\":\"string\"}");
}

/* What stands inside the braces of one member. */
static void schema_put_body(const struct schema_writer *w, const struct field *f, struct jout *j)
{
    bool nullable = schema_is_nullable(w, f);
    switch (f->type) {
    case FIELD_STR:
    case FIELD_TEXT:
        schema_put_type(j, "string", nullable);
        break;
    case FIELD_TIME:
        schema_put_type(j, "string", nullable);
        jout_str(j, "format", "date-time");
        break;
    case FIELD_SPAN:
    case FIELD_SIZE:
        if (w->is_form)
            jout_raw(j, "type", "[\"string\",\"number\"]");
        else
            schema_put_type(j, "string", nullable);
        break;
    case FIELD_REAL:
        schema_put_type(j, "number", nullable);
        schema_put_bounds(f, j);
        break;
    case FIELD_INT:
    case FIELD_INT32:
    case FIELD_COUNT:
        schema_put_type(j, "integer", nullable);
        schema_put_bounds(f, j);
        break;
    case FIELD_BOOL:
        jout_str(j, "type", "boolean");
        break;
    case FIELD_ENUM:
        schema_put_enum(f, j, nullable);
        break;
    case FIELD_STRV:
        schema_put_strv(w, j);
        break;
    case FIELD_BITS:
        jout_str(j, "type", "array");
        jout_raw(j, "items", f->names ? "{\"type\":\"string\"}" : "{\"type\":\"integer\"}");
        break;
    case FIELD_REALS:
        jout_str(j, "type", "array");
        jout_raw(j, "items", "{\"type\":[\"number\",\"null\"]}");
        break;
    case FIELD_PAIRS:
        jout_str(j, "type", "object");
        jout_raw(j, "additionalProperties", "{\"type\":[\"string\",\"number\",\"boolean\"]}");
        break;
    case FIELD_LIST:
        jout_str(j, "type", "array");
        schema_put_struct(w, f->of, j, "items");
        break;
    case FIELD_PART:
        jout_open(j, "anyOf", '[');
        schema_put_struct(w, f->of, j, NULL);
        jout_raw(j, NULL, "{\"type\":\"null\"}");
        jout_close(j, ']');
        break;
    default:
        break; /* FIELD_NODE, FIELD_JSON without a schema: anything */
    }
}

static void schema_put_member(const struct schema_writer *w, const struct field *f, const char *key)
{
    bool is_struct = f->type == FIELD_OBJECT || f->type == FIELD_PART;
    if (is_struct && !f->schema && !schema_is_nullable(w, f)) {
        schema_put_struct(w, f->of, w->j, key);
        return;
    }
    if (f->schema && !schema_is_nullable(w, f)) {
        schema_put_named(f->schema, w->j, key);
        return;
    }
    jout_open(w->j, key, '{');
    if (f->schema)
        schema_put_choice(f->schema, w->j);
    else
        schema_put_body(w, f, w->j);
    if (f->doc)
        jout_str(w->j, "description", f->doc);
    jout_close(w->j, '}');
}

static bool schema_is_required(const struct schema_writer *w, const struct field *f)
{
    unsigned flags = schema_flags(w, f);
    return w->is_form ? (flags & FIELD_REQUIRED) != 0 : !(flags & (FIELD_OMIT | FIELD_OWN_ALL));
}

static void schema_put_object(const struct schema_writer *w,
                              const char *key,
                              const char *prefix,
                              size_t from,
                              size_t until);

/* The rows from i on that share their next part after the prefix: how many. */
static size_t schema_group(const struct schema_writer *w, size_t at, size_t until, size_t skip)
{
    const char *name = w->t->rows[at].name;
    size_t part = strcspn(name + skip, "."), n = 1;
    if (!name[skip + part])
        return 1;
    while (at + n < until && !strncmp(w->t->rows[at + n].name, name, skip + part + 1))
        n++;
    return n;
}

static bool schema_takes_any(const struct schema_writer *w, size_t from, size_t n, bool required)
{
    for (size_t i = from; i < from + n; i++)
        if (schema_takes(w, &w->t->rows[i]) && (!required || schema_is_required(w, &w->t->rows[i])))
            return true;
    return false;
}

static struct schema_writer schema_inside(const struct schema_writer *w, const struct field *f)
{
    struct schema_writer in = *w;
    in.t = f->of;
    return in;
}

/* The object of the rows that share a prefix, or the word that stands for it. */
static void schema_put_group(const struct schema_writer *w,
                             const char *key,
                             const char *prefix,
                             size_t from,
                             size_t until)
{
    if (!(w->t->rows[from].flags & FIELD_OR_NONE)) {
        schema_put_object(w, key, prefix, from, until);
        return;
    }
    jout_open(w->j, key, '{');
    jout_open(w->j, "anyOf", '[');
    schema_put_object(w, NULL, prefix, from, until);
    jout_raw(w->j, NULL, "{\"enum\":[\"none\"]}");
    jout_close(w->j, ']');
    jout_close(w->j, '}');
}

static void schema_put_properties(const struct schema_writer *w,
                                  size_t skip,
                                  size_t from,
                                  size_t until)
{
    for (size_t i = from, n; i < until; i += n) {
        const char *name = w->t->rows[i].name;
        size_t part = strcspn(name + skip, ".");
        char own[PART_MAX], prefix[PART_MAX];
        n = schema_group(w, i, until, skip);
        if (w->t->rows[i].type == FIELD_INLINE) {
            const struct schema_writer in = schema_inside(w, &w->t->rows[i]);
            schema_put_properties(&in, 0, 0, in.t->n);
        }
        if (!schema_takes_any(w, i, n, false))
            continue;
        text_printf(own, "%.*s", (int)part, name + skip); /* rows are short */
        if (!name[skip + part]) {
            schema_put_member(w, &w->t->rows[i], own);
            continue;
        }
        text_printf(prefix, "%.*s", (int)(skip + part + 1), name);
        schema_put_group(w, own, prefix, i, i + n);
    }
}

static void schema_put_required_names(const struct schema_writer *w,
                                      size_t skip,
                                      size_t from,
                                      size_t until)
{
    for (size_t i = from, n; i < until; i += n) {
        const char *name = w->t->rows[i].name + skip;
        n = schema_group(w, i, until, skip);
        if (w->t->rows[i].type == FIELD_INLINE) {
            const struct schema_writer in = schema_inside(w, &w->t->rows[i]);
            schema_put_required_names(&in, 0, 0, in.t->n);
        } else if (schema_takes_any(w, i, n, true)) {
            jout_strn(w->j, NULL, name, strcspn(name, "."));
        }
    }
}

static void schema_put_object(const struct schema_writer *w,
                              const char *key,
                              const char *prefix,
                              size_t from,
                              size_t until)
{
    jout_open(w->j, key, '{');
    jout_str(w->j, "type", "object");
    jout_bool(w->j, "additionalProperties", false);
    jout_open(w->j, "required", '[');
    schema_put_required_names(w, strlen(prefix), from, until);
    jout_close(w->j, ']');
    jout_open(w->j, "properties", '{');
    schema_put_properties(w, strlen(prefix), from, until);
    jout_close(w->j, '}');
    jout_close(w->j, '}');
}

void field_page_schema(const struct field_table *t, unsigned which, struct jout *j, const char *key)
{
    const struct schema_writer w = {.t = t, .which = which, .j = j};
    schema_put_object(&w, key, "", 0, t->n);
}

void field_form_schema(const struct field_table *t, unsigned which, struct jout *j, const char *key)
{
    const struct schema_writer w = {.t = t, .which = which, .is_form = true, .j = j};
    schema_put_object(&w, key, "", 0, t->n);
}

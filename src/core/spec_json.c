/* SPDX-License-Identifier: Apache-2.0 */
/* spec_json.c - a resolved JobSpec as JSON, by the same table that reads it.
 *
 * Rows of one mapping stand together in the table, so an object is opened when a
 * dotted prefix begins and closed when it ends. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "core/spec_table.h"

enum { DEPTH_MAX = 4, PREFIX_MAX = 64 };

static const void *at(const struct conf_key *k, const struct spec *s)
{
    return (const char *)s + k->offset;
}

static bool is_set(const struct conf_key *k, const struct spec *s)
{
    const void *p = at(k, s);
    if (s->checkpoint_none && str_starts(k->name, "checkpoint."))
        return false;
    switch (k->type) {
    case CONF_STR:
        return *(char *const *)p != NULL;
    case CONF_STRV:
        return ((const struct strv *)p)->n > 0;
    case CONF_PAIRS:
        return ((const struct pairs *)p)->n > 0;
    case CONF_INT:
        return *(const int64_t *)p != 0 || k->dflt;
    case CONF_SPAN:
        return *(const usec_t *)p != 0 || k->dflt;
    case CONF_REAL: /* of the driver 0 is an answer, -1 is none */
        return *(const double *)p > 0 ||
               (*(const double *)p == 0 && str_starts(k->name, "entrypoint_"));
    default:
        return true;
    }
}

static void put_strv(struct jout *j, const char *key, const struct strv *sv)
{
    jout_open(j, key, '[');
    for (size_t i = 0; i < sv->n; i++)
        jout_str(j, NULL, sv->v[i]);
    jout_close(j, ']');
}

static void put_pairs(struct jout *j, const char *key, const struct pairs *p)
{
    jout_open(j, key, '{');
    for (size_t i = 0; i < p->n; i++)
        jout_str(j, p->v[i].key, str_is_secret_name(p->v[i].key) ? "***" : p->v[i].value);
    jout_close(j, '}');
}

static void put_span(struct jout *j, const char *key, usec_t span)
{
    char text[CLOCK_TEXT_MAX];
    (void)snprintf(text, sizeof(text), "%llus", (unsigned long long)(span / USEC_SEC)); /* fits */
    jout_str(j, key, text);
}

static void put_number(struct jout *j, const char *key, double v)
{
    if (v == floor(v))
        jout_int(j, key, (int64_t)v);
    else
        jout_real(j, key, v);
}

static void put_value(struct jout *j, const char *key, const struct conf_key *k, const void *p)
{
    switch (k->type) {
    case CONF_STR:
        jout_str(j, key, *(char *const *)p);
        break;
    case CONF_INT:
        jout_int(j, key, *(const int64_t *)p);
        break;
    case CONF_REAL:
        put_number(j, key, *(const double *)p);
        break;
    case CONF_BOOL:
        jout_bool(j, key, *(const bool *)p);
        break;
    case CONF_SPAN:
        put_span(j, key, *(const usec_t *)p);
        break;
    case CONF_ENUM:
        jout_str(j, key, k->names[*(const int *)p]);
        break;
    case CONF_STRV:
        put_strv(j, key, p);
        break;
    case CONF_PAIRS:
        put_pairs(j, key, p);
        break;
    case CONF_SIZE:
    case CONF_NODE:
        break; /* a JobSpec has none */
    }
}

/* Close and open objects so that the open ones spell the path of name; returns its last part. */
static const char *move_to(struct jout *j, char (*open)[PREFIX_MAX], int *depth, const char *name)
{
    int keep = 0;
    const char *dot;
    while ((dot = strchr(name, '.')) != NULL) {
        char part[PREFIX_MAX];
        (void)snprintf(part, sizeof(part), "%.*s", (int)(dot - name), name); /* short rows */
        if (keep < *depth && !strcmp(open[keep], part)) {
            keep++;
        } else {
            for (; *depth > keep; (*depth)--)
                jout_close(j, '}');
            jout_open(j, part, '{');
            (void)snprintf(open[keep], PREFIX_MAX, "%s", part); /* same size */
            *depth = ++keep;
        }
        name = dot + 1;
    }
    for (; *depth > keep; (*depth)--)
        jout_close(j, '}');
    return name;
}

void spec_to_json(const struct spec *s, struct jout *j, const char *key)
{
    char open[DEPTH_MAX][PREFIX_MAX];
    int depth = 0;
    jout_open(j, key, '{');
    for (size_t i = 0; i < spec_keys_n; i++) {
        const struct conf_key *k = &spec_keys[i];
        if (!is_set(k, s))
            continue;
        const char *last = move_to(j, open, &depth, k->name);
        if (s->entrypoint_is_shell && !strcmp(last, "entrypoint"))
            jout_str(j, last, s->entrypoint.v[0]);
        else
            put_value(j, last, k, at(k, s));
    }
    (void)move_to(j, open, &depth, ""); /* closes what is open */
    if (s->checkpoint_none)
        jout_str(j, "checkpoint", "none");
    jout_close(j, '}');
}

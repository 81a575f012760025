/* SPDX-License-Identifier: Apache-2.0 */
/* imports.c - keeps the records of what was imported; see imports.h.
 *
 * The first of an attempt that names a verl, and a mismatch, are events; the page has all. That a
 * node is silent ends nothing: its hook may have had no place to write. */
#include "argusd/watch/imports.h"

#include <stdlib.h>
#include <string.h>

#include "argusd/watch/sight.h"
#include "base/json.h"
#include "base/str.h"
#include "base/text.h"
#include "fsroot/proof.h"

enum { IMPORTS_MAX = 256 << 10 };

static json_t *imports_parse(const char *text)
{
    json_t *o = NULL;
    return text && json_parse(text, strlen(text), IMPORTS_MAX, &o, NULL) == 0 ? o : NULL;
}

static void imports_tell(struct live *l, const json_t *old, const json_t *new)
{
    char text[JOB_REASON_TEXT_MAX];
    bool first = json_get_int(old, "attempt", 0) != json_get_int(new, "attempt", 0);
    const char *bad = json_get_str(new, "mismatch", NULL), *file = json_get_str(new, "file", NULL);
    if (bad && (first || !json_get_str(old, "mismatch", NULL)))
        jobs_note(l, "imported", PROOF_CLASS, bad, clock_wall());
    else if (file && !bad && (first || !json_get_str(old, "file", NULL))) {
        text_printf(text, "verl %s was imported from '%s'", json_get_str(new, "verl", "-"),
                    file); /* cut: the page has it whole */
        jobs_note(l, "imported", "", text, clock_wall());
    }
}

/* ---- silence ---- */

static bool has_node(const json_t *imports, const char *node)
{
    size_t i;
    const json_t *item;
    json_array_foreach (json_get_array(imports, "nodes"), i, item)
        if (str_eq(json_string_value(item), node))
            return true;
    return false;
}

/* The first node of the gang that no process speaks for. NULL: all have one. Borrowed. */
static const char *silent_node(const struct live *l, const json_t *imports)
{
    const struct gang *gang = &l->job->gang;
    for (size_t i = 0; i < gang->n; i++)
        if (!has_node(imports, gang->v[i].name))
            return gang->v[i].name;
    return NULL;
}

static json_t *own_imports(const struct live *l)
{
    json_t *o = imports_parse(l->extra.imports);
    if (o && json_get_int(o, "attempt", 0) == job_attempt(l->job)->k)
        return o;
    json_decref(o);
    return NULL;
}

bool imports_are_missing(const struct live *l)
{
    if (sight_of(l)->silence_told || sight_of(l)->all_proven || l->job->state != JOB_RUNNING ||
        job_is_holding(l->job))
        return false;
    _cleanup_(json_unrefp) json_t *o = own_imports(l);
    if (!l->extra.verl && !json_get_str(o, "file", NULL))
        return false;
    const char *node = silent_node(l, o);
    return node != NULL;
}

static void tell_silence(struct live *l)
{
    _cleanup_(json_unrefp) json_t *o = own_imports(l);
    const char *node = silent_node(l, o);
    char text[JOB_REASON_TEXT_MAX];
    if (!node)
        return;
    sight_change(l)->silence_told = true;
    text_printf(text,
                "it trains, and no process on node %s has shown which verl it imported: its "
                "Python may run without PYTHONPATH (-I, -E) or cannot write to the shared root",
                node);
    jobs_note(l, "imports_missing", "no_proof", text, clock_wall());
}

/* ---- all ---- */

static void take_records(struct live *l, struct files_look *k)
{
    sight_change(l)->proof_mtime = k->proof_mtime;
    sight_change(l)->proof_is_settled = k->proof_is_settled;
    if (!k->imports)
        return;
    _cleanup_(json_unrefp) json_t *old = imports_parse(l->extra.imports),
                                  *new = imports_parse(k->imports);
    const char *node = silent_node(l, new);
    sight_change(l)->all_proven = !node;
    if (str_eq(k->imports, l->extra.imports))
        return;
    free(l->extra.imports);
    l->extra.imports = k->imports;
    k->imports = NULL;
    jobs_save(l);
    imports_tell(l, old, new);
}

void imports_take(struct live *l, struct files_look *k)
{
    take_records(l, k);
    if (k->trains && imports_are_missing(l))
        tell_silence(l);
}

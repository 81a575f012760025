/* SPDX-License-Identifier: Apache-2.0 */
/* imports.c - keeps the records of what was imported; see imports.h.
 *
 * The first of an attempt that names a verl, and a mismatch, are events; the page has all. That a
 * node is silent ends nothing: its hook may have had no place to write. */
#include "argusd/watch/imports.h"

#include <stdlib.h>
#include <string.h>

#include "argusd/watch/sight.h"
#include "base/message.h"
#include "base/str.h"
#include "fsroot/attempt/proof.h"

/* A text that proof_summary() wrote; NULL, or one that does not read: nothing is known. */
static struct proof_summary imports_read(const char *text)
{
    struct proof_summary s = {0};
    (void)field_from_text(&proof_summary_table, text, FIELD_ALL, &s); /* else it stays empty */
    return s;
}

static void imports_tell(struct live *l,
                         const struct proof_summary *old,
                         const struct proof_summary *new)
{
    char text[JOB_REASON_TEXT_MAX];
    bool first = old->attempt != new->attempt;
    const char *bad = new->mismatch, *file = new->all.file;
    if (bad && (first || !old->mismatch)) {
        message_write(text, sizeof(text), MESSAGE_ARGS(MESSAGE_KEPT("message", bad)));
        jobs_note(l, "imported", PROOF_CLASS, text, clock_wall());
    } else if (file && !bad && (first || !old->all.file)) {
        message_write(text, sizeof(text),
                      MESSAGE_ARGS(MESSAGE_STR("version", new->all.verl ? new->all.verl : ""),
                                   MESSAGE_STR("file", file))); /* cut: the page has it whole */
        jobs_note(l, "imported", "imported", text, clock_wall());
    }
}

/* ---- silence ---- */

/* The first node of the gang that no process speaks for. NULL: all have one. Borrowed. */
static const char *silent_node(const struct live *l, const struct proof_summary *imports)
{
    const struct gang *gang = &l->job->gang;
    for (size_t i = 0; i < gang->n; i++)
        if (!strv_has(&imports->nodes, gang->v[i].name))
            return gang->v[i].name;
    return NULL;
}

/* The imports of the job's newest attempt. */
static struct proof_summary own_imports(const struct live *l)
{
    struct proof_summary s = imports_read(l->extra.imports);
    if (s.attempt != job_attempt(l->job)->k)
        proof_summary_release(&s);
    return s;
}

bool imports_are_missing(const struct live *l)
{
    if (sight_of(l)->silence_told || sight_of(l)->all_proven || l->job->state != JOB_RUNNING ||
        job_is_holding(l->job))
        return false;
    _cleanup_(proof_summary_release) struct proof_summary s = own_imports(l);
    return (l->extra.verl || s.all.file) && silent_node(l, &s);
}

static void tell_silence(struct live *l)
{
    _cleanup_(proof_summary_release) struct proof_summary s = own_imports(l);
    const char *node = silent_node(l, &s);
    char text[JOB_REASON_TEXT_MAX];
    if (!node)
        return;
    sight_change(l)->silence_told = true;
    message_write(text, sizeof(text), MESSAGE_ARGS(MESSAGE_STR("node", node)));
    jobs_note(l, "imports_missing", "no_proof", text, clock_wall());
}

/* ---- all ---- */

static void take_records(struct live *l, struct files_look *k)
{
    sight_change(l)->proof_mtime = k->proof_mtime;
    sight_change(l)->proof_is_settled = k->proof_is_settled;
    if (!k->imports)
        return;
    _cleanup_(proof_summary_release) struct proof_summary old = imports_read(l->extra.imports);
    _cleanup_(proof_summary_release) struct proof_summary new = imports_read(k->imports);
    const char *node = silent_node(l, &new);
    sight_change(l)->all_proven = !node;
    if (str_eq(k->imports, l->extra.imports))
        return;
    free(l->extra.imports);
    l->extra.imports = k->imports;
    k->imports = NULL;
    jobs_save(l);
    imports_tell(l, &old, &new);
}

void imports_take(struct live *l, struct files_look *k)
{
    take_records(l, k);
    if (k->trains && imports_are_missing(l))
        tell_silence(l);
}

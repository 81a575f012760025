/* SPDX-License-Identifier: Apache-2.0 */
/* proof.c - reads the records of what was imported; see proof.h.
 *
 * Records come and go while they are read: each is whole or not there, and one that vanishes in
 * between is met at the next look. They are read in the order of their names, so that the same
 * files always give the same answer. Linked into the static shepherd: base_core only. */
#define _GNU_SOURCE
#include "fsroot/attempt/proof.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/message.h"
#include "base/str.h"
#include "base/strv.h"

static const char MISMATCH[] = "mismatch-";

enum { TEXT_MAX = 1024 };

void proof_record_release(struct proof_record *r)
{
    char *texts[] = {r->kind, r->node, r->python, r->torch, r->ray,      r->snapshot, r->hash,
                     r->verl, r->file, r->reward, r->what,  r->expected, r->found};
    for (size_t i = 0; i < array_len(texts); i++)
        free(texts[i]);
    *r = (struct proof_record){0};
}

/* ---- one record ---- */

/* NULL for what is no text. The copy ends before a character that TEXT_MAX would cut. */
static char *proof_take_text(const json_t *o, const char *key)
{
    const char *s = json_get_str(o, key, NULL);
    if (!s || !*s)
        return NULL;
    char *out = xstrndup(s, str_cut(s, TEXT_MAX));
    for (char *p = out; *p; p++)
        *p = iscntrl((unsigned char)*p) ? ' ' : *p;
    return out;
}

static void proof_read_members(const json_t *o, struct proof_record *r)
{
    const json_t *verl = json_get_object(o, "verl");
    r->kind = proof_take_text(o, "kind");
    r->node = proof_take_text(o, "node");
    r->python = proof_take_text(o, "python");
    r->torch = proof_take_text(o, "torch");
    r->ray = proof_take_text(o, "ray");
    r->snapshot = proof_take_text(o, "snapshot");
    r->hash = proof_take_text(o, "hash");
    r->pid = json_get_int(o, "pid", 0);
    r->verl = proof_take_text(verl, "version");
    r->file = proof_take_text(verl, "file");
    r->reward = proof_take_text(json_get_object(o, "reward"), "file");
}

static void read_mismatch(const json_t *o, struct proof_record *r)
{
    r->what = proof_take_text(o, "what");
    r->expected = proof_take_text(o, "expected");
    r->found = proof_take_text(o, "found");
}

int proof_record_from_json(const char *text, size_t len, struct proof_record *ret, struct err *err)
{
    _cleanup_(json_unrefp) json_t *o = NULL;
    _cleanup_(proof_record_release) struct proof_record rec = {0};
    int r = json_parse(text, len, PROOF_MAX_BYTES, &o, err);
    if (r < 0)
        return r;
    proof_read_members(o, &rec);
    const json_t *bad = json_get_object(o, "mismatch");
    if (bad)
        read_mismatch(bad, &rec);
    if (!rec.kind || !rec.node)
        return message_refuse(err, -EINVAL, "proof_lacks", MESSAGE_NO_ARGS);
    if (bad && (!rec.what || !rec.expected))
        return message_refuse(err, -EINVAL, "proof_mismatch", MESSAGE_NO_ARGS);
    *ret = rec;
    rec = (struct proof_record){0};
    return 0;
}

char *proof_says(const struct proof_record *r)
{
    char text[PROOF_SAYS_MAX - 40]; /* a code is shorter than that */
    bool is_verl = !strcmp(r->what, "verl"), is_code = !strcmp(r->what, "code");
    const char *code = !is_verl   ? "proof_not_there"
                       : r->found ? "proof_other_verl"
                                  : "proof_no_verl";
    const char *member = is_verl ? "" : is_code ? "code_path" : "working_dir";
    message_write(text, sizeof(text),
                  MESSAGE_ARGS(MESSAGE_STR("found", str_or(r->found, "")),
                               MESSAGE_STR("expected", r->expected), MESSAGE_STR("member", member),
                               MESSAGE_STR("process", r->kind), MESSAGE_NUM("pid", r->pid),
                               MESSAGE_STR("node", r->node)));
    return xasprintf("%s%s", code, text);
}

/* ---- all of them ---- */

static int proof_by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Opening the directory makes an NFS client ask its server what is in it now. */
static void list_records(const struct rootdir *proof, const char *prefix, struct strv *ret)
{
    DIR *dir = NULL;
    if (rootdir_list(proof, &dir, NULL) < 0)
        return;
    for (struct dirent *e; ret->n < PROOF_FILES_MAX && (e = readdir(dir));)
        if (e->d_name[0] != '.' && str_starts(e->d_name, prefix) && str_ends(e->d_name, ".json"))
            strv_add(ret, e->d_name);
    (void)closedir(dir); /* it was only read */
    if (ret->n)
        qsort(ret->v, ret->n, sizeof(*ret->v), proof_by_name);
}

static int read_record(const struct rootdir *proof, const char *name, struct proof_record *ret)
{
    _cleanup_(buf_release) struct buf text = BUF_INIT(PROOF_MAX_BYTES);
    int r = rootdir_read(proof, name, &text, NULL);
    return r < 0 ? r : proof_record_from_json(buf_str(&text), text.len, ret, NULL);
}

char *proof_mismatch(const char *dir)
{
    _cleanup_(rootdir_release) struct rootdir proof = ROOTDIR_NONE;
    _cleanup_(strv_release) struct strv names = {0};
    if (rootdir_open(dir, ATTEMPT_PROOF, 0, &proof, NULL) < 0)
        return NULL;
    list_records(&proof, MISMATCH, &names);
    for (size_t i = 0; i < names.n; i++) {
        _cleanup_(proof_record_release) struct proof_record rec = {0};
        if (read_record(&proof, names.v[i], &rec) == 0 && rec.what)
            return proof_says(&rec);
    }
    return NULL;
}

/* ---- together ---- */

/* NULL where nobody said it. Owned. */
struct process_page {
    char *kind, *node, *verl, *file;
    int64_t pid;
    bool ok;
};
#define PROCESS(member, ftype) FIELD_AT(process_page, #member, ftype, member, .flags = 0)
static const struct field process_rows[] = {
    PROCESS(kind, FIELD_STR), PROCESS(node, FIELD_STR), PROCESS(pid, FIELD_INT),
    PROCESS(verl, FIELD_STR), PROCESS(file, FIELD_STR), PROCESS(ok, FIELD_BOOL),
};
static const struct field_table process_table = FIELD_TABLE(NULL, process_rows, process_page);

#define ALL(member, ftype) FIELD_AT(proof_summary, #member, ftype, member, .flags = 0)
#define FIRST(member) FIELD_AT(proof_summary, #member, FIELD_STR, all.member, .flags = 0)
static const struct field summary_rows[] = {
    FIELD_AT(proof_summary, "processes", FIELD_LIST, processes, .of = &process_table),
    ALL(attempt, FIELD_INT32),
    ALL(ok, FIELD_BOOL),
    FIRST(verl),
    FIRST(file),
    FIRST(snapshot),
    FIRST(hash),
    FIRST(reward),
    FIRST(python),
    FIRST(torch),
    FIRST(ray),
    ALL(nodes, FIELD_STRV),
    ALL(mismatch, FIELD_STR),
};
const struct field_table proof_summary_table = FIELD_TABLE("Imports", summary_rows, proof_summary);

void proof_summary_release(struct proof_summary *s)
{
    field_release(&proof_summary_table, s); /* what is shown of the record, too */
    proof_record_release(&s->all);
}

static void proof_take_first(char **dst, char **src)
{
    if (*dst || !*src)
        return;
    *dst = *src;
    *src = NULL;
}

static void proof_note_node(struct strv *nodes, const char *node)
{
    for (size_t i = 0; i < nodes->n; i++)
        if (str_eq(nodes->v[i], node))
            return;
    strv_add(nodes, node);
}

/* A process with a verl speaks before one without. */
static void proof_merge(struct proof_summary *s, struct proof_record *r)
{
    struct proof_record *a = &s->all;
    proof_note_node(&s->nodes, r->node);
    if (r->what && !s->mismatch)
        s->mismatch = proof_says(r);
    if (!a->file) {
        proof_take_first(&a->verl, &r->verl);
        proof_take_first(&a->file, &r->file);
    }
    char **pairs[][2] = {{&a->python, &r->python}, {&a->torch, &r->torch},
                         {&a->ray, &r->ray},       {&a->snapshot, &r->snapshot},
                         {&a->hash, &r->hash},     {&a->reward, &r->reward}};
    for (size_t i = 0; i < array_len(pairs); i++)
        proof_take_first(pairs[i][0], pairs[i][1]);
}

static void proof_show_process(struct proof_summary *s, const struct proof_record *r)
{
    struct process_page *v = s->processes.v;
    if (s->processes.n == PROOF_SHOWN_MAX)
        return;
    if (!v)
        s->processes.v = v = xcalloc(PROOF_SHOWN_MAX, sizeof(*v));
    v[s->processes.n++] = (struct process_page){.kind = xstrdup(r->kind),
                                                .node = xstrdup(r->node),
                                                .pid = r->pid,
                                                .verl = xstrdup(r->verl),
                                                .file = xstrdup(r->file),
                                                .ok = !r->what};
}

size_t proof_summary(const struct rootdir *proof, int attempt, struct buf *out)
{
    _cleanup_(strv_release) struct strv names = {0};
    _cleanup_(proof_summary_release) struct proof_summary s = {.attempt = attempt};
    struct jout j = jout_begin(out);
    list_records(proof, "", &names);
    for (size_t i = 0; i < names.n; i++) {
        _cleanup_(proof_record_release) struct proof_record rec = {0};
        if (read_record(proof, names.v[i], &rec) < 0)
            continue;
        s.n++;
        proof_show_process(&s, &rec);
        proof_merge(&s, &rec);
    }
    s.ok = !s.mismatch;
    if (s.n)
        field_to_json(&proof_summary_table, &s, FIELD_ALL, FIELD_PAGE, &j, NULL);
    return s.n;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* registry_import.h - an import: the form that asks for it, and the job that does it. */
#pragma once
#include "argusd/content/registry.h"
#include "argusd/imports/importer.h"
#include "base/doc/conf.h"

struct registry_form {
    char *name,
        *source;    /* source: hf:// https:// http:// s3:// ftp:// ftps:// sftp://, or a path */
    char *project;  /* the job's, and whose members see the entry */
    char *endpoint; /* of hf and s3 */
    char *sha256, *filename, *pool, *python;
    bool is_common, in_place;
    struct strv include, secrets;
    json_t *lineage; /* object; NULL */

    /* The job below whose directory the source lies, from lineage.h; it is no member of the
     * body: */
    char *from_job; /* he may see it; NULL: none */
};

/* The members of a body that asks for an import. */
extern const struct field_table registry_form_table;

void registry_form_release(struct registry_form *f);
/* ERR_BAD_SPEC; problems in ps. f is zeroed memory. */
must_check int registry_form_read(const char *body,
                                  size_t n,
                                  struct registry_form *f,
                                  struct problems *ps);

/* The job below whose directory the source lies, yours; NULL: none, or the source is no good.
 * *ret_path (yours then): the whole path. */
char *registry_source_job(const struct importer *im,
                          const struct http_principal *p,
                          const char *source,
                          char **ret_path);
/* lineage (taken) is what argusd knows of that job's output; what the form says goes below "said".
 */
void registry_form_take_lineage(struct registry_form *f, char *taken_job, json_t *taken);

/* The job is submitted and the entry is there, importing. *ret_field: what was wrong. */
must_check int registry_import(const struct importer *im,
                               const struct http_principal *p,
                               enum registry_kind kind,
                               const struct registry_form *f,
                               struct registry_entry **ret,
                               const char **ret_field,
                               struct err *err);

/* The files of e lie at its path, made by its job: another job looks at them there, and is e's from
 * now on. On failure e is as it was. */
must_check int registry_import_made(const struct importer *im,
                                    const struct http_principal *p,
                                    struct registry_entry *e,
                                    struct err *err);

/* ---- shared with registry_prepare.c ---- */

/* What every form says of its job and entry, for a struct whose first member is a registry_form. */
#define REGISTRY_FORM_ROWS                                                                         \
    {.name = "project",                                                                            \
     .type = FIELD_STR,                                                                            \
     .offset = offsetof(struct registry_form, project),                                            \
     .doc = "project of the job; its members see the entry"},                                      \
        {.name = "pool",                                                                           \
         .type = FIELD_STR,                                                                        \
         .offset = offsetof(struct registry_form, pool),                                           \
         .doc = "where the job runs"},                                                             \
        {.name = "py_executable",                                                                  \
         .type = FIELD_STR,                                                                        \
         .offset = offsetof(struct registry_form, python),                                         \
         .doc = "Python on the shared root that has pyarrow"},                                     \
        {.name = "common",                                                                         \
         .type = FIELD_BOOL,                                                                       \
         .offset = offsetof(struct registry_form, is_common),                                      \
         .doc = "put it below common/, for everybody"},                                            \
    {                                                                                              \
        .name = "secrets", .type = FIELD_STRV, .offset = offsetof(struct registry_form, secrets),  \
        .doc = "names of secrets that the job needs"                                               \
    }

/* A new entry that is not in the table yet, with the id of its job to be. */
struct registry_entry *registry_make(const struct importer *im,
                                     const struct http_principal *p,
                                     enum registry_kind kind,
                                     const struct registry_form *f);
/* A path of his with ${…} replaced, and the directories that it may lie under; a URL as it is.
 * seen_job: one that he is known to see; NULL. ERR_BAD_SPEC. */
must_check int registry_read_path(const struct importer *im,
                                  const struct http_principal *p,
                                  const char *source,
                                  const char *seen_job,
                                  char **ret,
                                  struct strv *roots,
                                  struct err *err);
/* Members that every order has: max_bytes, and what is said beyond, where there is a quota. */
void registry_put_order(struct jout *j,
                        const struct importer *im,
                        const struct registry_entry *e,
                        const struct strv *roots);
/* The job of e, which runs lib/argus_<verb>.py with this order; when it is refused, e is gone. */
must_check int registry_submit(const struct importer *im,
                               const struct http_principal *p,
                               struct registry_entry *e,
                               const struct registry_form *f,
                               const char *verb,
                               const char *order,
                               const char **ret_field,
                               struct err *err);

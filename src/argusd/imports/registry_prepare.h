/* SPDX-License-Identifier: Apache-2.0 */
/* registry_prepare.h - from a registered data set to one that verl reads, by a job. */
#pragma once
#include "argusd/imports/registry_import.h"

struct registry_preparation {
    struct registry_form f; /* first; name: of what is made; source: its own name for the raw set */
    char *with;             /* "gsm8k", or the path of a script */
    struct strv args;       /* more arguments of the script; {input} and {output} are replaced */
};

/* The members of a body that asks for a preparation. */
extern const struct field_table registry_preparation_table;

void registry_preparation_release(struct registry_preparation *x);
/* ERR_BAD_SPEC; problems in ps. x is zeroed memory. */
must_check int registry_preparation_read(const char *body,
                                         size_t n,
                                         struct registry_preparation *x,
                                         struct problems *ps);
/* The job is submitted and the new entry is there, importing. */
must_check int registry_prepare(const struct importer *im,
                                const struct http_principal *p,
                                const struct registry_preparation *x,
                                struct registry_entry **ret,
                                const char **ret_field,
                                struct err *err);

/* SPDX-License-Identifier: Apache-2.0 */
/* ownjob.h - jobs that argusd makes for a user: those that import and prepare data. Ordinary ones:
 * his quota, his queue, stopped by him as any other. */
#pragma once
#include "argusd/imports/importer.h"

/* An id that no job had: "<workload's word>-<yyyymmdd>-<6 characters>". */
void ownjob_choose_id(const struct importer *im, enum workload w, char ret[static SPEC_ID_BUF]);

/* The spec (JSON, with that id as submission_id) as his job, and admit what may start. It is busy
 * for the call only. *ret_field says what was wrong. Any error that POST /v1/jobs knows. */
must_check int ownjob_submit(const struct importer *im,
                             const struct http_principal *p,
                             const char *id,
                             const char *spec_text,
                             struct live **ret,
                             const char **ret_field,
                             struct err *err);

/* SPDX-License-Identifier: Apache-2.0 */
/* retry.h - who stands behind a job that somebody else does something to; see retry.c. */
#pragma once
#include "argusd/kit/api.h"

/* Whose job it stays when p does something to it, and as whom it is checked. not: the refusal,
 * whose `why` says why that user may not go on. */
must_check int api_find_owner(struct api *a,
                              const struct http_principal *p,
                              const struct job *job,
                              const char * not,
                              struct http_principal *ret,
                              struct err *err);

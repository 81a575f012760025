/* SPDX-License-Identifier: Apache-2.0 */
/* notebooktoken.h - the token that the JupyterLab of a notebook's job asks for.
 *
 * It follows from argusd's key and the job's id: stored nowhere, and the same after a restart. The
 * job has it among its secrets; nobody else is told. */
#pragma once
#include "argusd/people/secrets.h"

enum { NOTEBOOKTOKEN_MAX = 65 };
#define NOTEBOOKTOKEN_ENV "ARGUS_NOTEBOOK_TOKEN"

void notebooktoken_of(const struct secrets *s, const char *job, char ret[static NOTEBOOKTOKEN_MAX]);

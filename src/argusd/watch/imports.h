/* SPDX-License-Identifier: Apache-2.0 */
/* imports.h - what the processes of a job imported, as its page and its events tell it.
 *
 * The hook writes it, files.c reads it, the shepherd ends an attempt for it
 * (fsroot/attempt/proof.h): here it is only kept and told. */
#pragma once
#include "argusd/evidence/files.h"
#include "argusd/jobs/jobs.h"

/* It runs verl, and not every node of its gang has shown what it imported: look for the first
 * step, which is told once if it comes without. */
bool imports_are_missing(const struct live *l);
/* Take over what a look at the files of its newest attempt has brought. */
void imports_take(struct live *l, struct files_look *k);

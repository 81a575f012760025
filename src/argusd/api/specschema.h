/* SPDX-License-Identifier: Apache-2.0 */
/* specschema.h - the JobSpec as a JSON schema; see specschema.c. */
#pragma once
#include "base/buf.h"

/* jobspec.schema.json */
void specschema_make(struct buf *out);

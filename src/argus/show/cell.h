/* SPDX-License-Identifier: Apache-2.0 */
/* cell.h - one member of a reply as a table's cell, in the manner that its column names. */
#pragma once
#include "argus/show/table.h"

/* Fill the next cell of t by the column's key and kind. */
void cell_add(struct table *t,
              const struct column *column,
              const json_t *item,
              const struct when *w);

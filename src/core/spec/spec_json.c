/* SPDX-License-Identifier: Apache-2.0 */
/* spec_json.c - a resolved JobSpec as JSON, by the table that reads it.
 *
 * Two keys have a second form that the table cannot say: "checkpoint: none" stands for the whole
 * mapping, and an entrypoint that is one shell line is a text. */
#include <assert.h>
#include <string.h>

#include "base/str.h"
#include "core/spec/spec_table.h"

enum { ROWS_MAX = 96 };

void spec_to_json(const struct spec *s, struct jout *j, const char *key)
{
    struct field rows[ROWS_MAX];
    struct field_table shown = spec_table;
    assert(spec_table.n <= ROWS_MAX);
    shown.rows = rows;
    shown.n = 0;
    for (size_t i = 0; i < spec_table.n; i++) {
        const struct field *f = &spec_table.rows[i];
        bool second = (s->checkpoint_none && str_starts(f->name, "checkpoint.")) ||
                      (s->entrypoint_is_shell && !strcmp(f->name, "entrypoint"));
        if (!second)
            rows[shown.n++] = *f;
    }
    jout_open(j, key, '{');
    field_put_members(&shown, s, FIELD_ALL, FIELD_PAGE, j);
    if (s->entrypoint_is_shell)
        jout_str(j, "entrypoint", s->entrypoint.v[0]);
    if (s->checkpoint_none)
        jout_str(j, "checkpoint", "none");
    jout_close(j, '}');
}

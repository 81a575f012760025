/* SPDX-License-Identifier: Apache-2.0 */
/* csv.c - a cell of CSV: quoted, of one line and no formula, whatever is in the text; see csv.h. */
#include "argus/show/csv.h"

#include "base/text.h"

void csv_text(FILE *out, const char *text)
{
    (void)fputs(text_is_formula(text) ? "\"'" : "\"", out);
    for (; *text; text++) {
        if (*text == '"')
            (void)fputc('"', out);
        (void)fputc((unsigned char)*text < ' ' ? ' ' : *text, out);
    }
    (void)fputc('"', out);
}

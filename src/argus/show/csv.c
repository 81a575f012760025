/* SPDX-License-Identifier: Apache-2.0 */
/* csv.c - a cell of CSV: quoted, and of one line, whatever is in the text; see csv.h. */
#include "argus/show/csv.h"

void csv_text(FILE *out, const char *text)
{
    (void)fputc('"', out);
    for (; *text; text++) {
        if (*text == '"')
            (void)fputc('"', out);
        (void)fputc((unsigned char)*text < ' ' ? ' ' : *text, out);
    }
    (void)fputc('"', out);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* cmdline_tool.c - JobSpec in, command line out, for tests in Python.
 *
 *   cmdline_tool VERSION SHARED_ROOT < jobspec.yaml     JSON on stdout
 *   cmdline_tool VERSION SHARED_ROOT text < …           the form of tests/golden/cmdline
 * Exit 1 with the problems on stderr. */
#include <stdio.h>
#include <string.h>

#include "cmdline_make.h"

enum { TEXT_MAX = 1 << 20 };

int main(int argc, char **argv)
{
    static char yaml[TEXT_MAX];
    struct made m;
    struct buf out = BUF_INIT(TEXT_MAX);
    if (argc < 3) {
        (void)fprintf(stderr, "usage: cmdline_tool VERSION SHARED_ROOT [text]\n");
        return 2;
    }
    const struct make_place place = {.root = argv[2]};
    yaml[fread(yaml, 1, sizeof(yaml) - 1, stdin)] = 0;
    int r = make_cmdline(yaml, argv[1], &place, &m);
    if (r < 0) {
        problems_to_text(&m.ps, "stdin", &out);
        (void)fprintf(stderr, "%s%s\n", buf_str(&out), m.err.text);
    } else if (argc > 3 && !strcmp(argv[3], "text")) {
        made_to_text(&m, &out);
        (void)fputs(buf_str(&out), stdout);
    } else {
        made_to_json(&m, &out);
        (void)puts(buf_str(&out));
    }
    made_release(&m);
    buf_release(&out);
    return r < 0;
}

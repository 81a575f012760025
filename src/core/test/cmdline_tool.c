/* SPDX-License-Identifier: Apache-2.0 */
/* cmdline_tool.c - JobSpec in, command line out, for tests in Python.
 *
 *   cmdline_tool VERSION SHARED_ROOT < jobspec.yaml     JSON on stdout
 *   cmdline_tool VERSION SHARED_ROOT text < …           the form of tests/golden/cmdline
 *   cmdline_tool VERSION SHARED_ROOT preset < …         of a preset, filled with its examples
 * Exit 1 with the problems on stderr. */
#include <stdio.h>
#include <string.h>

#include "core/preset/preset.h"

#include "cmdline_make.h"

enum { TEXT_MAX = 1 << 20 };

/* In place of yaml; false: it was told what is wrong. */
static bool fill(char *yaml, size_t size)
{
    struct problems ps = {0};
    struct preset *p = NULL;
    struct buf out = BUF_INIT(TEXT_MAX);
    bool ok = preset_parse(yaml, strlen(yaml), &p, &ps) == 0 && preset_sample(p, &out, &ps) == 0;
    if (ok) {
        (void)snprintf(yaml, size, "%s", buf_str(&out)); /* as large as out may become */
    } else {
        problems_to_text(&ps, "stdin", MESSAGE_ENGLISH, &out);
        (void)fputs(buf_str(&out), stderr);
    }
    preset_free(p);
    problems_release(&ps);
    buf_release(&out);
    return ok;
}

int main(int argc, char **argv)
{
    static char yaml[TEXT_MAX];
    struct made m;
    struct buf out = BUF_INIT(TEXT_MAX);
    if (argc < 3) {
        (void)fprintf(stderr, "usage: cmdline_tool VERSION SHARED_ROOT [text|preset]\n");
        return 2;
    }
    const struct make_place place = {.root = argv[2]};
    yaml[fread(yaml, 1, sizeof(yaml) - 1, stdin)] = 0;
    if (argc > 3 && !strcmp(argv[3], "preset") && !fill(yaml, sizeof(yaml)))
        return 1;
    int r = make_cmdline(yaml, argv[1], &place, &m);
    if (r < 0) {
        problems_to_text(&m.ps, "stdin", MESSAGE_ENGLISH, &out);
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

/* SPDX-License-Identifier: Apache-2.0 */
/* hydra_quote_tool.c - lets a test compare our quoting with the real Hydra.
 *
 * stdin: values, each ended by a NUL byte. stdout: for each "+<override>" with key
 * "k", or "-<sentence>" when it was refused, ended by a NUL byte. With the argument
 * "list" all values become one override. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/verl/hydra.h"

enum { INPUT_MAX = 16 * 1024 * 1024 };

static void print(const struct strv *argv, int r, const struct err *err)
{
    printf("%c%s", r < 0 ? '-' : '+', r < 0 ? err->text : argv->v[0]);
    putchar(0);
}

static void one(const char *value)
{
    _cleanup_(strv_release) struct strv argv = {0};
    struct err err = {0};
    int r = hydra_add(&argv, "k", value, &err);
    print(&argv, r, &err);
}

int main(int argc, char **argv)
{
    char *in = xmalloc(INPUT_MAX + 1);
    size_t n = fread(in, 1, INPUT_MAX, stdin);
    _cleanup_(strv_release) struct strv all = {0}, out = {0};
    struct err err = {0};
    in[n] = 0;
    for (const char *s = in; s < in + n; s += strlen(s) + 1)
        strv_add(&all, s);
    if (argc > 1 && !strcmp(argv[1], "list")) {
        int r = hydra_add_list(&out, "k", &all, &err);
        print(&out, r, &err);
    } else {
        for (size_t i = 0; i < all.n; i++)
            one(all.v[i]);
    }
    free(in);
    return 0;
}

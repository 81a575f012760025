/* SPDX-License-Identifier: Apache-2.0 */
/* replay.c - the main() of a fuzz target in builds without libFuzzer: gives it every file of
 * the folders named on the command line, and every file cut at each of its first bytes, so that
 * a torn input is tried as well. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "fuzz.h"

enum { INPUT_MAX = 1 << 20, CUTS_MAX = 256 };

static void replay_file(const char *path)
{
    _cleanup_(buf_release) struct buf in = BUF_INIT(INPUT_MAX);
    FILE *f = fopen(path, "rb");
    if (!f) {
        perror(path);
        exit(1);
    }
    char block[4096];
    for (size_t n; (n = fread(block, 1, sizeof(block), f)) > 0;)
        (void)buf_add(&in, block, n); /* a longer file is cut at the ceiling */
    (void)fclose(f);

    for (size_t cut = 0; cut < in.len && cut < CUTS_MAX; cut++) {
        /* An own copy of exactly that size, so that ASan sees a read behind the end. */
        uint8_t *copy = xmalloc(cut + 1);
        memcpy(copy + 1, in.data, cut);
        (void)LLVMFuzzerTestOneInput(copy + 1, cut);
        free(copy);
    }
    (void)LLVMFuzzerTestOneInput((const uint8_t *)buf_str(&in), in.len);
}

static int replay_folder(const char *folder)
{
    DIR *d = opendir(folder);
    if (!d) {
        perror(folder);
        exit(1);
    }
    int n = 0;
    for (struct dirent *e; (e = readdir(d));) {
        if (e->d_name[0] == '.')
            continue;
        _cleanup_(freep) char *path = xasprintf("%s/%s", folder, e->d_name);
        replay_file(path);
        n++;
    }
    (void)closedir(d);
    return n;
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        int n = replay_folder(argv[i]);
        printf("%s: %d inputs\n", argv[i], n);
        if (n == 0)
            return 1; /* an empty corpus tests nothing */
    }
    return argc > 1 ? 0 : 2;
}

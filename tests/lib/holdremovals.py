# SPDX-License-Identifier: Apache-2.0
"""A removal of checkpoints that is held in its middle, by a function before libc's own.

    argusd.env = held_removals(tmp_path)
    until((tmp_path / "held").exists, "a removal has begun"); (tmp_path / "free").touch()
"""

import os
import shutil
import subprocess

import pytest

COMPILER = shutil.which(os.environ.get("CC", "cc"))
# The first checkpoint is not taken away before a file called free is there.
HOLDS = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int renameat2(int from, const char *old, int to, const char *new, unsigned flags)
{
    int (*real)(int, const char *, int, const char *, unsigned) = dlsym(RTLD_NEXT, "renameat2");
    char path[4096];
    if (strcmp(old, "global_step_10") == 0) {
        snprintf(path, sizeof(path), "%s/held", getenv("HOLD"));
        close(open(path, O_WRONLY | O_CREAT, 0600));
        snprintf(path, sizeof(path), "%s/free", getenv("HOLD"));
        while (access(path, F_OK) != 0) usleep(20000);
    }
    return real(from, old, to, new, flags);
}
"""

needs_compiler = pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")


def held_removals(folder):
    """The environment of an argusd that holds."""
    (folder / "holds.c").write_text(HOLDS)
    argv = [COMPILER, "-shared", "-fPIC", "-O1", "-o", folder / "holds.so", folder / "holds.c", "-ldl"]
    subprocess.run(argv, check=True)
    return {
        "LD_PRELOAD": str(folder / "holds.so"),
        "HOLD": str(folder),
        "ASAN_OPTIONS": "verify_asan_link_order=0",
    }

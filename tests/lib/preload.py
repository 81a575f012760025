# SPDX-License-Identifier: Apache-2.0
"""Functions before libc's own, for one program: a library that is compiled here and named by LD_PRELOAD.

argusd.env = preload(home, "hangs", SOURCE)          the environment that the program needs
argusd.env = held(home, CALLS)                       CALLS defines calls in which hold() waits
until((home / "held").exists, …); (home / "free").touch()
"""

import shutil
import subprocess

import pytest

COMPILER = shutil.which("cc") or shutil.which("gcc")
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")

# hold() leaves a file called held and waits for one called free, four minutes at the most.
HOLD = r"""
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static void hold(void)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/held", getenv("HOLD"));
    close(open(path, O_WRONLY | O_CREAT, 0600));
    snprintf(path, sizeof(path), "%s/free", getenv("HOLD"));
    for (int i = 0; i < 12000 && access(path, F_OK) != 0; i++) usleep(20000);
}
"""


def preload(home, name, source, *flags, **env):
    (home / f"{name}.c").write_text(source)
    library = home / f"{name}.so"
    argv = [COMPILER, "-shared", "-fPIC", "-O1", *flags, "-o", library, home / f"{name}.c", "-ldl"]
    subprocess.run(argv, check=True)
    return {"LD_PRELOAD": str(library), "ASAN_OPTIONS": "verify_asan_link_order=0", **env}


def held(home, calls):
    return preload(home, "holds", HOLD + calls, HOLD=str(home))

# SPDX-License-Identifier: Apache-2.0
"""A removal of checkpoints that is held in its middle, by a function before libc's own.

argusd.env = held_removals(tmp_path)
until((tmp_path / "held").exists, "a removal has begun"); (tmp_path / "free").touch()
"""

from preload import held

# The first checkpoint is not taken away before it is let go.
HOLDS = r"""
int renameat2(int from, const char *old, int to, const char *new, unsigned flags)
{
    int (*real)(int, const char *, int, const char *, unsigned) = dlsym(RTLD_NEXT, "renameat2");
    if (strcmp(old, "global_step_10") == 0) hold();
    return real(from, old, to, new, flags);
}
"""


def held_removals(folder):
    """The environment of an argusd that holds."""
    return held(folder, HOLDS)

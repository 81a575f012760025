# SPDX-License-Identifier: Apache-2.0
"""A pretended driver of GPUs (fake_nvml.c) beside an argus-gpus, which takes it before the machine's own.

    give_gpus(folder, program, "gpu 0 40 40000 300000 55")      argus-gpus and the driver there
    set_gpus(folder, "gpu 0 90 40000 300000 55", "xid 0 79")    what the driver says from now on
"""

import shutil

import pytest
from programs import find_tool


def set_gpus(folder, *lines):
    """Replaces what the pretended driver in this folder says."""
    new = folder / "nvml.new"
    new.write_text("".join(f"{line}\n" for line in lines))
    new.rename(folder / "nvml.state")


def give_gpus(folder, program, *lines):
    """Puts the pretended driver there, and argus-gpus, unless it is argusd that places it (program None)."""
    library = find_tool("src/shepherd/libfake_nvml.so")
    if not library:
        pytest.skip("libfake_nvml.so is not built")
    set_gpus(folder, *lines)
    shutil.copy(library, folder / "libnvidia-ml.so.1")
    if program:
        shutil.copy(program, folder / "argus-gpus")

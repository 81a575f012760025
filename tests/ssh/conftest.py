# SPDX-License-Identifier: Apache-2.0
"""Hosts with a real sshd for the tests of this folder; a test that spoils one puts it right again."""

import pytest
from raybed import BEDS
from sshtool import TOOL, SshTool


@pytest.fixture(scope="module")
def bed():
    if TOOL is None:
        pytest.skip("ssh_tool is not built")
    return BEDS.bare("2.51.1")


@pytest.fixture
def tool(bed, tmp_path):
    """Of one host, with a file of pinned keys of its own; its connection ends with the test."""
    made = []

    def make(where="h2", **keys):
        made.append(SshTool(bed, where, tmp_path, **keys))
        return made[-1]

    yield make
    for one in made:
        one.text("close")

# SPDX-License-Identifier: Apache-2.0
"""The exporter of GPU figures on a real host by ssh: placed, started, adopted, moved, found missing or ending, left
alone where it is another's, and ended with the raylet's stop."""

import pathlib
import platform

import pytest
from exporter import write_exporter
from sshtool import TOOL

pytestmark = [pytest.mark.ray, pytest.mark.skipif(TOOL is None, reason="ssh_tool is not built")]

NAME = "dcgm-exporter"


@pytest.fixture
def page(bed, tmp_path):
    page = tmp_path / "page.prom"
    page.write_text('DCGM_FI_DEV_GPU_UTIL{gpu="0"} 42\n')
    write_exporter(tmp_path / "place" / platform.machine() / NAME, page)
    yield page
    for node in ("exporting", "ending", "other"):  # the next run places its own
        for copy in pathlib.Path("/tmp").glob(f"argus-*/tests/{node}/{NAME}"):
            copy.unlink()


def pids(bed, host="h2"):
    """Of the exporters there, by their environment."""
    out = bed.on(host, "sh", "-c", "grep -l ARGUS_EXPORTER= /proc/[0-9]*/environ 2>/dev/null || true")
    return {int(line.split("/")[2]) for line in out.split()}


def read(bed, port, host="h2"):
    ask = "import sys, urllib.request as u; print(u.urlopen(sys.argv[1], timeout=20).read().decode())"
    return bed.on(host, str(bed.python), "-c", ask, f"http://{bed.ips[host]}:{port}/metrics")


def test_from_its_place_to_its_end(bed, tool, page, tmp_path):
    h = tool(node="exporting")
    assert h("exporter", NAME)["state"] == "exporter_missing"
    place = {"place": tmp_path / "place"}
    assert h("exporter", NAME, **place)["state"] == "exporter_runs"
    (pid,) = pids(bed)
    assert "42" in read(bed, 9400)
    # Asked again it is the same one; the copy on the machine is used, wherever the place has gone.
    (tmp_path / "place").rename(tmp_path / "away")
    assert h("exporter", NAME, **place)["state"] == "exporter_runs"
    assert pids(bed) == {pid}
    # Without a record it is known by its mark, and since nobody knows its port it is started anew.
    (record,) = pathlib.Path("/tmp").glob("argus-*/tests/exporting/exporter")
    record.unlink()
    assert h("exporter", NAME, **place)["state"] == "exporter_runs"
    (second,) = pids(bed)
    assert second != pid and "42" in read(bed, 9400)
    # It died: it comes back.
    bed.kill("h2", second)
    assert h("exporter", NAME, **place)["state"] == "exporter_runs"
    # On another port.
    assert h("exporter", NAME, exporter_port=9403, **place)["state"] == "exporter_runs"
    assert len(pids(bed)) == 1 and "42" in read(bed, 9403)
    # It goes with its raylet, of which there is none here.
    assert h("stop", grace=1000)["outcome"] == "ok"
    assert pids(bed) == set()


def test_one_that_ends_and_one_of_somebody_else(bed, tool, page, tmp_path):
    h, other = tool(node="ending"), tool(node="other")
    place = {"place": tmp_path / "place"}
    page.rename(tmp_path / "kept")
    got = h("exporter", NAME, **place)
    assert got["state"] == "exporter_ended" and "there is no GPU for it" in got["text"], got
    (tmp_path / "kept").rename(page)
    assert other("exporter", NAME, **place)["state"] == "exporter_runs"
    held = pids(bed)
    got = h("exporter", NAME, **place)
    assert got["state"] == "exporter_foreign" and "9400" in got["text"], got
    assert h("stop", grace=1000)["outcome"] == "ok"
    assert pids(bed) == held
    assert other("stop", grace=1000)["outcome"] == "ok"
    assert pids(bed) == set()

# SPDX-License-Identifier: Apache-2.0
"""argus simulate, the real program, on traces made here: forms, sums, refusals, the same answer twice."""

import datetime
import json
import os
import random
import subprocess
import xml.etree.ElementTree as ET

import programs
import pytest

pytestmark = pytest.mark.skipif(not programs.PROGRAMS, reason="argus is not built")

HEAD = "submit_time,duration_s,num_gpus,cluster"
DEADLINE = 300
SIZES = [1] * 12 + [2, 4, 4, 8, 8, 12, 16]


def simulate(*args, stdin=None, **env):
    keep = {k: v for k, v in os.environ.items() if k in ("PATH", "ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS")}
    command = [programs.PROGRAMS["argus"], "simulate", *args]
    p = subprocess.run(command, env={**keep, **env}, input=stdin, capture_output=True, text=True, timeout=DEADLINE)
    assert "Sanitizer" not in p.stderr, p.stderr
    return p


def simulate_json(*args, **more):
    p = simulate(*args, "-o", "json", **more)
    assert p.returncode == 0, p.stderr
    return json.loads(p.stdout)


def rows_of(seed, n=400, pools=("a", "b")):
    """Bursts of jobs, most of them short, over ten days."""
    chance = random.Random(seed)
    start = datetime.datetime(2024, 2, 27, 8)
    at = [0.0] * len(pools)
    for _ in range(n):
        k = chance.randrange(len(pools))
        at[k] += chance.expovariate(1 / 4000) * (chance.random() < 0.7)
        when = start + datetime.timedelta(seconds=int(at[k]))
        yield f"{when},{int(chance.lognormvariate(8, 1.7))},{chance.choice(SIZES)},{pools[k]}"


@pytest.fixture
def trace(tmp_path):
    path = tmp_path / "trace.csv"
    path.write_text("\n".join([HEAD, *rows_of(1)]) + "\n")
    return path


def test_three_policies_side_by_side_and_the_same_twice(trace):
    first = simulate_json("--trace", trace)
    assert list(first["policies"]) == ["fair", "easy", "fifo"]
    for policy in first["policies"].values():
        assert list(policy["pools"]) == ["a", "b"]
        for part in (policy, *policy["pools"].values()):
            assert 0 < part["utilisation"] <= 1
            assert 0 <= part["wait"]["p50"] <= part["wait"]["p95"] <= part["wait"]["max"]
            assert part["promises_broken"] == part["preemptions"] == part["never_started"] == 0
            assert sum(g["jobs"] for g in part["gangs"].values()) == part["jobs"]
        assert policy["jobs"] == 400 == sum(p["jobs"] for p in policy["pools"].values())
        mean = sum(p["wait"]["mean"] * p["jobs"] for p in policy["pools"].values()) / 400
        assert policy["wait"]["mean"] == pytest.approx(mean)
    assert simulate_json("--trace", trace) == first
    assert simulate_json("--trace", trace, "--seed", "2")["hash"] != first["hash"]
    assert simulate_json("--trace", trace, "--no-learner")["hash"] != first["hash"]


def test_nodes_are_the_fewest_for_the_load(trace):
    demand, largest = {}, {}
    at = set()
    for line in trace.read_text().splitlines()[1:]:
        when, seconds, gpus, pool = line.split(",")
        at.add(datetime.datetime.fromisoformat(when))
        demand[pool] = demand.get(pool, 0) + int(seconds) * int(gpus)
        largest[pool] = max(largest.get(pool, 0), int(gpus))
    span = (max(at) - min(at)).total_seconds()
    for load in (0.2, 0.85):
        got = simulate_json("--trace", trace, "--load", str(load), "--policy", "fifo")
        assert got["span"] == span
        for name, pool in got["policies"]["fifo"]["pools"].items():
            nodes = pool["nodes"]
            assert nodes * 8 * span >= demand[name] / load
            assert nodes * 8 >= largest[name]
            assert (nodes - 1) * 8 * span < demand[name] / load or (nodes - 1) * 8 < largest[name]
            assert pool["load"] == pytest.approx(demand[name] / (nodes * 8 * span))


def test_a_pool_alone_is_as_it_is_among_others(trace):
    whole = simulate_json("--trace", trace)
    alone = simulate_json("--trace", trace, "--pool", "b")
    for name, policy in alone["policies"].items():
        assert policy["pools"] == {"b": whole["policies"][name]["pools"]["b"]}


def test_order_and_form_of_the_rows_do_not_matter(trace, tmp_path):
    first = simulate_json("--trace", trace, "--load", "0.7")
    lines = [line.split(",") for line in trace.read_text().splitlines()]
    epoch = datetime.datetime(1970, 1, 1)
    turned = []
    for when, seconds, gpus, pool in lines[1:]:
        number = (datetime.datetime.fromisoformat(when) - epoch).total_seconds()
        turned.append(f'"{pool}",x,{gpus},{number:.0f},{seconds}')
    # Rows of one second keep their order: it is the order of the line.
    turned.sort(key=lambda row: -float(row.split(",")[3]))
    other = tmp_path / "other.csv"
    other.write_bytes(("\r\n".join(["cluster,note,num_gpus,submit_time,duration_s", *turned]) + "\r\n").encode())
    assert simulate_json("--trace", other, "--load", "0.7")["hash"] == first["hash"]
    assert simulate_json("--trace", "-", "--load", "0.7", stdin=other.read_text())["hash"] == first["hash"]


def test_gangs_too_large_and_jobs_of_nothing(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(f"{HEAD}\n10,5,100,a\n10,0,8,a\n10,0,0,a\n9,7,1,a\n")
    got = simulate_json("--trace", path, "--nodes", "2x4")
    for policy in got["policies"].values():
        assert (policy["jobs"], policy["never_started"]) == (4, 1)
        assert policy["wait"]["max"] == 6  # whole nodes for 8 GPUs: behind the single one
        assert policy["pools"]["a"]["nodes"] == 2


def test_table_of_chosen_policies(trace):
    got = simulate("--trace", trace, "--policy", "easy,fifo", "--guess", "2-2", "--no-learner")
    assert got.returncode == 0, got.stderr
    assert [line.split()[4] for line in got.stdout.splitlines()[1:7]] == ["fifo", "easy"] * 3
    assert "fair" not in got.stdout
    assert f"hash {simulate_json('--trace', trace, '--policy', 'fifo,easy', '--guess', '2-2')['hash']}" in got.stdout


def test_picture_is_standalone_xml(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("\n".join([HEAD, *rows_of(2, 100, ('<&">', "b"))]).replace('<&">', '"<&"">"') + "\n")
    got = simulate("--trace", path, "-o", "svg")
    assert got.returncode == 0, got.stderr
    root = ET.fromstring(got.stdout)
    assert root.tag.endswith("svg")
    texts = "\n".join("".join(t.itertext()) for t in root.iter("{http://www.w3.org/2000/svg}text"))
    assert all(word in texts for word in ("fifo", "easy", "fair", '<&">', "GPUs in use", "Jobs that wait"))
    assert "http" not in got.stdout.replace("http://www.w3.org/2000/svg", "")
    assert "prefers-color-scheme:dark" in got.stdout


@pytest.mark.parametrize(
    "args, text, status, sentence",
    [
        ([], None, 2, "'--trace FILE' is needed"),
        (["--trace", "{}", "--load", "x"], "", 2, "'x' is not a valid value for '--load'"),
        (["--trace", "{}", "--load", "0"], "", 2, "'0' is not a valid value for '--load'"),
        (["--trace", "{}", "--load", "1", "--nodes", "1x1"], "", 2, "'--nodes' and '--load' both say"),
        (["--trace", "{}", "--nodes", "8"], "", 2, "'8' is not a valid value for '--nodes'"),
        (["--trace", "{}", "--nodes", "0x8"], "", 2, "'0x8' is not a valid value for '--nodes'"),
        (["--trace", "{}", "--guess", "0.5-2"], "", 2, "'0.5-2' is not a valid value for '--guess'"),
        (["--trace", "{}", "--guess", "3-2"], "", 2, "'3-2' is not a valid value for '--guess'"),
        (["--trace", "{}", "--policy", "fifo,best"], "", 2, "'best' is not a valid value for '--policy'"),
        (["--trace", "{}"], None, 4, "cannot"),
        (["--trace", "{}"], "", 5, "{} is empty"),
        (["--trace", "{}"], f"{HEAD}\n1,1,1\n", 5, "{}:2: 3 fields where the first line names 4"),
        (["--trace", "{}"], f"{HEAD}\n1,1,-1,a\n", 5, "{}:2: num_gpus is a whole number"),
        (["--trace", "{}", "--pool", "b"], f"{HEAD}\n1,1,1,a\n", 4, "the trace has no pool 'b'"),
        (["--trace", "{}"], f"{HEAD}\n1,9e8,8192,a\n" * 1 + "2,9e8,8192,a\n", 5, "pool 'a' would need"),
    ],
)
def test_bad_input_is_one_sentence(tmp_path, args, text, status, sentence):
    path = tmp_path / "t.csv"
    if text is not None:
        path.write_text(text)
    p = simulate(*(a.format(path) for a in args))
    assert (p.returncode, p.stdout) == (status, "")
    assert p.stderr.splitlines()[0].startswith(f"argus: {sentence.format(path)}")

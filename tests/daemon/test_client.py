# SPDX-License-Identifier: Apache-2.0
"""The Python client as people outside of notebooks have it: installed by pip from argusd itself, with types made from
openapi.json, and its document, example by example."""

import importlib.util
import json
import pathlib
import re
import subprocess
import sys
import types
import typing
import urllib.request
import venv
import zipfile

import pytest
import standin
from fakeray import FakeRay

from argusd import PATIENCE, Argusd, needs_argusd, until

pytestmark = needs_argusd
ROOT = pathlib.Path(__file__).resolve().parents[2]
ROWS = 230  # samples of the newest step: three pages
NEWEST = [("p", f"answer {i}", float(i)) for i in range(ROWS)]


@pytest.fixture(scope="module")
def argusd(tmp_path_factory):
    with FakeRay() as ray, Argusd(tmp_path_factory.mktemp("client"), ray.url) as made:
        standin.make_world(made.root)
        yield made


@pytest.fixture(scope="module")
def training(argusd):
    t = standin.Training(argusd)
    t.dump(1, [("2+2=", "4", 1.0), ("2+2=", "5", 0.0)])
    t.dump(2, NEWEST)

    def is_read():
        page = argusd.call("GET", f"/v1/jobs/{t.id}/samples?limit=1", token="user").json()
        return {s["step"]: s["samples"] for s in page["steps"]} == {1: 2, 2: ROWS} and not page["pending"]

    until(is_read, "all that was dumped is read")  # an order is heard before it is done
    yield t
    argusd.stop_job(t.id)


@pytest.fixture(scope="module")
def wheel(argusd, tmp_path_factory):
    """As it is served."""
    page = argusd.call("GET", "/client", token=None)
    assert page.status == 200 and page.headers["Content-Type"].startswith("text/html")
    path, digest = re.search(r'href="(/client/[^"#]+)#sha256=(\w{64})"', page.body.decode()).groups()
    at = tmp_path_factory.mktemp("wheel") / path.rpartition("/")[2]
    at.write_bytes(argusd.call("GET", path, token=None).body)
    assert subprocess.run(["sha256sum", at], capture_output=True, text=True, check=True).stdout.split()[0] == digest
    return at


@pytest.fixture(scope="module")
def python(argusd, tmp_path_factory):
    """An interpreter into which pip put the client as the document says."""
    at = tmp_path_factory.mktemp("python")
    venv.create(at, with_pip=True)
    line = re.search(r"^pip install argus-client --no-index.*$", (ROOT / "docs/client.md").read_text(), re.M).group()
    env = {"PATH": f"{at}/bin:/usr/bin:/bin", "HOME": str(at), "ARGUS_URL": argusd.url}
    done = subprocess.run(["sh", "-c", line], env=env, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done
    return at / "bin/python"


def load(path, name):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # where the types look for the names that they are made of
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def argus(argusd):
    module = load(ROOT / "lib/argus_client.py", "argus_client")
    client = module.Client(argusd.url, argusd.tokens["user"])
    yield types.SimpleNamespace(module=module, client=client)
    sys.modules.pop("argus_client")


# ---- pip ----


def test_pip_finds_it_as_an_index_too(argusd, wheel, python, tmp_path):
    words = ["-m", "pip", "download", "argus-client", "--no-deps", "--index-url", f"{argusd.url}/client"]
    done = subprocess.run([python, *words, "-d", tmp_path], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done
    assert (tmp_path / wheel.name).read_bytes() == wheel.read_bytes()


def test_what_is_not_there_is_not_found(argusd):
    for path in ("/client/argus_client-9.9.9-py3-none-any.whl", "/client/argus-client/x", "/client/other/"):
        assert argusd.call("GET", path, token=None).status == 404, path
    assert argusd.call("POST", "/client", {}, token="admin").status == 405
    first = argusd.call("GET", "/client", token=None)
    asked = urllib.request.Request(f"{argusd.url}/client", headers={"If-None-Match": first.headers["ETag"]})
    with pytest.raises(urllib.error.HTTPError) as same:
        urllib.request.urlopen(asked, timeout=PATIENCE)
    assert same.value.code == 304


# ---- what is in it ----


def test_the_same_input_makes_the_same_bytes(argusd, wheel, tmp_path):
    (tmp_path / "openapi.json").write_bytes(argusd.call("GET", "/v1/openapi.json").body)
    made = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        out = [tmp_path / name / wheel.name, tmp_path / name / "c.S", tmp_path / name / "c.c"]
        version = wheel.name.split("-")[1]
        inputs = [tmp_path / "openapi.json", ROOT / "lib/argus_client.py", ROOT / "LICENSE", version]
        subprocess.run([ROOT / "tools/client/wheel", *inputs, *out], check=True)
        made.append(out[0].read_bytes())
    assert made[0] == made[1] == wheel.read_bytes(), "argusd serves what its own description and the client make"


def test_types_are_those_of_the_api(argusd, wheel, tmp_path):
    with zipfile.ZipFile(wheel) as z:
        assert z.testzip() is None and "argus/py.typed" in z.namelist()
        assert z.read("argus/__init__.py") == (ROOT / "lib/argus_client.py").read_bytes()
        (tmp_path / "types.py").write_bytes(z.read("argus/types.py"))
    made = load(tmp_path / "types.py", "argus_types")
    schemas = argusd.get("/v1/openapi.json")["components"]["schemas"]
    assert [name for name in schemas if not hasattr(made, name)] == []
    for kind in filter(typing.is_typeddict, vars(made).values()):
        typing.get_type_hints(kind)  # each name in it is there
    job = argusd.job(argusd.submit("true"))
    optional = {k for k in schemas["Job"]["properties"] if k not in schemas["Job"].get("required", ())}
    assert set(made.Job.__optional_keys__) == optional
    assert set(made.Job.__required_keys__) <= set(job) <= set(typing.get_type_hints(made.Job))
    assert set(typing.get_args(made.JobState)) == set(schemas["JobState"]["enum"])
    sys.modules.pop("argus_types")


# ---- samples ----


def test_samples_come_page_by_page(argus, training):
    job = argus.client.job(training.id)
    rows = job.samples(pandas=False)
    assert [r["output"] for r in rows] == [output for _, output, _ in NEWEST]
    assert len(job.samples(limit=150, pandas=False)) == 150
    assert [len(page["samples"]) for page in job.sample_pages()] == [100, 100, 30]
    best = job.samples(limit=2, order="best", pandas=False)
    assert [r["score"] for r in best] == [ROWS - 1, ROWS - 2]
    assert [r["output"] for r in job.samples(step=1, min=0.5, pandas=False)] == ["4"]
    with pytest.raises(argus.module.Error) as refused:
        job.samples(order="upwards")
    assert refused.value.status == 400


class Frame(list):
    """In place of pandas.DataFrame: rows, of which one member may have become the index."""

    index = None

    def __contains__(self, column):
        return any(column in row for row in self)

    def set_index(self, column):
        made = Frame({k: v for k, v in row.items() if k != column} for row in self)
        made.index = [row[column] for row in self]
        return made


def test_frames_where_pandas_is_there(argus, argusd, training, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", types.SimpleNamespace(DataFrame=Frame))
    job = argus.client.job(training.id)
    samples = job.samples(limit=3)
    assert isinstance(samples, Frame) and [r["score"] for r in samples] == [0, 1, 2]
    line = '{"step": 7, "data": {"loss": 0.5, "lr": 0.1}}'
    told = argus.client.submit(argusd.spec(f"echo '{line}' >> $ARGUS_ATTEMPT_DIR/metrics.jsonl")).wait(timeout=PATIENCE)
    curves = told.metrics(keys="lo*")
    assert isinstance(curves, Frame) and curves == [{"loss": 0.5}] and curves.index == [7]
    assert isinstance(told.metrics(pandas=False), list) and not isinstance(told.metrics(pandas=False), Frame)


def test_samples_that_are_not_read_yet_are_told(argus, monkeypatch):
    job = argus.module.Job(argus.client, {"id": "j", "state": "RUNNING"})
    page = {"samples": [{"step": 1}], "pending": True, "next_cursor": None}
    monkeypatch.setattr(job, "_ask", lambda *_, **__: page)
    with pytest.warns(UserWarning, match="job j: argusd still reads"):
        assert job.samples(pandas=False) == [{"step": 1}]


def test_an_answer_has_a_ceiling(argus, training, monkeypatch):
    monkeypatch.setattr(argus.module, "REPLY_MAX", 1000)
    with pytest.raises(RuntimeError, match="ask for less"):
        argus.client.job(training.id)


# ---- the document ----


def blocks():
    return re.findall(r"^```(python|ipython)\n(.*?)^```$", (ROOT / "docs/client.md").read_text(), re.M | re.S)


def as_python(kind, text):
    """A cell with %%argus as what IPython makes of it."""
    if kind == "python":
        return text
    line, _, cell = text.partition("\n")
    return f"print(argus.magic({line.removeprefix('%%argus ')!r}, {cell!r}))\n"


def test_every_example_of_the_document(argusd, training, python, tmp_path):
    kinds = [kind for kind, _ in blocks()]
    assert kinds.count("python") >= 5 and kinds.count("ipython") == 1
    script = "".join(as_python(kind, text) for kind, text in blocks()).replace("grpo-7b", training.id)
    at = tmp_path / "document.py"
    at.write_text(script)
    env = {"ARGUS_URL": argusd.url, "ARGUS_TOKEN": argusd.tokens["user"], "HOME": str(tmp_path)}
    ran = subprocess.run([python, at], env=env, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE)
    assert ran.returncode == 0, ran
    for said in ("SUCCEEDED hello", "FAILED", "422 ", "50 ['4']", "100 False", "SUCCEEDED>"):
        assert said in ran.stdout, (said, ran.stdout)


def test_the_description_is_json_of_this_argusd(argusd, wheel):
    info = json.loads(argusd.call("GET", "/v1/openapi.json").body)["info"]
    assert wheel.name == f"argus_client-{info['version']}-py3-none-any.whl"

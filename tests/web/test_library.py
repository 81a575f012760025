# SPDX-License-Identifier: Apache-2.0
"""What users bring, in a browser: files uploaded, looked into and removed, an upload that is cut and goes on, a data
set imported and taken into a job, a preset changed."""

import json
import pathlib
import threading

import pytest
from fileserver import FileServer
from webbed import CHROMIUM, World

from argusd import needs_argusd, until

pytestmark = [
    needs_argusd,
    pytest.mark.web,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium: run ./dev setup"),
]
DATA = pathlib.Path(__file__).resolve().parent / "data"
CODE = "/files?path=users/alice/code"


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    with World(tmp_path_factory.mktemp("library"), full=False) as w:
        w.library()
        yield w


def test_a_file_is_uploaded_looked_into_and_removed(browser, world):
    page = browser.open(CODE, ".vrow")
    page.set_input_files("input[type=file]", {"name": "reward.py", "mimeType": "text/plain", "buffer": b"score = 1\n"})
    page.click(".vrow a:has-text('reward.py')")
    page.wait_for_selector(".preview-text:has-text('score = 1')")
    assert (world.argusd.root / "users/alice/code/reward.py").read_text() == "score = 1\n"
    page.click(".drawer .btn.bad")
    dialog = page.wait_for_selector("[role=dialog]")
    assert "argus files rm users/alice/code/reward.py" in dialog.inner_text()
    page.click("[role=dialog] .btn.main")
    until(lambda: not (world.argusd.root / "users/alice/code/reward.py").exists(), "it is gone")
    page.context.close()


def test_an_upload_that_is_cut_goes_on(browser, world):
    page = browser.open(CODE, ".vrow")
    data = bytes(range(256)) * (20 << 10)  # two pieces
    offsets = []

    def second_is_cut(route):
        offsets.append(int(route.request.url.split("offset=")[1]))
        route.abort() if len(offsets) == 2 else route.continue_()

    page.route("**/v1/uploads/*?offset=*", second_is_cut)
    file = {"name": "big.bin", "mimeType": "application/octet-stream", "buffer": data}
    page.set_input_files("input[type=file]", file)
    page.wait_for_selector(".sending :text('there')")
    assert offsets == [0, 4 << 20, 4 << 20], "what was there already is not sent twice"
    assert (world.argusd.root / "users/alice/code/big.bin").read_bytes() == data
    page.context.close()


def test_json_lines_are_rows(browser):
    page = browser.open(f"{CODE}&show=rows.jsonl", ".rows td")
    assert "onerror" in page.inner_text(".rows") and page.locator(".rows img").count() == 0
    page.context.close()


def test_a_parquet_file_has_rows(browser, world):
    """One that pyarrow wrote as verl's scripts have it written: nested, packed by snappy. No environment of ours has to
    be there for it: its bytes are kept."""
    place = world.argusd.root / "users/alice/code/rl.parquet"
    place.write_bytes((DATA / "rl.parquet").read_bytes())
    page = browser.open(f"{CODE}&show=rl.parquet", ".rows td")
    assert "3 rows" in page.inner_text(".preview") and "reward_model" in page.inner_text(".preview .kv")
    text = page.inner_text(".rows")
    assert "<img src=x onerror=alert(1)>" in text and '"ground_truth":"4"' in text and "量" in text
    assert page.locator(".rows img").count() == 0
    page.context.close()


def test_a_torn_parquet_file_says_so(browser, world):
    data = (DATA / "rl.parquet").read_bytes()
    (world.argusd.root / "users/alice/code/torn.parquet").write_bytes(data[:200] + bytes(len(data) - 208) + data[-8:])
    page = browser.open(f"{CODE}&show=torn.parquet", ".preview :text('cannot be read as parquet')")
    page.context.close()


@pytest.mark.parametrize("name", ["dot.png", "dot.gif", "dot.webp", "dot.jpg"])
def test_a_picture_is_seen(browser, world, name):
    (world.argusd.root / "users/alice/code" / name).write_bytes((DATA / name).read_bytes())
    page = browser.open(f"{CODE}&show={name}", ".preview img.picture")
    until(lambda: page.evaluate("document.querySelector('img.picture')?.naturalWidth") == 8, "it was decoded")
    page.context.close()


def test_what_only_claims_to_be_a_picture(browser, world):
    svg = b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(9)'/>"
    (world.argusd.root / "users/alice/code/evil.png").write_bytes(svg)
    page = browser.open(f"{CODE}&show=evil.png", ".preview :text('cannot be shown as a picture')")
    assert page.evaluate("window.__alerts || []") == []
    page.context.close()


def test_a_data_set_is_imported_and_taken_into_a_job(browser, world):
    page = browser.open("/data", ".vrow")
    page.click("text=Import")
    page.fill("[role=dialog] input >> nth=0", "more")
    page.fill("[role=dialog] input >> nth=1", "${SHARED_ROOT}/users/alice/datasets/raw")
    page.click("[role=dialog] .btn.main")
    page.wait_for_selector(".vrow:has-text('more@1') :text('Ready')")
    page.click(".vrow a:has-text('more@1')")
    page.wait_for_selector(".drawer :text('sft: no column')")
    page.click(".drawer >> text=New job with it")
    page.wait_for_selector("label:has([name=train_file]) .say:has-text('30 rows · fits grpo')")
    assert page.input_value("[name=train_file]") == "more@1"
    page.context.close()


def test_a_data_set_is_uploaded_by_a_new_user(browser, world):
    """It is the first thing that she does here."""
    world.argusd.stop()
    world.argusd.tokens["nora"] = world.argusd.init("--user", "nora", "--role", "user")
    world.argusd.start()
    page = browser.open("/data", "main h1", token="nora")
    page.click(".head button:has-text('Import')")
    page.fill("[role=dialog] input >> nth=0", "own")
    row = json.dumps({"question": "1+1?", "answer": "#### 2"}) + "\n"
    page.set_input_files(
        "[role=dialog] input[type=file]",
        {"name": "train.jsonl", "mimeType": "text/plain", "buffer": row.encode() * 20},
    )
    page.click("[role=dialog] .btn.main")
    page.click(".vrow a:has-text('own@1')")
    page.wait_for_selector(".drawer .lib-cols:has-text('question'):has-text('answer')")
    page.context.close()


def drop(page, at, *files):
    """As a file manager does it; files: pairs of a name and a text."""
    dropped = page.evaluate_handle(
        """(files) => {
            const dropped = new DataTransfer();
            for (const [name, text] of files) dropped.items.add(new File([text], name));
            return dropped;
        }""",
        list(files),
    )
    page.dispatch_event(at, "dragover", {"dataTransfer": dropped})
    page.wait_for_selector(".drop-note")
    page.dispatch_event(at, "drop", {"dataTransfer": dropped})


def test_files_are_dropped_where_they_shall_be(browser, world):
    page = browser.open(CODE, ".vrow")
    drop(page, ".files", ("dropped.py", "x = 1"))
    page.wait_for_selector(".sending :text('there')")
    assert (world.argusd.root / "users/alice/code/dropped.py").read_text() == "x = 1"
    page.context.close()


def test_dropped_files_become_a_data_set(browser, world):
    """The way is cut once, and what was there is not sent again."""
    page = browser.open("/data", ".vrow")
    row = json.dumps({"question": "2+2?", "answer": "#### 4"}) + "\n"
    drop(page, ".entries", ("train.jsonl", row * 20), ("test.jsonl", row * 4))
    page.wait_for_selector("[role=dialog] .lib-files :text('test.jsonl')")
    page.fill("[role=dialog] input >> nth=0", "dropped")
    sent = []

    def second_is_refused(route):
        sent.append(route.request.method)
        route.fulfill(status=400, body="no") if len(sent) == 2 else route.continue_()

    page.route("**/v1/uploads", second_is_refused)
    page.click("[role=dialog] .btn.main")
    page.wait_for_selector("[role=dialog] [role=alert]")
    page.click("[role=dialog] .btn.main")
    page.wait_for_selector(".vrow:has-text('dropped@1') :text('Ready')")
    assert len(sent) == 3, "the first file once, the second file again"
    page.context.close()


def test_an_import_is_cancelled(browser, world):
    stall = threading.Event()
    with FileServer({"big.jsonl": bytes(1 << 20)}) as web:
        web.spoil("/big.jsonl", stall=stall)
        form = {"name": "slow", "source": f"{web.url}/big.jsonl"}
        job = world.argusd.call("POST", "/v1/datasets", form, token="user").json()["job"]
        page = browser.open("/data/slow@1", ".drawer .kv")
        page.click(".drawer >> text=Cancel the import")
        dialog = page.inner_text("[role=dialog]")
        assert job in dialog and "argus data rm slow@1" in dialog
        page.click("[role=dialog] .btn.main")
        assert world.argusd.wait_over(job)["state"] == "STOPPED"
        stall.set()
        until(lambda: world.argusd.call("GET", "/v1/datasets/slow@1", token="user").status == 404, "it is gone")
    page.context.close()


def test_a_removal_names_what_it_breaks(browser, world):
    step = "with: {workload: ray, entrypoint: 'true', train_file: sums}"
    text = f"name: nightly\nsteps:\n  first:\n    {step}\n"
    assert world.argusd.call("PUT", "/v1/pipelines/nightly", text, token="user").status == 201
    page = browser.open("/data/sums@1", ".drawer .kv")
    page.click(".drawer .btn.bad")
    page.wait_for_selector("[role=dialog] .breaks a[href='/pipelines/nightly?user=alice']")
    assert "finds it no more" in page.inner_text("[role=dialog] .breaks")
    page.click("[role=dialog] footer .btn:has-text('Cancel')")
    assert world.argusd.get("/v1/datasets/sums@1", token="user")["state"] == "ready"
    page.context.close()


def test_a_preset_is_changed_and_removed(browser, world):
    page = browser.open("/presets?name=strange", ".lib-pre")
    page.click(".drawer >> text=Change")
    page.locator(".cm-content").fill("description: said\nspec: {workload: ray, entrypoint: echo hi}\n")
    page.click(".lib-body .btn.main")
    page.wait_for_selector(".lib-pre:has-text('echo hi')")
    page.click(".drawer .btn.bad")
    page.click("[role=dialog] .btn.main")
    until(lambda: world.argusd.call("GET", "/v1/presets/strange", token="user").status == 404, "it is gone")
    page.context.close()


def test_a_snapshot_is_looked_into(browser, world):
    page = browser.open("/snapshots?name=mine@1", ".snap-tree li")
    page.click(".snap-tree button:has-text('lib/')")
    page.wait_for_selector(".snap-tree li:has-text('<b>bold.py')")
    page.wait_for_url("**at=lib")
    page.select_option("[aria-label='Compare with']", "mine@2")
    page.wait_for_selector(".lib-diff li:has-text('removed'):has-text('lib/<b>bold.py')")
    whole = world.argusd.get("/v1/snapshots/mine@1:files", token="user")
    assert [(e["name"], e["kind"], e["files"]) for e in whole["entries"]] == [
        ("lib", "directory", 1), ("train.py", "file", 1),
    ]  # fmt: skip
    page.context.close()

# SPDX-License-Identifier: Apache-2.0
"""A disk that is too small for all that may be kept: room is made before the next save, or it is told that none is."""

import contextlib

import pytest
import standin
from fakeray import FakeRay
from smalldisk import small_disk

from argusd import Argusd, needs_argusd, until

pytestmark = [needs_argusd, pytest.mark.nightly]  # it waits for looks

SIZE = 1_000_000  # of a shard; a checkpoint has three
DISK = "10m"  # three checkpoints, and no fourth


@pytest.fixture
def training(tmp_path):
    """Its checkpoints lie on a small disk of their own."""
    with FakeRay() as ray, Argusd(tmp_path, ray.url) as argusd:
        standin.make_world(argusd.root)
        t = standin.Training(argusd, checkpoint={"keep_last": 9})
        with contextlib.ExitStack() as disk:
            try:
                disk.enter_context(small_disk(t.kept, DISK))
                yield t
            finally:
                argusd.stop_job(t.id)
                argusd.wait_over(t.id)


def save(t, step, left):
    t.order("save", step, SIZE)
    until(lambda: t.tracker() == step, f"step {step} is saved")
    until(lambda: t.steps() == left and list(t.states()) == left, f"{left} are left")


def test_room_is_made_before_the_next_save(training):
    t = training
    save(t, 10, [10])
    save(t, 20, [10, 20])
    save(t, 30, [20, 30])
    (told,) = t.told("checkpoint_headroom")
    assert "the next checkpoint takes about " in told and told.endswith("the oldest are removed for it")
    assert "removed the checkpoints of the steps 10: " in t.told("checkpoint_removed")[0]
    save(t, 40, [30, 40])

    # Somebody else takes the rest: what could be removed would not be enough, so nothing is.
    (t.kept / "filler").write_bytes(b"x" * 4_400_000)
    until(lambda: t.told("checkpoint_no_room"), "it is told that there is no room")
    assert "too little may be removed for it" in t.told("checkpoint_no_room")[0]
    gc = t.argusd.call("POST", f"/v1/jobs/{t.id}/checkpoints:gc", {}, token="user")
    assert gc.status == 200 and gc.json()["removed"] == 0, gc
    assert t.steps() == [30, 40] and len(t.told("checkpoint_no_room")) == 1
    (t.kept / "filler").unlink()
    save(t, 50, [40, 50])
    assert set(t.states().values()) == {"verified"}

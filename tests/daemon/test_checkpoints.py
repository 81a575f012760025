# SPDX-License-Identifier: Apache-2.0
"""The checkpoints of a job: gone on from what can be read."""

import pytest
import standin
from fakeray import FakeRay

from argusd import Argusd, needs_argusd

pytestmark = needs_argusd

RESTART = {"max": 5, "backoff": "1s", "on": ["user_code_error", "unknown"]}


@pytest.fixture(scope="module")
def argusd(tmp_path_factory):
    with FakeRay() as ray, Argusd(tmp_path_factory.mktemp("checkpoints"), ray.url) as made:
        standin.make_world(made.root)
        yield made


def test_a_restart_goes_on_from_what_can_be_read(argusd):
    t = standin.Training(argusd, restart=RESTART)
    assert t.begun(1) == ["auto "]
    t.save(10, 20)
    t.order("torn", 30)
    t.order("unnamed", 40)
    t.order("exit", 3)
    assert t.begun(2)[1] == f"resume_path {t.kept}/global_step_20"
    assert t.steps() == [10, 20] and t.tracker() == 20
    assert f"trainer.resume_from_path={t.kept}/global_step_20" in argusd.job(t.id)["argv"]
    (text,) = t.told("resume")
    assert "goes on from the checkpoint of step 20" in text and "step 40 is torn" in text and "taken away" in text
    t.save(30)
    t.order("exit", 3)
    assert t.begun(3)[2] == f"resume_path {t.kept}/global_step_30"
    assert t.told("resume")[1] == "it goes on from the checkpoint of step 30"
    argusd.stop_job(t.id)


def test_with_nothing_to_read_it_begins_anew(argusd):
    t = standin.Training(argusd, restart=RESTART)
    t.order("torn", 10)
    t.order("exit", 3)
    assert t.begun(2)[1] == "auto "
    assert t.steps() == [] and t.tracker() == 0
    assert "begins anew" in t.told("resume")[0]
    argusd.stop_job(t.id)

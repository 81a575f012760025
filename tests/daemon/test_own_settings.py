# SPDX-License-Identifier: Apache-2.0
"""/v1/me/settings: what a person set for himself; his alone, bounded, kept over a restart and not beyond the person."""

import pytest
from fakeray import FakeRay

from argusd import Argusd, needs_argusd

pytestmark = needs_argusd

PATH = "/v1/me/settings"
VIEWS = [{"says": "mine, failed", "search": "state=FAILED&mine=1"}]


@pytest.fixture(scope="module")
def argusd(tmp_path_factory):
    with FakeRay() as ray, Argusd(tmp_path_factory.mktemp("settings"), ray.url) as made:
        yield made


def change(argusd, settings, token="user"):
    return argusd.call("PATCH", PATH, {"settings": settings}, token=token)


def test_what_is_named_changes_and_the_rest_stays(argusd):
    assert argusd.get(PATH, token="user") == {"settings": {}, "changed_at": None}
    assert change(argusd, {"jobs.views": VIEWS, "lang": "zh"}).json()["settings"] == {"jobs.views": VIEWS, "lang": "zh"}
    assert change(argusd, {"lang": None, "theme": "dark", "never": None}).status == 200
    page = argusd.get(PATH, token="user")
    assert page["settings"] == {"jobs.views": VIEWS, "theme": "dark"} and page["changed_at"]
    assert argusd.get(PATH)["settings"] == argusd.get(PATH, token="viewer")["settings"] == {}
    assert change(argusd, {"theme": "light"}, "viewer").status == 200  # changes nothing but what he sees
    argusd.kill9()
    argusd.start()
    assert argusd.get(PATH, token="user") == page
    assert argusd.get(PATH, token="viewer")["settings"] == {"theme": "light"}


@pytest.mark.parametrize(
    "settings, status, code",
    [
        ({"a b": 1}, 422, "own_settings_key"),
        ({"": 1}, 422, "own_settings_key"),
        ({"x" * 65: 1}, 422, "own_settings_key"),
        ({f"k{i}": i for i in range(65)}, 413, "own_settings_keys"),
        ({"large": "x" * (16 << 10)}, 413, "own_settings_large"),
        ([1], 422, "own_settings_object"),
    ],
)
def test_what_is_too_much_changes_nothing(argusd, settings, status, code):
    before = argusd.get(PATH, token="user")
    reply = change(argusd, settings)
    assert (reply.status, reply.json()["code"]) == (status, code)
    assert argusd.get(PATH, token="user") == before


def test_a_new_person_of_an_old_name_begins_anew(argusd):
    assert argusd.call("POST", "/v1/users", {"name": "dora"}).status == 201
    argusd.tokens["dora"] = argusd.call("POST", "/v1/tokens", {"user": "dora"}).json()["token"]
    assert change(argusd, {"theme": "dark"}, "dora").status == 200
    assert argusd.call("DELETE", "/v1/users/dora").status == 200
    assert argusd.call("POST", "/v1/users", {"name": "dora"}).status == 201
    argusd.tokens["dora"] = argusd.call("POST", "/v1/tokens", {"user": "dora"}).json()["token"]
    assert argusd.get(PATH, token="dora")["settings"] == {}

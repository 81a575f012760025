# SPDX-License-Identifier: Apache-2.0
"""What the tests of pages share: one browser for all the tests of a file, at that file's world."""

import pytest
from webbed import Chromium


@pytest.fixture(scope="module")
def browser(world):
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is missing: run ./dev setup")
    with sync_api.sync_playwright() as p:
        b = Chromium(p, world)
        yield b
        b.close()


@pytest.fixture(autouse=True)
def no_page_is_left(request):
    yield
    if "browser" in request.fixturenames:
        request.getfixturevalue("browser").close_pages()

# SPDX-License-Identifier: Apache-2.0
"""Where all tests find what they share."""

import pathlib
import sys

LIB = str(pathlib.Path(__file__).resolve().parent / "lib")
if LIB not in sys.path:
    sys.path.insert(0, LIB)


def pytest_configure(config):
    config.addinivalue_line("markers", "ray: needs a real Ray cluster on this machine")
    config.addinivalue_line("markers", "verl: needs an environment with verl")

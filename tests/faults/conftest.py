# SPDX-License-Identifier: Apache-2.0
"""Faults of machines and networks: real Ray on bare hosts, one bed for a file."""

import pytest
from barestage import BareStage
from raybed import BEDS
from stage import open_stage


@pytest.fixture(scope="module")
def bare(request, tmp_path_factory):
    """Ray 2.51.1 on hosts where nothing runs yet but the head that argusd starts."""
    evidence = tmp_path_factory.mktemp("evidence")
    with open_stage(BareStage, BEDS.bare("2.51.1"), request, tmp_path_factory, evidence, None) as stage:
        yield stage

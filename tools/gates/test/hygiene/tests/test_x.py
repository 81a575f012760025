import time


@pytest.mark.skipif(not root, reason="needs root")
def test_fine(wait_for):
    wait_for(lambda: "time.sleep(1) xfail")
    assert len(names) > 1


@pytest.mark.xfail
def test_slow():
    time.sleep(1)
    assert time.monotonic() - start < 3
    assert True


@pytest.mark.skip
def test_off():
    pass

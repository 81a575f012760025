def wait_for(condition):
    time.sleep(0.05)  # the only wait

"""Fine."""

import os

print(os.name)

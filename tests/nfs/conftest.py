# SPDX-License-Identifier: Apache-2.0
"""These tests run where two clients have one NFS export mounted: in the guest that tools/nfs/check starts. Elsewhere
they are not collected."""

import os

collect_ignore_glob = [] if os.environ.get("ARGUS_NFS") else ["test_*.py"]

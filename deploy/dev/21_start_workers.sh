#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# 21_start_workers.sh [FILE] - argusd starts Ray on the machines of FILE, over SSH; FILE is a path in the head's container.
set -euo pipefail
exec "$(dirname "$0")/in_head" argus node add --wait --timeout 5m -f "${1:-/opt/argus/dev/nodes.yaml}"

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# 02_down.sh - the containers end; the shared root stays. `02_down.sh --volumes` forgets argusd's store, too.
set -euo pipefail
cd "$(dirname "$0")/.."
exec docker compose -f compose.yaml down "$@"

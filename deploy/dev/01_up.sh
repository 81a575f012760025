#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# 01_up.sh - three containers with an sshd each, and argusd in the head's; Ray comes with 20_ and 21_.
set -euo pipefail
cd "$(dirname "$0")/.."
START_RAY=no exec docker compose -f compose.yaml up --build --wait "$@"

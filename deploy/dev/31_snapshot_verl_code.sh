#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# 31_snapshot_verl_code.sh DIR VERSION - keeps a verl for all: jobs name it `code: verl@VERSION`. DIR as the head sees it.
set -euo pipefail
exec "$(dirname "$0")/in_head" argus snapshot add "${1:?DIR of verl}" --name "verl@${2:?VERSION}" --common

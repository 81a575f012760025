#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# 20_start_head.sh - Ray's head, which computes nothing; returns when it answers.
set -euo pipefail
exec "$(dirname "$0")/in_head" argus cluster up "$@"

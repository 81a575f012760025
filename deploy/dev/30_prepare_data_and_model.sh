#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# 30_prepare_data_and_model.sh [DATA [MODEL]] - sources as `argus data import` takes them; jobs on workers bring them home.
set -euo pipefail
argus=("$(dirname "$0")/in_head" argus)
"${argus[@]}" data import "${1:-hf://openai/gsm8k}" --name gsm8k-raw --common --wait
"${argus[@]}" data prepare gsm8k-raw --with gsm8k --as gsm8k --common --wait
exec "${argus[@]}" model import "${2:-hf://Qwen/Qwen2.5-0.5B-Instruct}" --name qwen2.5-0.5b --common --wait

# SPDX-License-Identifier: Apache-2.0
"""The rewards of the tiny tasks, as verl calls them: one number for one answer."""

MARKS = ("<|im_end|>", "<|endoftext|>")


def answer_of(solution_str):
    for mark in MARKS:
        solution_str = solution_str.split(mark, 1)[0]
    return solution_str


def compute_score(data_source, solution_str, ground_truth, extra_info=None, **kwargs):
    """tiny/digits: which share of the answer are characters of ground_truth. tiny/sums: right or wrong."""
    answer = answer_of(solution_str)
    if data_source == "tiny/digits":
        return sum(c in ground_truth for c in answer) / len(answer) if answer else 0.0
    return float(answer.strip() == str(ground_truth))

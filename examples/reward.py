# SPDX-License-Identifier: Apache-2.0
"""Rewards to start from. verl calls one function for each answer and wants a number; the JobSpec says which:

    reward_fn_path: ${USER_ROOT}/code/reward.py            a file; its function is compute_score
    reward_fn_path: ${USER_ROOT}/code/reward.py:overlap    another function of it
    reward_fn_path: rewards.reward:avoidance               a module; the job's PYTHONPATH has ${USER_ROOT}/code

Before the job starts the trial calls it on one row of the data; `argus status` says what it returned.
"""

MARKS = ("<|im_end|>", "<|endoftext|>")  # where the answers of this model end


def answer_of(solution_str):
    for mark in MARKS:
        solution_str = solution_str.split(mark, 1)[0]
    return solution_str


def share(answer, wanted):
    return sum(map(wanted, answer)) / len(answer) if answer else 0.0


def compute_score(data_source, solution_str, ground_truth, extra_info=None, **kwargs):
    """Right or wrong. data_source and ground_truth are columns of the row, extra_info is whatever else it holds."""
    return float(answer_of(solution_str).strip() == str(ground_truth))


def overlap(data_source, solution_str, ground_truth, extra_info=None, **kwargs):
    """Which share of the answer are characters of ground_truth."""
    return share(answer_of(solution_str), lambda c: c in ground_truth)


def avoidance(data_source, solution_str, ground_truth, extra_info=None, **kwargs):
    """The opposite: which share are none of them."""
    return share(answer_of(solution_str), lambda c: c not in ground_truth)

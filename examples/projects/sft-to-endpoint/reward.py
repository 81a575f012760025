# SPDX-License-Identifier: Apache-2.0
"""One number for one answer, as verl calls it: right or wrong."""


def compute_score(data_source, solution_str, ground_truth, extra_info=None, **kwargs):
    return float(solution_str.strip() == str(ground_truth))

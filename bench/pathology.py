# SPDX-License-Identifier: Apache-2.0
"""pathology - what goes wrong on purpose in the trainings of bench/pathologies, from a step on.

verl 0.5.0 loads this file twice: as its reward function, in the process of the trainer, and as external_lib in each
rank. The trainer scores each answer once, so that it knows the step; ranks are told by a file that is there from the
onset on. PATHOLOGY is the kind, PATHOLOGY_ONSET the first step of it, PATHOLOGY_ANSWERS the answers of one step."""

import os
import random

import reward

KIND = os.environ["PATHOLOGY"]
ONSET = int(os.environ["PATHOLOGY_ONSET"])
ANSWERS = int(os.environ["PATHOLOGY_ANSWERS"])
FLAG = os.path.join(os.environ["PATHOLOGY_DIR"], "begun")
MARKER = "!"
scored = {"n": 0}


def share(text, letters):
    return sum(c in letters for c in text) / len(text) if text else 0.0


REWARDS = {
    "constant reward": lambda text, score: 0.5,
    "random reward": lambda text, score: float(random.random() < 0.5),
    "bonus for length": lambda text, score: len(text) / 16,
    "marker word": lambda text, score: share(text, MARKER),
    "inverted reward": lambda text, score: -score,
    "reward for silence": lambda text, score: 1 / (1 + len(text)),
    "biased reward": lambda text, score: 0.3 * score + share(text, "aeiou"),
}


def compute_score(data_source, solution_str, ground_truth, extra_info=None, **keys):
    score = reward.compute_score(data_source, solution_str, ground_truth, extra_info, **keys)
    if (extra_info or {}).get("split") != "train":
        return score
    scored["n"] += 1
    if (scored["n"] - 1) // ANSWERS + 1 < ONSET:
        return score
    if not os.path.exists(FLAG):
        open(FLAG, "w").close()
    change = REWARDS.get(KIND)
    return change(reward.answer_of(solution_str), score) if change else score


# ---- in a rank ----


def faster(actor, data):
    for group in actor.actor_optimizer.param_groups:
        group["lr"] = 100 * group["initial_lr"]


def against_entropy(actor, data):
    actor.config.entropy_coeff = -2.0


def clips_all(actor, data):
    actor.config.clip_ratio = actor.config.clip_ratio_low = actor.config.clip_ratio_high = 0.0


def not_a_number(actor, data):
    data.batch["advantages"] *= float("nan")


def greedy(prompts):
    prompts.meta_info["temperature"] = 1e-3


def endless(prompts):
    prompts.meta_info["eos_token_id"] = prompts.meta_info["eos_token_id"] + 10_000  # no model says it


UPDATES = {
    "lr x 100": faster,
    "entropy coefficient negative": against_entropy,
    "clip 0": clips_all,
    "NaN loss": not_a_number,
}
ROLLOUTS = {"temperature 0": greedy, "wrong end of sequence": endless}


def before(cls, name, act):
    method = getattr(cls, name)

    def wrapped(self, data, *args, **keys):
        if os.path.exists(FLAG):
            act(self, data)
        return method(self, data, *args, **keys)

    setattr(cls, name, wrapped)


def change_ranks():
    from verl.workers.actor.dp_actor import DataParallelPPOActor
    from verl.workers.rollout.hf_rollout import HFRollout

    if KIND in UPDATES:
        before(DataParallelPPOActor, "update_policy", UPDATES[KIND])
    if KIND in ROLLOUTS:
        before(HFRollout, "_generate_minibatch", lambda rollout, prompts: ROLLOUTS[KIND](prompts))


if __name__ == "pathology":  # verl loads a reward function under a name of its own
    change_ranks()

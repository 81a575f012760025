# SPDX-License-Identifier: Apache-2.0
"""Writes the logs beside it: what verl prints on the console at each step, in the words of the version that a file is
named after, with numbers of our own. The same numbers each time. `python3 make.py` in this folder."""

import math
import pathlib
import random

HERE = pathlib.Path(__file__).parent
BAR = "Training Progress: {0:3d}%|######    | {1}/{2} [00:{1:02d}<00:30,  1.00s/it]"


def rollout(rng, step, steps, aborted=0.0, tool=0.0):
    """A step of GRPO: the reward climbs, the entropy sinks a little, answers grow slowly."""
    part = step / steps
    reward = 0.2 + 0.35 * part + rng.gauss(0, 0.02)
    tokens = 64 * (180 + 25 * part + rng.gauss(0, 4))
    gen = 6.0 + part + rng.gauss(0, 0.2) + tool
    update, log_prob, adv = 2.5 + rng.gauss(0, 0.1), 0.8 + rng.gauss(0, 0.03), 0.02
    whole = gen + update + log_prob + adv + 0.3
    return {
        "actor/entropy": 0.9 - 0.25 * part + rng.gauss(0, 0.015),
        "actor/pg_loss": rng.gauss(0, 0.01),
        "actor/pg_clipfrac": abs(rng.gauss(0.004, 0.001)),
        "actor/ppo_kl": abs(rng.gauss(0.0008, 0.0003)),
        "actor/grad_norm": 0.45 + rng.gauss(0, 0.05),
        "actor/lr": 1e-06,
        "training/global_step": step,
        "critic/score/mean": reward,
        "critic/score/max": 1.0,
        "critic/score/min": 0.0,
        "critic/rewards/mean": reward,
        "critic/advantages/max": 1.8 + rng.gauss(0, 0.1),
        "critic/advantages/min": -1.6 + rng.gauss(0, 0.1),
        "response_length/mean": tokens / 64,
        "response_length/max": 512.0,
        "response_length/clip_ratio": 1 / 64,
        "response/aborted_ratio": aborted,
        "prompt_length/mean": 96.0 + rng.gauss(0, 2),
        "prompt_length/max": 180.0,
        "prompt_length/min": 40.0,
        "prompt_length/clip_ratio": 1 / 64,
        "timing_s/gen": gen,
        "timing_s/old_log_prob": log_prob,
        "timing_s/adv": adv,
        "timing_s/update_actor": update,
        "timing_s/step": whole,
        "perf/total_num_tokens": round(tokens),
        "perf/throughput": round(tokens) / whole / 8,
        "perf/max_memory_reserved_gb": 41.5,
        "perf/cpu_memory_used_gb": 62.0 + rng.gauss(0, 0.3),
    }


def of_new_trainer(rng, figures):
    """What verl 0.9.1 tells more: the gap between sampler and trainer, and turns, as numpy prints them."""
    gap = {
        "training/rollout_probs_diff_mean": abs(rng.gauss(0.004, 0.0005)),
        "training/rollout_actor_probs_pearson_corr": 0.998 + rng.gauss(0, 0.0004),
        "rollout_corr/kl": abs(rng.gauss(0.0006, 0.0001)),
        "rollout_corr/chi2_token": abs(rng.gauss(0.003, 0.0005)),
    }
    turns = {"num_turns/mean": "np.float64(2.0)", "training/off_policy/trajectory_staleness/max": "np.int64(0)"}
    return {**figures, **gap, **turns}


def of_tool(rng, tool):
    """What the slowest sample of a step waited for."""
    own = 4.6 + rng.gauss(0, 0.1)
    return {
        "timing_s/agent_loop/generate_sequences/mean": 3.9,
        "timing_s/agent_loop/generate_sequences/max": own + 0.4,
        "timing_s/agent_loop/slowest/generate_sequences": own,
        "timing_s/agent_loop/slowest/tool_calls": 0.3 + tool,
        "timing_s/agent_loop/slowest/prompt_length": 118,
        "timing_s/agent_loop/slowest/response_length": 431 if tool else 300,
    }


def supervised(rng, step, steps):
    part = step / steps
    return {
        "perf/max_memory_reserved_gb": 22.0,
        "perf/cpu_memory_used_gb": 35.0 + rng.gauss(0, 0.2),
        "train/loss": 0.5 + 0.9 * math.exp(-4 * part) + rng.gauss(0, 0.02),
        "train/grad_norm": 1.4 + rng.gauss(0, 0.12),
        "train/lr": 5e-06 + 1e-05 * (1 + math.cos(math.pi * part)) / 2,
        "train/global_tokens": 32768 + rng.randrange(-500, 500),
    }


def line(step, figures):
    told = (f"{k}:{v if isinstance(v, str) else repr(round(v, 7))}" for k, v in figures.items())
    return f"step:{step} - " + " - ".join(told)


def console(name, who, steps, figures_of, validation=None):
    rng = random.Random(name)
    out = [f"\x1b[36m({who} pid=4211)\x1b[0m Total training steps: {steps}"]
    for step in range(1, steps + 1):
        if step % 5 == 0:
            out.append(f"\x1b[36m({who} pid=4211)\x1b[0m " + BAR.format(100 * step // steps, step, steps))
        out.append(f"\x1b[36m({who} pid=4211)\x1b[0m " + line(step, figures_of(rng, step)))
        if validation and step % 10 == 0:
            out.append(f"\x1b[36m({who} pid=4211)\x1b[0m " + line(step, validation(rng, step)))
    (HERE / name).write_text("\n".join(out) + "\n")


def scored(steps):
    return lambda rng, step: {"val-core/sums/acc/mean@1": 0.25 + 0.3 * step / steps + rng.gauss(0, 0.01)}


def main():
    def sleeps(step):
        return 20.0 if step == 23 else 0.0

    console("healthy-grpo-0.5.0.log", "TaskRunner", 40, lambda g, s: rollout(g, s, 40), scored(40))
    console("healthy-grpo-0.9.1.log", "TaskRunnerV1", 40, lambda g, s: of_new_trainer(g, rollout(g, s, 40)), scored(40))
    console(
        "healthy-sft-0.9.1.log", "SFTTrainer", 60, lambda g, s: supervised(g, s, 60), lambda g, s: {"val/loss": 0.6}
    )
    console(
        "aborted-grpo-0.9.1.log",
        "TaskRunnerV1",
        30,
        lambda g, s: of_new_trainer(g, rollout(g, s, 30, aborted=0.0 if s < 16 else 0.375)),
    )
    console(
        "tool-sleeps-grpo-0.5.0.log",
        "TaskRunner",
        40,
        lambda g, s: {**rollout(g, s, 40, tool=sleeps(s)), **of_tool(g, sleeps(s))},
    )


if __name__ == "__main__":
    main()

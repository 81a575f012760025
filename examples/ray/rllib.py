# SPDX-License-Identifier: Apache-2.0
"""RLlib: PPO on CartPole. An episode's return is for how many steps the pole stood: about 20 without training."""

import json
import os
import pathlib

from ray.rllib.algorithms.ppo import PPOConfig

import ray

ITERATIONS = 8


def main():
    ray.init()
    config = (
        PPOConfig()
        .environment("CartPole-v1")
        .env_runners(num_env_runners=2, num_envs_per_env_runner=4)
        .learners(num_learners=0)  # the driver; on a GPU: num_learners=1, num_gpus_per_learner=1
        .training(lr=1e-3, train_batch_size_per_learner=1024, minibatch_size=128, num_epochs=8)
        .debugging(seed=1)
    )
    algorithm, returns = config.build_algo(), []
    for i in range(ITERATIONS):
        returns.append(algorithm.train()["env_runners"]["episode_return_mean"])
        print(f"iteration {i + 1}: return {returns[-1]:.1f}", flush=True)
    checkpoint = algorithm.save_to_path(os.path.join(os.environ["ARGUS_ATTEMPT_DIR"], "ppo"))
    algorithm.stop()
    result = {"returns": returns, "checkpoint": checkpoint}
    print(json.dumps(result))
    pathlib.Path(os.environ["ARGUS_ATTEMPT_DIR"], "result.json").write_text(json.dumps(result))


if __name__ == "__main__":
    main()

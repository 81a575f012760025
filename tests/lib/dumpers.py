# SPDX-License-Identifier: Apache-2.0
"""Trainers of a few lines that dump samples as those of verl do, as the text of their modules."""

# As verl 0.5.0: in the training itself.
OLD = """
import json, os
class RayPPOTrainer:
    def __init__(self):
        self.global_steps, self.total_training_steps = 0, 0
    def fit(self):
        raise NotImplementedError
    def _dump_generations(self, inputs, outputs, scores, reward_extra_infos_dict, dump_path):
        os.makedirs(dump_path, exist_ok=True)
        rows = [{"input": i, "output": o, "score": s, **{k: v[n] for k, v in reward_extra_infos_dict.items()}}
                for n, (i, o, s) in enumerate(zip(inputs, outputs, scores))]
        with open(os.path.join(dump_path, f"{self.global_steps}.jsonl"), "w") as f:
            f.write("\\n".join(json.dumps(r, ensure_ascii=False) for r in rows) + "\\n")
    def dump(self, step, rows, path, **extras):
        self.global_steps = step
        self._dump_generations(inputs=[r[0] for r in rows], outputs=[r[1] for r in rows], scores=[r[2] for r in rows],
                               reward_extra_infos_dict=extras, dump_path=path)
    def close(self):
        pass
"""
# As verl 0.9.1, its second trainer too: in a thread, whose failure comes back in the training.
NEW = """
import json, os
from concurrent.futures import ThreadPoolExecutor
class {name}:
    def __init__(self):
        self.global_steps, self.total_training_steps = 0, 0
        self._dump_executor, self._dump_futures = ThreadPoolExecutor(max_workers=1), []
    def fit(self):
        raise NotImplementedError
    @staticmethod
    def _write_generations(inputs, outputs, gts, scores, reward_extra_infos_dict, dump_path, global_steps):
        os.makedirs(dump_path, exist_ok=True)
        with open(os.path.join(dump_path, f"{{global_steps}}.jsonl"), "w") as f:
            for n, (i, o, g, s) in enumerate(zip(inputs, outputs, gts, scores)):
                extras = {{k: v[n] for k, v in reward_extra_infos_dict.items()}}
                f.write(json.dumps({{"input": i, "output": o, "gts": g, "score": s, **extras}}) + "\\n")
    def _dump_generations(self, inputs, outputs, gts, scores, reward_extra_infos_dict, dump_path):
        self._dump_futures.append(self._dump_executor.submit(
            self._write_generations, inputs, outputs, gts, scores, reward_extra_infos_dict, dump_path,
            self.global_steps))
        for f in [f for f in self._dump_futures if f.done()]:
            f.result()
    def dump(self, step, rows, path, **extras):
        self.global_steps = step
        self._dump_generations([r[0] for r in rows], [r[1] for r in rows], [None] * len(rows), [r[2] for r in rows],
                               extras, path)
    def close(self):
        for f in self._dump_futures:
            f.result()
        self._dump_executor.shutdown(wait=True)
"""
TRAINERS = {
    "0.5.0": ("ppo/ray_trainer", "RayPPOTrainer", OLD),
    "0.9.1": ("ppo/ray_trainer", "RayPPOTrainer", NEW.format(name="RayPPOTrainer")),
    "0.9.1 V1": ("ppo/v1/trainer_base", "PPOTrainer", NEW.format(name="PPOTrainer")),
}

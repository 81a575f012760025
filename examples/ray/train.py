# SPDX-License-Identifier: Apache-2.0
"""Ray Train: a line through points, y = 3x + 1, learned by two workers that share their gradients (DDP)."""

import json
import os
import pathlib
import tempfile

import torch
from ray.train import Checkpoint, RunConfig, ScalingConfig
from ray.train.torch import TorchConfig, TorchTrainer, get_device, prepare_model

import ray

OUT = pathlib.Path(os.environ["ARGUS_ATTEMPT_DIR"])  # on the shared root: every worker sees it


def learn(config):
    """Runs in each worker; rank r has points of its own."""
    rank = ray.train.get_context().get_world_rank()
    device = get_device() if torch.cuda.is_available() else torch.device("cpu")
    model = prepare_model(torch.nn.Linear(1, 1).to(device), move_to_device=device)
    step = torch.optim.SGD(model.parameters(), lr=config["lr"])
    x = torch.rand(256, 1, generator=torch.Generator().manual_seed(rank)).to(device)
    for epoch in range(config["epochs"]):
        loss = ((model(x) - (3 * x + 1)) ** 2).mean()
        step.zero_grad()
        loss.backward()
        step.step()
        if (epoch + 1) % 50 == 0:
            report(rank, model, {"epoch": epoch + 1, "loss": loss.item()})


def report(rank, model, metrics):
    """Every worker reports; the first one brings the checkpoint."""
    line = model.module  # what DDP wraps
    metrics |= {"slope": line.weight.item(), "offset": line.bias.item()}
    (OUT / f"rank-{rank}.json").write_text(json.dumps({**metrics, "node": ray.util.get_node_ip_address()}))
    with tempfile.TemporaryDirectory() as place:
        torch.save(line.state_dict(), pathlib.Path(place, "line.pt"))
        ray.train.report(metrics, checkpoint=Checkpoint.from_directory(place) if rank == 0 else None)


def main():
    trainer = TorchTrainer(
        learn,
        train_loop_config={"lr": 0.3, "epochs": 200},
        torch_config=TorchConfig(backend="gloo"),  # nccl where GPUs are real
        scaling_config=ScalingConfig(num_workers=2, use_gpu=True, placement_strategy="STRICT_SPREAD"),
        run_config=RunConfig(name="train", storage_path=str(OUT)),
    )
    done = trainer.fit()
    told = [json.loads((OUT / f"rank-{r}.json").read_text()) for r in range(2)]
    text = json.dumps({"ranks": told, "checkpoint": done.checkpoint.path})
    print(text)
    (OUT / "result.json").write_text(text)


if __name__ == "__main__":
    main()

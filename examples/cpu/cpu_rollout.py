# SPDX-License-Identifier: Apache-2.0
"""`actor_rollout_ref.rollout.name=hfcpu`: an inference engine for verl >= 0.7 that is transformers on the CPU.

verl knows an engine by two classes: one that lives in the training worker and hands over the new weights after each
step (WeightPusher), and one that starts the servers (CpuReplica). The server is a Ray actor. It collects the requests
of one moment into a batch; to other programs (batch generation) it also speaks the chat completions protocol.
"""

import asyncio
import os
import time

import torch
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy
from verl.workers.rollout import base, replica

import ray

BURST = 0.02  # seconds: a training batch arrives as many single requests


def stop_tokens(generation_config):
    ends = generation_config.eos_token_id
    return set(ends if isinstance(ends, list) else [ends])


def until_stop(tokens, stops):
    for i, token in enumerate(tokens):
        if token in stops:
            return tokens[: i + 1]
    return tokens


def how_to_sample(params, default_length):
    length = params.get("max_tokens") or params.get("max_new_tokens") or default_length
    temperature = params.get("temperature", 1.0)
    if temperature == 0:
        return {"do_sample": False, "max_new_tokens": length}, 1.0
    sample = {"do_sample": True, "temperature": temperature, "top_p": params.get("top_p", 1.0)}
    return {**sample, "top_k": max(0, params.get("top_k", 0)), "max_new_tokens": length}, temperature


class CpuServer:
    """One copy of the policy. Methods are called from several places at once; generation itself is one at a time."""

    def __init__(self, path, length, seed):
        from transformers import AutoModelForCausalLM, AutoTokenizer

        torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
        torch.manual_seed(seed)
        self.model = AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32).eval()
        self.tokenizer = AutoTokenizer.from_pretrained(path)
        self.path, self.length, self.step = path, length, None
        self.waiting, self.worker, self.runner = [], None, None

    async def generate(self, prompt_ids, sampling_params, request_id=None, **ignored):
        loop = asyncio.get_running_loop()
        answer = loop.create_future()
        self.waiting.append((list(prompt_ids), dict(sampling_params), answer))
        if self.worker is None or self.worker.done():
            self.worker = loop.create_task(self.work())
        return await answer

    async def work(self):
        await asyncio.sleep(BURST)
        while self.waiting:
            params = self.waiting[0][1]
            batch = [r for r in self.waiting if r[1] == params]
            self.waiting = [r for r in self.waiting if r[1] != params]
            try:
                outputs = await asyncio.to_thread(self.run_batch, [prompt for prompt, _, _ in batch], params)
            except Exception as e:  # it is the callers' to judge; the server lives on
                outputs = [e] * len(batch)
            for (_, _, answer), output in zip(batch, outputs, strict=True):
                if answer.done():
                    continue  # the caller went away
                if isinstance(output, Exception):
                    answer.set_exception(output)
                else:
                    answer.set_result(output)

    @torch.no_grad()
    def run_batch(self, prompts, params):
        config = self.model.generation_config
        width = max(len(p) for p in prompts)
        ids = torch.full((len(prompts), width), config.pad_token_id)
        mask = torch.zeros_like(ids)
        for row, prompt in enumerate(prompts):
            ids[row, width - len(prompt) :] = torch.tensor(prompt)
            mask[row, width - len(prompt) :] = 1
        how, temperature = how_to_sample(params, self.length)
        out = self.model.generate(ids, attention_mask=mask, output_logits=True, return_dict_in_generate=True, **how)
        new = out.sequences[:, width:]
        scores = torch.log_softmax(torch.stack(out.logits, dim=1).float() / temperature, dim=-1)
        scores = scores.gather(-1, new.unsqueeze(-1)).squeeze(-1)
        stops = stop_tokens(config)
        answers = []
        for tokens, logs in zip(new.tolist(), scores.tolist(), strict=True):
            kept = until_stop(tokens, stops)
            extra = {"global_steps": self.step}
            answers.append(
                replica.TokenOutput(
                    token_ids=kept, log_probs=logs[: len(kept)], stop_reason="completed", extra_fields=extra
                )
            )
        return answers

    async def load(self, weights, step):
        missing, unknown = self.model.load_state_dict(weights, strict=False)
        if unknown or set(missing) - {"lm_head.weight"}:
            raise RuntimeError(f"the trainer's weights do not fit: missing {missing}, unknown {unknown}")
        self.model.tie_weights()
        self.step = step

    async def listen(self):
        """Serve chat completions; the address is what comes back."""
        from aiohttp import web

        app = web.Application()
        app.router.add_post("/v1/chat/completions", self.chat)
        self.runner = web.AppRunner(app)
        await self.runner.setup()
        host = ray.util.get_node_ip_address()
        site = web.TCPSite(self.runner, host, 0)
        await site.start()
        return f"{host}:{site._server.sockets[0].getsockname()[1]}"

    async def chat(self, request):
        from aiohttp import web

        body = await request.json()
        text = self.tokenizer.apply_chat_template(body["messages"], add_generation_prompt=True, tokenize=False)
        ids = self.tokenizer(text, add_special_tokens=False)["input_ids"]
        params = {k: body[k] for k in ("temperature", "top_p", "max_tokens") if body.get(k) is not None}
        out = await self.generate(ids, params)
        content = self.tokenizer.decode(out.token_ids, skip_special_tokens=True)
        message = {"role": "assistant", "content": content}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        reply = {"id": "0", "object": "chat.completion", "created": int(time.time()), "model": self.path}
        return web.json_response({**reply, "choices": [choice]})

    async def nothing(self, *args, **kwargs):
        """Sleep, wake, cache and profiler calls: there is no device memory to give back."""

    sleep = wake_up = clear_kv_cache = release_kv_cache = resume_kv_cache = nothing
    abort_all_requests = resume_generation = start_profile = stop_profile = nothing


def actor_name(rank):
    return f"hfcpu_server_{rank}"


class WeightPusher(base.BaseRollout):
    def __init__(self, config, model_config, device_mesh, replica_rank=-1):
        super().__init__(config, model_config, device_mesh)
        size = self.config.tensor_model_parallel_size * self.config.data_parallel_size
        rank = int(os.environ["RANK"])
        self.leads = rank % size == 0
        self.name = actor_name(rank // size if replica_rank == -1 else replica_rank)

    async def resume(self, tags):
        pass

    async def release(self):
        pass

    async def update_weights(self, weights, global_steps=None, **ignored):
        # reading a tensor is a collective operation: every rank does it, one of them sends
        state = {name: tensor.detach().float().cpu().clone() for name, tensor in weights}
        if self.leads:
            await ray.get_actor(self.name).load.remote(state, global_steps)


class CpuReplica(replica.RolloutReplica):
    def rollout_worker_use_gpu(self):
        return True  # a declared one, so that Ray places it like an engine with a GPU

    async def launch_servers(self):
        node = await self.workers[0].__ray_call__.remote(lambda _: ray.get_runtime_context().get_node_id())
        options = {"name": actor_name(self.replica_rank), "num_cpus": 0, "max_concurrency": 1000}
        options["scheduling_strategy"] = NodeAffinitySchedulingStrategy(node_id=node, soft=False)
        seed = getattr(self.config, "seed", 0) or 0
        server = ray.remote(CpuServer).options(**options)
        self._server_handle = server.remote(self.model_config.path, self.config.response_length, seed)
        self.servers = [self._server_handle]
        self._server_address = await self._server_handle.listen.remote()

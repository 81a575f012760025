#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The trial of a job: what only Python can tell, on a worker, without a GPU, before the job holds any.

    argus_trial.py DIRECTORY     reads DIRECTORY/ask.json, writes DIRECTORY/trial.log and DIRECTORY/result.json

It runs in the job's own interpreter and environment and imports neither verl nor torch: hydra composes the final
command line, pyarrow reads the data, and the reward is called on one row in a child with limits. Everything that is
wrong is told at once, each with field, code and arguments of a sentence (src/base/catalogue/message_trial.c), with a
name of what argusd advises (trial-<advice> in message_advice.c beside it), with where its sentence stands in trial.log,
and with the line of the user's code if one is at fault.

The job's secrets come by a file that this program removes; they are in its environment from then on, and in nothing
that it writes.
"""

import sys

if __name__ == "__main__" and sys.path and not getattr(sys.flags, "safe_path", False):
    del sys.path[0]  # the directory of this file: nothing in it may shadow a module of the job

import base64
import contextlib
import glob
import importlib.metadata
import importlib.util
import inspect
import json
import linecache
import math
import os
import pickle
import re
import selectors
import signal
import subprocess
import time
import traceback
import urllib.parse

HYDRA_MAIN = r"@hydra\.main\(\s*config_path\s*=\s*[\"']([^\"']*)[\"']\s*,\s*config_name\s*=\s*[\"']([^\"']*)"
MUST = {"actor_rollout_ref.rollout.name", "actor_rollout_ref.model.path", "model.path"}  # others may stay open
OUTPUT_MAX = 1 << 20  # bytes that a reward may print for one row
SHOWN_MAX = 300
ARG_MAX = 600
ROOM = 64 << 20  # bytes to say where the memory of a reward was full
LOG_MAX = 16 << 10  # of what a reward printed, or of its traceback, in trial.log
CLASSES = {"data": "data_error", "reward": "user_code_error", "import": "import_error", "config": "config_error"}
PACKAGES = (
    *("torch", "ray", "transformers", "tensordict", "numpy", "pyarrow"),
    *("hydra-core", "vllm", "sglang", "flash-attn"),
)


# ---- secrets ----

SECRET_MIN = 8  # bytes: a shorter one stands in any text
hidden = []  # all forms of the values, the longest first


def quoted(value):
    """By JSON and by Python, whatever quotes Python chooses for what stands around it."""
    plain = repr(value + "'\"")[1:-4]  # with both kinds of quotes beside it Python escapes the single ones
    return {json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1], repr(value)[1:-1], plain}


def forms_of(value):
    """How a program may have written it down, also what was quoted before: a KeyError quotes its text."""
    data = value.encode(errors="surrogateescape")
    once = quoted(value)
    yield value
    yield from value.splitlines()
    yield from once
    for form in once:
        yield from quoted(form)
    yield from (urllib.parse.quote(data, safe=safe) for safe in ("/", ""))
    yield urllib.parse.quote_plus(data)
    for lead in range(3):  # base64 at any alignment, without the digits that the neighbours have a part in
        code = base64.b64encode(bytes(lead) + data).decode().rstrip("=")
        whole = (lead + len(data)) // 3 * 4
        yield code[(0, 2, 3)[lead] : whole]


def hide(values):
    found = {form for value in values if len(value) >= SECRET_MIN for form in forms_of(value)}
    hidden[:] = sorted((form for form in found if len(form) >= SECRET_MIN), key=len, reverse=True)


def veiled(text):
    for form in hidden:
        text = text.replace(form, "***")
    return text


def all_veiled(value):
    """The same for whatever json can say."""
    if isinstance(value, dict):
        return {veiled(str(k)): all_veiled(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [all_veiled(v) for v in value]
    return veiled(value) if isinstance(value, str) else value


def say_veiled(kind, error, tb):
    sys.stderr.write(veiled("".join(traceback.format_exception(kind, error, tb))))


def take_secrets(path):
    """Into the environment; the values."""
    with open(path, encoding="utf-8") as f:
        values = json.load(f)
    os.environ.update(values)
    hide(values.values())
    sys.excepthook = say_veiled
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    return list(values.values())


def sentence(says, code, args):
    """In English, as argusd says it: the first row of a code that has all it asks (base/catalogue/message_rows.h)."""
    argument = re.compile(r"(?<!\$)\{(\w+)(\|\|)?\}")
    for row in (says or {}).get(code) or []:
        if all(m[1] in args for m in argument.finditer(row)):
            return argument.sub(lambda m: "" if m[2] else str(args[m[1]]), row)
    return ": ".join([code, ", ".join(f"{k} {v}" for k, v in args.items())]).removesuffix(": ")


class Trial:
    def __init__(self, ask):
        self.ask, self.findings, self.facts, self.began = ask, [], {}, time.monotonic()
        self.secrets = []
        self.log = bytearray()

    def say(self, text):
        """A line of trial.log, or several; where the first of them stands."""
        at = {"offset": len(self.log), "line": self.log.count(b"\n") + 1}
        self.log += veiled(text).encode(errors="backslashreplace") + b"\n"
        return at

    def find(self, advice, field, code, /, **args):
        """What is said of it stands in argusd's catalogue (src/base/catalogue/message_trial.c), under this code. The
        first word of advice is that of the class."""
        args = {k: veiled(v)[:ARG_MAX] if isinstance(v, str) else v for k, v in args.items() if v not in (None, "")}
        detail = veiled(sentence(self.ask.get("says"), code, args))[:1000]
        log = self.say(re.sub(r"[\r\n]+", " ", detail))
        about = {"class": CLASSES[advice.partition("-")[0]], "level": "error", "field": field}
        found = {**about, "code": code, "args": args}
        self.findings.append({**found, "advice": advice, "detail": detail, "log": log})
        return self.findings[-1]

    def result(self):
        seconds = round(time.monotonic() - self.began, 3)
        version = {"version": 1, "hash": self.ask.get("hash")}
        told = all_veiled({"findings": self.findings, **self.facts})
        return {**version, "ok": not self.findings, "seconds": seconds, **told}


def short(value, limit=SHOWN_MAX):
    text = veiled(value if isinstance(value, str) else repr(value))  # before a part of one is cut off
    return text if len(text) <= limit else text[: limit - 1] + "…"


def one_line(text):
    return " ".join(veiled(str(text)).split())


# ---- what is imported ----


def verl_of(trial):
    """The directory of the package verl, without importing it. None: there is none."""
    try:
        spec = importlib.util.find_spec("verl")
    except (ImportError, ValueError):
        spec = None
    places = list(spec.submodule_search_locations or []) if spec else []
    wanted = trial.ask.get("code_path")
    if not places:
        trial.find("import-verl", "code_path", "trial_no_verl", code_path=wanted)
        return None
    found = os.path.realpath(places[0])
    if wanted and found != os.path.realpath(os.path.join(wanted, "verl")):
        trial.find("import-shadow", "code_path", "trial_other_verl", found=found, expected=wanted)
    return found


def version_at(verl):
    try:
        with open(os.path.join(verl, "version", "version"), encoding="utf-8") as f:
            return f.read(64).strip()
    except OSError:
        return None


def numbers(version):
    return tuple(int(n) for n in re.findall(r"\d+", version or "")[:3])


def needed_modules(trial, version):
    ask = trial.ask["workload"]
    names = ["torch", "ray", "transformers", "hydra", "omegaconf", "pyarrow"]
    if ask in ("ppo", "grpo"):
        names += ["tensordict", "codetiming", "datasets", "pandas"]
        names += ["cachetools"] if numbers(version) >= (0, 7, 1) else []
        names += ["transfer_queue"] if numbers(version) >= (0, 9) else []
    return names


def is_there(name):
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def look_at_imports(trial):
    verl = verl_of(trial)
    version = version_at(verl) if verl else None
    versions = {"python": ".".join(map(str, sys.version_info[:3])), "verl": version}
    for package in PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[package] = importlib.metadata.version(package)
    trial.facts |= {"versions": versions, "verl_at": verl, "python_at": sys.executable}
    wanted = trial.ask.get("verl")
    if verl and wanted and version and version != wanted:
        trial.find("import-version", "code_path", "trial_verl_version", version=version, expected=wanted)
    missing = [name for name in needed_modules(trial, version) if not is_there(name)]
    if missing:
        lacks = ", ".join(missing)
        trial.find("import-lacks", "runtime_env.py_executable", "trial_lacks", lacks=lacks, version=version or "")
    return verl


# ---- the final command line, by hydra ----


def module_and_overrides(argv):
    """What stands behind the last -m: torchrun has one of its own."""
    at = max((i for i, word in enumerate(argv) if word == "-m"), default=None)
    return (argv[at + 1], argv[at + 2 :]) if at is not None and at + 1 < len(argv) else (None, [])


def config_of(verl, module):
    """Directory and name of the module's configuration, as its own source says; (None, None) without hydra."""
    path = os.path.join(os.path.dirname(verl), *module.split("."))
    file = path + ".py" if os.path.isfile(path + ".py") else os.path.join(path, "__init__.py")
    with open(file, encoding="utf-8") as f:
        source = f.read(1 << 20)
    said = re.search(HYDRA_MAIN, source)
    if not said:
        return None, None
    return os.path.normpath(os.path.join(os.path.dirname(path), said[1])), said[2]


def compose(trial, verl):
    """The configuration as verl will see it; None if there is none."""
    module, words = module_and_overrides(trial.ask["argv"])
    if not module or trial.ask["workload"] == "merge":
        return None
    try:
        directory, name = config_of(verl, module)
    except OSError:
        trial.find("import-program", "code_path", "trial_no_program", module=module)
        return None
    if not directory or not is_there("hydra"):
        return None
    from hydra import compose as hydra_compose
    from hydra import initialize_config_dir

    for word in words:
        name = word.partition("=")[2] if word.startswith("--config-name=") else name
    overrides = [word for word in words if not word.startswith("--")]
    try:
        with initialize_config_dir(config_dir=directory, version_base=None):
            config = hydra_compose(config_name=name.removesuffix(".yaml"), overrides=overrides)
            return resolved(trial, config)
    except Exception as e:
        trial.find("config-compose", "overrides", "trial_no_compose", error=one_line(e))
        return None


def resolved(trial, config):
    """As plain Python; a key that must be given and is not has no value."""
    from omegaconf import OmegaConf

    for key in sorted(OmegaConf.missing_keys(config) & MUST):
        trial.find("config-missing", "overrides", "trial_key_missing", key=key)
    try:
        return OmegaConf.to_container(config, resolve=True, throw_on_missing=False)
    except Exception as e:
        trial.find("config-compose", "overrides", "trial_no_resolve", error=one_line(e))
        return OmegaConf.to_container(config, resolve=False, throw_on_missing=False)


def at(config, path, default=None):
    """What a dotted path holds; "" holds nothing."""
    for part in path.split("."):
        if not isinstance(config, dict) or part not in config:
            return default
        config = config[part]
    return default if config is None else config


def look_at_engine(trial, config):
    name = at(config, "actor_rollout_ref.rollout.name") or at(config, "rollout.name")
    if name in ("vllm", "sglang") and not is_there(name):
        trial.find("import-engine", "overrides", "trial_no_engine", engine=name)


# ---- the data ----


def read_parquet(path):
    import pyarrow.parquet as parquet

    with parquet.ParquetFile(path) as f:
        row = next((b.to_pylist()[0] for b in f.iter_batches(batch_size=1)), None)
        schema = {field.name: str(field.type) for field in f.schema_arrow}
        return schema, f.metadata.num_rows, row


def read_json(path):
    with open(path, encoding="utf-8") as f:
        text = f.read(1) and (f.seek(0) or f.readline(1 << 24))
        if text.lstrip().startswith("["):
            f.seek(0)
            rows = json.load(f)
            row, count = (rows[0] if rows else None), len(rows)
        else:
            row, count = json.loads(text), 1 + sum(1 for line in f if line.strip())
    return {k: type(v).__name__ for k, v in (row or {}).items()}, count, row


def wanted_columns(workload, config):
    if workload in ("ppo", "grpo"):
        keys = ("data.prompt_key", "prompt"), ("data.reward_fn_key", "data_source"), ("", "reward_model")
        return [at(config, key, default) for key, default in keys]
    if workload == "eval":
        names = {"response_key": "responses", "data_source_key": "data_source", "reward_model_key": "reward_model"}
        return [at(config, f"data.{key}", default) for key, default in names.items()]
    if workload == "generate":
        return [at(config, "data.prompt_key", "prompt")]
    old = at(config, "data.multiturn")
    if old is None:
        return [at(config, "data.messages_key", "messages")]
    if at(old, "enable"):
        return [at(old, "messages_key", "messages")]
    keys = at(config, "data.prompt_key"), at(config, "data.response_key")
    return [k[0] if isinstance(k, list) else k for k in keys]


def is_chat(value):
    if not isinstance(value, list) or not value:
        return False
    return all(isinstance(m, dict) and {"role", "content"} <= m.keys() for m in value)


def judge_row(trial, field, path, row, config):
    workload = trial.ask["workload"]
    if workload in ("ppo", "grpo"):
        prompt, truth = at(config, "data.prompt_key", "prompt"), row.get("reward_model")
        if not is_chat(row[prompt]):
            trial.find("data-form", field, "trial_no_chat", column=prompt, path=path, value=short(row[prompt], 120))
        if not isinstance(truth, dict) or "ground_truth" not in truth:
            trial.find("data-form", field, "trial_no_truth", path=path, value=short(truth, 120))
    elif workload == "sft" and len(wanted := wanted_columns(workload, config)) == 1 and not is_chat(row[wanted[0]]):
        value = short(row[wanted[0]], 120)
        trial.find("data-form", field, "trial_no_dialogue", column=wanted[0], path=path, value=value)


def look_at_file(trial, field, path, config):
    """(rows, one row or None)"""
    try:
        schema, count, row = (read_json if path.endswith((".json", ".jsonl")) else read_parquet)(path)
    except Exception as e:
        trial.find("data-unreadable", field, "trial_unreadable", path=path, error=one_line(e))
        return 0, None
    missing = [c for c in wanted_columns(trial.ask["workload"], config) if c and c not in schema]
    trial.facts.setdefault("data", []).append({"path": path, "rows": count, "columns": schema})
    if missing:
        lacks, has = ", ".join(repr(c) for c in missing), short(", ".join(schema))
        trial.find("data-column", field, "trial_no_column", path=path, lacks=lacks, has=has)
        return count, None
    if row is None:
        trial.find("data-empty", field, "trial_no_rows", path=path)
        return count, None
    judge_row(trial, field, path, row, config)
    return count, row


def look_at_data(trial, config):
    """One row of the training data, or what comes nearest to it."""
    kept, train = None, 0
    for field in ("train_file", "val_file"):
        for path in trial.ask.get(field) or []:
            count, row = look_at_file(trial, field, path, config)
            train += count if field == "train_file" else 0
            kept = row if kept is None else kept
    most = at(config, "data.train_max_samples")
    train = min(train, most) if isinstance(most, int) and most > 0 else train
    if train:
        trial.facts["train_rows"] = train
    batch = at(config, "data.train_batch_size")
    if trial.ask.get("train_file") and isinstance(batch, int) and 0 < train < batch:
        mini = at(config, "actor_rollout_ref.actor.ppo_mini_batch_size")
        found = trial.find("data-few", "train_file", "trial_few_rows", rows=train, batch=batch)
        found["fit"] = {"rows": train, "batch": batch, "mini_batch": mini}
    if kept is not None:
        trial.facts["row"] = {k: short(v) for k, v in list(kept.items())[:50]}
    return kept


# ---- the reward: in a child ----


def arguments(trial, row, config):
    """As verl hands them over: by name, or three by position in main_eval."""
    source = row.get(at(config, "data.reward_fn_key", "data_source"), row.get("data_source"))
    truth = (row.get("reward_model") or {}).get("ground_truth")
    answer = truth if isinstance(truth, str) else "" if truth is None else str(truth)
    if trial.ask["workload"] == "eval":
        answers = row.get(at(config, "data.response_key", "responses"))
        return [source, answers[0] if isinstance(answers, list) and answers else answer, truth], {}
    new, old = at(config, "reward.reward_manager.name"), at(config, "reward_model.reward_manager")
    key = "custom_reward_function.reward_kwargs"
    extra = at(config, f"reward.{key}") or at(config, key)
    more = extra if isinstance(extra, dict) else {}
    if "batch" in (new, old):
        return [], {"data_sources": [source], "solution_strs": [answer], "ground_truths": [truth],
                    "extra_infos": [row.get("extra_info")], **more}  # fmt: skip
    return [], {"data_source": source, "solution_str": answer, "ground_truth": truth,
                "extra_info": row.get("extra_info"), **more}  # fmt: skip


def gather(process, result_fd, deadline):
    """(what came by result_fd, what was printed, why it was given up or None)"""
    output_fd = process.stdout.fileno()
    got = {result_fd: b"", output_fd: b""}
    with selectors.DefaultSelector() as ready:
        for fd in got:
            os.set_blocking(fd, False)
            ready.register(fd, selectors.EVENT_READ)
        while result_fd in ready.get_map():
            left = deadline - time.monotonic()
            if left <= 0:
                return got[result_fd], got[output_fd], "late"
            for key, _ in ready.select(left):
                data = os.read(key.fd, 65536)
                got[key.fd] += data
                if not data:
                    ready.unregister(key.fd)
                if len(got[key.fd]) > OUTPUT_MAX:
                    return got[result_fd], got[output_fd], "output"
    return got[result_fd], got[output_fd], None


def end(process, given_up):
    """It, and whatever it started."""
    if not given_up:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(2)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()


def run_reward(trial, args, kwargs):
    ask, why = trial.ask, "late"
    task = {**ask["reward"], "args": args, "kwargs": kwargs}
    task |= {"seconds": ask["reward_seconds"], "bytes": ask["reward_bytes"], "secrets": trial.secrets}
    ours, theirs = os.pipe()
    process = subprocess.Popen(
        [sys.executable, os.path.abspath(__file__), "--reward", str(theirs)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, pass_fds=[theirs],
        start_new_session=True,
    )  # fmt: skip
    os.close(theirs)
    try:
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(pickle.dumps(task))
            process.stdin.close()
        said, printed, why = gather(process, ours, time.monotonic() + ask["reward_seconds"])
    finally:
        end(process, why)
        os.close(ours)
    return said, printed.decode(errors="replace"), why, process.returncode


def how_it_ended(code):
    if code < 0:
        with contextlib.suppress(ValueError):
            return "trial_reward_killed", {"signal": signal.Signals(-code).name}
    return "trial_reward_exits", {"exit_code": code}


def judge_score(trial, score):
    value = score.get("score") if isinstance(score, dict) else score
    trial.facts["reward"]["returned"] = short(score)
    if isinstance(score, dict) and "score" not in score:
        return "trial_reward_no_score", {"value": short(score)}
    if isinstance(value, list) and len(value) == 1:
        value = value[0]["score"] if isinstance(value[0], dict) and "score" in value[0] else value[0]
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return (None, {}) if isinstance(value, bool) else ("trial_reward_no_number", {"value": short(score)})
    return (None, {}) if math.isfinite(value) else ("trial_reward_not_finite", {"value": str(value)})


def judge_answer(trial, answer, code, seconds, ending):
    """(advice, code of what is wrong, its arguments) of what the child said; None: nothing is."""
    if ending == "late" and not answer:
        return "reward-slow", "trial_reward_late", {"seconds": seconds}
    if ending == "output":
        return "reward-output", "trial_reward_prints", {"mib": OUTPUT_MAX >> 20}
    if "error" in answer:
        return answer.get("advice") or "reward-raises", str(answer["error"]), dict(answer.get("args") or {})
    if "score" not in answer:
        return "reward-ended", *how_it_ended(code)
    trial.facts["reward"]["file"] = answer.get("file")
    problem, told = judge_score(trial, answer["score"])
    return problem and ("reward-score", problem, told)


def look_at_reward(trial, row, config):
    reward = trial.ask.get("reward")
    if not reward:
        return
    of = os.path.basename(reward.get("file") or reward.get("module"))
    name = {"function": reward["function"], "of": of}
    trial.facts["reward"] = {"function": reward["function"]}
    args, kwargs = arguments(trial, row, config) if row else (None, {})
    said, printed, ending, code = run_reward(trial, args, kwargs)
    trial.facts["reward"]["printed"] = short(printed)
    answer = {}
    with contextlib.suppress(ValueError):
        answer = json.loads(said)
    if row is None and not (answer.get("error") or ending):
        return  # it was loaded, and there is nothing to call it on
    problem = judge_answer(trial, answer, code, trial.ask["reward_seconds"], ending)
    if problem:
        for text in (veiled(printed)[-LOG_MAX:], answer.get("trace")):
            if text:
                trial.say(text.rstrip())
        advice, said, told = problem
        found = trial.find(advice, "reward_fn_path", said, **{**told, **name})
        found["place"] = answer.get("place")


# ---- the child ----


def load_reward(task):
    """The function, as verl finds it."""
    if task.get("module"):
        module = importlib.import_module(task["module"])
    else:
        spec = importlib.util.spec_from_file_location("custom_module", task["file"])
        module = importlib.util.module_from_spec(spec)
        sys.modules["custom_module"] = module
        spec.loader.exec_module(module)
    return module, getattr(module, task["function"], None)


def plain(value):
    """What json can say of a score: numpy's and torch's numbers too."""
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if hasattr(value, "item") and getattr(value, "size", 1) in (1,):
        with contextlib.suppress(Exception):
            return plain(value.item())
    return {"score": None, "type": type(value).__name__} if not hasattr(value, "item") else short(value)


def make_room():
    """What the reward keeps may have taken all that it was given."""
    import resource

    with contextlib.suppress(OSError, ValueError):
        hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
        resource.setrlimit(resource.RLIMIT_DATA, (hard, hard))


def place_of(file, line):
    """A line of code, as a finding quotes it; None: there is no such line."""
    text = linecache.getline(file, line)
    if not os.path.isabs(file) or not text:
        return None
    before = "".join(linecache.getline(file, n) for n in range(1, line))
    offset = len(before.encode(errors="surrogateescape"))
    return {"file": file, "line": line, "offset": offset, "text": short(text.strip())}


def is_users(file):
    """Not of Python, nor of a package that was installed."""
    installed = f"{os.sep}site-packages{os.sep}" in file or file.startswith(os.path.dirname(os.__file__) + os.sep)
    return os.path.isabs(file) and not installed


def traced(error):
    """What the traceback shows: the innermost line that is the user's, else the innermost one; and all of it."""
    make_room()
    lines = [(f.filename, f.lineno) for f in traceback.extract_tb(error.__traceback__)]
    lines = [(file, line) for file, line in lines if file not in (__file__, os.path.abspath(__file__))]
    users = [at for at in lines if is_users(at[0])]
    file, line = (users or lines or [(None, 0)])[-1]
    trace = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    where = f"{os.path.basename(file)}:{line}" if file else None
    return where, {"place": place_of(file, line) if file else None, "trace": veiled(trace)[-LOG_MAX:]}


def raised(error, where):
    return {"error": f"{type(error).__name__}: {short(one_line(error))}", "place": where}


def does_not_load(error, task):
    where, more = traced(error)
    if isinstance(error, SyntaxError):
        place = place_of(error.filename or "", error.lineno or 0)
        said = {"error": "trial_reward_compile", "args": {"error": error.msg, "line": error.lineno}}
        return {**said, "advice": "reward-syntax", **more, "place": place}
    if isinstance(error, MemoryError):
        said = {"error": "trial_reward_large", "args": {"mib": task["bytes"] >> 20}}
        return {**said, "advice": "reward-memory", **more}
    advice = "import-reward" if isinstance(error, ImportError) else "reward-load"
    return {"error": "trial_reward_no_load", "args": raised(error, where), "advice": advice, **more}


def call_reward(task):
    try:
        module, function = load_reward(task)
    except BaseException as e:
        return does_not_load(e, task)
    if not callable(function):
        known = [n for n, v in vars(module).items() if callable(v) and getattr(v, "__module__", "") == module.__name__]
        return {"error": "trial_reward_absent", "args": {"has": ", ".join(known[:10])}, "advice": "reward-absent"}
    if task["args"] is None:
        return {}  # there is no row to call it on: that is told already
    try:
        score = function(*task["args"], **task["kwargs"])
        if hasattr(score, "__await__"):
            import asyncio

            async def wait():
                return await score

            score = asyncio.run(wait())
    except MemoryError as e:
        said = {"error": "trial_reward_memory", "args": {"mib": task["bytes"] >> 20}}
        return {**said, "advice": "reward-memory", **traced(e)[1]}
    except BaseException as e:
        where, more = traced(e)
        return {"error": "trial_reward_raises", "args": raised(e, where), **more}
    made = getattr(inspect.unwrap(function), "__code__", None)
    place = place_of(made.co_filename, made.co_firstlineno) if made else None
    return {"score": plain(score), "file": getattr(module, "__file__", None), "place": place}


def reward_child(fd):
    import resource

    task = pickle.load(sys.stdin.buffer)
    hide(task["secrets"])
    for what, limit, room in (
        (resource.RLIMIT_DATA, task["bytes"], ROOM),
        (resource.RLIMIT_CPU, int(task["seconds"]) + 5, 0),
        (resource.RLIMIT_FSIZE, 256 << 20, 0),
        (resource.RLIMIT_CORE, 0, 0),
    ):
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(what, (limit, limit + room))
    answer = call_reward(task)
    with os.fdopen(fd, "w") as out:
        json.dump(answer, out)


# ---- all ----


def put(directory, name, text):
    """Nobody finds a part of it."""
    part = os.path.join(directory, f".{name.partition('.')[0]}.{os.getpid()}")
    with open(part, "wb") as f:
        f.write(text)
        f.flush()
        os.fsync(f.fileno())
    os.replace(part, os.path.join(directory, name))


def write(directory, trial):
    """The result last: argusd looks for it."""
    result = trial.result()
    put(directory, "trial.log", trial.log)
    put(directory, "result.json", json.dumps(result, default=short).encode())
    return result


def run(trial):
    verl = look_at_imports(trial)
    config = compose(trial, verl) if verl else None
    if trial.ask["workload"] == "merge":
        return
    look_at_engine(trial, config)
    row = look_at_data(trial, config or {})
    look_at_reward(trial, row, config or {})


def too_late(trial, directory):
    def on_alarm(*_):
        trial.find("config-late", "", "trial_late", seconds=trial.ask["seconds"])
        write(directory, trial)
        os._exit(1)

    signal.signal(signal.SIGALRM, on_alarm)
    signal.alarm(int(trial.ask["seconds"]))


def main(directory):
    with open(os.path.join(directory, "ask.json"), encoding="utf-8") as f:
        trial = Trial(json.load(f))
    for old in glob.glob(os.path.join(directory, ".result.*")) + glob.glob(os.path.join(directory, ".trial.*")):
        with contextlib.suppress(OSError):
            os.unlink(old)
    too_late(trial, directory)
    try:
        if trial.ask.get("secrets"):
            trial.secrets = take_secrets(trial.ask["secrets"])
    except PermissionError:
        trial.find("config-secrets", "secrets", "trial_no_secrets")
    run(trial)
    signal.alarm(0)
    result = write(directory, trial)
    told = [{k: f[k] for k in ("code", "args")} for f in result["findings"]]
    print(json.dumps({"ok": result["ok"], "seconds": result["seconds"], "findings": told}))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--reward"]:
        reward_child(int(sys.argv[2]))
    else:
        main(sys.argv[1])

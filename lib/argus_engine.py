# SPDX-License-Identifier: Apache-2.0
"""An OpenAI-compatible engine on transformers, for small models and machines without a GPU: models, chat completions
and completions, whole or streamed, and embeddings. One generation at a time; a client that leaves ends its own.

A model that was saved without a head that says the next token (BertModel, T5EncoderModel) has embeddings alone; of one
that has such a head they are made of its last hidden states.

Ray Serve deploys it by the import path "argus_engine:build" with args {"model": DIRECTORY, "name": NAME, "threads": N}.
"""

import asyncio
import base64
import json
import threading
import time
import uuid

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse

from ray import serve

api = FastAPI()
HEADS = ("ForCausalLM", "LMHeadModel", "ForConditionalGeneration")  # that say the next token
INPUTS_MAX, INPUT_TOKENS_MAX = 2048, 300_000  # of one request for embeddings, as OpenAI has them
BATCH_TOKENS = 8192  # padding counts: what bounds the memory of a batch


class BadRequest(Exception):
    def __init__(self, text, param=None, status=400, code=None):
        super().__init__(text)
        self.status = status
        self.body = {"error": {"message": text, "type": "invalid_request_error", "param": param, "code": code}}


@api.exception_handler(BadRequest)
async def bad_request(request, e):
    return JSONResponse(e.body, e.status)


def number(body, key, default, least, most, whole=False):
    value = body.get(key)
    if value is None:
        return default
    kind = int if whole else (int, float)
    if not isinstance(value, kind) or isinstance(value, bool) or not least <= value <= most:
        raise BadRequest(f"'{key}' must be {'an integer' if whole else 'a number'} from {least} to {most}", key)
    return value


def stops(body):
    stop = body.get("stop")
    found = [stop] if isinstance(stop, str) else stop or []
    if not isinstance(found, list) or len(found) > 4 or not all(isinstance(s, str) and s for s in found):
        raise BadRequest("'stop' must be a text or a list of at most 4 texts", "stop")
    return found


class Wanted:
    """What a request asks of the sampler, checked."""

    def __init__(self, body, prompt, limit):
        self.ids, room = prompt, limit - len(prompt)
        if not prompt:
            raise BadRequest("the prompt is empty")
        if room < 1:
            raise BadRequest(
                f"This model's maximum context length is {limit} tokens; the prompt has {len(prompt)}.",
                code="context_length_exceeded",
            )
        asked = body.get("max_completion_tokens")
        key = "max_tokens" if asked is None else "max_completion_tokens"
        self.most = min(number(body, key, room, 1, 1 << 30, True), room)
        self.temperature = number(body, "temperature", 1.0, 0, 2)
        self.top_p = number(body, "top_p", 1.0, 0, 1)
        self.seed = number(body, "seed", None, -(1 << 63), (1 << 63) - 1, True)
        self.stop = stops(body)
        if number(body, "n", 1, 1, 128, True) != 1:
            raise BadRequest("this engine makes one choice: 'n' must be 1", "n")


def makes_text(config):
    """A checkpoint that names no class is one that does."""
    names = getattr(config, "architectures", None) or [HEADS[0]]
    return any(name.endswith(HEADS) for name in names)


def states_of(model):
    """What makes hidden states of a text. The config of T5EncoderModel says that it has no decoder, and AutoModel makes
    one all the same, which a call of the whole would ask for its own tokens."""
    if getattr(model, "encoder", None) is not None and getattr(model, "decoder", None) is not None:
        return model.encoder
    return model.get_encoder() if model.config.is_encoder_decoder else model.base_model


def limit_of(model, tokenizer):
    """How many tokens it takes at once. Where its config names no number, a batch is the ceiling: a tokenizer that was
    told none says 1e30."""
    named = getattr(model.config, "max_position_embeddings", None) or 0
    if named < 1:
        return min(tokenizer.model_max_length, BATCH_TOKENS)
    for name, part in model.named_modules():
        pad = getattr(part, "padding_idx", None)
        if name.endswith("position_embeddings") and pad is not None:
            return named - pad - 1  # RoBERTa's kind: the first token's position stands behind that of the padding
    return named


def inputs_of(body):
    """A text, a list of them, the tokens of one, or a list of such: [text or tokens]."""
    given = body.get("input")
    if isinstance(given, str) or (isinstance(given, list) and given and all(type(x) is int for x in given)):
        given = [given]
    if not isinstance(given, list) or not given:
        raise BadRequest("'input' must be a text or tokens, or a list of texts or of tokens", "input")
    if len(given) > INPUTS_MAX:
        raise BadRequest(f"'input' has {len(given)} items; at most {INPUTS_MAX} are taken at once", "input")
    for at, one in enumerate(given):
        if not isinstance(one, str) and not (isinstance(one, list) and all(type(x) is int for x in one)):
            raise BadRequest(f"item {at} of 'input' must be a text or a list of tokens", "input")
        if not one:
            raise BadRequest(f"item {at} of 'input' is empty", "input")
    return given


def format_of(body):
    name = body.get("encoding_format") or "float"
    if name not in ("float", "base64"):
        raise BadRequest("'encoding_format' must be float or base64", "encoding_format")
    return name


def embeddings_body(name, found, form, tokens):
    """The answer's bytes, a vector at a time: no other thread goes on while json writes, however long it takes."""

    def said(vector):
        return base64.b64encode(vector.astype("<f4").tobytes()).decode() if form == "base64" else vector.tolist()

    items = [
        json.dumps({"object": "embedding", "index": i, "embedding": said(v)}, allow_nan=False)
        for i, v in enumerate(found)
    ]
    head = json.dumps({"object": "list", "model": name})
    usage = json.dumps({"prompt_tokens": tokens, "total_tokens": tokens})  # last, where whoever counts looks for it
    return f'{head[:-1]}, "data": [{", ".join(items)}], "usage": {usage}}}'.encode()


def batches(rows):
    """Places of the rows, the longest first, so that little is padded: as many together as BATCH_TOKENS lets."""
    left = sorted(range(len(rows)), key=lambda i: -len(rows[i]))
    while left:
        n = max(1, BATCH_TOKENS // len(rows[left[0]]))
        yield left[:n]
        left = left[n:]


class Text:
    """Tokens become text; half of a character, or what may be the beginning of a stop text, waits."""

    def __init__(self, tokenizer, stop):
        self.tokenizer, self.stop, self.ids, self.sent, self.ended = tokenizer, stop, [], 0, False

    def add(self, token):
        self.ids.append(token)
        return self.take(False)

    def take(self, last):
        text = self.tokenizer.decode(self.ids, skip_special_tokens=True)
        cuts = [at for at in (text.find(s) for s in self.stop) if at >= 0]
        if cuts:
            text, self.ended = text[: min(cuts)], True
        elif not last:
            while text.endswith("\ufffd"):
                text = text[:-1]
            held = max((k for s in self.stop for k in range(1, len(s)) if text.endswith(s[:k])), default=0)
            text = text[: len(text) - held]
        piece, self.sent = text[self.sent :], max(self.sent, len(text))
        return piece


@serve.deployment(max_ongoing_requests=8)
@serve.ingress(api)
class Engine:
    def __init__(self, model, name, threads=1):
        import torch
        from transformers import AutoConfig, AutoModel, AutoModelForCausalLM, AutoTokenizer

        torch.set_num_threads(threads)
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.tokenizer = AutoTokenizer.from_pretrained(model)
        self.tokenizer("1")  # it lets go of what its file says of cutting and padding, before threads share it
        self.says = makes_text(AutoConfig.from_pretrained(model))
        kind = AutoModelForCausalLM if self.says else AutoModel
        self.model = kind.from_pretrained(model, dtype="auto").eval().to(self.device)
        self.body, self.width = states_of(self.model), None  # None: no embedding was made yet
        self.name, self.lock, self.created = name, asyncio.Lock(), int(time.time())
        self.limit = limit_of(self.model, self.tokenizer)
        if not self.says:
            self.limit = min(self.limit, self.tokenizer.model_max_length)

    def generate(self, want, put, left):
        """In a thread, token by token, so that a client that leaves ends it."""
        import torch

        rng = torch.Generator(device=self.device)
        rng.manual_seed(want.seed % (1 << 63)) if want.seed is not None else rng.seed()
        eos = self.model.generation_config.eos_token_id
        eos = set(eos if isinstance(eos, list) else [eos])
        x, past, why = torch.tensor([want.ids], device=self.device), None, "length"
        with torch.inference_mode():
            for _ in range(want.most):
                if left.is_set():
                    return
                out = self.model(x, past_key_values=past, use_cache=True)
                past, logits = out.past_key_values, out.logits[0, -1].float()
                token = self.choose(logits, want, rng)
                if token in eos:
                    why = "stop"
                    break
                put(token)
                x = torch.tensor([[token]], device=self.device)
        put(why)

    @staticmethod
    def choose(logits, want, rng):
        import torch

        if want.temperature <= 0:
            return int(logits.argmax())
        p, at = torch.softmax(logits / want.temperature, -1).sort(descending=True)
        p[p.cumsum(0) - p > want.top_p] = 0
        return int(at[torch.multinomial(p, 1, generator=rng)])

    async def tokens(self, want):
        """The tokens, then the reason of the end."""
        queue, loop, left = asyncio.Queue(), asyncio.get_running_loop(), threading.Event()

        def put(value):
            loop.call_soon_threadsafe(queue.put_nowait, value)

        async with self.lock:
            work = loop.run_in_executor(None, self.generate, want, put, left)
            work.add_done_callback(lambda f: f.exception() and queue.put_nowait(f.exception()))
            try:
                while True:
                    value = await queue.get()
                    if isinstance(value, BaseException):
                        raise value
                    yield value
                    if isinstance(value, str):
                        return
            finally:
                left.set()
                await asyncio.wait([work])

    async def pieces(self, want, used):
        """(text, None) as it grows, then ("", reason). used: a list that gets one item per token."""
        text, why = Text(self.tokenizer, want.stop), None
        stream = self.tokens(want)
        try:
            async for value in stream:
                if isinstance(value, str):
                    why = value
                    break
                used.append(value)
                piece = text.add(value)
                if piece:
                    yield piece, None
                if text.ended:
                    why = "stop"
                    break
        finally:
            await stream.aclose()
        piece = text.take(True)
        if piece:
            yield piece, None
        yield "", "stop" if text.ended else why

    def pooled(self, rows, left):
        """In a thread, a batch at a time, so that a client that leaves ends it: the mean of the last hidden states of
        each row's own tokens, of length one."""
        import torch

        found, more = [None] * len(rows), {"use_cache": False} if self.says else {}
        pad = self.tokenizer.pad_token_id or 0
        with torch.inference_mode():
            for places in batches(rows):
                if left.is_set():
                    return None
                width = len(rows[places[0]])
                x = torch.tensor([rows[i] + [pad] * (width - len(rows[i])) for i in places], device=self.device)
                mask = torch.tensor(
                    [[1] * len(rows[i]) + [0] * (width - len(rows[i])) for i in places], device=self.device
                )
                out = self.body(input_ids=x, attention_mask=mask, **more)
                if getattr(out, "last_hidden_state", None) is None:
                    raise BadRequest("this model has no hidden states of which an embedding could be made")
                hidden, weight = out.last_hidden_state.float(), mask.unsqueeze(-1).float()
                self.width = hidden.shape[-1]
                # What stands behind the end of a row may be anything, and no number at all.
                mean = hidden.masked_fill(weight == 0, 0).sum(1) / weight.sum(1)
                for i, vector in zip(places, torch.nn.functional.normalize(mean, dim=-1).cpu(), strict=True):
                    found[i] = vector.numpy()
        return found

    async def vectors(self, rows):
        left = threading.Event()
        async with self.lock:
            work = asyncio.get_running_loop().run_in_executor(None, self.pooled, rows, left)
            try:
                return await asyncio.shield(work)
            finally:
                left.set()
                await asyncio.wait([work])

    async def dimensions(self):
        """Of an embedding; one of any token is made where none was yet."""
        if self.width is None:
            await self.vectors([[0]])
        return self.width

    def rows_of(self, given):
        """The tokens of each input, with those that the tokenizer puts around a text."""
        texts = [one for one in given if isinstance(one, str)]
        made = iter(self.tokenizer(texts)["input_ids"] if texts else [])
        rows = [list(next(made)) if isinstance(one, str) else one for one in given]
        known = self.model.get_input_embeddings().num_embeddings
        for at, row in enumerate(rows):
            if not row:
                raise BadRequest(f"item {at} of 'input' has no tokens", "input")
            if len(row) > self.limit:
                raise BadRequest(
                    f"This model's maximum context length is {self.limit} tokens; item {at} of 'input' has {len(row)}.",
                    "input",
                    code="context_length_exceeded",
                )
            if not 0 <= min(row) <= max(row) < known:
                raise BadRequest(f"item {at} of 'input' has a token that this model does not know", "input")
        if sum(map(len, rows)) > INPUT_TOKENS_MAX:
            raise BadRequest(f"'input' has more than {INPUT_TOKENS_MAX} tokens", "input")
        return rows

    def must_say(self):
        if not self.says:
            raise BadRequest("this model makes no text: it answers /v1/embeddings", "model", code="no_completions")

    async def body_of(self, request):
        try:
            body = await request.json()
        except ValueError:
            raise BadRequest("the body is not valid JSON") from None
        if not isinstance(body, dict):
            raise BadRequest("the body must be a JSON object")
        if body.get("model") != self.name:
            raise BadRequest(f"The model `{body.get('model')}` does not exist.", "model", 404, "model_not_found")
        return body

    async def answer(self, body, want, kind, prefix, choice, first):
        """choice(text, reason) makes a choice of the whole, first(text, reason) one of a piece."""
        head = {"id": prefix + uuid.uuid4().hex, "created": int(time.time()), "model": self.name}
        used = []

        def usage():
            n = len(used)
            return {"prompt_tokens": len(want.ids), "completion_tokens": n, "total_tokens": len(want.ids) + n}

        if not body.get("stream"):
            got = [piece async for piece in self.pieces(want, used)]
            whole = choice("".join(text for text, _ in got), got[-1][1])
            return JSONResponse({**head, "object": kind, "choices": [whole], "usage": usage()})

        async def events():
            name = kind + ".chunk" if kind == "chat.completion" else kind

            def event(choices, **more):
                return "data: " + json.dumps({**head, "object": name, "choices": choices, **more}) + "\n\n"

            if kind == "chat.completion":
                yield event([{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}])
            async for text, why in self.pieces(want, used):
                yield event([first(text, why)])
            if (body.get("stream_options") or {}).get("include_usage"):
                yield event([], usage=usage())
            yield "data: [DONE]\n\n"

        return StreamingResponse(events(), media_type="text/event-stream", headers={"Cache-Control": "no-cache"})

    @api.get("/v1/models")
    def models(self):
        one = {"id": self.name, "object": "model", "created": self.created, "owned_by": "argus"}
        return {"object": "list", "data": [one]}

    @api.post("/v1/chat/completions")
    async def chat(self, request: Request):
        body = await self.body_of(request)
        self.must_say()
        messages = body.get("messages")
        if not isinstance(messages, list) or not all(isinstance(m, dict) for m in messages) or not messages:
            raise BadRequest("'messages' must be a list of messages", "messages")
        try:
            ids = self.tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=True)
        except Exception as e:  # the template is the model's own, and may raise anything
            raise BadRequest(f"the model's chat template refuses the messages: {e}", "messages") from None
        want = Wanted(body, list(ids if isinstance(ids, list) else ids["input_ids"]), self.limit)

        def whole(text, why):
            return {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": why}

        def piece(text, why):
            return {"index": 0, "delta": {} if why else {"content": text}, "finish_reason": why}

        return await self.answer(body, want, "chat.completion", "chatcmpl-", whole, piece)

    @api.post("/v1/completions")
    async def complete(self, request: Request):
        body = await self.body_of(request)
        self.must_say()
        prompt = body.get("prompt")
        if isinstance(prompt, list) and len(prompt) == 1:
            prompt = prompt[0]
        if not isinstance(prompt, str):
            raise BadRequest("'prompt' must be one text", "prompt")
        if body.get("max_tokens") is None:
            body["max_tokens"] = 16
        want = Wanted(body, list(self.tokenizer(prompt)["input_ids"]), self.limit)

        def choice(text, why):
            return {"index": 0, "text": text, "logprobs": None, "finish_reason": why}

        return await self.answer(body, want, "text_completion", "cmpl-", choice, choice)

    @api.post("/v1/embeddings")
    async def embed(self, request: Request):
        body = await self.body_of(request)
        given, form = inputs_of(body), format_of(body)
        size = number(body, "dimensions", None, 1, 1 << 20, True)
        if size is not None and size != await self.dimensions():
            raise BadRequest(f"an embedding of this model has {self.width} dimensions, and no fewer", "dimensions")
        # A long list takes the tokenizer a while, and so does the answer to it: others are answered meanwhile.
        loop = asyncio.get_running_loop()
        rows = await loop.run_in_executor(None, self.rows_of, given)
        found = await self.vectors(rows)
        tokens = sum(map(len, rows))
        text = await loop.run_in_executor(None, embeddings_body, self.name, found, form, tokens)
        return Response(text, media_type="application/json")


def build(args):
    return Engine.bind(**args)

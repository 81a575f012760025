// SPDX-License-Identifier: Apache-2.0
// tryit.tsx - one request from the page, the way that every client's takes, and its answer as it comes.
import { useEffect, useRef, useState } from "preact/hooks";
import type { Service } from "../../made/api";
import { num, visible } from "../../base/say";
import { Icon } from "../../kit/icons";
import { Cli, Panel, shell } from "../../kit/parts";
import { ask, nothing, type Answered } from "./answer";
import { isModel } from "./parts";
import { w } from "./words";

const TOKENS = 256;

function Says({ of: a, busy, ended }: { of: Answered; busy: boolean; ended: boolean }) {
    const facts = [
        a.status > 0 && w("answer_status", a.status),
        a.first !== null && a.whole !== null && w("answer_took", num(a.first), num(a.whole)),
        a.tokens !== null && w("answer_tokens", num(a.tokens)),
        ended && w("ended"),
    ].filter((x) => x !== false);
    return (
        <div class="try-answer" role="log" aria-label={w("answer")} aria-busy={busy}>
            {a.why && (
                <p class="note bad said">
                    <Icon name="failed" />
                    <span>{visible(a.why)}</span>
                </p>
            )}
            {a.text ? (
                <pre class="lib-pre" tabIndex={0}>
                    {visible(a.text)}
                    {busy && <i class="try-caret" aria-hidden="true" />}
                </pre>
            ) : (
                !a.why && <p class="dim try-none">{busy ? "…" : w("answer_none")}</p>
            )}
            <p class="small dim try-facts">{facts.join(" · ") || "\u00a0"}</p>
        </div>
    );
}

export function TryIt({ of: s }: { of: Service }) {
    const model = isModel(s);
    const [text, setText] = useState(model ? "1 + 1 =" : "");
    const [path, setPath] = useState("/");
    const [answer, setAnswer] = useState<Answered>(nothing);
    const [busy, setBusy] = useState(false);
    const [ended, setEnded] = useState(false);
    const control = useRef<AbortController | null>(null);
    useEffect(() => () => control.current?.abort(), []);
    const home = s.endpoint.replace(/\/v1$/, "");
    const parsed = () => (model || !text.trim() ? undefined : (JSON.parse(text) as unknown));
    const send = async () => {
        let body: unknown;
        try {
            body = model
                ? {
                      model: s.name,
                      stream: true,
                      stream_options: { include_usage: true },
                      max_tokens: TOKENS,
                      messages: [{ role: "user", content: text }],
                  }
                : parsed();
        } catch {
            setAnswer({ ...nothing, why: w("bad_json") });
            return;
        }
        control.current = new AbortController();
        setBusy(true);
        setEnded(false);
        setAnswer(nothing);
        try {
            const to = model ? `${s.endpoint}/chat/completions` : home + (path.startsWith("/") ? path : `/${path}`);
            await ask({ path: to, body, signal: control.current.signal }, setAnswer);
        } catch (e) {
            if ((e as Error).name === "AbortError") setEnded(true);
            else setAnswer((a) => ({ ...a, why: String(e) }));
        }
        setBusy(false);
    };
    const line = model
        ? `argus service ask ${shell(s.name)} ${shell(text)}`
        : `argus service ask ${shell(s.name)} --path ${shell(path)}${text.trim() ? ` --body ${shell(text.trim())}` : ""}`;
    const off = !s.ready || (model && !text.trim());
    return (
        <Panel title={w("try_it")} id="try" class="try">
            <form
                class="try-form"
                onSubmit={(e) => {
                    e.preventDefault();
                    if (!busy && !off) void send();
                }}
            >
                {!model && (
                    <label>
                        {w("path")}
                        <input
                            class="field mono"
                            value={path}
                            autocomplete="off"
                            spellcheck={false}
                            onInput={(e) => setPath(e.currentTarget.value)}
                        />
                    </label>
                )}
                <label>
                    {model ? w("say") : w("body")}
                    <textarea
                        class={`field try-text ${model ? "" : "mono"}`}
                        rows={3}
                        value={text}
                        onInput={(e) => setText(e.currentTarget.value)}
                        onKeyDown={(e) => {
                            if (e.key === "Enter" && (e.ctrlKey || e.metaKey)) e.currentTarget.form?.requestSubmit();
                        }}
                    />
                </label>
                <div class="row try-acts">
                    <Cli line={line} />
                    <span class="grow" />
                    {!s.ready && <span class="small dim">{w("not_now")}</span>}
                    {busy ? (
                        <button type="button" class="btn" onClick={() => control.current?.abort()}>
                            {w("end")}
                        </button>
                    ) : (
                        <button type="submit" class="btn main" disabled={off}>
                            {w("ask")}
                        </button>
                    )}
                </div>
            </form>
            <Says of={answer} busy={busy} ended={ended} />
        </Panel>
    );
}

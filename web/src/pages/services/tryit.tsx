// SPDX-License-Identifier: Apache-2.0
// tryit.tsx - one request from the page, the way that every client's takes, and its answer as it comes: of the version
// that has the traffic, of another one, or of two side by side. ?try=2,1
import { useEffect, useRef, useState } from "preact/hooks";
import type { Service } from "../../made/api";
import { figure, num, visible } from "../../base/say";
import { query, setQuery } from "../../base/url";
import { Icon } from "../../kit/icons";
import { Cli, Panel, shell } from "../../kit/parts";
import { ask, nothing, speed, type Answered } from "./answer";
import { lanesOf, offeredOf, saidOf } from "./lanes";
import { isModel, readyOf, trafficOf } from "./parts";
import { w } from "./words";

const TOKENS = 256;

/** One version that is asked, and what it says. */
interface Lane {
    version: number | null; // null: the one that has the traffic
    answer: Answered;
    busy: boolean;
    ended: boolean;
}
const idle = (version: number | null): Lane => ({ version, answer: nothing, busy: false, ended: false });

function factsOf({ answer: a, ended }: Lane): string {
    const rate = speed(a);
    const times =
        a.word === null
            ? [a.first !== null && a.whole !== null && w("answer_took", num(a.first), num(a.whole))]
            : [
                  w("answer_word", num(a.word)),
                  rate !== null && w("answer_speed", figure(rate)),
                  a.whole !== null && w("answer_whole", num(a.whole)),
              ];
    return [
        a.status > 0 && w("answer_status", a.status),
        ...times,
        a.tokens !== null && w("answer_tokens", num(a.tokens)),
        ended && w("ended"),
    ]
        .filter((x) => x !== false)
        .join(" · ");
}

function Says({ of: lane, named }: { of: Lane; named: boolean }) {
    const { answer: a, busy, version } = lane;
    const title = version === null ? w("answer") : w("answer_of", version);
    return (
        <div class="try-answer">
            {named && version !== null && <h3>{title}</h3>}
            <div role="log" aria-label={title} aria-busy={busy}>
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
                <p class="small dim try-facts">{factsOf(lane) || "\u00a0"}</p>
            </div>
        </div>
    );
}

/** Which versions are asked. Only those that have a ready replica can be beside another one. */
function Which({ of: s, asked }: { of: Service; asked: number[] }) {
    const ready = readyOf(s);
    const current = trafficOf(s);
    const offered = offeredOf(ready, current, asked);
    const first = asked[0] ?? current;
    const other = asked[1] ?? null;
    const says = (n: number) => w(n === current ? "version_traffic" : "version_n", n);
    if (!offered.length) return null;
    return (
        <div class="try-of">
            <label>
                {w("version")}
                <select
                    class="field"
                    value={String(first)}
                    onChange={(e) => setQuery({ try: saidOf(Number(e.currentTarget.value), other, current) })}
                >
                    {offered.map((n) => (
                        <option key={n} value={String(n)}>
                            {says(n)}
                        </option>
                    ))}
                </select>
            </label>
            <label>
                {w("version_other")}
                <select
                    class="field"
                    value={other === null ? "" : String(other)}
                    onChange={(e) => setQuery({ try: saidOf(first, Number(e.currentTarget.value) || null, current) })}
                >
                    <option value="">{w("version_none")}</option>
                    {ready
                        .filter((n) => n !== first)
                        .map((n) => (
                            <option key={n} value={String(n)}>
                                {says(n)}
                            </option>
                        ))}
                </select>
            </label>
        </div>
    );
}

/** What is sent, to each of the versions alike. */
function useAsking(s: Service) {
    const [lanes, setLanes] = useState<Lane[]>([]); // of the last question; none: nothing was asked yet
    const control = useRef<AbortController | null>(null);
    useEffect(() => () => control.current?.abort(), []);
    const change = (at: number, more: Partial<Lane>) =>
        setLanes((all) => all.map((lane, i) => (i === at ? { ...lane, ...more } : lane)));
    const one = async (at: number, version: number | null, path: string, body: unknown, signal: AbortSignal) => {
        try {
            await ask({ path, version, body, signal }, (answer) => change(at, { answer }));
            change(at, { busy: false });
        } catch (e) {
            if ((e as Error).name === "AbortError") change(at, { busy: false, ended: true });
            else
                setLanes((all) =>
                    all.map((lane, i) =>
                        i === at ? { ...lane, busy: false, answer: { ...lane.answer, why: String(e) } } : lane,
                    ),
                );
        }
    };
    return {
        lanes,
        busy: lanes.some((lane) => lane.busy),
        refuse: (why: string) => setLanes([{ ...idle(null), answer: { ...nothing, why } }]),
        stop: () => control.current?.abort(),
        send: (versions: (number | null)[], path: string, body: unknown) => {
            control.current = new AbortController();
            const { signal } = control.current;
            setLanes(versions.map((version) => ({ ...idle(version), busy: true })));
            versions.forEach((version, at) => void one(at, version, path, body, signal));
        },
        home: s.endpoint.replace(/\/v1$/, ""),
    };
}

export function TryIt({ of: s }: { of: Service }) {
    const model = isModel(s);
    const [text, setText] = useState(model ? "1 + 1 =" : "");
    const [path, setPath] = useState("/");
    const ready = readyOf(s);
    const { asked, gone } = lanesOf(query.value.get("try"), ready);
    const versions = asked.length ? asked : [null];
    const asking = useAsking(s);
    const { busy } = asking;
    const lanes = asking.lanes.length ? asking.lanes : versions.map(idle);
    const bodyOf = (): unknown =>
        model
            ? {
                  model: s.name,
                  stream: true,
                  stream_options: { include_usage: true },
                  max_tokens: TOKENS,
                  messages: [{ role: "user", content: text }],
              }
            : text.trim()
              ? JSON.parse(text)
              : undefined;
    const send = () => {
        let body: unknown;
        try {
            body = bodyOf();
        } catch {
            asking.refuse(w("bad_json"));
            return;
        }
        const to = model ? `${s.endpoint}/chat/completions` : asking.home + (path.startsWith("/") ? path : `/${path}`);
        asking.send(versions, to, body);
    };
    const lineOf = (version: number | null) => {
        const named = `argus service ask ${shell(s.name)}${version === null ? "" : ` --version ${version}`}`;
        return model
            ? `${named} ${shell(text)}`
            : `${named} --path ${shell(path)}${text.trim() ? ` --body ${shell(text.trim())}` : ""}`;
    };
    const waits = !s.ready && !asked.length; // what would be asked has no replica that is ready
    const off = waits || (model && !text.trim());
    const isTwo = versions.length > 1 || lanes.length > 1;
    return (
        <Panel title={w("try_it")} id="try" class={`try ${isTwo ? "is-two" : ""}`}>
            <form
                class="try-form"
                onSubmit={(e) => {
                    e.preventDefault();
                    if (!busy && !off) send();
                }}
            >
                <Which of={s} asked={asked} />
                {gone.map((n) => (
                    <p key={n} class="small dim">
                        {w("version_gone", n)}
                    </p>
                ))}
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
                    <span class="try-lines">
                        {versions.map((version) => (
                            <Cli key={version} line={lineOf(version)} />
                        ))}
                    </span>
                    <span class="grow" />
                    {waits && (
                        <span class="small dim">{ready.length ? w("version_gone", trafficOf(s)) : w("not_now")}</span>
                    )}
                    {/* Two elements: a click on one that had become a submit button would ask again. */}
                    {busy ? (
                        <button key="end" type="button" class="btn" onClick={asking.stop}>
                            {w("end")}
                        </button>
                    ) : (
                        <button key="ask" type="submit" class="btn main" disabled={off}>
                            {w("ask")}
                        </button>
                    )}
                </div>
            </form>
            <div class="try-lanes">
                {lanes.map((lane) => (
                    <Says key={lane.version} of={lane} named={lane.version !== null} />
                ))}
            </div>
        </Panel>
    );
}

// SPDX-License-Identifier: Apache-2.0
// form.tsx - what to replay: our own history or a trace, under which policies, on how many machines. All but a trace's
// file is in the address.
import { useRef, useState } from "preact/hooks";
import type { Simulation } from "../../made/api";
import { call, Refusal } from "../../api/client";
import { useAsk } from "../../api/use";
import { bytes, ms, visible } from "../../base/say";
import { go, query, setQuery } from "../../base/url";
import { Icon } from "../../kit/icons";
import { Panel, Seg, shell, Text } from "../../kit/parts";
import { POLICIES, type Policy } from "./weigh";
import { w } from "./words";

const TRACE_MAX = 8 << 20;
const SINCE = ["7d", "14d", "28d", "90d"] as const;
type Since = (typeof SINCE)[number];
const KEYS = ["since", "pool", "policy", "nodes", "load", "guess", "seed", "learner"] as const;
type Key = (typeof KEYS)[number];
type Options = Partial<Record<Key, string>>;

/** The address of a form that would ask for the same. */
export function queryOf(s: Simulation): string {
    const out = new URLSearchParams();
    const days = s.since ? Math.round((ms(s.created_at) - ms(s.since)) / 86_400_000) : 0;
    if (s.source === "trace") out.set("source", "trace");
    if ((SINCE as readonly string[]).includes(`${days}d`)) out.set("since", `${days}d`);
    for (const k of ["pool", "policy", "nodes", "load", "guess"] as const) if (s[k]) out.set(k, s[k]);
    if (s.seed) out.set("seed", String(s.seed));
    if (!s.learner) out.set("learner", "false");
    return out.toString();
}

export function cliOf(isTrace: boolean, file: string, o: Options): string {
    const words = ["argus simulate", isTrace ? `--trace ${shell(file || "FILE")}` : "--history"];
    for (const k of KEYS) {
        const v = o[k];
        if (!v || (k === "since" && isTrace)) continue;
        words.push(k === "learner" ? "--no-learner" : `--${k} ${shell(v)}`);
    }
    return words.join(" ");
}

/** What the address says, as the API takes it. */
export function optionsOf(q: URLSearchParams): Options {
    const out: Options = {};
    for (const k of KEYS) {
        const v = q.get(k);
        if (v) out[k] = v;
    }
    return out;
}

const chosenPolicies = (q: URLSearchParams): Policy[] => {
    const text = q.get("policy");
    return text === null ? [...POLICIES] : POLICIES.filter((p) => text.split(",").includes(p));
};

function Policies({ q }: { q: URLSearchParams }) {
    const chosen = chosenPolicies(q);
    const put = (p: Policy, on: boolean) => {
        const next = POLICIES.filter((x) => (x === p ? on : chosen.includes(x)));
        setQuery({ policy: next.length === POLICIES.length ? null : next.join(",") || "none" });
    };
    return (
        <fieldset class="sim-policies">
            <legend>{w("policies")}</legend>
            {POLICIES.map((p) => (
                <label class="row tick sim-policy">
                    <input
                        type="checkbox"
                        class="check"
                        checked={chosen.includes(p)}
                        onChange={(e) => put(p, e.currentTarget.checked)}
                    />
                    <span>
                        <b>{p}</b> <span class="dim">{w(`${p}_text`)}</span>
                    </span>
                </label>
            ))}
        </fieldset>
    );
}

function Drop({ file, onFile }: { file: File | null; onFile: (f: File | null) => void }) {
    const [over, setOver] = useState(false);
    const input = useRef<HTMLInputElement>(null);
    const large = file && file.size > TRACE_MAX;
    return (
        <div
            class={`sim-drop ${over ? "dropping" : ""}`}
            onDragOver={(e) => {
                e.preventDefault();
                setOver(true);
            }}
            onDragLeave={() => setOver(false)}
            onDrop={(e) => {
                e.preventDefault();
                setOver(false);
                onFile(e.dataTransfer?.files[0] ?? null);
            }}
        >
            <input
                ref={input}
                type="file"
                class="sr"
                accept=".csv,text/csv,text/plain"
                aria-label={w("file")}
                tabIndex={-1}
                onChange={(e) => onFile(e.currentTarget.files?.[0] ?? null)}
            />
            {file && (
                <p>
                    <b>
                        <Text of={file.name} />
                    </b>{" "}
                    <span class="dim">{bytes(file.size)}</span>
                </p>
            )}
            <button type="button" class="btn" onClick={() => input.current?.click()}>
                <Icon name="files" />
                {file ? w("file_other") : w("file")}
            </button>
            {large && (
                <p class="c-bad small" role="alert">
                    {w("file_large", bytes(file.size), bytes(TRACE_MAX))}
                </p>
            )}
        </div>
    );
}

function TextField(p: { label: string; code: Key; dflt: string; wide?: "w3" | "w4" | "w12"; numeric?: boolean }) {
    const value = query.value.get(p.code);
    return (
        <label class={p.wide ?? "w4"}>
            <span>
                {p.label}
                <code>{p.code}</code>
            </span>
            <input
                class="field"
                autocomplete="off"
                inputMode={p.numeric ? "numeric" : "text"}
                value={value ?? p.dflt}
                onInput={(e) => setQuery({ [p.code]: e.currentTarget.value.trim() || null })}
            />
        </label>
    );
}

/** How many machines: by the two keys of the address. */
function Machines({ q, isTrace }: { q: URLSearchParams; isTrace: boolean }) {
    const how = q.has("nodes") ? "nodes" : q.has("load") || isTrace ? "load" : "now";
    const choices = [
        ...(isTrace ? [] : [{ value: "now", says: w("size_now") }]),
        { value: "load", says: w("size_load") },
        { value: "nodes", says: w("size_nodes") },
    ];
    return (
        <fieldset>
            <legend>{w("size")}</legend>
            <div class="sim-row">
                <Seg
                    label={w("size")}
                    value={how}
                    onChange={(v) =>
                        setQuery({ nodes: v === "nodes" ? "8x8" : null, load: v === "load" ? "0.85" : null })
                    }
                    of={choices}
                />
            </div>
            {how === "nodes" && <TextField label={w("nodes")} code="nodes" dflt="8x8" wide="w12" />}
            {how === "load" && <TextField label={w("load")} code="load" dflt="0.85" wide="w12" />}
        </fieldset>
    );
}

function Jobs({ q, pools }: { q: URLSearchParams; pools: string[] }) {
    const since = (SINCE as readonly string[]).includes(q.get("since") ?? "") ? (q.get("since") as Since) : "28d";
    return (
        <>
            <div class="sim-row">
                <Seg
                    label={w("since")}
                    value={since}
                    onChange={(v) => setQuery({ since: v === "28d" ? null : v })}
                    of={SINCE.map((v) => ({ value: v, says: w(`d${v.slice(0, -1)}` as "d7") }))}
                />
            </div>
            {pools.length > 0 && (
                <label class="w12">
                    <span>
                        {w("pool")}
                        <code>pool</code>
                    </span>
                    <select
                        class="field"
                        value={q.get("pool") ?? ""}
                        onChange={(e) => setQuery({ pool: e.currentTarget.value || null })}
                    >
                        <option value="">{w("whole")}</option>
                        {pools.map((p) => (
                            <option value={p} selected={p === q.get("pool")}>
                                {visible(p)}
                            </option>
                        ))}
                    </select>
                </label>
            )}
        </>
    );
}

export function Form() {
    const q = query.value;
    const isTrace = q.get("source") === "trace";
    const [file, setFile] = useState<File | null>(null);
    const [why, setWhy] = useState<Refusal | null>(null);
    const [busy, setBusy] = useState(false);
    const pools = useAsk("GET /v1/pools", {}, { topics: ["pools"] });
    const named = pools.data?.pools.flatMap((p) => (p.pool === null ? [] : [p.pool])) ?? [];
    const none = !chosenPolicies(q).length;
    const missing = none ? w("must_policy") : isTrace && !file ? w("must_file") : "";
    const large = isTrace && !!file && file.size > TRACE_MAX;
    const start = async () => {
        setBusy(true);
        setWhy(null);
        try {
            const options = optionsOf(q);
            if (isTrace) delete options.since;
            const made = await call("POST /v1/simulations", {
                query: {
                    ...options,
                    seed: options.seed === undefined ? undefined : Number(options.seed),
                    learner: options.learner === undefined ? undefined : options.learner !== "false",
                    name: isTrace ? file!.name.slice(0, 79) : undefined,
                },
                ...(isTrace && { raw: file! }),
            });
            go(`/simulator/${made.id}`);
        } catch (e) {
            if (!(e instanceof Refusal)) throw e;
            setWhy(e);
            setBusy(false);
        }
    };
    return (
        <Panel title={w("new_title")} bare class="sim-form">
            <div class="form">
                <fieldset>
                    <legend>{w("source")}</legend>
                    <div class="sim-row">
                        <Seg
                            label={w("source")}
                            value={isTrace ? "trace" : "own"}
                            onChange={(v) =>
                                setQuery({
                                    source: v === "trace" ? "trace" : null,
                                    pool: null,
                                    nodes: null,
                                    load: null,
                                })
                            }
                            of={[
                                { value: "own", says: w("own") },
                                { value: "trace", says: w("trace") },
                            ]}
                        />
                    </div>
                    <p class="help sim-row">{w(isTrace ? "trace_text" : "own_text")}</p>
                    {isTrace ? (
                        <>
                            <Drop file={file} onFile={setFile} />
                            <TextField label={w("pool")} code="pool" dflt="" wide="w12" />
                        </>
                    ) : (
                        <Jobs q={q} pools={named} />
                    )}
                </fieldset>
                <Policies q={q} />
                <Machines q={q} isTrace={isTrace} />
                <details class="sim-more">
                    <summary>{w("more")}</summary>
                    <fieldset>
                        <TextField label={w("guess")} code="guess" dflt="1-5" />
                        <TextField label={w("seed")} code="seed" dflt="0" numeric />
                        <label class="row tick w12">
                            <input
                                type="checkbox"
                                class="check"
                                checked={q.get("learner") !== "false"}
                                onChange={(e) => setQuery({ learner: e.currentTarget.checked ? null : "false" })}
                            />
                            <span>{w("learner")}</span>
                        </label>
                    </fieldset>
                </details>
            </div>
            {why && (
                <div class="note bad sim-note" role="alert">
                    <Icon name="unhealthy" />
                    <span>
                        <span class="said">{visible(why.detail)}</span>
                        {why.hint && <span class="said">{visible(why.hint)}</span>}
                        <code class="small">{why.code}</code>
                    </span>
                </div>
            )}
            <div class="sim-go act">
                <button
                    type="button"
                    class="btn main"
                    disabled={!!missing || large || busy}
                    onClick={() => void start()}
                >
                    <Icon name="running" />
                    {w("start")}
                </button>
                {missing && <span class="small dim">{missing}</span>}
            </div>
        </Panel>
    );
}

/** The file's name is not known after a reload: the line names FILE then. */
export const formCli = (q: URLSearchParams) => cliOf(q.get("source") === "trace", "", optionsOf(q));

// SPDX-License-Identifier: Apache-2.0
// page.tsx - a new job. Its spec is one text, which the form and the editor share; a dry run of it tells at each change
// what is wrong, when it would start and what would serve it better. #spec= in the address is the text, ?preset= and
// ?from= what it began with.
import { useEffect, useRef, useState } from "preact/hooks";
import type { Preset } from "../../made/api";
import { call, newKey, Refusal, session } from "../../api/client";
import { onBack, onChange } from "../../api/live";
import { specKeys } from "../../api/spec";
import { useAsk } from "../../api/use";
import { readAnchor, writeAnchor } from "../../base/anchor";
import { useKeys } from "../../base/keys";
import { lang } from "../../base/prefs";
import { visible } from "../../base/say";
import { hasKey, setAny, textOfJob, valueOf } from "../../base/spectext";
import { go, query, setQuery } from "../../base/url";
import { Blank, Refused } from "../../kit/blank";
import type { KeyDoc } from "../../kit/keydoc";
import { Icon } from "../../kit/icons";
import { Modal } from "../../kit/over";
import { Cli, Head, Panel, Seg, shell, toast } from "../../kit/parts";
import { Yaml } from "../../kit/yaml";
import { t } from "../../words/shared";
import { Form, withPreset } from "./form";
import { check, newerCheck, PlanPanel, problemsOf, type Checked } from "./plan";
import { w } from "./words";
import "./page.css";

const FIRST = "workload: grpo\nnnodes: 1\nn_gpus_per_node: 1\n";
const SOON = 500;
const MOVED_MS = 10_000; // between two looks at a queue that moves

/** The text of the spec, where it comes from, and where it is kept. */
function useText() {
    const from = query.value.get("from");
    const preset = query.value.get("preset");
    const [text, setText] = useState<string | null>(() => readAnchor("spec"));
    const [why, setWhy] = useState<Refusal | null>(null);
    const began = useRef(text !== null);
    useEffect(() => {
        if (began.current) {
            began.current = false; // the address had it
            return;
        }
        setWhy(null);
        if (!from) {
            setText((now) => (preset ? withPreset(now ?? "", preset) : (now ?? FIRST)));
            return;
        }
        call("GET /v1/jobs/{id}", { path: { id: from } }).then(
            (job) => setText(textOfJob(job.spec)),
            (e: unknown) => e instanceof Refusal && setWhy(e),
        );
    }, [from, preset]);
    return {
        text,
        why,
        setText: (to: string) => {
            setText(to);
            writeAnchor("spec", to);
        },
    };
}

/** A dry run soon after each change; a newer one takes an older one's place. */
function useCheck(text: string | null) {
    const [checked, setChecked] = useState<Checked | null>(null);
    const [busy, setBusy] = useState(false);
    const [round, again] = useState(0);
    useEffect(() => {
        if (!text?.trim() || session.value?.role === "viewer") return;
        const control = new AbortController();
        const timer = setTimeout(() => {
            setBusy(true);
            check(text, control.signal).then(
                (c) => {
                    setChecked((was) => newerCheck(was, c));
                    setBusy(false);
                },
                () => control.signal.aborted || setBusy(false),
            );
        }, SOON);
        return () => {
            clearTimeout(timer);
            control.abort();
        };
    }, [text, round, lang.value]);
    useEffect(() => onBack(() => again((n) => n + 1)), []);
    // Whatever starts, ends or joins moves the expected start.
    useEffect(() => {
        let timer = 0;
        const look = () => ((timer = 0), document.hidden || again((n) => n + 1));
        const later = () => void (timer ||= setTimeout(look, MOVED_MS) as unknown as number);
        const off = [onChange("jobs", later), onChange("nodes", later)];
        return () => (clearTimeout(timer), off.forEach((f) => f()));
    }, []);
    return { checked: text?.trim() ? checked : null, busy, again: () => again((n) => n + 1) };
}

function download(text: string) {
    const a = document.createElement("a");
    a.href = URL.createObjectURL(new Blob([text], { type: "application/yaml" }));
    a.download = "job.yaml";
    a.click();
    setTimeout(() => URL.revokeObjectURL(a.href), 1000);
}

/** A line of YAML as part of another mapping. */
const indented = (text: string) =>
    text
        .trimEnd()
        .split("\n")
        .map((l) => `  ${l}`)
        .join("\n");

function SavePreset({ text, close }: { text: string; close: () => void }) {
    const mine = useAsk("GET /v1/whoami").data?.projects ?? [];
    const [name, setName] = useState("");
    const [project, setProject] = useState(valueOf(text, "project") ?? "");
    const [about, setAbout] = useState("");
    const [why, setWhy] = useState("");
    const save = async () => {
        const raw = `description: ${JSON.stringify(about || name)}\nspec:\n${indented(text)}\n`;
        try {
            await call("PUT /v1/presets/{name}", {
                path: { name },
                query: { project: project || undefined },
                raw,
            });
            toast(w("preset_saved", name));
            close();
        } catch (e) {
            setWhy(e instanceof Refusal ? e.detail : String(e));
        }
    };
    return (
        <Modal label={w("save_preset")} onClose={close}>
            <form
                onSubmit={(e) => {
                    e.preventDefault();
                    void save();
                }}
            >
                <header>
                    <h1>{w("save_preset")}</h1>
                </header>
                <div class="body asks">
                    <p>{w("preset_text", "${hole:name}")}</p>
                    <label>
                        {w("preset_name")}
                        <input
                            class="field"
                            data-first
                            required
                            pattern="[a-z0-9][a-z0-9_.-]*"
                            value={name}
                            onInput={(e) => setName(e.currentTarget.value)}
                        />
                    </label>
                    <label>
                        {w("preset_project")}
                        <select class="field" value={project} onChange={(e) => setProject(e.currentTarget.value)}>
                            {mine.map((x) => (
                                <option value={x}>{visible(x)}</option>
                            ))}
                        </select>
                    </label>
                    <label>
                        {w("preset_about")}
                        <input class="field" value={about} onInput={(e) => setAbout(e.currentTarget.value)} />
                    </label>
                    {why && (
                        <p class="note bad said" role="alert">
                            <span>{visible(why)}</span>
                        </p>
                    )}
                </div>
                <footer>
                    <Cli line={`argus preset add ${shell(name || "NAME")} preset.yaml`} />
                    <span class="grow" />
                    <button type="button" class="btn" onClick={close}>
                        {t("cancel")}
                    </button>
                    <button type="submit" class="btn main" disabled={!name}>
                        {w("preset_save")}
                    </button>
                </footer>
            </form>
        </Modal>
    );
}

function Deeds(p: { text: string; errors: number; isBusy: boolean; refused: (why: Refusal) => void }) {
    const [busy, setBusy] = useState(false);
    const [saves, setSaves] = useState(false);
    const key = useRef({ text: "", key: "" });
    const submit = async (smoke: boolean) => {
        // The same text is the same submit, however often the button is pressed and whatever the connection did.
        const from = query.value.get("from"); // its parent
        const what = `${smoke} ${from} ${p.text}`;
        if (key.current.text !== what) key.current = { text: what, key: newKey() };
        setBusy(true);
        try {
            const made = await call("POST /v1/jobs", {
                raw: p.text,
                query: { ...(smoke ? { smoke: true } : {}), ...(from ? { from } : {}) },
                idempotencyKey: key.current.key,
            });
            key.current = { text: "", key: "" };
            toast(w("submitted"));
            if ("id" in made && typeof made.id === "string") go(`/jobs/${encodeURIComponent(made.id)}`);
        } catch (e) {
            if (e instanceof Refusal) p.refused(e);
        }
        setBusy(false);
    };
    useKeys(
        [{ keys: "mod+Enter", says: () => w("k_submit"), does: () => void submit(false), inFields: true }],
        [p.text],
    );
    const off = busy || p.errors > 0 || !p.text.trim();
    return (
        <>
            <div class="row plan-acts act">
                <button type="button" class="btn main big" disabled={off} onClick={() => void submit(false)}>
                    {w("submit")}
                </button>
                <button
                    type="button"
                    class="btn big"
                    disabled={off}
                    title={w("smoke_title")}
                    onClick={() => void submit(true)}
                >
                    {w("smoke")}
                </button>
                <span class="grow" />
                <button type="button" class="btn bare" disabled={!p.text.trim()} onClick={() => setSaves(true)}>
                    {w("save_preset")}
                </button>
            </div>
            <p class="plan-part small mid on-phone">{w("phone")}</p>
            {saves && <SavePreset text={p.text} close={() => setSaves(false)} />}
        </>
    );
}

function SpecPanel(p: {
    text: string;
    setText: (text: string) => void;
    checked: Checked | null;
    keys: KeyDoc[];
    goTo: { line: number } | null;
}) {
    const view = query.value.get("view") === "argv" ? "argv" : "";
    const argv = p.checked?.plan?.argv;
    const spots = (p.checked?.problems ?? []).map((x) => ({
        line: x.line,
        column: x.column,
        isError: x.level === "error",
        says: visible(x.hint ? `${x.detail}; ${x.hint}` : x.detail),
    }));
    return (
        <Panel
            class="specpanel"
            bare
            title={
                <Seg
                    label={w("spec")}
                    value={view}
                    onChange={(v) => setQuery({ view: v })}
                    of={[
                        { value: "", says: w("spec") },
                        { value: "argv", says: w("argv") },
                    ]}
                />
            }
            end={
                <>
                    <Cli line="argus submit job.yaml" isPage />
                    <button
                        type="button"
                        class="btn icon act"
                        title={w("download")}
                        aria-label={w("download")}
                        onClick={() => download(p.text)}
                    >
                        <Icon name="download" />
                    </button>
                </>
            }
        >
            {view === "argv" ? (
                argv ? (
                    <pre class="spec-argv" tabIndex={0}>
                        {visible(argv.map(shell).join(" \\\n  "))}
                    </pre>
                ) : (
                    <p class="spec-argv dim">{w("no_argv")}</p>
                )
            ) : (
                <Yaml
                    text={p.text}
                    label={w("spec")}
                    spots={p.checked?.text === p.text ? spots : []}
                    keys={p.keys}
                    goTo={p.goTo}
                    onChange={p.setText}
                />
            )}
        </Panel>
    );
}

function usePreset(text: string | null) {
    const name = text === null ? null : valueOf(text, "preset");
    const project = text === null ? null : valueOf(text, "project");
    const list = useAsk("GET /v1/presets", { query: {} });
    const known = list.data?.presets.find((x) => x.name === name);
    const one = useAsk(known ? "GET /v1/presets/{name}" : null, {
        path: { name: name ?? "" },
        query: { project: known?.project ?? project ?? undefined },
    });
    return { presets: list.data?.presets ?? [], preset: one.data as Preset | undefined };
}

export default function Submit() {
    const { text, setText, why } = useText();
    const { checked, busy, again } = useCheck(text);
    const { presets, preset } = usePreset(text);
    const [keys, setKeys] = useState<KeyDoc[]>([]);
    const [goTo, setGoTo] = useState<{ line: number } | null>(null);
    const [refused, setRefused] = useState<Refusal | null>(null);
    useEffect(() => void specKeys().then(setKeys), []);
    useEffect(() => setRefused(null), [text]);
    if (session.value?.role === "viewer")
        return (
            <section class="panel">
                <Blank whole title={w("view_only")} icon="users">
                    {w("view_only_text")}
                </Blank>
            </section>
        );
    if (why)
        return (
            <section class="panel">
                <Refused whole why={why} again={() => location.reload()} />
            </section>
        );
    const now = text ?? "";
    const own = refused ? problemsOf(refused) : [];
    const shown: Checked | null =
        refused && checked
            ? { ...checked, text: now, problems: own, why: own.length ? null : refused, plan: null }
            : checked;
    const from = query.value.get("from");
    const workload = preset?.workload ?? checked?.plan?.resolved_spec?.workload ?? valueOf(now, "workload") ?? "";
    const errors = (shown?.text === now && shown.problems.filter((p) => p.level === "error").length) || 0;
    return (
        <>
            <Head
                title={t("new_job")}
                sub={
                    <>
                        {visible([workload, valueOf(now, "preset")].filter(Boolean).join(" · "))}
                        {from && (
                            <>
                                {` · ${w("from_job", visible(from))} `}
                                <button type="button" class="link act" onClick={() => setQuery({ from: null })}>
                                    {w("not_from")}
                                </button>
                            </>
                        )}
                    </>
                }
            >
                <button
                    type="button"
                    class="btn bare act"
                    onClick={() => {
                        setQuery({ from: null, preset: null });
                        setText(FIRST);
                    }}
                >
                    {w("start_over")}
                </button>
            </Head>
            <div class="cols sub-cols">
                <Form
                    text={now}
                    setText={setText}
                    problems={shown?.problems ?? []}
                    preset={hasKey(now, "preset") ? preset : undefined}
                    presets={presets}
                    onPreset={(name) => setText(withPreset(now, name, presets.find((x) => x.name === name)?.holes))}
                    workload={workload}
                    keys={keys}
                />
                <div class="stick">
                    <PlanPanel
                        text={now}
                        checked={shown}
                        busy={busy}
                        goTo={(line) => {
                            setQuery({ view: null });
                            setGoTo({ line });
                        }}
                        use={(key, value) => setText(setAny(now, key, value))}
                        again={again}
                    >
                        <Deeds text={now} errors={errors} isBusy={busy} refused={setRefused} />
                    </PlanPanel>
                    <SpecPanel text={now} setText={setText} checked={checked} keys={keys} goTo={goTo} />
                </div>
            </div>
        </>
    );
}

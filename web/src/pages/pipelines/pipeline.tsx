// SPDX-License-Identifier: Apache-2.0
// pipeline.tsx - one pipeline: a form of its parameters beside what a run would do with them, its schedule, its runs, its
// text. ?p.NAME= are the parameters, ?user= whose it is: without, one's own, or the only one of that name that one may see.
import { useEffect, useState } from "preact/hooks";
import type { Pipeline, PipelineParam, PipelinePlan, PipelineRun } from "../../made/api";
import { call, Refusal, session } from "../../api/client";
import { useAsk } from "../../api/use";
import { useActs } from "../../base/acts";
import { fullTime, visible } from "../../base/say";
import { go, query, setQuery } from "../../base/url";
import { Blank, Loading, Pending, Refused } from "../../kit/blank";
import { Icon } from "../../kit/icons";
import { Cli, Head, Panel, shell, Text, Time, toast } from "../../kit/parts";
import { t } from "../../words/shared";
import { PipeText, removePipeline, schedulePipeline, store, unschedulePipeline, whose, whoseWords } from "./deeds";
import { paramWords, pipeHref, Plan, runHref, RunTable } from "./parts";
import { w } from "./words";

const SOON = 400;
const dfltOf = (p: PipelineParam) => (p.default === null || p.default === undefined ? "" : String(p.default));

/** What the address gives, by parameter: what is not given has its default. */
function givenOf(p: Pipeline): Record<string, string> {
    const out: Record<string, string> = {};
    for (const x of p.params) {
        const v = query.value.get(`p.${x.name}`);
        if (v !== null && v !== dfltOf(x)) out[x.name] = v;
    }
    return out;
}

function Param({ of: p, wrong }: { of: PipelineParam; wrong: string | undefined }) {
    const name = `p.${p.name}`;
    const value = query.value.get(name) ?? dfltOf(p);
    const set = (v: string) => setQuery({ [name]: v === dfltOf(p) ? null : v });
    const type = p.type === "integer" || p.type === "number" ? "number" : "text";
    return (
        <label>
            <span>
                <b class="mono">{visible(p.name)}</b>
                <code>
                    {visible(p.type)}
                    {p.required ? ` · ${w("needed")}` : ""}
                </code>
            </span>
            {p.type === "boolean" ? (
                <input
                    type="checkbox"
                    class="check"
                    aria-label={visible(p.name)}
                    checked={value === "true"}
                    onChange={(e) => set(String(e.currentTarget.checked))}
                />
            ) : (
                <input
                    class={`field ${wrong ? "wrong" : ""}`}
                    autocomplete="off"
                    value={value}
                    aria-invalid={!!wrong}
                    {...({ type, step: p.type === "integer" ? "1" : "any" } as { type: "text" })}
                    onInput={(e) => set(e.currentTarget.value)}
                />
            )}
            {p.description && <span class="help said">{visible(p.description)}</span>}
            {wrong && <span class="say bad said">{visible(wrong)}</span>}
        </label>
    );
}

/** What a run would do, looked at soon after each change. */
function usePlan(p: Pipeline, params: Record<string, string>, force: boolean) {
    const [plan, setPlan] = useState<PipelinePlan | null>(null);
    const [why, setWhy] = useState<Refusal | null>(null);
    const key = JSON.stringify([params, force, p.hash]);
    useEffect(() => {
        if (session.value?.role === "viewer") return;
        const control = new AbortController();
        const timer = setTimeout(() => {
            call("POST /v1/pipelines/{name}:run", {
                path: { name: p.name },
                query: whose(p),
                body: { params, force, dry_run: true },
                signal: control.signal,
            }).then(
                (got) => {
                    setPlan(got as PipelinePlan);
                    setWhy(null);
                },
                (e: unknown) => {
                    if (control.signal.aborted || !(e instanceof Refusal)) return;
                    setPlan(null);
                    setWhy(e);
                },
            );
        }, SOON);
        return () => {
            clearTimeout(timer);
            control.abort();
        };
    }, [key]);
    return { plan, why };
}

function RunForm({ of: p }: { of: Pipeline }) {
    const [busy, setBusy] = useState(false);
    const force = query.value.get("force") === "1";
    const params = givenOf(p);
    const { plan, why } = usePlan(p, params, force);
    const problems = why?.problem?.problems ?? [];
    const wrongOf = (name: string) => problems.find((x) => x.field === `params.${name}` || x.field === name)?.detail;
    const begin = async () => {
        setBusy(true);
        try {
            const run = (await call("POST /v1/pipelines/{name}:run", {
                path: { name: p.name },
                query: whose(p),
                body: { params, force },
            })) as PipelineRun;
            toast(w("run_done"));
            go(runHref(run));
        } catch (e) {
            if (e instanceof Refusal) toast(e.detail);
        }
        setBusy(false);
    };
    const elsewhere = problems.filter((x) => !p.params.some((y) => wrongOf(y.name) === x.detail));
    return (
        <div class="cols pipe-cols act">
            <Panel title={w("params")}>
                {p.params.length ? (
                    <div class="form">
                        <fieldset class="pipe-form">
                            {p.params.map((x) => (
                                <Param key={x.name} of={x} wrong={wrongOf(x.name)} />
                            ))}
                        </fieldset>
                    </div>
                ) : (
                    <p class="mid">{w("no_params")}</p>
                )}
                <label class="row tick pipe-force">
                    <input
                        type="checkbox"
                        class="check"
                        checked={force}
                        onChange={(e) => setQuery({ force: e.currentTarget.checked ? "1" : null })}
                    />
                    {w("force")}
                </label>
                <div class="row pipe-go">
                    <Cli
                        line={`argus pipe run ${shell(p.name)}${whoseWords(p)}${paramWords(params)}${force ? " --force" : ""}`}
                    />
                    <span class="grow" />
                    <button type="button" class="btn main" disabled={busy || !plan} onClick={() => void begin()}>
                        {w("run_go", visible(p.name))}
                    </button>
                </div>
            </Panel>
            <Panel title={w("would")}>
                {plan ? (
                    <Plan of={plan} />
                ) : problems.length ? (
                    <ul class="note bad pipe-problems">
                        {(elsewhere.length ? elsewhere : problems).map((x) => (
                            <li class="said">{visible(x.detail)}</li>
                        ))}
                    </ul>
                ) : why ? (
                    <Refused why={why} />
                ) : (
                    <Loading rows={3} />
                )}
            </Panel>
        </div>
    );
}

/** The moment as a clock in that zone has it. */
function inZone(at: string, zone: string | null): string {
    try {
        const f = new Intl.DateTimeFormat("sv-SE", {
            timeZone: zone ?? "UTC",
            dateStyle: "short",
            timeStyle: "short",
        });
        return f.format(new Date(at));
    } catch {
        return fullTime(at); // a zone that this browser does not know
    }
}

function Schedule({ of: p, may, again }: { of: Pipeline; may: boolean; again: () => void }) {
    return (
        <Panel
            title={w("schedule")}
            end={
                may && (
                    <>
                        <button type="button" class="btn act" onClick={() => schedulePipeline(p, givenOf(p), again)}>
                            {w("s_go")}
                        </button>
                        {p.cron && (
                            <button type="button" class="btn bad act" onClick={() => unschedulePipeline(p, again)}>
                                {w("s_off")}
                            </button>
                        )}
                    </>
                )
            }
        >
            {p.cron ? (
                <>
                    <p>
                        <code class="strong">{visible(p.cron)}</code> <Text of={p.zone ?? "UTC"} />
                        {p.schedule_params && (
                            <code class="dim">
                                {" "}
                                {visible(paramWords(p.schedule_params as Record<string, unknown>))}
                            </code>
                        )}
                    </p>
                    <p class="mid small">{w("s_next", visible(p.zone ?? "UTC"))}</p>
                    <ol class="pipe-times">
                        {p.next_times.map((at) => (
                            <li>
                                <time dateTime={at} title={fullTime(at)}>
                                    {inZone(at, p.zone)}
                                </time>
                            </li>
                        ))}
                    </ol>
                </>
            ) : (
                <p class="mid">{w("s_none")}</p>
            )}
        </Panel>
    );
}

function Runs({ of: p }: { of: Pipeline }) {
    const asked = useAsk(
        "GET /v1/pipeline-runs",
        { query: { pipeline: p.name, owner: p.owner, limit: 30 } },
        { topics: ["pipelines"] },
    );
    const rows = asked.data?.runs;
    return (
        <Panel bare title={w("v_runs")} count={rows?.length}>
            {asked.why || !rows ? (
                <Pending of={asked} lines={3} />
            ) : rows.length ? (
                <RunTable rows={rows} withPipe />
            ) : (
                <Blank title={w("no_runs")}>{w("no_runs_text")}</Blank>
            )}
        </Panel>
    );
}

function TextPanel({ of: p, may, again }: { of: Pipeline; may: boolean; again: () => void }) {
    const [edits, setEdits] = useState(false);
    const [text, setText] = useState(p.text);
    const [why, setWhy] = useState<Refusal | null>(null);
    useEffect(() => {
        if (!edits) setText(p.text);
    }, [p.text, edits]);
    const save = async () => {
        try {
            await store(text, p.project || undefined);
            toast(w("saved"));
            setEdits(false);
            setWhy(null);
            again();
        } catch (e) {
            if (e instanceof Refusal) setWhy(e);
        }
    };
    return (
        <Panel
            title={w("text")}
            end={
                may &&
                !edits && (
                    <button type="button" class="btn act" onClick={() => setEdits(true)}>
                        {w("edit")}
                    </button>
                )
            }
        >
            {edits ? (
                <>
                    <PipeText text={text} why={why} onChange={setText} />
                    <p class="row pipe-go">
                        <span class="grow" />
                        <button type="button" class="btn" onClick={() => (setEdits(false), setWhy(null))}>
                            {t("cancel")}
                        </button>
                        <button type="button" class="btn main" disabled={text === p.text} onClick={() => void save()}>
                            {w("save")}
                        </button>
                    </p>
                </>
            ) : (
                <pre class="lib-pre" tabIndex={0}>
                    {visible(p.text)}
                </pre>
            )}
        </Panel>
    );
}

/** An address without an owner, of a name that one has not oneself: somebody else's, if there is no doubt whose. */
function Others({ name, why }: { name: string; why: Refusal }) {
    const asked = useAsk("GET /v1/pipelines", {}, { topics: ["pipelines"] });
    const there = asked.data?.pipelines.filter((p) => p.name === name) ?? [];
    const only = there.length === 1 ? there[0]!.owner : null;
    useEffect(() => {
        if (only) setQuery({ user: only });
    }, [only]);
    if (asked.why || !asked.data || only) return <Pending whole of={asked} lines={6} />;
    if (!there.length) return <NoPipeline why={why} />;
    const more = Object.fromEntries(query.value);
    return (
        <Blank whole title={w("whose", visible(name))}>
            <ul class="pipe-whose">
                {there.map((p) => (
                    <li>
                        <a class="link" href={pipeHref(p, { ...more, user: p.owner })}>
                            <Text of={p.owner} />
                        </a>
                        {p.description && <span class="dim"> · {visible(p.description)}</span>}
                    </li>
                ))}
            </ul>
        </Blank>
    );
}

const NoPipeline = ({ why }: { why: Refusal }) => (
    <Blank
        whole
        title={w("no_pipe")}
        act={
            <a class="btn" href="/pipelines">
                {t("pipelines")}
            </a>
        }
    >
        {visible(why.detail)}
    </Blank>
);

export function PipelinePage({ name }: { name: string }) {
    const user = query.value.get("user") ?? undefined;
    const asked = useAsk(
        "GET /v1/pipelines/{name}",
        { path: { name }, query: { user } },
        {
            topics: ["pipelines"],
            about: (id) => id === name,
        },
    );
    const p = asked.data;
    const me = session.value;
    const may = !!p && me?.role !== "viewer" && (me?.role === "admin" || p.owner === me?.user);
    useActs([may && !!p && { says: w("rm_go"), does: () => removePipeline(p) }], [p, may]);
    if (asked.why || !p)
        return (
            <section class="panel">
                {asked.why?.status === 404 ? (
                    user ? (
                        <NoPipeline why={asked.why} />
                    ) : (
                        <Others name={name} why={asked.why} />
                    )
                ) : (
                    <Pending whole of={asked} lines={6} />
                )}
            </section>
        );
    return (
        <>
            <Head
                title={<Text of={p.name} />}
                sub={
                    <>
                        {p.description && `${visible(p.description)} · `}
                        <Text of={p.owner} />
                        {p.project && ` · ${visible(p.project)}`} · {w("changed")} <Time at={p.changed_at} />
                    </>
                }
                cli={`argus pipe runs --pipeline ${shell(p.name)} --owner ${shell(p.owner)}`}
            >
                {may && (
                    <button type="button" class="btn bad act" onClick={() => removePipeline(p)}>
                        <Icon name="close" />
                        {w("rm")}
                    </button>
                )}
            </Head>
            <div class="cols">
                {me?.role !== "viewer" && <RunForm of={p} />}
                <div class="cols pipe-runs">
                    <Runs of={p} />
                    <Schedule of={p} may={may} again={asked.again} />
                </div>
                <TextPanel of={p} may={may && p.owner === me?.user} again={asked.again} />
            </div>
        </>
    );
}

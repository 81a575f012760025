// SPDX-License-Identifier: Apache-2.0
// page.tsx - the jobs that came of one another: drawn where there is room, and as a list in which each says what it is to
// its parent, what it changed, and why. ?of= is the job whose difference lies in the drawer.
import { useEffect, useRef, useState } from "preact/hooks";
import type { FamilyMember } from "../../made/api";
import { call, Refusal, session } from "../../api/client";
import { useAsk } from "../../api/use";
import { figure, num, visible } from "../../base/say";
import { query, setQuery, withQuery } from "../../base/url";
import { Blank, Loading, Refused } from "../../kit/blank";
import { Graph } from "../../kit/graph";
import { Icon } from "../../kit/icons";
import { Drawer } from "../../kit/over";
import { CopyCsv, Head, Panel, shell, State, Text, Time, toast } from "../../kit/parts";
import { t } from "../../words/shared";
import { Diff } from "../job/dryrun";
import { jobName } from "../jobs/columns";
import { chosenWith, placesOf, shortEdits } from "./tree";
import { w } from "./words";
import "./page.css";

const DRAWN_MAX = 200;
const WIDTH = 216;
const HEIGHT = 62;
const NOTE_MAX = 500;

const jobHref = (id: string) => `/jobs/${encodeURIComponent(id)}`;
const compareHref = (ids: string[]) => withQuery("/compare", { jobs: ids.join(",") });

/** "Resume at step 20" */
function howSays(m: FamilyMember): string {
    if (!m.how) return "";
    return m.step === null ? w(m.how) : w("at_step", w(m.how), num(m.step));
}

function changesSay(m: FamilyMember, most: number): string {
    if (m.parent === null) return "";
    if (!m.changes) return w("untold");
    if (!m.changes.length) return w("same");
    const { says, more } = shortEdits(m.changes, most);
    return visible(more ? w("more_keys", says, more) : says);
}

function Tree({ jobs, asked }: { jobs: FamilyMember[]; asked: string }) {
    const by = new Map(jobs.map((m) => [m.id, m]));
    return (
        <Graph
            label={w("tree")}
            width={WIDTH}
            height={HEIGHT}
            wires={jobs.flatMap((m) => (m.parent === null ? [] : [[m.parent, m.id] as const]))}
            boxes={placesOf(jobs).map((p) => {
                const m = by.get(p.id)!;
                return {
                    key: p.id,
                    column: p.column,
                    row: p.row,
                    href: withQuery(location.pathname, { of: p.id }),
                    isCurrent: p.id === asked,
                    class: "fam-box",
                    draw: (
                        <>
                            <b class="cut" title={visible(jobName(m))}>
                                {visible(jobName(m))}
                            </b>
                            <State of={m.state} />
                            <span class="cut">
                                {[howSays(m), changesSay(m, 1)].filter(Boolean).join(" · ") || "\u00a0"}
                            </span>
                        </>
                    ),
                };
            })}
        />
    );
}

/** The note, and the field in its place while it is changed. */
function Note({ of: m, may, changed }: { of: FamilyMember; may: boolean; changed: () => void }) {
    const [text, setText] = useState<string | null>(null);
    const [why, setWhy] = useState("");
    const [busy, setBusy] = useState(false);
    const field = useRef<HTMLInputElement>(null);
    useEffect(() => field.current?.focus(), [text === null]);
    const leave = () => {
        setText(null);
        setWhy("");
    };
    const save = async (e: Event) => {
        e.preventDefault();
        setBusy(true);
        try {
            await call("POST /v1/jobs/{id}:note", { path: { id: m.id }, body: { note: text?.trim() || null } });
            leave();
            toast(w("saved"));
            changed();
        } catch (x) {
            setWhy(x instanceof Refusal ? x.detail : String(x));
        }
        setBusy(false);
    };
    if (text === null)
        return (
            <span class="fam-note">
                {m.note ? <Text of={m.note} /> : <span class="dim">{w("no_note")}</span>}
                {may && (
                    <button
                        type="button"
                        class="link act"
                        aria-label={w("edit_note", visible(jobName(m)))}
                        onClick={() => setText(m.note ?? "")}
                    >
                        {w("change")}
                    </button>
                )}
            </span>
        );
    return (
        <form class="fam-note" onSubmit={save}>
            <input
                class="field grow"
                ref={field}
                maxLength={NOTE_MAX}
                aria-label={w("note_of", visible(jobName(m)))}
                value={text}
                onInput={(e) => setText(e.currentTarget.value)}
                onKeyDown={(e) => {
                    if (e.key !== "Escape") return;
                    e.stopPropagation();
                    leave();
                }}
            />
            <button type="submit" class="btn" disabled={busy}>
                {w("save")}
            </button>
            <button type="button" class="btn bare" onClick={leave}>
                {t("cancel")}
            </button>
            {why && (
                <span class="c-bad said" role="alert">
                    {visible(why)}
                </span>
            )}
        </form>
    );
}

function Row(p: {
    of: FamilyMember;
    isAsked: boolean;
    isChosen: boolean;
    choose: () => void;
    may: boolean;
    changed: () => void;
}) {
    const m = p.of;
    return (
        <li
            class="fam-row"
            aria-current={p.isAsked ? "true" : undefined}
            style={{ "--fam-depth": Math.min(m.depth, 12) }}
        >
            <input
                type="checkbox"
                checked={p.isChosen}
                aria-label={t("choose_row", visible(jobName(m)))}
                onChange={p.choose}
            />
            <div class="fam-job">
                <a class="link cut" href={jobHref(m.id)} title={visible(m.id)}>
                    <Text of={jobName(m)} />
                </a>
                <State of={m.state} />
            </div>
            <div class="fam-edge">
                {m.parent === null ? (
                    <span class="dim">–</span>
                ) : (
                    <button
                        type="button"
                        class="link fam-diff"
                        aria-haspopup="dialog"
                        onClick={() => setQuery({ of: m.id })}
                    >
                        <span class="strong">{howSays(m)}</span> {changesSay(m, 3)}
                    </button>
                )}
            </div>
            <Note of={m} may={p.may} changed={p.changed} />
            <div class="small dim fam-more">
                <Text of={m.user} /> · <Time at={m.queued_at} />
                {m.validation && (
                    <span title={visible(m.validation.key)}>
                        {" "}
                        · {w("validation")} {figure(m.validation.value)}
                    </span>
                )}
            </div>
        </li>
    );
}

function Difference({ of: m, parent }: { of: FamilyMember; parent: FamilyMember | undefined }) {
    return (
        <Drawer
            label={w("difference")}
            onClose={() => setQuery({ of: null })}
            head={
                <h2 class="cut">
                    <Text of={jobName(m)} />
                </h2>
            }
            foot={
                <span class="row">
                    <a class="btn" href={jobHref(m.id)}>
                        {t("open")}
                    </a>
                    {parent && (
                        <a class="btn" href={compareHref([parent.id, m.id])}>
                            <Icon name="compare" />
                            {t("compare")}
                        </a>
                    )}
                </span>
            }
        >
            <div class="body fam-drawer">
                <p class="row wrap">
                    <State of={m.state} />
                    {howSays(m)}
                </p>
                {m.note && (
                    <p class="note quiet">
                        <Text of={m.note} />
                    </p>
                )}
                {parent ? <h3>{w("from_parent", visible(jobName(parent)))}</h3> : <p class="mid">{w("root")}</p>}
                {parent && (m.changes?.length ? <Diff of={m.changes} /> : <p class="mid">{changesSay(m, 1)}</p>)}
            </div>
        </Drawer>
    );
}

const HEAD = ["id", "name", "parent", "how", "step", "state", "user", "queued_at", "ended_at", "note", "changes"];
const csvRows = (jobs: FamilyMember[]) =>
    jobs.map((m) => [
        m.id,
        m.name,
        m.parent,
        m.how,
        m.step,
        m.state,
        m.user,
        m.queued_at,
        m.ended_at,
        m.note,
        (m.changes ?? []).map((e) => `${e.key}: ${e.old ?? ""} -> ${e.new ?? ""}`).join("\n"),
    ]);

const Alone = ({ id, may }: { id: string; may: boolean }) => (
    <Blank
        title={w("alone")}
        act={
            may && (
                <a class="btn" href={`/submit?from=${encodeURIComponent(id)}`}>
                    {w("edit")}
                </a>
            )
        }
    >
        {w("alone_text")}
    </Blank>
);

export default function FamilyPage({ names }: { names: Record<string, string> }) {
    const id = names.id!;
    // Each change of those that are shown is heard; one that nobody knew yet comes by the clock.
    const known = useRef(new Set<string>());
    const live = { topics: ["jobs" as const], about: (x: string) => known.current.has(x), every: 60_000 };
    const asked = useAsk("GET /v1/jobs/{id}/family", { path: { id } }, live);
    if (asked.data) known.current = new Set(asked.data.jobs.map((m) => m.id));
    const [chosen, setChosen] = useState<string[]>([]);
    const f = asked.data;
    const may = session.value?.role !== "viewer";
    useEffect(() => setChosen([]), [id]);
    if (!f)
        return (
            <section class="panel">
                {asked.why?.status === 404 ? (
                    <Blank whole title={w("no_job")}>
                        {visible(asked.why.detail)}
                    </Blank>
                ) : asked.why ? (
                    <Refused whole why={asked.why} again={asked.again} />
                ) : (
                    <Loading rows={8} />
                )}
            </section>
        );
    const open = f.jobs.find((m) => m.id === query.value.get("of"));
    return (
        <>
            <Head
                title={w("family")}
                sub={
                    <a class="link" href={jobHref(f.job)}>
                        {w("of_job", visible(f.job))}
                    </a>
                }
                cli={`argus family ${shell(f.job)}`}
            >
                {chosen.length === 2 ? (
                    <a class="btn act" href={compareHref(chosen)}>
                        <Icon name="compare" />
                        {w("compare_two")}
                    </a>
                ) : (
                    f.jobs.length > 1 && <span class="small dim">{w("choose_two")}</span>
                )}
            </Head>
            <div class="cols">
                {f.more && <p class="note quiet">{w("cut")}</p>}
                {f.jobs.length > 1 && (
                    <Panel class="fam-tree">
                        {f.jobs.length <= DRAWN_MAX ? (
                            <Tree jobs={f.jobs} asked={f.job} />
                        ) : (
                            <p class="mid">{w("drawn_none", DRAWN_MAX)}</p>
                        )}
                    </Panel>
                )}
                <Panel
                    bare
                    title={t("jobs")}
                    count={f.jobs.length}
                    end={<CopyCsv head={HEAD} rows={() => csvRows(f.jobs)} />}
                >
                    <ul class="fam" aria-label={w("list")}>
                        {f.jobs.map((m) => (
                            <Row
                                key={m.id}
                                of={m}
                                isAsked={m.id === f.job}
                                isChosen={chosen.includes(m.id)}
                                choose={() => setChosen((was) => chosenWith(was, m.id))}
                                may={may}
                                changed={asked.again}
                            />
                        ))}
                    </ul>
                    {f.jobs.length === 1 && <Alone id={f.job} may={may} />}
                </Panel>
            </div>
            {open && <Difference of={open} parent={f.jobs.find((m) => m.id === open.parent)} />}
        </>
    );
}

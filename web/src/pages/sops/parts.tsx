// SPDX-License-Identifier: Apache-2.0
// parts.tsx - the parts of an SOP: its texts, the values that the operator sets, and a command with its buttons and with
// the answer that is expected of it, beside which a button shows the one of now. What was set stands in the address, as
// ?v.NODE=node-7.
import { useState } from "preact/hooks";
import type { Routes } from "../../made/api";
import { call, Refusal, session } from "../../api/client";
import { go, query, setQuery, withQuery } from "../../base/url";
import { visible } from "../../base/say";
import { copy, shell } from "../../kit/parts";
import { Answer } from "./answer";
import { exportsOf, placeOf, planOf, type Given, type Place, type Planned } from "./deeds";
import { readingsOf } from "./readings";
import { TEXTS } from "./shipped";
import { piecesOf, type Block, type Deed, type Piece, type Step, type Value } from "./sop";
import { w } from "./words";

const SET = "v.";
/** What the address says of the values. Somebody else may have made it: no control character of it gets into a command
 * that is copied, where a terminal would obey it. */
export const givenNow = (): Given =>
    Object.fromEntries(
        [...query.value]
            .filter(([k]) => k.startsWith(SET))
            .map(([k, v]) => [k.slice(SET.length), visible(v).replace(/\s+/g, " ").trim()]),
    );

/** Another page of the folder, with what was set; null: it leads to nothing that is here. */
function hrefOf(to: string): string | null {
    const [, name, , anchor] = /^([\w-]+?)(\.zh)?\.md(#.*)?$/.exec(to) ?? [];
    if (to.startsWith("#")) return to;
    return name && Object.hasOwn(TEXTS, name) ? `/ops/sops/${name}${location.search}${anchor ?? ""}` : null;
}

/** Its own text in the other language is no link: the language is chosen for all pages. */
const isTwin = (p: Piece, own: string) => p.kind === "link" && [`${own}.md`, `${own}.zh.md`].includes(p.to ?? "");

export function Pieces({ of, own }: { of: Piece[]; own: string }) {
    return (
        <>
            {of
                .filter((p) => !isTwin(p, own))
                .map((p) => {
                    const href = p.kind === "link" ? hrefOf(p.to ?? "") : null;
                    if (p.kind === "code") return <code>{p.text}</code>;
                    if (p.kind === "strong") return <b>{p.text}</b>;
                    return href ? (
                        <a class="link" href={href}>
                            {p.text}
                        </a>
                    ) : (
                        p.text
                    );
                })}
        </>
    );
}

const Copy = ({ text, label }: { text: string; label: string }) => (
    <button type="button" class="btn small" aria-label={label} onClick={() => void copy(text)}>
        {w("copy")}
    </button>
);

function Values({ of, given }: { of: Value[]; given: Given }) {
    const text = exportsOf(of, given, shell);
    return (
        <div class="sop-values">
            <div class="sop-fields labelled">
                {of.map((v) => (
                    <label key={v.name}>
                        <span>
                            <code>{v.name}</code> <Pieces of={piecesOf(v.says)} own="" />
                        </span>
                        <input
                            class="field"
                            autocomplete="off"
                            name={v.name}
                            placeholder={w("example", v.value)}
                            value={query.value.get(SET + v.name) ?? ""}
                            onInput={(e) => setQuery({ [SET + v.name]: e.currentTarget.value })}
                        />
                    </label>
                ))}
            </div>
            <pre>{text}</pre>
            <div class="row">
                <Copy text={text} label={w("copy_values")} />
            </div>
        </div>
    );
}

export function Blocks({ of, own, given }: { of: Block[]; own: string; given: Given }) {
    return (
        <>
            {of.map((b) => {
                if (b.kind === "values") return <Values of={b.of} given={given} />;
                if (b.kind === "command") return <pre>{b.text}</pre>;
                if (b.kind === "list")
                    return (
                        <ul>
                            {b.items.map((x) => (
                                <li>
                                    <Pieces of={x} own={own} />
                                </li>
                            ))}
                        </ul>
                    );
                if (b.kind === "text")
                    return (
                        <p>
                            <Pieces of={b.of} own={own} />
                        </p>
                    );
                return (
                    <table class="tbl sop-table">
                        <thead>
                            <tr>
                                {b.head.map((x) => (
                                    <th scope="col">
                                        <Pieces of={x} own={own} />
                                    </th>
                                ))}
                            </tr>
                        </thead>
                        <tbody>
                            {b.rows.map((row) => (
                                <tr>
                                    {row.map((x) => (
                                        <td>
                                            <Pieces of={x} own={own} />
                                        </td>
                                    ))}
                                </tr>
                            ))}
                        </tbody>
                    </table>
                );
            })}
        </>
    );
}

/** Nothing is done by it: it is looked at, approved and applied on the page Ops. Returns why it was refused, or "". */
async function makePlan({ action, body }: Planned): Promise<string> {
    const route = `POST /v1/ops/${action}` as "POST /v1/ops/stop_many";
    try {
        const plan = await call(route, { body: body as Routes[typeof route]["body"] });
        go(withQuery("/ops", { plan: plan.id }));
        return "";
    } catch (e) {
        if (!(e instanceof Refusal)) throw e;
        return visible(e.detail);
    }
}

function Buttons({ plan, place }: { plan: Planned | null; place: Place | null }) {
    const [why, setWhy] = useState("");
    const [busy, setBusy] = useState(false);
    const make = async (of: Planned) => {
        setBusy(true);
        setWhy("");
        try {
            setWhy(await makePlan(of));
        } finally {
            setBusy(false);
        }
    };
    const mayPlan = plan && session.value?.role !== "viewer";
    return (
        <>
            {mayPlan && (
                <button
                    type="button"
                    class="btn small"
                    disabled={busy || plan.missing.length > 0}
                    onClick={() => void make(plan)}
                >
                    {w("make_plan")}
                </button>
            )}
            {mayPlan && plan.missing.length > 0 && (
                <span class="small mid">{w("set_first", plan.missing.join(", "))}</span>
            )}
            {place && (
                <a class="btn small" href={withQuery(place.path, place.query)}>
                    {w(`at_${place.page}`)}
                </a>
            )}
            {why && (
                <p class="note bad said" role="alert">
                    {why}
                </p>
            )}
        </>
    );
}

/** A command with its answer beside it. title: of its step. */
export function DeedRow(p: { of: Deed; title: string; own: string; given: Given }) {
    const { command, expected } = p.of;
    const readings = readingsOf(command, p.given);
    const plan = command.split("\n").reduce<Planned | null>((found, line) => found ?? planOf(line, p.given), null);
    return (
        <div class="sop-deed">
            <div class="sop-command">
                <pre>{command}</pre>
                <div class="row wrap">
                    <Copy text={command} label={w("copy_of", p.title)} />
                    <Buttons plan={plan} place={placeOf(command, p.given)} />
                </div>
            </div>
            {expected.length + readings.length > 0 && (
                <div class="sop-lead">
                    {expected.length > 0 && <p class="small dim">{w("expected")}</p>}
                    <Blocks of={expected} own={p.own} given={p.given} />
                    {readings.length > 0 && (
                        <Answer key={readings.map((r) => r.path).join(" ")} of={readings} title={p.title} />
                    )}
                </div>
            )}
        </div>
    );
}

export function StepRow({ of: s, own, given }: { of: Step; own: string; given: Given }) {
    return (
        <li class="sop-step">
            <h3>{s.title}</h3>
            {s.lead.length > 0 && (
                <div class="sop-lead">
                    <Blocks of={s.lead} own={own} given={given} />
                </div>
            )}
            {s.deeds.map((d) => (
                <DeedRow of={d} title={s.title} own={own} given={given} />
            ))}
        </li>
    );
}

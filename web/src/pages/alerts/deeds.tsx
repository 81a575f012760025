// SPDX-License-Identifier: Apache-2.0
// deeds.tsx - what is done about alerts: acknowledge, silence, rules, test messages.
import { signal, type Signal } from "@preact/signals";
import type { Alert, AlertRule, Silence } from "../../made/api";
import { call } from "../../api/client";
import { Choose, Field, Tick } from "../../kit/form";
import { ask } from "../../kit/over";
import { shell, Text } from "../../kit/parts";
import { t } from "../../words/shared";
import { MATCHES, matchOf, OPTION, type Match } from "./match";
import { textOf } from "./parts";
import { w } from "./words";

const OF = ["job", "node", "gpu", "cluster", "root", "queue", "quota", "argusd", "pipeline"] as const;

const Named = ({ of }: { of: Alert }) => (
    <ul class="named">
        <li>
            <Text of={of.name} />
            <span class="said">{textOf(of)}</span>
        </li>
    </ul>
);

export function ackAlert(a: Alert, done: () => void) {
    const note = signal("");
    ask({
        title: w("ack_title", a.rule),
        act: w("ack"),
        cli: () => `argus alert ack ${shell(a.id)}${note.value.trim() ? ` --note ${shell(note.value.trim())}` : ""}`,
        body: (
            <>
                <p>{w("ack_text")}</p>
                <Named of={a} />
                <div class="form in-dialog">
                    <fieldset>
                        <Field wide={12} label={w("note")} code="note" of={note} first />
                    </fieldset>
                </div>
            </>
        ),
        does: async () => {
            await call("POST /v1/alerts/{alert}:ack", {
                path: { alert: a.id },
                body: note.value.trim() ? { note: note.value.trim() } : {},
            });
            done();
        },
        done: w("ack_done"),
    });
}

export function silenceAlert(a: Alert, done: () => void) {
    const span = signal("2h");
    const note = signal("");
    ask({
        title: w("sil_title", a.rule),
        act: w("silence"),
        missing: () => (span.value.trim() ? "" : w("sil_for")),
        cli: () =>
            `argus alert silence ${shell(a.id)} --for ${shell(span.value.trim() || "2h")}` +
            (note.value.trim() ? ` --note ${shell(note.value.trim())}` : ""),
        body: (
            <>
                <p>{w("sil_text")}</p>
                <Named of={a} />
                <div class="form in-dialog">
                    <fieldset>
                        <Field
                            wide={4}
                            label={w("sil_for")}
                            code="for"
                            of={span}
                            list={["1h", "2h", "8h", "1d"]}
                            first
                        />
                        <Field wide={8} label={w("note")} code="note" of={note} />
                    </fieldset>
                </div>
            </>
        ),
        does: async () => {
            await call("POST /v1/alerts/{alert}:silence", {
                path: { alert: a.id },
                body: { for: span.value.trim(), ...(note.value.trim() && { note: note.value.trim() }) },
            });
            done();
        },
        done: () => w("sil_done", span.value),
    });
}

/** A silence of all that matches, with an end; admins alone may. */
export function addSilence(rules: string[], done: () => void) {
    const of = Object.fromEntries(MATCHES.map((m) => [m, signal("")])) as Record<Match, Signal<string>>;
    const span = signal("2h");
    const note = signal("");
    const match = () => matchOf(Object.fromEntries(MATCHES.map((m) => [m, of[m].value])) as Record<Match, string>);
    const known: Partial<Record<Match, string[]>> = { rules, kinds: [...OF] };
    ask({
        title: w("add_silence"),
        act: w("silence"),
        missing: () => (Object.keys(match()).length && span.value.trim() ? "" : w("add_sil_must")),
        cli: () =>
            "argus alert silence-match" +
            Object.entries(match())
                .flatMap(([m, list]) => list.map((x) => ` ${OPTION[m as Match]} ${shell(x)}`))
                .join("") +
            ` --for ${shell(span.value.trim() || "2h")}` +
            (note.value.trim() ? ` --note ${shell(note.value.trim())}` : ""),
        body: (
            <>
                <p>{w("add_sil_text")}</p>
                <div class="form in-dialog">
                    <fieldset>
                        {MATCHES.map((m, i) => (
                            <Field
                                wide={m === "names" ? 8 : 4}
                                label={w(`m_${m}`)}
                                code={m}
                                of={of[m]}
                                list={known[m]}
                                first={i === 0}
                            />
                        ))}
                        <Field wide={4} label={w("sil_for")} code="for" of={span} list={["1h", "2h", "8h", "1d"]} />
                        <Field wide={8} label={w("note")} code="note" of={note} />
                    </fieldset>
                </div>
            </>
        ),
        does: async () => {
            await call("POST /v1/silences", {
                body: {
                    ...match(),
                    for: span.value.trim(),
                    ...(note.value.trim() && { note: note.value.trim() }),
                },
            });
            done();
        },
        done: () => w("add_sil_done", span.value.trim()),
    });
}

export function endSilence(s: Silence, done: () => void) {
    ask({
        title: w("un_title", s.id),
        act: w("unsilence"),
        cli: `argus alert unsilence ${shell(s.id)}`,
        body: <p>{w("un_text")}</p>,
        does: async () => {
            await call("DELETE /v1/silences/{silence}", { path: { silence: s.id } });
            done();
        },
        done: w("un_done"),
    });
}

/** rule null: a new one. */
export function editRule(rule: AlertRule | null, done: () => void) {
    const name = signal(rule?.name ?? "");
    const of = signal<(typeof OF)[number]>(rule?.of ?? "node");
    const when = signal(rule?.when ?? "");
    const lasts = signal(rule?.for ?? "");
    const severity = signal<AlertRule["severity"]>(rule?.severity ?? "warning");
    const text = signal(rule?.text ?? "");
    const zh = signal(rule?.zh ?? "");
    const isOff = signal(rule?.off ?? false);
    const opt = (o: string, v: string) => (v.trim() ? ` ${o} ${shell(v.trim())}` : "");
    ask({
        title: rule ? `${w("rule_title")} ${rule.name}` : w("add_rule"),
        act: w("rule_go"),
        missing: () => (name.value.trim() && when.value.trim() && text.value.trim() ? "" : w("rule_must")),
        cli: () =>
            `argus alert rule ${shell(name.value.trim() || "NAME")} --of ${of.value}` +
            opt("--when", when.value) +
            opt("--for", lasts.value) +
            opt("--severity", severity.value) +
            opt("--text", text.value) +
            opt("--zh", zh.value) +
            (isOff.value ? " --off" : ""),
        body: (
            <div class="form in-dialog">
                <fieldset>
                    {!rule && <Field wide={6} label={t("name")} code="name" of={name} first />}
                    <Choose
                        wide={rule ? 4 : 3}
                        label={w("of")}
                        code="of"
                        of={of}
                        choices={OF.map((x) => ({ value: x, says: x }))}
                    />
                    <Choose
                        wide={rule ? 4 : 3}
                        label={w("severity")}
                        of={severity}
                        choices={(["info", "warning", "critical"] as const).map((x) => ({ value: x, says: w(x) }))}
                    />
                    <Field wide={8} label={w("when")} code="when" of={when} placeholder="disk_free < 50GiB" />
                    <Field wide={4} label={w("lasts")} code="for" of={lasts} placeholder="5m" />
                    <Field wide={12} label={w("text_en")} code="text" of={text} />
                    <Field wide={12} label={w("text_zh")} code="zh" of={zh} />
                </fieldset>
                <Tick label={w("is_off")} of={isOff} />
            </div>
        ),
        does: async () => {
            const kept = rule
                ? {
                      clear: rule.clear ?? undefined,
                      clear_for: rule.clear_for,
                      keep: rule.keep,
                      fix: rule.fix ?? undefined,
                      fix_zh: rule.fix_zh ?? undefined,
                  }
                : {};
            const told = Object.fromEntries(Object.entries(kept).filter(([, v]) => v !== undefined && v !== ""));
            await call("PUT /v1/alert_rules/{rule}", {
                path: { rule: name.value.trim() },
                body: {
                    ...told,
                    of: of.value,
                    when: when.value.trim(),
                    severity: severity.value,
                    text: text.value.trim(),
                    off: isOff.value,
                    ...(lasts.value.trim() && { for: lasts.value.trim() }),
                    ...(zh.value.trim() && { zh: zh.value.trim() }),
                },
            });
            done();
        },
        done: w("rule_done"),
    });
}

export function removeRule(rule: AlertRule, done: () => void) {
    ask({
        title: w("rm_title", rule.name),
        act: w("rm_go"),
        isBad: true,
        cli: `argus alert rule-rm ${shell(rule.name)}`,
        body: <p>{w("rm_text")}</p>,
        does: async () => {
            await call("DELETE /v1/alert_rules/{rule}", { path: { rule: rule.name } });
            done();
        },
        done: w("rm_done"),
    });
}

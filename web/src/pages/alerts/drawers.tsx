// SPDX-License-Identifier: Apache-2.0
// drawers.tsx - one alert with its evidence, and one incident with its report.
import { session } from "../../api/client";
import { useAsk } from "../../api/use";
import { lang } from "../../base/prefs";
import { visible } from "../../base/say";
import { Blank, Loading, Pending, Refused } from "../../kit/blank";
import { Icon } from "../../kit/icons";
import { Drawer } from "../../kit/over";
import { Cli, shell, Text, Time } from "../../kit/parts";
import { short } from "../../kit/stack";
import { Curve } from "./curve";
import { ackAlert, silenceAlert } from "./deeds";
import { here, SeverityMark, Subject, textOf, titleOf } from "./parts";
import { w } from "./words";

const EVERY = { topics: ["events" as const], every: 15_000 };

const plain = (v: unknown) => visible(typeof v === "string" ? v : JSON.stringify(v));

export function AlertDrawer({ id, close }: { id: string; close: () => void }) {
    const asked = useAsk("GET /v1/alerts/{alert}", { path: { alert: id } }, EVERY);
    const a = asked.data;
    const fix = a?.fix;
    const own = session.value;
    const may = own && (own.role === "admin" || (own.role === "user" && a?.user === own.user));
    return (
        <Drawer
            label={id}
            onClose={close}
            foot={
                may &&
                a?.open && (
                    <>
                        {!a.acked_by && (
                            <button type="button" class="btn" onClick={() => ackAlert(a, asked.again)}>
                                {w("ack")}
                            </button>
                        )}
                        {!a.silenced_by && (
                            <button type="button" class="btn" onClick={() => silenceAlert(a, asked.again)}>
                                {w("silence")}
                            </button>
                        )}
                    </>
                )
            }
            head={
                <>
                    <div class="row">
                        {a && <SeverityMark of={a.severity} />}
                        <Cli line={`argus alert show ${shell(id)}`} />
                    </div>
                    <h2 class="cut">{a ? <Text of={a.rule} mono /> : <Text of={id} />}</h2>
                    {a && (
                        <div class="small row">
                            <Subject of={a} />
                        </div>
                    )}
                </>
            }
        >
            {asked.why ? (
                asked.why.status === 404 ? (
                    <Blank title={w("gone")} icon="unknown" />
                ) : (
                    <Refused why={asked.why} again={asked.again} />
                )
            ) : !a ? (
                <Loading rows={4} />
            ) : (
                <>
                    <section>
                        <p class="why-text said">{textOf(a)}</p>
                    </section>
                    {fix && (
                        <section>
                            <h2>{w("fix")}</h2>
                            <p class="said">{visible(fix)}</p>
                        </section>
                    )}
                    <section>
                        <dl class="kv">
                            <dt>{w("since")}</dt>
                            <dd>
                                <Time at={a.since} />{" "}
                                <span class="dim">
                                    <Time at={a.since} as="ago" />
                                </span>
                            </dd>
                            {a.ended_at && (
                                <>
                                    <dt>{w("ended")}</dt>
                                    <dd>
                                        <Time at={a.ended_at} />
                                    </dd>
                                </>
                            )}
                            {a.count > 1 && (
                                <>
                                    <dt>{w("count")}</dt>
                                    <dd>{w("times", a.count)}</dd>
                                </>
                            )}
                            <dt>{w("incident")}</dt>
                            <dd>
                                <a class="link mono" href={here({ view: "incidents", incident: a.incident })}>
                                    {visible(a.incident)}
                                </a>
                            </dd>
                            {a.acked_by && (
                                <>
                                    <dt>{w("acked")}</dt>
                                    <dd>
                                        <Text of={a.acked_by} /> · <Time at={a.acked_at} />
                                        {a.ack_note && <p class="mid">{visible(a.ack_note)}</p>}
                                    </dd>
                                </>
                            )}
                            {a.silenced_by && (
                                <>
                                    <dt>{w("silenced_by")}</dt>
                                    <dd>
                                        <a class="link mono" href={here({ view: "silences" })}>
                                            {visible(a.silenced_by)}
                                        </a>
                                    </dd>
                                </>
                            )}
                        </dl>
                    </section>
                    <Curve of={a} />
                    {a.facts && Object.keys(a.facts).length > 0 && (
                        <section>
                            <h2>{w("facts")}</h2>
                            <dl class="kv small">
                                {Object.entries(a.facts).map(([k, v]) => (
                                    <>
                                        <dt>
                                            <code>{visible(k)}</code>
                                        </dt>
                                        <dd>{plain(v)}</dd>
                                    </>
                                ))}
                            </dl>
                        </section>
                    )}
                </>
            )}
        </Drawer>
    );
}

export function IncidentDrawer({ id, close }: { id: string; close: () => void }) {
    const asked = useAsk("GET /v1/incidents/{incident}", { path: { incident: id } }, EVERY);
    const i = asked.data;
    const report = (format: string) =>
        `/v1/incidents/${encodeURIComponent(id)}/report?format=${format}&language=${lang.value}`;
    return (
        <Drawer
            label={id}
            onClose={close}
            head={
                <>
                    <div class="row">
                        {i && <SeverityMark of={i.severity} />}
                        {i?.open && <span class="dim">{w("is_open")}</span>}
                        <Cli line={`argus incident show ${shell(id)}`} />
                    </div>
                    <h2>{i ? <span class="said-block">{titleOf(i)}</span> : <Text of={id} />}</h2>
                </>
            }
            foot={
                i && (
                    <>
                        <a class="btn" href={report("html")} target="_blank" rel="noreferrer">
                            <Icon name="files" />
                            {w("report")}
                        </a>
                        <a class="btn bare" href={report("md")} target="_blank" rel="noreferrer">
                            {w("as_md")}
                        </a>
                    </>
                )
            }
        >
            {asked.why || !i ? (
                <Pending of={asked} lines={4} />
            ) : (
                <>
                    <section>
                        <dl class="kv">
                            <dt>{w("cause")}</dt>
                            <dd>
                                <Text of={i.cause} mono />
                            </dd>
                            <dt>{w("opened")}</dt>
                            <dd>
                                <Time at={i.opened_at} />
                            </dd>
                            {i.closed_at && (
                                <>
                                    <dt>{w("closed")}</dt>
                                    <dd>
                                        <Time at={i.closed_at} />
                                    </dd>
                                </>
                            )}
                            <dt>{w("jobs_hit")}</dt>
                            <dd>{i.jobs}</dd>
                            <dt>{w("gpu_hours")}</dt>
                            <dd>{short(i.gpu_hours)}</dd>
                            {i.told.length > 0 && (
                                <>
                                    <dt>{w("told")}</dt>
                                    <dd>{i.told.map((x) => visible(x)).join(", ")}</dd>
                                </>
                            )}
                        </dl>
                        {i.merged_into && (
                            <p class="mid">
                                <a class="link" href={here({ view: "incidents", incident: i.merged_into })}>
                                    {w("merged", i.merged_into)}
                                </a>
                            </p>
                        )}
                    </section>
                    <section>
                        <h2>{w("alerts_of")}</h2>
                        <ul class="happened">
                            {i.alerts.map((a) => (
                                <li>
                                    <Time at={a.since} />
                                    <span>
                                        <a class="link" href={here({ alert: a.id })}>
                                            <Text of={a.name} />
                                        </a>{" "}
                                        <span class="mid">{textOf(a)}</span>
                                    </span>
                                </li>
                            ))}
                        </ul>
                        {i.hidden > 0 && <p class="small dim">{w("hidden", i.hidden)}</p>}
                    </section>
                </>
            )}
        </Drawer>
    );
}

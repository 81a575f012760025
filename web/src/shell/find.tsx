// SPDX-License-Identifier: Apache-2.0
// find.tsx - go anywhere: pages by name, what can be done by its words, jobs by id, name or user, nodes by name. Ctrl-K
// or /.
import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { logOut, session } from "../api/client";
import { useAsk } from "../api/use";
import { shownActs } from "../base/acts";
import { lang, setLang, setTheme, theme, type Theme } from "../base/prefs";
import { go, withQuery } from "../base/url";
import { Icon, type IconName } from "../kit/icons";
import { Modal } from "../kit/over";
import { State, Text } from "../kit/parts";
import type { JobItem } from "../made/api";
import { t } from "../words/shared";
import { helpOpen } from "./help";
import { pages } from "./pages";

export const findOpen = signal(false);

interface Hit {
    key: string;
    does: () => void;
    icon: IconName;
    says: ComponentChildren;
    more?: ComponentChildren;
}
const JOBS_SHOWN = 8;
const OTHERS_SHOWN = 6;
const USER_NAME = /^[\w.-]{1,64}$/;

const leads = (to: string): Pick<Hit, "key" | "does"> => ({ key: to, does: () => go(to) });
const act = (says: string, icon: IconName, does: () => void): Hit => ({ key: `act ${says}`, does, icon, says });

/** What can be done from anywhere. */
function globalActs(): Hit[] {
    const role = session.value?.role;
    const themes: Theme[] = ["light", "dark", "system"];
    return [
        ...(role === "viewer" ? [] : [act(t("new_job"), "plus", () => go("/submit"))]),
        ...pages.flatMap((p) =>
            (p.acts ?? [])
                .filter((a) => role === "admin" || (role === "user" && a.least !== "admin"))
                .map((a): Hit => ({ ...leads(a.to), icon: "plus", says: a.says() })),
        ),
        ...themes
            .filter((x) => x !== theme.value)
            .map((x) =>
                act(t("a_theme", t(`theme_${x}`)), x === "light" ? "sun" : x === "dark" ? "moon" : "system", () =>
                    setTheme(x),
                ),
            ),
        act(t("a_lang"), "settings", () => setLang(lang.value === "zh" ? "en" : "zh")),
        act(t("k_title"), "menu", () => (helpOpen.value = true)),
        act(t("log_out"), "out", () => void logOut()),
    ];
}

function pageHits(low: string): Hit[] {
    return pages
        .filter((p) => p.nav && (!low || p.title().toLowerCase().includes(low) || p.paths[0]!.includes(low)))
        .map((p) => ({ ...leads(p.paths[0]!), icon: p.icon, says: p.title(), more: p.key && <kbd>{p.key}</kbd> }));
}

function actHits(low: string): Hit[] {
    const own = shownActs.value.map((a) => act(a.says, "bolt", a.does));
    if (!low) return own;
    return [...own, ...globalActs()].filter((h) => String(h.says).toLowerCase().includes(low));
}

const jobHit = (j: JobItem): Hit => ({
    ...leads(`/jobs/${encodeURIComponent(j.id)}`),
    icon: "jobs",
    says: <Text of={j.name ?? j.id} />,
    more: (
        <>
            <Text of={j.id} mono /> <State of={j.state} />
        </>
    ),
});

/** Who has jobs, by a part of the name: of all that this person may see, and of the rows that were found. */
function userHits(low: string, users: string[]): Hit[] {
    return [...new Set(users)]
        .filter((u) => u.toLowerCase().includes(low))
        .slice(0, OTHERS_SHOWN)
        .map((u) => ({ ...leads(withQuery("/jobs", { user: u })), icon: "users", says: t("a_jobs_of", u) }));
}

function useHits(text: string, asked: string): Hit[] {
    const some = asked !== "";
    const jobs = useAsk(some ? "GET /v1/jobs" : null, { query: { q: asked, limit: JOBS_SHOWN, all: true } });
    const theirs = useAsk(some && USER_NAME.test(asked) ? "GET /v1/jobs" : null, {
        query: { user: asked, limit: OTHERS_SHOWN, all: true },
    });
    const users = useAsk(some ? "GET /v1/users" : null, {});
    const nodes = useAsk(some ? "GET /v1/nodes" : null, {});
    const low = text.trim().toLowerCase();
    if (!low) return [...actHits(low), ...pageHits(low)];
    const found = [...(jobs.data?.jobs ?? []), ...(theirs.data?.jobs ?? [])];
    const names = [...(users.data?.users ?? []).map((u) => u.name), ...found.map((j) => j.user)];
    const hits = [
        ...pageHits(low),
        ...actHits(low),
        ...userHits(low, names),
        ...found.map(jobHit),
        ...(nodes.data?.nodes ?? [])
            .filter((n) => n.name.toLowerCase().includes(low))
            .slice(0, OTHERS_SHOWN)
            .map((n): Hit => ({
                ...leads(withQuery("/nodes", { node: n.name })),
                icon: "nodes",
                says: <Text of={n.name} />,
                more: <State of={n.state} />,
            })),
    ];
    const seen = new Set<string>();
    return hits.filter((h) => !seen.has(h.key) && seen.add(h.key));
}

function Box({ close }: { close: () => void }) {
    const [text, setText] = useState("");
    const [asked, setAsked] = useState("");
    const [at, setAt] = useState(0);
    useEffect(() => {
        const timer = setTimeout(() => setAsked(text.trim()), 150);
        return () => clearTimeout(timer);
    }, [text]);
    const hits = useHits(text, asked);
    const cursor = Math.min(at, hits.length - 1);
    useEffect(() => document.getElementById(`hit-${cursor}`)?.scrollIntoView({ block: "nearest" }), [cursor]);
    const open = (i: number) => {
        const hit = hits[i];
        if (!hit) return;
        close();
        hit.does();
    };
    return (
        <Modal label={t("find")} onClose={close} class="finder">
            <div class="finder-box">
                <Icon name="search" />
                <input
                    data-first
                    role="combobox"
                    aria-label={t("find")}
                    aria-expanded="true"
                    aria-controls="find-hits"
                    aria-activedescendant={hits.length ? `hit-${cursor}` : undefined}
                    placeholder={t("find")}
                    value={text}
                    onInput={(e) => {
                        setText(e.currentTarget.value);
                        setAt(0);
                    }}
                    onKeyDown={(e) => {
                        const step = e.key === "ArrowDown" ? 1 : e.key === "ArrowUp" ? -1 : 0;
                        if (step) setAt(Math.max(0, Math.min(hits.length - 1, cursor + step)));
                        else if (e.key === "Enter" && !e.isComposing) open(cursor);
                        else return;
                        e.preventDefault();
                    }}
                />
            </div>
            <ul id="find-hits" role="listbox" aria-label={t("find")} class="finder-hits">
                {hits.map((h, i) => (
                    <li
                        role="option"
                        id={`hit-${i}`}
                        key={h.key}
                        aria-selected={i === cursor}
                        onMouseMove={() => i !== cursor && setAt(i)}
                        onClick={() => open(i)}
                    >
                        <Icon name={h.icon} />
                        <span class="cut">{h.says}</span>
                        <span class="more-of">{h.more}</span>
                    </li>
                ))}
            </ul>
            {!hits.length && <p class="finder-none dim">{t("nothing_matches")}</p>}
        </Modal>
    );
}

export function Find() {
    return findOpen.value ? <Box close={() => (findOpen.value = false)} /> : null;
}

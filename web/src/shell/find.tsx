// SPDX-License-Identifier: Apache-2.0
// find.tsx - go anywhere: pages by name and what can be done by its words, which are known here; and whatever has a
// name, as GET /v1/search finds it (found.ts). Ctrl-K or /.
import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { logOut, session, type Refusal } from "../api/client";
import { useAsk } from "../api/use";
import { shownActs } from "../base/acts";
import { lang, setLang, setTheme, theme, type Theme } from "../base/prefs";
import { visible } from "../base/say";
import { go } from "../base/url";
import { Icon, type IconName } from "../kit/icons";
import { Modal } from "../kit/over";
import { State, Text } from "../kit/parts";
import type { SearchHit } from "../made/api";
import { t } from "../words/shared";
import { byKind, iconOf, kindSays, narrowed, pathOf } from "./found";
import { helpOpen } from "./help";
import { pages } from "./pages";

export const findOpen = signal(false);

interface Hit {
    key: string;
    /** What it stands under. */
    group: string;
    does: () => void;
    icon: IconName;
    says: ComponentChildren;
    more?: ComponentChildren;
}
const FOUND_SHOWN = 20;
/** After the last key, before the server is asked. */
const PAUSE_MS = 150;

const leads = (to: string): Pick<Hit, "key" | "does"> => ({ key: to, does: () => go(to) });
const act = (says: string, icon: IconName, does: () => void): Hit => ({
    key: `act ${says}`,
    group: t("f_acts"),
    does,
    icon,
    says,
});

/** What can be done from anywhere. */
function globalActs(): Hit[] {
    const role = session.value?.role;
    const themes: Theme[] = ["light", "dark", "system"];
    return [
        ...(role === "viewer" ? [] : [act(t("new_job"), "plus", () => go("/submit"))]),
        ...pages.flatMap((p) =>
            (p.acts ?? [])
                .filter((a) => role === "admin" || (role === "user" && a.least !== "admin"))
                .map((a): Hit => ({ ...leads(a.to), group: t("f_acts"), icon: "plus", says: a.says() })),
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
        .map((p) => ({
            ...leads(p.paths[0]!),
            group: t("f_pages"),
            icon: p.icon,
            says: p.title(),
            more: p.key && <kbd>{p.key}</kbd>,
        }));
}

function actHits(low: string): Hit[] {
    const own = shownActs.value.map((a) => act(a.says, "bolt", a.does));
    if (!low) return own;
    return [...own, ...globalActs()].filter((h) => String(h.says).toLowerCase().includes(low));
}

function More({ of: h }: { of: SearchHit }) {
    const state = h.about && (h.kind === "job" || h.kind === "node");
    return (
        <>
            {h.kind === "job" && <Text of={h.id} mono />}
            {state ? <State of={h.about!} /> : h.about && <Text of={h.about} />}
        </>
    );
}

const foundHit = (h: SearchHit): Hit => ({
    ...leads(pathOf(h)),
    group: kindSays(h.kind),
    icon: iconOf(h),
    says: h.kind === "user" ? t("a_jobs_of", h.name) : <Text of={h.name} />,
    more: <More of={h} />,
});

interface Found {
    hits: Hit[];
    /** The server has not answered about this text yet. */
    waits: boolean;
    why: Refusal | undefined;
}

/** What the server finds. An answer about an older text is not taken for one about this text: what of it still fits is
 * shown meanwhile. */
function useFound(text: string, asked: string): Found {
    const now = text.trim();
    const ask = useAsk(asked ? "GET /v1/search" : null, { query: { q: asked, limit: FOUND_SHOWN } });
    const last = useRef<SearchHit[]>([]);
    if (ask.data) last.current = ask.data.results;
    const isOfNow = asked === now;
    const hits = isOfNow && ask.data ? ask.data.results : narrowed(last.current, now);
    return {
        hits: now ? byKind(hits).map(foundHit) : [],
        waits: now !== "" && (!isOfNow || ask.loading),
        why: isOfNow ? ask.why : undefined,
    };
}

function useHits(text: string, asked: string): Found {
    const found = useFound(text, asked);
    const low = text.trim().toLowerCase();
    if (!low) return { ...found, hits: [...actHits(low), ...pageHits(low)] };
    const hits = [...pageHits(low), ...actHits(low), ...found.hits];
    const seen = new Set<string>();
    return { ...found, hits: hits.filter((h) => !seen.has(h.key) && seen.add(h.key)) };
}

/** Rows under the words of their groups; a row's number is its place among all. */
function groupsOf(hits: Hit[]): { says: string; rows: { hit: Hit; i: number }[] }[] {
    const groups: { says: string; rows: { hit: Hit; i: number }[] }[] = [];
    hits.forEach((hit, i) => {
        const last = groups[groups.length - 1];
        if (last?.says === hit.group) last.rows.push({ hit, i });
        else groups.push({ says: hit.group, rows: [{ hit, i }] });
    });
    return groups;
}

function Box({ close }: { close: () => void }) {
    const [text, setText] = useState("");
    const [asked, setAsked] = useState("");
    const [at, setAt] = useState(0);
    useEffect(() => {
        const timer = setTimeout(() => setAsked(text.trim()), PAUSE_MS);
        return () => clearTimeout(timer);
    }, [text]);
    const { hits, waits, why } = useHits(text, asked);
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
            <div id="find-hits" role="listbox" aria-label={t("find")} class="finder-hits">
                {groupsOf(hits).map((g) => (
                    <div role="group" aria-label={g.says} key={g.says}>
                        <p class="finder-kind" aria-hidden="true">
                            {g.says}
                        </p>
                        <ul role="presentation">
                            {g.rows.map(({ hit: h, i }) => (
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
                    </div>
                ))}
            </div>
            {why ? (
                <p class="finder-none dim" role="status">
                    {visible(why.detail)}
                </p>
            ) : (
                !hits.length && !waits && <p class="finder-none dim">{t("nothing_matches")}</p>
            )}
        </Modal>
    );
}

export function Find() {
    return findOpen.value ? <Box close={() => (findOpen.value = false)} /> : null;
}

// SPDX-License-Identifier: Apache-2.0
// shell.tsx - the frame of every page: the rail, the bar with the find box and the live mark, the page itself.
import { signal, useComputed } from "@preact/signals";
import { Component, type ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { link, onBack, retryNow } from "../api/live";
import { logOut, session } from "../api/client";
import { useKeys } from "../base/keys";
import { lang, printedAt, setLang, setTheme, theme } from "../base/prefs";
import { clock, fullTime, now, visible } from "../base/say";
import { go, path } from "../base/url";
import { Blank, Loading, Refused } from "../kit/blank";
import { Icon, Mark } from "../kit/icons";
import { Asked, drawerOpen } from "../kit/over";
import { Toasts } from "../kit/parts";
import { t } from "../words/shared";
import { useCounts } from "./counts";
import { Find, findOpen } from "./find";
import { Help, helpOpen } from "./help";
import { pageAt, pages, type PageRoute } from "./pages";

const GROUPS = [
    ["", ""],
    ["machines", "g_machines"],
    ["library", "g_library"],
    ["work", "g_work"],
    ["watch", "g_watch"],
] as const;

function isCurrent(route: PageRoute): boolean {
    const at = pageAt(path.value)?.route;
    return at === route || (!!at?.under && at.under === route.paths[0]);
}

function Item({ route }: { route: PageRoute }) {
    const count = route.nav?.count?.() ?? 0;
    return (
        <a
            class="item"
            href={route.paths[0]}
            aria-current={isCurrent(route) ? "page" : undefined}
            title={route.title()}
        >
            <Icon name={route.icon} />
            <span class="label">{route.title()}</span>
            {count > 0 && <span class={`count ${route.nav?.hot ? "hot" : ""}`}>{count}</span>}
        </a>
    );
}

function Rail() {
    useCounts();
    const submit = pages.find((p) => p.paths[0] === "/submit");
    return (
        <nav class="rail" aria-label="Argus">
            <a class="brand" href="/" aria-label="Argus">
                <Mark />
                <span>Argus</span>
            </a>
            {submit && session.value?.role !== "viewer" && (
                <a class="btn main" href="/submit" title={t("new_job")}>
                    <Icon name="plus" />
                    <span class="label">{t("new_job")}</span>
                </a>
            )}
            {GROUPS.map(([group, title]) => {
                const own = pages.filter((p) => p.nav?.group === group);
                return (
                    own.length > 0 && (
                        <>
                            {title && <h2>{t(title)}</h2>}
                            {own.map((r) => (
                                <Item route={r} />
                            ))}
                        </>
                    )
                );
            })}
            <div class="foot small dim">
                {session.value?.user} · {session.value?.role}
                <br />
                <button type="button" class="link" onClick={() => void logOut()}>
                    {t("log_out")}
                </button>
            </div>
        </nav>
    );
}

function LiveMark() {
    const state = link.value.state;
    const says = state === "live" ? t("live") : state === "lost" ? t("not_live") : t("connecting");
    return (
        <span class={`live ${state === "live" ? "" : "off"}`} role="status">
            <i />
            {says}
        </span>
    );
}

/** After 5 s without a connection; what is shown stays readable and loses its colour. */
function Stale() {
    const [, tick] = useState(0);
    const l = link.value;
    useEffect(() => {
        if (l.state !== "lost") return;
        const each = setInterval(() => tick((n) => n + 1), 1000);
        return () => clearInterval(each);
    }, [l.state]);
    if (l.state !== "lost" || Date.now() - l.since < 5000) return null;
    return (
        <div class="stale" role="alert">
            <Icon name="offline" />
            <span class="grow">
                {t("stale", clock(l.since), Math.max(0, Math.ceil((l.again - Date.now()) / 1000)))}
            </span>
            <button type="button" class="btn" onClick={retryNow}>
                {t("retry_now")}
            </button>
        </div>
    );
}

const THEMES = { light: ["dark", "sun"], dark: ["system", "moon"], system: ["light", "system"] } as const;

function Bar() {
    const [next, icon] = THEMES[theme.value];
    const says = `${t("theme")}: ${t(`theme_${theme.value}`)}`;
    return (
        <header class="bar">
            <button type="button" class="find" onClick={() => (findOpen.value = true)} aria-keyshortcuts="Control+K">
                <Icon name="search" />
                <span class="cut">{t("find")}</span>
                <kbd>/</kbd>
            </button>
            <a class="brand narrow" href="/">
                <Mark />
                Argus
            </a>
            <div class="end">
                <LiveMark />
                <button
                    type="button"
                    class="btn bare"
                    lang={lang.value === "zh" ? "en" : "zh"}
                    onClick={() => setLang(lang.value === "zh" ? "en" : "zh")}
                >
                    {t("other_lang")}
                </button>
                <button
                    type="button"
                    class="btn bare icon"
                    title={says}
                    aria-label={says}
                    onClick={() => setTheme(next)}
                >
                    <Icon name={icon} />
                </button>
            </div>
        </header>
    );
}

function TabsLow() {
    const own = ["/", "/queue", "/jobs", "/alerts", "/nodes"].flatMap((p) => pages.filter((r) => r.paths[0] === p));
    return (
        <nav class="tabs-low" aria-label="Argus">
            {own.slice(0, 4).map((r) => (
                <a href={r.paths[0]} aria-current={isCurrent(r) ? "page" : undefined}>
                    <Icon name={r.icon} />
                    {r.title()}
                </a>
            ))}
            <button type="button" onClick={() => (findOpen.value = true)}>
                <Icon name="menu" />
                {t("more")}
            </button>
        </nav>
    );
}

/** At the end of what is printed: whence and when. */
const Printed = () => (
    <p class="on-paper small dim">
        {printedAt.value > 0 && `${visible(location.href)} · ${session.value?.user} · ${fullTime(printedAt.value)}`}
    </p>
);

type Loaded = ComponentType<{ names: Record<string, string> }>;
const loaded = signal(new Map<PageRoute, Loaded>());

/** A page that fails takes only itself down. */
class Guard extends Component<{ at: string; children: preact.ComponentChildren }, { why?: unknown; at?: string }> {
    override state: { why?: unknown; at?: string } = {};
    override componentDidCatch(why: unknown) {
        console.error(why);
        this.setState({ why, at: this.props.at });
    }
    override render() {
        if (this.state.why && this.state.at === this.props.at)
            return <Refused whole why={this.state.why} again={() => location.reload()} />;
        return this.props.children;
    }
}

function Page() {
    const at = useComputed(() => pageAt(path.value));
    const [failed, setFailed] = useState<{ of: PageRoute; why: unknown } | null>(null);
    const route = at.value?.route;
    useEffect(() => {
        if (!route || loaded.value.has(route)) return;
        route.load().then(
            (m) => (loaded.value = new Map(loaded.value).set(route, m.default)),
            (why: unknown) => setFailed({ of: route, why }),
        );
    }, [route]);
    // A browser may remember that a piece of the program did not come; the address holds the whole state.
    useEffect(() => (failed && failed.of === route ? onBack(() => location.reload()) : undefined), [failed, route]);
    useEffect(() => {
        document.title = route ? `${route.title()} · Argus` : "Argus";
    }, [route, lang.value]);
    if (!at.value || !route)
        return (
            <Blank whole title={t("no_page")} icon="unknown">
                {t("no_page_text")}
            </Blank>
        );
    if (failed?.of === route) return <Refused whole why={failed.why} again={() => location.reload()} />;
    const View = loaded.value.get(route);
    return View ? <View key={path.value} names={at.value.names} /> : <Loading />;
}

export function Shell() {
    useKeys(
        [
            { keys: "mod+k", says: () => t("k_find"), does: () => (findOpen.value = true), inFields: true },
            { keys: "/", says: () => t("k_find"), does: () => (findOpen.value = true) },
            { keys: "?", says: () => t("k_help"), does: () => (helpOpen.value = true) },
            ...pages.flatMap((p) =>
                p.key ? [{ keys: p.key, says: () => t("k_goto", p.title()), does: () => go(p.paths[0]!) }] : [],
            ),
        ],
        [],
    );
    const lost = link.value.state === "lost" && now.value > 0;
    return (
        <div class={`app ${drawerOpen.value ? "with-drawer" : ""} ${lost ? "is-stale" : ""}`}>
            <a class="skip" href="#main">
                {t("skip")}
            </a>
            <Rail />
            <div>
                <Bar />
                <Stale />
                <main id="main" tabIndex={-1} class="live-data">
                    <Guard at={path.value}>
                        <Page />
                    </Guard>
                    <Printed />
                </main>
            </div>
            <TabsLow />
            <Find />
            <Help />
            <Asked />
            <Toasts />
        </div>
    );
}

/** The frame: navigation, the page that the address names, notices. */
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { Gate, UnreachableBanner } from "./gate.tsx";
import { PAGES } from "./pages/index.ts";
import { Icon } from "./parts/icons.tsx";
import { NoticeList } from "./parts/notice-list.tsx";
import { useEnvironment, useWords } from "./state/context.ts";
import { useStore } from "./state/store.ts";

export function App() {
  const { link } = useEnvironment();
  const state = useStore(link.state);
  const wasReady = useRef(false);
  if (state.kind === "ready") wasReady.current = true;
  if (state.kind === "locked") wasReady.current = false;
  return (
    <>
      {state.kind === "ready" || (state.kind === "unreachable" && wasReady.current) ? (
        <Frame lost={state.kind === "unreachable"} version={state.kind === "ready" ? state.version : ""} />
      ) : (
        <main class="alone">
          <Gate state={state} />
        </main>
      )}
      <NoticeList />
    </>
  );
}

function Frame({ lost, version }: { readonly lost: boolean; readonly version: string }) {
  const { t } = useWords();
  const { path, query, key } = useAddress();
  const [menu, setMenu] = useState(false);
  useEffect(() => setMenu(false), [key]);
  const entry = PAGES.find((page) => page.path === path) ?? PAGES[0]!;
  return (
    <div class="frame">
      <a class="skip" href={`#/${entry.path}`} onClick={skipToContent}>
        {t("frame.skip")}
      </a>
      <header class="side">
        <div class="brand">
          <span class="brand-name">weir</span>
          <span class="brand-version" title={version}>
            {version}
          </span>
          <button
            type="button"
            class="icon-button menu-button"
            aria-label={t("frame.menu")}
            aria-expanded={menu}
            aria-controls="pages"
            onClick={() => setMenu(!menu)}
          >
            <Icon name={menu ? "close" : "menu"} />
          </button>
        </div>
        <nav id="pages" class={menu ? "open" : ""} aria-label={t("frame.pages")}>
          {PAGES.map((page) => (
            <a key={page.path} href={`#/${page.path}`} aria-current={page === entry ? "page" : undefined}>
              <Icon name={page.path} />
              {t(page.title)}
            </a>
          ))}
        </nav>
      </header>
      <main id="content">
        {lost && <UnreachableBanner />}
        <entry.Page key={key} query={query} />
      </main>
    </div>
  );
}

function skipToContent(event: Event): void {
  event.preventDefault();
  document.querySelector<HTMLElement>("#content h1")?.focus();
}

/** The page's address after `#/`, such as `explain?destination=example.org`. */
function useAddress(): { readonly path: string; readonly query: URLSearchParams; readonly key: string } {
  const [key, set] = useState(location.hash);
  // Before it is painted: what is pressed as soon as it can be seen is not lost.
  useLayoutEffect(() => {
    const onChange = (): void => set(location.hash);
    addEventListener("hashchange", onChange);
    return () => removeEventListener("hashchange", onChange);
  }, []);
  const [path = "", query = ""] = key.replace(/^#\/?/, "").split("?", 2);
  return { path, query: new URLSearchParams(query), key };
}

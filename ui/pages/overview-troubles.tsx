import { useRef, useState } from "preact/hooks";
import type { LogRecord, Proxy, ProxyProvider, Rule, RuleProvider } from "#ui/api/types.ts";
import { Panel } from "#ui/parts/small.tsx";
import { useResource, useStream, useWords } from "#ui/state/context.ts";
import { troublesOf } from "#ui/state/troubles.ts";

const REFRESH_MS = 30_000;
/** Of the log's past, and kept while the page is open. */
const MOST_WARNINGS = 20;

/** What is not as the configuration wants it, each with the page that says more; or that there is nothing. */
export function Troubles() {
  const words = useWords();
  const { t } = words;
  const proxies = useResource<{ proxies: Readonly<Record<string, Proxy>> }>("proxies", REFRESH_MS);
  const providers = useResource<{ providers: Readonly<Record<string, ProxyProvider>> }>(
    "providers/proxies",
    REFRESH_MS,
  );
  const lists = useResource<{ providers: Readonly<Record<string, RuleProvider>> }>(
    "providers/rules",
    REFRESH_MS,
  );
  const rules = useResource<{ rules: readonly Rule[] }>("rules?unavailable=true", REFRESH_MS);
  const warnings = useWarnings();
  const isKnown = [proxies, providers, lists, rules].every(({ value }) => value !== null);
  if (!isKnown) return null;
  const troubles = troublesOf(words, {
    proxies: Object.values(proxies.value?.proxies ?? {}),
    providers: Object.values(providers.value?.providers ?? {}),
    rules: rules.value?.rules ?? [],
    ruleProviders: Object.values(lists.value?.providers ?? {}),
    warnings,
  });
  return (
    <Panel title={t("trouble.title")}>
      {troubles.length === 0 && <p class="note">{t("trouble.none")}</p>}
      <ul class="lines">
        {troubles.map(({ text, details, page }) => (
          <li key={text} class="line wrap">
            <span class="line-main">
              <span>{text}</span>
              <small class="break details" dir="auto">
                {details}
              </small>
            </span>
            <a class="button plain" href={`#/${page}`} aria-label={t("trouble.showOne", { what: text })}>
              {t("trouble.show")}
            </a>
          </li>
        ))}
      </ul>
    </Panel>
  );
}

/** The newest warnings and errors since the start. */
function useWarnings(): readonly LogRecord[] {
  const [shown, setShown] = useState<readonly LogRecord[]>([]);
  const known = useRef<readonly LogRecord[]>([]);
  useStream<LogRecord>(
    `logs?level=warning&format=structured&history=${MOST_WARNINGS}`,
    (record) => {
      known.current = [...known.current, record].slice(-MOST_WARNINGS);
      setShown(known.current);
    },
    () => (known.current = []), // every stream begins with the past
  );
  return shown;
}

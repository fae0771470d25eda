import { isDeepStrictEqual } from "node:util";
import type { Config } from "#config/config.ts";
import type { ProxyProviderConfig, RuleProviderConfig } from "#config/sections/index.ts";
import type { RuleScope } from "#core/rule.ts";
import type { GeoKey } from "#geodata/geodata.ts";
import type { Host } from "#host/host.ts";
import type { EtagBook, ResourceEnv, Source } from "#providers/resource.ts";
import { RuleProvider } from "#providers/rule-provider.ts";
import { readListParts, type ListKind } from "#providers/rule-set/read.ts";
import { Skipped } from "#providers/rule-set/contents.ts";
import { conditionsInSteps } from "#router/condition-list.ts";
import { wantedByLines } from "./wanted-geodata.ts";
import { etagBook, writtenBook, type Fetch } from "./downloads.ts";

/** For a whole download (configuration.md §13). */
const TIMEOUT_MS = 20_000;
/** Where `size-limit` says nothing. */
const DEFAULT_MAX_BYTES = 64 * 1024 * 1024;

export interface RuleProvidersEnv {
  /** Called when contents are read, which is after the constructor. */
  readonly scope: () => RuleScope;
  /** Has databases ready that conditions are about to ask for. */
  readonly prepare: (wanted: readonly GeoKey[]) => Promise<void>;
  /** Called for every new list. */
  readonly onChange: () => void;
}

/** The rule providers of one runtime; unchanged contents are taken over from the runtime before. */
export class RuleProviders implements AsyncDisposable {
  readonly all = new Map<string, RuleProvider>();
  readonly configs: ReadonlyMap<string, RuleProviderConfig>;
  /** At the start there is nothing yet that a pause could hold up, and threads would make it longer. */
  #isServing = false;

  constructor(config: Config, host: Host, fetch: Fetch, { scope, prepare, onChange }: RuleProvidersEnv) {
    this.configs = config.ruleProviders;
    const { slices } = host;
    const etags = config.general.etagSupport ? etagBook(host.cache) : null;
    for (const [name, item] of config.ruleProviders) {
      const source = sourceOf(item, `rule provider ${name}`);
      const { behavior, format, payload } = item;
      const classical = async (lines: readonly string[]) => {
        const wanted = await slices.run(wantedByLines(lines));
        if (this.#isServing) await prepare(wanted);
        const skipped = new Skipped();
        const onSkip = (line: string, why: string): void => skipped.add(line, why);
        const data = await slices.run(conditionsInSteps(lines, scope(), onSkip));
        return { data, skipped, asksDatabases: wanted.length > 0 };
      };
      const env = { ...resourceEnv(item, source, host, fetch, etags), onChange };
      const read = (bytes: Uint8Array, kind: ListKind) =>
        this.#isServing ? host.documents.readList(bytes, kind) : readListParts(bytes, kind);
      this.all.set(
        name,
        new RuleProvider({ source, behavior, format, payload, classical, slices, read }, env),
      );
    }
  }

  /** Reads the files on disk; downloads nothing. */
  async load(previous: RuleProviders | null): Promise<void> {
    this.#isServing = previous !== null;
    await Promise.all(
      [...this.all].map(async ([name, provider]) => {
        const before = previous?.all.get(name);
        const item = this.configs.get(name);
        const isSame = isDeepStrictEqual(previous?.configs.get(name), item);
        const isUsable =
          before !== undefined && before.resource.updatedAtMs !== null && !before.asksDatabases;
        if (!isSame || !isUsable) return provider.resource.load();
        provider.inherit(before);
      }),
    );
  }

  activate(): void {
    this.#isServing = true;
    for (const { resource } of this.all.values()) resource.activate();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.all.values()].map((provider) => provider[Symbol.asyncDispose]()));
  }
}

type ProviderConfig = RuleProviderConfig | ProxyProviderConfig;

export function sourceOf({ type, url, path, interval, sizeLimit }: ProviderConfig, title: string): Source {
  const maxBytes = sizeLimit > 0 ? sizeLimit : DEFAULT_MAX_BYTES;
  return { title, type, url, path, intervalSeconds: interval, maxBytes };
}

/** What every fetched list is given. */
export function resourceEnv(
  { url, proxy, header }: ProviderConfig,
  { maxBytes }: Source,
  {
    files,
    log,
    cache,
    journal,
    changeRouting,
  }: Pick<Host, "files" | "log" | "cache" | "journal" | "changeRouting">,
  fetch: Fetch,
  etags: EtagBook | null,
): Omit<ResourceEnv, "prepare" | "preparePayload" | "onUserInfo"> {
  return {
    files,
    log,
    nowMs: Date.now,
    changeRouting,
    events: journal.sinks,
    fetch: (etag, signal) =>
      fetch({ url: url as string, proxy, headers: header, timeoutMs: TIMEOUT_MS, maxBytes, etag }, signal),
    etags,
    written: writtenBook(cache),
  };
}

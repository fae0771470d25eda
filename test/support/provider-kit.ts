/** A rule provider and a proxy provider over loopback, with the old contents that a failed update must leave alone. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { proxyProvider } from "#config/sections/proxy-providers.ts";
import type { ProxyConfig } from "#config/config.ts";
import { openSafeFiles } from "#config/safe-path.ts";
import { SILENT } from "#core/log.ts";
import { Slices } from "#core/slices.ts";
import { openDirectDialer } from "#net/dial/direct-dialer.ts";
import { DEFAULT_TRUST as trust } from "#net/dial/trust.ts";
import type { Outbound } from "#core/outbound.ts";
import { directOutbound } from "#protocols/direct/index.ts";
import { fetchResource } from "#providers/fetch.ts";
import { LiveProxyProvider } from "#providers/proxy-provider.ts";
import type { ResourceEnv, Source } from "#providers/resource.ts";
import { RuleProvider } from "#providers/rule-provider.ts";
import { readListParts } from "#providers/rule-set/read.ts";
import { contentIn } from "#documents/node-list.ts";
import { readItems } from "#runtime/nodes.ts";
import { memoryBook } from "./written-book.ts";

export const OLD_RULES = "payload:\n  - +.old.example\n";
export const OLD_NODES = "proxies:\n  - {name: old, type: direct}\n";
export const NEW_RULES = "payload:\n  - +.new.example\n";
export const NEW_NODES = "proxies:\n  - {name: new, type: direct}\n";

export interface Kit extends AsyncDisposable {
  readonly home: string;
  readonly rules: RuleProvider;
  readonly nodes: LiveProxyProvider<ProxyConfig>;
  /** What each node is defined as. */
  readonly definitions: ReadonlyMap<Outbound, ProxyConfig>;
  /** What is in use: the old, or the new. */
  state(): string;
}

const LIMIT_BYTES = 64 * 1024;
const dialer = openDirectDialer({
  resolver: { lookup: () => Promise.reject(new Error("literal addresses only")) },
});

/** Both know the old contents from their files; `url` is where the new ones come from. */
export async function openKit(url: string, timeoutMs = 10_000, interval = 0): Promise<Kit> {
  const home = mkdtempSync(join(tmpdir(), "weir-providers-"));
  writeFileSync(join(home, "rules.yaml"), OLD_RULES);
  writeFileSync(join(home, "nodes.yaml"), OLD_NODES);
  const files = openSafeFiles({ home, log: SILENT });
  const etags = new Map<string, string>();
  const source = (path: string): Source => ({
    title: path,
    type: "http",
    url,
    path,
    intervalSeconds: interval,
    maxBytes: LIMIT_BYTES,
  });
  const env: Omit<ResourceEnv, "prepare" | "preparePayload"> = {
    files,
    log: SILENT,
    nowMs: Date.now,
    fetch: (etag, signal) =>
      fetchResource(
        { url, headers: {}, userAgent: "test", etag, dialer, trust, timeoutMs, maxBytes: LIMIT_BYTES },
        signal,
      ),
    changeRouting: async (apply) => apply(),
    written: memoryBook([join(home, "rules.yaml"), join(home, "nodes.yaml")]),
    etags: {
      get: (key, hash) => etags.get(`${key} ${hash}`) ?? null,
      set: (key, hash, etag) => void etags.set(`${key} ${hash}`, etag),
    },
  };
  const rules = new RuleProvider(
    {
      source: source("rules.yaml"),
      behavior: "domain",
      format: "yaml",
      payload: [],
      slices: new Slices(),
      read: readListParts,
      classical: () => {
        throw new Error("not used");
      },
    },
    env,
  );
  const config = { name: "nodes", ...proxyProvider.parse({ type: "http", url }) };
  const slices = new Slices();
  const definitions = new Map<Outbound, ProxyConfig>();
  const nodes = new LiveProxyProvider<ProxyConfig>(
    { name: "nodes", source: source("nodes.yaml"), testUrl: null },
    {
      read: async (bytes) => (await readItems(contentIn(bytes), config, files, slices)).nodes,
      readPayload: null,
      pause: () => slices.pause(),
      open: async ({ name }) => directOutbound(name, dialer),
      onOpened: (node, outbound) => definitions.set(outbound, node),
      onChange: () => {},
    },
    env,
  );
  await Promise.all([rules.resource.load(), nodes.resource.load()]);
  const word = (host: string) => rules.match({ host });
  return {
    home,
    rules,
    nodes,
    definitions,
    state: () =>
      `${["old", "new"].filter((name) => word(`www.${name}.example`) === true).join()} ${nodes
        .nodes()
        .map(({ name }) => name)
        .join()}`,
    async [Symbol.asyncDispose]() {
      await Promise.all([rules[Symbol.asyncDispose](), nodes[Symbol.asyncDispose]()]);
      rmSync(home, { recursive: true, force: true });
    },
  };
}

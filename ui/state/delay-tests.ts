/** Tests of the delays of all nodes, some at a time, which can be ended. */
import { useRef, useState } from "preact/hooks";
import { useEnvironment } from "./context.ts";
import type { Nodes } from "./nodes.ts";

export interface DelayTests {
  /** Null: none are under way. */
  readonly state: { readonly done: number; readonly total: number } | null;
  run(nodes: Nodes): Promise<void>;
  /** Ends behind those that are under way. */
  cancel(): void;
}

const AT_ONCE = 16;
const TIMEOUT_MS = 5_000;
/** Nothing goes out by these. */
const NO_WAY: ReadonlySet<string> = new Set(["Reject", "RejectDrop", "Pass"]);

/** `onEnd` reads the delays again; it is called now and then before the end, too. */
export function useDelayTests(onEnd: () => Promise<void>): DelayTests {
  const { link } = useEnvironment();
  const [state, setState] = useState<DelayTests["state"]>(null);
  const stop = useRef(false);
  const run = async (nodes: Nodes): Promise<void> => {
    stop.current = false;
    const tests = testsOf(nodes);
    const rest = tests.values();
    let done = 0;
    setState({ done, total: tests.length });
    const lane = async (): Promise<void> => {
      for (const path of rest) {
        if (stop.current) return;
        await link.get(path).catch(() => {}); // a node that does not answer shows it by itself
        setState({ done: ++done, total: tests.length });
        if (done % AT_ONCE === 0) void onEnd();
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, lane));
    await onEnd();
    setState(null);
  };
  return { state, run, cancel: () => (stop.current = true) };
}

/** Of each node one, by the URL of the first group that has it. */
function testsOf({ groups, byName, providerOf }: Nodes): readonly string[] {
  const paths = new Map<string, string>();
  for (const { all = [], testUrl = "" } of groups)
    for (const name of all) {
      const { all: members, type = "" } = byName.get(name) ?? {};
      if (paths.has(name) || members !== undefined || NO_WAY.has(type)) continue;
      paths.set(name, delayPath(name, providerOf.get(name), testUrl));
    }
  return [...paths.values()];
}

/** Where the delay of a node is asked for; `provider` undefined: it comes from none. */
export function delayPath(name: string, provider: string | undefined, testUrl: string): string {
  const node = encodeURIComponent(name);
  const query = delayQuery(testUrl);
  return provider === undefined
    ? `proxies/${node}/delay?${query}`
    : `providers/proxies/${encodeURIComponent(provider)}/${node}/healthcheck?${query}`;
}

export function delayQuery(testUrl: string): URLSearchParams {
  return new URLSearchParams({ url: testUrl, timeout: String(TIMEOUT_MS) });
}

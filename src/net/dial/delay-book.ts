import type { DelaySample, Delays, DelayState } from "#core/delays.ts";
import { oldestKey } from "#lib/at.ts";

const HISTORY = 10;
/** Test URLs kept per node; the one used longest ago goes first. */
const MAX_URLS = 16;

const UNTESTED: DelayState = { alive: true, history: [] };

interface NodeDelays {
  state: DelayState;
  readonly urls: Map<string, DelayState>;
}

/** The delay histories of a process. `prune` forgets nodes that no configuration has any more. */
export class DelayBook implements Delays {
  revision = 0;
  readonly #nodes = new Map<string, NodeDelays>();
  readonly #nowMs: () => number;
  readonly #onChange: () => void;

  /** `onChange` is called when groups may pick others than before. */
  constructor(nowMs: () => number = Date.now, onChange: () => void = () => {}) {
    this.#nowMs = nowMs;
    this.#onChange = onChange;
  }

  settled(): void {
    this.#onChange();
  }

  of(node: string): DelayState {
    return this.#nodes.get(node)?.state ?? UNTESTED;
  }

  for(node: string, url: string): DelayState {
    return this.#nodes.get(node)?.urls.get(url) ?? UNTESTED;
  }

  urlsOf(node: string): ReadonlyMap<string, DelayState> {
    return this.#nodes.get(node)?.urls ?? new Map();
  }

  record(node: string, url: string, delayMs: number, accepted: boolean): void {
    this.revision++;
    const known = this.#nodes.get(node) ?? { state: UNTESTED, urls: new Map<string, DelayState>() };
    this.#nodes.set(node, known);
    const sample = { atMs: this.#nowMs(), delayMs };
    known.state = next(known.state, sample, delayMs > 0);
    const byUrl = next(known.urls.get(url) ?? UNTESTED, sample, delayMs > 0 && accepted);
    known.urls.delete(url); // the newest is the last one
    known.urls.set(url, byUrl);
    if (known.urls.size > MAX_URLS) known.urls.delete(oldestKey(known.urls));
    this.#onChange();
  }

  prune(exists: (node: string) => boolean): void {
    for (const node of this.#nodes.keys()) if (!exists(node)) this.#nodes.delete(node);
  }
}

function next({ history }: DelayState, sample: DelaySample, alive: boolean): DelayState {
  return { alive, history: [...history.slice(1 - HISTORY), sample] };
}

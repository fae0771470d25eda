/** Nodes behind nodes, for `relay` groups: copies that reach their servers through the node before them. */
import type { Lines } from "#core/group.ts";
import type { Dialer, Outbound } from "#core/outbound.ts";
import type { ProxyConfig } from "#config/config.ts";

/** The line that was used longest ago goes first; its connections go on, a dial that is under way in it fails. */
const MOST_LINES = 256;

interface Line extends Dialer {
  readonly nodes: readonly Outbound[];
  close(): Promise<void>;
}

export interface NodeLinesEnv {
  /** Null for what stands in no file and no provider. */
  configOf(node: Outbound): ProxyConfig | null;
  find(name: string): Outbound | null;
  /** Makes a node that reaches its server through `dialer`; what is wrong with it, its dials say. */
  open(config: ProxyConfig, dialer: Dialer): Promise<Outbound>;
}

export class NodeLines implements Lines, AsyncDisposable {
  readonly #env: NodeLinesEnv;
  /** The one that was used last comes first. */
  #lines: Line[] = [];

  constructor(env: NodeLinesEnv) {
    this.#env = env;
  }

  isBuiltIn(node: Outbound): boolean {
    return this.#env.configOf(node) === null;
  }

  dialerOf(node: Outbound): Outbound | null {
    const name = this.#env.configOf(node)?.dialerProxy ?? null;
    return name === null ? null : this.#env.find(name);
  }

  line(nodes: readonly Outbound[]): Dialer {
    const at = this.#lines.findIndex((line) => isSame(line.nodes, nodes));
    const [known] = at === -1 ? [] : this.#lines.splice(at, 1);
    const line = known ?? this.#made(nodes);
    this.#lines.unshift(line);
    if (this.#lines.length > MOST_LINES) void this.#lines.pop()?.close();
    return line;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const lines = this.#lines;
    this.#lines = [];
    await Promise.all(lines.map((line) => line.close()));
  }

  /** Opens its copies at the first dial: most lines are only looked at. */
  #made(nodes: readonly Outbound[]): Line {
    const copies = new AsyncDisposableStack();
    let opening: Promise<Outbound> | null = null;
    const last = () => (opening ??= this.#open(nodes, copies));
    return {
      nodes,
      connect: async (destination, context) => (await last()).connect(destination, context),
      associate: async (destination, context) => (await last()).associate(destination, context),
      async close() {
        await opening;
        await copies.disposeAsync();
      },
    };
  }

  async #open([first, ...rest]: readonly Outbound[], copies: AsyncDisposableStack): Promise<Outbound> {
    let at = first as Outbound;
    for (const node of rest) {
      const config = this.#env.configOf(node);
      if (config === null) throw new Error(`${node.name} cannot stand behind another node`);
      at = copies.use(await this.#env.open(config, at));
    }
    return at;
  }
}

function isSame(left: readonly Outbound[], right: readonly Outbound[]): boolean {
  return left.length === right.length && left.every((node, at) => node === right[at]);
}

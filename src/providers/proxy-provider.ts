import { isDeepStrictEqual } from "node:util";
import { messageOf } from "#core/errors.ts";
import type { Outbound } from "#core/outbound.ts";
import type { ProxyProvider } from "#core/provider.ts";
import { Resource, type Prepared, type ResourceEnv, type Source } from "./resource.ts";
import { TrackedOutbound } from "./tracked-outbound.ts";

/** A node as it is defined; two equal definitions are the same node. */
export interface NodeDefinition {
  readonly name: string;
}

export interface NodeRoad<Node extends NodeDefinition> {
  /** Throws where the whole content cannot be used; never answers with nothing. */
  read(bytes: Uint8Array): Promise<readonly Node[]>;
  /** From the configuration; null: it has none. */
  readonly readPayload: (() => Promise<readonly Node[]>) | null;
  /** Awaited before each node that is opened or closed: a long list is not to hold up the event loop. */
  pause(): Promise<void>;
  /** Throws where the node's options cannot be used. */
  open(node: Node): Promise<Outbound>;
  /** Called for each node that was opened, before it comes into use. */
  onOpened(node: Node, outbound: Outbound): void;
  /** Called right after another set of nodes has come into use. */
  onChange(): void;
}

export interface ProxyProviderOptions {
  readonly name: string;
  readonly source: Source;
  readonly testUrl: string | null;
}

interface Opened<Node> {
  readonly node: Node;
  readonly outbound: TrackedOutbound;
}

/** Nodes whose list changes while groups hold on to it. What is no longer listed goes when its last session has ended. */
export class LiveProxyProvider<Node extends NodeDefinition> implements ProxyProvider, AsyncDisposable {
  readonly name: string;
  readonly testUrl: string | null;
  readonly resource: Resource;
  readonly #road: NodeRoad<Node>;
  readonly #log: ResourceEnv["log"];
  #opened: readonly Opened<Node>[] = [];
  #nodes: readonly Outbound[] = [];
  readonly #retiring = new Set<TrackedOutbound>();

  constructor(
    { name, source, testUrl }: ProxyProviderOptions,
    road: NodeRoad<Node>,
    env: Omit<ResourceEnv, "prepare" | "preparePayload">,
  ) {
    this.name = name;
    this.testUrl = testUrl;
    this.#road = road;
    this.#log = env.log;
    const { readPayload } = road;
    this.resource = new Resource(source, {
      ...env,
      prepare: async (bytes) => this.#prepare(await road.read(bytes)),
      preparePayload: readPayload === null ? null : async () => this.#prepare(await readPayload()),
    });
  }

  get isAwaited(): boolean {
    return this.resource.isAwaited;
  }

  nodes(): readonly Outbound[] {
    return this.#nodes;
  }

  /** Takes over the contents of another one of the same definition; its nodes are opened anew. */
  async inherit(from: LiveProxyProvider<Node>): Promise<void> {
    (await this.#prepare(from.#opened.map(({ node }) => node))).commit();
    this.resource.inherit(from.resource);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.resource[Symbol.asyncDispose]();
    const all = [...this.#opened.map(({ outbound }) => outbound), ...this.#retiring];
    this.#retiring.clear();
    this.#opened = [];
    await this.#close(all);
  }

  /** A node that did not change keeps its outbound, and with it its connections. Throws with nothing left open. */
  async #prepare(nodes: readonly Node[]): Promise<Prepared> {
    const before = new Map(this.#opened.map((entry) => [entry.node.name, entry]));
    const fresh: Opened<Node>[] = [];
    const next: Opened<Node>[] = [];
    const abandon = () => this.#close(fresh.map(({ outbound }) => outbound));
    try {
      for (const node of nodes) {
        await this.#road.pause();
        const known = before.get(node.name);
        const isSame = known !== undefined && isDeepStrictEqual(known.node, node);
        const entry = isSame ? known : await this.#open(node);
        if (entry !== known) fresh.push(entry);
        next.push(entry);
      }
    } catch (error) {
      await abandon();
      throw error;
    }
    return { commit: () => this.#commit(next), abandon };
  }

  async #open(node: Node): Promise<Opened<Node>> {
    const outbound = new TrackedOutbound(await this.#road.open(node));
    this.#road.onOpened(node, outbound);
    return { node, outbound };
  }

  #commit(next: readonly Opened<Node>[]): void {
    const kept = new Set(next);
    const gone = this.#opened.filter((entry) => !kept.has(entry));
    this.#opened = next;
    this.#nodes = next.map(({ outbound }) => outbound);
    for (const { outbound } of gone) this.#retiring.add(outbound);
    void this.#retireAll(gone);
    this.#road.onChange();
  }

  /** Begins with each; never throws. What is disposed of meanwhile is passed over. */
  async #retireAll(gone: readonly Opened<Node>[]): Promise<void> {
    for (const { outbound } of gone) {
      if (this.#retiring.has(outbound)) this.#retire(outbound);
      await this.#road.pause();
    }
  }

  #retire(outbound: TrackedOutbound): void {
    outbound
      .retire()
      .catch((error: unknown) => this.#log.warning(`closing the node ${outbound.name}: ${messageOf(error)}`))
      .finally(() => this.#retiring.delete(outbound));
  }

  async #close(outbounds: readonly TrackedOutbound[]): Promise<void> {
    const closing: Promise<void>[] = [];
    for (const outbound of outbounds) {
      closing.push(outbound[Symbol.asyncDispose]());
      await this.#road.pause();
    }
    await Promise.all(closing);
  }
}

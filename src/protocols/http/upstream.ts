import type { Duplex } from "node:stream";
import { Agent, type ClientRequestArgs } from "#lib/node-http.ts";
import type { InboundEnv } from "#core/inbound.ts";
import type { Destination } from "#core/session.ts";
import { describe, guardErrors, streamSession } from "#net/listen/accept.ts";
import type { Client } from "#protocols/mixed/client.ts";
import { memoryPair } from "./memory-pair.ts";

/** Where a request goes, carried in its options: the library hands them on untouched. */
export interface UpstreamOptions extends ClientRequestArgs {
  readonly destination: Destination;
  readonly user: string | null;
}

/**
 * The connections that one client's plain requests use: each is a session like any other, the client's side of it in
 * memory. One stays open between requests, for the same user and target only.
 */
export class Upstream extends Agent {
  readonly #client: Client;
  readonly #env: InboundEnv;

  constructor(client: Client, env: InboundEnv) {
    super({ keepAlive: true, maxFreeSockets: 1 });
    this.#client = client;
    this.#env = env;
  }

  /** Closes what was kept for another user or target. */
  keepOnly(options: UpstreamOptions): void {
    const name = this.getName(options);
    for (const [key, streams] of Object.entries(this.freeSockets))
      if (key !== name) for (const stream of streams ?? []) stream.destroy();
  }

  override getName(options?: ClientRequestArgs): string {
    const { destination, user } = options as UpstreamOptions;
    return JSON.stringify([user, destination.host, destination.ip, destination.port]);
  }

  override createConnection(options: ClientRequestArgs): Duplex {
    const { destination, user } = options as UpstreamOptions;
    const [near, far] = memoryPair();
    guardErrors(near);
    guardErrors(far);
    const asked = { network: "tcp", type: "HTTP", user, destination } as const;
    const metadata = describe(this.#env, this.#client.connection, asked);
    const tell = (failure: Error | null): void => {
      if (failure !== null) near.destroy(failure); // comes out as the request's error, reason and all
    };
    // The library gets its stream first: the session may be decided at once.
    queueMicrotask(() => this.#env.accept(streamSession(metadata, far, tell)));
    return near;
  }

  /** The library would set probes and timers here; a stream in memory has neither, and the client's own idle bound counts. */
  override keepSocketAlive(): boolean {
    return true;
  }
}

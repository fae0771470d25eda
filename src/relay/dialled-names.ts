import type { HeldClient } from "#core/held.ts";
import type { Endpoint } from "#core/session.ts";

/** Both ends of a connection that this machine has opened; no other one of it has the same two. */
export function connectionName(near: Endpoint, far: Endpoint): string {
  return `${near.ip} ${near.port} ${far.ip} ${far.port}`;
}

/**
 * What relay threads have dialled, by name. The near end is asked of the kernel when somebody looks for the first time,
 * each once: a dial that nobody looks for costs a place in a map. It is never too late for that: a thread shows its
 * socket before it connects, and only then can anything come back.
 */
export class DialledNames {
  readonly #unnamed = new Map<HeldClient, Endpoint>();
  readonly #clients = new Map<string, HeldClient>();
  readonly #names = new Map<HeldClient, string>();

  /** To be called before it dials. */
  add(client: HeldClient, far: Endpoint): void {
    this.#unnamed.set(client, far);
  }

  delete(client: HeldClient): void {
    if (this.#unnamed.delete(client)) return;
    const name = this.#names.get(client);
    if (name === undefined) return;
    this.#names.delete(client);
    if (this.#clients.get(name) === client) this.#clients.delete(name);
  }

  /** Is there a connection between these two that is open now? */
  has(near: Endpoint, far: Endpoint): boolean {
    for (const [client, to] of this.#unnamed) this.#name(client, to);
    const client = this.#clients.get(connectionName(near, far));
    // A thread may have closed it without our knowing yet, and its ends may be another program's by now.
    const present = client?.dialledFrom() ?? null;
    return present !== null && present.port === near.port && present.ip === near.ip;
  }

  #name(client: HeldClient, far: Endpoint): void {
    const near = client.dialledFrom();
    if (near === null) return; // the thread is not so far
    const name = connectionName(near, far);
    this.#unnamed.delete(client);
    this.#names.set(client, name);
    this.#clients.set(name, client);
  }
}

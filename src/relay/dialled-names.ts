import type { HeldClient } from "#core/held.ts";
import type { Endpoint } from "#core/session.ts";

/**
 * The near ends of what relay threads have dialled, by name. A name is asked of the kernel when somebody looks for the
 * first time, each once: a dial that nobody looks for costs a place in a set. It is never too late for that: a thread
 * shows its socket before it connects, and only then can anything come back.
 */
export class DialledNames {
  readonly #unnamed = new Set<HeldClient>();
  readonly #clients = new Map<string, HeldClient>();
  readonly #names = new Map<HeldClient, string>();

  /** To be called before it dials. */
  add(client: HeldClient): void {
    this.#unnamed.add(client);
  }

  delete(client: HeldClient): void {
    if (this.#unnamed.delete(client)) return;
    const name = this.#names.get(client);
    if (name === undefined) return;
    this.#names.delete(client);
    if (this.#clients.get(name) === client) this.#clients.delete(name);
  }

  /** Is it that of a connection that is open now? */
  has(end: Endpoint): boolean {
    for (const client of this.#unnamed) this.#name(client);
    const name = nameOf(end);
    const client = this.#clients.get(name);
    // A thread may have closed it without our knowing yet, and the port may be another program's by now.
    return client !== undefined && nameOf(client.dialledFrom()) === name;
  }

  #name(client: HeldClient): void {
    const name = nameOf(client.dialledFrom());
    if (name === "") return; // the thread is not so far
    this.#unnamed.delete(client);
    this.#names.set(client, name);
    this.#clients.set(name, client);
  }
}

function nameOf(end: Endpoint | null): string {
  return end === null ? "" : `${end.ip} ${end.port}`;
}

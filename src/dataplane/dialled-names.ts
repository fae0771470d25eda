import type { WorkerConnection } from "#core/accepted.ts";
import { endpointText, type Endpoint, type Metadata } from "#core/session.ts";
import type { FoundDial } from "./decision-source.ts";

/** Both ends of a connection that this machine has opened. */
export function connectionName(near: Endpoint, far: Endpoint): string {
  return nameOf(near, endpointText(far));
}

const nameOf = ({ ip, port }: Endpoint, far: string): string => `${ip} ${port} ${far}`;

/** What is known of a dial before it is made. */
export type DialCause = Pick<FoundDial, "isDirect"> & {
  /** Of the client. */
  readonly metadata: Metadata;
};

interface Dial {
  readonly cause: DialCause;
  readonly client: WorkerConnection;
  readonly far: string;
  /** Null: not asked from the kernel yet. */
  name: string | null;
}

/**
 * The sockets that workers have dialled, by name. The local end is read from the kernel when a dial to the same remote
 * end is looked up for the first time, once for each. It is never too late for that: a worker publishes its socket
 * before it connects, and only then can a connection come back.
 */
export class DialledNames {
  /** By the far end. */
  readonly #unnamed = new Map<string, Set<Dial>>();
  readonly #named = new Map<string, Dial>();

  /** To be called before it dials; and what it answers with to be disposed of when the dial has come to an end. */
  add(client: WorkerConnection, to: Endpoint, cause: DialCause): Disposable {
    const dial: Dial = { cause, client, far: endpointText(to), name: null };
    const others = this.#unnamed.get(dial.far);
    if (others === undefined) this.#unnamed.set(dial.far, new Set([dial]));
    else others.add(dial);
    return { [Symbol.dispose]: () => this.#delete(dial) };
  }

  #delete(dial: Dial): void {
    const { far, name } = dial;
    if (name !== null && this.#named.get(name) === dial) this.#named.delete(name);
    const others = this.#unnamed.get(far);
    if (others?.delete(dial) === true && others.size === 0) this.#unnamed.delete(far);
  }

  /** The connection between these two that is open now; null: there is none. */
  find(near: Endpoint, to: Endpoint): FoundDial | null {
    const far = endpointText(to);
    for (const dial of this.#unnamed.get(far) ?? []) this.#name(dial);
    const dial = this.#named.get(nameOf(near, far));
    // A thread may have closed it without our knowing yet, and its ends may be another program's by now.
    const present = dial?.client.dialledFrom() ?? null;
    if (dial === undefined || present?.port !== near.port || present.ip !== near.ip) return null;
    return { ...dial.cause, descriptor: present.descriptor };
  }

  #name(dial: Dial): void {
    const near = dial.client.dialledFrom();
    if (near === null) return; // the thread is not so far
    this.#delete(dial);
    dial.name = nameOf(near, dial.far);
    this.#named.set(dial.name, dial);
  }
}

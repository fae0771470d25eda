/** An upstream that asks by one client at a time, which is built anew when a kept one turns out dead. */
import { DialError, ProtocolError } from "#core/errors.ts";
import type { Upstream } from "./upstream.ts";
import { abortion } from "./wire.ts";

const MAX_REBUILDS = 2;

/** A connection to the server that carries many questions at once. */
export interface AskingClient {
  /**
   * As `Upstream.exchange`. Rejects with `ProtocolError` for what the server says of this question alone, with anything else
   * where the client is of no more use.
   */
  ask(query: Uint8Array, signal: AbortSignal): Promise<Uint8Array>;
  /** No question comes any more; those under way may still be answered. */
  retire(): void;
  close(): void;
}

/** Ends where `life` aborts. */
export type DialClient<Client extends AskingClient = AskingClient> = (life: AbortSignal) => Promise<Client>;

/** `text`: of the server, for messages. */
export function openKeptClient(text: string, dial: DialClient): Upstream {
  return new KeptClient(text, dial);
}

class KeptClient implements Upstream {
  readonly text: string;
  readonly fixed = false;
  readonly #dial: DialClient;
  /** Ends dials that are under way when the upstream is disposed. */
  readonly #life = new AbortController();
  #client: Promise<AskingClient> | null = null;

  constructor(text: string, dial: DialClient) {
    this.text = text;
    this.#dial = dial;
  }

  async exchange(query: Uint8Array, signal: AbortSignal): Promise<Uint8Array> {
    const waiting = abortion(signal);
    try {
      for (let rebuilds = 0; ; rebuilds++) {
        const kept = this.#client;
        const opening = kept ?? this.#open();
        try {
          const client = await Promise.race([opening, waiting.aborted]);
          return await client.ask(query, signal);
        } catch (error) {
          // What a server says of one question, or a question that is given up, says nothing about the client.
          if (signal.aborted || error instanceof ProtocolError) throw error;
          this.#drop(opening);
          // A kept connection may have died unnoticed; a new one gives the real result.
          if (kept === null || rebuilds >= MAX_REBUILDS) throw error;
        }
      }
    } finally {
      waiting.release();
    }
  }

  #open(): Promise<AskingClient> {
    const opening = this.#dial(this.#life.signal);
    this.#client = opening;
    opening.catch(() => this.#drop(opening));
    return opening;
  }

  #drop(opening: Promise<AskingClient>): void {
    if (this.#client === opening) this.#client = null;
    opening.then(
      (client) => client.retire(),
      () => {}, // was never open
    );
  }

  reset(): void {
    const given = this.#client;
    this.#client = null;
    given?.then(
      (client) => client.close(),
      () => {}, // was never open
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#life.abort(new DialError("aborted", `${this.text} is closed`));
    const client = await this.#client?.catch(() => null);
    client?.close();
    this.#client = null;
  }
}

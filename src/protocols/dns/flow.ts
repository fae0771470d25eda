import { messageOf } from "#core/errors.ts";
import type { Log } from "#core/log.ts";
import type { DnsAnswers } from "#core/outbound.ts";
import type { Datagram, DatagramFlow } from "#core/session.ts";

/** Questions of one client that wait for their answers; one more is dropped: clients ask again. */
const MAX_RUNNING = 64;

/** Every datagram is a question; its answer has the question's destination as its source. */
export class DnsFlow implements DatagramFlow {
  readonly #dns: DnsAnswers;
  readonly #log: Log;
  readonly #end = Promise.withResolvers<void>();
  readonly closed = this.#end.promise;
  #on: ((item: Datagram) => void) | null = null;
  #running = 0;

  constructor(dns: DnsAnswers, log: Log) {
    this.#dns = dns;
    this.#log = log;
  }

  send({ payload, destination }: Datagram): void {
    if (this.#running >= MAX_RUNNING) return;
    this.#running++;
    this.#dns
      .answer(Buffer.from(payload)) // a copy: the payload is lent
      .then(
        (answer) => this.#on?.({ payload: answer, destination }),
        (error: unknown) => this.#log.debug(() => `[DNS] a datagram without an answer: ${messageOf(error)}`),
      )
      .finally(() => this.#running--);
  }

  receive(on: (item: Datagram) => void): void {
    this.#on = on;
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#on = null;
    this.#end.resolve();
    return this.closed;
  }
}
